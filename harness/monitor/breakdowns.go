package monitor

import (
	"context"
	"errors"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/capture/detail"
	"github.com/leakgate/leakgate/reporters/record"
)

// breakdowns reads one process at a time with dumpsys meminfo, within a CPU
// budget.
type breakdowns struct {
	*port
	call     call[detail.Detail]
	rotation *rotation
	governor governor
	// reading identifies the process that is being read; it is zero if no
	// process is being read.
	reading capture.Key
	// disturbed is set if a heap dump has suspended the process that is being
	// read.
	disturbed bool

	overhead *overhead
	sampling *sampling
}

func newBreakdowns(p *port, o *overhead) *breakdowns {
	return &breakdowns{port: p, call: newCall[detail.Detail](), rotation: newRotation(p.run.Detail), overhead: o}
}

// nextWake returns the earliest device time at which a reading is due, or next
// if that is earlier.
func (b *breakdowns) nextWake(now, next time.Duration) time.Duration {
	next = min(next, align(now, b.rotation.Slot()))
	if b.call.inFlight {
		return next
	}
	for _, x := range b.subjects.order {
		if x.counts.due > 0 {
			next = min(next, x.counts.due)
		}
	}
	return next
}

// round returns the device time within which each process is read once; period
// returns the device time between two readings.
func (b *breakdowns) round() time.Duration  { return b.rotation.Round() }
func (b *breakdowns) period() time.Duration { return b.rotation.Period() }

// thinned returns the factor by which the period was lengthened to stay within
// the budget.
func (b *breakdowns) thinned() int { return b.governor.thinned }

// paused records that a heap dump suspends a process.
func (b *breakdowns) paused(k capture.Key) { b.disturbed = b.disturbed || b.reading == k }

// want schedules extra readings of a process when its detector demands them.
func (b *breakdowns) want(x *subject, d detector.Demand, now time.Duration) {
	switch {
	case d.Breakdowns == 0:
		b.rotation.Cancel(x.Key())
	case b.rotation.Wanted(x.Key()) == 0 && b.reading != x.Key():
		b.rotation.Want(x.Key(), d.Breakdowns, now, d.Spacing)
	}
}

func (b *breakdowns) send(ctx context.Context, now time.Duration) {
	if b.call.inFlight {
		return
	}
	key, ok := b.countsTurn(now)
	if !ok {
		key, ok = b.rotation.Turn(now)
	}
	if !ok {
		return
	}
	x := b.subjects.byKey[key]
	if x.pause.on {
		return // a suspended process does not respond
	}
	b.reading = key
	process, systemServer, dev := x.Process, b.subjects.systemServer, b.dev
	send(b.port, &b.call, func() (detail.Detail, error) {
		return detail.Read(ctx, dev, dev.Facts, process, systemServer)
	})
}

// countsTurn returns the process whose objects are due to be counted because a
// forced collection has settled. Of several such processes, it returns the one
// that was counted least recently. A count takes the slot of a regular reading,
// which keeps the total number of readings constant. If too many slots have
// been taken already, the count is skipped.
func (b *breakdowns) countsTurn(now time.Duration) (capture.Key, bool) {
	var next *subject
	for _, x := range b.subjects.order {
		switch {
		case x.counts.due == 0 || x.counts.due > now:
		case !x.present || x.pause.on || b.rotation.Resting(x.Key()):
			x.counts.due = 0
		case next == nil || x.counts.latest < next.counts.latest:
			next = x
		}
	}
	if next == nil {
		return capture.Key{}, false
	}
	next.counts.due = 0
	if !b.rotation.Borrow(now) {
		return capture.Key{}, false
	}
	next.counts.latest = max(1, now)
	return next.Key(), true
}

func (b *breakdowns) take(ctx context.Context, a answer[detail.Detail]) {
	b.call.inFlight, b.reading = false, capture.Key{}
	disturbed := b.disturbed
	b.disturbed = false
	d := a.value
	b.overhead.countBreakdown(a.err)
	x := b.subjects.byKey[d.Key()]
	switch {
	case ctx.Err() != nil || stale(b.port, a):
	case a.err == nil && !x.Same(d.Process): // the process has since restarted
		b.silence.requestSucceeded(requestDetail)
	case a.err == nil:
		b.silence.requestSucceeded(requestDetail)
		b.silence.advance(ctx, d.Up, a.after)
		b.record(x, d)
	case errors.Is(a.err, capture.ErrGone):
		// The next scan or round will confirm that the process has ended.
		b.rotation.Skip(b.clock.now())
		b.loop.scanBy(b.clock.now() + rescanDelay)
	case disturbed && errors.Is(a.err, capture.ErrNoAnswer):
		b.rotation.Skip(b.clock.now()) // a heap dump suspends or suspended the process
	case errors.Is(a.err, capture.ErrNoAnswer):
		b.rotation.MarkUnanswered(d.Key())
		b.rotation.Skip(b.clock.now())
		b.sampling.recordFailure(x, detailChannel, "unresponsive", a.err)
	case errors.Is(a.err, capture.ErrDevice):
		b.silence.requestFailed(ctx, requestDetail, a.err)
	default:
		b.rotation.Skip(b.clock.now())
		b.sampling.recordFailure(x, detailChannel, "error", a.err)
	}
}

// record records a successful reading of the detail channel.
func (b *breakdowns) record(x *subject, d detail.Detail) {
	b.rotation.Answered(x.Key())
	x.sampling.lastError[detailChannel] = ""
	b.overhead.addBreakdown(d)
	x.cpu.dump(d.App, d.Spent)
	line := b.newSample(x, d.Up)
	line.Source, line.CostMS = string(capture.Dumpsys), record.Round(d.Took.Seconds()*1000, 3)
	line.Breakdown, line.Warnings = breakdown(d.Block, b.dev.Facts.MemTotal>>10)
	if used := detail.JavaHeapUse(d.Block); used.Known {
		x.response.java, line.Breakdown.JavaAlloc = used, new(used.N>>10)
	}
	for _, w := range d.Warnings {
		line.Warnings = append(line.Warnings, w.Error())
	}
	if x.probe.Level.Source == capture.Dumpsys {
		x.sampling.costMS = line.CostMS
		b.sampling.recordGap(x, d.Up)
	}
	b.sampling.record(x, line)
	b.govern(b.clock.now())
}
