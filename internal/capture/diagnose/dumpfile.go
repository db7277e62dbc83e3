package diagnose

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/leakgate/leakgate/internal/capture/shell"
)

// truncatedDump is the error for a heap dump that ends too early. want is its
// minimum size in bytes; 0 if unknown.
type truncatedDump struct{ have, want int64 }

func (e truncatedDump) Error() string {
	if e.want > e.have {
		return fmt.Sprintf("the dump is truncated after %d of %d bytes", e.have, e.want)
	}
	return fmt.Sprintf("the dump is truncated after %d bytes: its end is missing", e.have)
}

// Tags of the relevant records; the format is defined by HotSpot's
// heapDumper.cpp, and ART and Dalvik write it too.
const (
	tagHeapDump    = 0x0c
	tagHeapSegment = 0x1c
	tagHeapEnd     = 0x2c
)

const (
	magicOfDump = "JAVA PROFILE "
	// maxVersion is an upper bound on the length of the version that follows
	// the magic.
	maxVersion = 16
	// recordHead is the size of the header of a record: a tag, a time and a
	// length.
	recordHead = 9
)

// wholeDump returns nil if a heap dump is complete, judging by the headers of
// its records: the last record must end at the end of the file, and a heap in
// segments must be followed by HEAP_DUMP_END, which ART and HotSpot write last.
// A heap stored in a single record needs no HEAP_DUMP_END. The error is a
// truncatedDump, the error for a different format, or an error from r.
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
			return truncatedDump{size, at + recordHead}
		}
		last = h[0]
		length := int64(binary.BigEndian.Uint32(h[5:]))
		if last == tagHeapEnd && length != 0 {
			return fmt.Errorf("the dump's end record at %d has %d bytes of content", at, length)
		}
		heap = heap || last == tagHeapDump || last == tagHeapSegment
		segments = segments || last == tagHeapSegment
		if at += recordHead + length; at > size {
			return truncatedDump{size, at}
		}
	}
	if !heap || segments && last != tagHeapEnd {
		return truncatedDump{size, size}
	}
	return nil
}

// headWindow reads headers from a file through a buffer, because most records
// are short.
type headWindow struct {
	r     io.ReaderAt
	size  int64
	start int64
	buf   []byte
	space [64 << 10]byte
}

// at returns n bytes of the file from an offset, or fewer at the end of the
// file.
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

// begin reads the header of the file and returns the offset of the first
// record.
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
		return 0, fmt.Errorf("not a heap dump: it begins with %q", shell.Clip(string(text)))
	}
	// The version is followed by a NUL, the size of IDs and the time.
	at := int64(end) + 1 + 4 + 8
	if end < 0 || at > w.size {
		return 0, truncatedDump{w.size, w.size}
	}
	return at, nil
}
