package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks is the maximum number of combining marks after one character.
// Writing systems need at most three; hundreds would overwrite the surrounding
// lines.
const maxMarks = 4

// Printable returns s as one line that can do nothing to a terminal except
// print characters. A question mark replaces each control character (including
// escape sequences and line breaks), each character that hides, reorders or
// joins others (bidirectional controls, zero-width and tag characters), each
// private or unassigned character, and each run of invalid UTF-8. Every kind of
// blank becomes an ASCII blank. The result is valid UTF-8, not longer than s in
// bytes, and Printable does not change it.
func Printable(s string) string { return printable(s, "?") }

// PrintableBytes is like Printable, but changes b in place: the result uses the
// memory of b.
func PrintableBytes(b []byte) []byte { return appendPrintable(b[:0], b, "?") }

// Excerpt returns the first n characters of s for use in JSON, followed by an
// ellipsis if something is missing. It replaces the same characters as
// Printable, but with U+FFFD, which programs can distinguish from a question
// mark in s.
func Excerpt(s string, n int) string {
	s = printable(s, string(unicode.ReplacementChar))
	if short := first(s, n); len(short) < len(s) {
		return short + ellipsis
	}
	return s
}

func printable(s, instead string) string {
	if plain(s) {
		return s
	}
	return string(appendPrintable(nil, []byte(s), instead))
}

// appendPrintable appends b to dst. It replaces each character that is not
// printable and each run of invalid bytes with the argument "instead". dst may
// be b[:0] if instead is one byte long.
func appendPrintable(dst, b []byte, instead string) []byte {
	var m marks
	invalid := false
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		again := invalid
		invalid = r == utf8.RuneError && size == 1
		allowed := m.allow(r)
		switch {
		case invalid && again:
		case !invalid && allowed && visible(r):
			dst = append(dst, b[i:i+size]...)
		case unicode.Is(unicode.Zs, r):
			dst = append(dst, ' ')
		default:
			dst = append(dst, instead...)
		}
		i += size
	}
	return dst
}

// plain reports whether s is printable ASCII, as most text is.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// Escape is like Printable, but replaces characters with escape sequences as in
// a Go or YAML string, for messages about a file whose author has to find the
// character. An invalid byte becomes \x and two digits.
func Escape(s string) string { return escape(s, "") }

// Quote returns the first n characters of s between double quotes, in a form
// that strconv.Unquote accepts; an ellipsis follows if something is missing.
func Quote(s string, n int) string {
	short := first(s, n)
	more := ""
	if len(short) < len(s) {
		more = ellipsis
	}
	return `"` + escape(short, `"\`) + more + `"`
}

// escape also puts a backslash before each character in special.
func escape(s, special string) string {
	var b strings.Builder
	var m marks
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		allowed := m.allow(r)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i]), 16))
		case strings.ContainsRune(special, r):
			b.WriteString(`\` + string(r))
		case allowed && visible(r):
			b.WriteRune(r)
		default:
			spelled := strconv.QuoteRuneToASCII(r)
			b.WriteString(spelled[1 : len(spelled)-1])
		}
	}
	return b.String()
}

// marks counts the consecutive combining marks at the end of a string.
type marks struct {
	n     int
	begun bool
}

// allow reports whether r may follow under the limit on combining marks.
func (m *marks) allow(r rune) bool {
	begun := m.begun
	m.begun = true
	if !unicode.Is(unicode.M, r) {
		m.n = 0
		return true
	}
	m.n++
	// At the beginning, a combining mark would change the character that is
	// printed before it.
	return begun && m.n <= maxMarks
}

func visible(r rune) bool {
	return r >= ' ' && r < 0x7f || unicode.IsPrint(r) && !unicode.In(r, unseen...)
}

// unseen are characters that count as letters, marks and symbols but are
// invisible: UAX #44 Other_Default_Ignorable_Code_Point (Hangul fillers, the
// grapheme joiner), the variation selectors, and the Braille pattern without
// dots.
var unseen = []*unicode.RangeTable{
	unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector,
	{R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}}},
}

const ellipsis = "…"

// Head returns the beginning of s, Printable and at most n characters long (n
// >= 1). If something is missing, the last character is an ellipsis.
func Head(s string, n int) string {
	s = Printable(s)
	if len(first(s, n)) == len(s) {
		return s
	}
	return first(s, n-1) + ellipsis
}

// FirstLine returns the Head of the first line of s that is not blank.
func FirstLine(s string, n int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return Head(strings.TrimSpace(line), n)
}

// Tail returns the end of s, which is the part in which long names differ:
// Printable and at most n characters long. If something is missing, the first
// character is an ellipsis.
func Tail(s string, n int) string {
	s = Printable(s)
	drop := utf8.RuneCountInString(s) - n
	if drop <= 0 {
		return s
	}
	rest := s[len(first(s, drop+1)):]
	// A combining mark must not change the ellipsis.
	return ellipsis + strings.TrimLeftFunc(rest, unicode.IsMark)
}

// first returns the first n characters of s.
func first(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}
