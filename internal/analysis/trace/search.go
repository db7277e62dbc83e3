package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// Options configure a search.
type Options struct {
	// Through allows paths to go through targets, as in Shark 2.14: a target
	// whose shortest path goes through another target then belongs to that
	// target's leak. Otherwise, paths end at a target, and a target owns only
	// objects that nothing else reaches.
	Through bool
	// ByName selects, among paths of the same length, the path whose names come
	// first. Shark selects the path that it found first, which depends on the
	// order of the dump: the order of threads, and the order in which classes
	// were loaded.
	ByName bool
	// Early stops the search when it has reached the last target and the last
	// object in Also, because later steps would not change the paths to them.
	// Finding the objects that are reachable only through targets, and
	// therefore computing Leak.Credited, requires the complete search.
	Early bool
	Also  []heap.Object
}

// Search finds the shortest paths from the GC roots: breadth first, with Low
// references after everything else (Shark, PrioritizingShortestPathFinder.kt).
type Search struct {
	reader  *Reader
	graph   *heap.Graph
	options Options
	targets []heap.Object
	target  bits
	// parents is indexed by Outbound.Number. An entry is the number of the
	// previous object plus 1, or 0 if the object was not reached. If it was
	// reached from a root, the entry is the root's index in Reader.Roots,
	// offset so that it is higher than all other entries.
	parents []uint32
	// waiting holds the objects in the second queue; late holds the objects
	// that were taken from it.
	waiting, late bits
	first, last   queue
	found         []heap.Object
	// wanted holds the objects that must be reached before the search may end
	// early; left is the number of wanted objects that have not been reached.
	wanted bits
	left   int
}

// bits is a set of objects.
type bits []uint64

func (b bits) has(o heap.Object) bool { return b[o>>6]>>(o&63)&1 != 0 }
func (b bits) add(o heap.Object)      { b[o>>6] |= 1 << (o & 63) }
func (b bits) remove(o heap.Object)   { b[o>>6] &^= 1 << (o & 63) }

// queue is a first-in, first-out queue.
type queue struct {
	list []uint32
	next int
}

func (q *queue) empty() bool { return q.next == len(q.list) }

func (q *queue) push(o heap.Object) { q.list = append(q.list, uint32(o)) }

func (q *queue) pop() heap.Object {
	o := q.list[q.next]
	q.next++
	// The consumed part is dropped when it makes up most of the list, so the
	// queue grows only to the breadth of the heap, not to its size.
	if q.next >= 1<<16 && q.next*2 > len(q.list) {
		q.list = q.list[:copy(q.list, q.list[q.next:])]
		q.next = 0
	}
	return heap.Object(o)
}

// checkInterval is the number of objects visited between two checks of the
// context.
const checkInterval = 1 << 16

// Find searches for the targets among everything that the roots reach. The
// caller must call Close on the result.
func Find(ctx context.Context, r *Reader, targets []heap.Object, o Options) (*Search, error) {
	g := r.graph
	if g.Objects+int64(len(r.roots)) >= 1<<32-1 {
		return nil, errors.New("find paths: there are more objects and GC roots than can be numbered")
	}
	s := &Search{reader: r, graph: g, options: o, targets: targets}
	words := (g.Objects + 63) / 64
	s.waiting, s.late, s.target = make(bits, words), make(bits, words), make(bits, words)
	for _, t := range targets {
		s.target.add(t)
	}
	s.want()
	var err error
	if s.parents, err = g.Scratch(r.outbound.Len()); err != nil {
		return nil, fmt.Errorf("find paths: %w", err)
	}
	if err := s.run(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// want marks the objects that the search must reach before it may end early.
func (s *Search) want() {
	if !s.options.Early {
		return
	}
	s.wanted = make(bits, len(s.target))
	for _, list := range [][]heap.Object{s.targets, s.options.Also} {
		for _, o := range list {
			if !s.wanted.has(o) {
				s.wanted.add(o)
				s.left++
			}
		}
	}
}

// ends is called with each object whose path is final; it returns true if this
// is the last wanted object.
func (s *Search) ends(o heap.Object) bool {
	if !s.options.Early || !s.wanted.has(o) {
		return false
	}
	s.left--
	return s.left == 0
}

// Targets returns the objects to search for.
func (s *Search) Targets() []heap.Object { return s.targets }

// Close releases the memory. It may be called more than once.
func (s *Search) Close() { s.graph.Release(&s.parents) }

func (s *Search) run(ctx context.Context) error {
	if s.options.ByName {
		return s.runByName(ctx)
	}
	for i, root := range s.reader.roots {
		s.meet(root.Object, uint32(s.graph.Objects)+1+uint32(i), root.Low, false)
	}
	lasting := false
	var parent uint32
	visit := func(e Edge) { s.meet(e.To, parent, e.Low, lasting) }
	for n := 1; ; n++ {
		if n%checkInterval == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var o heap.Object
		switch {
		case !s.first.empty():
			o = s.first.pop()
		case !s.last.empty():
			lasting = true
			o = s.last.pop()
			if !s.waiting.has(o) {
				// The object was reached again, by a better path.
				continue
			}
			s.waiting.remove(o)
			s.late.add(o)
		default:
			return nil
		}
		if s.target.has(o) {
			s.found = append(s.found, o)
		}
		if s.ends(o) {
			return nil
		}
		if s.target.has(o) && !s.options.Through {
			continue
		}
		parent = uint32(o) + 1
		s.reader.Read(o, visit)
	}
}

// meet adds an object to a queue, at most once; an object in the second queue
// may move to the first.
func (s *Search) meet(o heap.Object, parent uint32, low, lasting bool) {
	low = low || lasting
	n, ok := s.reader.outbound.Number(o)
	switch {
	case !ok:
		// The object does not lead to any target.
	case s.parents[n] == 0:
		s.parents[n] = parent
		if low {
			s.waiting.add(o)
			s.last.push(o)
			return
		}
		s.first.push(o)
	case !low && !s.last.empty() && s.waiting.has(o):
		s.waiting.remove(o)
		s.parents[n] = parent
		s.first.push(o)
	}
}

// reached reports whether a path leads to an object.
func (s *Search) reached(o heap.Object) bool { return s.met(o) != 0 }

// met returns the entry of an object in parents.
func (s *Search) met(o heap.Object) uint32 {
	n, ok := s.reader.outbound.Number(o)
	if !ok {
		return 0
	}
	return s.parents[n]
}

// parent returns the object from which an object was reached. It returns false
// if the object was reached from a root.
func (s *Search) parent(o heap.Object) (heap.Object, bool) {
	parent := s.met(o)
	return heap.Object(parent - 1), int64(parent) <= s.graph.Objects
}

// root returns the root from which an object without a parent was reached.
func (s *Search) root(o heap.Object) Root {
	return s.reader.roots[int64(s.met(o))-s.graph.Objects-1]
}

// better reports whether, of two references from one object to another, the
// search followed the second. Unless the search took the first object from the
// second queue, it prefers a reference that is not Low. Otherwise it follows
// the first reference or, when searching by names, the reference whose name
// comes first.
func (s *Search) better(from heap.Object, a, b Edge) bool {
	if a.Low != b.Low && !s.late.has(from) {
		return a.Low
	}
	if !s.options.ByName {
		return false
	}
	return cmp.Or(cmp.Compare(nameKind(b.Kind), nameKind(a.Kind)), cmp.Compare(namePlace(b), namePlace(a))) < 0
}
