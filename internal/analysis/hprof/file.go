package hprof

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
	"unsafe"
)

// File is a dump without the contents of its heaps: the records around the
// heaps' segments, and the positions of the segments.
type File struct {
	Header
	// Size is the size of the file in bytes.
	Size    int64
	Strings *Strings
	Classes []LoadedClass
	Frames  []Frame
	Traces  []Trace
	Threads []Thread
	// Snapshots holds the heaps in the file. The hprof agent writes one heap
	// for each request.
	Snapshots []Snapshot
	// Truncated is the offset of the incomplete record at the end of the file,
	// or -1 if it ends after a complete record.
	Truncated int64
	// Warnings describes values that are invalid but do not prevent reading: an
	// invalid date, a heap record whose true length was guessed.
	Warnings []error

	r io.ReaderAt
}

// Snapshot is one heap of the file.
type Snapshot struct {
	Segments []Segment
	// Ended reports whether the heap ends with a HEAP_DUMP_END record. Old
	// formats do not define HEAP_DUMP_END.
	Ended bool
}

// Segment is a part of a heap: the bytes of a HEAP_DUMP or HEAP_DUMP_SEGMENT
// record, without its header.
type Segment struct {
	// Offset is the position of the part in the file; Length is its number of
	// bytes.
	Offset, Length int64
	// Truncated is true if the file may end inside a record of the segment,
	// because the segment declares more bytes than the file has, or does not
	// declare a length.
	Truncated bool
}

// LoadedClass is a LOAD_CLASS record. Name is the ID of a string.
type LoadedClass struct {
	Class, Name   ID
	Serial, Trace uint32
}

// Frame is a STACK_FRAME record. Method, Signature and Source are IDs of
// strings. Line is a positive line number, or 0 (no information), -1 (unknown),
// -2 (compiled) or -3 (native code).
type Frame struct {
	ID, Method, Signature, Source ID
	Class                         uint32
	Line                          int32
}

// Trace is a STACK_TRACE record with up to 4096 frames, innermost first.
type Trace struct {
	Serial, Thread uint32
	Frames         []ID
}

// Thread is a START_THREAD record. Name and Group are IDs of strings.
type Thread struct {
	Object, Name, Group ID
	Serial, Trace       uint32
}

const (
	// maxTrace is the maximum number of frames that are kept per stack trace.
	maxTrace = 4096
	// maxHeaps is the maximum number of heaps in one file: the hprof agent
	// writes one heap per signal.
	maxHeaps = 1 << 16
)

// Open reads everything except the heap from r, which contains a dump of the
// given size in bytes. It stops early if ctx is canceled. The error is a
// *DamageError if the bytes cannot be a dump; the result then contains
// everything before the damage. Open uses less than 4 bytes of memory per byte
// of the dump, hardly any for the heap itself, and less than 256 MiB for the
// contents of strings.
func Open(ctx context.Context, r io.ReaderAt, size int64) (*File, error) {
	return OpenWithin(ctx, r, size, 0)
}

// OpenWithin is like Open, with a memory limit in bytes; 0 means no limit. If a
// dump needs more memory, it returns a *MemoryError.
func OpenWithin(ctx context.Context, r io.ReaderAt, size, memory int64) (*File, error) {
	f := &File{Size: size, Truncated: -1, Strings: &Strings{r: r}, r: r}
	h, ok, err := readHeader(r, size)
	if err != nil {
		return f, err
	}
	if !ok {
		f.Truncated = 0
		return f, nil
	}
	f.Header = h
	f.Strings.idSize = h.IDSize
	if y := h.Time.Year(); y < 1 || y > 9999 {
		f.Time = time.Time{}
		f.Warnings = append(f.Warnings, fmt.Errorf("read the header: year %d is out of range", y))
	}
	w := walk{
		File: f, memory: memory,
		window: window{r: r, buf: make([]byte, min(walkBuffer, max(size, headerSize))), limit: size},
	}
	err = w.records(ctx)
	w.finish()
	return f, err
}

const (
	walkBuffer   = 256 << 10
	recordHeader = 9
	wrap         = int64(1) << 32
	// foresight is the number of plausible records that must follow a heap
	// record whose length is uncertain. Fewer records could match by chance: in
	// a heap, one byte in 16 could be a tag, and in a large file, almost any
	// 32-bit number could be a length.
	foresight = 16
)

// walk reads the top-level records one after the other.
type walk struct {
	*File
	window
	// memory is the maximum number of bytes to keep; 0 means no limit.
	memory int64
	// closed is true if the last snapshot ends with a HEAP_DUMP_END record.
	closed bool

	classes  blocks[LoadedClass]
	frames   blocks[Frame]
	traces   blocks[Trace]
	threads  blocks[Thread]
	segments blocks[Segment]
	// starts holds, for each snapshot, the index of its first segment. calls is
	// the total number of frames in all traces.
	starts []int
	calls  int64
}

// finish moves the collected records to the fields of File.
func (w *walk) finish() {
	w.Classes, w.Frames, w.Traces, w.Threads = w.classes.join(), w.frames.join(), w.traces.join(), w.threads.join()
	w.Strings.join()
	rest := w.segments.join()
	for i := len(w.starts) - 1; i >= 0; i-- {
		w.Snapshots[i].Segments = rest[w.starts[i]:len(rest):len(rest)]
		rest = rest[:w.starts[i]]
	}
}

// fits returns an error if a dump needs too much memory; at is the offset up to
// which all records have been read. While the collected values are joined,
// there are two copies of them.
func (w *walk) fits(at int64) error {
	need := 2*(int64(w.classes.n)*int64(unsafe.Sizeof(LoadedClass{}))+int64(w.frames.n)*int64(unsafe.Sizeof(Frame{}))+
		int64(w.traces.n)*int64(unsafe.Sizeof(Trace{}))+int64(w.threads.n)*int64(unsafe.Sizeof(Thread{}))+
		int64(w.segments.n)*int64(unsafe.Sizeof(Segment{}))+w.Strings.memory()) + w.calls*int64(unsafe.Sizeof(ID(0)))
	if w.memory <= 0 || need <= w.memory {
		return nil
	}
	return &MemoryError{
		Need: int64(float64(need) / float64(at) * float64(w.Size)), Limit: w.memory,
		What: "the data outside the heap",
	}
}

func (w *walk) records(ctx context.Context) error {
	at := headerSize
	for count := 0; at < w.Size; count++ {
		if count%256 == 0 {
			if err := cmp.Or(ctx.Err(), w.fits(at)); err != nil {
				return err
			}
		}
		head, err := w.bytes(at, recordHeader)
		if err != nil {
			return err
		}
		if len(head) > 0 && !known(Tag(head[0])) {
			return &DamageError{Offset: at, Record: "a record", Reason: fmt.Sprintf("unknown tag 0x%02x", head[0])}
		}
		if len(head) < recordHeader {
			w.Truncated = at
			return nil
		}
		tag, length := Tag(head[0]), int64(binary.BigEndian.Uint32(head[5:]))
		if isHeap(tag) {
			if length, err = w.heap(tag, at, length); err != nil {
				return err
			}
		} else if at+recordHeader+length <= w.Size {
			if err := w.record(tag, at, length); err != nil {
				return err
			}
		}
		if at+recordHeader+length > w.Size {
			w.Truncated = at
			return nil
		}
		at += recordHeader + length
	}
	return nil
}

// known reports whether tag t exists.
func known(t Tag) bool {
	return t >= TagString && t <= TagControlSettings || t == TagHeapDumpSegment || t == TagHeapDumpEnd
}

func isHeap(t Tag) bool { return t == TagHeapDump || t == TagHeapDumpSegment }

// inHeap reports whether a record inside a heap can begin with the given byte.
func inHeap(t SubTag) bool { return t.IsRoot() || heapNames[t] != "" }

// heap records the heap record at the given offset and returns the record's
// true length.
func (w *walk) heap(tag Tag, at, declared int64) (length int64, err error) {
	body := at + recordHeader
	if declared == 0 {
		length, err = w.undeclared(body)
	} else {
		length, err = w.wrapped(tag, body, declared)
	}
	if err != nil {
		return 0, err
	}
	if length != declared {
		w.Warnings = append(w.Warnings,
			fmt.Errorf("the heap at offset %d declares %d bytes and is assumed to have %d", at, declared, length))
	}
	s := Segment{Offset: body, Length: length, Truncated: declared == 0 && length > 0}
	if rest := w.Size - body; length > rest {
		s.Length, s.Truncated = rest, true
	}
	if s.Length == 0 && !s.Truncated {
		// The record is empty; a file may have any number of empty records.
		if len(w.Snapshots) == 0 {
			w.begin()
		}
		return length, nil
	}
	if !w.segment(tag, s) {
		return 0,
			&DamageError{Offset: at, Record: "a heap", Reason: fmt.Sprintf("more than %d heaps in one file", maxHeaps)}
	}
	return length, nil
}

// undeclared returns the length of a heap record that declares 0 bytes. HotSpot
// fills in the length at the end, which fails if it writes into a pipe or is
// killed: such a heap extends to the end of the file. But a segment can also be
// empty.
func (w *walk) undeclared(body int64) (int64, error) {
	b, err := w.bytes(body, 1)
	if err != nil || len(b) == 0 || !inHeap(SubTag(b[0])) {
		return 0, err
	}
	empty, err := w.plausible(body, foresight)
	if err != nil || empty {
		return 0, err
	}
	return w.Size - body, nil
}

// wrapped returns the true length of a heap record whose length has 32 bits in
// the file: a HEAP_DUMP of more than 4 GiB declares its length modulo 4 GiB.
// There are three possibilities: the record extends to the end of the file, as
// HotSpot writes it; it ends at the first position after which records can
// follow, as Eclipse MAT reads it; or the file is truncated.
func (w *walk) wrapped(tag Tag, body, declared int64) (int64, error) {
	rest := w.Size - body
	if rest-declared < wrap {
		return declared, nil
	}
	if (rest-declared)%wrap == 0 {
		return rest, nil
	}
	depth := foresight
	if tag == TagHeapDumpSegment {
		// A heap consists of many segments, and a segment is longer than 4 GiB
		// only if it contains a single array.
		depth = 1
	}
	length := declared
	for ; length <= rest; length += wrap {
		ok, err := w.plausible(body+length, depth)
		if err != nil || ok {
			return length, err
		}
	}
	if tag == TagHeapDumpSegment {
		return declared, nil
	}
	return length, nil
}

// plausible reports whether the file can continue with records, or end, at the
// given offset. It checks at most the given number of records, and stops at a
// heap record.
func (w *walk) plausible(at int64, records int) (bool, error) {
	for range records {
		head, err := w.bytes(at, recordHeader+1)
		if err != nil || len(head) == 0 {
			return err == nil, err
		}
		tag := Tag(head[0])
		if !known(tag) {
			return false, nil
		}
		if len(head) < recordHeader {
			return true, nil
		}
		length := int64(binary.BigEndian.Uint32(head[5:]))
		if isHeap(tag) {
			return length == 0 || len(head) == recordHeader || inHeap(SubTag(head[recordHeader])), nil
		}
		if at += recordHeader + length; at > w.Size {
			return false, nil
		}
	}
	return true, nil
}

// segment records a part of a heap. A second HEAP_DUMP, and any part after
// HEAP_DUMP_END, begins another snapshot, unless the previous snapshot is
// empty. It returns false if there are too many snapshots.
func (w *walk) segment(tag Tag, s Segment) bool {
	if len(w.Snapshots) == 0 || (w.closed || tag == TagHeapDump) && w.segments.n > w.starts[len(w.starts)-1] {
		if len(w.Snapshots) == maxHeaps {
			return false
		}
		w.begin()
	}
	if w.closed {
		w.last().Ended, w.closed = false, false
	}
	w.segments.add(s)
	return true
}

func (w *walk) begin() {
	w.Snapshots = append(w.Snapshots, Snapshot{})
	w.starts = append(w.starts, w.segments.n)
	w.closed = false
}

func (w *walk) last() *Snapshot { return &w.Snapshots[len(w.Snapshots)-1] }

// record reads one record that is completely in the file. at is the offset of
// the record's header.
func (w *walk) record(tag Tag, at, length int64) error {
	if tag == TagString {
		return w.text(at, length)
	}
	if tag == TagHeapDumpEnd {
		if len(w.Snapshots) > 0 {
			w.last().Ended = true
		}
		w.closed = true
		return nil
	}
	least := w.least(tag)
	if least == 0 {
		return nil
	}
	b, err := w.bytes(at+recordHeader, int(min(length, least)))
	if err != nil {
		return err
	}
	if int64(len(b)) < least {
		return &DamageError{
			Offset: at, Record: recordNames[tag], Reason: fmt.Sprintf("%d bytes long, needs %d", length, least),
		}
	}
	d := fields{b, w.IDSize}
	switch tag {
	case TagLoadClass:
		w.classes.add(LoadedClass{Serial: d.u4(), Class: d.id(), Trace: d.u4(), Name: d.id()})
	case TagStackFrame:
		w.frames.add(Frame{
			ID: d.id(), Method: d.id(), Signature: d.id(), Source: d.id(), Class: d.u4(), Line: int32(d.u4()),
		})
	case TagStartThread:
		w.threads.add(Thread{Serial: d.u4(), Object: d.id(), Trace: d.u4(), Name: d.id(), Group: d.id()})
	case TagStackTrace:
		return w.trace(at, length, Trace{Serial: d.u4(), Thread: d.u4()}, d.u4())
	}
	return nil
}

var recordNames = map[Tag]string{
	TagString: "STRING", TagLoadClass: "LOAD_CLASS", TagStackFrame: "STACK_FRAME", TagStackTrace: "STACK_TRACE",
	TagStartThread: "START_THREAD",
}

// least returns the minimum size of a record in bytes, or 0 for a record that
// is skipped.
func (w *walk) least(tag Tag) int64 {
	id := int64(w.IDSize)
	switch tag {
	case TagLoadClass:
		return 8 + 2*id
	case TagStackFrame:
		return 4*id + 8
	case TagStackTrace:
		return 12
	case TagStartThread:
		return 8 + 4*id
	}
	return 0
}

func (w *walk) trace(at, length int64, t Trace, frames uint32) error {
	if int64(frames)*int64(w.IDSize) > length-12 {
		return &DamageError{
			Offset: at, Record: recordNames[TagStackTrace],
			Reason: fmt.Sprintf("%d frames do not fit into %d bytes", frames, length),
		}
	}
	frames = min(frames, maxTrace)
	b, err := w.bytes(at+recordHeader+12, int(frames)*w.IDSize)
	if err != nil {
		return err
	}
	d := fields{b, w.IDSize}
	t.Frames = make([]ID, frames)
	for i := range t.Frames {
		t.Frames[i] = d.id()
	}
	w.traces.add(t)
	w.calls += int64(frames)
	return nil
}

func (w *walk) text(at, length int64) error {
	id := int64(w.IDSize)
	if length < id {
		return &DamageError{
			Offset: at, Record: recordNames[TagString], Reason: fmt.Sprintf("%d bytes long, needs %d", length, id),
		}
	}
	b, err := w.bytes(at+recordHeader, int(min(length, id+maxKept)))
	if err != nil {
		return err
	}
	d := fields{b, w.IDSize}
	name := d.id()
	w.Strings.add(name, d.b, at+recordHeader+id, length-id)
	return nil
}

// fields decodes big-endian values from bytes that are known to exist.
type fields struct {
	b      []byte
	idSize int
}

func (d *fields) u4() uint32 {
	v := binary.BigEndian.Uint32(d.b)
	d.b = d.b[4:]
	return v
}

func (d *fields) id() ID {
	v := readID(d.b, d.idSize)
	d.b = d.b[d.idSize:]
	return v
}

func readID(b []byte, size int) ID {
	if size == 8 {
		return ID(binary.BigEndian.Uint64(b))
	}
	return ID(binary.BigEndian.Uint32(b))
}

// window is a part of a file in memory.
type window struct {
	r io.ReaderAt
	// buf[:n] holds n bytes of the file, starting at offset base.
	buf  []byte
	base int64
	n    int
	// limit is the offset after the last byte that may be read.
	limit int64
}

// bytes returns n bytes starting at an offset, or fewer if the limit comes
// first or the window is smaller. They are valid until the next call.
func (w *window) bytes(at int64, n int) ([]byte, error) {
	if at >= w.base && at+int64(n) <= w.base+int64(w.n) {
		return w.buf[at-w.base:][:n], nil
	}
	if err := w.fill(at); err != nil {
		return nil, err
	}
	return w.buf[:min(n, w.n)], nil
}

// fill moves the window to an offset, keeping those bytes that are already in
// the window.
func (w *window) fill(at int64) error {
	kept := 0
	if at >= w.base && at < w.base+int64(w.n) {
		kept = copy(w.buf, w.buf[at-w.base:w.n])
	}
	w.base, w.n = at, kept
	want := int(min(int64(len(w.buf)), w.limit-at))
	if want <= kept {
		w.n = max(want, 0)
		return nil
	}
	n, err := w.r.ReadAt(w.buf[kept:want], at+int64(kept))
	w.n += n
	if w.n < want {
		return fmt.Errorf("read the dump at offset %d: %w", at+int64(w.n), shorter(err))
	}
	return nil
}

// shorter returns the error for a reader that returned fewer bytes than the
// file's declared size.
func shorter(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return errors.New("the file became shorter while it was read")
	}
	return err
}
