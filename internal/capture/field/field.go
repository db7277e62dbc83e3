// Package field contains what all parsers of device output use: an optional
// text, the error for an invalid field, and the warnings about one text. It
// keeps only a few short quotes of an untrusted text.
package field

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/leakgate/leakgate/internal/text"
)

// Text is an optional text of a device. It is empty if unknown.
type Text string

// MarshalJSON writes the text, or null if it is unknown.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	// Whether <, > and & are escaped is up to the encoder that calls this.
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
	Text   string // the invalid text, truncated to 80 bytes
	Reason string
}

// Error returns the line, the field, the reason and the quoted text.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d: %s: %s: %q", e.Line, text.Escape(e.Field), e.Reason, e.Text)
}

const (
	maxQuote = 80 // bytes of a device's text in a message

	// MaxWarnings is how many errors of one text are kept.
	MaxWarnings = 50
)

// Warnings collects the errors of one text, at most MaxWarnings, so that
// invalid lines of a hostile text cannot use up memory. The zero Warnings is
// empty.
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
// added. If errors were skipped, the last one reports their number. It is nil
// without errors.
func (d *Warnings) All() []error {
	if d.lost > 0 {
		return append(d.list, fmt.Errorf("%d more warnings skipped", d.lost))
	}
	return d.list
}

// Quotable returns the part of a device's text that a message quotes: trimmed,
// and truncated to 80 bytes.
func Quotable(text []byte) []byte {
	text = bytes.TrimSpace(text)
	return text[:min(len(text), maxQuote)]
}
