package heap_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/analysis/heap"
	"github.com/leakgate/leakgate/analysis/hprof"
)

// plainTree is a dominator tree as lists of children, from one look at each object.
type plainTree struct {
	*heap.Graph
	options  heap.AccumulationOptions
	tops     []heap.Object
	children map[heap.Object][]heap.Object
}

func newPlainTree(g *heap.Graph, o heap.AccumulationOptions) *plainTree {
	p := &plainTree{Graph: g, options: o, children: map[heap.Object][]heap.Object{}}
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

// weight is what an object retains in the heaps that count.
func (p *plainTree) weight(o heap.Object) heap.Size {
	s := heap.Size{Native: p.Retained(o).Native}
	for h := range p.Heaps {
		if p.options.Leave == nil || !p.options.Leave(p.Heaps[h]) {
			s.Java += p.RetainedIn(o, h)
		}
	}
	return s
}

// leaf tells which objects do not count for whether others are linked.
func (p *plainTree) leaf(o heap.Object) bool {
	d, ok := p.Dominator(o)
	return ok && p.HoldsAlone(d, o)
}

func (p *plainTree) accumulations() (list []heap.Accumulation) {
	for _, o := range p.tops {
		list = p.down(o, list)
	}
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

// many is the first rule.
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

// linked is the second rule.
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
	held := map[string]*heap.Accumulation{}
	var enter func(heap.Object)
	enter = func(m heap.Object) {
		a.Count++
		for _, c := range p.children[m] {
			if p.Class(c) == class {
				enter(c)
				continue
			}
			h := held[p.Class(c)]
			if h == nil {
				h = &heap.Accumulation{}
				held[p.Class(c)] = h
			}
			h.Held++
			h.HeldSize = plus(h.HeldSize, p.weight(c))
		}
	}
	if linked {
		a.Size = p.weight(o)
		enter(o)
	} else {
		for _, c := range p.children[o] {
			if p.Class(c) == class {
				a.Size = plus(a.Size, p.weight(c))
				enter(c)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(held)) {
		h := held[name]
		if c := cmp.Or(cmp.Compare(h.HeldSize.Total(), a.HeldSize.Total()), cmp.Compare(h.Held, a.Held)); a.Holds == "" || c > 0 {
			a.Holds, a.Held, a.HeldSize = name, h.Held, h.HeldSize
		}
	}
	return a
}

// thicket is a world in which each object has one other that references it, and few
// classes are many: lists, fans and trees in all mixtures, with arrays of bytes below.
func thicket(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 11))
	w := &world{idSize: 4}
	super := w.class("java.lang.Object", nil, 8)
	w.class("java.lang.Class", super, 40)
	var nodes []*class
	for i := range 1 + r.IntN(4) {
		nodes = append(nodes, w.class(fmt.Sprintf("com.example.Node%d", i), super, uint32(8+r.IntN(24)), field{"a", hprof.Object}, field{"b", hprof.Object}))
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
		// Depth first makes lists, breadth first fans.
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

// firstFree gives the first reference of an object that is null.
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

// Brute force, on random graphs and on random trees.
func TestAccumulationsByBruteForce(t *testing.T) {
	seeds := uint64(4000)
	if racing {
		seeds = 1000
	}
	var plain, linked, withLeaves, holding int
	for seed := range seeds {
		w := thicket(seed)
		if seed%4 == 0 {
			_, w = randomWorld(seed, 200)
		}
		r := rand.New(rand.NewPCG(seed, 12))
		o := heap.AccumulationOptions{Least: int64(1 + r.IntN(200)), Fewest: int64(2 + r.IntN(4))}
		if seed%3 == 0 {
			o.Leave = func(h heap.Heap) bool { return h.ID == 'Z' }
		}
		g := load(t, w.dump(t), heap.Options{})
		got, err := g.Accumulations(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b heap.Accumulation) int {
			return cmp.Or(cmp.Compare(b.Retained.Total(), a.Retained.Total()), cmp.Compare(a.Object, b.Object))
		})
		p := newPlainTree(g, o)
		if want := p.accumulations(); !slices.Equal(got, want) {
			t.Fatalf("seed %d, %+v:\n got %+v\nwant %+v", seed, o, got, want)
		}
		for _, a := range got {
			switch {
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
		}
	}
	if min(plain, linked, withLeaves, holding) < int(seeds)/50 {
		t.Errorf("%d with vertices, %d linked, %d with leaves, %d that hold something: too few to tell anything", plain, linked, withLeaves, holding)
	}
}

// The shapes that collections have.
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
		{"a list", func(w *world, node, value *class) (head *object) {
			for range n {
				head = w.instance(node, refs(head, session(w, value))...)
			}
			return head
		}, "Node: 1000 Node linked, 80000 of 80000 bytes, with 1000 Session, 64000 bytes"},
		{"a tree", func(w *world, node, _ *class) *object {
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
		{"a map with two in each bucket", func(w *world, node, value *class) *object {
			table := w.array(w.named("java.lang.Object[]"), make([]*object, n)...)
			for i := range table.elements {
				table.elements[i] = w.instance(node, refs(w.instance(node, refs(nil, session(w, value))...), session(w, value))...)
			}
			return table
		}, "java.lang.Object[]: 2000 Node, 160000 of 164000 bytes, with 2000 Session, 128000 bytes"},
		{"an array of leaves", func(w *world, node, _ *class) *object {
			return w.instance(node, refs(bytes(w, n))...)
		}, "java.lang.Object[]: 1000 byte[], 100000 of 104000 bytes"},
		{"one large leaf beside many", func(w *world, _, _ *class) *object {
			table := bytes(w, n)
			table.elements[0].count = 200_000
			return table
		}, ""},
		{"leaves, and leaves below one of them", func(w *world, _, _ *class) *object {
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
		{"a list with one large value, and a list behind it", func(w *world, node, value *class) (head *object) {
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
			list, err := g.Accumulations(t.Context(), heap.AccumulationOptions{Least: 10_000, Fewest: 10})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, a := range list {
				got += fmt.Sprintf("%s: %d %s", g.Class(a.Object), a.Count, a.Class)
				if a.Linked {
					got += " linked"
				}
				got += fmt.Sprintf(", %d of %d bytes", a.Size.Total(), a.Retained.Total())
				if a.Holds != "" {
					got += fmt.Sprintf(", with %d %s, %d bytes", a.Held, a.Holds, a.HeldSize.Total())
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAccumulationsEnd(t *testing.T) {
	g := load(t, thicket(1).dump(t), heap.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Accumulations(ctx, heap.AccumulationOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// BenchmarkAccumulations finds one accumulation in a million objects.
// Bar: a hundredth of the time of Load where little piles up, and a tenth where all
// does (measured: below a thousandth, and 20 ns an object of the 240 of Load).
func BenchmarkAccumulations(b *testing.B) {
	const objects = 1_000_000
	for name, dump := range map[string][]byte{"app": mixture(b, objects), "map": pile(b, objects), "leaves": leafPile(b, objects)} {
		b.Run(name, func(b *testing.B) {
			g, err := open(dump, heap.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer g.Close()
			b.ReportAllocs()
			found := 0
			for b.Loop() {
				list, err := g.Accumulations(b.Context(), heap.AccumulationOptions{Least: g.ReachableBytes().Total() / 20, Fewest: 10})
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

// pile is an array of nodes with a string each, a third of n.
func pile(tb testing.TB, n int) []byte {
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

// leafPile is an array of boxes.
func leafPile(tb testing.TB, n int) []byte {
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
