package trace

import (
	"context"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// credits is the memory attributed to each leaking object that was found. It is
// computed by the second phase of Shark 3. Objects that the roots reach without
// going through a leaking object are not attributed. Every other object is
// credited once, to the first leaking object that leads to it.
type credits struct {
	of map[heap.Object]heap.Size
	// A leaking object that is reachable only through other leaking objects is
	// listed in also, under the first of those objects.
	also map[heap.Object][]heap.Object
	seen bits
}

func (c *credits) met(o heap.Object) bool { return c.seen.has(o) }

// credit computes the credits of the found objects: the second phase of Shark
// 3.
func (s *Search) credit(ctx context.Context) (*credits, error) {
	c := &credits{
		of: make(map[heap.Object]heap.Size, len(s.found)), also: map[heap.Object][]heap.Object{},
		seen: make(bits, (s.graph.Objects+63)/64),
	}
	if !s.options.Through {
		return c, s.creditAll(ctx, c)
	}
	for _, o := range s.found {
		c.of[o] = s.graph.Retained(o)
	}
	return c, nil
}

// creditAll computes the credits of the found objects, one after the other.
func (s *Search) creditAll(ctx context.Context, c *credits) error {
	done := make(map[heap.Object]bool, len(s.found))
	own := make(map[heap.Object]bool, len(s.found))
	for _, o := range s.found {
		own[o] = true
	}
	var pending []heap.Object
	steps := 0
	for _, seed := range s.found {
		done[seed] = true
		var size heap.Size
		visit := func(e Edge) {
			switch {
			case c.met(e.To), !s.mayHold(e.To), own[e.To] && !done[e.To]:
				return
			case s.target.has(e.To):
				c.also[seed] = append(c.also[seed], e.To)
			}
			c.seen.add(e.To)
			pending = append(pending, e.To)
		}
		c.seen.add(seed)
		for pending = append(pending[:0], seed); len(pending) > 0; {
			if steps++; steps%checkInterval == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			o := pending[len(pending)-1]
			pending = pending[:len(pending)-1]
			s.weigh(seed, o, c, &size)
			s.reader.Read(o, visit)
		}
		c.of[seed] = size
	}
	return nil
}

// weigh adds an object's size. For a string or a boxed array, it also adds the
// size of the contents: no search follows the references to them, and they are
// freed with the object.
func (s *Search) weigh(seed, o heap.Object, c *credits, size *heap.Size) {
	add := func(o heap.Object) {
		own := s.graph.Shallow(o)
		size.Java += own.Java
		size.Native += own.Native
	}
	add(o)
	if !s.reader.leaf(o) {
		return
	}
	for f := s.reader.outbound.Of(o); f.Next(); {
		if c.met(f.To) || !s.mayHold(f.To) {
			continue
		}
		if dominator, ok := s.graph.Dominator(f.To); ok && c.met(dominator) {
			c.seen.add(f.To)
			add(f.To)
			if s.target.has(f.To) {
				c.also[seed] = append(c.also[seed], f.To)
			}
		}
	}
}

// mayHold reports whether an object may be a target, or may be reachable only
// through targets. It returns false for objects that the search reached by
// another path, and for objects that the search does not cover.
func (s *Search) mayHold(o heap.Object) bool {
	n, ok := s.reader.outbound.Number(o)
	return ok && (s.parents[n] == 0 || s.target.has(o))
}
