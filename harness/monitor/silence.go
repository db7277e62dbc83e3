package monitor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// retryFirst is the real time before a device that did not answer is asked
	// again; the pause doubles up to retryMost or half an interval.
	retryFirst = 250 * time.Millisecond
	retryMost  = 10 * time.Second
	// renewDeadline is the real time for one attempt to make a connection anew.
	renewDeadline = 5 * time.Second
)

// silence notices a device that does not respond, and waits for it.
type silence struct {
	*port
	outage  outage
	pulses  call[capture.Pulse]
	returns call[struct{}]
	resets  call[struct{}]
	// boot identifies the present boot, "" where that is not known.
	boot string
	// calm is the device time between two samples while nothing is suspected.
	calm time.Duration
	// failing is when the first round failed since the latest good one, failures how many did.
	failing  time.Time
	failures int
	// err is why the device is lost.
	err error
}

func newSilence(p *port) *silence {
	return &silence{
		port: p, pulses: newCall[capture.Pulse](), returns: newCall[struct{}](), resets: newCall[struct{}](),
		boot: p.dev.Facts.Boot, calm: detector.New(p.run.Policy).Demand().Interval,
	}
}

// on reports whether the device does not respond.
func (q *silence) on() bool { return q.outage.on() }

// lost says why the device is lost, nil where it is not.
func (q *silence) lost() error { return q.err }

// available reports whether the device responds and is not lost.
func (q *silence) available() bool { return q.err == nil && !q.on() }

// nextWake is the device time at which a device that does not respond is asked again.
func (q *silence) nextWake(now time.Duration) time.Duration {
	if q.pulses.inFlight {
		return now + discoverEvery // its answer wakes the session
	}
	return now + time.Duration(float64(q.outage.left(time.Now()))*q.clock.scale)
}

// restarted begins the device's new clock.
func (q *silence) restarted(up time.Duration) {
	q.boot = ""
	q.loop.restarted(up)
}

// outage is how long a device has not answered, in real time.
type outage struct {
	since, until time.Time
	pause        time.Duration
	// told: the device did not show its pulse either, and that was recorded.
	told bool
	// stop ends the waiting for the device's return.
	stop context.CancelFunc
	// reset is when the connection was last made anew.
	reset time.Time
}

// on reports whether the device is silent.
func (o *outage) on() bool { return !o.since.IsZero() }

// fail notes a request without an answer and returns for how long there was none.
func (o *outage) fail(now time.Time, most time.Duration) time.Duration {
	if !o.on() {
		o.since, o.pause = now, retryFirst/2
	}
	o.pause = min(2*o.pause, max(most, retryFirst))
	// Jitter keeps several devices behind one server from knocking together.
	o.until = now.Add(o.pause*3/4 + rand.N(o.pause/2))
	return now.Sub(o.since)
}

// retryNow ends the pause.
func (o *outage) retryNow()                        { o.until = time.Time{} }
func (o *outage) over(now time.Time) bool          { return !now.Before(o.until) }
func (o *outage) left(now time.Time) time.Duration { return max(0, o.until.Sub(now)) }

// returner is a device that can tell when it has been away and is back: a capture.Device
// may be one. Return waits for that until ctx ends.
type returner interface {
	Return(ctx context.Context) error
}

// resetter is a device whose connection can be made anew: a capture.Device may be one.
type resetter interface {
	Reset(ctx context.Context) error
}

// requestFailed takes a request that the device did not answer. Nothing more is sent but
// one question at a time for its pulse.
func (q *silence) requestFailed(ctx context.Context, kind requestKind, err error) {
	if ctx.Err() != nil {
		return
	}
	first := !q.on()
	away := q.outage.fail(time.Now(), min(retryMost, q.clock.real(q.subjects.interval())/2))
	switch {
	case first:
		q.recordFault(kind, err)
		q.waitForReturn(ctx)
	case away > q.run.Patience:
		q.lose(q.gaveNothing(away, err))
	}
}

// roundFailed takes a round that failed. A device whose pulse is well and whose rounds
// fail for too long is of no more use than one that is away.
func (q *silence) roundFailed(ctx context.Context, err error) {
	if q.failing.IsZero() {
		q.failing = time.Now()
	}
	q.failures++
	q.requestFailed(ctx, requestRound, err)
	if failing := time.Since(q.failing); q.err == nil && ctx.Err() == nil && failing > q.run.Patience {
		q.lose(q.gaveNothing(failing, err))
	}
}

// roundSucceeded notes that a round did not fail.
func (q *silence) roundSucceeded() { q.failing, q.failures = time.Time{}, 0 }

// lose ends the device's part of the run, unless the error is nil.
func (q *silence) lose(err error) {
	if err != nil {
		q.err = err
	}
}

func (q *silence) gaveNothing(after time.Duration, err error) error {
	return fmt.Errorf("device %s is lost, it gave nothing for %v: %w", q.dev.Serial(), after.Round(time.Second), err)
}

// requestSucceeded takes a request that the device answered.
func (q *silence) requestSucceeded(kind requestKind) {
	q.clearFault(kind)
	q.answered()
}

// waitForReturn waits for the device's return, where the device can tell it, so that the
// session goes on at once and not after a pause.
func (q *silence) waitForReturn(ctx context.Context) {
	dev, ok := q.dev.Device.(returner)
	if !ok || q.returns.inFlight {
		return
	}
	ctx, q.outage.stop = context.WithCancel(ctx)
	send(q.port, &q.returns, func() (struct{}, error) { return struct{}{}, dev.Return(ctx) })
}

// takeReturn takes the news that the device is back, or the end of a wait for an
// earlier silence, in whose place the present one waits.
func (q *silence) takeReturn(ctx context.Context, a answer[struct{}]) {
	q.returns.inFlight = false
	switch {
	case a.err == nil:
		q.outage.retryNow()
	case q.on() && q.outage.stop == nil && ctx.Err() == nil:
		q.waitForReturn(ctx)
	}
}

// takeReset asks a device again whose connection was made anew.
func (q *silence) takeReset(ctx context.Context, a answer[struct{}]) {
	q.resets.inFlight = false
	q.outage.retryNow()
	if a.err != nil && ctx.Err() == nil {
		q.event(record.Event{Event: "error", Text: a.err.Error()})
	}
}

// probe asks a silent device for its pulse when its pause is over.
func (q *silence) probe(ctx context.Context) {
	if !q.pulses.inFlight && q.outage.over(time.Now()) {
		q.sendPulse(ctx)
	}
}

func (q *silence) sendPulse(ctx context.Context) {
	if q.pulses.inFlight {
		return
	}
	dev, deadline := q.dev, q.pulseDeadline()
	send(q.port, &q.pulses, func() (capture.Pulse, error) { return capture.ReadPulse(ctx, dev, deadline) })
}

// normal is the real time between two samples while nothing is suspected.
func (q *silence) normal() time.Duration {
	return q.clock.real(q.calm)
}

// pulseDeadline is the real time that a device has to show its pulse, a third of an
// interval: a phone that is out of memory may take seconds for one command.
func (q *silence) pulseDeadline() time.Duration {
	return min(max(q.normal()/3, 2*time.Second), 10*time.Second)
}

// takePulse takes what the device says of itself after it was silent or has
// started again.
func (q *silence) takePulse(ctx context.Context, a answer[capture.Pulse]) {
	q.pulses.inFlight = false
	if ctx.Err() != nil {
		return
	}
	if a.err != nil {
		q.requestFailed(ctx, requestPulse, a.err)
		if q.on() && !q.outage.told && q.err == nil {
			q.outage.told = true
			q.event(record.Event{Event: "away", Text: a.err.Error()})
		}
		q.reconnect(ctx, a.err)
		return
	}
	p := a.value
	if q.boot != "" && p.Boot != "" && p.Boot != q.boot {
		q.restarted(p.Up)
	} else {
		q.advance(ctx, p.Up, a.after)
	}
	q.boot = p.Boot
	if p.UID != q.dev.Facts.UID {
		// A shell that was root is not after a reboot.
		q.dev.Facts.UID = p.UID
		q.loop.userChanged()
	}
	q.requestSucceeded(requestPulse)
}

// reconnect has the connection made anew to a device that is there and says nothing:
// one side may have lost its place in the stream of packets, which no waiting heals.
func (q *silence) reconnect(ctx context.Context, err error) {
	dev, ok := q.dev.Device.(resetter)
	if !ok || !q.on() || !errors.Is(err, context.DeadlineExceeded) {
		return
	}
	since := q.outage.since
	if q.outage.reset.After(since) {
		since = q.outage.reset
	}
	if time.Since(since) < q.reconnectAfter() || q.resets.inFlight {
		return
	}
	q.outage.reset = time.Now()
	q.event(record.Event{Event: "reset", Text: "the device says nothing: its connection is made anew"})
	send(q.port, &q.resets, func() (struct{}, error) {
		within, cancel := context.WithTimeout(ctx, renewDeadline)
		defer cancel()
		return struct{}{}, dev.Reset(within)
	})
}

// reconnectAfter is the real time that a device may say nothing: half an interval. A
// new connection ends what runs on the device over adb, also what a suite on the
// host has begun there. monkey goes on afterwards; anything else does not, so it
// gets half of the device's patience.
func (q *silence) reconnectAfter() time.Duration {
	switch q.run.Workload.(type) {
	case nil, Monkey:
		return max(2*time.Second, q.normal()/2)
	}
	return q.run.Patience / 2
}

// answered ends a silence.
func (q *silence) answered() {
	if !q.on() {
		return
	}
	o := q.outage
	q.outage = outage{}
	if o.stop != nil {
		o.stop()
	}
	if o.told {
		q.roundSucceeded()
		away := time.Duration(float64(time.Since(o.since)) * q.clock.scale)
		q.event(record.Event{
			Event: "back", Duration: record.Round(away.Seconds(), 3),
			Text: fmt.Sprintf("the device answers again after %v", away.Round(time.Second)),
		})
	}
	if q.failures < 2 {
		return // what was due meanwhile is due now
	}
	for _, x := range q.subjects.order {
		// Its pulse is well and its rounds fail: they keep their rhythm.
		x.sampling.due = align(q.clock.now(), x.Detector.Demand().Interval)
	}
}

// finalProbe asks a silent device once more whether it is there: what it is wanted for at the
// end cannot be had later, and a run that ends without its device is not a clean one.
func (q *silence) finalProbe(ctx context.Context) {
	if !q.on() || q.err != nil {
		return
	}
	_, err := capture.ReadPulse(ctx, q.dev, q.pulseDeadline())
	switch {
	case err == nil:
		q.answered()
	case ctx.Err() == nil:
		away := time.Since(q.outage.since).Round(time.Second)
		q.err = fmt.Errorf("device %s does not answer at the end of the run, for %v: %w", q.dev.Serial(), away, err)
	}
}

// advance follows the device's clock. A clock that shows less than it did before
// the request began is that of a device that has started again. The two channels
// overlap, so that the latest reading is not the one to compare with; where that
// is older than the beginning of the request, the new start is known already.
func (q *silence) advance(ctx context.Context, up, after time.Duration) {
	if up < after && after <= q.part.Up() {
		q.restarted(up)
		q.sendPulse(ctx)
	}
	q.part.Advance(up)
}
