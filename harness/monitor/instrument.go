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

// Instrument is a workload that runs the instrumented tests of an app by `am instrument`, on
// every device, and checks what each test leaves behind.
//
// A test is checked in the room after it: AndroidJUnitRunner reports its end, finishes all
// activities and then sleeps for delay_msec (androidx.test InstrumentationResultPrinter,
// ActivityFinisherRunListener and DelayInjector, in this order), while the process lives.
type Instrument struct {
	// Component is the runner, such as com.shop.test/androidx.test.runner.AndroidJUnitRunner.
	Component string
	// Arguments are the values of -e. That of delay_msec is Room.
	Arguments map[string]string
	// Room is the time of the device after each test; DefaultRoom and what the host needs if
	// zero.
	Room time.Duration
	// Options are those of the check of each test; its name and device are set.
	Options CheckOptions
}

const (
	// DefaultRoom is the time after a test in which objects are counted, the app settles (5 s)
	// and its heap dump begins. While that is written, the process stands still.
	DefaultRoom = 10 * time.Second
	// hostShare is the real time of the room that the host needs. On a device whose time runs
	// faster it is more of it.
	hostShare = 2 * time.Second
	// finishing is the time of the device in which activities are finished after the end of a
	// test is reported. A count that comes too early is repeated.
	finishing = 500 * time.Millisecond
)

const (
	delayArgument    = "delay_msec"
	newOrderArgument = "newRunListenerMode"
)

// Describe implements Workload.
func (i Instrument) Describe() record.Workload {
	words := []string{i.Component, i.Room.String()}
	for _, k := range slices.Sorted(maps.Keys(i.Arguments)) {
		words = append(words, k, i.Arguments[k])
	}
	return record.Workload{Kind: "instrument", Digest: digestOf("instrument", words...)}
}

// Run implements Workload.
func (i Instrument) Run(ctx context.Context, st Stage) (record.Workload, error) {
	exit, err := st.onEach(ctx, i.runOn)
	rec := i.Describe()
	rec.Exit = exit
	return rec, err
}

// roomOn is the room on a device whose time runs at a scale.
func (i Instrument) roomOn(scale float64) time.Duration {
	if i.Room > 0 {
		return i.Room
	}
	return DefaultRoom + time.Duration(max(0, scale-1)*float64(hostShare)).Round(time.Millisecond)
}

// command is the line for the shell of the device.
func (i Instrument) command(room time.Duration) string {
	words := []string{"exec am instrument -w -r -e", delayArgument, strconv.FormatInt(room.Milliseconds(), 10)}
	for _, k := range slices.Sorted(maps.Keys(i.Arguments)) {
		if k != delayArgument {
			words = append(words, "-e", text.ShellQuote(k), text.ShellQuote(i.Arguments[k]))
		}
	}
	return strings.Join(append(words, text.ShellQuote(i.Component)), " ")
}

// warnings say what of the checks a way of running tests takes away.
func (i Instrument) warnings() []string {
	var out []string
	if strings.EqualFold(i.Arguments[newOrderArgument], "true") {
		// AndroidJUnitRunner.addListenersNewOrder: the delay comes before the end is reported.
		out = append(out, "with "+newOrderArgument+" the runner waits before it reports the end of a test, and leaves no room to check it: remove that argument")
	}
	if orchestrated(i.Component) {
		out = append(out, orchestratedText)
	}
	return out
}

// orchestrated reports whether a component is Android Test Orchestrator.
func orchestrated(component string) bool {
	pkg, _, _ := strings.Cut(component, "/")
	return strings.HasSuffix(pkg, ".test.orchestrator")
}

const orchestratedText = "each test runs in a process of its own: what a test leaks ends with it, and what adds up from test to test is not seen"

func (i Instrument) runOn(ctx context.Context, dev capture.Device, st Stage) (*int, error) {
	for _, w := range i.warnings() {
		st.Note(dev.Serial(), record.Event{Event: "workload", Text: w})
	}
	c := &testChecks{checkQueue: startChecks(ctx, st, dev.Serial(), i.Options), told: orchestrated(i.Component)}
	scale := c.begin()
	stream := instrument.NewStream(instrument.Events{Begin: c.testBegan, End: c.testEnded})
	exit, err := dev.Shell(ctx, i.command(i.roomOn(scale)), io.MultiWriter(st.Output, stream), io.MultiWriter(st.Output, stream.Stderr()))
	c.leave()
	sum := stream.Close()
	c.finish()
	if ctx.Err() != nil {
		return nil, nil
	}
	if err != nil {
		st.Note(dev.Serial(), record.Event{Event: "dropped", Text: fmt.Sprintf("the device has dropped the tests, which are not begun again: %v", err)})
		returned(ctx, dev)
		return nil, fmt.Errorf("run tests on %s: %w: %w", dev.Serial(), errDropped, err)
	}
	if why := testsFailed(sum, c.failed); why != "" {
		return &exit, fmt.Errorf("run tests on %s: %s%s", dev.Serial(), why, st.seeLog())
	}
	return st.ended(dev, exit, nil)
}

// shownFailed bounds the names of failed tests in an error.
const shownFailed = 5

// testsFailed says what is wrong with a run of tests, "" for nothing.
func testsFailed(sum instrument.Totals, failed []string) string {
	var why []string
	switch total := sum.Seen + sum.Missing(); {
	case sum.Problem != "":
		why = append(why, text.Head(sum.Problem, maxReason))
	case sum.Crash != "":
		why = append(why, fmt.Sprintf("the process ended after %d of %d tests: %s", sum.Seen, total, text.Head(sum.Crash, maxReason)))
	case sum.Code == nil:
		why = append(why, fmt.Sprintf("the output ended after %d of %d tests", sum.Seen, total))
	case sum.Seen == 0:
		why = append(why, "no test ran: no class or method matches the arguments")
	case sum.Missing() > 0:
		why = append(why, fmt.Sprintf("only %d of %d announced tests ran", sum.Seen, total))
	}
	if n := sum.Ended[instrument.Failed] + sum.Ended[instrument.Crashed] + sum.Ended[instrument.Unfinished]; n > 0 {
		names := strings.Join(failed[:min(len(failed), shownFailed)], ", ")
		if n > shownFailed {
			names += fmt.Sprintf(" and %d more", n-shownFailed)
		}
		why = append(why, fmt.Sprintf("%d of %s failed: %s", n, text.Count(sum.Seen, "test", "tests"), names))
	}
	return strings.Join(why, "; ")
}

// testChecks checks the tests of one device while their output arrives.
type testChecks struct {
	*checkQueue
	told bool // that the orchestrator takes something away

	// first are the incarnations that ran before the tests. room are the counts of the latest
	// room that no other test has touched.
	first  map[incarnation]bool
	room   map[incarnation]map[string]int64
	latest map[incarnation]bool // that ran at the end of the latest test

	current *checkedTest
	failed  []string
}

// begin prepares the checks and returns the scale of the device's time.
func (c *testChecks) begin() (scale float64) {
	c.first, c.room, c.latest = map[incarnation]bool{}, map[incarnation]map[string]int64{}, map[incarnation]bool{}
	if c.session == nil {
		return 1
	}
	s := c.session
	_ = c.live.look(c.ctx, []*session{s}) // without it, what runs already counts as started by the tests
	_ = s.ask(func() {
		for _, x := range s.subjects.order {
			if x.present {
				c.first[incarnationOf(s.row(x, s.clock.now()))] = true
			}
		}
	})
	return s.clock.scale
}

// leave ends the room after the latest test.
func (c *testChecks) leave() {
	if c.current != nil {
		c.current.leave()
	}
}

// testBegan opens the check of a test. The next to be read is still the one before.
func (c *testChecks) testBegan(t instrument.Test) {
	c.leave()
	began := c.open(t.Name())
	c.current = began
	if began.check != nil {
		c.work <- func() { c.lookAround(began) }
	}
}

// lookAround finds the processes of a test that has begun.
func (c *testChecks) lookAround(t *checkedTest) {
	if _, err := t.check.look(c.ctx); err != nil {
		c.complain(err)
	}
	if !c.told && restarted(c.latest, t.check.objects.there) {
		c.told = true
		c.note(c.serial, record.Event{Event: "workload", Text: orchestratedText})
	}
}

// restarted reports whether a process that ran at the end of one test runs at the next as
// another incarnation.
func restarted(before, now map[incarnation]bool) bool {
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

// testEnded has a test checked in the room after it.
func (c *testChecks) testEnded(test instrument.Test, outcome instrument.Outcome, stack string) {
	t := c.current
	switch outcome {
	case instrument.Failed, instrument.Crashed, instrument.Unfinished:
		if len(c.failed) < shownFailed {
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
		_, _ = t.check.look(c.ctx) // so that its end is noticed now
	}
	c.close(t, string(outcome), stack)
}

// collect reads what a test has left behind, a little after its activities are finished.
func (c *testChecks) collect(t *checkedTest, ended time.Time) {
	if nap(c.ctx, time.Until(ended.Add(c.session.clock.real(finishing)))) != nil {
		return
	}
	check := t.check
	for of := range check.objects.there {
		check.objects.before[of] = c.before(of)
	}
	err := check.Collect(c.ctx)
	c.latest = maps.Clone(check.objects.there)
	if err != nil {
		check.unread = "not checked: " + text.Head(err.Error(), maxReason)
		return
	}
	over := t.overAt()
	if over.IsZero() {
		c.room = maps.Clone(check.objects.before)
		return
	}
	c.doubt(check, over, raiseRoom, func(p *record.CheckedProcess) { c.keepCounts(check, p) })
}

const raiseRoom = ": raise it (" + delayArgument + ")"

// before are the counts of a process before a test: those of the room before it. A process
// that has started since the tests began had no screen at first.
func (c *testChecks) before(of incarnation) map[string]int64 {
	if counts := c.room[of]; counts != nil {
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
			c.room[of] = counts
		}
	}
}
