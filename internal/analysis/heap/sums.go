package heap

import (
	"cmp"
	"context"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Size is the size in bytes of objects in the Java heap, and of the native
// memory that Java objects registered.
type Size struct {
	Java, Native int64
}

// Total returns the sum of the Java and native bytes.
func (s Size) Total() int64 { return s.Java + s.Native }

func (s *Size) add(o Size) { s.Java += o.Java; s.Native += o.Native }

// Row is one line of a histogram: all objects of the classes that share a name.
type Row struct {
	Class string
	// Classes is the number of classes with this name; several class loaders
	// may each load one.
	Classes int
	// Instances and Shallow cover all objects in the dump; Reachable and
	// Retained cover only those that are strongly or softly reachable.
	Instances, Reachable int64
	Shallow              Size
	// Retained is the size of the union of the dominator subtrees of all
	// reachable instances: a lower bound on the memory that would be freed if
	// all instances were removed. Objects held jointly by several instances
	// would be freed as well.
	Retained Size
	// RetainedIn is Retained.Java split by heap, in the order of Graph.Heaps;
	// nil if there is only one heap.
	RetainedIn []int64
}

// sum adds up the sizes along the dominator tree, and by class.
func (l *loader) sum(ctx context.Context) error {
	t, n := &l.tree, int64(len(l.tree.objects))
	t.retained = make([][]int64, l.heapCount())
	for h := range t.retained {
		var err error
		if t.retained[h], err = array[int64](&l.arena, n); err != nil {
			return err
		}
	}
	l.sumObjects()
	for _, retained := range t.retained {
		addToDominators(retained, t.parents)
	}
	if len(l.native) > 0 {
		var err error
		if t.native, err = array[int64](&l.arena, n); err != nil {
			return err
		}
		for object, size := range l.native {
			t.native[t.vertices[object]] += size
		}
		t.native[0] = 0
		addToDominators(t.native, t.parents)
	}
	l.sumClasses()
	return ctx.Err()
}

// heapCount returns the number of heaps with separate sizes.
func (g *Graph) heapCount() int {
	if g.heapOf == nil {
		return 1
	}
	return len(g.Heaps)
}

// addToDominators adds each vertex's sum to its dominator's, from the last
// vertex up.
func addToDominators(sizes []int64, parents []uint32) {
	for v := len(sizes) - 1; v > 0; v-- {
		sizes[parents[v]] += sizes[v]
	}
}

// sumObjects computes each vertex's own bytes, including those of the leaves
// that only this vertex references.
func (l *loader) sumObjects() {
	t := &l.tree
	if len(t.retained) == 1 {
		retained := t.retained[0]
		for object, v := range t.vertices {
			size := l.sizes.at(uint32(object))
			l.Heaps[0].Bytes += size
			retained[v] += size
		}
		l.Heaps[0].Objects = l.Objects
		// Unreachable objects were added to vertex 0, which does not retain
		// them.
		retained[0] = 0
		return
	}
	for object, v := range t.vertices {
		h, size := l.heapOf[object], l.sizes.at(uint32(object))
		l.Heaps[h].Objects++
		l.Heaps[h].Bytes += size
		t.retained[h][v] += size
	}
	for _, retained := range t.retained {
		retained[0] = 0
	}
}

// countClasses counts the objects of each class, and adds the retained sizes of
// leaves without a vertex, which equal their own sizes.
func (l *loader) countClasses() {
	l.nameRows()
	list := l.registry.list
	for object, v := range l.tree.vertices {
		row := &l.rows[list[l.slots.at(uint32(object))].row]
		size := l.sizes.at(uint32(object))
		row.Instances++
		row.Shallow.Java += size
		if v == 0 {
			continue
		}
		row.Reachable++
		if !l.ownVertex(uint32(object)) {
			l.retain(row, Size{size, l.native[uint32(object)]}, uint32(object))
		}
	}
	for _, object := range l.natives() {
		l.rows[list[l.slots.at(object)].row].Shallow.Native += l.native[object]
	}
}

// sumClasses adds up the retained sizes of the instances of each class, except
// for instances below others of their class. In preorder, these come before the
// end of the last instance that was counted.
func (l *loader) sumClasses() {
	list, t := l.registry.list, &l.tree
	ends := make([]uint32, len(l.rows))
	for v := uint32(1); v < uint32(len(t.objects)); v++ {
		row := list[l.slots.at(t.objects[v])].row
		if v < ends[row] {
			continue
		}
		ends[row] = t.ends[v]
		l.retainVertex(&l.rows[row], v)
	}
	l.sortRows()
}

// sortRows sorts the rows, largest retained size first. For classes without
// objects, it keeps only the names.
func (l *loader) sortRows() {
	for _, r := range l.rows {
		if r.Instances == 0 && r.Classes > 0 {
			l.empty = append(l.empty, r.Class)
		}
	}
	l.rows = slices.DeleteFunc(l.rows, func(r Row) bool { return r.Instances == 0 })
	slices.SortFunc(l.rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Retained.Total(), a.Retained.Total()), cmp.Compare(b.Shallow.Java, a.Shallow.Java),
			cmp.Compare(a.Class, b.Class))
	})
}

// retain adds the size of an object without a vertex to the retained size of
// its class.
func (l *loader) retain(row *Row, size Size, object uint32) {
	row.Retained.add(size)
	if row.RetainedIn != nil {
		row.RetainedIn[l.heapOf[object]] += size.Java
	}
}

func (l *loader) retainVertex(row *Row, v uint32) {
	for h, retained := range l.tree.retained {
		row.Retained.Java += retained[v]
		if row.RetainedIn != nil {
			row.RetainedIn[h] += retained[v]
		}
	}
	if l.tree.native != nil {
		row.Retained.Native += l.tree.native[v]
	}
}

// nameRows creates a row for each existing class name.
func (l *loader) nameRows() {
	byName := map[string]uint32{}
	for s := range l.registry.list {
		c := &l.registry.list[s]
		if c.name == "" && slot(s) > classSlot && slot(s) < named {
			continue
		}
		if c.name == "" {
			c.name = "unknown class " + hexadecimal(c.id)
		}
		r, ok := byName[c.name]
		if !ok {
			r = uint32(len(l.rows))
			byName[c.name] = r
			l.rows = append(l.rows, Row{Class: c.name})
			if n := l.heapCount(); n > 1 {
				l.rows[r].RetainedIn = make([]int64, n)
			}
		}
		c.row = r
		if slot(s) >= named && c.dump != nil {
			l.rows[r].Classes++
		}
	}
}

// Empty returns the names of the loaded classes that have no objects, in no
// particular order. The caller must not modify the list.
func (g *Graph) Empty() []string { return g.empty }

// Histogram returns the rows of all classes, largest retained size first. The
// caller must not change the result.
func (g *Graph) Histogram() []Row { return g.rows }

// ReachableBytes returns the size of all objects that the GC roots reach
// strongly or softly.
func (g *Graph) ReachableBytes() (s Size) {
	for v := uint32(1); v < uint32(len(g.tree.ends)); v = g.tree.ends[v] {
		s.add(g.tree.size(v))
	}
	return s
}

// size returns the retained size of a vertex.
func (t *tree) size(v uint32) (s Size) {
	for _, retained := range t.retained {
		s.Java += retained[v]
	}
	if t.native != nil {
		s.Native = t.native[v]
	}
	return s
}

// Object identifies an object by its number.
type Object uint32

// Find returns the object with the given ID.
func (g *Graph) Find(id hprof.ID) (Object, bool) {
	n := g.ids.find(id)
	return Object(n), n != none
}

// find returns the object that a reference leads to; it returns false for null.
func (g *Graph) find(id hprof.ID) (Object, bool) {
	if id == 0 {
		return 0, false
	}
	return g.Find(id)
}

// ID returns an object's ID in the dump.
func (g *Graph) ID(o Object) hprof.ID { return g.ids.id(uint32(o)) }

// Class returns the name of an object's class in Java's notation.
func (g *Graph) Class(o Object) string { return g.registry.list[g.slots.at(uint32(o))].name }

// IsClass reports whether an object is a class object; ClassName returns the
// name of the class that it represents.
func (g *Graph) IsClass(o Object) bool { return g.slots.at(uint32(o)) == classSlot }

// ClassName returns the name of the class that a class object represents.
func (g *Graph) ClassName(o Object) string {
	return g.registry.list[g.registry.slots[g.ID(o)]].name
}

// Shallow returns an object's own size, including the native memory registered
// for it.
func (g *Graph) Shallow(o Object) Size {
	return Size{g.sizes.at(uint32(o)), g.native[uint32(o)]}
}

// HeapOf returns the index, in Heaps, of an object's heap.
func (g *Graph) HeapOf(o Object) int {
	if g.heapOf == nil {
		return 0
	}
	return int(g.heapOf[o])
}

// Reachability returns how strongly the GC roots reach an object.
func (g *Graph) Reachability(o Object) Reachability {
	for _, r := range []Reachability{Soft, Finalizer, Weak, Phantom} {
		if set := g.weaker.sets[r]; set != nil && set.has(uint32(o)) {
			return r
		}
	}
	if g.tree.vertices[o] != 0 {
		return Strong
	}
	return Unreachable
}

// Retained returns the size that would become unreachable if an object were
// removed: everything it dominates, including itself. It is 0 for objects that
// are neither strongly nor softly reachable.
func (g *Graph) Retained(o Object) Size {
	v := g.tree.vertices[o]
	switch {
	case v == 0:
		return Size{}
	case g.ownVertex(uint32(o)):
		return g.tree.size(v)
	}
	return g.Shallow(o)
}

// RetainedIn returns the part of Retained in one heap of Heaps, without native
// memory.
func (g *Graph) RetainedIn(o Object, heap int) int64 {
	v := g.tree.vertices[o]
	switch {
	case v == 0:
		return 0
	case g.ownVertex(uint32(o)):
		return g.tree.retained[heap][v]
	case g.HeapOf(o) == heap:
		return g.Shallow(o).Java
	}
	return 0
}

// Dominator returns the immediate dominator of an object. It returns false for
// unreachable objects, and for objects that no single object dominates.
func (g *Graph) Dominator(o Object) (Object, bool) {
	v := g.tree.vertices[o]
	if v == 0 {
		return 0, false
	}
	if g.ownVertex(uint32(o)) {
		if v = g.tree.parents[v]; v == 0 {
			return 0, false
		}
	}
	return Object(g.tree.objects[v]), true
}

func hexadecimal(id hprof.ID) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, 18)
	for ; id > 0; id >>= 4 {
		b = append(b, digits[id&15])
	}
	slices.Reverse(b)
	return "0x" + string(b)
}
