package heap

import "fmt"

// Held returns the number of bytes that a graph uses outside the garbage
// collector's heap.
func Held(g *Graph) int64 { return g.arena.held }

// BrokenOrder returns an error for the first vertex that violates the tree's
// preorder, in which a vertex comes after its dominator and is followed by the
// vertices that it dominates, up to its end.
func BrokenOrder(g *Graph) error {
	t := &g.tree
	for v := uint32(1); v < uint32(len(t.parents)); v++ {
		p := t.parents[v]
		if p >= v || t.ends[v] <= v || t.ends[v] > t.ends[p] {
			return fmt.Errorf("vertex %d, which ends at %d, has parent %d, which ends at %d", v, t.ends[v], p,
				t.ends[p])
		}
		if t.vertices[t.objects[v]] != v {
			return fmt.Errorf("vertex %d has object %d, which has vertex %d", v, t.objects[v], t.vertices[t.objects[v]])
		}
	}
	return nil
}

// SetMaxSweeps sets the maximum number of sweeps of a removal, and returns the
// previous value.
func SetMaxSweeps(n int) int {
	before := maxSweeps
	maxSweeps = n
	return before
}
