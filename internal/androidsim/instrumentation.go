package androidsim

import (
	"slices"
	"strings"
	"time"
)

// Instrumentation is an installed package with tests for `am instrument`. The
// tests run in the main process of the target, which Android stops before and
// after the run.
type Instrumentation struct {
	// Package is the package of the tests, such as com.shop.test; Runner is the
	// class that runs them, by default androidx.test.runner.AndroidJUnitRunner.
	Package, Runner string
	// Target is the package under test, one of Options.Apps.
	Target string
	// Models describe the memory of the process under test. They replace the
	// models in the ProcessSpec, which simulate a user. If Models is nil, the
	// models of the ProcessSpec apply.
	Models []Model
	// Orchestrated runs each test in its own process, like Android Test
	// Orchestrator: nothing that a test leaks outlives it.
	Orchestrated bool
	Tests        []Test
}

// Test is one test of an Instrumentation.
type Test struct {
	// Name is CLASS#METHOD.
	Name    string
	Outcome TestOutcome
	// Leaks are retained from the end of the test until the process ends.
	Leaks []LeakedActivities
	// Took is the duration of the test in device time; 0 means one second.
	Took time.Duration
}

// LeakedActivities describes destroyed Activities of one class that a static
// list of the class holds, each with 2 MB of Java memory.
type LeakedActivities struct {
	Class string
	Count int
}

// TestOutcome is how a test ends.
type TestOutcome uint8

// The possible outcomes of a test. A crash is a native crash, which the runner
// cannot report.
const (
	TestPasses TestOutcome = iota
	TestFails
	TestCrashes
	TestIgnored
	TestAssumptionFails
	// testUnloadable means that a requested class does not exist.
	testUnloadable
)

const (
	usualRunner = "androidx.test.runner.AndroidJUnitRunner"
	usualTest   = time.Second
	// launchTakes is the device time from the start of the process to the first
	// test.
	launchTakes = 500 * time.Millisecond
	// maxHeldActivities is the maximum number of Activities that tests can leak
	// in one process: they take 1 GB, more than any heap can hold
	// (dalvik.vm.heapsize).
	maxHeldActivities = 1 << 10 / mbPerActivity
)

// runner returns the class that runs the tests.
func (i Instrumentation) runner() string {
	if i.Runner == "" {
		return usualRunner
	}
	return i.Runner
}

func (i Instrumentation) component() string { return i.Package + "/" + i.runner() }

func (t Test) class() string  { class, _, _ := strings.Cut(t.Name, "#"); return class }
func (t Test) method() string { _, method, _ := strings.Cut(t.Name, "#"); return method }

func (t Test) takes() time.Duration {
	switch {
	case t.Outcome == TestIgnored:
		return 0
	case t.Took > 0:
		return t.Took
	}
	return usualTest
}

// testRun is one run of an instrumentation. Its fields are guarded by Phone.mu.
type testRun struct {
	*Instrumentation
	tests []Test
	steps []testStep
	// proc is the process under test, and instance is the number of its current
	// life; instance is 0 while the process is not running.
	proc     *process
	instance int
	// current is the index of the running test, or -1.
	current int
	reports []testReport
	// began and ended are the times at which the runner started and ended;
	// crashed means that the process died before the end.
	began, ended  time.Duration
	over, crashed bool
}

type testStep struct {
	at   time.Duration
	kind stepKind
	test int
}

type stepKind uint8

const (
	launchesProcess stepKind = iota
	beginsTest
	endsTest
	// stopsProcess ends the process of one orchestrated test.
	stopsProcess
	finishesRun
)

type testReport struct {
	test, code int
	// stack is the stack trace of a failed test.
	stack string
}

// The codes of
// androidx.test.internal.runner.listener.InstrumentationResultPrinter.
const (
	reportStart             = 1
	reportOK                = 0
	reportFailure           = -2
	reportIgnored           = -3
	reportAssumptionFailure = -4
)

// startTests runs tests of an instrumentation; it first ends the current run of
// the same target. It returns nil if the target is not installed.
func (p *Phone) startTests(i *Instrumentation, tests []Test, delay time.Duration) *testRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	p.advance(up)
	r := &testRun{Instrumentation: i, tests: tests, proc: p.mainProcess(i.Target), current: -1}
	if r.proc == nil {
		return nil
	}
	for _, other := range p.runs {
		if other.Target == i.Target {
			other.over, other.crashed, other.ended = true, true, up
		}
	}
	p.forgetRuns()
	r.plan(up, delay)
	p.runs = append(p.runs, r)
	p.advance(up)
	return r
}

// mainProcess returns the process with the name of the package or, if there is
// none, the first process of the package.
func (p *Phone) mainProcess(pkg string) *process {
	var first *process
	for _, proc := range p.procs {
		if proc.app == nil || proc.fixed != 0 || proc.app.Package != pkg {
			continue
		}
		if proc.spec.Name == pkg {
			return proc
		}
		if first == nil {
			first = proc
		}
	}
	return first
}

// plan lists the steps of the run, which starts at the given time. The delay
// comes before the first test and after each test that was not ignored
// (androidx.test.internal.runner.listener.DelayInjector). When the delay
// begins, the test has been reported and its Activities are finished, because
// AndroidJUnitRunner adds the listeners InstrumentationResultPrinter and
// ActivityFinisherRunListener first.
func (r *testRun) plan(at, delay time.Duration) {
	add := func(kind stepKind, test int) { r.steps = append(r.steps, testStep{at, kind, test}) }
	add(launchesProcess, 0)
	at += launchTakes
	r.began = at
	at += delay
	for n, t := range r.tests {
		if r.Orchestrated && n > 0 {
			add(stopsProcess, n)
			add(launchesProcess, n)
			at += launchTakes + delay
		}
		add(beginsTest, n)
		at += t.takes()
		add(endsTest, n)
		if t.Outcome != TestIgnored {
			at += delay
		}
	}
	add(finishesRun, 0)
}

// due returns the time of the next step, if there is one.
func (r *testRun) due() (time.Duration, bool) {
	if r.over || len(r.steps) == 0 {
		return never, false
	}
	return r.steps[0].at, true
}

// step executes the next step of a run. The caller must hold the lock.
func (p *Phone) step(r *testRun) {
	s := r.steps[0]
	r.steps = r.steps[1:]
	switch s.kind {
	case launchesProcess:
		// ActivityManagerService.startInstrumentation
		p.stopPackage(r.Target, s.at, "start instr")
		r.proc.run = r
		p.spawn(r.proc, s.at)
		r.instance = r.proc.instance
	case beginsTest:
		r.reports = append(r.reports, testReport{test: s.test, code: reportStart})
		r.current = s.test
		r.proc.testing = r.tests[s.test].Outcome != TestIgnored
	case endsTest:
		p.endTest(r, s.at)
	case stopsProcess:
		r.instance = 0
		p.stopPackage(r.Target, s.at, "finished inst")
	case finishesRun:
		p.finishRun(r, s.at)
	}
}

func (p *Phone) endTest(r *testRun, at time.Duration) {
	t := r.tests[r.current]
	if t.Outcome == TestCrashes {
		p.recordExit(r.proc, at, nativeCrash)
		r.proc.die(at, never)
		return // noticeDeaths handles the run
	}
	r.proc.testing = false
	r.proc.hold(t.Leaks)
	r.reports = append(r.reports, t.report(r.current))
	r.current = -1
}

// finishRun ends a run; Android then stops the package under test
// (ActivityManagerService.finishInstrumentationLocked).
func (p *Phone) finishRun(r *testRun, at time.Duration) {
	r.over, r.ended = true, at
	p.stopPackage(r.Target, at, "finished inst")
	p.forgetRuns()
}

func (p *Phone) forgetRuns() {
	p.runs = slices.DeleteFunc(p.runs, func(r *testRun) bool { return r.over })
}

// noticeDeaths handles the runs whose process has died: an orchestrated run
// continues with its next test; any other run ends. The caller must hold the
// lock.
func (p *Phone) noticeDeaths(up time.Duration) {
	for _, r := range slices.Clone(p.runs) {
		if r.instance == 0 || r.proc.alive() && r.proc.instance == r.instance {
			continue
		}
		at := up
		if !r.proc.alive() {
			at = r.proc.died
		}
		r.instance = 0
		if !r.Orchestrated {
			r.crashed = true
			p.finishRun(r, at)
			continue
		}
		if r.current >= 0 {
			r.reports = append(r.reports, testReport{r.current, reportFailure, r.tests[r.current].orchestratorText()})
			r.current = -1
		}
		r.skip(at)
	}
}

// skip drops the remaining steps of a dead process; the steps after them begin
// at the given time.
func (r *testRun) skip(at time.Duration) {
	next := slices.IndexFunc(r.steps, func(s testStep) bool { return s.kind == stopsProcess || s.kind == finishesRun })
	r.steps = r.steps[next:]
	early := r.steps[0].at - at
	for i := range r.steps {
		r.steps[i].at -= early
	}
}

// hold adds the leaks of a test. Views share the slice, so the slice is copied.
func (p *process) hold(leaks []LeakedActivities) {
	held := slices.Clone(p.held)
	for _, l := range leaks {
		at := slices.IndexFunc(held, func(h LeakedActivities) bool { return h.Class == l.Class })
		if at < 0 {
			at = len(held)
			held = append(held, LeakedActivities{Class: l.Class})
		}
		held[at].Count = min(held[at].Count+max(l.Count, 0), maxHeldActivities)
	}
	p.held = held
}

func activitiesIn(held []LeakedActivities) (n int) {
	for _, h := range held {
		n += h.Count
	}
	return min(n, maxHeldActivities)
}
