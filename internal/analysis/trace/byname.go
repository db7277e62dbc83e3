package trace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// meeting is one way in which the search reaches an object. If there are
// several ways, only the best one is kept: the path with the fewest references
// or, among paths of equal length, the one whose names come first when compared
// from the root down.
type meeting struct {
	// depth is the length of the path; from is the rank of the path to the
	// previous object.
	depth, from uint32
	// kind and place describe the reference; elements of arrays and collections
	// are treated alike.
	kind  uint8
	place uint32
	// class is the number of the object's class.
	class  uint32
	object heap.Object
	// parent is encoded like an entry of Search.parents; it is 0 if a better
	// path was found.
	parent uint32
}

// byName runs a search level by level. Each level is processed in the order of
// the paths to its objects.
type byName struct {
	*Search
	// at holds the state of each pending object, indexed by Outbound.Number.
	// The state is the object's index in next plus 1, its index in later with
	// the highest bit set, or done.
	at          []uint32
	next, later []meeting
	depth, rank uint32
	// ended is true if all wanted objects were reached.
	lasting, ended bool
	// classes holds the names of classes by number. The classes of instances
	// come first, then the class objects, whose numbers are in objects.
	classes []string
	objects map[heap.Object]uint32
}

const (
	done       = ^uint32(0)
	inLater    = uint32(1) << 31
	rootThread = 0
)

func (s *Search) runByName(ctx context.Context) error {
	b := &byName{Search: s, classes: make([]string, s.graph.ClassCount()), objects: map[heap.Object]uint32{}}
	var err error
	if b.at, err = s.graph.Scratch(s.reader.outbound.Len()); err != nil {
		return fmt.Errorf("find paths: %w", err)
	}
	defer s.graph.Release(&b.at)
	b.roots()
	for {
		if err := b.levels(ctx); err != nil || b.lasting || b.ended {
			return err
		}
		b.lasting, b.depth = true, b.depth+1
		b.next, b.later = slices.DeleteFunc(b.later, func(m meeting) bool { return m.parent == 0 }), nil
	}
}

func (b *byName) roots() {
	kinds := rootOrder()
	for i, root := range b.reader.roots {
		m := meeting{
			kind: kinds[root.Kind], class: b.class(root.Object), object: root.Object, parent: uint32(b.graph.Objects) +
				1 + uint32(i),
		}
		if n, ok := b.reader.outbound.Number(root.Object); ok {
			b.meet(n, m, root.Low)
		}
	}
}

// rootOrder numbers the kinds of roots in Shark's order, which starts with
// threads.
func rootOrder() (order [256]uint8) {
	kinds := make([]hprof.SubTag, 0, len(rootNames))
	for kind := range rootNames {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b hprof.SubTag) int { return strings.Compare(rootNames[b], rootNames[a]) })
	for i := range order {
		order[i] = uint8(len(kinds) + 1)
	}
	for i, kind := range kinds {
		order[kind] = uint8(i + 1)
	}
	order[hprof.SubRootThreadObject] = rootThread
	return order
}

// levels processes the levels one by one until only Low references remain.
func (b *byName) levels(ctx context.Context) error {
	var level []meeting
	for len(b.next) > 0 {
		level, b.next = b.next, level[:0]
		b.sort(level)
		for _, m := range level {
			n, _ := b.reader.outbound.Number(m.object)
			b.at[n], b.parents[n] = done, m.parent
		}
		b.depth++
		b.rank = 0
		for i := range level {
			if i%checkInterval == checkInterval-1 && ctx.Err() != nil {
				return ctx.Err()
			}
			if i > 0 && !b.alike(&level[i-1], &level[i]) {
				b.rank++
			}
			if b.expand(level[i].object); b.ended {
				return nil
			}
		}
	}
	return ctx.Err()
}

// sort sorts a level. The level is already sorted by depth and from, because
// paths are found in this order. A better path to an object has the same values
// of depth and from as the path it replaces.
func (b *byName) sort(level []meeting) {
	for begin := 0; begin < len(level); {
		end := begin + 1
		for end < len(level) && level[end].depth == level[begin].depth && level[end].from == level[begin].from {
			end++
		}
		slices.SortFunc(level[begin:end], b.compare)
		begin = end
	}
}

func (b *byName) expand(o heap.Object) {
	if b.lasting {
		b.late.add(o)
	}
	if b.target.has(o) {
		b.found = append(b.found, o)
	}
	if b.ended = b.ends(o); b.ended || b.target.has(o) && !b.options.Through {
		return
	}
	b.reader.Read(o, func(e Edge) {
		// Most references lead to finished objects, for which the class is not
		// needed.
		if n, ok := b.reader.outbound.Number(e.To); ok && b.at[n] != done {
			b.meet(n,
				meeting{
					depth: b.depth, from: b.rank, kind: nameKind(e.Kind), place: namePlace(e), class: b.class(e.To),
					object: e.To, parent: uint32(o) + 1,
				}, e.Low)
		}
	})
}

// nameKind returns the same number for all kinds that a trace shows as an
// element.
func nameKind(k EdgeKind) uint8 {
	switch k {
	case ItemEdge, ValueEdge, NamedEdge:
		return uint8(ElementEdge)
	}
	return uint8(k)
}

// namePlace returns the number of a field, in the order of the field names, or
// 0 for other references.
func namePlace(e Edge) uint32 {
	if (e.Kind == FieldEdge || e.Kind == StaticEdge) && e.Name == "" {
		return e.Place
	}
	return 0
}

// meet keeps the best path to each unfinished object, which is identified by
// its number.
func (b *byName) meet(n uint32, m meeting, low bool) {
	low = low && !b.lasting
	switch at := b.at[n]; {
	case at == 0:
		b.put(n, m, low)
	case at&inLater == 0:
		if waiting := &b.next[at-1]; !low && b.compare(m, *waiting) < 0 {
			*waiting = m
		}
	case low:
		if waiting := &b.later[at&^inLater-1]; b.compare(m, *waiting) < 0 {
			*waiting = m
		}
	default:
		b.later[at&^inLater-1].parent = 0
		b.put(n, m, false)
	}
}

func (b *byName) put(n uint32, m meeting, low bool) {
	if low {
		b.later = append(b.later, m)
		b.at[n] = uint32(len(b.later)) | inLater
		return
	}
	if len(b.next) == cap(b.next) {
		// A level can contain most of the heap: doubling the capacity copies
		// less often than append does.
		b.next = slices.Grow(b.next, len(b.next)+1)
	}
	b.next = append(b.next, m)
	b.at[n] = uint32(len(b.next))
}

// compare orders paths. Of two equal paths, the path to the object with the
// lower number comes first, which makes the order total.
func (b *byName) compare(x, y meeting) int {
	switch {
	case x.depth != y.depth:
		return cmp.Compare(x.depth, y.depth)
	case x.from != y.from:
		return cmp.Compare(x.from, y.from)
	case x.kind != y.kind:
		return cmp.Compare(x.kind, y.kind)
	case x.place != y.place:
		return cmp.Compare(x.place, y.place)
	case x.class != y.class:
		if c := strings.Compare(b.classes[x.class], b.classes[y.class]); c != 0 {
			return c
		}
	}
	if x.object != y.object {
		return cmp.Compare(x.object, y.object)
	}
	return cmp.Compare(x.parent, y.parent)
}

// alike reports whether two paths have the same names.
func (b *byName) alike(x, y *meeting) bool {
	return x.depth == y.depth && x.from == y.from && x.kind == y.kind && x.place == y.place &&
		(x.class == y.class || b.classes[x.class] == b.classes[y.class])
}

// class returns a number for the name of an object's class, ignoring the parts
// of the name that change from run to run.
func (b *byName) class(o heap.Object) uint32 {
	if b.graph.IsClass(o) {
		n, ok := b.objects[o]
		if !ok {
			n = uint32(len(b.classes))
			b.objects[o] = n
			b.classes = append(b.classes, "class "+StableClass(b.graph.ClassName(o)))
		}
		return n
	}
	n := b.graph.ClassNumber(o)
	if b.classes[n] == "" {
		b.classes[n] = StableClass(b.graph.Class(o))
	}
	return uint32(n)
}
