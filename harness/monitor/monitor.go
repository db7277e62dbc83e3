package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters"
)

// The reasons why a run stops.
const (
	stoppedDuration    = "duration"
	stoppedWorkload    = "workload"
	stoppedInterrupted = "interrupted"
	stoppedDevices     = "devices"
)

// errDuration ends a run whose time is over.
var errDuration = errors.New("duration is over")

// errWorkload ends a run whose workload is done.
var errWorkload = errors.New("workload is done")

// errDevices ends a run whose devices are all lost.
var errDevices = errors.New("every device is lost")

// Run watches until the duration is over, the workload is done, every device is
// lost or ctx ends, then writes run.json. When ctx ends the run is complete and
// says that it was interrupted. The error is a run that could not begin or could
// not be written; a run that went on and failed is told in its record.
func Run(ctx context.Context, o Options) (reporters.Run, error) {
	if err := o.complete(); err != nil {
		return reporters.Run{}, err
	}
	m := &run{Options: o, started: time.Now()}
	rec, err := reporters.CreateRecorder(o.Dir, m.header())
	if err != nil {
		return reporters.Run{}, err
	}
	m.recorder = rec
	box, err := openInbox(o.Dir)
	if err != nil {
		return reporters.Run{}, errors.Join(err, rec.Close())
	}
	cause := m.watch(ctx, box)
	record := m.record(cause)
	err = errors.Join(m.recordErr(), rec.Close(), reporters.WriteRun(o.Dir, record), box.close())
	return record, err
}

// run is one run on its way.
type run struct {
	Options
	started  time.Time
	recorder *reporters.Recorder
	sessions []*session
	work     reporters.Workload
	warnings []string

	mu       sync.Mutex
	writeErr error
}

func (m *run) header() reporters.Header {
	h := reporters.Header{Started: m.started.UTC()}
	for _, d := range m.Devices {
		h.Devices = append(h.Devices, reporters.HeaderDevice{
			Device: d.Serial(), Model: d.Facts.Model, API: d.Facts.API,
			StartedUp: round(d.Facts.Up.Seconds(), 3), TimeScale: d.Facts.TimeScale,
		})
	}
	return h
}

// watch lets the sessions and the workload run and gives the cause of the end.
func (m *run) watch(ctx context.Context, box *inbox) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for _, d := range m.Devices {
		m.sessions = append(m.sessions, newSession(m, d))
	}
	var sessions, others sync.WaitGroup
	for _, s := range m.sessions {
		sessions.Go(func() { s.watch(ctx) })
	}
	others.Go(func() { box.watch(ctx, m.mark) })
	if m.Workload != nil {
		others.Go(func() { m.stress(ctx, stop) })
	}
	if m.Duration > 0 {
		others.Go(func() { m.timeout(ctx, stop) })
	}
	sessions.Wait()
	// Sessions end with ctx, whose cause stands then, or because their devices are lost.
	stop(errDevices)
	others.Wait()
	return context.Cause(ctx)
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
	stop(errDuration)
}

func (m *run) stress(ctx context.Context, stop context.CancelCauseFunc) {
	stage, err := m.stage()
	if err != nil {
		m.work.Error = err.Error()
		stop(errWorkload)
		return
	}
	m.work, err = m.Workload.Run(ctx, stage)
	if cerr := stage.Output.Close(); err == nil && cerr != nil {
		m.keep(cerr)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		m.work.Error = err.Error()
	}
	stop(errWorkload)
}

// mark puts a mark on the time axis of every device, or of one.
func (m *run) mark(device, text string) {
	for _, s := range m.sessions {
		if device == "" || device == s.dev.Serial() {
			s.mark(text)
		}
	}
}

// keep remembers the first error of writing.
func (m *run) keep(err error) {
	if err == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.writeErr == nil {
		m.writeErr = err
	}
}

func (m *run) recordErr() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writeErr
}

// record makes run.json of what the sessions have.
func (m *run) record(cause error) reporters.Run {
	r := reporters.Run{
		Schema: reporters.RunSchema, Tool: m.Tool, Started: m.started.UTC(), Ended: time.Now().UTC(),
		Policy: m.Policy.Name, Devices: []reporters.Device{}, Processes: []reporters.Process{}, Warnings: m.warnings,
	}
	if m.Workload != nil {
		r.Workload = &m.work
	}
	switch {
	case errors.Is(cause, errDuration):
		r.Stopped = stoppedDuration
	case errors.Is(cause, errWorkload):
		r.Stopped = stoppedWorkload
	case errors.Is(cause, errDevices):
		r.Stopped = stoppedDevices
	default:
		r.Stopped, r.Interrupted = stoppedInterrupted, true
	}
	for _, s := range m.sessions {
		r.Devices = append(r.Devices, s.record())
		for _, p := range s.order {
			r.Processes = append(r.Processes, p.record(s.dev.Serial(), s.begun))
		}
	}
	r.Warnings = present(append(r.Warnings, m.absent()...))
	r.ExitCode = exitCode(r, m.Assert, m.Strict)
	return r
}

// absent names the processes that were asked for and never seen. A pattern with a
// star may well choose none, as long as something was seen.
func (m *run) absent() []string {
	some := slices.ContainsFunc(m.sessions, func(s *session) bool { return len(s.order) > 0 })
	var out []string
	for _, p := range m.Patterns {
		seen := slices.ContainsFunc(m.sessions, func(s *session) bool { return s.saw(p) })
		if !seen && !(some && strings.HasSuffix(string(p), "*")) {
			out = append(out, fmt.Sprintf("no process %s was seen", p))
		}
	}
	return out
}

func (s *session) saw(p capture.Pattern) bool {
	return slices.ContainsFunc(s.order, func(x *subject) bool { return p.Match(x.Name) })
}
