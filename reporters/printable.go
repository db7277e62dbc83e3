package reporters

import (
	"strings"
	"unicode"
)

// maxMarks is how many combining marks may stand on one character. Writing needs
// three at most; hundreds of them paint over the lines around.
const maxMarks = 4

// Printable makes one line of any text that a terminal only shows: each control
// character (among them the escape that begins a terminal command and the line
// break), each character that hides, reorders or joins text (bidirectional
// controls, zero-width and tag characters), each that has no agreed look (private,
// unassigned) and each run of bytes that is no UTF-8 becomes a question mark, every
// kind of blank a blank. The result is no longer than text, in bytes, and is its
// own Printable.
func Printable(text string) string {
	marks, begun := 0, false
	return strings.Map(func(r rune) rune {
		first := !begun
		begun = true
		if !unicode.Is(unicode.M, r) {
			marks = 0
			return visible(r)
		}
		// At the beginning a mark would change what stands before the text.
		if marks++; first || marks > maxMarks {
			return '?'
		}
		return visible(r)
	}, strings.ToValidUTF8(text, "?"))
}

func visible(r rune) rune {
	switch {
	case r >= ' ' && r < 0x7f:
		return r
	case unicode.Is(unicode.Zs, r):
		return ' '
	case !unicode.IsPrint(r), unicode.In(r, unseen...):
		return '?'
	}
	return r
}

// unseen are characters that count as letters, marks and symbols but show nothing:
// UAX #44 Other_Default_Ignorable_Code_Point (Hangul fillers, the grapheme joiner),
// the variation selectors, and the Braille pattern without dots.
var unseen = []*unicode.RangeTable{
	unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector,
	{R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}}},
}

// maxName bounds a name in a line for people, in characters. A process name of
// Android has at most 255.
const maxName = 255

// name is a name of a process or device for a line for people.
func name(text string) string { return clip(Printable(text), maxName) }

// clip keeps the first n characters of a printable text, the last of them an
// ellipsis where some are left out.
func clip(text string, n int) string {
	count, last := 0, 0
	for i := range text {
		if count == n-1 {
			last = i
		}
		if count++; count > n {
			return text[:last] + "…"
		}
	}
	return text
}
