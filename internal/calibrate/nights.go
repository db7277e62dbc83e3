package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// nights is runs in which something happens.
func nights(o options) table {
	t := table{
		about: fmt.Sprintf("%d runs of 8 h a row, in which something happens. End verdicts in percent.", o.nights),
		head:  []string{"night", "`leak`", "`pass`", "`settled`", "`inconclusive`"},
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

func nightCells(n scenario.Night, all []detector.Gate, b *bars) []string {
	var cells []string
	for _, g := range []detector.Gate{detector.Leak, detector.Pass, detector.Settled, detector.Inconclusive} {
		cells = append(cells, percentText(count(all, func(x detector.Gate) bool { return x == g }), len(all)))
	}
	return cells
}
