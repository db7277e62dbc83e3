package reporters

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// page is a text report, built line by line.
type page struct {
	text strings.Builder
	// rows is the maximum number of rows in each table of a report; 0 means
	// unlimited.
	rows int
	// advised holds the long inspector messages that were already printed.
	advised map[string]bool
	// traced holds the keys of the leaks whose traces were already printed for
	// a diagnosis.
	traced map[string]bool
}

// line adds one line and makes it Printable, whatever the arguments contain.
func (out *page) line(format string, args ...any) {
	out.text.WriteString(text.Printable(fmt.Sprintf(format, args...)))
	out.text.WriteByte('\n')
}

// width is the maximum width of a wrapped line, in columns.
const width = 100

// wrapped adds a paragraph in lines of at most width columns, as far as the
// lengths of its words allow. Continuation lines are aligned with the first
// line.
func (out *page) wrapped(label, s string) {
	out.fill(label, strings.Repeat(" ", text.Columns(label)), s)
}

// fill adds a paragraph in lines of at most width columns, as far as the
// lengths of its words allow. The first line begins with head, and the other
// lines begin with indent.
func (out *page) fill(head, indent, s string) {
	words := strings.Split(text.Printable(s), " ")
	line := head + words[0]
	for _, word := range words[1:] {
		if text.Columns(line)+1+text.Columns(word) > width {
			out.line("%s", line)
			line = indent + word
			continue
		}
		line += " " + word
	}
	out.line("%s", line)
}

func (out *page) blank() { out.text.WriteByte('\n') }

// warnings adds a line for each warning.
func (out *page) warnings(list []string) {
	for _, warning := range list {
		out.line("warning: %s", warning)
	}
}

// more prints how many rows of a list were omitted, if any.
func (out *page) more(n int) {
	if n > 0 {
		out.line("%s more", text.Grouped(int64(n)))
	}
}

func (out *page) writeTo(w io.Writer) error {
	_, err := io.WriteString(w, out.text.String())
	return err
}

// shownLines is the maximum length of every list in a text report.
const shownLines = 10

// firstOf returns the part of a list that is printed.
func firstOf[T any](list []T) []T { return list[:min(len(list), shownLines)] }

// hiddenClass matches the address that a JVM appends to the name of a lambda's
// class.
var hiddenClass = regexp.MustCompile(`[./+]0x[0-9a-f]+$`)

// longestName is the maximum width of a name from a dump within a line, in
// columns.
const longestName = 240

// shownName returns a name from a dump for use within a line. Only the end of a
// long name is kept.
func shownName(name string) string { return text.TailColumns(name, longestName) }

// objects formats a number of objects together with their class.
func objects(n int, class string) string {
	if n == 1 {
		return className(class)
	}
	return text.Grouped(int64(n)) + " x " + className(class)
}

// className returns a class name for use within a line, without the address of
// a lambda.
func className(class string) string {
	return shownName(hiddenClass.ReplaceAllString(class, ""))
}

// simpleName returns a class name without its package; for a hidden class, also
// without its address.
func simpleName(class string) string {
	class = hiddenClass.ReplaceAllString(class, "")
	return class[strings.LastIndexByte(class, '.')+1:]
}

// shortID returns the first 8 characters of a key or fingerprint, which are
// enough to distinguish the leaks of one dump.
func shortID(identity string) string { return identity[:min(8, len(identity))] }

// maxName is the maximum length of a name in a line of a text report, in
// characters. An Android process name has at most 255 characters.
const maxName = 255

// name returns the name of a process or device for use in a line of a text
// report.
func name(of string) string { return text.Head(of, maxName) }
