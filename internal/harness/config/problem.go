package config

import (
	"fmt"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// Problem is one mistake in a file or in a [Choice].
type Problem struct {
	// File is the name of the file, "environment" followed by the name of a
	// variable, or a flag.
	File string
	// Line and Column count from 1, columns in characters. Both are 0 if the
	// problem concerns the file as a whole, a variable or a flag.
	Line, Column int
	// Path is the key, such as sample.normal, app.processes[2] or
	// profiles.pr.duration; empty for the file as a whole.
	Path string
	// Message describes the mistake and says what to write instead.
	Message string
	// Excerpt is the line, followed by a second line with a caret below the
	// column.
	Excerpt string
	// Suggestion is the text that was probably meant, ready to use; it is often
	// empty.
	Suggestion string
}

// Error returns file:line:column, key, message and suggestion on one line,
// followed by the excerpt on two more lines. The result is printable, whatever
// the name and the content of the file are.
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

// Printable returns a copy of the problem in which all strings are printable.
// An excerpt is always printable.
func (p Problem) Printable() Problem {
	p.File, p.Path = text.Escape(p.File), text.Escape(p.Path)
	p.Message, p.Suggestion = text.Escape(p.Message), text.Escape(p.Suggestion)
	return p
}

// Errors lists all mistakes in a file, in the order of their lines. It is never
// empty when it is returned.
type Errors []Problem

// Error lists all problems, one after the other.
func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, p := range e {
		texts[i] = p.Error()
	}
	return strings.Join(texts, "\n")
}

// excerptColumns is the maximum number of columns in an excerpt. The whole file
// may be one line of a megabyte, and each of its problems has an excerpt.
const excerptColumns = 100

// excerpt returns a line of the file and a second line with a caret below the
// column. Unprintable characters are replaced.
func (s source) excerpt(line, column int) string {
	if line < 1 || line > len(s.lines) {
		return ""
	}
	runes := []rune(s.line(line))
	at := min(max(column-1, 0), len(runes))
	from := max(0, min(at-excerptColumns/2, len(runes)-excerptColumns))
	to := min(len(runes), from+excerptColumns)
	head, tail := "", ""
	if from > 0 {
		head = "…"
	}
	if to < len(runes) {
		tail = "…"
	}
	number := fmt.Sprintf("%5d", line)
	before := head + visible(runes[from:at])
	return number + " | " + before + visible(runes[at:to]) + tail + "\n" +
		strings.Repeat(" ", len(number)) + " | " + strings.Repeat(" ", text.Columns(before)) + "^"
}

// visible returns part of a line with unprintable characters replaced; the
// number of characters stays the same.
func visible(part []rune) string {
	return text.Printable(strings.ReplaceAll(string(part), "\t", " "))
}
