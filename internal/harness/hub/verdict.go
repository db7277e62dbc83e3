package hub

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/check"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// judge determines whether the suite as a whole fails, regardless of its specs.
func (h *Hub) judge(v *SuiteVerdict) {
	noteWarnings(v)
	for _, p := range h.plan.run.Patterns {
		h.judgePattern(v, p)
	}
	for _, p := range v.Run.Processes {
		h.judgeProcess(v, p)
	}
	judgeApps(v)
	h.judgeChecks(v)
	h.judgeUnjudged(v)
	for _, d := range v.Run.Devices {
		if d.Error != "" {
			v.Failures = append(v.Failures, fmt.Sprintf("device %s: %s", text.Printable(d.Device), d.Error))
		}
	}
	for _, e := range h.accepted {
		if e.Expired(today()) {
			v.Failures = append(v.Failures, "expired exception: "+e.String())
		}
	}
}

// noteWarnings notes the warnings of the run, such as the processes of the app
// that were not watched. judgePattern reports processes that were not seen.
func noteWarnings(v *SuiteVerdict) {
	for _, w := range v.Run.Warnings {
		if !strings.HasPrefix(w, "no process ") {
			v.Notes = append(v.Notes, "warning: "+w)
		}
	}
}

// judgeUnjudged lists the processes and devices without any check or trend.
// Each such process or device fails the suite if Strict is set and
// AllowUnjudged is not.
func (h *Hub) judgeUnjudged(v *SuiteVerdict) {
	for _, u := range v.Run.Unjudged {
		line := "not judged: " + u.Text
		if u.Process == "" {
			line = fmt.Sprintf("not judged: device %s: %s", text.Printable(u.Device), u.Text)
		}
		if h.plan.config.Strict && !h.plan.config.AllowUnjudged {
			v.Failures = append(v.Failures, line)
		} else {
			v.Notes = append(v.Notes, line)
		}
	}
}

func (h *Hub) judgePattern(v *SuiteVerdict, p capture.Pattern) {
	seen := slices.ContainsFunc(v.Run.Processes, func(x record.Process) bool { return p.Match(x.Process) })
	if seen {
		return
	}
	line := fmt.Sprintf("no process matched %s", text.Head(string(p), 200))
	for _, w := range v.Run.Warnings {
		if _, names, ok := strings.Cut(w, "; running processes with similar names: "); ok {
			line += "; running processes with similar names: " + names
			break
		}
	}
	v.Failures = append(v.Failures, line)
}

// judgeProcess judges the memory growth of one process over the whole suite.
func (h *Hub) judgeProcess(v *SuiteVerdict, p record.Process) {
	line := fmt.Sprintf("%s: %s: %s", p.Process, p.Gate, p.Reason)
	for _, d := range p.Deaths {
		if slices.Contains([]string{"out_of_memory", "memory_limiter", "anomaly", "low_memory"}, d.Reason) {
			v.Notes = append(v.Notes, fmt.Sprintf("%s, pid %d: ran out of memory: %s", p.Process, d.PID, d.Text))
		}
	}
	if p.Gate != detector.Leak {
		v.Notes = append(v.Notes, line)
		return
	}
	if names := h.knownAs(v.Run, p); names != "" {
		v.Notes = append(v.Notes, line+"; accepted: "+names)
		return
	}
	v.Failures = append(v.Failures, line)
}

// judgeApps fails a suite if the processes of an app leak together although no
// single process leaks.
func judgeApps(v *SuiteVerdict) {
	for _, a := range v.Run.Apps {
		if a.Leaks() {
			v.Failures = append(v.Failures,
				fmt.Sprintf("all processes of %s together: %s: %s", a.App, a.Gate, a.Reason))
		}
	}
}

// knownAs names the exceptions that cover all leaks found in a process whose
// memory leaks. It returns "" if no leak was found or if a leak is not covered.
// It also returns "" if the leaks do not explain the growth: if memory other
// than the Java heap grew, or if the leaks retain less than half of the growth.
func (h *Hub) knownAs(run record.Run, p record.Process) string {
	if p.Kind != detector.Java {
		return ""
	}
	found := map[string]bool{}
	most := int64(0)
	for _, d := range run.Diagnoses {
		if d.Device != p.Device || d.User != p.User || d.Process != p.Process || d.Trigger == record.TriggerFirst ||
			d.Trigger == record.TriggerLast {
			continue
		}
		retained := int64(0)
		for _, l := range d.Leaks {
			if l.Library {
				continue
			}
			name := h.exceptionOf(l, traceOf(d, l.Key))
			if name == "" {
				return ""
			}
			found[name] = true
			retained += l.Bytes
		}
		most = max(most, retained)
	}
	if float64(most) < p.Growth*detector.MB*explained {
		return ""
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), ", ")
}

// explained is the minimum share of the growth that leaks must retain to
// explain the growth.
const explained = 0.5

func traceOf(d record.Diagnosis, key string) []string {
	for _, f := range d.Findings {
		if f.Key == key {
			return f.Trace
		}
	}
	return nil
}

func (h *Hub) exceptionOf(l record.DumpLeak, trace []string) string {
	for _, e := range h.exceptions() {
		if e.Names(l, trace) && !e.Expired(today()) {
			return e.String()
		}
	}
	return ""
}

// exceptions returns the exceptions of the accepted list and of all specs.
func (h *Hub) exceptions() []monitor.Exception {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Concat(h.accepted, h.known)
}

// judgeChecks reports each check with a verdict other than pass, and the number
// of checks with each verdict. A leak normally fails its spec. If the spec had
// already failed for another reason, Ginkgo does not show the leak.
func (h *Hub) judgeChecks(v *SuiteVerdict) {
	counts := map[record.CheckVerdict]int{}
	readings, took := 0, 0.0
	looked := map[string]bool{}
	for _, c := range v.Run.Checks {
		counts[c.Verdict]++
		readings, took = readings+c.Readings, took+c.Duration
		line := fmt.Sprintf("%s: %s", c.Name, c.Text)
		switch {
		case c.Verdict == record.VerdictLeak, c.Verdict == record.VerdictInconclusive,
			c.Verdict == record.VerdictNotChecked:
			if h.fails(c) {
				v.Failures = append(v.Failures, line)
			} else {
				v.Notes = append(v.Notes, line)
			}
		case c.Verdict == record.VerdictKnown, c.Verdict == record.VerdictSkipped:
			v.Notes = append(v.Notes, line)
		}
		judgeOlder(v, c, looked)
		v.Notes = append(v.Notes, ends(c)...)
	}
	if n := len(v.Run.Checks); n > 0 {
		v.Notes = slices.Insert(v.Notes, 0,
			fmt.Sprintf("%s: %d passed, %d leak, %d known, %d inconclusive, %d not checked, %d skipped; %d readings "+
				"of devices, %.1f s", text.Count(n, "check", "checks"),
				counts[record.VerdictPass], counts[record.VerdictLeak], counts[record.VerdictKnown],
				counts[record.VerdictInconclusive], counts[record.VerdictNotChecked], counts[record.VerdictSkipped],
				readings, took))
	}
}

// fails reports whether a check that did not pass fails the suite: a leak does,
// and so does missing evidence if Strict is set. The check of a spec that
// itself passed or was skipped does not fail the suite, because Ginkgo already
// shows its result.
func (h *Hub) fails(c record.Check) bool {
	shown := c.Type == record.CheckSpec && (c.Outcome == record.OutcomePassed || c.Outcome == record.OutcomeIgnored)
	return !shown && (c.Verdict == record.VerdictLeak || h.plan.config.Strict)
}

// judgeOlder judges leaks that existed before a check and were not found by an
// earlier check. Such leaks fail the suite, but not a spec. Leaks found by the
// first examination of a process may be older than the suite, for example if an
// earlier suite left the app running; these leaks do not fail anything. looked
// holds the processes that earlier checks have examined.
func judgeOlder(v *SuiteVerdict, c record.Check, looked map[string]bool) {
	for _, p := range c.Processes {
		of := fmt.Sprint(c.Device, p.User, p.Process)
		first := !looked[of]
		looked[of] = true
		left := slices.DeleteFunc(slices.Clone(p.Older), func(l record.CheckedLeak) bool { return l.Known != "" })
		if len(left) == 0 {
			continue
		}
		line := fmt.Sprintf("before the check of %s: %s: leaked %s", c.Name, p.Process, check.Describe(left))
		if first {
			v.Notes = append(v.Notes, line)
		} else {
			v.Failures = append(v.Failures, line)
		}
	}
}

// ends describes the crashes, ANRs and out-of-memory deaths during a check.
func ends(c record.Check) []string {
	var out []string
	for _, p := range c.Processes {
		for _, d := range check.Failures(p) {
			out = append(out, fmt.Sprintf("%s: %s, pid %d, ended: %s: %s", c.Name, p.Process, d.PID, d.Reason, d.Text))
		}
	}
	return out
}
