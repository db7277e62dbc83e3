package heap

import (
	"cmp"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// rootAccumulation describes the objects of one class that GC roots of one kind
// hold.
type rootAccumulation struct {
	kind  hprof.SubTag
	row   uint32
	count int64
	size  Size
	// largest is the largest retained size of any of the objects; first is the
	// lowest number of an object of that size.
	largest      int64
	first        uint32
	held         groups
	accumulation bool
}

// holding records that a GC root holds an object, which is given by its vertex.
// The owner is the object itself, or the thread if the root is a local
// variable. The rank is the index of the kind of root in
// AccumulationOptions.Roots, plus 1.
type holding struct {
	vertex, owner uint32
	rank          uint8
}

// member is an object of an accumulation, given by its vertex, and the index of
// the accumulation in accumulator.rooted.
type member struct{ vertex, candidate uint32 }

// accumulateRoots finds the accumulations of objects that are held by GC roots
// of the given kinds. It counts the contents of these objects except for
// leaves, and marks the vertices that leaves may belong to. The accumulations
// found before must be sorted by vertex.
func (a *accumulator) accumulateRoots(kinds []hprof.SubTag, marked bitset) {
	holdings := a.single(a.holdings(kinds))
	candidates := rootAccumulations{places: map[uint64]int{}}
	a.eachOwner(holdings, func(own []holding) {
		candidates.of(kinds[own[0].rank-1], a.row(own[0].vertex)).add(a.t.objects[own[0].vertex], a.together(own))
	})
	members := int64(0)
	for i := range candidates.list {
		p := &candidates.list[i]
		if p.accumulation = p.count >= a.fewest && p.size.Total() >= a.least &&
			2*p.largest <= p.size.Total(); p.accumulation {
			members += p.count
		}
	}
	if members == 0 {
		return
	}
	a.members = make([]member, 0, members)
	a.eachOwner(holdings, func(own []holding) {
		p := candidates.of(kinds[own[0].rank-1], a.row(own[0].vertex))
		if !p.accumulation {
			return
		}
		marked.set(own[0].vertex)
		a.members = append(a.members, member{own[0].vertex, uint32(candidates.last)})
		a.hold(&p.held, own)
	})
	a.rooted = candidates.list
}

// holdings returns, for GC roots of the given kinds, the holdings of the
// objects that may accumulate.
func (a *accumulator) holdings(kinds []hprof.SubTag) (list []holding) {
	var ranks [256]uint8
	most := int64(0)
	for i, kind := range kinds {
		ranks[kind] = uint8(i + 1)
		most += a.g.RootCounts[kind]
	}
	list = make([]holding, 0, most)
	var threads []thread
	if ranks[hprof.SubRootThreadObject] > 0 {
		threads = a.threads()
	}
	for _, r := range a.g.roots {
		rank := ranks[r.Kind]
		if rank == 0 {
			continue
		}
		o := a.g.ids.find(r.Object)
		if !a.counts(o) || a.g.slots.at(o) == classSlot {
			continue
		}
		h := holding{a.t.vertices[o], a.t.vertices[o], rank}
		if r.Kind == hprof.SubRootJavaFrame {
			if i, ok := slices.BinarySearchFunc(threads, r.Thread, bySerial); ok {
				h.owner = threads[i].vertex
			}
		}
		list = append(list, h)
	}
	return list
}

// thread is the vertex of a thread and the thread's serial number.
type thread struct{ serial, vertex uint32 }

func bySerial(t thread, serial uint32) int { return cmp.Compare(t.serial, serial) }

// threads returns the threads, ordered by serial number. If several threads
// have the same serial number, it returns only the first.
func (a *accumulator) threads() (list []thread) {
	for _, r := range a.g.roots {
		if r.Kind == hprof.SubRootThreadObject {
			list = append(list, thread{r.Thread, a.t.vertices[a.g.ids.find(r.Object)]})
		}
	}
	slices.SortFunc(list, func(x, y thread) int {
		return cmp.Or(cmp.Compare(x.serial, y.serial), cmp.Compare(a.t.objects[x.vertex], a.t.objects[y.vertex]))
	})
	return slices.CompactFunc(list, func(x, y thread) bool { return x.serial == y.serial })
}

// single keeps one holding per object, the one with the lowest rank. Holdings
// are grouped by owner, with the owner's own holding first. An object that is a
// local variable of several threads is skipped. An object that contains an
// accumulation is skipped, because that accumulation is already reported.
func (a *accumulator) single(list []holding) []holding {
	slices.SortFunc(list, byObject)
	kept, locals := list[:0], false
	for rest := list; len(rest) > 0; {
		h, alone, n := rest[0], true, 1
		for ; n < len(rest) && rest[n].vertex == h.vertex; n++ {
			alone = alone && (rest[n].rank != h.rank || rest[n].owner == h.owner)
		}
		rest = rest[n:]
		if alone && !a.hasAccumulation(h.vertex) {
			kept = append(kept, h)
			locals = locals || h.owner != h.vertex
		}
	}
	if locals {
		slices.SortFunc(kept, byOwner)
	}
	return kept
}

// byObject orders holdings by object, rank and owner.
func byObject(x, y holding) int {
	if x.vertex != y.vertex {
		return cmp.Compare(x.vertex, y.vertex)
	}
	return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.owner, y.owner))
}

// byOwner orders holdings by owner; local variables follow their owner.
func byOwner(x, y holding) int {
	switch {
	case x.owner != y.owner:
		return cmp.Compare(x.owner, y.owner)
	case x.vertex == x.owner:
		return -1
	case y.vertex == y.owner:
		return 1
	}
	return cmp.Compare(x.vertex, y.vertex)
}

// hasAccumulation reports whether there is an accumulation at or below a
// vertex.
func (a *accumulator) hasAccumulation(v uint32) bool {
	i, _ := slices.BinarySearchFunc(a.found, v, func(p candidate, v uint32) int { return cmp.Compare(p.vertex, v) })
	return i < len(a.found) && a.found[i].vertex < a.t.ends[v]
}

// eachOwner calls f with the holdings of each object that may be in an
// accumulation, the object's own holding first. It skips local variables of
// threads that are not in the list.
func (a *accumulator) eachOwner(list []holding, f func(own []holding)) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].owner == list[0].owner {
			n++
		}
		if list[0].vertex == list[0].owner {
			f(list[:n])
		}
		list = list[n:]
	}
}

// together returns the size that an owner and its local variables retain
// together. None of them dominates another, because each is a GC root.
func (a *accumulator) together(own []holding) (sum Size) {
	for _, h := range own {
		sum.add(a.weigh(h.vertex))
	}
	return sum
}

// hold counts what an owner holds: the objects that the owner dominates, and
// its local variables.
func (a *accumulator) hold(t *groups, own []holding) {
	v := own[0].vertex
	for c := v + 1; c < a.t.ends[v]; c = a.t.ends[c] {
		t.add(a.row(c), a.weigh(c))
	}
	for _, h := range own[1:] {
		t.add(a.row(h.vertex), a.weigh(h.vertex))
	}
}

// rootLeaf counts an object that has no vertex and is held by an object of an
// accumulation; v is the vertex of the holder. It returns the holder's index
// among the members. The search starts at near, the previous result, because
// adjacent objects often have adjacent holders.
func (a *accumulator) rootLeaf(near int, o, v uint32) int {
	for _, i := range [...]int{near, near + 1, near - 1} {
		if i >= 0 && i < len(a.members) && a.members[i].vertex == v {
			a.holdLeaf(i, o)
			return i
		}
	}
	i, ok := slices.BinarySearchFunc(a.members, v, func(m member, v uint32) int { return cmp.Compare(m.vertex, v) })
	if ok {
		a.holdLeaf(i, o)
	}
	return i
}

func (a *accumulator) holdLeaf(member int, o uint32) {
	a.rooted[a.members[member].candidate].held.add(a.g.registry.list[a.g.slots.at(o)].row, a.shallow(o))
}

func (a *accumulator) rootAccumulation(p *rootAccumulation) Accumulation {
	r := Accumulation{
		Object: Object(p.first), Retained: p.size, Root: p.kind, Class: a.names[p.row], Count: p.count, Size: p.size,
	}
	a.tellHeld(&r, &p.held)
	return r
}

// rootAccumulations holds rootAccumulation values by kind of root and class.
type rootAccumulations struct {
	places map[uint64]int
	list   []rootAccumulation
	last   int
}

// of returns the value for a kind of root and a class; the result is valid
// until the next call.
func (t *rootAccumulations) of(kind hprof.SubTag, row uint32) *rootAccumulation {
	if len(t.list) > 0 && t.list[t.last].kind == kind && t.list[t.last].row == row {
		return &t.list[t.last]
	}
	key := uint64(kind)<<32 | uint64(row)
	place, ok := t.places[key]
	if !ok {
		place = len(t.list)
		t.places[key] = place
		t.list = append(t.list, rootAccumulation{kind: kind, row: row})
	}
	t.last = place
	return &t.list[place]
}

// add counts an object.
func (p *rootAccumulation) add(o uint32, size Size) {
	if n := size.Total(); p.count == 0 || n > p.largest || n == p.largest && o < p.first {
		p.largest, p.first = n, o
	}
	p.count++
	p.size.add(size)
}
