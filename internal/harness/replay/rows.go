package replay

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"

	"github.com/leakgate/leakgate/internal/text"
)

// maxRecord is the maximum size of one row of a table, in bytes.
const maxRecord = 1 << 20

// rows reads a table row by row. Each line is one row, because process names do
// not contain newlines. A stray quote affects only its own line, although by
// RFC 4180 the cell would extend to the next quote, far below.
type rows struct {
	lines *text.LineReader
	cells *csv.Reader
	buf   []byte
	// line is the part of the row that has not been split into cells yet.
	line *bytes.Reader
	// n counts the rows that have cells; open reports whether the file ended
	// within the latest row.
	n    int
	open bool
}

// unreadable is the error for a single row; the rows after it can be read.
type unreadable struct{ error }

var (
	errZeros     = errors.New("it holds NUL bytes")
	errOnlyCR    = errors.New("its lines end in CR alone; save it with LF or CRLF line endings")
	errTruncated = errors.New("the file ends within the row")
)

// newRows detects the separator in the first line.
func newRows(in *text.LineReader) (*rows, error) {
	head, err := in.Peek(readAhead)
	if err != nil {
		return nil, err
	}
	first, _, found := bytes.Cut(head, []byte("\n"))
	if !found && bytes.ContainsRune(bytes.TrimRight(first, "\r"), '\r') {
		return nil, errOnlyCR
	}
	r := &rows{lines: in, line: bytes.NewReader(nil)}
	r.cells = csv.NewReader(r.line)
	r.cells.ReuseRecord, r.cells.FieldsPerRecord = true, -1
	for _, sep := range []rune{',', ';', '\t'} {
		if bytes.ContainsRune(first, sep) {
			r.cells.Comma = sep
			break
		}
	}
	return r, nil
}

// next returns the cells of the next row, which are valid until the next call;
// blank lines are skipped. The error is unreadable for a damaged row, io.EOF
// after the last row, or the error of the file.
func (r *rows) next() ([]string, error) {
	for {
		var err error
		r.buf, err = r.lines.Next(r.buf[:0])
		r.open = errors.Is(err, io.ErrUnexpectedEOF)
		switch {
		case errors.Is(err, text.ErrLongLine):
			return nil, unreadable{err}
		case err != nil && !r.open:
			return nil, err
		case bytes.IndexByte(r.buf, 0) >= 0:
			return nil, unreadable{errZeros}
		}
		cells, err := r.split()
		if errors.Is(err, io.EOF) || err == nil && blank(cells) {
			continue
		}
		r.n++
		return cells, err
	}
}

// split returns the cells of the current line.
func (r *rows) split() ([]string, error) {
	r.line.Reset(r.buf)
	cells, err := r.cells.Read()
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return nil, unreadable{bad.Err}
	}
	return cells, err
}

// blank reports whether all cells are empty, as in the rows that spreadsheets
// write below the last one.
func blank(cells []string) bool {
	for _, c := range cells {
		if c != "" {
			return false
		}
	}
	return true
}
