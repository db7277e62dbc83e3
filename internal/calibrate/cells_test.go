package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// spoil returns n results; bad changes the first k of them.
func spoil[T any](n, k int, good func() T, bad func(*T)) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = good()
		if i < k {
			bad(&out[i])
		}
	}
	return out
}

func named(t *testing.T, name string) scenario.Scenario {
	t.Helper()
	all := slices.Concat(scenario.Null(whole), scenario.Leaks(0, whole), scenario.Leaks(onset, 10),
		scenario.Shapes(whole), scenario.Kinds(whole))
	i := slices.IndexFunc(all, func(s scenario.Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("scenario %q not found", name)
	}
	return all[i]
}

// missed compares the bars that a row missed with the bars that it is expected
// to miss.
func missed(t *testing.T, name string, b bars, want string) {
	t.Helper()
	text := strings.Join(b.missed, "\n")
	if (want == "") != (text == "") || !strings.Contains(text, want) {
		t.Errorf("%s: missed %q, want %q", name, text, want)
	}
}

func quiet() pair {
	e := ending{
		early: slices.Repeat([]detector.Gate{detector.Pass}, 3), gate: detector.Pass, suspicious: never, leaking: never,
	}
	return pair{robust: e, article: e, twice: true}
}

// TestAlarmCells checks each bar of the first table, with figures at and above
// the bar.
func TestAlarmCells(t *testing.T) {
	early := func(i int, g detector.Gate) func(*pair) { return func(p *pair) { p.robust.early[i] = g } }
	end := func(g detector.Gate) func(*pair) { return func(p *pair) { p.robust.gate = g } }
	leaking := func(p *pair) { p.robust.worst = detector.Leaking }
	tests := []struct {
		row  string
		k    int // of 2000
		bad  func(*pair)
		want string
	}{
		{"iid s5", 30, end(detector.Leak), ""},
		{"iid s5", 31, end(detector.Leak), "leak after 8 h"},
		{"random walk 10", 100, end(detector.Leak), ""},
		{"random walk 10", 101, end(detector.Leak), "leak after 8 h"},
		{"iid s5", 100, early(0, detector.Leak), ""},
		{"iid s5", 101, early(0, detector.Leak), "leak after 1 h"},
		{"iid s5", 101, early(1, detector.Leak), "leak after 2 h"},
		{"cache 100 in 60 min", 2000, early(0, detector.Leak), ""},
		{"cache 100 in 60 min", 101, early(1, detector.Leak), "leak after 2 h"},
		{"cache 100 in 180 min", 2000, early(1, detector.Leak), ""},
		{"sine 60 per 120 min", 2000, early(0, detector.Leak), ""},
		{"iid s5", 2000, early(1, detector.Inconclusive), ""},
		{"iid s5", 2000, early(2, detector.Inconclusive), ""},
		{"three steps +40", 1600, end(detector.Inconclusive), ""},
		{"three steps +40", 1601, end(detector.Inconclusive), "inconclusive after 8 h"},
		{"iid s5", 101, end(detector.Inconclusive), "inconclusive after 8 h"},
		{"iid s5", 2000, end(detector.Settled), ""},
		{"iid s5", 10, leaking, ""},
		{"iid s5", 11, leaking, "LEAKING"},
		{"AR 0.97 s20", 54, leaking, ""},
		{"AR 0.97 s20", 55, leaking, "LEAKING"},
		{"realistic 2", 100, leaking, ""},
		{"realistic 2", 101, leaking, "LEAKING"},
		{"random walk 40", 3, func(p *pair) { p.robust.kind, p.robust.gate = detector.GPU, detector.Leak }, "GPU leak"},
		{"iid s5", 2000, func(p *pair) { p.article.gate, p.article.worst = detector.Leak, detector.Leaking }, ""},
	}
	for _, tt := range tests {
		b := bars{}
		cells := alarmCells(named(t, tt.row), spoil(2000, tt.k, quiet, tt.bad), &b)
		missed(t, tt.row, b, tt.want)
		if len(cells) != len(alarms(options{runs: 1}).head)-1 {
			t.Errorf("%s: %q", tt.row, cells)
		}
	}
	b := bars{}
	cells := alarmCells(named(t, "AR 0.7 s50"), spoil(2000, 10, quiet, func(p *pair) {
		p.robust.early = []detector.Gate{detector.Settled, detector.Inconclusive, detector.Leak}
		p.robust.gate, p.robust.worst, p.article.gate = detector.Leak, detector.Leaking, detector.Leak
	}), &b)
	want := []string{"0 / 0 / 0.5 / 0.5", "0 / 0.5 / 0 / 0", "0.5 / 0 / 0 / 0", "0.5", "0.5", "0.3", "0.5"}
	if !slices.Equal(cells, want) {
		t.Errorf("%q, want %q", cells, want)
	}
}

// TestLeakCells checks the bars of the rows with a leak.
func TestLeakCells(t *testing.T) {
	finds := func(suspicious, leaking, low, high float64) func() pair {
		return func() pair {
			e := ending{
				gate: detector.Leak, worst: detector.Leaking, suspicious: suspicious, leaking: leaking, low: low,
				high: high, rateKnown: true, detectable: 12,
			}
			return pair{robust: e, article: e, twice: true}
		}
	}
	at := func(suspicious, leaking float64) func(*pair) {
		return func(p *pair) { p.robust.suspicious, p.robust.leaking = suspicious, leaking }
	}
	tests := []struct {
		row  string
		k    int // bad results of 300; in any case, 9 of the 300 intervals miss the rate
		bad  func(*pair)
		want string
	}{
		{"iid s20: 100 MB/h", 0, nil, ""},
		{"iid s20: 100 MB/h", 15, func(p *pair) { p.robust.gate = detector.Settled }, ""},
		{"iid s20: 100 MB/h", 16, func(p *pair) { p.robust.gate = detector.Settled }, "leak in 95 % (284 of 300)"},
		{"AR 0.7 s20: 20 MB/h", 16, func(p *pair) { p.robust.gate = detector.Pass }, "leak in 95 % (284"},
		{"AR 0.9 s20: 20 MB/h", 300, func(p *pair) { p.robust.gate = detector.Pass }, ""},
		{"iid s20: 100 MB/h", 149, at(never, never), ""},
		{"iid s20: 100 MB/h", 151, at(50, 55), ""},
		{"iid s20: 100 MB/h", 151, at(51, 55), "SUSPICIOUS after 51 min, at most 50"},
		{"AR 0.7 s50: 50 MB/h", 300, at(214, 205), ""},
		{"AR 0.7 s50: 50 MB/h", 300, at(215, 205), "SUSPICIOUS after 215"},
		{"iid s20: 100 MB/h", 151, at(50, 56), "LEAKING after 56 min, at most 55"},
		{"iid s20: 100 MB/h", 151, at(40, never), "LEAKING after -"},
		{"iid s20: 100 MB/h", 21 + 9, func(p *pair) { p.robust.low, p.robust.high = 120, 130 }, ""},
		{
			"iid s20: 100 MB/h", 22 + 9, func(p *pair) { p.robust.low, p.robust.high = 120, 130 },
			"contains the rate in 90 % (269",
		},
		{"iid s20: 100 MB/h", 9, func(p *pair) { p.robust.low = 80 }, "contains the rate in 100 %"},
		{"iid s20: 100 MB/h", 300, func(p *pair) { p.robust.rateKnown = false }, "no runs to count"},
	}
	for _, tt := range tests {
		s := named(t, tt.row)
		all := spoil(300, 9, finds(20, 25, s.Leak-5, s.Leak+5), func(p *pair) { p.robust.low = s.Leak + 1 })
		for i := range tt.k {
			tt.bad(&all[i])
		}
		b := bars{}
		cells := detectionCells(s, all, &b)
		missed(t, tt.row, b, tt.want)
		if len(cells) != len(detection(options{detections: 1}).head)-1 || cells[5] != "12" {
			t.Errorf("%s: %q", tt.row, cells)
		}
	}

	b := bars{}
	s := named(t, lateBarRow)
	all := spoil(300, 30, finds(130, 160, 0, 0), at(130, 161))
	cells := lateCells(s, all, &b)
	missed(t, s.Name, b, "")
	if want := []string{"100", "0", "10 / 10", "40 / 40", "35", "100", "40 / 40"}; !slices.Equal(cells, want) {
		t.Errorf("%q, want %q", cells, want)
	}
	at(100, 110)(&all[100]) // an alarm before the leak starts
	cells = lateCells(s, all, &b)
	missed(t, s.Name, b, "LEAKING in nine of ten runs after 41 min, at most 40")
	if cells[1] != "0" || len(cells) != len(late(options{detections: 1}).head)-1 {
		t.Errorf("%q", cells)
	}
}

// TestOtherCells checks the bars of the smaller tables.
func TestOtherCells(t *testing.T) {
	row := func(name, want string, cells func(b *bars) []string) []string {
		b := bars{}
		out := cells(&b)
		missed(t, name, b, want)
		return out
	}
	quietEnd := func() ending { return quiet().robust }
	found := func(k detector.LeakKind) func() ending {
		return func() ending { return ending{gate: detector.Leak, kind: k} }
	}
	of := func(k detector.LeakKind) func(*ending) {
		return func(e *ending) { e.worst, e.kind = detector.Leaking, k }
	}
	for name, want := range map[string]detector.LeakKind{
		"java": detector.Java, "native": detector.Native, "gpu": detector.GPU, "thread": detector.Thread,
	} {
		s := named(t, name+" 100 MB/h, AR 0.7 s20")
		row(name, "",
			func(b *bars) []string { return kindCells(s, spoil(300, 6, found(want), of(detector.Unknown)), b) })
		cells := row(name, "the right kind in 98 % (293",
			func(b *bars) []string { return kindCells(s, spoil(300, 7, found(want), of(detector.Unknown)), b) })
		if want := []string{"100", "98", "2", "0"}; !slices.Equal(cells, want) {
			t.Errorf("%s: %q, want %q", name, cells, want)
		}
		row(name, "no runs to count", func(b *bars) []string { return kindCells(s, spoil(300, 0, quietEnd, nil), b) })
	}
	none := named(t, "no leak, AR 0.7 s20")
	row("no leak", "GPU leak",
		func(b *bars) []string { return kindCells(none, spoil(300, 1, quietEnd, of(detector.GPU)), b) })
	row("no leak", "", func(b *bars) []string { return kindCells(none, spoil(300, 9, quietEnd, of(detector.Java)), b) })

	gate := func(g detector.Gate) func() detector.Gate { return func() detector.Gate { return g } }
	leaks := func(g *detector.Gate) { *g = detector.Leak }
	cells := row("100", "",
		func(b *bars) []string { return familyCells(100, spoil(6400, 3, gate(detector.Settled), leaks), b) })
	// 1 - (1 - 3/6400)^100; the upper bound of 3 is 7.75 (Poisson).
	if want := []string{"6400", "3", "4.6", "11.4"}; !slices.Equal(cells, want) {
		t.Errorf("family: %q, want %q", cells, want)
	}
	row("100", "an alarm in 6.1 %",
		func(b *bars) []string { return familyCells(100, spoil(6400, 4, gate(detector.Pass), leaks), b) })
	row("1", "", func(b *bars) []string { return familyCells(1, spoil(6400, 320, gate(detector.Pass), leaks), b) })
	row("1", "an alarm in 5.0 %",
		func(b *bars) []string { return familyCells(1, spoil(6400, 321, gate(detector.Pass), leaks), b) })

	good := func() promise { return promise{rate: 30, found: []bool{false, true, true}} }
	cells = row("promise", "", func(b *bars) []string {
		return promiseCells(spoil(300, 15, good, func(p *promise) { p.found = []bool{false, false, false} }), b)
	})
	if want := []string{"30", "0", "0", "95", "95"}; !slices.Equal(cells, want) {
		t.Errorf("detectable: %q, want %q", cells, want)
	}
	row("promise", "1.5 m was found", func(b *bars) []string {
		return promiseCells(spoil(300, 91, good, func(p *promise) { p.found[2] = false }), b)
	})
	row("promise", "too cautious", func(b *bars) []string {
		return promiseCells(spoil(300, 285, good, func(p *promise) { p.found[0] = true }), b)
	})
	cells = row("promise", "", func(b *bars) []string {
		return promiseCells(spoil(300, 300, good, func(p *promise) { *p = promise{} }), b)
	})
	row("promise", "`pass` without m", func(b *bars) []string {
		return promiseCells(spoil(300, 1, good, func(p *promise) { *p = promise{passed: true} }), b)
	})
	if want := []string{"-", "100", "-", "-", "-"}; !slices.Equal(cells, want) {
		t.Errorf("detectable without verdicts: %q, want %q", cells, want)
	}

	same := func() compared { return compared{alone: detector.Leak, against: detector.Pass} }
	differs := func(c *compared) { c.against = detector.Leak }
	unchanged, leaking := baseRow{}, baseRow{rate: 50}
	row("base", "", func(b *bars) []string { return unchanged.cells(spoil(300, 3, same, differs), b) })
	row("base", "against the base", func(b *bars) []string { return unchanged.cells(spoil(300, 4, same, differs), b) })
	row("base", "", func(b *bars) []string { return leaking.cells(spoil(300, 300, same, differs), b) })
	row("base", "with a base run as often as without one",
		func(b *bars) []string { return leaking.cells(spoil(300, 299, same, differs), b) })
	drifts := baseRow{drift: 8}
	row("base", "", func(b *bars) []string { return drifts.cells(spoil(300, 300, same, differs), b) })

	said := func() reached { return reached{10, []float64{9, 12, 14}} }
	row("reach", "", func(b *bars) []string {
		return reachCells(spoil(300, 30, said, func(x *reached) { x.true = []float64{6, 16, 10} }), b)
	})
	row("reach", "within a factor of 1.5", func(b *bars) []string {
		return reachCells(spoil(300, 60, said, func(x *reached) { x.true = []float64{6, 16, 100} }), b)
	})

	flat := night(t, "plain, 0 MB/h, restart every 10 min")
	unclear := func() detector.Gate { return detector.Inconclusive }
	to := func(g detector.Gate) func(*detector.Gate) { return func(x *detector.Gate) { *x = g } }
	row("night", "", func(b *bars) []string { return nightCells(flat, spoil(100, 1, unclear, to(detector.Leak)), b) })
	row("night", "leak",
		func(b *bars) []string { return nightCells(flat, spoil(100, 2, unclear, to(detector.Leak)), b) })
	row("night", "settled",
		func(b *bars) []string { return nightCells(flat, spoil(100, 1, unclear, to(detector.Settled)), b) })
	oom := night(t, "OOM at 512 MB, app, 600 MB/h")
	row("night", "leak",
		func(b *bars) []string { return nightCells(oom, spoil(100, 94, unclear, to(detector.Leak)), b) })
	row("night", "", func(b *bars) []string { return nightCells(oom, spoil(100, 95, unclear, to(detector.Leak)), b) })
	oneMB, noLeak := loopRun{perLoop: 1, until: loopCount}, loopRun{until: loopCount}
	row("loops", "leak", func(b *bars) []string { return oneMB.cells(spoil(300, 149, unclear, to(detector.Leak)), b) })
	row("loops", "", func(b *bars) []string { return oneMB.cells(spoil(300, 150, unclear, to(detector.Leak)), b) })
	row("loops", "leak", func(b *bars) []string { return noLeak.cells(spoil(1000, 16, unclear, to(detector.Leak)), b) })

	jump := named(t, "step +250 at any time, AR 0.7 s20")
	row("jump", "leak in", func(b *bars) []string {
		return furtherCells(jump, spoil(2000, 31, quiet, func(p *pair) { p.robust.gate = detector.Leak }), b)
	})
	row("jump", "inconclusive in", func(b *bars) []string {
		return furtherCells(jump, spoil(2000, 901, quiet, func(p *pair) { p.robust.gate = detector.Inconclusive }), b)
	})
	jump.Leak = 50
	row("leak", "", func(b *bars) []string {
		return furtherCells(jump, spoil(300, 300, quiet, func(p *pair) { p.robust.gate = detector.Leak }), b)
	})
}

// night returns the kind of night with the given name.
func night(t *testing.T, name string) scenario.Night {
	t.Helper()
	for _, n := range scenario.Nights() {
		if n.Name == name {
			return n
		}
	}
	t.Fatalf("night %q not found", name)
	return scenario.Night{}
}

// TestEnding checks that the recorded time of each state is that of the first
// transition to this state or to a later one.
func TestEnding(t *testing.T) {
	step := func(minute int64, to detector.State) detector.Transition {
		return detector.Transition{At: time.Duration(minute * int64(time.Minute)), To: to}
	}
	tests := map[string]struct {
		steps               []detector.Transition
		suspicious, leaking float64
	}{
		"nothing": {nil, never, never},
		"all": {
			[]detector.Transition{
				step(5, detector.Suspicious), step(20, detector.Confirming), step(21, detector.Leaking),
				step(23, detector.Normal), step(40, detector.Leaking),
			}, 5, 21,
		},
		"at once": {[]detector.Transition{step(7, detector.Leaking)}, 7, 7},
		"given up": {
			[]detector.Transition{
				step(9, detector.Suspicious), step(39, detector.Normal), step(50, detector.Suspicious),
			}, 9, never,
		},
		"a reset": {[]detector.Transition{step(3, detector.Normal)}, never, never},
	}
	for name, tt := range tests {
		var e ending
		e.follow(tt.steps)
		if e.suspicious != tt.suspicious || e.leaking != tt.leaking {
			t.Errorf("%s: %g and %g min", name, e.suspicious, e.leaking)
		}
	}
}
