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
	// minRetry is the wall-clock time before the first retry of a request
	// without a response. The pause doubles with each retry, up to maxRetry or
	// half a sampling interval.
	minRetry = 250 * time.Millisecond
	maxRetry = 10 * time.Second
	// reconnectDeadline bounds the wall-clock time of one attempt to reconnect.
	reconnectDeadline = 5 * time.Second
)

// silence detects a device that does not respond and waits for it.
type silence struct {
	*port
	outage  retryState
	pulses  call[capture.Pulse]
	returns call[struct{}]
	resets  call[struct{}]
	// boot identifies the current boot; it is "" if unknown.
	boot string
	// sampleInterval is the device time between two samples of a process that
	// is not suspicious.
	sampleInterval time.Duration
	// failing is the time of the first failed round since the latest successful
	// one; failures is the number of failed rounds since then.
	failing  time.Time
	failures int
	// err is the reason why the device was lost.
	err error
}

func newSilence(p *port) *silence {
	return &silence{
		port: p, pulses: newCall[capture.Pulse](), returns: newCall[struct{}](), resets: newCall[struct{}](),
		boot: p.dev.Facts.Boot, sampleInterval: detector.New(p.run.Policy).Demand().Interval,
	}
}

// on reports whether the device does not respond.
func (q *silence) on() bool { return q.outage.on() }

// lost returns the reason why the device was lost, or nil if it was not.
func (q *silence) lost() error { return q.err }

// available reports whether the device responds and is not lost.
func (q *silence) available() bool { return q.err == nil && !q.on() }

// nextWake returns the device time at which the next request is sent to a
// device that does not respond.
func (q *silence) nextWake(now time.Duration) time.Duration {
	if q.pulses.inFlight {
		return now + scanInterval // the response to the probe wakes the session
	}
	return now + time.Duration(float64(q.outage.untilRetry(time.Now()))*q.clock.scale)
}

// restarted handles a reboot.
func (q *silence) restarted(up time.Duration) {
	q.boot = ""
	q.loop.restarted(up)
}

// retryState holds the time at which a device stopped responding and the time
// of the next request, both in wall-clock time.
type retryState struct {
	since, until time.Time
	pause        time.Duration
	// recorded is set once the record states that the device did not respond to
	// a pulse either.
	recorded bool
	// stop ends the wait for the device's return.
	stop context.CancelFunc
	// resetAt is the time of the latest reconnect.
	resetAt time.Time
}

// on reports whether the device does not respond.
func (o *retryState) on() bool { return !o.since.IsZero() }

// fail records a request without a response and returns how long the device has
// not responded.
func (o *retryState) fail(now time.Time, most time.Duration) time.Duration {
	if !o.on() {
		o.since, o.pause = now, minRetry/2
	}
	o.pause = min(2*o.pause, max(most, minRetry))
	// Jitter prevents several devices on one server from retrying at the same
	// time.
	o.until = now.Add(o.pause*3/4 + rand.N(o.pause/2))
	return now.Sub(o.since)
}

// retryNow ends the pause before the next retry.
func (o *retryState) retryNow()                              { o.until = time.Time{} }
func (o *retryState) retryDue(now time.Time) bool            { return !now.Before(o.until) }
func (o *retryState) untilRetry(now time.Time) time.Duration { return max(0, o.until.Sub(now)) }

// returner is a capture.Device that can detect its own return: Return waits
// until the device is back after a disconnect, or until ctx is done.
type returner interface {
	Return(ctx context.Context) error
}

// resetter is a capture.Device whose connection can be reset.
type resetter interface {
	Reset(ctx context.Context) error
}

// requestFailed handles a request without a response. From then on, only pulse
// requests are sent to the device.
func (q *silence) requestFailed(ctx context.Context, kind requestKind, err error) {
	if ctx.Err() != nil {
		return
	}
	first := !q.on()
	away := q.outage.fail(time.Now(), min(maxRetry, q.clock.real(q.subjects.interval())/2))
	switch {
	case first:
		q.recordFault(kind, err)
		q.waitForReturn(ctx)
	case away > q.run.DeviceTimeout:
		q.lose(q.lostError(away, err))
	}
}

// roundFailed handles a failed round. A device that responds to pulses while
// its rounds fail for too long is treated like a disconnected device.
func (q *silence) roundFailed(ctx context.Context, err error) {
	if q.failing.IsZero() {
		q.failing = time.Now()
	}
	q.failures++
	q.requestFailed(ctx, requestRound, err)
	if failing := time.Since(q.failing); q.err == nil && ctx.Err() == nil && failing > q.run.DeviceTimeout {
		q.lose(q.lostError(failing, err))
	}
}

// roundSucceeded resets the count and the time of failed rounds.
func (q *silence) roundSucceeded() { q.failing, q.failures = time.Time{}, 0 }

// lose ends the device's part of the run, unless err is nil.
func (q *silence) lose(err error) {
	if err != nil {
		q.err = err
	}
}

func (q *silence) lostError(after time.Duration, err error) error {
	return fmt.Errorf("device %s is lost, no response for %v: %w", q.dev.Serial(), after.Round(time.Second), err)
}

// requestSucceeded handles a request to which the device responded.
func (q *silence) requestSucceeded(kind requestKind) {
	q.clearFault(kind)
	q.answered()
}

// waitForReturn waits for the device's return if the device can report it. The
// session can then continue immediately instead of after a pause.
func (q *silence) waitForReturn(ctx context.Context) {
	dev, ok := q.dev.Device.(returner)
	if !ok || q.returns.inFlight {
		return
	}
	ctx, q.outage.stop = context.WithCancel(ctx)
	send(q.port, &q.returns, func() (struct{}, error) { return struct{}{}, dev.Return(ctx) })
}

// takeReturn handles the device's return. It also starts a new wait if the one
// that ended began in an earlier outage.
func (q *silence) takeReturn(ctx context.Context, a answer[struct{}]) {
	q.returns.inFlight = false
	switch {
	case a.err == nil:
		q.outage.retryNow()
	case q.on() && q.outage.stop == nil && ctx.Err() == nil:
		q.waitForReturn(ctx)
	}
}

// takeReset retries after a reconnect.
func (q *silence) takeReset(ctx context.Context, a answer[struct{}]) {
	q.resets.inFlight = false
	q.outage.retryNow()
	if a.err != nil && ctx.Err() == nil {
		q.recordEvent(record.Event{Event: "error", Text: a.err.Error()})
	}
}

// probe sends a pulse request to a device that does not respond, once its pause
// is over.
func (q *silence) probe(ctx context.Context) {
	if !q.pulses.inFlight && q.outage.retryDue(time.Now()) {
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

// normalInterval returns the wall-clock time between two samples of a process
// that is not suspicious.
func (q *silence) normalInterval() time.Duration {
	return q.clock.real(q.sampleInterval)
}

// pulseDeadline returns the wall-clock time within which a device must respond
// to a pulse: a third of a sampling interval, because a phone that is out of
// memory may take seconds for one command.
func (q *silence) pulseDeadline() time.Duration {
	return min(max(q.normalInterval()/3, 2*time.Second), 10*time.Second)
}

// takePulse handles the pulse of a device after an outage or a reboot.
func (q *silence) takePulse(ctx context.Context, a answer[capture.Pulse]) {
	q.pulses.inFlight = false
	if ctx.Err() != nil {
		return
	}
	if a.err != nil {
		q.requestFailed(ctx, requestPulse, a.err)
		if q.on() && !q.outage.recorded && q.err == nil {
			q.outage.recorded = true
			q.recordEvent(record.Event{Event: "away", Text: a.err.Error()})
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
		// The shell may have lost root in a reboot.
		q.dev.Facts.UID = p.UID
		q.loop.userChanged()
	}
	q.requestSucceeded(requestPulse)
}

// reconnect resets the connection to a device that is connected but does not
// respond. One side may have lost its position in the stream of packets, and
// waiting does not repair that.
func (q *silence) reconnect(ctx context.Context, err error) {
	dev, ok := q.dev.Device.(resetter)
	if !ok || !q.on() || !errors.Is(err, context.DeadlineExceeded) {
		return
	}
	since := q.outage.since
	if q.outage.resetAt.After(since) {
		since = q.outage.resetAt
	}
	if time.Since(since) < q.reconnectAfter() || q.resets.inFlight {
		return
	}
	q.outage.resetAt = time.Now()
	q.recordEvent(record.Event{Event: "reset", Text: "device not responding; reconnecting"})
	send(q.port, &q.resets, func() (struct{}, error) {
		within, cancel := context.WithTimeout(ctx, reconnectDeadline)
		defer cancel()
		return struct{}{}, dev.Reset(within)
	})
}

// reconnectAfter returns the wall-clock time after which a device that does not
// respond is reconnected: half a sampling interval. A new connection ends
// everything that runs on the device over adb, including commands that a suite
// on the host has started there. monkey is restarted afterwards. Other
// workloads are not restarted. While such a workload runs, the time is half of
// the device timeout.
func (q *silence) reconnectAfter() time.Duration {
	switch q.run.Workload.(type) {
	case nil, Monkey:
		return max(2*time.Second, q.normalInterval()/2)
	}
	return q.run.DeviceTimeout / 2
}

// answered ends an outage.
func (q *silence) answered() {
	if !q.on() {
		return
	}
	o := q.outage
	q.outage = retryState{}
	if o.stop != nil {
		o.stop()
	}
	if o.recorded {
		q.roundSucceeded()
		away := time.Duration(float64(time.Since(o.since)) * q.clock.scale)
		q.recordEvent(record.Event{
			Event: "back", Duration: record.Round(away.Seconds(), 3),
			Text: fmt.Sprintf("device responding again after %v", away.Round(time.Second)),
		})
	}
	if q.failures < 2 {
		return // requests that became due during the outage are due now
	}
	for _, x := range q.subjects.order {
		// The pulse succeeded while rounds failed, so rounds keep their
		// interval.
		x.sampling.due = align(q.clock.now(), x.Detector.Demand().Interval)
	}
}

// finalProbe sends one more request to a device that does not respond. Data
// that is needed from the device at the end of the run cannot be read later,
// and a run that ends without its device is not clean.
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
		q.err = fmt.Errorf("device %s has not responded for %v at the end of the run: %w", q.dev.Serial(), away, err)
	}
}

// advance records a reading of the device's clock and detects reboots. If the
// clock shows less than it did before the request, the device has rebooted. The
// comparison uses the reading before the request and not the latest one,
// because the two channels overlap. If the latest reading is lower than the one
// before the request, the reboot is already known.
func (q *silence) advance(ctx context.Context, up, after time.Duration) {
	if up < after && after <= q.part.Up() {
		q.restarted(up)
		q.sendPulse(ctx)
	}
	q.part.Advance(up)
}
