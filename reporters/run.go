package reporters

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// WriteRun writes a run: a verdict per process, the overhead, and what could
// not be done.
func WriteRun(w io.Writer, r record.Run) error {
	var out page
	for _, p := range r.Processes {
		out.process(p, r.Policy, len(r.Devices) > 1)
	}
	if len(r.Processes) == 0 {
		out.line("No matching process found; no verdict.")
	}
	for _, a := range r.Apps {
		out.together(a, r.Policy, len(r.Devices) > 1)
	}
	out.windows(r)
	for _, d := range r.Devices {
		out.device(d)
	}
	if r.Extended > 0 {
		out.line("extended by %s: %s", text.Span(r.Extended), text.Printable(r.ExtendedReason))
	}
	if r.Workload != nil {
		out.workload(*r.Workload)
	}
	out.missing(r)
	out.unjudged(r.Unjudged)
	out.warnings(r.Warnings)
	if r.Overhead != nil {
		out.line("leakgate overhead: %.1f s CPU, %.0f MB peak memory", r.Overhead.CPU, r.Overhead.Memory)
	}
	for _, d := range r.Diagnoses {
		out.diagnosis(d, len(r.Devices) > 1)
	}
	switch {
	case r.Stopped == "killed":
		out.line("The run was killed; this report covers the time until then.")
	case r.Stopped == "disk":
		out.line("The run was stopped because its directory could not be written; " +
			"this report covers the time until then.")
	case r.Interrupted:
		out.line("The run was interrupted; this report covers the time until then.")
	case r.ExitCode == record.ExitNoDevice && len(r.Processes) == 0:
		out.line("Exit code 3: no process of the app was seen.")
	case r.ExitCode == record.ExitUnread:
		out.line("Exit code 6: a heap dump could not be analyzed.")
	case r.ExitCode == record.ExitInconclusive && len(r.MissingEvidence) > 0:
		out.line("Exit code 5: evidence is missing.")
	case r.ExitCode == record.ExitInconclusive && len(r.Unjudged) > 0:
		out.line("Exit code 5: no verdict on the entries listed as not judged; --allow-unjudged accepts that.")
	case r.ExitCode == record.ExitInconclusive:
		out.line("Exit code 5: not judged. %s, or dump heaps at three marks or more.", longer(r.Processes))
	}
	return out.writeTo(w)
}

// longer describes what is needed to judge a run in which nothing could be
// judged. A longer run does not help if every process restarted too often.
func longer(list []record.Process) string {
	if slices.ContainsFunc(list, func(p record.Process) bool { return p.Restarts == 0 }) {
		return "Watch for longer"
	}
	return "Watch for longer without restarts"
}

func (out *page) process(p record.Process, policy string, several bool) {
	who := name(p.Process)
	if p.User != 0 {
		who += fmt.Sprintf(" (user %d)", p.User)
	}
	if several {
		who += " on " + name(p.Device)
	}
	out.line("%s: %s", who, Headline(p, policy))
	if p.Reason != "" {
		out.wrapped("  why      ", whyBesideLives(p))
	}
	out.wrapped("  series   ", fmt.Sprintf("%s, by %s; %s; %s", samplesWords(p), p.Source,
		text.Plural(p.Details, "dumpsys meminfo reading", "dumpsys meminfo readings"), restarts(p.Restarts)))
	if p.Samples > 0 {
		out.line("  gaps     %s", gapsText(p))
	}
	if p.CPU != nil && p.CostCPU != nil {
		out.line("  cpu      %.1f %% of a core, %.1f %% caused by dumpsys meminfo", *p.CPU, *p.CostCPU)
	}
	if p.Rate != nil && len(p.RateInterval) == 2 {
		out.line("  rate     %+.1f MB/h (95 %%: %+.1f to %+.1f)%s", *p.Rate, p.RateInterval[0], p.RateInterval[1],
			unseenBelow(p))
	}
	if len(p.Shares) > 0 {
		out.line("  growth   %s", sharesText(p.Shares))
	}
	out.deaths(p)
	out.faults(p)
	beside := p
	beside.Findings = slices.DeleteFunc(slices.Clone(p.Findings),
		func(f record.Incident) bool { return isLatestDeath(f, p.Deaths) })
	for _, line := range incidentLines(beside) {
		out.line("  incident %s", line)
	}
	out.objectCounts(p.Objects)
	for _, j := range p.Jumps {
		out.line("  jump     %+.0f MB at %s%s", j.Size, text.Span(j.T),
			map[bool]string{true: ", sustained"}[j.Sustained])
	}
	for _, m := range p.AtMarks {
		out.atMarks(m, len(p.AtMarks) > 1)
	}
	for _, m := range p.CountsAtMarks {
		out.countsAtMarks(m, len(p.CountsAtMarks) > 1)
	}
	for _, w := range p.Limits {
		out.wrapped("  limit    ", fmt.Sprintf("at %s: %s", text.Span(w.T), w.Text))
	}
	for _, t := range p.Transitions {
		out.wrapped(fmt.Sprintf("  %-8s ", text.Span(t.T)),
			fmt.Sprintf("%s -> %s: %s", DescribeState(t.From, policy), DescribeState(t.To, policy), t.Reason))
	}
	for _, text := range p.HeadroomReasons {
		if !strings.HasSuffix(text, "does not run out of it") { // unreachable limits are not listed
			out.line("  unknown  distance to a limit: %s", text)
		}
	}
	for _, text := range p.Reasons {
		out.line("  no %s", text)
	}
	for _, text := range p.Warnings {
		out.line("  warning: %s", text)
	}
}

// samplesWords returns the number of samples and the time that they cover. If a
// process restarted, only the time of its present life is known.
func samplesWords(p record.Process) string {
	if p.Restarts == 0 {
		return fmt.Sprintf("%s over %s%s", text.Plural(p.Samples, "sample", "samples"), text.Span(p.Duration),
			spacingWords(p.Transitions))
	}
	return fmt.Sprintf("%s of %d successive processes, the last running for %s",
		text.Plural(p.Samples, "sample", "samples"),
		p.Restarts+1,
		text.Span(p.Duration))
}

// spacingWords explains the number of samples of a process whose state changed:
// the sampling interval depends on the state.
func spacingWords(list []record.Transition) string {
	if slices.ContainsFunc(list, func(t record.Transition) bool { return t.To > detector.Normal }) {
		return " (the interval depends on the state)"
	}
	return ""
}

// shownFaults is the maximum number of printed faults; the latest faults are
// printed.
const shownFaults = 5

// faults writes the crashes and ANRs that the workload reported.
func (out *page) faults(p record.Process) {
	for _, f := range p.Faults[max(0, len(p.Faults)-shownFaults):] {
		out.line("  fault    %s at %s, pid %d: %s", text.Printable(strings.ReplaceAll(f.Reason, "_", " ")),
			text.Span(f.T), f.PID, text.Printable(f.Text))
	}
	if more := p.FaultCount - min(len(p.Faults), shownFaults); more > 0 {
		out.line("           and %d before", more)
	}
}

// deaths writes how many times the process ended, the reasons, and the evidence
// for the latest end.
func (out *page) deaths(p record.Process) {
	if len(p.Deaths) == 0 {
		return
	}
	last := p.Deaths[len(p.Deaths)-1]
	out.line("  deaths   %s; the last at %s, pid %d: %s", record.DescribeDeaths(p.DeathsByReason), text.Span(last.T),
		last.PID, text.Printable(last.Text))
	for _, line := range last.Lines {
		out.line("           %s", text.Printable(line))
	}
}

// incidentLines describes the crashes, the ANRs and the memory-related deaths
// of a process, one line for each kind.
func incidentLines(p record.Process) []string {
	var out []string
	for _, f := range p.Findings {
		line := record.DescribeDeaths(map[string]int{f.Kind: f.Count})
		if line == "" {
			continue
		}
		if f.Count == 1 {
			line += fmt.Sprintf(" at %s", text.Span(f.Last))
		} else {
			line += fmt.Sprintf(", first at %s, last at %s", text.Span(f.First), text.Span(f.Last))
		}
		if f.Text != "" {
			line += ": " + text.Printable(f.Text)
		}
		out = append(out, line)
	}
	return out
}

// isLatestDeath reports whether an incident consists of a single death, which
// is the latest one.
func isLatestDeath(f record.Incident, deaths []record.Death) bool {
	if f.Count != 1 || len(deaths) == 0 {
		return false
	}
	last := deaths[len(deaths)-1]
	return f.Kind == last.Reason && f.Last == last.T && f.Text == last.Text
}

// countedObjects are the counts that are printed: those that rise when screens
// leak.
var countedObjects = []string{"Activities", "AppContexts", "ViewRootImpl", "Views", "WebViews"}

// objectCounts writes the first and the latest number of objects, if known.
func (out *page) objectCounts(counts []record.ObjectCount) {
	var parts []string
	for _, c := range counts {
		if c.Max > 0 && slices.Contains(countedObjects, c.Name) {
			parts = append(parts, fmt.Sprintf("%s %s -> %s", c.Name, text.Grouped(c.First), text.Grouped(c.Last)))
		}
	}
	if len(parts) > 0 {
		out.line("  objects  %s", strings.Join(parts, ", "))
	}
}

// shownAtMarks is the maximum number of printed leaks of one series of dumps.
const shownAtMarks = 10

// atMarks writes the result of the heap dumps at marks for one life.
func (out *page) atMarks(m record.MarkSeries, several bool) {
	settled := 0
	for _, d := range m.Dumps {
		if d.Settled {
			settled++
		}
	}
	who := ""
	if several {
		who = fmt.Sprintf(" of pid %d", m.PID)
	}
	out.line("  marks    %s%s, %d of them settled: %s", text.Count(len(m.Dumps), "heap dump", "heap dumps"), who,
		settled, m.Gate)
	for _, l := range m.Leaks[:min(len(m.Leaks), shownAtMarks)] {
		word := "leak "
		switch {
		case l.Proved:
			word = "LEAK "
		case l.Library:
			word = "library leak "
		}
		out.line("           %s%s: %s objects, %s retained now", word, text.Printable(l.Name), text.Series(l.Counts),
			text.Bytes(l.Bytes))
	}
	out.more(len(m.Leaks) - shownAtMarks)
}

// countsAtMarks writes how many times the objects of a life were counted at
// marks, and the counts that changed.
func (out *page) countsAtMarks(m record.CountsAtMarks, several bool) {
	who, how := "", "without forced collections"
	if several {
		who = fmt.Sprintf(" of pid %d at %s", m.PID, text.Quote(m.Marks, shownNameOfWindow))
	}
	if m.Collected {
		how = "after forced collections"
	}
	out.line("  counts   %s%s, %s: %s", text.Count(len(m.Readings), "reading", "readings"), who, how, m.Gate)
	for _, c := range m.Counts {
		values := []int64{}
		for _, v := range c.Values {
			if v != nil {
				values = append(values, *v)
			}
		}
		if len(values) > 0 && slices.Min(values) < slices.Max(values) {
			word := map[detector.Gate]string{detector.Leak: "LEAK "}[c.Gate]
			out.line("           %s%s: %s", word, text.Printable(c.Name), text.Series(values))
		}
	}
}

const (
	// shownWindows is the maximum number of printed leaks in windows.
	shownWindows = 20
	// shownNameOfWindow is the maximum printed length of the name of a window,
	// in characters.
	shownNameOfWindow = 100
)

// windows writes how many windows were judged, and what leaked in them.
func (out *page) windows(r record.Run) {
	if len(r.Windows) == 0 {
		return
	}
	verdicts, leaks := map[detector.Gate]int{}, []string{}
	for _, w := range r.Windows {
		for _, p := range w.Processes {
			verdicts[p.Gate]++
			if p.Gate == detector.Leak {
				leaks = append(leaks,
					fmt.Sprintf("%s, %s: LEAK (%s): %s", text.Quote(w.Name, shownNameOfWindow), name(p.Process),
						DescribeKind(p.Kind), p.Reason))
			}
		}
		leaks = append(leaks, leaksOfApps(w)...)
	}
	out.line("%s: %d leak, %d pass, %d settled, %d inconclusive", text.Count(len(r.Windows), "window", "windows"),
		verdicts[detector.Leak], verdicts[detector.Pass], verdicts[detector.Settled], verdicts[detector.Inconclusive])
	for _, line := range leaks[:min(len(leaks), shownWindows)] {
		out.line("  window   %s", line)
	}
	out.more(len(leaks) - shownWindows)
}

// shownMissing is the maximum number of printed missing heap dumps.
const shownMissing = 20

// missing lists the heap dumps that should have been taken but were not.
func (out *page) missing(r record.Run) {
	for _, m := range r.MissingEvidence[:min(len(r.MissingEvidence), shownMissing)] {
		who := ""
		if m.Process != "" {
			who = name(m.Process) + ": "
		}
		out.line("missing at %s: %s%s", text.Span(m.T), who, text.Printable(m.Text))
	}
	if n := len(r.MissingEvidence) - shownMissing; n > 0 {
		out.line("missing: %d more; see run.json", n)
	}
}

// shownUnjudged is the maximum number of printed processes without a verdict.
const shownUnjudged = 20

// unjudged lists the processes and devices that have no verdict.
func (out *page) unjudged(list []record.Unjudged) {
	for _, u := range list[:min(len(list), shownUnjudged)] {
		if u.Process == "" {
			out.line("not judged: device %s: %s", name(u.Device), text.Printable(u.Text))
			continue
		}
		out.line("not judged: %s", text.Printable(u.Text))
	}
	if n := len(list) - shownUnjudged; n > 0 {
		out.line("not judged: %d more; see run.json", n)
	}
}

// gapsText returns, for example, "2 gaps and 1 short gap, 50m without samples;
// 7s paused for heap dumps", or "none".
func gapsText(p record.Process) string {
	var kinds, parts []string
	if p.Gaps > 0 {
		kinds = append(kinds, text.Plural(p.Gaps, "gap", "gaps"))
	}
	if p.Missed > 0 {
		kinds = append(kinds, text.Plural(p.Missed, "short gap", "short gaps"))
	}
	if len(kinds) > 0 {
		parts = append(parts, fmt.Sprintf("%s, %s without samples", strings.Join(kinds, " and "), text.Span(p.Missing)))
	}
	if p.Paused > 0 {
		parts = append(parts, text.Span(p.Paused)+" paused for heap dumps")
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, "; ")
}

// sharesText returns, for example, "Java Heap 85 % (+300.1 MB/h), Native Heap
// 15 % (...)". It omits the growth in MB, because that growth covers a
// different time span than the trend above.
func sharesText(shares []record.Share) string {
	parts := make([]string, len(shares))
	for i, s := range shares {
		parts[i] = fmt.Sprintf("%s %.0f %% (%+.1f MB/h)", name(s.Dimension), 100*s.Share, s.Rate)
	}
	return strings.Join(parts, ", ")
}

// unseenBelow returns the detection limit, unless a leak was found or the
// reason for the verdict already states which leaks cannot be ruled out.
func unseenBelow(p record.Process) string {
	if p.MinDetectable == nil || p.Gate != detector.Pass && p.Gate != detector.Inconclusive ||
		strings.Contains(p.Reason, "cannot be ruled out") {
		return ""
	}
	return fmt.Sprintf("; leaks slower than %.1f MB/h cannot be ruled out", *p.MinDetectable)
}

// Headline returns the verdict on a process in a few words, under the policy
// with the given name. The result is Printable.
func Headline(p record.Process, policy string) string { return text.Printable(headline(p, policy)) }

func headline(p record.Process, policy string) string {
	line := verdictWords(p, policy)
	if life := lifeWords(p); life != "" {
		line += ", " + life
	}
	return line
}

// lifeWords describes how many times a process restarted and why it ended, such
// as "restarted 30 times (22 OutOfMemoryErrors, 8 crashes)". It returns "" if
// the process neither restarted nor ended.
func lifeWords(p record.Process) string {
	why, ends := record.DescribeDeaths(p.DeathsByReason), 0
	if why != "" {
		why = " (" + why + ")"
	}
	for _, n := range p.DeathsByReason {
		ends += n
	}
	switch {
	// A life may start and end between two samples.
	case p.Restarts > 0 && p.Samples > 0 && p.Samples < 2*(p.Restarts+1):
		return "restarted at least " + times(p.Restarts) + why
	case p.Restarts > 0 && ends > p.Restarts: // the last life ended without a restart
		return "restarted " + times(p.Restarts) + ", ended " + times(ends) + why
	case p.Restarts > 0:
		return "restarted " + times(p.Restarts) + why
	case why != "":
		return "ended" + why
	}
	return ""
}

// whyBesideLives returns the reason for a verdict. It omits the restarts with
// which the reason may begin, because the headline already mentions them.
func whyBesideLives(p record.Process) string {
	if lifeWords(p) == "" || !strings.HasPrefix(p.Reason, "restarted ") {
		return p.Reason
	}
	if i := strings.IndexAny(p.Reason, ":;"); i >= 0 {
		return strings.TrimSpace(p.Reason[i+1:])
	}
	return p.Reason
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%s times", text.Grouped(int64(n)))
}

func verdictWords(p record.Process, policy string) string {
	switch p.Gate {
	case detector.Leak:
		return fmt.Sprintf("LEAK (%s)%s", DescribeKind(p.Kind), leakProof(p))
	case detector.Pass:
		return "PASS" + states(p, policy)
	case detector.Settled:
		return fmt.Sprintf("SETTLED, grew %.1f MB%s", p.Growth, states(p, policy))
	}
	return "INCONCLUSIVE" + states(p, policy)
}

// states returns the worst live state if there was a suspicion, and also the
// state at the end if that differs.
func states(p record.Process, policy string) string {
	if p.Worst == detector.Normal {
		return ""
	}
	text := ", live state reached " + DescribeState(p.Worst, policy)
	if p.Worst != p.State {
		text += ", " + DescribeState(p.State, policy) + " at the end"
	}
	return text
}

// leakProof describes what proved a leak that did not reach LEAKING, with the
// states of the process. A leak that was too slow for an alarm is proved by the
// entire run.
func leakProof(p record.Process) string {
	switch {
	case p.Worst == detector.Leaking:
		return ""
	case slices.ContainsFunc(p.AtMarks, func(m record.MarkSeries) bool { return m.Gate == detector.Leak }):
		return ", proved by heap dumps at marks" + states(p, "")
	case slices.ContainsFunc(p.CountsAtMarks, func(m record.CountsAtMarks) bool { return m.Gate == detector.Leak }):
		return ", proved by counts at marks" + states(p, "")
	}
	return ", proved at the end, without an alarm during the run" + states(p, "")
}

// DescribeState describes a state for users while a run continues, under the
// policy with the given name. Under policy robust, LEAKING is provisional,
// because the verdict is reached only at the end of a run.
func DescribeState(state detector.State, policy string) string {
	if state == detector.Leaking && policy == detector.PolicyRobust {
		return state.String() + " (provisional)"
	}
	return state.String()
}

// DescribeKind returns a description of a kind of leak.
func DescribeKind(kind detector.LeakKind) string {
	switch kind {
	case detector.None:
		return "kind not decided"
	case detector.Unknown:
		return "kind unknown"
	}
	return strings.ReplaceAll(kind.String(), "_", " ")
}

func restarts(n int) string {
	switch n {
	case 0:
		return "no restart"
	case 1:
		return "1 restart"
	}
	return fmt.Sprintf("%d restarts", n)
}

func (out *page) device(d record.Device) {
	var b strings.Builder
	out.line("device %s (%s, API %d): %s in all, diagnoses included", name(d.Device), name(d.Model), d.API,
		text.Span(d.Duration))
	fmt.Fprintf(&b, "sampling: %s, mean %.1f ms, at most %.1f ms; dumpsys meminfo: %s, mean %.0f ms",
		text.Plural(d.Fast.Rounds, "round", "rounds"), d.Fast.MeanMS, d.Fast.MaxMS,
		text.Plural(d.Detail.Rounds, "reading", "readings"), d.Detail.MeanMS)
	if failed := d.Fast.Failed + d.Detail.Failed; failed > 0 {
		fmt.Fprintf(&b, "; %d failed", failed)
	}
	out.line("  %s", b.String())
	var cpu []string
	if d.SystemServer != nil {
		cpu = append(cpu, fmt.Sprintf("%.1f %% of a core on average", *d.SystemServer))
	}
	if d.CostSystemServer != nil {
		cpu = append(cpu, fmt.Sprintf("%.1f %% caused by leakgate", *d.CostSystemServer))
	}
	if d.DetailSystemServer != nil {
		cpu = append(cpu, fmt.Sprintf("%.1f %% while dumpsys ran", *d.DetailSystemServer))
	}
	if len(cpu) > 0 {
		out.line("  system_server: %s", strings.Join(cpu, ", "))
	}
	if d.Thinned > 0 {
		out.line("device %s: dumpsys meminfo slowed down %s to stay within the CPU budget, now every %s",
			name(d.Device), text.Plural(d.Thinned, "time", "times"), text.Span(d.DetailPeriod))
	}
	if d.Error != "" {
		out.line("device %s: %s", name(d.Device), d.Error)
	}
}

func (out *page) workload(w record.Workload) {
	what := "workload " + w.Kind
	if w.Seed != nil {
		what += fmt.Sprintf(", %d events with seed %d", w.Events, *w.Seed)
	}
	if w.Repeats > 0 {
		what += fmt.Sprintf(", repeated %s", text.Count(w.Repeats, "time", "times"))
	}
	for _, i := range w.Interrupted {
		out.line("%s: INTERRUPTED after %s: device %s closed its connection", what, text.Span(i.T), name(i.Device))
	}
	switch {
	case w.Error != "":
		out.line("%s: FAILED: %s", what, w.Error)
	case len(w.Interrupted) > 0:
	case w.Exit != nil:
		out.line("%s: done, exit %d", what, *w.Exit)
	default:
		out.line("%s: ended with the run", what)
	}
	if len(w.LeftRunning) > 0 {
		out.line("warning: the workload left processes running: %s; stop them in the workload",
			strings.Join(w.LeftRunning, ", "))
	}
}
