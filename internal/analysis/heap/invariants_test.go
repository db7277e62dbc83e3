package heap_test

import (
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// broken returns the first violation of an invariant that must hold for any
// graph of any dump.
func broken(g *heap.Graph) error {
	for _, check := range []func(*heap.Graph) error{
		brokenCounts, brokenIDs, brokenTree, brokenChildren, brokenRows, heap.BrokenOrder,
	} {
		if err := check(g); err != nil {
			return err
		}
	}
	return nil
}

func inTree(g *heap.Graph, o heap.Object) bool { return g.Reachability(o) <= heap.Soft }

// brokenCounts compares the counts with the objects.
func brokenCounts(g *heap.Graph) error {
	if sum := g.Instances + g.ObjectArrays + g.PrimitiveArrays + g.Classes; sum != g.Objects ||
		min(g.Instances, g.ObjectArrays, g.PrimitiveArrays, g.Classes) < 0 {
		return fmt.Errorf("%d instances, %d object arrays, %d primitive arrays and %d classes do not add up to %d "+
			"objects",
			g.Instances, g.ObjectArrays, g.PrimitiveArrays, g.Classes, g.Objects)
	}
	classes := int64(0)
	objects, bytes := make([]int64, len(g.Heaps)), make([]int64, len(g.Heaps))
	for o := range heap.Object(g.Objects) {
		if g.IsClass(o) {
			classes++
		}
		objects[g.HeapOf(o)]++
		bytes[g.HeapOf(o)] += g.Shallow(o).Java
	}
	if classes != g.Classes {
		return fmt.Errorf("got %d classes, but %d objects are classes", g.Classes, classes)
	}
	for h, heap := range g.Heaps {
		if heap.Objects != objects[h] || heap.Bytes != bytes[h] {
			return fmt.Errorf("heap %s counts %d objects of %d bytes, but contains %d objects of %d bytes", heap.Name,
				heap.Objects,
				heap.Bytes, objects[h], bytes[h])
		}
	}
	return nil
}

// brokenIDs looks up each object by its ID.
func brokenIDs(g *heap.Graph) error {
	for o := range heap.Object(g.Objects) {
		if found, ok := g.Find(g.ID(o)); !ok || found != o {
			return fmt.Errorf("object %d has ID %#x, for which Find returns %d (%t)", o, g.ID(o), found, ok)
		}
	}
	return nil
}

// brokenTree adds each object's retained size to its dominator. The sum,
// together with the dominator's own size, must equal the dominator's retained
// size; the objects below the roots must retain everything reachable.
func brokenTree(g *heap.Graph) error {
	below, top, all := make([]heap.Size, g.Objects), heap.Size{}, heap.Size{}
	for o := range heap.Object(g.Objects) {
		d, dominated := g.Dominator(o)
		if !inTree(g, o) {
			if g.Retained(o) != (heap.Size{}) || dominated {
				return fmt.Errorf("object %d is %v reachable, but has a dominator or a retained size", o,
					g.Reachability(o))
			}
			continue
		}
		all = plus(all, g.Shallow(o))
		if !dominated {
			top = plus(top, g.Retained(o))
			continue
		}
		if !inTree(g, d) || d == o || g.Retained(d).Java < g.Retained(o).Java {
			return fmt.Errorf("object %d retains %v, but its dominator %d only %v", o, g.Retained(o), d, g.Retained(d))
		}
		below[d] = plus(below[d], g.Retained(o))
	}
	if top != all || g.ReachableBytes() != all {
		return fmt.Errorf("%v is reachable, but the top objects retain %v and ReachableBytes returns %v", all, top,
			g.ReachableBytes())
	}
	for o := range heap.Object(g.Objects) {
		if inTree(g, o) && g.Retained(o) != plus(below[o], g.Shallow(o)) {
			return fmt.Errorf("object %d retains %v, but has size %v and children that retain %v", o, g.Retained(o),
				g.Shallow(o),
				below[o])
		}
	}
	return nil
}

func plus(a, b heap.Size) heap.Size {
	return heap.Size{Java: a.Java + b.Java, Native: a.Native + b.Native}
}

// brokenChildren walks down from the tops: it must visit the whole tree once,
// except for the leaves that Children omits.
func brokenChildren(g *heap.Graph) error {
	met := make([]bool, g.Objects)
	var pending []heap.Object
	var err error
	meet := func(o, parent heap.Object, below bool) {
		if d, ok := g.Dominator(o); err == nil && (met[o] || ok != below || ok && d != parent) {
			err = fmt.Errorf("object %d is a child of %d, but was visited before (%t) or has dominator %d (%t)", o,
				parent, met[o], d, ok)
			return
		}
		met[o] = true
		pending = append(pending, o)
	}
	g.Tops(func(o heap.Object) { meet(o, 0, false) })
	for len(pending) > 0 && err == nil {
		o := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		g.Children(o, func(c heap.Object) { meet(c, o, true) })
	}
	for o := range heap.Object(g.Objects) {
		if err != nil {
			return err
		}
		d, ok := g.Dominator(o)
		if alone := ok && g.HoldsAlone(d, o); inTree(g, o) == (met[o] == alone) {
			return fmt.Errorf("object %d (%v reachable, dominator %d): visited as a child %t, held alone %t", o,
				g.Reachability(o), d, met[o], alone)
		}
	}
	return nil
}

// brokenRows compares the histogram with the objects.
func brokenRows(g *heap.Graph) error {
	rows := map[string]heap.Row{}
	all := g.ReachableBytes()
	for i, r := range g.Histogram() {
		if _, ok := rows[r.Class]; ok {
			return fmt.Errorf("two rows for %s", r.Class)
		}
		if i > 0 && r.Retained.Total() > g.Histogram()[i-1].Retained.Total() {
			return fmt.Errorf("row %d, %s, retains more than the previous one", i, r.Class)
		}
		sum := int64(0)
		for _, n := range r.RetainedIn {
			sum += n
		}
		if r.RetainedIn != nil && sum != r.Retained.Java || (r.RetainedIn == nil) != (len(g.Heaps) == 1) {
			return fmt.Errorf("row %s retains %d bytes, but %v by heap", r.Class, r.Retained.Java, r.RetainedIn)
		}
		if r.Retained.Java > all.Java || r.Reachable > r.Instances {
			return fmt.Errorf("row %s: %+v, but only %v is reachable", r.Class, r, all)
		}
		rows[r.Class] = r
	}
	return brokenSums(g, rows)
}

// brokenSums subtracts each object from its row; nothing may remain.
func brokenSums(g *heap.Graph, rows map[string]heap.Row) error {
	for o := range heap.Object(g.Objects) {
		r, ok := rows[g.Class(o)]
		if !ok || r.Retained.Java < g.Retained(o).Java {
			return fmt.Errorf("object %d of %s retains more than its class: %+v", o, g.Class(o), r)
		}
		r.Instances--
		r.Shallow = plus(r.Shallow, heap.Size{Java: -g.Shallow(o).Java, Native: -g.Shallow(o).Native})
		if inTree(g, o) {
			r.Reachable--
		}
		rows[r.Class] = r
	}
	for name, r := range rows {
		if r.Instances != 0 || r.Reachable != 0 || r.Shallow != (heap.Size{}) {
			return fmt.Errorf("row %s has objects that do not exist: %+v", name, r)
		}
	}
	return nil
}

// portrait lists everything that a graph reports about objects and classes, by
// ID, so two graphs of the same heap can be compared.
func portrait(g *heap.Graph) []string {
	list := make([]string, 0, g.Objects)
	for o := range heap.Object(g.Objects) {
		line := fmt.Sprintf("%#x %s %v %v %v %s", g.ID(o), g.Class(o), g.Shallow(o), g.Reachability(o), g.Retained(o),
			g.Heaps[g.HeapOf(o)].Name)
		if d, ok := g.Dominator(o); ok {
			line += fmt.Sprintf(" below %#x", g.ID(d))
		}
		list = append(list, line)
	}
	for _, r := range g.Histogram() {
		in := map[string]int64{}
		for h, n := range r.RetainedIn {
			in[g.Heaps[h].Name] = n
		}
		r.RetainedIn = nil
		list = append(list, fmt.Sprintf("%+v %v", r, in))
	}
	slices.Sort(list)
	counts := []int64{
		g.Objects, g.Instances, g.ObjectArrays, g.PrimitiveArrays, g.Classes, g.Duplicates, g.Dangling,
		g.ReferenceCount,
	}
	return append(list, fmt.Sprint(counts, g.RootCounts))
}
