package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/detail"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// errSilent is a device that does not answer at present.
var errSilent = errors.New("the device does not respond")

// Look searches every device for processes now, and returns once all that were found are
// watched and the end of those that are gone is noticed. The error is a device that does not
// answer.
func (w *LiveRun) Look(ctx context.Context) error {
	return w.look(ctx, w.run.sessions)
}

func (w *LiveRun) look(ctx context.Context, on []*session) error {
	answers := make([]chan error, len(on))
	for i, s := range on {
		answers[i] = make(chan error, 1)
		err := s.ask(func() { s.discovery.request(answers[i]) })
		if err != nil {
			return fmt.Errorf("look for processes: %w", err)
		}
	}
	for i, s := range on {
		select {
		case err := <-answers[i]:
			if err != nil {
				return fmt.Errorf("look for processes: %w", err)
			}
		case <-s.over:
			return fmt.Errorf("look for processes: %w", errOver)
		case <-ctx.Done():
			return fmt.Errorf("look for processes: %w", context.Cause(ctx))
		}
	}
	return nil
}

// ProcessSnapshot is what one process holds at one moment. What could not be read is missing, and
// Reasons say why.
type ProcessSnapshot struct {
	Device, Process string
	User, PID       int
	// Start is when the process started, in clock ticks of the device: with the pid it
	// identifies the process.
	Start uint64
	// Objects counts what dumpsys meminfo counts, after a garbage collection: Activities,
	// Views and so on; nil where unknown.
	Objects map[string]int64
	// Threads and Files count its threads and open file descriptors.
	Threads, Files *int64
	// Breakdown is where its memory is, PSS its Pss and swap together in kB.
	Breakdown record.Breakdown
	PSS       *int64
	Reasons   []string
}

// Snapshot reads what a process holds now. The device may be "" where there is one. The error
// is a process that is not there, or a device that does not answer.
func (w *LiveRun) Snapshot(ctx context.Context, device, process string) (ProcessSnapshot, error) {
	s, target, err := w.free(ctx, device, process)
	if err != nil {
		return ProcessSnapshot{}, fmt.Errorf("read %s: %w", process, err)
	}
	d, err := detail.Read(ctx, s.dev, s.dev.Facts, target.Process, 0)
	if err != nil {
		return ProcessSnapshot{}, fmt.Errorf("read %s: %w", process, err)
	}
	parts, warnings := breakdown(d.Block, s.dev.Facts.MemTotal>>10)
	snap := ProcessSnapshot{
		Device: s.dev.Serial(), Process: process, User: target.User, PID: target.PID, Start: target.Start,
		Breakdown: *parts, Objects: objects(d.Block.Objects), Reasons: warnings,
	}
	snap.PSS = totalOf(snap.Breakdown)
	if err := snap.readHeadroom(ctx, s, target); err != nil {
		return ProcessSnapshot{}, fmt.Errorf("read %s: %w", process, err)
	}
	return snap, nil
}

// readHeadroom reads threads and files. What the device refuses is a reason, and no error.
func (snap *ProcessSnapshot) readHeadroom(ctx context.Context, s *session, target capture.Target) error {
	rooms, err := s.limits.readNow(ctx, target)
	switch {
	case err != nil:
		return err
	case len(rooms) != 1:
		snap.Reasons = append(snap.Reasons, "threads and files: the device did not say")
		return nil
	case errors.Is(rooms[0].Err, capture.ErrGone):
		return rooms[0].Err
	}
	snap.Threads, snap.Files = number(rooms[0].Threads), number(rooms[0].Files)
	snap.Reasons = append(snap.Reasons, rooms[0].Reasons...)
	return nil
}

// totalOf is Pss and swap of a breakdown together, nil where either is unknown.
func totalOf(b record.Breakdown) *int64 {
	switch {
	case b.TotalPSS == nil || b.SwapInTotal == nil:
		return nil
	case *b.SwapInTotal:
		return b.TotalPSS
	case b.SwapPSS == nil:
		return nil
	}
	return new(*b.TotalPSS + *b.SwapPSS)
}

// pauseStep is the real time between two looks whether a heap dump still stops a process.
const pauseStep = 50 * time.Millisecond

// free returns a process that is there, once no heap dump stops it.
func (w *LiveRun) free(ctx context.Context, device, process string) (*session, capture.Target, error) {
	for {
		var of *session
		var target capture.Target
		paused := false
		err := w.of(device, process, func(s *session, x *subject) { of, target, paused = s, x.target(), x.pause.on })
		if err != nil || !paused {
			return of, target, err
		}
		if err := nap(ctx, pauseStep); err != nil {
			return nil, target, err
		}
	}
}

// Settle waits until a process that is left alone from now on has released what it had in
// flight: 5 s of quiet, then counts of objects that stand still, for 10 s at most, in time of
// the device. It returns false where they do not stand still.
func (w *LiveRun) Settle(ctx context.Context, device, process string) (settled bool, err error) {
	s, target, err := w.free(ctx, device, process)
	if err != nil {
		return false, fmt.Errorf("settle %s: %w", process, err)
	}
	settled = settle(ctx, s.dev, s.clock, target.Process, time.Now())
	if ctx.Err() != nil {
		return false, fmt.Errorf("settle %s: %w", process, context.Cause(ctx))
	}
	return settled, nil
}

// Stress runs a workload beside the run, on one device or with "" on all, until it is done or
// ctx ends. Its output is in a log of its own in the run directory. The error is a workload
// that failed or could not begin.
func (w *LiveRun) Stress(ctx context.Context, device string, load Workload) (record.Workload, error) {
	stage, err := w.run.workloads.stage()
	if err != nil {
		return load.Describe(), err
	}
	if device != "" {
		stage.Devices = slices.DeleteFunc(stage.Devices, func(d capture.Device) bool { return d.Serial() != device })
	}
	if len(stage.Devices) == 0 {
		return load.Describe(), errors.Join(fmt.Errorf("run %s: the run has no device %s", load.Describe().Kind, text.Quote(device, maxMarkShown)), stage.Output.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-w.ended:
			stop()
		case <-ctx.Done():
		}
	}()
	w.run.workloads.begin(&stage, load.Describe())
	rec, err := load.Run(ctx, stage)
	stage.over("")
	err = errors.Join(err, stage.Output.Close())
	if err != nil {
		rec.Error = text.Head(w.run.paths.Error(err), maxReason)
	}
	w.run.note(device, record.Event{Event: "workload", Text: workloadText(rec), Workload: &rec})
	return rec, err
}

func workloadText(w record.Workload) string {
	if w.Error != "" {
		return w.Kind + " failed: " + w.Error
	}
	return w.Kind + " ended"
}
