package footprint

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// KeyOf returns the identity of what grew from run to run: 40 digits of
// lowercase hex, of the SHA-256 of its kind and its name. Names of mappings
// contain nothing that changes from run to run.
func KeyOf(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "\n" + name + "\n"))
	return hex.EncodeToString(sum[:20])
}

// WithoutNumbers returns the name of a group of threads or of a layer without
// the parts that change from run to run: numbers, which depend on what was
// started before, also if all threads of a group have one (pool-3-thread-*);
// addresses and hash codes; and what a runtime adds to the name of a class that
// it generates (Cart$$Lambda$14/0x00007f31, $Proxy12).
func WithoutNumbers(name string) string {
	return strings.TrimSpace(numbersOf.ReplaceAllString(name, ""))
}

// numbersOf are numbers and stars with the sign in front of them: words of hex
// with a digit in them, as in isNumber, or digits at the end of other words.
var numbersOf = regexp.MustCompile(
	`(?:[@/$#+.:_-]*(?:\b0x[0-9a-fA-F]+\b|\b[0-9a-fA-F]{5,}[0-9][0-9a-fA-F]*\b|\b[0-9a-fA-F]*[0-9][0-9a-fA-F]{5,}\b|` +
		`[0-9]+|\*))+`)
