package gatecalibrate

import (
	"math"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/harness/gate"
)

// A calibration has 300 pairs of one build and 40 pairs of each change, and
// every pair has a different head.
func TestPlan(t *testing.T) {
	var p plan
	for _, c := range cells() {
		p.add(c, sizeOf(c))
	}
	heads, programs := map[*trial]bool{}, map[string]int{}
	seeds := map[uint64]bool{}
	for _, r := range p.trials {
		seeds[r.seed] = true
		if r.change == nothing {
			programs[r.program]++
		}
	}
	same := map[int]int{}
	differ := map[change]map[bool]int{newLeak: {}, oneMore: {}, tripled: {}, heavier: {}}
	for _, x := range p.pairs {
		in := map[*trial]bool{}
		for _, b := range x.base {
			in[b] = true
			if b == x.head || b.cell != x.head.cell || b.change != nothing || b.long {
				t.Errorf("%s compared with %s", x.head.name(), b.name())
			}
		}
		if heads[x.head] || len(in) != len(x.base) {
			t.Errorf("twice: %s", x.name())
		}
		heads[x.head] = true
		if x.head.change == nothing {
			same[len(x.base)]++
		} else {
			differ[x.head.change][x.head.monkey]++
		}
	}
	if len(seeds) != len(p.trials) {
		t.Errorf("%d seeds for %d runs", len(seeds), len(p.trials))
	}
	if n := same[1] + same[3] + same[10]; n != 300 || len(same) != 3 || min(same[1], same[3], same[10]) < 80 {
		t.Errorf("got %d pairs of a build with itself, want 300: %v", n, same)
	}
	for by, n := range differ {
		if n[false] != 40 && by != tripled || n[true] != 40 {
			t.Errorf("%s: got %d pairs with a script and %d with Monkey, want 40 each", builds[by], n[false], n[true])
		}
	}
	if len(programs) != 4 || min(programs[shop], programs[reader], programs[chat], programs[phone]) < 60 {
		t.Errorf("runs of each program: got %v, want at least 60 of each", programs)
	}
}

// TestBars checks that each bar that is missed is reported. A figure equal to
// the bar meets it.
func TestBars(t *testing.T) {
	pairs := func(failed, reported int) (out []*pair) {
		for i := range 300 {
			out = append(out, &pair{head: &trial{}, failed: i < failed})
		}
		for _, by := range []change{newLeak, oneMore, heavier} {
			for i := range 40 {
				out = append(out, &pair{head: &trial{change: by}, reported: i < reported},
					&pair{head: &trial{cell: cell{monkey: true}, change: by}})
			}
		}
		return out
	}
	for _, c := range []struct {
		failed, reported, missed int
	}{{3, 38, 0}, {0, 40, 0}, {4, 38, 1}, {3, 37, 3}, {300, 0, 4}} {
		if got := missed(pairs(c.failed, c.reported)); len(got) != c.missed {
			t.Errorf("%d failed, %d reported: %q", c.failed, c.reported, got)
		}
	}
	if got := missed(nil); len(got) != 4 {
		t.Errorf("without pairs: %q", got)
	}
}

// If the true rate is the upper bound, the probability of so few hits is 5 %,
// computed here by the recurrence of the binomial distribution. For no hits the
// bound is 1 - 0.05^(1/n).
func TestUpper(t *testing.T) {
	for _, c := range []struct{ hits, of int }{{0, 1}, {0, 300}, {1, 40}, {3, 300}, {39, 40}, {150, 300}} {
		p := upper(c.hits, c.of)
		term := math.Pow(1-p, float64(c.of))
		all := term
		for k := range c.hits {
			term *= float64(c.of-k) / float64(k+1) * p / (1 - p)
			all += term
		}
		if math.Abs(all-0.05) > 1e-6 || c.hits == 0 && math.Abs(p-1+math.Pow(0.05, 1/float64(c.of))) > 1e-9 {
			t.Errorf("%d of %d: at the bound %v, so few hits have probability %v, want 0.05", c.hits, c.of, p, all)
		}
	}
}

// The rejected rule compares a leak with the median of the base runs, and
// allows the largest of its three limits.
func TestRejects(t *testing.T) {
	const kB = 1 << 10
	run := func(bytes ...int64) gate.Observation {
		o := gate.Observed{}
		for i, n := range bytes {
			o.Places = append(o.Places,
				gate.Place{Type: gate.TypeLeak, Key: strings.Repeat("k", i+1), Bytes: []int64{0, n}})
		}
		return gate.Observation{Processes: []gate.Observed{o}}
	}
	for _, c := range []struct {
		base []int64
		head []int64
		want bool
	}{
		{[]int64{kB}, []int64{513 * kB}, false},
		{[]int64{kB}, []int64{514 * kB}, true},
		{[]int64{10_000 * kB}, []int64{11_000 * kB}, false},
		{[]int64{10_000 * kB}, []int64{11_001 * kB}, true},
		{[]int64{1000 * kB, 2000 * kB, 3000 * kB}, []int64{5500 * kB}, false},
		{[]int64{1000 * kB, 2000 * kB, 3000 * kB}, []int64{5501 * kB}, true},
		{[]int64{1000 * kB, 3000 * kB}, []int64{5501 * kB}, true},
		{[]int64{kB}, []int64{kB, 1024 * kB}, false},
		{[]int64{kB}, []int64{kB, 1025 * kB}, true},
	} {
		var base []gate.Observation
		for _, n := range c.base {
			base = append(base, run(n))
		}
		if got := rejects(base, run(c.head...)); got != c.want {
			t.Errorf("%v after %v: %t", c.head, c.base, got)
		}
	}
}

func TestReplace(t *testing.T) {
	const page = "a\n<!-- gatecalibrate:x -->\nold\n<!-- /gatecalibrate:x -->\nb\n"
	got, err := replace([]byte(page), "x", "new\n")
	if want := strings.Replace(page, "old", "new", 1); err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, broken := range []string{
		"", "<!-- gatecalibrate:x -->\n", "<!-- /gatecalibrate:x -->\n<!-- gatecalibrate:x -->\n", page + page,
	} {
		if _, err := replace([]byte(broken), "x", ""); err == nil {
			t.Errorf("%q: no error", broken)
		}
	}
}
