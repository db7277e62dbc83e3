package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/harness/check"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Input contains everything on which a verdict depends.
type Input struct {
	// Heads are the observations of the judged run, one for each device.
	Heads []Observation
	// Configured reports whether a baseline is configured; the baseline may
	// still be empty. Without a baseline, every proven leak counts.
	Configured bool
	// Base contains the runs of the baseline. Pinned contains the runs of a
	// release with which the run is also compared.
	Base       []Observation
	Pinned     []Observation
	PinnedName string
	// Window is the number of good runs to compare with; 0 means the default.
	Window int
	// Match lists the optional parts of a subject that must match.
	Match     []string
	FirstSeen map[SeenKey]comparison.Sighting
	Accepted  []check.Exception
	Now       time.Time
	Rules     []Rule
	// If Informational is set, violated rules are reported but never fail the
	// gate. If Strict is set, a process that could not be judged causes exit
	// code 5. If AllowUnjudged is set, a run in which nothing could be judged
	// has exit code 0.
	Informational, Strict, AllowUnjudged bool
	// Missing describes evidence that should exist but does not.
	Missing []string
	// Unjudged lists the devices without a verdict and the reasons.
	Unjudged []string
	// RunExit is the exit code of the run itself.
	RunExit int
	// Tool, Head and Store are only displayed.
	Tool   string
	Head   comparison.Head
	Store  string
	Behind *int
	// Traces holds the leak traces of head.
	Traces   map[TraceKey]Trace
	Warnings []string
}

// SeenKey identifies a place in a process of the subject.
type SeenKey struct{ Process, What, Key string }

// TraceKey identifies a leak of a process on a device.
type TraceKey struct{ Device, Process, Key string }

// Trace is the path from a GC root to a leak.
type Trace struct {
	Lines    []string
	HeldBy   string
	Suspects []comparison.Suspect
}

// mostRows is the maximum number of leaks in a comparison.
const mostRows = 5000

// Compare judges a run and returns the result.
func Compare(in Input) *comparison.Comparison {
	j := &judgement{in: &in, out: &comparison.Comparison{
		Schema: comparison.Schema, Tool: in.Tool, Informational: in.Informational, Head: in.Head,
		Reasons: []comparison.Reason{}, Processes: []comparison.ProcessRow{}, Leaks: []comparison.Row{},
		Warnings: append([]string{}, in.Warnings...),
	}}
	j.out.Base.Store, j.out.Base.Behind = in.Store, in.Behind
	for i := range in.Heads {
		j.observe(&in.Heads[i])
	}
	j.withoutVerdict = append(j.withoutVerdict, in.Unjudged...)
	if b := &j.out.Base; b.Runs > 0 { // on another device
		b.Incomparable, b.Others = "", 0
		j.out.Warnings = append(j.out.Warnings, j.unmatched...)
	}
	j.apply()
	j.conclude()
	return j.out
}

// judgement is one comparison in progress.
type judgement struct {
	in  *Input
	out *comparison.Comparison
	// compared reports whether any process has base runs; unjudged reports
	// whether any process has no verdict.
	compared, unjudged bool
	// withoutVerdict lists the processes and devices that have no verdict
	// although they were present for a long time.
	withoutVerdict []string
	pairs          []*pair
	rows           []row
	// incomparable is the reason why runs of the baseline are not compared.
	// unmatched holds a warning with this reason for each device.
	incomparable string
	unmatched    []string
}

// observe compares the processes of one device.
func (j *judgement) observe(head *Observation) {
	base := baseOf(j.in.Base, head, j.in.Match, cmp.Or(j.in.Window, Window))
	j.describeBase(head, base)
	pinned := slices.DeleteFunc(slices.Clone(j.in.Pinned), func(o Observation) bool {
		return len(o.Subject.Differences(head.Subject, j.in.Match)) > 0
	})
	if b, runs := &j.out.Base, CountRuns(pinned); runs > b.PinnedRuns {
		b.Pinned, b.PinnedRuns = j.in.PinnedName, runs
	}
	for i := range head.Processes {
		p := newPair(j.in, head, &head.Processes[i], base)
		p.pinned = newPair(j.in, head, &head.Processes[i], pinned)
		j.pairs = append(j.pairs, p)
		j.compared = j.compared || p.compares()
		j.rows = append(j.rows, p.compare()...)
		j.process(p)
	}
	j.missingProcesses(head, base)
}

// baseOf returns the runs with which a run is compared, newest first: the
// newest good runs, and the failed runs after the newest good run. The leaks in
// these failed runs are excused.
func baseOf(all []Observation, head *Observation, match []string, window int) []Observation {
	var good, failed []Observation
	for _, o := range all {
		switch {
		case len(o.Subject.Differences(head.Subject, match)) > 0, o.Started.Equal(head.Started) &&
			o.Commit == head.Commit:
		case o.Failed:
			failed = append(failed, o)
		default:
			good = append(good, o)
		}
	}
	slices.SortStableFunc(good, newer)
	slices.SortStableFunc(failed, newer)
	good = newestRuns(good, window)
	if len(good) > 0 {
		failed = slices.DeleteFunc(failed, func(o Observation) bool { return !o.Started.After(good[0].Started) })
	}
	out := slices.Concat(good, newestRuns(failed, window))
	slices.SortStableFunc(out, newer)
	return out
}

// describeBase records what the run is compared with. If the baseline contains
// only runs of other subjects, it records why the run is not compared.
func (j *judgement) describeBase(head *Observation, base []Observation) {
	b := &j.out.Base
	if runs := CountRuns(base); runs > b.Runs {
		good := slices.DeleteFunc(slices.Clone(base), func(o Observation) bool { return o.Failed })
		b.Runs, b.Observed = runs, runs-CountRuns(good)
		b.Commit, b.Branch, b.Time = base[0].Commit, base[0].Branch, base[0].Started
	}
	if len(base) > 0 || len(j.in.Base) == 0 {
		return
	}
	closest := []string(nil)
	for i := range j.in.Base {
		if d := j.in.Base[i].Subject.Differences(head.Subject, j.in.Match); closest == nil || len(d) < len(closest) {
			closest = d
		}
	}
	if b.Runs == 0 {
		b.Incomparable, b.Others = "the baseline has only this run", len(j.in.Base)
	}
	if len(closest) == 0 {
		return
	}
	on := ""
	if len(j.in.Heads) > 1 { // the serial number of a device is not published
		on = " on " + cmp.Or(head.Subject.Model, "a device")
	}
	j.incomparable = "different " + strings.Join(closest, ", different ")
	if b.Runs == 0 {
		b.Incomparable = j.incomparable
	}
	j.unmatched = append(j.unmatched,
		fmt.Sprintf("%s of the baseline cannot be compared with this run%s: %s",
			text.Count(len(j.in.Base), "run", "runs"), on, j.incomparable))
}

func (j *judgement) warn(format string, args ...any) {
	j.out.Warnings = append(j.out.Warnings, fmt.Sprintf(format, args...))
}

// missingProcesses adds a warning for each process that is in every base run
// but not in the run.
func (j *judgement) missingProcesses(head *Observation, base []Observation) {
	if len(base) == 0 {
		return
	}
	for i := range base[0].Processes {
		name := base[0].Processes[i].Process
		everywhere := !slices.ContainsFunc(base, func(o Observation) bool { return o.find(name) == nil })
		if everywhere && head.find(name) == nil && !base[0].Processes[i].WholeApp {
			j.unjudged = true
			j.warn("process %s is in every base run but not in this one", name)
		}
	}
}

// process adds the results for a process.
func (j *judgement) process(p *pair) {
	h := p.head
	row := comparison.ProcessRow{
		Device: p.obs.Device, Process: h.Process, Dumps: len(h.Heap.Exposure), Settled: h.Heap.Settled,
		Loops:     h.Heap.exposure(),
		Reachable: append([]int64{}, h.Reachable...), Gate: cmp.Or(h.Gate, "inconclusive"), Trend: h.Reason,
		Judged: h.judged(), Deaths: h.Deaths,
	}
	for _, b := range p.withSeries(TypeLeak) {
		if n := len(b.Reachable); n > 0 {
			row.BaseReachable = append(row.BaseReachable, b.Reachable[min(n, max(len(h.Reachable), 1))-1])
		}
	}
	if len(row.BaseReachable) > 0 {
		row.BaseReachable = []int64{slices.Min(row.BaseReachable), slices.Max(row.BaseReachable)}
	}
	j.out.Judged = j.out.Judged || row.Judged
	j.unjudged = j.unjudged || !row.Judged && !h.WholeApp
	if h.Unjudged != "" && !row.Judged {
		j.withoutVerdict = append(j.withoutVerdict, h.Unjudged)
	}
	if h.Undecided != "" {
		j.warn("%s: leaks cannot be ruled out: %s", h.Process, h.Undecided)
	}
	j.checkNames(p)
	if len(p.base) > 0 && h.Heap.enough() && len(h.Places) > 0 && len(p.withSeries(TypeLeak)) == 0 && p.comparable() {
		j.warn("%s: leaks are not compared: no base run has enough heap dumps", h.Process)
	}
	j.out.Processes = append(j.out.Processes, row)
}

// checkNames adds a warning for heap dumps whose leaks cannot be found again
// because their names are not the source names.
func (j *judgement) checkNames(p *pair) {
	other := 0
	for _, b := range p.base {
		if !sourceNames(b.Names) {
			other++
		}
	}
	switch {
	case len(p.base) > 0 && !sourceNames(p.head.Names):
		j.warn("%s: leaks are not compared, because names are obfuscated: give the run its own app.mapping",
			p.head.Process)
	case other > 0:
		j.warn("%s: leaks are not compared with %s whose names are obfuscated: give each run its own app.mapping",
			p.head.Process, text.Count(other, "base run", "base runs"))
	}
}

// judged reports whether anything about the process can count for or against
// the run.
func (o *Observed) judged() bool {
	checked := slices.ContainsFunc(o.Places, func(p Place) bool { return len(p.Checks) > 0 })
	return o.Undecided == "" && (o.Heap.enough() || checked || o.Checked) || len(o.Measures) > 0 || o.Trend.decided()
}

// expiredRule is the name of the rule that every acceptance must have an expiry
// date in the future.
const expiredRule = "accepted: until"

// apply adds a reason for each violated rule.
func (j *judgement) apply() {
	for i := range j.in.Rules {
		switch r := &j.in.Rules[i]; r.Path {
		case RuleGate:
			j.applyGate(r)
		case RuleDeaths:
			j.applyDeaths(r)
		case RuleSlope:
			j.applySlope(r)
		default:
			j.applyRows(r)
		}
	}
	for i := range j.in.Accepted {
		if e := &j.in.Accepted[i]; e.Expired(j.in.Now) {
			j.reason(comparison.Reason{
				Rule: expiredRule, Key: e.Key,
				Text: fmt.Sprintf(
					"the acceptance of leak %s has expired: fix the leak, remove the entry or set a later date", e),
			})
		}
	}
}

func (j *judgement) reason(r comparison.Reason) { j.out.Reasons = append(j.out.Reasons, r) }

// applyGate applies a rule to the run's verdicts on its processes. A verdict
// that base runs share is excused. If there is a baseline, separate rules apply
// to leaks that dumps show; without a baseline, such leaks determine the
// verdict on the process.
func (j *judgement) applyGate(r *Rule) {
	for _, p := range j.pairs {
		t := p.head.Trend
		if !t.decided() || r.allows(t.Gate) || p.head.Explained || j.excused(r, p) {
			continue
		}
		j.failTrend(p)
		j.reason(comparison.Reason{
			Rule: r.String(), Process: p.head.Process,
			Text: fmt.Sprintf("%s: %s: %s", p.head.Process, t.Gate, p.head.Reason),
		})
	}
	if j.in.Configured || r.allows("leak") {
		return
	}
	j.failRows(r, func(row *row) bool { return row.proved && row.Status == comparison.Present })
}

// excused reports whether a verdict is excused because base runs have the same
// verdict, or because there are too few base runs.
func (j *judgement) excused(r *Rule, p *pair) bool {
	if !j.in.Configured {
		return false
	}
	if p.head.Trend.Gate == "leak" {
		return slices.ContainsFunc(j.rows, func(row row) bool {
			return row.Type == TypeTrend && row.Process == p.head.Process && row.Device == p.obs.Device &&
				(row.Status == comparison.Known || row.Status == comparison.Present)
		})
	}
	return p.uncompared() || slices.ContainsFunc(p.base, func(b baseRun) bool {
		return b.Trend != nil && b.Trend.Gate != "inconclusive" && !r.allows(b.Trend.Gate)
	})
}

// failTrend marks the row of a trend as a reason for the failure.
func (j *judgement) failTrend(p *pair) {
	for i := range j.rows {
		if row := &j.rows[i]; row.Type == TypeTrend && row.Process == p.head.Process && row.Device == p.obs.Device {
			row.Fails = true
		}
	}
}

// applyDeaths applies a rule to the deaths of each process. Deaths are excused
// if a base run has at least as many deaths.
func (j *judgement) applyDeaths(r *Rule) {
	for _, p := range j.pairs {
		n := deaths(p.head.Deaths, r.subject)
		if r.holds(float64(n)) {
			continue
		}
		most := -1
		for _, b := range p.base {
			most = max(most, deaths(b.Deaths, r.subject))
		}
		if j.in.Configured && (p.uncompared() || n <= most) {
			continue
		}
		text := p.head.Process + ": " + text.Count(n, "death", "deaths")
		if r.subject != "any" {
			text += " by " + strings.ReplaceAll(r.subject, "_", " ")
		}
		if by := reasonsCounted(p.head.Deaths, r.subject); by != nil {
			text += " (" + record.DescribeDeaths(by) + ")"
		}
		if most >= 0 {
			text += fmt.Sprintf(", at most %d in any base run", most)
		}
		j.reason(comparison.Reason{Rule: r.String(), Process: p.head.Process, Text: text})
	}
}

// SurvivedANR is a key in Observed.Deaths for ANRs that a workload reported and
// that the process survived. Only a rule about anr counts these ANRs.
const SurvivedANR = "survived_anr"

// summed maps the subject of a rule to the reasons that are counted together.
// An uncaught OutOfMemoryError is both a crash, from the user's point of view,
// and a death caused by memory.
var summed = map[string][]string{
	"memory": {"memory", "out_of_memory", "memory_limiter", "anomaly", "low_memory"},
	"crash":  {"crash", "out_of_memory"},
	"anr":    {"anr", SurvivedANR},
}

// deaths returns the number of deaths to which a rule applies.
func deaths(by map[string]int, subject string) int {
	n := 0
	for reason, count := range by {
		if counts(subject, reason) {
			n += count
		}
	}
	return n
}

// counts reports whether a rule with the given subject counts a reason.
func counts(subject, reason string) bool {
	if subject == "any" {
		return reason != SurvivedANR
	}
	if of := summed[subject]; of != nil {
		return slices.Contains(of, reason)
	}
	return subject == reason
}

// reasonsCounted returns the deaths that a rule counts, by reason. It returns
// nil if there are no such deaths, or if subject is their only reason.
func reasonsCounted(by map[string]int, subject string) map[string]int {
	out := map[string]int{}
	for reason, n := range by {
		if n > 0 && counts(subject, reason) {
			out[reason] = n
		}
	}
	if len(out) == 0 || len(out) == 1 && out[subject] > 0 {
		return nil
	}
	return out
}

// applySlope applies a limit to the growth over time. If the growth is unknown,
// the rule is not violated.
func (j *judgement) applySlope(r *Rule) {
	for _, p := range j.pairs {
		t := p.head.Trend
		if t == nil || p.head.WholeApp { // the limit applies only to processes
			continue
		}
		value := map[string]*float64{"rate": t.Rate, "lower95": t.Lower, "upper95": t.Upper}[r.subject]
		if value == nil || r.holds(*value) {
			continue
		}
		j.reason(comparison.Reason{
			Rule: r.String(), Process: p.head.Process,
			Text: fmt.Sprintf("%s: %s is %s MB/h", p.head.Process, r.subject, number(*value)),
		})
	}
}

// applyRows applies a rule to the leaks.
func (j *judgement) applyRows(r *Rule) {
	statuses := map[string]comparison.Status{
		RuleHeavier: comparison.Heavier, RuleWider: comparison.Wider,
		"new": comparison.New, "grown": comparison.Grown, "moved": comparison.Moved,
	}
	switch {
	case r.subject == "objects" || r.subject == "bytes":
		j.failLimits(r)
		return
	case r.Path == RuleCreep:
		j.failCounted(r, func(row *row) bool { return row.Pinned != "" && j.onBaseBranch() })
		return
	}
	status := statuses[cmp.Or(r.subject, r.Path)]
	native := r.Path == RuleNative
	j.failCounted(r, func(row *row) bool {
		return row.Status == status && row.Type != TypeTrend &&
			native == (row.Type == TypeNative || row.Type == TypeGraphics)
	})
}

// onBaseBranch reports whether the run belongs to the base branch. If a branch
// is unknown, onBaseBranch returns true unless the run tests a pull request.
func (j *judgement) onBaseBranch() bool {
	head, base := j.in.Head.Branch, j.out.Base.Branch
	return j.in.Head.PullRequest == 0 && (head == "" || base == "" || head == base)
}

// counts reports whether limits apply to a row: it is neither accepted nor
// gone, and its objects accumulate.
func (r *row) counts() bool {
	return r.proved && r.Type == TypeLeak && r.Status != comparison.Accepted && r.PerLoop.Head != nil
}

// failLimits marks a leak as failing if each loop adds more objects or bytes to
// it than the rule allows.
func (j *judgement) failLimits(r *Rule) {
	for i := range j.rows {
		row := &j.rows[i]
		if row.Library || !row.counts() || r.holds(amount(row, r.subject)) {
			continue
		}
		row.Fails = true
		left := number(amount(row, r.subject)) + " objects"
		if r.subject == "bytes" {
			left = text.Size(int64(amount(row, r.subject)))
		}
		j.reason(comparison.Reason{
			Rule: r.String(), Process: row.Process, Key: row.Key,
			Text: fmt.Sprintf("%s; %s per %s", describe(&row.Row), left, row.Unit),
		})
	}
}

// amount returns the number of objects or bytes that each loop adds to a row.
func amount(row *row, of string) float64 {
	n := *row.PerLoop.Head
	if of == "bytes" {
		if row.BytesEach.Head == nil {
			return 0
		}
		n *= *row.BytesEach.Head
	}
	return n
}

// failCounted marks the rows of a kind as failing if their number violates the
// rule. A leak that occurs on several devices counts once.
func (j *judgement) failCounted(r *Rule, of func(*row) bool) {
	found := map[SeenKey]bool{}
	for i := range j.rows {
		if row := &j.rows[i]; !row.Library && of(row) {
			found[SeenKey{row.Process, row.Type, row.Key}] = true
		}
	}
	switch {
	case r.holds(float64(len(found))):
	case len(found) == 0: // a rule such as "new > 0"
		j.reason(comparison.Reason{Rule: r.String(), Text: "the run has no such leak"})
	default:
		j.failRows(r, of)
	}
}

// failRows marks the rows of a kind as failing, except leaks in libraries, and
// adds a reason for each.
func (j *judgement) failRows(r *Rule, of func(*row) bool) {
	for i := range j.rows {
		row := &j.rows[i]
		if row.Library || !of(row) {
			continue
		}
		row.Fails = true
		j.reason(comparison.Reason{Rule: r.String(), Process: row.Process, Key: row.Key, Text: describe(&row.Row)})
	}
}

// describe returns a one-line description of a row.
func describe(row *comparison.Row) string {
	name := row.Class
	if row.HeldBy != "" {
		name += ", held by " + row.HeldBy
	}
	parts := []string{fmt.Sprintf("%s: %s leak: %s", row.Process, row.Status, name)}
	if row.Status == comparison.Present {
		parts[0] = fmt.Sprintf("%s: leak: %s", row.Process, name)
	}
	for _, more := range []string{row.Evidence, row.StatusReason} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	if row.Pinned != "" {
		parts = append(parts, "compared with the pinned release "+row.Pinned)
	}
	return strings.Join(parts, "; ")
}

// conclude sets the verdict. It also sets Unfailed, the verdict that the run
// would get if there were no reasons to fail it.
func (j *judgement) conclude() {
	j.list()
	out := j.out
	reasons := out.Reasons
	out.Reasons = []comparison.Reason{}
	j.decide()
	out.Unfailed = &comparison.Comparison{Verdict: out.Verdict, ExitCode: out.ExitCode, Text: out.Text}
	out.Reasons = reasons
	j.decide()
	out.Warnings = append(out.Warnings, j.in.Missing...)
}

// decide sets the verdict from the current reasons.
func (j *judgement) decide() {
	out, in := j.out, j.in
	fails := len(out.Reasons) > 0
	out.ExitCode = record.ExitClean
	switch {
	case fails && !in.Informational:
		out.Verdict, out.ExitCode = comparison.Fail, record.ExitLeak
		if in.RunExit == record.ExitInterrupted {
			out.ExitCode = record.ExitInterrupted
		}
	case slices.Contains([]int{record.ExitInterrupted, record.ExitNoDevice, record.ExitUnread, record.ExitWorkload},
		in.RunExit):
		out.Verdict, out.ExitCode = comparison.Neutral, in.RunExit
	case !in.AllowUnjudged && (!out.Judged || len(j.withoutVerdict) > 0 || len(in.Missing) > 0), in.Strict &&
		(j.unjudged || in.Configured && !j.compared):
		out.Verdict, out.ExitCode = comparison.Neutral, record.ExitInconclusive
	case fails, !out.Judged, in.Configured && !j.compared:
		out.Verdict = comparison.Neutral
	default:
		out.Verdict = comparison.Pass
	}
	out.Text = j.sentence()
}

// list sorts the rows: failures first, then by status and size.
func (j *judgement) list() {
	order := comparison.Statuses()
	slices.SortStableFunc(j.rows, func(a, b row) int {
		return cmp.Or(-boolean(a.Fails, b.Fails), boolean(a.Library, b.Library),
			cmp.Compare(slices.Index(order, a.Status), slices.Index(order, b.Status)),
			cmp.Compare(max(b.HeadBytes, b.BaseBytes), max(a.HeadBytes, a.BaseBytes)),
			strings.Compare(a.Process, b.Process), strings.Compare(a.Type+a.Key, b.Type+b.Key),
			strings.Compare(a.Device, b.Device))
	})
	for i := range j.rows[:min(len(j.rows), mostRows)] {
		j.out.Leaks = append(j.out.Leaks, j.rows[i].Row)
	}
	j.out.LeaksOmitted = max(len(j.rows)-mostRows, 0)
}

// boolean compares two conditions; false sorts before true.
func boolean(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// sentence returns the verdict as a sentence.
func (j *judgement) sentence() string {
	out, in := j.out, j.in
	known := 0
	for i := range out.Leaks {
		if out.Leaks[i].Status == comparison.Known || out.Leaks[i].Status == comparison.Accepted ||
			out.Leaks[i].Status == comparison.Moved {
			known++
		}
	}
	const inform = "; the rules are informational"
	switch {
	case len(out.Reasons) > 0:
		text := j.failing()
		if in.Informational {
			text += inform
		}
		return text
	case out.ExitCode != 0 && out.ExitCode == in.RunExit && out.ExitCode != record.ExitInconclusive:
		return map[int]string{
			record.ExitInterrupted: "the run was interrupted and is not judged",
			record.ExitNoDevice:    "the run lost its device or found no process of the app",
			record.ExitUnread:      "a heap dump could not be analyzed",
			record.ExitWorkload:    "the workload failed; nothing is worse up to that point",
		}[in.RunExit]
	case len(in.Missing) > 0:
		return "evidence is missing: " + in.Missing[0]
	case !out.Judged:
		return "nothing could be judged" + j.unjudgedWhy()
	case !in.AllowUnjudged && len(j.withoutVerdict) > 0:
		return "not judged: " + j.withoutVerdict[0]
	case in.Configured && !j.compared:
		return j.uncompared() + "; " + j.present()
	case in.Strict && j.unjudged:
		return "at least one process could not be judged"
	}
	parts := []string{"no leak grows"}
	if in.Configured {
		parts[0] = "nothing is worse than in " + text.Count(out.Base.Runs, "base run", "base runs")
	}
	if known > 0 && in.Configured {
		parts = append(parts, text.Count(known, "leak is known", "leaks are known"))
	}
	n := 0
	for i := range out.Processes {
		if !out.Processes[i].Judged {
			n++
		}
	}
	if n > 0 {
		parts = append(parts, text.Count(n, "process could not be judged", "processes could not be judged"))
	}
	return strings.Join(parts, "; ")
}

// unjudgedWhy returns what is missing for a verdict on the first process that
// has no verdict.
func (j *judgement) unjudgedWhy() string {
	for _, p := range j.pairs {
		s := p.head.Heap
		switch n := len(s.Exposure); {
		case p.head.judged():
		case p.head.Undecided != "":
			return fmt.Sprintf(": %s: leaks cannot be ruled out: %s", p.head.Process, p.head.Undecided)
		case n == 0:
			return fmt.Sprintf(": %s: no heap dump at a mark (`leakgate mark --wait`), and no verdict on its trend",
				p.head.Process)
		case !s.enough():
			return fmt.Sprintf(": %s: %s, and a verdict needs %d", p.head.Process,
				text.Count(n, "heap dump", "heap dumps"), ledger.FewestDumps(s.Settled))
		}
	}
	return ""
}

// uncompared returns the reason why there was nothing to compare with.
func (j *judgement) uncompared() string {
	switch {
	case j.incomparable == "" && j.out.Base.Others > 0:
		return j.out.Base.Incomparable
	case j.incomparable != "":
		return fmt.Sprintf("none of %s can be compared with this run: %s",
			text.Count(len(j.in.Base), "base run", "base runs"), j.incomparable)
	case j.out.Base.Runs > 0 && slices.ContainsFunc(j.pairs, func(p *pair) bool { return !p.comparable() }):
		return "the leaks of this run cannot be found in the base runs: names are obfuscated"
	case j.out.Base.Runs > 0:
		return "no base run has enough heap dumps to compare with"
	}
	return "there is no base run to compare with yet"
}

// failing describes the failures in words, with the number of leaks for each
// status.
func (j *judgement) failing() string {
	count := map[comparison.Status]int{}
	rest, expired, crept := len(j.out.Reasons), 0, 0
	seen := map[string]bool{}
	for i := range j.out.Leaks {
		row := &j.out.Leaks[i]
		if row.Fails && row.Type != TypeTrend {
			if !seen[row.Process+row.Key] { // otherwise, several devices show this leak
				count[row.Status]++
				if row.Status == comparison.Known && row.Pinned != "" && j.out.Base.Pinned != "" {
					count[row.Status]--
					crept++
				}
			}
			seen[row.Process+row.Key] = true
		}
	}
	for _, r := range j.out.Reasons {
		switch {
		case r.Rule == expiredRule:
			rest--
			expired++
		case r.Key != "" && seen[r.Process+r.Key]:
			rest--
		}
	}
	words := map[comparison.Status][2]string{
		comparison.New: {"new leak", "new leaks"}, comparison.Grown: {"leak that grew", "leaks that grew"},
		comparison.Heavier: {"leak that got heavier", "leaks that got heavier"},
		comparison.Wider:   {"known leak with a new class", "known leaks with new classes"},
		comparison.Present: {"leak", "leaks"},
		comparison.Known:   {"known leak that exceeds a limit", "known leaks that exceed a limit"},
		comparison.Moved:   {"leak that moved", "leaks that moved"},
	}
	var parts []string
	for _, status := range comparison.Statuses() {
		if w, ok := words[status]; ok && count[status] > 0 {
			parts = append(parts, text.Count(count[status], w[0], w[1]))
		}
	}
	if crept > 0 {
		parts = append(parts, text.Count(crept, "leak", "leaks")+" worse than in release "+j.out.Base.Pinned)
	}
	if expired > 0 {
		parts = append(parts, text.Count(expired, "expired acceptance", "expired acceptances"))
	}
	if rest > 0 {
		parts = append(parts, text.Count(rest, "rule violated", "rules violated"))
	}
	return strings.Join(parts, ", ")
}

// present describes in words the leaks of a run without a base.
func (j *judgement) present() string {
	n, trends := 0, 0
	for i := range j.rows {
		switch r := &j.rows[i]; {
		case r.Status != comparison.Present:
		case r.Type == TypeTrend:
			trends++
		case r.proved:
			n++
		}
	}
	switch {
	case n == 0 && trends == 0:
		return "no leak grows in this run"
	case n == 0:
		return "the memory of " + text.Count(trends, "process", "processes") +
			" grows in this run and does not count against it"
	}
	return text.Count(n, "leak grows in this run and does not count against it",
		"leaks grow in this run and do not count against it")
}

// Confirm compares a failed run with its repetition. The result fails only for
// findings in both runs. If the first run could not judge a process, it does
// not refute the repetition's findings about this process.
func Confirm(first, again *comparison.Comparison) *comparison.Comparison {
	out := *again
	if again.Verdict != comparison.Fail || first.Verdict != comparison.Fail && !first.Judged {
		return &out
	}
	id := func(r comparison.Reason) [3]string { return [3]string{r.Rule, r.Process, r.Key} }
	before := map[[3]string]bool{}
	for _, r := range first.Reasons {
		before[id(r)] = true
	}
	kept := map[string]bool{}
	out.Reasons = []comparison.Reason{}
	for _, r := range again.Reasons {
		if before[id(r)] || r.Process != "" && !judgedIn(first, r.Process) {
			out.Reasons = append(out.Reasons, r)
			kept[r.Process+r.Key] = true
		}
	}
	out.Leaks = slices.Clone(again.Leaks)
	for i := range out.Leaks {
		row := &out.Leaks[i]
		row.Fails = row.Fails && (kept[row.Process+row.Key] || row.Type == TypeTrend && kept[row.Process])
	}
	if len(out.Reasons) > 0 {
		j := &judgement{in: &Input{}, out: &out}
		out.Text = j.failing()
		if !slices.ContainsFunc(out.Reasons, func(r comparison.Reason) bool { return !before[id(r)] }) {
			out.Text += ", in two runs"
		}
		return &out
	}
	out.Verdict, out.ExitCode, out.Text = again.Unfailed.Verdict, again.Unfailed.ExitCode, again.Unfailed.Text
	switch {
	case out.Verdict != comparison.Pass:
	case first.Verdict == comparison.Fail:
		out.Text = "two runs failed for different reasons: neither is confirmed"
	default:
		out.Text = "only one of two runs fails: not confirmed"
	}
	return &out
}

// judgedIn reports whether a process could be judged on any device of a run.
func judgedIn(c *comparison.Comparison, process string) bool {
	return slices.ContainsFunc(c.Processes,
		func(p comparison.ProcessRow) bool { return p.Process == process && p.Judged })
}
