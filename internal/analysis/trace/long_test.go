package trace_test

import (
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// TestLongWays reads an app's own list in which every node holds a leak: these
// leaks must be reported as one leak, and the nodes as one element of a trace.
func TestLongWays(t *testing.T) {
	const nodes = 6000
	h := hproftest.Java(1)
	node := h.Declare("com.shop.Node", nil, "object next", "object screen")
	screen := h.Declare("com.shop.Screen", nil)
	first := hproftest.Ref(0)
	var leaking []hproftest.Ref
	for range nodes {
		leaking = append(leaking, h.New(screen, nil))
		first = h.New(node, hproftest.Fields{"next": first, "screen": leaking[len(leaking)-1]})
	}
	h.Hold("com.shop.History", "first", first)
	w := load(t, h, hproftest.Form{Runtime: hproftest.HotSpot}, trace.Rules{})
	var targets []heap.Object
	for _, r := range leaking {
		targets = append(targets, w.object(r))
	}
	d := trace.Describe{Inspect: func(heap.Object) (n trace.Inspection) { return n }}
	prints, err := w.find(targets, trace.Options{}).Fingerprints(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	result, err := w.find(targets, trace.Options{ByName: true}).LeaksByKey(t.Context(), d, prints)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Leaks) != 1 || len(result.Leaks[0].Objects) != nodes || len(result.Leaks[0].Fingerprints) > 256 {
		t.Fatalf("%d leaks", len(result.Leaks))
	}
	d.Inspect = func(o heap.Object) (n trace.Inspection) { return n }
	traces, err := w.find(targets, trace.Options{ByName: true}).Traces(t.Context(), targets[:1], d)
	if err != nil {
		t.Fatal(err)
	}
	folded := 0
	for _, e := range traces[0].Elements {
		folded += e.Repeat
	}
	if n := len(traces[0].Elements); n > 8 || folded != nodes-2 {
		t.Errorf("the last node has %d elements and %d folded ones, want at most 8 and %d", n, folded, nodes-2)
	}
}
