package monitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/check"
	"github.com/leakgate/leakgate/internal/harness/hostmemory"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/hostfile"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

var (
	// errDuration ends a run whose time is over.
	errDuration = errors.New("duration is over")
	// errWorkload ends a run whose workload is done.
	errWorkload = errors.New("workload is done")
	// errDevices ends a run whose devices are all lost.
	errDevices = errors.New("every device is lost")
	// errFinished ends a run that its caller has finished.
	errFinished = errors.New("run is finished")
	// errDisk ends a run that cannot be written any more.
	errDisk = errors.New("the run directory cannot be written")
)

func stopped(cause error) string {
	switch {
	case errors.Is(cause, errDuration):
		return record.StoppedDuration
	case errors.Is(cause, errWorkload):
		return record.StoppedWorkload
	case errors.Is(cause, errFinished):
		return record.StoppedFinished
	case errors.Is(cause, errDevices):
		return record.StoppedDevices
	case errors.Is(cause, errDisk):
		return record.StoppedDisk
	}
	return record.StoppedInterrupted
}

// Run watches until the duration is over, the workload is done, every device is
// lost, the run directory cannot be written or ctx ends, then writes run.json.
// When ctx ends the run is complete and says that it was interrupted. The error is
// a run that could not begin or could not be written; a run that went on and
// failed is told in its record.
func Run(ctx context.Context, o Options) (record.Run, error) {
	w, err := Start(ctx, o)
	if err != nil {
		return record.Run{}, err
	}
	return w.Wait()
}

// Start begins a watch and returns it. It ends as [Run] does, or with [LiveRun.Stop]. The
// error is a run that cannot begin: nothing of it is left then.
func Start(ctx context.Context, o Options) (*LiveRun, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	m := newRun(o)
	if o.Respond != nil {
		respond := *o.Respond
		if respond.Memory == nil {
			respond.Memory = hostmemory.Free
		}
		m.responder = response.New(o.Dir, respond)
	}
	header := m.header()
	var err error
	m.ledger, err = ledger.New(header, o.Policy)
	if err != nil {
		return nil, fmt.Errorf("start run: %w", err)
	}
	m.recorder, err = record.CreateRecorder(o.Dir, header)
	if err != nil {
		return nil, err
	}
	box, err := openInbox(o.Dir)
	if err != nil {
		// What has not begun leaves no run behind.
		return nil, errors.Join(err, m.recorder.Close(), os.Remove(filepath.Join(o.Dir, record.SamplesName)))
	}
	for _, d := range m.Devices {
		m.sessions = append(m.sessions, newSession(m, d))
	}
	w := &LiveRun{run: m, ended: make(chan struct{}), seen: map[incarnation]*check.Seen{}, latest: map[incarnation]map[string]int64{}}
	m.live = w
	going, stop := context.WithCancelCause(ctx)
	m.stop = stop
	go w.live(going, ctx, box)
	return w, nil
}

// writeLeaks writes the table of findings, where there was to be one.
func (m *run) writeLeaks(r record.Run) error {
	if m.responder == nil {
		return nil
	}
	return record.WriteLeaks(m.Dir, r)
}

// writeJUnit writes the verdicts for CI servers, where that was asked for or tests were checked.
func (m *run) writeJUnit(r record.Run) error {
	if m.JUnit == nil && len(r.Checks) == 0 || m.JUnit != nil && !*m.JUnit {
		return nil
	}
	return reporters.WriteJUnitFile(m.Dir, r)
}

// run is one run on its way.
type run struct {
	Options
	recording
	started  time.Time
	sessions []*session
	own      *own
	// paths takes the paths of the host out of what is recorded.
	paths     hostfile.Paths
	live      *LiveRun
	workloads *workloads
	extension *extension
	ledger    *ledger.Ledger

	// responder collects what a leak calls for; nil where nothing is to be collected.
	responder *response.Responder
	// analysing has room for one analysis.
	analysing chan struct{}
	// reason is what its caller said who finished it.
	reason string
	// windows counts those that were opened.
	windows int
}

func newRun(o Options) *run {
	m := &run{Options: o, paths: hostfile.NewPaths(o.Dir), started: time.Now(), own: newOwn(), analysing: make(chan struct{}, 1)}
	m.workloads, m.extension = &workloads{run: m}, &extension{run: m}
	return m
}

// header is the first line of the run: all that is needed to judge the others again.
func (m *run) header() record.Header {
	h := record.Header{Started: m.started.UTC(), Plan: &record.Plan{Tool: m.Tool, Assert: m.Assert, Strict: m.Strict, AllowUnjudged: m.AllowUnjudged, MustSee: m.MustSee / detector.MB, Duration: m.Duration.Seconds(), LongestDuration: m.extension.longest().Seconds(), Build: m.Build}}
	h.Plan.SetPolicy(m.Policy)
	for _, d := range m.Devices {
		h.Devices = append(h.Devices, headerOf(d))
	}
	for _, p := range m.Patterns {
		h.Plan.Processes = append(h.Plan.Processes, string(p))
	}
	if m.Workload != nil {
		m.workloads.work = m.Workload.Describe()
		h.Plan.Workload = &record.PlannedWorkload{Kind: m.workloads.work.Kind, Seed: m.workloads.work.Seed, Events: m.workloads.work.Events, Digest: m.workloads.work.Digest}
	}
	return h
}

// watch lets the sessions and the workload run until ctx ends, and returns the cause of the
// end. What a leak calls for goes on until user ends.
func (m *run) watch(ctx, user context.Context, box *inbox) error {
	stop := m.stop
	defer stop(nil)
	var sessions, others sync.WaitGroup
	for _, s := range m.sessions {
		sessions.Go(func() { s.watch(ctx, user) })
	}
	others.Go(func() { box.watch(ctx, m.takeMark) })
	if m.Workload != nil {
		others.Go(func() { m.workloads.stress(ctx, stop) })
	}
	if m.Duration > 0 {
		others.Go(func() { m.timeout(ctx, stop) })
	}
	others.Go(func() { m.checkDirectory(ctx) })
	sessions.Wait()
	// Sessions end with ctx, whose cause stands then, or because their devices are lost.
	stop(errDevices)
	others.Wait()
	m.tellGrowth()
	for _, s := range m.sessions {
		s.recordProofs()
	}
	// Marks that came in the last moment are taken before the end is written.
	for _, s := range m.sessions {
		s.finish(context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// directoryEvery is the time between two looks whether the run directory is still there.
const directoryEvery = 10 * time.Second

// checkDirectory ends the run when its directory is deleted or moved.
func (m *run) checkDirectory(ctx context.Context) {
	for nap(ctx, directoryEvery) == nil {
		m.keep(m.recorder.Check())
	}
}

// tellGrowth records what grew in the heap dumps that were taken at marks.
func (m *run) tellGrowth() {
	if m.responder == nil || !m.keep(m.recorder.Check()) {
		return
	}
	records, err := m.responder.Growth()
	m.keep(err)
	for _, d := range records {
		for _, s := range m.sessions {
			if s.dev.Serial() == d.Device {
				s.responses.recordGrowth(d)
			}
		}
	}
}

// end records how the run has ended.
func (m *run) end(cause error) {
	stop := record.Event{Event: "stopped", Text: stopped(cause), Reason: m.reasonOf(cause), Ended: new(time.Now().UTC()), Overhead: m.own.record()}
	if m.Workload != nil {
		stop.Workload = &m.workloads.work
	}
	m.keep(m.recorder.Last(stop))
	m.keep(m.ledger.AddEvent(stop))
}

// reasonOf is what the caller said that finished the run, "" where it ended otherwise.
func (m *run) reasonOf(cause error) string {
	if !errors.Is(cause, errFinished) {
		return ""
	}
	return m.reason
}

// timeout ends the run when every device has lived through the duration.
func (m *run) timeout(ctx context.Context, stop context.CancelCauseFunc) {
	for _, s := range m.sessions {
		select {
		case <-time.After(s.clock.until(m.Duration)):
		case <-ctx.Done():
			return
		}
	}
	m.extension.extend(ctx)
	m.sampleOnceMore(ctx)
	stop(errDuration)
}

// alone tells whether every device is lost.
func (m *run) alone() bool {
	return !slices.ContainsFunc(m.sessions, func(s *session) bool {
		select {
		case <-s.gone:
			return false
		default:
			return true
		}
	})
}

// note records an event of every device, or of one.
func (m *run) note(device string, e record.Event) { m.send(device, letter{Event: e}) }

func (m *run) send(device string, l letter) {
	for _, s := range m.sessions {
		if device == "" || device == s.dev.Serial() {
			s.notes.put(l)
		}
	}
}
