package growth

import (
	"context"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// weigh computes, for each node, a lower bound on the bytes that its objects
// retain together. The bound is the larger of two values: the size of the union
// of the objects' dominator subtrees, and the cost of the objects as a group.
// It walks the dominator tree from the top down, and keeps track of the nodes
// above the current object.
type weigh struct {
	*walk
	reported []bool
	bytes    []int64
	credited []int64
	met      bits
	// stack holds the objects to visit; path holds those objects above the
	// current one that have nodes.
	stack []uint32
	path  []above
	// within holds, for each node, the number of its objects on the path;
	// owners holds the reported nodes on the path.
	within []uint32
	owners []uint32
}

// above is an entry of the path: the node of an object, and the height of the
// stack at which the object's subtree is complete.
type above struct {
	node   uint32
	height int
}

// weigh adds the retained bytes of the nodes to their tree.
func (w *walk) weigh(ctx context.Context) error {
	n := w.len()
	x := &weigh{
		walk: w, bytes: make([]int64, n), credited: make([]int64, n), reported: make([]bool, n),
		within: make([]uint32, n), met: newBits(w.graph.Objects),
	}
	if w.grew != nil {
		x.reported = w.tree.reported()
	}
	push := func(o heap.Object) { x.stack = append(x.stack, uint32(o)) }
	w.graph.Tops(push)
	for i := 0; ; i++ {
		if i%checkInterval == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for len(x.path) > 0 && x.path[len(x.path)-1].height == len(x.stack) {
			x.leave()
		}
		if len(x.stack) == 0 {
			break
		}
		o := heap.Object(x.stack[len(x.stack)-1])
		x.stack = x.stack[:len(x.stack)-1]
		x.enter(o)
		w.graph.Children(o, push)
	}
	// Objects without a vertex in the tree have no references and dominate
	// nothing.
	for o := range heap.Object(w.graph.Objects) {
		if w.visited.has(o) && !x.met.has(o) {
			x.bytes[w.places[o]] += w.graph.Retained(o).Total()
		}
	}
	own, err := x.groups(ctx)
	if err != nil {
		return err
	}
	w.tree.bytes, w.tree.own, w.tree.credited = append(w.tree.bytes, x.bytes), append(w.tree.own, own), x.credited
	return ctx.Err()
}

// groups treats the nodes as groups and returns the nodes' own sizes. The union
// of the dominator subtrees would be too small: it lacks the memory that
// several objects of a node hold jointly.
func (x *weigh) groups(ctx context.Context) ([]int64, error) {
	costs, err := x.graph.GroupCosts(ctx, heap.Groups{Count: x.len() - 1, Of: func(o heap.Object) uint32 {
		if !x.visited.has(o) {
			return 0
		}
		return x.places[o]
	}})
	if err != nil {
		return nil, err
	}
	for n := range x.bytes {
		x.bytes[n] = max(x.bytes[n], costs.Bytes[n])
	}
	return costs.Own, nil
}

func (x *weigh) enter(o heap.Object) {
	x.met.add(o)
	if !x.visited.has(o) {
		return
	}
	node, size := x.places[o], x.graph.Retained(o).Total()
	if x.within[node] == 0 {
		x.bytes[node] += size
	}
	x.within[node]++
	x.path = append(x.path, above{node, len(x.stack)})
	if !x.reported[node] {
		return
	}
	x.credited[node] += size
	if n := len(x.owners); n > 0 {
		x.credited[x.owners[n-1]] -= size
	}
	x.owners = append(x.owners, node)
}

func (x *weigh) leave() {
	node := x.path[len(x.path)-1].node
	x.path = x.path[:len(x.path)-1]
	x.within[node]--
	if x.reported[node] {
		x.owners = x.owners[:len(x.owners)-1]
	}
}
