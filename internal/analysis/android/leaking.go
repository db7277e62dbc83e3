package android

import (
	"context"
	"math/bits"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// checkInterval is the number of objects that are judged between two checks of
// the context.
const checkInterval = 1 << 16

// Leaking returns the objects that have certainly leaked, whatever holds them:
// because of their own state, or because they are in Watched (Shark,
// FilteringLeakingObjectFinder with appLeakingObjectFilters). They are sorted
// by their numbers and include unreachable objects. Leaking fails only if ctx
// is done.
func (i *Inspector) Leaking(ctx context.Context) ([]heap.Object, error) {
	list := i.Watched()
	if !i.android {
		return list, ctx.Err()
	}
	for o := range heap.Object(i.graph.Objects) {
		if o%checkInterval == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for m := i.facts(o).leaking; m != 0; m &= m - 1 {
			if i.rules[bits.TrailingZeros64(m)].leaks(i, o) {
				list = append(list, o)
				break
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list), ctx.Err()
}

// Watches reports whether LeakCanary watched any object.
func (i *Inspector) Watches() bool { return len(i.watches) > 0 }

// Watched returns the objects that LeakCanary expected to be collected (Shark,
// KeyedWeakReferenceFinder), sorted by their numbers.
func (i *Inspector) Watched() []heap.Object {
	var list []heap.Object
	for o, watches := range i.watches {
		if slices.ContainsFunc(watches, func(w watch) bool { return w.retained }) {
			list = append(list, o)
		}
	}
	slices.Sort(list)
	return list
}
