package monitor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// maxSubjects bounds the number of watched processes of one device.
	maxSubjects = 500
	// maxBacks bounds how many times the record states that one life
	// disappeared and came back, because a device may report contradictory
	// states for hours.
	maxBacks = 3
)

// subjects are the watched processes, in the order in which they were found.
type subjects struct {
	*port
	byKey map[capture.Key]*subject
	order []*subject
	// systemServer is the pid of system_server at the latest scan.
	systemServer int

	rotation *rotation
	builds   *builds
	deaths   *deaths
}

// targets returns the processes that are running and not suspended by a heap
// dump.
func (w *subjects) targets() []capture.Target {
	var out []capture.Target
	for _, x := range w.order {
		if x.present && !x.pause.on {
			out = append(out, x.target())
		}
	}
	return out
}

// watched reports whether this life is watched.
func (w *subjects) watched(p capture.Process) bool {
	x := w.byKey[p.Key()]
	return x != nil && x.present && x.Same(p)
}

// life returns the subject of a process that is or was watched, or nil if there
// is none.
func (w *subjects) life(p capture.Process) *subject {
	for _, x := range w.order {
		if x.User == p.User && x.Name == p.Name && x.Same(p) {
			return x
		}
	}
	return nil
}

// reconcile updates the subjects with a process that a scan found. It may be a
// new process, a new life, or a process that is already watched.
func (w *subjects) reconcile(p capture.Process, probe capture.Probe) {
	x := w.byKey[p.Key()]
	switch {
	case x == nil && len(w.order) >= maxSubjects:
		w.recordFault(faultCrowd,
			fmt.Errorf("more than %d processes match the watched names; the others are not watched", maxSubjects))
	case x == nil:
		x = &subject{Account: w.part.Open(p), probe: probe}
		w.byKey[p.Key()] = x
		w.order = append(w.order, x)
		w.startTracking(x)
		w.recordEvent(w.identity(x, "found", foundText(p, probe)))
	case !x.Same(p):
		old := x.PID
		if x.present { // the end of the old life was not detected
			w.deaths.note(x, x.Process)
		}
		x.response = responseState{snapshotAt: x.response.snapshotAt, startupSnapshotAt: x.response.startupSnapshotAt}
		x.Process, x.probe, x.returns, x.childRecorded = p, probe, 0, false
		w.startTracking(x)
		// The event has the time of the latest reading and not the present
		// time, so no reading of the new life has an earlier time than the
		// event.
		w.recordEventAt(w.identity(x, "restart",
			fmt.Sprintf("pid %d replaced by pid %d; a new series begins", old, p.PID)), w.part.Up())
	case !x.present:
		w.deaths.undo(p)
		w.startTracking(x)
		w.setLevel(x, probe)
		if x.returns++; x.returns <= maxBacks {
			w.recordProcessEvent(x, "back", fmt.Sprintf("pid %d", p.PID))
		}
	}
}

func (w *subjects) startTracking(x *subject) {
	x.present, x.foundAt, x.sampling.failures, x.sampling.unanswered, x.sampling.lastError = true, time.Now(), 0, 0,
		[2]string{}
	x.sampling.due = w.clock.now()
	w.builds.want(x.Process)
	w.rotation.Add(x.Key())
	w.rotation.Answered(x.Key())
}

// stopTracking handles the end of a process.
func (w *subjects) stopTracking(x *subject, err error) {
	if !x.present {
		return
	}
	x.present = false
	w.deaths.note(x, x.Process)
	w.rotation.Remove(x.Key())
	w.loop.scanBy(w.clock.now() + rescanDelay)
	if x.returns <= maxBacks {
		w.recordProcessEvent(x, "gone", goneText(x.PID, err))
	}
}

// setLevel changes how a process is read.
func (w *subjects) setLevel(x *subject, probe capture.Probe) {
	was, provisional := x.probe, x.provisional
	x.probe, x.provisional = probe, false
	switch {
	case probe.Level != was.Level:
		w.recordEventAt(w.identity(x, "level",
			fmt.Sprintf("memory source %s instead of %s", probe.Level.Source, was.Level.Source)), w.part.Up())
	case provisional:
		w.recordEvent(w.identity(x, "probed", fmt.Sprintf("memory source %s", probe.Level.Source)))
	}
}

// identity returns an event that records the present life of a process and how
// the process is read.
func (w *subjects) identity(x *subject, event, text string) record.Event {
	e := w.processEvent(x.Account, event, text)
	e.Start, e.Source, e.Reasons = x.Start, string(x.probe.Level.Source), x.probe.Reasons()
	return e
}

// restarted records that the device has rebooted.
func (w *subjects) restarted() {
	for _, x := range w.order {
		x.rebooted = x.present
	}
}

func (w *subjects) anyPresent() bool {
	return slices.ContainsFunc(w.order, func(x *subject) bool { return x.present })
}

// interval returns the shortest sampling interval that any detector currently
// demands, but at most scanInterval, in device time.
func (w *subjects) interval() time.Duration {
	shortest := scanInterval
	for _, x := range w.order {
		if x.present {
			shortest = min(shortest, x.Detector.Demand().Interval)
		}
	}
	return shortest
}

// foundText describes a new process.
func foundText(p capture.Process, probe capture.Probe) string {
	if p.Twin > 1 {
		return fmt.Sprintf("pid %d of uid %d, one of several processes with the same name, memory source %s", p.PID,
			p.UID, probe.Level.Source)
	}
	return fmt.Sprintf("pid %d, memory source %s", p.PID, probe.Level.Source)
}

// goneText describes how the life ended; the event itself names the process.
func goneText(pid int, err error) string {
	if errors.Is(err, capture.ErrGone) {
		return fmt.Sprintf("pid %d", pid)
	}
	return err.Error()
}

// deadline returns the wall-clock time that one round may take. On an old
// phone, reading smaps takes seconds per process, while all other readings take
// milliseconds. Otherwise the deadline is the sampling interval, but at least 3
// s and at most 10 s, so an outage is detected early.
func (w *subjects) deadline(targets []capture.Target) time.Duration {
	d := min(max(w.clock.real(w.interval()), 3*time.Second), 10*time.Second)
	for _, t := range targets {
		if t.Level.Source == capture.Smaps {
			d += 5 * time.Second
		}
	}
	return d
}
