package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// reachOnsets are the times at which leaks are added to a run, as fractions of
// the run. These fractions differ from those that the detector tries.
var reachOnsets = []float64{0.02, 0.07, 0.13}

// reached holds rates in MB/h. said is taken from the verdict on a run without
// a leak: it is the slowest leak that would have been detected. true lists the
// slowest leaks that are found when they are added to the same run.
type reached struct {
	said float64
	true []float64
}

// reach measures how accurately a pass states the slowest leak that its run
// rules out.
func reach(o options) table {
	t := table{
		about: fmt.Sprintf("Each row uses %d runs of 8 h that pass. Leaks that start at 2, 7 and 13 %% of the run "+
			"are added to the samples of each run. *stated* is the median, in MB/h, of the slowest leak m that the "+
			"verdict rules out; *found* is the median of the slowest leak that is found. The last columns are "+
			"percentages of the slowest found leaks: within a factor of 1.5 of m, above 1.5 m, and below m/1.5.",
			o.nights),
		head: []string{"noise", "stated", "found", "within 1.5", "above", "below"},
	}
	for _, s := range scenario.Noise(whole)[3:] {
		one := func(_ int, r *rand.Rand) reached { return reachOf(s, r) }
		t.rows = append(t.rows, study(s.Name, o.nights, 20*whole, one, reachCells))
	}
	return t
}

func reachOf(s scenario.Scenario, r *rand.Rand) reached {
	p := s.Simulate(r)
	said := gateWith(p, 0, 0)
	out := reached{said: said.MinDetectable / detector.MB}
	if said.Gate != detector.Pass {
		return reached{}
	}
	for _, part := range reachOnsets {
		out.true = append(out.true, slowest(p, part, out.said))
	}
	return out
}

// gateWith adds a leak to a path, starting at the given fraction of the path,
// and returns the verdict.
func gateWith(p *scenario.Path, rate, part float64) detector.Verdict {
	q := *p
	q.Dims[scenario.Java] = slices.Clone(p.Dims[scenario.Java])
	for i := range q.Len() {
		hours := float64(i) * scenario.Grid.Hours()
		q.Dims[scenario.Java][i] += rate * max(0, hours-part*whole)
	}
	d := detector.New(detector.RobustPolicy())
	scenario.Play(&q, d, scenario.Conditions{Interval: 30e9, NoBreakdowns: true}, nil)
	return d.Verdict()
}

// slowest searches for the slowest leak that is found. It tries rates in steps
// of a factor of 1.1, starting at a guess divided by 2.5. A rate counts only if
// the next higher rate is found, too. It returns +Inf if no rate below 20 times
// the guess is found.
func slowest(p *scenario.Path, part, guess float64) float64 {
	for rate := guess / 2.5; rate < 20*guess; rate *= 1.1 {
		if gateWith(p, rate, part).Gate == detector.Leak && gateWith(p, rate*1.1, part).Gate == detector.Leak {
			return rate
		}
	}
	return math.Inf(1)
}

func reachCells(all []reached, b *bars) []string {
	var said, found []float64
	within, above, below := 0, 0, 0
	for _, x := range all {
		for _, rate := range x.true {
			said, found = append(said, x.said), append(found, rate)
			switch {
			case rate > 1.5*x.said:
				above++
			case rate < x.said/1.5:
				below++
			default:
				within++
			}
		}
	}
	n := len(found)
	b.least("the detection limit within a factor of 1.5", within, n, reachedBar)
	return []string{
		timeText(quantile(said, 0.5)), timeText(quantile(found, 0.5)), percentText(within, n), percentText(above, n),
		percentText(below, n),
	}
}
