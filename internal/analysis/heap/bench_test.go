package heap_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// mixture returns a dump of n objects in the proportions typical of an app:
// strings with their bytes, nodes with three references to nearby or arbitrary
// objects, arrays of ten elements, and boxes. Every thousandth object is a
// root.
func mixture(tb testing.TB, n int) []byte {
	tb.Helper()
	dice := rand.New(rand.NewPCG(1, 4))
	w := newScribe(4)
	for k, name := range []string{"Box", "String", "Node2", "Node3"} {
		w.class(hprof.ID(0x100+16*k), name, uint32(16+4*k), k)
	}
	w.class(0x200, "Object[]", 0, 0)
	at := func(i int) hprof.ID { return hprof.ID(0x12c00000 + 24*i) }
	near := func(i int) hprof.ID {
		if dice.IntN(8) == 0 {
			return at(dice.IntN(n))
		}
		return at(min(i+1+dice.IntN(30), n-1))
	}
	text := make([]byte, 24)
	ids := make([]hprof.ID, 10)
	for i := 0; i < n; i++ {
		if i%1000 == 0 {
			w.Root(hprof.Root{Kind: hprof.SubRootVMInternal, Object: at(i)})
		}
		switch k := dice.IntN(20); {
		case k < 7 && i+1 < n:
			w.instance(at(i), 0x110, at(i+1))
			i++
			w.PrimitiveArray(at(i), 0, hprof.Byte, text[:dice.IntN(24)])
		case k < 15:
			w.instance(at(i), 0x130, near(i), near(i), near(i))
		case k < 16:
			for j := range ids {
				ids[j] = near(i)
			}
			w.ObjectArray(at(i), 0, 0x200, ids)
		default:
			w.instance(at(i), 0x100)
		}
	}
	return w.dump(tb)
}

// BenchmarkLoad loads a million objects in the proportions of an app, in
// segments of 4 kB like those of ART. Limits on two cores: at least 4 million
// objects per second, at most 12 bytes per object after loading (measured: 6
// million, 9 bytes).
func BenchmarkLoad(b *testing.B) {
	const objects = 1_000_000
	dump := mixture(b, objects)
	b.SetBytes(int64(len(dump)))
	b.ReportAllocs()
	held := int64(0)
	for b.Loop() {
		g, err := open(dump, heap.Options{})
		if err != nil {
			b.Fatal(err)
		}
		held = heap.Held(g)
		g.Close()
	}
	b.ReportMetric(objects*float64(b.N)/b.Elapsed().Seconds(), "objects/s")
	b.ReportMetric(float64(held)/objects, "held-B/object")
}

// BenchmarkDominators loads graphs that are hard for dominator algorithms, and
// reports the time of the dominator phase separately. Limits on two cores: 600
// ns per object, including 150 ns for dominators (measured: 180 to 480,
// including 20 to 80). For the random graph, the limits are 1500 ns per object,
// including 400 ns for dominators (measured: 1100, including 300).
func BenchmarkDominators(b *testing.B) {
	all := shapes()
	all["random"] = *tangle(4, 200_000)
	for _, name := range []string{"list", "scattered list", "two lists", "diamonds", "binary tree", "random"} {
		b.Run(name, func(b *testing.B) {
			s := all[name]
			dump := s.dump(b)
			var began, spent time.Duration
			start := time.Now()
			for b.Loop() {
				g, err := open(dump, heap.Options{Phase: func(name string) {
					now := time.Since(start)
					if name == "dominators" {
						began = now
					}
					if name == "sizes" {
						spent += now - began
					}
				}})
				if err != nil {
					b.Fatal(err)
				}
				g.Close()
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N*s.n), "ns/object")
			b.ReportMetric(float64(spent)/float64(b.N*s.n), "dominators-ns/object")
		})
	}
}
