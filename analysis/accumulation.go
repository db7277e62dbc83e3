package analysis

import (
	"context"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Thresholds for an accumulation. Every app has tables of a few thousand
// strings, resources and classes, which take a few hundred kilobytes. If
// accumulations below a megabyte, or below a twentieth of the reachable bytes,
// were reported, they would hide what matters. Eclipse MAT uses the same
// minimum of ten objects.
const (
	leastAccumulated      = 1 << 20
	leastAccumulatedShare = 20
	fewestAccumulated     = 10
)

// ART's heaps. The image and zygote heaps were filled before the app started,
// so what accumulates there belongs to the system (art/runtime/hprof/hprof.cc,
// HprofHeapId).
const (
	appHeap    = 'A'
	imageHeap  = 'I'
	zygoteHeap = 'Z'
)

// caches are classes that evict entries beyond a limit: a developer chose how
// much can accumulate in them.
var caches = []string{
	"android.util.LruCache", "android.support.v4.util.LruCache", "androidx.collection.LruCache",
	"com.bumptech.glide.util.LruCache",
	"com.google.common.cache.LocalCache", "com.github.benmanes.caffeine.cache.BoundedLocalCache",
}

// rootsAccumulated are the kinds of GC roots that an app can have too many of,
// longest-lived first. If an object is a root of several kinds, the first kind
// in this list is reported: a thread that a frame also holds is reported as a
// thread. Roots of the virtual machine are excluded. The roots that Shark skips
// are excluded too (MatchingGcRootProvider.kt): interned strings, unknown
// roots, finalizing objects and roots of the debugger.
var rootsAccumulated = []hprof.SubTag{
	hprof.SubRootThreadObject, hprof.SubRootJNIGlobal, hprof.SubRootNativeStack, hprof.SubRootMonitorUsed,
	hprof.SubRootJNIMonitor, hprof.SubRootThreadBlock, hprof.SubRootJNILocal, hprof.SubRootJavaFrame,
}

// cacheDepth is the maximum number of dominators from a cache down to its
// entries: cache, map, table.
const cacheDepth = 3

// accumulation is a heap.Accumulation together with its dominators, cache and
// sharers, which reports show.
type accumulation struct {
	heap.Accumulation
	// Share is Size divided by the reachable bytes, from 0 to 1. Neither number
	// includes the image and zygote heaps.
	Share float64
	// Dominators lists the dominators of Object, from the top down; it is nil
	// if GC roots hold the objects. LeftOut is the number of dominators omitted
	// from the middle of the list.
	Dominators []heap.Object
	LeftOut    int
	// Cache is the class of the cache that contains the accumulation, or "" if
	// no cache does.
	Cache string
	// Sharers lists the static fields or GC roots that together hold the
	// accumulation; it is nil if a single object holds the accumulation. If
	// there are sharers, Object is the first object of the first sharer.
	Sharers []sharer
}

// places returns the objects that must be released to free the accumulation.
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

// shownDominators is the maximum length of accumulation.Dominators: an object
// in a linked list of a million nodes can have a million dominators.
const shownDominators = 32

// accumulations returns the places where many objects of one class accumulate,
// whether or not anything indicates that the objects should be gone. The places
// that retain the most bytes come first; limit is the maximum number of places.
// Only bytes count, even for threads: android.Exhaustion reports many threads
// that retain little.
func (d *dump) accumulations(ctx context.Context, limit int) ([]accumulation, error) {
	g, reachable := d.graph, appReachable(d.graph)
	o := heap.AccumulationOptions{
		Least:   max(leastAccumulated, reachable/leastAccumulatedShare),
		Fewest:  fewestAccumulated,
		Leave:   isSystemHeap,
		Through: android.IsContainer,
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
			f.addDominators(g)
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

// isSystemHeap reports whether a heap was filled before the app started.
func isSystemHeap(h heap.Heap) bool { return h.ID == imageHeap || h.ID == zygoteHeap }

// appReachable returns the number of reachable bytes outside the system heaps.
func appReachable(g *heap.Graph) int64 {
	bytes := g.ReachableBytes().Total()
	for h := range g.Heaps {
		if isSystemHeap(g.Heaps[h]) {
			g.Tops(func(o heap.Object) { bytes -= g.RetainedIn(o, h) })
		}
	}
	return bytes
}

// addDominators sets Dominators, and sets Cache if one of the nearest
// dominators is a cache.
func (a *accumulation) addDominators(g *heap.Graph) {
	const half = shownDominators / 2
	// near holds the nearest dominators; far is a ring buffer of the dominators
	// above them.
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
