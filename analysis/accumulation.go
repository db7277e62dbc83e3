package analysis

import (
	"context"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// What is worth to be called an accumulation. Every app has tables of some thousand
// strings, resources and classes, of some hundred kilobytes: below a megabyte, and
// below a twentieth of all, they would hide what matters. Ten are what Eclipse MAT
// takes for many.
const (
	leastAccumulated      = 1 << 20
	leastAccumulatedShare = 20
	fewestAccumulated     = 10
)

// ART's heaps of what was there before the app was: what piles up there is the
// phone's (art/runtime/hprof/hprof.cc, HprofHeapId).
const (
	appHeap    = 'A'
	imageHeap  = 'I'
	zygoteHeap = 'Z'
)

// caches are classes that let go of what is too much for them. What piles up in them
// is as large as somebody said it may be.
var caches = []string{
	"android.util.LruCache", "android.support.v4.util.LruCache", "androidx.collection.LruCache", "com.bumptech.glide.util.LruCache",
	"com.google.common.cache.LocalCache", "com.github.benmanes.caffeine.cache.BoundedLocalCache",
}

// rootsAccumulated are the kinds of GC roots that an app can have too many of, the one
// that holds longest first: what a thread is says more than that its frame has it as
// well. The virtual machine's own are none of them, nor are those that Shark leaves out
// (MatchingGcRootProvider.kt): interned strings, unknown, finalizing and the debugger's.
var rootsAccumulated = []hprof.SubTag{
	hprof.SubRootThreadObject, hprof.SubRootJNIGlobal, hprof.SubRootNativeStack, hprof.SubRootMonitorUsed,
	hprof.SubRootJNIMonitor, hprof.SubRootThreadBlock, hprof.SubRootJNILocal, hprof.SubRootJavaFrame,
}

// cacheDepth is how far above its entries a cache can be: cache, map, table.
const cacheDepth = 3

// accumulation is where memory piles up, with the way to it.
type accumulation struct {
	heap.Accumulation
	// Share is the part of the reachable bytes that Size is, from 0 to 1; image and
	// zygote heap do not count in any size.
	Share float64
	// Dominators are those of Object, from the top down; there are none of what GC roots
	// hold. LeftOut is how many are left out behind the first half of them.
	Dominators []heap.Object
	LeftOut    int
	// Cache is the class of the cache that it is in, "" for none.
	Cache string
	// Sharers hold it together; Object is the first one's first object.
	Sharers []sharer
}

// places are the objects that must go for what accumulates to go.
func (a *accumulation) places() []heap.Object {
	if len(a.Sharers) == 0 {
		return []heap.Object{a.Object}
	}
	return placesOf(a.Sharers)
}

func placesOf(sharers []sharer) (list []heap.Object) {
	for _, s := range sharers {
		list = append(list, s.objects...)
	}
	return list
}

// shownDominators bounds accumulation.Dominators: those of an object in a list of a
// million nodes can be a million.
const shownDominators = 32

// accumulations tells where memory piles up in many objects of one class, whether or not
// anything says that they should be gone: up to limit places, the one that retains most first.
// Bytes alone count, also of threads: many that retain little show by their number, in
// android.Exhaustion.
func (d *dump) accumulations(ctx context.Context, limit int) ([]accumulation, error) {
	g, reachable := d.graph, accumulating(d.graph)
	o := heap.AccumulationOptions{
		Least:   max(leastAccumulated, reachable/leastAccumulatedShare),
		Fewest:  fewestAccumulated,
		Leave:   given,
		Through: android.IsPlumbing,
		Roots:   rootsAccumulated,
	}
	list, err := g.Accumulations(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("find accumulations: %w", err)
	}
	found := make([]accumulation, 0, len(list))
	for _, a := range list {
		f := accumulation{Accumulation: a, Share: float64(a.Size.Total()) / float64(reachable)}
		if a.Root == 0 {
			f.climb(g)
		}
		found = append(found, f)
	}
	if g.KeepsInbound() {
		if found, err = d.sharedAccumulations(ctx, found, o, reachable); err != nil {
			return nil, err
		}
	}
	return found[:min(limit, len(found))], nil
}

// given tells the heaps that the app did not fill.
func given(h heap.Heap) bool { return h.ID == imageHeap || h.ID == zygoteHeap }

// accumulating is the reachable bytes that count for accumulations.
func accumulating(g *heap.Graph) int64 {
	bytes := g.ReachableBytes().Total()
	for h := range g.Heaps {
		if given(g.Heaps[h]) {
			g.Tops(func(o heap.Object) { bytes -= g.RetainedIn(o, h) })
		}
	}
	return bytes
}

// climb finds the dominators, and a cache among the nearest.
func (a *accumulation) climb(g *heap.Graph) {
	const half = shownDominators / 2
	// near are the nearest, far a ring of those further up.
	var near []heap.Object
	var far [half]heap.Object
	n := 0
	for o, ok := a.Object, true; ok; n++ {
		if n <= cacheDepth && a.Cache == "" {
			a.Cache = cacheOf(g, o)
		}
		switch {
		case n == 0:
		case n <= half:
			near = append(near, o)
		default:
			far[n%half] = o
		}
		o, ok = g.Dominator(o)
	}
	above := min(max(n-1-half, 0), half)
	for i := range above {
		a.Dominators = append(a.Dominators, far[(n-1-i)%half])
	}
	slices.Reverse(near)
	a.Dominators = append(a.Dominators, near...)
	a.LeftOut = max(n-1-len(a.Dominators), 0)
}

func cacheOf(g *heap.Graph, o heap.Object) string {
	if slices.ContainsFunc(caches, func(c string) bool { return g.InstanceOf(o, c) }) {
		return g.Class(o)
	}
	return ""
}
