package monitor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/diagnose"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// deaths reads why processes have ended.
type deaths struct {
	*port
	call call[record.Death]
	// queue are the incarnations whose reasons are not read yet, current is being read.
	queue   []lostProcess
	current lostProcess
	// past are the latest incarnations that have ended.
	past []pastProcess
}

func newDeaths(p *port) *deaths { return &deaths{port: p, call: newCall[record.Death]()} }

// open reports whether reasons are still to be read.
func (q *deaths) open() bool { return q.call.inFlight || len(q.queue) > 0 }

func (q *deaths) nextWake(next time.Duration) time.Duration {
	if len(q.queue) > 0 && !q.call.inFlight {
		return min(next, q.queue[0].missed+deathDelay)
	}
	return next
}

// lostProcess is an incarnation whose reason is not read yet.
type lostProcess struct {
	subject *subject
	process capture.Process
	// seen and missed are when it was last and first not there, on the session's clock.
	seen, missed time.Duration
	// up is the device's uptime when it was last seen, 0 where that is unknown.
	up time.Duration
	// rebooted: the device is known to have started again since.
	rebooted bool
	// asked says that the device was asked once and did not answer: it may have been about to
	// start again.
	asked bool
	// boots is how often the device had started again when the end was noted: its clock was that of
	// then.
	boots int
}

// pastProcess is an incarnation that has ended, and how often the device had started again by then.
type pastProcess struct {
	diagnose.Incarnation
	boots int
}

// note has the reason read why an incarnation has ended.
func (q *deaths) note(x *subject, p capture.Process) {
	now := q.clock.now()
	seen := now
	if x.LastUp > 0 {
		seen = min(now, x.LastUp-q.part.At(0))
	}
	e := lostProcess{subject: x, process: p, seen: seen, missed: now, up: x.LastUp, rebooted: x.rebooted, boots: q.boots}
	x.rebooted = false
	q.past = append(q.past[max(0, len(q.past)-maxPast+1):], pastProcess{diagnose.Incarnation{Process: p, Until: q.part.At(now)}, q.boots})
	if len(q.queue) == maxUnread {
		q.record(e, record.Death{Reason: "unknown", Text: "too many processes ended at once to read why"})
		return
	}
	q.queue = append(q.queue, e)
}

// undo forgets an end that was none: the same incarnation answers again.
func (q *deaths) undo(p capture.Process) {
	q.queue = slices.DeleteFunc(q.queue, func(e lostProcess) bool { return e.process.Key() == p.Key() && e.process.Same(p) })
	q.past = slices.DeleteFunc(q.past, func(e pastProcess) bool { return e.Same(p) })
}

// send reads why the next process has ended, one at a time.
func (q *deaths) send(ctx context.Context, after time.Duration) {
	if q.call.inFlight || len(q.queue) == 0 || q.clock.now() < q.queue[0].missed+after {
		return
	}
	q.current, q.queue = q.queue[0], q.queue[1:]
	dev, e, since := q.dev, q.current, q.clock.now()-q.current.seen
	send(q.port, &q.call, func() (record.Death, error) { return readDeath(ctx, dev, e, since) })
}

func (q *deaths) take(a answer[record.Death]) {
	q.call.inFlight = false
	e, d := q.current, a.value
	q.current = lostProcess{}
	switch {
	case a.err != nil && !e.asked:
		e.asked, e.missed = true, q.clock.now()
		q.queue = append(q.queue, e)
		return
	case a.err != nil && e.rebooted:
		d = rebooted
	case a.err != nil:
		d = record.Death{Reason: "unknown", Text: a.err.Error()}
	}
	q.record(e, d)
}

// readAll reads at the end of the session why the last processes have ended, as long as
// the device answers.
func (q *deaths) readAll(ctx context.Context) {
	q.findLost(ctx)
	for q.open() {
		if !q.call.inFlight && (ctx.Err() != nil || !q.silence.available()) {
			for _, e := range q.queue {
				d := record.Death{Reason: "unknown", Text: "the run ended before the device was asked why"}
				if e.rebooted {
					d = rebooted
				}
				q.record(e, d)
			}
			q.queue = nil
			return
		}
		if !q.call.inFlight {
			// system_server needs its time also for the last death of a run.
			_ = nap(ctx, q.clock.until(q.queue[0].missed+deathDelay))
		}
		q.send(ctx, 0)
		q.take(<-q.call.done)
	}
}

// findLost looks once more whether the processes are there: some may have died since they were last
// sampled, up to a minute before.
func (q *deaths) findLost(ctx context.Context) {
	if ctx.Err() != nil || !q.silence.available() {
		return
	}
	var targets []capture.Target
	for _, x := range q.subjects.order {
		if x.present {
			targets = append(targets, x.target())
		}
	}
	if len(targets) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askDeath)
	defer cancel()
	rounds, err := capture.NewFast(q.dev).Read(ctx, targets, 0, q.subjects.deadline(targets)) // an earlier round may still use the session's own
	if err != nil {
		return // what is not known is not recorded
	}
	for _, r := range rounds {
		for _, reading := range r.Readings {
			if x := q.subjects.byKey[reading.Key()]; x != nil && x.Same(reading.Process) && errors.Is(reading.Err, capture.ErrGone) {
				q.subjects.stopTracking(x, reading.Err)
			}
		}
	}
}

// record records the end of an incarnation.
func (q *deaths) record(e lostProcess, d record.Death) {
	d.Text = withLimit(d, e.subject.limits.room)
	event := q.naming(e.subject.Account, "death", text.Head(d.Text, maxReason))
	event.PID, event.Reason, event.Lines = e.process.PID, d.Reason, d.Lines
	if !e.rebooted && e.boots == q.boots {
		// The reason is read seconds later, when the next incarnation may have ended as well.
		event.EndedUp = new(record.Round(q.part.At(e.seen).Seconds(), 3))
	}
	q.event(event)
}

// incarnationsOfApp are those of the app of a process that the session knows, but for that of the
// process itself.
func (q *deaths) incarnationsOfApp(x *subject) []diagnose.Incarnation {
	var out []diagnose.Incarnation
	same := func(p capture.Process) bool {
		return p.User == x.User && p.Package() == x.Package() && !p.Same(x.Process)
	}
	for _, y := range q.subjects.order {
		if y.present && same(y.Process) {
			out = append(out, diagnose.Incarnation{Process: y.Process})
		}
	}
	for _, p := range q.past {
		if p.boots == q.boots && same(p.Process) {
			out = append(out, p.Incarnation)
		}
	}
	return out
}
