package bisect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// maxReason is the maximum length of a reason in characters.
	maxReason = 300
	// heapStep is the step of a diagnosis that takes a heap dump.
	heapStep = "heap"
	// fewestSettled and fewestUnsettled are the minimum numbers of dumps, each
	// with more objects than the one before, that prove a leak in an idle app
	// and in an app in use. The same minimums apply to dumps at marks.
	fewestSettled   = 3
	fewestUnsettled = 5
)

// reading is one run together with the leak to look for.
type reading struct {
	run  record.Run
	trip *record.Trip
	key  string
	// leaks contains all leaks found in the runs, by key.
	leaks map[string]sighting
	// there describes the leak as it was found in the run. It is "" if the leak
	// was not found.
	there string
}

// matches records a leak and reports whether it is the leak to look for.
func (r *reading) matches(key, name string, classes []record.ClassCount, grows bool) bool {
	l := r.leaks[key]
	l.name, l.grows = cmp.Or(l.name, name), l.grows || grows
	for _, c := range classes {
		if !slices.Contains(l.classes, c.Class) {
			l.classes = append(l.classes, c.Class)
		}
	}
	r.leaks[key] = l
	if !strings.HasPrefix(key, r.key) {
		return false
	}
	r.there = cmp.Or(r.there, text.Head(name, maxReason/2), key)
	return true
}

// process identifies one life of a process.
type process struct {
	device  string
	user    int
	process string
	pid     int
}

// judge combines the evidence of the run into one judgment. It first considers
// evidence that proves the leak, then evidence that prevents a verdict.
func (r *reading) judge() judgment {
	list := append(r.marks(), r.checks()...)
	list = append(list, r.dumps()...)
	list = append(list, r.growing()...)
	for _, j := range list {
		if j.CommitResult == Bad && j.basis == growth {
			return j
		}
	}
	if why := r.incomplete(); why != "" {
		return skipped("%s", text.Head(why, maxReason))
	}
	if len(list) == 0 {
		return r.byTrend()
	}
	return worst(list)
}

func (r *reading) proved(by basis, format string, args ...any) judgment {
	return judgment{
		CommitResult: Bad, basis: by, reason: text.Head(r.there+": "+fmt.Sprintf(format, args...), maxReason),
	}
}

// marks judges the run by its heap dumps at marks.
func (r *reading) marks() []judgment {
	var out []judgment
	for i := range r.run.Processes {
		p := &r.run.Processes[i]
		for k := range p.AtMarks {
			out = append(out, r.series(p, &p.AtMarks[k]))
		}
	}
	return out
}

func (r *reading) series(p *record.Process, s *record.MarkSeries) judgment {
	missing := skippedLeaks(s.LeaksOmitted)
	var found *record.LeakSeries
	for i := range s.Leaks {
		l := &s.Leaks[i]
		if r.matches(l.Key, l.Name, l.Classes, l.Proved) && found == nil {
			found = l
		}
	}
	if l := found; l != nil {
		if l.Proved {
			return r.proved(growth, "%s objects at marks in %s", text.Series(l.Counts), p.Process)
		}
		settled := !slices.ContainsFunc(s.Dumps, func(d record.MarkDump) bool { return !d.Settled })
		return r.counted(p.Process, l.Counts, settled)
	}
	if missing != "" {
		return skipped("%s of %s", missing, p.Process)
	}
	return absent("not in %s at marks of %s", text.Count(len(s.Dumps), "heap dump", "heap dumps"),
		text.Head(p.Process, maxReason/2))
}

func skippedLeaks(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("the record lacks %s", text.Count(n, "leak", "leaks"))
}

// counted judges a leak by the number of its objects in the dumps of one life,
// if these dumps do not prove the leak by the rule for dumps at marks.
func (r *reading) counted(name string, counts []int64, settled bool) judgment {
	fewest := fewestUnsettled
	if settled {
		fewest = fewestSettled
	}
	enough := len(counts) >= fewest
	switch {
	case len(counts) == 1 && counts[0] > 0:
		return r.proved(presence, "%s in the only heap dump of %s",
			text.Count(int(min(counts[0], 1<<30)), "object", "objects"), name)
	case slices.Max(counts) <= 0:
		return absent("not in %s of %s", text.Count(len(counts), "heap dump", "heap dumps"),
			text.Head(name, maxReason/2))
	case enough && slices.Max(counts) <= counts[0]:
		return judgment{
			CommitResult: Good, basis: flat,
			reason: text.Head(fmt.Sprintf("%s does not grow: %s objects in %s", r.there, text.Series(counts), name),
				maxReason),
		}
	case !enough:
		return skipped("%s: %s objects in %s; %d heap dumps are needed", r.there, text.Series(counts),
			text.Head(name, maxReason/3), fewest)
	}
	return skipped("%s: %s objects in %s; the number does not grow in each heap dump", r.there, text.Series(counts),
		text.Head(name, maxReason/3))
}

// checks judges the run by the checks of specs and tests.
func (r *reading) checks() []judgment {
	var out []judgment
	for i := range r.run.Checks {
		c := &r.run.Checks[i]
		if c.Verdict != record.VerdictSkipped {
			out = append(out, r.check(c))
		}
	}
	return out
}

func (r *reading) check(c *record.Check) judgment {
	var found int64
	for i := range c.Processes {
		for _, l := range c.Processes[i].Leaks {
			if r.matches(l.Key, l.Name, l.Classes, l.New > 0) && found <= 0 {
				found = l.New
			}
		}
	}
	if found > 0 {
		return r.proved(growth, "%s after %s", text.Count(int(min(found, 1<<30)), "more object", "more objects"),
			c.Name)
	}
	if c.Verdict == record.VerdictInconclusive || c.Verdict == record.VerdictNotChecked {
		return skipped("check %s: %s", text.Head(c.Name, maxReason/3), text.Head(c.Text, maxReason/2))
	}
	return absent("no check found the leak")
}

// For each life without dumps at marks, dumps judges the other heap dumps.
func (r *reading) dumps() []judgment {
	atMarks := map[process]bool{}
	for i := range r.run.Processes {
		p := &r.run.Processes[i]
		for _, s := range p.AtMarks {
			atMarks[process{p.Device, p.User, p.Process, s.PID}] = true
		}
	}
	of, order := map[process][]*record.Diagnosis{}, []process{}
	for i := range r.run.Diagnoses {
		d := &r.run.Diagnoses[i]
		id := process{d.Device, d.User, d.Process, d.PID}
		if !takesHeap(d) || atMarks[id] {
			continue
		}
		if of[id] == nil {
			order = append(order, id)
		}
		of[id] = append(of[id], d)
	}
	var out []judgment
	for _, id := range order {
		out = append(out, r.life(id, of[id]))
	}
	return out
}

// takesHeap reports whether a diagnosis contains, or should contain, a heap
// dump.
func takesHeap(d *record.Diagnosis) bool {
	return d.Leaks != nil || slices.ContainsFunc(d.Steps, func(c record.Collected) bool { return c.Step == heapStep })
}

func (r *reading) life(id process, list []*record.Diagnosis) judgment {
	slices.SortStableFunc(list, func(a, b *record.Diagnosis) int { return cmp.Compare(a.T, b.T) })
	var counts []int64
	settled, missing := true, ""
	for _, d := range list {
		n := int64(0)
		for _, l := range d.Leaks {
			if r.matches(l.Key, l.Name, l.Classes, false) {
				n += max(l.Count, 0)
			}
		}
		if d.Leaks == nil {
			missing = "a heap dump was not analyzed"
		}
		if n == 0 {
			missing = cmp.Or(missing, skippedLeaks(d.LeaksOmitted), d.Undecided)
		}
		counts, settled = append(counts, n), settled && d.Settled
	}
	if missing != "" {
		return skipped("%s: %s", text.Head(id.process, maxReason/3), text.Head(missing, maxReason/2))
	}
	if risesAlways(counts, settled) {
		return r.proved(growth, "%s objects in %s", text.Series(counts), id.process)
	}
	return r.counted(id.process, counts, settled)
}

// risesAlways reports whether there are enough dumps, and each contains more
// objects than the one before.
func risesAlways(counts []int64, settled bool) bool {
	if len(counts) < fewestSettled || !settled && len(counts) < fewestUnsettled {
		return false
	}
	for i := range counts[1:] {
		if counts[i+1] <= counts[i] {
			return false
		}
	}
	return true
}

// growing judges the run by the growth that a trip found.
func (r *reading) growing() []judgment {
	if r.trip == nil {
		return nil
	}
	for _, f := range r.trip.Growing {
		if !r.matches(f.Key, f.Name, nil, true) {
			continue
		}
		if r.trip.Verdict == record.VerdictLeak {
			return []judgment{r.proved(growth, "grows with every loop of %s", r.trip.Process)}
		}
		return []judgment{skipped("%s: %s", r.there, text.Head(r.trip.Text, maxReason/2))}
	}
	i := slices.IndexFunc(r.trip.Measures, func(m record.TripMeasure) bool { return m.Name == "heap" })
	switch {
	case r.trip.Found > len(r.trip.Growing):
		return []judgment{
			skipped("the record lacks %s",
				text.Count(r.trip.Found-len(r.trip.Growing), "growing place", "growing places")),
		}
	case i < 0 || r.trip.Dumps == 0:
		return []judgment{skipped("the trip has no heap dumps")}
	case r.trip.Stopped != record.TripStoppedQuiet && r.trip.Stopped != record.TripStoppedLoops:
		return []judgment{skipped("the trip ended early: %s", text.Head(r.trip.Reason, maxReason/2))}
	case r.trip.Measures[i].Verdict != record.VerdictPass && r.trip.Measures[i].Verdict != record.VerdictLeak:
		return []judgment{
			skipped("the trip could not judge the heap: %s", text.Head(r.trip.Measures[i].Text, maxReason/2)),
		}
	}
	return []judgment{absent("does not grow in %s", text.Count(r.trip.Loops, "loop", "loops"))}
}

// incomplete returns the reason why the run cannot prove that the leak is
// absent, or "" if it can.
func (r *reading) incomplete() string {
	switch {
	case r.run.Interrupted || r.run.Stopped == record.StoppedInterrupted:
		return "the run was interrupted"
	case r.run.Stopped == record.StoppedKilled:
		return "the run was killed"
	case r.run.ExitCode == record.ExitInconclusive && r.trip != nil:
		// A trip is too short for a trend: the verdict of the trip is used
		// instead of the exit code.
	case r.run.ExitCode != record.ExitClean && r.run.ExitCode != record.ExitLeak:
		return fmt.Sprintf("exit code %d: %s", r.run.ExitCode, cmp.Or(meaning(r.run), "the run reached no verdict"))
	}
	if n := len(r.run.MissingEvidence); n > 0 {
		return fmt.Sprintf("%s missing: %s", text.Count(n, "heap dump is", "heap dumps are"),
			r.run.MissingEvidence[0].Text)
	}
	return ""
}

// meaning returns why a run ended with its exit code, or "" for a code without
// an explanation.
func meaning(run record.Run) string {
	switch run.ExitCode {
	case record.ExitUnwritten:
		return "the run directory could not be written"
	case record.ExitNoDevice:
		return "no usable device, or the app was never found"
	case record.ExitUnread:
		return "a heap dump could not be analyzed"
	case record.ExitWorkload:
		if run.Workload != nil && run.Workload.Error != "" {
			return run.Workload.Error
		}
		return "the workload failed"
	case record.ExitInconclusive:
		if len(run.Unjudged) > 0 {
			return "not judged: " + run.Unjudged[0].Text
		}
		return "nothing could be judged"
	}
	return ""
}

// byTrend judges a run without heap dumps. If dumps are taken only for leaks, a
// run in which every process passes has no dumps.
func (r *reading) byTrend() judgment {
	if len(r.run.Processes) == 0 {
		return skipped("no matching process was found")
	}
	for i := range r.run.Processes {
		p := &r.run.Processes[i]
		if p.Gate != detector.Pass && p.Gate != detector.Settled {
			return skipped("no heap dump of %s, whose verdict is %s", text.Head(p.Process, maxReason/2), p.Gate)
		}
	}
	return absent("no process grows, so no heap dump was taken")
}
