package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// compared holds the end verdicts on a run: on its own, compared to one base
// run, and compared to three base runs.
type compared struct {
	kind                  string
	alone, against, three detector.Gate
}

// baseRow is one row of the table: the length of the runs, and the rate of the
// leak in the second run in MB/h.
type baseRow struct {
	name        string
	hours, rate float64
	// falls is the rate at which the memory of the base runs falls, in MB/h;
	// drift is the standard deviation of the rates of runs of the same build,
	// in MB/h.
	falls, drift float64
	kinds        func(hours float64) []scenario.Scenario
}

// base measures the benefit of base runs.
func base(o options) table {
	t := table{
		about: fmt.Sprintf("%d pairs of runs per row, drawn from 18 kinds of app: a base run, and a second run with "+
			"an additional leak. The figures are the percentages of end verdicts `leak` on the second run: alone, "+
			"against one base run and against three base runs. With base runs, the percentage of `inconclusive` "+
			"verdicts is stated too.", o.detections),
		head: []string{"second run", "alone", "one base run", "`inconclusive`", "three base runs", "`inconclusive`"},
	}
	var rows []baseRow
	for _, r := range [][2]float64{{1, 0}, {1, 100}, {2, 0}, {2, 50}, {2, 100}, {4, 0}, {4, 20}, {4, 50}} {
		name := fmt.Sprintf("%g MB/h, %g h", r[1], r[0])
		if r[1] == 0 {
			name = fmt.Sprintf("no leak, %g h", r[0])
		}
		rows = append(rows, baseRow{name, r[0], r[1], 0, 0, scenario.Bases})
	}
	flat := func(hours float64) []scenario.Scenario { return scenario.Bases(hours)[:2] }
	filling := func(hours float64) []scenario.Scenario {
		return []scenario.Scenario{{Name: "cache", Hours: hours, Sigma: 5, Rho: 0.7, Cache: 100, CacheTime: 180}}
	}
	for _, hours := range []float64{2, 4, 8} {
		rows = append(rows, baseRow{fmt.Sprintf("no leak, the base falls 40 MB/h, %g h", hours), hours, 0, 40, 0, flat})
	}
	for _, hours := range []float64{2, 4} {
		rows = append(rows,
			baseRow{fmt.Sprintf("no leak, the rates of runs differ by 8 MB/h (sd), %g h", hours), hours, 0, 0, 8, flat})
	}
	for _, rate := range []float64{0, 50, 100} {
		rows = append(rows,
			baseRow{fmt.Sprintf("%g MB/h, both fill a cache of 100 MB in 3 h, 2 h", rate), 2, rate, 0, 0, filling})
	}
	for _, x := range rows {
		one := func(i int, r *rand.Rand) compared { return x.compare(i, r) }
		sum := func(all []compared, b *bars) []string { return x.cells(all, b) }
		t.rows = append(t.rows, study(x.name, o.detections, 5*x.hours, one, sum))
	}
	return t
}

func (x baseRow) compare(i int, r *rand.Rand) compared {
	kinds := x.kinds(x.hours)
	s := kinds[i%len(kinds)]
	how := robust()
	var bases []*detector.Detector
	for range 3 {
		of := s
		of.Trimmed = x.falls
		of.Leak = x.drift * r.NormFloat64()
		d, _ := how.play(of.Simulate(r), r)
		bases = append(bases, d)
	}
	s.Leak = x.rate + x.drift*r.NormFloat64()
	head, alone := how.play(s.Simulate(r), r)
	out := compared{kind: s.Name, alone: alone.gate}
	if v, err := head.CompareTo(bases[0]); err == nil {
		out.against = v.Gate
	}
	if v, err := head.CompareTo(bases...); err == nil {
		out.three = v.Gate
	}
	return out
}

func (x baseRow) cells(all []compared, b *bars) []string {
	is := func(g detector.Gate, of func(compared) detector.Gate) int {
		return count(all, func(c compared) bool { return of(c) == g })
	}
	alone := func(c compared) detector.Gate { return c.alone }
	one := func(c compared) detector.Gate { return c.against }
	three := func(c compared) detector.Gate { return c.three }
	n := len(all)
	if x.rate == 0 && x.drift == 0 {
		b.most("leak against the base", is(detector.Leak, one), n, baseBar)
		b.most("leak against three base runs", is(detector.Leak, three), n, baseBar)
	}
	if x.rate > 0 {
		b.least("found with a base run as often as without one", is(detector.Leak, one),
			max(1, is(detector.Leak, alone)),
			100)
	}
	return []string{
		percentText(is(detector.Leak, alone), n),
		percentText(is(detector.Leak, one), n), percentText(is(detector.Inconclusive, one), n),
		percentText(is(detector.Leak, three), n), percentText(is(detector.Inconclusive, three), n),
	}
}
