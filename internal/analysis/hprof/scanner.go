package hprof

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Scanner reads the records of heap segments, in the order of the file:
//
//	for s.Next() {
//		switch s.Kind { ... }
//	}
//	err := s.Err()
//
// An array whose elements do not fit into the scanner's buffer is returned in
// pieces: Next returns it again, with Piece true and First advanced. The only
// memory used is the buffer, which is half a MiB long, or 4 MiB after a longer
// record, regardless of the lengths that a file declares.
type Scanner struct {
	// Contents requests the elements of primitive arrays. If it is false, they
	// are skipped; long arrays are then not read from the file. It must be set
	// before the first Next.
	Contents bool

	// Kind and Offset are set for each record; Offset is the record's position
	// in the file.
	Kind   SubTag
	Offset int64
	// Object is the ID of the object that the record describes or, for a root,
	// of the object that the root holds. HEAP_DUMP_INFO does not set it.
	Object ID
	// Class is the class of an instance or of an object array.
	Class ID
	// Trace is the serial number of the allocation's stack trace.
	Trace uint32
	// Count is the number of elements of an array, or the number of bytes of an
	// instance.
	Count uint32
	// Type is the element type of a primitive array.
	Type Type
	// Heap is the ID of the record's heap, or 0 if its segment does not name a
	// heap. HeapName is the string ID of that heap's name.
	Heap     uint32
	HeapName ID
	// Body holds an instance's fields, or array elements starting with First;
	// it is nil if the object has no contents. It is valid until the next call
	// to Next.
	Body  []byte
	First uint32
	// Piece is true if Body continues the array of the previous record.
	Piece bool

	window
	idSize   int
	segments []Segment
	// at is the offset of the next record; end is the offset of the segment's
	// end.
	at, end   int64
	cut       bool
	truncated int64
	err       error
}

const (
	scanBuffer = 512 << 10
	// scanHead is the maximum length of the header of a record with a body, in
	// bytes.
	scanHead = 1 + 8 + 4 + 4 + 8
	// maxRecord bounds the size of a record that must be completely in the
	// buffer. The largest such records are a CLASS_DUMP with three tables of
	// 65535 entries, and an instance whose class and seven superclasses have
	// 65535 fields each.
	maxRecord = 4 << 20
)

// Scanner returns a scanner that reads the given segments of the file, which
// may be in any order. The buffer is not larger than the file, because several
// scanners may be used even for a small dump.
func (f *File) Scanner(segments []Segment) *Scanner {
	buf := make([]byte, min(scanBuffer, max(f.Size, scanHead)))
	return newScanner(f.r, buf, f.IDSize, segments)
}

// Reset restarts the scanner on other segments, reusing the buffer.
func (s *Scanner) Reset(segments []Segment) {
	contents := s.Contents
	*s = *newScanner(s.r, s.buf, s.idSize, segments)
	s.Contents = contents
}

func newScanner(r io.ReaderAt, buf []byte, idSize int, segments []Segment) *Scanner {
	s := &Scanner{window: window{r: r, buf: buf}, idSize: idSize, segments: segments, truncated: -1}
	// Segments are adjacent, so the window reads ahead into the next segment.
	for _, g := range segments {
		s.limit = max(s.limit, g.Offset+g.Length)
	}
	return s
}

// Chunks splits a snapshot into groups of segments of about size bytes each,
// which can be scanned independently.
func (s *Snapshot) Chunks(size int64) [][]Segment {
	var chunks [][]Segment
	first, sum := 0, int64(0)
	for i, g := range s.Segments {
		sum += g.Length
		if sum >= size || i == len(s.Segments)-1 {
			chunks = append(chunks, s.Segments[first:i+1])
			first, sum = i+1, 0
		}
	}
	return chunks
}

// Err returns the reason why Next returned false: nil at the end of the
// segments or of a truncated file; a *DamageError; or the error of the reader.
func (s *Scanner) Err() error { return s.err }

// Truncated returns the offset of the incomplete record at the end of the file,
// or -1 if the file ends after a complete record.
func (s *Scanner) Truncated() int64 { return s.truncated }

// Next advances to the next record, or the next piece of an array.
func (s *Scanner) Next() bool {
	if s.err != nil {
		return false
	}
	if rest := int64(s.Count) - int64(s.First); s.Body != nil && rest > 0 &&
		(s.Kind == SubObjectArray || s.Kind == SubPrimitiveArray) {
		if done := uint32(len(s.Body) / s.elementSize()); int64(done) < rest {
			s.First += done
			s.Piece = true
			return s.elements()
		}
	}
	s.Piece, s.First, s.Body = false, 0, nil
	for {
		for s.at >= s.end {
			if !s.segment() {
				return false
			}
		}
		if s.record() {
			return true
		}
		if s.err != nil {
			return false
		}
		// Only this segment is finished; the next segment follows.
	}
}

func (s *Scanner) segment() bool {
	if len(s.segments) == 0 {
		return false
	}
	g := s.segments[0]
	s.segments = s.segments[1:]
	s.at, s.end, s.cut = g.Offset, g.Offset+g.Length, g.Truncated
	s.Heap, s.HeapName = 0, 0
	return true
}

// head returns up to n bytes of the record at s.at, or fewer at the end of the
// segment.
func (s *Scanner) head(n int) []byte {
	if rest := s.end - s.at; rest < int64(n) {
		n = int(rest)
	}
	if at := s.at - s.base; at >= 0 && at+int64(n) <= int64(s.n) {
		return s.buf[at:][:n:n]
	}
	b, err := s.bytes(s.at, n)
	if err != nil {
		s.err = err
		return nil
	}
	return b
}

func (s *Scanner) record() bool {
	b := s.head(scanHead)
	if len(b) == 0 {
		return false
	}
	s.Offset, s.Kind = s.at, SubTag(b[0])
	id := s.idSize
	switch s.Kind {
	case SubInstance:
		if len(b) < 9+2*id {
			return s.short()
		}
		s.Object = readID(b[1:], id)
		s.Trace = binary.BigEndian.Uint32(b[1+id:])
		s.Class = readID(b[5+id:], id)
		s.Count = binary.BigEndian.Uint32(b[5+2*id:])
		return s.instance(9 + 2*id)
	case SubObjectArray:
		if len(b) < 9+2*id {
			return s.short()
		}
		s.Object = readID(b[1:], id)
		s.Trace = binary.BigEndian.Uint32(b[1+id:])
		s.Count = binary.BigEndian.Uint32(b[5+id:])
		s.Class = readID(b[9+id:], id)
		return s.array(9+2*id, true)
	case SubPrimitiveArray, SubPrimitiveArrayNoData:
		if len(b) < 10+id {
			return s.short()
		}
		s.Object = readID(b[1:], id)
		s.Trace = binary.BigEndian.Uint32(b[1+id:])
		s.Count = binary.BigEndian.Uint32(b[5+id:])
		s.Type = Type(b[9+id])
		if s.Type == Object || s.Type.Size(id) == 0 {
			return s.damage(fmt.Sprintf("elements of %v", s.Type))
		}
		if s.Kind == SubPrimitiveArrayNoData {
			s.at += int64(10 + id)
			return true
		}
		return s.array(10+id, s.Contents)
	case SubClassDump:
		return s.classDump()
	case SubHeapInfo:
		if len(b) < 5+id {
			return s.short()
		}
		s.Heap, s.HeapName = binary.BigEndian.Uint32(b[1:]), readID(b[5:], id)
		s.at += int64(5 + id)
		return true
	}
	n := rootSize(s.Kind, id)
	if n == 0 {
		return s.damage(fmt.Sprintf("unknown record tag 0x%02x", b[0]))
	}
	if len(b) < n {
		return s.short()
	}
	s.Object = readID(b[1:], id)
	s.Body = b[1+id : n]
	s.at += int64(n)
	return true
}

// rootSize returns the size of a root record in bytes, or 0 for other records
// (ART runtime/hprof/hprof.cc, Hprof::MarkRootObject).
func rootSize(kind SubTag, id int) int {
	switch kind {
	case SubRootUnknown, SubRootStickyClass, SubRootMonitorUsed, SubRootInternedString, SubRootFinalizing,
		SubRootDebugger, SubRootReferenceCleanup, SubRootVMInternal, SubRootUnreachable:
		return 1 + id
	case SubRootJNIGlobal:
		return 1 + 2*id
	case SubRootNativeStack, SubRootThreadBlock:
		return 1 + id + 4
	case SubRootJNILocal, SubRootJavaFrame, SubRootThreadObject, SubRootJNIMonitor:
		return 1 + id + 8
	}
	return 0
}

// Root decodes a root record.
func (s *Scanner) Root() Root {
	r := Root{Kind: s.Kind, Object: s.Object, Frame: -1}
	switch s.Kind {
	case SubRootNativeStack, SubRootThreadBlock:
		r.Thread = binary.BigEndian.Uint32(s.Body)
	case SubRootJNILocal, SubRootJavaFrame, SubRootJNIMonitor:
		r.Thread, r.Frame = binary.BigEndian.Uint32(s.Body), int32(binary.BigEndian.Uint32(s.Body[4:]))
	case SubRootThreadObject:
		r.Thread, r.Trace = binary.BigEndian.Uint32(s.Body), binary.BigEndian.Uint32(s.Body[4:])
	}
	return r
}

// instance reads the fields of an instance, which follow head bytes of other
// data.
func (s *Scanner) instance(head int) bool {
	n := int64(head) + int64(s.Count)
	if s.at+n > s.end {
		return s.short()
	}
	if at := s.at - s.base; at+n <= int64(s.n) {
		s.Body = s.buf[at+int64(head) : at+n : at+n]
		s.at += n
		return true
	}
	b := s.whole(n)
	if b == nil {
		return false
	}
	s.Body = b[head:]
	s.at += n
	return true
}

// whole returns the n bytes of the record at s.at; the segment must contain
// them all.
func (s *Scanner) whole(n int64) []byte {
	if n > maxRecord {
		s.damage(fmt.Sprintf("%d bytes long, more than any class can declare", n))
		return nil
	}
	if n > int64(len(s.buf)) {
		grown := make([]byte, maxRecord)
		copy(grown, s.buf[:s.n])
		s.buf = grown
	}
	b := s.head(int(n))
	if s.err != nil {
		return nil
	}
	return b
}

// array reads the elements of an array, which follow head bytes of other data.
func (s *Scanner) array(head int, wanted bool) bool {
	size := int64(s.Count) * int64(s.elementSize())
	if s.at+int64(head)+size > s.end {
		return s.short()
	}
	s.at += int64(head)
	if !wanted {
		s.at += size
		return true
	}
	return s.elements()
}

func (s *Scanner) elementSize() int {
	if s.Kind == SubObjectArray {
		return s.idSize
	}
	return s.Type.Size(s.idSize)
}

// elements reads as many elements as fit into the buffer, starting with First;
// the segment must contain them all.
func (s *Scanner) elements() bool {
	size := s.elementSize()
	n := int(min((int64(s.Count)-int64(s.First))*int64(size), int64(len(s.buf)/size*size)))
	if n == 0 {
		s.Body = nil
		return true
	}
	if at := s.at - s.base; at >= 0 && at+int64(n) <= int64(s.n) {
		s.Body = s.buf[at:][:n:n]
	} else if s.Body = s.head(n); s.err != nil {
		return false
	}
	s.at += int64(n)
	return true
}

// classDump finds the end of a CLASS_DUMP, whose tables declare their lengths.
func (s *Scanner) classDump() bool {
	id := s.idSize
	n := 1 + 7*id + 8 + 2
	b, ok := s.table(n)
	if !ok {
		return false
	}
	constants := int(binary.BigEndian.Uint16(b[n-2:]))
	for range constants {
		if n, ok = s.value(n, 2); !ok {
			return false
		}
	}
	if b, ok = s.table(n + 2); !ok {
		return false
	}
	statics := int(binary.BigEndian.Uint16(b[n:]))
	n += 2
	for range statics {
		if n, ok = s.value(n, id); !ok {
			return false
		}
	}
	if b, ok = s.table(n + 2); !ok {
		return false
	}
	declared := n + 2
	n = declared + int(binary.BigEndian.Uint16(b[n:]))*(id+1)
	if b, ok = s.table(n); !ok {
		return false
	}
	for at := declared + id; at < n; at += id + 1 {
		if t := Type(b[at]); t.Size(id) == 0 {
			return s.damage(fmt.Sprintf("a field of %v", t))
		}
	}
	s.Object = readID(b[1:], id)
	s.Trace = binary.BigEndian.Uint32(b[1+id:])
	s.Body = b[:n]
	s.at += int64(n)
	return true
}

// value skips a name of the given size, a type and a value of that type,
// starting n bytes into the record, and returns the offset after them.
func (s *Scanner) value(n, name int) (int, bool) {
	b, ok := s.table(n + name + 1)
	if !ok {
		return 0, false
	}
	size := Type(b[n+name]).Size(s.idSize)
	if size == 0 {
		return 0, s.damage(fmt.Sprintf("a value of %v", Type(b[n+name])))
	}
	return n + name + 1 + size, true
}

// table returns the first n bytes of the record at s.at. If the segment has
// fewer, it returns false.
func (s *Scanner) table(n int) ([]byte, bool) {
	if s.at+int64(n) > s.end {
		return nil, s.short()
	}
	if at := s.at - s.base; at >= 0 && at+int64(n) <= int64(s.n) {
		return s.buf[at:][:n], true
	}
	b := s.whole(int64(n))
	return b, b != nil
}

// ReadClass decodes a CLASS_DUMP record into c. It reuses the tables of c.
func (s *Scanner) ReadClass(c *Class) {
	d := fields{s.Body[1:], s.idSize}
	c.ID, c.Trace = d.id(), d.u4()
	c.Super, c.Loader, c.Signers, c.Domain = d.id(), d.id(), d.id(), d.id()
	d.b = d.b[2*s.idSize:]
	c.InstanceSize = d.u4()
	for range d.u2() {
		d.u2()
		d.value(d.kind())
	}
	c.Statics, c.Fields = c.Statics[:0], c.Fields[:0]
	for range d.u2() {
		v := Static{Name: d.id(), Type: d.kind()}
		v.Value = d.value(v.Type)
		c.Statics = append(c.Statics, v)
	}
	for range d.u2() {
		c.Fields = append(c.Fields, Field{Name: d.id(), Type: d.kind()})
	}
}

func (d *fields) u2() uint16 {
	v := binary.BigEndian.Uint16(d.b)
	d.b = d.b[2:]
	return v
}

func (d *fields) kind() Type {
	t := Type(d.b[0])
	d.b = d.b[1:]
	return t
}

func (d *fields) value(t Type) (v uint64) {
	n := t.Size(d.idSize)
	for _, b := range d.b[:n] {
		v = v<<8 | uint64(b)
	}
	d.b = d.b[n:]
	return v
}

// short ends the segment, because a record is longer than the rest of the
// segment. This is damage, unless the file is truncated there.
func (s *Scanner) short() bool {
	if s.cut {
		s.truncated, s.at = s.at, s.end
		return false
	}
	return s.damage(fmt.Sprintf("it runs past the end of its segment at offset %d", s.end))
}

func (s *Scanner) damage(reason string) bool {
	s.err = &DamageError{Offset: s.at, Record: s.Kind.String(), Reason: reason}
	return false
}
