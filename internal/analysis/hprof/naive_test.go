package hprof_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/recorded"
)

// naive is a second reader: it holds the whole dump in memory, copies each
// record, and detects every invalid length because it runs out of bytes.
type naive struct {
	header    hprof.Header
	truncated int64
	// damage is the offset of damage at the top level, or -1.
	damage   int64
	warnings int
	names    map[hprof.ID]string
	strings  int
	classes  []hprof.LoadedClass
	frames   []hprof.Frame
	traces   []hprof.Trace
	threads  []hprof.Thread
	heaps    []naiveHeap
}

type naiveHeap struct {
	segments          []hprof.Segment
	ended             bool
	items             []item
	truncated, damage int64
}

// item is one record inside a heap. Body is the part after its header; Dump
// describes the contents of a CLASS_DUMP.
type item struct {
	Kind          hprof.SubTag
	Offset        int64
	Object, Class hprof.ID
	Trace, Count  uint32
	Type          hprof.Type
	Heap          uint32
	HeapName      hprof.ID
	Body          string
	Root          hprof.Root
	Dump          string
}

// cursor reads values from a part of the file, in order.
type cursor struct {
	b   []byte
	ids int
}

// These are the two ways in which a record can be invalid.
type (
	tooShort struct{}
	wrong    struct{}
)

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		panic(tooShort{})
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) u1() uint8    { return c.take(1)[0] }
func (c *cursor) u2() uint16   { return binary.BigEndian.Uint16(c.take(2)) }
func (c *cursor) u4() uint32   { return binary.BigEndian.Uint32(c.take(4)) }
func (c *cursor) id() hprof.ID { return hprof.ID(c.bits(c.ids)) }

func (c *cursor) bits(n int) (v uint64) {
	for _, b := range c.take(uint64(n)) {
		v = v<<8 + uint64(b)
	}
	return v
}

func (c *cursor) kind() (hprof.Type, int) {
	t := hprof.Type(c.u1())
	size, ok := map[hprof.Type]int{2: c.ids, 4: 1, 5: 2, 6: 4, 7: 8, 8: 1, 9: 2, 10: 4, 11: 8}[t]
	if !ok {
		panic(wrong{})
	}
	return t, size
}

// caught runs f and returns its panic value.
func caught(f func()) (reason any) {
	defer func() {
		reason = recover()
		switch reason.(type) {
		case nil, tooShort, wrong:
		default:
			panic(reason)
		}
	}()
	f()
	return nil
}

func readNaive(data []byte) *naive {
	n := &naive{truncated: -1, damage: -1, names: map[hprof.ID]string{}}
	magic := min(len(data), len("JAVA PROFILE 1.0."))
	switch {
	case magic == 0 || string(data[:magic]) != "JAVA PROFILE 1.0."[:magic]:
		n.damage = 0
		return n
	case len(data) < headerLen:
		n.truncated = 0
		return n
	}
	h := hprof.Header{
		Format: strings.SplitN(string(data[:headerLen]), "\x00", 2)[0],
		IDSize: int(int32(binary.BigEndian.Uint32(data[19:]))),
	}
	if !slices.Contains([]string{"JAVA PROFILE 1.0.1", "JAVA PROFILE 1.0.2", "JAVA PROFILE 1.0.3"}, h.Format) {
		n.damage = 0
		return n
	}
	if h.IDSize != 4 && h.IDSize != 8 {
		n.damage = 19
		return n
	}
	// JSON can represent the years 1 to 9999.
	if ms := int64(binary.BigEndian.Uint64(data[23:])); ms >= -62135596800000 && ms < 253402300800000 {
		h.Time = time.UnixMilli(ms).UTC()
	} else {
		n.warnings++
	}
	n.header = h
	n.records(data)
	return n
}

func (n *naive) records(data []byte) {
	closed := false
	for at := headerLen; at < len(data); {
		tag := hprof.Tag(data[at])
		if !isTag(tag) {
			n.damage = int64(at)
			return
		}
		if len(data)-at < 9 {
			n.truncated = int64(at)
			return
		}
		length, body := uint64(binary.BigEndian.Uint32(data[at+5:])), data[at+9:]
		isHeap, cut := tag == 0x0c || tag == 0x1c, length > uint64(len(body))
		if isHeap {
			s := hprof.Segment{Offset: int64(at + 9), Length: min(int64(length), int64(len(body))), Truncated: cut}
			if length == 0 && goesOn(body) {
				length, s.Length, s.Truncated = uint64(len(body)), int64(len(body)), true
				n.warnings++
			}
			empty := s.Length == 0 && !s.Truncated
			if len(n.heaps) == 0 || !empty && (closed || tag == 0x0c) && len(n.heaps[len(n.heaps)-1].segments) > 0 {
				n.heaps = append(n.heaps, naiveHeap{segments: []hprof.Segment{}, truncated: -1, damage: -1})
				closed = false
			}
			if !empty {
				h := &n.heaps[len(n.heaps)-1]
				if closed {
					closed, h.ended = false, false
				}
				h.segments = append(h.segments, s)
				h.read(data, s, n.header.IDSize)
			}
		}
		if cut {
			n.truncated = int64(at)
			return
		}
		if tag == 0x2c {
			closed = true
			if len(n.heaps) > 0 {
				n.heaps[len(n.heaps)-1].ended = true
			}
		}
		if !isHeap && caught(func() { n.record(tag, &cursor{body[:length], n.header.IDSize}) }) != nil {
			n.damage = int64(at)
			return
		}
		at += 9 + int(length)
	}
}

func isTag(t hprof.Tag) bool {
	return strings.IndexByte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x1c\x2c", byte(t)) >= 0
}

func isSubTag(t byte) bool {
	return strings.IndexByte("\xff\x01\x02\x03\x04\x05\x06\x07\x08\x20\x21\x22\x23\x89\x8a\x8b\x8c\x8d\x8e\x90\xc3\xfe",
		t) >= 0
}

// goesOn reports whether b starts with a heap of undeclared length rather than
// with top-level records. It assumes top-level records only if 16 of them are
// valid, or all of those before the next heap if there are fewer.
func goesOn(b []byte) bool {
	if len(b) == 0 || !isSubTag(b[0]) {
		return false
	}
	for range 16 {
		if len(b) == 0 || isTag(hprof.Tag(b[0])) && len(b) < 9 {
			return false
		}
		if !isTag(hprof.Tag(b[0])) {
			return true
		}
		length := uint64(binary.BigEndian.Uint32(b[5:]))
		if b[0] == 0x0c || b[0] == 0x1c {
			return length > 0 && len(b) > 9 && !isSubTag(b[9])
		}
		if length > uint64(len(b)-9) {
			return true
		}
		b = b[9+length:]
	}
	return false
}

func (n *naive) record(tag hprof.Tag, c *cursor) {
	switch tag {
	case 0x01:
		id := c.id()
		n.strings++
		if _, twice := n.names[id]; !twice {
			n.names[id] = string(c.b)
		}
	case 0x02:
		n.classes = append(n.classes, hprof.LoadedClass{Serial: c.u4(), Class: c.id(), Trace: c.u4(), Name: c.id()})
	case 0x04:
		n.frames = append(n.frames,
			hprof.Frame{
				ID: c.id(), Method: c.id(), Signature: c.id(), Source: c.id(), Class: c.u4(), Line: int32(c.u4()),
			})
	case 0x05:
		t := hprof.Trace{Serial: c.u4(), Thread: c.u4(), Frames: []hprof.ID{}}
		f := cursor{nil, c.ids}
		for f.b = c.take(uint64(c.u4()) * uint64(c.ids)); len(f.b) > 0 && len(t.Frames) < 4096; {
			t.Frames = append(t.Frames, f.id())
		}
		n.traces = append(n.traces, t)
	case 0x0a:
		t := hprof.Thread{Serial: c.u4(), Object: c.id(), Trace: c.u4(), Name: c.id(), Group: c.id()}
		c.id()
		n.threads = append(n.threads, t)
	}
}

func (h *naiveHeap) read(data []byte, s hprof.Segment, ids int) {
	c := &cursor{data[s.Offset:][:s.Length], ids}
	var heap uint32
	var name hprof.ID
	for len(c.b) > 0 && h.damage < 0 {
		i := item{Offset: s.Offset + s.Length - int64(len(c.b)), Heap: heap, HeapName: name}
		switch reason := caught(func() { c.item(&i) }).(type) {
		case tooShort:
			if s.Truncated {
				h.truncated = i.Offset
				return
			}
			h.damage = i.Offset
		case wrong:
			h.damage = i.Offset
		default:
			_ = reason
			heap, name = i.Heap, i.HeapName
			h.items = append(h.items, i)
		}
	}
}

func (c *cursor) item(i *item) {
	i.Kind = hprof.SubTag(c.u1())
	switch i.Kind {
	case 0x20:
		c.class(i)
	case 0x21:
		i.Object, i.Trace, i.Class, i.Count = c.id(), c.u4(), c.id(), c.u4()
		// A class cannot have so many fields.
		if head := uint32(9 + 2*c.ids); i.Count > 4<<20-head && uint64(i.Count) <= uint64(len(c.b)) {
			panic(wrong{})
		}
		i.Body = string(c.take(uint64(i.Count)))
	case 0x22:
		i.Object, i.Trace, i.Count, i.Class = c.id(), c.u4(), c.u4(), c.id()
		i.Body = string(c.take(uint64(i.Count) * uint64(c.ids)))
	case 0x23, 0xc3:
		i.Object, i.Trace, i.Count = c.id(), c.u4(), c.u4()
		t, size := c.kind()
		if i.Type = t; t == hprof.Object {
			panic(wrong{})
		}
		if i.Kind == 0x23 {
			i.Body = string(c.take(uint64(i.Count) * uint64(size)))
		}
	case 0xfe:
		i.Heap, i.HeapName = c.u4(), c.id()
	default:
		c.rootItem(i)
	}
}

func (c *cursor) rootItem(i *item) {
	if !isSubTag(byte(i.Kind)) {
		panic(wrong{})
	}
	i.Object = c.id()
	i.Root = hprof.Root{Kind: i.Kind, Object: i.Object, Frame: -1}
	switch i.Kind {
	case 0x01:
		c.id()
	case 0x04, 0x06:
		i.Root.Thread = c.u4()
	case 0x02, 0x03, 0x8e:
		i.Root.Thread, i.Root.Frame = c.u4(), int32(c.u4())
	case 0x08:
		i.Root.Thread, i.Root.Trace = c.u4(), c.u4()
	}
}

func (c *cursor) class(i *item) {
	d := c.classDump()
	i.Object, i.Trace, i.Dump = d.ID, d.Trace, fmt.Sprint(d)
}

func (c *cursor) classDump() hprof.Class {
	d := hprof.Class{ID: c.id(), Trace: c.u4(), Super: c.id(), Loader: c.id(), Signers: c.id(), Domain: c.id()}
	c.id()
	c.id()
	d.InstanceSize = c.u4()
	for range c.u2() {
		c.u2()
		_, size := c.kind()
		c.bits(size)
	}
	for range c.u2() {
		name := c.id()
		t, size := c.kind()
		d.Statics = append(d.Statics, hprof.Static{Name: name, Type: t, Value: c.bits(size)})
	}
	fields := cursor{nil, c.ids}
	for fields.b = c.take(uint64(c.u2()) * uint64(c.ids+1)); len(fields.b) > 0; {
		name := fields.id()
		t, _ := fields.kind()
		d.Fields = append(d.Fields, hprof.Field{Name: name, Type: t})
	}
	return d
}

// items returns everything that a Scanner reads, with pieces joined.
func items(t testing.TB, s *hprof.Scanner, ids int) (all []item) {
	t.Helper()
	var class hprof.Class
	for s.Next() {
		if s.Piece {
			last := &all[len(all)-1]
			size := s.Type.Size(ids)
			if s.Kind == hprof.SubObjectArray {
				size = ids
			}
			if last.Kind != s.Kind || last.Offset != s.Offset || int64(s.First)*int64(size) != int64(len(last.Body)) ||
				len(s.Body) == 0 || len(s.Body)%size != 0 {
				t.Fatalf("piece of %d bytes of %v at %d starts at element %d, after %d bytes of %v at %d", len(s.Body),
					s.Kind, s.Offset, s.First, len(last.Body), last.Kind, last.Offset)
			}
			last.Body += string(s.Body)
			continue
		}
		i := item{Kind: s.Kind, Offset: s.Offset, Object: s.Object, Heap: s.Heap, HeapName: s.HeapName}
		switch {
		case s.First != 0:
			t.Fatalf("%v at %d begins with element %d", s.Kind, s.Offset, s.First)
		case s.Kind.IsRoot():
			i.Root = s.Root()
		case s.Kind == hprof.SubHeapInfo:
			i.Object = 0
		case s.Kind == hprof.SubClassDump:
			s.ReadClass(&class)
			i.Trace, i.Dump = s.Trace, fmt.Sprint(class)
		default:
			i.Trace, i.Count, i.Body = s.Trace, s.Count, string(s.Body)
			if s.Kind == hprof.SubInstance || s.Kind == hprof.SubObjectArray {
				i.Class = s.Class
			} else {
				i.Type = s.Type
			}
		}
		all = append(all, i)
	}
	return all
}

// damageAt returns the offset in a *DamageError, or -1 for no error; any other
// error fails the test.
func damageAt(t testing.TB, err error) int64 {
	t.Helper()
	if err == nil {
		return -1
	}
	var damage *hprof.DamageError
	if !errors.As(err, &damage) || damage.Record == "" || damage.Reason == "" {
		t.Fatalf("%#v", err)
	}
	return damage.Offset
}

// agree reads a dump with both readers and checks that the results are equal.
func agree(t testing.TB, data []byte) (*naive, *hprof.File) {
	t.Helper()
	want := readNaive(data)
	f, err := hprof.Open(context.Background(), bytes.NewReader(data), int64(len(data)))
	if at := damageAt(t, err); at != want.damage || f.Truncated != want.truncated {
		t.Fatalf("truncated at %d, damaged at %d (%v); want %d, %d", f.Truncated, at, err, want.truncated, want.damage)
	}
	if f.Header != want.header || len(f.Warnings) != want.warnings {
		t.Fatalf("header %+v, want %+v; %d warnings, want %d", f.Header, want.header, len(f.Warnings), want.warnings)
	}
	for _, c := range []struct{ what, got, want any }{
		{"classes", f.Classes, want.classes}, {"frames", f.Frames, want.frames}, {"traces", f.Traces, want.traces},
		{"threads", f.Threads, want.threads}, {"strings", f.Strings.Len(), want.strings},
		{"snapshots", len(f.Snapshots), len(want.heaps)},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Fatalf("%s: %.300s\nwant %.300s", c.what, fmt.Sprintf("%+v", c.got), fmt.Sprintf("%+v", c.want))
		}
	}
	for id, text := range want.names {
		if got, ok := f.Strings.Get(id); !ok || got != hprof.DecodeString([]byte(text[:min(len(text), 65535)])) {
			t.Fatalf("string 0x%x is %.300q, %v; want %.300q", uint64(id), got, ok, text)
		}
	}
	s := f.Scanner(nil)
	for i := range f.Snapshots {
		agreeHeap(t, s, f.IDSize, &f.Snapshots[i], &want.heaps[i])
	}
	return want, f
}

func agreeHeap(t testing.TB, s *hprof.Scanner, ids int, snapshot *hprof.Snapshot, want *naiveHeap) {
	t.Helper()
	if !slices.Equal(snapshot.Segments, want.segments) || snapshot.Ended != want.ended {
		t.Fatalf("snapshot %+v\nwant %+v, %v", *snapshot, want.segments, want.ended)
	}
	s.Contents = true
	s.Reset(snapshot.Segments)
	got := items(t, s, ids)
	sameItems(t, got, want.items)
	if at := damageAt(t, s.Err()); at != want.damage || s.Truncated() != want.truncated {
		t.Fatalf("scan truncated at %d, damaged at %d (%v); want %d, %d", s.Truncated(), at, s.Err(), want.truncated,
			want.damage)
	}
	for range 2 {
		if s.Next() {
			t.Fatal("the scanner continues after the end")
		}
	}

	// The same dump is read in chunks, without contents, and starting with the
	// last chunk.
	bare := slices.Clone(want.items)
	for i := range bare {
		if bare[i].Kind == hprof.SubPrimitiveArray {
			bare[i].Body = ""
		}
	}
	s.Contents = false
	sizes := []int64{0, 300, 1 << 20}
	if len(bare) > 1000 {
		sizes = []int64{64 << 10}
	}
	for _, size := range sizes {
		var all []item
		for _, chunk := range snapshot.Chunks(size) {
			s.Reset(chunk)
			all = append(all, items(t, s, ids)...)
			if s.Err() != nil {
				break
			}
		}
		sameItems(t, all, bare)
	}
	if want.damage >= 0 || len(bare) > 30_000 {
		return
	}
	reversed := slices.Clone(snapshot.Segments)
	slices.Reverse(reversed)
	s.Reset(reversed)
	all := items(t, s, ids)
	slices.SortFunc(all, func(a, b item) int { return int(a.Offset - b.Offset) })
	sameItems(t, all, bare)
	if s.Truncated() != want.truncated {
		t.Fatalf("segments in reverse order: truncated at %d, want %d", s.Truncated(), want.truncated)
	}
}

func sameItems(t testing.TB, got, want []item) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("record %d: %.300s\nwant %.300s", i, fmt.Sprintf("%+v", got[i]), fmt.Sprintf("%+v", want[i]))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
}

var dumps = []string{
	"ahat-O.hprof", "ahat-RI.hprof", "leak_service_binder.hprof", "hprof-32.bin", "hprof-64.bin",
	"pyhprof-example-java.hprof",
	"mat-sun_jdk6_32bit.hprof", "mat-sun_jdk6_18_x32.hprof", "mat-sun_jdk6_30_x64_compressedOops.hprof",
	"mat-openjdk_jdk11_04_x64.hprof.gz",
}

// TestAgree reads every recorded dump with both readers, completely and
// truncated in its heap.
func TestAgree(t *testing.T) {
	for _, name := range dumps {
		t.Run(name, func(t *testing.T) {
			data := recorded.Read(t, "hprof", name)
			agree(t, data)
			if len(data) > 4<<20 {
				return
			}
			want, f := agree(t, data[:len(data)*7/8])
			if f.Truncated < 0 || len(want.heaps) == 0 {
				t.Errorf("truncated dump: truncated at %d, %d heaps", f.Truncated, len(want.heaps))
			}
		})
	}
}

// seeds returns small dumps of all formats, complete and truncated.
func seeds() (all [][]byte) {
	for _, ids := range []int{4, 8} {
		for _, format := range []string{hprof.Format101, hprof.Format102, hprof.Format103} {
			d := whole(format, ids)
			all = append(all, d.b, d.b[:len(d.b)*2/3])
		}
		d := newDump(hprof.Format102, ids)
		d.segment(hprof.TagHeapDump, func() { d.instance(1, 2, "first") })
		d.segment(hprof.TagHeapDump, func() { d.instance(1, 2, "second") })
		d.record(hprof.TagHeapDumpEnd)
		d.segment(hprof.TagHeapDumpSegment, func() { d.root(hprof.SubRootStickyClass, 1) })
		at := d.segment(hprof.TagHeapDump, func() { d.class(1, 2); d.root(hprof.SubRootJNIGlobal, 1) })
		d.declare(at, 0)
		all = append(all, d.b, newDump(hprof.Format103, ids).b)
	}
	return all
}

// FuzzOpen checks that, for any bytes, both readers agree and memory is
// proportional to the size of the file.
func FuzzOpen(f *testing.F) {
	for _, data := range seeds() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<20 {
			return
		}
		agree(t, data)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		file, err := hprof.Open(context.Background(), bytes.NewReader(data), int64(len(data)))
		s := file.Scanner(nil)
		s.Contents = true
		for _, snapshot := range file.Snapshots {
			for s.Reset(snapshot.Segments); s.Next(); {
			}
		}
		runtime.ReadMemStats(&after)
		// Open's buffer takes 256 KiB, and a scanner's 512 KiB, or 4 MiB for
		// longer records.
		if got, bound := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+64*len(data)); got > bound {
			t.Fatalf("allocated %d bytes for a dump of %d (%v)", got, len(data), err)
		}
	})
}
