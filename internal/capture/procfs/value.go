package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/leakgate/leakgate/internal/capture/field"
)

// ErrEmpty is returned for empty input. A file is empty if the process ended
// between open and read. Empty input is not a sample: its values are unknown,
// not zero.
var ErrEmpty = errors.New("empty text")

// ErrFormat is returned for input of a different kind, such as the error
// message of the command that should have printed the file.
var ErrFormat = errors.New("unexpected text")

func formatError(what string, text []byte) error {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return fmt.Errorf("parse %s: %w", what, ErrEmpty)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return fmt.Errorf("parse %s: %w: %q", what, ErrFormat, field.Quotable(line))
}

// number parses a plain decimal number of at most 18 digits. A longer number
// might not fit into an int64, and does not occur on phones.
func number(text []byte) (int64, bool) {
	if len(text) == 0 || len(text) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// add returns a + b, or false on overflow.
func add(a, b int64) (int64, bool) {
	if b > math.MaxInt64-a {
		return a, false
	}
	return a + b, true
}

// kiloBytes parses " 123 kB". The unit is required: the kernel always prints it
// (fs/proc/task_mmu.c, SEQ_PUT_DEC), and it proves that no digit is missing.
func kiloBytes(text []byte) (int64, bool) {
	digits, ok := bytes.CutSuffix(text, []byte(" kB"))
	if !ok {
		return 0, false
	}
	return number(bytes.TrimLeft(digits, " \t"))
}

// lines iterates over the input line by line, without copies.
type lines struct {
	rest []byte
	n    int // number of the line that next returned most recently
}

// next returns a line without its terminator (\n, \r\n, or the \r\r\n of old
// adb on Windows). whole is false for a last line that has no terminator; it
// may be truncated.
func (l *lines) next() (line []byte, whole, ok bool) {
	if len(l.rest) == 0 {
		return nil, false, false
	}
	l.n++
	line, l.rest, whole = bytes.Cut(l.rest, []byte("\n"))
	return bytes.TrimRight(line, "\r"), whole, true
}

// word returns the first space-separated word of text and the rest of text.
// closed is false if text ends with the word, which may then be truncated.
func word(text []byte) (w, rest []byte, closed bool) {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	for i, c := range text {
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			return text[:i], text[i:], true
		}
	}
	return text, nil, false
}
