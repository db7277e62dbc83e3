package monitor

import (
	"context"
	"regexp"
	"strings"
	"sync"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// WindowRule finds tests in the output of a command, line by line, so that each
// test can be checked. docs/formats/config.md describes it.
type WindowRule struct {
	// Begin matches a line at which a test begins. The group "name" captures
	// the name of the test. If there is no such group, the first group captures
	// it; if there are no groups at all, the name is the whole match. End
	// matches a line at which a test ends. That test is the latest open one or,
	// if End has a group "name", the latest open one with that name. The group
	// "outcome" captures the outcome.
	Begin, End *regexp.Regexp
	// Options are the options for the check of each test. The workload sets the
	// name and the device.
	Options CheckOptions
}

// digestWords returns the words that identify the rule in a digest.
func (r *WindowRule) digestWords() []string {
	if r == nil {
		return nil
	}
	return []string{"windows", r.Begin.String(), r.End.String()}
}

// escapeSequences matches the control sequences of a terminal, such as color
// codes (ECMA-48, CSI).
var escapeSequences = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]")

// begins returns the name of the test that begins at a line.
func (r *WindowRule) begins(line string) (name string, ok bool) {
	m := r.Begin.FindStringSubmatch(line)
	if m == nil {
		return "", false
	}
	at := max(r.Begin.SubexpIndex("name"), 0)
	if at == 0 && len(m) > 1 {
		at = 1
	}
	return strings.TrimSpace(m[at]), true
}

// ends returns the outcome and the name of the test that ends at a line. The
// name is "" if the latest open test ends.
func (r *WindowRule) ends(line string) (name, outcome string, ok bool) {
	m := r.End.FindStringSubmatch(line)
	if m == nil {
		return "", "", false
	}
	if i := r.End.SubexpIndex("name"); i > 0 {
		name = strings.TrimSpace(m[i])
	}
	if i := r.End.SubexpIndex("outcome"); i > 0 {
		outcome = outcomeOf(m[i])
	}
	return name, outcome, true
}

// outcomeOf interprets the words that test tools print for outcomes.
func outcomeOf(word string) string {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "":
		return ""
	case "passed", "pass", "ok", "success", "succeeded", "completed", "done":
		return record.OutcomePassed
	case "skipped", "skip", "ignored":
		return record.OutcomeIgnored
	}
	return record.OutcomeFailed
}

// foundTests tracks the tests found in one output, and the devices on which
// they run.
type foundTests struct {
	mu     sync.Mutex
	rule   *WindowRule
	queues []*checkQueue
	open   []*foundTest
	// started is the number of tests that have begun; ended is the number of
	// those whose end was found.
	started, ended int
	// justEnded lists the tests that have ended since the latest one began.
	justEnded []*foundTest
}

// foundTest is a test and its check on each device.
type foundTest struct {
	name string
	on   []*checkedTest
}

// watch returns a tracker for the tests in an output, or nil if there is no
// rule.
func (r *WindowRule) watch(ctx context.Context, st Env, serials ...string) *foundTests {
	if r == nil || st.Live == nil {
		return nil
	}
	f := &foundTests{rule: r}
	for _, s := range serials {
		f.queues = append(f.queues, startChecks(ctx, st, s, r.Options))
	}
	return f
}

// addLine handles a line of the output.
func (f *foundTests) addLine(line string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	line = escapeSequences.ReplaceAllString(line, "")
	if name, outcome, ok := f.rule.ends(line); ok {
		f.end(name, outcome)
	}
	if name, ok := f.rule.begins(line); ok {
		f.begin(name)
	}
}

// maxOpenTests bounds the open tests of one output.
const maxOpenTests = 100

func (f *foundTests) begin(name string) {
	f.started++
	f.endDelays()
	if len(f.open) == maxOpenTests {
		f.close(f.open[0], record.OutcomeUnfinished)
		f.open = f.open[1:]
	}
	t := &foundTest{name: name}
	for _, q := range f.queues {
		on := q.open(text.Head(name, maxMark))
		t.on = append(t.on, on)
		if on.check != nil {
			q.work <- func() { q.recordFailure(on.check.Recount(q.ctx)) }
		}
	}
	f.open = append(f.open, t)
}

// endDelays records the end of the delay after the tests that have ended.
func (f *foundTests) endDelays() {
	for _, t := range f.justEnded {
		for _, on := range t.on {
			on.endDelay()
		}
	}
	f.justEnded = nil
}

func (f *foundTests) end(name, outcome string) {
	for i := len(f.open) - 1; i >= 0; i-- {
		if t := f.open[i]; name == "" || t.name == name {
			f.open = append(f.open[:i], f.open[i+1:]...)
			f.ended++
			f.close(t, outcome)
			return
		}
	}
}

func (f *foundTests) close(t *foundTest, outcome string) {
	f.justEnded = append(f.justEnded, t)
	for i, q := range f.queues {
		if on := t.on[i]; on.check != nil {
			q.work <- func() { q.readAndClose(on, outcome) }
		}
	}
}

// readAndClose reads the processes after a test and closes the check of the
// test.
func (q *checkQueue) readAndClose(t *checkedTest, outcome string) {
	if err := t.check.Collect(q.ctx); err != nil {
		t.check.unread = "not checked: " + text.Head(err.Error(), maxReason)
	} else if over := t.delayEndedAt(); !over.IsZero() {
		q.checkTiming(t.check, over, ": let the suite wait longer after a test", func(*record.CheckedProcess) {})
	}
	q.close(t, outcome, "")
}

// finish closes open tests and waits until all tests are checked. For tests
// that end together with the output, the processes are read while the app may
// still be running.
func (f *foundTests) finish() {
	if f == nil {
		return
	}
	for _, t := range f.open {
		f.close(t, record.OutcomeUnfinished)
	}
	f.open = nil
	for _, q := range f.queues {
		if why := f.missing(); why != "" && q.ctx.Err() == nil {
			q.note(q.serial, record.Event{Event: "missing", Text: why})
		}
		q.finish()
	}
}

// missing describes a rule that has found no tests, or returns "" if it has
// found some. A run in which no test was checked must not look like a run
// without leaks.
func (f *foundTests) missing() string {
	switch {
	case f.started == 0:
		return "no test was checked: no line of the output matches workload.windows.begin, " +
			text.Quote(f.rule.Begin.String(), maxMark)
	case f.ended == 0:
		return "no test has an end: no line of the output matches workload.windows.end, " +
			text.Quote(f.rule.End.String(), maxMark)
	}
	return ""
}
