package heap_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// TestInbound asks who leads to some objects, and what only they hold, and compares with
// what the world answers by brute force.
func TestInbound(t *testing.T) {
	for seed := range uint64(400) {
		d, w := randomWorld(seed, 60)
		g := load(t, w.write(t, d.form()).dump, heap.Options{Inbound: true})
		a := w.solve()
		for n := range 4 {
			var chosen []*object
			for _, o := range a.objects {
				if d.one(len(a.objects)/(n+1) + 1) {
					chosen = append(chosen, o)
				}
			}
			if err := a.askInbound(g, chosen); err != nil {
				t.Fatalf("seed %d, %d objects: %v", seed, len(chosen), err)
			}
		}
		g.ForgetInbound()
		s, _ := g.NewSet()
		if g.AddAncestors(context.Background(), s, nil) == nil || g.AddHeld(context.Background(), s, nil) == nil {
			t.Fatal("who holds what is told after it was forgotten")
		}
		s.Close()
	}
}

func (a *answer) askInbound(g *heap.Graph, chosen []*object) error {
	var targets []heap.Object
	for _, o := range chosen {
		n, _ := g.Find(o.id)
		targets = append(targets, n)
	}
	held, err := g.NewSet()
	if err != nil {
		return err
	}
	defer held.Close()
	if err := g.AddHeld(context.Background(), held, targets); err != nil {
		return err
	}
	is := func(i int) bool { return slices.Contains(chosen, a.objects[i]) }
	all, without := a.reached(heap.Soft, func(int) bool { return false }), a.reached(heap.Soft, is)
	for i, o := range a.objects {
		n, _ := g.Find(o.id)
		want := all[i] && !without[i]
		// A leaf that was asked for holds nothing but itself.
		if got := held.Has(n); got != want && !(is(i) && len(a.follow(o)) == 0) {
			return fmt.Errorf("%#x is held: %t", o.id, got)
		}
	}
	return a.askAncestors(g, targets, is)
}

// askAncestors finds the ancestors in rounds. Where something is reachable by finalizer, or
// a target weakly, that and what leads there may be told as well.
func (a *answer) askAncestors(g *heap.Graph, targets []heap.Object, is func(int) bool) error {
	s, err := g.NewSet()
	if err != nil {
		return err
	}
	defer s.Close()
	if err := g.AddAncestors(context.Background(), s, targets); err != nil {
		return err
	}
	reached := a.reached(heap.Soft, func(int) bool { return false })
	strong, any := make([]bool, len(a.objects)), make([]bool, len(a.objects))
	for i := range a.objects {
		strong[i], any[i] = is(i), is(i)
	}
	for changed := true; changed; {
		changed = false
		for i, o := range a.objects {
			for _, e := range a.follow(o) {
				if e.strength <= heap.Soft && strong[e.to] && !strong[i] && reached[i] {
					strong[i], changed = true, true
				}
				if any[e.to] && !any[i] {
					any[i], changed = true, true
				}
			}
		}
	}
	more := slices.Contains(a.reach, heap.Finalizer) ||
		slices.ContainsFunc(targets, func(o heap.Object) bool { return g.Reachability(o) > heap.Soft && g.Reachability(o) < heap.Unreachable })
	for i, o := range a.objects {
		n, _ := g.Find(o.id)
		if got := s.Has(n); strong[i] && !got || got && !any[i] && !more {
			return fmt.Errorf("%#x leads to a target: %t", o.id, got)
		}
	}
	return nil
}
