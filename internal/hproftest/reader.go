package hproftest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Record is a record of a dump, as read by Parse. Sub is set only in records
// inside the heap, which follow the record of their segment.
type Record struct {
	// Offset is the record's position; Length is the size of the body of a
	// record outside the heap.
	Offset, Length int
	Tag            hprof.Tag
	// Body is the body of a record outside the heap.
	Body []byte

	Sub hprof.SubTag
	// Heap is the ID of the heap in the latest HEAP_DUMP_INFO of this segment;
	// Name is the string ID of the heap's name.
	Heap uint32
	Name hprof.ID
	Root hprof.Root
	// Dump is the content of a CLASS_DUMP record.
	Dump hprof.Class
	// Object is the ID of an instance or array; Class is the ID of its class;
	// Type is the element type of a primitive array.
	Object, Class hprof.ID
	Trace, Count  uint32
	Type          hprof.Type
	// Data holds the field values of an instance or the elements of an array.
	Data []byte
}

// Parse reads an entire dump in the simplest way, as a second implementation
// for tests. It trusts the lengths in the file and does not support the
// peculiarities of real dumps. It stops at the first error and returns the
// preceding records together with the error.
func Parse(data []byte) (hprof.Header, []Record, error) {
	var h hprof.Header
	format, rest, ok := bytes.Cut(data, []byte{0})
	if !ok || len(rest) < 12 {
		return h, nil, fmt.Errorf("no header in %d bytes", len(data))
	}
	p := &parser{data: data, at: len(format) + 1, end: len(data)}
	h = hprof.Header{Format: string(format), IDSize: int(p.number(4))}
	h.Time = time.UnixMilli(int64(p.number(8))).UTC()
	p.ids = h.IDSize
	for p.at < len(data) && p.err == nil {
		p.record()
	}
	return h, p.records, p.err
}

type parser struct {
	data    []byte
	at, end int
	ids     int
	records []Record
	err     error
}

// take returns the next n bytes, or zeros if there are not enough.
func (p *parser) take(n int) []byte {
	if n < 0 || n > p.end-p.at {
		if p.err == nil {
			p.err = fmt.Errorf("%d bytes at %d exceed the enclosing record, which ends at %d", n, p.at, p.end)
		}
		return make([]byte, min(max(n, 0), 8))
	}
	p.at += n
	return p.data[p.at-n : p.at]
}

func (p *parser) number(n int) (v uint64) {
	for _, b := range p.take(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (p *parser) u4() uint32   { return uint32(p.number(4)) }
func (p *parser) id() hprof.ID { return hprof.ID(p.number(p.ids)) }

func (p *parser) kind() hprof.Type {
	t := hprof.Type(p.number(1))
	if t.Size(p.ids) == 0 && p.err == nil {
		p.err = fmt.Errorf("%v at %d", t, p.at-1)
	}
	return t
}

func (p *parser) record() {
	r := Record{Offset: p.at}
	r.Tag = hprof.Tag(p.number(1))
	p.u4()
	r.Length = int(p.u4())
	if r.Tag != hprof.TagHeapDump && r.Tag != hprof.TagHeapDumpSegment {
		r.Body = p.take(r.Length)
		p.records = append(p.records, r)
		return
	}
	p.records = append(p.records, r)
	if p.err == nil && r.Length > p.end-p.at {
		p.err = fmt.Errorf("segment of %d bytes at %d exceeds the file of %d bytes", r.Length, r.Offset, p.end)
		return
	}
	p.end = p.at + r.Length
	var heap uint32
	var name hprof.ID
	for p.at < p.end && p.err == nil {
		s := Record{Offset: p.at, Tag: r.Tag}
		s.Sub = hprof.SubTag(p.number(1))
		if s.Sub == hprof.SubHeapInfo {
			heap, name = p.u4(), p.id()
		}
		s.Heap, s.Name = heap, name
		p.heapRecord(&s)
		p.records = append(p.records, s)
	}
	p.end = len(p.data)
}

func (p *parser) heapRecord(r *Record) {
	switch r.Sub {
	case hprof.SubHeapInfo:
	case hprof.SubClassDump:
		p.class(&r.Dump)
		r.Object = r.Dump.ID
	case hprof.SubInstance:
		r.Object, r.Trace, r.Class, r.Count = p.id(), p.u4(), p.id(), p.u4()
		r.Data = p.take(int(r.Count))
	case hprof.SubObjectArray:
		r.Object, r.Trace, r.Count, r.Class = p.id(), p.u4(), p.u4(), p.id()
		r.Data = p.take(int(r.Count) * p.ids)
	case hprof.SubPrimitiveArray:
		r.Object, r.Trace, r.Count, r.Type = p.id(), p.u4(), p.u4(), p.kind()
		r.Data = p.take(int(r.Count) * r.Type.Size(p.ids))
	case hprof.SubPrimitiveArrayNoData:
		r.Object, r.Trace, r.Count, r.Type = p.id(), p.u4(), p.u4(), p.kind()
	default:
		p.root(r)
	}
}

func (p *parser) root(r *Record) {
	r.Root = hprof.Root{Kind: r.Sub, Object: p.id(), Frame: -1}
	r.Object = r.Root.Object
	switch r.Sub {
	case 0xff, 5, 7, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x90:
	case 1:
		p.id()
	case 2, 3, 0x8e:
		r.Root.Thread, r.Root.Frame = p.u4(), int32(p.u4())
	case 4, 6:
		r.Root.Thread = p.u4()
	case 8:
		r.Root.Thread, r.Root.Trace = p.u4(), p.u4()
	default:
		p.err = fmt.Errorf("%v at %d", r.Sub, r.Offset)
	}
}

func (p *parser) class(c *hprof.Class) {
	c.ID, c.Trace, c.Super, c.Loader, c.Signers, c.Domain = p.id(), p.u4(), p.id(), p.id(), p.id(), p.id()
	p.take(2 * p.ids)
	c.InstanceSize = p.u4()
	for n := p.number(2); n > 0 && p.err == nil; n-- {
		p.take(2)
		p.take(p.kind().Size(p.ids))
	}
	for n := p.number(2); n > 0 && p.err == nil; n-- {
		s := hprof.Static{Name: p.id(), Type: p.kind()}
		s.Value = p.number(s.Type.Size(p.ids))
		c.Statics = append(c.Statics, s)
	}
	for n := p.number(2); n > 0 && p.err == nil; n-- {
		c.Fields = append(c.Fields, hprof.Field{Name: p.id(), Type: p.kind()})
	}
}
