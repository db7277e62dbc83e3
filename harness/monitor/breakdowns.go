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

// breakdowns reads one process at a time with dumpsys meminfo, within a budget.
type breakdowns struct {
	*port
	call     call[detail.Detail]
	rotation *rotation
	governor governor
	// reading is the process that is being read; zero for none.
	reading capture.Key
	// disturbed: a heap dump has stopped the process that is being read.
	disturbed bool

	overhead *overhead
	sampling *sampling
}

func newBreakdowns(p *port, o *overhead) *breakdowns {
	return &breakdowns{port: p, call: newCall[detail.Detail](), rotation: newRotation(p.run.Detail), overhead: o}
}

// nextWake is the earliest device time at which a process is due, at most next.
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

// round is the device time in which every process has had its turn, period that between two turns.
func (b *breakdowns) round() time.Duration  { return b.rotation.Round() }
func (b *breakdowns) period() time.Duration { return b.rotation.Period() }

// thinned is how often the budget has made the period longer.
func (b *breakdowns) thinned() int { return b.governor.thinned }

// paused notes that a heap dump stops a process.
func (b *breakdowns) paused(k capture.Key) { b.disturbed = b.disturbed || b.reading == k }

// want has a process read out of turn as often as its detector demands.
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
		return // a stopped process does not answer
	}
	b.reading = key
	process, systemServer, dev := x.Process, b.subjects.systemServer, b.dev
	send(b.port, &b.call, func() (detail.Detail, error) {
		return detail.Read(ctx, dev, dev.Facts, process, systemServer)
	})
}

// countsTurn is the process whose objects are to be counted now because a collection has settled:
// of several the one that was counted the longest time ago. Such a reading takes the place of one
// of the round, so that breakdowns do not become more; where those to come are spent, it is left
// out.
func (b *breakdowns) countsTurn(now time.Duration) (capture.Key, bool) {
	var next *subject
	for _, x := range b.subjects.order {
		switch {
		case x.counts.due == 0 || x.counts.due > now:
		case !x.present || x.pause.on || b.rotation.Rests(x.Key()):
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
	case a.err == nil && !x.Same(d.Process): // it has restarted meanwhile
		b.silence.requestSucceeded(requestDetail)
	case a.err == nil:
		b.silence.requestSucceeded(requestDetail)
		b.silence.advance(ctx, d.Up, a.after)
		b.record(x, d)
	case errors.Is(a.err, capture.ErrGone):
		// Where that is so, a look or a round finds it too.
		b.rotation.Skip(b.clock.now())
		b.loop.lookBy(b.clock.now() + discoverSoon)
	case disturbed && errors.Is(a.err, capture.ErrNoAnswer):
		b.rotation.Skip(b.clock.now()) // its heap is dumped, or was
	case errors.Is(a.err, capture.ErrNoAnswer):
		b.rotation.Hung(d.Key())
		b.rotation.Skip(b.clock.now())
		b.sampling.recordFailure(x, detailChannel, "unresponsive", a.err)
	case errors.Is(a.err, capture.ErrDevice):
		b.silence.requestFailed(ctx, requestDetail, a.err)
	default:
		b.rotation.Skip(b.clock.now())
		b.sampling.recordFailure(x, detailChannel, "error", a.err)
	}
}

// record takes one good reading of the detail channel.
func (b *breakdowns) record(x *subject, d detail.Detail) {
	b.rotation.Answered(x.Key())
	x.sampling.said[detailChannel] = ""
	b.overhead.addBreakdown(d)
	x.cpu.dump(d.App, d.Spent)
	line := b.line(x, d.Up)
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
