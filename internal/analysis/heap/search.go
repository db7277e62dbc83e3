package heap

import (
	"context"
	"errors"
)

// order is the result of the depth-first search. Vertices are the objects that
// it reaches, numbered in preorder from 1; 0 is above all GC roots.
type order struct {
	count uint32
	// parents holds, for each vertex, the vertex from which the search reached
	// it first.
	parents []uint32
	// joins are the references that the search did not follow because their
	// targets had already been found. Most objects have no joins, so there are
	// far fewer joins than inbound references.
	joins joins
}

// search numbers the objects that the GC roots reach through strong and soft
// references. It sets Graph.tree.vertices to the vertex of each object. A leaf
// that only one object references gets no vertex of its own; it shares the
// vertex of that object.
func (l *loader) search(ctx context.Context) (err error) {
	n := l.links.inner.len() + l.links.shared.count() + 1
	if l.tree.vertices, err = array[uint32](&l.arena, l.ids.len()); err != nil {
		return err
	}
	o := &l.order
	if o.parents, err = array[uint32](&l.arena, n); err != nil {
		return err
	}
	// An object is pending at most once per reference, a class at most once per
	// object.
	most := l.ReferenceCount + int64(len(l.roots)) + 1
	if o.joins.log, err = array[byte](&l.arena, 2*longest*most); err != nil {
		return err
	}
	pending, err := array[edge](&l.arena, most)
	if err != nil {
		return err
	}
	if err := l.visitBoth(ctx, pending); err != nil {
		return err
	}
	drop(&l.arena, &pending)
	if err := l.weaken(ctx); err != nil {
		return err
	}
	drop(&l.arena, &l.links.bytes)
	drop(&l.arena, &l.links.starts)
	drop(&l.arena, &l.links.high)
	return o.joins.sort(&l.arena, l.options.Workers, o.count)
}

// visitBoth runs the search concurrently with the walk that separates strongly
// from softly reachable objects.
func (l *loader) visitBoth(ctx context.Context, pending []edge) error {
	s, err := l.newStrong()
	if err != nil || s == nil {
		return errors.Join(err, l.visit(ctx, pending))
	}
	walked := make(chan error, 1)
	go func() { walked <- s.walk(ctx) }()
	err = errors.Join(l.visit(ctx, pending), <-walked)
	if err != nil {
		return err
	}
	return s.rest()
}

// edge is a reference that the search has not followed yet: from a vertex to an
// object.
type edge struct {
	object, from uint32
}

// checkInterval is the number of steps of a loop between two checks of its
// context.
const checkInterval = 1 << 20

// visit performs the search. All references of a vertex are pushed onto a stack
// when it is found, and the last one is followed first, so the order is depth
// first.
func (l *loader) visit(ctx context.Context, pending []edge) error {
	vertices, parents, joins := l.tree.vertices, l.order.parents, &l.order.joins
	bytes, inner, shared := l.links.bytes, l.links.inner.bits, l.links.shared
	count := uint32(0)
	for _, r := range l.roots {
		pending[0] = edge{l.ids.find(r.Object), 0}
		for n := 1; n > 0; {
			n--
			e := pending[n]
			if v := vertices[e.object]; v != 0 {
				joins.add(e.from, v)
				continue
			}
			count++
			if count%checkInterval == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			vertices[e.object] = count
			parents[count] = e.from
			if !inner.has(e.object) {
				continue
			}
			for at := l.links.start(e.object); ; {
				var code uint64
				if code, at = uvarint(bytes, at); code <= classCode {
					if code == classCode {
						n = l.visitClass(e.object, count, pending, n)
					}
					break
				}
				to, leaf := target(e.object, code)
				if leaf && !shared.has(to) {
					vertices[to] = count
				} else if v := vertices[to]; v != 0 {
					joins.add(count, v)
				} else {
					pending[n] = edge{to, count}
					n++
				}
			}
		}
	}
	l.order.count = count
	return nil
}

// visitClass follows the reference of an object to its class.
func (l *loader) visitClass(object, vertex uint32, pending []edge, n int) int {
	to := l.links.classes[l.slots.at(object)]
	if v := l.tree.vertices[to]; v != 0 {
		l.order.joins.add(vertex, v)
		return n
	}
	pending[n] = edge{to, vertex}
	return n + 1
}

// joins holds references between vertices: first as a log of differences, in
// the order of the search; after sort, as the sources of each target, ordered
// by target.
type joins struct {
	log         []byte
	used, count int64
	last        uint32
	// starts holds the positions at which the sources of each target begin.
	starts  []uint32
	sources []uint32
}

func (j *joins) add(from, to uint32) {
	at := putUvarint(j.log, j.used, zigzag(int64(from)-int64(j.last)))
	j.used = putUvarint(j.log, at, zigzag(int64(from)-int64(to)))
	j.last = from
	j.count++
}

// each calls f with each reference in the log.
func (j *joins) each(f func(from, to uint32)) {
	from, at := int64(0), uint64(0)
	for at < uint64(j.used) {
		var code uint64
		code, at = uvarint(j.log, at)
		from += unzigzag(code)
		code, at = uvarint(j.log, at)
		f(uint32(from), uint32(from-unzigzag(code)))
	}
}

// end returns the position after the last source of a vertex.
func (j *joins) end(v uint32) uint32 {
	if int(v)+1 < len(j.starts) {
		return j.starts[v+1]
	}
	return uint32(len(j.sources))
}

// sort converts the log into the lists of sources of count vertices.
func (j *joins) sort(a *arena, workers int, count uint32) (err error) {
	if j.count >= 1<<32 {
		return errors.New("find dominators: more than 2^32 objects are referenced more than once")
	}
	if j.starts, err = array[uint32](a, int64(count)+1); err != nil {
		return err
	}
	if j.sources, err = array[uint32](a, j.count); err != nil {
		return err
	}
	// Each goroutine reads the whole log and handles its own share of the
	// targets.
	part := count/uint32(workers) + 1
	parallel(workers, workers, func(i int) {
		least, most := uint32(i)*part, min(uint32(i+1)*part, count+1)
		j.each(func(_, to uint32) {
			if to >= least && to < most {
				j.starts[to]++
			}
		})
	})
	sum := uint32(0)
	for v, n := range j.starts {
		sum += n
		j.starts[v] = sum
	}
	parallel(workers, workers, func(i int) {
		least, most := uint32(i)*part, min(uint32(i+1)*part, count+1)
		j.each(func(from, to uint32) {
			if to >= least && to < most {
				j.starts[to]--
				j.sources[j.starts[to]] = from
			}
		})
	})
	drop(a, &j.log)
	return nil
}
