package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// detection measures how soon a leak is found.
func detection(o options) table {
	t := table{
		about: fmt.Sprintf("%d processes per row, which leak from the start of a run of 8 h. *leak* is the percentage "+
			"of end verdicts `leak`; times are minutes, median / 90th percentile, `-` if too few are found; *holds* "+
			"is the percentage of 95 %% intervals that contain the true rate; *detectable* is the median, in MB/h, of "+
			"the slowest leak that would have been found according to the verdict.", o.detections),
		head: []string{
			"leak", "`leak`", "SUSPICIOUS", "LEAKING", "prototype", "holds", "detectable", "article: `leak`",
			"SUSPICIOUS", "LEAKING",
		},
	}
	for _, s := range scenario.Leaks(0, whole) {
		one := func(_ int, r *rand.Rand) pair { return judge(s.Simulate(r), robust(), true, r) }
		sum := func(all []pair, b *bars) []string { return detectionCells(s, all, b) }
		t.rows = append(t.rows, study(s.Name, o.detections, whole, one, sum))
	}
	return t
}

func detectionCells(s scenario.Scenario, all []pair, b *bars) []string {
	judged, n := ofRobust(all), len(all)
	leak := count(judged, gateIs(detector.Leak))
	if s.Leak >= foundRate || s.Name == foundSlowly {
		b.least("leak", leak, n, foundBar)
	}
	prototype := "-"
	if p, ok := prototypeFinds[s.Name]; ok {
		prototype = timeText(p.p50) + " / " + timeText(p.p90)
		b.soon("SUSPICIOUS", quantile(suspicions(judged), 0.5), suspicionBar(p.p50))
		b.soon("LEAKING", quantile(leakings(judged), 0.5), p.p50+liveTolerance)
	}
	holds, known := held(s.Leak, judged)
	b.least("the interval contains the rate", holds, known, coverLow)
	b.most("the interval contains the rate", holds, known, coverHigh)
	detectable := quantile(pick(judged, func(e ending) float64 { return e.detectable }), 0.5)
	old := ofArticle(all)
	return []string{
		percentText(leak, n), timesText(suspicions(judged)), timesText(leakings(judged)), prototype,
		percentText(holds, known), fmt.Sprintf("%.0f", detectable),
		leaksText(old), timesText(suspicions(old)), timesText(leakings(old)),
	}
}

// leaksText returns the percentage of end verdicts that are `leak`.
func leaksText(all []ending) string { return percentText(count(all, gateIs(detector.Leak)), len(all)) }

// held returns the number of known intervals that contain a rate in MB/h, and
// the number of all known intervals.
func held(rate float64, all []ending) (holds, known int) {
	known = count(all, func(e ending) bool { return e.rateKnown })
	holds = count(all, func(e ending) bool { return e.rateKnown && e.low <= rate && rate <= e.high })
	return holds, known
}

// onset is the time at which a late leak begins, in minutes.
const onset = 120

// late measures how soon a leak that begins after two hours is found.
func late(o options) table {
	t := table{
		about: fmt.Sprintf("%d processes per row, 10 h, with a leak that starts at %d min. Times are minutes from its "+
			"onset, median / 90th percentile; runs that were LEAKING before the onset (*before*, in percent) are "+
			"excluded.", o.detections, onset),
		head: []string{"leak", "`leak`", "before", "SUSPICIOUS", "LEAKING", "prototype", "article: `leak`", "LEAKING"},
	}
	for _, s := range scenario.Leaks(onset, 10) {
		if _, ok := prototypeLate[s.Name]; !ok {
			continue
		}
		one := func(_ int, r *rand.Rand) pair { return judge(s.Simulate(r), robust(), true, r) }
		sum := func(all []pair, b *bars) []string { return lateCells(s, all, b) }
		t.rows = append(t.rows, study(s.Name, o.detections, s.Hours, one, sum))
	}
	return t
}

func lateCells(s scenario.Scenario, all []pair, b *bars) []string {
	judged, old := ofRobust(all), ofArticle(all)
	leaking := since(onset, leakings(judged))
	if s.Name == lateBarRow {
		b.soon("LEAKING in nine of ten runs", quantile(leaking, 0.9), lateBar)
	}
	return []string{
		leaksText(judged),
		percentText(len(all)-len(leaking), len(all)),
		timesText(since(onset, suspicions(judged))), timesText(leaking),
		fmt.Sprintf("%g", prototypeLate[s.Name]),
		leaksText(old), timesText(since(onset, leakings(old))),
	}
}

// since omits the times before moment and returns the others relative to
// moment.
func since(moment float64, times []float64) []float64 {
	var out []float64
	for _, t := range times {
		if t >= moment {
			out = append(out, t-moment)
		}
	}
	return out
}
