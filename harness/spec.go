package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/hub"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// spec is the state of the spec that runs in this process.
type spec struct {
	name string
	turn hub.Lent

	mu      sync.Mutex
	entered map[*int]bool
	check   checkSettings
	// number is the number of the open check, or 0 if there is none. wanted is
	// set if the spec should be checked.
	number  int
	wanted  bool
	strict  bool
	skipped string
	known   []monitor.Exception
	// problem is the reason why the spec is not checked or only partly checked.
	problem error
	// bodyNext is set if the setup of the current attempt is complete.
	bodyNext bool
	// collected is the number of attempts of the spec for which the processes
	// have been read.
	collected int
	// tests are the checks of the instrumented tests that ran within the spec.
	tests []record.Check
	// background lists the stress that must be stopped after the body of the
	// spec.
	background []*Background
	serial     *string
	serialSet  bool
}

// enter reports whether a decorator runs for the first time in this spec.
func (s *spec) enter(decorator *int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entered[decorator] {
		return false
	}
	s.entered[decorator] = true
	return true
}

func (s *spec) accept(e monitor.Exception) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = append(s.known, e)
}

// valid returns the exceptions of the spec that have not expired.
func (s *spec) valid() []monitor.Exception {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.known), func(e monitor.Exception) bool { return e.Expired(time.Now()) })
}

func (l *Leaks) current() *spec {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spec
}

// beforeSpec waits until a device is free for the spec. It runs before all
// nodes of the spec and outside of their timeouts.
func (l *Leaks) beforeSpec(ctx ginkgo.SpecContext, report ginkgo.SpecReport) {
	suite, _ := ginkgo.GinkgoConfiguration()
	if suite.DryRun || report.State.Is(types.SpecStatePending|types.SpecStateSkipped) {
		return
	}
	h, err := l.watcher()
	if err != nil {
		ginkgo.Fail("leakgate: " + err.Error())
	}
	s := &spec{name: report.FullText(), entered: map[*int]bool{}}
	expected := l.expectedCheck(report)
	if expected != nil {
		// Start the run before taking a turn: until the run has started, the
		// devices are unknown and the turn has no serial. If starting fails,
		// the decorator reports the error.
		_ = h.Start(ctx, false)
	}
	began := time.Now()
	holder := ""
	s.turn, err = h.Turn(ctx, fmt.Sprintf("%q (process %d)", s.name, report.ParallelProcess), func(h string) {
		holder = h
		l.setWaiting(h)
	})
	l.setWaiting("")
	if err != nil {
		if ctx.Err() == nil {
			ginkgo.Fail("leakgate: wait for a device: " + err.Error())
		}
		return
	}
	if waited := time.Since(began); waited > time.Second {
		ginkgo.AddReportEntry("leakgate",
			fmt.Sprintf("waited %v for the device, which %s was using", waited.Round(time.Second), orAnother(holder)),
			types.ReportEntryVisibilityFailureOrVerbose)
	}
	s.setSerial()
	l.mu.Lock()
	l.spec = s
	l.mu.Unlock()
	if expected != nil {
		l.prepare(ctx, s, expected)
	}
	if l.settings.every != nil {
		l.checkSpec(ctx, s, l.settings.every)
	}
}

// prepare starts the check of a spec that will probably have a decorator for a
// check. If that fails, the same error occurs again when the decorator runs,
// and is reported then.
func (l *Leaks) prepare(ctx context.Context, s *spec, c *checkSettings) {
	h, err := l.watcher()
	if err != nil || h.Start(ctx, false) != nil {
		return
	}
	opened, err := h.Open(ctx,
		hub.OpenRequest{
			Name: s.name, Location: withoutHost(c.location), Device: s.turn.Serial(), Patterns: patternsOf(c.patterns),
		})
	if err == nil {
		s.number, s.strict = opened.Check, opened.Strict
	}
}

func orAnother(holder string) string {
	if holder == "" {
		return "another spec"
	}
	return holder
}

func (l *Leaks) setWaiting(holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.devices = holder
}

const serialVariable = "ANDROID_SERIAL"

// setSerial sets the device for the programs that the spec starts, such as adb.
func (s *spec) setSerial() {
	serial := s.turn.Serial()
	s.mu.Lock()
	defer s.mu.Unlock()
	if serial == "" || s.serialSet {
		return
	}
	s.serialSet = true
	if before, ok := os.LookupEnv(serialVariable); ok {
		s.serial = &before
	}
	_ = os.Setenv(serialVariable, serial)
}

func (s *spec) resetSerial() {
	switch {
	case !s.serialSet:
	case s.serial != nil:
		_ = os.Setenv(serialVariable, *s.serial)
	default:
		_ = os.Unsetenv(serialVariable)
	}
}

// checkSpec starts the check of a spec. The first check starts the watch.
// Decorators of inner nodes add options to those of outer ones.
func (l *Leaks) checkSpec(ctx context.Context, s *spec, add *checkSettings) {
	s.mu.Lock()
	c := &s.check
	c.heap, c.trend, c.live = c.heap || add.heap, c.trend || add.trend, c.live || add.live
	if add.location != "" {
		c.location = add.location
	}
	if len(add.patterns) > 0 {
		c.patterns = add.patterns
	}
	open := s.number != 0 || s.wanted
	s.wanted = true
	patterns, location := patternsOf(c.patterns), c.location
	s.mu.Unlock()
	if open {
		return
	}
	h, err := l.watcher()
	if err == nil {
		err = h.Start(ctx, false)
	}
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		s.note(err)
		ginkgo.Fail("leakgate: " + err.Error() + "\nchecked at " + location)
	}
	s.setSerial() // the device of a run that has just started
	opened, err := h.Open(ctx,
		hub.OpenRequest{Name: s.name, Location: withoutHost(location), Device: s.turn.Serial(), Patterns: patterns})
	s.mu.Lock()
	s.number, s.strict, s.problem = opened.Check, opened.Strict, err
	bodyNext := s.bodyNext
	s.mu.Unlock()
	if err == nil && bodyNext {
		l.recount(ctx, s)
	}
}

// beforeBody counts objects right before the body, so objects created by a
// BeforeEach are included.
func (l *Leaks) beforeBody(ctx ginkgo.SpecContext) {
	s := l.current()
	if s == nil {
		return
	}
	s.bodyNext = true
	if s.number != 0 {
		l.recount(ctx, s)
	}
}

func (l *Leaks) recount(ctx context.Context, s *spec) {
	h, err := l.watcher()
	if err == nil {
		err = h.Recount(ctx, s.number)
	}
	s.note(err)
}

// stopBackground ends the background stress of the spec.
func (s *spec) stopBackground() {
	s.mu.Lock()
	list := s.background
	s.background = nil
	s.mu.Unlock()
	for _, b := range list {
		b.stop()
	}
}

func (s *spec) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem = errors.Join(s.problem, err)
}

// afterBody reads the processes after the body, before any teardown.
func (l *Leaks) afterBody(ctx ginkgo.SpecContext) {
	s := l.current()
	if s == nil {
		return
	}
	s.stopBackground() // the app must settle
	s.bodyNext = false // for the next attempt
	if s.number == 0 || !s.wanted {
		return
	}
	h, err := l.watcher()
	if err != nil {
		s.note(err)
		return
	}
	r := hub.CollectRequest{
		Check: s.number, Location: withoutHost(s.check.location), Patterns: patternsOf(s.check.patterns),
		Heap: s.check.heap, Trend: s.check.trend, Live: s.check.live,
	}
	if s.collected == 0 { // the check keeps the exceptions for later attempts
		r.Known = s.valid()
	}
	s.collected++
	if err := h.Collect(ctx, r); err != nil {
		s.note(err)
	}
}

// afterSpec judges the spec once all its attempts are over; a retry therefore
// cannot hide a leak.
func (l *Leaks) afterSpec(ctx ginkgo.SpecContext, report ginkgo.SpecReport) {
	l.mu.Lock()
	s := l.spec
	l.spec = nil
	l.mu.Unlock()
	if s == nil {
		return
	}
	defer s.turn.Release()
	defer s.resetSerial()
	s.stopBackground()
	if !s.wanted {
		l.drop(ctx, s)
		l.judge(s, record.Check{}, report)
		return
	}
	l.judge(s, l.closeCheck(ctx, s, report), report)
}

// drop discards a prepared check if the spec turned out not to need one.
func (l *Leaks) drop(ctx context.Context, s *spec) {
	if s.number == 0 {
		return
	}
	if h, err := l.watcher(); err == nil {
		_, _ = h.Close(ctx, hub.CloseRequest{Check: s.number, Drop: true}) // otherwise the check ends with the run
	}
}

// closeCheck closes the check of a spec and returns its result.
func (l *Leaks) closeCheck(ctx context.Context, s *spec, report ginkgo.SpecReport) record.Check {
	outcome, stack := outcomeOf(report)
	return l.closeWith(ctx, s, outcome, stack)
}

func (l *Leaks) closeWith(ctx context.Context, s *spec, outcome, stack string) record.Check {
	unchecked := func(err error) record.Check {
		return record.Check{
			Name: s.name, Type: record.CheckSpec, Location: s.check.location, Outcome: outcome,
			Verdict: record.VerdictNotChecked, Text: "not checked: " + why(err), Processes: []record.CheckedProcess{},
		}
	}
	if s.number == 0 {
		return unchecked(s.problem)
	}
	h, err := l.watcher()
	if err != nil {
		return unchecked(err)
	}
	c, err := h.Close(ctx, hub.CloseRequest{Check: s.number, Outcome: outcome, Stack: stack, Skipped: s.skipped})
	err = errors.Join(s.problem, err)
	switch {
	case err == nil:
	case c.Verdict == "":
		return unchecked(err)
	case c.Verdict == record.VerdictNotChecked:
		c.Text = "not checked: " + why(err)
	case c.Verdict == record.VerdictPass, c.Verdict == record.VerdictKnown:
		c.Verdict, c.Text = record.VerdictInconclusive, "only partly checked: "+why(err)
	}
	return c
}

func why(err error) string {
	if err == nil {
		return "the watch did not start"
	}
	return firstLine(err.Error())
}

// outcomeOf returns the outcome of the spec according to Ginkgo, without regard
// to leaks.
func outcomeOf(r ginkgo.SpecReport) (outcome, stack string) {
	switch {
	case r.State.Is(types.SpecStatePassed):
		return record.OutcomePassed, ""
	case r.State.Is(types.SpecStateSkipped | types.SpecStatePending):
		return record.OutcomeIgnored, ""
	case r.State.Is(types.SpecStateInterrupted | types.SpecStateAborted):
		return record.OutcomeUnfinished, firstLine(r.Failure.Message)
	}
	return record.OutcomeFailed, firstLine(r.Failure.Message)
}
