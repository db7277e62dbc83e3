package monitor

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/harness/instrument"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Instrument is a workload that runs the instrumented tests of an app with `am
// instrument` on every device, and checks what each test leaves behind.
//
// Each test is checked during the delay that follows the test.
// AndroidJUnitRunner reports the end of the test, finishes all activities and
// then sleeps for delay_msec (androidx.test InstrumentationResultPrinter,
// ActivityFinisherRunListener and DelayInjector, in this order). The process
// stays alive during the delay.
type Instrument struct {
	// Component is the runner, such as
	// com.shop.test/androidx.test.runner.AndroidJUnitRunner.
	Component string
	// Arguments are the arguments that `am instrument` receives with -e. They
	// exclude delay_msec, which is set by Delay.
	Arguments map[string]string
	// Delay is the device time to wait after each test. If it is zero, the
	// delay is DefaultDelay plus the time that the host needs.
	Delay time.Duration
	// Options are the options for the check of each test. The workload sets the
	// name and the device.
	Options CheckOptions
}

const (
	// DefaultDelay is the device time needed after a test to count objects, let
	// the app settle (5 s) and start its heap dump. While the dump is written,
	// the process is suspended.
	DefaultDelay = 10 * time.Second
	// hostDelay is the wall-clock time that the host needs within the delay. On
	// a device that runs faster than real time, this is a longer device time.
	hostDelay = 2 * time.Second
	// finishDelay is the device time, after the end of a test is reported,
	// within which its activities are finished. Objects that were counted
	// earlier are counted again.
	finishDelay = 500 * time.Millisecond
)

const (
	delayArgument    = "delay_msec"
	newOrderArgument = "newRunListenerMode"
)

// Describe implements Workload.
func (i Instrument) Describe() record.Workload {
	words := []string{i.Component, i.Delay.String()}
	for _, k := range slices.Sorted(maps.Keys(i.Arguments)) {
		words = append(words, k, i.Arguments[k])
	}
	return record.Workload{Kind: "instrument", Digest: digestOf("instrument", words...)}
}

// Run implements Workload.
func (i Instrument) Run(ctx context.Context, st Env) (record.Workload, error) {
	exit, err := st.onEach(ctx, i.runOn)
	rec := i.Describe()
	rec.Exit = exit
	return rec, err
}

// delayOn returns the delay on a device with the given time scale.
func (i Instrument) delayOn(scale float64) time.Duration {
	if i.Delay > 0 {
		return i.Delay
	}
	return DefaultDelay + time.Duration(max(0, scale-1)*float64(hostDelay)).Round(time.Millisecond)
}

// command returns the command line for the device.
func (i Instrument) command(delay time.Duration) string {
	words := []string{"exec am instrument -w -r -e", delayArgument, strconv.FormatInt(delay.Milliseconds(), 10)}
	for _, k := range slices.Sorted(maps.Keys(i.Arguments)) {
		if k != delayArgument {
			words = append(words, "-e", text.ShellQuote(k), text.ShellQuote(i.Arguments[k]))
		}
	}
	return strings.Join(append(words, text.ShellQuote(i.Component)), " ")
}

// warnings lists the parts of the checks that do not work with the given
// arguments.
func (i Instrument) warnings() []string {
	var out []string
	if strings.EqualFold(i.Arguments[newOrderArgument], "true") {
		// With this argument, the runner waits before it reports the end of the
		// test (AndroidJUnitRunner.addListenersNewOrder).
		out = append(out, "with "+newOrderArgument+
			" the runner waits before it reports the end of a test, and leaves no time to check it: remove that "+
			"argument")
	}
	if orchestrated(i.Component) {
		out = append(out, orchestratedText)
	}
	return out
}

// orchestrated reports whether a component is the Android Test Orchestrator.
func orchestrated(component string) bool {
	pkg, _, _ := strings.Cut(component, "/")
	return strings.HasSuffix(pkg, ".test.orchestrator")
}

const orchestratedText = "each test runs in its own process: leaked objects do not outlive a test, so accumulation " +
	"across tests is not detected"

func (i Instrument) runOn(ctx context.Context, dev capture.Device, st Env) (*int, error) {
	for _, w := range i.warnings() {
		st.Record(dev.Serial(), record.Event{Event: "workload", Text: w})
	}
	c := &testChecks{
		checkQueue: startChecks(ctx, st, dev.Serial(), i.Options), orchestratorRecorded: orchestrated(i.Component),
	}
	scale := c.begin()
	stream := instrument.NewStream(instrument.Events{Begin: c.testBegan, End: c.testEnded})
	exit, err := dev.Shell(ctx, i.command(i.delayOn(scale)), io.MultiWriter(st.Output, stream),
		io.MultiWriter(st.Output, stream.Stderr()))
	c.endDelay()
	sum := stream.Close()
	c.finish()
	if ctx.Err() != nil {
		return nil, nil
	}
	if err != nil {
		st.Record(dev.Serial(),
			record.Event{
				Event: "dropped",
				Text:  fmt.Sprintf("device dropped the connection to the tests; they are not restarted: %v", err),
			})
		waitForDevice(ctx, dev)
		return nil, fmt.Errorf("run tests on %s: %w: %w", dev.Serial(), errDropped, err)
	}
	if why := testsFailed(sum, c.failed); why != "" {
		return &exit, fmt.Errorf("run tests on %s: %s%s", dev.Serial(), why, st.logHint())
	}
	return st.resultOf(dev, exit, nil)
}

// maxFailedShown bounds the number of failed tests that an error names.
const maxFailedShown = 5

// testsFailed describes the failures of a test run, or returns "" if there are
// none.
func testsFailed(sum instrument.Totals, failed []string) string {
	var why []string
	switch total := sum.Seen + sum.Missing(); {
	case sum.Problem != "":
		why = append(why, text.Head(sum.Problem, maxReason))
	case sum.Crash != "":
		why = append(why,
			fmt.Sprintf("the process ended after %d of %d tests: %s", sum.Seen, total, text.Head(sum.Crash, maxReason)))
	case sum.Code == nil:
		why = append(why, fmt.Sprintf("the output ended after %d of %d tests", sum.Seen, total))
	case sum.Seen == 0:
		why = append(why, "no test ran: no class or method matches the arguments")
	case sum.Missing() > 0:
		why = append(why, fmt.Sprintf("only %d of %d announced tests ran", sum.Seen, total))
	}
	if n := sum.Ended[instrument.Failed] + sum.Ended[instrument.Crashed] + sum.Ended[instrument.Unfinished]; n > 0 {
		names := strings.Join(failed[:min(len(failed), maxFailedShown)], ", ")
		if n > maxFailedShown {
			names += fmt.Sprintf(" and %d more", n-maxFailedShown)
		}
		why = append(why, fmt.Sprintf("%d of %s failed: %s", n, text.Count(sum.Seen, "test", "tests"), names))
	}
	return strings.Join(why, "; ")
}

// testChecks checks the tests of one device while their output arrives.
type testChecks struct {
	*checkQueue
	orchestratorRecorded bool // the warning about the orchestrator

	// first holds the lives that were present before the tests. delayCounts
	// holds the object counts from the latest delay that was not affected by
	// another test.
	first       map[life]bool
	delayCounts map[life]map[string]int64
	latest      map[life]bool // the lives that were running at the end of the latest test

	current *checkedTest
	failed  []string
}

// begin prepares the checks and returns the device's time scale.
func (c *testChecks) begin() (scale float64) {
	c.first, c.delayCounts, c.latest = map[life]bool{}, map[life]map[string]int64{},
		map[life]bool{}
	if c.session == nil {
		return 1
	}
	s := c.session
	// After an error, running processes are treated as if the tests had started
	// them.
	_ = c.live.discover(c.ctx, []*session{s})
	_ = s.ask(func() {
		for _, x := range s.subjects.order {
			if x.present {
				c.first[lifeOf(s.row(x, s.clock.now()))] = true
			}
		}
	})
	return s.clock.scale
}

// endDelay records the end of the delay after the latest test.
func (c *testChecks) endDelay() {
	if c.current != nil {
		c.current.endDelay()
	}
}

// testBegan starts the check of a test. The check of the previous test may not
// have been read yet.
func (c *testChecks) testBegan(t instrument.Test) {
	c.endDelay()
	began := c.open(t.Name())
	c.current = began
	if began.check != nil {
		c.work <- func() { c.findProcesses(began) }
	}
}

// findProcesses finds the processes of a test that has begun.
func (c *testChecks) findProcesses(t *checkedTest) {
	if _, err := t.check.findProcesses(c.ctx); err != nil {
		c.recordFailure(err)
	}
	if !c.orchestratorRecorded && restarted(c.latest, t.check.objects.running) {
		c.orchestratorRecorded = true
		c.note(c.serial, record.Event{Event: "workload", Text: orchestratedText})
	}
}

// restarted reports whether a process that was running at the end of one test
// has a new life at the beginning of the next.
func restarted(before, now map[life]bool) bool {
	for of := range before {
		if now[of] {
			continue
		}
		for other := range now {
			if other.name == of.name && other.user == of.user && !before[other] {
				return true
			}
		}
	}
	return false
}

// testEnded queues the check of a test during the delay after it.
func (c *testChecks) testEnded(test instrument.Test, outcome instrument.Outcome, stack string) {
	t := c.current
	switch outcome {
	case instrument.Failed, instrument.Crashed, instrument.Unfinished:
		if len(c.failed) < maxFailedShown {
			c.failed = append(c.failed, text.Head(test.Name(), maxMarkShown))
		}
	}
	if t.check == nil {
		return
	}
	ended := time.Now()
	c.work <- func() { c.check(t, outcome, stack, ended) }
}

func (c *testChecks) check(t *checkedTest, outcome instrument.Outcome, stack string, ended time.Time) {
	switch outcome {
	case instrument.Passed, instrument.Failed, instrument.AssumptionFailed:
		c.collect(t, ended)
	case instrument.Ignored:
		t.check.unread = "not checked: the test is ignored"
	default:
		t.check.unread = "not checked: the process did not outlive the test"
		_, _ = t.check.findProcesses(c.ctx) // the call records the end of the test
	}
	c.close(t, string(outcome), stack)
}

// collect reads the processes after a test, shortly after its activities have
// been finished.
func (c *testChecks) collect(t *checkedTest, ended time.Time) {
	if sleep(c.ctx, time.Until(ended.Add(c.session.clock.real(finishDelay)))) != nil {
		return
	}
	check := t.check
	for of := range check.objects.running {
		check.objects.before[of] = c.before(of)
	}
	err := check.Collect(c.ctx)
	c.latest = maps.Clone(check.objects.running)
	if err != nil {
		check.unread = "not checked: " + text.Head(err.Error(), maxReason)
		return
	}
	over := t.delayEndedAt()
	if over.IsZero() {
		c.delayCounts = maps.Clone(check.objects.before)
		return
	}
	c.checkTiming(check, over, raiseDelay, func(p *record.CheckedProcess) { c.keepCounts(check, p) })
}

const raiseDelay = ": increase it (" + delayArgument + ")"

// before returns the object counts of a process before a test, taken during the
// preceding delay. If a process started during the test run, it had no screen
// at first.
func (c *testChecks) before(of life) map[string]int64 {
	if counts := c.delayCounts[of]; counts != nil {
		return counts
	}
	if c.first[of] {
		return nil
	}
	return map[string]int64{"Activities": 0, "ViewRootImpl": 0}
}

// keepCounts keeps the counts of one process for the next test.
func (c *testChecks) keepCounts(check *OpenCheck, p *record.CheckedProcess) {
	for of, counts := range check.objects.before {
		if of.user == p.User && of.name == p.Process && of.pid == p.PID {
			c.delayCounts[of] = counts
		}
	}
}
