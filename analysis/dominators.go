package analysis

import (
	"cmp"
	"context"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

const (
	// branches is the maximum number of branches below each node of the tree
	// below a top dominator; levels is the maximum depth of this tree.
	branches = 5
	levels   = 6
	// worth determines which branches are shown: a branch must retain at least
	// 1/worth of what its top dominator retains.
	worth = 20
)

// node is a dominator with the branches below it that are shown.
type node struct {
	object   heap.Object
	retained heap.Size
	// least is the number of bytes that a child must retain to be shown.
	least    int64
	children []*node
	// total is the number of all children; sum is the number of bytes that they
	// retain.
	total, sum int64
}

// dominators returns the objects that are dominated only by the GC roots, each
// with those of its branches that retain a relevant part of its bytes. The
// objects that retain the most bytes come first.
func (d *dump) dominators(ctx context.Context, top int) ([]Dominator, error) {
	var best largest
	best.limit = top
	app := d.appHeap()
	d.graph.Tops(func(o heap.Object) {
		if app < 0 {
			best.add(o, d.graph.Retained(o))
			return
		}
		best.add(o, heap.Size{Java: d.graph.RetainedIn(o, app), Native: d.graph.Retained(o).Native})
	})
	tops := best.sorted()
	for _, n := range tops {
		n.retained = d.graph.Retained(n.object)
		n.least = max(n.retained.Total()/worth, 1)
	}
	level := tops
	for range levels {
		if len(level) == 0 {
			break
		}
		next, err := d.grow(ctx, level)
		if err != nil {
			return nil, err
		}
		level = next
	}
	list := make([]Dominator, 0, len(tops))
	for _, n := range tops {
		list = append(list, d.dominator(n))
	}
	return list, nil
}

// grow finds the children of each node of a level, and returns the children
// that are shown.
func (d *dump) grow(ctx context.Context, level []*node) (next []*node, err error) {
	appWith := map[heap.Object]*largest{}
	var reread []heap.Object
	for _, n := range level {
		best := &largest{limit: branches}
		leaves := n.retained.Total() - d.graph.Shallow(n.object).Total()
		d.graph.Children(n.object, func(o heap.Object) {
			size := d.graph.Retained(o)
			n.total++
			n.sum += size.Total()
			leaves -= size.Total()
			if size.Total() >= n.least {
				best.add(o, size)
			}
		})
		n.sum += leaves
		appWith[n.object] = best
		if leaves >= n.least && leaves > 0 {
			if d.graph.IsClass(n.object) {
				d.graph.StaticReferences(n.object, func(o heap.Object) { d.leaf(n, best, o) })
			} else {
				reread = append(reread, n.object)
			}
		}
	}
	nodes := map[heap.Object]*node{}
	for _, n := range level {
		nodes[n.object] = n
	}
	err = d.graph.Read(ctx, reread, func(r *heap.Record) error {
		r.References(func(o heap.Object) { d.leaf(nodes[r.Object], appWith[r.Object], o) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, n := range level {
		n.children = appWith[n.object].sorted()
		for _, c := range n.children {
			c.least = n.least
		}
		next = append(next, n.children...)
	}
	return next, nil
}

// leaf adds o as a child of n, whose object references o, if o is a leaf that
// nothing else references.
func (d *dump) leaf(n *node, best *largest, o heap.Object) {
	if !d.graph.HoldsAlone(n.object, o) {
		return
	}
	n.total++
	if size := d.graph.Retained(o); size.Total() >= n.least {
		best.add(o, size)
	}
}

func (d *dump) dominator(n *node) Dominator {
	r := Dominator{
		Object: Hex(d.graph.ID(n.object)), Class: d.name(n.object), ShallowBytes: d.graph.Shallow(n.object).Java,
		RetainedBytes: n.retained.Total(), RetainedNative: n.retained.Native, Omitted: n.total - int64(len(n.children)),
		OmittedBytes: n.sum,
	}
	for _, c := range n.children {
		r.OmittedBytes -= c.retained.Total()
		r.Children = append(r.Children, d.dominator(c))
	}
	return r
}

// largest keeps the objects that retain the most bytes.
type largest struct {
	limit int
	// floor is the number of bytes that an object must retain to be in the
	// list.
	floor int64
	list  []candidate
}

type candidate struct {
	object   heap.Object
	retained heap.Size
}

func (l *largest) add(o heap.Object, size heap.Size) {
	if l.limit == 0 || size.Total() < l.floor {
		return
	}
	l.list = append(l.list, candidate{o, size})
	if len(l.list) >= 2*l.limit+64 {
		l.cut()
		l.floor = l.list[len(l.list)-1].retained.Total()
	}
}

func (l *largest) cut() {
	slices.SortFunc(l.list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.retained.Total(), a.retained.Total()), cmp.Compare(a.object, b.object))
	})
	l.list = l.list[:min(l.limit, len(l.list))]
}

func (l *largest) sorted() []*node {
	l.cut()
	nodes := make([]*node, len(l.list))
	for i, c := range l.list {
		nodes[i] = &node{object: c.object, retained: c.retained, least: max(c.retained.Total()/worth, 1)}
	}
	return nodes
}
