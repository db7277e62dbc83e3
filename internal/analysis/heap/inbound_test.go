package heap_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// TestInbound compares the ancestors of some objects, and the objects that are
// reachable only through them, with the results of brute force.
func TestInbound(t *testing.T) {
	for seed := range uint64(400) {
		d, w := randomWorld(seed, 60)
		w.model = []heap.SizeModel{heap.Ahat, heap.Leakgate}[seed%2]
		g, err := open(w.write(t, d.form()).dump, heap.Options{Inbound: true, Model: w.model})
		if err != nil {
			t.Fatal(err)
		}
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
		if g.AddAncestors(context.Background(), s, nil, false) == nil ||
			g.AddHeld(context.Background(), s, nil) == nil {
			t.Fatal("a query for inbound references succeeded after ForgetInbound")
		}
		s.Close()
		g.Close()
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
	if err := a.askCost(g, targets, is); err != nil {
		return err
	}
	all, without := a.reached(heap.Soft, func(int) bool { return false }), a.reached(heap.Soft, is)
	for i, o := range a.objects {
		n, _ := g.Find(o.id)
		want := all[i] && !without[i]
		// No object except the leaf itself is reachable only through a
		// requested leaf.
		if got := held.Has(n); got != want && !(is(i) && len(a.follow(o)) == 0) {
			return fmt.Errorf("got %#x held: %t", o.id, got)
		}
	}
	return a.askAncestors(g, targets, is)
}

// TestCostByBruteForce compares the cost of random sets with the bytes that
// become unreachable when the sets are removed. The cost is computed both with
// sweeps only and by following references one by one.
func TestCostByBruteForce(t *testing.T) {
	graphs := uint64(10_000)
	if racing {
		graphs = 1_000
	}
	defer heap.SetMaxSweeps(heap.SetMaxSweeps(0))
	for seed := range graphs {
		heap.SetMaxSweeps([]int{0, 1, 12}[seed%3])
		d, w := randomWorld(seed, 1+int(seed%90))
		w.model = []heap.SizeModel{heap.Ahat, heap.Leakgate}[seed%2]
		g, err := open(w.write(t, d.form()).dump, heap.Options{Inbound: true, Model: w.model})
		if err != nil {
			t.Fatal(err)
		}
		a := w.read()
		for _, most := range []int{2, 8, 40} {
			chosen := map[int]bool{}
			var targets []heap.Object
			for range 1 + d.IntN(most) {
				i := d.IntN(len(a.objects))
				o, _ := g.Find(a.objects[i].id)
				chosen[i], targets = true, append(targets, o)
			}
			if err := a.askCost(g, targets, func(i int) bool { return chosen[i] }); err != nil {
				t.Fatalf("seed %d, %d objects: %v", seed, len(chosen), err)
			}
		}
		g.Close()
	}
}

// TestSharesByBruteForce compares the shares of sets with the results of brute
// force. Brute force finds the objects that become unreachable when all sets
// are removed, but not when any single set is removed, and counts each object
// for every set that leads to it.
func TestSharesByBruteForce(t *testing.T) {
	shared, graphs := 0, uint64(1600)
	if racing {
		graphs /= 10
	}
	for seed := range graphs {
		d, w := randomWorld(seed, 1+int(seed%90))
		g, err := open(w.write(t, d.form()).dump, heap.Options{Inbound: true})
		if err != nil {
			t.Fatal(err)
		}
		a := w.read()
		sets, objects := make([]map[int]bool, 2+d.IntN(3)), make([][]heap.Object, 5)
		for s := range sets {
			sets[s] = map[int]bool{}
			for range 1 + d.IntN(6) {
				i := d.IntN(len(a.objects))
				o, _ := g.Find(a.objects[i].id)
				sets[s][i], objects[s] = true, append(objects[s], o)
			}
		}
		got, err := g.Shares(context.Background(), objects[:len(sets)], &heap.VisitBudget{Left: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		want := a.shares(sets)
		for s := range want {
			if got != nil && got[s] != want[s] || got == nil && want[s] != (heap.Share{}) {
				t.Fatalf("seed %d: set %d of %d: got shares %v, want %v", seed, s, len(sets), got, want)
			}
			if want[s].With > 0 {
				shared++
			}
		}
		g.Close()
	}
	if !racing && shared < 8 {
		t.Errorf("only %d sets share bytes", shared)
	}
}

func (a *answer) shares(sets []map[int]bool) []heap.Share {
	all := map[int]bool{}
	for _, i := range a.without(func(i int) bool {
		return slices.ContainsFunc(sets, func(s map[int]bool) bool { return s[i] })
	}) {
		all[i] = true
	}
	alone, own := map[int]bool{}, make([][]int, len(sets))
	for s, set := range sets {
		own[s] = a.without(func(i int) bool { return set[i] })
		for _, i := range own[s] {
			alone[i] = true
		}
	}
	lead := make([]map[int]bool, len(sets))
	for s := range sets {
		lead[s] = map[int]bool{}
		for pending := own[s]; len(pending) > 0; {
			i := pending[0]
			pending = pending[1:]
			for _, e := range a.edges[i] {
				if e.strength <= heap.Soft && all[e.to] && !alone[e.to] && !lead[s][e.to] {
					lead[s][e.to] = true
					pending = append(slices.Clip(pending), e.to)
				}
			}
		}
	}
	shares := make([]heap.Share, len(sets))
	for s := range sets {
		with := map[int]bool{}
		for i := range lead[s] {
			shares[s].Size.Java += a.sizes[i].Java
			shares[s].Size.Native += a.sizes[i].Native
			for other := range sets {
				if other != s && lead[other][i] {
					with[other] = true
				}
			}
		}
		shares[s].With = len(with)
	}
	return shares
}

// askCost checks the cost of the targets: it must equal the size of all objects
// that become unreachable when the targets are removed; a lower bound must not
// be higher.
func (a *answer) askCost(g *heap.Graph, targets []heap.Object, is func(int) bool) error {
	want, in := a.sum(a.without(is))
	for _, left := range []int64{1 << 40, 0} {
		got, err := g.Cost(context.Background(), targets, &heap.VisitBudget{Left: left})
		if err != nil {
			return err
		}
		if got.AtLeast {
			if got.Size.Java > want.Java || got.Size.Native > want.Native {
				return fmt.Errorf("got lower bound %v for a cost of %v", got.Size, want)
			}
			continue
		}
		if got.Size != want {
			return fmt.Errorf("got cost %v, want %v", got.Size, want)
		}
		for h, bytes := range got.In {
			if name := g.Heaps[h].Name; bytes != in[name] {
				return fmt.Errorf("got cost %d in %s, want %d", bytes, name, in[name])
			}
		}
	}
	return nil
}

// askAncestors compares the ancestors of the targets with those found by
// repeated passes over all references. If an object is reachable through
// finalizers, or a target is only weakly reachable, the result may include that
// object and its ancestors.
func (a *answer) askAncestors(g *heap.Graph, targets []heap.Object, is func(int) bool) error {
	s, err := g.NewSet()
	if err != nil {
		return err
	}
	defer s.Close()
	if err := g.AddAncestors(context.Background(), s, targets, true); err != nil {
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
		slices.ContainsFunc(targets,
			func(o heap.Object) bool { return g.Reachability(o) > heap.Soft && g.Reachability(o) < heap.Unreachable })
	for i, o := range a.objects {
		n, _ := g.Find(o.id)
		if got := s.Has(n); strong[i] && !got || got && !any[i] && !more {
			return fmt.Errorf("%#x: got ancestor of a target: %t", o.id, got)
		}
	}
	return nil
}
