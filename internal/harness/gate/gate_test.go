package gate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/harness/check"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/reporters/record"
)

const kB = 1 << 10

var day = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// leak returns a place with objects of one class, each of which retains the
// given number of bytes.
func leak(key, class string, each int64, counts ...int64) Place {
	p := Place{
		Type: TypeLeak, Key: key,
		Description: Description{Class: class, HeldBy: "Holder." + key, KeyText: []string{"Holder." + key, class}},
		Counts:      counts, Classes: map[string][]int64{class: counts},
	}
	for _, n := range counts {
		p.Bytes = append(p.Bytes, n*each)
	}
	return p
}

// withClass adds a class to a place; each object of the class retains the given
// number of bytes.
func withClass(p Place, class string, each int64, counts ...int64) Place {
	p.Classes = map[string][]int64{p.Class: p.Counts, class: counts}
	total := slices.Clone(p.Counts)
	p.Bytes = slices.Clone(p.Bytes)
	for i, n := range counts {
		total[i] += n
		p.Bytes[i] += n * each
	}
	p.Counts = total
	return p
}

// observed returns a run that took a dump after each loop.
func observed(n int, places ...Place) Observation {
	dumps := 4
	if len(places) > 0 {
		dumps = len(places[0].Counts)
	}
	s := Timeline{Settled: true}
	for i := range dumps {
		s.Exposure = append(s.Exposure, float64(i+1))
	}
	return Observation{
		Subject: Testbed{App: "com.shop", Workload: "w", Model: "Pixel", API: 34, ABI: "x86_64"},
		Commit:  fmt.Sprintf("%07x", 0xabc000+n), Branch: "main",
		Started: day.AddDate(0, 0, n), Unit: UnitLoop,
		Processes: []Observed{{Process: "com.shop", Heap: s, Places: places, Names: "source", Gate: "inconclusive"}},
	}
}

func runs(n int, places ...Place) (out []Observation) {
	for i := range n {
		out = append(out, observed(i, places...))
	}
	return out
}

func judge(base []Observation, head Observation, more ...func(*Input)) *comparison.Comparison {
	in := Input{
		Heads: []Observation{head}, Configured: true, Base: base, Match: MatchAll(), Rules: DefaultRules(), Now: day,
	}
	for _, m := range more {
		m(&in)
	}
	return Compare(in)
}

// rowOf returns the row with the given key.
func rowOf(t *testing.T, c *comparison.Comparison, key string) comparison.Row {
	t.Helper()
	for _, r := range c.Leaks {
		if r.Key == key {
			return r
		}
	}
	t.Fatalf("no row %s in %+v", key, c.Leaks)
	return comparison.Row{}
}

// Each case is one leak, with its status and whether it fails the gate.
func TestStatus(t *testing.T) {
	list := leak("k", "ListScreen", 100*kB, 3, 6, 9, 12)
	old := leak("k", "ListScreen", 100*kB, 12)
	monkey := func(o Observation) Observation { o.Unit = UnitEvent; return o }
	lives := func(o Observation) Observation {
		o.Processes[0].Heap.SeparateLives = true
		return o
	}
	failed := func(o Observation) Observation { o.Failed = true; return o }
	with := func(head Place) Observation { return observed(20, head) }
	mixed := []Observation{
		observed(0, list), observed(1, leak("k", "ListScreen", 100*kB, 3, 5, 9, 12)),
		observed(2, leak("k", "ListScreen", 100*kB, 3, 7, 10, 13)),
	}
	falling := []Observation{
		observed(0, leak("k", "ListScreen", 100*kB, 9, 6, 5, 4)),
		observed(1, leak("k", "ListScreen", 100*kB, 5, 5, 6, 6)),
		observed(2, leak("k", "ListScreen", 100*kB, 5, 5, 5, 5)),
	}
	fixed := append(runs(4, list), observed(4), observed(5), observed(6))
	// missing returns n base runs; those with the given numbers do not contain
	// the leak.
	missing := func(n int, without ...int) (out []Observation) {
		for i := range n {
			if slices.Contains(without, i) {
				out = append(out, observed(i))
			} else {
				out = append(out, observed(i, list))
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		base   []Observation
		head   Observation
		status comparison.Status
		fails  bool
	}{
		"unchanged": {runs(3, list), with(list), comparison.Known, false},
		"unchanged, longer run": {
			runs(3, list), with(leak("k", "ListScreen", 100*kB, 3, 6, 9, 12, 15, 18)), comparison.Known, false,
		},
		"unchanged, shorter run": {
			runs(3, list), with(leak("k", "ListScreen", 100*kB, 3, 6, 9)), comparison.Known, false,
		},
		"new and growing at every mark": {runs(3), with(list), comparison.New, true},
		"new, one base run":             {runs(1), with(list), comparison.New, true},
		"new, small, in three dumps":    {runs(3), with(leak("k", "A", 100, 1, 2, 3)), comparison.New, true},
		"in flight": {
			runs(3), with(leak("k", "A", 100*kB, 2, 0, 3, 1)), comparison.Transient, false,
		},
		"one object, small": {
			runs(3), with(leak("k", "A", 100*kB, 1, 1, 1, 1)), comparison.Transient, false,
		},
		"one object of 1 MB": {runs(3), with(leak("k", "A", 1024*kB, 1, 1, 1, 1)), comparison.New, true},
		"1 MB in flight": {
			runs(3), with(leak("k", "A", 1024*kB, 0, 1, 1, 1)), comparison.Transient, false,
		},
		"1 MB in one dump": {runs(3), with(leak("k", "A", 1024*kB, 1)), comparison.Transient, false},
		"new in two dumps": {
			runs(3), with(leak("k", "A", 1024*kB, 1, 2)), comparison.Transient, false,
		},
		"one more per loop": {
			runs(3, list), with(leak("k", "ListScreen", 100*kB, 4, 8, 12, 16)), comparison.Grown, true,
		},
		"one more per loop, two base runs": {
			runs(2, list), with(leak("k", "ListScreen", 100*kB, 4, 8, 12, 16)), comparison.Known, false,
		},
		"many more objects, base runs lost some": {
			falling, with(leak("k", "ListScreen", 100*kB, 4, 104, 204, 304)), comparison.Grown, true,
		},
		"few objects, base runs lost some": {
			falling, with(leak("k", "ListScreen", 100*kB, 4, 5, 6, 6)), comparison.Known, false,
		},
		"one more at the end, in flight": {
			runs(3, list), with(leak("k", "ListScreen", 100*kB, 3, 6, 9, 14)), comparison.Known, false,
		},
		"one more in total": {
			runs(3, list), with(leak("k", "ListScreen", 100*kB, 3, 6, 10, 13)), comparison.Known, false,
		},
		"one more every other loop": {
			runs(3, list), with(leak("k", "ListScreen", 100*kB, 3, 7, 10, 14, 17, 21)), comparison.Grown, true,
		},
		"twice as many but few, random base": {
			mixed, with(leak("k", "ListScreen", 100*kB, 3, 6, 9, 16)), comparison.Known, false,
		},
		"three times as many, random base": {
			mixed, with(leak("k", "ListScreen", 100*kB, 9, 18, 28, 37)), comparison.Grown, true,
		},
		"grown under Monkey": {
			[]Observation{monkey(observed(0, list)), monkey(observed(1, list)), monkey(observed(2, list))},
			monkey(with(leak("k", "ListScreen", 100*kB, 4, 8, 12, 16))), comparison.Known, false,
		},
		"as many as in one base run": {
			append(runs(5, leak("k", "L", 100*kB, 100, 200, 300, 400)),
				observed(6, leak("k", "L", 100*kB, 150, 300, 450, 600))),
			with(leak("k", "L", 100*kB, 150, 300, 450, 600)), comparison.Known, false,
		},
		"3 MB heavier": {
			runs(3, list), with(leak("k", "ListScreen", 350*kB, 3, 6, 9, 12)), comparison.Heavier, true,
		},
		"3 MB heavier, two base runs": {
			runs(2, list), with(leak("k", "ListScreen", 350*kB, 3, 6, 9, 12)), comparison.Known, false,
		},
		"a fifth heavier": {
			runs(3, list), with(leak("k", "ListScreen", 120*kB, 3, 6, 9, 12)), comparison.Known, false,
		},
		"twice as heavy, but small": {
			runs(3, leak("k", "L", kB, 3, 6, 9, 12)), with(leak("k", "L", 2*kB, 3, 6, 9, 12)), comparison.Known, false,
		},
		"another class held by the reference": {
			runs(3, list), with(withClass(list, "WishScreen", 50*kB, 1, 2, 3, 4)), comparison.Wider, true,
		},
		"another class in flight": {
			runs(3, list), with(withClass(list, "WishScreen", 50*kB, 0, 0, 1, 0)), comparison.Known, false,
		},
		"another class, known in one run": {
			append(runs(3, list), observed(4, withClass(list, "WishScreen", 50*kB, 1, 1, 1, 1))),
			with(withClass(list, "WishScreen", 50*kB, 1, 2, 3, 4)), comparison.Grown, true,
		},
		"flat in one base run": {
			runs(1, leak("k", "A", kB, 2, 2, 2, 2)), with(leak("k", "A", kB, 2, 3, 4, 5)), comparison.Grown, true,
		},
		"flat in one, growing in another": {
			append(runs(1, leak("k", "A", kB, 2, 2, 2, 2)), observed(3, leak("k", "A", kB, 2, 3, 4, 5))),
			with(leak("k", "A", kB, 2, 3, 4, 5)), comparison.Known, false,
		},
		"base run with two dumps": {
			[]Observation{observed(0, leak("o", "O", 1, 1, 1))}, with(list), comparison.Present, false,
		},
		"fewer": {
			runs(3, list), with(leak("k", "ListScreen", 100*kB, 1, 2, 3, 4)), comparison.Shrunk, false,
		},
		"gone": {
			runs(3, list), with(leak("other", "X", 10, 1, 1, 1, 1)), comparison.Gone, false,
		},
		"no base runs": {nil, with(list), comparison.Present, false},
		"leaked on main since the latest base run": {
			append(runs(3), failed(observed(5, list))), with(list), comparison.Known, false,
		},
		"leaked on main before the latest base run": {
			append(runs(3), failed(observed(-5, list))), with(list), comparison.New, true,
		},
		"fixed and reintroduced": {fixed, with(list), comparison.New, true},
		"in six of seven runs, fixed and reintroduced": {
			missing(10, 2, 7, 8, 9), with(list), comparison.New, true,
		},
		"in five of seven runs, then in none of three": {
			missing(10, 2, 4, 7, 8, 9), with(list), comparison.Known, false,
		},
		"in three of four runs, then in none of three": {
			missing(7, 2, 4, 5, 6), with(list), comparison.Known, false,
		},
		"in three of four runs, then in none of six": {
			missing(10, 2, 4, 5, 6, 7, 8, 9), with(list), comparison.New, true,
		},
		"in every second run": {missing(10, 1, 3, 5, 7, 9), with(list), comparison.Known, false},
		"rare in the base": {
			[]Observation{observed(0, list), observed(1), observed(2), observed(3)}, with(list), comparison.New, true,
		},
		"rare in the base, seen recently": {
			[]Observation{observed(0), observed(1), observed(2, list), observed(3)}, with(list), comparison.Known,
			false,
		},
		"of a library": {
			runs(3), with(func() Place { l := list; l.Library = true; return l }()), comparison.New, false,
		},
		"in each process lifetime, small": {
			[]Observation{lives(observed(0, leak("o", "O", 1, 1, 1, 1)))}, lives(with(leak("k", "A", 100, 1, 1, 1))),
			comparison.Transient, false,
		},
		"in each process lifetime, large": {
			[]Observation{lives(observed(0, leak("o", "O", 1, 1, 1, 1)))},
			lives(with(leak("k", "A", 2048*kB, 1, 1, 1))), comparison.New, true,
		},
		"one dump per run, unchanged": {runs(3, old), with(old), comparison.Known, false},
		"one dump per run, heavier": {
			runs(3, old), with(leak("k", "ListScreen", 400*kB, 12)), comparison.Heavier, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(c.base, c.head)
			row := rowOf(t, got, "k")
			if row.Status != c.status || row.Fails != c.fails || (got.Verdict == comparison.Fail) != c.fails ||
				(got.ExitCode == 1) != c.fails {
				t.Errorf("%s, fails %v, verdict %s %d: %s; want %s, %v", row.Status, row.Fails, got.Verdict,
					got.ExitCode, row.StatusReason, c.status, c.fails)
			}
			if (len(got.Reasons) > 0) != c.fails {
				t.Errorf("%+v", got.Reasons)
			}
		})
	}
}

// A leak whose objects are held by a different reference than before is the
// same leak, and its growth is still detected.
func TestMovedLeak(t *testing.T) {
	before := leak("list", "CartScreen", 100*kB, 2, 4, 6, 8)
	after := leak("map", "CartScreen", 100*kB, 2, 4, 6, 8)
	got := rowOf(t, judge(runs(3, before), observed(9, after)), "map")
	if got.Status != comparison.Moved || got.MovedFrom != "list" || got.Fails || *got.PerLoop.Base != 2 {
		t.Errorf("%+v", got)
	}
	c := judge(runs(3, before), observed(9, leak("map", "CartScreen", 100*kB, 3, 5, 8, 10)))
	if row := rowOf(t, c, "map"); row.Status != comparison.Moved && row.Status != comparison.Grown {
		t.Errorf("%+v", row)
	}
	heavy := judge(runs(3, before), observed(9, leak("map", "CartScreen", 900*kB, 2, 4, 6, 8)))
	if row := rowOf(t, heavy, "map"); row.Status != comparison.Heavier || row.MovedFrom != "list" || !row.Fails {
		t.Errorf("%+v", row)
	}
	// If the objects are held by a different reference than before, and the
	// base has never loaded their class, the report shows the old and the new
	// leak.
	renamed := leak("map", "BasketScreen", 100*kB, 2, 4, 6, 8)
	renamed.KeyText = []string{"Holder.list", "BasketScreen"}
	if row := rowOf(t, judge(runs(3, before), observed(9, renamed)), "map"); row.Status != comparison.Moved ||
		row.MovedClass != "CartScreen" {
		t.Errorf("%+v", row)
	}
	for _, r := range judge(runs(3, before), observed(9, after)).Leaks {
		if r.Status == comparison.Gone {
			t.Errorf("moved leak is also reported as gone: %+v", r)
		}
	}
}

// In an app in use, different references may hold the same objects within one
// run, which is not growth. In dumps of an idle app, the same numbers mean
// growth.
func TestShifted(t *testing.T) {
	in := func(n int, settled bool, a, b []int64) Observation {
		o := observed(n, leak("a", "Draft", kB, a...), leak("b", "Draft", kB, b...))
		o.Processes[0].Heap.Settled = settled
		return o
	}
	for _, c := range []struct {
		settled bool
		a       []int64
		status  comparison.Status
	}{
		{false, []int64{20, 40, 60, 60, 60, 60}, comparison.Known},
		{false, []int64{20, 40, 60, 80, 100, 120}, comparison.Grown},
		{true, []int64{20, 40, 60, 60, 60, 60}, comparison.Grown},
	} {
		var base []Observation
		for n := range int64(3) {
			base = append(base, in(int(n), c.settled, []int64{20, 40, 60, 80, 100, 120}, []int64{0, 0, 0, n, 0, 0}))
		}
		head := in(9, c.settled, c.a, []int64{0, 10, 20, 30, 40, 60})
		if row := rowOf(t, judge(base, head), "b"); row.Status != c.status {
			t.Errorf("%v settled %v: %s, %s", c.a, c.settled, row.Status, row.StatusReason)
		}
	}
}

func TestVerdicts(t *testing.T) {
	list := leak("k", "ListScreen", 100*kB, 3, 6, 9, 12)
	bad := leak("bad", "WishScreen", 100*kB, 1, 2, 3, 4)
	head := observed(20, list, bad)
	few := observed(20, leak("k", "ListScreen", 100*kB, 3, 6))
	accepted := check.Exception{Key: "badbadbad", Reason: "SHOP-1", Owner: "kim", Until: day.AddDate(0, 0, 1)}
	long := leak("badbadbad0", "WishScreen", 100*kB, 1, 2, 3, 4)
	accept := func(e check.Exception) func(*Input) { return func(in *Input) { in.Accepted = append(in.Accepted, e) } }
	expired := accepted
	expired.Until = day.AddDate(0, 0, -1)
	for name, c := range map[string]struct {
		base    []Observation
		head    Observation
		more    func(*Input)
		verdict comparison.Result
		exit    int
		text    string
	}{
		"a new leak": {runs(3, list), head, nil, comparison.Fail, 1, "1 new leak"},
		"unchanged": {
			runs(3, list, bad), head, nil, comparison.Pass, 0,
			"nothing is worse than in 3 base runs; 2 leaks are known",
		},
		"informational": {
			runs(3, list), head, func(in *Input) { in.Informational = true }, comparison.Neutral, 0,
			"1 new leak; the rules are informational",
		},
		"no base run yet": {
			nil, head, nil, comparison.Neutral, 0,
			"there is no base run to compare with yet; 2 leaks grow in this run and do not count against it",
		},
		"no baseline at all": {nil, head, func(in *Input) { in.Configured = false }, comparison.Fail, 1, "2 leaks"},
		"no leaks, no baseline": {
			nil, observed(20, leak("k", "A", 10, 1, 1, 1)), func(in *Input) { in.Configured = false },
			comparison.Pass, 0, "no leak grows"},
		"too few dumps": {
			runs(3, list), few, nil, comparison.Neutral, 5,
			"nothing could be judged: com.shop: 2 heap dumps, and a verdict needs 3",
		},
		"too few dumps, allowed": {
			runs(3, list), few, func(in *Input) { in.AllowUnjudged = true }, comparison.Neutral, 0,
			"nothing could be judged",
		},
		"a dump is missing": {
			runs(3, list, bad), head, func(in *Input) { in.Missing = []string{"com.shop: no dump at loop 3"} },
			comparison.Neutral, 5, "evidence is missing: com.shop: no dump at loop 3",
		},
		"missing dump and new leak": {
			runs(3, list), head, func(in *Input) { in.Missing = []string{"x"} }, comparison.Fail, 1, "1 new leak",
		},
		"the workload failed": {
			runs(3, list, bad), head, func(in *Input) { in.RunExit = record.ExitWorkload }, comparison.Neutral, 4,
			"the workload failed",
		},
		"failed workload and new leak": {
			runs(3, list), head, func(in *Input) { in.RunExit = record.ExitWorkload }, comparison.Fail, 1, "1 new leak",
		},
		"interrupted": {
			runs(3, list, bad), head, func(in *Input) { in.RunExit = record.ExitInterrupted }, comparison.Neutral, 130,
			"interrupted",
		},
		"leak verdict of the run itself": {
			runs(3, list, bad), head, func(in *Input) { in.RunExit = record.ExitLeak }, comparison.Pass, 0,
			"nothing is worse",
		},
		"accepted": {
			runs(3, list), observed(20, list, long), accept(accepted), comparison.Pass, 0, "nothing is worse",
		},
		"accepted and expired": {
			runs(3, list, bad), head, accept(expired), comparison.Fail, 1, "1 expired acceptance",
		},
		"accepted under another key": {runs(3, list), head, accept(accepted), comparison.Fail, 1, "1 new leak"},
		"obfuscated": {
			runs(3, list),
			func() Observation { o := observed(20, list, bad); o.Processes[0].Names = "obfuscated"; return o }(), nil,
			comparison.Neutral, 0, "names are obfuscated"},
		"another workload": {
			other("w2"), head, nil, comparison.Neutral, 0,
			"none of 3 base runs can be compared with this run: different workload; 2 leaks grow",
		},
		"another workload, strict": {
			other("w2"), head, func(in *Input) { in.Strict = true }, comparison.Neutral, 5, "different workload",
		},
		"a process without dumps": {runs(3, list, bad), func() Observation {
			o := observed(20, list, bad)
			o.Processes = append(o.Processes, Observed{Process: "com.shop:push"})
			return o
		}(), nil, comparison.Pass, 0,
			"nothing is worse than in 3 base runs; 2 leaks are known; 1 process could not be judged"},
	} {
		t.Run(name, func(t *testing.T) {
			var more []func(*Input)
			if c.more != nil {
				more = append(more, c.more)
			}
			got := judge(c.base, c.head, more...)
			if got.Verdict != c.verdict || got.ExitCode != c.exit || !strings.Contains(got.Text, c.text) {
				t.Errorf("%s %d %q %+v; want %s %d %q", got.Verdict, got.ExitCode, got.Text, got.Reasons, c.verdict,
					c.exit, c.text)
			}
		})
	}
}

// other returns base runs with another workload.
func other(workload string) []Observation {
	out := runs(3)
	for i := range out {
		out[i].Subject.Workload = workload
	}
	return out
}

// A leak in a process that is not in any base run counts against the run if
// there are enough base runs.
func TestNewProcess(t *testing.T) {
	head := observed(20)
	head.Processes = append(head.Processes,
		Observed{
			Process: "com.shop:new", Names: "source", Heap: head.Processes[0].Heap,
			Places: []Place{leak("k", "A", kB, 1, 2, 3, 4)},
		})
	for n, want := range map[int]comparison.Status{
		0: comparison.Present, 1: comparison.Present, 2: comparison.Present, 3: comparison.New,
	} {
		c := judge(runs(n), head)
		if row := rowOf(t, c, "k"); row.Status != want || row.Fails != (want == comparison.New) {
			t.Errorf("%d base runs: %s %v, %s", n, row.Status, row.Fails, c.Text)
		}
	}
}

// A new class held by an accepted reference counts as another leak.
func TestAcceptedAndWider(t *testing.T) {
	list := leak("list12345", "ListScreen", 100*kB, 3, 6, 9, 12)
	wider := withClass(list, "WishScreen", 50*kB, 1, 2, 3, 4)
	accept := func(in *Input) {
		in.Accepted = []check.Exception{{Key: "list12345", Reason: "r", Owner: "o", Until: day}}
	}
	if row := rowOf(t, judge(runs(3, list), observed(9, list), accept),
		"list12345"); row.Status != comparison.Accepted || row.Accepted.Owner != "o" {
		t.Errorf("%+v", row)
	}
	if row := rowOf(t, judge(runs(3, list), observed(9, wider), accept), "list12345"); row.Status != comparison.Wider ||
		!row.Fails {
		t.Errorf("%+v", row)
	}
}

func trending(o Observation, gate string, rate float64) Observation {
	p := &o.Processes[0]
	p.Trend, p.Gate, p.Reason = &TrendVerdict{
		Gate: gate, Kind: "native_leak", Rate: new(rate), Lower: new(rate * 0.9), Upper: new(rate * 1.1),
	}, gate, "grew"
	return o
}

func TestTrends(t *testing.T) {
	of := func(gate string, rate float64) []Observation {
		return []Observation{
			trending(observed(0), gate, rate), trending(observed(1), gate, rate), trending(observed(2), gate, rate),
		}
	}
	for name, c := range map[string]struct {
		base  []Observation
		head  Observation
		fails bool
	}{
		"leaks, base does not leak":       {of("pass", 1), trending(observed(9), "leak", 40), true},
		"leaks as much as the base":       {of("leak", 40), trending(observed(9), "leak", 40), false},
		"leaks twice as much as the base": {of("leak", 40), trending(observed(9), "leak", 90), true},
		"leaks, base undecided":           {of("inconclusive", 1), trending(observed(9), "leak", 40), false},
		"no base runs":                    {nil, trending(observed(9), "leak", 40), false},
		"inconclusive":                    {of("pass", 1), trending(observed(9), "inconclusive", 40), false},
		"settled":                         {of("pass", 1), trending(observed(9), "settled", 40), false},
	} {
		got := judge(c.base, c.head)
		if (got.Verdict == comparison.Fail) != c.fails || (len(got.Reasons) == 1) != c.fails {
			t.Errorf("%s: %s %+v", name, got.Verdict, got.Reasons)
		}
	}
	first := judge(nil, trending(observed(9), "leak", 40))
	if first.Verdict != comparison.Neutral ||
		!strings.Contains(first.Text, "the memory of 1 process grows in this run") {
		t.Errorf("without base runs: %s: %s", first.Verdict, first.Text)
	}
	bare := judge(nil, trending(observed(9), "leak", 40), func(in *Input) { in.Configured = false })
	if bare.ExitCode != 1 {
		t.Errorf("without a baseline: %+v", bare)
	}
}

// tripped returns a run of a trip in which native memory grows by the given
// number of kB per loop; 0 means no growth.
func tripped(n int, rate float64) Observation {
	o := observed(n)
	o.Processes[0].Heap = Timeline{}
	o.Processes[0].Measures = []Measure{
		{
			Key: "native_heap", Name: "native heap", Unit: "kB", PerLoop: new(rate), Lower: new(rate * 0.9),
			Upper: new(rate * 1.1), Grows: rate > 0,
		},
	}
	return o
}

// Growth that a trip has proved is compared with earlier trips.
func TestMeasures(t *testing.T) {
	elsewhere := []Observation{tripped(0, 0), tripped(1, 0), tripped(2, 0)}
	for i := range elsewhere {
		elsewhere[i].Processes[0].Process = "com.shop:push"
	}
	for name, c := range map[string]struct {
		base    []Observation
		head    Observation
		status  comparison.Status
		verdict comparison.Result
	}{
		"new":   {[]Observation{tripped(0, 0)}, tripped(9, 200), comparison.New, comparison.Fail},
		"known": {[]Observation{tripped(0, 200)}, tripped(9, 210), comparison.Known, comparison.Pass},
		"twice as much": {
			[]Observation{tripped(0, 200), tripped(1, 210), tripped(2, 190)}, tripped(9, 400), comparison.Grown,
			comparison.Fail,
		},
		"no base runs":        {nil, tripped(9, 400), comparison.Present, comparison.Neutral},
		"no trip in the base": {runs(3), tripped(9, 400), comparison.Present, comparison.Neutral},
		"new process":         {elsewhere, tripped(9, 400), comparison.New, comparison.Fail},
	} {
		got := judge(c.base, c.head)
		if row := rowOf(t, got, "native_heap"); row.Status != c.status || got.Verdict != c.verdict ||
			got.ExitCode != map[bool]int{true: 1}[c.verdict == comparison.Fail] {
			t.Errorf("%s: %s %s %d: %s", name, row.Status, got.Verdict, got.ExitCode, row.Evidence)
		}
	}
	if got := judge([]Observation{tripped(0, 0)}, tripped(9, 0)); got.Verdict != comparison.Pass ||
		len(got.Leaks) != 0 {
		t.Errorf("result without growth: %+v", got)
	}
	if got := judge(nil, tripped(9, 200), func(in *Input) { in.Configured = false }); got.ExitCode != 1 {
		t.Errorf("without a baseline: %+v", got)
	}
}

func dying(o Observation, reason string, n int) Observation {
	o.Processes[0].Deaths = map[string]int{reason: n}
	return o
}

func TestRulesOfProcesses(t *testing.T) {
	for _, c := range []struct {
		path, rule string
		base       []Observation
		head       Observation
		fails      bool
	}{
		{RuleDeaths, "memory == 0", runs(3), dying(observed(9), "low_memory", 2), true},
		{RuleDeaths, "memory == 0", runs(3), dying(observed(9), "crash", 2), false},
		{RuleDeaths, "memory == 0", runs(3), dying(observed(9), "out_of_memory", 2), true},
		{RuleDeaths, "memory == 0", runs(3), dying(observed(9), "memory_limiter", 2), true},
		{RuleDeaths, "memory == 0", runs(3), dying(observed(9), "anomaly", 2), true},
		{RuleDeaths, "crash == 0", runs(3), dying(observed(9), "out_of_memory", 2), true},
		{RuleDeaths, "crash == 0", runs(3), dying(observed(9), "memory_limiter", 2), false},
		{RuleDeaths, "kill == 0", runs(3), dying(observed(9), "memory_limiter", 2), false},
		{RuleDeaths, "native_crash == 0", runs(3), dying(observed(9), "out_of_memory", 2), false},
		{RuleDeaths, "anr == 0", runs(3), dying(observed(9), SurvivedANR, 2), true},
		{RuleDeaths, "any == 0", runs(3), dying(observed(9), SurvivedANR, 2), false},
		{RuleDeaths, "crash <= 1", runs(3), dying(observed(9), "crash", 2), true},
		{RuleDeaths, "any == 0", runs(3), dying(observed(9), "anr", 1), true},
		{
			RuleDeaths, "crash == 0", []Observation{dying(observed(0), "crash", 2)}, dying(observed(9), "crash", 2),
			false,
		},
		{RuleDeaths, "crash == 0", nil, dying(observed(9), "crash", 2), false},
		{RuleSlope, "lower95 < 20", runs(3), trending(observed(9), "pass", 40), true},
		{RuleSlope, "lower95 < 20 MB/h", runs(3), trending(observed(9), "pass", 21), false},
		{RuleSlope, "lower95 < 20", runs(3), observed(9), false},
		{RuleGate, "== pass", runs(3), trending(observed(9), "settled", 21), true},
		{
			RuleGate, "!= settled", []Observation{trending(observed(0), "settled", 1)},
			trending(observed(9), "settled", 21), false,
		},
		{
			RulePerLoop, "bytes < 50KB", runs(3, leak("k", "A", 100*kB, 1, 2, 3, 4)),
			observed(9, leak("k", "A", 100*kB, 1, 2, 3, 4)), true,
		},
		{
			RulePerLoop, "bytes < 200KB", runs(3, leak("k", "A", 100*kB, 1, 2, 3, 4)),
			observed(9, leak("k", "A", 100*kB, 1, 2, 3, 4)), false,
		},
		{
			RulePerLoop, "objects <= 1", runs(3, leak("k", "A", 10, 2, 4, 6, 8)),
			observed(9, leak("k", "A", 10, 2, 4, 6, 8)), true,
		},
		{RulePerLoop, "new <= 1", runs(3), observed(9, leak("k", "A", 10, 1, 2, 3, 4)), false},
		{
			RulePerLoop, "moved == 0", runs(3, leak("l", "A", 10, 1, 2, 3, 4)),
			observed(9, leak("k", "A", 10, 1, 2, 3, 4)), true,
		},
	} {
		rule, err := ParseRule(c.path, c.rule)
		if err != nil {
			t.Fatal(err)
		}
		got := judge(c.base, c.head, func(in *Input) { in.Rules = []Rule{rule} })
		if (len(got.Reasons) > 0) != c.fails {
			t.Errorf("%s %s: %+v", c.path, c.rule, got.Reasons)
		}
	}
}

// A leak that grows a little with each change is detected by comparison with a
// pinned release.
func TestCreep(t *testing.T) {
	list := leak("k", "ListScreen", 100*kB, 3, 6, 9, 12)
	now := leak("k", "ListScreen", 100*kB, 6, 12, 18, 24)
	pinned := func(in *Input) { in.Pinned, in.PinnedName = runs(3, list), "4.1" }
	c := judge(runs(5, now), observed(9, now), pinned)
	if row := rowOf(t, c, "k"); row.Status != comparison.Known || row.Pinned == "" || !row.Fails || c.ExitCode != 1 {
		t.Errorf("%+v", row)
	}
	pull := judge(runs(5, now), observed(9, now), pinned, func(in *Input) { in.Head.PullRequest = 7 })
	if row := rowOf(t, pull, "k"); row.Pinned == "" || row.Fails || pull.ExitCode != 0 {
		t.Errorf("pull request fails because of other changes: %+v", row)
	}
}

// Runs of another subject are not compared, and the result states the reason.
func TestSubjects(t *testing.T) {
	list := leak("k", "ListScreen", 100*kB, 3, 6, 9, 12)
	other := runs(3)
	for i := range other {
		other[i].Subject.API = 33
	}
	got := judge(other, observed(9, list))
	if got.Verdict != comparison.Neutral || len(got.Warnings) != 0 || got.Base.Incomparable != "different API level" {
		t.Errorf("%s %q", got.Verdict, got.Warnings)
	}
	any := judge(other, observed(9, list), func(in *Input) { in.Match = []string{MatchModel} })
	if any.Verdict != comparison.Fail {
		t.Errorf("%s %q", any.Verdict, any.Warnings)
	}
	// The run itself may already be in its baseline.
	self := judge([]Observation{observed(9, list)}, observed(9, list))
	if self.Verdict != comparison.Neutral || self.Base.Runs != 0 {
		t.Errorf("run is compared with itself: %+v", self)
	}
	missing := runs(3, list)
	for i := range missing {
		missing[i].Processes = append(missing[i].Processes, Observed{Process: "com.shop:push"})
	}
	if w := judge(missing, observed(9, list)).Warnings; len(w) != 1 || !strings.Contains(w[0], "com.shop:push") {
		t.Errorf("%q", w)
	}
}

// A leak that is in both of two runs of one build is confirmed; a leak that is
// in only one of them is not confirmed.
func TestConfirm(t *testing.T) {
	list, wish := leak("list", "ListScreen", kB, 3, 6, 9), leak("wish", "WishScreen", kB, 1, 2, 3)
	first, again := judge(runs(3), observed(9, list, wish)), judge(runs(3), observed(10, wish))
	got := Confirm(first, again)
	if got.Verdict != comparison.Fail || len(got.Reasons) != 1 || got.Reasons[0].Key != "wish" ||
		got.Text != "1 new leak, in two runs" {
		t.Errorf("%+v", got)
	}
	got = Confirm(judge(runs(3), observed(9, list)), again)
	if got.Verdict != comparison.Pass || got.ExitCode != 0 || len(got.Reasons) != 0 || got.Leaks[0].Fails {
		t.Errorf("%+v", got)
	}
	if again.Verdict != comparison.Fail || !again.Leaks[0].Fails {
		t.Error("the input comparison was modified")
	}
	if got = Confirm(first, judge(runs(3), observed(9))); got.Verdict == comparison.Fail {
		t.Errorf("%+v", got)
	}
}

// The verdict depends only on what was observed, and not on the order of runs,
// processes or leaks.
func TestOrderDoesNotMatter(t *testing.T) {
	base := runs(4, leak("a", "A", kB, 1, 2, 3, 4), leak("b", "B", kB, 2, 4, 6, 8))
	head := observed(9, leak("a", "A", kB, 2, 4, 6, 8), leak("b", "B", kB, 2, 4, 6, 8), leak("c", "C", kB, 1, 2, 3, 4))
	want, _ := json.Marshal(judge(base, head))
	base, head.Processes[0].Places = slices.Clone(base), slices.Clone(head.Processes[0].Places)
	slices.Reverse(base)
	slices.Reverse(head.Processes[0].Places)
	if got, _ := json.Marshal(judge(base, head)); string(got) != string(want) {
		t.Errorf("%s\n%s", got, want)
	}
}

// The reason for a violated rule about deaths names the counted reasons for
// death if there are several, or if the only one differs from the subject of
// the rule.
func TestTextOfDeaths(t *testing.T) {
	of := func(by map[string]int) Observation {
		o := observed(9)
		o.Processes[0].Deaths = by
		return o
	}
	for rule, c := range map[string]struct {
		by   map[string]int
		want string
	}{
		"memory == 0": {
			map[string]int{"out_of_memory": 22, "low_memory": 1, "crash": 8},
			": 23 deaths by memory (22 OutOfMemoryErrors, 1 low-memory kill), at most 0 in any base run",
		},
		"crash == 0": {
			map[string]int{"out_of_memory": 22, "crash": 8},
			": 30 deaths by crash (22 OutOfMemoryErrors, 8 crashes), at most",
		},
		"crash <= 1": {map[string]int{"crash": 8}, ": 8 deaths by crash, at most"},
		"any == 0":   {map[string]int{"crash": 1, SurvivedANR: 3}, ": 1 death (1 crash), at most"},
	} {
		c2 := judge(runs(3), of(c.by), ruled(t, RuleDeaths, rule))
		if len(c2.Reasons) != 1 || !strings.Contains(c2.Reasons[0].Text, c.want) {
			t.Errorf("%s: %+v", rule, c2.Reasons)
		}
	}
}

// The sum of an app's processes fails the gate as a trend does, if base runs
// contain the sum and none of the processes leaks by itself. The sum is not a
// process: it need not be judged or present, and limits for processes do not
// apply to it.
func TestTogether(t *testing.T) {
	with := func(o Observation, verdict string, explained bool) Observation {
		o = trending(o, "pass", 1)
		o.Processes = append(o.Processes, Observed{
			Process: "com.shop (all processes)", Places: []Place{}, Gate: verdict, Reason: "because", WholeApp: true,
			Explained: explained,
			Trend:     &TrendVerdict{Gate: verdict, Rate: new(50.0), Lower: new(45.0), Upper: new(55.0)},
		})
		return o
	}
	of := func(verdict string, explained bool) (out []Observation) {
		for i := range 3 {
			out = append(out, with(observed(i), verdict, explained))
		}
		return out
	}
	without := []Observation{
		trending(observed(0), "pass", 1), trending(observed(1), "pass", 1), trending(observed(2), "pass", 1),
	}
	slope := func(in *Input) {
		rule, err := ParseRule(RuleSlope, "lower95 < 20")
		if err != nil {
			t.Fatal(err)
		}
		in.Rules = append(in.Rules, rule)
	}
	for name, c := range map[string]struct {
		base []Observation
		head Observation
		more func(*Input)
		fail bool
	}{
		"new":                             {of("pass", false), with(observed(9), "leak", false), nil, true},
		"known":                           {of("leak", false), with(observed(9), "leak", false), nil, false},
		"known from a process":            {of("leak", true), with(observed(9), "leak", false), nil, false},
		"explained by a process":          {of("pass", false), with(observed(9), "leak", true), nil, false},
		"base runs of an earlier version": {without, with(observed(9), "leak", false), nil, false},
		"no longer present": {
			of("pass", false), trending(observed(9), "pass", 1), func(in *Input) { in.Strict = true }, false,
		},
		"limit of a single process": {of("pass", false), with(observed(9), "pass", false), slope, false},
	} {
		more := []func(*Input){}
		if c.more != nil {
			more = append(more, c.more)
		}
		got := judge(c.base, c.head, more...)
		if (got.Verdict == comparison.Fail) != c.fail || got.ExitCode != map[bool]int{true: 1}[c.fail] {
			t.Errorf("%s: %s, exit %d: %v", name, got.Verdict, got.ExitCode, got.Reasons)
		}
	}
}
