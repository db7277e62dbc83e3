package trace

import (
	"math"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// shape is a Collection in a particular dump, together with the indexes of its
// fields.
type shape struct {
	*Collection
	// through and head are the indexes of the fields Through and Head in the
	// collection's class, or -1. If the elements are in another collection,
	// head is an index in that collection's class.
	through, head int
}

// collection returns the shape of a class, or nil if its instances are not
// collections. The shape is that of the class itself or of its nearest
// superclass that is a collection.
func (r *Reader) collection(hierarchy []string, places []heap.Place) *shape {
	if !r.rules.Subclasses {
		hierarchy = hierarchy[:1]
	}
	for above, class := range hierarchy {
		if slices.Contains(r.rules.Without, class) {
			continue
		}
		for _, c := range r.collections[class] {
			// An entry for a single class of the platform applies to that class
			// only.
			if above > 0 && c.Shape >= Referent {
				continue
			}
			if s := r.shape(c, places); s != nil {
				return s
			}
		}
	}
	return nil
}

// indexCollections indexes the collections by class name.
func (r *Reader) indexCollections() {
	r.collections = map[string][]*Collection{}
	for i := range r.rules.Collections {
		c := &r.rules.Collections[i]
		for _, class := range c.Classes {
			r.collections[class] = append(r.collections[class], c)
		}
	}
}

// shape finds the fields of a collection; it returns nil if the class has
// another implementation.
func (r *Reader) shape(c *Collection, places []heap.Place) *shape {
	s := &shape{Collection: c, through: -1, head: -1}
	if c.Through.Name != "" {
		if s.through = placeOf(places, c.Through); s.through < 0 {
			return nil
		}
		return s
	}
	if s.head = placeOf(places, c.Head); s.head < 0 && c.Shape != FirstChain {
		return nil
	}
	return s
}

func placeOf(places []heap.Place, m Member) int {
	for i, p := range places {
		if p.Class == m.Class && p.Name == m.Name {
			return i
		}
	}
	return -1
}

// inner reports whether the field with the given index holds the collection's
// own tables or nodes.
func (s *shape) inner(place int) bool {
	return s.Shape < Referent && (place == s.through || place == s.head)
}

// member returns the object that a field of an object references.
func (r *Reader) member(o heap.Object, m Member) (heap.Object, bool) {
	k := r.kind(o)
	at, ok := k.members[m]
	if !ok {
		at = placeOf(r.outbound.PlacesOf(r.graph.ClassNumber(o)), m)
		if k.members == nil {
			k.members = map[Member]int{}
		}
		k.members[m] = at
	}
	if at < 0 {
		return 0, false
	}
	return r.outbound.At(o, uint32(at))
}

// sharing bounds the total number of nodes and elements of all collections, as
// a multiple of the number of objects in the dump. A set shares its elements
// with its map, and several lists may share one array.
const sharing = 16

// elements calls visit with the contents of a collection. If many collections
// share their contents, which is possible only in a damaged dump, the
// collections beyond the bound are treated as ordinary objects, every time they
// are read.
func (r *Reader) elements(o heap.Object, s *shape, visit func(Edge)) {
	again := r.flattened.has(o)
	switch {
	case r.plain.has(o):
		return
	case !again && r.steps > sharing*r.graph.Objects:
		r.plain.add(o)
		return
	}
	r.flattened.add(o)
	n := r.flatten(o, s, visit)
	if !again {
		r.steps += n
	}
}

// flatten visits the contents, and returns the number of nodes and elements.
func (r *Reader) flatten(o heap.Object, s *shape, visit func(Edge)) int64 {
	head, ok := r.head(o, s)
	if !ok {
		return 0
	}
	w := &walk{Reader: r, shape: s, visit: visit}
	if s.Header {
		w.index--
	}
	switch s.Shape {
	case Array:
		size := r.size(o, s)
		for f := r.outbound.Of(head); f.Next() && int64(f.Place) < size && w.step(); {
			w.item(f.To, f.Place)
		}
	case Table:
		for f := r.outbound.Of(head); f.Next() && w.step(); {
			w.chain(f.To)
		}
	case Chain, Pairs, FirstChain:
		w.chain(head)
	case First:
		visit(Edge{To: head, Kind: FieldEdge, Place: uint32(s.head), Matcher: s.Matcher})
	case Referent:
		if to, ok := r.member(head, Member{"java.lang.ref.Reference", "referent"}); ok &&
			r.graph.Class(head) == "java.lang.ref.WeakReference" {
			visit(Edge{To: to, Kind: FieldEdge, Low: true, Name: s.Head.Name})
		}
	}
	return w.steps
}

// size returns the number of valid elements of an array, or math.MaxInt64 if
// that number is unknown.
func (r *Reader) size(o heap.Object, s *shape) int64 {
	if s.Size.Name != "" && r.rules.Number != nil {
		if n, ok := r.rules.Number(o, s.Size); ok {
			return n
		}
	}
	return math.MaxInt64
}

func (r *Reader) head(o heap.Object, s *shape) (heap.Object, bool) {
	if s.Shape == FirstChain {
		return o, r.firsts[o]
	}
	if s.through < 0 {
		return r.outbound.At(o, uint32(s.head))
	}
	to, ok := r.outbound.At(o, uint32(s.through))
	if !ok {
		return 0, false
	}
	return r.member(to, s.Head)
}

// walk visits the nodes of one collection.
type walk struct {
	*Reader
	*shape
	visit func(Edge)
	index uint32
	steps int64
}

// step counts a node or an element; it returns false if the count is too large
// for a collection in this dump.
func (w *walk) step() bool {
	w.steps++
	return w.steps <= 4*w.graph.Objects
}

func (w *walk) item(to heap.Object, index uint32) {
	switch {
	case w.Only != nil && !w.Only(to):
	case w.Name != "":
		w.visit(Edge{To: to, Kind: NamedEdge, Place: index, Name: w.Name})
	default:
		w.visit(Edge{To: to, Kind: ItemEdge, Place: index})
	}
}

// layout describes a class of nodes in a dump: the indexes of the fields in
// Node, or -1 for missing fields.
type layout struct {
	// of is the first Node of the collection for which the layout was
	// determined.
	of                      *Node
	node                    *Node
	next, key, value, first int
}

// layout returns the layout of the class of a node. It returns nil if the
// object is not a node of the collection.
func (w *walk) layout(o heap.Object) *layout {
	if w.graph.IsClass(o) || len(w.Nodes) == 0 {
		return nil
	}
	k := w.kind(o)
	if l := &k.layout; l.of != &w.Nodes[0] {
		*l = layout{of: &w.Nodes[0]}
		places := w.outbound.PlacesOf(w.graph.ClassNumber(o))
		for i := range w.Nodes {
			if l.find(&w.Nodes[i], places) {
				l.node = &w.Nodes[i]
				break
			}
		}
	}
	if k.layout.node == nil {
		return nil
	}
	return &k.layout
}

func (l *layout) find(n *Node, places []heap.Place) bool {
	at := func(class, name string) int {
		if name == "" {
			return -1
		}
		return placeOf(places, Member{class, name})
	}
	keyClass := n.Class
	if n.KeyClass != "" {
		keyClass = n.KeyClass
	}
	l.next, l.value, l.first, l.key = at(n.Class, n.Next), at(n.Class, n.Value), at(n.Class, n.First),
		at(keyClass, n.Key)
	return l.next >= 0 || l.first >= 0
}

// held contains the objects that a node references; the flags show which of
// them exist.
type held struct {
	next, key, value, first             heap.Object
	hasNext, hasKey, hasValue, hasFirst bool
}

func (w *walk) read(node heap.Object, l *layout) (h held) {
	for f := w.outbound.Of(node); f.Next(); {
		switch int(f.Place) {
		case l.next:
			h.next, h.hasNext = f.To, true
		case l.key:
			h.key, h.hasKey = f.To, true
		case l.value:
			h.value, h.hasValue = f.To, true
		case l.first:
			h.first, h.hasFirst = f.To, true
		}
	}
	return h
}

// chain follows nodes to the end of the chain, or until they begin to repeat
// (Brent, "An improved Monte Carlo factorization algorithm", BIT 1980): a list
// may be a ring, and a damaged list may have any form.
func (w *walk) chain(first heap.Object) {
	mark, length, power := first, 0, 1
	for node := first; ; {
		l := w.layout(node)
		if l == nil || !w.step() {
			return
		}
		h := w.read(node, l)
		if l.first < 0 {
			w.hold(node, l, h)
		} else {
			h.next, h.hasNext = h.first, h.hasFirst
		}
		if !h.hasNext || h.next == mark || h.next == first {
			return
		}
		node = h.next
		if length++; length == power {
			mark, power, length = node, power*2, 0
		}
	}
}

// hold visits the objects that a node holds.
func (w *walk) hold(node heap.Object, l *layout, h held) {
	index := w.index
	w.index++
	switch {
	case (w.Shape == Chain || w.Shape == FirstChain) && l.node.Value == "":
		w.item(node, index)
	case w.Shape == Chain || w.Shape == FirstChain:
		if h.hasValue {
			w.item(h.value, index)
		}
	case l.node.KeyClass != "" && !h.hasKey:
	default:
		if h.hasKey && l.node.KeyClass == "" {
			w.visit(Edge{To: h.key, Kind: NamedEdge, Place: index, Name: w.Name})
		}
		if h.hasValue && !w.KeysOnly {
			w.visit(Edge{To: h.value, Kind: ValueEdge, Place: index, Key: h.key, HasKey: h.hasKey})
		}
	}
}
