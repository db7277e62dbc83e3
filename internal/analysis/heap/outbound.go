package heap

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Outbound holds the references of the objects of a graph, with the places that
// hold the references: fields, static fields, elements. It includes everything
// in the dump, even weak referents, except for the fields of java.lang.Object.
// The references of class records other than static fields are included if the
// size model counts them; the reference of an object to its class is not
// included (Graph.Linked).
//
// As in links, the references are encoded as a sequence of bytes. For each
// object, the sequence lists the places in order and ends with a 0. To encode a
// reference, the difference of the object numbers is zigzag-encoded, increased
// by 1 and shifted left by 1 bit. A run of places without a reference is
// encoded as its length, shifted left by 1 bit, with the lowest bit set.
type Outbound struct {
	graph *Graph
	// members holds the covered objects that may have references. If whole is
	// true, all objects are covered: then members holds all objects that are
	// not leaves.
	members ranks
	whole   bool
	// counts is the number of members of each slot.
	counts []int64
	bytes  []byte
	starts []uint32
	high   []uint8
	used   atomic.Int64
	// places holds the places of the instances of each slot; statics holds
	// those of class objects.
	places  [][]Place
	statics map[uint32][]Place
}

// Place is a field that holds a reference.
type Place struct {
	// Class is the class that declares the field.
	Class, Name string
	// Record is true if the place is not a field but a reference in the class
	// record.
	Record bool
	// at is the position in an instance, or the index among a class's static
	// fields.
	at uint32
}

// Outbound reads the references of all objects, like OutboundOf.
func (g *Graph) Outbound(ctx context.Context) (*Outbound, error) { return g.OutboundOf(ctx, nil) }

// OutboundOf reads the references of the objects of a set, in one pass over the
// file; nil means all objects. An object's fields are ordered by name; fields
// of the same name are in the order of the dump, most derived class first
// (Shark, FieldInstanceReferenceReader.kt). Static fields are in the dump's
// order. The referenced objects need not be in the set. Close releases the
// memory.
func (g *Graph) OutboundOf(ctx context.Context, within *Set) (*Outbound, error) {
	b := &Outbound{graph: g, statics: map[uint32][]Place{}, members: g.links.inner}
	b.lay()
	err := b.limit(within)
	if err == nil {
		err = b.room()
	}
	if err == nil {
		err = g.scan(ctx, b.chunks(), false, func() func(*hprof.Scanner) error {
			w := &outboundWriter{Outbound: b, lookup: newLookup(g.registry)}
			return w.visit
		})
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// limit restricts members to a set of objects.
func (b *Outbound) limit(within *Set) (err error) {
	if within == nil {
		b.whole = true
		return nil
	}
	bits, err := newBitset(&b.graph.arena, b.graph.Objects)
	if err != nil {
		return err
	}
	copy(bits, within.bits)
	b.members, err = newRanks(&b.graph.arena, bits)
	return err
}

// few is the maximum number of members for which Outbound reads only the parts
// of the file that contain them.
const few = 1 << 16

// chunks returns the parts of the file that may contain members.
func (b *Outbound) chunks() [][]hprof.Segment {
	if b.whole || b.members.len() > few {
		return b.graph.chunks()
	}
	ids := make([]uint64, 0, b.members.len())
	b.members.bits.each(0, uint32(b.graph.Objects), func(n uint32) { ids = append(ids, uint64(b.graph.ID(Object(n)))) })
	slices.Sort(ids)
	return b.graph.chunksOf(ids)
}

// Len returns the number of objects to which Number assigns an index.
func (b *Outbound) Len() int64 {
	if b.whole {
		return b.graph.Objects
	}
	return b.members.len()
}

// Number returns the index of an object among the objects that b covers, in
// order; it returns false for other objects.
func (b *Outbound) Number(o Object) (uint32, bool) {
	switch {
	case b.whole:
		return uint32(o), true
	case !b.members.bits.has(uint32(o)):
		return 0, false
	}
	return b.members.of(uint32(o)), true
}

// Close releases the memory. It may be called more than once.
func (b *Outbound) Close() {
	if !b.whole {
		drop(&b.graph.arena, (*[]uint64)(&b.members.bits))
		drop(&b.graph.arena, &b.members.sums)
	}
	drop(&b.graph.arena, &b.bytes)
	drop(&b.graph.arena, &b.starts)
	drop(&b.graph.arena, &b.high)
}

// lay determines the places of all classes.
func (b *Outbound) lay() {
	g := b.graph
	b.places = make([][]Place, len(g.registry.list))
	for s := range g.registry.list {
		c := &g.registry.list[s]
		if slot(s) >= named && !c.arrays {
			b.places[s] = g.instancePlaces(slot(s))
		}
		if c.dump == nil {
			continue
		}
		if o, ok := g.find(c.id); ok {
			if list := g.staticPlaces(c); len(list) > 0 {
				b.statics[uint32(o)] = list
			}
		}
	}
}

func (g *Graph) instancePlaces(s slot) (list []Place) {
	at := uint32(0)
	for range longestChain {
		c := &g.registry.list[s]
		if c.dump == nil || c.name == "java.lang.Object" {
			break
		}
		for _, f := range c.dump.Fields {
			if f.Type == hprof.Object {
				name, _ := g.fieldName(c, f.Name, f.Type)
				list = append(list, Place{Class: c.name, Name: name, at: at})
			}
			at += uint32(f.Type.Size(g.IDSize))
		}
		if c.super == 0 || c.super == s {
			break
		}
		s = c.super
	}
	slices.SortStableFunc(list, func(a, b Place) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (g *Graph) staticPlaces(c *class) (list []Place) {
	for i, f := range c.dump.Statics {
		if f.Type == hprof.Object {
			name, _ := g.fieldName(c, f.Name, f.Type)
			list = append(list, Place{Class: c.name, Name: name, at: uint32(i)})
		}
	}
	if c.recorded {
		for i, id := range ofClass(c.dump) {
			if id != 0 {
				list = append(list, Place{Class: c.name, Name: classReferences[i], Record: true, at: uint32(i)})
			}
		}
	}
	return list
}

// room allocates tables for the maximum number of places. Unused space is never
// touched.
func (b *Outbound) room() (err error) {
	g := b.graph
	b.counts = make([]int64, len(g.registry.list))
	most := int64(0)
	for n := range uint32(g.Objects) {
		if !b.members.bits.has(n) {
			continue
		}
		s := g.slots.at(n)
		b.counts[s]++
		if g.registry.list[s].arrays {
			most += g.sizes.at(n) / int64(g.IDSize)
		}
	}
	for s, n := range b.counts {
		most += n * int64(len(b.places[s]))
	}
	for _, list := range b.statics {
		most += int64(len(list))
	}
	members := b.members.len()
	// Reserving twice the maximum leaves room for the unused ends of slabs.
	size := 2*(longest*most+(longest+1)*members) + int64(g.workers+1)*slab
	if b.bytes, err = array[byte](&g.arena, size); err != nil {
		return err
	}
	if b.starts, err = array[uint32](&g.arena, members); err != nil {
		return err
	}
	if size > 1<<32 {
		b.high, err = array[uint8](&g.arena, members)
	}
	// Objects without references share the 0 at the beginning.
	b.used.Store(1)
	return err
}

// outboundWriter is the state of one goroutine that reads objects and writes
// their references.
type outboundWriter struct {
	*Outbound
	class  hprof.Class
	lookup *lookup
	// object is the object whose places are being written, from start to at;
	// end is the end of this goroutine's space.
	object         uint32
	start, at, end int64
	// gap is the number of places without a reference after the last reference.
	gap uint64
}

func (w *outboundWriter) visit(s *hprof.Scanner) error {
	switch s.Kind {
	case hprof.SubInstance:
		if w.has(s.Class) {
			w.instance(s)
		}
	case hprof.SubObjectArray:
		if s.Piece || w.has(s.Class) {
			w.elements(s)
		} else {
			w.object = none
		}
	case hprof.SubClassDump:
		w.classDump(s)
	}
	return nil
}

// has reports whether any object of a class may be a member. It is cheaper than
// checking whether an object is a member.
func (w *outboundWriter) has(class hprof.ID) bool {
	s := w.lookup.of(class)
	return int(s) >= len(w.counts) || w.counts[s] > 0
}

func (w *outboundWriter) instance(s *hprof.Scanner) {
	if !w.begin(s, 0) {
		return
	}
	size := w.graph.IDSize
	for _, p := range w.places[w.graph.slots.at(w.object)] {
		// An instance may be shorter than its class declares, because of the
		// hidden fields of ART's strings.
		if int(p.at)+size > len(s.Body) {
			w.gap++
			continue
		}
		w.add(readID(s.Body[p.at:], size))
	}
	w.finish()
}

func (w *outboundWriter) elements(s *hprof.Scanner) {
	if !s.Piece && !w.begin(s, int64(s.Count)) || w.object == none {
		return
	}
	body := s.Body
	if w.graph.IDSize == 4 {
		for ; len(body) >= 4; body = body[4:] {
			w.add(hprof.ID(binary.BigEndian.Uint32(body)))
		}
	} else {
		for ; len(body) >= 8; body = body[8:] {
			w.add(hprof.ID(binary.BigEndian.Uint64(body)))
		}
	}
	if int64(s.First)+int64(len(s.Body)/w.graph.IDSize) == int64(s.Count) {
		w.finish()
	}
}

func (w *outboundWriter) classDump(s *hprof.Scanner) {
	if !w.begin(s, 0) {
		return
	}
	s.ReadClass(&w.class)
	record := ofClass(&w.class)
	for _, p := range w.statics[w.object] {
		switch {
		case p.Record:
			w.add(record[p.at])
		case int(p.at) < len(w.class.Statics):
			w.add(hprof.ID(w.class.Statics[p.at].Value))
		}
	}
	w.finish()
}

// begin reserves space for the object of the current record. It returns false
// if the object is not a member, or if a later record describes the same
// object.
func (w *outboundWriter) begin(s *hprof.Scanner, elements int64) bool {
	g, n := w.graph, w.graph.ids.find(s.Object)
	w.object = none
	if n == none || g.superseded(n, s.Offset) || !w.members.bits.has(n) {
		return false
	}
	places := max(elements, int64(len(w.places[g.slots.at(n)])), int64(len(w.statics[n])))
	need := (places+1)*longest + 1
	if w.end-w.at < need {
		size := max(need, slab)
		w.end = w.used.Add(size)
		w.at = w.end - size
		if w.end > int64(len(w.bytes)) {
			// This happens only if the records differ from those read when the
			// graph was loaded.
			w.end, w.at = 0, 0
			return false
		}
	}
	w.object, w.start, w.gap = n, w.at, 0
	return true
}

func (w *outboundWriter) add(id hprof.ID) {
	to := none
	if id != 0 {
		to = w.graph.ids.find(id)
	}
	if to == none {
		w.gap++
		return
	}
	if w.gap > 0 {
		w.at = putUvarint(w.bytes, w.at, w.gap<<1|1)
		w.gap = 0
	}
	w.at = putUvarint(w.bytes, w.at, (zigzag(int64(to)-int64(w.object))+1)<<1)
}

func (w *outboundWriter) finish() {
	at := w.start
	if w.at == w.start {
		at = 0
	} else {
		w.bytes[w.at] = 0
		w.at++
	}
	r := w.members.of(w.object)
	w.starts[r] = uint32(at)
	if w.high != nil {
		w.high[r] = uint8(at >> 32)
	}
	w.object = none
}

// References iterates over the references of one object.
type References struct {
	// To is the referenced object; Place is the index of the field in Places,
	// or of the array element.
	To    Object
	Place uint32

	bytes []byte
	at    uint64
	from  uint32
	next  uint32
}

// Of returns the references of an object, in the order of its places:
//
//	for r := b.Of(o); r.Next(); {
//		r.To ...
//	}
func (b *Outbound) Of(o Object) References {
	n := uint32(o)
	r := References{bytes: b.bytes, from: n}
	if b.members.bits.has(n) {
		k := b.members.of(n)
		r.at = uint64(b.starts[k])
		if b.high != nil {
			r.at |= uint64(b.high[k]) << 32
		}
	}
	return r
}

// Next advances to the next reference.
func (r *References) Next() bool {
	for {
		code, at := uvarint(r.bytes, r.at)
		if code == 0 {
			return false
		}
		r.at = at
		if code&1 != 0 {
			r.next += uint32(code >> 1)
			continue
		}
		r.To = Object(int64(r.from) + unzigzag(code>>1-1))
		r.Place = r.next
		r.next++
		return true
	}
}

// Places returns the fields of an instance, or the static fields of a class
// object; References.Place is an index into the result. It returns nil for
// arrays. The caller must not change the result.
func (b *Outbound) Places(o Object) []Place {
	if s := b.graph.slots.at(uint32(o)); s != classSlot {
		return b.places[s]
	}
	return b.statics[uint32(o)]
}

// PlacesOf returns the fields of the instances of a class, identified by
// ClassNumber. It returns nil for arrays and for class objects. The caller must
// not change the result.
func (b *Outbound) PlacesOf(number int) []Place { return b.places[number] }

// At returns the object that the given place of an object references.
func (b *Outbound) At(o Object, place uint32) (Object, bool) {
	for r := b.Of(o); r.Next() && r.Place <= place; {
		if r.Place == place {
			return r.To, true
		}
	}
	return 0, false
}

// Classes calls f with each class object that holds references in static fields
// or in its class record, and with the places of these references.
func (b *Outbound) Classes(f func(o Object, statics []Place)) {
	for o, places := range b.statics {
		f(Object(o), places)
	}
}
