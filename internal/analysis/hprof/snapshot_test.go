package hprof_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// heaps formats the objects of each snapshot of a dump: one digit per object, a
// space between segments, a dot at the end of a snapshot.
func heaps(t *testing.T, d *dump) (all []string) {
	t.Helper()
	f := open(t, d.b)
	for _, snapshot := range f.Snapshots {
		var parts []string
		for _, g := range snapshot.Segments {
			s := f.Scanner([]hprof.Segment{g})
			var b strings.Builder
			for s.Next() {
				fmt.Fprint(&b, s.Object)
			}
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
			parts = append(parts, b.String())
		}
		text := strings.Join(parts, " ")
		if snapshot.Ended {
			text += "."
		}
		all = append(all, text)
	}
	agree(t, d.b)
	return all
}

// TestSnapshots reads files with several heaps, because the hprof agent writes
// one heap for each request.
func TestSnapshots(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"", ""},
		{"c1", "1"},
		{"s1", "1"},
		{"s1 s2 e", "1 2."},
		// Each complete HEAP_DUMP is a heap.
		{"c1 c2", "1|2"},
		{"c1 n n c2 n c3", "1|2|3"},
		{"c1 s2", "1 2"},
		{"s1 c2", "1|2"},
		// Several end records count as one.
		{"s1 e s2 e", "1.|2."},
		{"s1 s2 e s3 s4", "1 2.|3 4"},
		{"c1 e c2 e", "1.|2."},
		{"s1 e s2", "1.|2"},
		// Without an end record, segments belong together, whatever records are
		// between them.
		{"s1 n s2 n n s3", "1 2 3"},
		{"n s1 n e n", "1."},
		{"e s1", "1"},
		{"e", ""},
		{"s1 e e s2 e", "1.|2."},
	} {
		for _, format := range []string{hprof.Format101, hprof.Format102, hprof.Format103} {
			d := newDump(format, 4)
			for _, word := range strings.Fields(c.script) {
				body := func() { d.root(hprof.SubRootStickyClass, hprof.ID(word[1]-'0')) }
				switch word[0] {
				case 'c':
					d.segment(hprof.TagHeapDump, body)
				case 's':
					d.segment(hprof.TagHeapDumpSegment, body)
				case 'e':
					d.record(hprof.TagHeapDumpEnd)
				case 'n':
					d.record(hprof.TagString, hprof.ID(1), "between")
				}
			}
			if got := strings.Join(heaps(t, d), "|"); got != c.want {
				t.Errorf("%q was read as %q, want %q", c.script, got, c.want)
			}
		}
	}
}

// TestHeapOfSegment checks heap names: each segment names the heap of its
// objects, and the name applies to that segment only.
func TestHeapOfSegment(t *testing.T) {
	info := func(d *dump, heap rune, name hprof.ID) { d.put(hprof.SubHeapInfo, uint32(heap), name) }
	d := newDump(hprof.Format103, 4)
	d.segment(hprof.TagHeapDumpSegment, func() {
		d.instance(1, 2, "")
		info(d, 'Z', 100)
		d.instance(2, 2, "")
		info(d, 'A', 101)
		d.primitives(3, hprof.Byte, 1, "x")
	})
	d.segment(hprof.TagHeapDumpSegment, func() { d.class(4, 0); d.objects(5, 6) })
	d.record(hprof.TagString, hprof.ID(101), "app")
	d.segment(hprof.TagHeapDumpSegment, func() { info(d, 'A', 101) })
	d.segment(hprof.TagHeapDumpSegment, func() { d.instance(7, 2, ""); info(d, 0, 102); d.instance(8, 2, "") })
	f := open(t, d.b)
	for _, size := range []int64{0, 1 << 20} {
		got := map[hprof.ID]string{}
		for _, chunk := range f.Snapshots[0].Chunks(size) {
			s := f.Scanner(chunk)
			for s.Next() {
				if s.Kind != hprof.SubHeapInfo {
					got[s.Object] = fmt.Sprintf("%d %d", s.Heap, s.HeapName)
				}
			}
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
		}
		want := map[hprof.ID]string{1: "0 0", 2: "90 100", 3: "65 101", 4: "0 0", 5: "0 0", 7: "0 0", 8: "0 102"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("in chunks of %d: %v, want %v", size, got, want)
		}
	}
	agree(t, d.b)
}

// TestNamesAfterTheHeap checks that records may be in any order, and that the
// IDs of objects and of strings are separate.
func TestNamesAfterTheHeap(t *testing.T) {
	d := newDump(hprof.Format102, 4)
	d.segment(hprof.TagHeapDump, func() { d.instance(7, 8, "x"); d.class(8, 0) })
	d.record(hprof.TagLoadClass, uint32(1), hprof.ID(8), uint32(0), hprof.ID(7))
	d.record(hprof.TagStackTrace, uint32(2), uint32(3), uint32(1), hprof.ID(9))
	d.record(hprof.TagStackFrame, hprof.ID(9), hprof.ID(8), hprof.ID(8), hprof.ID(9), uint32(1), int32(-1))
	d.record(hprof.TagString, hprof.ID(8), "eight")
	d.record(hprof.TagString, hprof.ID(7), "seven")
	d.record(hprof.TagString, hprof.ID(7), "seven again")
	f := open(t, d.b)
	for id, want := range map[hprof.ID]string{7: "seven", 8: "eight"} {
		if got, ok := f.Strings.Get(id); got != want || !ok {
			t.Errorf("string %d is %q, %v", id, got, ok)
		}
	}
	for _, id := range []hprof.ID{0, 9, 1 << 40} {
		if got, ok := f.Strings.Get(id); got != "" || ok {
			t.Errorf("string %d is %q, %v", id, got, ok)
		}
	}
	if f.Strings.Len() != 3 || f.Classes[0] != (hprof.LoadedClass{Serial: 1, Class: 8, Name: 7}) {
		t.Errorf("%d strings, %v", f.Strings.Len(), f.Classes)
	}
	if want := (hprof.Frame{ID: 9, Method: 8, Signature: 8, Source: 9, Class: 1, Line: -1}); f.Frames[0] != want ||
		f.Traces[0].Frames[0] != 9 {
		t.Errorf("%+v, %+v", f.Frames, f.Traces)
	}
	agree(t, d.b)
	for i := range 500 {
		d.record(hprof.TagString, hprof.ID(1000-i%100), fmt.Sprintf("%d", i))
	}
	f = open(t, d.b)
	for i := range 100 {
		if got, _ := f.Strings.Get(hprof.ID(1000 - i)); got != fmt.Sprint(i) {
			t.Errorf("string %d is %q, want the first of several", 1000-i, got)
		}
	}
}

// TestLongTrace reads a trace that declares many frames, of which 4096 must be
// kept.
func TestLongTrace(t *testing.T) {
	for _, n := range []int{4095, 4096, 4097, 100_000} {
		d := newDump(hprof.Format102, 8)
		frames := &dump{ids: 8}
		for i := range n {
			frames.put(hprof.ID(i))
		}
		d.record(hprof.TagStackTrace, uint32(1), uint32(2), uint32(n), frames.b)
		d.record(hprof.TagString, hprof.ID(1), "after")
		f := open(t, d.b)
		if got := f.Traces[0].Frames; len(got) != min(n, 4096) || got[4000] != 4000 || f.Strings.Len() != 1 {
			t.Errorf("read %d of %d frames", len(got), n)
		}
		agree(t, d.b)
	}
}

// TestChunks checks that the chunks contain all segments, each once and in
// order, and that they are not larger than requested unless they are a single
// segment.
func TestChunks(t *testing.T) {
	var snapshot hprof.Snapshot
	at := int64(100)
	for i := range int64(50) {
		length := i * 37 % 91
		snapshot.Segments = append(snapshot.Segments, hprof.Segment{Offset: at, Length: length})
		at += length + 9
	}
	for size := range int64(400) {
		chunks := snapshot.Chunks(size)
		for i, chunk := range chunks {
			sum := int64(0)
			for _, g := range chunk {
				sum += g.Length
			}
			last := chunk[len(chunk)-1].Length
			if len(chunk) == 0 || sum < size && i < len(chunks)-1 || sum-last >= max(size, 1) {
				t.Fatalf("size %d: chunk %d has %d bytes in %d segments", size, i, sum, len(chunk))
			}
		}
		if !slices.Equal(slices.Concat(chunks...), snapshot.Segments) {
			t.Fatalf("size %d: %v", size, chunks)
		}
	}
	if chunks := new(hprof.Snapshot).Chunks(10); len(chunks) != 0 {
		t.Errorf("chunks without segments: %v", chunks)
	}
}

// TestSegmentsInAnyOrder checks that a scanner accepts segments that are not
// adjacent, and a truncated segment that is not the last.
func TestSegmentsInAnyOrder(t *testing.T) {
	d := newDump(hprof.Format103, 4)
	const segments = 40
	for i := range segments {
		d.segment(hprof.TagHeapDumpSegment, func() {
			d.instance(hprof.ID(2*i), 1, "small")
			d.primitives(hprof.ID(2*i+1), hprof.Byte, 50_000, strings.Repeat("x", 50_000))
		})
	}
	data := d.b[:d.len()-100]
	f := open(t, data)
	all := f.Snapshots[0].Segments
	if len(all) != segments || !all[segments-1].Truncated {
		t.Fatal(all)
	}
	for _, stride := range []int{1, 3, 7, segments - 1} {
		var order []hprof.Segment
		var want []hprof.ID
		for i := range segments {
			k := (segments - 1 + i*stride) % segments
			order = append(order, all[k])
			if want = append(want, hprof.ID(2*k)); k < segments-1 {
				want = append(want, hprof.ID(2*k+1))
			}
		}
		var got []hprof.ID
		s := f.Scanner(order)
		for s.Next() {
			got = append(got, s.Object)
		}
		if !slices.Equal(got, want) || s.Err() != nil || s.Truncated() != all[segments-1].Offset+1+4+4+4+4+5 {
			t.Errorf("stride %d: %v, truncated at %d (%v)", stride, got, s.Truncated(), s.Err())
		}
	}
}
