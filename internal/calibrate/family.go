package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// family measures how often a run with many leak-free processes raises an
// alarm.
//
// A simulated run of 100 processes would yield only one figure. The processes
// of a run are independent here, so it is enough to measure how often one
// process raises an alarm when it is watched and judged as one of 100.
func family(o options) table {
	pool := max(1, o.runs*16/5)
	t := table{
		about: fmt.Sprintf("The given number of processes are watched and judged together for 8 h, each drawn from "+
			"the rows of the first table except the random walks. Each row simulates %d members of such groups. If p "+
			"is the share of the members with end verdict `leak`, a run of n processes raises an alarm with "+
			"probability 1 - (1 - p)^n. *at most* is the same for the upper 95 %% bound of p.", pool),
		head: []string{"processes", "simulated", "alarms", "runs with an alarm, %", "at most, %"},
	}
	mix := slices.DeleteFunc(scenario.Null(whole), func(s scenario.Scenario) bool { return s.Walk > 0 })
	for _, n := range []int{1, 10, 100} {
		how := robust()
		how.watched.Processes, how.among = n, n
		one := func(i int, r *rand.Rand) detector.Gate { return how.end(&mix[i%len(mix)], r).gate }
		sum := func(all []detector.Gate, b *bars) []string { return familyCells(n, all, b) }
		t.rows = append(t.rows, study(fmt.Sprint(n), pool, whole, one, sum))
	}
	return t
}

func familyCells(n int, all []detector.Gate, b *bars) []string {
	hits := count(all, func(g detector.Gate) bool { return g == detector.Leak })
	share := atLeastOne(float64(hits)/float64(len(all)), n)
	// Convert the bar for a run of n processes to the bar for one process.
	b.most(fmt.Sprintf("leak (an alarm in %.1f %% of the runs of %d processes)", 100*share, n), hits, len(all),
		100*(1-math.Pow(1-familyBar/100., 1/float64(n))))
	return []string{
		fmt.Sprint(len(all)), fmt.Sprint(hits),
		shortText(fmt.Sprintf("%.1f", 100*share)),
		shortText(fmt.Sprintf("%.1f", 100*atLeastOne(upper(hits, len(all)), n))),
	}
}

// atLeastOne returns the probability that at least one of n events happens,
// each with probability p.
func atLeastOne(p float64, n int) float64 { return 1 - math.Pow(1-p, float64(n)) }
