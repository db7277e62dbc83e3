package hprof_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// open opens a dump that Open must accept.
func open(t testing.TB, data []byte) *hprof.File {
	t.Helper()
	f, err := hprof.Open(context.Background(), bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestTruncated truncates dumps after each byte. The file then ends inside a
// top-level record and, in a heap, also inside one of the heap's records;
// everything before it must be read.
func TestTruncated(t *testing.T) {
	for _, ids := range []int{4, 8} {
		for _, format := range []string{hprof.Format101, hprof.Format102, hprof.Format103} {
			data := whole(format, ids).b
			tops := topOffsets(data)
			full := readNaive(data).heaps[0]
			for n := 1; n <= len(data); n++ {
				f := open(t, data[:n])
				if want := cutAt(tops, int64(n)); f.Truncated != want {
					t.Fatalf("%s, %d of %d bytes: truncated at %d, want %d", format, n, len(data), f.Truncated, want)
				}
				if len(f.Snapshots) == 0 {
					if int64(n) > full.segments[0].Offset {
						t.Fatalf("%s, %d of %d bytes: no heap", format, n, len(data))
					}
					continue
				}
				if len(f.Snapshots) != 1 {
					t.Fatalf("%s, %d of %d bytes: %d heaps", format, n, len(data), len(f.Snapshots))
				}
				s := f.Scanner(f.Snapshots[0].Segments)
				s.Contents = true
				got := items(t, s, ids)
				want, cut := itemsBefore(full, int64(n))
				sameItems(t, got, want)
				if s.Err() != nil || s.Truncated() != cut {
					t.Fatalf("%s, %d of %d bytes: scan truncated at %d, want %d (%v)", format, n, len(data),
						s.Truncated(), cut, s.Err())
				}
			}
		}
	}
	var damage *hprof.DamageError
	if _, err := hprof.Open(context.Background(), bytes.NewReader(nil), 0); !errors.As(err, &damage) {
		t.Errorf("empty file: %v", err)
	}
}

// topOffsets returns the offsets of the header and of the records of a valid
// dump, and the offset of the dump's end.
func topOffsets(data []byte) []int64 {
	offsets := []int64{0}
	for at := headerLen; at < len(data); {
		offsets = append(offsets, int64(at))
		at += 9 + int(uint32(data[at+5])<<24|uint32(data[at+6])<<16|uint32(data[at+7])<<8|uint32(data[at+8]))
	}
	return append(offsets, int64(len(data)))
}

// cutAt returns the start of the record that is incomplete in the first n
// bytes, or -1.
func cutAt(starts []int64, n int64) int64 {
	i, found := slices.BinarySearch(starts, n)
	if found {
		return -1
	}
	return starts[i-1]
}

// itemsBefore returns the records within the first n bytes, and the offset of
// the incomplete record.
func itemsBefore(h naiveHeap, n int64) ([]item, int64) {
	for i, it := range h.items {
		if it.Offset >= n {
			return h.items[:i], -1
		}
		if end := itemEnd(h, i); end > n {
			return h.items[:i], it.Offset
		}
	}
	return h.items, -1
}

func itemEnd(h naiveHeap, i int) int64 {
	for _, g := range h.segments {
		end := g.Offset + g.Length
		if h.items[i].Offset >= end {
			continue
		}
		if i+1 < len(h.items) {
			end = min(end, h.items[i+1].Offset)
		}
		return end
	}
	return -1
}

// TestShortSegment ends a segment inside each kind of record, after each byte,
// and continues with another record: this must be reported as damage.
func TestShortSegment(t *testing.T) {
	for _, ids := range []int{4, 8} {
		d := whole(hprof.Format103, ids)
		full := readNaive(d.b).heaps[0]
		seen := map[hprof.SubTag]bool{}
		for i, it := range full.items {
			record := d.b[it.Offset:itemEnd(full, i)]
			seen[it.Kind] = true
			for n := 1; n < len(record); n++ {
				cut := newDump(hprof.Format103, ids)
				cut.segment(hprof.TagHeapDumpSegment, func() { cut.instance(1, 2, "good"); cut.put(record[:n]) })
				cut.segment(hprof.TagHeapDumpSegment, func() { cut.instance(3, 2, "never read") })
				s := open(t, cut.b).Scanner(open(t, cut.b).Snapshots[0].Segments)
				at := cut.len() - int64(n) - int64(9+9+2*ids+len("never read"))
				if got := items(t, s, ids); len(got) != 1 || s.Truncated() != -1 {
					t.Fatalf("%v truncated after %d bytes: %d records, truncated at %d", it.Kind, n, len(got),
						s.Truncated())
				}
				checkDamage(t, s.Err(), at, it.Kind.String(), "past the end of its segment")
			}
		}
		if want := len(rootKinds()) + 6; len(seen) != want {
			t.Errorf("tested %d kinds of records, want %d", len(seen), want)
		}
	}
}

func checkDamage(t *testing.T, err error, at int64, record, reason string) {
	t.Helper()
	var damage *hprof.DamageError
	if !errors.As(err, &damage) || damage.Offset != at || damage.Record != record ||
		!strings.Contains(damage.Reason, reason) {
		t.Errorf("%v; want %s at %d: %s", err, record, at, reason)
		return
	}
	for _, part := range []string{fmt.Sprint(at), record, reason} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not contain %q", err, part)
		}
	}
}

// TestDamagedHead damages records outside the heap.
func TestDamagedHead(t *testing.T) {
	for _, c := range []struct {
		tag            hprof.Tag
		body           []any
		record, reason string
	}{
		{hprof.TagString, []any{"abc"}, "STRING", "3 bytes long, needs 4"},
		{hprof.TagLoadClass, []any{"0123456789abcde"}, "LOAD_CLASS", "15 bytes long, needs 16"},
		{hprof.TagStackFrame, []any{"0123456789"}, "STACK_FRAME", "10 bytes long, needs 24"},
		{hprof.TagStartThread, []any{"0123456789abcdefghijkl"}, "START_THREAD", "22 bytes long, needs 24"},
		{hprof.TagStackTrace, []any{"0123456789a"}, "STACK_TRACE", "11 bytes long, needs 12"},
		{
			hprof.TagStackTrace, []any{uint32(1), uint32(1), uint32(2), uint32(9)}, "STACK_TRACE",
			"2 frames do not fit into 16 bytes",
		},
		// In 32 bits, 4 * 0x40000001 overflows to 4.
		{
			hprof.TagStackTrace, []any{uint32(1), uint32(1), uint32(0x40000001), uint32(9)}, "STACK_TRACE",
			"1073741825 frames do not fit",
		},
		{
			hprof.TagStackTrace, []any{uint32(1), uint32(1), uint32(0xffffffff)}, "STACK_TRACE",
			"4294967295 frames do not fit",
		},
		{0x00, nil, "a record", "unknown tag 0x00"},
		{0x0f, []any{"xyz"}, "a record", "unknown tag 0x0f"},
		{0x21, []any{"xyz"}, "a record", "unknown tag 0x21"},
		{0xff, nil, "a record", "unknown tag 0xff"},
	} {
		d := newDump(hprof.Format102, 4)
		d.record(hprof.TagString, hprof.ID(1), "before")
		d.segment(hprof.TagHeapDumpSegment, func() { d.instance(1, 2, "x") })
		at := d.record(c.tag, c.body...)
		d.record(hprof.TagString, hprof.ID(2), "after")
		f, err := hprof.Open(context.Background(), bytes.NewReader(d.b), d.len())
		checkDamage(t, err, at, c.record, c.reason)
		if f.Strings.Len() != 1 || len(f.Snapshots) != 1 {
			t.Errorf("%v: got %d strings and %d heaps before the damage, want 1 of each", err, f.Strings.Len(),
				len(f.Snapshots))
		}
	}
}

// TestDamagedHeader opens files that are not dumps, and dumps that are not
// supported.
func TestDamagedHeader(t *testing.T) {
	with := func(change func(d *dump)) []byte {
		d := newDump(hprof.Format103, 4)
		change(d)
		return d.b
	}
	for _, c := range []struct {
		data   []byte
		at     int64
		reason string
	}{
		{[]byte("PK\x03\x04"), 0, "not a heap dump"},
		{[]byte("java profile 1.0.2\x00"), 0, "not a heap dump"},
		{with(func(d *dump) { d.b[17] = '4' }), 0, `unknown format "JAVA PROFILE 1.0.4"`},
		{with(func(d *dump) { d.b[18] = '1' }), 0, "unknown format"},
		{with(func(d *dump) { d.b[22] = 2 }), 19, "IDs of 2 bytes"},
		{with(func(d *dump) { d.b[19] = 0xff }), 19, "IDs of 4278190084 bytes"},
	} {
		_, err := hprof.Open(context.Background(), bytes.NewReader(c.data), int64(len(c.data)))
		checkDamage(t, err, c.at, "the header", c.reason)
	}
	for _, ms := range []uint64{math.MaxUint64, 1 << 63, math.MaxInt64, 253402300800000} {
		d := &dump{ids: 4}
		d.put(hprof.Format103, uint8(0), uint32(4), ms)
		f := open(t, d.b)
		// -1 is one millisecond before 1970.
		if valid := ms == math.MaxUint64; valid == f.Time.IsZero() || valid != (len(f.Warnings) == 0) {
			t.Errorf("%d ms: %v, %v", ms, f.Time, f.Warnings)
		}
	}
}

// TestDamagedHeap reads invalid records inside a heap.
func TestDamagedHeap(t *testing.T) {
	class := func(d *dump, constants, statics, fields []byte) {
		d.put(hprof.SubClassDump, hprof.ID(1), uint32(0), bytes.Repeat([]byte{0}, 6*d.ids), uint32(0))
		for _, table := range [][]byte{constants, statics, fields} {
			if table == nil {
				table = []byte{0, 0}
			}
			d.put(table)
		}
	}
	type damaged struct {
		name           string
		put            func(d *dump)
		record, reason string
	}
	cases := []damaged{
		{"an unknown tag", func(d *dump) { d.put(uint8(0x24), "padding") }, "record 0x24", "unknown record tag 0x24"},
		{"zero", func(d *dump) { d.put(uint8(0)) }, "record 0x00", "unknown record tag 0x00"},
		{
			"a top-level record", func(d *dump) { d.record(hprof.TagHeapDumpEnd) }, "record 0x2c",
			"unknown record tag 0x2c",
		},
		{"an instance of 4 GiB", func(d *dump) {
			d.put(hprof.SubInstance, hprof.ID(1), uint32(0), hprof.ID(2), uint32(0xffffffff), "data")
		}, "INSTANCE_DUMP", "past the end"},
		{"an instance of 2 GiB", func(d *dump) {
			d.put(hprof.SubInstance, hprof.ID(1), uint32(0), hprof.ID(2), uint32(1<<31), "data")
		}, "INSTANCE_DUMP", "past the end"},
		// In 32 bits, 4 * 0x40000001 overflows to 4, and 8 * 0x20000001 to 8.
		{"an object array whose length wraps", func(d *dump) {
			d.put(hprof.SubObjectArray, hprof.ID(1), uint32(0), uint32(1<<32/int64(d.ids)+1), hprof.ID(2), "01234567")
		}, "OBJECT_ARRAY_DUMP", "past the end"},
		{
			"a primitive array whose length wraps",
			func(d *dump) { d.primitives(1, hprof.Long, 0x20000001, "01234567") }, "PRIMITIVE_ARRAY_DUMP",
			"past the end",
		},
		{
			"the longest array", func(d *dump) { d.primitives(1, hprof.Double, 0xffffffff, "01234567") },
			"PRIMITIVE_ARRAY_DUMP", "past the end",
		},
		{
			"a constant of an invalid type", func(d *dump) { class(d, []byte("\x00\x01\x00\x00\x01...."), nil, nil) },
			"CLASS_DUMP", "a value of type 1",
		},
		{"a static field of an invalid type", func(d *dump) {
			class(d, nil, slices.Concat([]byte("\x00\x01"), make([]byte, d.ids), []byte("\x0c....")), nil)
		}, "CLASS_DUMP", "a value of type 12"},
		{"a field of an invalid type", func(d *dump) {
			class(d, nil, nil, slices.Concat([]byte("\x00\x01"), make([]byte, d.ids), []byte{3}))
		}, "CLASS_DUMP", "a field of type 3"},
		{
			"too many constants", func(d *dump) { class(d, []byte("\xff\xff\x00\x00\x08.\x00\x00\x08."), nil, nil) },
			"CLASS_DUMP", "a value of type 0",
		},
		{"too many static fields", func(d *dump) {
			class(d, nil, slices.Concat([]byte("\xff\xff"), make([]byte, d.ids), []byte("\x08.")), []byte{})
		}, "CLASS_DUMP", "past the end"},
		{"too many fields", func(d *dump) { class(d, nil, nil, []byte("\xff\xff....")) }, "CLASS_DUMP", "past the end"},
	}
	for t := range 256 {
		if kind := hprof.Type(t); kind == hprof.Object || kind.Size(4) == 0 {
			reason := "elements of " + kind.String()
			cases = append(cases,
				damaged{
					"an array of " + kind.String(), func(d *dump) { d.primitives(1, kind, 1, "01234567") },
					"PRIMITIVE_ARRAY_DUMP", reason,
				},
				damaged{"an array of " + kind.String() + " without data", func(d *dump) {
					d.put(hprof.SubPrimitiveArrayNoData, hprof.ID(1), uint32(0), uint32(1), kind)
				}, "PRIMITIVE_ARRAY_NODATA_DUMP", reason})
		}
	}
	for _, ids := range []int{4, 8} {
		for _, c := range cases {
			d := newDump(hprof.Format103, ids)
			var at int64
			d.segment(hprof.TagHeapDumpSegment, func() {
				d.instance(1, 2, "before")
				at = d.len()
				c.put(d)
			})
			d.record(hprof.TagHeapDumpEnd)
			for _, contents := range []bool{false, true} {
				f := open(t, d.b)
				s := f.Scanner(f.Snapshots[0].Segments)
				s.Contents = contents
				if got := items(t, s, ids); len(got) != 1 || s.Truncated() != -1 {
					t.Errorf("%s: %d records, truncated at %d", c.name, len(got), s.Truncated())
				}
				checkDamage(t, s.Err(), at, c.record, c.reason)
				if s.Next() {
					t.Errorf("%s: the scanner continues after the damage", c.name)
				}
			}
		}
	}
}

// TestLargeRecords checks that a record that must be completely in memory may
// be up to 4 MiB long, but not longer.
func TestLargeRecords(t *testing.T) {
	const limit, ids = 4 << 20, 8
	fill := func(n int) string { return strings.Repeat("0123456789abcde", n/15+1)[:n] }
	d := newDump(hprof.Format102, ids)
	d.segment(hprof.TagHeapDumpSegment, func() {
		d.instance(1, 2, "small")
		d.instance(2, 2, fill(512<<10))
		d.instance(3, 2, fill(limit-9-2*ids))
		d.put(hprof.SubClassDump, hprof.ID(4), uint32(0), make([]byte, 6*ids), uint32(7), uint16(0xffff))
		for range 0xffff {
			d.put(uint16(1), hprof.Long, uint64(math.MaxUint64))
		}
		d.put(uint16(0xffff))
		for i := range 0xffff {
			d.put(hprof.ID(i), hprof.Double, uint64(i)<<32)
		}
		d.put(uint16(0xffff))
		for i := range 0xffff {
			d.put(hprof.ID(i), hprof.Object)
		}
		d.instance(5, 2, "after")
	})
	agree(t, d.b)

	at := d.segment(hprof.TagHeapDumpSegment, func() { d.instance(6, 2, fill(limit-9-2*ids+1)) })
	f := open(t, d.b)
	s := f.Scanner(f.Snapshots[0].Segments)
	if got := items(t, s, ids); len(got) != 5 {
		t.Errorf("%d records", len(got))
	}
	checkDamage(t, s.Err(), at+9, "INSTANCE_DUMP", "4194305 bytes long, more than any class can declare")
}

// TestStripped reads dumps stripped by the KOOM library: all lengths are kept,
// but the elements of primitive arrays are omitted. The result is not a valid
// dump until the elements are filled in again.
func TestStripped(t *testing.T) {
	whole := newDump(hprof.Format103, 4)
	stripped := newDump(hprof.Format103, 4)
	for _, d := range []*dump{whole, stripped} {
		var omitted uint32
		at := d.segment(hprof.TagHeapDumpSegment, func() {
			d.instance(1, 2, "before")
			for i, data := range []string{"some bytes", "and some more"} {
				n := uint32(len(data))
				if d == stripped {
					data = ""
					omitted += n
				}
				d.primitives(hprof.ID(10+i), hprof.Byte, n, data)
			}
			d.instance(3, 2, "after")
		})
		length := uint32(d.len() - at - 9)
		d.declare(at, length+omitted)
		d.record(hprof.TagString, hprof.ID(1), "a string that is long enough for all of the missing bytes")
		d.record(hprof.TagHeapDumpEnd)
	}
	agree(t, whole.b)
	f, err := hprof.Open(context.Background(), bytes.NewReader(stripped.b), stripped.len())
	if damageAt(t, err) < f.Snapshots[0].Segments[0].Offset {
		t.Error(err)
	}
	s := f.Scanner(f.Snapshots[0].Segments)
	if got := items(t, s, 4); len(got) == 4 && s.Err() == nil {
		t.Errorf("a stripped heap was read as %+v", got)
	}
	damageAt(t, s.Err())
}

// faulty returns the bytes before an offset, then fails like a defective disk.
type faulty struct {
	data  []byte
	limit int
	err   error
	// calls is the number of reads.
	calls int
}

func (f *faulty) ReadAt(b []byte, at int64) (int, error) {
	f.calls++
	have := f.data[:f.limit]
	if at >= int64(len(have)) {
		return 0, f.err
	}
	n := copy(b, have[at:])
	if n < len(b) {
		return n, f.err
	}
	return n, nil
}

// exact makes a read return io.EOF together with the last bytes, which a reader
// is allowed to do.
type exact struct{ data []byte }

func (e exact) ReadAt(b []byte, at int64) (int, error) {
	n := copy(b, e.data[at:])
	if int(at)+n == len(e.data) {
		return n, io.EOF
	}
	return n, nil
}

// readAll opens a file and scans its heaps.
func readAll(ctx context.Context, r io.ReaderAt, size int64) (records int, err error) {
	f, err := hprof.Open(ctx, r, size)
	if err != nil {
		return 0, err
	}
	for _, snapshot := range f.Snapshots {
		s := f.Scanner(snapshot.Segments)
		s.Contents = true
		for s.Next() {
			records++
		}
		if s.Err() != nil {
			return records, s.Err()
		}
	}
	return records, nil
}

// TestFaultyReader checks that a shrinking file and a failing disk are reported
// with the offset, and that reading then stops.
func TestFaultyReader(t *testing.T) {
	d := newDump(hprof.Format102, 4)
	d.record(hprof.TagString, hprof.ID(1), "name")
	population(d, 3<<20)
	d.record(hprof.TagHeapDumpEnd)
	size := len(d.b)
	if n, err := readAll(context.Background(), exact{d.b}, d.len()); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	broken := errors.New("the disk is broken")
	for _, limit := range []int{
		0, 1, 30, 31, 35, 1000, 256 << 10, 256<<10 + 31, 1 << 20, 2<<20 + 7, size - 10, size - 1,
	} {
		for _, failure := range []error{nil, io.EOF, broken, io.ErrUnexpectedEOF} {
			r := &faulty{data: d.b, limit: limit, err: failure}
			_, err := readAll(context.Background(), r, d.len())
			if err == nil {
				t.Fatalf("%d of %d bytes, then %v: got no error", limit, size, failure)
			}
			want := "the file became shorter"
			if failure != nil && !errors.Is(failure, io.EOF) {
				want = failure.Error()
				if !errors.Is(err, failure) {
					t.Errorf("%d bytes: %v is not %v", limit, err, failure)
				}
			}
			if !strings.Contains(err.Error(), want) || errors.As(err, new(*hprof.DamageError)) {
				t.Errorf("%d bytes, then %v: %q, want %q", limit, failure, err, want)
			}
			// The first read that fails is at the end of the file, or after a
			// part of the heap that Open skips.
			var at int
			if _, scanned := fmt.Sscanf(err.Error(), "read the dump at offset %d:", &at); scanned != nil &&
				(limit >= headerLen || !strings.HasPrefix(err.Error(), "read the header: ")) {
				t.Errorf("%d bytes, then %v: %q", limit, failure, err)
			}
			if limit >= headerLen && (at < limit || at >= size) {
				t.Errorf("%d bytes, then %v: %q", limit, failure, err)
			}
			if r.calls > 40 {
				t.Errorf("%d bytes, then %v: read %d times", limit, failure, r.calls)
			}
		}
	}
}

// TestScannerFails makes reads fail after the file was opened.
func TestScannerFails(t *testing.T) {
	d := newDump(hprof.Format102, 4)
	population(d, 3<<20)
	r := &faulty{data: d.b, limit: len(d.b), err: io.EOF}
	f, err := hprof.Open(context.Background(), r, d.len())
	if err != nil {
		t.Fatal(err)
	}
	r.limit = 2_000_000
	s := f.Scanner(f.Snapshots[0].Segments)
	n := 0
	for s.Next() {
		n++
		if s.Offset >= int64(r.limit) {
			t.Fatalf("got a record at %d, after the end of the file", s.Offset)
		}
	}
	if err := s.Err(); err == nil ||
		err.Error() != "read the dump at offset 2000000: the file became shorter while it was read" {
		t.Error(err)
	}
	calls := r.calls
	if n == 0 || s.Next() || s.Truncated() != -1 || r.calls != calls {
		t.Errorf("after %d records and an error, Next reads %d more times and reports truncation at %d", n,
			r.calls-calls,
			s.Truncated())
	}
	r.limit = len(d.b)
	if s.Reset(f.Snapshots[0].Segments[:1]); !s.Next() || s.Err() != nil {
		t.Errorf("Reset: %v", s.Err())
	}
}

// canceling is a context that is canceled at its nth check.
type canceling struct {
	io.ReaderAt
	left   int
	cancel context.CancelFunc
}

func (c *canceling) ReadAt(b []byte, at int64) (int, error) {
	if c.left--; c.left == 0 {
		c.cancel()
	}
	return c.ReaderAt.ReadAt(b, at)
}

func TestOpenCanceled(t *testing.T) {
	d := newDump(hprof.Format103, 4)
	for i := range 100_000 {
		d.record(hprof.TagString, hprof.ID(i), "0123456789abcdef")
	}
	for calls := 1; calls < 8; calls++ {
		ctx, cancel := context.WithCancel(context.Background())
		r := &canceling{bytes.NewReader(d.b), calls, cancel}
		f, err := hprof.Open(ctx, r, d.len())
		if !errors.Is(err, context.Canceled) {
			t.Errorf("canceled at read %d: %v", calls, err)
		}
		// A canceled scan may still return the strings in the window, and up to
		// 256 more.
		if most := calls * (256 << 10) / 29; f.Strings.Len() > most+256 || r.left < -1 {
			t.Errorf("canceled at read %d: %d strings, %d more reads", calls, f.Strings.Len(), -r.left)
		}
		cancel()
	}
}
