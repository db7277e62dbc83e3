package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// way is one way to watch a process, for example without breakdowns.
type way struct {
	name    string
	watched scenario.Conditions
}

func ways() []way {
	of := func(name string, set func(*scenario.Conditions)) way {
		w := way{name, usual}
		set(&w.watched)
		return w
	}
	list := []way{
		of("every tenth sample lost", func(c *scenario.Conditions) { c.Drop = 0.1 }),
		of("no breakdowns", func(c *scenario.Conditions) { c.NoBreakdowns = true }),
	}
	for _, interval := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute} {
		list = append(list,
			of(fmt.Sprintf("a sample every %.0f s", interval.Seconds()),
				func(c *scenario.Conditions) { c.Interval = interval }))
	}
	return list
}

// further measures leaks of other shapes and other ways to watch.
func further(o options) table {
	t := table{
		about: fmt.Sprintf("%[1]d processes per row with a leak, %[2]d per row without one, 8 h. End verdicts are in "+
			"percent; times are minutes, median / 90th percentile, `-` if too few reached the state. Policy `article` "+
			"judges the first %[1]d processes of each row.", o.detections, o.runs),
		head: []string{
			"process", "`leak`", "`inconclusive`", "`settled`", "SUSPICIOUS", "LEAKING", "article: `leak`", "LEAKING",
		},
	}
	add := func(name string, s scenario.Scenario, c scenario.Conditions) {
		runs := o.detections
		if s.Leak == 0 {
			runs = o.runs
		}
		how := robust()
		how.watched = c
		one := func(i int, r *rand.Rand) pair { return judge(s.Simulate(r), how, i < o.detections, r) }
		sum := func(all []pair, b *bars) []string { return furtherCells(s, all, b) }
		t.rows = append(t.rows, study(name, runs, whole, one, sum))
	}
	for _, s := range scenario.Shapes(whole) {
		add(s.Name, s, usual)
	}
	for _, w := range ways() {
		s := scenario.Scenario{Hours: whole, Sigma: 20, Rho: 0.7}
		add("no leak, AR 0.7 s20, "+w.name, s, w.watched)
		s.Leak = 50
		add("50 MB/h, AR 0.7 s20, "+w.name, s, w.watched)
	}
	return t
}

func furtherCells(s scenario.Scenario, all []pair, b *bars) []string {
	judged, old, n := ofRobust(all), ofArticle(all), len(all)
	leak, doubt := count(judged, gateIs(detector.Leak)), count(judged, gateIs(detector.Inconclusive))
	if s.Leak == 0 {
		b.most("leak", leak, n, alarmsBar)
		b.most("inconclusive", doubt, n, doubtBarOf(s.Name))
	}
	return []string{
		percentText(leak, n), percentText(doubt, n), percentText(count(judged, gateIs(detector.Settled)), n),
		timesText(suspicions(judged)), timesText(leakings(judged)),
		leaksText(old), timesText(leakings(old)),
	}
}
