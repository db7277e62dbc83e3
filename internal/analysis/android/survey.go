package android

import (
	"context"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/text"
)

// Options configure Read.
type Options struct {
	// Top is the maximum length of the lists; counts include everything. 0
	// means 30.
	Top int
	// AllStrings compares all strings, even if there are more strings than an
	// app on a phone has; this takes 24 bytes for each string.
	AllStrings bool
}

const defaultTop = 30

func (o Options) withDefaults() Options {
	if o.Top <= 0 {
		o.Top = defaultTop
	}
	return o
}

// Survey holds the results of all topics for a dump.
type Survey struct {
	Metadata   *Metadata   `json:"metadata"`
	Bitmaps    *Bitmaps    `json:"bitmaps"`
	Strings    *Strings    `json:"strings"`
	Threads    *Threads    `json:"threads"`
	Components *Components `json:"components"`
	Finalizers *Finalizers `json:"finalizers"`
	Exhaustion *Exhaustion `json:"exhaustion"`
	// Unused describes the unused slots of collections.
	Unused *UnusedSlots `json:"unused_slots"`
	// Warnings are the warnings of all topics.
	Warnings []error `json:"-"`
}

// Read reads all topics and returns their results. A returned error comes from
// ctx or from reading the file.
func Read(ctx context.Context, g *heap.Graph, o Options) (*Survey, error) {
	p := newPlan(g, o)
	metadata, threads := p.withMetadata(), p.withThreads()
	bitmaps, strings, components, finalizers, exhaustion := &bitmapsTopic{}, newStringsTopic(o), &componentsTopic{},
		&finalizersTopic{}, &exhaustionTopic{}
	unused := &unusedTopic{}
	for _, t := range []topic{bitmaps, strings, components, finalizers, exhaustion, unused} {
		p.add(t)
	}
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	s := &Survey{
		Metadata: &metadata.Metadata, Bitmaps: &bitmaps.Bitmaps, Strings: &strings.Strings, Threads: &threads.Threads,
		Components: &components.Components, Finalizers: &finalizers.Finalizers, Exhaustion: &exhaustion.Exhaustion,
		Unused: &unused.UnusedSlots,
	}
	s.Warnings = slices.Concat(s.Metadata.Warnings, s.Bitmaps.Warnings, s.Strings.Warnings, s.Threads.Warnings,
		s.Components.Warnings, s.Finalizers.Warnings, s.Exhaustion.Warnings)
	return s, nil
}

func (p *plan) withMetadata() *metadataTopic {
	p.metadata = &metadataTopic{}
	p.add(p.metadata)
	return p.metadata
}

func (p *plan) withThreads() *threadsTopic {
	p.threads = &threadsTopic{}
	p.add(p.threads)
	return p.threads
}

// ReadMetadata returns the origin of the dump.
func ReadMetadata(ctx context.Context, g *heap.Graph, o Options) (*Metadata, error) {
	p := newPlan(g, o)
	t := p.withMetadata()
	return &t.Metadata, p.run(ctx)
}

// class returns the printable name of an object's class, or, if the object is
// itself a class, the name of that class.
func (p *plan) class(o heap.Object) string {
	if p.graph.IsClass(o) {
		return text.Excerpt(p.graph.ClassName(o), longestClass)
	}
	return text.Excerpt(p.graph.Class(o), longestClass)
}

func (p *plan) id(o heap.Object) hprof.ID { return p.graph.ID(o) }

// reachable reports whether GC roots hold an object, strongly or softly.
func (p *plan) reachable(o heap.Object) bool { return p.graph.Reachability(o) <= heap.Soft }

// sum returns the sum of two sizes, or the largest int64 if the sum overflows.
func sum(a, b int64) int64 {
	if b > 0 && a > largest-b {
		return largest
	}
	return a + b
}

const largest = 1<<63 - 1

// cut returns the first n elements of a list, and the number of elements after
// them.
func cut[T any](list []T, n int) ([]T, int64) {
	if len(list) <= n {
		return list, 0
	}
	return slices.Clip(list[:n]), int64(len(list) - n)
}
