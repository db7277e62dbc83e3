package android

import (
	"context"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// Each of these functions reads only one topic; reports read all topics in one
// pass.

// ReadBitmaps lists the bitmaps.
func ReadBitmaps(ctx context.Context, g *heap.Graph, o Options) (*Bitmaps, error) {
	p := newPlan(g, o)
	p.withMetadata()
	t := &bitmapsTopic{}
	p.add(t)
	return &t.Bitmaps, p.run(ctx)
}

// ReadStrings counts the strings and finds those that are repeated.
func ReadStrings(ctx context.Context, g *heap.Graph, o Options) (*Strings, error) {
	p := newPlan(g, o)
	t := newStringsTopic(o)
	p.add(t)
	return &t.Strings, p.run(ctx)
}

// ReadThreads lists the threads.
func ReadThreads(ctx context.Context, g *heap.Graph, o Options) (*Threads, error) {
	p := newPlan(g, o)
	t := p.withThreads()
	return &t.Threads, p.run(ctx)
}

// ReadComponents lists activities, fragments, services and databases.
func ReadComponents(ctx context.Context, g *heap.Graph, o Options) (*Components, error) {
	p := newPlan(g, o)
	t := &componentsTopic{}
	p.add(t)
	return &t.Components, p.run(ctx)
}

// ReadFinalizers counts the objects that wait for their finalizer.
func ReadFinalizers(ctx context.Context, g *heap.Graph, o Options) (*Finalizers, error) {
	p := newPlan(g, o)
	t := &finalizersTopic{}
	p.add(t)
	return &t.Finalizers, p.run(ctx)
}

// ReadUnused counts the unused slots in ArrayLists and HashMaps.
func ReadUnused(ctx context.Context, g *heap.Graph, o Options) (*UnusedSlots, error) {
	p := newPlan(g, o)
	t := &unusedTopic{}
	p.add(t)
	return &t.UnusedSlots, p.run(ctx)
}

// ReadExhaustion computes how close the process was to running out of memory.
func ReadExhaustion(ctx context.Context, g *heap.Graph, o Options) (*Exhaustion, error) {
	p := newPlan(g, o)
	p.withMetadata()
	p.withThreads()
	t := &exhaustionTopic{}
	p.add(t)
	return &t.Exhaustion, p.run(ctx)
}

// MatchersOf returns the matchers of an edition; Matchers returns those of the
// edition that reports use.
var MatchersOf = matchersOf

func Matchers(b trace.Build) []trace.Matcher { return matchersOf(Shark3, b) }
