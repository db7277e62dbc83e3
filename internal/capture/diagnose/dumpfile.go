package diagnose

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/leakgate/leakgate/internal/capture/shell"
)

// cutError is a heap dump that ends too early. want is how many bytes it should have at
// least.
type cutError struct{ have, want int64 }

func (e cutError) Error() string {
	if e.want > e.have {
		return fmt.Sprintf("the dump is cut after %d of %d bytes", e.have, e.want)
	}
	return fmt.Sprintf("the dump is cut after %d bytes: its end is missing", e.have)
}

// Tags of the records that matter here; the format is that of HotSpot's
// heapDumper.cpp, which ART and Dalvik write too.
const (
	tagHeapDump    = 0x0c
	tagHeapSegment = 0x1c
	tagHeapEnd     = 0x2c
)

const (
	magicOfDump = "JAVA PROFILE "
	// maxVersion is more than the longest version after the magic.
	maxVersion = 16
	// recordHead is a tag, a time and a length.
	recordHead = 9
)

// wholeDump is nil if a heap dump has its end, which it tells by the heads of its
// records alone: the last record ends with the file, and a heap in segments is closed
// by HEAP_DUMP_END, as ART and HotSpot write it last. A heap in one record needs
// none. The error is a cutError, one of another format, or what r said.
func wholeDump(r io.ReaderAt, size int64) error {
	w := headWindow{r: r, size: size}
	at, err := w.begin()
	if err != nil {
		return err
	}
	var last byte
	heap, segments := false, false
	for at < size {
		h, err := w.at(at, recordHead)
		if err != nil {
			return err
		}
		if len(h) < recordHead {
			return cutError{size, at + recordHead}
		}
		last = h[0]
		length := int64(binary.BigEndian.Uint32(h[5:]))
		if last == tagHeapEnd && length != 0 {
			return fmt.Errorf("the dump's end at %d has %d bytes", at, length)
		}
		heap = heap || last == tagHeapDump || last == tagHeapSegment
		segments = segments || last == tagHeapSegment
		if at += recordHead + length; at > size {
			return cutError{size, at}
		}
	}
	if !heap || segments && last != tagHeapEnd {
		return cutError{size, size}
	}
	return nil
}

// headWindow reads a few bytes here and there: many records are short.
type headWindow struct {
	r     io.ReaderAt
	size  int64
	start int64
	buf   []byte
	space [64 << 10]byte
}

// at gives n bytes of the file, or fewer at its end.
func (w *headWindow) at(off, n int64) ([]byte, error) {
	n = min(n, w.size-off)
	if off < w.start || off+n > w.start+int64(len(w.buf)) {
		want := min(int64(len(w.space)), w.size-off)
		got, err := w.r.ReadAt(w.space[:want], off)
		if int64(got) < n {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("read dump: %w", err)
		}
		w.start, w.buf = off, w.space[:got]
	}
	return w.buf[off-w.start:][:n], nil
}

// begin reads the head of the file and gives where the records begin.
func (w *headWindow) begin() (int64, error) {
	const most = int64(len(magicOfDump) + maxVersion)
	text, err := w.at(0, most)
	if err != nil {
		return 0, err
	}
	end := bytes.IndexByte(text, 0)
	short := text[:min(len(text), len(magicOfDump))]
	switch {
	case w.size == 0:
		return 0, errors.New("the dump is empty")
	case string(short) != magicOfDump[:len(short)] || end < 0 && int64(len(text)) == most:
		return 0, fmt.Errorf("it is no heap dump: it begins with %q", shell.Clip(string(text)))
	}
	// A NUL, the size of ids and the time.
	at := int64(end) + 1 + 4 + 8
	if end < 0 || at > w.size {
		return 0, cutError{w.size, w.size}
	}
	return at, nil
}
