package heap_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// plainTree is a dominator tree stored as lists of children, built by visiting
// each object once.
type plainTree struct {
	*heap.Graph
	options  heap.AccumulationOptions
	tops     []heap.Object
	children map[heap.Object][]heap.Object
	roots    map[heap.Object][]hprof.Root
}

func newPlainTree(g *heap.Graph, o heap.AccumulationOptions) *plainTree {
	p := &plainTree{
		Graph: g, options: o, children: map[heap.Object][]heap.Object{}, roots: map[heap.Object][]hprof.Root{},
	}
	g.Roots(func(r hprof.Root, o heap.Object) { p.roots[o] = append(p.roots[o], r) })
	for o := range heap.Object(g.Objects) {
		if !inTree(g, o) {
			continue
		}
		if d, ok := g.Dominator(o); ok {
			p.children[d] = append(p.children[d], o)
		} else {
			p.tops = append(p.tops, o)
		}
	}
	return p
}

// weight returns the retained size of an object in the heaps whose bytes are
// counted.
func (p *plainTree) weight(o heap.Object) heap.Size {
	s := heap.Size{Native: p.Retained(o).Native}
	for h := range p.Heaps {
		if p.options.Leave == nil || !p.options.Leave(p.Heaps[h]) {
			s.Java += p.RetainedIn(o, h)
		}
	}
	return s
}

// leaf reports whether an object is ignored when checking whether objects are
// linked.
func (p *plainTree) leaf(o heap.Object) bool {
	d, ok := p.Dominator(o)
	return ok && p.HoldsAlone(d, o)
}

func (p *plainTree) accumulations() (list []heap.Accumulation) {
	for _, o := range p.tops {
		list = p.down(o, list)
	}
	list = append(list, p.rooted(list)...)
	slices.SortFunc(list, func(a, b heap.Accumulation) int {
		return cmp.Or(cmp.Compare(b.Retained.Total(), a.Retained.Total()), cmp.Compare(a.Object, b.Object))
	})
	return list
}

func (p *plainTree) down(o heap.Object, list []heap.Accumulation) []heap.Accumulation {
	if p.weight(o).Total() < p.options.Least {
		return list
	}
	if class, ok := p.many(o); ok {
		return append(list, p.describe(o, class, false))
	}
	if p.linked(o) {
		return append(list, p.describe(o, p.Class(o), true))
	}
	for _, c := range p.children[o] {
		list = p.down(c, list)
	}
	return list
}

// many is a second implementation of the first condition of Accumulations.
func (p *plainTree) many(o heap.Object) (string, bool) {
	whole := p.weight(o).Total()
	counts, sums := map[string]int64{}, map[string]int64{}
	for _, c := range p.children[o] {
		size := p.weight(c).Total()
		if 2*size > whole {
			return "", false
		}
		if !p.IsClass(c) {
			counts[p.Class(c)]++
			sums[p.Class(c)] += size
		}
	}
	for class, sum := range sums {
		if counts[class] >= p.options.Fewest && 2*sum > whole {
			return class, true
		}
	}
	return "", false
}

// linked is a second implementation of the second condition of Accumulations.
func (p *plainTree) linked(o heap.Object) bool {
	if p.IsClass(o) {
		return false
	}
	count, most := int64(0), int64(0)
	var enter func(heap.Object)
	enter = func(m heap.Object) {
		count++
		own := p.weight(m).Total()
		for _, c := range p.children[m] {
			if p.Class(c) == p.Class(o) && !p.leaf(c) {
				own -= p.weight(c).Total()
				enter(c)
			}
		}
		most = max(most, own)
	}
	enter(o)
	return count >= p.options.Fewest && 2*most <= p.weight(o).Total()
}

func (p *plainTree) describe(o heap.Object, class string, linked bool) heap.Accumulation {
	a := heap.Accumulation{Object: o, Retained: p.weight(o), Class: class, Linked: linked}
	held, beside, behind := plainSums{}, plainSums{}, plainSums{}
	var enter func(heap.Object)
	enter = func(m heap.Object) {
		a.Count++
		for _, c := range p.children[m] {
			if p.Class(c) == class {
				enter(c)
				continue
			}
			held.add(p.Class(c), p.weight(c))
			p.lookThrough(c, class, behind)
		}
	}
	if linked {
		a.Size = p.weight(o)
		enter(o)
	} else {
		for _, c := range p.children[o] {
			switch {
			case p.Class(c) == class:
				a.Size = plus(a.Size, p.weight(c))
				enter(c)
			case !p.IsClass(c):
				beside.add(p.Class(c), p.weight(c))
			}
		}
	}
	a.Beside = p.worth(beside, a.Retained)
	p.holds(&a, held)
	if len(behind) > 0 && a.Held > 0 && p.options.Through(a.Holds) {
		if best := behind.sorted()[0]; 10*best.Count >= 9*a.Held {
			a.Behind = best
		}
	}
	return a
}

// lookThrough counts, on each path, the first object whose class is not in
// AccumulationOptions.Through.
func (p *plainTree) lookThrough(o heap.Object, class string, behind plainSums) {
	if p.options.Through == nil || p.Class(o) == class {
		return
	}
	if !p.options.Through(p.Class(o)) {
		behind.add(p.Class(o), p.weight(o))
		return
	}
	for _, c := range p.children[o] {
		p.lookThrough(c, class, behind)
	}
}

// plainSums counts objects by class.
type plainSums map[string]heap.ClassSum

func (t plainSums) add(class string, size heap.Size) {
	s := t[class]
	t[class] = heap.ClassSum{Class: class, Count: s.Count + 1, Size: plus(s.Size, size)}
}

// sorted returns the classes, the one with the most bytes first.
func (t plainSums) sorted() []heap.ClassSum {
	return slices.SortedFunc(maps.Values(t), func(a, b heap.ClassSum) int {
		return cmp.Or(cmp.Compare(b.Size.Total(), a.Size.Total()), cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.Class, b.Class))
	})
}

// worth returns up to three classes, each with at least Fewest objects and a
// fifth of the retained size.
func (p *plainTree) worth(t plainSums, retained heap.Size) (list []heap.ClassSum) {
	for _, s := range t.sorted() {
		if s.Count >= p.options.Fewest && 5*s.Size.Total() >= retained.Total() && len(list) < 3 {
			list = append(list, s)
		}
	}
	return list
}

// holds sets the fields about the held objects: the class with the most bytes,
// and the other classes to report.
func (p *plainTree) holds(a *heap.Accumulation, held plainSums) {
	if len(held) == 0 {
		return
	}
	best := held.sorted()[0]
	a.Holds, a.Held, a.HeldSize = best.Class, best.Count, best.Size
	delete(held, best.Class)
	a.HeldBeside = p.worth(held, a.Retained)
}

// rooted is a second implementation of the rule for objects that GC roots hold.
func (p *plainTree) rooted(found []heap.Accumulation) (list []heap.Accumulation) {
	owners := p.owners(found)
	type group struct {
		kind  hprof.SubTag
		class string
	}
	members := map[group][]heap.Object{}
	for o := range heap.Object(p.Objects) {
		if kind := p.kind(o); kind != 0 && owners[o] == o {
			g := group{kind, p.Class(o)}
			members[g] = append(members[g], o)
		}
	}
	for g, objects := range members {
		a := heap.Accumulation{Root: g.kind, Class: g.class, Count: int64(len(objects))}
		held, most := plainSums{}, int64(-1)
		for _, o := range objects {
			all := p.weight(o)
			for _, c := range p.children[o] {
				held.add(p.Class(c), p.weight(c))
			}
			for local, owner := range owners {
				if owner == o && local != o {
					all = plus(all, p.weight(local))
					held.add(p.Class(local), p.weight(local))
				}
			}
			if all.Total() > most {
				most, a.Object = all.Total(), o
			}
			a.Size = plus(a.Size, all)
		}
		a.Retained = a.Size
		if a.Count >= p.options.Fewest && a.Size.Total() >= p.options.Least && 2*most <= a.Size.Total() {
			p.holds(&a, held)
			list = append(list, a)
		}
	}
	return list
}

// kind returns the first kind in AccumulationOptions.Roots that an object has
// as a GC root, or 0 if it has none.
func (p *plainTree) kind(o heap.Object) hprof.SubTag {
	for _, kind := range p.options.Roots {
		for _, r := range p.roots[o] {
			if r.Kind == kind {
				return kind
			}
		}
	}
	return 0
}

// owners returns the thread of each local variable; any other object is its own
// owner.
func (p *plainTree) owners(found []heap.Accumulation) map[heap.Object]heap.Object {
	told := map[heap.Object]bool{}
	for _, a := range found {
		for o, ok := a.Object, true; ok; o, ok = p.Dominator(o) {
			told[o] = true
		}
	}
	threads := map[uint32]heap.Object{}
	p.Roots(func(r hprof.Root, o heap.Object) {
		if first, ok := threads[r.Thread]; r.Kind == hprof.SubRootThreadObject &&
			slices.Contains(p.options.Roots, r.Kind) && (!ok || o < first) {
			threads[r.Thread] = o
		}
	})
	owners := map[heap.Object]heap.Object{}
	for o := range heap.Object(p.Objects) {
		kind := p.kind(o)
		if kind == 0 || told[o] || p.IsClass(o) || p.options.Leave != nil && p.options.Leave(p.Heaps[p.HeapOf(o)]) {
			continue
		}
		all := map[heap.Object]bool{}
		for _, r := range p.roots[o] {
			thread, ok := threads[r.Thread]
			switch {
			case r.Kind != kind:
			case r.Kind == hprof.SubRootJavaFrame && ok:
				all[thread] = true
			default:
				all[o] = true
			}
		}
		if len(all) == 1 {
			for owner := range all {
				owners[o] = owner
			}
		}
	}
	return owners
}

// thicket returns a world in which each object is referenced once and a few
// classes have many objects: mixtures of lists, fans and trees, with byte
// arrays below.
func thicket(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 11))
	w := &world{idSize: 4}
	super := w.class("java.lang.Object", nil, 8)
	w.class("java.lang.Class", super, 40)
	var nodes []*class
	for i := range 1 + r.IntN(4) {
		nodes = append(nodes,
			w.class(fmt.Sprintf("com.example.Node%d", i), super, uint32(8+r.IntN(24)), field{"a", hprof.Object},
				field{"b", hprof.Object}))
	}
	array := w.class("java.lang.Object[]", super, 12)
	var open []*object
	grow := func(o *object) *object {
		if r.IntN(6) == 0 {
			o.heap = 'Z'
		}
		open = append(open, o)
		return o
	}
	next := func() *object {
		switch k := r.IntN(10); {
		case k < 2:
			return w.primitives(hprof.Byte, uint32(r.IntN(64)))
		case k < 4:
			return grow(w.array(array, make([]*object, r.IntN(12))...))
		case k < 5 && seed%2 == 0:
			return w.instance(nodes[0])
		}
		return grow(w.instance(nodes[r.IntN(len(nodes))]))
	}
	for range 1 + r.IntN(3) {
		w.root(hprof.SubRootJNIGlobal, grow(w.instance(nodes[0])))
	}
	for n := 5 + r.IntN(120); n > 0 && len(open) > 0; n-- {
		// Attaching objects depth first creates lists; breadth first creates
		// fans.
		at := len(open) - 1
		if r.IntN(3) == 0 {
			at = r.IntN(len(open))
		}
		o := open[at]
		place := firstFree(o)
		if place == nil {
			open = slices.Delete(open, at, at+1)
			continue
		}
		*place = next()
	}
	return w
}

// firstFree returns the first null reference of an object, or nil if it has
// none.
func firstFree(o *object) **object {
	for i := range o.elements {
		if o.elements[i] == nil {
			return &o.elements[i]
		}
	}
	for i := range o.values {
		if o.values[i].object == nil {
			return &o.values[i].object
		}
	}
	return nil
}

// rootedKinds are the kinds of GC roots in a thicket; the last one is not in
// AccumulationOptions.Roots.
var rootedKinds = []hprof.SubTag{
	hprof.SubRootThreadObject, hprof.SubRootJNIGlobal, hprof.SubRootMonitorUsed, hprof.SubRootJavaFrame,
	hprof.SubRootVMInternal,
}

// rootMany makes many objects GC roots. Some of them get several roots, and
// some are class objects.
func (w *world) rootMany(r *rand.Rand) {
	for range r.IntN(60) {
		w.root(rootedKinds[r.IntN(len(rootedKinds))], w.objects[r.IntN(len(w.objects))])
	}
}

// threaded writes a world as a dump in which the roots belong to a few threads.
func (w *world) threaded(t *testing.T, f form, serials []uint32) []byte {
	written := w.write(t, f)
	for i, end := range written.roots {
		switch w.roots[i].kind {
		case hprof.SubRootThreadObject, hprof.SubRootJavaFrame:
			// The serial number of the thread is followed by another number.
			binary.BigEndian.PutUint32(written.dump[end-8:], serials[i])
		}
	}
	return written.dump
}

// medley returns a world in which one array references objects of a few
// classes, some of which reference further objects of these classes.
func medley(r *rand.Rand) *world {
	w := &world{idSize: 4}
	super := w.class("java.lang.Object", nil, 8)
	w.class("java.lang.Class", super, 40)
	array := w.array(w.class("java.lang.Object[]", super, 12), make([]*object, 8+r.IntN(30))...)
	var nodes []*class
	for i := range 4 {
		nodes = append(nodes,
			w.class(fmt.Sprintf("com.example.Node%d", i), super, uint32(24+r.IntN(24)), field{"a", hprof.Object},
				field{"b", hprof.Object}))
	}
	makers := []func() *object{
		func() *object { return w.instance(nodes[0]) },
		func() *object { return w.instance(nodes[1]) },
		func() *object { return w.primitives(hprof.Byte, uint32(24+r.IntN(24))) },
		func() *object { return w.primitives(hprof.Char, uint32(12+r.IntN(12))) },
		// A class without references.
		func() *object { return w.class("com.example.Alone", nil, 8).object },
	}
	r.Shuffle(len(makers), func(i, k int) { makers[i], makers[k] = makers[k], makers[i] })
	few := func() *object { return makers[[...]int{0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 4}[r.IntN(14)]]() }
	for i := range array.elements {
		array.elements[i] = few()
		for n := range array.elements[i].values {
			if r.IntN(4) == 0 {
				array.elements[i].values[n].object = few()
			}
		}
	}
	w.root(hprof.SubRootJNIGlobal, array)
	return w
}

// thickets returns the world for a seed, the options to use for it, and the
// serial numbers of its threads.
func thickets(seed uint64) (*world, heap.AccumulationOptions, []uint32) {
	w := thicket(seed)
	r := rand.New(rand.NewPCG(seed, 12))
	switch seed % 8 {
	case 0, 4:
		_, w = randomWorld(seed, 200)
	case 1, 5:
		w = medley(r)
	}
	o := heap.AccumulationOptions{Least: int64(1 + r.IntN(200)), Fewest: int64(2 + r.IntN(4))}
	if seed%3 == 0 {
		o.Leave = func(h heap.Heap) bool { return h.ID == 'Z' }
	}
	if seed%5 > 1 {
		w.rootMany(r)
		o.Roots = slices.Clone(rootedKinds[:4])
		if seed%5 == 2 {
			o.Roots = o.Roots[1:]
		}
	}
	if seed%7 > 1 {
		o.Through = func(class string) bool { return (uint64(class[len(class)-1])+uint64(len(class))+seed)%3 > 0 }
	}
	var serials []uint32
	for range w.roots {
		serials = append(serials, uint32(r.IntN(1+len(w.roots)/2)))
	}
	return w, o, serials
}

// The results must match brute force on random graphs and on random trees, with
// few GC roots and with many.
func TestAccumulationsByBruteForce(t *testing.T) {
	seeds := uint64(4000)
	if racing {
		seeds = 1000
	}
	var plain, linked, withLeaves, holding, behind, rooted, owning, beside, heldBeside int
	for seed := range seeds {
		w, o, serials := thickets(seed)
		g := load(t, w.threaded(t, form{}, serials), heap.Options{})
		got, err := g.Accumulations(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		p := newPlainTree(g, o)
		if want := p.accumulations(); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, %+v:\n got %+v\nwant %+v", seed, o, got, want)
		}
		for _, a := range got {
			switch {
			case a.Root != 0:
				rooted++
				if a.Size != p.weighs(a) {
					owning++
				}
			case a.Linked:
				linked++
			case slices.ContainsFunc(p.children[a.Object], p.leaf):
				withLeaves++
			default:
				plain++
			}
			if a.Holds != "" {
				holding++
			}
			behind += min(1, int(a.Behind.Count))
			beside += min(1, len(a.Beside))
			heldBeside += min(1, len(a.HeldBeside))
		}
	}
	if min(plain, linked, withLeaves, holding, behind, rooted, owning, beside, heldBeside) < int(seeds)/100 {
		t.Errorf("too few accumulations of some kind: %d with vertices, %d linked, %d with leaves, %d that hold "+
			"objects, %d "+
			"that hold more objects indirectly, %d held by GC roots, %d of threads with locals, %d with other "+
			"classes, %d that hold other classes",
			plain, linked, withLeaves, holding, behind, rooted, owning, beside, heldBeside)
	}
}

// weighs returns the retained size of the objects of an accumulation, without
// the local variables that they own.
func (p *plainTree) weighs(a heap.Accumulation) (sum heap.Size) {
	for o := range p.roots {
		if p.Class(o) == a.Class && p.kind(o) == a.Root {
			sum = plus(sum, p.weight(o))
		}
	}
	return sum
}

// The result must not depend on the order of objects and GC roots.
func TestAccumulationsInAnyOrder(t *testing.T) {
	seeds := uint64(1500)
	if racing {
		seeds = 200
	}
	rooted, several := 0, 0
	for seed := range seeds {
		w, o, serials := thickets(seed)
		want, err := load(t, w.threaded(t, form{}, serials), heap.Options{Workers: 1}).Accumulations(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(seed, 13))
		r.Shuffle(len(w.roots), func(i, k int) {
			w.roots[i], w.roots[k] = w.roots[k], w.roots[i]
			serials[i], serials[k] = serials[k], serials[i]
		})
		f := form{
			order: r.Perm(len(w.objects)), rootsAt: r.IntN(len(w.objects) + 1), namesLast: r.IntN(2) == 0,
			segments: hproftest.Segmentation{Records: 1 + r.IntN(9)},
		}
		got, err := load(t, w.threaded(t, f, serials), heap.Options{}).Accumulations(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, %+v:\n got %+v\nwant %+v", seed, o, got, want)
		}
		for _, a := range got {
			if a.Root != 0 {
				rooted++
			}
		}
		if len(got) > 1 {
			several++
		}
	}
	if min(rooted, several) < int(seeds)/20 {
		t.Errorf("too few cases: %d held by GC roots, %d with several", rooted, several)
	}
}

// These worlds have the shapes of common collections.
func TestAccumulationsOfShapes(t *testing.T) {
	const n = 1000
	build := func(grow func(w *world, node, value *class) *object) *world {
		w := &world{idSize: 4}
		super := w.class("java.lang.Object", nil, 8)
		w.class("java.lang.Class", super, 40)
		w.class("java.lang.Object[]", super, 0)
		node := w.class("Node", super, 16, field{"next", hprof.Object}, field{"value", hprof.Object})
		value := w.class("Session", super, 24, field{"data", hprof.Object})
		w.root(hprof.SubRootJNIGlobal, grow(w, node, value))
		return w
	}
	session := func(w *world, value *class) *object {
		return w.instance(value, refs(w.primitives(hprof.Byte, 40))...)
	}
	bytes := func(w *world, n int) *object {
		table := w.array(w.named("java.lang.Object[]"), make([]*object, n)...)
		for i := range table.elements {
			table.elements[i] = w.primitives(hprof.Byte, 100)
		}
		return table
	}
	tests := []struct {
		name string
		grow func(w *world, node, value *class) *object
		want string
	}{
		{"list", func(w *world, node, value *class) (head *object) {
			for range n {
				head = w.instance(node, refs(head, session(w, value))...)
			}
			return head
		}, "Node: 1000 Node linked, 80000 of 80000 bytes, with 1000 Session, 64000 bytes"},
		{"tree", func(w *world, node, _ *class) *object {
			list := []*object{w.instance(node)}
			for i := 0; len(list) < n; i++ {
				for k := range list[i].values {
					child := w.instance(node)
					list[i].values[k].object = child
					list = append(list, child)
				}
			}
			return list[0]
		}, "Node: 1001 Node linked, 16016 of 16016 bytes"},
		{"map with two nodes per bucket", func(w *world, node, value *class) *object {
			table := w.array(w.named("java.lang.Object[]"), make([]*object, n)...)
			for i := range table.elements {
				table.elements[i] = w.instance(node,
					refs(w.instance(node, refs(nil, session(w, value))...), session(w, value))...)
			}
			return table
		}, "java.lang.Object[]: 2000 Node, 160000 of 164000 bytes, with 2000 Session, 128000 bytes"},
		{"array of leaves", func(w *world, node, _ *class) *object {
			return w.instance(node, refs(bytes(w, n))...)
		}, "java.lang.Object[]: 1000 byte[], 100000 of 104000 bytes"},
		{"one large leaf among many", func(w *world, _, _ *class) *object {
			table := bytes(w, n)
			table.elements[0].count = 200_000
			return table
		}, ""},
		{"leaves, one of which has leaves", func(w *world, _, _ *class) *object {
			table := bytes(w, n)
			table.elements[0] = bytes(w, n/2)
			return table
		}, "java.lang.Object[]: 999 byte[], 99900 of 155900 bytes"},
		{"leaves in each node of a list", func(w *world, node, _ *class) *object {
			parts := w.class("Part", node.super, 8)
			for i := range 20 {
				parts.fields = append(parts.fields, field{fmt.Sprint("f", i), hprof.Object})
			}
			var list *object
			for range n {
				part := w.instance(parts, refs(list)...)
				for i := range part.values[1:] {
					part.values[1+i].object = w.primitives(hprof.Byte, 10)
				}
				list = part
			}
			for i := range list.values[1:] {
				list.values[1+i].object.count = 20_000
			}
			return list
		}, "Part: 19 byte[], 380000 of 577810 bytes"},
		{"classes", func(w *world, node, _ *class) *object {
			table := w.array(w.named("java.lang.Object[]"), make([]*object, n)...)
			for i := range table.elements {
				c := w.class(fmt.Sprintf("C%d", i), node.super, 8)
				table.elements[i] = c.object
			}
			return table
		}, ""},
		{"leaves of two classes", func(w *world, _, _ *class) *object {
			table := bytes(w, n)
			for i := range table.elements[:n/4] {
				table.elements[i] = w.primitives(hprof.Char, 50)
			}
			return table
		}, "java.lang.Object[]: 750 byte[] and 250 char[], 25000 bytes, 75000 of 104000 bytes"},
		{"leaves and classes", func(w *world, _, _ *class) *object {
			table := bytes(w, n)
			for i := range table.elements[:n/4] {
				c := w.class(fmt.Sprintf("C%d", i), nil, 8)
				c.statics = []static{{field: field{"s", hprof.Long}}, {field: field{"t", hprof.Long}}}
				table.elements[i] = c.object
			}
			return table
		}, "java.lang.Object[]: 750 byte[], 75000 of 93000 bytes"},
		{"few objects of a second class", func(w *world, node, _ *class) *object {
			table := bytes(w, n)
			for i := range table.elements[:9] {
				table.elements[i] = w.primitives(hprof.Char, 2000)
			}
			return table
		}, "java.lang.Object[]: 991 byte[], 99100 of 139100 bytes"},
		{"objects held by GC roots, each with five classes", func(w *world, node, _ *class) (last *object) {
			one := w.class("Quintet", node.super, 0)
			for i := range 5 {
				one.fields = append(one.fields, field{fmt.Sprint("f", i), hprof.Object})
			}
			types := []hprof.Type{hprof.Byte, hprof.Char, hprof.Int, hprof.Long, hprof.Boolean}
			for range n {
				var parts []*object
				for _, t := range types {
					parts = append(parts, w.primitives(t, uint32(80/t.Size(4))))
				}
				last = w.instance(one, refs(parts...)...)
				w.root(hprof.SubRootJNIGlobal, last)
			}
			return last
		},
			"JNI_GLOBAL Quintet: 1000 Quintet, 400000 of 400000 bytes, with 1000 boolean[], 80000 bytes and 1000 " +
				"byte[], 80000 bytes and 1000 char[], 80000 bytes and 1000 int[], 80000 bytes"},
		{"list with one large value, followed by another list", func(w *world, node, value *class) (head *object) {
			for range n {
				head = w.instance(node, refs(head, session(w, value))...)
			}
			head.values[1].object.values[0].object.count = 500_000
			for range n {
				head = w.instance(node, refs(head, session(w, value))...)
			}
			return head
		}, "Node: 999 Node linked, 79920 of 79920 bytes, with 999 Session, 63936 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := load(t, build(test.grow).dump(t), heap.Options{})
			list, err := g.Accumulations(t.Context(),
				heap.AccumulationOptions{Least: 10_000, Fewest: 10, Roots: rootedKinds[:4]})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, a := range list {
				if a.Root != 0 {
					got += fmt.Sprint(a.Root, " ")
				}
				got += fmt.Sprintf("%s: %d %s%s", g.Class(a.Object), a.Count, a.Class, alongside(a.Beside))
				if a.Linked {
					got += " linked"
				}
				got += fmt.Sprintf(", %d of %d bytes", a.Size.Total(), a.Retained.Total())
				if a.Holds != "" {
					got += fmt.Sprintf(", with %d %s, %d bytes%s", a.Held, a.Holds, a.HeldSize.Total(),
						alongside(a.HeldBeside))
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func alongside(list []heap.ClassSum) (text string) {
	for _, s := range list {
		text += fmt.Sprintf(" and %d %s, %d bytes", s.Count, s.Class, s.Size.Total())
	}
	return text
}

func TestAccumulationsEnd(t *testing.T) {
	g := load(t, thicket(1).dump(t), heap.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Accumulations(ctx, heap.AccumulationOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// BenchmarkAccumulations finds one accumulation among a million objects. Limits
// relative to the time of Load: 1 % if little accumulates and 10 % if
// everything does (measured: below 0.1 %, and 20 of Load's 240 ns per object);
// 25 % if every second object is a GC root (measured: 35 to 50 ns). No
// benchmark allocates per object.
func BenchmarkAccumulations(b *testing.B) {
	const objects = 1_000_000
	for name, dump := range map[string][]byte{
		"app": mixture(b, objects), "map": nodeArray(b, objects), "leaves": leafArray(b, objects),
		"globals": globals(b, objects),
	} {
		b.Run(name, func(b *testing.B) {
			g, err := open(dump, heap.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer g.Close()
			b.ReportAllocs()
			found := 0
			for b.Loop() {
				list, err := g.Accumulations(b.Context(),
					heap.AccumulationOptions{
						Least: g.ReachableBytes().Total() / 20, Fewest: 10, Roots: rootedKinds[:4],
					})
				if err != nil {
					b.Fatal(err)
				}
				found = len(list)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(g.Objects), "ns/object")
			b.ReportMetric(float64(found), "found")
		})
	}
}

// nodeArray returns the dump of an array of n/3 nodes, each with a string.
func nodeArray(tb testing.TB, n int) []byte {
	w := newScribe(4)
	for k, name := range []string{"Box", "String", "Node2", "Node3"} {
		w.class(hprof.ID(0x100+16*k), name, uint32(16+4*k), k)
	}
	w.class(0x200, "Object[]", 0, 0)
	at := func(i int) hprof.ID { return hprof.ID(0x12c00000 + 24*i) }
	var ids []hprof.ID
	for i := 1; i+2 < n; i += 3 {
		ids = append(ids, at(i))
		w.instance(at(i), 0x120, at(i+1), 0)
		w.instance(at(i+1), 0x110, at(i+2))
		w.PrimitiveArray(at(i+2), 0, hprof.Byte, make([]byte, 20))
	}
	w.ObjectArray(at(0), 0, 0x200, ids)
	w.Root(hprof.Root{Kind: hprof.SubRootVMInternal, Object: at(0)})
	return w.dump(tb)
}

// leafArray returns the dump of an array of n boxes.
func leafArray(tb testing.TB, n int) []byte {
	w := newScribe(4)
	w.class(0x100, "Box", 16, 0)
	w.class(0x200, "Object[]", 0, 0)
	at := func(i int) hprof.ID { return hprof.ID(0x12c00000 + 24*i) }
	var ids []hprof.ID
	for i := 1; i < n; i++ {
		ids = append(ids, at(i))
		w.instance(at(i), 0x100)
	}
	w.ObjectArray(at(0), 0, 0x200, ids)
	w.Root(hprof.Root{Kind: hprof.SubRootVMInternal, Object: at(0)})
	return w.dump(tb)
}

// globals returns the dump of n/2 nodes, each held by a JNI global and each
// with a box.
func globals(tb testing.TB, n int) []byte {
	w := newScribe(4)
	w.class(0x100, "Box", 16, 0)
	w.class(0x110, "Node", 20, 1)
	at := func(i int) hprof.ID { return hprof.ID(0x12c00000 + 24*i) }
	for i := 0; i+1 < n; i += 2 {
		w.instance(at(i), 0x110, at(i+1))
		w.instance(at(i+1), 0x100)
		w.Root(hprof.Root{Kind: hprof.SubRootJNIGlobal, Object: at(i)})
	}
	return w.dump(tb)
}
