package jvmtest

import (
	"os"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// load reads a whole dump.
func load(t *testing.T, path string) *heap.Graph {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	info, err := in.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := hprof.Open(t.Context(), in, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	g, err := heap.Load(t.Context(), f, heap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	if g.Truncated >= 0 {
		t.Fatalf("%s is truncated", path)
	}
	return g
}

// counts returns the number of objects by class.
func counts(g *heap.Graph) map[string]int64 {
	m := map[string]int64{}
	for _, row := range g.Histogram() {
		m[row.Class] = row.Instances
	}
	return m
}

// references returns the references of the given objects.
func references(t *testing.T, g *heap.Graph, objects []heap.Object) map[heap.Object][]heap.Object {
	t.Helper()
	m := map[heap.Object][]heap.Object{}
	if err := g.Read(t.Context(), objects, func(r *heap.Record) error {
		r.References(func(o heap.Object) { m[r.Object] = append(m[r.Object], o) })
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return m
}

// held returns the objects that a field references, whether the field is static
// or in the objects of the class.
func held(t *testing.T, g *heap.Graph, owner, field string) []heap.Object {
	t.Helper()
	if o, ok := g.Static(owner, field); ok {
		return []heap.Object{o}
	}
	var list []heap.Object
	if err := g.Read(t.Context(), g.InstancesOf(owner), func(r *heap.Record) error {
		if o, ok := r.RefOf(g.Field(owner, field)); ok {
			list = append(list, o)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// checkLeaks compares a dump with its known leaks; named returns the names of a
// class and a field in the dump.
func checkLeaks(t *testing.T, g *heap.Graph, leaks []Leak, iterations int,
	named func(owner, field string) (string, string)) {
	t.Helper()
	for _, leak := range leaks {
		class, _ := named(leak.Class, "")
		objects := g.Exactly(class)
		if want := leak.Objects(iterations); len(objects) != want {
			t.Errorf("%d objects of %s, want %d", len(objects), leak.Class, want)
		}
		owner, field := named(leak.Owner, leak.Field)
		holders := held(t, g, owner, field)
		direct := references(t, g, holders)
		for _, o := range objects {
			if g.Reachability(o) != heap.Strong {
				t.Errorf("%s is %v reachable", leak.Class, g.Reachability(o))
			}
			// The object of a running thread is also referenced by the thread's
			// stack, so no single object dominates it.
			ok := slices.ContainsFunc(holders,
				func(h heap.Object) bool { return dominates(g, h, o) || slices.Contains(direct[h], o) })
			if !ok {
				t.Errorf("%s.%s does not hold a %s", leak.Owner, leak.Field, leak.Class)
			}
		}
	}
}

func dominates(g *heap.Graph, d, o heap.Object) bool {
	for ok := true; ok; o, ok = g.Dominator(o) {
		if o == d {
			return true
		}
	}
	return false
}

// asWritten returns the names of a class and a field in a program that was not
// renamed.
func asWritten(owner, field string) (string, string) { return owner, field }
