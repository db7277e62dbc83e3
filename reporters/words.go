package reporters

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// hiddenClass is the address that a JVM puts behind the name of a lambda's class.
var hiddenClass = regexp.MustCompile(`[./+]0x[0-9a-f]+$`)

// longestName is the characters that are shown of a name of a dump.
const longestName = 240

// count writes a number with the word for one or for many.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Grouped(int64(n)) + " " + many
}

// Plural names objects of a class with their number.
func Plural(n int, class string) string {
	if n == 1 {
		return ClassName(class)
	}
	return Grouped(int64(n)) + " x " + ClassName(class)
}

// ClassName is a class in a line, without the address that says nothing to a reader.
func ClassName(class string) string {
	return Tail(hiddenClass.ReplaceAllString(class, ""), longestName)
}

// Tail keeps the end of a long name, where names of one app differ: at most n characters,
// the first an ellipsis where something is left out. It is Printable.
func Tail(name string, n int) string {
	name = Printable(name)
	runes := []rune(name)
	if len(runes) <= n {
		return name
	}
	left := runes[len(runes)-n+1:]
	// What remains must not begin with a mark of what is gone.
	for len(left) > 0 && unicode.Is(unicode.M, left[0]) {
		left = left[1:]
	}
	return "…" + string(left)
}

// Head keeps the beginning of a text, in n characters at most; Printable.
func Head(text string, n int) string {
	runes := []rune(Printable(text))
	if len(runes) <= n {
		return string(runes)
	}
	return string(runes[:n-1]) + "…"
}

// Bytes is an amount that may be small.
func Bytes(n int64) string {
	if n < 10_000 {
		return Grouped(n) + " bytes"
	}
	return Amount(n)
}

// Amount writes bytes as MB of 1024 kB, and less than one as kB.
func Amount(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f kB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

// Grouped writes a number in groups of three digits.
func Grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// SimpleName is a class name without its package.
func SimpleName(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// Short is the beginning of an identity, enough to tell those of one dump apart.
func Short(identity string) string { return identity[:min(8, len(identity))] }

// Signed writes a change with its sign.
func Signed(n int64) string {
	if n > 0 {
		return "+" + Grouped(n)
	}
	return Grouped(n)
}

// SignedAmount writes a change of bytes with its sign.
func SignedAmount(n int64) string {
	switch {
	case n < 0:
		return "-" + Amount(-n)
	case n > 0:
		return "+" + Amount(n)
	}
	return "0 kB"
}
