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
	// maxSubjects bounds the processes of one device under watch.
	maxSubjects = 500
	// maxBacks is how often one incarnation may be told gone and back: a device may
	// contradict itself all night.
	maxBacks = 3
)

// subjects are the processes that are watched, in the order in which they were found.
type subjects struct {
	*port
	byKey map[capture.Key]*subject
	order []*subject
	// systemServer is the pid of system_server at the latest look.
	systemServer int

	rotation *rotation
	builds   *builds
	deaths   *deaths
}

// targets returns the processes that are there and that no heap dump stops.
func (w *subjects) targets() []capture.Target {
	var out []capture.Target
	for _, x := range w.order {
		if x.present && !x.pause.on {
			out = append(out, x.target())
		}
	}
	return out
}

// watched reports whether this incarnation is under watch.
func (w *subjects) watched(p capture.Process) bool {
	x := w.byKey[p.Key()]
	return x != nil && x.present && x.Same(p)
}

// incarnation is the subject of a process that is or was under watch; nil for none.
func (w *subjects) incarnation(p capture.Process) *subject {
	for _, x := range w.order {
		if x.User == p.User && x.Name == p.Name && x.Same(p) {
			return x
		}
	}
	return nil
}

// reconcile takes a process that a look has found: a new one, one that has come back
// as another incarnation, or one that is under watch already.
func (w *subjects) reconcile(p capture.Process, probe capture.Probe) {
	x := w.byKey[p.Key()]
	switch {
	case x == nil && len(w.order) >= maxSubjects:
		w.recordFault(faultCrowd, fmt.Errorf("more than %d processes have the names that are watched; the others are not watched", maxSubjects))
	case x == nil:
		x = &subject{Account: w.part.Open(p), probe: probe}
		w.byKey[p.Key()] = x
		w.order = append(w.order, x)
		w.startTracking(x)
		w.event(w.identity(x, "found", foundText(p, probe)))
	case !x.Same(p):
		old := x.PID
		if x.present { // nobody has seen its end
			w.deaths.note(x, x.Process)
		}
		x.response = responseTo{snapshot: x.response.snapshot, early: x.response.early}
		x.Process, x.probe, x.backs, x.hasChild = p, probe, 0, false
		w.startTracking(x)
		// At the latest reading and not now: what is read next is never before it.
		w.at(w.identity(x, "restart", fmt.Sprintf("pid %d is pid %d now; a new series begins", old, p.PID)), w.part.Up())
	case !x.present:
		w.deaths.undo(p)
		w.startTracking(x)
		w.setLevel(x, probe)
		if x.backs++; x.backs <= maxBacks {
			w.about(x, "back", fmt.Sprintf("pid %d", p.PID))
		}
	}
}

func (w *subjects) startTracking(x *subject) {
	x.present, x.met, x.sampling.failures, x.sampling.hung, x.sampling.said = true, time.Now(), 0, 0, [2]string{}
	x.sampling.due = w.clock.now()
	w.builds.want(x.Process)
	w.rotation.Add(x.Key())
	w.rotation.Answered(x.Key())
}

// stopTracking takes a process that has ended.
func (w *subjects) stopTracking(x *subject, err error) {
	if !x.present {
		return
	}
	x.present = false
	w.deaths.note(x, x.Process)
	w.rotation.Remove(x.Key())
	w.loop.lookBy(w.clock.now() + discoverSoon)
	if x.backs <= maxBacks {
		w.about(x, "gone", goneText(x.PID, err))
	}
}

// setLevel changes how a process is read.
func (w *subjects) setLevel(x *subject, probe capture.Probe) {
	was, provisional := x.probe, x.provisional
	x.probe, x.provisional = probe, false
	switch {
	case probe.Level != was.Level:
		w.at(w.identity(x, "level", fmt.Sprintf("read by %s instead of %s", probe.Level.Source, was.Level.Source)), w.part.Up())
	case provisional:
		w.event(w.identity(x, "probed", fmt.Sprintf("read by %s", probe.Level.Source)))
	}
}

// identity is an event that says who a process is from now on and how it is read.
func (w *subjects) identity(x *subject, event, text string) record.Event {
	e := w.naming(x.Account, event, text)
	e.Start, e.Source, e.Reasons = x.Start, string(x.probe.Level.Source), x.probe.Reasons()
	return e
}

// restarted notes that the device has started again.
func (w *subjects) restarted() {
	for _, x := range w.order {
		x.rebooted = x.present
	}
}

func (w *subjects) anyPresent() bool {
	return slices.ContainsFunc(w.order, func(x *subject) bool { return x.present })
}

// interval is the shortest that any machine wants at present, in device time.
func (w *subjects) interval() time.Duration {
	shortest := discoverEvery
	for _, x := range w.order {
		if x.present {
			shortest = min(shortest, x.Detector.Demand().Interval)
		}
	}
	return shortest
}

// foundText is what is recorded of a process that is new.
func foundText(p capture.Process, probe capture.Probe) string {
	if p.Twin > 1 {
		return fmt.Sprintf("pid %d of uid %d, which runs beside another process of this name, read by %s", p.PID, p.UID, probe.Level.Source)
	}
	return fmt.Sprintf("pid %d, read by %s", p.PID, probe.Level.Source)
}

// goneText is which incarnation is gone: the line names the process already.
func goneText(pid int, err error) string {
	if errors.Is(err, capture.ErrGone) {
		return fmt.Sprintf("pid %d", pid)
	}
	return err.Error()
}

// deadline is the real time that one round may take: smaps costs seconds per
// process on an old phone, everything else milliseconds. It stays below the
// interval, so that a device that has fallen silent is noticed within one.
func (w *subjects) deadline(targets []capture.Target) time.Duration {
	d := min(max(w.clock.real(w.interval()), 3*time.Second), 10*time.Second)
	for _, t := range targets {
		if t.Level.Source == capture.Smaps {
			d += 5 * time.Second
		}
	}
	return d
}
