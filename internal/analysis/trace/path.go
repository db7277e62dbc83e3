package trace

import (
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// PathNode is an object on a path, and its reference to the next object.
type PathNode struct {
	Object heap.Object
	Edge   Edge
	// Repeat is the number of further objects of the same class that follow,
	// each referenced by the same field of the previous one: the nodes of a
	// list. The last of these objects also references the next object by that
	// field, and Edge.To is the second object of the list.
	Repeat int
	// Omitted is the number of steps omitted after this one.
	Omitted int
}

// Path is the path to an object: the root, the objects between the root and the
// object, and the object itself.
type Path struct {
	Root  Root
	Steps []PathNode
	Leak  heap.Object
}

// paths builds the paths to reached objects.
type paths struct {
	*Search
	// edges holds the references from objects that may hold many others; they
	// are read once for all paths.
	edges map[heap.Object]Edge
	// plain reports whether the status of an object is unknown, so that the
	// object may be folded into a list of nodes; if plain is nil, nothing is
	// folded.
	plain func(heap.Object) bool
	// runs holds the ends of known runs, so that each node is visited only once
	// in a list in which every node holds a leak.
	runs map[heap.Object]run
	// walked is the number of objects visited so far for all paths.
	walked int
}

// mostWalked is the maximum number of objects that all paths of a search may
// visit: for a list of nodes of two alternating classes, each of which holds a
// leak, this number grows with the square of the list's length.
const mostWalked = 1 << 24

// run is a series of objects of one class, each referenced by the same field of
// the previous one. It consists of the first object and repeat further objects;
// edge is the reference from the first one.
type run struct {
	first  heap.Object
	edge   Edge
	repeat int
}

func (s *Search) paths(objects []heap.Object, plain func(heap.Object) bool) *paths {
	p := &paths{Search: s, plain: plain, runs: map[heap.Object]run{}}
	p.findEdges(objects)
	return p
}

// single reports whether an object has few references, all of them from its own
// fields.
func (p *paths) single(o heap.Object) bool {
	if p.graph.IsClass(o) {
		return false
	}
	k := p.reader.kind(o)
	return k.collection == nil && !k.thread && p.reader.outbound.PlacesOf(p.graph.ClassNumber(o)) != nil
}

// edge returns the reference that the search followed from an object's parent
// to the object.
func (p *paths) edge(from, o heap.Object) Edge {
	if !p.single(from) {
		return p.edges[o]
	}
	best := Edge{To: unset}
	p.reader.Read(from, func(e Edge) {
		if e.To == o && (best.To == unset || p.better(from, best, e)) {
			best = e
		}
	})
	return best
}

// findEdges finds, for the objects on some paths, the references from holders
// that may hold many objects. Each holder is read only once, however many
// objects it holds.
func (p *paths) findEdges(objects []heap.Object) {
	p.edges = map[heap.Object]Edge{}
	met := make(bits, len(p.waiting))
	holders := map[heap.Object]bool{}
	for _, o := range objects {
		for p.reached(o) && !met.has(o) {
			met.add(o)
			from, ok := p.parent(o)
			if !ok {
				break
			}
			if !p.single(from) {
				p.edges[o], holders[from] = Edge{To: unset}, true
			}
			o = from
		}
	}
	for from := range holders {
		p.reader.Read(from, func(e Edge) {
			best, wanted := p.edges[e.To]
			if holder, ok := p.parent(e.To); !wanted || !ok || holder != from {
				return
			}
			if best.To == unset || p.better(from, best, e) {
				p.edges[e.To] = e
			}
		})
	}
}

// unset is the target of an edge that has not been looked up yet.
const unset = ^heap.Object(0)

// mostSteps is the maximum number of steps of one path: in a longer path, the
// middle steps are omitted. Only links between objects of alternating classes
// create such paths.
const mostSteps = 1 << 10

func (p *paths) path(o heap.Object) Path {
	path := Path{Leak: o}
	// near holds the steps next to the object; far is a ring buffer of the
	// steps next to the root.
	var near, far []PathNode
	n := 0
	for {
		from, ok := p.parent(o)
		if !ok {
			path.Root = p.root(o)
			break
		}
		p.walked++
		s := p.step(from, p.edge(from, o))
		switch {
		case n < mostSteps/2 || p.plain == nil:
			near = append(near, s)
		case len(far) < mostSteps/2:
			far = append(far, s)
		default:
			far[(n-mostSteps/2)%len(far)] = s
		}
		n++
		o = s.Object
	}
	if left := n - len(near) - len(far); left > 0 {
		at := (n - mostSteps/2) % len(far)
		far = slices.Concat(far[at:], far[:at])
		far[0].Omitted = left
	}
	path.Steps = append(near, far...)
	slices.Reverse(path.Steps)
	return path
}

// step returns the step for the run that ends with the given object and its
// reference.
func (p *paths) step(last heap.Object, e Edge) PathNode {
	r := run{first: last, edge: e}
	for p.plain != nil && p.repeats(r.first, e) {
		if known, ok := p.runs[r.first]; ok && known.edge.Place == e.Place {
			r = run{known.first, known.edge, r.repeat + known.repeat}
			break
		}
		from, ok := p.parent(r.first)
		if !ok || p.graph.IsClass(from) || p.graph.ClassNumber(from) != p.graph.ClassNumber(last) {
			break
		}
		before := p.edge(from, r.first)
		if before.Place != e.Place || !p.repeats(from, before) {
			break
		}
		r = run{from, before, r.repeat + 1}
		p.walked++
	}
	if r.repeat > 0 {
		p.runs[last] = r
	}
	return PathNode{Object: r.first, Edge: r.edge, Repeat: r.repeat}
}

// repeats reports whether an object may be part of a run whose objects are
// linked by the given reference.
func (p *paths) repeats(o heap.Object, e Edge) bool {
	return e.Kind == FieldEdge && e.Name == "" && e.Matcher == nil && p.single(o) && p.plain(o)
}
