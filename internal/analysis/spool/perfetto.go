package spool

import (
	"encoding/binary"
	"io"
)

// perfettoWindow is the number of bytes that IsPerfetto checks.
const perfettoWindow = 1 << 20

// IsPerfetto reports whether a file begins like a Perfetto trace: with packets,
// each of which is field 1 of a protobuf message and itself a message
// (perfetto/trace/trace.proto).
func IsPerfetto(r io.ReaderAt, size int64) bool {
	head := make([]byte, min(size, perfettoWindow))
	n, _ := r.ReadAt(head, 0)
	return beginsAsPerfetto(head[:n], uint64(size))
}

// beginsAsPerfetto reports whether the first bytes of a file of the given size
// look like those of a Perfetto trace.
func beginsAsPerfetto(head []byte, size uint64) bool {
	packets := 0
	for len(head) > 0 && packets < 16 {
		const packet = 1<<3 | 2
		if head[0] != packet {
			return false
		}
		length, used := binary.Uvarint(head[1:])
		if used <= 0 || length > size {
			return false
		}
		head = head[1+used:]
		if !isMessage(head[:min(length, uint64(len(head)))], length) {
			return false
		}
		packets++
		head = head[min(length, uint64(len(head))):]
	}
	return packets > 0
}

// isMessage reports whether bytes are the beginning of a protobuf message of
// the given length.
func isMessage(b []byte, length uint64) bool {
	whole := uint64(len(b)) == length
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return !whole && n == 0
		}
		b = b[n:]
		size := uint64(0)
		switch tag & 7 {
		case 0:
			_, n := binary.Uvarint(b)
			if n <= 0 {
				return !whole && n == 0
			}
			size = uint64(n)
		case 1:
			size = 8
		case 2:
			l, n := binary.Uvarint(b)
			if n <= 0 {
				return !whole && n == 0
			}
			b, size = b[n:], l
		case 5:
			size = 4
		default:
			return false
		}
		if tag>>3 == 0 {
			return false
		}
		if size > uint64(len(b)) {
			return !whole
		}
		b = b[size:]
	}
	return true
}
