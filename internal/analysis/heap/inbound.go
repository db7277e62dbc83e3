package heap

import (
	"context"
	"errors"
	"slices"
)

// inbound is what references each vertex, strongly or softly, by the numbers of the
// depth-first search: one that it was found from, and the sources of joins.
type inbound struct {
	// parents are of those that were not found from the one before; most were.
	parents scattered
	// starts is where the sources begin of those that have any.
	starts  scattered
	sources []uint32
	// place is the vertex in the dominator tree.
	place []uint32
}

// scattered holds values of some numbers.
type scattered struct {
	ranks
	values []uint32
}

// newScattered keeps what value gives for the numbers from 1 to count.
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

// keep copies what the dominators are going to overwrite.
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

// parent gives the number that one was found from; 0 is a GC root.
func (b *inbound) parent(d uint32) uint32 {
	if !b.parents.bits.has(d) {
		return d - 1
	}
	return b.parents.values[b.parents.of(d)]
}

// of gives the sources of a number without its parent.
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

// ForgetInbound gives back the memory that Options.Inbound took.
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

// NewSet makes an empty set. It takes a bit for each object of the dump until Close.
func (g *Graph) NewSet() (*Set, error) {
	bits, err := newBitset(&g.arena, g.Objects)
	return &Set{g, bits}, err
}

// Close gives the memory back. It may be called twice.
func (s *Set) Close() { drop(&s.graph.arena, (*[]uint64)(&s.bits)) }

// Has tells whether an object is in the set.
func (s *Set) Has(o Object) bool { return s.bits.has(uint32(o)) }

// Add puts an object into the set.
func (s *Set) Add(o Object) { s.bits.set(uint32(o)) }

// Len is the number of objects in the set.
func (s *Set) Len() int64 { return s.bits.count() }

var errNoInbound = errors.New("find holders: the graph was loaded without them")

// AddAncestors puts into a set the objects from which references lead to some objects,
// strongly, softly or by the referent of any Reference, and those themselves.
func (g *Graph) AddAncestors(ctx context.Context, s *Set, objects []Object) error {
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
		if err := g.climb(ctx, s, met, g.seeds(objects)); err != nil {
			return err
		}
		// A Reference holds nothing, but some are followed all the same.
		objects = objects[:0:0]
		for _, w := range g.weaker.links {
			if s.bits.has(w.to) && !s.bits.has(w.from) && g.tree.vertices[w.from] != 0 {
				objects = append(objects, Object(w.from))
			}
		}
	}
	return nil
}

// addWeak puts into a set what is reachable by finalizer alone, which is little, and, if
// one of some objects is reachable by weaker References alone, all of that: nothing is
// known of what references those.
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

// seeds gives the numbers of objects. One without a vertex has the object's that
// references it.
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

// climb goes from numbers to all that reference them.
func (g *Graph) climb(ctx context.Context, s *Set, met bitset, pending []uint32) error {
	b := &g.inbound
	for _, d := range pending {
		met.set(d)
	}
	for n := 1; len(pending) > 0; n++ {
		if n%patience == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		d := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		s.bits.set(g.tree.objects[b.place[d]])
		if p := b.parent(d); p != 0 && !met.has(p) {
			met.set(p)
			pending = append(pending, p)
		}
		for _, p := range b.of(d) {
			if p != 0 && !met.has(p) {
				met.set(p)
				pending = append(pending, p)
			}
		}
	}
	return nil
}

// AddHeld puts into a set what would go if some objects went: themselves, and all that
// no way from the GC roots leads to but through one of them.
func (g *Graph) AddHeld(ctx context.Context, s *Set, objects []Object) error {
	if g.inbound.place == nil {
		return errNoInbound
	}
	h := &held{Graph: g, cut: map[uint32]bool{}}
	for _, d := range g.seedsOwn(objects) {
		h.cut[d] = true
	}
	h.subtrees()
	if err := h.reach(ctx); err != nil {
		return err
	}
	defer drop(&g.arena, (*[]uint64)(&h.free))
	return h.add(ctx, s)
}

// seedsOwn gives the numbers of the objects that have a vertex of their own: others
// hold nothing.
func (g *Graph) seedsOwn(objects []Object) []uint32 {
	own := make([]Object, 0, len(objects))
	for _, o := range objects {
		if g.ownVertex(uint32(o)) {
			own = append(own, o)
		}
	}
	return g.seeds(own)
}

// subtree is the numbers from first up to end.
type subtree struct{ first, end uint32 }

// held finds what some vertices hold together.
type held struct {
	*Graph
	cut map[uint32]bool
	// list are the subtrees of the search below cut vertices. All else was found by a way
	// that avoids them.
	list []subtree
	// free are the numbers inside list that another way leads to.
	free bitset
}

func (h *held) subtrees() {
	var order []uint32
	for d := range h.cut {
		order = append(order, d)
	}
	slices.Sort(order)
	count := uint32(len(h.inbound.place)) - 1
	end := uint32(0)
	for _, d := range order {
		if d < end {
			continue
		}
		// Numbers are in preorder: a subtree ends where a parent is outside.
		end = d + 1
		for end <= count && h.inbound.parent(end) >= d {
			end++
		}
		h.list = append(h.list, subtree{d, end})
	}
}

func (h *held) inside(d uint32) bool {
	i, found := slices.BinarySearchFunc(h.list, d, func(s subtree, d uint32) int {
		switch {
		case d < s.first:
			return 1
		case d >= s.end:
			return -1
		}
		return 0
	})
	return found && i >= 0
}

// reach marks what is free: what is referenced from outside, and what that references.
func (h *held) reach(ctx context.Context) (err error) {
	n := int64(len(h.inbound.place))
	if h.free, err = newBitset(&h.arena, n); err != nil {
		return err
	}
	out, err := h.outgoing()
	if err != nil {
		return err
	}
	defer out.drop(&h.arena)
	var pending []uint32
	mark := func(d uint32) {
		if !h.cut[d] && !h.free.has(d) {
			h.free.set(d)
			pending = append(pending, d)
		}
	}
	for _, s := range h.list {
		for d := s.first; d < s.end; d++ {
			if h.fromOutside(d) {
				mark(d)
			}
		}
	}
	for steps := 1; len(pending) > 0; steps++ {
		if steps%patience == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		d := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, to := range out.of(d) {
			mark(to)
		}
	}
	return nil
}

func (h *held) fromOutside(d uint32) bool {
	if !h.inside(h.inbound.parent(d)) {
		return true
	}
	for _, p := range h.inbound.of(d) {
		if !h.inside(p) {
			return true
		}
	}
	return false
}

// forward are the references between the numbers from first on.
type forward struct {
	first          uint32
	starts, target []uint32
}

func (f *forward) of(d uint32) []uint32 {
	i := d - f.first
	return f.target[f.starts[i]:f.starts[i+1]]
}

func (f *forward) drop(a *arena) {
	drop(a, &f.starts)
	drop(a, &f.target)
}

// outgoing turns the references inside the subtrees round.
func (h *held) outgoing() (f *forward, err error) {
	f = &forward{}
	if len(h.list) == 0 {
		return f, nil
	}
	f.first = h.list[0].first
	last := h.list[len(h.list)-1].end - 1
	if f.starts, err = array[uint32](&h.arena, int64(last-f.first)+2); err != nil {
		return nil, err
	}
	h.pairs(func(from, _ uint32) { f.starts[from-f.first]++ })
	sum := uint32(0)
	for i, n := range f.starts {
		sum += n
		f.starts[i] = sum
	}
	if f.target, err = array[uint32](&h.arena, int64(sum)); err != nil {
		return nil, err
	}
	h.pairs(func(from, to uint32) {
		i := from - f.first
		f.starts[i]--
		f.target[f.starts[i]] = to
	})
	return f, nil
}

// pairs calls f with each reference inside the subtrees.
func (h *held) pairs(f func(from, to uint32)) {
	for _, s := range h.list {
		for d := s.first; d < s.end; d++ {
			if p := h.inbound.parent(d); h.inside(p) {
				f(p, d)
			}
			for _, p := range h.inbound.of(d) {
				if h.inside(p) {
					f(p, d)
				}
			}
		}
	}
}

// add puts what is not free into a set, with the leaves that have no vertices.
func (h *held) add(ctx context.Context, s *Set) error {
	holds := make(bitset, len(h.inbound.place)/64+1)
	for _, x := range h.list {
		for d := x.first; d < x.end; d++ {
			if h.free.has(d) {
				continue
			}
			v := h.inbound.place[d]
			holds.set(v)
			s.bits.set(h.tree.objects[v])
		}
	}
	for o, v := range h.tree.vertices {
		if o%patience == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if v != 0 && holds.has(v) && !h.ownVertex(uint32(o)) {
			s.bits.set(uint32(o))
		}
	}
	return nil
}
