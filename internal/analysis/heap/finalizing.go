package heap

import "math/bits"

// Waiting are objects that nothing but a finalizer leads to: they are garbage for the app,
// and stay until the finalizer has run.
type Waiting struct {
	// Objects have a finalizer, Count of them are of Class, that of which there are most.
	Objects int64
	Class   string
	Count   int64
	// Bytes is what they and all that only they hold take.
	Bytes int64
}

// WaitingForFinalizer counts what is reachable by finalizers alone.
func (g *Graph) WaitingForFinalizer() (w Waiting) {
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
