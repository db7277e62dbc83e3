package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// compared is the end verdicts on a run alone and against its base run.
type compared struct{ alone, against detector.Gate }

// base is what a base run is worth where one run cannot tell: a cache that still fills
// when the run ends.
func base(o options) table {
	t := table{
		about: fmt.Sprintf("%d pairs of runs of 2 h a row: a base run whose cache of 100 MB fills in 180 min, and the same with a leak beside it. End verdicts `leak` of the second run in percent, alone and against the base.", o.detections),
		head:  []string{"second run", "alone", "against the base", "`inconclusive`"},
	}
	for _, loops := range []time.Duration{0, 10 * time.Minute} {
		for _, rate := range []float64{0, 50, 100} {
			name := fmt.Sprintf("leak of %g MB/h", rate)
			if rate == 0 {
				name = "no leak"
			}
			if loops > 0 {
				name += fmt.Sprintf(", loops of %.0f min", loops.Minutes())
			}
			one := func(_ int, r *rand.Rand) compared { return compare(rate, loops, r) }
			sum := func(all []compared, b *bars) []string { return comparedCells(rate, all, b) }
			t.rows = append(t.rows, study(name, o.detections, 4, one, sum))
		}
	}
	return t
}

func compare(rate float64, loops time.Duration, r *rand.Rand) compared {
	s := scenario.Scenario{Hours: 2, Sigma: 5, Rho: 0.7, Cache: 100, CacheTime: 180}
	how := robust()
	how.watched.LoopEvery = loops
	of, _ := how.play(s.Make(r), r)
	s.Leak = rate
	head, alone := how.play(s.Make(r), r)
	v, err := head.Against(of)
	if err != nil {
		return compared{alone: alone.gate}
	}
	return compared{alone: alone.gate, against: v.Gate}
}

func comparedCells(rate float64, all []compared, b *bars) []string {
	is := func(g detector.Gate) int { return count(all, func(c compared) bool { return c.against == g }) }
	if rate == 0 {
		b.most("leak against the base", is(detector.Leak), len(all), shortBar)
	}
	return []string{
		percentText(count(all, func(c compared) bool { return c.alone == detector.Leak }), len(all)),
		percentText(is(detector.Leak), len(all)), percentText(is(detector.Inconclusive), len(all)),
	}
}
