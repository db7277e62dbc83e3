package trace_test

import (
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// TestLongWays has a list of the app's own, whose every node holds a leak: each is told
// or counted, and the traces end long before they are as many as the square of the list.
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
	result, err := w.find(targets, trace.Options{}).Leaks(t.Context(), trace.Describe{Inspect: func(heap.Object) (n trace.Inspection) { return n }})
	if err != nil {
		t.Fatal(err)
	}
	told, elements := result.Untraced, 0
	for i := range result.Leaks {
		told += len(result.Leaks[i].Objects)
		for j := range result.Leaks[i].Traces {
			elements += len(result.Leaks[i].Traces[j].Elements)
		}
	}
	if told != nodes || result.Untraced == 0 || result.Untraced > nodes*3/4 {
		t.Errorf("%d of %d objects are told, %d of them not traced", told, nodes, result.Untraced)
	}
	// One key has them all, so that there are no more leaks than are told apart.
	if len(result.Leaks) > 257 || elements > 400*400 {
		t.Errorf("%d leaks with %d elements", len(result.Leaks), elements)
	}
}
