package ledger

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
	// fewestSettled is the number of settled dumps that prove a leak if each
	// contains more objects than the one before. Objects that an app has in
	// flight are gone once it is idle, and an object that is created only once
	// causes one step, not two.
	fewestSettled = 3
	// fewestUnsettled is the number of dumps that prove a leak if the app is in
	// use. The number of objects in flight is then random: five random numbers
	// rise at every step in 1 of 120 cases, and rise evenly (see Proves) in 1
	// of 1,000.
	fewestUnsettled = 5
	// maxMarkDumps limits the dumps of one series, maxLeaksAtMarks limits the
	// leaks that a series keeps, and shownLeaksAtMarks limits the leaks in
	// run.json.
	maxMarkDumps      = 500
	maxLeaksAtMarks   = 1000
	shownLeaksAtMarks = 100
	// maxSeries is the maximum number of lives of one process that have dumps
	// at marks.
	maxSeries = 100
)

// markedDumps holds the dumps of one life that were taken at marks.
type markedDumps struct {
	pid   int
	dumps []record.MarkDump
	// leaks holds the leaks by key.
	leaks map[string]*record.LeakSeries
	// skipped is the number of leaks omitted from a dump: the maximum over all
	// dumps.
	skipped int
	// undecided is the reason why some dump may contain leaks that were not
	// found.
	undecided string
	// growing describes the first place that grew from each dump to the next.
	growing string
	// closed means that the device has rebooted and may reuse its pids.
	closed bool
}

// closeSeries closes the series of all lives, because the device may reuse
// their pids.
func (a *Account) closeSeries() {
	for _, s := range a.atMarks {
		s.closed = true
	}
}

// addDump adds an analyzed heap dump that was taken at a mark.
func (a *Account) addDump(d record.Diagnosis) {
	if d.Trigger == record.TriggerMarks {
		a.addGrowth(d)
	}
	if d.Trigger != record.TriggerMark || d.Leaks == nil {
		return
	}
	s := a.seriesOf(d.PID)
	if s == nil || len(s.dumps) >= maxMarkDumps ||
		slices.ContainsFunc(s.dumps, func(x record.MarkDump) bool { return x.Folder == text.Head(d.Folder, maxText) }) {
		return
	}
	at := len(s.dumps)
	s.dumps = append(s.dumps,
		record.MarkDump{
			T: d.T, Mark: text.Head(d.Mark, maxText), Settled: d.Settled, Folder: text.Head(d.Folder, maxText),
		})
	for _, l := range s.leaks {
		l.Counts, l.AllBytes = append(l.Counts, 0), append(l.AllBytes, 0)
	}
	skipped := d.LeaksOmitted
	for _, found := range d.Leaks {
		if !s.add(at, found) {
			skipped++
		}
	}
	s.skipped, s.undecided = max(s.skipped, skipped), cmp.Or(s.undecided, text.Head(d.Undecided, maxText))
}

// addGrowth records the first place that grew from each dump of a series to the
// next. Growth alone does not prove a leak: a filling cache also grows.
func (a *Account) addGrowth(d record.Diagnosis) {
	for _, s := range a.atMarks {
		if s.pid == d.PID && !s.closed && len(d.Findings) > 0 {
			s.growing = text.Head(d.Findings[0].Name, maxText)
		}
	}
}

// seriesOf returns the series of a life. It creates the series if necessary,
// and returns nil if there are too many.
func (a *Account) seriesOf(pid int) *markedDumps {
	for _, s := range a.atMarks {
		if s.pid == pid && !s.closed {
			return s
		}
	}
	if len(a.atMarks) == maxSeries {
		a.warn(fmt.Sprintf("more than %d lives have heap dumps at marks; the others are not compared",
			maxSeries))
		return nil
	}
	s := &markedDumps{pid: pid, leaks: map[string]*record.LeakSeries{}}
	a.atMarks = append(a.atMarks, s)
	return s
}

// add adds a leak found in the dump with the given number. It returns false if
// the limit is reached.
func (s *markedDumps) add(at int, found record.DumpLeak) bool {
	l := s.leaks[found.Key]
	if l == nil {
		if len(s.leaks) == maxLeaksAtMarks {
			return false
		}
		l = &record.LeakSeries{Counts: make([]int64, at+1), AllBytes: make([]int64, at+1)}
		s.leaks[found.Key] = l
	}
	l.DumpLeak = bounded(found) // use the description from the latest dump
	l.Counts[at] += max(found.Count, 0)
	l.AllBytes[at] += max(found.Bytes, 0)
	return true
}

// bounded truncates the strings of a leak and its list of classes.
func bounded(l record.DumpLeak) record.DumpLeak {
	l.Key, l.Name = text.Head(l.Key, maxText), text.Head(l.Name, maxText)
	classes := []record.ClassCount{}
	for _, c := range l.Classes[:min(len(l.Classes), maxClasses)] {
		classes = append(classes, record.ClassCount{Class: text.Head(c.Class, maxText), Count: c.Count})
	}
	l.Classes = classes
	return l
}

// maxClasses is the maximum number of classes of a leak.
const maxClasses = 10

// record judges the series and returns its record.
func (s *markedDumps) record() record.MarkSeries {
	out := record.MarkSeries{PID: s.pid, Dumps: slices.Clone(s.dumps), Leaks: []record.LeakSeries{}}
	settled := !slices.ContainsFunc(s.dumps, func(d record.MarkDump) bool { return !d.Settled })
	grown, unproved := []string{}, []string{}
	for _, l := range s.leaks {
		l := *l
		last := len(l.Counts) - 1
		l.Count, l.Bytes = l.Counts[last], l.AllBytes[last]
		l.Proved = !l.Library && Proves(l.Counts, settled)
		out.Leaks = append(out.Leaks, l)
	}
	slices.SortFunc(out.Leaks, func(a, b record.LeakSeries) int {
		return cmp.Or(-compareBool(a.Proved, b.Proved), -cmp.Compare(a.Bytes, b.Bytes), strings.Compare(a.Key, b.Key))
	})
	for _, l := range out.Leaks {
		switch {
		case l.Proved:
			grown = append(grown, fmt.Sprintf("%s: %s objects at marks", l.Name, text.Series(l.Counts)))
		case !l.Library && rises(l.Counts):
			unproved = append(unproved, fmt.Sprintf("%s: %s", l.Name, text.Series(l.Counts)))
		}
	}
	s.conclude(&out, settled, grown, unproved)
	if n := len(out.Leaks) - shownLeaksAtMarks; n > 0 {
		out.Leaks, out.LeaksOmitted = out.Leaks[:shownLeaksAtMarks], n
	}
	out.LeaksOmitted += s.skipped
	return out
}

// conclude sets the gate of a series and the reason for it.
func (s *markedDumps) conclude(out *record.MarkSeries, settled bool, grown, unproved []string) {
	fewest := FewestDumps(settled)
	n := len(s.dumps)
	out.Gate, out.Rising = detector.Inconclusive, len(grown) == 0 && len(unproved) > 0
	switch {
	case len(grown) > 0:
		out.Gate, out.Reason = detector.Leak, first(grown)
	case n < fewest && out.Rising:
		out.Reason = fmt.Sprintf("%s; a verdict needs %d%s: objects increased: %s", dumpsAtMarks(n), fewest,
			inUse(settled), first(unproved))
	case n < fewest:
		out.Reason = fmt.Sprintf("%s; a verdict needs %d%s", dumpsAtMarks(n), fewest, inUse(settled))
	case s.skipped > 0:
		out.Reason = fmt.Sprintf("%s: no leak grew at every mark, but %s not compared", dumpsAtMarks(n),
			text.Count(s.skipped, "leak was", "leaks were"))
	case len(unproved) > 0:
		out.Reason = fmt.Sprintf("%s: objects increased, but not at every mark: %s", dumpsAtMarks(n), first(unproved))
	case s.undecided != "":
		out.Reason = fmt.Sprintf("%s: leaks cannot be ruled out: %s", dumpsAtMarks(n), s.undecided)
	default:
		out.Gate, out.Reason = detector.Pass, dumpsAtMarks(n)+": no leak grew"
	}
	if s.growing != "" && len(grown) == 0 {
		out.Reason += fmt.Sprintf("; %s grew in every one of them, consistent with a filling cache", s.growing)
	}
}

// inUse returns the reason why an app in use needs more dumps than an idle app,
// or "" if the app was idle.
func inUse(settled bool) string {
	if settled {
		return ""
	}
	return ", because the app was in use"
}

func dumpsAtMarks(n int) string { return text.Count(n, "heap dump at a mark", "heap dumps at marks") }

// first formats a list as its first string and the number of further strings.
func first(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return fmt.Sprintf("%s, and %d more", list[0], len(list)-1)
}

// FewestDumps returns how many heap dumps at marks are needed for a verdict.
// settled reports whether the app was idle before each of them.
func FewestDumps(settled bool) int {
	if settled {
		return fewestSettled
	}
	return fewestUnsettled
}

// Proves reports whether the numbers of leaked objects, counted at marks, prove
// a leak: the number must be larger at each mark than at the mark before. If
// the app was in use, the number must also rise evenly.
func Proves(counts []int64, settled bool) bool {
	if len(counts) < FewestDumps(settled) {
		return false
	}
	least := counts[1] - counts[0]
	for i := 1; i < len(counts); i++ {
		least = min(least, counts[i]-counts[i-1])
	}
	rise, steps := counts[len(counts)-1]-counts[0], int64(len(counts)-1)
	return least >= 1 && (settled || 2*least*steps >= rise)
}

// rises reports whether the number of leaked objects grows overall: Kendall's
// tau of the numbers, over all pairs of marks and with ties counted as zero, is
// at least three fifths. An object that is created only once, or a number that
// fluctuates at random, does not meet this condition.
func rises(counts []int64) bool {
	pairs, sum := 0, 0
	for i := range counts {
		for _, later := range counts[i+1:] {
			pairs++
			sum += cmp.Compare(later, counts[i])
		}
	}
	return sum > 0 && 5*sum >= 3*pairs
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// seriesAtMarks returns the account's series for run.json.
func (a *Account) seriesAtMarks() []record.MarkSeries {
	out := []record.MarkSeries{}
	for _, s := range a.atMarks {
		out = append(out, s.record())
	}
	return out
}

// judgeAtMarks replaces the verdict on a process if its dumps at marks prove a
// leak. If the trend is undecided, the reason also states the result of the
// dumps.
func judgeAtMarks(p *record.Process) {
	trend := p.Reason
	for _, s := range p.AtMarks {
		switch {
		case s.Gate == detector.Leak && p.Gate == detector.Leak:
			p.Reason = s.Reason + "; " + trend
			return
		case s.Gate == detector.Leak:
			p.Gate, p.Kind, p.Reason = detector.Leak, detector.Java, s.Reason
			if trend != "" {
				p.Reason += "; memory trend: " + trend
			}
			return
		}
	}
	if p.Gate != detector.Inconclusive || len(p.AtMarks) == 0 {
		return
	}
	p.Reason = strings.TrimPrefix(trend+"; "+p.AtMarks[len(p.AtMarks)-1].Reason, "; ")
}

// Proofs returns descriptions of the leaks that the dumps at marks prove, one
// per line.
func (a *Account) Proofs() []string {
	var out []string
	for _, s := range a.atMarks {
		if r := s.record(); r.Gate == detector.Leak {
			out = append(out, fmt.Sprintf("%s: %s", dumpsAtMarks(len(r.Dumps)), r.Reason))
		}
	}
	return out
}
