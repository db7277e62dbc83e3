package heap

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// listed holds addresses as they occur in one chunk of a file.
type listed []uint64

func (l listed) each(f func(uint64)) {
	for _, id := range l {
		f(id)
	}
}

// numbered assigns numbers to the given addresses, which may occur more than
// once.
func numbered(tb testing.TB, workers int, all []uint64) (*ids, *arena) {
	tb.Helper()
	var s spread
	var lists []listed
	for part := range slices.Chunk(all, max(1, len(all)/7)) {
		var p spread
		for _, id := range part {
			p.add(id)
		}
		s.merge(p)
		lists = append(lists, part)
	}
	a := &arena{}
	tb.Cleanup(a.close)
	x, err := newIDs(a, workers, s, lists)
	if err != nil {
		tb.Fatal(err)
	}
	return x, a
}

// places returns sets of addresses as different runtimes allocate them, and
// some unrealistic sets.
func places(dice *rand.Rand) map[string][]uint64 {
	run := func(n int, base, step uint64, most int) (list []uint64) {
		for range n {
			list = append(list, base)
			base += step * uint64(1+dice.IntN(most))
		}
		return list
	}
	n := 1 + dice.IntN(2000)
	art := run(n, 0x12c00000, 8, 6)
	for i := range art {
		if dice.IntN(20) == 0 {
			art[i] |= 1
		}
	}
	several := slices.Concat(run(n, 0x12c00000, 8, 6), run(n/2, 0x70000000, 8, 3), run(10, 0x7f0012345678, 8, 1000),
		run(n, 0x7f8812345670, 16, 3))
	wild := make([]uint64, n)
	for i := range wild {
		wild[i] = dice.Uint64()
	}
	return map[string][]uint64{
		"none":                 nil,
		"zero":                 {0},
		"one":                  {dice.Uint64()},
		"ends":                 {0, math.MaxUint64},
		"last":                 run(n, math.MaxUint64-1<<20, 8, 2),
		"8-byte alignment":     run(n, 0x70000000, 8, 6),
		"4-byte alignment":     run(n, 0x70000004, 4, 6),
		"2-byte alignment":     run(n, 0x70000002, 2, 6),
		"no alignment":         run(n, 0x70000001, 1, 6),
		"from 1":               run(n, 1, 1, 1),
		"odd class addresses":  art,
		"several":              several,
		"far":                  run(n, 0x10000, 1<<19, 2),
		"one address per 4 MB": run(n, 1<<40, 1<<22, 1),
		"wild":                 wild,
		"two distant ranges":   slices.Concat(run(n, 8, 8, 1), run(n, 1<<63, 8, 1)),
		"mixed":                slices.Concat(run(n, 8, 8, 4), run(n, 9, 8, 4), run(n, 0x1000003, 3, 4)),
	}
}

// TestIDs compares the results of find and id with those of a map, for all
// kinds of addresses.
func TestIDs(t *testing.T) {
	for seed := range uint64(12) {
		dice := rand.New(rand.NewPCG(seed, 5))
		for name, list := range places(dice) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) { checkIDs(t, dice, list) })
		}
	}
}

func checkIDs(t *testing.T, dice *rand.Rand, list []uint64) {
	dice.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for range len(list) / 10 {
		list = append(list, list[dice.IntN(len(list))])
	}
	x, _ := numbered(t, 1+dice.IntN(3), list)
	members := map[uint64]bool{}
	for _, id := range list {
		members[id] = true
	}
	if x.len() != int64(len(members)) {
		t.Fatalf("got %d numbers for %d addresses", x.len(), len(members))
	}
	used := make([]bool, len(members))
	for id := range members {
		n := x.find(hprof.ID(id))
		if n == none || int(n) >= len(used) || used[n] || x.id(n) != hprof.ID(id) {
			t.Fatalf("find(%#x) = %d of %d, which is the number of %#x", id, n, len(used), x.id(n))
		}
		used[n] = true
		for _, other := range []uint64{
			id - 8, id - 1, id + 1, id + 2, id + 4, id + 8, id ^ 1<<40, id ^ 1<<63, id ^ 1<<20, dice.Uint64(),
			uint64(dice.Uint32()),
		} {
			if got := x.find(hprof.ID(other)); (got != none) != members[other] {
				t.Fatalf("find(%#x) = %d, want a number: %t", other, got, members[other])
			}
		}
	}
	for _, other := range []uint64{0, 1, 7, 8, math.MaxUint32, math.MaxUint64, math.MaxUint64 - 7} {
		if got := x.find(hprof.ID(other)); (got != none) != members[other] {
			t.Fatalf("find(%#x) = %d, want a number: %t", other, got, members[other])
		}
	}
	ascend(t, x)
}

// ascend checks that objects at multiples of a unit are numbered by address,
// and that all other objects follow in the order of their addresses.
func ascend(t *testing.T, x *ids) {
	t.Helper()
	for n := uint32(1); int64(n) < x.len(); n++ {
		if x.id(n) <= x.id(n-1) && n != x.dense {
			t.Fatalf("number %d is %#x, but number %d is %#x", n-1, x.id(n-1), n, x.id(n))
		}
	}
}

// TestIDsMemory bounds the size of the tables for a hostile set of addresses.
func TestIDsMemory(t *testing.T) {
	for name, step := range map[string]uint64{
		"one address per 512 kB": 1 << 19, "one address per 512 bytes": 1 << 9, "one address per 512 MB": 1 << 29,
	} {
		t.Run(name, func(t *testing.T) {
			const n = 100_000
			list := make([]uint64, n)
			for i := range list {
				list[i] = 0x1000 + step*uint64(i)
			}
			x, a := numbered(t, 1, list)
			// The tables may take 12 MB in any case.
			if all := a.held + 4*int64(len(x.regions)) + 8*int64(len(x.starts)); all > 12<<20+32*n {
				t.Errorf("%d bytes for %d addresses", all, n)
			}
		})
	}
}

// BenchmarkFind looks up 2.5 million addresses of a dense heap in random order.
// Limit per object: 25 ns and 1 byte (measured: 11 ns, 0.7 bytes; a Go map
// takes 120 ns and 30 bytes, a sorted list 290 ns and 8 bytes).
func BenchmarkFind(b *testing.B) {
	dice := rand.New(rand.NewPCG(1, 1))
	list := make([]uint64, 2_500_000)
	at := uint64(0x12c00000)
	for i := range list {
		list[i] = at
		at += 8 * uint64(1+dice.IntN(6))
	}
	x, a := numbered(b, 2, list)
	dice.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if x.find(hprof.ID(list[i])) == none {
			b.Fatal("not found")
		}
		if i++; i == len(list) {
			i = 0
		}
	}
	b.ReportMetric(float64(a.held)/float64(len(list)), "B/object")
}
