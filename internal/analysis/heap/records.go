package heap

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Record is the contents of an object in the file: an instance's fields, or
// elements of an array. A large array is passed in several consecutive records
// with increasing First. A record is valid only during the call.
type Record struct {
	Object Object
	Kind   hprof.SubTag
	// Type is the element type of a primitive array, Count the number of
	// elements of the array, and First the index of the first element in Body.
	Type  hprof.Type
	Count uint32
	First uint32
	Body  []byte

	graph *Graph
	slot  slot
}

// stretch is a chunk of the file with the lowest and the highest ID of its
// objects.
type stretch struct {
	segments    []hprof.Segment
	least, most uint64
}

// Read calls visit with each of the objects, in no particular order and one at
// a time. It rereads the parts of the file that contain them, on all cores.
// Classes are not read again, because Static returns their contents. Objects
// that occur twice in a damaged dump are passed twice. The error is that of
// ctx, visit or the reader.
func (g *Graph) Read(ctx context.Context, objects []Object, visit func(*Record) error) error {
	if len(objects) == 0 {
		return ctx.Err()
	}
	wanted := make(bitset, (g.Objects+63)/64)
	list := make([]uint64, len(objects))
	for i, o := range objects {
		wanted.set(uint32(o))
		list[i] = uint64(g.ID(o))
	}
	slices.Sort(list)
	var mu sync.Mutex
	return g.scan(ctx, g.chunksOf(list), true, func() func(*hprof.Scanner) error {
		return func(s *hprof.Scanner) error {
			if s.Kind == hprof.SubClassDump {
				return nil
			}
			n := g.ids.find(s.Object)
			if n == none || !wanted.has(n) {
				return nil
			}
			r := Record{
				Object: Object(n), Kind: s.Kind, Type: s.Type, Count: s.Count, First: s.First, Body: s.Body, graph: g,
				slot: g.slots.at(n),
			}
			mu.Lock()
			defer mu.Unlock()
			return visit(&r)
		}
	})
}

// chunksOf returns the parts of the file that may contain the objects with the
// given IDs, which must be sorted.
func (g *Graph) chunksOf(ids []uint64) (list [][]hprof.Segment) {
	for _, s := range g.stretches {
		if i, _ := slices.BinarySearch(ids, s.least); i < len(ids) && ids[i] <= s.most {
			list = append(list, s.segments)
		}
	}
	return list
}

// chunks returns all parts of the file that contain objects.
func (g *Graph) chunks() (list [][]hprof.Segment) {
	for _, s := range g.stretches {
		list = append(list, s.segments)
	}
	return list
}

// scan reads the given chunks on all cores. Each goroutine has its own visit
// function, which is called with each record except roots and heap names.
// Damage ends a chunk; it was reported, or skipped, when the graph was loaded.
func (g *Graph) scan(ctx context.Context, chunks [][]hprof.Segment, contents bool,
	newVisit func() func(*hprof.Scanner) error) error {
	l := &loader{Graph: g, file: g.file, options: Options{Workers: g.workers}, chunks: chunks}
	return l.pool(ctx, func() func(int, []hprof.Segment) error {
		s := g.file.Scanner(nil)
		s.Contents = contents
		visit := newVisit()
		return func(_ int, chunk []hprof.Segment) error {
			s.Reset(chunk)
			for n := 1; s.Next(); n++ {
				if n%shortPatience == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
				if s.Kind.IsRoot() || s.Kind == hprof.SubHeapInfo {
					continue
				}
				if err := visit(s); err != nil {
					return err
				}
			}
			if errors.As(s.Err(), new(*hprof.DamageError)) {
				return nil
			}
			return s.Err()
		}
	})
}

// Ref returns the object that the field with the given name references. If
// several fields have this name, the one of the most derived class is used. Ref
// returns false for null, for objects that are not in the dump, and if there is
// no such field.
func (r *Record) Ref(field string) (Object, bool) {
	b, t, ok := r.bytes(field)
	if !ok || t != hprof.Object {
		return 0, false
	}
	return r.graph.find(readID(b, r.graph.IDSize))
}

// Int returns the value of a field of type boolean, byte, char, short, int or
// long.
func (r *Record) Int(field string) (int64, bool) {
	b, t, ok := r.bytes(field)
	if !ok {
		return 0, false
	}
	return integer(b, t)
}

// integer returns the value of a field of type boolean, byte, char, short, int
// or long. It returns false for a field of another type.
func integer(b []byte, t hprof.Type) (int64, bool) {
	switch t {
	case hprof.Boolean, hprof.Byte:
		return int64(int8(b[0])), true
	case hprof.Char:
		return int64(binary.BigEndian.Uint16(b)), true
	case hprof.Short:
		return int64(int16(binary.BigEndian.Uint16(b))), true
	case hprof.Int:
		return int64(int32(binary.BigEndian.Uint32(b))), true
	case hprof.Long:
		return int64(binary.BigEndian.Uint64(b)), true
	}
	return 0, false
}

// Bool returns the value of a boolean field.
func (r *Record) Bool(field string) (value, ok bool) {
	v, ok := r.Int(field)
	return v != 0, ok
}

// Has reports whether the object has a field with the given name.
func (r *Record) Has(field string) bool {
	_, _, ok := r.graph.field(r.slot, field)
	return ok
}

// Element returns the i-th reference in Body, for an object array. It returns
// false for null and for objects that are not in the dump.
func (r *Record) Element(i int) (Object, bool) {
	size := r.graph.IDSize
	if r.Kind != hprof.SubObjectArray || (i+1)*size > len(r.Body) {
		return 0, false
	}
	return r.graph.find(readID(r.Body[i*size:], size))
}

// Elements returns the number of references in Body.
func (r *Record) Elements() int {
	if r.Kind != hprof.SubObjectArray {
		return 0
	}
	return len(r.Body) / r.graph.IDSize
}

func (r *Record) bytes(name string) ([]byte, hprof.Type, bool) {
	if r.Kind != hprof.SubInstance {
		return nil, 0, false
	}
	at, t, ok := r.graph.field(r.slot, name)
	size := t.Size(r.graph.IDSize)
	if !ok || int(at)+size > len(r.Body) {
		return nil, 0, false
	}
	return r.Body[at:][:size], t, true
}

// fieldKey identifies a field of a class by name; fieldPlace is the field's
// position.
type fieldKey struct {
	slot slot
	name string
}

type fieldPlace struct {
	at uint32
	t  hprof.Type
	ok bool
}

// field finds an instance field and caches the result. It is not safe for
// concurrent use.
func (g *Graph) field(s slot, name string) (uint32, hprof.Type, bool) {
	k := fieldKey{s, name}
	p, known := g.fields[k]
	if !known {
		l := layouts{registry: g.registry, names: g.file.Strings, idSize: g.IDSize}
		p.at, p.t, p.ok = l.field(s, name)
		if g.fields == nil {
			g.fields = map[fieldKey]fieldPlace{}
		}
		g.fields[k] = p
	}
	return p.at, p.t, p.ok
}

// Static returns the object that a static field of a class references.
func (g *Graph) Static(class, field string) (Object, bool) {
	v, ok := g.static(class, field)
	if !ok || v.Type != hprof.Object {
		return 0, false
	}
	return g.find(hprof.ID(v.Value))
}

// StaticInt returns the value of a static field of type boolean or of an
// integer type.
func (g *Graph) StaticInt(class, field string) (int64, bool) {
	v, ok := g.static(class, field)
	switch {
	case !ok:
		return 0, false
	case v.Type == hprof.Boolean || v.Type == hprof.Byte:
		return int64(int8(v.Value)), true
	case v.Type == hprof.Char:
		return int64(uint16(v.Value)), true
	case v.Type == hprof.Short:
		return int64(int16(v.Value)), true
	case v.Type == hprof.Int:
		return int64(int32(v.Value)), true
	case v.Type == hprof.Long:
		return int64(v.Value), true
	}
	return 0, false
}

// static searches all classes with the given name: if a class was loaded twice,
// the static fields of the unused copy may have no values.
func (g *Graph) static(class, field string) (found hprof.Static, ok bool) {
	for _, s := range g.named(class) {
		dump := g.registry.list[s].dump
		if dump == nil {
			continue
		}
		for _, v := range dump.Statics {
			if name, there := g.fieldName(&g.registry.list[s], v.Name, v.Type); there && name == field &&
				(!ok || v.Value != 0) {
				found, ok = v, true
			}
		}
	}
	return found, ok
}

// named returns the slots of the classes with the given name.
func (g *Graph) named(class string) (list []slot) {
	for s := named; s < slot(len(g.registry.list)); s++ {
		if g.registry.list[s].name == class {
			list = append(list, s)
		}
	}
	return list
}

// HasClass reports whether the dump has a class with the given name.
func (g *Graph) HasClass(name string) bool { return len(g.named(name)) > 0 }

// InstancesOf returns the objects of a class and of its subclasses, reachable
// or not, in the order of their IDs.
func (g *Graph) InstancesOf(class string) []Object { return g.instances(g.family(class)) }

// Exactly returns the objects of a class, excluding those of its subclasses.
func (g *Graph) Exactly(class string) []Object {
	in := make([]bool, len(g.registry.list))
	for s := range g.registry.list {
		in[s] = g.registry.list[s].name == class
	}
	return g.instances(in)
}

// InstanceOf reports whether an object is an instance of a class or of one of
// its subclasses.
func (g *Graph) InstanceOf(o Object, class string) bool {
	return g.derived(g.slots.at(uint32(o)), class)
}

func (g *Graph) derived(s slot, class string) bool {
	for range longestChain {
		c := &g.registry.list[s]
		if c.name == class {
			return true
		}
		if c.super == 0 {
			return false
		}
		s = c.super
	}
	return false
}

func (g *Graph) family(class string) []bool {
	in := make([]bool, len(g.registry.list))
	for s := range in {
		in[s] = g.derived(slot(s), class)
	}
	return in
}

func (g *Graph) instances(in []bool) (list []Object) {
	if !slices.Contains(in, true) {
		return nil
	}
	for n := range uint32(g.Objects) {
		if in[g.slots.at(n)] {
			list = append(list, Object(n))
		}
	}
	return list
}

// Roots calls f with each GC root that the dump declares and whose object
// exists.
func (g *Graph) Roots(f func(hprof.Root, Object)) {
	for _, r := range g.roots[:len(g.roots)-g.implied] {
		f(r, Object(g.ids.find(r.Object)))
	}
}

// Tops calls f with the objects at the top of the dominator tree: those that no
// single object dominates.
func (g *Graph) Tops(f func(Object)) {
	for v := uint32(1); v < uint32(len(g.tree.ends)); v = g.tree.ends[v] {
		f(Object(g.tree.objects[v]))
	}
}

// Children calls f with the objects that an object immediately dominates,
// except for leaves that only this object references: use References and Read
// to find those.
func (g *Graph) Children(o Object, f func(Object)) {
	v := g.tree.vertices[o]
	if v == 0 || !g.ownVertex(uint32(o)) {
		return
	}
	for c := v + 1; c < g.tree.ends[v]; c = g.tree.ends[c] {
		f(Object(g.tree.objects[c]))
	}
}

// References calls f with the objects to which the fields of an instance, or
// the elements in Body, have strong, soft or weak references.
func (r *Record) References(f func(Object)) {
	if r.Kind == hprof.SubObjectArray {
		for i := range r.Elements() {
			if o, ok := r.Element(i); ok {
				f(o)
			}
		}
		return
	}
	if r.Kind != hprof.SubInstance {
		return
	}
	c := &r.graph.registry.list[r.slot]
	for _, at := range c.offsets {
		r.reference(int(at), f)
	}
	if c.referent >= 0 {
		r.reference(int(c.referent), f)
	}
}

func (r *Record) reference(at int, f func(Object)) {
	if size := r.graph.IDSize; at+size <= len(r.Body) {
		if o, ok := r.graph.find(readID(r.Body[at:], size)); ok {
			f(o)
		}
	}
}

// StaticReferences calls f with the objects that the static fields of a class
// object reference.
func (g *Graph) StaticReferences(class Object, f func(Object)) {
	dump := g.registry.list[g.registry.slots[g.ID(class)]].dump
	if dump == nil {
		return
	}
	for _, v := range dump.Statics {
		if o, ok := g.find(hprof.ID(v.Value)); ok && v.Type == hprof.Object {
			f(o)
		}
	}
}

// StaticsTo returns static fields that reference the given object; most is the
// maximum number of fields.
func (g *Graph) StaticsTo(o Object, most int) (list []Place) {
	id := g.ID(o)
	for i := range g.registry.list {
		c := &g.registry.list[i]
		if c.dump == nil {
			continue
		}
		for _, f := range c.dump.Statics {
			if f.Type != hprof.Object || hprof.ID(f.Value) != id || len(list) == most {
				continue
			}
			if name, ok := g.registry.fieldName(g.file.Strings, c, f.Name, f.Type); ok {
				list = append(list, Place{Class: c.name, Name: name})
			}
		}
	}
	return list
}

// HoldsAlone reports whether the second object is a leaf that only the first
// one references. The first object then dominates the second, but Children
// omits the second.
func (g *Graph) HoldsAlone(o, leaf Object) bool {
	v := g.tree.vertices[leaf]
	return v != 0 && !g.ownVertex(uint32(leaf)) && g.ownVertex(uint32(o)) && g.tree.vertices[o] == v
}
