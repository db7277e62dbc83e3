package monitor

import (
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// journal records the events and samples of one device. A line is judged only
// after it has been written.
type journal struct {
	run    *run
	device string
	clock  clock
	part   *ledger.Part
	loop   loop
	// faults holds the latest recorded error for each kind of request.
	faults map[requestKind]string
}

// recordTransitions records transitions of detectors.
func (j *journal) recordTransitions(steps []ledger.Entry) {
	for _, t := range steps {
		e := j.processEvent(t.Of, "jump", t.Reason)
		if !t.Jump() {
			e = j.processEvent(t.Of, "state", t.Reason)
			e.From, e.To, e.Kind = &t.From, &t.To, t.Kind
		}
		e.T = t.T
		e.Up = record.Round(j.part.At(0).Seconds()+t.T, 3)
		j.write(e)
		j.loop.transitioned(t)
	}
}

func (j *journal) newSample(x *subject, up time.Duration) record.Sample {
	return record.Sample{
		T: j.part.Seconds(up), Up: record.Round(up.Seconds(), 3), Device: j.device,
		User: x.User, Process: x.Key().Name, PID: x.PID, Start: x.Start,
	}
}

func (j *journal) processEvent(a *ledger.Account, event, text string) record.Event {
	return record.Event{Event: event, User: new(a.User), Process: a.Key().Name, PID: a.PID, Text: text}
}

func (j *journal) recordProcessEvent(x *subject, event, text string) {
	j.recordEvent(j.processEvent(x.Account, event, text))
}

// recordEvent records an event with the present time.
func (j *journal) recordEvent(e record.Event) {
	j.recordEventAt(e, max(j.part.Up(), j.part.At(j.clock.now())))
}

// recordEventAt records an event with the given time of the device's clock, and
// the transitions that the event causes.
func (j *journal) recordEventAt(e record.Event, up time.Duration) {
	e.T, e.Up = j.part.Seconds(up), record.Round(up.Seconds(), 3)
	if j.write(e) {
		j.recordTransitions(j.part.AddEvent(e))
	}
}

// write writes and displays an event. It returns false if the event could not
// be written. Such an event is not judged, because the result of a run is
// derived from the lines that were written.
func (j *journal) write(e record.Event) bool {
	e.Device, e.Text = j.device, j.run.paths.Text(e.Text)
	if c := e.Check; c != nil {
		c.Text = j.run.paths.Text(c.Text)
		for i := range c.Processes {
			c.Processes[i].Text = j.run.paths.Text(c.Processes[i].Text)
		}
	}
	if !j.run.checkWrite(j.run.recorder.AppendEvent(e)) {
		return false
	}
	if !slices.Contains([]string{"usage", "headroom", "workload_begin", "workload_end"}, e.Event) {
		j.run.Observer.Happened(e)
	}
	return true
}

// row returns the table row of a process at the given time on the session's
// clock.
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

// recordFault records an error of one kind of request. Further errors are not
// recorded until a request of that kind succeeds.
func (j *journal) recordFault(kind requestKind, err error) {
	if j.faults[kind] != "" {
		return
	}
	j.faults[kind] = err.Error()
	j.recordEvent(record.Event{Event: "error", Text: err.Error()})
}

// clearFault records that a request has succeeded, so that its next error is
// recorded.
func (j *journal) clearFault(kind requestKind) { delete(j.faults, kind) }
