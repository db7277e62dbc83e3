package gate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

// appModel generates runs of one build of an app that leaks in several ways.
type appModel struct {
	random *rand.Rand
	// monkey means that screens are visited at random; a script visits each
	// screen equally often in every loop.
	monkey bool
	// list is the number of list screens that leak per loop, each is the number
	// of bytes that one of them retains, and wish is the number of screens of a
	// new kind that leak per loop.
	list, wish int
	each       int64
}

// times returns how many times something happens in a loop if a script does it
// n times.
func (w *appModel) times(n int) int64 {
	if !w.monkey {
		return int64(n)
	}
	// This is Knuth's method, which suits the small numbers of a loop.
	limit, p, k := math.Exp(-float64(n)), 1.0, int64(0)
	for p *= w.random.Float64(); p > limit; p *= w.random.Float64() {
		k++
	}
	return k
}

// run returns one run with a dump after the first loop and after every third
// loop.
func (w *appModel) run(n, dumps int) Observation {
	var list, bus, wish, flight, cache []int64
	var l, b, s int64
	for d := range dumps {
		for range map[bool]int{true: 1, false: 3}[d == 0] {
			l, b, s = l+w.times(w.list), b+w.times(2), s+w.times(w.wish)
		}
		list, bus, wish = append(list, l), append(bus, b), append(wish, s)
		flight = append(flight, w.random.Int64N(12)) // the app has not settled
		cache = append(cache, min(int64(d+1)*5, 16))
	}
	o := observed(n, leak("list", "ListScreen", 1, list...), leak("bus", "CartScreen", 37*kB, bus...),
		leak("flight", "DelayedScreen", 120*kB, flight...), leak("cache", "Cached", 90*kB, cache...),
		leak("static", "Once", 700*kB, make([]int64, dumps)...))
	p := &o.Processes[0]
	for i := range dumps {
		p.Heap.Exposure[i] = float64(1 + 3*i)
		p.Places[0].Bytes[i] = int64(float64(list[i]) * float64(w.each) * (0.95 + 0.1*w.random.Float64()))
		p.Places[4].Counts[i], p.Places[4].Bytes[i] = 1, int64(700*kB+i*60*kB)
	}
	if w.wish > 0 {
		p.Places = append(p.Places, leak("wish", "WishScreen", 20*kB, wish...))
	}
	if w.monkey {
		o.Unit = UnitEvent
	}
	return o
}

// For an unchanged build, at most 1 in 100 comparisons fails, whatever the
// number of base runs, even if the judged run is one and a half times as long.
// A change that leaks is detected.
func TestPower(t *testing.T) {
	const comparisons = 1000
	same := appModel{list: 3, each: 124 * kB}
	for _, c := range []struct {
		name        string
		monkey      bool
		head        appModel
		base, dumps int
		least, most int // bounds of the number of comparisons that fail
		status      comparison.Status
		key         string
		longer      int
	}{
		{name: "unchanged, 1 base run", head: same, base: 1, dumps: 4, most: 10},
		{name: "unchanged, 3 base runs", head: same, base: 3, dumps: 4, most: 10},
		{name: "unchanged, 10 base runs", head: same, base: 10, dumps: 4, most: 10},
		{name: "unchanged, longer", head: same, base: 3, dumps: 4, longer: 2, most: 10},
		{name: "unchanged, monkey, 1 base run", monkey: true, head: same, base: 1, dumps: 4, most: 10},
		{name: "unchanged, monkey, 3 base runs", monkey: true, head: same, base: 3, dumps: 4, most: 10},
		{name: "unchanged, monkey, 10 base runs", monkey: true, head: same, base: 10, dumps: 4, most: 10},
		{name: "unchanged, monkey, longer", monkey: true, head: same, base: 3, dumps: 4, longer: 2, most: 10},
		{
			name: "a new leak", head: appModel{list: 3, each: 124 * kB, wish: 1}, base: 1, dumps: 3, least: 1000,
			most: 1000, status: comparison.New, key: "wish",
		},
		{
			name: "one more per loop", head: appModel{list: 4, each: 124 * kB}, base: 3, dumps: 4, least: 1000,
			most: 1000, status: comparison.Grown, key: "list",
		},
		{
			name: "3 MB heavier", head: appModel{list: 3, each: 228 * kB}, base: 3, dumps: 4, least: 1000, most: 1000,
			status: comparison.Heavier, key: "list",
		},
		{
			name: "a new leak, monkey", monkey: true, head: appModel{list: 3, each: 124 * kB, wish: 1}, base: 3,
			dumps: 4, least: 800, most: 1000, status: comparison.New, key: "wish",
		},
		{
			name: "three times as many, monkey", monkey: true, head: appModel{list: 9, each: 124 * kB}, base: 3,
			dumps: 4, least: 950, most: 1000, status: comparison.Grown, key: "list",
		},
		{
			name: "3 MB heavier, monkey", monkey: true, head: appModel{list: 3, each: 228 * kB}, base: 3, dumps: 4,
			least: 950, most: 1000, status: comparison.Heavier, key: "list",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(len(c.name))))
			base, head := same, c.head
			base.random, base.monkey, head.random, head.monkey = random, c.monkey, random, c.monkey
			failed, found := 0, 0
			for range comparisons {
				var runs []Observation
				for i := range c.base {
					runs = append(runs, base.run(i, c.dumps))
				}
				got := judge(runs, head.run(50, c.dumps+c.longer))
				if got.Verdict == comparison.Fail {
					failed++
				}
				for _, r := range got.Leaks {
					if r.Key == c.key && r.Status == c.status && r.Fails {
						found++
					}
				}
			}
			if failed > c.most || found < c.least {
				t.Errorf("%d of %d comparisons fail, want at most %d; %d leaks found, want at least %d", failed,
					comparisons, c.most, found, c.least)
			}
			t.Logf("%d of %d fail, %d found", failed, comparisons, found)
		})
	}
}
