package heap

// tree is the dominator tree, in preorder: vertex 0 is above all GC roots, and
// each vertex is followed by all vertices that it dominates. Each subtree is
// therefore a range of vertices.
type tree struct {
	// vertices holds the vertex of each object, 0 for unreachable objects. A
	// leaf that only one object references has no vertex of its own, but shares
	// that object's vertex.
	vertices []uint32
	// objects maps vertices to objects; it does not include leaves that have no
	// vertex of their own.
	objects []uint32
	// parents holds the immediate dominators.
	parents []uint32
	// ends holds the end of each vertex's subtree: the vertex after the last
	// one that it dominates.
	ends []uint32
	// retained holds the retained size of each vertex, in one array per heap.
	retained [][]int64
	native   []int64
}

// buildTree renumbers the vertices from the order of the search to the preorder
// of the dominator tree. A vertex comes after its dominator in both orders, so
// two sweeps suffice.
func (l *loader) buildTree(idoms []uint32) (err error) {
	t, n := &l.tree, int64(len(idoms))
	sizes, err := array[uint32](&l.arena, n)
	if err != nil {
		return err
	}
	for v := n - 1; v > 0; v-- {
		sizes[v]++
		sizes[idoms[v]] += sizes[v]
	}
	sizes[0]++
	// next holds the position of the next child of each vertex. Once all
	// children have positions, the array is reused for the vertex's own
	// position and its size.
	place, err := array[uint32](&l.arena, n)
	if err != nil {
		return err
	}
	next := place
	next[0] = 1
	for v := int64(1); v < n; v++ {
		at := next[idoms[v]]
		next[idoms[v]] += sizes[v]
		next[v] = at + 1
	}
	for v := range place {
		place[v] -= sizes[v]
	}
	if t.parents, err = array[uint32](&l.arena, n); err != nil {
		return err
	}
	for v, at := range place {
		t.parents[at] = place[idoms[v]]
	}
	drop(&l.arena, &idoms)
	if t.ends, err = array[uint32](&l.arena, n); err != nil {
		return err
	}
	for v, at := range place {
		t.ends[at] = at + sizes[v]
	}
	drop(&l.arena, &sizes)
	for object, v := range t.vertices {
		t.vertices[object] = place[v]
	}
	if l.options.Inbound {
		l.inbound.place = place
	} else {
		drop(&l.arena, &place)
	}
	if t.objects, err = array[uint32](&l.arena, n); err != nil {
		return err
	}
	for object, v := range t.vertices {
		if v != 0 && l.ownVertex(uint32(object)) {
			t.objects[v] = uint32(object)
		}
	}
	return nil
}

// ownVertex reports whether a reached object has a vertex of its own.
func (g *Graph) ownVertex(object uint32) bool {
	return g.links.inner.bits.has(object) || g.links.shared.has(object)
}
