package heap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// batch is the result of the first pass for a chunk of segments: the chunk's
// objects in the order of the file.
type batch struct {
	// ids holds the IDs relative to base; wide holds complete IDs and is used
	// if a chunk spans more than 4 GiB.
	base uint64
	ids  []uint32
	wide []uint64
	// slots holds the slot of each object; counts holds the number of elements
	// of each array, in order.
	slots  []slot
	counts []uint32
	// heaps holds the positions in the batch at which the heap changes.
	heaps  []run
	spread spread
	// block is the array that backs ids, slots and counts.
	block []uint32
}

// run is a sequence of objects in one heap; first is the first of these
// objects.
type run struct {
	first uint32
	heap  uint32
	name  hprof.ID
	// number is the heap's index in Graph.Heaps.
	number uint8
}

func (b *batch) each(f func(uint64)) {
	for _, id := range b.ids {
		f(b.base + uint64(id))
	}
	for _, id := range b.wide {
		f(id)
	}
}

func (b *batch) id(i int) hprof.ID {
	if b.wide != nil {
		return hprof.ID(b.wide[i])
	}
	return hprof.ID(b.base + uint64(b.ids[i]))
}

// arrayed is set in the slot of an object array, because a damaged dump may
// have an instance of the same class.
const arrayed slot = 1 << 31

// reading is the result of the first pass for a chunk.
type reading struct {
	batches []*batch
	roots   []hprof.Root
	// cut is the offset of the incomplete record at the end of the file, or -1.
	cut int64
	err error
}

// reader is the state of one goroutine of the first pass. Its arrays are reused
// for each batch.
type reader struct {
	*loader
	scanner *hprof.Scanner
	lookup  *lookup
	class   hprof.Class
	ids     []uint64
	slots   []slot
	counts  []uint32
	heaps   []run
	// weight is the memory used for roots and objects that have not been
	// reported to the loader yet, as a multiple of the memory that an object
	// uses.
	weight int64
}

const (
	// fullBatch is the maximum number of objects in a batch; without it, a
	// batch could hold all objects, because the dump may have only one segment.
	fullBatch = 1 << 19
	// shortPatience is the number of records between two checks of the context
	// and of the memory limit.
	shortPatience = 1 << 16
	// rootWeight and classWeight are the memory that a root and a class use, as
	// multiples of the memory that an object uses.
	rootWeight  = 6
	classWeight = 40
)

// read reads a chunk.
func (r *reader) read(ctx context.Context, chunk []hprof.Segment) *reading {
	c := &reading{}
	s := r.scanner
	s.Reset(chunk)
	heap := uint32(0)
	for n := 1; s.Next(); n++ {
		if n%shortPatience == 0 {
			if c.err = r.look(ctx); c.err != nil {
				return c
			}
		}
		if s.Heap != heap {
			heap = s.Heap
			r.enter(run{first: uint32(len(r.ids)), heap: heap, name: s.HeapName})
		}
		switch s.Kind {
		case hprof.SubInstance:
			r.object(s.Object, r.lookup.of(s.Class))
		case hprof.SubObjectArray:
			if !s.Piece {
				r.object(s.Object, r.lookup.array(s.Class)|arrayed)
				r.counts = append(r.counts, s.Count)
			}
		case hprof.SubPrimitiveArray, hprof.SubPrimitiveArrayNoData:
			r.object(s.Object, primitives+slot(s.Type))
			r.counts = append(r.counts, s.Count)
		case hprof.SubClassDump:
			s.ReadClass(&r.class)
			r.registry.dumped(&r.class, s.Offset)
			r.object(s.Object, classSlot)
		case hprof.SubHeapInfo:
		default:
			c.roots = append(c.roots, s.Root())
			r.weight += rootWeight
		}
		if len(r.ids) == fullBatch {
			if c.err = r.hand(c); c.err != nil {
				return c
			}
			if heap != 0 {
				r.heaps = append(r.heaps, run{heap: heap, name: s.HeapName})
			}
		}
	}
	c.cut, c.err = s.Truncated(), s.Err()
	return c
}

// enter begins another heap, and drops the previous heap if it has no objects.
func (r *reader) enter(h run) {
	if last := len(r.heaps) - 1; last >= 0 && r.heaps[last].first == h.first {
		r.heaps[last] = h
		return
	}
	r.heaps = append(r.heaps, h)
}

// look returns an error if the context is done or the memory limit is exceeded,
// which stops the reading.
func (r *reader) look(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	met := r.objects.Add(r.weight)
	r.weight = 0
	return r.fits(met + int64(len(r.ids)) + classWeight*r.registry.count.Load())
}

// hand adds a batch of the objects read so far to the results of the chunk.
func (r *reader) hand(c *reading) error {
	r.weight += int64(len(r.ids))
	b := &batch{heaps: slices.Clone(r.heaps)}
	err := r.pack(b)
	c.batches = append(c.batches, b)
	r.ids, r.slots, r.counts, r.heaps = r.ids[:0], r.slots[:0], r.counts[:0], r.heaps[:0]
	return err
}

func (r *reader) object(id hprof.ID, s slot) {
	r.ids = append(r.ids, uint64(id))
	r.slots = append(r.slots, s)
}

// pack copies the objects read so far from the reader's arrays to a batch.
func (r *reader) pack(b *batch) (err error) {
	for _, id := range r.ids {
		b.spread.add(id)
	}
	n := len(r.ids)
	b.base = b.spread.least
	narrow := b.spread.most-b.base < 1<<32
	size := n + len(r.counts)
	if narrow {
		size += n
	} else if b.wide, err = array[uint64](&r.arena, int64(n)); err != nil {
		return err
	}
	if b.block, err = array[uint32](&r.arena, int64(size)); err != nil {
		return err
	}
	at := b.block
	b.slots = unsafe.Slice((*slot)(unsafe.SliceData(at)), n)
	copy(b.slots, r.slots)
	b.counts = at[n:][:len(r.counts)]
	copy(b.counts, r.counts)
	if !narrow {
		copy(b.wide, r.ids)
		return nil
	}
	b.ids = at[n+len(r.counts):]
	for i, id := range r.ids {
		b.ids[i] = uint32(id - b.base)
	}
	return nil
}

// loader builds a graph.
type loader struct {
	*Graph
	file    *hprof.File
	options Options
	chunks  [][]hprof.Segment
	// total is the number of bytes read in a pass; passes is the number of
	// passes.
	total, passes int64
	done          atomic.Int64
	objects       atomic.Int64
	batches       []*batch
	// seen holds the leaves that are referenced at least once.
	seen  bitset
	parts nativeParts
	// impliedList holds the roots that the size model adds.
	impliedList []hprof.Root
	// order is the result of the depth-first search.
	order order
}

// pool runs work on each chunk, on all cores. newWorker returns the function
// for one goroutine. The first error, or the cancellation of ctx, stops the
// work.
func (l *loader) pool(ctx context.Context, newWorker func() func(i int, chunk []hprof.Segment) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(l.options.Workers, len(l.chunks)) {
		wg.Go(func() {
			work := newWorker()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(l.chunks) || ctx.Err() != nil {
					return
				}
				if err := work(i, l.chunks[i]); err != nil {
					cancel(err)
					return
				}
				l.advance(l.chunks[i])
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// advance reports the progress of a pass.
func (l *loader) advance(chunk []hprof.Segment) {
	for _, g := range chunk {
		l.done.Add(g.Length)
	}
	if l.options.Progress != nil {
		l.options.Progress(l.done.Load(), l.passes*l.total)
	}
}

const (
	largestChunk  = 8 << 20
	smallestChunk = 64 << 10
)

// cut splits a snapshot into chunks, several for each core.
func (l *loader) cut(s hprof.Snapshot) {
	for _, g := range s.Segments {
		l.total += g.Length
	}
	size := l.total / int64(8*l.options.Workers)
	l.chunks = s.Chunks(max(min(size, largestChunk), smallestChunk))
}

// first performs the first pass, which collects the objects.
func (l *loader) first(ctx context.Context) error {
	readings := make([]*reading, len(l.chunks))
	err := l.pool(ctx, func() func(int, []hprof.Segment) error {
		r := &reader{loader: l, scanner: l.file.Scanner(nil), lookup: newLookup(l.registry)}
		return func(i int, chunk []hprof.Segment) error {
			c := r.read(ctx, chunk)
			readings[i] = c
			if c.err != nil && !errors.As(c.err, new(*hprof.DamageError)) {
				return c.err
			}
			if err := r.hand(c); err != nil {
				return err
			}
			return r.look(ctx)
		}
	})
	if err != nil {
		return err
	}
	return l.settle(readings)
}

// settle processes the results of the chunks in the order of the file.
func (l *loader) settle(readings []*reading) error {
	roots := 0
	for _, c := range readings {
		roots += len(c.roots)
	}
	l.roots = slices.Grow(l.roots, roots)
	for i, c := range readings {
		if c.err != nil {
			if !l.options.Partial {
				return c.err
			}
			l.Damage = append(l.Damage, c.err)
		}
		if c.cut >= 0 {
			l.Truncated = c.cut
		}
		var s spread
		for _, b := range c.batches {
			s.merge(b.spread)
		}
		l.stretches = append(l.stretches, stretch{l.chunks[i], s.least, s.most})
		l.batches = append(l.batches, c.batches...)
		l.roots = append(l.roots, c.roots...)
		c.roots = nil
	}
	return nil
}

// number assigns a number, a class and a size to each object.
func (l *loader) number(ctx context.Context) (err error) {
	var s spread
	for _, b := range l.batches {
		s.merge(b.spread)
	}
	if s.count >= int64(none) {
		return fmt.Errorf("number the objects: there are %d, more than the %d that can be numbered", s.count, none-1)
	}
	if n := len(l.registry.list); n > mostClasses {
		return fmt.Errorf("number the objects: there are %d classes, more than the %d that can be numbered", n,
			mostClasses)
	}
	if l.ids, err = newIDs(&l.arena, l.options.Workers, s, l.batches); err != nil {
		return err
	}
	n := l.ids.len()
	l.Duplicates = s.count - n
	if err := l.registry.resolve(l.file, l.classLinks()); err != nil {
		return err
	}
	if err := l.tables(n); err != nil {
		return err
	}
	workers, seen := l.options.Workers, duplicates{twice: map[uint32]int64{}}
	if l.Duplicates > 0 {
		// If an object has several records, the last one is used, so the order
		// of the file matters.
		workers = 1
		if seen.seen, err = newBitset(&l.arena, n); err != nil {
			return err
		}
	}
	l.nameHeaps()
	parallel(workers, len(l.batches), func(i int) {
		b := l.batches[i]
		l.scatter(b, &seen)
		drop(&l.arena, &b.block)
		drop(&l.arena, &b.wide)
	})
	l.batches = nil
	drop(&l.arena, (*[]uint64)(&seen.seen))
	if l.Duplicates > 0 {
		l.twice = seen.twice
	}
	return l.findLast(ctx)
}

// classLinks returns the references that the size model implies, and adds the
// roots that it implies.
func (l *loader) classLinks() classLinks {
	rooted := l.rootClasses()
	links := classLinks{rooted: func(id hprof.ID) bool { return rooted[id] }}
	if l.Model != Leakgate {
		return links
	}
	links.find = l.ids.find
	if !slices.ContainsFunc(l.roots, l.holds) {
		// A dump that ends before its roots does not record which objects are
		// alive.
		return links
	}
	l.impliedList = l.impliedRoots(rooted)
	for _, r := range l.impliedList {
		rooted[r.Object] = true
	}
	return links
}

// holds reports whether a GC root keeps an object of the dump alive.
func (l *loader) holds(r hprof.Root) bool {
	return r.Kind != hprof.SubRootUnreachable && l.ids.find(r.Object) != none
}

// rootClasses returns the GC roots that may be classes.
func (l *loader) rootClasses() map[hprof.ID]bool {
	rooted := map[hprof.ID]bool{}
	for _, r := range l.roots {
		if _, ok := l.registry.slots[r.Object]; ok && r.Kind != hprof.SubRootUnreachable {
			rooted[r.Object] = true
		}
	}
	return rooted
}

func (l *loader) tables(n int64) (err error) {
	if l.slots.low, err = array[uint16](&l.arena, n); err != nil {
		return err
	}
	if len(l.registry.list) > 1<<16 {
		if l.slots.high, err = array[uint8](&l.arena, n); err != nil {
			return err
		}
	}
	if l.sizes.small, err = array[uint16](&l.arena, n); err != nil {
		return err
	}
	l.sizes.large = map[uint32]int64{}
	if slices.ContainsFunc(l.batches, func(b *batch) bool { return len(b.heaps) > 0 }) {
		l.heapOf, err = array[uint8](&l.arena, n)
	}
	return err
}

// duplicates holds the objects that a dump contains more than once. The last
// record of an object counts.
type duplicates struct {
	seen  bitset
	twice map[uint32]int64
}

func (d *duplicates) note(n uint32) {
	if d.seen == nil {
		return
	}
	if d.seen.has(n) {
		d.twice[n] = -1
	}
	d.seen.set(n)
}

// findLast records the offset of the last record of each object that has
// several.
func (l *loader) findLast(ctx context.Context) error {
	if len(l.twice) == 0 {
		return nil
	}
	l.passes++
	var mu sync.Mutex
	return l.pool(ctx, func() func(int, []hprof.Segment) error {
		s := l.file.Scanner(nil)
		return func(_ int, chunk []hprof.Segment) error {
			s.Reset(chunk)
			for s.Next() {
				if s.Kind.IsRoot() || s.Kind == hprof.SubHeapInfo {
					continue
				}
				n := l.ids.find(s.Object)
				mu.Lock()
				if last, ok := l.twice[n]; ok && s.Offset > last {
					l.twice[n] = s.Offset
				}
				mu.Unlock()
			}
			// Damage was already reported, or skipped, in the first pass.
			if errors.As(s.Err(), new(*hprof.DamageError)) {
				return nil
			}
			return s.Err()
		}
	})
}

// superseded reports whether a later record describes the same object.
func (g *Graph) superseded(n uint32, offset int64) bool {
	if g.twice == nil {
		return false
	}
	last, ok := g.twice[n]
	return ok && last != offset
}

// scatter stores the data of a batch by object number.
func (l *loader) scatter(b *batch, seen *duplicates) {
	arrays, heap, next, objectArrays := 0, uint8(0), 0, int64(0)
	for i, s := range b.slots {
		id := b.id(i)
		n := l.ids.find(id)
		seen.note(n)
		for next < len(b.heaps) && int(b.heaps[next].first) == i {
			heap = b.heaps[next].number
			next++
		}
		if l.heapOf != nil {
			l.heapOf[n] = heap
		}
		size := int64(l.registry.list[s&^arrayed].size)
		switch {
		case s == classSlot:
			size += l.staticBytes(id)
		case s < named:
			size += int64(b.counts[arrays]) * int64(hprof.Type(s-primitives).Size(l.IDSize))
			arrays++
		case s&arrayed != 0:
			size += int64(b.counts[arrays]) * int64(l.IDSize)
			arrays++
			objectArrays++
		}
		l.slots.set(n, s&^arrayed)
		l.sizes.set(n, size)
	}
	if l.Duplicates == 0 {
		atomic.AddInt64(&l.ObjectArrays, objectArrays)
	}
}

// staticBytes returns the size of the static fields of a class object.
func (l *loader) staticBytes(id hprof.ID) (n int64) {
	dump := l.registry.list[l.registry.slots[id]].dump
	for _, v := range dump.Statics {
		n += int64(v.Type.Size(l.IDSize))
	}
	return n
}

// nameHeaps assigns indexes to the heaps, in the order of the file.
func (l *loader) nameHeaps() {
	for _, b := range l.batches {
		for i := range b.heaps {
			b.heaps[i].number = l.heapNumber(b.heaps[i])
		}
	}
}

// heapNumber returns the index of a heap in Heaps. A heap that is missing from
// Heaps is added, with its name in the dump; if there are already 256 heaps,
// the result is 0.
func (l *loader) heapNumber(r run) uint8 {
	if r.heap == 0 {
		return 0
	}
	for i, h := range l.Heaps {
		if i > 0 && h.ID == r.heap {
			return uint8(i)
		}
	}
	if len(l.Heaps) == 1<<8 {
		return 0
	}
	name, ok := l.file.Strings.Get(r.name)
	if !ok {
		name = fmt.Sprintf("heap %d", r.heap)
	}
	l.Heaps = append(l.Heaps, Heap{ID: r.heap, Name: name})
	return uint8(len(l.Heaps) - 1)
}
