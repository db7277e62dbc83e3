package growth

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/trace"

	"github.com/leakgate/leakgate/internal/analysis/android"
)

// Place is a set of objects that share one path and hold objects that grow.
type Place struct {
	// Path leads from the GC root to the place, which is the last step; it is
	// empty if the number of GC roots grows.
	Path []PathEdge `json:"path"`
	// Key stays the same from build to build: it is a hash of the references on
	// the path, excluding the numbers that compilers and runtimes add to their
	// names.
	Key string `json:"key"`
	// GrowthBytes is a lower bound on the growth from the first dump to the
	// last: the larger of two bounds. The first is the growth of the memory
	// that the place retains, which excludes memory that something else also
	// holds; the second is the growth of the memory that its children retain
	// individually, which excludes memory that several of them share. If Larger
	// is true, it is the growth of the objects themselves.
	GrowthBytes int64 `json:"growth_bytes"`
	// RetainedBytes is, for each dump, the number of bytes that the objects of
	// the place retain together, Java and native; 0 for GC roots as a whole.
	RetainedBytes []int64 `json:"retained_bytes"`
	// CreditedBytes is RetainedBytes of the last dump, minus the bytes that
	// other listed places below this place retain. In the sum over all listed
	// places, each byte is counted once.
	CreditedBytes int64 `json:"credited_bytes"`
	// Delta is the number of objects by which the place's children grew from
	// the first dump to the last; PerLoop is this growth per loop.
	Delta   int64   `json:"objects_delta"`
	PerLoop float64 `json:"objects_per_loop"`
	// Increments are the numbers of objects by which the place's children grew
	// from each dump to the next. Slowing is true if the last increment is
	// clearly smaller than the first, as for a cache that fills up.
	Increments []int64 `json:"increments"`
	Slowing    bool    `json:"slowing,omitempty"`
	// Larger is true if the objects of the place grow in size but not in
	// number. Stepwise is true if the size did not grow in some of the dumps,
	// as for a buffer that doubles.
	Larger   bool `json:"larger,omitempty"`
	Stepwise bool `json:"stepwise,omitempty"`
	// Children lists the growing children, largest first; Omitted is the number
	// of children that are not listed.
	Children        []Child `json:"children"`
	ChildrenOmitted int     `json:"children_omitted,omitempty"`
}

// PathEdge is one reference of a path, and its target objects.
type PathEdge struct {
	// Kind is one of the constants for kinds of steps.
	Kind string `json:"kind"`
	// Owner is the class that declares the field, or the class of the array or
	// collection; it is "" for a GC root. Name is the name of the field, "[x]"
	// for elements, or the kind of root.
	Owner string `json:"owner,omitempty"`
	Name  string `json:"name"`
	// Class is the class of the objects; for class objects, it is "class "
	// followed by the name.
	Class string `json:"class"`
	// Linked is true if the objects reference each other, as in a list or a
	// tree.
	Linked bool `json:"linked,omitempty"`
	// Objects is the number of objects in each dump.
	Objects []int64 `json:"objects"`
}

// Child is a group of objects whose number grows.
type Child struct {
	PathEdge
	// RetainedBytes is, for each dump, the number of bytes that the objects
	// retain together; RetainedDelta is the last value minus the first. Delta
	// is the same difference for the number of objects.
	RetainedBytes []int64 `json:"retained_bytes"`
	RetainedDelta int64   `json:"retained_delta_bytes"`
	Delta         int64   `json:"objects_delta"`
	// Children lists the growing objects that the objects of this child hold,
	// down to four levels, or to the first class that does not belong to a
	// library. Omitted is the number of children that are not listed.
	Children        []Child `json:"children,omitempty"`
	ChildrenOmitted int     `json:"children_omitted,omitempty"`
}

const (
	// levels and branches limit how deep the tree below a child is reported,
	// and how many children of each node. If all classes there belong to
	// libraries, the largest branch is followed to the first class that does
	// not belong to one, for at most mostLevels levels.
	levels     = 4
	branches   = 3
	mostLevels = 12
	// mostChildren is the maximum number of children reported for a place.
	mostChildren = 100
)

// Places returns the places with the largest growth in bytes and the total
// number of places; top is the maximum number of returned places. A place holds
// objects that have grown in every dump; there are no places before the second
// dump.
func (s *Series) Places(top int) (list []Place, found int) {
	if s.dumps < 2 {
		return nil, 0
	}
	r := &reading{
		tree: s.before, names: s.names, grown: make([][]uint32, s.before.len()),
		loops: int64(s.least) * int64(s.dumps-1),
	}
	r.findGrown()
	var nodes []uint32
	for n, told := range r.reported() {
		if told || r.large(uint32(n)) {
			nodes = append(nodes, uint32(n))
		}
	}
	rises := make(map[uint32][2]int64, len(nodes))
	for _, n := range nodes {
		rises[n] = [2]int64{r.growth(n), r.more(n)}
	}
	slices.SortStableFunc(nodes, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(rises[b][0], rises[a][0]), cmp.Compare(rises[b][1], rises[a][1]))
	})
	for _, n := range nodes[:min(max(top, 0), len(nodes))] {
		list = append(list, r.place(n))
	}
	return list, len(nodes)
}

// reading creates places from the remaining nodes of a tree.
type reading struct {
	*tree
	names *names
	// grown holds, for each node, the children that grew.
	grown [][]uint32
	loops int64
}

// findGrown finds the children that grew. The internals of a collection grow
// with its elements, and are omitted if the elements grow.
func (r *reading) findGrown() {
	for _, inside := range []bool{false, true} {
		for n := 1; n < r.len(); n++ {
			p := r.parents[n]
			within := r.inner[n] && !r.inner[p]
			if r.grew[n] && within == inside && (!inside || len(r.grown[p]) == 0 || r.inner[r.grown[p][0]]) {
				r.grown[p] = append(r.grown[p], uint32(n))
			}
		}
	}
}

// growth returns GrowthBytes of a place, and more returns Delta.
func (r *reading) growth(n uint32) (sum int64) {
	if r.large(n) {
		return rise(r.own, n)
	}
	for _, c := range r.grown[n] {
		sum += rise(r.bytes, c)
	}
	return max(sum, rise(r.bytes, n))
}

func (r *reading) more(n uint32) (sum int64) {
	for _, c := range r.grown[n] {
		sum += rise(r.counts, c)
	}
	return sum
}

func (r *reading) place(n uint32) Place {
	p := Place{
		Path: []PathEdge{}, GrowthBytes: r.growth(n), RetainedBytes: series(r.bytes, n), CreditedBytes: r.credited[n],
		Delta: r.more(n),
	}
	for at := n; at != top; at = r.parents[at] {
		p.Path = append(p.Path, r.step(at))
	}
	slices.Reverse(p.Path)
	p.Key = KeyOf(p.Path)
	p.PerLoop = float64(p.Delta) / float64(r.loops)
	p.Children, p.ChildrenOmitted = r.children(n, 1, mostChildren, false)
	if p.Larger = r.large(n); p.Larger {
		p.Stepwise = r.stepwise(n)
	} else {
		p.Increments = r.increments(n)
		p.Slowing = slowing(p.Increments)
	}
	return p
}

// KeyOf returns the key of a place, computed from its path.
func KeyOf(path []PathEdge) string {
	var text strings.Builder
	for _, s := range path {
		if s.Owner == "" {
			text.WriteString(s.Name + " " + trace.StableClass(s.Class) + "\n")
			continue
		}
		text.WriteString(trace.StableReference(s.Owner, s.Name) + "\n")
	}
	return trace.KeyOf("grows\n" + text.String())
}

func (r *reading) increments(n uint32) []int64 {
	list := make([]int64, len(r.counts)-1)
	for _, c := range r.grown[n] {
		for d := range list {
			list[d] += int64(r.counts[d+1][c]) - int64(r.counts[d][c])
		}
	}
	return list
}

// slowing reports whether the last of several increments is less than four
// fifths of the first and at least 3 objects smaller.
func slowing(increments []int64) bool {
	if len(increments) < 2 {
		return false
	}
	first, last := increments[0], increments[len(increments)-1]
	return 5*last < 4*first && first-last > 2
}

// Explained returns the total growth of all places in bytes. A place below
// another place is counted only as part of that place.
func (s *Series) Explained() (sum int64) {
	if s.dumps < 2 {
		return 0
	}
	t := s.before
	within := make([]bool, t.len())
	for n := uint32(1); n < uint32(t.len()); n++ {
		p := t.parents[n]
		within[n] = within[p] || t.grew[p]
		switch {
		case within[n]:
		case t.grew[n]:
			sum += rise(t.bytes, n)
		case t.large(n):
			sum += rise(t.own, n)
		}
	}
	return sum
}

func (r *reading) step(n uint32) PathEdge {
	e := r.names.edgeList[r.edges[n]]
	return PathEdge{
		Kind: e.kind, Owner: e.owner, Name: e.name, Class: r.names.classNames[r.classes[n]], Linked: r.linked[n],
		Objects: series(r.counts, n),
	}
}

// children returns the growing children of a node, with what grows below them,
// and the number of children beyond the limit given by most. own is true if a
// class that does not belong to a library was found above.
func (r *reading) children(n uint32, level, most int, own bool) (list []Child, rest int) {
	nodes := slices.Clone(r.grown[n])
	slices.SortFunc(nodes, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(rise(r.bytes, b), rise(r.bytes, a)),
			cmp.Compare(rise(r.counts, b), rise(r.counts, a)), r.byName(a, b))
	})
	rest = max(len(nodes)-most, 0)
	for i, c := range nodes[:len(nodes)-rest] {
		child := Child{
			PathEdge: r.step(c), RetainedBytes: series(r.bytes, c), RetainedDelta: rise(r.bytes, c),
			Delta: rise(r.counts, c),
		}
		met := own || !android.IsContainer(child.Class)
		switch {
		case level < levels:
			child.Children, child.ChildrenOmitted = r.children(c, level+1, branches, met)
		case i == 0 && !met && level < mostLevels:
			child.Children, child.ChildrenOmitted = r.children(c, level+1, 1, met)
		}
		list = append(list, child)
	}
	return list, rest
}

// byName orders the children of a node.
func (r *reading) byName(a, b uint32) int {
	e, f := r.names.edgeList[r.edges[a]], r.names.edgeList[r.edges[b]]
	return cmp.Or(cmp.Compare(e.owner, f.owner), cmp.Compare(e.name, f.name), cmp.Compare(e.kind, f.kind),
		cmp.Compare(r.names.classNames[r.classes[a]], r.names.classNames[r.classes[b]]), cmp.Compare(a, b))
}

func series[T uint32 | int64](dumps [][]T, n uint32) []int64 {
	list := make([]int64, len(dumps))
	for d := range dumps {
		list[d] = int64(dumps[d][n])
	}
	return list
}

// rise returns the growth of a node from the first dump to the last.
func rise[T uint32 | int64](dumps [][]T, n uint32) int64 {
	return int64(dumps[len(dumps)-1][n]) - int64(dumps[0][n])
}
