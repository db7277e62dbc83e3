// Package field has what the parsers of a phone's texts share: a text that may be
// unknown, the error of a field that could not be read, and the doubts of one text.
// It keeps no more of a hostile text than a few short quotes.
package field

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/leakgate/leakgate/internal/text"
)

// Text is a text that a device may not have printed. It is empty where it is unknown.
type Text string

// MarshalJSON writes the text, or null where it is unknown.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	// The encoder that calls this decides whether <, > and & are escaped.
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(string(t))
	return b.Bytes(), err
}

// Error tells of one field that could not be read. The others stand.
type Error struct {
	Line   int    // counted from 1
	Field  string // as printed, or the name of the column
	Text   string // what stood there, cut to 80 bytes
	Reason string
}

// Error gives the line, the field, the reason and the text, quoted.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d: %s: %s: %q", e.Line, text.Escape(e.Field), e.Reason, e.Text)
}

const (
	maxQuote = 80 // bytes of a device's text in a message

	// MaxDoubts is how many errors of one text are kept.
	MaxDoubts = 50
)

// Doubts collects the errors of one text, up to MaxDoubts: a hostile text must
// not buy memory with bad lines. The zero Doubts is empty.
type Doubts struct {
	list []error
	lost int
}

// Add notes that a field in a line was not read. It keeps a short copy of the
// text that stood there and not the text.
func (d *Doubts) Add(line int, field string, text []byte, reason string) {
	if len(d.list) >= MaxDoubts {
		d.lost++
		return
	}
	d.list = append(d.list, &Error{Line: line, Field: field[:min(len(field), maxQuote)], Text: string(Quotable(text)), Reason: reason})
}

// All gives the errors, each an *Error, in the order in which they came, and at
// the end the number of those that were left out, if there are any. It is nil
// if there was no doubt.
func (d *Doubts) All() []error {
	if d.lost > 0 {
		return append(d.list, fmt.Errorf("%d more warnings left out", d.lost))
	}
	return d.list
}

// Quotable is the part of a device's text that a message quotes: without the
// blanks around it, and cut to 80 bytes.
func Quotable(text []byte) []byte {
	text = bytes.TrimSpace(text)
	return text[:min(len(text), maxQuote)]
}
