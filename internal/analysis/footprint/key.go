package footprint

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// KeyOf returns the identifier of something that grew. It is the same in every
// run: the SHA-256 of the kind and the name, shortened to 40 lowercase
// hexadecimal digits. Names of mappings do not contain parts that change from
// run to run.
func KeyOf(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "\n" + name + "\n"))
	return hex.EncodeToString(sum[:20])
}

// WithoutNumbers returns the name of a group of threads or of a layer without
// the parts that change from run to run. These are addresses, hash codes, the
// parts that a runtime adds to the names of generated classes
// (Cart$$Lambda$14/0x00007f31, $Proxy12), and other numbers. A number depends
// on what was started before, even if all threads of a group have the same one
// (pool-3-thread-*).
func WithoutNumbers(name string) string {
	return strings.TrimSpace(numbersOf.ReplaceAllString(name, ""))
}

// numbersOf matches numbers and asterisks, including separators in front of
// them. Numbers are hexadecimal words that contain a digit, as in isNumber, or
// digits at the end of other words.
var numbersOf = regexp.MustCompile(
	`(?:[@/$#+.:_-]*(?:\b0x[0-9a-fA-F]+\b|\b[0-9a-fA-F]{5,}[0-9][0-9a-fA-F]*\b|\b[0-9a-fA-F]*[0-9][0-9a-fA-F]{5,}\b|` +
		`[0-9]+|\*))+`)
