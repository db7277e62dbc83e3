package harness

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/hub"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// Leaks is the watch of one suite. All processes of the suite share it: the
// first process owns the devices and the run, and the others send it their
// requests.
type Leaks struct {
	settings settings
	number   int64
	// checks maps the code location that identifies a decorator to the check of
	// the decorator; nodes maps the location FILE:LINE of a decorated node to
	// the check of the node.
	checks     map[types.CodeLocation]*checkSettings
	nodes      map[string]*checkSettings
	decorators int

	// inGinkgo is set if report entries can be added.
	inGinkgo bool

	mu      sync.Mutex
	hub     watcher
	owner   *hub.Hub // set in the first process only
	server  *hub.Listener
	badly   error // invalid options
	spec    *spec
	devices string
}

// watcher is the hub, in this process or in another one.
type watcher interface {
	Start(ctx context.Context, again bool) error
	Dir() string
	Turn(ctx context.Context, spec string, waiting func(holder string)) (hub.Lent, error)
	Open(ctx context.Context, r hub.OpenRequest) (hub.Opened, error)
	Recount(ctx context.Context, number int) error
	Collect(ctx context.Context, r hub.CollectRequest) error
	Close(ctx context.Context, r hub.CloseRequest) (record.Check, error)
	Now(ctx context.Context, process string) ([]hub.Standing, error)
	Snapshot(ctx context.Context, r hub.ProcessRequest) (monitor.ProcessSnapshot, error)
	Settle(ctx context.Context, r hub.ProcessRequest) (bool, error)
	Dump(ctx context.Context, r hub.ProcessRequest) (record.Diagnosis, error)
	Discover(ctx context.Context) error
	Death(ctx context.Context, pid int) (string, error)
	Exec(ctx context.Context, r hub.ExecRequest) (hub.Executed, error)
	Stress(ctx context.Context, r hub.StressRequest) (hub.Stressed, error)
}

// watches is the number of watches in a test binary: a suite may watch several
// apps.
var watches atomic.Int64

// Watch watches a process, or all processes that match a pattern such as
// com.shop*, while the suite runs. Call it once for each app, in a variable of
// the test package: it registers report nodes in addition to the suite's own
// BeforeSuite and AfterSuite.
//
// The device is needed as soon as the first checked spec or [Leaks.Start] runs.
// Without a device, the suite fails. Nothing is started in a dry run, or if no
// spec runs.
func Watch(process string, opts ...Option) *Leaks {
	declareFlags(flag.CommandLine)
	l := newLeaks(process, opts)
	l.inGinkgo = true
	at := types.NewCodeLocation(1) // the line in the suite, not in this library
	ginkgo.AddTreeConstructionNodeArgsTransformer(l.recordLocations)
	ginkgo.ReportBeforeSuite(l.beforeSuite, at)
	ginkgo.ReportBeforeEach(l.beforeSpec, at, ginkgo.NodeTimeout(maxWait))
	ginkgo.JustBeforeEach(l.beforeBody, at, ginkgo.NodeTimeout(collectTime))
	ginkgo.JustAfterEach(l.afterBody, at, ginkgo.NodeTimeout(collectTime))
	ginkgo.ReportAfterEach(l.afterSpec, at, ginkgo.NodeTimeout(collectTime))
	ginkgo.ReportAfterSuite("leakgate", l.afterSuite, at, ginkgo.NodeTimeout(finishTime))
	ginkgo.AttachProgressReporter(l.table)
	return l
}

const (
	// maxWait is the maximum wall-clock time for which a spec waits for its
	// device.
	maxWait = 12 * time.Hour
	// collectTime is the wall-clock time within which a check must count
	// objects, let the app settle and dump the heap.
	collectTime = 15 * time.Minute
	// finishTime is the wall-clock time within which the run must end,
	// including pending analyses.
	finishTime = time.Hour
)

func newLeaks(process string, opts []Option) *Leaks {
	l := &Leaks{
		number: watches.Add(1), checks: map[types.CodeLocation]*checkSettings{}, nodes: map[string]*checkSettings{},
	}
	l.settings.Options.Processes = []string{process}
	for _, o := range opts {
		o.apply(&l.settings)
	}
	return l
}

// Start begins the watch now, for example in a BeforeSuite that has booted the
// device. It may be called again after an error.
func (l *Leaks) Start(ctx context.Context) error {
	h, err := l.watcher()
	if err != nil {
		return err
	}
	err = h.Start(ctx, true)
	if s := l.current(); err == nil && s != nil && l.inGinkgo {
		s.setSerial()
	}
	return err
}

// Dir returns the run directory, or "" before the watch has started.
func (l *Leaks) Dir() string {
	h, err := l.watcher()
	if err != nil {
		return ""
	}
	return h.Dir()
}

// Device returns the serial of the device that the running spec drives, or ""
// if the watch has not started. With several devices, ANDROID_SERIAL is set to
// the same value.
func (l *Leaks) Device() string {
	if s := l.current(); s != nil && s.turn != nil {
		return s.turn.Serial()
	}
	return ""
}

// watcher returns the hub of this process.
func (l *Leaks) watcher() (watcher, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.badly != nil:
		return nil, l.badly
	case l.hub != nil:
		return l.hub, nil
	}
	if err := l.resolve(); err != nil {
		l.badly = err
		return nil, err
	}
	suite, _ := ginkgo.GinkgoConfiguration()
	if suite.ParallelTotal == 1 || suite.ParallelProcess == 1 {
		l.settings.Artifacts = cmp.Or(l.settings.Artifacts, reportFolder())
		l.settings.Log = func(line string) { ginkgo.GinkgoWriter.Println("leakgate: " + line) }
		l.owner = hub.New(l.settings.Options)
		l.hub = l.owner
		return l.hub, nil
	}
	path, err := hub.SocketPath(l.name(suite.ParallelHost))
	if err != nil {
		l.badly = err
		return nil, err
	}
	l.hub = hub.NewRemote(path)
	return l.hub, nil
}

// resolve applies the environment and the flags.
func (l *Leaks) resolve() error {
	l.settings.Tool = "leakgate harness"
	if err := l.settings.Resolve(); err != nil {
		return err
	}
	l.settings.addFlags()
	return nil
}

// name returns a name that is unique to the suite and the same in all of its
// processes.
func (l *Leaks) name(parallelHost string) string {
	return fmt.Sprintf("%s %d", parallelHost, l.number)
}

// reportFolder returns the path of leakgate-runs in the directory of Ginkgo's
// reports, or "" if Ginkgo writes none.
func reportFolder() string {
	_, reporter := ginkgo.GinkgoConfiguration()
	for _, file := range []string{reporter.JSONReport, reporter.JUnitReport, reporter.TeamcityReport} {
		if file != "" {
			return filepath.Join(filepath.Dir(file), "leakgate-runs")
		}
	}
	return ""
}

// beforeSuite prepares the first process to serve the others. It does not
// access a device.
func (l *Leaks) beforeSuite(_ ginkgo.SpecContext, report ginkgo.Report) {
	if report.SuiteConfig.DryRun || report.PreRunStats.SpecsThatWillRun == 0 {
		return
	}
	l.mu.Lock()
	l.settings.Suite = cmp.Or(l.settings.Suite, report.SuiteDescription)
	l.mu.Unlock()
	_, err := l.watcher()
	if err == nil && report.SuiteConfig.ParallelTotal > 1 {
		err = l.serve(report.SuiteConfig.ParallelHost)
	}
	if err != nil {
		ginkgo.Fail("leakgate: " + err.Error())
	}
}

func (l *Leaks) serve(parallelHost string) error {
	path, err := hub.SocketPath(l.name(parallelHost))
	if err != nil {
		return err
	}
	server, err := hub.Serve(l.owner, path)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = server
	return nil
}

// interruptedReason is the reason that Ginkgo reports for a suite that the user
// has stopped (internal/interrupt_handler InterruptCauseSignal).
const interruptedReason = "Interrupted by User"

// skippedReason is the reason that Ginkgo reports for a suite that was skipped
// by its BeforeSuite.
const skippedReason = "Suite skipped in BeforeSuite"

// afterSuite ends the run and judges the suite as a whole. It runs in the first
// process, after all other processes have ended.
func (l *Leaks) afterSuite(_ ginkgo.SpecContext, report ginkgo.Report) {
	l.mu.Lock()
	owner, server := l.owner, l.server
	l.mu.Unlock()
	if owner == nil {
		return
	}
	interrupted := slices.Contains(report.SpecialSuiteFailureReasons, interruptedReason)
	v, err := owner.Finish("the suite has ended", interrupted)
	if server != nil {
		err = errors.Join(err, server.Close())
	}
	v.Notes = append(v.Notes, unopened(report)...)
	if slices.Contains(report.SpecialSuiteFailureReasons, skippedReason) && l.mustRun() {
		v.Failures = append(v.Failures, "nothing was checked: the suite was skipped in its BeforeSuite")
	}
	if err == nil && v.Started {
		err = reporters.WriteJUnitFile(owner.Dir(), v.Run)
	}
	l.reportSuite(v, owner.Dir(), err)
}

// mustRun reports whether a suite that checks nothing must fail, which never
// happens with Observe. It must fail with Strict, and in CI, where nobody would
// read a message about the missing checks.
func (l *Leaks) mustRun() bool {
	ci, _ := l.settings.Getenv("CI")
	return !l.settings.Observe && (l.settings.Strict || ci != "" && ci != "false")
}
