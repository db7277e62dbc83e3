package heap

import (
	"math/bits"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Family selects the objects of a class and of its subclasses.
type Family struct {
	Class string
	// Limit bounds Objects; if it is 0, only Count is set.
	Limit int
	// Objects holds the matching objects with the lowest numbers, at most Limit
	// of them; Count is the number of all matching objects.
	Objects []Object
	Count   int64
}

// Gather sets Objects and Count of each family in one pass over all objects,
// reachable or not.
func (g *Graph) Gather(families ...*Family) {
	for len(families) > 64 {
		g.Gather(families[:64]...)
		families = families[64:]
	}
	masks := g.masks(families)
	if masks == nil {
		return
	}
	for n := range uint32(g.Objects) {
		for m := masks[g.slots.at(n)]; m != 0; m &= m - 1 {
			f := families[bits.TrailingZeros64(m)]
			f.Count++
			if len(f.Objects) < f.Limit {
				f.Objects = append(f.Objects, Object(n))
			}
		}
	}
}

// masks returns, for each slot, the families that its class belongs to, as
// bits. It returns nil if no class belongs to any family.
func (g *Graph) masks(families []*Family) []uint64 {
	own := map[string]uint64{}
	for i, f := range families {
		own[f.Class] |= 1 << i
	}
	list := g.registry.list
	masks, known := make([]uint64, len(list)), make([]bool, len(list))
	met := false
	var path []slot
	for s := range list {
		path = path[:0]
		k := slot(s)
		for range longestChain {
			if known[k] {
				break
			}
			masks[k] = own[list[k].name]
			met = met || masks[k] != 0
			path = append(path, k)
			if list[k].super == 0 {
				break
			}
			k = list[k].super
		}
		// The families of the superclass above the path are complete. Each
		// class on the path adds its own families to those of its superclass.
		above := uint64(0)
		if known[k] {
			above = masks[k]
		}
		for _, k := range slices.Backward(path) {
			masks[k] |= above
			above = masks[k]
			known[k] = true
		}
	}
	if !met {
		return nil
	}
	return masks
}

// LargestArrays returns the n arrays with the most bytes, largest first. If the
// dump has fewer arrays, it returns all of them.
func (g *Graph) LargestArrays(n int) []Object {
	if n <= 0 {
		return nil
	}
	array := make([]bool, len(g.registry.list))
	for s := range array {
		array[s] = slot(s) > classSlot && slot(s) < named || g.registry.list[s].arrays
	}
	bySize := func(a, b Object) int {
		return compare64(g.sizes.at(uint32(b)), g.sizes.at(uint32(a)), int64(a), int64(b))
	}
	var best []Object
	floor := int64(-1)
	for o := range uint32(g.Objects) {
		if g.sizes.at(o) <= floor || !array[g.slots.at(o)] {
			continue
		}
		if best = append(best, Object(o)); len(best) >= 2*n {
			slices.SortFunc(best, bySize)
			best = best[:n]
			floor = g.sizes.at(uint32(best[n-1]))
		}
	}
	slices.SortFunc(best, bySize)
	return best[:min(n, len(best))]
}

func compare64(a, b, c, d int64) int {
	switch {
	case a != b && a < b, a == b && c < d:
		return -1
	case a == b && c == d:
		return 0
	}
	return 1
}

// Field is an instance field as declared by one class; a field of the same name
// in a subclass is a different field. It is not safe for concurrent use.
type Field struct {
	graph *Graph
	// own is the index of the field among the fields that its class itself
	// declares.
	own map[slot]fieldPlace
	// places caches the field's position in the instances of each class; last
	// is the most recently used entry.
	places map[slot]fieldPlace
	last   slot
	place  fieldPlace
}

// Field returns the field with the given name that the given class declares. If
// the dump does not declare such a field, the result matches no object.
func (g *Graph) Field(class, name string) *Field {
	f := &Field{graph: g, own: map[slot]fieldPlace{}, places: map[slot]fieldPlace{}, last: ^slot(0)}
	for _, s := range g.named(class) {
		dump := g.registry.list[s].dump
		if dump == nil {
			continue
		}
		at := uint32(0)
		for _, d := range dump.Fields {
			if text, ok := g.fieldName(&g.registry.list[s], d.Name, d.Type); ok && text == name {
				f.own[s] = fieldPlace{at, d.Type, true}
				break
			}
			at += uint32(d.Type.Size(g.IDSize))
		}
	}
	return f
}

// Declared reports whether any class of the dump declares the field.
func (f *Field) Declared() bool { return len(f.own) > 0 }

// in returns the position of the field in the instances of the class with the
// given slot.
func (f *Field) in(s slot) fieldPlace {
	if s == f.last {
		return f.place
	}
	p, ok := f.places[s]
	if !ok {
		p = f.find(s)
		f.places[s] = p
	}
	f.last, f.place = s, p
	return p
}

func (f *Field) find(s slot) fieldPlace {
	if len(f.own) == 0 {
		return fieldPlace{}
	}
	at := uint32(0)
	for range longestChain {
		if p, ok := f.own[s]; ok {
			p.at += at
			return p
		}
		c := &f.graph.registry.list[s]
		if c.dump == nil || c.super == 0 {
			break
		}
		for _, d := range c.dump.Fields {
			at += uint32(d.Type.Size(f.graph.IDSize))
		}
		s = c.super
	}
	return fieldPlace{}
}

// value returns the bytes of the field in an instance, or nil if the instance
// does not have the field.
func (r *Record) value(f *Field) ([]byte, hprof.Type) {
	if r.Kind != hprof.SubInstance {
		return nil, 0
	}
	p := f.in(r.slot)
	size := p.t.Size(r.graph.IDSize)
	if !p.ok || int64(p.at)+int64(size) > int64(len(r.Body)) {
		return nil, 0
	}
	return r.Body[p.at:][:size], p.t
}

// RefOf is like Ref, but identifies the field by the class that declares it as
// well as by name.
func (r *Record) RefOf(f *Field) (Object, bool) {
	b, t := r.value(f)
	if t != hprof.Object {
		return 0, false
	}
	return r.graph.find(readID(b, r.graph.IDSize))
}

// IsNull reports whether a reference field is null. ok is false if the object
// has no such field.
func (r *Record) IsNull(f *Field) (null, ok bool) {
	b, t := r.value(f)
	if t != hprof.Object {
		return false, false
	}
	return readID(b, r.graph.IDSize) == 0, true
}

// IntOf is like Int, but identifies the field by the class that declares it as
// well as by name.
func (r *Record) IntOf(f *Field) (int64, bool) {
	b, t := r.value(f)
	return integer(b, t)
}

// BoolOf is like Bool, but identifies the field by the class that declares it
// as well as by name.
func (r *Record) BoolOf(f *Field) (value, ok bool) {
	v, ok := r.IntOf(f)
	return v != 0, ok
}

// fieldName returns the name of a field that a class declares.
func (g *Graph) fieldName(owner *class, id hprof.ID, t hprof.Type) (string, bool) {
	return g.registry.fieldName(g.file.Strings, owner, id, t)
}

// Declared calls f with the record of each class of the dump. The names in the
// record are those of the dump, not those that Options.Names returns. f must
// not keep or change the record.
func (g *Graph) Declared(f func(c *hprof.Class)) {
	for s := range g.registry.list {
		if dump := g.registry.list[s].dump; dump != nil {
			f(dump)
		}
	}
}

// HasStatic reports whether a class with the given name has a static field with
// the given name.
func (g *Graph) HasStatic(class, field string) bool {
	_, ok := g.static(class, field)
	return ok
}

// StackFrame is one frame of a stack trace. Line is a positive line number, or
// -1 (unknown), -2 (compiled) or -3 (native code).
type StackFrame struct {
	Class, Method, Source string
	Line                  int32
}

// Stacks returns the stack traces with the given serial numbers, innermost
// frame first, up to depth frames each, not counting inlined frames. An entry
// is nil if the dump does not contain its stack trace.
func (g *Graph) Stacks(serials []uint32, depth int) [][]StackFrame {
	traces := map[uint32]*hprof.Trace{}
	for _, s := range serials {
		traces[s] = nil
	}
	frames := map[hprof.ID]*hprof.Frame{}
	for i := range g.file.Traces {
		t := &g.file.Traces[i]
		if have, wanted := traces[t.Serial]; wanted && have == nil {
			traces[t.Serial] = t
			for _, id := range t.Frames[:min(depth, len(t.Frames))] {
				frames[id] = nil
			}
		}
	}
	classes := map[uint32]string{}
	for i := range g.file.Frames {
		f := &g.file.Frames[i]
		if have, wanted := frames[f.ID]; wanted && have == nil {
			frames[f.ID] = f
			classes[f.Class] = ""
		}
	}
	if len(frames) > 0 {
		for _, c := range g.file.Classes {
			if have, wanted := classes[c.Serial]; wanted && have == "" {
				text, _ := g.file.Strings.Get(c.Name)
				classes[c.Serial] = NormalName(text)
			}
		}
	}
	texts := make(map[hprof.ID][]StackFrame, len(frames))
	for id, f := range frames {
		if f != nil {
			texts[id] = g.frames(f, classes[f.Class])
		}
	}
	list := make([][]StackFrame, len(serials))
	for i, s := range serials {
		t := traces[s]
		if t == nil {
			continue
		}
		for _, id := range t.Frames[:min(depth, len(t.Frames))] {
			list[i] = append(list[i], texts[id]...)
		}
	}
	return list
}

// frames returns the translated frame, preceded by the frames that the compiler
// inlined into it, if any.
func (g *Graph) frames(f *hprof.Frame, class string) []StackFrame {
	method, _ := g.file.Strings.Get(f.Method)
	source, _ := g.file.Strings.Get(f.Source)
	frame := StackFrame{class, method, source, f.Line}
	if g.registry.rename != nil {
		return g.registry.rename.Frame(frame)
	}
	return []StackFrame{frame}
}
