package heap

import (
	"context"
	"slices"
	"sort"
)

// weakLink is the reference from a Reference to its referent, if it holds the
// referent more weakly than a field does.
type weakLink struct {
	from, to uint32
	strength Reachability
}

// weaker describes the objects that are reachable only through References.
type weaker struct {
	// links is sorted by from.
	links []weakLink
	// sets maps each Reachability to the set of objects that have it, which is
	// nil if there are none.
	sets [Unreachable]bitset
}

// of returns the weak links of one Reference.
func (w *weaker) of(object uint32) []weakLink {
	i := sort.Search(len(w.links), func(i int) bool { return w.links[i].from >= object })
	j := i
	for j < len(w.links) && w.links[j].from == object {
		j++
	}
	return w.links[i:j]
}

func (w *weaker) set(a *arena, n int64, r Reachability, object uint32) (err error) {
	if w.sets[r] == nil {
		if w.sets[r], err = newBitset(a, n); err != nil {
			return err
		}
	}
	w.sets[r].set(object)
	return nil
}

// weaken finds the objects that are reachable only through weaker references,
// in order of decreasing strength, like AOSP's ahat
// (AhatInstance.computeReachability).
func (l *loader) weaken(ctx context.Context) error {
	for _, r := range []Reachability{Finalizer, Weak, Phantom} {
		if err := l.reachBy(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// reachBy marks the objects whose best reachability is r, starting from the
// referents of all References reached so far.
func (l *loader) reachBy(ctx context.Context, r Reachability) error {
	var pending []uint32
	mark := func(object uint32) error {
		if l.reached(object) {
			return nil
		}
		pending = append(pending, object)
		return l.weaker.set(&l.arena, l.ids.len(), r, object)
	}
	for _, w := range l.weaker.links {
		if w.strength == r && l.reached(w.from) {
			if err := mark(w.to); err != nil {
				return err
			}
		}
	}
	for steps := 0; len(pending) > 0; steps++ {
		if steps%checkInterval == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		object := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if err := l.each(object, mark); err != nil {
			return err
		}
		for _, w := range l.weaker.of(object) {
			if w.strength <= r {
				if err := mark(w.to); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// reached reports whether an object has already been found to be reachable.
func (l *loader) reached(object uint32) bool {
	if l.tree.vertices[object] != 0 {
		return true
	}
	for _, s := range l.weaker.sets[Finalizer:] {
		if s != nil && s.has(object) {
			return true
		}
	}
	return false
}

// each calls f with each object that an object references.
func (l *loader) each(object uint32, f func(uint32) error) error {
	if !l.links.inner.bits.has(object) {
		return nil
	}
	at, code := l.links.start(object), uint64(0)
	for {
		if code, at = uvarint(l.links.bytes, at); code <= classCode {
			if code == classCode {
				return f(l.links.classes[l.slots.at(object)])
			}
			return nil
		}
		to, _ := target(object, code)
		if err := f(to); err != nil {
			return err
		}
	}
}

// strong marks the objects that the GC roots reach without following soft
// references. It runs concurrently with the search, on another core.
type strong struct {
	*loader
	// marks holds the reached objects; soft holds the objects with soft
	// references.
	marks, soft bitset
	pending     []uint32
}

// newStrong prepares a walk. It returns nil if there are no soft references,
// because then everything reached is strongly reachable.
func (l *loader) newStrong() (s *strong, err error) {
	if !slices.ContainsFunc(l.weaker.links, func(w weakLink) bool { return w.strength == Soft }) {
		return nil, nil
	}
	s = &strong{loader: l}
	if s.marks, err = newBitset(&l.arena, l.ids.len()); err != nil {
		return nil, err
	}
	if s.soft, err = newBitset(&l.arena, l.ids.len()); err != nil {
		return nil, err
	}
	for _, w := range l.weaker.links {
		if w.strength == Soft {
			s.soft.set(w.from)
		}
	}
	s.pending, err = array[uint32](&l.arena, l.links.inner.len()+1)
	return s, err
}

// walk marks the objects that the GC roots reach without following soft
// references.
func (s *strong) walk(ctx context.Context) error {
	bytes, inner, n, steps := s.links.bytes, s.links.inner.bits, 0, 0
	push := func(object uint32) {
		s.marks.set(object)
		if inner.has(object) {
			s.pending[n] = object
			n++
		}
	}
	for _, r := range s.roots {
		if root := s.ids.find(r.Object); !s.marks.has(root) {
			push(root)
		}
		for n > 0 {
			if steps++; steps%checkInterval == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			n--
			object := s.pending[n]
			var skipped []weakLink
			if s.soft.has(object) {
				skipped = slices.DeleteFunc(slices.Clone(s.weaker.of(object)),
					func(w weakLink) bool { return w.strength != Soft })
			}
			for at := s.links.start(object); ; {
				var code uint64
				if code, at = uvarint(bytes, at); code <= classCode {
					if code == classCode {
						if to := s.links.classes[s.slots.at(object)]; !s.marks.has(to) {
							push(to)
						}
					}
					break
				}
				to, _ := target(object, code)
				if i := slices.IndexFunc(skipped, func(w weakLink) bool { return w.to == to }); i >= 0 {
					skipped = slices.Delete(skipped, i, i+1)
				} else if !s.marks.has(to) {
					push(to)
				}
			}
		}
	}
	return nil
}

// rest marks as softly reachable all objects that the search reached but the
// walk did not. It then releases the memory of the walk.
func (s *strong) rest() error {
	for object, v := range s.tree.vertices {
		if v != 0 && !s.marks.has(uint32(object)) {
			if err := s.weaker.set(&s.arena, s.ids.len(), Soft, uint32(object)); err != nil {
				return err
			}
		}
	}
	drop(&s.arena, (*[]uint64)(&s.marks))
	drop(&s.arena, (*[]uint64)(&s.soft))
	drop(&s.arena, &s.pending)
	return nil
}
