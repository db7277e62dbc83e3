package heap

import (
	"cmp"
	"context"
	"slices"
)

// SharedAccumulation describes many objects of one class that several static
// fields hold jointly. None of the objects referenced by these fields dominates
// them. Their dominator is the class that declares the fields, or the class
// loader of the declaring classes. If there is no such dominator, nothing but
// the set of all GC roots dominates the objects.
type SharedAccumulation struct {
	// Accumulation.Object is the dominator of the objects; if Top is true, they
	// have no dominator.
	Accumulation

	Top bool
	// Sample contains some of the objects, at even intervals from the first to
	// the last.
	Sample []Object

	// above is the vertex of the objects' dominator; row is the row of their
	// class.
	above, row uint32
}

// sampled is the maximum length of SharedAccumulation.Sample.
const sampled = 32

// SharedAccumulations finds classes with at least Fewest objects that together
// retain at least Least bytes, provided that no single object retains more than
// half of the total. The immediate dominator of these objects must be a class
// or must also dominate classes, unless nothing but the set of all GC roots
// dominates the objects. GC roots and classes are not counted. The accumulation
// with the largest retained size comes first. FillSharedAccumulations fills in
// the contents of the objects. The error is ctx's.
func (g *Graph) SharedAccumulations(ctx context.Context, o AccumulationOptions) ([]SharedAccumulation, error) {
	a := newAccumulator(g, o)
	var candidates []SharedAccumulation
	for _, v := range a.dominatorsOfClasses() {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		candidates = a.sharedBelow(v, candidates)
	}
	slices.SortStableFunc(candidates,
		func(x, y SharedAccumulation) int { return cmp.Compare(y.Size.Total(), x.Size.Total()) })
	return candidates, nil
}

// FillSharedAccumulations fills in the contents of the objects that
// SharedAccumulations found. The error is ctx's or that of a failed memory
// allocation.
func (g *Graph) FillSharedAccumulations(ctx context.Context, o AccumulationOptions,
	candidates []*SharedAccumulation) error {
	a := newAccumulator(g, o)
	marked, err := newBitset(&g.arena, int64(len(a.t.objects)))
	if err != nil {
		return err
	}
	defer drop(&g.arena, (*[]uint64)(&marked))
	type place struct{ above, row uint32 }
	at, held := map[place]int{}, make([]groups, len(candidates))
	for i, p := range candidates {
		at[place{p.above, p.row}] = i
		a.eachBelow(p.above, func(v, row uint32) {
			if row != p.row {
				return
			}
			marked.set(v)
			for c := v + 1; c < a.t.ends[v]; c = a.t.ends[c] {
				held[i].add(a.row(c), a.weigh(c))
			}
		})
	}
	err = a.leaves(ctx, marked, func(o, v uint32) {
		held[at[place{a.t.parents[v], a.row(v)}]].add(a.g.registry.list[a.g.slots.at(o)].row, a.shallow(o))
	})
	for i, p := range candidates {
		a.tellHeld(&p.Accumulation, &held[i])
	}
	return err
}

// dominatorsOfClasses returns the classes that retain enough bytes, and the
// dominators of classes that do. The virtual root 0 is always included and
// comes first.
func (a *accumulator) dominatorsOfClasses() []uint32 {
	list := []uint32{0}
	for i := range a.g.registry.list {
		if a.g.registry.list[i].dump == nil {
			continue
		}
		o := a.g.ids.find(a.g.registry.list[i].dump.ID)
		if o == none {
			continue
		}
		if v := a.t.vertices[o]; v != 0 {
			list = append(list, a.t.parents[v], v)
		}
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list),
		func(v uint32) bool { return v != 0 && a.weigh(v).Total() < a.least })
}

// eachBelow calls f with each child of a vertex and the row of the child's
// class, skipping classes and GC roots.
func (a *accumulator) eachBelow(v uint32, f func(c, row uint32)) {
	roots := a.rootVertices(v)
	for c := v + 1; c < a.end(v); c = a.t.ends[c] {
		if a.slot(c) != classSlot && !roots[c] {
			f(c, a.row(c))
		}
	}
}

// sharedBelow adds the accumulations that the children of a vertex form.
func (a *accumulator) sharedBelow(v uint32, candidates []SharedAccumulation) []SharedAccumulation {
	largest := map[uint32]int64{}
	a.sums.reset()
	a.eachBelow(v, func(c, row uint32) {
		size := a.weigh(c)
		a.sums.add(row, size)
		if n := size.Total(); n > largest[row] {
			largest[row] = n
		}
	})
	first := len(candidates)
	for _, s := range a.sums.list {
		if s.count < a.fewest || s.size.Total() < a.least || 2*largest[s.row] > s.size.Total() {
			continue
		}
		p := SharedAccumulation{
			Accumulation: Accumulation{Retained: s.size, Class: a.names[s.row], Count: s.count, Size: s.size},
			Top:          v == 0, above: v, row: s.row,
		}
		if !p.Top {
			p.Object = Object(a.t.objects[v])
		}
		candidates = append(candidates, p)
	}
	if len(candidates) == first {
		return candidates
	}
	found := map[uint32]*SharedAccumulation{}
	for i := range candidates[first:] {
		found[candidates[first+i].row] = &candidates[first+i]
	}
	a.sample(v, found)
	return candidates
}

// sample selects evenly spaced objects of the accumulations below a vertex,
// class by class.
func (a *accumulator) sample(v uint32, candidates map[uint32]*SharedAccumulation) {
	met := map[uint32]int64{}
	a.eachBelow(v, func(c, row uint32) {
		p := candidates[row]
		if p == nil {
			return
		}
		if n := min(sampled, p.Count); met[row] == int64(len(p.Sample))*p.Count/n {
			p.Sample = append(p.Sample, Object(a.t.objects[c]))
		}
		met[row]++
	})
}

// end returns the vertex after the last one that a vertex dominates; vertex 0
// dominates all vertices.
func (a *accumulator) end(v uint32) uint32 {
	if v == 0 {
		return uint32(len(a.t.ends))
	}
	return a.t.ends[v]
}

// rootVertices returns the vertices of objects that are GC roots. It returns
// nil unless v is 0, because no other vertex has GC roots as children.
func (a *accumulator) rootVertices(v uint32) map[uint32]bool {
	if v != 0 {
		return nil
	}
	met := make(map[uint32]bool, len(a.g.roots))
	for _, r := range a.g.roots {
		met[a.t.vertices[a.g.ids.find(r.Object)]] = true
	}
	return met
}
