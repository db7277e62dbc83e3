package heap

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Accumulation is a place in the dominator tree where memory accumulates in
// many objects of one class. The idea is Eclipse MAT's "accumulation point":
// the first place on the way down from the roots where the retained memory
// splits into many parts. If each of the objects is held by a separate GC root,
// the place is above the tree.
type Accumulation struct {
	// Object is the place; Retained is its retained size. If GC roots hold the
	// objects, Object is the one with the largest retained size, and Retained
	// equals Size.
	Object   Object
	Retained Size
	// Root is the kind of the GC roots that hold the objects; it is 0 if Object
	// holds them.
	Root hprof.SubTag
	// Class is the class of the accumulated objects; Count is their number.
	Class string
	Count int64
	// If Linked is true, Object itself is one of the accumulated objects, and
	// each of them dominates the next, as in a list or tree of nodes. Otherwise
	// Object dominates all accumulated objects.
	Linked bool
	// Size is the number of bytes that the objects retain together.
	Size Size
	// Holds is the class whose instances account for most of the bytes that the
	// accumulated objects dominate, or "" if these objects dominate nothing.
	// Held is the number of instances of Holds; HeldSize is their retained
	// size.
	Holds    string
	Held     int64
	HeldSize Size
	// Beside lists other classes whose instances Object dominates; HeldBeside
	// lists classes, other than Holds, whose instances the accumulated objects
	// dominate. Each list contains up to three classes, largest first. Each
	// class in a list has at least AccumulationOptions.Fewest objects, which
	// retain at least a fifth of Retained.
	Beside, HeldBeside []ClassSum
	// If AccumulationOptions.Through selects Holds, Behind is the class with
	// the most bytes among the objects that the instances of Holds reference.
	// Behind is zero unless there are about as many objects of that class as
	// instances of Holds.
	Behind ClassSum
}

// ClassSum is the number of objects of one class, and the size that these
// objects retain together.
type ClassSum struct {
	Class string
	Count int64
	Size  Size
}

const (
	// A further class is reported if its objects retain at least 1/worthBeside
	// of the retained size of the place. mostBeside is the maximum number of
	// further classes.
	worthBeside = 5
	mostBeside  = 3
)

// AccumulationOptions define what counts as an accumulation.
type AccumulationOptions struct {
	// Least is the minimum number of bytes, Java and native together, that an
	// object must retain.
	Least int64
	// Fewest is the minimum number of objects of one class that form an
	// accumulation; at least two.
	Fewest int64
	// Leave reports whether the bytes of a heap are ignored; nil ignores no
	// heap.
	Leave func(Heap) bool
	// Roots are the kinds of GC roots whose objects may form an accumulation,
	// the most informative kind first: an object with several roots counts for
	// the first kind.
	Roots []hprof.SubTag
	// Through selects, by name, the classes whose names do not indicate what
	// their objects contain; nil selects no class.
	Through func(class string) bool
}

// Accumulations searches from the top of the dominator tree down for the first
// objects that retain at least Least bytes and meet one of two conditions:
//   - no child retains more than half of the object's retained size, but at
//     least Fewest children of one class together retain more than half; or
//   - there are at least Fewest objects of the object's class: the object
//     itself and those that it dominates only through objects of this class.
//     None of them alone accounts for more than half of the bytes.
//
// Accumulations do not contain each other. Class objects are not accumulated
// objects, because programs normally have many classes with static fields. The
// check for links between objects ignores objects that have no references and
// are referenced by only one other object.
//
// Objects of one class that are held by GC roots of one kind also form an
// accumulation if there are at least Fewest of them, they retain at least Least
// bytes together, and none of them alone retains more than half of the bytes.
// Objects that contain an accumulation of the first two kinds are not counted,
// nor are objects in a heap that Leave selects. If Roots includes
// THREAD_OBJECT, the local variables of a thread (JAVA_FRAME) are counted with
// their thread, because the local variables in a dump depend on which methods
// the runtime has compiled.
//
// The accumulation with the largest retained size comes first.
//
// Accumulations visits each object of the dump up to twice, and each vertex
// below an object that retains at least Least bytes a few more times. It also
// sorts the GC roots of the kinds in Roots. It returns an error if ctx is done
// or if memory cannot be allocated.
func (g *Graph) Accumulations(ctx context.Context, o AccumulationOptions) ([]Accumulation, error) {
	a := newAccumulator(g, o)
	if err := a.walk(ctx); err != nil {
		return nil, err
	}
	marked, err := newBitset(&g.arena, int64(len(a.t.objects)))
	if err != nil {
		return nil, err
	}
	defer drop(&g.arena, (*[]uint64)(&marked))
	if err := a.decide(ctx, marked); err != nil {
		return nil, err
	}
	slices.SortFunc(a.found, byVertex)
	a.accumulateRoots(o.Roots, marked)
	return a.answer(ctx, marked)
}

func newAccumulator(g *Graph, o AccumulationOptions) *accumulator {
	a := &accumulator{g: g, t: &g.tree, names: g.rowNames(), least: max(o.Least, 1), fewest: max(o.Fewest, 2)}
	for h, heap := range g.Heaps[:g.heapCount()] {
		if o.Leave == nil || !o.Leave(heap) {
			a.heaps = append(a.heaps, h)
		}
	}
	a.through = make([]bool, len(a.names))
	for row, name := range a.names {
		a.through[row] = o.Through != nil && o.Through(name)
	}
	return a
}

// accumulator searches for accumulations.
type accumulator struct {
	g *Graph
	t *tree
	// heaps holds the indexes of the heaps whose bytes are counted.
	heaps         []int
	least, fewest int64
	// names holds the class name of each row; through holds, for each row,
	// whether AccumulationOptions.Through selects it.
	names   []string
	through []bool
	// found holds the accumulations; unsure holds the candidates that can only
	// be decided once the leaves without a vertex have been counted.
	found, unsure []candidate
	steps         []step
	sums          groups
	// rooted holds the groups of objects that GC roots hold, whether they form
	// an accumulation or not; members holds the objects of the groups that form
	// one.
	rooted  []rootAccumulation
	members []member
}

// candidate is a possible accumulation: its vertex and the class of its
// objects.
type candidate struct {
	vertex uint32
	row    uint32
	linked bool
	// largest is the largest retained size of any child. The first inTree
	// entries of sums are the classes that have vertices.
	largest int64
	sums    groups
	inTree  int
	count   int64
	size    Size
	// beside are the classes of the other objects at the place.
	beside groups
	// behind holds the classes of the objects referenced by the held objects.
	behind groups
	// If counted is true, count, size and beside are already set, and the
	// objects hold nothing.
	counted bool
}

// step is a vertex to visit. If settled is set, an ancestor of the same class
// has already checked whether the objects of this class are linked. If settled
// is a vertex, that vertex alone accounts for more than half of the bytes, and
// these objects are not linked on the path down to it. If settled is
// allSettled, they are not linked anywhere below the ancestor.
type step struct {
	vertex, settled uint32
}

const (
	unsettled  = 0
	allSettled = ^uint32(0)
)

// below returns the value of settled for the step to a child of the same class.
func (s step) below(t *tree, child uint32) uint32 {
	if s.settled == allSettled || child <= s.settled && s.settled < t.ends[child] {
		return s.settled
	}
	return unsettled
}

func (a *accumulator) walk(ctx context.Context) error {
	for v := uint32(1); v < uint32(len(a.t.ends)); v = a.t.ends[v] {
		if a.weigh(v).Total() >= a.least {
			a.steps = append(a.steps, step{v, unsettled})
		}
	}
	for len(a.steps) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := a.steps[len(a.steps)-1]
		a.steps = a.steps[:len(a.steps)-1]
		a.look(s)
	}
	return nil
}

// look decides whether a vertex is an accumulation, and continues with its
// children if it is not.
func (a *accumulator) look(s step) {
	whole, own := a.weigh(s.vertex), a.row(s.vertex)
	below, largest, related := Size{}, int64(0), false
	first := len(a.steps)
	a.sums.reset()
	for c := s.vertex + 1; c < a.t.ends[s.vertex]; c = a.t.ends[c] {
		size, row := a.weigh(c), a.row(c)
		below.add(size)
		largest = max(largest, size.Total())
		if a.slot(c) != classSlot {
			a.sums.add(row, size)
			related = related || row == own
		}
		if size.Total() >= a.least {
			a.steps = append(a.steps, step{c, unsettled})
		}
	}
	best := a.best(&a.sums)
	rest := whole.Total() - below.Total() - a.shallow(a.t.objects[s.vertex]).Total()
	switch {
	case 2*largest > whole.Total():
	case a.many(best, whole):
		a.steps = a.steps[:first]
		a.found = append(a.found, candidate{vertex: s.vertex, row: best.row})
		return
	case rest > 0 && 2*(rest+best.size.Total()) > whole.Total():
		a.unsure = append(a.unsure,
			candidate{vertex: s.vertex, largest: largest, sums: a.sums, inTree: len(a.sums.list)})
		a.sums = groups{}
	}
	if a.slot(s.vertex) == classSlot || !related {
		return
	}
	if s.settled == unsettled {
		if s.settled = a.link(s.vertex); s.settled == unsettled {
			a.steps = a.steps[:first]
			a.found = append(a.found, candidate{vertex: s.vertex, row: own, linked: true})
			return
		}
	}
	for i := range a.steps[first:] {
		if c := &a.steps[first+i]; a.row(c.vertex) == own {
			c.settled = s.below(a.t, c.vertex)
		}
	}
}

// many reports whether the objects of one class, counted in sum, form an
// accumulation below an object; whole is the retained size of that object.
func (a *accumulator) many(sum group, whole Size) bool {
	return sum.count >= a.fewest && 2*sum.size.Total() > whole.Total()
}

// link checks whether a vertex forms an accumulation with other vertices of its
// class: those that it dominates through vertices of this class only. It
// returns unsettled if they form one, and otherwise the value for step.settled.
func (a *accumulator) link(v uint32) uint32 {
	whole, row, count, heavy := a.weigh(v).Total(), a.row(v), int64(0), v
	for u := v; u < a.t.ends[v]; {
		if a.row(u) != row {
			u = a.t.ends[u]
			continue
		}
		count++
		// The vertices that retain more than half of the bytes form a chain.
		if 2*a.weigh(u).Total() > whole {
			heavy = u
		}
		u++
	}
	if count < a.fewest {
		return allSettled
	}
	own := a.weigh(heavy).Total()
	for c := heavy + 1; c < a.t.ends[heavy]; c = a.t.ends[c] {
		if a.row(c) == row {
			own -= a.weigh(c).Total()
		}
	}
	if 2*own > whole {
		return heavy
	}
	return unsettled
}

// decide adds the leaves to the candidates in unsure and decides which of them
// are accumulations.
func (a *accumulator) decide(ctx context.Context, marked bitset) error {
	if len(a.unsure) == 0 {
		return nil
	}
	slices.SortFunc(a.unsure, byVertex)
	for _, p := range a.unsure {
		marked.set(p.vertex)
	}
	last := 0
	err := a.leaves(ctx, marked, func(o, v uint32) {
		if a.unsure[last].vertex != v {
			last, _ = slices.BinarySearchFunc(a.unsure, v,
				func(p candidate, v uint32) int { return cmp.Compare(p.vertex, v) })
		}
		p, size := &a.unsure[last], a.shallow(o)
		p.largest = max(p.largest, size.Total())
		if s := a.g.slots.at(o); s != classSlot {
			p.sums.add(a.g.registry.list[s].row, size)
		}
	})
	if err != nil {
		return err
	}
	clear(marked)
	end := uint32(0)
	for _, p := range a.unsure {
		whole, best := a.weigh(p.vertex), a.best(&p.sums)
		if p.vertex < end || 2*p.largest > whole.Total() || !a.many(best, whole) {
			continue
		}
		end = a.t.ends[p.vertex]
		a.found = slices.DeleteFunc(a.found, func(f candidate) bool { return p.vertex <= f.vertex && f.vertex < end })
		f := candidate{vertex: p.vertex, row: best.row}
		if f.counted = p.sums.places[best.row] >= p.inTree; f.counted {
			f.count, f.size, f.beside = best.count, best.size, p.sums
		}
		a.found = append(a.found, f)
	}
	return nil
}

func byVertex(a, b candidate) int { return cmp.Compare(a.vertex, b.vertex) }

// answer counts the contents of the accumulations that were found, and returns
// the accumulations.
func (a *accumulator) answer(ctx context.Context, marked bitset) ([]Accumulation, error) {
	all := len(a.members) == 0
	for i := range a.found {
		if p := &a.found[i]; !p.counted {
			a.enter(p, marked)
			all = false
		}
	}
	if !all {
		last, near := 0, 0
		err := a.leaves(ctx, marked, func(o, v uint32) {
			if !a.within(last, v) {
				last = a.around(v)
			}
			if a.within(last, v) {
				a.leaf(&a.found[last], o, v)
			} else {
				near = a.rootLeaf(near, o, v)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	list := make([]Accumulation, 0, len(a.found))
	for i := range a.found {
		list = append(list, a.accumulation(&a.found[i]))
	}
	for i := range a.rooted {
		if p := &a.rooted[i]; p.accumulation {
			list = append(list, a.rootAccumulation(p))
		}
	}
	slices.SortFunc(list, func(x, y Accumulation) int {
		return cmp.Or(cmp.Compare(y.Retained.Total(), x.Retained.Total()), cmp.Compare(x.Object, y.Object))
	})
	return list, nil
}

// around returns the number of the last accumulation that begins at or before a
// vertex, or -1. No other accumulation can contain the vertex.
func (a *accumulator) around(v uint32) int {
	i, _ := slices.BinarySearchFunc(a.found, v+1, func(p candidate, v uint32) int { return cmp.Compare(p.vertex, v) })
	return i - 1
}

// within reports whether a vertex is in the accumulation with the given number;
// it returns false if there is no such accumulation.
func (a *accumulator) within(i int, v uint32) bool {
	return i >= 0 && i < len(a.found) && a.found[i].vertex <= v && v < a.t.ends[a.found[i].vertex]
}

// enter counts the vertices of an accumulation. If one of them dominates other
// vertices of its class, such as nodes in the same bucket of a map, they are
// counted with it. It marks the vertices that may have leaves.
func (a *accumulator) enter(p *candidate, marked bitset) {
	u := p.vertex
	if p.linked {
		p.size = a.weigh(u)
	} else {
		marked.set(u)
		u++
	}
	for u < a.t.ends[p.vertex] {
		direct := !p.linked && a.t.parents[u] == p.vertex
		if a.row(u) != p.row {
			switch {
			case !direct:
				p.sums.add(a.row(u), a.weigh(u))
				a.lookThrough(p, u, marked)
			case a.slot(u) != classSlot:
				p.beside.add(a.row(u), a.weigh(u))
			}
			u = a.t.ends[u]
			continue
		}
		marked.set(u)
		p.count++
		if direct {
			p.size.add(a.weigh(u))
		}
		u++
	}
}

// lookThrough counts the objects that a vertex references. The vertex is held
// by an object of an accumulation. If the class of an object is to be looked
// through, it marks that object and counts the objects behind it. It skips
// objects of the accumulation's class and what they hold.
func (a *accumulator) lookThrough(p *candidate, v uint32, marked bitset) {
	for u := v; u < a.t.ends[v]; {
		switch row := a.row(u); {
		case row == p.row:
			u = a.t.ends[u]
		case !a.through[row]:
			p.behind.add(row, a.weigh(u))
			u = a.t.ends[u]
		default:
			marked.set(u)
			u++
		}
	}
}

// leaf counts an object that has no vertex of its own and is held by a vertex
// of an accumulation.
func (a *accumulator) leaf(p *candidate, o, v uint32) {
	row, direct := a.g.registry.list[a.g.slots.at(o)].row, !p.linked && v == p.vertex
	switch {
	case v != p.vertex && a.row(v) != p.row:
		a.leafBehind(p, row, o)
		return
	case row != p.row && direct:
		p.beside.add(row, a.shallow(o))
		return
	case row != p.row:
		p.sums.add(row, a.shallow(o))
		a.leafBehind(p, row, o)
		return
	case direct:
		p.size.add(a.shallow(o))
	}
	p.count++
}

// leafBehind does the same as lookThrough, for an object without a vertex.
func (a *accumulator) leafBehind(p *candidate, row, o uint32) {
	if row != p.row && !a.through[row] {
		p.behind.add(row, a.shallow(o))
	}
}

func (a *accumulator) accumulation(p *candidate) Accumulation {
	r := Accumulation{
		Object: Object(a.t.objects[p.vertex]), Retained: a.weigh(p.vertex), Class: a.names[p.row], Count: p.count,
		Linked: p.linked, Size: p.size,
	}
	r.Beside = a.others(&p.beside, p.row, r.Retained)
	a.tellHeld(&r, &p.sums)
	if best := a.best(&p.behind); r.Held > 0 && a.through[a.best(&p.sums).row] && best.count*10 >= r.Held*9 {
		r.Behind = ClassSum{a.names[best.row], best.count, best.size}
	}
	return r
}

// tellHeld records the classes of the objects that the accumulated objects
// hold.
func (a *accumulator) tellHeld(r *Accumulation, held *groups) {
	best := a.best(held)
	if best.count == 0 {
		return
	}
	r.Holds, r.Held, r.HeldSize = a.names[best.row], best.count, best.size
	r.HeldBeside = a.others(held, best.row, r.Retained)
}

// others returns the classes to report in addition to the main one; whole is
// the retained size of the place.
func (a *accumulator) others(t *groups, told uint32, whole Size) (list []ClassSum) {
	for _, s := range t.list {
		if s.row != told && s.count >= a.fewest && worthBeside*s.size.Total() >= whole.Total() {
			list = append(list, ClassSum{a.names[s.row], s.count, s.size})
		}
	}
	slices.SortFunc(list, func(x, y ClassSum) int {
		return cmp.Or(cmp.Compare(y.Size.Total(), x.Size.Total()), cmp.Compare(y.Count, x.Count),
			strings.Compare(x.Class, y.Class))
	})
	return list[:min(len(list), mostBeside)]
}

// leaves calls f with each object that has no vertex of its own and whose owner
// is marked.
func (a *accumulator) leaves(ctx context.Context, marked bitset, f func(o, v uint32)) error {
	const checkInterval = 1 << 20
	for from := 0; from < len(a.t.vertices); from += checkInterval {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, v := range a.t.vertices[from:min(from+checkInterval, len(a.t.vertices))] {
			if o := uint32(from + i); marked.has(v) && a.t.objects[v] != o {
				f(o, v)
			}
		}
	}
	return nil
}

func (a *accumulator) slot(v uint32) slot { return a.g.slots.at(a.t.objects[v]) }

// row returns the row of a class; classes with different names have different
// rows.
func (a *accumulator) row(v uint32) uint32 { return a.g.registry.list[a.slot(v)].row }

// rowNames returns the class name of each row.
func (g *Graph) rowNames() (names []string) {
	for s := range g.registry.list {
		c := &g.registry.list[s]
		if c.name == "" {
			continue
		}
		for uint32(len(names)) <= c.row {
			names = append(names, "")
		}
		names[c.row] = c.name
	}
	return names
}

// weigh returns the retained size of a vertex in the heaps whose bytes are
// counted.
func (a *accumulator) weigh(v uint32) (s Size) {
	for _, h := range a.heaps {
		s.Java += a.t.retained[h][v]
	}
	if a.t.native != nil {
		s.Native = a.t.native[v]
	}
	return s
}

// shallow returns the size of an object itself: its native bytes and, if the
// bytes of its heap are counted, its Java bytes.
func (a *accumulator) shallow(o uint32) (s Size) {
	if len(a.g.native) > 0 {
		s.Native = a.g.native[o]
	}
	if a.counts(o) {
		s.Java = a.g.sizes.at(o)
	}
	return s
}

// counts reports whether the Java bytes of an object are counted, which depends
// on its heap.
func (a *accumulator) counts(o uint32) bool {
	if a.g.heapOf == nil {
		return len(a.heaps) > 0
	}
	return slices.Contains(a.heaps, int(a.g.heapOf[o]))
}

// best returns the class with the most bytes. Ties are broken by the number of
// objects, then by the name.
func (a *accumulator) best(t *groups) (best group) {
	for i, s := range t.list {
		c := cmp.Or(cmp.Compare(s.size.Total(), best.size.Total()), cmp.Compare(s.count, best.count))
		if i == 0 || c > 0 || c == 0 && strings.Compare(a.names[s.row], a.names[best.row]) < 0 {
			best = s
		}
	}
	return best
}

// group is the number of objects of one class, and the size that they retain
// together.
type group struct {
	row   uint32
	count int64
	size  Size
}

// groups counts objects by class. Adjacent objects often have the same class.
type groups struct {
	places map[uint32]int
	list   []group
	last   int
}

func (t *groups) reset() {
	clear(t.places)
	t.list, t.last = t.list[:0], 0
}

func (t *groups) add(row uint32, size Size) {
	if len(t.list) == 0 || t.list[t.last].row != row {
		place, ok := t.places[row]
		if !ok {
			if t.places == nil {
				t.places = map[uint32]int{}
			}
			place = len(t.list)
			t.places[row] = place
			t.list = append(t.list, group{row: row})
		}
		t.last = place
	}
	s := &t.list[t.last]
	s.count++
	s.size.add(size)
}
