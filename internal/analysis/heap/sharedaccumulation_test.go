package heap_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// TestSharedAccumulations compares the accumulations with those found by
// grouping, by class, the children of each object that dominates a class
// object.
func TestSharedAccumulations(t *testing.T) {
	t.Parallel()
	met, held := 0, 0
	for seed := range uint64(400) {
		w, _, serials := thickets(seed)
		g := load(t, w.threaded(t, form{}, serials), heap.Options{})
		o := heap.AccumulationOptions{Least: int64(1 + seed%40), Fewest: 2}
		candidates, err := g.SharedAccumulations(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var all []*heap.SharedAccumulation
		for i := range candidates {
			all = append(all, &candidates[i])
		}
		if err := g.FillSharedAccumulations(t.Context(), o, all); err != nil {
			t.Fatal(err)
		}
		for _, p := range candidates {
			got = append(got, accumulationLine(g, p.Top, p.Object, p.Class, p.Count, p.Size.Total()))
			if len(p.Sample) == 0 || len(p.Sample) > int(p.Count) || p.Retained != p.Size {
				t.Errorf("seed %d: %+v", seed, p)
			}
			for _, x := range p.Sample {
				above, ok := g.Dominator(x)
				if g.Class(x) != p.Class || ok == p.Top || ok && above != p.Object {
					t.Errorf("seed %d: %#x is not in the accumulation of %s", seed, g.ID(x), p.Class)
				}
			}
			if p.Held > 0 {
				held++
			}
		}
		want := plainAccumulations(g, o)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("seed %d:\n%q, want\n%q", seed, got, want)
		}
		met += len(got)
	}
	if met < 50 || held < 30 {
		t.Errorf("got %d accumulations, %d of which hold objects; want at least 50 and 30", met, held)
	}
}

func accumulationLine(g *heap.Graph, top bool, o heap.Object, class string, count, bytes int64) string {
	place := "nothing"
	if !top {
		place = fmt.Sprintf("%#x", g.ID(o))
	}
	return fmt.Sprintf("%s: %d x %s, %d bytes", place, count, class, bytes)
}

func plainAccumulations(g *heap.Graph, o heap.AccumulationOptions) (list []string) {
	roots, tops := map[heap.Object]bool{}, []heap.Object{}
	g.Roots(func(_ hprof.Root, x heap.Object) { roots[x] = true })
	g.Tops(func(x heap.Object) {
		if !roots[x] {
			tops = append(tops, x)
		}
	})
	list = plainGroups(g, o, true, 0, tops)
	for x := range heap.Object(g.Objects) {
		ofClasses, below := false, []heap.Object{}
		g.Children(x, func(c heap.Object) {
			ofClasses = ofClasses || g.IsClass(c)
			below = append(below, c)
		})
		if ofClasses {
			list = append(list, plainGroups(g, o, false, x, below)...)
		}
	}
	return list
}

func plainGroups(g *heap.Graph, o heap.AccumulationOptions, top bool, at heap.Object,
	objects []heap.Object) (list []string) {
	by := map[string][]int64{}
	for _, x := range objects {
		if !g.IsClass(x) {
			by[g.Class(x)] = append(by[g.Class(x)], g.Retained(x).Total())
		}
	}
	for class, sizes := range by {
		sum := int64(0)
		for _, n := range sizes {
			sum += n
		}
		if int64(len(sizes)) >= o.Fewest && sum >= max(o.Least, 1) && 2*slices.MaxFunc(sizes, cmp.Compare) <= sum {
			list = append(list, accumulationLine(g, top, at, class, int64(len(sizes)), sum))
		}
	}
	return list
}
