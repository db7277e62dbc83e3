package harness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/hub"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// Background is stress on the app while a spec or container is running. Stress
// that is started in an It ends with the context of the It. If it is started in
// a BeforeEach, it ends with the body of the spec. If it is started in a
// BeforeAll or BeforeSuite, it ends with the container or the suite, because
// Ginkgo cancels the context of such a node when the node ends.
type Background struct {
	cancel context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	err    error
	asked  bool
}

// Wait waits until the stress has ended. It returns an error if a command
// returned a nonzero exit code or the device was lost. It returns no error if
// the stress ended because its context was done. Crashes and ANRs that monkey
// reports are findings of the check and of the run.
func (b *Background) Wait() error {
	<-b.done
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// stop ends the stress and waits until it has ended.
func (b *Background) stop() {
	b.mu.Lock()
	b.asked = true
	b.mu.Unlock()
	b.cancel()
	<-b.done
}

func (b *Background) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.asked {
		b.err = err
	}
}

// MonkeyOption is an option of [Leaks.Monkey].
type MonkeyOption func(*monitor.Monkey)

// Events sets the number of events that monkey sends. By default it continues
// until its context is done.
func Events(n int) MonkeyOption { return func(m *monitor.Monkey) { m.Events = n } }

// Throttle sets the time between two events. The default is 300 ms.
func Throttle(d time.Duration) MonkeyOption { return func(m *monitor.Monkey) { m.Throttle = d } }

// Seed sets monkey's seed; with the same seed, monkey sends the same events
// again. By default the seed is random; it is recorded.
func Seed(n int64) MonkeyOption { return func(m *monitor.Monkey) { m.Seed = n } }

const (
	defaultThrottle = 300 * time.Millisecond
	// manyEvents is the maximum number of events that monkey accepts (in
	// Monkey.java, mCount is an int); no suite lasts that long.
	manyEvents = 1<<31 - 1
)

// Monkey sends random events to a package in the background, until ctx is done.
func (l *Leaks) Monkey(ctx context.Context, pkg string, opts ...MonkeyOption) *Background {
	m := monitor.Monkey{Package: pkg, Seed: rand.Int64N(1 << 31), Throttle: defaultThrottle, Events: manyEvents}
	for _, o := range opts {
		o(&m)
	}
	return l.background(ctx, hub.StressRequest{Monkey: &m})
}

// Exec runs a command on the device that the spec drives, such as "input tap
// 540 1200", and returns its output. If the exit code is not zero, Exec returns
// an error with the first line of the output. It starts the watch if necessary.
func (l *Leaks) Exec(ctx context.Context, command string) (string, error) {
	h, err := l.watcher()
	if err != nil {
		return "", err
	}
	out, err := h.Exec(ctx, hub.ExecRequest{Device: l.Device(), Command: command})
	if err == nil && out.Exit != 0 {
		err = fmt.Errorf("run %s on the device: exit %d: %s", text.Quote(command, 200), out.Exit,
			text.FirstLine(out.Output, 200))
	}
	return out.Output, err
}

// Shell runs a command on the device in the background, until ctx is done.
func (l *Leaks) Shell(ctx context.Context, command string) *Background {
	return l.background(ctx, hub.StressRequest{Shell: command})
}

func (l *Leaks) background(ctx context.Context, r hub.StressRequest) *Background {
	node := l.node()
	if node.Is(outlivingNodes) {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &Background{cancel: cancel, done: make(chan struct{})}
	switch s := l.current(); {
	case node.Is(types.NodeTypeBeforeAll | types.NodeTypeBeforeSuite | types.NodeTypeSynchronizedBeforeSuite):
		ginkgo.DeferCleanup(b.stop)
	case s != nil:
		s.mu.Lock()
		s.background = append(s.background, b)
		s.mu.Unlock()
	}
	r.Device = l.Device()
	go func() {
		defer close(b.done)
		defer cancel()
		_, err := l.stress(ctx, r)
		if ctx.Err() == nil {
			b.end(err)
		}
	}()
	return b
}

// outlivingNodes are the types of nodes that set up state for other nodes:
// their context ends before this state is cleaned up.
const outlivingNodes = types.NodeTypeBeforeEach | types.NodeTypeJustBeforeEach | types.NodeTypeBeforeAll |
	types.NodeTypeBeforeSuite | types.NodeTypeSynchronizedBeforeSuite

// node returns the type of the running node, or the invalid type outside of
// Ginkgo.
func (l *Leaks) node() types.NodeType {
	if !l.inGinkgo {
		return types.NodeTypeInvalid
	}
	report := ginkgo.CurrentSpecReport()
	if report.LeafNodeType.Is(types.NodeTypesForSuiteLevelNodes) {
		return report.LeafNodeType
	}
	for i := len(report.SpecEvents) - 1; i >= 0; i-- {
		if e := report.SpecEvents[i]; e.SpecEventType == types.SpecEventNodeStart {
			return e.NodeType
		}
	}
	return types.NodeTypeInvalid
}

func (l *Leaks) stress(ctx context.Context, r hub.StressRequest) (hub.Stressed, error) {
	h, err := l.watcher()
	if err != nil {
		return hub.Stressed{}, err
	}
	out, err := h.Stress(ctx, r)
	if err == nil && out.Error != "" {
		err = errors.New(out.Error)
	}
	return out, err
}

// InstrumentOption is an option of [Leaks.Instrument].
type InstrumentOption func(*monitor.Instrument)

// Classes runs only the tests of the given classes, or single tests given as
// CLASS#METHOD. By default all tests run.
func Classes(names ...string) InstrumentOption {
	return func(i *monitor.Instrument) {
		list := i.Arguments["class"]
		for _, n := range names {
			if list != "" {
				list += ","
			}
			list += n
		}
		i.Arguments["class"] = list
	}
}

// Arg sets an argument of the runner, like -e KEY VALUE.
func Arg(key, value string) InstrumentOption {
	return func(i *monitor.Instrument) { i.Arguments[key] = value }
}

// DelayAfterTest sets the device time for which the runner waits after each
// test (delay_msec). The test is checked during that time.
func DelayAfterTest(d time.Duration) InstrumentOption {
	return func(i *monitor.Instrument) { i.Delay = d }
}

// Instrumentation is the result of a run of instrumented tests.
type Instrumentation struct {
	Component string
	// Tests lists the tests in the order in which they ran, with their outcomes
	// and the verdicts of their checks.
	Tests []record.Check
}

// Instrument runs instrumented tests in Kotlin or Java with am instrument, and
// checks which objects each test leaks. Each test is a window of the run and a
// test case of its junit.xml. A leaking test fails the spec that called
// Instrument, and the failure names it. Instrument returns an error if tests
// failed or could not run.
func (l *Leaks) Instrument(ctx context.Context, component string, opts ...InstrumentOption) (*Instrumentation, error) {
	i := monitor.Instrument{Component: component, Arguments: map[string]string{}}
	for _, o := range opts {
		o(&i)
	}
	s := l.current()
	if s != nil {
		i.Options = monitor.CheckOptions{Heap: s.check.heap, Patterns: patternsOf(s.check.patterns), Known: s.valid()}
	}
	out, err := l.stress(ctx, hub.StressRequest{Device: l.Device(), Instrument: &i})
	if s != nil {
		s.mu.Lock()
		s.tests = append(s.tests, out.Checks...)
		s.mu.Unlock()
	}
	if err != nil {
		err = fmt.Errorf("run the tests of %s: %w", component, err)
	}
	return &Instrumentation{Component: component, Tests: out.Checks}, err
}
