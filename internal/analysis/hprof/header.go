package hprof

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// Header is the start of a dump.
type Header struct {
	// Format is the text before the first NUL, such as "JAVA PROFILE 1.0.3".
	Format string
	// IDSize is the size of an ID in bytes, 4 or 8.
	IDSize int
	// Time is when the dump was started, according to the device's clock.
	Time time.Time
}

// These are the supported formats. Android uses 1.0.3.
const (
	Format101 = "JAVA PROFILE 1.0.1"
	Format102 = "JAVA PROFILE 1.0.2"
	Format103 = "JAVA PROFILE 1.0.3"
)

// headerSize is the size of the header, in bytes.
const headerSize = int64(len(Format103) + 1 + 4 + 8)

// DamageError reports that a dump is invalid: it contains an unknown record, or
// a record that is larger than its container.
type DamageError struct {
	// Offset is the position at which the record begins, in bytes of the
	// (unpacked) file.
	Offset int64
	// Record is the name of the record.
	Record string
	// Reason describes what is wrong with the record.
	Reason string
}

// MemoryError reports that a dump is too large for the available memory.
type MemoryError struct {
	// Need is the approximate number of bytes needed; Limit is the number of
	// bytes allowed.
	Need, Limit int64
	// What names the data that needs the memory; "" means the object graph.
	What string
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s needs about %s of memory; %s available", cmp.Or(e.What, "the graph"),
		text.Size(e.Need), text.Size(e.Limit))
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("damaged at offset %d, in %s: %s", e.Offset, e.Record, e.Reason)
}

// readHeader reads the header of a file of size bytes. If the file ends inside
// an otherwise valid header, it is truncated: ok is false, and there is no
// error.
func readHeader(r io.ReaderAt, size int64) (h Header, ok bool, err error) {
	b := make([]byte, min(size, headerSize))
	if n, err := r.ReadAt(b, 0); n < len(b) {
		return h, false, fmt.Errorf("read the header: %w", shorter(err))
	}
	const prefix = "JAVA PROFILE 1.0."
	if !bytes.HasPrefix(b, []byte(prefix)[:min(len(prefix), len(b))]) || len(b) == 0 {
		return h, false,
			&DamageError{Record: "the header", Reason: "not a heap dump: it does not begin with JAVA PROFILE"}
	}
	if int64(len(b)) < headerSize {
		return h, false, nil
	}
	h.Format = string(b[:len(Format103)])
	if b[len(Format103)] != 0 || (h.Format != Format101 && h.Format != Format102 && h.Format != Format103) {
		return h, false,
			&DamageError{
				Record: "the header", Reason: fmt.Sprintf("unknown format %q; want 1.0.1, 1.0.2 or 1.0.3", h.Format),
			}
	}
	b = b[len(Format103)+1:]
	h.IDSize = int(binary.BigEndian.Uint32(b))
	if h.IDSize != 4 && h.IDSize != 8 {
		return h, false,
			&DamageError{
				Offset: headerSize - 12, Record: "the header",
				Reason: fmt.Sprintf("IDs of %d bytes; want 4 or 8", uint32(h.IDSize)),
			}
	}
	h.Time = time.UnixMilli(int64(binary.BigEndian.Uint64(b[4:]))).UTC()
	return h, true, nil
}
