package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leakgate/leakgate/detector"
)

// loopRun is a run of 12 min in 24 loops, with a forced collection at the end
// of each.
type loopRun struct {
	name string
	// perLoop is what each loop retains, in MB; noise is the standard deviation
	// after a collection.
	perLoop, noise float64
	// warm is the size in MB of a warm-up in the first loops, with a time
	// constant of tau loops.
	warm, tau float64
	// until is the number of the last loop that leaks.
	until int
}

const (
	loopTime  = 30 * time.Second
	loopCount = 24
)

// loops measures which leaks are detected within 12 minutes.
func loops(o options) table {
	t := table{
		about: fmt.Sprintf("%d runs per row without a leak, %d with one: 12 min with %d loops, a forced collection at "+
			"the end of each loop, and noise of 1 MB (standard deviation) after it. End verdicts are in "+
			"percent.", o.runs,
			o.detections, loopCount),
		head: []string{"run", "`leak`", "`pass`", "`inconclusive`"},
	}
	for _, x := range []loopRun{
		{"no leak", 0, 1, 0, 1, loopCount}, {"no leak, warm-up of 30 MB, tau 2 loops", 0, 1, 30, 2, loopCount},
		{"no leak, warm-up of 30 MB, tau 4 loops", 0, 1, 30, 4, loopCount},
		{"no leak, a cache of 12 MB fills in 12 loops", 1, 1, 0, 1, 12},
		{"0.5 MB per loop", 0.5, 1, 0, 1, loopCount}, {"1 MB per loop", 1, 1, 0, 1, loopCount},
		{"2 MB per loop", 2, 1, 0, 1, loopCount},
		{"1 MB per loop, warm-up of 30 MB, tau 2 loops", 1, 1, 30, 2, loopCount},
		{"2 MB per loop, warm-up of 30 MB, tau 2 loops", 2, 1, 30, 2, loopCount},
	} {
		runs := o.detections
		if x.perLoop == 0 || x.until < loopCount {
			runs = o.runs
		}
		one := func(_ int, r *rand.Rand) detector.Gate { return x.gate(r) }
		sum := func(all []detector.Gate, b *bars) []string { return x.cells(all, b) }
		t.rows = append(t.rows, study(x.name, runs, 0.2, one, sum))
	}
	return t
}

// gate returns the verdict on one run. Between collections, the samples contain
// the collector's sawtooth and the load.
func (x loopRun) gate(r *rand.Rand) detector.Gate {
	d := detector.New(detector.RobustPolicy())
	at, left, cold := 1000*time.Second, 0.0, x.warm
	for i := range loopCount {
		for k := range 2 {
			d.AddSample(detector.Sample{
				At: at, Bytes: int64((300 + left + x.warm - cold + 30*r.Float64()) * detector.MB),
			})
			at += loopTime / 3
			_ = k
		}
		if i < x.until {
			left += x.perLoop
		}
		cold *= 1 - 1/x.tau
		s := detector.Sample{At: at, Bytes: int64((290 + left + x.warm - cold + x.noise*r.NormFloat64()) * detector.MB)}
		d.AddSample(s)
		d.AddCollected(s)
		at += loopTime / 3
	}
	return d.Verdict().Gate
}

func (x loopRun) cells(all []detector.Gate, b *bars) []string {
	is := func(g detector.Gate) int { return count(all, func(got detector.Gate) bool { return got == g }) }
	n := len(all)
	switch {
	case x.until < loopCount || x.perLoop == 0:
		b.most("leak", is(detector.Leak), n, alarmsBar)
	case x.warm == 0 && x.perLoop == 1:
		b.least("leak", is(detector.Leak), n, 50)
	case x.warm == 0 && x.perLoop == 2:
		b.least("leak", is(detector.Leak), n, 80)
	}
	return []string{
		percentText(is(detector.Leak), n), percentText(is(detector.Pass), n), percentText(is(detector.Inconclusive), n),
	}
}
