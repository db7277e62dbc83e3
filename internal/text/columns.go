package text

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Columns returns how many columns of a terminal a Printable string takes: two
// for each wide character (Unicode UAX #11), zero for a combining mark.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += columns(r)
	}
	return n
}

func columns(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Row truncates a Printable line to fewer columns than the terminal has, so
// that the line does not wrap.
func Row(line string, terminal int) string {
	n := 0
	for i, r := range line {
		if n += columns(r); n >= terminal {
			return line[:i]
		}
	}
	return line
}

// TailColumns is like Tail, but limits the result to n columns.
func TailColumns(s string, n int) string {
	s = Printable(s)
	left := Columns(s)
	if left <= n {
		return s
	}
	for i, r := range s {
		// A combining mark must not change the ellipsis.
		if left < n && columns(r) > 0 {
			return ellipsis + s[i:]
		}
		left -= columns(r)
	}
	return ellipsis
}

// Cell returns the TailColumns of s, padded with blanks to exactly n columns.
func Cell(s string, n int) string {
	s = TailColumns(s, n)
	return s + strings.Repeat(" ", n-Columns(s))
}
