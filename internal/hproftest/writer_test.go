package hproftest_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// script is a sequence of bytes that determines calls; after its end, every
// byte that is read is zero.
type script struct{ rest []byte }

func (s *script) byte() byte {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

func (s *script) u4() uint32 {
	return uint32(s.byte())<<24 | uint32(s.byte())<<16 | uint32(s.byte())
}

func (s *script) bytes(n int) []byte {
	b := make([]byte, n)
	copy(b, s.rest)
	s.rest = s.rest[min(n, len(s.rest)):]
	return b
}

// author makes the calls that a script determines and records the expected
// result.
type author struct {
	script
	w    *hproftest.Writer
	ids  int
	want []hproftest.Record
	// heap and name are the number and the name of the heap of the next object.
	heap uint32
	name hprof.ID
	// ends is the number of calls that must end a segment.
	ends int
}

func (a *author) id() hprof.ID {
	if a.ids == 8 {
		return hprof.ID(a.u4())<<32 | hprof.ID(a.u4())
	}
	return hprof.ID(a.u4())
}

func (a *author) kind() hprof.Type {
	return [...]hprof.Type{
		hprof.Object, hprof.Boolean, hprof.Char, hprof.Float, hprof.Double, hprof.Byte, hprof.Short, hprof.Int,
		hprof.Long,
	}[a.byte()%9]
}

func (a *author) element() hprof.Type {
	if t := a.kind(); t != hprof.Object {
		return t
	}
	return hprof.Byte
}

// outside adds a record outside the heap to the expected ones.
func (a *author) outside(tag hprof.Tag, body ...any) {
	a.heap, a.name = 0, 0
	a.ends++
	a.want = append(a.want, hproftest.Record{Tag: tag, Body: a.encode(body...)})
}

func (a *author) encode(values ...any) []byte {
	b := []byte{}
	for _, v := range values {
		switch v := v.(type) {
		case hprof.ID:
			if a.ids == 4 {
				b = binary.BigEndian.AppendUint32(b, uint32(v))
			} else {
				b = binary.BigEndian.AppendUint64(b, uint64(v))
			}
		case uint32:
			b = binary.BigEndian.AppendUint32(b, v)
		case []byte:
			b = append(b, v...)
		}
	}
	return b
}

func (a *author) inHeap(r hproftest.Record) {
	if !r.Sub.IsRoot() {
		r.Heap, r.Name = a.heap, a.name
	}
	a.want = append(a.want, r)
}

// size returns a size, usually a small one.
func (a *author) size() int {
	n := int(a.byte())
	if n > 250 {
		return (n - 250) * 20_000
	}
	return n
}

var roots = []hprof.SubTag{0xff, 1, 2, 3, 4, 5, 6, 7, 8, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x90}

func (a *author) call() {
	switch a.byte() % 20 {
	case 0:
		id, text := a.id(), string(a.bytes(int(a.byte()%16)))
		a.w.String(id, text)
		a.outside(hprof.TagString, id, []byte(naiveModified(text)))
	case 1:
		id, raw := a.id(), a.bytes(a.size())
		a.w.RawString(id, raw)
		a.outside(hprof.TagString, id, raw)
	case 2:
		c := hprof.LoadedClass{Serial: a.u4(), Class: a.id(), Trace: a.u4(), Name: a.id()}
		a.w.LoadClass(c)
		a.outside(hprof.TagLoadClass, c.Serial, c.Class, c.Trace, c.Name)
	case 3:
		f := hprof.Frame{
			ID: a.id(), Method: a.id(), Signature: a.id(), Source: a.id(), Class: a.u4(), Line: int32(a.u4()),
		}
		a.w.Frame(f)
		a.outside(hprof.TagStackFrame, f.ID, f.Method, f.Signature, f.Source, f.Class, uint32(f.Line))
	case 4:
		t := hprof.Trace{Serial: a.u4(), Thread: a.u4()}
		body := []byte{}
		for range a.byte() % 8 {
			t.Frames = append(t.Frames, a.id())
			body = append(body, a.encode(t.Frames[len(t.Frames)-1])...)
		}
		a.w.Trace(t)
		a.outside(hprof.TagStackTrace, t.Serial, t.Thread, uint32(len(t.Frames)), body)
	case 5:
		t := hprof.Thread{Serial: a.u4(), Object: a.id(), Trace: a.u4(), Name: a.id(), Group: a.id()}
		a.w.Thread(t)
		a.outside(hprof.TagStartThread, t.Serial, t.Object, t.Trace, t.Name, t.Group, hprof.ID(0))
		a.w.EndThread(t.Serial)
		a.outside(hprof.TagEndThread, t.Serial)
	case 6:
		a.w.EndHeap()
		a.outside(hprof.TagHeapDumpEnd)
	case 7:
		body := a.bytes(a.size())
		a.w.Record(hprof.TagCPUSamples, a.u4(), body)
		a.outside(hprof.TagCPUSamples, body)
	case 8:
		a.w.EndSegment()
		a.heap, a.name = 0, 0
		a.ends++
	case 9:
		a.heap, a.name = a.u4(), a.id()
		a.w.HeapInfo(a.heap, a.name)
	case 10, 11, 12:
		a.root()
	case 13:
		a.class()
	case 14, 15:
		r := hproftest.Record{
			Sub: hprof.SubInstance, Object: a.id(), Trace: a.u4(), Class: a.id(), Data: a.bytes(a.size()),
		}
		r.Count = uint32(len(r.Data))
		a.w.Instance(r.Object, r.Trace, r.Class, r.Data)
		a.inHeap(r)
	case 16:
		r := hproftest.Record{Sub: hprof.SubObjectArray, Object: a.id(), Trace: a.u4(), Class: a.id(), Data: []byte{}}
		elements := make([]hprof.ID, a.size())
		for i := range elements {
			elements[i] = a.id()
			r.Data = append(r.Data, a.encode(elements[i])...)
		}
		r.Count = uint32(len(elements))
		a.w.ObjectArray(r.Object, r.Trace, r.Class, elements)
		a.inHeap(r)
	case 17, 18:
		r := hproftest.Record{Sub: hprof.SubPrimitiveArray, Object: a.id(), Trace: a.u4(), Type: a.element()}
		r.Count = uint32(a.size())
		r.Data = a.bytes(int(r.Count) * r.Type.Size(a.ids))
		if a.byte()%2 == 0 {
			a.w.PrimitiveArray(r.Object, r.Trace, r.Type, r.Data)
		} else {
			a.w.PrimitiveArrayFrom(r.Object, r.Trace, r.Type, r.Count, bytes.NewReader(r.Data))
		}
		a.inHeap(r)
	case 19:
		r := hproftest.Record{
			Sub: hprof.SubPrimitiveArrayNoData, Object: a.id(), Trace: a.u4(), Type: a.element(), Count: a.u4(),
		}
		a.w.PrimitiveArrayNoData(r.Object, r.Trace, r.Type, r.Count)
		a.inHeap(r)
	}
}

func (a *author) root() {
	r := hprof.Root{Kind: roots[int(a.byte())%len(roots)], Object: a.id(), Frame: -1}
	switch r.Kind {
	case hprof.SubRootNativeStack, hprof.SubRootThreadBlock:
		r.Thread = a.u4()
	case hprof.SubRootJNILocal, hprof.SubRootJavaFrame, hprof.SubRootJNIMonitor:
		r.Thread, r.Frame = a.u4(), int32(a.u4())
	case hprof.SubRootThreadObject:
		r.Thread, r.Trace = a.u4(), a.u4()
	}
	a.w.Root(r)
	a.inHeap(hproftest.Record{Sub: r.Kind, Object: r.Object, Root: r})
}

func (a *author) class() {
	c := hprof.Class{
		ID: a.id(), Super: a.id(), Loader: a.id(), Signers: a.id(), Domain: a.id(), Trace: a.u4(), InstanceSize: a.u4(),
	}
	for range a.byte() % 8 {
		s := hprof.Static{Name: a.id(), Type: a.kind(), Value: uint64(a.u4())<<32 | uint64(a.u4())}
		s.Value &= 1<<(8*s.Type.Size(a.ids)) - 1
		c.Statics = append(c.Statics, s)
	}
	for range a.byte() % 8 {
		c.Fields = append(c.Fields, hprof.Field{Name: a.id(), Type: a.kind()})
	}
	a.w.Class(&c)
	a.inHeap(hproftest.Record{Sub: hprof.SubClassDump, Object: c.ID, Dump: c})
}

// naiveModified encodes a string directly as specified in JVM specification
// 4.4.7.
func naiveModified(s string) (out string) {
	for _, r := range s {
		units := []rune{r}
		if r > 0xffff {
			units = []rune{0xd800 + (r-0x10000)/0x400, 0xdc00 + (r-0x10000)%0x400}
		}
		for _, u := range units {
			switch {
			case u > 0 && u < 0x80:
				out += string([]byte{byte(u)})
			case u < 0x800:
				out += string([]byte{0xc0 + byte(u/64), 0x80 + byte(u%64)})
			default:
				out += string([]byte{0xe0 + byte(u/4096), 0x80 + byte(u/64%64), 0x80 + byte(u%64)})
			}
		}
	}
	return out
}

// policies lists all segmentations.
var policies = []hproftest.Segmentation{
	hproftest.ARTSegments(), hproftest.HotSpotSegments(), {}, {Single: true}, {Bytes: 300, Fit: true}, {Records: 3},
	{Bytes: 200, Records: 5}, {Bytes: 100_000},
}

// seekable is a file in memory.
type seekable struct {
	data []byte
	at   int64
}

func (f *seekable) Write(b []byte) (int, error) {
	n := copy(f.data[f.at:], b)
	f.data = append(f.data, b[n:]...)
	f.at += int64(len(b))
	return len(b), nil
}

func (f *seekable) Seek(to int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		f.at = to
	}
	return f.at, nil
}

// plain removes records and fields that depend on the segmentation.
func plain(records []hproftest.Record) (out []hproftest.Record) {
	for _, r := range records {
		isSegment := r.Sub == 0 && (r.Tag == hprof.TagHeapDump || r.Tag == hprof.TagHeapDumpSegment)
		if isSegment || r.Sub == hprof.SubHeapInfo {
			continue
		}
		if r.Sub.IsRoot() {
			r.Heap, r.Name = 0, 0
		}
		if r.Sub != 0 {
			r.Tag = 0
		}
		r.Offset, r.Length = 0, 0
		out = append(out, r)
	}
	return out
}

// checkCut checks that a dump is divided into segments as the segmentation
// specifies.
func checkCut(t *testing.T, p hproftest.Segmentation, records []hproftest.Record, ends int) {
	t.Helper()
	segments := 0
	for i := 0; i < len(records); i++ {
		head := records[i]
		if head.Tag != hprof.TagHeapDump && head.Tag != hprof.TagHeapDumpSegment {
			continue
		}
		if p.Single != (head.Tag == hprof.TagHeapDump) {
			t.Fatalf("%+v: segment with tag %d", p, head.Tag)
		}
		segments++
		first := i + 1
		for i+1 < len(records) && records[i+1].Sub != 0 {
			i++
		}
		if first > i {
			t.Fatalf("%+v: segment at %d is empty", p, head.Offset)
		}
		n, last := i-first+1, records[i]
		switch {
		case p.Single && segments > ends+1:
			t.Fatalf("%+v: second heap dump at %d", p, head.Offset)
		case p.Records > 0 && n > p.Records+1: // HEAP_DUMP_INFO is an additional record
			t.Fatalf("%+v: %d records at %d", p, n, head.Offset)
		case p.Fit && n > 2 && head.Length+9 > p.Bytes+9+8:
			t.Fatalf("%+v: %d records with %d bytes at %d", p, n, head.Length, head.Offset)
		case !p.Fit && p.Bytes > 0 && n > 2 && last.Offset-head.Offset >= p.Bytes+9+8:
			t.Fatalf("%+v: segment continues after %d bytes at %d", p, last.Offset-head.Offset, head.Offset)
		}
	}
}

func FuzzWriter(f *testing.F) {
	for n := range 40 {
		f.Add(byte(n), bytes.Repeat([]byte{byte(n), 3, 0xff, 7, 0xc0, 17, 9, 251, 13, 14}, 20+n))
	}
	all := []byte{}
	for i := range 2000 {
		all = append(all, byte(i*7+i/256))
	}
	f.Add(byte(0), all)
	f.Fuzz(func(t *testing.T, how byte, data []byte) {
		if len(data) > 1<<12 {
			return
		}
		ids := 4 << (how & 1)
		policy := policies[int(how>>1)%len(policies)]
		h := hprof.Header{
			Format: [...]string{hprof.Format101, hprof.Format102, hprof.Format103}[int(how)%3], IDSize: ids,
			Time: time.UnixMilli(int64(how) << 33).UTC(),
		}
		var stream bytes.Buffer
		var file seekable
		var want []hproftest.Record
		ends := 0
		for i, out := range []io.Writer{&stream, &file} {
			a := &author{script: script{data}, w: hproftest.NewWriter(out, h), ids: ids}
			a.w.Segment(policy)
			for len(a.rest) > 0 {
				a.call()
			}
			if err := a.w.Close(); err != nil {
				t.Fatal(err)
			}
			if written := int64([2]int{stream.Len(), len(file.data)}[i]); a.w.Written() != written {
				t.Fatalf("Written() = %d, but the dump has %d bytes", a.w.Written(), written)
			}
			want, ends = a.want, a.ends
		}
		if !bytes.Equal(stream.Bytes(), file.data) {
			t.Fatalf("stream and file differ: %d and %d bytes", stream.Len(), len(file.data))
		}
		got, records, err := hproftest.Parse(file.data)
		if err != nil || got != h {
			t.Fatalf("header %+v, want %+v: %v", got, h, err)
		}
		checkCut(t, policy, records, ends)
		compare(t, plain(records), want)
	})
}

func compare(t *testing.T, got, want []hproftest.Record) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("record %d: %.300s\nwant %.300s", i, fmt.Sprintf("%+v", got[i]), fmt.Sprintf("%+v", want[i]))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
}

// TestRewrite writes real dumps again, record by record and with the same
// segments: the bytes must be the same.
func TestRewrite(t *testing.T) {
	for _, name := range []string{"ahat-O.hprof", "leak_service_binder.hprof"} {
		data := recorded.Read(t, "hprof", name)
		h, records, err := hproftest.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w := hproftest.NewWriter(&out, h)
		w.Segment(hproftest.Segmentation{})
		for i := range records {
			rewrite(w, &records[i], h.IDSize)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), data) {
			at := 0
			for at < min(out.Len(), len(data)) && out.Bytes()[at] == data[at] {
				at++
			}
			t.Errorf("%s: %d bytes became %d; they differ at %d", name, len(data), out.Len(), at)
		}
	}
}

func rewrite(w *hproftest.Writer, r *hproftest.Record, idSize int) {
	switch {
	case r.Sub.IsRoot():
		w.Root(r.Root)
	case r.Sub == hprof.SubHeapInfo:
		w.HeapInfo(r.Heap, r.Name)
	case r.Sub == hprof.SubClassDump:
		w.Class(&r.Dump)
	case r.Sub == hprof.SubInstance:
		w.Instance(r.Object, r.Trace, r.Class, r.Data)
	case r.Sub == hprof.SubObjectArray:
		elements := make([]hprof.ID, r.Count)
		for i := range elements {
			elements[i] = hprof.ID(binary.BigEndian.Uint32(r.Data[i*idSize:]))
		}
		w.ObjectArray(r.Object, r.Trace, r.Class, elements)
	case r.Sub == hprof.SubPrimitiveArray:
		w.PrimitiveArray(r.Object, r.Trace, r.Type, r.Data)
	case r.Tag == hprof.TagHeapDumpSegment:
		w.EndSegment()
		w.BeginSegment()
	default:
		w.Record(r.Tag, 0, r.Body)
	}
}

// TestWriterAndScanner reads the Writer's output with the Scanner of package
// hprof.
func TestWriterAndScanner(t *testing.T) {
	var data []byte
	for i := range 60_000 {
		data = append(data, byte(i*31+i/97))
	}
	for _, ids := range []int{4, 8} {
		for _, policy := range policies {
			var out seekable
			a := &author{
				script: script{data}, w: hproftest.NewWriter(&out, hprof.Header{Format: hprof.Format102, IDSize: ids}),
				ids: ids,
			}
			a.w.Segment(policy)
			for len(a.rest) > 0 {
				a.call()
			}
			if err := a.w.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := hprof.Open(context.Background(), bytes.NewReader(out.data), int64(len(out.data)))
			if err != nil || f.Truncated >= 0 {
				t.Fatalf("%+v: truncated at %d, %v", policy, f.Truncated, err)
			}
			var want []hproftest.Record
			for _, r := range a.want {
				if r.Sub != 0 {
					want = append(want, r)
				}
			}
			compare(t, scan(t, f), want)
		}
	}
}

// scan reads the heap of a file with its Scanner.
func scan(t *testing.T, f *hprof.File) (out []hproftest.Record) {
	t.Helper()
	for _, snapshot := range f.Snapshots {
		s := f.Scanner(snapshot.Segments)
		s.Contents = true
		for s.Next() {
			r := hproftest.Record{Sub: s.Kind, Object: s.Object, Heap: s.Heap, Name: s.HeapName}
			switch {
			case s.Kind == hprof.SubHeapInfo:
				continue
			case s.Piece:
				last := &out[len(out)-1]
				last.Data = append(last.Data, s.Body...)
				continue
			case s.Kind.IsRoot():
				r.Root, r.Heap, r.Name = s.Root(), 0, 0
			case s.Kind == hprof.SubClassDump:
				s.ReadClass(&r.Dump)
			default:
				r.Trace, r.Count = s.Trace, s.Count
				if s.Kind != hprof.SubPrimitiveArrayNoData {
					r.Data = append([]byte{}, s.Body...)
				}
				if s.Kind == hprof.SubInstance || s.Kind == hprof.SubObjectArray {
					r.Class = s.Class
				} else {
					r.Type = s.Type
				}
			}
			out = append(out, r)
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
	}
	return out
}

func TestWriterStrings(t *testing.T) {
	for text, want := range map[string]string{
		"":             "",
		"plain":        "plain",
		"a\x00b":       "a\xc0\x80b",
		"\u00e9\u20ac": "\u00e9\u20ac",
		"\U0001f600":   "\xed\xa0\xbd\xed\xb8\x80",
		"\U0010ffff":   "\xed\xaf\xbf\xed\xbf\xbf",
		"x\xffy":       "x\ufffdy",
	} {
		var out bytes.Buffer
		w := hproftest.NewWriter(&out, hprof.Header{Format: hprof.Format103, IDSize: 4})
		w.String(7, text)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, records, err := hproftest.Parse(out.Bytes())
		if err != nil || len(records) != 1 || string(records[0].Body) != "\x00\x00\x00\x07"+want {
			t.Errorf("%q: %v, %v", text, records, err)
		}
		if got := hprof.DecodeString([]byte(want)); got != strings.ToValidUTF8(text, "\ufffd") {
			t.Errorf("%q was read as %q", text, got)
		}
	}
}

// limited is a writer that fails after the given number of bytes.
type limited struct{ left int }

var errFull = errors.New("no space")

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		return l.left, errFull
	}
	l.left -= len(b)
	return len(b), nil
}

func TestWriterKeepsTheFirstError(t *testing.T) {
	head := hprof.Header{Format: hprof.Format103, IDSize: 4}
	for name, c := range map[string]struct {
		do   func(w *hproftest.Writer)
		says string
	}{
		"wide ID": {
			func(w *hproftest.Writer) { w.Instance(1<<32, 0, 1, nil) }, "0x100000000 does not fit into 4 bytes",
		},
		"wide element": {
			func(w *hproftest.Writer) { w.ObjectArray(1, 0, 1, []hprof.ID{1, 1 << 40}) }, "0x10000000000 does not fit",
		},
		"wide static": {func(w *hproftest.Writer) {
			w.Class(&hprof.Class{Statics: []hprof.Static{{Type: hprof.Object, Value: 1 << 33}}})
		}, "does not fit"},
		"invalid root": {
			func(w *hproftest.Writer) { w.Root(hprof.Root{Kind: hprof.SubInstance}) },
			"INSTANCE_DUMP is not a root kind",
		},
		"half an element": {
			func(w *hproftest.Writer) { w.PrimitiveArray(1, 0, hprof.Int, make([]byte, 6)) },
			"6 bytes are not a whole number of int elements",
		},
		"array of objects": {func(w *hproftest.Writer) { w.PrimitiveArray(1, 0, hprof.Object, nil) }, "object"},
		"invalid type": {
			func(w *hproftest.Writer) { w.PrimitiveArrayFrom(1, 0, 3, 1, strings.NewReader("x")) }, "type 3",
		},
		"invalid type without data": {func(w *hproftest.Writer) { w.PrimitiveArrayNoData(1, 0, 99, 1) }, "type 99"},
		"invalid static type": {
			func(w *hproftest.Writer) { w.Class(&hprof.Class{Statics: []hprof.Static{{Type: 1}}}) },
			"fields of type 1 are not supported",
		},
		"invalid field type": {
			func(w *hproftest.Writer) { w.Class(&hprof.Class{Fields: []hprof.Field{{Type: 12}}}) },
			"fields of type 12 are not supported",
		},
		"too many fields": {
			func(w *hproftest.Writer) { w.Class(&hprof.Class{Fields: make([]hprof.Field, 65536)}) },
			"0 static and 65536 instance fields",
		},
		"short generator": {
			func(w *hproftest.Writer) { w.PrimitiveArrayFrom(1, 0, hprof.Long, 100, strings.NewReader("x")) },
			"unexpected EOF",
		},
		"segment as record": {
			func(w *hproftest.Writer) { w.Record(hprof.TagHeapDump, 0, nil) },
			"use the methods that write heap records",
		},
		"too long for 0x1c": {
			func(w *hproftest.Writer) { w.PrimitiveArrayFrom(1, 0, hprof.Long, 1<<29, nil) },
			"do not fit into a segment",
		},
		"record after Close": {func(w *hproftest.Writer) { w.Close(); w.EndHeap() }, "closed"},
		"heap after Close":   {func(w *hproftest.Writer) { w.Close(); w.Instance(1, 0, 1, nil) }, "closed"},
	} {
		var out bytes.Buffer
		w := hproftest.NewWriter(&out, head)
		c.do(w)
		first := w.Err()
		if first == nil || !strings.Contains(first.Error(), c.says) || !strings.HasPrefix(first.Error(), "write ") {
			t.Errorf("%s: %v, want %q", name, first, c.says)
			continue
		}
		n := w.Written()
		w.Instance(1<<40, 0, 0, nil)
		w.String(1, "x")
		w.Root(hprof.Root{Kind: hprof.SubRootUnknown})
		if w.Flush() != first || w.Close() != first || w.Written() != n {
			t.Errorf("%s: got error %v and %d bytes, want %v and %d", name, w.Err(), w.Written(), first, n)
		}
	}
	for _, h := range []hprof.Header{
		{Format: "JAVA PROFILE 1.0", IDSize: 4}, {Format: hprof.Format101, IDSize: 2}, {},
	} {
		w := hproftest.NewWriter(io.Discard, h)
		if w.EndHeap(); w.Close() == nil || w.Written() != 0 {
			t.Errorf("invalid header %+v was written", h)
		}
	}
}

func TestWriterOutputFails(t *testing.T) {
	write := func(out io.Writer) error {
		w := hproftest.NewWriter(out, hprof.Header{Format: hprof.Format103, IDSize: 4})
		for i := range 100 {
			w.PrimitiveArray(hprof.ID(i), 0, hprof.Byte, make([]byte, 3000))
		}
		return w.Close()
	}
	var whole bytes.Buffer
	if err := write(&whole); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 5000, 100_000, whole.Len() - 1} {
		if err := write(&limited{n}); !errors.Is(err, errFull) ||
			!strings.Contains(err.Error(), fmt.Sprintf("offset %d", n)) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
	if err := write(&limited{whole.Len()}); err != nil {
		t.Error(err)
	}
}

// TestWriterLargeArray streams an array that is larger than any buffer, to a
// file that can seek and to a stream, and checks that it is not kept in memory.
func TestWriterLargeArray(t *testing.T) {
	const n = 50 << 20
	h := hprof.Header{Format: hprof.Format102, IDSize: 8}
	file, err := os.Create(filepath.Join(t.TempDir(), "dump"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("before"); err != nil {
		t.Fatal(err)
	}
	var kept int
	for _, single := range []bool{true, false} {
		var out io.Writer = &largest{&kept}
		if single {
			out = file
		}
		w := hproftest.NewWriter(out, h)
		w.Segment(hproftest.Segmentation{Single: single})
		w.Root(hprof.Root{Kind: hprof.SubRootUnknown, Object: 5})
		w.PrimitiveArrayFrom(5, 1, hprof.Byte, n, io.LimitReader(endless{}, n))
		w.PrimitiveArray(6, 1, hprof.Short, []byte{1, 2})
		w.EndHeap()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if kept > 200<<10 {
		t.Errorf("the writer buffered %d bytes at once, want at most 200 kB", kept)
	}
	data, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	_, records, err := hproftest.Parse(data[len("before"):])
	if err != nil || len(records) != 5 || records[0].Tag != hprof.TagHeapDump || len(records[2].Data) != n ||
		!bytes.Equal(records[3].Data, []byte{1, 2}) || records[4].Tag != hprof.TagHeapDumpEnd {
		t.Errorf("%d records, %v", len(records), err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// largest is a writer that records the size of the largest write.
type largest struct{ n *int }

func (l *largest) Write(b []byte) (int, error) {
	*l.n = max(*l.n, len(b))
	return len(b), nil
}

func TestWriterAllocatesNothing(t *testing.T) {
	w := hproftest.NewWriter(io.Discard, hprof.Header{Format: hprof.Format103, IDSize: 4})
	data, elements := make([]byte, 200), make([]hprof.ID, 100)
	class := hprof.Class{
		ID: 1, Statics: []hprof.Static{{Name: 1, Type: hprof.Int}}, Fields: []hprof.Field{{Name: 1, Type: hprof.Int}},
	}
	all := func() {
		w.String(1, "name")
		for range 50 {
			w.HeapInfo('A', 1)
			w.Root(hprof.Root{Kind: hprof.SubRootVMInternal, Object: 1})
			w.Class(&class)
			w.Instance(1, 0, 1, data)
			w.ObjectArray(1, 0, 1, elements)
			w.PrimitiveArray(1, 0, hprof.Byte, data)
		}
		w.EndHeap()
	}
	all()
	if n := testing.AllocsPerRun(20, all); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkWriter(b *testing.B) {
	w := hproftest.NewWriter(io.Discard, hprof.Header{Format: hprof.Format103, IDSize: 4})
	data := make([]byte, 24)
	for b.Loop() {
		w.Instance(1, 0, 1, data)
	}
	b.SetBytes(w.Written() / int64(b.N))
}
