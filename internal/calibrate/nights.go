package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// nights measures runs with events such as restarts, trims and steps.
func nights(o options) table {
	t := table{
		about: fmt.Sprintf("%d runs of 8 h per row, each with the events that the row names. End verdicts are in "+
			"percent.", o.nights),
		head: []string{"night", "`leak`", "`pass`", "`settled`", "`inconclusive`"},
	}
	for _, n := range scenario.Nights() {
		one := func(_ int, r *rand.Rand) detector.Gate {
			how := robust()
			how.watched = n.Watched
			s := n.Draw(r)
			return how.end(&s, r).gate
		}
		sum := func(all []detector.Gate, b *bars) []string { return nightCells(n, all, b) }
		t.rows = append(t.rows, study(n.Name, o.nights, whole, one, sum))
	}
	return t
}

// nightBar holds the limits, in percent, that apply to one row of nightly runs.
type nightBar struct{ leakLeast, leakMost, passMost, settledMost float64 }

// nightBars holds the bars that apply to a single row, by the name of the row;
// nightBarOf returns the bars of all rows.
var nightBars = map[string]nightBar{
	"OOM at 512 MB, app, 600 MB/h":                {95, 100, 0, 0},
	"OOM at 512 MB, app, 1200 MB/h":               {95, 100, 0, 0},
	"plain, 0 MB/h, restart every 10 min":         {0, 1, 100, 0},
	"plain, 300 MB/h, restart every 10 min":       {90, 100, 0, 0},
	"plain, 0 MB/h, restart every 25 min":         {0, 1, 100, 0},
	"plain, 100 MB/h, restart every 25 min":       {90, 100, 0, 0},
	"app, 0 MB/h, restart every 10 min":           {0, 8, 0, 0},
	"app, 100 MB/h, restart every 10 min":         {0, 100, 0, 0},
	"app, 300 MB/h, restart every 10 min":         {0, 100, 0, 0},
	"app, 0 MB/h, restart every 25 min":           {0, 4, 0, 0},
	"app, 100 MB/h, restart every 25 min":         {0, 100, 0, 0},
	"app, 300 MB/h, restart every 25 min":         {0, 100, 0, 0},
	"app, 0 MB/h, restart every 60 min":           {0, alarmsBar, 100, 5},
	"app, 0 MB/h":                                 {0, alarmsBar, 100, 5},
	"app, 20 MB/h":                                {95, 100, 0, 0},
	"app, 50 MB/h starting at 4 h":                {95, 100, 0, 0},
	"80 MB lumps, one per hour":                   {60, 100, 2, 2},
	"app, 50 MB/h, one trim of 300 MB":            {70, 100, 0, 10},
	"app, 0 MB/h, one trim of 300 MB":             {0, alarmsBar, 100, 5},
	"plain, 100 MB/h of ashmem, source status":    {95, 100, 0, 0},
	"plain, 0 MB/h of ashmem, source status":      {0, alarmsBar, 100, 5},
	"teeth of 200 to 300 MB, every 60 to 120 min": {0, alarmsBar, 100, 100},
	"refill of 60 to 150 MB, trimmed every hour":  {0, alarmsBar, 100, 100},
	"1 step of 40 to 80 MB at any time":           {0, alarmsBar, 100, 100},
	"2 steps of 40 to 80 MB at any time":          {0, alarmsBar, 100, 100},
	"3 steps of 40 to 80 MB at any time":          {0, 3, 100, 100},
}

// nightBarOf returns the bar of a row; rows of the same kind have the same bar.
func nightBarOf(n scenario.Night) nightBar {
	bar, ok := nightBars[n.Name]
	switch {
	case ok:
		return bar
	case n.Leaks && strings.Contains(n.Name, "workload ends"), n.Leaks && strings.Contains(n.Name, "background"):
		return nightBar{95, 100, 0, 0}
	case n.Leaks && strings.Contains(n.Name, "gaps"):
		return nightBar{90, 100, 0, 0}
	case n.Leaks:
		return nightBar{0, 100, 10, 20}
	}
	return nightBar{0, alarmsBar, 100, 5}
}

func nightCells(n scenario.Night, all []detector.Gate, b *bars) []string {
	is := func(g detector.Gate) int { return count(all, func(got detector.Gate) bool { return got == g }) }
	bar, of := nightBarOf(n), len(all)
	b.least("leak", is(detector.Leak), of, bar.leakLeast)
	b.most("leak", is(detector.Leak), of, bar.leakMost)
	b.most("pass", is(detector.Pass), of, bar.passMost)
	b.most("settled", is(detector.Settled), of, bar.settledMost)
	var cells []string
	for _, g := range []detector.Gate{detector.Leak, detector.Pass, detector.Settled, detector.Inconclusive} {
		cells = append(cells, percentText(is(g), of))
	}
	return cells
}
