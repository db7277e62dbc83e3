package hproftest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// className returns the name of a class as the runtime writes it in dumps:
// HotSpot writes a/B, [I and [La/B;.
func (d *dump) className(c *Class) string {
	if d.Runtime == ART {
		return c.name
	}
	return jvmName(c)
}

func jvmName(c *Class) string {
	if c.component == nil {
		return strings.ReplaceAll(c.name, ".", "/")
	}
	switch e := c.component; {
	case e.primitive != 0:
		return "[" + string(" ..ZCFDBSIJ"[e.primitive-1])
	case e.component != nil:
		return "[" + jvmName(e)
	default:
		return "[L" + jvmName(e) + ";"
	}
}

// hotSpotHead writes symbols, classes and the stack traces of threads. Trace
// number 1 is empty; all objects refer to it.
func (d *dump) hotSpotHead() {
	frames := d.hotSpotFrames()
	for _, s := range d.listed {
		d.w.String(d.names[s], s)
	}
	for _, c := range d.used {
		d.w.LoadClass(hprof.LoadedClass{
			Serial: d.serials[c], Class: d.of(c.ref), Trace: 1, Name: d.names[d.className(c)],
		})
	}
	d.w.Trace(hprof.Trace{Serial: 1})
	for i, t := range d.threads {
		trace := hprof.Trace{Serial: uint32(i + 2), Thread: t.Serial}
		for _, f := range frames[i] {
			d.w.Frame(f)
			trace.Frames = append(trace.Frames, f.ID)
		}
		d.w.Trace(trace)
	}
}

// hotSpotFrames parses the frames of threads.
func (d *dump) hotSpotFrames() (all [][]hprof.Frame) {
	id := hprof.ID(0)
	for _, t := range d.threads {
		var frames []hprof.Frame
		for _, text := range t.frames {
			id++
			call, place, _ := strings.Cut(strings.TrimSuffix(text, ")"), "(")
			dot := max(strings.LastIndexByte(call, '.'), 0)
			source, number, _ := strings.Cut(place, ":")
			line, err := strconv.Atoi(number)
			if err != nil {
				line = -1
			}
			f := hprof.Frame{
				ID: id, Method: d.name(strings.TrimPrefix(call[dot:], ".")), Signature: d.name("()V"),
				Source: d.name(source), Line: int32(line),
			}
			if c := d.byName[call[:dot]]; c != nil {
				f.Class = d.serials[c]
			}
			frames = append(frames, f)
		}
		all = append(all, frames)
	}
	return all
}

// hotSpotBody returns the steps that write classes, objects and roots, in this
// order (services/heapDumper.cpp, VM_HeapDumper::doit).
func (d *dump) hotSpotBody() []step {
	var classes, objects []Ref
	for _, r := range d.order {
		if d.objects[r].shape == ofClass && !d.Shuffle {
			classes = append(classes, r)
		} else {
			objects = append(objects, r)
		}
	}
	slices.Reverse(classes)
	all := append(classes, objects...)
	return []step{
		each(len(all), func(i int) { d.hotSpotObject(all[i]) }),
		d.ballast.write(d),
		once(d.hotSpotRoots),
	}
}

func (d *dump) hotSpotObject(r Ref) {
	switch o := &d.objects[r]; o.shape {
	case ofClass:
		d.hotSpotClass(o.class)
	case ofText:
		d.hotSpotString(r, o)
	case ofFields:
		d.instance(r, o)
	default:
		d.class(o.class)
		d.plain(r, o)
	}
}

func (d *dump) hotSpotClass(c *Class) {
	d.statics, d.fields = d.statics[:0], d.fields[:0]
	for _, s := range c.statics {
		v := s.value
		if s.kind == hprof.Object {
			v = uint64(d.of(Ref(v)))
		}
		d.statics = append(d.statics, hprof.Static{Name: d.name(s.name), Type: s.kind, Value: v})
	}
	for _, i := range d.fieldOrder(c) {
		d.fields = append(d.fields, hprof.Field{Name: d.name(c.fields[i].name), Type: c.fields[i].kind})
	}
	dump := hprof.Class{
		ID: d.class(c), Trace: 1, Loader: d.of(c.loader), Statics: d.statics, Fields: d.fields, Super: d.class(c.super),
	}
	if c.component == nil {
		dump.InstanceSize = uint32(d.dataSize(c))
	}
	d.w.Class(&dump)
}

// hotSpotString writes a String and its byte[].
func (d *dump) hotSpotString(r Ref, o *object) {
	data := latinOrUTF16(o.text)
	coder := uint64(1)
	if isLatin(o.text) {
		coder = 0
	}
	d.hotSpotText(d.of(r), d.class(o.class), uint64(javaHash(o.text)), coder, d.values[r], data)
}

func (d *dump) hotSpotText(id, class hprof.ID, hash, coder uint64, value hprof.ID, data []byte) {
	// These are the fields of a String in reverse order: hash, coder, value.
	d.buf = d.value(d.buf[:0], hprof.Int, hash)
	d.buf = d.value(d.buf, hprof.Byte, coder)
	d.buf = d.value(d.buf, hprof.Object, uint64(value))
	d.w.Instance(id, 1, class, d.buf)
	d.w.PrimitiveArray(value, 1, hprof.Byte, data)
}

// hotSpotRoots writes the roots of threads and JNI, and the classes of the boot
// class loader.
func (d *dump) hotSpotRoots() {
	for i, t := range d.threads {
		d.w.Root(hprof.Root{
			Kind: hprof.SubRootThreadObject, Object: d.of(t.Ref), Thread: t.Serial, Trace: uint32(i + 2),
		})
		for _, r := range d.roots {
			if r.thread == t.Serial && withinThread(r.kind) >= 0 {
				d.w.Root(hprof.Root{Kind: r.kind, Object: d.of(r.object), Thread: r.thread, Frame: r.frame})
			}
		}
	}
	for _, r := range d.roots {
		if withinThread(r.kind) < 0 && (r.kind <= hprof.SubRootThreadObject || r.kind == hprof.SubRootUnknown) {
			d.w.Root(hprof.Root{Kind: r.kind, Object: d.of(r.object)})
		}
	}
	for _, c := range d.classes {
		if c.loader == 0 && c.component == nil && c.only != ART {
			d.w.Root(hprof.Root{Kind: hprof.SubRootStickyClass, Object: d.of(c.ref)})
		}
	}
}
