package trip

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// result returns the result of the trip so far.
func (t *trip) result(ctx context.Context, err error) record.Trip {
	r := record.Trip{
		Schema: record.TripSchema, Device: t.Device, Process: t.Process, User: t.user,
		WarmUp: t.warmedUp, Loops: t.done, LoopsPerReading: t.LoopsPerReading, Readings: len(t.series.readings),
		Stopped: t.stopped, Measures: []record.TripMeasure{}, Growing: []record.Finding{}, Warnings: []string{},
	}
	if ctx.Err() != nil {
		r.Stopped = record.TripStoppedInterrupted
	}
	if t.process != nil {
		r.PID = t.process.PID
	}
	judged := t.judged()
	for i := range judged {
		r.Measures = append(r.Measures, judged[i].record())
	}
	r.Measures = append(r.Measures, t.heap(&r))
	slices.SortStableFunc(r.Measures,
		func(a, b record.TripMeasure) int { return weightOf(a.Verdict) - weightOf(b.Verdict) })
	if t.unsettled > 0 {
		t.warn(fmt.Sprintf("the process did not settle before %d of %d readings", t.unsettled, r.Readings))
	}
	if n := t.series.swapped(); n > 0 {
		t.warn(fmt.Sprintf("%s was swapped out during the trip: the dimensions do not include it", text.KB(n)))
	}
	r.Warnings = append(r.Warnings, t.warnings...)
	r.Reason = t.reason(&r, err)
	conclude(&r)
	return r
}

// weightOf returns the position of a verdict in the order from worst to best.
func weightOf(v record.CheckVerdict) int {
	return slices.Index([]record.CheckVerdict{
		record.VerdictLeak, record.VerdictInconclusive, record.VerdictPass, record.VerdictNotChecked,
	}, v)
}

// heap returns the measure of the places that grow in heap dumps.
func (t *trip) heap(r *record.Trip) record.TripMeasure {
	m := record.TripMeasure{
		Name: "heap", Unit: record.UnitCount, Values: []*float64{}, Verdict: record.VerdictNotChecked,
		Text: "heap dumps were disabled",
	}
	if t.heaps == nil {
		return m
	}
	verdict, growing, reason := t.heaps.verdict()
	r.Dumps = t.heaps.taken
	if t.heaps.report != nil {
		r.Found = t.heaps.report.Found
		for _, w := range t.heaps.report.Warnings {
			if !strings.HasPrefix(w, "two dumps prove little") { // the verdict already contains it
				r.Warnings = append(r.Warnings, text.Head(w, maxStep))
			}
		}
	}
	r.Growing = findings(growing)
	m.Verdict, m.Text, m.Grows = verdict, reason, verdict == record.VerdictLeak
	if t.heaps.compared >= firstDumps || t.heaps.again {
		m.PerLoop, m.SmallestFound = new(perLoop(growing)), new(1.0)
	}
	return m
}

// record returns one measure in the form of the result.
func (j *judgedMeasure) record() record.TripMeasure {
	m := record.TripMeasure{Name: j.name, Unit: j.rule.unit, Values: j.values}
	if j.fitted {
		m.PerLoop, m.Interval = new(rounded(j.line.slope)), []float64{rounded(j.low), rounded(j.high)}
	}
	m.Verdict, m.Text = j.verdict()
	m.Grows = m.Verdict == record.VerdictLeak
	if m.Verdict == record.VerdictPass && !j.overruled {
		m.SmallestFound = new(rounded(j.smallest()))
	}
	return m
}

// rounded rounds a rate to three decimal places.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

// smallest returns the lowest rate at which the measure would not have passed.
func (j *judgedMeasure) smallest() float64 {
	if j.rule.unit == record.UnitCount {
		return j.rule.found
	}
	// If a measure has leveled off, the latest rate bounds the growth that may
	// remain.
	rest := 0.0
	if j.flattened {
		rest = j.curve.latest + 2*j.curve.sd
	}
	// The last value is the rate that is detected with a probability of 95 %,
	// if noise alone causes a false alarm with a probability of 2.5 %.
	return max(j.rule.found, rest, j.high, (quantile(0.975, j.line.df)+quantile(0.95, j.line.df))*j.line.se)
}

// verdict judges the measure as if the trip ended now.
func (j *judgedMeasure) verdict() (record.CheckVerdict, string) {
	switch {
	case j.readings == 0:
		return record.VerdictNotChecked, "not read"
	case j.rule.shown:
		return record.VerdictNotChecked, "not judged: depends on other processes"
	case j.overruled:
		return record.VerdictPass, "heap dumps show no growth"
	case j.state == unread:
		return record.VerdictInconclusive, fmt.Sprintf("only %s", text.Count(j.readings, "reading", "readings"))
	case j.state == growing:
		return record.VerdictLeak, "grows with every loop"
	case j.state == quiet && j.line.slope >= j.rule.least && j.flattened:
		return record.VerdictPass, "grew and leveled off"
	case j.state == quiet:
		return record.VerdictPass, "does not grow"
	case j.state == rising && j.flattened:
		return record.VerdictInconclusive, "growth slows, like a filling cache; needs more loops"
	case j.state == rising && j.readings <= leastMemory:
		return record.VerdictInconclusive, "grows; too few readings to distinguish a leak from a filling cache"
	case j.state == rising:
		return record.VerdictInconclusive, "grows, but unevenly; needs more loops"
	}
	return record.VerdictPass, fmt.Sprintf("no sustained growth; growth of less than %s could be hidden by noise",
		j.rule.level(j.smallest()))
}

// reason returns why the trip ended.
func (t *trip) reason(r *record.Trip, err error) string {
	switch {
	case r.Stopped == record.TripStoppedInterrupted:
		return "interrupted"
	case err != nil:
		return text.Head(err.Error(), maxStep)
	case r.Stopped == record.TripStoppedQuiet:
		return "nothing grows any more"
	}
	return "all loops are done"
}

// conclude combines the verdicts of the measures.
func conclude(r *record.Trip) {
	var leaks, doubts []string
	for _, m := range r.Measures {
		switch m.Verdict {
		case record.VerdictLeak:
			leaks = append(leaks, leakText(r, &m))
			r.Judged = true
		case record.VerdictInconclusive:
			doubts = append(doubts, m.Name+" "+m.Text)
		case record.VerdictPass:
			r.Judged = true
		}
	}
	ended := r.Stopped == record.TripStoppedQuiet || r.Stopped == record.TripStoppedLoops
	after := text.Count(r.Loops, "loop", "loops")
	switch {
	case len(leaks) > 0:
		r.Verdict, r.Text = record.VerdictLeak, listed(leaks, "; ")
	case !ended:
		r.Verdict, r.Judged = record.VerdictInconclusive, false
		r.Text = fmt.Sprintf("ended after %s: %s", after, r.Reason)
	case len(doubts) > 0:
		r.Verdict, r.Text = record.VerdictInconclusive, fmt.Sprintf("after %s: %s", after, listed(doubts, "; "))
	case !r.Judged:
		r.Verdict, r.Text = record.VerdictInconclusive, "nothing could be read"
	default:
		r.Verdict, r.Text = record.VerdictPass,
			fmt.Sprintf("nothing grows after %s%s", after, detectable(r))
	}
}

// shownParts is the maximum number of parts of a verdict that one line shows.
const shownParts = 3

func listed(parts []string, between string) string {
	if n := len(parts) - shownParts; n > 0 {
		parts = append(slices.Clone(parts[:shownParts]), fmt.Sprintf("and %d more", n))
	}
	return strings.Join(parts, between)
}

func leakText(r *record.Trip, m *record.TripMeasure) string {
	if m.Name == "heap" {
		first := r.Growing[0]
		more := ""
		if n := len(r.Growing) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		if *m.PerLoop == 0 { // objects become larger, not more numerous
			return first.Name + more + ": larger with every loop"
		}
		objects := "objects"
		if *m.PerLoop == 1 {
			objects = "object"
		}
		return fmt.Sprintf("%s%s: %+.3g %s per loop", first.Name, more, *m.PerLoop, objects)
	}
	return fmt.Sprintf("%s %s", m.Name, perLoopText(m.Unit, *m.PerLoop))
}

func perLoopText(unit string, rate float64) string { return rule{unit: unit}.perLoop(rate) }

// detectable lists the smallest rates that would have been detected. It is used
// for a trip that passed.
func detectable(r *record.Trip) string {
	var parts []string
	for _, name := range []string{"heap", "Activities", "native_heap"} {
		i := slices.IndexFunc(r.Measures,
			func(m record.TripMeasure) bool { return m.Name == name && m.SmallestFound != nil })
		if i < 0 {
			continue
		}
		m := &r.Measures[i]
		what := map[string]string{"heap": "object", "Activities": "activity", "native_heap": "of native memory"}[name]
		if m.Unit == record.UnitKB {
			parts = append(parts, fmt.Sprintf("%s %s", text.KB(int64(math.Ceil(*m.SmallestFound))), what))
		} else {
			parts = append(parts, fmt.Sprintf("%.2g %s", *m.SmallestFound, what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; would have detected " + listed(parts, ", ") + " per loop"
}
