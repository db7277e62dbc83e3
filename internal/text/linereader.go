package text

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// LineReader reads the lines of a file that may be damaged. It skips a line
// that is too long and reads the lines after it.
type LineReader struct {
	// N is the number of the latest line, counted from 1.
	N int

	in  *bufio.Reader
	max int
}

// ErrLongLine is wrapped by the error about a line that is too long and was
// skipped.
var ErrLongLine = errors.New("line is too long")

// ErrUTF16 means that a file is encoded in UTF-16, which some Windows programs
// write.
var ErrUTF16 = errors.New("it is UTF-16; save it as UTF-8")

// maxSkipped is the maximum number of bytes that are skipped as one damaged
// line, such as the zeros that a disk may leave.
const maxSkipped = 64 << 20

// NewLineReader returns a reader for lines of at most max bytes. It skips a
// UTF-8 byte order mark and rejects UTF-16.
func NewLineReader(in io.Reader, max int) (*LineReader, error) {
	l := &LineReader{in: bufio.NewReaderSize(in, 64<<10), max: max}
	head, err := l.in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = l.in.Discard(3) // the bytes are buffered
	case IsUTF16(head):
		return nil, ErrUTF16
	}
	return l, nil
}

// IsUTF16 reports whether a file begins with a UTF-16 byte order mark, or with
// two ASCII characters encoded in UTF-16.
func IsUTF16(head []byte) bool {
	head = head[:min(len(head), 4)]
	return bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) ||
		len(head) == 4 && (head[0] == 0) != (head[1] == 0) && (head[0] == 0) == (head[2] == 0) &&
			(head[1] == 0) == (head[3] == 0)
}

// Peek returns up to n of the next bytes without consuming them; n is at most
// 64 kB.
func (l *LineReader) Peek(n int) ([]byte, error) {
	head, err := l.in.Peek(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head, err
}

// Next appends the next line without its line feed to buf. A last line without
// a line feed is also appended; the error is then io.ErrUnexpectedEOF. After
// the last line, the error is io.EOF. For a line that is too long and therefore
// skipped, the error is ErrLongLine. Any other error is from reading the file.
func (l *LineReader) Next(buf []byte) ([]byte, error) {
	l.N++
	begin, skipped := len(buf), 0
	for {
		part, err := l.in.ReadSlice('\n')
		if len(buf)-begin <= l.max {
			buf = append(buf, part...)
		} else {
			skipped += len(part)
		}
		switch {
		case skipped > maxSkipped:
			return nil, fmt.Errorf("line %d is longer than %d bytes", l.N, maxSkipped)
		case err == nil && (skipped > 0 || len(buf)-begin > l.max+1): // one more for the line feed
			return buf[:begin], fmt.Errorf("%w: more than %d bytes", ErrLongLine, l.max)
		case err == nil:
			return buf[:len(buf)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(buf) > begin:
			return buf, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
