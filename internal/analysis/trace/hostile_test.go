package trace_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// account runs all searches on a dump, which may be damaged in any way. It
// returns an error if the results contain an invalid path, a target that is
// missing or listed twice, or an invalid sum. A dump that cannot be read is not
// an error; for any other dump, found is the number of paths.
func account(ctx context.Context, dump []byte, seed uint64) (found int, err error) {
	g, b, err := opened(ctx, dump)
	if err != nil {
		return 0, ctx.Err()
	}
	defer g.Close()
	defer b.Close()
	rng := rand.New(rand.NewPCG(seed, 0x40571e))
	targets := map[heap.Object]bool{}
	for range rng.IntN(12) {
		if g.Objects > 0 {
			targets[heap.Object(rng.Int64N(g.Objects))] = true
		}
	}
	if seed%4 == 0 {
		for _, o := range slices.Concat(g.InstancesOf("java.util.LinkedList"), g.InstancesOf("android.app.Activity"),
			g.InstancesOf("a.A")) {
			targets[o] = true
		}
	}
	r := trace.NewReader(g, b, known())
	list := make([]heap.Object, 0, len(targets))
	for o := range targets {
		list = append(list, o)
	}
	slices.Sort(list)
	for _, through := range []bool{false, true} {
		s, err := trace.Find(ctx, r, list, trace.Options{Through: through})
		if err != nil {
			return found, err
		}
		found += len(s.Found())
		err = accountOf(ctx, g, r, s, list, through)
		if err == nil {
			err = accountByName(ctx, g, b, s, list, trace.Options{Through: through, ByName: true})
		}
		s.Close()
		if err != nil {
			return found, fmt.Errorf("Through=%t: %w", through, err)
		}
	}
	return found, nil
}

// accountByName searches by name twice, the second time following all
// references; it checks that each target is in a leak, reachable only through
// another target, or unreachable, and that traces are short.
func accountByName(ctx context.Context, g *heap.Graph, b *heap.Outbound, shark *trace.Search, targets []heap.Object,
	o trace.Options) error {
	prints, err := shark.Fingerprints(ctx, silent)
	if err != nil {
		return err
	}
	all := known()
	all.Records, all.AllRoots, all.Leaves, all.Subclasses = true, true, true, true
	for i, rules := range []trace.Rules{known(), all} {
		r := trace.NewReader(g, b, rules)
		s, err := trace.Find(ctx, r, targets, o)
		if err != nil {
			return err
		}
		defer s.Close()
		for _, p := range s.Paths(s.Found()) {
			if err := brokenPath(r, p); err != nil {
				return fmt.Errorf("by name: %w", err)
			}
		}
		if i > 0 {
			prints = nil
		}
		result, err := s.LeaksByKey(ctx, silent, prints)
		if err != nil {
			return err
		}
		var met []heap.Object
		for _, l := range result.Leaks {
			met = append(append(met, l.Objects...), l.Also...)
			if l.Key != l.Traces[0].Key() || len(l.Traces[0].Elements) > 1<<10+1 || i > 0 && len(l.Fingerprints) > 0 {
				return fmt.Errorf("leak %s with %d elements, %q", l.Key, len(l.Traces[0].Elements), l.Fingerprints)
			}
		}
		met = append(met, result.Unreachable...)
		slices.Sort(met)
		if len(met)+result.Untraced < len(targets) || len(slices.Compact(met)) > len(targets) {
			return fmt.Errorf("by name: results cover %v, want %v", met, targets)
		}
	}
	return nil
}

func accountOf(ctx context.Context, g *heap.Graph, r *trace.Reader, s *trace.Search, targets []heap.Object,
	through bool) error {
	paths := s.Paths(s.Found())
	if len(paths) != len(s.Found()) {
		return fmt.Errorf("%d paths to %d found objects", len(paths), len(s.Found()))
	}
	for _, p := range paths {
		if err := brokenPath(r, p); err != nil {
			return err
		}
	}
	result, err := s.Leaks(ctx, silent)
	if err != nil {
		return err
	}
	if err := accounted(g, targets, result, through); err != nil {
		return err
	}
	tree, err := s.Tree(ctx, targets)
	if err != nil {
		return err
	}
	reached := int64(0)
	for _, t := range targets {
		if s.Reached(t) {
			reached++
		}
	}
	for _, b := range tree {
		reached -= b.Targets
	}
	if reached != 0 {
		return fmt.Errorf("the tree lacks %d of the targets", reached)
	}
	return nil
}

// accounted checks that each target is traced, reachable only through another
// target, or unreachable, and that no more memory is credited than exists.
func accounted(g *heap.Graph, targets []heap.Object, result *trace.Result, through bool) error {
	var met []heap.Object
	var sum, all int64
	for _, l := range result.Leaks {
		for i := range l.Traces {
			x := &l.Traces[i]
			met = append(met, x.Leaking().Object)
			if x.Fingerprint() != l.Fingerprint() || len(x.Key()) != 40 || x.KeyText() == "" {
				return fmt.Errorf("trace has fingerprint %s, its leak %s; key %s, leak key %q", x.Fingerprint(),
					l.Fingerprint(), x.Key(),
					x.KeyText())
			}
		}
		met = append(met, l.Also...)
		sum += l.Credited.Total()
	}
	met = append(met, result.Unreachable...)
	slices.Sort(met)
	if !slices.Equal(met, targets) {
		return fmt.Errorf("results cover %v, want %v", met, targets)
	}
	for n := range g.Objects {
		all += g.Shallow(heap.Object(n)).Total()
	}
	if !through && (sum < 0 || sum > all) {
		return fmt.Errorf("credited %d of %d bytes", sum, all)
	}
	return nil
}

// bounded returns a context that expires after a minute, the time limit for a
// result.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// sampleDumps returns whole dumps of random heaps.
func sampleDumps(tb testing.TB, n int) (dumps [][]byte) {
	tb.Helper()
	for seed := range uint64(n) {
		h, form, _ := random(seed)
		if seed%4 == 3 {
			c := hproftest.LeakMix(seed)
			h, form = c.Heap(), c.Form
		}
		dump, _, err := h.Dump(form)
		if err != nil {
			tb.Fatal(err)
		}
		dumps = append(dumps, dump)
	}
	return dumps
}

// TestBroken checks that truncated dumps, and dumps with flipped bits, are
// analyzed consistently or refused.
func TestBroken(t *testing.T) {
	ctx := bounded(t)
	found := 0
	for i, dump := range sampleDumps(t, 12) {
		rng := rand.New(rand.NewPCG(uint64(i), 0xb40))
		for try := range uint64(40) {
			broken := hproftest.Flip(dump, uint64(i)<<8|try, 1+rng.IntN(60))
			if try%4 == 0 {
				broken = hproftest.Truncate(dump, rng.IntN(len(dump)))
			}
			n, err := account(ctx, broken, try)
			if err != nil {
				t.Fatalf("dump %d, try %d: %v", i, try, err)
			}
			found += n
		}
	}
	if found < 500 {
		t.Errorf("found only %d paths in the broken dumps", found)
	}
}

// TestCancelled checks that a canceled search ends.
func TestCancelled(t *testing.T) {
	h := hproftest.Java(1)
	link := h.Declare("a.Link", nil, "object next")
	at := hproftest.Ref(0)
	for range 1 << 17 {
		at = h.New(link, hproftest.Fields{"next": at})
	}
	h.Hold("a.Holder", "head", at)
	w := load(t, h, hproftest.Form{}, trace.Rules{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := trace.Find(ctx, w.reader, nil, trace.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled search returned %v", err)
	}
	targets := w.objects(at)
	s := w.find(targets, trace.Options{})
	if _, err := s.Leaks(ctx, silent); !errors.Is(err, context.Canceled) {
		t.Errorf("leaks of a canceled search: got error %v, want %v", err, context.Canceled)
	}
	if _, err := s.Tree(ctx, targets); !errors.Is(err, context.Canceled) {
		t.Errorf("tree of a canceled search: got error %v, want %v", err, context.Canceled)
	}
}

// TestSharedNodes checks that lists with shared nodes, lists with a shared
// array, and tables with shared chains are read in bounded time and with the
// same result each time.
func TestSharedNodes(t *testing.T) {
	const n = 2000
	type f = hproftest.Fields
	h := hproftest.Java(1)
	end := h.New(h.Declare("a.End", nil, "object x"), nil)
	var list []hproftest.Ref
	chain := hproftest.Ref(0)
	for i := range n {
		chain = h.New(h.Class("java.util.LinkedList$Node"), f{"next": chain, "item": end})
		list = append(list, h.New(h.Class("java.util.LinkedList"), f{"first": chain, "size": i}))
	}
	elements := make([]hproftest.Ref, n)
	for i := range elements {
		elements[i] = end
	}
	array := h.Objects(h.Class("java.lang.Object"), elements...)
	entry := hproftest.Ref(0)
	for range n {
		entry = h.New(h.Class("java.util.HashMap$Node"), f{"next": entry, "key": end})
	}
	for i := range elements {
		list = append(list, h.New(h.Class("java.util.ArrayList"), f{"elementData": array, "size": n}))
		elements[i] = entry
	}
	list = append(list,
		h.New(h.Class("java.util.HashMap"), f{"table": h.Objects(h.Class("java.util.HashMap$Node"), elements...)}))
	h.Hold("a.Holder", "all", h.Objects(h.Class("java.lang.Object"), list...))
	w := load(t, h, hproftest.Form{}, trace.Rules{})
	count := func() (edges []int64) {
		for o := range w.graph.Objects {
			edges = append(edges, 0)
			w.reader.Read(heap.Object(o), func(trace.Edge) { edges[o]++ })
		}
		return edges
	}
	first := count()
	sum := int64(0)
	for _, e := range first {
		sum += e
	}
	if sum > 64*w.graph.Objects || sum < 2*w.graph.Objects {
		t.Errorf("%d references from %d objects", sum, w.graph.Objects)
	}
	if again := count(); !slices.Equal(again, first) {
		t.Error("the second read differs from the first")
	}
	targets := w.objects(end)
	s := w.find(targets, trace.Options{})
	for _, p := range s.Paths(targets) {
		w.checkPath(0, p)
	}
	if !s.Reached(targets[0]) {
		t.Error("the object in all lists was not found")
	}
}

// TestSharedChain does the same as TestSharedNodes for one table that has the
// same chain in all its slots.
func TestSharedChain(t *testing.T) {
	const n = 3000
	h := hproftest.Java(1)
	entry := hproftest.Ref(0)
	end := h.New(h.Class("java.lang.Object"), nil)
	for range n {
		entry = h.New(h.Class("java.util.HashMap$Node"), hproftest.Fields{"next": entry, "key": end})
	}
	table := make([]hproftest.Ref, n)
	for i := range table {
		table[i] = entry
	}
	m := h.New(h.Class("java.util.HashMap"),
		hproftest.Fields{"table": h.Objects(h.Class("java.util.HashMap$Node"), table...)})
	w := load(t, h, hproftest.Form{}, trace.Rules{})
	edges := int64(0)
	w.reader.Read(w.object(m), func(trace.Edge) { edges++ })
	if edges < n || edges > 8*w.graph.Objects {
		t.Errorf("map has %d references in a dump of %d objects, want %d to %d", edges, w.graph.Objects, n,
			8*w.graph.Objects)
	}
}

// TestAllOfAList checks a list in which each node is a target: all nodes but
// the first are attributed to the first.
func TestAllOfAList(t *testing.T) {
	const links = 50000
	h := hproftest.Java(1)
	link := h.Declare("a.Link", nil, "object next")
	at := hproftest.Ref(0)
	for range links {
		at = h.New(link, hproftest.Fields{"next": at})
	}
	h.Hold("a.Holder", "head", at)
	w := load(t, h, hproftest.Form{}, trace.Rules{})
	for _, through := range []bool{false, true} {
		r := w.leaks(w.find(w.graph.Exactly("a.Link"), trace.Options{Through: through}))
		if len(r.Leaks) != 1 || len(r.Leaks[0].Traces) != 1 || len(r.Leaks[0].Also) != links-1 ||
			len(r.Unreachable) != 0 {
			t.Errorf("Through=%t: %d leaks", through, len(r.Leaks))
		}
	}
}

// FuzzFind checks the results of all searches in arbitrary bytes.
func FuzzFind(f *testing.F) {
	for i, dump := range sampleDumps(f, 8) {
		f.Add(dump, uint64(i))
		f.Add(hproftest.Truncate(dump, len(dump)/2), uint64(i))
		f.Add(hproftest.Flip(dump, uint64(i), 20), uint64(i))
	}
	f.Fuzz(func(t *testing.T, dump []byte, seed uint64) {
		if _, err := account(bounded(t), dump, seed); err != nil {
			t.Error(err)
		}
	})
}
