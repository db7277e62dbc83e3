package hprof

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// File is a dump without its heap: what stands around the heap's segments, and
// where those are.
type File struct {
	Header
	// Size is the bytes of the file.
	Size    int64
	Strings *Strings
	Classes []LoadedClass
	Frames  []Frame
	Traces  []Trace
	Threads []Thread
	// Snapshots are the heaps in the file. The hprof agent writes one each time that
	// it is asked to.
	Snapshots []Snapshot
	// Truncated is the offset of the record in which the file ends, -1 if it ends
	// after a whole one.
	Truncated int64
	// Warnings tell what could be read but should not be there.
	Warnings []error

	r io.ReaderAt
}

// Snapshot is one heap.
type Snapshot struct {
	Segments []Segment
	// Ended tells whether a HEAP_DUMP_END was there. Old formats have none.
	Ended bool
}

// Segment is a part of a heap: the bytes of a HEAP_DUMP or HEAP_DUMP_SEGMENT
// record, without its head.
type Segment struct {
	// Offset is where in the file, Length how many bytes there are.
	Offset, Length int64
	// Truncated tells that the record declares more than the file has.
	Truncated bool
}

// LoadedClass is a LOAD_CLASS record. Name is the ID of a string.
type LoadedClass struct {
	Serial uint32
	Class  ID
	Trace  uint32
	Name   ID
}

// Frame is a STACK_FRAME record. Names are IDs of strings. Line is positive, or -1
// for unknown, -2 for compiled and -3 for native code.
type Frame struct {
	ID, Method, Signature, Source ID
	Class                         uint32
	Line                          int32
}

// Trace is a STACK_TRACE record: frames from the innermost out.
type Trace struct {
	Serial, Thread uint32
	Frames         []ID
}

// Thread is a START_THREAD record. Names are IDs of strings.
type Thread struct {
	Serial      uint32
	Object      ID
	Trace       uint32
	Name, Group ID
}

// maxTrace bounds the frames that are kept of one stack trace.
const maxTrace = 4096

// Open walks the records of a dump of size bytes. It reads all but the heap. ctx
// ends it early. The error is a *DamageError where the bytes cannot be a dump; with
// it comes what stood before.
func Open(ctx context.Context, r io.ReaderAt, size int64) (*File, error) {
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
	w := walk{File: f, window: window{r: r, buf: make([]byte, walkBuffer), limit: size}}
	return f, w.records(ctx)
}

const (
	walkBuffer = 256 << 10
	recordHead = 9
	wrap       = int64(1) << 32
)

// walk goes from record to record.
type walk struct {
	*File
	window
	// dumped tells that the last snapshot is a whole HEAP_DUMP record, or ended.
	closed bool
}

func (w *walk) records(ctx context.Context) error {
	at := headerSize
	for count := 0; at < w.Size; count++ {
		if count%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		head, err := w.bytes(at, recordHead)
		if err != nil {
			return err
		}
		if len(head) > 0 && !known(Tag(head[0])) {
			return &DamageError{Offset: at, Record: "a record", Reason: fmt.Sprintf("unknown tag 0x%02x", head[0])}
		}
		if len(head) < recordHead {
			w.Truncated = at
			return nil
		}
		tag, length := Tag(head[0]), int64(binary.BigEndian.Uint32(head[5:]))
		if tag == TagHeapDump || tag == TagHeapDumpSegment {
			if length, err = w.wrapped(at+recordHead, length); err != nil {
				return err
			}
			w.segment(tag, at+recordHead, length)
		} else if at+recordHead+length <= w.Size {
			if err := w.record(tag, at, length); err != nil {
				return err
			}
		}
		if at+recordHead+length > w.Size {
			w.Truncated = at
			return nil
		}
		at += recordHead + length
	}
	return nil
}

// known tells whether a record with the tag can be there.
func known(t Tag) bool {
	return t >= TagString && t <= TagControlSettings || t == TagHeapDumpSegment || t == TagHeapDumpEnd
}

// wrapped gives the true length of a heap record whose length has 32 bits in the
// file: HotSpot's HEAP_DUMP of more than 4 GiB declares the rest of a division by
// 4 GiB, and 0 where the writer could not go back to fill it in. The first length
// after which a record can stand is taken, as Eclipse MAT does.
func (w *walk) wrapped(body, length int64) (int64, error) {
	for end := body + length; end <= w.Size; end += wrap {
		ok, err := w.plausible(end)
		if err != nil || ok {
			return end - body, err
		}
	}
	if length == 0 || w.Size-body > wrap {
		return w.Size - body, nil
	}
	return length, nil
}

// plausible tells whether a record can begin at an offset. The end of the file can
// be there too.
func (w *walk) plausible(at int64) (bool, error) {
	head, err := w.bytes(at, recordHead)
	if err != nil || len(head) == 0 {
		return true, err
	}
	if !known(Tag(head[0])) {
		return false, nil
	}
	if len(head) < recordHead {
		return true, nil
	}
	length := int64(binary.BigEndian.Uint32(head[5:]))
	return at+recordHead+length <= w.Size || Tag(head[0]) == TagHeapDumpSegment, nil
}

// segment notes a part of a heap. A second HEAP_DUMP, and any part after
// HEAP_DUMP_END, begins another snapshot.
func (w *walk) segment(tag Tag, offset, length int64) {
	if len(w.Snapshots) == 0 || w.closed || tag == TagHeapDump && len(w.last().Segments) > 0 {
		w.Snapshots = append(w.Snapshots, Snapshot{})
		w.closed = false
	}
	s := Segment{Offset: offset, Length: length}
	if offset+length > w.Size {
		s.Length, s.Truncated = w.Size-offset, true
	}
	last := w.last()
	last.Segments = append(last.Segments, s)
}

func (w *walk) last() *Snapshot { return &w.Snapshots[len(w.Snapshots)-1] }

// record reads one record that is wholly in the file. at is where its head begins.
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
	b, err := w.bytes(at+recordHead, int(min(length, least)))
	if err != nil {
		return err
	}
	if int64(len(b)) < least {
		return &DamageError{Offset: at, Record: recordNames[tag], Reason: fmt.Sprintf("%d bytes long, needs %d", length, least)}
	}
	d := fields{b, w.IDSize}
	switch tag {
	case TagLoadClass:
		w.Classes = append(w.Classes, LoadedClass{d.u4(), d.id(), d.u4(), d.id()})
	case TagStackFrame:
		w.Frames = append(w.Frames, Frame{ID: d.id(), Method: d.id(), Signature: d.id(), Source: d.id(), Class: d.u4(), Line: int32(d.u4())})
	case TagStartThread:
		w.Threads = append(w.Threads, Thread{Serial: d.u4(), Object: d.id(), Trace: d.u4(), Name: d.id(), Group: d.id()})
	case TagStackTrace:
		return w.trace(at, length, Trace{Serial: d.u4(), Thread: d.u4()}, d.u4())
	}
	return nil
}

var recordNames = map[Tag]string{TagString: "STRING", TagLoadClass: "LOAD_CLASS", TagStackFrame: "STACK_FRAME", TagStackTrace: "STACK_TRACE", TagStartThread: "START_THREAD"}

// least gives the bytes that a record must have, 0 for one that is skipped.
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
		return &DamageError{Offset: at, Record: recordNames[TagStackTrace], Reason: fmt.Sprintf("%d frames do not fit into %d bytes", frames, length)}
	}
	frames = min(frames, maxTrace)
	b, err := w.bytes(at+recordHead+12, int(frames)*w.IDSize)
	if err != nil {
		return err
	}
	if len(b) < int(frames)*w.IDSize {
		return io.ErrUnexpectedEOF
	}
	d := fields{b, w.IDSize}
	t.Frames = make([]ID, frames)
	for i := range t.Frames {
		t.Frames[i] = d.id()
	}
	w.Traces = append(w.Traces, t)
	return nil
}

func (w *walk) text(at, length int64) error {
	id := int64(w.IDSize)
	if length < id {
		return &DamageError{Offset: at, Record: recordNames[TagString], Reason: fmt.Sprintf("%d bytes long, needs %d", length, id)}
	}
	b, err := w.bytes(at+recordHead, int(min(length, id+maxKept)))
	if err != nil {
		return err
	}
	if int64(len(b)) < id {
		return io.ErrUnexpectedEOF
	}
	d := fields{b, w.IDSize}
	name := d.id()
	w.Strings.add(name, d.b, at+recordHead+id, length-id)
	return nil
}

// fields reads big-endian values from bytes that are known to be there.
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
	// buf[:n] holds the file from base on.
	buf  []byte
	base int64
	n    int
	// limit is the offset after the last byte that may be read.
	limit int64
}

// bytes gives n bytes from an offset on, fewer where the limit comes first or n is
// more than the window holds. They are valid until the next call.
func (w *window) bytes(at int64, n int) ([]byte, error) {
	if at >= w.base && at+int64(n) <= w.base+int64(w.n) {
		return w.buf[at-w.base:][:n], nil
	}
	if err := w.fill(at); err != nil {
		return nil, err
	}
	return w.buf[:min(n, w.n)], nil
}

// fill moves the window to an offset and keeps what is in it already.
func (w *window) fill(at int64) error {
	kept := 0
	if at >= w.base && at < w.base+int64(w.n) {
		kept = copy(w.buf, w.buf[at-w.base:w.n])
	}
	w.base, w.n = at, kept
	want := int(min(int64(len(w.buf)), w.limit-at))
	if want <= kept {
		w.n = max(min(kept, want), 0)
		return nil
	}
	n, err := w.r.ReadAt(w.buf[kept:want], at+int64(kept))
	w.n += n
	if kept+n < want {
		if err == nil || errors.Is(err, io.EOF) {
			err = errors.New("the file became shorter while it was read")
		}
		return fmt.Errorf("read the dump at offset %d: %w", at+int64(w.n), err)
	}
	return nil
}
