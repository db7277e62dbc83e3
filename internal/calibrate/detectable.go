package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// factors are the rates of the simulated leaks, as multiples of the slowest
// detectable one.
var factors = []float64{1 / 1.5, 1, 1.5}

// promise checks the slowest detectable leak, in MB/h, that the verdict on a
// run without a leak states: found holds, for each of factors, whether a leak
// of that multiple was found in a run of the same length and noise.
type promise struct {
	rate   float64
	passed bool
	found  []bool
}

// detectable measures whether the slowest detectable leak that a verdict states
// is correct.
func detectable(o options) table {
	t := table{
		about: fmt.Sprintf("%d pairs of runs per row. The first run has no leak; m is the slowest leak that would "+
			"have been detected in it according to its verdict (median in MB/h). The second run has different noise "+
			"and a leak of m/1.5, m or 1.5 m from the start; the figures are percentages of end verdicts `leak`. "+
			"*none* is the percentage of verdicts without m.", o.detections),
		head: []string{"noise, length", "m", "none", "m/1.5", "m", "1.5 m"},
	}
	for _, hours := range lengths {
		for _, s := range scenario.Noise(hours) {
			one := func(_ int, r *rand.Rand) promise { return promised(s, r) }
			t.rows = append(t.rows,
				study(fmt.Sprintf("%s, %g h", s.Name, hours), o.detections, hours*float64(1+len(factors)), one,
					promiseCells))
		}
	}
	return t
}

func promised(s scenario.Scenario, r *rand.Rand) promise {
	how := robust()
	e := how.end(&s, r)
	out := promise{rate: e.detectable, passed: e.gate == detector.Pass}
	if out.rate <= 0 {
		return out
	}
	for _, f := range factors {
		s.Leak = f * out.rate
		out.found = append(out.found, how.end(&s, r).gate == detector.Leak)
	}
	return out
}

func promiseCells(all []promise, b *bars) []string {
	var rates []float64
	hits := make([]int, len(factors))
	for _, p := range all {
		if p.rate <= 0 {
			continue
		}
		rates = append(rates, p.rate)
		for i, found := range p.found {
			if found {
				hits[i]++
			}
		}
	}
	n, last := len(rates), len(factors)-1
	b.most("`pass` without m", count(all, func(p promise) bool { return p.passed && p.rate <= 0 }), len(all), 0)
	if n > 0 {
		b.least("a leak of 1.5 m was found", hits[last], n, reachBar)
		if 100*hits[0] >= foundBar*n {
			b.miss("a leak of m/1.5 was found in %s %%: m is too cautious", percentText(hits[0], n))
		}
	}
	cells := []string{timeText(quantile(rates, 0.5)), percentText(len(all)-n, len(all))}
	for _, h := range hits {
		cells = append(cells, percentText(h, n))
	}
	return cells
}
