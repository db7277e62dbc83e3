// Package field contains what all parsers of device output share: an optional
// string, the error for an invalid field, and the list of warnings about one
// input. It keeps only a few short quotes of untrusted input.
package field

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/leakgate/leakgate/internal/text"
)

// Text is an optional string from a device. It is empty if unknown.
type Text string

// MarshalJSON writes the string, or null if it is unknown.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	// The encoder that calls this method decides whether <, > and & are
	// escaped.
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(string(t))
	return b.Bytes(), err
}

// Error describes one invalid field. The other fields are valid.
type Error struct {
	Line   int    // counted from 1
	Field  string // as printed, or the name of the column
	Text   string // the invalid value, truncated to 80 bytes
	Reason string
}

// Error returns a message with the line, the field, the reason and the quoted
// text.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d: %s: %s: %q", e.Line, text.Escape(e.Field), e.Reason, e.Text)
}

const (
	maxQuote = 80 // maximum number of bytes that a message quotes from a device

	// MaxWarnings is the maximum number of errors that are kept for one input.
	MaxWarnings = 50
)

// Warnings collects the errors of one input, at most MaxWarnings, which bounds
// the memory that the invalid lines of hostile input can use. The zero Warnings
// is empty.
type Warnings struct {
	list []error
	lost int
}

// Add records an invalid field of a line. It keeps a short copy of the text,
// not the text itself.
func (d *Warnings) Add(line int, field string, text []byte, reason string) {
	if len(d.list) >= MaxWarnings {
		d.lost++
		return
	}
	d.list = append(d.list,
		&Error{Line: line, Field: field[:min(len(field), maxQuote)], Text: string(Quotable(text)), Reason: reason})
}

// All returns the errors, each an *Error, in the order in which they were
// added. If errors were skipped, an additional error at the end, which is not
// an *Error, reports their number. If there are no errors, All returns nil.
func (d *Warnings) All() []error {
	if d.lost > 0 {
		return append(d.list, fmt.Errorf("%d more warnings skipped", d.lost))
	}
	return d.list
}

// Quotable returns the part of a device's output that a message quotes:
// trimmed, and truncated to 80 bytes.
func Quotable(text []byte) []byte {
	text = bytes.TrimSpace(text)
	return text[:min(len(text), maxQuote)]
}
