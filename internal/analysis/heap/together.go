package heap

import "slices"

// RetainedTogether is the union of what several objects retain: what one of them
// dominates counts once. What only several of them hold together is not in it.
func (g *Graph) RetainedTogether(objects []Object) (sum Size) {
	order := slices.Clone(objects)
	slices.SortFunc(order, func(a, b Object) int {
		return compare(g.tree.vertices[a], g.tree.vertices[b], g.below(a), g.below(b))
	})
	end, last := uint32(0), none
	for _, o := range order {
		v := g.tree.vertices[o]
		// An object without a vertex of its own is below the one whose vertex it has.
		if v == 0 || v < end || uint32(o) == last {
			continue
		}
		last = uint32(o)
		size := g.Retained(o)
		sum.Java += size.Java
		sum.Native += size.Native
		if g.ownVertex(uint32(o)) {
			end = g.tree.ends[v]
		}
	}
	return sum
}

// below is 1 for an object without a vertex of its own.
func (g *Graph) below(o Object) uint32 {
	if g.ownVertex(uint32(o)) {
		return 0
	}
	return 1
}
