package main

import (
	"fmt"
	"slices"
	"strings"
)

// text is a Markdown page under construction.
type text struct{ strings.Builder }

// table writes a table. Every row must have as many cells as the header.
func (t *text) table(head []string, rows [][]string) {
	line := func(cells []string) { fmt.Fprintf(t, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, cells := range rows {
		line(cells)
	}
}

// heading writes a heading and the paragraph below it.
func (t *text) heading(title, about string) { fmt.Fprintf(t, "\n### %s\n\n%s\n\n", title, about) }

// markdown returns the tables of all measurements.
func (p *plan) markdown(machine string) string {
	var t text
	fmt.Fprintf(&t, "Measured on %s; %d rounds.\n", machine, p.rounds)
	p.writeBars(&t)
	p.writeMade(&t)
	p.writeAndroid(&t)
	p.writeGrowth(&t)
	p.writePhases(&t)
	p.writeMissing(&t)
	return t.String()
}

func (p *plan) writeBars(t *text) {
	t.heading("Bars", "A bar is open if a figure that it needs is missing.")
	var rows [][]string
	for _, v := range p.verdicts() {
		rows = append(rows, []string{v.bar, v.measured, string(v.state)})
	}
	t.table([]string{"bar", "measured", "state"}, rows)
}

// head is the header of the tables about tools, without the columns that some
// of these tables have before or after it.
var head = []string{"dump", "tool", "runs", "wall s", "min s", "user+sys s", "peak MB"}

// cells returns the columns of head: among them the median wall time, the
// processor time of the run with this wall time, and the largest peak.
func (j *job) cells() []string {
	f := middle(j.figures)
	return []string{
		j.dump.name, j.tool.title(), fmt.Sprint(len(j.figures)), seconds(f.wall), seconds(fastest(j.figures)),
		seconds(f.cpu), megabytes(largest(j.figures)),
	}
}

// blank returns the columns of head for a row without figures.
func (j *job) blank() []string {
	return append([]string{j.dump.name, j.tool.title()}, slices.Repeat([]string{"-"}, len(head)-2)...)
}

func (p *plan) writeMade(t *text) {
	var rows [][]string
	for _, j := range p.jobs {
		if j.dump.asked == 0 {
			continue
		}
		if j.lack() != "" {
			rows = append(rows, append(j.blank(), "-"))
			continue
		}
		each := "?"
		if most := largest(j.figures); most > 0 {
			each = fmt.Sprintf("%.0f", float64(most)/float64(j.dump.objects))
		}
		rows = append(rows, append(j.cells(), each))
	}
	if len(rows) == 0 {
		return
	}
	var sizes []string
	for _, d := range p.dumps {
		if d.asked > 0 && d.objects > 0 {
			sizes = append(sizes,
				fmt.Sprintf("%s: %s MB, %.2f million objects", d.name, megabytes(d.bytes), float64(d.objects)/1e6))
		}
	}
	about := "The last column is the peak memory divided by the number of objects, in bytes."
	if len(sizes) > 0 {
		about += "\n\n* " + strings.Join(sizes, "\n* ")
	}
	t.heading("Dumps of a Java virtual machine", about)
	t.table(append(slices.Clone(head), "bytes/object"), rows)
}

func (p *plan) writeAndroid(t *text) {
	var rows [][]string
	for _, j := range p.jobs {
		switch {
		case j.dump.asked > 0:
		case j.lack() != "":
			rows = append(rows, j.blank())
		default:
			rows = append(rows, j.cells())
		}
	}
	if len(rows) == 0 {
		return
	}
	t.heading("Dumps of Android", "Recorded dumps of a few megabytes. The times include the start of the process.")
	t.table(head, rows)
}

func (p *plan) writeGrowth(t *text) {
	var rows [][]string
	var first *job
	for _, name := range p.scale {
		j := p.job(name, ours)
		if j.lack() != "" {
			continue
		}
		if first == nil {
			first = j
		}
		rows = append(rows, []string{
			name, fmt.Sprintf("%.2f", float64(j.dump.objects)/1e6), seconds(middle(j.figures).wall),
			fmt.Sprintf("%.0f", j.cost()), fmt.Sprintf("%.2f", j.growth(first)),
		})
	}
	if len(rows) == 0 {
		return
	}
	t.heading("Time per object",
		"The last column is the time per object relative to the first row, divided by the growth of log n.")
	t.table([]string{"dump", "million objects", "wall s", "ns/object", "relative to log n"}, rows)
}

func (p *plan) writePhases(t *text) {
	var rows [][]string
	for _, j := range p.jobs {
		if j.lack() != "" {
			continue
		}
		ph := middle(j.figures).phases
		if ph == nil || j.dump.asked == 0 {
			continue
		}
		for _, part := range ph.Phases {
			rows = append(rows, []string{
				j.dump.name, j.tool.name, fmt.Sprintf("%.2f", float64(ph.Edges)/1e6), plain([]byte(part.Name)),
				fmt.Sprintf("%.2f", part.Seconds), megabytes(part.RSSBytes),
			})
		}
	}
	if len(rows) == 0 {
		return
	}
	t.heading("Where the time goes",
		"As reported by leakgate, for the run with the median wall time. MB is the resident memory at the end of a "+
			"phase.")
	t.table([]string{"dump", "tool", "million edges", "phase", "s", "MB"}, rows)
}

// writeMissing lists the rows that have no figures, each with the reason.
func (p *plan) writeMissing(t *text) {
	var lines []string
	for _, j := range p.jobs {
		if reason := j.lack(); reason != "" {
			lines = append(lines, fmt.Sprintf("* %s, %s: %s", j.dump.name, j.tool.title(), reason))
		}
	}
	if len(lines) == 0 {
		return
	}
	t.heading("Not measured", strings.Join(lines, "\n"))
}
