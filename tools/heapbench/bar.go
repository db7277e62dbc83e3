package main

import (
	"fmt"
	"math"
	"time"
)

// state says whether the figures meet a bar. A bar is open if a figure that it
// needs is missing.
type state string

const (
	met    state = "met"
	missed state = "missed"
	open   state = "open"
)

// verdict is the state of a bar, with the measured values.
type verdict struct {
	bar, measured string
	state         state
}

const (
	// androidLimit is the maximum wall time of a process that analyzes a dump
	// of a few megabytes. This time matters because a gate analyzes many dumps.
	androidLimit = 200 * time.Millisecond
	// tracingLimit is the maximum time of leak traces, as a share of the
	// engine's time.
	tracingLimit = 1. / 3
	// growthLimit is the maximum growth of the time per object, divided by the
	// growth of log n. Part of this growth occurs because the data no longer
	// fits in the processor's caches. Work proportional to n^1.25 exceeds the
	// limit for these sizes.
	growthLimit = 2
)

// verdicts compares the figures with all bars.
func (p *plan) verdicts() []verdict {
	out := []verdict{
		p.ratio("mid: time at most a quarter of hprof-analyzer's", "mid", ours, analyzer, wallTime, 0.25),
		p.ratio("mid: peak memory at most hprof-analyzer's", "mid", ours, analyzer, peakMemory, 1),
		p.ratio("big: time at most a third of hprof-analyzer's", "big", ours, analyzer, wallTime, 1./3),
		p.ratio("mid: reading alone at most 1.5 times the time of hprof-slurp", "mid", reading, slurp, wallTime, 1.5),
		p.ratio("big: reading alone at most 1.5 times the time of hprof-slurp", "big", reading, slurp, wallTime, 1.5),
		p.tracing("big"),
		p.ratio("mid: peak memory of growth over three dumps at most twice that of analyze", "mid", growing, ours,
			peakMemory,
			2),
		p.growth(),
	}
	for _, d := range p.dumps {
		if d.asked == 0 {
			out = append(out, p.android(d))
		}
	}
	if p.noAndroid != "" {
		out = append(out, verdict{androidBar("each Android dump"), p.noAndroid, open})
	}
	return out
}

// quantity is a measure by which two tools are compared. Its functions compute
// the value from the runs of a tool and format the value with its unit.
type quantity struct {
	of   func([]figure) float64
	text func(float64) string
}

var (
	wallTime = quantity{
		of:   func(all []figure) float64 { return float64(middle(all).wall) },
		text: func(v float64) string { return seconds(time.Duration(v)) + " s" },
	}
	peakMemory = quantity{
		of:   func(all []figure) float64 { return float64(largest(all)) },
		text: func(v float64) string { return megabytes(int64(v)) + " MB" },
	}
)

// ratio compares one of our tools with a peer on one dump.
func (p *plan) ratio(bar, dump, tool, peer string, q quantity, limit float64) verdict {
	mine, theirs := p.job(dump, tool), p.job(dump, peer)
	if v, done := blocked(bar, mine); done {
		return v
	}
	if reason := theirs.lack(); reason != "" {
		return verdict{bar, peer + ": " + reason, open}
	}
	a, b := q.of(mine.figures), q.of(theirs.figures)
	if a <= 0 || b <= 0 {
		return verdict{bar, "unknown on this system", open}
	}
	return verdict{bar, fmt.Sprintf("%s of %s = %.2f", q.text(a), q.text(b), a/b), atMost(a, limit*b)}
}

// tracePhases are the phases that compute leak traces; enginePhases are the
// phases before them that build the graph.
var (
	tracePhases = []string{
		"inspect objects", "find holders", "read fields", "find paths", "find fingerprints", "trace leaks",
		"weigh leaks",
	}
	enginePhases = []string{
		"read names", "read objects", "number objects", "read references", "search", "dominators", "sizes",
	}
)

// tracing compares the time of leak traces with the time of the engine in the
// same run.
func (p *plan) tracing(dump string) verdict {
	bar := dump + ": traces of a thousand leaking objects add at most a third to the engine's time"
	j := p.job(dump, tracing)
	if v, done := blocked(bar, j); done {
		return v
	}
	told := middle(j.figures).phases
	engine, traces := told.of(enginePhases), told.of(tracePhases)
	if engine <= 0 || traces <= 0 {
		return verdict{bar, "leakgate does not report its phases", open}
	}
	return verdict{
		bar, fmt.Sprintf("%.2f s of %.2f s = %.2f", traces, engine, traces/engine), atMost(traces, tracingLimit*engine),
	}
}

func androidBar(what string) string { return what + ": less than " + seconds(androidLimit) + " s" }

// android compares the wall time for one Android dump with its bar. The time
// includes the start of the process.
func (p *plan) android(d *dump) verdict {
	bar := androidBar(d.name)
	mine := p.job(d.name, ours)
	if v, done := blocked(bar, mine); done {
		return v
	}
	wall := middle(mine.figures).wall
	v := verdict{bar, seconds(wall) + " s", met}
	if wall >= androidLimit {
		v.state = missed
	}
	return v
}

// growth compares the growth of the time per object with that of log n. All
// sizes are required: the smaller ones alone prove nothing.
func (p *plan) growth() verdict {
	bar := fmt.Sprintf("%s to %s: time per object grows at most %d times as fast as log n", p.scale[0],
		p.scale[len(p.scale)-1], growthLimit)
	worst := 0.
	var first *job
	for _, name := range p.scale {
		j := p.job(name, ours)
		if v, done := blocked(bar, j); done {
			v.measured = name + ": " + v.measured
			return v
		}
		if first == nil {
			first = j
		}
		worst = max(worst, j.growth(first))
	}
	return verdict{bar, fmt.Sprintf("%.2f times", worst), atMost(worst, growthLimit)}
}

// growth returns the time per object relative to that of the first row, divided
// by the growth of log n.
func (j *job) growth(first *job) float64 {
	return (j.cost() / first.cost()) / (math.Log(float64(j.dump.objects)) / math.Log(float64(first.dump.objects)))
}

// cost returns the time per object in nanoseconds.
func (j *job) cost() float64 {
	return float64(middle(j.figures).wall.Nanoseconds()) / float64(j.dump.objects)
}

// blocked returns a verdict if leakgate has no figures: missed if it failed,
// otherwise open.
func blocked(bar string, mine *job) (verdict, bool) {
	if mine != nil && mine.failed != "" {
		return verdict{bar, mine.tool.name + ": " + mine.failed, missed}, true
	}
	if reason := mine.lack(); reason != "" {
		return verdict{bar, reason, open}, true
	}
	return verdict{}, false
}

// lack returns the reason why a row has no figures to judge by, or "" if there
// are figures. If a tool failed once, its earlier runs are not judged.
func (j *job) lack() string {
	switch {
	case j == nil:
		return "not measured"
	case j.dump.missing != "":
		return j.dump.missing
	case j.tool.missing != "":
		return j.tool.missing
	case j.failed != "":
		return j.failed
	case len(j.figures) == 0:
		return "not measured"
	}
	return ""
}

func atMost(value, limit float64) state {
	if value <= limit {
		return met
	}
	return missed
}
