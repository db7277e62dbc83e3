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
	// rows bounds the tables of a report; 0 means unlimited.
	rows int
	// advised are the long texts of inspectors that are printed already.
	advised map[string]bool
	// traced has the keys of the leaks of diagnoses whose traces are printed
	// already.
	traced map[string]bool
}

// line adds one line and makes it Printable, whatever the arguments contain.
func (out *page) line(format string, args ...any) {
	out.text.WriteString(text.Printable(fmt.Sprintf(format, args...)))
	out.text.WriteByte('\n')
}

// width is the number of columns of a line that is wrapped.
const width = 100

// wrapped adds a text in lines of at most width columns where its words allow
// it. The lines after the first are aligned with it.
func (out *page) wrapped(label, s string) {
	out.fill(label, strings.Repeat(" ", text.Columns(label)), s)
}

// fill adds a text in lines of at most width columns where its words allow it:
// the first line after head, the others after indent.
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

// more prints how many rows of a list were omitted.
func (out *page) more(n int) {
	if n > 0 {
		out.line("%s more", text.Grouped(int64(n)))
	}
}

func (out *page) writeTo(w io.Writer) error {
	_, err := io.WriteString(w, out.text.String())
	return err
}

// shownLines bounds every list in a text report.
const shownLines = 10

// firstOf returns the part of a list that is printed.
func firstOf[T any](list []T) []T { return list[:min(len(list), shownLines)] }

// hiddenClass is the address that a JVM appends to the name of a lambda's
// class.
var hiddenClass = regexp.MustCompile(`[./+]0x[0-9a-f]+$`)

// longestName bounds a name from a dump within a line, in columns.
const longestName = 240

// shownName returns a name from a dump for a line; a long name is shortened to
// its end.
func shownName(name string) string { return text.TailColumns(name, longestName) }

// objects returns the number and the class of objects as text.
func objects(n int, class string) string {
	if n == 1 {
		return className(class)
	}
	return text.Grouped(int64(n)) + " x " + className(class)
}

// className returns a class for a line, without the address of a lambda.
func className(class string) string {
	return shownName(hiddenClass.ReplaceAllString(class, ""))
}

// simpleName returns a class name without its package; for a hidden class, also
// without its address.
func simpleName(class string) string {
	class = hiddenClass.ReplaceAllString(class, "")
	return class[strings.LastIndexByte(class, '.')+1:]
}

// shortID returns the beginning of an object's ID, enough to distinguish the
// objects of one dump.
func shortID(identity string) string { return identity[:min(8, len(identity))] }

// maxName bounds a name in a line of a text report, in characters. An Android
// process name has at most 255.
const maxName = 255

// name returns the name of a process or device for a line of a text report.
func name(of string) string { return text.Head(of, maxName) }
