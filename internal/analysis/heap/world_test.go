package heap_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// world is a heap that a test declares. It is written into a dump, and read by
// the naive algorithms of naive_test.go.
type world struct {
	idSize  int
	classes []*class
	objects []*object
	roots   []root
	// older holds objects that are written before all others, some of them with
	// the same IDs as later ones.
	older []*object
	// jvm selects class names as HotSpot writes them.
	jvm bool
	// model is the size model that the naive algorithms use.
	model heap.SizeModel
}

// class is a class that a test declares in a world. Its object, which is
// written as CLASS_DUMP, may or may not be in the world.
type class struct {
	name    string
	super   *class
	size    uint32
	fields  []field
	statics []static
	object  *object
	// loader, signers and domain are references in the class record.
	loader, signers, domain *object
	// If nameless is true, the class has no LOAD_CLASS record.
	nameless bool
}

type field struct {
	name string
	kind hprof.Type
}

type static struct {
	field
	value value
}

// value is a reference, which may be nil, or the bits of a value of another
// type.
type value struct {
	object *object
	bits   uint64
}

// object is an instance, an array or a class object in a world. A reference to
// an object that is not in the world dangles.
type object struct {
	id   hprof.ID
	kind hprof.SubTag
	// class is the class of an instance; for a class object, it is the class
	// that the object represents.
	class *class
	// values holds an instance's fields; those of the most derived class come
	// first.
	values   []value
	elements []*object
	element  hprof.Type
	count    uint32
	heap     uint32
	// n is the object's index in the world.
	n int
}

type root struct {
	kind   hprof.SubTag
	object *object
}

var heapNames = map[uint32]string{0: "default", 'A': "app", 'I': "image", 'Z': "zygote"}

// class declares a class and puts its object into the world.
func (w *world) class(name string, super *class, size uint32, fields ...field) *class {
	c := &class{name: name, super: super, size: size, fields: fields}
	c.object = w.add(&object{kind: hprof.SubClassDump, class: c})
	w.classes = append(w.classes, c)
	return c
}

func (w *world) add(o *object) *object {
	w.objects = append(w.objects, o)
	return o
}

func (w *world) instance(c *class, values ...value) *object {
	for len(values) < len(c.layout()) {
		values = append(values, value{})
	}
	return w.add(&object{kind: hprof.SubInstance, class: c, values: values})
}

func (w *world) array(c *class, elements ...*object) *object {
	return w.add(&object{kind: hprof.SubObjectArray, class: c, elements: elements})
}

func (w *world) primitives(t hprof.Type, count uint32) *object {
	return w.add(&object{kind: hprof.SubPrimitiveArray, element: t, count: count})
}

func (w *world) noData(t hprof.Type, count uint32) *object {
	return w.add(&object{kind: hprof.SubPrimitiveArrayNoData, element: t, count: count})
}

func (w *world) root(kind hprof.SubTag, o *object) { w.roots = append(w.roots, root{kind, o}) }

func refs(objects ...*object) (list []value) {
	for _, o := range objects {
		list = append(list, value{object: o})
	}
	return list
}

// placed is a field with the class that declares it.
type placed struct {
	field
	owner *class
}

// layout returns the fields of an instance, in the order of their values.
func (c *class) layout() (list []placed) {
	for k := c; k != nil; k = k.super {
		for _, f := range k.fields {
			list = append(list, placed{f, k})
		}
	}
	return list
}

// number assigns each object its index, and assigns IDs aligned to 8 bytes to
// objects without an ID.
func (w *world) number() {
	for i, o := range w.objects {
		o.n = i
		if o.id == 0 {
			o.id = hprof.ID(0x1000 + 8*i)
		}
	}
}

// has reports whether an object is in the world.
func (w *world) has(o *object) bool {
	return o != nil && o.n < len(w.objects) && w.objects[o.n] == o
}

// form configures how a world is written.
type form struct {
	segments hproftest.Segmentation
	// order permutes the objects; if it is nil, the objects keep their order.
	order []int
	// rootsAt is the index of the object before which the roots are written.
	rootsAt int
	// namesLast writes strings and classes after the heap.
	namesLast bool
}

// written is a dump, with the offsets at which the records of its objects end.
type written struct {
	dump []byte
	ends []int64
	// roots holds the end of each root's record.
	roots []int64
}

func (w *world) dump(tb testing.TB) []byte { return w.write(tb, form{}).dump }

// write numbers the objects of the world and writes it.
func (w *world) write(tb testing.TB, f form) written {
	tb.Helper()
	w.number()
	var out bytes.Buffer
	hw := hproftest.NewWriter(&out, hprof.Header{Format: hprof.Format103, IDSize: w.idSize})
	d := dumper{Writer: hw, world: w, names: map[string]hprof.ID{}, ends: make([]int64, len(w.objects))}
	if f.segments != (hproftest.Segmentation{}) {
		hw.Segment(f.segments)
	}
	if !f.namesLast {
		d.head()
	}
	for _, o := range w.older {
		d.object(o)
	}
	for i := range w.objects {
		if i == f.rootsAt {
			d.writeRoots()
		}
		o := w.objects[i]
		if f.order != nil {
			o = w.objects[f.order[i]]
		}
		d.object(o)
		d.ends[o.n] = hw.Written()
	}
	if f.rootsAt >= len(w.objects) {
		d.writeRoots()
	}
	if f.namesLast {
		d.head()
	}
	hw.EndHeap()
	if err := hw.Close(); err != nil {
		tb.Fatal(err)
	}
	return written{out.Bytes(), d.ends, d.roots}
}

// dumper writes a world.
type dumper struct {
	*hproftest.Writer
	*world
	names map[string]hprof.ID
	heap  uint32
	ends  []int64
	roots []int64
	body  []byte
	ids   []hprof.ID
}

// name returns the ID of a string. IDs are derived from the contents, so all of
// them are known before the heap is written.
func (d *dumper) name(s string) hprof.ID {
	id, ok := d.names[s]
	if !ok {
		// The number is the FNV-1a hash of the string, so it does not depend on
		// the order of the calls.
		h := uint32(2166136261)
		for _, b := range []byte(s) {
			h = (h ^ uint32(b)) * 16777619
		}
		id = hprof.ID(h)
		d.names[s] = id
	}
	return id
}

// head writes the strings and the loaded classes.
func (d *dumper) head() {
	texts := map[string]bool{}
	for _, name := range heapNames {
		texts[name] = true
	}
	for _, c := range d.classes {
		texts[d.written(c.name)] = true
		for _, f := range c.fields {
			texts[f.name] = true
		}
		for _, f := range c.statics {
			texts[f.name] = true
		}
	}
	sorted := make([]string, 0, len(texts))
	for text := range texts {
		sorted = append(sorted, text)
	}
	slices.Sort(sorted)
	for _, text := range sorted {
		d.String(d.name(text), text)
	}
	for i, c := range d.classes {
		if !c.nameless {
			d.LoadClass(hprof.LoadedClass{Serial: uint32(i + 1), Class: c.object.id, Name: d.name(d.written(c.name))})
		}
	}
}

// written returns a class name in the runtime's spelling.
func (d *dumper) written(name string) string {
	if !d.jvm {
		return name
	}
	element := strings.TrimRight(name, "[]")
	depth := (len(name) - len(element)) / 2
	if depth == 0 {
		return strings.ReplaceAll(name, ".", "/")
	}
	letters := map[string]string{
		"boolean": "Z", "char": "C", "float": "F", "double": "D", "byte": "B", "short": "S", "int": "I", "long": "J",
	}
	if letter := letters[element]; letter != "" {
		return strings.Repeat("[", depth) + letter
	}
	return strings.Repeat("[", depth) + "L" + strings.ReplaceAll(element, ".", "/") + ";"
}

func (d *dumper) writeRoots() {
	for _, r := range d.world.roots {
		d.Root(hprof.Root{Kind: r.kind, Object: r.object.id, Frame: -1})
		d.roots = append(d.roots, d.Written())
	}
}

func (d *dumper) object(o *object) {
	if o.heap != d.heap {
		d.heap = o.heap
		d.HeapInfo(o.heap, d.name(heapNames[o.heap]))
	}
	switch o.kind {
	case hprof.SubClassDump:
		d.Class(d.classDump(o.class))
	case hprof.SubInstance:
		d.Instance(o.id, 0, o.class.object.id, d.fields(o))
	case hprof.SubObjectArray:
		d.ids = d.ids[:0]
		for _, e := range o.elements {
			d.ids = append(d.ids, idOf(e))
		}
		d.ObjectArray(o.id, 0, o.class.object.id, d.ids)
	case hprof.SubPrimitiveArray:
		d.PrimitiveArray(o.id, 0, o.element, d.data(o))
	case hprof.SubPrimitiveArrayNoData:
		d.PrimitiveArrayNoData(o.id, 0, o.element, o.count)
	}
}

// data returns the elements of a primitive array, which are derived from its
// ID.
func (w *world) data(o *object) []byte {
	b := make([]byte, int(o.count)*o.element.Size(w.idSize))
	for i := range b {
		b[i] = byte(uint64(o.id)*31 + uint64(i)*uint64(i)>>8)
	}
	return b
}

// fields returns the contents of the record of an instance.
func (d *dumper) fields(o *object) []byte {
	d.body = d.body[:0]
	for i, f := range o.class.layout() {
		d.body = d.append(d.body, f.kind, o.values[i])
	}
	return d.body
}

func idOf(o *object) hprof.ID {
	if o == nil {
		return 0
	}
	return o.id
}

func (d *dumper) classDump(c *class) *hprof.Class {
	dump := &hprof.Class{
		ID: c.object.id, InstanceSize: c.size, Loader: idOf(c.loader), Signers: idOf(c.signers), Domain: idOf(c.domain),
	}
	if c.super != nil {
		dump.Super = c.super.object.id
	}
	for _, s := range c.statics {
		v := s.value.bits
		if s.kind == hprof.Object {
			v = uint64(idOf(s.value.object))
		}
		dump.Statics = append(dump.Statics, hprof.Static{Name: d.name(s.name), Type: s.kind, Value: v})
	}
	for _, f := range c.fields {
		dump.Fields = append(dump.Fields, hprof.Field{Name: d.name(f.name), Type: f.kind})
	}
	return dump
}

// append adds the bytes of a value.
func (d *dumper) append(b []byte, t hprof.Type, v value) []byte {
	bits := v.bits
	if t == hprof.Object {
		bits = uint64(idOf(v.object))
	}
	var all [8]byte
	binary.BigEndian.PutUint64(all[:], bits)
	return append(b, all[8-t.Size(d.idSize):]...)
}
