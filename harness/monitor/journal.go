package monitor

import (
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// moved tells the steps of the processes' machines.
func (s *session) moved(steps []ledger.Entry) {
	for _, t := range steps {
		e := s.naming(t.Of, "jump", t.Reason)
		if !t.Jump() {
			e = s.naming(t.Of, "state", t.Reason)
			e.From, e.To, e.Kind = &t.From, &t.To, t.Kind
		}
		e.T = t.T
		e.Up = record.Round(s.part.At(0).Seconds()+t.T, 3)
		s.tell(e)
		s.stepped(t)
	}
}

func (s *session) line(x *subject, up time.Duration) record.Sample {
	return record.Sample{
		T: s.part.Seconds(up), Up: record.Round(up.Seconds(), 3), Device: s.dev.Serial(),
		User: x.User, Process: x.Key().Name, PID: x.PID, Start: x.Start,
	}
}

func (s *session) naming(a *ledger.Account, event, text string) record.Event {
	return record.Event{Event: event, User: new(a.User), Process: a.Key().Name, PID: a.PID, Text: text}
}

func (s *session) about(x *subject, event, text string) { s.event(s.naming(x.Account, event, text)) }

// event records something that happens now.
func (s *session) event(e record.Event) {
	s.at(e, max(s.part.Up(), s.part.At(s.clock.now())))
}

// at records something that happens at a moment of the device's clock, and tells
// the steps that it causes.
func (s *session) at(e record.Event, up time.Duration) {
	e.T, e.Up = s.part.Seconds(up), record.Round(up.Seconds(), 3)
	if s.tell(e) {
		s.moved(s.part.AddEvent(e))
	}
}

// tell writes an event and shows it. What could not be written is not heard: the
// record of the run is made of its lines.
func (s *session) tell(e record.Event) bool {
	e.Device, e.Text = s.dev.Serial(), s.run.paths.Text(e.Text)
	if c := e.Check; c != nil {
		c.Text = s.run.paths.Text(c.Text)
		for i := range c.Processes {
			c.Processes[i].Text = s.run.paths.Text(c.Processes[i].Text)
		}
	}
	if !s.run.keep(s.run.recorder.Event(e)) {
		return false
	}
	if !slices.Contains([]string{"usage", "headroom", "workload_begin", "workload_end"}, e.Event) {
		s.run.Observer.Happened(e)
	}
	return true
}

// tellUsage writes what watching has cost until now.
func (s *session) tellUsage() {
	s.event(record.Event{Event: "usage", Usage: new(s.usageNow()), Overhead: s.run.own.record()})
}

// row is a process as a table shows it at a moment of the session's clock.
func (s *session) row(x *subject, now time.Duration) Row {
	r := x.row(s.dev.Serial(), now)
	r.Answers, r.Age = s.err == nil && !s.silent.on(), -1
	if x.LastUp > 0 {
		r.Age = max(0, s.part.At(now)-x.LastUp)
	}
	return r
}

func (s *session) rows() []Row {
	now := s.clock.now()
	out := make([]Row, len(s.order))
	for i, x := range s.order {
		out[i] = s.row(x, now)
	}
	return out
}
