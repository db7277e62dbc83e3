package heap

import (
	"context"
	"errors"
	"slices"
)

// inbound holds the strong and soft references to each vertex, by depth-first
// number: the reference by which the search found the vertex, and the sources
// of all other references to it.
type inbound struct {
	// parents holds the parent of each vertex, except where it is the preceding
	// vertex, as for most vertices.
	parents scattered
	// starts holds, for each vertex that has sources, the position at which its
	// sources begin.
	starts  scattered
	sources []uint32
	// place maps a depth-first number to its vertex in the dominator tree.
	place []uint32
}

// scattered holds values for a small subset of the numbers.
type scattered struct {
	ranks
	values []uint32
}

// newScattered calls value for each number from 1 to count and stores those
// values for which it returns true.
func newScattered(a *arena, count uint32, value func(d uint32) (v uint32, has bool)) (s scattered, err error) {
	b, err := newBitset(a, int64(count)+1)
	if err != nil {
		return s, err
	}
	for d := uint32(1); d <= count; d++ {
		if _, has := value(d); has {
			b.set(d)
		}
	}
	if s.ranks, err = newRanks(a, b); err != nil {
		return s, err
	}
	if s.values, err = array[uint32](a, s.len()); err != nil {
		return s, err
	}
	for d, i := uint32(1), 0; d <= count; d++ {
		if v, has := value(d); has {
			s.values[i] = v
			i++
		}
	}
	return s, nil
}

func (s *scattered) drop(a *arena) {
	drop(a, (*[]uint64)(&s.bits))
	drop(a, &s.sums)
	drop(a, &s.values)
}

// keep copies the results of the search that will be overwritten when the
// dominators are computed.
func (b *inbound) keep(a *arena, o *order) (err error) {
	b.parents, err = newScattered(a, o.count, func(d uint32) (uint32, bool) {
		return o.parents[d], o.parents[d] != d-1
	})
	if err != nil {
		return err
	}
	b.sources = o.joins.sources
	b.starts, err = newScattered(a, o.count, func(d uint32) (uint32, bool) {
		return o.joins.starts[d], o.joins.starts[d] != o.joins.end(d)
	})
	return err
}

// Given an object's number, parent returns the number of the object from which
// the search found it; 0 means that a GC root holds it.
func (b *inbound) parent(d uint32) uint32 {
	if !b.parents.bits.has(d) {
		return d - 1
	}
	return b.parents.values[b.parents.of(d)]
}

// of returns the numbers of the objects that reference the object with the
// given number, except its parent.
func (b *inbound) of(d uint32) []uint32 {
	if !b.starts.bits.has(d) {
		return nil
	}
	i := int(b.starts.of(d))
	if i+1 == len(b.starts.values) {
		return b.sources[b.starts.values[i]:]
	}
	return b.sources[b.starts.values[i]:b.starts.values[i+1]]
}

// KeepsInbound reports whether the graph stores the references to each object.
func (g *Graph) KeepsInbound() bool { return g.inbound.place != nil }

// ForgetInbound releases the memory of the inbound references, which the graph
// stores if Options.Inbound is set.
func (g *Graph) ForgetInbound() {
	g.inbound.parents.drop(&g.arena)
	g.inbound.starts.drop(&g.arena)
	drop(&g.arena, &g.inbound.sources)
	drop(&g.arena, &g.inbound.place)
}

// Set is a set of objects.
type Set struct {
	graph *Graph
	bits  bitset
}

// NewSet returns an empty set. Until the set is closed, it uses one bit per
// object of the dump.
func (g *Graph) NewSet() (*Set, error) {
	bits, err := newBitset(&g.arena, g.Objects)
	return &Set{g, bits}, err
}

// Close releases the memory. It may be called more than once.
func (s *Set) Close() { drop(&s.graph.arena, (*[]uint64)(&s.bits)) }

// Has reports whether an object is in the set.
func (s *Set) Has(o Object) bool { return s.bits.has(uint32(o)) }

// Add puts an object into the set.
func (s *Set) Add(o Object) { s.bits.set(uint32(o)) }

// Len returns the number of objects in the set.
func (s *Set) Len() int64 { return s.bits.count() }

var errNoInbound = errors.New("find holders: the graph was loaded without inbound references")

// AddAncestors adds to a set the given objects and all objects that lead to
// them through strong or soft references or through the referent of any
// Reference. If records is true, it also follows the references that exist only
// in class records, which connect most of the heap to any static field.
func (g *Graph) AddAncestors(ctx context.Context, s *Set, objects []Object, records bool) error {
	if g.inbound.place == nil {
		return errNoInbound
	}
	met, err := newBitset(&g.arena, int64(len(g.inbound.place)))
	if err != nil {
		return err
	}
	defer drop(&g.arena, (*[]uint64)(&met))
	g.addWeak(s, objects)
	for len(objects) > 0 {
		for _, o := range objects {
			s.Add(o)
		}
		if err := g.visitAncestors(ctx, s, met, g.seeds(objects), g.notByRecord(records)); err != nil {
			return err
		}
		// A Reference does not keep its referent alive, but some referents are
		// followed anyway.
		objects = objects[:0:0]
		for _, w := range g.weaker.links {
			if s.bits.has(w.to) && !s.bits.has(w.from) && g.tree.vertices[w.from] != 0 {
				objects = append(objects, Object(w.from))
			}
		}
	}
	return nil
}

// addWeak adds to a set the objects that are reachable only through finalizers;
// there are few such objects. If one of the given objects is reachable only
// through weaker References, it adds all objects that are reachable in this
// way, because the references to them are not known.
func (g *Graph) addWeak(s *Set, objects []Object) {
	weak := func(o Object) bool {
		r := g.Reachability(o)
		return r > Finalizer && r < Unreachable
	}
	all := slices.ContainsFunc(objects, weak)
	for r, set := range g.weaker.sets {
		if Reachability(r) == Finalizer || all {
			for i, w := range set {
				s.bits[i] |= w
			}
		}
	}
}

// seeds returns the depth-first numbers of objects. An object without a vertex
// of its own is represented by the number of the one object that references it.
func (g *Graph) seeds(objects []Object) (list []uint32) {
	wanted := map[uint32]bool{}
	for _, o := range objects {
		if v := g.tree.vertices[o]; v != 0 {
			wanted[v] = true
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	vertices := make(bitset, len(g.inbound.place)/64+1)
	for v := range wanted {
		vertices.set(v)
	}
	for d, v := range g.inbound.place {
		if d != 0 && vertices.has(v) {
			list = append(list, uint32(d))
		}
	}
	return list
}

// notByRecord returns a function that reports whether one vertex references
// another by anything other than its class record. A nil result means that all
// references are followed.
func (g *Graph) notByRecord(records bool) func(from, to uint32) bool {
	if records || g.Model != Leakgate {
		return nil
	}
	named := map[uint32]bool{}
	for i := range g.registry.list {
		c := &g.registry.list[i]
		if c.link != none {
			named[c.link] = true
		}
		if !c.recorded {
			continue
		}
		for _, id := range ofClass(c.dump) {
			if o := g.ids.find(id); id != 0 && o != none {
				named[o] = true
			}
		}
	}
	return func(from, to uint32) bool {
		o, x := g.tree.objects[from], g.tree.objects[to]
		if !named[x] {
			return true
		}
		if g.slots.at(o) != classSlot {
			// A field that references the object's own class is not
			// distinguished from the class record.
			return g.registry.list[g.slots.at(o)].link != x
		}
		return g.hasStatic(Object(o), Object(x))
	}
}

// hasStatic reports whether a static field of a class object references another
// object.
func (g *Graph) hasStatic(class, o Object) (has bool) {
	g.StaticReferences(class, func(to Object) { has = has || to == o })
	return has
}

// visitAncestors adds to s the objects with the given numbers and all objects
// that lead to them through references for which counts returns true.
func (g *Graph) visitAncestors(ctx context.Context, s *Set, met bitset, pending []uint32,
	counts func(from, to uint32) bool) error {
	b := &g.inbound
	for _, d := range pending {
		met.set(d)
	}
	for n := 1; len(pending) > 0; n++ {
		if n%checkInterval == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		d := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		s.bits.set(g.tree.objects[b.place[d]])
		add := func(p uint32) {
			if p != 0 && !met.has(p) && (counts == nil || counts(b.place[p], b.place[d])) {
				met.set(p)
				pending = append(pending, p)
			}
		}
		add(b.parent(d))
		for _, p := range b.of(d) {
			add(p)
		}
	}
	return nil
}
