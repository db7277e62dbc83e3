package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// kindOf maps the dimensions that leak to the kinds of leaks in reports.
var kindOf = map[scenario.Dim]detector.LeakKind{
	scenario.Java: detector.Java, scenario.Native: detector.Native, scenario.Graphics: detector.GPU,
	scenario.Stack: detector.Thread,
}

// kinds measures how often an alarm names the dimension that leaks.
func kinds(o options) table {
	t := table{
		about: fmt.Sprintf("%d processes per row, 8 h, with a leak of one dimension; the detail channel serves the "+
			"given number of processes, one every 30 s. *alarms* is a percentage of the processes; the right kind, "+
			"`unknown` and a wrong kind are percentages of these alarms.", o.detections),
		head: []string{"leak", "alarms", "right", "`unknown`", "wrong"},
	}
	for _, processes := range []int{1, 5, 20} {
		for _, s := range scenario.Kinds(whole) {
			how := robust()
			how.watched.Processes = processes
			name := fmt.Sprintf("%s, %d served", s.Name, processes)
			one := func(_ int, r *rand.Rand) ending { return how.end(&s, r) }
			sum := func(all []ending, b *bars) []string { return kindCells(s, all, b) }
			t.rows = append(t.rows, study(name, o.detections, whole, one, sum))
		}
	}
	return t
}

func kindCells(s scenario.Scenario, all []ending, b *bars) []string {
	found := count(all, ending.found)
	is := func(k detector.LeakKind) int {
		return count(all, func(e ending) bool { return e.found() && e.kind == k })
	}
	if s.Leak == 0 {
		b.most("GPU leak", is(detector.GPU), len(all), gpuBar)
		return []string{
			percentText(found, len(all)), "-", percentText(is(detector.Unknown), found),
			percentText(found-is(detector.Unknown), found),
		}
	}
	right := is(kindOf[s.LeakDim])
	b.least("the right kind", right, found, kindBar)
	return []string{
		percentText(found, len(all)), percentText(right, found),
		percentText(is(detector.Unknown), found), percentText(found-right-is(detector.Unknown), found),
	}
}
