package heap_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// differsCensus compares the result of Count with the graph of the same dump,
// which must not contain duplicate objects.
func differsCensus(c *heap.Census, g *heap.Graph) error {
	got := []int64{c.Objects, c.Instances, c.ObjectArrays, c.PrimitiveArrays, c.Classes, c.Truncated}
	want := []int64{g.Objects, g.Instances, g.ObjectArrays, g.PrimitiveArrays, g.Classes, g.Truncated}
	if fmt.Sprint(got) != fmt.Sprint(want) || !maps.Equal(c.RootCounts, g.RootCounts) {
		return fmt.Errorf("got counts %v and roots %v, but the graph has %v and %v", got, c.RootCounts, want,
			g.RootCounts)
	}
	rows := map[string]heap.Row{}
	for _, r := range g.Histogram() {
		rows[r.Class] = r
	}
	if len(rows) != len(c.Rows) {
		return fmt.Errorf("got %d classes, but the graph has %d", len(c.Rows), len(rows))
	}
	for i, r := range c.Rows {
		want := rows[r.Class]
		if r.Instances != want.Instances || r.Shallow.Java != want.Shallow.Java || r.Classes != want.Classes ||
			r.Retained != (heap.Size{}) || r.Reachable != 0 {
			return fmt.Errorf("got row %+v, but the graph has %+v", r, want)
		}
		if i > 0 && r.Shallow.Java > c.Rows[i-1].Shallow.Java {
			return fmt.Errorf("%s is listed after %s", r.Class, c.Rows[i-1].Class)
		}
	}
	return nil
}

// TestCensus compares a census with the graph, with several goroutines and with
// one.
func TestCensus(t *testing.T) {
	for seed := range uint64(12) {
		d, w := randomWorld(seed, 1+int(seed*seed*40))
		dump := w.write(t, d.form()).dump
		f, err := hprof.Open(t.Context(), bytes.NewReader(dump), int64(len(dump)))
		if err != nil {
			t.Fatal(err)
		}
		c, err := heap.Count(t.Context(), f, heap.Options{Workers: 1 + int(seed%3), Snapshot: -1})
		if err != nil {
			t.Fatal(err)
		}
		if err := differsCensus(c, load(t, dump, heap.Options{})); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestCensusCancelled checks that a census stops when its context is canceled.
func TestCensusCancelled(t *testing.T) {
	_, w := randomWorld(1, 100)
	dump := w.dump(t)
	f, err := hprof.Open(t.Context(), bytes.NewReader(dump), int64(len(dump)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := heap.Count(ctx, f, heap.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", c, err)
	}
}
