package monitor

import (
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// journal records what happens on one device. Its lines are written first, and then judged.
type journal struct {
	run    *run
	device string
	clock  clock
	part   *ledger.Part
	loop   loop
	// faults are the texts last recorded of each kind of request.
	faults map[requestKind]string
}

// recordTransitions tells the steps of the processes' machines.
func (j *journal) recordTransitions(steps []ledger.Entry) {
	for _, t := range steps {
		e := j.naming(t.Of, "jump", t.Reason)
		if !t.Jump() {
			e = j.naming(t.Of, "state", t.Reason)
			e.From, e.To, e.Kind = &t.From, &t.To, t.Kind
		}
		e.T = t.T
		e.Up = record.Round(j.part.At(0).Seconds()+t.T, 3)
		j.write(e)
		j.loop.transitioned(t)
	}
}

func (j *journal) line(x *subject, up time.Duration) record.Sample {
	return record.Sample{
		T: j.part.Seconds(up), Up: record.Round(up.Seconds(), 3), Device: j.device,
		User: x.User, Process: x.Key().Name, PID: x.PID, Start: x.Start,
	}
}

func (j *journal) naming(a *ledger.Account, event, text string) record.Event {
	return record.Event{Event: event, User: new(a.User), Process: a.Key().Name, PID: a.PID, Text: text}
}

func (j *journal) about(x *subject, event, text string) { j.event(j.naming(x.Account, event, text)) }

// event records something that happens now.
func (j *journal) event(e record.Event) {
	j.at(e, max(j.part.Up(), j.part.At(j.clock.now())))
}

// at records something that happens at a moment of the device's clock, and tells
// the steps that it causes.
func (j *journal) at(e record.Event, up time.Duration) {
	e.T, e.Up = j.part.Seconds(up), record.Round(up.Seconds(), 3)
	if j.write(e) {
		j.recordTransitions(j.part.AddEvent(e))
	}
}

// write writes an event and shows it. What could not be written is not heard: the
// record of the run is made of its lines.
func (j *journal) write(e record.Event) bool {
	e.Device, e.Text = j.device, j.run.paths.Text(e.Text)
	if c := e.Check; c != nil {
		c.Text = j.run.paths.Text(c.Text)
		for i := range c.Processes {
			c.Processes[i].Text = j.run.paths.Text(c.Processes[i].Text)
		}
	}
	if !j.run.keep(j.run.recorder.Event(e)) {
		return false
	}
	if !slices.Contains([]string{"usage", "headroom", "workload_begin", "workload_end"}, e.Event) {
		j.run.Observer.Happened(e)
	}
	return true
}

// row is a process as a table shows it at a moment of the session's clock.
func (s *session) row(x *subject, now time.Duration) Row {
	r := x.row(s.dev.Serial(), now)
	r.Answers, r.Age = s.silence.available(), -1
	if x.LastUp > 0 {
		r.Age = max(0, s.part.At(now)-x.LastUp)
	}
	return r
}

func (s *session) rows() []Row {
	now := s.clock.now()
	out := make([]Row, len(s.subjects.order))
	for i, x := range s.subjects.order {
		out[i] = s.row(x, now)
	}
	return out
}

// recordFault records a fault of one kind of request once, until one succeeds.
func (j *journal) recordFault(kind requestKind, err error) {
	if j.faults[kind] != "" {
		return
	}
	j.faults[kind] = err.Error()
	j.event(record.Event{Event: "error", Text: err.Error()})
}

// clearFault notes a request that succeeded.
func (j *journal) clearFault(kind requestKind) { delete(j.faults, kind) }
