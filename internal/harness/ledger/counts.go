package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// settledAfter is the minimum device time between a mark and a reading that
	// belongs to the mark: the monitor waits 2 s for the collection
	// (monitor.collectSettle), and the clock counts hundredths of a second.
	settledAfter = 1500 * time.Millisecond
	// sampleWithin is the device time after a mark during which a sample still
	// belongs to the mark. countsWithin is the same for the counts of a
	// breakdown or of a reading of the limits. A dumpsys takes seconds, and the
	// processes of an app are read one after the other.
	sampleWithin = 10 * time.Second
	countsWithin = 20 * time.Second

	// maxCountReadings is the maximum number of readings of a series; the
	// latest are kept. maxFamilies is the maximum number of series of one life.
	maxCountReadings = 500
	maxFamilies      = 8

	// leastCountLoops is the minimum number of loops that a verdict needs.
	leastCountLoops = 5
	// unforced is the number of additional rises that are required if no
	// collection was forced: garbage may then be counted as well, and a busy
	// loop may leave more garbage.
	unforced = 3
)

// countKind is a type of object or resource that is counted, such as Activities
// or threads.
type countKind struct {
	name, one, many string
	// rises is the number of consecutive loops that must each end with a higher
	// count to prove a leak. It is 0 if the count alone proves nothing.
	rises int
	kind  detector.LeakKind
}

// poolLoops is the required number of loops for objects and resources that an
// app may also pool. A pool of threads, connections or proxies that grows by
// one for each task is full after as many loops as the device has cores,
// usually 8.
const poolLoops = 10

// countKinds lists everything that is counted. A list may show one more View
// for each item that the scenario adds, so Views prove nothing.
var countKinds = []countKind{
	{"Activities", "Activity", "Activities", leastCountLoops, detector.Java},
	{"ViewRootImpl", "window", "windows", leastCountLoops, detector.Java},
	{"AppContexts", "context", "contexts", leastCountLoops, detector.Java},
	{"WebViews", "WebView", "WebViews", leastCountLoops, detector.Java},
	{"Views", "View", "Views", 0, detector.None},
	{"Proxy Binders", "Binder proxy", "Binder proxies", poolLoops, detector.Java},
	{threadCount, "thread", "threads", poolLoops, detector.Thread},
	{fileCount, "file", "files", poolLoops, detector.Java},
}

// These are the names of counts that do not come from dumpsys meminfo.
const (
	threadCount = "threads"
	fileCount   = "files"
)

// countSeries holds the counts of one life at the marks of one family.
type countSeries struct {
	pid      int
	family   string
	readings []countReading
	closed   bool
}

type countReading struct {
	record.CountReading
	// values has the same indices as countKinds.
	values [8]*int64
}

// openReading is a reading for a mark that is still in progress.
type openReading struct {
	of *countSeries
	up time.Duration
	// sampled means that the level after the collection is known.
	sampled bool
}

// MarkFamily returns the text of a mark with each number replaced by #, because
// the marks of a loop differ only in their numbers.
func MarkFamily(mark string) string { return numbers.ReplaceAllString(text.Head(mark, maxText), "#") }

// openCounts begins the reading for a mark.
func (a *Account) openCounts(e record.Event, up time.Duration) {
	a.reading = nil
	s := a.countsOf(e.PID, MarkFamily(e.Mark))
	if s == nil {
		return
	}
	if len(s.readings) == maxCountReadings {
		s.readings = append(s.readings[:0], s.readings[1:]...)
	}
	s.readings = append(s.readings,
		countReading{
			CountReading: record.CountReading{
				T: e.T, Mark: text.Head(e.Mark, maxText), Collected: e.Event == "collected",
			},
		})
	a.reading = &openReading{of: s, up: up}
}

// countsOf returns the series of a life and a family of marks. It creates the
// series if necessary, and returns nil if there are too many.
func (a *Account) countsOf(pid int, family string) *countSeries {
	families := 0
	for _, s := range a.counts {
		switch {
		case s.closed || s.pid != pid:
		case s.family == family:
			return s
		default:
			families++
		}
	}
	if families == maxFamilies || len(a.counts) == maxSeries {
		return nil
	}
	s := &countSeries{pid: pid, family: family}
	a.counts = append(a.counts, s)
	return s
}

// closeCounts ends all series, because the device may reuse pids.
func (a *Account) closeCounts() {
	a.reading = nil
	for _, s := range a.counts {
		s.closed = true
	}
}

// openAt returns the reading that is in progress at a time; nil if there is
// none.
func (a *Account) openAt(up, within time.Duration) *countReading {
	r := a.reading
	if r == nil || up < r.up+settledAfter || up > r.up+within {
		return nil
	}
	return &r.of.readings[len(r.of.readings)-1]
}

// addSampleAtMark adds the number of threads in a sample, and uses the sampled
// memory as the level after the collection.
func (a *Account) addSampleAtMark(s record.Sample, up time.Duration) {
	r := a.openAt(up, sampleWithin)
	if r == nil {
		return
	}
	r.add(threadCount, s.Threads)
	if !a.reading.sampled && r.Collected && a.LastUp == up {
		a.reading.sampled = true
		a.Detector.AddCollected(detector.Sample{At: up, Bytes: a.LastBytes})
	}
}

// addObjectsAtMark adds the counts of a breakdown.
func (a *Account) addObjectsAtMark(counts map[string]int64, up time.Duration) {
	r := a.openAt(up, countsWithin)
	if r == nil {
		return
	}
	for name, n := range counts {
		r.add(name, &n)
	}
}

// addHeadroomAtMark adds the numbers of files and threads from a reading of the
// limits.
func (a *Account) addHeadroomAtMark(h record.Headroom, up time.Duration) {
	if r := a.openAt(up, countsWithin); r != nil {
		r.add(threadCount, h.Threads)
		r.add(fileCount, h.Files)
	}
}

// add records a count, unless it is missing or negative, or the reading already
// contains it.
func (r *countReading) add(name string, n *int64) {
	i := slices.IndexFunc(countKinds, func(k countKind) bool { return k.name == name })
	if i < 0 || n == nil || *n < 0 || r.values[i] != nil {
		return
	}
	r.values[i] = new(*n)
}

// countsAtMarks returns the series of the account that have at least two
// readings, for run.json.
func (a *Account) countsAtMarks() []record.CountsAtMarks {
	var out []record.CountsAtMarks
	for _, s := range a.counts {
		if len(s.readings) > 1 {
			out = append(out, s.record())
		}
	}
	return out
}

// record judges the series and returns its record.
func (s *countSeries) record() record.CountsAtMarks {
	out := record.CountsAtMarks{
		PID: s.pid, Marks: s.family, Gate: detector.Inconclusive, Readings: []record.CountReading{},
		Counts: []record.CountSeries{},
	}
	for _, r := range s.readings {
		out.Readings = append(out.Readings, r.CountReading)
	}
	out.Collected = s.collections() > leastCountLoops
	var proofs, unproved, clean []string
	loops := 0
	for i, k := range countKinds {
		c := record.CountSeries{Name: k.name}
		known := []int64{} // numbers of the judged readings
		for _, r := range s.readings {
			v := r.values[i]
			c.Values = append(c.Values, v)
			if v != nil && (r.Collected || !out.Collected) {
				known = append(known, *v)
			}
		}
		if !slices.ContainsFunc(c.Values, func(v *int64) bool { return v != nil }) {
			continue
		}
		if k.rises > 0 {
			c.Gate = judgeCount(k, known, out.Collected)
		}
		switch {
		case c.Gate == detector.Leak:
			if proofs == nil {
				out.Kind = k.kind
			}
			proofs = append(proofs, proofText(k, known, out.Collected))
		case k.rises > 0 && countRises(known):
			// The number of pooled objects often increases. Such an increase
			// does not set Rising, which would make the whole run inconclusive.
			out.Rising = out.Rising || k.rises == leastCountLoops
			unproved = append(unproved, fmt.Sprintf("%s: %s", k.many, text.Series(known)))
		case c.Gate == detector.Pass:
			clean = append(clean, k.one)
		}
		if i == 0 {
			loops = len(known) - 1
		}
		out.Counts = append(out.Counts, c)
	}
	conclude(&out, loops, proofs, unproved, clean)
	return out
}

// conclude sets the gate of a series and the reason for it.
func conclude(out *record.CountsAtMarks, loops int, proofs, unproved, clean []string) {
	after := text.Count(max(loops, 0), "loop", "loops")
	switch {
	case len(proofs) > 0:
		out.Gate, out.Reason, out.Rising = detector.Leak, strings.Join(proofs[:min(len(proofs), shownProofs)], ", "),
			false
		if n := len(proofs) - shownProofs; n > 0 {
			out.Reason += fmt.Sprintf(", and %d more counts", n)
		}
	case len(unproved) > 0:
		out.Reason = fmt.Sprintf("%s: counts rose, but not provably in every loop: %s", after, first(unproved))
	case loops < leastCountLoops:
		out.Reason = fmt.Sprintf("%s with counts; %d are needed", after, leastCountLoops)
	case !out.Collected:
		out.Reason = after + ": no count rose, but no garbage collection was forced before the counts were read"
	default:
		out.Gate, out.Reason = detector.Pass, fmt.Sprintf("%s: no %s retained", after, oneOf(clean))
	}
}

// shownProofs is the maximum number of counts that a reason names.
const shownProofs = 3

// oneOf joins words with "or".
func oneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// collections returns the number of readings that contain a count and were
// taken after a forced collection.
func (s *countSeries) collections() int {
	n := 0
	for _, r := range s.readings {
		if r.Collected && r.values != [8]*int64{} {
			n++
		}
	}
	return n
}

// judgeCount judges the known values of one count. A leak requires a rise in
// each of the latest loops (how many depends on what is counted) and in at
// least half of all loops. A screen that is open at some marks, navigation into
// an app and back, or a pool that fills does not cause that many rises. Without
// forced collections, more rises are required, and the count must never fall.
func judgeCount(k countKind, known []int64, collected bool) detector.Gate {
	loops, rises, least := len(known)-1, len(lastRises(known))-1, k.rises
	if !collected {
		rises, least = risesWithoutFall(known), k.rises+unforced
	}
	switch {
	case rises >= least && 2*rises >= loops:
		return detector.Leak
	case !collected || loops < leastCountLoops || countRises(known):
		return detector.Inconclusive
	}
	return detector.Pass
}

// risesWithoutFall returns the number of rises if the values never fall, and 0
// otherwise.
func risesWithoutFall(known []int64) int {
	n := 0
	for i := 1; i < len(known); i++ {
		switch {
		case known[i] < known[i-1]:
			return 0
		case known[i] > known[i-1]:
			n++
		}
	}
	return n
}

// countRises reports whether a count rises over all loops, or rises over the
// latest loops to a value above all earlier ones.
func countRises(known []int64) bool {
	if rises(known) {
		return true
	}
	early := len(known) - leastCountLoops - 1
	if early < 1 {
		return false
	}
	late := known[early:]
	return late[leastCountLoops] > slices.Max(known[:early]) && rises(late)
}

// proofText describes how a count rose: "1 more Activity after each of 24
// loops: 3 to 27".
func proofText(k countKind, known []int64, collected bool) string {
	if collected {
		known = lastRises(known)
	}
	var steps []int64
	for i := 1; i < len(known); i++ {
		if known[i] > known[i-1] {
			steps = append(steps, known[i]-known[i-1])
		}
	}
	least := slices.Min(steps)
	what := text.Count(int(min(least, 1<<31-1)), "more "+k.one, "more "+k.many)
	if least < slices.Max(steps) {
		what = "at least " + what
	}
	loops := fmt.Sprintf("each of %d loops", len(steps))
	if n := len(known) - 1; n > len(steps) {
		loops = fmt.Sprintf("%d of %d loops", len(steps), n)
	}
	return fmt.Sprintf("%s after %s: %s to %s", what, loops, text.Grouped(known[0]), text.Grouped(known[len(known)-1]))
}

// lastRises returns the values of the longest sequence of consecutive rises at
// the end.
func lastRises(known []int64) []int64 {
	from := max(0, len(known)-1)
	for from > 0 && known[from] > known[from-1] {
		from--
	}
	return known[from:]
}

// If the counts at marks of a process prove a leak, judgeByCounts replaces the
// verdict on the process with theirs. If the trend is undecided, the reason
// also states the result of the counts.
func judgeByCounts(p *record.Process) {
	var shown string
	for _, s := range p.CountsAtMarks {
		switch {
		case s.Gate == detector.Leak && p.Gate == detector.Leak:
			p.Reason = s.Reason + "; " + p.Reason
			return
		case s.Gate == detector.Leak:
			trend := p.Reason
			p.Gate, p.Kind, p.Reason = detector.Leak, s.Kind, s.Reason
			if trend != "" {
				p.Reason += "; " + trendWords + trend
			}
			return
		case s.Rising && p.Gate != detector.Inconclusive && p.Gate != detector.Leak:
			// The objects may be too small for their growth to be visible in
			// the memory trend.
			p.Gate, p.Reason = detector.Inconclusive, s.Reason+"; "+trendWords+p.Reason
			return
		case s.Gate == detector.Pass, s.Rising:
			shown = s.Reason
		}
	}
	if shown != "" && p.Gate == detector.Pass {
		p.Reason += "; " + shown
	}
	if p.Gate != detector.Inconclusive || shown == "" {
		return
	}
	p.Reason = strings.TrimSuffix(shown+"; "+unjudgedWords+p.Reason, ": ")
}

const (
	// trendWords and unjudgedWords introduce the result of the trend.
	trendWords    = "memory trend: "
	unjudgedWords = "memory trend not judged: "
)
