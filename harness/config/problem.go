package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	File string
	// Line and Column count from 1, columns in characters. Both are 0 where the
	// problem is the file as a whole.
	Line, Column int
	// Path names the key, such as sample.normal or app.processes[2]; empty for
	// the file as a whole.
	Path string
	// Message says what is wrong and what to write instead.
	Message string
	// Excerpt is the line with a caret under the column, in two lines of text.
	Excerpt string
	// Suggestion is what was probably meant, ready to be written; often empty.
	Suggestion string
}

// Error gives file:line:column, key, message and suggestion in one line, and the
// excerpt in two more.
func (p Problem) Error() string {
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

// quoted shows a value of the user inside a message.
func quoted(text string) string { return strconv.Quote(shortened(text)) }

// shortened cuts a value of the user to a length that leaves a message readable.
func shortened(text string) string {
	const most = 60
	if utf8.RuneCountInString(text) > most {
		return string([]rune(text)[:most]) + "…"
	}
	return text
}
