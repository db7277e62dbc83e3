package config

import (
	"fmt"
	"strings"
	"unicode"
)

// Problem is one thing that is wrong with a file, or with what is chosen beside it.
type Problem struct {
	// File is the file, or "environment" and the name of a variable, or a flag.
	File string
	// Line and Column count from 1, columns in characters. Both are 0 where the
	// problem is the file as a whole, a variable or a flag.
	Line, Column int
	// Path names the key, such as sample.normal, app.processes[2] or
	// profiles.pr.duration; empty for the file as a whole.
	Path string
	// Message says what is wrong and what to write instead.
	Message string
	// Excerpt is the line with a caret under the column, in two lines of text.
	Excerpt string
	// Suggestion is what was probably meant, ready to be written; often empty.
	Suggestion string
}

// Error gives file:line:column, key, message and suggestion in one line, and the
// excerpt in two more. All of it is printable, whatever the file holds and is called.
func (p Problem) Error() string {
	p = p.Printable()
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Suggestion != "" {
		b.WriteString("; did you mean " + p.Suggestion + "?")
	}
	if p.Excerpt != "" {
		b.WriteString("\n" + p.Excerpt)
	}
	return b.String()
}

// Printable is the problem with every text in a form that a terminal neither
// obeys nor hides. An excerpt is so from the beginning.
func (p Problem) Printable() Problem {
	p.File, p.Path = printable(p.File), printable(p.Path)
	p.Message, p.Suggestion = printable(p.Message), printable(p.Suggestion)
	return p
}

// Errors is everything that is wrong with a file, in the order of its lines. It
// is never empty when it is returned.
type Errors []Problem

// Error lists all problems, one after the other.
func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, p := range e {
		texts[i] = p.Error()
	}
	return strings.Join(texts, "\n")
}

// excerptColumns is how much of a line an excerpt shows. A file may be one line
// of a megabyte, and each of its problems carries an excerpt.
const excerptColumns = 100

// excerpt shows a line of the file with a caret under the column. What a
// terminal would obey or not show is replaced.
func (s source) excerpt(line, column int) string {
	if line < 1 || line > len(s.lines) {
		return ""
	}
	text := []rune(s.line(line))
	at := min(max(column-1, 0), len(text))
	from := max(0, min(at-excerptColumns/2, len(text)-excerptColumns))
	to := min(len(text), from+excerptColumns)
	head, tail := "", ""
	if from > 0 {
		head = "…"
	}
	if to < len(text) {
		tail = "…"
	}
	number := fmt.Sprintf("%5d", line)
	before := head + visible(text[from:at])
	return number + " | " + before + visible(text[at:to]) + tail + "\n" +
		strings.Repeat(" ", len(number)) + " | " + strings.Repeat(" ", width(before)) + "^"
}

func visible(text []rune) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, string(text))
}

// wide are the scripts that take two columns of a terminal
// (Unicode Standard Annex 11, East_Asian_Width W and F, without the small print).
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x2e80, 0xa4cf, 1}, {0xac00, 0xd7a3, 1},
		{0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{{0x1f300, 0x1faff, 1}, {0x20000, 0x3fffd, 1}},
}

// width is how many columns of a terminal a text takes.
func width(text string) int {
	n := 0
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Mn, r):
		case unicode.Is(wide, r):
			n += 2
		default:
			n++
		}
	}
	return n
}
