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

// errNotResponding is returned for a device that does not respond at present.
var errNotResponding = errors.New("the device does not respond")

// Discover scans every device for processes now. It returns when every process
// found is watched and the end of each missing process is recorded. It returns
// an error if a device does not respond.
func (w *LiveRun) Discover(ctx context.Context) error {
	return w.discover(ctx, w.run.sessions)
}

func (w *LiveRun) discover(ctx context.Context, on []*session) error {
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
			return fmt.Errorf("look for processes: %w", errRunEnded)
		case <-ctx.Done():
			return fmt.Errorf("look for processes: %w", context.Cause(ctx))
		}
	}
	return nil
}

// ProcessSnapshot holds the resource usage of one process at one point in time.
// Values that could not be read are nil; Reasons explains why.
type ProcessSnapshot struct {
	Device, Process string
	User, PID       int
	// Start is the start time of the process in clock ticks of the device.
	// Together with the pid it identifies the process.
	Start uint64
	// Objects holds the object counts that dumpsys meminfo prints after a
	// garbage collection: Activities, Views and so on. It is nil if they are
	// unknown.
	Objects map[string]int64
	// Threads and Files are the numbers of threads and of open file
	// descriptors.
	Threads, Files *int64
	// Breakdown is the memory of the process by kind. PSS is the Pss including
	// swap, in kB.
	Breakdown record.Breakdown
	PSS       *int64
	Reasons   []string
}

// Snapshot reads the resources that a process uses now. device may be "" if
// there is only one device. It returns an error if the process is not running
// or the device does not respond.
func (w *LiveRun) Snapshot(ctx context.Context, device, process string) (ProcessSnapshot, error) {
	s, target, err := w.runningProcess(ctx, device, process)
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

// readHeadroom reads the numbers of threads and files. If the device refuses a
// value, the reason is added to Reasons.
func (snap *ProcessSnapshot) readHeadroom(ctx context.Context, s *session, target capture.Target) error {
	rooms, err := s.limits.readNow(ctx, target)
	switch {
	case err != nil:
		return err
	case len(rooms) != 1:
		snap.Reasons = append(snap.Reasons, "threads and files: the device returned none")
		return nil
	case errors.Is(rooms[0].Err, capture.ErrGone):
		return rooms[0].Err
	}
	snap.Threads, snap.Files = number(rooms[0].Threads), number(rooms[0].Files)
	snap.Reasons = append(snap.Reasons, rooms[0].Reasons...)
	return nil
}

// totalOf returns the sum of Pss and swap in a breakdown, or nil if either is
// unknown.
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

// pausePoll is the interval, in wall-clock time, at which LiveRun checks
// whether a heap dump still suspends a process.
const pausePoll = 50 * time.Millisecond

// runningProcess returns a process that is running and is not suspended by a
// heap dump. If a dump is in progress, it waits until the dump ends.
func (w *LiveRun) runningProcess(ctx context.Context, device, process string) (*session, capture.Target, error) {
	for {
		var of *session
		var target capture.Target
		paused := false
		err := w.withProcess(device, process,
			func(s *session, x *subject) { of, target, paused = s, x.target(), x.pause.on })
		if err != nil || !paused {
			return of, target, err
		}
		if err := sleep(ctx, pausePoll); err != nil {
			return nil, target, err
		}
	}
}

// Settle waits until a process that is left alone from now on has completed its
// work in progress. It waits for 5 s of device time, then at most another 10 s
// for the object counts to become stable. It reports whether the counts became
// stable.
func (w *LiveRun) Settle(ctx context.Context, device, process string) (settled bool, err error) {
	s, target, err := w.runningProcess(ctx, device, process)
	if err != nil {
		return false, fmt.Errorf("settle %s: %w", process, err)
	}
	settled = settle(ctx, s.dev, s.clock, target.Process, time.Now())
	if ctx.Err() != nil {
		return false, fmt.Errorf("settle %s: %w", process, context.Cause(ctx))
	}
	return settled, nil
}

// RunWorkload runs another workload on one device, or on all devices if device
// is "". It returns when the workload or the run ends, or when ctx is done. The
// output is written to a separate log in the run directory. RunWorkload returns
// an error if the workload failed or could not start.
func (w *LiveRun) RunWorkload(ctx context.Context, device string, load Workload) (record.Workload, error) {
	env, err := w.run.workloads.newEnv()
	if err != nil {
		return load.Describe(), err
	}
	if device != "" {
		env.Devices = slices.DeleteFunc(env.Devices, func(d capture.Device) bool { return d.Serial() != device })
	}
	if len(env.Devices) == 0 {
		return load.Describe(),
			errors.Join(fmt.Errorf("run %s: the run has no device %s", load.Describe().Kind,
				text.Quote(device, maxMarkShown)), env.Output.Close())
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
	w.run.workloads.begin(&env, load.Describe())
	rec, err := load.Run(ctx, env)
	env.workloadEnded("")
	err = errors.Join(err, env.Output.Close())
	if err != nil {
		rec.Error = text.Head(w.run.paths.Error(err), maxReason)
	}
	w.run.postEvent(device, record.Event{Event: "workload", Text: workloadText(rec), Workload: &rec})
	return rec, err
}

func workloadText(w record.Workload) string {
	if w.Error != "" {
		return w.Kind + " failed: " + w.Error
	}
	return w.Kind + " ended"
}
