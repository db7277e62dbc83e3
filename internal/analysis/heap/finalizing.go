package heap

import "math/bits"

// FinalizerReachable describes the objects that are reachable only through a
// finalizer: the app can no longer use them, but they stay in memory until the
// finalizer has run.
type FinalizerReachable struct {
	// Objects is the number of objects with a finalizer; Count is the number of
	// those that belong to Class, the most frequent class among them.
	Objects int64
	Class   string
	Count   int64
	// Bytes is the size of all objects with a finalizer, and of everything that
	// is reachable only through them.
	Bytes int64
}

// WaitingForFinalizer counts the objects that are reachable only through
// finalizers.
func (g *Graph) WaitingForFinalizer() (w FinalizerReachable) {
	set := g.weaker.sets[Finalizer]
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			o := Object(i<<6 + bits.TrailingZeros64(word))
			w.Bytes += g.Shallow(o).Total()
		}
	}
	counts := map[string]int64{}
	for _, l := range g.weaker.links {
		if l.strength == Finalizer && set != nil && set.has(l.to) {
			counts[g.Class(Object(l.to))]++
		}
	}
	for class, n := range counts {
		w.Objects += n
		if n > w.Count || n == w.Count && class < w.Class {
			w.Class, w.Count = class, n
		}
	}
	return w
}
