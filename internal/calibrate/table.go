package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// table is one table of docs/detector.md.
type table struct {
	// name is the name of the table in its markers and for the -tables flag.
	name string
	// about describes what was measured and what the columns mean.
	about string
	head  []string
	rows  []row
}

// row is one line of a table, which summarizes many runs.
type row struct {
	name string
	runs int
	// hours is the simulated time of one run, summed over its processes.
	hours float64
	// one executes run i. Runs execute concurrently.
	one func(i int, r *rand.Rand)
	// cells returns the cells of the row that follow its name. It is called
	// once all runs are done.
	cells func(b *bars) []string
}

// study builds a row from two functions: one returns the result of a run, and
// sum summarizes all results in the cells.
func study[T any](name string, runs int, hours float64, one func(i int, r *rand.Rand) T,
	sum func(all []T, b *bars) []string) row {
	all := make([]T, runs)
	return row{
		name: name, runs: runs, hours: hours,
		one:   func(i int, r *rand.Rand) { all[i] = one(i, r) },
		cells: func(b *bars) []string { return sum(all, b) },
	}
}

// makers creates all tables, in the order of the page.
var makers = []struct {
	name string
	make func(o options) table
}{
	{"alarms", alarms},
	{"detection", detection},
	{"late", late},
	{"further", further},
	{"kinds", kinds},
	{"family", family},
	{"detectable", detectable},
	{"base", base},
	{"nights", nights},
	{"reach", reach},
	{"loops", loops},
}

func tableNames() []string {
	var names []string
	for _, m := range makers {
		names = append(names, m.name)
	}
	return names
}

// chosen returns the tables and rows that the options select.
func chosen(o options) []table {
	var out []table
	for _, m := range makers {
		if len(o.tables) > 0 && !slices.Contains(o.tables, m.name) {
			continue
		}
		t := m.make(o)
		t.name = m.name
		t.about += fmt.Sprintf(" Seed %d.", o.seed)
		t.rows = slices.DeleteFunc(t.rows, func(r row) bool { return o.only != nil && !o.only.MatchString(r.name) })
		if len(t.rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// markdown returns a table as Markdown and adds to b the bars that its figures
// miss.
func (t table) markdown(b *bars) string {
	var text strings.Builder
	line := func(cells []string) { fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | ")) }
	fmt.Fprintf(&text, "%s\n\n", t.about)
	line(t.head)
	line(slices.Repeat([]string{"---"}, len(t.head)))
	for _, r := range t.rows {
		b.at = t.name + ", " + r.name
		line(append([]string{r.name}, r.cells(b)...))
	}
	return text.String()
}
