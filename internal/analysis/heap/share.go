package heap

import (
	"context"
	"math/bits"
	"slices"
)

// Share is the size of the objects that a set holds jointly with other sets:
// the objects stay in memory until all these sets are removed.
type Share struct {
	Size Size
	// With is the number of other sets that also hold some of these objects.
	With int
}

// mostShares is the maximum number of sets that Shares distinguishes.
const mostShares = 64

// Shares returns what each of several sets shares with other sets: the objects
// that become unreachable when all sets are removed, but stay reachable when
// only one of them is. It returns nil if there are fewer than 2 or more than 64
// sets, or if the search would take too long. It needs Options.Inbound.
func (g *Graph) Shares(ctx context.Context, sets [][]Object, p *VisitBudget) ([]Share, error) {
	if len(sets) < 2 || len(sets) > mostShares {
		return nil, nil
	}
	if g.inbound.place == nil {
		return nil, errNoInbound
	}
	numbers, err := g.numbersOf(sets)
	if err != nil {
		return nil, err
	}
	all, err := g.newRemoval(slices.Concat(numbers...))
	if err != nil {
		return nil, err
	}
	defer all.close()
	if n := all.size() * int64(len(sets)+1); n > p.Left || n == 0 {
		return nil, nil
	} else {
		p.Left -= n
	}
	if err := all.run(ctx); err != nil {
		return nil, err
	}
	s := &sharing{removal: all, lead: map[uint32]uint64{}, size: map[uint32]Size{}}
	if err := s.find(ctx, numbers); err != nil {
		return nil, err
	}
	return s.shares(len(sets)), nil
}

// sharing describes the objects that several sets hold jointly.
type sharing struct {
	*removal
	// For each object that no single set holds alone, lead records as bits
	// which sets lead to it.
	lead map[uint32]uint64
	size map[uint32]Size
}

func (s *sharing) find(ctx context.Context, numbers [][]uint32) error {
	// alone marks the objects that only one of the sets holds.
	alone, err := newBitset(&s.arena, int64(len(s.inbound.place)))
	if err != nil {
		return err
	}
	defer drop(&s.arena, (*[]uint64)(&alone))
	own := make([][]uint32, len(numbers))
	for i, list := range numbers {
		if own[i], err = s.removed(ctx, list); err != nil {
			return err
		}
		for _, d := range own[i] {
			alone.set(d)
		}
	}
	out, err := s.outgoing()
	if err != nil {
		return err
	}
	defer out.drop(&s.arena)
	for i, list := range own {
		s.reach(out, list, alone, i)
	}
	return ctx.Err()
}

// removed returns the numbers of the objects that become unreachable when only
// the set with the given numbers is removed.
func (s *sharing) removed(ctx context.Context, numbers []uint32) (list []uint32, err error) {
	r, err := s.newRemoval(slices.Clone(numbers))
	if err != nil {
		return nil, err
	}
	defer r.close()
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	for _, b := range r.below {
		r.gone.each(b.first, b.end, func(d uint32) { list = append(list, d) })
	}
	return list, nil
}

// reach walks from the objects that a set holds to the objects that the set
// shares.
func (s *sharing) reach(out *forward, pending []uint32, alone bitset, set int) {
	bit := uint64(1) << set
	for len(pending) > 0 {
		d := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, to := range out.of(d) {
			if alone.has(to) || !s.gone.has(to) || s.lead[to]&bit != 0 {
				continue
			}
			s.lead[to] |= bit
			pending = append(pending, to)
		}
	}
}

// shares adds up the sizes. A shared object below another shared object counts
// separately.
func (s *sharing) shares(sets int) []Share {
	shares, with := make([]Share, sets), make([]uint64, sets)
	vertices := map[uint32]uint32{}
	for d := range s.lead {
		v := s.inbound.place[d]
		vertices[v] = d
		s.size[d] = s.tree.size(v)
	}
	// A child's bytes count only for the child, whatever holds it.
	for _, b := range s.below {
		s.gone.each(b.first, b.end, func(d uint32) {
			v := s.inbound.place[d]
			if above, ok := vertices[s.tree.parents[v]]; ok {
				size, own := s.size[above], s.tree.size(v)
				s.size[above] = Size{size.Java - own.Java, size.Native - own.Native}
			}
		})
	}
	for d, sets := range s.lead {
		for ; sets != 0; sets &= sets - 1 {
			i := bits.TrailingZeros64(sets)
			shares[i].Size.add(s.size[d])
			with[i] |= s.lead[d]
		}
	}
	for i := range shares {
		shares[i].With = max(bits.OnesCount64(with[i])-1, 0)
	}
	return shares
}
