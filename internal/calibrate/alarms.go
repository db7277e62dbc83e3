package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// lengths are the lengths of runs in hours; the last one is the length of an
// entire run.
var lengths = []float64{1, 2, 4, 8}

const whole = 8

// alarms measures how often a process without a leak raises an alarm.
func alarms(o options) table {
	t := table{
		about: fmt.Sprintf("%d processes per row, none of which leaks; all figures are percentages. The end verdicts "+
			"are those of runs of 1 / 2 / 4 / 8 h, and the *ever* columns count states reached at any time within "+
			"8 h. *prototype* is the figure of the prototype, and *article* is the share of end verdicts `leak` by "+
			"policy `article` after 8 h, for the first %d processes.", o.runs, min(o.runs, o.detections)),
		head: []string{
			"no leak", "`leak`", "`inconclusive`", "`settled`", "ever SUSPICIOUS", "ever LEAKING", "prototype",
			"article",
		},
	}
	for i, s := range scenario.Null(whole) {
		one := func(k int, r *rand.Rand) pair { return alarmPair(i, &s, k < o.detections, r) }
		sum := func(all []pair, b *bars) []string { return alarmCells(s, all, b) }
		t.rows = append(t.rows, study(s.Name, o.runs, whole, one, sum))
	}
	return t
}

// alarmPair simulates one process of a row. The shorter runs are the beginning
// of the longest run. If something happens at a random time during a run, each
// length has its own process instead.
func alarmPair(row int, s *scenario.Scenario, twice bool, r *rand.Rand) pair {
	how := robust()
	anywhere := slices.ContainsFunc(s.Steps, func(step scenario.Jump) bool { return step.At < 0 })
	shorter := lengths[:len(lengths)-1]
	if !anywhere {
		how.hours = shorter
		return judge(s.Simulate(r), how, twice, r)
	}
	var early []detector.Gate
	for _, h := range shorter {
		early = append(early, how.end(&scenario.Null(h)[row], r).gate)
	}
	out := judge(s.Simulate(r), how, twice, r)
	out.robust.early = early
	return out
}

func alarmCells(s scenario.Scenario, all []pair, b *bars) []string {
	judged, n := ofRobust(all), len(all)
	// hits returns, for each length, the number of processes with the given
	// gate verdict.
	hits := func(g detector.Gate) []int {
		var out []int
		for i := range lengths[:len(lengths)-1] {
			out = append(out, count(judged, func(e ending) bool { return e.early[i] == g }))
		}
		return append(out, count(judged, gateIs(g)))
	}
	leak, doubt := hits(detector.Leak), hits(detector.Inconclusive)
	live := count(judged, worstIs(detector.Leaking))
	for i, h := range lengths {
		at := fmt.Sprintf(" after %g h", h)
		switch {
		case h == whole && s.Walk > 0:
			b.most("leak"+at, leak[i], n, walkBar)
		case h == whole:
			b.most("leak"+at, leak[i], n, alarmsBar)
		case h <= 2 && undecidable[s.Name] != h:
			b.most("leak"+at, leak[i], n, shortBar)
		}
		if h == whole {
			b.most("inconclusive"+at, doubt[i], n, doubtBarOf(s.Name))
		}
	}
	b.most("LEAKING", live, n, liveBar(s))
	b.most("GPU leak", count(judged, func(e ending) bool { return e.found() && e.kind == detector.GPU }), n, gpuBar)
	return []string{
		percentsText(n, leak...), percentsText(n, doubt...), percentsText(n, hits(detector.Settled)...),
		percentText(count(judged, worstIs(detector.Suspicious)), n), percentText(live, n),
		fmt.Sprintf("%g", prototypeAlarms[s.Name]),
		leaksText(ofArticle(all)),
	}
}
