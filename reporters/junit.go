package reporters

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// JUnitName is the name of the file in a run directory that contains the
// verdicts for CI servers.
const JUnitName = "junit.xml"

// The size limits of junit.xml.
const (
	// maxJUnitName is the maximum length of a name and of the message of a
	// failure, in characters.
	maxJUnitName = 500
	// maxJUnitText is the maximum length of the details of one case, and
	// maxJUnitTexts is the maximum length of the details of all cases together,
	// both in bytes.
	maxJUnitText  = 16 << 10
	maxJUnitTexts = 16 << 20
)

// WriteJUnit writes a run as JUnit XML, in the form that Jenkins, GitLab and
// GitHub's report actions read. It contains a case for each declared process
// pattern, for each app whose processes were judged together, for the workload,
// and for each check of a test or spec. The names contain no number that
// changes from run to run. A leak is a failure of type "leak".
func WriteJUnit(w io.Writer, run record.Run) error {
	j := junit{left: maxJUnitTexts}
	suite := junitSuite{
		Name: "leakgate", Time: junitSeconds(run.Ended.Sub(run.Started).Seconds()),
		Timestamp: run.Started.UTC().Format("2006-01-02T15:04:05"),
	}
	suite.Cases = append(suite.Cases, j.patterns(run)...)
	suite.Cases = append(suite.Cases, j.apps(run)...)
	if run.Workload != nil {
		suite.Cases = append(suite.Cases, j.workload(*run.Workload))
	}
	several := classesOfDevices(run.Devices)
	for _, c := range run.Checks {
		suite.Cases = append(suite.Cases, j.check(c, several[c.Device]))
	}
	suite.count()
	all := junitSuites{
		Name: suite.Name, Tests: suite.Tests, Failures: suite.Failures, Errors: suite.Errors, Skipped: suite.Skipped,
		Time: suite.Time, Suites: []junitSuite{suite},
	}
	out, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encode JUnit XML: %w", err)
	}
	// Names and messages are single lines, so the reference &#xA; can only
	// occur in the details of a result.
	out = bytes.ReplaceAll(out, []byte("&#xA;"), []byte("\n"))
	if _, err := w.Write(slices.Concat([]byte(xml.Header), out, []byte("\n"))); err != nil {
		return fmt.Errorf("write JUnit XML: %w", err)
	}
	return nil
}

// WriteJUnitFile writes junit.xml into a run directory atomically.
func WriteJUnitFile(dir string, run record.Run) error {
	var b bytes.Buffer
	if err := WriteJUnit(&b, run); err != nil {
		return err
	}
	return record.WriteFileAtomic(filepath.Join(dir, JUnitName), b.Bytes())
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	Time    string       `xml:"time,attr"`
	Skipped *junitResult `xml:"skipped"`
	Error   *junitResult `xml:"error"`
	Failure *junitResult `xml:"failure"`
	Output  string       `xml:"system-out,omitempty"`
}

type junitResult struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

func (s *junitSuite) count() {
	for _, c := range s.Cases {
		s.Tests++
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
}

// junit writes the cases of one run.
type junit struct {
	left int // bytes that may still be written as details
}

// result builds the result of a case from a message and further lines.
func (j *junit) result(kind, message string, lines ...string) *junitResult {
	return &junitResult{Type: kind, Message: text.Head(message, maxJUnitName), Text: j.text(lines...)}
}

// text makes lines Printable, because XML 1.0 does not allow control
// characters, and joins them.
func (j *junit) text(lines ...string) string {
	var b strings.Builder
	for _, part := range lines {
		for line := range strings.SplitSeq(strings.TrimRight(part, "\n"), "\n") {
			line = text.Printable(strings.ReplaceAll(line, "\t", "    "))
			if b.Len()+len(line) > min(maxJUnitText, j.left) {
				b.WriteString("[more is in run.json]\n")
				j.left -= min(j.left, b.Len())
				return b.String()
			}
			b.WriteString(line + "\n")
		}
	}
	j.left -= b.Len()
	return b.String()
}

// junitSeconds formats a time for JUnit. It returns 0 for values that are not a
// finite positive number, because a record may contain any value.
func junitSeconds(s float64) string {
	if math.IsNaN(s) || math.IsInf(s, 0) || s < 0 {
		s = 0
	}
	return strconv.FormatFloat(s, 'f', 3, 64)
}

// classesOfDevices returns the model and the API level of each device, or nil
// if they are the same for all devices. They distinguish the results of one
// test on several devices.
func classesOfDevices(devices []record.Device) map[string]string {
	out := map[string]string{}
	for _, d := range devices {
		out[d.Device] = fmt.Sprintf("%s, API %d", cmp.Or(d.Model, "device"), d.API)
	}
	names := map[string]bool{}
	for _, n := range out {
		names[n] = true
	}
	if len(names) < 2 {
		return nil
	}
	return out
}

// patterns returns the cases of the configured process patterns.
func (j *junit) patterns(run record.Run) []junitCase {
	patterns := run.Patterns
	if len(patterns) == 0 { // written by an earlier version
		for _, p := range run.Processes {
			if !slices.Contains(patterns, p.Process) {
				patterns = append(patterns, p.Process)
			}
		}
	}
	var out []junitCase
	for _, pattern := range patterns {
		out = append(out, j.pattern(pattern, run))
	}
	return out
}

func (j *junit) pattern(pattern string, run record.Run) junitCase {
	c := junitCase{
		Class: "leakgate.processes", Name: text.Head("process "+pattern+" does not leak", maxJUnitName),
		Time: junitSeconds(0),
	}
	var leaks, open, lines []string
	longest, seen := 0.0, 0
	for _, p := range run.Processes {
		if !matchesPattern(pattern, p.Process) {
			continue
		}
		seen++
		longest = max(longest, p.Duration)
		who := p.Process
		if len(run.Devices) > 1 {
			who += " on " + p.Device
		}
		line := who + ": " + headline(p, run.Policy)
		lines = append(lines, line)
		if p.Reason != "" {
			lines = append(lines, "  "+whyBesideLives(p))
		}
		for _, finding := range incidentLines(p) {
			lines = append(lines, "  "+finding)
		}
		switch p.Gate {
		case detector.Leak:
			leaks = append(leaks, line)
			lines = append(lines, tracesOf(run, p)...)
		case detector.Inconclusive:
			open = append(open, p.Process+": "+cmp.Or(p.Reason, "inconclusive"))
		}
	}
	c.Time = junitSeconds(longest)
	switch {
	case seen == 0:
		c.Error = j.result("no_process", "no process matched "+pattern, "no process matched "+pattern+
			": start the app, or correct the pattern")
	case len(leaks) > 0:
		c.Failure = j.result("leak", strings.Join(leaks, "; "), lines...)
	case len(open) > 0:
		c.Skipped = j.result("", "inconclusive: "+strings.Join(open, "; "), lines...)
	default:
		c.Output = j.text(lines...)
	}
	return c
}

// apps returns the cases of apps whose processes were judged together, one for
// each app name.
func (j *junit) apps(run record.Run) []junitCase {
	var names []string
	for _, a := range run.Apps {
		if !slices.Contains(names, a.App) {
			names = append(names, a.App)
		}
	}
	var out []junitCase
	for _, app := range names {
		out = append(out, j.app(app, run))
	}
	return out
}

// app returns a case that fails if the processes of an app leak together and
// none leaks by itself.
func (j *junit) app(app string, run record.Run) junitCase {
	c := junitCase{
		Class: "leakgate.processes", Name: text.Head("all processes of "+app+" together do not leak", maxJUnitName),
	}
	var leaks, lines []string
	longest, judged := 0.0, false
	for _, a := range run.Apps {
		if a.App != app {
			continue
		}
		longest = max(longest, a.Duration)
		judged = judged || a.Gate != detector.Inconclusive
		line := AllProcesses(a) + ": " + headline(a.Verdict(), run.Policy)
		if len(run.Devices) > 1 {
			line += " on " + a.Device
		}
		if len(a.Leaking) > 0 {
			line += "; " + leakingText(a.Leaking)
		}
		lines = append(lines, line, "  "+a.Reason)
		if held := growthHolders(a); held != "" {
			lines = append(lines, "  held by "+held)
		}
		if a.Leaks() {
			leaks = append(leaks, line)
		}
	}
	c.Time = junitSeconds(longest)
	switch {
	case len(leaks) > 0:
		c.Failure = j.result("leak", strings.Join(leaks, "; "), lines...)
	case !judged:
		c.Skipped = j.result("", "inconclusive", lines...)
	default:
		c.Output = j.text(lines...)
	}
	return c
}

// matchesPattern reports whether a pattern of a plan selects a process (see
// capture.Pattern).
func matchesPattern(pattern, name string) bool {
	if head, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, head)
	}
	return pattern == name
}

// tracesOf returns the findings of the latest diagnosis of a process.
func tracesOf(run record.Run, p record.Process) []string {
	for _, d := range slices.Backward(run.Diagnoses) {
		if d.Device == p.Device && d.User == p.User && d.Process == p.Process && len(d.Summary) > 0 {
			return append([]string{""}, d.Summary...)
		}
	}
	return nil
}

func (j *junit) workload(w record.Workload) junitCase {
	c := junitCase{
		Class: "leakgate.run", Name: text.Head("workload "+w.Kind+" succeeds", maxJUnitName), Time: junitSeconds(0),
	}
	switch {
	case w.Error != "":
		c.Error = j.result("workload", w.Error, w.Error)
	case len(w.Interrupted) > 0:
		c.Error = j.result("workload", "a device dropped the connection to the workload")
	}
	return c
}

// check returns the case of one test or spec.
func (j *junit) check(c record.Check, device string) junitCase {
	out := junitCase{Time: junitSeconds(c.Ended - c.T)}
	out.Class, out.Name = namesOfCheck(c)
	if device != "" {
		out.Name += "[" + device + "]"
	}
	out.Class, out.Name = text.Head(out.Class, maxJUnitName), text.Head(out.Name, maxJUnitName)
	leaks := c.Verdict == record.VerdictLeak
	switch c.Outcome {
	case record.OutcomeCrashed:
		out.Error = j.result("crashed", ownFailure(c, leaks), ownText(c, leaks)...)
	case record.OutcomeFailed, record.OutcomeUnfinished:
		out.Failure = j.result(c.Outcome, ownFailure(c, leaks), ownText(c, leaks)...)
	default:
		switch {
		case leaks:
			out.Failure = j.result("leak", c.Text, leakLines(c)...)
			return out
		case c.Outcome == record.OutcomeIgnored:
			out.Skipped = j.result("", "ignored")
		case c.Outcome == record.OutcomeAssumptionFailed:
			out.Skipped = j.result("", "assumption failed: "+firstLine(c.Stack), c.Stack)
		}
	}
	if c.Verdict != record.VerdictPass && !leaks && c.Text != "" && out.Skipped == nil ||
		c.Verdict == record.VerdictInconclusive {
		out.Output = j.text(c.Text)
	}
	return out
}

// namesOfCheck returns the class and the name of a check. The name of a test
// contains both.
func namesOfCheck(c record.Check) (class, name string) {
	if c.Type != record.CheckTest {
		return "leakgate.specs", c.Name
	}
	class, method, ok := strings.Cut(c.Name, "#")
	switch {
	case ok && class != "" && method != "":
		return class, method
	case strings.Contains(c.Name, ".") && !strings.ContainsAny(c.Name, " /("):
		return c.Name, "class" // a test class that failed as a whole
	}
	return "leakgate.tests", c.Name
}

var outcomeText = map[string]string{
	record.OutcomeFailed: "the test failed", record.OutcomeCrashed: "the process crashed in the test",
	record.OutcomeUnfinished: "the test did not finish",
}

// ownFailure returns the message of a test that itself failed. The failure is
// stated first, followed by the leak if there is one.
func ownFailure(c record.Check, leaks bool) string {
	message := cmp.Or(firstLine(c.Stack), outcomeText[c.Outcome])
	if leaks {
		message += "; it also leaks: " + c.Text
	}
	return message
}

func ownText(c record.Check, leaks bool) []string {
	lines := []string{cmp.Or(c.Stack, outcomeText[c.Outcome])}
	if leaks {
		lines = append(append(lines, "", "it also leaks:"), leakLines(c)...)
	}
	return lines
}

// leakLines returns lines that describe what leaks and what holds it.
func leakLines(c record.Check) []string {
	lines := []string{c.Text}
	if c.Location != "" {
		lines = append(lines, "checked at "+c.Location)
	}
	for _, p := range c.Processes {
		for _, l := range p.Leaks {
			if l.Known != "" {
				continue
			}
			lines = append(append(lines, "",
				fmt.Sprintf("%s: %d x %s, %s retained", p.Process, l.New, l.Name, text.Bytes(l.Bytes))), l.Trace...)
		}
		if p.Folder != "" {
			lines = append(lines, "", "heap dump: "+p.Folder)
		}
	}
	return lines
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return first
}
