package androidsim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sortsReports is the first API level at which `am instrument` prints the
// values of a report sorted by key; at lower levels, they are in hash order.
const sortsReports = 28

// bundle holds the values of a report, in the order in which API levels below
// sortsReports print them.
type bundle [][2]string

type reportKind struct{ value, code, end string }

// The kinds of reports. The human-readable value ends with a newline only in
// the report at the end of a run.
var (
	statusReport = reportKind{"INSTRUMENTATION_STATUS", "INSTRUMENTATION_STATUS_CODE", ""}
	resultReport = reportKind{"INSTRUMENTATION_RESULT", "INSTRUMENTATION_CODE", "\n"}
)

// report prints a report: all values in raw mode, otherwise the human-readable
// value, if any (cmds/am Instrument.java, TextStatusReporter).
func (c *call) report(b bundle, raw bool, kind reportKind, code int) {
	if stream, ok := b.value("stream"); ok && !raw {
		c.Printf("%s%s", stream, kind.end)
		return
	}
	if c.phone.opt.API >= sortsReports {
		slices.SortFunc(b, func(x, y [2]string) int { return strings.Compare(x[0], y[0]) })
	}
	for _, kv := range b {
		c.Printf("%s: %s=%s\n", kind.value, kv[0], kv[1])
	}
	c.Printf("%s: %d\n", kind.code, code)
}

func (b bundle) value(key string) (string, bool) {
	for _, kv := range b {
		if kv[0] == key {
			return kv[1], true
		}
	}
	return "", false
}

func (t Test) report(n int) testReport {
	switch t.Outcome {
	case TestFails, testUnloadable:
		return testReport{n, reportFailure, t.failureText()}
	case TestIgnored:
		return testReport{test: n, code: reportIgnored}
	case TestAssumptionFails:
		return testReport{n, reportAssumptionFailure, t.assumptionText()}
	}
	return testReport{test: n, code: reportOK}
}

// frame formats the last lines of the test's stack trace, starting with the
// frame of the test method.
func (t Test) frame() string {
	class := t.class()
	file := class[strings.LastIndexByte(class, '.')+1:]
	return fmt.Sprintf("\tat %s.%s(%s.kt:42)\n\t... 31 trimmed\n", class, t.method(), file)
}

func (t Test) failureText() string {
	if t.Outcome == testUnloadable {
		return fmt.Sprintf("java.lang.RuntimeException: Failed loading specified test class '%s'\n\t... 24 "+
			"trimmed\nCaused by: java.lang.ClassNotFoundException: %[1]s\n\t... 28 more\n", t.class())
	}
	return "java.lang.AssertionError: expected:<3> but was:<2>\n\tat org.junit.Assert.fail(Assert.java:89)\n\tat " +
		"org.junit.Assert.failNotEquals(Assert.java:835)\n" + t.frame()
}

func (t Test) assumptionText() string {
	return "org.junit.AssumptionViolatedException: got: <false>, expected: is <true>\n\tat " +
		"org.junit.Assume.assumeThat(Assume.java:106)\n" + t.frame()
}

// orchestratorText returns the message of Android Test Orchestrator for a test
// whose process has died
// (androidx.test.orchestrator.OrchestrationListenerManager.testProcessFinished).
func (t Test) orchestratorText() string {
	return fmt.Sprintf("Test instrumentation process crashed. Check %s.txt for details", t.Name)
}

// display returns the name of the test as JUnit prints it
// (org.junit.runner.Description).
func (t Test) display() string { return t.method() + "(" + t.class() + ")" }

type reportPrinter struct {
	call *call
	raw  bool
	run  *testRun
	// class is the latest test's class; stream is its human-readable value.
	class, stream string
}

// test prints the start or the end of one test (InstrumentationResultPrinter).
// A skipped test repeats the human-readable value of its start.
func (p *reportPrinter) test(r testReport) {
	t := p.run.tests[r.test]
	switch r.code {
	case reportStart:
		p.stream = ""
		if p.class != t.class() {
			p.class, p.stream = t.class(), "\n"+t.class()+":"
		}
	case reportOK:
		p.stream = "."
	case reportFailure:
		p.stream = fmt.Sprintf("\nError in %s:\n%s", t.display(), r.stack)
	}
	b := bundle{
		{"numtests", strconv.Itoa(len(p.run.tests))}, {"stream", p.stream}, {"id", "AndroidJUnitRunner"},
		{"test", t.method()}, {"class", t.class()},
	}
	if r.stack != "" {
		b = append(b, [2]string{"stack", r.stack})
	}
	b = append(b, [2]string{"current", strconv.Itoa(r.test + 1)})
	p.call.report(b, p.raw, statusReport, r.code)
}

// The exit codes of a run: Activity.RESULT_OK and RESULT_CANCELED.
const (
	resultOK       = -1
	resultCanceled = 0
)

// end prints the end of the run: the summary, or a message that its process has
// died (ActivityManagerService.handleAppDiedLocked).
func (p *reportPrinter) end(reports []testReport) {
	b, code := bundle{{"stream", "\n" + p.run.summary(reports)}}, resultOK
	if p.run.crashed {
		b, code = bundle{{"shortMsg", "Process crashed."}}, resultCanceled
	}
	p.call.report(b, p.raw, resultReport, code)
}

// summary returns the output of JUnit 4.13's org.junit.internal.TextListener.
func (r *testRun) summary(reports []testReport) string {
	var b strings.Builder
	ran, failed := 0, []testReport(nil)
	for _, report := range reports {
		switch report.code {
		case reportOK, reportAssumptionFailure:
			ran++
		case reportFailure:
			ran++
			failed = append(failed, report)
		}
	}
	fmt.Fprintf(&b, "\nTime: %s\n", junitSeconds(r.ended-r.began))
	switch len(failed) {
	case 0:
	case 1:
		b.WriteString("There was 1 failure:\n")
	default:
		fmt.Fprintf(&b, "There were %d failures:\n", len(failed))
	}
	for i, report := range failed {
		fmt.Fprintf(&b, "%d) %s\n%s", i+1, r.tests[report.test].display(), report.stack)
		if !strings.HasSuffix(report.stack, "\n") {
			b.WriteString("\n")
		}
	}
	if len(failed) > 0 {
		fmt.Fprintf(&b, "\nFAILURES!!!\nTests run: %d,  Failures: %d\n\n", ran, len(failed))
		return b.String()
	}
	s := "s"
	if ran == 1 {
		s = ""
	}
	fmt.Fprintf(&b, "\nOK (%d test%s)\n\n", ran, s)
	return b.String()
}

// junitSeconds formats seconds like java.text.NumberFormat: with at most three
// decimal places, and with grouping separators.
func junitSeconds(d time.Duration) string {
	text := strconv.FormatFloat(float64(d.Milliseconds())/1000, 'f', -1, 64)
	whole, _, _ := strings.Cut(text, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
