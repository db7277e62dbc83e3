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
	// errDuration is the cancellation cause of a run whose duration is over.
	errDuration = errors.New("duration is over")
	// errWorkload is the cancellation cause of a run whose workload has ended.
	errWorkload = errors.New("workload is done")
	// errDevices is the cancellation cause of a run without remaining devices.
	errDevices = errors.New("every device is lost")
	// errFinished is the cancellation cause of a run that was stopped by its
	// caller.
	errFinished = errors.New("run is finished")
	// errDisk is the cancellation cause of a run whose lines cannot be written.
	errDisk = errors.New("cannot write the run directory")
)

func stopReason(cause error) string {
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

// Run watches the devices until the duration is over, the workload ends, every
// device is lost, the run directory cannot be written or ctx is done. Then it
// writes run.json and returns the record. If ctx was canceled, the record is
// complete and marked as interrupted. Run returns an error if the run could not
// start or could not be written; if the run failed later, the record contains
// the reason.
func Run(ctx context.Context, o Options) (record.Run, error) {
	w, err := Start(ctx, o)
	if err != nil {
		return record.Run{}, err
	}
	return w.Wait()
}

// Start starts a run and returns it. The run ends as described for [Run], or by
// [LiveRun.Stop]. Start returns an error if the run could not start; in this
// case it leaves no files behind.
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
		// A run that did not start leaves no files behind.
		return nil, errors.Join(err, m.recorder.Close(), os.Remove(filepath.Join(o.Dir, record.SamplesName)))
	}
	for _, d := range m.Devices {
		m.sessions = append(m.sessions, newSession(m, d))
	}
	w := &LiveRun{
		run: m, ended: make(chan struct{}), seen: map[life]*check.Seen{},
		latest: map[life]map[string]int64{},
	}
	m.live = w
	going, stop := context.WithCancelCause(ctx)
	m.stop = stop
	go w.carryOut(going, ctx, box)
	return w, nil
}

// writeLeaks writes the table of findings if leaks are diagnosed.
func (m *run) writeLeaks(r record.Run) error {
	if m.responder == nil {
		return nil
	}
	return record.WriteLeaks(m.Dir, r)
}

// writeJUnit writes the verdicts for CI servers if this was requested or if
// tests were checked.
func (m *run) writeJUnit(r record.Run) error {
	if m.JUnit == nil && len(r.Checks) == 0 || m.JUnit != nil && !*m.JUnit {
		return nil
	}
	return reporters.WriteJUnitFile(m.Dir, r)
}

// run is the state of one run.
type run struct {
	Options
	recording
	started  time.Time
	sessions []*session
	overhead *selfUsage
	// paths removes paths of the host from the record.
	paths     hostfile.Paths
	live      *LiveRun
	workloads *workloads
	extension *extension
	ledger    *ledger.Ledger

	// responder diagnoses leaks; it is nil if leaks are not diagnosed.
	responder *response.Responder
	// analysisSlot admits one analysis at a time.
	analysisSlot chan struct{}
	// reason is the reason that the caller gave for stopping the run.
	reason string
	// windows counts the windows opened so far.
	windows int
}

func newRun(o Options) *run {
	m := &run{
		Options: o, paths: hostfile.NewPaths(o.Dir), started: time.Now(), overhead: newSelfUsage(),
		analysisSlot: make(chan struct{}, 1),
	}
	m.workloads, m.extension = &workloads{run: m}, &extension{run: m}
	return m
}

// header returns the first line of the run, which contains everything that is
// needed to judge the remaining lines again.
func (m *run) header() record.Header {
	h := record.Header{
		Started: m.started.UTC(),
		Plan: &record.Plan{
			Tool: m.Tool, Assert: m.Assert, Strict: m.Strict, AllowUnjudged: m.AllowUnjudged,
			MustSee: m.MustSee / detector.MB, Duration: m.Duration.Seconds(),
			LongestDuration: m.extension.longest().Seconds(), Build: m.Build,
		},
	}
	h.Plan.SetPolicy(m.Policy)
	for _, d := range m.Devices {
		h.Devices = append(h.Devices, headerOf(d))
	}
	for _, p := range m.Patterns {
		h.Plan.Processes = append(h.Plan.Processes, string(p))
	}
	if m.Workload != nil {
		m.workloads.work = m.Workload.Describe()
		h.Plan.Workload = &record.PlannedWorkload{
			Kind: m.workloads.work.Kind, Seed: m.workloads.work.Seed, Events: m.workloads.work.Events,
			Digest: m.workloads.work.Digest,
		}
	}
	return h
}

// watch runs the sessions and the workload until ctx is done, and returns the
// cause. Diagnoses continue until the context user is done.
func (m *run) watch(ctx, user context.Context, box *inbox) error {
	stop := m.stop
	defer stop(nil)
	var sessions, others sync.WaitGroup
	for _, s := range m.sessions {
		sessions.Go(func() { s.watch(ctx, user) })
	}
	others.Go(func() { box.watch(ctx, m.takeMark) })
	if m.Workload != nil {
		others.Go(func() { m.workloads.runWorkload(ctx, stop) })
	}
	if m.Duration > 0 {
		others.Go(func() { m.endAfterDuration(ctx, stop) })
	}
	others.Go(func() { m.checkDirectory(ctx) })
	sessions.Wait()
	// Sessions end because ctx is done or because their devices are lost. The
	// cause of ctx is returned.
	stop(errDevices)
	others.Wait()
	m.recordGrowth()
	for _, s := range m.sessions {
		s.recordProofs()
	}
	// The last marks are handled before the end is written.
	for _, s := range m.sessions {
		s.recordEnd(context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// directoryEvery is the time between two checks that the run directory exists.
const directoryEvery = 10 * time.Second

// checkDirectory ends the run if its directory is deleted or moved.
func (m *run) checkDirectory(ctx context.Context) {
	for sleep(ctx, directoryEvery) == nil {
		m.checkWrite(m.recorder.Check())
	}
}

// recordGrowth records which objects grew between the heap dumps at marks.
func (m *run) recordGrowth() {
	if m.responder == nil || !m.checkWrite(m.recorder.Check()) {
		return
	}
	records, err := m.responder.Growth()
	m.checkWrite(err)
	for _, d := range records {
		for _, s := range m.sessions {
			if s.dev.Serial() == d.Device {
				s.responses.recordGrowth(d)
			}
		}
	}
}

// end records the end of the run.
func (m *run) end(cause error) {
	stop := record.Event{
		Event: "stopped", Text: stopReason(cause), Reason: m.reasonOf(cause), Ended: new(time.Now().UTC()),
		Overhead: m.overhead.record(),
	}
	if m.Workload != nil {
		stop.Workload = &m.workloads.work
	}
	m.checkWrite(m.recorder.AppendLast(stop))
	m.checkWrite(m.ledger.AddEvent(stop))
}

// reasonOf returns the reason given by the caller that stopped the run, or ""
// if the run ended otherwise.
func (m *run) reasonOf(cause error) string {
	if !errors.Is(cause, errFinished) {
		return ""
	}
	return m.reason
}

// endAfterDuration ends the run when every device has reached the duration.
func (m *run) endAfterDuration(ctx context.Context, stop context.CancelCauseFunc) {
	for _, s := range m.sessions {
		select {
		case <-time.After(s.clock.until(m.Duration)):
		case <-ctx.Done():
			return
		}
	}
	m.extension.extend(ctx)
	m.takeFinalSamples(ctx)
	stop(errDuration)
}

// allLost reports whether all devices are lost.
func (m *run) allLost() bool {
	return !slices.ContainsFunc(m.sessions, func(s *session) bool {
		select {
		case <-s.gone:
			return false
		default:
			return true
		}
	})
}

// postEvent records an event on one device, or on all.
func (m *run) postEvent(device string, e record.Event) { m.post(device, message{Event: e}) }

func (m *run) post(device string, l message) {
	for _, s := range m.sessions {
		if device == "" || device == s.dev.Serial() {
			s.mailbox.post(l)
		}
	}
}
