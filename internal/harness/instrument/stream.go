package instrument

import (
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// The maximum sizes of kept values, in bytes.
const (
	// MaxStack is the maximum size of the reason why a test did not pass.
	MaxStack = 16 << 10
	// MaxName is the maximum size of the name of a class or a method.
	MaxName = 1000
	// maxValue is the maximum size of any other value.
	maxValue = 4096
	maxLine  = 64 << 10
)

// The prefixes of lines (Instrument.java, TextStatusReporter).
const (
	statusPrefix     = "INSTRUMENTATION_STATUS: "
	statusCodePrefix = "INSTRUMENTATION_STATUS_CODE: "
	resultPrefix     = "INSTRUMENTATION_RESULT: "
	codePrefix       = "INSTRUMENTATION_CODE: "
	failedPrefix     = "INSTRUMENTATION_FAILED: "
	abortedPrefix    = "INSTRUMENTATION_ABORTED: "
	onErrorPrefix    = "onError: commandError="
)

// The codes of a status (InstrumentationResultPrinter, REPORT_VALUE_RESULT_*).
const (
	codeStart             = 1
	codeOK                = 0
	codeError             = -1
	codeFailure           = -2
	codeIgnored           = -3
	codeAssumptionFailure = -4
)

// Stream is an [io.Writer] for the output of `am instrument -w -r`, in pieces
// of any size. It reports each event of a test as soon as the line for the
// event arrives.
type Stream struct {
	on    Events
	lines lines
	// status and result are the values of the bundle that is being printed.
	status, result map[string]*value
	// open is the value that the next line may continue, or nil if there is
	// none.
	open *value

	running *Test
	totals  Totals

	mu sync.Mutex
	// complaint is the first line that is not in the format and looks like an
	// error.
	complaint string
}

// NewStream returns a stream that calls the given Events.
func NewStream(on Events) *Stream {
	r := &Stream{on: on, status: map[string]*value{}, result: map[string]*value{}}
	r.totals.Ended = map[Outcome]int{}
	r.lines.take = r.line
	return r
}

// Write parses a part of the standard output. It never fails.
func (r *Stream) Write(p []byte) (int, error) { return r.lines.Write(p) }

// Stderr returns a writer for the error output of the command, if the shell
// separates it. It may be used concurrently with Write.
func (r *Stream) Stderr() io.Writer { return &lines{take: r.complain} }

// Close processes the end of the output and returns the totals. A test that is
// still running is reported as crashed or unfinished.
func (r *Stream) Close() Totals {
	r.lines.end()
	r.flush()
	r.finish(Unfinished, "the output of the instrumentation ended")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.totals.Problem == "" && r.totals.Seen == 0 && r.totals.Code == nil {
		r.totals.Problem = r.complaint
	}
	return r.totals
}

// lines splits a stream into lines of at most maxLine bytes.
type lines struct {
	take func(line string)
	line []byte
}

func (l *lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, more, ended := bytes.Cut(rest, []byte("\n"))
		if keep := min(len(part), maxLine-len(l.line)); keep > 0 {
			l.line = append(l.line, part[:keep]...)
		}
		if rest = more; ended {
			l.take(l.whole())
		}
	}
	return len(p), nil
}

// end processes a final line that has no newline.
func (l *lines) end() {
	if len(l.line) > 0 {
		l.take(l.whole())
	}
}

// whole returns the line without its newline. Older shells end lines with CR
// LF.
func (l *lines) whole() string {
	text := strings.TrimRight(string(l.line), "\r")
	l.line = l.line[:0]
	return text
}

// line parses one line.
func (r *Stream) line(line string) {
	switch {
	case r.within(line, statusPrefix, func(rest string) { r.begin(r.status, rest) }):
	case r.within(line, statusCodePrefix, r.endStatus):
	case r.within(line, resultPrefix, func(rest string) { r.begin(r.result, rest) }):
	case r.within(line, codePrefix, r.endRun):
	case r.within(line, failedPrefix, func(string) { r.problem(line) }):
	case r.within(line, abortedPrefix, func(string) { r.abort(line) }):
	case r.within(line, onErrorPrefix, r.onError):
	case r.open != nil && r.open.continues():
		r.open.add("\n" + line)
	default:
		r.complain(line)
	}
}

// within parses the rest of a line after its prefix. The line ends the value of
// the previous lines.
func (r *Stream) within(line, prefix string, take func(rest string)) bool {
	rest, ok := strings.CutPrefix(line, prefix)
	if ok {
		r.flush()
		take(rest)
	}
	return ok
}

func (r *Stream) flush() { r.open = nil }

// begin parses the first line of a "key=value" pair in a bundle.
func (r *Stream) begin(bundle map[string]*value, text string) {
	key, first, ok := strings.Cut(text, "=")
	most, known := bounds[key]
	if !ok || !known {
		return
	}
	v := &value{key: key, most: most}
	v.add(first)
	bundle[key], r.open = v, v
}

// bounds maps the keys that are kept to the maximum size of their values, in
// bytes.
var bounds = map[string]int{
	"class": MaxName, "test": MaxName, "numtests": maxValue, "current": maxValue,
	"stack": MaxStack, "stream": maxValue, "Error": maxValue, "shortMsg": maxValue, "longMsg": maxValue,
}

// value is one value of a bundle, which may have several lines.
type value struct {
	key  string
	most int
	text []byte
	cut  bool
}

func (v *value) add(text string) {
	keep := min(len(text), v.most-len(v.text))
	v.text = append(v.text, text[:keep]...)
	v.cut = v.cut || keep < len(text)
}

// continues reports whether a line without a prefix belongs to the value. Other
// output may occur between the lines of a bundle. Therefore a value that always
// has one line is never continued, and a name is continued only within the
// brackets that JUnit puts around a parameter
// (org.junit.runners.Parameterized).
func (v *value) continues() bool {
	switch v.key {
	case "class", "numtests", "current":
		return false
	case "test":
		return bytes.ContainsRune(v.text, '[') && (v.cut || !bytes.HasSuffix(v.text, []byte("]")))
	}
	return true
}

// text returns a value of the bundle as UTF-8, or "" if there is no such value.
func text(bundle map[string]*value, key string) string {
	v := bundle[key]
	if v == nil {
		return ""
	}
	return strings.ToValidUTF8(string(v.text), "\ufffd")
}

// number returns a value as a positive integer, or 0 if it is not one.
func number(bundle map[string]*value, key string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text(bundle, key)))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// endStatus processes a complete status bundle.
func (r *Stream) endStatus(code string) {
	b := r.status
	r.status = map[string]*value{}
	n, err := strconv.Atoi(strings.TrimSpace(code))
	if why := text(b, "Error"); why != "" {
		// ActivityManagerService.reportStartInstrumentationFailureLocked
		r.problem(why)
	}
	if err != nil {
		return
	}
	if total := number(b, "numtests"); total > 0 && (r.totals.Announced == nil || *r.totals.Announced < total) {
		r.totals.Announced = &total
	}
	class := strings.TrimSpace(text(b, "class"))
	if class == "" || b["test"] == nil {
		r.withoutTest(n, b)
		return
	}
	t := Test{
		Class: class, Method: strings.TrimSpace(text(b, "test")), Number: number(b, "current"),
		Total: number(b, "numtests"),
	}
	if t.Method == "null" {
		t.Method = ""
	}
	r.statusOf(t, n, b)
}

// withoutTest processes a status that names no test. Such a status contains
// metrics that a test reports, or the report of a process that crashed before
// its first test (InstrumentationResultPrinter.reportProcessCrash).
func (r *Stream) withoutTest(code int, b map[string]*value) {
	if code == codeFailure && r.running == nil && b["stack"] != nil {
		r.problem(firstLine(text(b, "stack")))
	}
}

func (r *Stream) statusOf(t Test, code int, b map[string]*value) {
	outcome := Passed
	switch code {
	case codeStart:
		r.start(t)
		return
	case codeOK:
	case codeError, codeFailure:
		outcome = Failed
		if crashed(b) {
			outcome = Crashed
		}
	case codeIgnored:
		outcome = Ignored
	case codeAssumptionFailure:
		outcome = AssumptionFailed
	default:
		return // of a test that is still running
	}
	if r.running == nil || !sameTest(*r.running, t) {
		r.start(t)
	}
	r.finish(outcome, text(b, "stack"))
}

func sameTest(a, b Test) bool { return a.Class == b.Class && a.Method == b.Method }

// crashed reports whether a failure message means that the process ended. It
// recognizes the messages of InstrumentationResultPrinter.reportProcessCrash
// and of Android Test Orchestrator
// (OrchestrationListenerManager.testProcessFinished).
func crashed(b map[string]*value) bool {
	return strings.HasPrefix(strings.TrimSpace(text(b, "stream")), "Process crashed while executing ") ||
		strings.HasPrefix(text(b, "stack"), "Test instrumentation process crashed.")
}

func (r *Stream) start(t Test) {
	r.finish(Unfinished, "the next test began before the end of this test was reported")
	r.running = &t
	r.totals.Seen++
	r.on.Begin(t)
}

// finish reports the end of the running test, if there is one.
func (r *Stream) finish(outcome Outcome, stack string) {
	if r.running == nil {
		return
	}
	t := *r.running
	r.running = nil
	r.totals.Ended[outcome]++
	if outcome == Passed {
		stack = ""
	}
	r.on.End(t, outcome, stack)
}

// endRun processes the bundle at the end of the run.
func (r *Stream) endRun(code string) {
	b := r.result
	r.result = map[string]*value{}
	if n, err := strconv.Atoi(strings.TrimSpace(code)); err == nil {
		r.totals.Code = &n
	}
	r.readTime(text(b, "stream"))
	why := text(b, "shortMsg")
	if long := text(b, "longMsg"); long != "" {
		why = long
	}
	if why != "" && r.totals.Crash == "" {
		r.totals.Crash = firstLine(why)
	}
	if fatal := strings.TrimSpace(text(b, "stream")); strings.HasPrefix(fatal, fatalException) {
		// AndroidJUnitRunner.onStart
		r.problem(fatal)
	}
	if why == "" {
		why = "the instrumentation finished before the end of the test was reported"
	}
	r.finish(Crashed, why)
}

const fatalException = "Fatal exception when running tests"

// timePattern matches a time as org.junit.internal.TextListener prints it in
// English. In other languages the number format is ambiguous.
var timePattern = regexp.MustCompile(`(?m)^Time: ([0-9]{1,3}(?:,[0-9]{3})*(?:\.[0-9]{1,3})?)$`)

func (r *Stream) readTime(stream string) {
	m := timePattern.FindStringSubmatch(stream)
	if m == nil {
		return
	}
	if s, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64); err == nil {
		r.totals.Seconds = &s
	}
}

func (r *Stream) abort(line string) {
	r.problem(line)
	r.finish(Unfinished, head(line, maxValue))
}

// onError parses "true message=..." of TextStatusReporter.onError.
func (r *Stream) onError(rest string) {
	if _, message, ok := strings.Cut(rest, " message="); ok {
		r.problem(message)
	}
}

// problem keeps the first reason why tests could not run.
func (r *Stream) problem(why string) {
	if r.totals.Problem == "" {
		r.totals.Problem = head(why, maxValue)
	}
}

// complaintPattern matches lines that explain why no test runs: lines of
// com.android.internal.os.BaseCommand (`am`), of a Java exception, and of the
// shell.
var complaintPattern = regexp.MustCompile(
	`^(Error: |Error type |usage: am|[a-z][a-z0-9_]*(\.[a-z][A-Za-z0-9_]*)+\.[A-Z]\w*(Exception|Error)\b|.*: (not found|inaccessible or not found)$|Can't connect to activity manager)`)

// complain keeps the first line that is not in the format and looks like an
// error.
func (r *Stream) complain(line string) {
	if !complaintPattern.MatchString(line) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.complaint == "" {
		r.complaint = head(line, maxValue)
	}
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(first)
}

// head returns the beginning of a string as UTF-8, at most n bytes.
func head(s string, n int) string {
	return strings.ToValidUTF8(s[:min(len(s), n)], "\ufffd")
}
