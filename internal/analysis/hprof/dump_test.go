package hprof_test

import (
	"encoding/binary"
	"fmt"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// dump is a heap dump that is built byte by byte, valid or not, without using
// the Writer of hproftest.
type dump struct {
	b   []byte
	ids int
}

// headerLen is the length of the header, in bytes.
const headerLen = 31

func newDump(format string, ids int) *dump {
	d := &dump{ids: ids}
	d.put(format, uint8(0), uint32(ids), uint64(1_700_000_000_000))
	return d
}

func (d *dump) len() int64 { return int64(len(d.b)) }

// put appends values in big-endian order; an hprof.ID takes as many bytes as
// the dump's ID size.
func (d *dump) put(values ...any) *dump {
	for _, v := range values {
		switch v := v.(type) {
		case hprof.ID:
			if d.ids == 8 {
				d.b = binary.BigEndian.AppendUint64(d.b, uint64(v))
			} else {
				d.b = binary.BigEndian.AppendUint32(d.b, uint32(v))
			}
		case hprof.Tag:
			d.b = append(d.b, byte(v))
		case hprof.SubTag:
			d.b = append(d.b, byte(v))
		case hprof.Type:
			d.b = append(d.b, byte(v))
		case uint8:
			d.b = append(d.b, v)
		case uint16:
			d.b = binary.BigEndian.AppendUint16(d.b, v)
		case uint32:
			d.b = binary.BigEndian.AppendUint32(d.b, v)
		case int32:
			d.b = binary.BigEndian.AppendUint32(d.b, uint32(v))
		case uint64:
			d.b = binary.BigEndian.AppendUint64(d.b, v)
		case string:
			d.b = append(d.b, v...)
		case []byte:
			d.b = append(d.b, v...)
		default:
			panic(fmt.Sprintf("no bytes for a %T", v))
		}
	}
	return d
}

// record appends a record with the correct length and returns the offset of its
// header.
func (d *dump) record(tag hprof.Tag, values ...any) int64 {
	at := d.len()
	d.put(tag, uint32(0), uint32(0)).put(values...)
	d.declare(at, uint32(d.len()-at-9))
	return at
}

// declare changes the length in the record header at the given offset.
func (d *dump) declare(at int64, length uint32) { binary.BigEndian.PutUint32(d.b[at+5:], length) }

// segment appends a segment with the bytes that body writes, and returns the
// offset of its header.
func (d *dump) segment(tag hprof.Tag, body func()) int64 {
	at := d.record(tag)
	body()
	d.declare(at, uint32(d.len()-at-9))
	return at
}

func (d *dump) instance(id, class hprof.ID, fields string) int64 {
	at := d.len()
	d.put(hprof.SubInstance, id, uint32(1), class, uint32(len(fields)), fields)
	return at
}

func (d *dump) objects(id, class hprof.ID, elements ...hprof.ID) int64 {
	at := d.len()
	d.put(hprof.SubObjectArray, id, uint32(2), uint32(len(elements)), class)
	for _, e := range elements {
		d.put(e)
	}
	return at
}

func (d *dump) primitives(id hprof.ID, t hprof.Type, count uint32, data string) int64 {
	at := d.len()
	d.put(hprof.SubPrimitiveArray, id, uint32(3), count, t, data)
	return at
}

// class appends a class with a constant, and with a static field and an
// instance field of each type.
func (d *dump) class(id, super hprof.ID) int64 {
	at := d.len()
	d.put(hprof.SubClassDump, id, uint32(4), super, hprof.ID(11), hprof.ID(12), hprof.ID(13), hprof.ID(0), hprof.ID(0),
		uint32(40))
	d.put(uint16(1), uint16(7), hprof.Int, uint32(0xdeadbeef))
	d.put(uint16(len(types)))
	for i, t := range types {
		d.put(hprof.ID(100+i), t, "\x01\x02\x03\x04\x05\x06\x07\x08"[:t.Size(d.ids)])
	}
	d.put(uint16(len(types)))
	for i, t := range types {
		d.put(hprof.ID(200+i), t)
	}
	return at
}

var types = []hprof.Type{
	hprof.Object, hprof.Boolean, hprof.Char, hprof.Float, hprof.Double, hprof.Byte, hprof.Short, hprof.Int, hprof.Long,
}

func rootKinds() (kinds []hprof.SubTag) {
	for t := range 256 {
		if k := hprof.SubTag(t); k.IsRoot() {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// root appends a root of the given kind: its ID, and the values that this kind
// requires.
func (d *dump) root(kind hprof.SubTag, id hprof.ID) int64 {
	at := d.len()
	d.put(kind, id)
	switch kind {
	case hprof.SubRootJNIGlobal:
		d.put(hprof.ID(0))
	case hprof.SubRootNativeStack, hprof.SubRootThreadBlock:
		d.put(uint32(5))
	case hprof.SubRootJNILocal, hprof.SubRootJavaFrame, hprof.SubRootJNIMonitor:
		d.put(uint32(5), int32(-1))
	case hprof.SubRootThreadObject:
		d.put(uint32(5), uint32(6))
	}
	return at
}

// whole returns a dump with a record of every kind, in one snapshot of three
// segments; the second segment names the heap of its objects.
func whole(format string, ids int) *dump {
	d := newDump(format, ids)
	d.record(hprof.TagString, hprof.ID(100), "name")
	d.record(hprof.TagString, hprof.ID(101), "\xc0\x80\xed\xa0\xbd\xed\xb8\x80")
	d.record(hprof.TagLoadClass, uint32(1), hprof.ID(20), uint32(2), hprof.ID(100))
	d.record(hprof.TagUnloadClass, uint32(1))
	d.record(hprof.TagStackFrame, hprof.ID(0), hprof.ID(100), hprof.ID(101), hprof.ID(0), uint32(1), int32(-3))
	d.record(hprof.TagStackTrace, uint32(2), uint32(5), uint32(2), hprof.ID(0), hprof.ID(1))
	d.record(hprof.TagStartThread, uint32(5), hprof.ID(30), uint32(2), hprof.ID(100), hprof.ID(101), hprof.ID(0))
	d.record(hprof.TagEndThread, uint32(5))
	d.record(hprof.TagAllocSites, "sites")
	d.record(hprof.TagHeapSummary, "summary")
	d.record(hprof.TagCPUSamples, "samples")
	d.record(hprof.TagControlSettings, uint32(0), uint16(0))
	tag := hprof.TagHeapDumpSegment
	if format == hprof.Format101 {
		tag = hprof.TagHeapDump
	}
	d.segment(tag, func() {
		for i, kind := range rootKinds() {
			d.root(kind, hprof.ID(20+i))
		}
		d.instance(30, 20, "fields")
	})
	if tag == hprof.TagHeapDump {
		// A second HEAP_DUMP would start another snapshot.
		tag = hprof.TagHeapDumpSegment
	}
	d.segment(tag, func() {
		d.put(hprof.SubHeapInfo, uint32('A'), hprof.ID(100))
		d.class(20, 0)
		d.instance(31, 20, "")
		d.objects(32, 21, 30, 31, 0)
		d.objects(33, 21)
		for i, t := range types[1:] {
			d.primitives(hprof.ID(40+i), t, 2, "0123456789abcdef"[:2*t.Size(ids)])
			d.put(hprof.SubPrimitiveArrayNoData, hprof.ID(50+i), uint32(3), uint32(0xffffffff), t)
		}
	})
	d.segment(tag, func() {
		d.primitives(60, hprof.Long, 0, "")
		d.instance(61, 20, "after")
	})
	if format != hprof.Format101 {
		d.record(hprof.TagHeapDumpEnd)
	}
	d.record(hprof.TagString, hprof.ID(102), "after the heap")
	return d
}
