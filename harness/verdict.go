package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/harness/check"
	"github.com/leakgate/leakgate/internal/harness/hub"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// SpecEntry is the value of the report entry of each checked spec. Ginkgo's
// JSON report contains the value unchanged, the JUnit report contains it as a
// property of the test case, and the console shows it as text.
type SpecEntry struct {
	record.Check
	// Expired lists the exceptions whose date has passed.
	Expired []string `json:"expired,omitempty"`
	// Run is the run directory.
	Run string `json:"run,omitempty"`
}

// String returns the entry as it appears on the console.
func (e SpecEntry) String() string {
	lines := []string{string(e.Verdict) + ": " + e.Text}
	switch e.Verdict {
	case record.VerdictSkipped, record.VerdictNotChecked:
		lines[0] = e.Text // the text begins with the verdict
	case "":
		lines = nil // not a checked spec
	}
	for _, line := range e.Expired {
		lines = append(lines, "expired exception: "+line)
	}
	for _, p := range e.Processes {
		for _, d := range check.Failures(p) {
			lines = append(lines, fmt.Sprintf("%s, pid %d: %s: %s", p.Process, d.PID, d.Reason, d.Text))
		}
		if len(p.Older) > 0 {
			lines = append(lines, fmt.Sprintf("%s: leaked before this spec: %s", p.Process, check.Describe(p.Older)))
		}
	}
	return strings.Join(lines, "\n")
}

const entryName = "leakgate"

// judge adds the entry of a spec, and fails the spec if it leaks. If a spec has
// already failed for another reason, Ginkgo does not show a second failure. The
// leak is then shown in the entry and in the verdict on the suite.
func (l *Leaks) judge(s *spec, c record.Check, report ginkgo.SpecReport) {
	e := SpecEntry{Check: c, Run: l.Dir()}
	e.Stack, e.Location = "", s.check.location // Ginkgo's report contains the failure itself
	for _, known := range s.known {
		if known.Expired(time.Now()) {
			e.Expired = append(e.Expired, known.String())
		}
	}
	fails := l.fails(e, s.strict)
	if s.wanted || len(e.Expired) > 0 {
		ginkgo.AddReportEntry(entryName, e, visibility(e, fails), locationOf(s.check.location))
	}
	failures := []string{}
	if fails {
		failures = append(failures, l.failure(e))
	}
	for _, t := range s.tests {
		test := SpecEntry{Check: t, Run: e.Run}
		bad := l.fails(test, s.strict)
		ginkgo.AddReportEntry(entryName+" "+t.Name, test, visibility(test, bad))
		if bad {
			failures = append(failures, t.Name+"\n"+l.failure(test))
		}
	}
	if len(failures) > 0 && !report.State.Is(types.SpecStateFailureStates) {
		ginkgo.Fail(screen(strings.Join(failures, "\n\n")))
	}
}

// fails reports whether a check fails its spec.
func (l *Leaks) fails(e SpecEntry, strict bool) bool {
	switch {
	case l.settings.Observe:
		return false
	case len(e.Expired) > 0, e.Verdict == record.VerdictLeak:
		return true
	case e.Verdict == record.VerdictInconclusive, e.Verdict == record.VerdictNotChecked:
		return strict
	}
	return false
}

// visibility returns when the console shows an entry: always if it needs
// attention, otherwise only if the spec fails or the output is verbose.
func visibility(e SpecEntry, fails bool) types.ReportEntryVisibility {
	died := strings.Contains(e.String(), "\n")
	if fails || died || e.Verdict != record.VerdictPass && e.Verdict != record.VerdictSkipped {
		return types.ReportEntryVisibilityAlways
	}
	return types.ReportEntryVisibilityFailureOrVerbose
}

// locationOf converts a location FILE:LINE to Ginkgo's form. If it contains no
// line, the location of the library itself is returned.
func locationOf(location string) types.CodeLocation {
	at := strings.LastIndexByte(location, ':')
	line := 0
	if at < 0 {
		return types.NewCodeLocation(1)
	}
	if _, err := fmt.Sscan(location[at+1:], &line); err != nil {
		return types.NewCodeLocation(1)
	}
	return types.CodeLocation{FileName: location[:at], LineNumber: line}
}

const (
	// shownTrace and shownScreen bound the number of lines in a failure
	// message.
	shownTrace  = 40
	shownScreen = 60
)

// failure returns the failure message of a spec: the verdict first, then where
// it was checked, where the evidence is, and the trace of the first leak.
func (l *Leaks) failure(e SpecEntry) string {
	lines := []string{e.String()}
	if e.Location != "" {
		lines = append(lines, "checked at "+e.Location)
	}
	for _, p := range e.Processes {
		if p.Folder != "" {
			lines = append(lines, "evidence in "+filepath.Join(e.Run, filepath.FromSlash(p.Folder)))
		}
	}
	for _, p := range e.Processes {
		for _, leak := range p.Leaks {
			if leak.Known != "" {
				continue
			}
			lines = append(lines, "accept it with leaks.Known(harness.Key(\""+leak.Key[:min(len(leak.Key), keyShown)]+
				"\"), reason, owner, harness.Until(year, month, day))", "")
			trace := leak.Trace
			if len(trace) > shownTrace {
				trace = append(trace[:shownTrace:shownTrace], fmt.Sprintf("... %d more lines", len(trace)-shownTrace))
			}
			return strings.Join(append(lines, trace...), "\n")
		}
	}
	return strings.Join(lines, "\n")
}

// keyShown is the length of the prefix of a key that identifies a leak in
// reports.
const keyShown = 8

// screen truncates a string to shownScreen lines.
func screen(s string) string {
	lines := strings.Split(s, "\n")
	if len(lines) <= shownScreen {
		return s
	}
	return strings.Join(append(lines[:shownScreen:shownScreen],
		fmt.Sprintf("... %d more lines", len(lines)-shownScreen)), "\n")
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// reportSuite reports the verdict on the suite and, if necessary, fails the
// suite.
func (l *Leaks) reportSuite(v hub.SuiteVerdict, dir string, err error) {
	var lines []string
	if v.Started {
		lines = append(lines, fmt.Sprintf("leakgate: the run is in %s", dir))
	}
	lines = append(lines, v.Notes...)
	if err != nil {
		v.Failures = append(v.Failures, "the run could not be recorded: "+err.Error())
	}
	fails := len(v.Failures) > 0 && !l.settings.Observe
	head := "leakgate: the suite passes"
	leaking := leaks(v.Run.Checks)
	switch {
	case fails:
		head = "leakgate: the suite fails"
	case len(v.Failures) > 0:
		head = "leakgate: the suite would fail (observe only)"
	case !v.Started:
		head = "leakgate: no checked spec ran; nothing was watched"
	case leaking > 0:
		head = fmt.Sprintf("leakgate: %d of %s leaked", leaking, text.Count(len(v.Run.Checks), "check", "checks"))
	}
	summary := screen(strings.Join(append(append([]string{head}, v.Failures...), lines...), "\n"))
	if fails {
		ginkgo.Fail(summary)
	}
	ginkgo.AddReportEntry(entryName, summary, types.ReportEntryVisibilityAlways)
}

// unopened returns the specs whose check could not be opened, for example while
// a device was disconnected. The run contains no record of them. Report entries
// of specs that ran in other processes arrive as JSON.
func unopened(report ginkgo.Report) []string {
	var out []string
	for _, s := range report.SpecReports {
		for _, e := range s.ReportEntries {
			if e.Name != entryName {
				continue
			}
			var c record.Check
			text, err := json.Marshal(e.Value.GetRawValue())
			if err == nil && json.Unmarshal(text, &c) == nil && c.Verdict == record.VerdictNotChecked && c.Window == 0 {
				out = append(out, c.Name+": "+c.Text)
			}
		}
	}
	return out
}

// leaks counts the checks that found a leak.
func leaks(checks []record.Check) int {
	n := 0
	for _, c := range checks {
		if c.Verdict == record.VerdictLeak {
			n++
		}
	}
	return n
}

// table returns the live table for Ginkgo's progress reports, which appear on a
// signal and when a node times out.
func (l *Leaks) table() string {
	l.mu.Lock()
	h, waiting := l.hub, l.devices
	l.mu.Unlock()
	if waiting != "" {
		return "leakgate: waiting for the device, which " + waiting + " is using"
	}
	if h == nil {
		return ""
	}
	// Ginkgo waits at most five seconds for this text.
	ctx, done := context.WithTimeout(context.Background(), 2*time.Second)
	defer done()
	rows, err := h.Now(ctx, "*")
	if err != nil {
		return "leakgate: " + err.Error()
	}
	lines := []string{"leakgate: " + text.Count(len(rows), "process", "processes") + ", run in " + h.Dir()}
	for _, r := range rows {
		lines = append(lines, rowText(r))
	}
	return strings.Join(lines, "\n")
}

func rowText(r hub.Standing) string {
	state := r.State.String()
	switch {
	case !r.Answers:
		state = "the device does not respond"
	case !r.Present:
		state = "not running"
	}
	rate := "no rate yet"
	if r.RateKnown {
		rate = fmt.Sprintf("%+.1f MB/h", r.Rate)
	}
	return fmt.Sprintf("  %s  pid %d  %s  %.1f MB  %s  read %v ago", text.Head(r.Process, 60), r.PID, state, r.MB, rate,
		r.Age.Round(time.Second))
}
