package heap_test

import (
	"context"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// TestGroupCostsByBruteForce compares the costs of random groups with the bytes
// that become unreachable when the objects of a group are removed: a cost must
// never be higher, and must be exact in at least half of the cases.
func TestGroupCostsByBruteForce(t *testing.T) {
	exact, all, graphs := 0, 0, uint64(2000)
	if racing {
		graphs /= 10
	}
	for seed := range graphs {
		d, w := randomWorld(seed, 1+int(seed%90))
		w.model = []heap.SizeModel{heap.Ahat, heap.Leakgate}[seed%2]
		g, err := open(w.write(t, d.form()).dump, heap.Options{Inbound: true, Model: w.model})
		if err != nil {
			t.Fatal(err)
		}
		a := w.read()
		count := 1 + d.IntN(12)
		of := map[heap.Object]uint32{}
		groups := make([]map[int]bool, count+1)
		for i := range groups {
			groups[i] = map[int]bool{}
		}
		for i, o := range a.objects {
			n, _ := g.Find(o.id)
			of[n] = uint32(d.IntN(count + 1))
			groups[of[n]][i] = true
		}
		costs, err := g.GroupCosts(context.Background(),
			heap.Groups{Of: func(o heap.Object) uint32 { return of[o] }, Count: count})
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i <= count; i++ {
			want, _ := a.sum(a.without(func(n int) bool { return groups[i][n] }))
			if got := costs.Bytes[i]; got > want.Java+want.Native {
				t.Fatalf("seed %d: group %d of %d costs %d, but only %v becomes unreachable without it", seed, i, count,
					got, want)
			}
			all++
			if costs.Bytes[i] == want.Java+want.Native {
				exact++
			}
		}
		g.Close()
	}
	if 2*exact < all {
		t.Errorf("only %d of %d costs are exact, want at least half", exact, all)
	}
}
