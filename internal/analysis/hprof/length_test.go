package hprof_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

const gib = int64(1) << 30

// sparse is a file of any size that consists of zeros except for some parts. It
// counts the bytes read.
type sparse struct {
	parts []part
	size  int64
	read  int64
	calls int
}

type part struct {
	at int64
	b  []byte
}

// add appends bytes, followed by zeros.
func (s *sparse) add(b []byte, zeros int64) (at int64) {
	at = s.size
	s.parts = append(s.parts, part{at, slices.Clone(b)})
	s.size += int64(len(b)) + zeros
	return at
}

func (s *sparse) ReadAt(b []byte, at int64) (int, error) {
	n := int(max(min(int64(len(b)), s.size-at), 0))
	clear(b[:n])
	for _, p := range s.parts {
		if from := max(p.at, at); from < min(p.at+int64(len(p.b)), at+int64(n)) {
			copy(b[from-at:n], p.b[from-p.at:])
		}
	}
	s.read += int64(n)
	s.calls++
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// huge is a dump in a sparse file whose heap is a HEAP_DUMP of arrays of zeros.
type huge struct {
	sparse
	head  int64
	items []item
}

func newHuge() *huge {
	h := &huge{}
	d := newDump(hprof.Format101, 8)
	d.record(hprof.TagString, hprof.ID(1), "before")
	h.add(d.b, 0)
	h.begin()
	return h
}

func (h *huge) begin() {
	h.head = h.add((&dump{ids: 8}).put(hprof.TagHeapDump, uint32(0), uint32(0)).b, 0)
	h.items = nil
}

func (h *huge) array(t hprof.Type, count uint32) {
	d := &dump{ids: 8}
	id := hprof.ID(len(h.items) + 1)
	d.primitives(id, t, count, "")
	h.items = append(h.items,
		item{Kind: hprof.SubPrimitiveArray, Offset: h.size, Object: id, Trace: 3, Count: count, Type: t})
	h.add(d.b, int64(count)*int64(t.Size(8)))
}

func (h *huge) instance() {
	d := &dump{ids: 8}
	id := hprof.ID(len(h.items) + 1)
	d.instance(id, 2, "fields")
	h.items = append(h.items,
		item{Kind: hprof.SubInstance, Offset: h.size, Object: id, Trace: 1, Class: 2, Count: 6, Body: "fields"})
	h.add(d.b, 0)
}

// end declares the low 32 bits of the heap's length, as HotSpot does.
func (h *huge) end() (length int64) {
	length = h.size - h.head - 9
	h.declare(uint32(length))
	return length
}

func (h *huge) declare(length uint32) {
	for i := range h.parts {
		if h.parts[i].at == h.head {
			h.parts[i].b = (&dump{}).put(hprof.TagHeapDump, uint32(0), length).b
		}
	}
}

// fill appends arrays of all types with a total of more than 4 GiB, and
// instances between them.
func (h *huge) fill() {
	h.instance()
	h.array(hprof.Byte, 1<<31-1)
	h.array(hprof.Long, 1<<28+3)
	h.instance()
	h.array(hprof.Char, 5)
	h.array(hprof.Int, 1<<29)
	h.instance()
}

// scanned scans the only heap of a huge dump, and checks the heap's length and
// its records.
func (h *huge) scanned(t *testing.T, f *hprof.File, i int, want hprof.Segment, items []item) *hprof.Scanner {
	t.Helper()
	if len(f.Snapshots) <= i || len(f.Snapshots[i].Segments) != 1 || f.Snapshots[i].Segments[0] != want {
		t.Fatalf("%+v, want %+v", f.Snapshots, want)
	}
	s := f.Scanner(f.Snapshots[i].Segments)
	sameItems(t, itemsOf(t, s), items)
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return s
}

func itemsOf(t *testing.T, s *hprof.Scanner) []item { return items(t, s, 8) }

func (h *huge) open(t *testing.T) *hprof.File {
	t.Helper()
	f, err := hprof.Open(context.Background(), h, h.size)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestWrappedLength reads a HEAP_DUMP of 6 GiB that declares 2 GiB.
func TestWrappedLength(t *testing.T) {
	t.Run("heap that extends to the end of the file", func(t *testing.T) {
		h := newHuge()
		h.fill()
		length := h.end()
		f := h.open(t)
		h.scanned(t, f, 0, hprof.Segment{Offset: h.head + 9, Length: length}, h.items)
		if f.Truncated != -1 || f.Strings.Len() != 1 || len(f.Warnings) != 1 ||
			!strings.Contains(f.Warnings[0].Error(), fmt.Sprint(length)) {
			t.Errorf("truncated at %d, %d strings, %v", f.Truncated, f.Strings.Len(), f.Warnings)
		}
		// At most three windows of the scanner may be read around each of the
		// two long arrays, in addition to the bytes that Open reads.
		if h.read > 8*512<<10 {
			t.Errorf("read %d bytes", h.read)
		}
	})
	t.Run("followed by records", func(t *testing.T) {
		h := newHuge()
		h.fill()
		length := h.end()
		d := &dump{ids: 8}
		d.record(hprof.TagHeapSummary, "summary")
		d.record(hprof.TagString, hprof.ID(2), "after")
		h.add(d.b, 0)
		f := h.open(t)
		h.scanned(t, f, 0, hprof.Segment{Offset: h.head + 9, Length: length}, h.items)
		if s, ok := f.Strings.Get(2); f.Truncated != -1 || s != "after" || !ok {
			t.Errorf("truncated at %d, %q", f.Truncated, s)
		}
	})
	t.Run("heap that contains a false record", func(t *testing.T) {
		for _, trap := range []struct {
			records int
			tag     hprof.Tag
			last    bool
		}{
			// Some valid records, followed by zeros.
			{1, hprof.TagString, false}, {14, hprof.TagHeapSummary, false},
			// An invalid heap.
			{0, hprof.TagHeapDump, false}, {3, hprof.TagHeapDumpSegment, false},
			// There are more records than Open checks; the heap is valid up to
			// the end of the file.
			{40, hprof.TagString, true},
		} {
			h := newHuge()
			h.fill()
			length := h.end()
			d := &dump{ids: 8}
			for i := range trap.records {
				d.record(hprof.TagLoadClass, uint32(i), hprof.ID(20), uint32(2), hprof.ID(3))
			}
			d.record(trap.tag, "\x00trap of some bytes")
			h.parts = append(h.parts, part{h.head + 9 + length - 4*gib, d.b})
			if !trap.last {
				h.add((&dump{}).put(hprof.TagHeapDumpEnd, uint32(0), uint32(0)).b, 0)
			}
			f := h.open(t)
			h.scanned(t, f, 0, hprof.Segment{Offset: h.head + 9, Length: length}, h.items)
			if f.Truncated != -1 || f.Snapshots[0].Ended == trap.last || f.Strings.Len() != 1 || len(f.Classes) > 0 {
				t.Errorf("%+v: truncated at %d, %+v", trap, f.Truncated, f.Snapshots[0])
			}
		}
	})
	t.Run("two heaps", func(t *testing.T) {
		h := newHuge()
		h.fill()
		first, head := h.end(), h.head
		wanted := h.items
		h.begin()
		h.instance()
		h.fill()
		h.fill()
		second := h.end()
		h.add((&dump{ids: 8}).put(hprof.TagString, uint32(0), uint32(8), hprof.ID(9)).b, 0)
		f := h.open(t)
		h.scanned(t, f, 0, hprof.Segment{Offset: head + 9, Length: first}, wanted)
		h.scanned(t, f, 1, hprof.Segment{Offset: h.head + 9, Length: second}, h.items)
		if f.Truncated != -1 || len(f.Warnings) != 2 || second < 12*gib {
			t.Errorf("truncated at %d, %v", f.Truncated, f.Warnings)
		}
	})
	t.Run("truncated", func(t *testing.T) {
		// The heap declares 12 GiB, but the file has fewer than 10.
		h := newHuge()
		h.fill()
		h.fill()
		h.end()
		cut := h.items[8].Offset + gib
		h.size = cut
		f := h.open(t)
		s := h.scanned(t, f, 0, hprof.Segment{Offset: h.head + 9, Length: cut - h.head - 9, Truncated: true},
			h.items[:8])
		if f.Truncated != h.head || s.Truncated() != h.items[8].Offset {
			t.Errorf("truncated at %d, in the heap at %d", f.Truncated, s.Truncated())
		}
	})
	t.Run("many correct segments", func(t *testing.T) {
		// Each possible end of the segment is more than 4 GiB before the end of
		// the file.
		var h huge
		d := newDump(hprof.Format102, 8)
		population(d, 8<<20)
		at := d.record(hprof.TagHeapDumpSegment, hprof.SubPrimitiveArray, hprof.ID(1), uint32(0), uint32(0xffff0000),
			hprof.Byte)
		d.declare(at, 0xffff0000+18)
		h.add(d.b, 0xffff0000)
		var tail dump
		tail.ids = 8
		tail.segment(hprof.TagHeapDumpSegment, func() { tail.instance(2, 1, "after") })
		tail.record(hprof.TagHeapDumpEnd)
		h.add(tail.b, 3*gib)
		h.size -= 3 * gib
		f := h.open(t)
		want := topOffsets(d.b[:at])
		for i, g := range f.Snapshots[0].Segments[:len(want)-2] {
			if g.Offset != want[i+1]+9 {
				t.Fatalf("segment %d at %d, want %d", i, g.Offset, want[i+1]+9)
			}
		}
		if n := len(f.Snapshots[0].Segments); n != len(want) || len(f.Warnings) > 0 || f.Truncated != -1 {
			t.Errorf("%d segments, want %d; truncated at %d, %v", n, len(want), f.Truncated, f.Warnings)
		}
		// A segment declares its length: if no valid record follows the
		// segment, that is damage.
		h.parts[1].b[0] = 0
		_, err := hprof.Open(context.Background(), &h, h.size)
		checkDamage(t, err, h.parts[1].at, "a record", "unknown tag 0x00")
		h.parts[0].b[want[3]] = 0
		_, err = hprof.Open(context.Background(), &h, h.size)
		checkDamage(t, err, want[3], "a record", "unknown tag 0x00")
	})
}

// TestUndeclaredLength reads heaps that declare 0 bytes: HotSpot writes 0, and
// fills in the length at the end if it can.
func TestUndeclaredLength(t *testing.T) {
	t.Run("6 GiB", func(t *testing.T) {
		h := newHuge()
		h.fill()
		length := h.end()
		h.declare(0)
		f := h.open(t)
		s := h.scanned(t, f, 0, hprof.Segment{Offset: h.head + 9, Length: length, Truncated: true}, h.items)
		if f.Truncated != -1 || s.Truncated() != -1 || len(f.Warnings) != 1 {
			t.Errorf("truncated at %d, in the heap at %d, %v", f.Truncated, s.Truncated(), f.Warnings)
		}
	})
	for _, tag := range []hprof.Tag{hprof.TagHeapDump, hprof.TagHeapDumpSegment} {
		d := newDump(hprof.Format102, 4)
		d.segment(hprof.TagHeapDumpSegment, func() { d.instance(1, 2, "before") })
		at := d.record(tag)
		body := d.len()
		d.class(20, 0)
		d.root(hprof.SubRootJNIGlobal, 1)
		last := d.instance(1, 2, "last")
		for n := body + 1; n <= d.len(); n++ {
			f := open(t, d.b[:n])
			snapshot := f.Snapshots[len(f.Snapshots)-1]
			if got, want := snapshot.Segments[len(snapshot.Segments)-1],
				(hprof.Segment{Offset: body, Length: n - body, Truncated: true}); got != want || f.Truncated != -1 {
				t.Fatalf("%d bytes: %+v, want %+v; truncated at %d", n, got, want, f.Truncated)
			}
			s := f.Scanner(snapshot.Segments)
			items(t, s, 4)
			if want := cutAt([]int64{body, last - 9, last, d.len()}, n); s.Err() != nil || s.Truncated() != want {
				t.Fatalf("%d bytes: truncated at %d, want %d (%v)", n, s.Truncated(), want, s.Err())
			}
		}
		agree(t, d.b)
		// A segment can be empty; in that case, records or the end of the file
		// follow.
		for _, after := range []func(d *dump){
			func(*dump) {},
			func(d *dump) { d.record(hprof.TagHeapDumpEnd) },
			func(d *dump) { d.record(hprof.TagString, hprof.ID(3), "a string, whose tag could be a root's") },
			func(d *dump) { d.segment(hprof.TagHeapDumpSegment, func() { d.instance(1, 2, "x") }) },
			func(d *dump) {
				for i := range 40 {
					d.record(hprof.TagLoadClass, uint32(i), hprof.ID(i), uint32(0), hprof.ID(i))
				}
			},
		} {
			empty := &dump{ids: 4, b: slices.Clone(d.b[:body])}
			after(empty)
			f := open(t, empty.b)
			// The empty heap is dropped and does not count as a snapshot.
			isEmpty := func(g hprof.Segment) bool { return g.Length == 0 || g.Offset == at+9 }
			if len(f.Snapshots) != 1 || slices.ContainsFunc(f.Snapshots[0].Segments, isEmpty) || f.Truncated != -1 ||
				len(f.Warnings) > 0 {
				t.Errorf("%v: %+v, truncated at %d, %v", tag, f.Snapshots, f.Truncated, f.Warnings)
			}
			agree(t, empty.b)
		}
		// Bytes that cannot start a heap are a record, or damage.
		cut := &dump{ids: 4, b: slices.Clone(d.b[:body])}
		last = cut.record(hprof.TagControlSettings, "settings")
		if f := open(t, cut.b[:cut.len()-1]); f.Truncated != last || len(f.Warnings) > 0 {
			t.Errorf("%v: truncated at %d, want %d", tag, f.Truncated, last)
		}
		cut.b[last] = 0x77
		_, err := hprof.Open(context.Background(), bytes.NewReader(cut.b), cut.len())
		checkDamage(t, err, last, "a record", "unknown tag 0x77")
	}
}

// TestReadOnce checks that a scan reads each byte once, including the headers
// between segments.
func TestReadOnce(t *testing.T) {
	d := newDump(hprof.Format102, 8)
	population(d, 5<<20)
	d.segment(hprof.TagHeapDumpSegment,
		func() { d.primitives(1, hprof.Byte, 3<<20, strings.Repeat("x", 3<<20)); d.class(20, 0) })
	file := &sparse{}
	file.add(d.b, 0)
	f, err := hprof.Open(context.Background(), file, file.size)
	if err != nil {
		t.Fatal(err)
	}
	file.read = 0
	s := f.Scanner(f.Snapshots[0].Segments)
	s.Contents = true
	for s.Next() {
	}
	if s.Err() != nil || file.read != d.len()-headerLen-9 {
		t.Errorf("read %d of %d bytes (%v)", file.read, d.len(), s.Err())
	}
}

// TestLongArray checks that an array is not read unless it is requested, and
// that a requested array of 32 GiB is returned in pieces, in a buffer that does
// not grow.
func TestLongArray(t *testing.T) {
	h := newHuge()
	h.instance()
	h.array(hprof.Double, 1<<32-1)
	h.instance()
	h.end()
	f := h.open(t)
	h.read, h.calls = 0, 0
	h.scanned(t, f, 0, hprof.Segment{Offset: h.head + 9, Length: h.size - h.head - 9}, h.items)
	if h.read > 2*512<<10 || h.calls > 2 {
		t.Errorf("read %d bytes of a skipped array in %d calls", h.read, h.calls)
	}
	s := f.Scanner(f.Snapshots[0].Segments)
	s.Contents = true
	for piece := range 100 {
		if !s.Next() {
			t.Fatal(s.Err())
		}
		if piece > 1 &&
			(!s.Piece || s.Kind != hprof.SubPrimitiveArray || s.Count != 1<<32-1 || len(s.Body) != 512<<10 ||
				int(s.First) != (piece-1)*len(s.Body)/8) {
			t.Fatalf("piece %d: %v from %d on, %d bytes", piece, s.Kind, s.First, len(s.Body))
		}
	}
}

// TestLongInstance checks that an instance of several gigabytes is reported as
// damage even if the file contains it, also on systems where an int has 32
// bits.
func TestLongInstance(t *testing.T) {
	for _, count := range []uint32{4<<20 - 24, 1<<31 - 25, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		h := newHuge()
		h.instance()
		at := h.add((&dump{ids: 8}).put(hprof.SubInstance, hprof.ID(1), uint32(0), hprof.ID(2), count).b, int64(count))
		h.end()
		f := h.open(t)
		h.read = 0
		s := f.Scanner(f.Snapshots[0].Segments)
		if got := itemsOf(t, s); len(got) != 1 || h.read > 4<<20 {
			t.Errorf("%d records, read %d bytes", len(got), h.read)
		}
		checkDamage(t, s.Err(), at, "INSTANCE_DUMP", fmt.Sprintf("%d bytes long, more than any class", int64(count)+25))
	}
}

// TestPieces checks that the pieces of an array make up the whole array, for
// each element size and position, and that the scanner continues after the
// array.
func TestPieces(t *testing.T) {
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(i ^ i>>8 ^ i>>16)
	}
	for _, ids := range []int{4, 8} {
		for shift := range 3 {
			d := newDump(hprof.Format103, ids)
			d.segment(hprof.TagHeapDumpSegment, func() {
				d.instance(1, 2, string(data[:shift*1000+shift]))
				for i, kind := range types[1:] {
					// The arrays are one byte shorter than the buffer, exactly
					// as long, and one byte longer.
					for _, n := range []int{512<<10 - 1, 512 << 10, 512<<10 + 1, 2<<20 + 100*i + shift} {
						n -= n % kind.Size(ids)
						d.primitives(hprof.ID(i), kind, uint32(n/kind.Size(ids)), string(data[i:i+n]))
						d.root(hprof.SubRootStickyClass, 7)
					}
				}
				d.put(hprof.SubObjectArray, hprof.ID(9), uint32(0), uint32(len(data)/ids), hprof.ID(8), data)
				d.class(20, 0)
				d.put(hprof.SubObjectArray, hprof.ID(9), uint32(0), uint32(100), hprof.ID(8), data[:100*ids])
			})
			want := readNaive(d.b).heaps[0].items
			f := open(t, d.b)
			s := f.Scanner(f.Snapshots[0].Segments)
			s.Contents = true
			sameItems(t, items(t, s, ids), want)
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
			for i := range want {
				if want[i].Kind == hprof.SubPrimitiveArray {
					want[i].Body = ""
				}
			}
			s.Contents = false
			s.Reset(f.Snapshots[0].Segments)
			sameItems(t, items(t, s, ids), want)
		}
	}
}

// TestPieceLimits checks that pieces are as large as possible and contain
// complete elements.
func TestPieceLimits(t *testing.T) {
	d := newDump(hprof.Format103, 8)
	d.segment(hprof.TagHeapDumpSegment, func() {
		d.primitives(1, hprof.Int, 1<<18, strings.Repeat("abcd", 1<<18))
	})
	f := open(t, d.b)
	s := f.Scanner(f.Snapshots[0].Segments)
	s.Contents = true
	var first []uint32
	var b bytes.Buffer
	for s.Next() {
		first = append(first, s.First)
		b.Write(s.Body)
		if s.Piece != (s.First > 0) || s.Offset != headerLen+9 {
			t.Errorf("piece %v at element %d, offset %d", s.Piece, s.First, s.Offset)
		}
	}
	if !slices.Equal(first, []uint32{0, 1 << 17}) || b.String() != strings.Repeat("abcd", 1<<18) {
		t.Errorf("pieces at elements %v, %d bytes", first, b.Len())
	}
}
