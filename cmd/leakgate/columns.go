package main

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// columns is how many columns of a terminal a printable character takes: two for
// those that are wide (Unicode UAX #11), none for a mark on another.
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

func textColumns(text string) int {
	n := 0
	for _, r := range text {
		n += columns(r)
	}
	return n
}

// clipLine cuts a printable line to less than a terminal's columns, so that it
// stays one row.
func clipLine(line string, terminal int) string {
	n := 0
	for i, r := range line {
		if n += columns(r); n >= terminal {
			return line[:i]
		}
	}
	return line
}

// tail keeps the end of a long printable name, where processes of one app differ:
// at most n columns, the first an ellipsis where something is left out.
func tail(name string, n int) string {
	left := textColumns(name)
	if left <= n {
		return name
	}
	for i, r := range name {
		// What remains must not begin with a mark of what is gone.
		if left < n && columns(r) > 0 {
			return "…" + name[i:]
		}
		left -= columns(r)
	}
	return "…"
}

// cell is a printable name in exactly n columns, to the left.
func cell(name string, n int) string {
	name = tail(name, n)
	return name + strings.Repeat(" ", n-textColumns(name))
}
