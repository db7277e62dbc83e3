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

// deaths determines why processes have ended.
type deaths struct {
	*port
	call call[record.Death]
	// queue lists the ended lives for which no reason has been read yet;
	// current is the life whose reason is being read.
	queue   []endedProcess
	current endedProcess
	// past lists the lives that ended most recently.
	past []pastProcess
}

func newDeaths(p *port) *deaths { return &deaths{port: p, call: newCall[record.Death]()} }

// open reports whether there are reasons left to read.
func (q *deaths) open() bool { return q.call.inFlight || len(q.queue) > 0 }

func (q *deaths) nextWake(next time.Duration) time.Duration {
	if len(q.queue) > 0 && !q.call.inFlight {
		return min(next, q.queue[0].missed+deathDelay)
	}
	return next
}

// endedProcess is a life that has ended for a reason that is not known yet.
type endedProcess struct {
	subject *subject
	process capture.Process
	// seen is when the process was last seen, and missed is when it was first
	// found missing. Both are times of the session's clock.
	seen, missed time.Duration
	// up is the device's uptime when the process was last seen, or 0 if it is
	// unknown.
	up time.Duration
	// rebooted is set if the device has rebooted since the process was last
	// seen.
	rebooted bool
	// retried is set if the device did not respond to the first attempt,
	// possibly because it was about to reboot.
	retried bool
	// boots is the number of reboots recorded when the end was detected; the
	// times refer to the clock of that boot.
	boots int
}

// pastProcess is a life that has ended, with the number of reboots recorded by
// then.
type pastProcess struct {
	diagnose.KnownProcess
	boots int
}

// note queues a life that has ended.
func (q *deaths) note(x *subject, p capture.Process) {
	now := q.clock.now()
	seen := now
	if x.LastUp > 0 {
		seen = min(now, x.LastUp-q.part.At(0))
	}
	e := endedProcess{
		subject: x, process: p, seen: seen, missed: now, up: x.LastUp, rebooted: x.rebooted, boots: q.boots,
	}
	x.rebooted = false
	q.past = append(q.past[max(0, len(q.past)-maxPast+1):],
		pastProcess{diagnose.KnownProcess{Process: p, Until: q.part.At(now)}, q.boots})
	if len(q.queue) == maxUnread {
		q.record(e, record.Death{Reason: "unknown", Text: "too many processes ended at the same time to read why"})
		return
	}
	q.queue = append(q.queue, e)
}

// undo removes a life from the queue if it turned out not to have ended.
func (q *deaths) undo(p capture.Process) {
	q.queue = slices.DeleteFunc(q.queue,
		func(e endedProcess) bool { return e.process.Key() == p.Key() && e.process.Same(p) })
	q.past = slices.DeleteFunc(q.past, func(e pastProcess) bool { return e.Same(p) })
}

// send reads why the next process in the queue has ended. Only one is read at a
// time.
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
	q.current = endedProcess{}
	switch {
	case a.err != nil && !e.retried:
		e.retried, e.missed = true, q.clock.now()
		q.queue = append(q.queue, e)
		return
	case a.err != nil && e.rebooted:
		d = rebooted
	case a.err != nil:
		d = record.Death{Reason: "unknown", Text: a.err.Error()}
	}
	q.record(e, d)
}

// readAll reads the remaining reasons at the end of the session, as long as the
// device responds.
func (q *deaths) readAll(ctx context.Context) {
	q.findLost(ctx)
	for q.open() {
		if !q.call.inFlight && (ctx.Err() != nil || !q.silence.available()) {
			for _, e := range q.queue {
				d := record.Death{Reason: "unknown", Text: "the run ended before the reason was read"}
				if e.rebooted {
					d = rebooted
				}
				q.record(e, d)
			}
			q.queue = nil
			return
		}
		if !q.call.inFlight {
			// The last death of a run needs the delay as well, because
			// system_server writes exit info late.
			_ = sleep(ctx, q.clock.until(q.queue[0].missed+deathDelay))
		}
		q.send(ctx, 0)
		q.take(<-q.call.done)
	}
}

// findLost checks once more which processes are still running: some may have
// died since their latest sample, which can be a minute old.
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
	ctx, cancel := context.WithTimeout(ctx, deathTimeout)
	defer cancel()
	// An earlier round may still be using the session's Fast.
	rounds, err := capture.NewFast(q.dev).Read(ctx, targets, 0, q.subjects.deadline(targets))
	if err != nil {
		return // nothing is known, so no end is recorded
	}
	for _, r := range rounds {
		for _, reading := range r.Readings {
			if x := q.subjects.byKey[reading.Key()]; x != nil && x.Same(reading.Process) &&
				errors.Is(reading.Err, capture.ErrGone) {
				q.subjects.stopTracking(x, reading.Err)
			}
		}
	}
}

// record records the end of a life.
func (q *deaths) record(e endedProcess, d record.Death) {
	d.Text = withLimit(d, e.subject.limits.headroom)
	event := q.processEvent(e.subject.Account, "death", text.Head(d.Text, maxReason))
	event.PID, event.Reason, event.Lines = e.process.PID, d.Reason, d.Lines
	if !e.rebooted && e.boots == q.boots {
		// The reason is read seconds later, when the next life may have ended
		// as well.
		event.EndedUp = new(record.Round(q.part.At(e.seen).Seconds(), 3))
	}
	q.recordEvent(event)
}

// livesOfApp returns the known lives of all processes of an app, except those
// of the given process.
func (q *deaths) livesOfApp(x *subject) []diagnose.KnownProcess {
	var out []diagnose.KnownProcess
	same := func(p capture.Process) bool {
		return p.User == x.User && p.Package() == x.Package() && !p.Same(x.Process)
	}
	for _, y := range q.subjects.order {
		if y.present && same(y.Process) {
			out = append(out, diagnose.KnownProcess{Process: y.Process})
		}
	}
	for _, p := range q.past {
		if p.boots == q.boots && same(p.Process) {
			out = append(out, p.KnownProcess)
		}
	}
	return out
}
