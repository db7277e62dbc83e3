package heap

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

const (
	// longest is the number of bytes of the longest code, which encodes 34
	// bits.
	longest = 5
	// slab is the number of bytes that a goroutine reserves for links at a
	// time.
	slab = 64 << 10
)

// second performs the second pass, which reads the references.
func (l *loader) second(ctx context.Context) error {
	if err := l.room(); err != nil {
		return err
	}
	var mu sync.Mutex
	err := l.pool(ctx, func() func(int, []hprof.Segment) error {
		w := &linker{loader: l, scanner: l.file.Scanner(nil), lookup: newLookup(l.registry)}
		return func(_ int, chunk []hprof.Segment) error {
			err := w.link(ctx, chunk)
			mu.Lock()
			defer mu.Unlock()
			w.hand()
			if l.options.Partial && errors.As(err, new(*hprof.DamageError)) {
				return nil
			}
			return err
		}
	})
	if err != nil {
		return err
	}
	drop(&l.arena, (*[]uint64)(&l.seen))
	slices.SortFunc(l.weaker.links, func(a, b weakLink) int { return compare(a.from, b.from, a.to, b.to) })
	l.joinNative()
	return l.shareRoots()
}

func compare(a, b, c, d uint32) int {
	if a != b {
		return int(int64(a) - int64(b))
	}
	return int(int64(c) - int64(d))
}

// shareRoots marks leaves that are GC roots as shared, because the objects that
// reference them do not dominate them.
func (l *loader) shareRoots() error {
	kept := l.roots[:0]
	for _, r := range l.roots {
		l.RootCounts[r.Kind]++
		if r.Kind == hprof.SubRootUnreachable {
			continue
		}
		if l.share(r) {
			kept = append(kept, r)
		}
	}
	l.roots, l.implied = kept, 0
	for _, r := range l.impliedList {
		if l.share(r) {
			l.roots = append(l.roots, r)
			l.implied++
		}
	}
	l.impliedList = nil
	return nil
}

// share marks the object of a root as shared if it is a leaf; it returns false
// if the dump has no such object. In a damaged dump, the object with the ID of
// a class may not be a class.
func (l *loader) share(r hprof.Root) bool {
	n := l.ids.find(r.Object)
	if n == none {
		return false
	}
	if !l.links.inner.bits.has(n) {
		l.links.shared.set(n)
	}
	return true
}

// room allocates the tables of references: one that records which objects are
// leaves, and space for the maximum number of references. Unused space is never
// touched.
func (l *loader) room() (err error) {
	n := l.ids.len()
	inner, err := newBitset(&l.arena, n)
	if err != nil {
		return err
	}
	most := l.census(inner)
	if err := l.needed(n, most); err != nil {
		return err
	}
	if l.links.inner, err = newRanks(&l.arena, inner); err != nil {
		return err
	}
	if l.links.shared, err = newBitset(&l.arena, n); err != nil {
		return err
	}
	if l.seen, err = newBitset(&l.arena, n); err != nil {
		return err
	}
	if l.links.starts, err = array[uint32](&l.arena, l.links.inner.len()); err != nil {
		return err
	}
	// Reserving twice the maximum leaves room for the unused ends of slabs.
	size := 2*(longest*most+(longest+1)*l.links.inner.len()) + int64(l.options.Workers+1)*slab
	if size > 1<<32 {
		if l.links.high, err = array[uint8](&l.arena, l.links.inner.len()); err != nil {
			return err
		}
	}
	if l.links.bytes, err = array[byte](&l.arena, size); err != nil {
		return err
	}
	// Objects without references share one of these end codes; the second one
	// stands for a reference to the class only.
	l.links.bytes[endCode], l.links.bytes[classCode] = endCode, classCode
	l.links.used.Store(2)
	return nil
}

// census counts objects, marks those that may have references, and computes an
// upper bound on the number of references.
func (l *loader) census(inner bitset) (most int64) {
	counts := make([]int64, len(l.registry.list))
	elements := int64(0)
	l.linkClasses()
	for i := range uint32(l.ids.len()) {
		s := l.slots.at(i)
		counts[s]++
		c := &l.registry.list[s]
		if c.leaf {
			continue
		}
		inner.set(i)
		if c.arrays {
			elements += l.sizes.at(i) / int64(l.IDSize)
			if l.Duplicates > 0 {
				l.ObjectArrays++
			}
		}
	}
	most = elements
	for s := range l.registry.list {
		c := &l.registry.list[s]
		most += counts[s] * int64(len(c.offsets)+1)
		if c.dump != nil {
			most += int64(len(c.dump.Statics))
		}
		if c.recorded {
			most += int64(len(classReferences))
		}
		if c.link != none {
			l.ReferenceCount += counts[s]
		}
		if slot(s) > classSlot && slot(s) < named {
			l.PrimitiveArrays += counts[s]
		}
	}
	l.Objects, l.Classes = l.ids.len(), counts[classSlot]
	l.Instances = l.Objects - l.Classes - l.ObjectArrays - l.PrimitiveArrays
	if l.Duplicates > 0 {
		most = math.MaxInt64
	}
	// Each reference occupies IDSize bytes of the file.
	return min(most, l.total/int64(l.IDSize))
}

// linkClasses builds the table of references to classes. In a damaged dump the
// ID of a class may belong to another object: references to such an object do
// not count.
func (l *loader) linkClasses() {
	l.links.classes = make([]uint32, len(l.registry.list))
	for s := range l.registry.list {
		c := &l.registry.list[s]
		if c.link != none && l.slots.at(c.link) != classSlot {
			c.link = none
		}
		l.links.classes[s] = c.link
	}
}

// needed returns an error if the graph of a dump does not fit into memory; it
// is called before the larger tables are allocated.
func (l *loader) needed(n, references int64) error {
	need := n*l.bytesPerObject() + references*bytesPerReference
	if l.options.Limit > 0 && need > l.options.Limit {
		return &MemoryError{Need: need, Limit: l.options.Limit}
	}
	return nil
}

// linker is the state of one goroutine of the second pass.
type linker struct {
	*loader
	scanner *hprof.Scanner
	lookup  *lookup
	class   hprof.Class
	// object is the object whose references are being written, from start to
	// at; end is the end of this goroutine's space.
	object         uint32
	start, at, end int64
	// last is the object that the current object referenced last.
	last            uint32
	dangling, count int64
	weak            []weakLink
	native          nativeParts
}

// hand adds this goroutine's counts, weak links and native memory to those of
// the loader, and resets them.
func (w *linker) hand() {
	w.loader.weaker.links = append(w.loader.weaker.links, w.weak...)
	w.loader.Dangling += w.dangling
	w.loader.ReferenceCount += w.count
	w.loader.parts.add(&w.native)
	w.weak, w.dangling, w.count = w.weak[:0], 0, 0
	w.native.clear()
}

// link writes the references of a chunk's objects.
func (w *linker) link(ctx context.Context, chunk []hprof.Segment) error {
	s := w.scanner
	s.Reset(chunk)
	list := w.registry.list
	for n := 1; s.Next(); n++ {
		if n%shortPatience == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch s.Kind {
		case hprof.SubInstance:
			if c := &list[w.lookup.of(s.Class)]; !c.leaf || c.part != 0 {
				w.instance(c, s)
			}
		case hprof.SubObjectArray:
			w.elements(s)
		case hprof.SubClassDump:
			s.ReadClass(&w.class)
			w.classObject(s)
		}
	}
	return s.Err()
}

func (w *linker) classObject(s *hprof.Scanner) {
	if !w.begin(s, len(w.class.Statics)+len(classReferences)) {
		return
	}
	for _, v := range w.class.Statics {
		if v.Type == hprof.Object {
			w.add(hprof.ID(v.Value))
		}
	}
	if w.registry.list[w.lookup.of(s.Object)].recorded {
		for _, id := range ofClass(&w.class) {
			// A record may refer to objects that the runtime does not dump.
			if id != 0 && w.ids.find(id) != none {
				w.add(id)
			}
		}
	}
	w.finish()
}

func (w *linker) instance(c *class, s *hprof.Scanner) {
	if c.part != 0 && !w.superseded(w.ids.find(s.Object), s.Offset) {
		w.part(c, s)
	}
	if c.leaf || !w.begin(s, min(len(c.offsets), len(s.Body)/w.IDSize)+1) {
		return
	}
	// Offsets ascend. An instance may be shorter than its class declares,
	// because of the hidden fields of ART's strings.
	body := s.Body
	if w.IDSize == 4 {
		for _, at := range c.offsets {
			if int(at)+4 > len(body) {
				break
			}
			w.add(hprof.ID(binary.BigEndian.Uint32(body[at:])))
		}
	} else {
		for _, at := range c.offsets {
			if int(at)+8 > len(body) {
				break
			}
			w.add(hprof.ID(binary.BigEndian.Uint64(body[at:])))
		}
	}
	if at := int(c.referent); at >= 0 && at+w.IDSize <= len(body) {
		w.referent(readID(body[at:], w.IDSize), c.strength)
	}
	w.finish()
}

// referent records the referent of a Reference. A soft reference counts like a
// field, because the runtime clears soft references only when memory is short.
func (w *linker) referent(id hprof.ID, strength Reachability) {
	to := w.ids.find(id)
	if id == 0 || to == none {
		return
	}
	w.weak = append(w.weak, weakLink{w.object, to, strength})
	if strength == Soft {
		// The soft reference is a separate link even if a field also references
		// the referent, because the field's reference is stronger.
		w.last = none
		w.add(id)
	}
}

func (w *linker) elements(s *hprof.Scanner) {
	if !s.Piece {
		w.begin(s, int(s.Count))
	}
	if w.object == none {
		return
	}
	body := s.Body
	if w.IDSize == 4 {
		for ; len(body) >= 4; body = body[4:] {
			if id := binary.BigEndian.Uint32(body); id != 0 {
				w.add(hprof.ID(id))
			}
		}
	} else {
		for ; len(body) >= 8; body = body[8:] {
			if id := binary.BigEndian.Uint64(body); id != 0 {
				w.add(hprof.ID(id))
			}
		}
	}
	if int64(s.First)+int64(len(s.Body)/w.IDSize) == int64(s.Count) {
		w.finish()
	}
}

// begin reserves space for n references of the current record's object; it
// returns false if the references of this record do not count.
func (w *linker) begin(s *hprof.Scanner, n int) bool {
	w.object = w.ids.find(s.Object)
	if w.superseded(w.object, s.Offset) || !w.links.inner.bits.has(w.object) {
		w.object = none
		return false
	}
	need := int64(n)*longest + 1
	if w.end-w.at < need {
		size := max(need, slab)
		w.end = w.links.used.Add(size)
		w.at = w.end - size
	}
	w.start, w.last = w.at, none
	return true
}

func (w *linker) add(id hprof.ID) {
	if id == 0 {
		return
	}
	to := w.ids.find(id)
	if to == none {
		w.dangling++
		return
	}
	w.count++
	// An array is often filled with the same object, which needs to be recorded
	// only once.
	if to == w.object || to == w.last {
		return
	}
	w.last = to
	leaf := !w.links.inner.bits.has(to)
	if leaf && w.seen.setShared(to) {
		w.links.shared.setShared(to)
	}
	w.at = putUvarint(w.links.bytes, w.at, encode(w.object, to, leaf))
}

// finish ends the list of an object's references. All objects without
// references share an end code at the beginning of the links.
func (w *linker) finish() {
	at, end := w.start, byte(endCode)
	if w.links.classes[w.slots.at(w.object)] != none {
		end = classCode
	}
	if w.at == w.start {
		at = int64(end)
	} else {
		w.links.bytes[w.at] = end
		w.at++
	}
	// If a large array needs less space because it contains nulls or nearby
	// objects, the rest is returned, unless more space has been reserved since.
	if w.end-w.at > slab && w.links.used.CompareAndSwap(w.end, w.at) {
		w.end = w.at
	}
	w.links.setStart(w.links.inner.of(w.object), uint64(at))
}

func readID(b []byte, size int) hprof.ID {
	if size == 8 {
		return hprof.ID(binary.BigEndian.Uint64(b))
	}
	return hprof.ID(binary.BigEndian.Uint32(b))
}
