package hproftest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Segmentation determines how a Writer divides the heap into segments.
type Segmentation struct {
	// Records and Bytes limit the size of a segment: it ends when it reaches
	// that number of records or bytes, including its header. 0 means unlimited.
	Records, Bytes int
	// If Fit is true, a new segment begins before a record that would make the
	// open segment longer than Bytes. Otherwise, the segment ends after such a
	// record.
	Fit bool
	// Single writes one HEAP_DUMP instead of segments. Its length is filled in
	// at the end if the output can seek; otherwise, the HEAP_DUMP is kept in
	// memory until then. A length above 4 GiB is declared modulo 4 GiB, as in
	// HotSpot.
	Single bool
}

// ARTSegments returns ART's segmentation: 128 objects or 4 KiB
// (runtime/hprof/hprof.cc, kMaxObjectsPerSegment, kMaxBytesPerSegment). A
// Writer uses ARTSegments by default.
func ARTSegments() Segmentation { return Segmentation{Records: 128, Bytes: 4096} }

// HotSpotSegments returns HotSpot's segmentation since JDK 9: as many bytes as
// its buffer of 1 MiB can hold (services/heapDumper.cpp, DumpWriter).
func HotSpotSegments() Segmentation { return Segmentation{Bytes: 1 << 20, Fit: true} }

// Writer writes a heap dump record by record, in the order of the calls. It
// does not check records against each other, so it can write everything that a
// Scanner can read. Heap records open a segment if no segment is open; all
// other records end it.
//
// A Writer keeps the first error and drops everything written after it. It
// holds one segment in memory: a record of more than 64 KiB is written directly
// and is the last of its segment, unless Segmentation.Bytes is larger. Writing
// a record does not allocate memory once the buffer has grown. A Writer is not
// safe for concurrent use.
type Writer struct {
	out    io.Writer
	idSize int
	policy Segmentation

	// buf holds the bytes that have not been written to out yet.
	buf []byte
	// written is the number of bytes that have been written to out.
	written int64

	// open is true if a segment is open; header is the offset of its header in
	// the dump.
	open   bool
	header int64
	// sealed is true if the header of the open segment already has the final
	// length, so the header may be written to the output.
	sealed bool
	// seeker is used to fill in the header of a single segment later; base is
	// its position before the first byte.
	seeker  io.WriteSeeker
	base    int64
	records int

	// inHeap is true if HeapInfo has been called since the last EndSegment;
	// described is true if the open segment contains a HEAP_DUMP_INFO.
	inHeap, described bool
	heap              uint32
	heapName          hprof.ID

	closed bool
	err    error
}

const (
	// spillAt is the size at which buf is written to the output.
	spillAt = 64 << 10
	// segmentHead is the size of a segment's header, which contains its tag,
	// time and length.
	segmentHeader = 9
)

// NewWriter writes the header of a dump and returns a writer of its records.
func NewWriter(out io.Writer, h hprof.Header) *Writer {
	w := &Writer{out: out, idSize: h.IDSize, policy: ARTSegments()}
	if s, ok := out.(io.WriteSeeker); ok {
		if at, err := s.Seek(0, io.SeekCurrent); err == nil {
			w.seeker, w.base = s, at
		}
	}
	if h.Format != hprof.Format101 && h.Format != hprof.Format102 && h.Format != hprof.Format103 {
		w.fail("header", fmt.Errorf("unknown format %q", h.Format))
		return w
	}
	if h.IDSize != 4 && h.IDSize != 8 {
		w.fail("header", fmt.Errorf("IDs of %d bytes; want 4 or 8", h.IDSize))
		return w
	}
	w.buf = append(append(w.buf, h.Format...), 0)
	w.u4(uint32(h.IDSize))
	ms := int64(0)
	if !h.Time.IsZero() {
		ms = h.Time.UnixMilli()
	}
	w.u8(uint64(ms))
	return w
}

// Segment changes the segmentation, starting with the next segment.
func (w *Writer) Segment(s Segmentation) {
	w.EndSegment()
	w.policy = s
}

// Err returns the first error.
func (w *Writer) Err() error { return w.err }

// Written returns the size of the dump so far, including bytes that are still
// in memory.
func (w *Writer) Written() int64 { return w.written + int64(len(w.buf)) }

// Flush ends the open segment and writes everything to the output.
func (w *Writer) Flush() error {
	w.EndSegment()
	w.spill()
	return w.err
}

// Close does the same as Flush; it is an error to write another record after
// Close. It does not write HEAP_DUMP_END, and does not close the output.
func (w *Writer) Close() error {
	err := w.Flush()
	w.closed = true
	return err
}

func (w *Writer) fail(record string, err error) {
	if w.err == nil {
		w.err = fmt.Errorf("write %s at offset %d: %w", record, w.Written(), err)
	}
}

// spill writes all of buf to the output.
func (w *Writer) spill() {
	if w.err != nil || len(w.buf) == 0 {
		return
	}
	n, err := w.out.Write(w.buf)
	if err == nil && n < len(w.buf) {
		err = io.ErrShortWrite
	}
	w.written += int64(n)
	if err != nil {
		w.err = fmt.Errorf("write the dump at offset %d: %w", w.written, err)
	}
	w.buf = w.buf[:0]
}

// relieve writes the buffer to the output if it is long enough and does not
// contain a segment header whose length is not final.
func (w *Writer) relieve() {
	if len(w.buf) < spillAt || w.open && !w.sealed && (!w.policy.Single || w.seeker == nil) {
		return
	}
	w.spill()
}

// Numbers.

func (w *Writer) u1(v uint8)  { w.buf = append(w.buf, v) }
func (w *Writer) u2(v uint16) { w.buf = binary.BigEndian.AppendUint16(w.buf, v) }
func (w *Writer) u4(v uint32) { w.buf = binary.BigEndian.AppendUint32(w.buf, v) }
func (w *Writer) u8(v uint64) { w.buf = binary.BigEndian.AppendUint64(w.buf, v) }

func (w *Writer) id(v hprof.ID) {
	if w.idSize == 8 {
		w.u8(uint64(v))
		return
	}
	if v > math.MaxUint32 {
		w.fail("an hprof.ID", fmt.Errorf("0x%x does not fit into 4 bytes", uint64(v)))
	}
	w.u4(uint32(v))
}

// value writes the low bytes of v as a value of type t; the type, which must
// exist, determines their number.
func (w *Writer) value(t hprof.Type, v uint64) {
	if t == hprof.Object {
		w.id(hprof.ID(v))
		return
	}
	switch t.Size(w.idSize) {
	case 1:
		w.u1(uint8(v))
	case 2:
		w.u2(uint16(v))
	case 4:
		w.u4(uint32(v))
	case 8:
		w.u8(v)
	}
}

// Records outside the heap.

// Record writes a record outside the heap unchanged, for example one with an
// unknown tag that was read from another dump.
func (w *Writer) Record(tag hprof.Tag, time uint32, body []byte) {
	if tag == hprof.TagHeapDump || tag == hprof.TagHeapDumpSegment {
		w.fail("a record", errors.New("use the methods that write heap records"))
	}
	if !w.begin(tag, int64(len(body))) {
		return
	}
	binary.BigEndian.PutUint32(w.buf[len(w.buf)-8:], time)
	w.buf = append(w.buf, body...)
	w.relieve()
}

// begin starts a record outside the heap with a body of the given size. It
// returns false after an error.
func (w *Writer) begin(tag hprof.Tag, size int64) bool {
	w.EndSegment()
	return w.start(tag, size)
}

func (w *Writer) start(tag hprof.Tag, size int64) bool {
	if w.closed {
		w.fail("a record", errors.New("the dump is closed"))
	}
	if size > math.MaxUint32 {
		w.fail("a record", fmt.Errorf("%d bytes do not fit into a record", size))
	}
	if w.err != nil {
		return false
	}
	w.u1(uint8(tag))
	w.u4(0)
	w.u4(uint32(size))
	return true
}

// String writes a STRING in modified UTF-8 (JVM specification 4.4.7): NUL takes
// two bytes, and a character beyond U+FFFF is written as two surrogates.
// Invalid UTF-8 becomes U+FFFD.
func (w *Writer) String(id hprof.ID, s string) {
	if !w.begin(hprof.TagString, int64(w.idSize)+modifiedLength(s)) {
		return
	}
	w.id(id)
	w.buf = appendModified(w.buf, s)
	w.relieve()
}

// RawString writes a STRING whose bytes are already encoded.
func (w *Writer) RawString(id hprof.ID, encoded []byte) {
	if !w.begin(hprof.TagString, int64(w.idSize)+int64(len(encoded))) {
		return
	}
	w.id(id)
	w.buf = append(w.buf, encoded...)
	w.relieve()
}

func modifiedLength(s string) (n int64) {
	for _, r := range s {
		switch {
		case r == 0:
			n += 2
		case r > 0xffff:
			n += 6
		default:
			n += int64(utf8.RuneLen(r))
		}
	}
	return n
}

func appendModified(b []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == 0:
			b = append(b, 0xc0, 0x80)
		case r > 0xffff:
			r -= 0x10000
			b = appendSurrogate(appendSurrogate(b, 0xd800+r>>10), 0xdc00+r&0x3ff)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

// appendSurrogate encodes a surrogate, which UTF-8 forbids.
func appendSurrogate(b []byte, r rune) []byte {
	return append(b, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

// LoadClass writes a LOAD_CLASS.
func (w *Writer) LoadClass(c hprof.LoadedClass) {
	if !w.begin(hprof.TagLoadClass, int64(8+2*w.idSize)) {
		return
	}
	w.u4(c.Serial)
	w.id(c.Class)
	w.u4(c.Trace)
	w.id(c.Name)
	w.relieve()
}

// Frame writes a STACK_FRAME.
func (w *Writer) Frame(f hprof.Frame) {
	if !w.begin(hprof.TagStackFrame, int64(8+4*w.idSize)) {
		return
	}
	w.id(f.ID)
	w.id(f.Method)
	w.id(f.Signature)
	w.id(f.Source)
	w.u4(f.Class)
	w.u4(uint32(f.Line))
	w.relieve()
}

// Trace writes a STACK_TRACE.
func (w *Writer) Trace(t hprof.Trace) {
	if !w.begin(hprof.TagStackTrace, int64(12+len(t.Frames)*w.idSize)) {
		return
	}
	w.u4(t.Serial)
	w.u4(t.Thread)
	w.u4(uint32(len(t.Frames)))
	for _, f := range t.Frames {
		w.id(f)
	}
	w.relieve()
}

// Thread writes a START_THREAD whose group has no parent.
func (w *Writer) Thread(t hprof.Thread) {
	if !w.begin(hprof.TagStartThread, int64(8+4*w.idSize)) {
		return
	}
	w.u4(t.Serial)
	w.id(t.Object)
	w.u4(t.Trace)
	w.id(t.Name)
	w.id(t.Group)
	w.id(0)
	w.relieve()
}

// EndThread writes an END_THREAD.
func (w *Writer) EndThread(serial uint32) {
	if !w.begin(hprof.TagEndThread, 4) {
		return
	}
	w.u4(serial)
	w.relieve()
}

// EndHeap writes HEAP_DUMP_END.
func (w *Writer) EndHeap() {
	if w.begin(hprof.TagHeapDumpEnd, 0) {
		w.relieve()
	}
}

// Segments.

// BeginSegment opens a segment if none is open, even if the segment stays
// empty.
func (w *Writer) BeginSegment() {
	if w.open || !w.start(w.segmentTag(), 0) {
		return
	}
	w.open, w.sealed, w.described, w.records = true, false, false, 0
	w.header = w.Written() - segmentHeader
}

func (w *Writer) segmentTag() hprof.Tag {
	if w.policy.Single {
		return hprof.TagHeapDump
	}
	return hprof.TagHeapDumpSegment
}

// SegmentBytes returns the length of the open segment including its header, or
// 0.
func (w *Writer) SegmentBytes() int64 {
	if !w.open {
		return 0
	}
	return w.Written() - w.header
}

// EndSegment ends the open segment, and with it the effect of HeapInfo.
func (w *Writer) EndSegment() {
	w.cut()
	w.inHeap = false
}

// cut ends the open segment.
func (w *Writer) cut() {
	if !w.open {
		return
	}
	if !w.sealed {
		w.declare(w.SegmentBytes() - segmentHeader)
	}
	w.open = false
	w.relieve()
}

// declare fills in the length of the open segment.
func (w *Writer) declare(length int64) {
	if w.err != nil {
		return
	}
	at := w.header + segmentHeader - 4
	if at >= w.written {
		binary.BigEndian.PutUint32(w.buf[at-w.written:], uint32(length))
		return
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(length))
	if err := w.overwrite(at, b[:]); err != nil && w.err == nil {
		w.err = fmt.Errorf("write the length of the heap dump: %w", err)
	}
}

// overwrite changes bytes that have already been written to the output.
func (w *Writer) overwrite(at int64, b []byte) error {
	if _, err := w.seeker.Seek(w.base+at, io.SeekStart); err != nil {
		return err
	}
	if _, err := w.seeker.Write(b); err != nil {
		return err
	}
	_, err := w.seeker.Seek(w.base+w.written, io.SeekStart)
	return err
}

// full reports whether a record of the given size must go into a new segment.
func (w *Writer) full(size int64) bool {
	p := w.policy
	switch {
	case p.Single:
		return false
	case w.sealed || p.Records > 0 && w.records >= p.Records:
		return true
	case p.Bytes == 0:
		return w.SegmentBytes()+size-segmentHeader > math.MaxUint32
	case p.Fit:
		return w.records > 0 && w.SegmentBytes()+size > int64(p.Bytes)
	}
	return w.SegmentBytes() >= int64(p.Bytes)
}

// enter prepares a segment for a heap record of the given size, including its
// tag. It returns false after an error.
func (w *Writer) enter(tag hprof.SubTag, size int64) bool {
	if w.err != nil {
		return false
	}
	if w.open && w.full(size) {
		w.cut()
	}
	w.BeginSegment()
	if w.err != nil {
		return false
	}
	if w.inHeap && !w.described && !tag.IsRoot() && tag != hprof.SubHeapInfo {
		w.u1(uint8(hprof.SubHeapInfo))
		w.heapInfo()
	}
	if length := w.SegmentBytes() - segmentHeader + size; !w.policy.Single {
		if length > math.MaxUint32 {
			w.fail(tag.String(), fmt.Errorf("%d bytes do not fit into a segment", size))
			return false
		}
		if size >= int64(max(spillAt, w.policy.Bytes)) {
			w.declare(length)
			w.sealed = true
		}
	}
	w.records++
	w.u1(uint8(tag))
	return true
}

// Heap records.

// HeapInfo sets the heap of the following objects, by ART's IDs: 0 default, 'A'
// app, 'I' image, 'Z' zygote. A segment that the Writer begins by itself
// repeats the HEAP_DUMP_INFO.
func (w *Writer) HeapInfo(heap uint32, name hprof.ID) {
	if !w.enter(hprof.SubHeapInfo, int64(5+w.idSize)) {
		return
	}
	w.inHeap, w.heap, w.heapName = true, heap, name
	w.heapInfo()
	w.relieve()
}

func (w *Writer) heapInfo() {
	w.u4(w.heap)
	w.id(w.heapName)
	w.described = true
}

// Root writes a root. The second ID of a JNI global is 0, as in ART.
func (w *Writer) Root(r hprof.Root) {
	if !r.Kind.IsRoot() {
		w.fail("a root", fmt.Errorf("%v is not a root kind", r.Kind))
	}
	size := 1 + w.idSize
	switch r.Kind {
	case hprof.SubRootJNIGlobal:
		size += w.idSize
	case hprof.SubRootNativeStack, hprof.SubRootThreadBlock:
		size += 4
	case hprof.SubRootJNILocal, hprof.SubRootJavaFrame, hprof.SubRootThreadObject, hprof.SubRootJNIMonitor:
		size += 8
	}
	if !w.enter(r.Kind, int64(size)) {
		return
	}
	w.id(r.Object)
	switch r.Kind {
	case hprof.SubRootJNIGlobal:
		w.id(0)
	case hprof.SubRootNativeStack, hprof.SubRootThreadBlock:
		w.u4(r.Thread)
	case hprof.SubRootJNILocal, hprof.SubRootJavaFrame, hprof.SubRootJNIMonitor:
		w.u4(r.Thread)
		w.u4(uint32(r.Frame))
	case hprof.SubRootThreadObject:
		w.u4(r.Thread)
		w.u4(r.Trace)
	}
	w.relieve()
}

// Class writes a CLASS_DUMP with an empty constant pool.
func (w *Writer) Class(c *hprof.Class) {
	if len(c.Statics) > math.MaxUint16 || len(c.Fields) > math.MaxUint16 {
		w.fail("a class",
			fmt.Errorf("%d static and %d instance fields; at most 65535 of each fit", len(c.Statics), len(c.Fields)))
	}
	size := 1 + 7*w.idSize + 4 + 4 + 2 + 2 + 2 + len(c.Fields)*(w.idSize+1)
	for _, s := range c.Statics {
		w.check(hprof.SubClassDump, s.Type)
		size += w.idSize + 1 + s.Type.Size(w.idSize)
	}
	for _, f := range c.Fields {
		w.check(hprof.SubClassDump, f.Type)
	}
	if !w.enter(hprof.SubClassDump, int64(size)) {
		return
	}
	w.id(c.ID)
	w.u4(c.Trace)
	for _, id := range [...]hprof.ID{c.Super, c.Loader, c.Signers, c.Domain, 0, 0} {
		w.id(id)
	}
	w.u4(c.InstanceSize)
	w.u2(0)
	w.u2(uint16(len(c.Statics)))
	for _, s := range c.Statics {
		w.id(s.Name)
		w.u1(uint8(s.Type))
		w.value(s.Type, s.Value)
	}
	w.u2(uint16(len(c.Fields)))
	for _, f := range c.Fields {
		w.id(f.Name)
		w.u1(uint8(f.Type))
	}
	w.relieve()
}

// check reports an error if the type does not exist.
func (w *Writer) check(tag hprof.SubTag, t hprof.Type) {
	if t.Size(w.idSize) == 0 {
		w.fail(tag.String(), fmt.Errorf("fields of %v are not supported", t))
	}
}

// Instance writes an INSTANCE_DUMP. data holds the values of the class's own
// fields, then those of its superclass, and so on, in big-endian order.
func (w *Writer) Instance(id hprof.ID, trace uint32, class hprof.ID, data []byte) {
	if !w.enter(hprof.SubInstance, int64(1+2*w.idSize+8+len(data))) {
		return
	}
	w.id(id)
	w.u4(trace)
	w.id(class)
	w.u4(uint32(len(data)))
	w.buf = append(w.buf, data...)
	w.relieve()
}

// ObjectArray writes an OBJECT_ARRAY_DUMP. class is the ID of the array class.
func (w *Writer) ObjectArray(id hprof.ID, trace uint32, class hprof.ID, elements []hprof.ID) {
	if !w.enter(hprof.SubObjectArray, int64(1+2*w.idSize+8)+int64(len(elements))*int64(w.idSize)) {
		return
	}
	w.id(id)
	w.u4(trace)
	w.u4(uint32(len(elements)))
	w.id(class)
	for len(elements) > 0 {
		n := min(len(elements), spillAt/8)
		for _, e := range elements[:n] {
			w.id(e)
		}
		elements = elements[n:]
		w.relieve()
	}
	w.relieve()
}

// PrimitiveArray writes a PRIMITIVE_ARRAY_DUMP. data holds its elements in
// big-endian order.
func (w *Writer) PrimitiveArray(id hprof.ID, trace uint32, t hprof.Type, data []byte) {
	size := w.elementSize(t)
	if size == 0 || len(data)%size != 0 {
		w.fail(hprof.SubPrimitiveArray.String(),
			fmt.Errorf("%d bytes are not a whole number of %v elements", len(data), t))
		return
	}
	if !w.array(id, trace, t, int64(len(data)/size), size) {
		return
	}
	for len(data) > 0 {
		n := min(len(data), spillAt)
		w.buf = append(w.buf, data[:n]...)
		data = data[n:]
		w.relieve()
	}
	w.relieve()
}

// PrimitiveArrayFrom writes a PRIMITIVE_ARRAY_DUMP of count elements that are
// read from r in big-endian order. If r ends early, the Writer fails and the
// dump is truncated.
func (w *Writer) PrimitiveArrayFrom(id hprof.ID, trace uint32, t hprof.Type, count uint32, r io.Reader) {
	size := w.elementSize(t)
	if !w.array(id, trace, t, int64(count), size) {
		return
	}
	for left := int64(count) * int64(size); left > 0 && w.err == nil; {
		n := int(min(left, spillAt))
		at := len(w.buf)
		w.buf = slices.Grow(w.buf, n)[:at+n]
		if _, err := io.ReadFull(r, w.buf[at:]); err != nil {
			w.buf = w.buf[:at]
			w.fail(hprof.SubPrimitiveArray.String(), fmt.Errorf("read its elements: %w", noEOF(err)))
			return
		}
		left -= int64(n)
		w.relieve()
	}
	w.relieve()
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// array begins a PRIMITIVE_ARRAY_DUMP. It returns false after an error.
func (w *Writer) array(id hprof.ID, trace uint32, t hprof.Type, count int64, size int) bool {
	if size == 0 || count > math.MaxUint32 {
		w.fail(hprof.SubPrimitiveArray.String(), fmt.Errorf("%d elements of %v are not supported", count, t))
		return false
	}
	if !w.enter(hprof.SubPrimitiveArray, int64(1+w.idSize+9)+count*int64(size)) {
		return false
	}
	w.id(id)
	w.u4(trace)
	w.u4(uint32(count))
	w.u1(uint8(t))
	return true
}

// elementSize returns the size of an element in bytes, or 0 for types that
// cannot be elements of a primitive array.
func (w *Writer) elementSize(t hprof.Type) int {
	if t == hprof.Object {
		return 0
	}
	return t.Size(w.idSize)
}

// PrimitiveArrayNoData writes a PRIMITIVE_ARRAY_NODATA_DUMP.
func (w *Writer) PrimitiveArrayNoData(id hprof.ID, trace uint32, t hprof.Type, count uint32) {
	if w.elementSize(t) == 0 {
		w.fail(hprof.SubPrimitiveArrayNoData.String(), fmt.Errorf("primitive arrays of %v are not supported", t))
	}
	if !w.enter(hprof.SubPrimitiveArrayNoData, int64(1+w.idSize+9)) {
		return
	}
	w.id(id)
	w.u4(trace)
	w.u4(count)
	w.u1(uint8(t))
	w.relieve()
}
