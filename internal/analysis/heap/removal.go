package heap

import (
	"context"
	"math/bits"
	"slices"
)

// removal finds the objects that become unreachable when some objects are
// removed. Only objects that the depth-first search found below the removed
// ones can become unreachable, because the search path to every other object
// avoids the removed ones. An object below a removed one stays reachable if any
// object that stays reachable references it.
type removal struct {
	*Graph
	// cut holds the numbers of the removed objects, in the order of the search.
	cut []uint32
	// below holds the subtrees of the depth-first search tree whose roots are
	// removed objects.
	below []subtree
	// gone holds the numbers of the objects that are not known to stay
	// reachable; fixed holds the numbers in cut, which are always gone.
	gone, fixed bitset
}

// subtree is the range of numbers from first up to, but not including, end.
type subtree struct{ first, end uint32 }

// maxSweeps is the maximum number of sweeps over the subtrees. After that many
// sweeps, references are followed one by one, which takes more memory. Most
// heaps need two or three sweeps.
var maxSweeps = 12

// newRemoval returns a removal of the objects with the given numbers, which it
// sorts. The caller must call Close.
func (g *Graph) newRemoval(cut []uint32) (r *removal, err error) {
	slices.Sort(cut)
	r = &removal{Graph: g, cut: slices.Compact(cut)}
	count := uint32(len(g.inbound.place)) - 1
	end := uint32(0)
	for _, d := range r.cut {
		if d < end {
			continue
		}
		// Numbers are in preorder: a subtree ends at the first number whose
		// parent is outside the subtree.
		end = d + 1
		for end <= count && g.inbound.parent(end) >= d {
			end++
		}
		r.below = append(r.below, subtree{d, end})
	}
	n := int64(len(g.inbound.place))
	if r.gone, err = newBitset(&g.arena, n); err != nil {
		return nil, err
	}
	if r.fixed, err = newBitset(&g.arena, n); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *removal) close() {
	drop(&r.arena, (*[]uint64)(&r.gone))
	drop(&r.arena, (*[]uint64)(&r.fixed))
}

// size returns how many numbers the subtrees contain.
func (r *removal) size() (n int64) {
	for _, s := range r.below {
		n += int64(s.end - s.first)
	}
	return n
}

// run finds the objects that become unreachable.
func (r *removal) run(ctx context.Context) error {
	if len(r.below) == 0 {
		return ctx.Err()
	}
	for _, s := range r.below {
		r.gone.fill(s.first, s.end)
	}
	for _, d := range r.cut {
		r.fixed.set(d)
	}
	for sweep := 0; ; sweep++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if sweep == maxSweeps {
			return r.follow(ctx)
		}
		if !r.sweep(sweep%2 == 1) {
			return nil
		}
	}
}

// sweep makes one pass, in ascending or descending order, over the objects that
// are not known to stay reachable. It reports whether it found any object that
// stays reachable.
func (r *removal) sweep(down bool) (changed bool) {
	visit := func(d uint32) {
		if !r.fixed.has(d) && r.stays(d) {
			r.gone[d>>6] &^= 1 << (d & 63)
			changed = true
		}
	}
	if down {
		for _, s := range slices.Backward(r.below) {
			r.gone.eachDown(s.first, s.end, visit)
		}
		return changed
	}
	for _, s := range r.below {
		r.gone.each(s.first, s.end, visit)
	}
	return changed
}

// stays reports whether the object with the given number is referenced by an
// object that stays reachable.
func (r *removal) stays(d uint32) bool {
	if !r.gone.has(r.inbound.parent(d)) {
		return true
	}
	for _, p := range r.inbound.of(d) {
		if !r.gone.has(p) {
			return true
		}
	}
	return false
}

// follow completes the search after the sweeps: it reverses the references
// between the remaining numbers, and follows them from the numbers that stay
// reachable.
func (r *removal) follow(ctx context.Context) error {
	out, err := r.outgoing()
	if err != nil {
		return err
	}
	defer out.drop(&r.arena)
	var pending []uint32
	leave := func(d uint32) {
		if r.gone.has(d) && !r.fixed.has(d) {
			r.gone[d>>6] &^= 1 << (d & 63)
			pending = append(pending, d)
		}
	}
	for _, s := range r.below {
		r.gone.each(s.first, s.end, func(d uint32) {
			if !r.fixed.has(d) && r.stays(d) {
				leave(d)
			}
		})
	}
	for steps := 1; len(pending) > 0; steps++ {
		if steps%checkInterval == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		d := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, to := range out.of(d) {
			leave(to)
		}
	}
	return nil
}

// forward holds references by source; first is the lowest number of a source.
type forward struct {
	first          uint32
	starts, target []uint32
}

func (f *forward) of(d uint32) []uint32 {
	i := d - f.first
	return f.target[f.starts[i]:f.starts[i+1]]
}

func (f *forward) drop(a *arena) {
	drop(a, &f.starts)
	drop(a, &f.target)
}

// outgoing returns, by source, the references between objects that are not
// known to stay reachable; it reverses the inbound references.
func (r *removal) outgoing() (f *forward, err error) {
	f = &forward{first: r.below[0].first}
	last := r.below[len(r.below)-1].end - 1
	if f.starts, err = array[uint32](&r.arena, int64(last-f.first)+2); err != nil {
		return nil, err
	}
	r.pairs(func(from, _ uint32) { f.starts[from-f.first]++ })
	sum := uint32(0)
	for i, n := range f.starts {
		sum += n
		f.starts[i] = sum
	}
	if f.target, err = array[uint32](&r.arena, int64(sum)); err != nil {
		drop(&r.arena, &f.starts)
		return nil, err
	}
	r.pairs(func(from, to uint32) {
		i := from - f.first
		f.starts[i]--
		f.target[f.starts[i]] = to
	})
	return f, nil
}

// pairs calls f with each reference between objects that are not known to stay
// reachable.
func (r *removal) pairs(f func(from, to uint32)) {
	for _, s := range r.below {
		r.gone.each(s.first, s.end, func(d uint32) {
			if p := r.inbound.parent(d); r.gone.has(p) {
				f(p, d)
			}
			for _, p := range r.inbound.of(d) {
				if r.gone.has(p) {
					f(p, d)
				}
			}
		})
	}
}

// eachGone calls f with the vertex of each object that becomes unreachable.
func (r *removal) eachGone(f func(v uint32)) {
	for _, s := range r.below {
		r.gone.each(s.first, s.end, func(d uint32) { f(r.inbound.place[d]) })
	}
}

// vertices returns the set of the unreachable objects, by vertex of the
// dominator tree.
func (r *removal) vertices() (bitset, error) {
	set, err := newBitset(&r.arena, int64(len(r.inbound.place)))
	if err != nil {
		return nil, err
	}
	r.eachGone(set.set)
	return set, nil
}

// fill adds the members from first up to, but not including, end.
func (b bitset) fill(first, end uint32) {
	for i := first; i < end; {
		if i&63 == 0 && end-i >= 64 {
			b[i>>6] = ^uint64(0)
			i += 64
			continue
		}
		b.set(i)
		i++
	}
}

// each calls f with the members from first up to, but not including, end. It
// skips members that f has removed in the meantime.
func (b bitset) each(first, end uint32, f func(uint32)) {
	for i := first; i < end; {
		w := b[i>>6] >> (i & 63)
		if w == 0 {
			i = i&^63 + 64
			continue
		}
		i += uint32(bits.TrailingZeros64(w))
		if i >= end {
			return
		}
		f(i)
		i++
	}
}

// eachDown is like each, starting from the last member.
func (b bitset) eachDown(first, end uint32, f func(uint32)) {
	for i := end; i > first; {
		last := i - 1
		w := b[last>>6] << (63 - last&63)
		if w == 0 {
			i = last &^ 63
			continue
		}
		last -= uint32(bits.LeadingZeros64(w))
		if last < first {
			return
		}
		f(last)
		i = last
	}
}
