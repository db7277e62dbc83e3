package heap

import (
	"cmp"
	"context"
	"slices"
)

// SharedPile is many objects of one class that several static fields hold together, so that
// nothing that these reference dominates them: what does is the class that has the fields, the
// class loader that has their classes, or only the GC roots as a whole.
type SharedPile struct {
	// Accumulation has the object that dominates them, unless Top says that there is none.
	Accumulation

	Top bool
	// Sample are some of the objects, from the first to the last.
	Sample []Object
}

// sampled bounds SharedPile.Sample.
const sampled = 32

// SharedPiles finds the classes of which Fewest or more objects, none of them with more than
// half, retain Least together, and whose immediate dominator is a class, is also that of
// classes, or is none. GC roots and classes are none of them. The pile that retains most comes first. The
// error is ctx's, or one of memory.
func (g *Graph) SharedPiles(ctx context.Context, o AccumulationOptions) ([]SharedPile, error) {
	a := newAccumulator(g, o)
	var piles []SharedPile
	var members [][]uint32
	for _, v := range a.dominatorsOfClasses() {
		piles, members = a.sharedBelow(v, piles, members)
	}
	if len(piles) == 0 {
		return nil, ctx.Err()
	}
	if err := a.tellShared(ctx, piles, members); err != nil {
		return nil, err
	}
	slices.SortStableFunc(piles, func(x, y SharedPile) int { return cmp.Compare(y.Size.Total(), x.Size.Total()) })
	return piles, nil
}

// dominatorsOfClasses are vertices that retain what counts, from the root as a whole, 0: those
// of classes and of what dominates them.
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
	return slices.DeleteFunc(slices.Compact(list), func(v uint32) bool { return v != 0 && a.weigh(v).Total() < a.least })
}

// sharedBelow adds the piles among the children of a vertex.
func (a *accumulator) sharedBelow(v uint32, piles []SharedPile, members [][]uint32) ([]SharedPile, [][]uint32) {
	roots := a.rootVertices(v)
	of, largest := map[uint32][]uint32{}, map[uint32]uint32{}
	a.sums.reset()
	for c := v + 1; c < a.end(v); c = a.t.ends[c] {
		if a.slot(c) == classSlot || roots[c] {
			continue
		}
		row := a.row(c)
		a.sums.add(row, a.weigh(c))
		of[row] = append(of[row], c)
		if old, ok := largest[row]; !ok || a.weigh(c).Total() > a.weigh(old).Total() {
			largest[row] = c
		}
	}
	for _, s := range a.sums.list {
		if s.count < a.fewest || s.size.Total() < a.least || 2*a.weigh(largest[s.row]).Total() > s.size.Total() {
			continue
		}
		p := SharedPile{Accumulation: Accumulation{Retained: s.size, Class: a.names[s.row], Count: s.count, Size: s.size}, Top: v == 0}
		if !p.Top {
			p.Object = Object(a.t.objects[v])
		}
		list := of[s.row]
		for i := range min(sampled, len(list)) {
			p.Sample = append(p.Sample, Object(a.t.objects[list[i*len(list)/min(sampled, len(list))]]))
		}
		piles, members = append(piles, p), append(members, list)
	}
	return piles, members
}

// end is where what a vertex dominates ends; 0 dominates all.
func (a *accumulator) end(v uint32) uint32 {
	if v == 0 {
		return uint32(len(a.t.ends))
	}
	return a.t.ends[v]
}

// rootVertices are those of objects that are GC roots; only below 0 there are any.
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

// tellShared says what the objects of piles hold.
func (a *accumulator) tellShared(ctx context.Context, piles []SharedPile, members [][]uint32) error {
	marked, err := newBitset(&a.g.arena, int64(len(a.t.objects)))
	if err != nil {
		return err
	}
	defer drop(&a.g.arena, (*[]uint64)(&marked))
	pileOf, held := map[uint32]int{}, make([]groups, len(piles))
	for i, list := range members {
		for _, v := range list {
			marked.set(v)
			pileOf[v] = i
			for c := v + 1; c < a.t.ends[v]; c = a.t.ends[c] {
				held[i].add(a.row(c), a.weigh(c))
			}
		}
	}
	err = a.leaves(ctx, marked, func(o, v uint32) {
		held[pileOf[v]].add(a.g.registry.list[a.g.slots.at(o)].row, a.shallow(o))
	})
	for i := range piles {
		a.tellHeld(&piles[i].Accumulation, &held[i])
	}
	return err
}
