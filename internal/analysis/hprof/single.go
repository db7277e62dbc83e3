package hprof

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Single is one instance or array that is read on its own, not by a Scanner.
type Single struct {
	Kind SubTag
	// Object is the ID of the instance or array. Class is the class of an
	// instance or object array.
	Object, Class ID
	// Count is the number of elements of an array, or the number of bytes of an
	// instance; Type is the element type of a primitive array.
	Count uint32
	Type  Type
	// Body holds an instance's fields or an array's first complete elements. It
	// is valid until another object is read into the same Single.
	Body []byte

	buf []byte
}

// usual is the number of bytes that are read first; most instances are smaller.
const usual = 256

// ReadSingle reads the instance or array whose record starts at an offset that
// a Scanner reported. It reads no more of the body than the given number of
// bytes. The error is a *DamageError if there is no such record, or the
// reader's error.
func (f *File) ReadSingle(at int64, most int, s *Single) error {
	if err := f.fill(at, usual, s); err != nil {
		return err
	}
	b, id := s.buf, f.IDSize
	damage := func(reason string) error {
		return &DamageError{Offset: at, Record: "object", Reason: reason}
	}
	if len(b) < 10+2*id {
		if len(b) == 0 {
			return damage("the file ends before this offset")
		}
		b = append(b, make([]byte, 10+2*id-len(b))...)
	}
	s.Kind, s.Object, s.Class, s.Type = SubTag(b[0]), readID(b[1:], id), 0, Object
	head, size := 9+2*id, int64(1)
	switch s.Kind {
	case SubInstance:
		s.Class, s.Count = readID(b[5+id:], id), binary.BigEndian.Uint32(b[5+2*id:])
	case SubObjectArray:
		s.Count, s.Class, size = binary.BigEndian.Uint32(b[5+id:]), readID(b[9+id:], id), int64(id)
	case SubPrimitiveArray, SubPrimitiveArrayNoData:
		s.Count, s.Type, head = binary.BigEndian.Uint32(b[5+id:]), Type(b[9+id]), 10+id
		if size = int64(s.Type.Size(id)); size == 0 {
			return damage(fmt.Sprintf("unknown type %d", s.Type))
		}
	default:
		return damage(fmt.Sprintf("record 0x%02x is neither an instance nor an array", uint8(s.Kind)))
	}
	body := min(int64(s.Count)*size, int64(most)/size*size)
	if s.Kind == SubPrimitiveArrayNoData {
		body = 0
	}
	if want := int64(head) + body; want > int64(len(s.buf)) {
		if err := f.fill(at, int(want), s); err != nil {
			return err
		}
	}
	whole := max(int64(len(s.buf))-int64(head), 0) / size * size
	s.Body = s.buf[min(head, len(s.buf)):]
	s.Body = s.Body[:min(body, whole)]
	return nil
}

// fill reads up to n bytes, or fewer at the end of the file.
func (f *File) fill(at int64, n int, s *Single) error {
	if cap(s.buf) < n {
		s.buf = make([]byte, n)
	}
	got, err := f.r.ReadAt(s.buf[:n], at)
	s.buf = s.buf[:got]
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read object at offset %d: %w", at, err)
	}
	return nil
}
