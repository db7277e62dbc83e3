package monitor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// DefaultPatience is the real time that a device may be away before its part of
	// the run ends: a phone that reboots and asks its owner nothing is back in two
	// minutes.
	DefaultPatience = 5 * time.Minute
	// retryFirst is the real time before a device that did not answer is asked
	// again; the pause doubles up to retryMost or half an interval.
	retryFirst = 250 * time.Millisecond
	retryMost  = 10 * time.Second
	// renewDeadline is the real time for one attempt to make a connection anew.
	renewDeadline = 5 * time.Second
)

// silence is how long a device has not answered, in real time.
type silence struct {
	since, until time.Time
	pause        time.Duration
	// told: the device did not show its pulse either, and that was recorded.
	told bool
	// stop ends the waiting for the device's return.
	stop context.CancelFunc
	// reset is when the connection was last made anew.
	reset time.Time
}

// on tells whether the device is silent.
func (q *silence) on() bool { return !q.since.IsZero() }

// fail notes an errand without an answer and gives for how long there was none.
func (q *silence) fail(now time.Time, most time.Duration) time.Duration {
	if !q.on() {
		q.since, q.pause = now, retryFirst/2
	}
	q.pause = min(2*q.pause, max(most, retryFirst))
	// Jitter keeps several devices behind one server from knocking together.
	q.until = now.Add(q.pause*3/4 + rand.N(q.pause/2))
	return now.Sub(q.since)
}

// hurry ends the pause.
func (q *silence) hurry()                           { q.until = time.Time{} }
func (q *silence) over(now time.Time) bool          { return !now.Before(q.until) }
func (q *silence) left(now time.Time) time.Duration { return max(0, q.until.Sub(now)) }

// returner is a device that can tell when it has been away and is back: a capture.Device
// may be one. Return waits for that until ctx ends.
type returner interface {
	Return(ctx context.Context) error
}

// resetter is a device whose connection can be made anew: a capture.Device may be one.
type resetter interface {
	Reset(ctx context.Context) error
}

// failed takes an errand that the device did not answer. Nothing more is sent but
// one question at a time for its pulse.
func (s *session) failed(ctx context.Context, kind errand, err error) {
	if ctx.Err() != nil {
		return
	}
	first := !s.silent.on()
	away := s.silent.fail(time.Now(), min(retryMost, s.clock.real(s.interval())/2))
	switch {
	case first:
		s.complainOfDevice(kind, err)
		s.expect(ctx)
	case away > s.run.Patience:
		s.lose(away, err)
	}
}

// stumbled takes a round that failed. A device whose pulse is well and whose rounds
// fail for too long is of no more use than one that is away.
func (s *session) stumbled(ctx context.Context, err error) {
	if s.failing.IsZero() {
		s.failing = time.Now()
	}
	s.stumbles++
	s.failed(ctx, errandRound, err)
	if failing := time.Since(s.failing); s.err == nil && ctx.Err() == nil && failing > s.run.Patience {
		s.lose(failing, err)
	}
}

func (s *session) lose(after time.Duration, err error) {
	s.err = fmt.Errorf("device %s is lost, it gave nothing for %v: %w", s.dev.Serial(), after.Round(time.Second), err)
}

// well takes an errand that the device answered.
func (s *session) well(kind errand) {
	delete(s.complaints, kind)
	s.answered()
}

// complainOfDevice tells a fault of one kind of errand once, until one succeeds.
func (s *session) complainOfDevice(kind errand, err error) {
	if s.complaints[kind] != "" {
		return
	}
	s.complaints[kind] = err.Error()
	s.event(record.Event{Event: "error", Text: err.Error()})
}

// expect waits for the device's return, where the device can tell it, so that the
// session goes on at once and not after a pause.
func (s *session) expect(ctx context.Context) {
	dev, ok := s.dev.Device.(returner)
	if !ok || s.returns.away {
		return
	}
	ctx, s.silent.stop = context.WithCancel(ctx)
	send(s, &s.returns, func() (struct{}, error) { return struct{}{}, dev.Return(ctx) })
}

// takeReturn takes the news that the device is back, or the end of a wait for an
// earlier silence, in whose place the present one waits.
func (s *session) takeReturn(ctx context.Context, a answer[struct{}]) {
	s.returns.away = false
	switch {
	case a.err == nil:
		s.silent.hurry()
	case s.silent.on() && s.silent.stop == nil && ctx.Err() == nil:
		s.expect(ctx)
	}
}

// callOut asks a silent device for its pulse when its pause is over.
func (s *session) callOut(ctx context.Context) {
	if !s.pulses.away && s.silent.over(time.Now()) {
		s.sendPulse(ctx)
	}
}

func (s *session) sendPulse(ctx context.Context) {
	if s.pulses.away {
		return
	}
	dev, deadline := s.dev, s.pulseDeadline()
	send(s, &s.pulses, func() (capture.Pulse, error) { return capture.ReadPulse(ctx, dev, deadline) })
}

// normal is the real time between two samples while nothing is suspected.
func (s *session) normal() time.Duration {
	return s.clock.real(s.calm)
}

// pulseDeadline is the real time that a device has to show its pulse, a third of an
// interval: a phone that is out of memory may take seconds for one command.
func (s *session) pulseDeadline() time.Duration {
	return min(max(s.normal()/3, 2*time.Second), 10*time.Second)
}

// takePulse takes what the device says of itself after it was silent or has
// started again.
func (s *session) takePulse(ctx context.Context, a answer[capture.Pulse]) {
	s.pulses.away = false
	if ctx.Err() != nil {
		return
	}
	if a.err != nil {
		s.failed(ctx, errandPulse, a.err)
		if s.silent.on() && !s.silent.told && s.err == nil {
			s.silent.told = true
			s.event(record.Event{Event: "away", Text: a.err.Error()})
		}
		s.renew(ctx, a.err)
		return
	}
	p := a.value
	if s.boot != "" && p.Boot != "" && p.Boot != s.boot {
		s.startedAnew(p.Up)
	} else {
		s.advance(ctx, p.Up, a.after)
	}
	s.boot = p.Boot
	if p.UID != s.dev.Facts.UID {
		// A shell that was root is not after a reboot.
		s.dev.Facts.UID = p.UID
		s.levels = capture.NewLevels(s.dev, s.dev.Facts)
		s.discovery.renewed = true
		s.headrooms = capture.NewHeadrooms(s.dev, s.dev.Facts)
		s.discoverAt = s.clock.now()
	}
	s.well(errandPulse)
}

// renew has the connection made anew to a device that is there and says nothing:
// one side may have lost its place in the stream of packets, which no waiting heals.
func (s *session) renew(ctx context.Context, err error) {
	dev, ok := s.dev.Device.(resetter)
	if !ok || !s.silent.on() || !errors.Is(err, context.DeadlineExceeded) {
		return
	}
	since := s.silent.since
	if s.silent.reset.After(since) {
		since = s.silent.reset
	}
	if time.Since(since) < s.renewAfter() || s.resets.away {
		return
	}
	s.silent.reset = time.Now()
	s.event(record.Event{Event: "reset", Text: "the device says nothing: its connection is made anew"})
	send(s, &s.resets, func() (struct{}, error) {
		within, cancel := context.WithTimeout(ctx, renewDeadline)
		defer cancel()
		return struct{}{}, dev.Reset(within)
	})
}

// renewAfter is the real time that a device may say nothing: half an interval. A
// new connection ends what runs on the device over adb, also what a suite on the
// host has begun there. monkey goes on afterwards; anything else does not, so it
// gets half of the device's patience.
func (s *session) renewAfter() time.Duration {
	switch s.run.Workload.(type) {
	case nil, Monkey:
		return max(2*time.Second, s.normal()/2)
	}
	return s.run.Patience / 2
}

// answered ends a silence.
func (s *session) answered() {
	if !s.silent.on() {
		return
	}
	q := s.silent
	s.silent = silence{}
	if q.stop != nil {
		q.stop()
	}
	if q.told {
		s.failing, s.stumbles = time.Time{}, 0
		away := time.Duration(float64(time.Since(q.since)) * s.clock.scale)
		s.event(record.Event{
			Event: "back", Duration: record.Round(away.Seconds(), 3),
			Text: fmt.Sprintf("the device answers again after %v", away.Round(time.Second)),
		})
	}
	if s.stumbles < 2 {
		return // what was due meanwhile is due now
	}
	for _, x := range s.order {
		// Its pulse is well and its rounds fail: they keep their rhythm.
		x.due = align(s.clock.now(), x.Detector.Demand().Interval)
	}
}

// lastCall asks a silent device once more whether it is there: what it is wanted for at the
// end cannot be had later, and a run that ends without its device is not a clean one.
func (s *session) lastCall(ctx context.Context) {
	if !s.silent.on() || s.err != nil {
		return
	}
	_, err := capture.ReadPulse(ctx, s.dev, s.pulseDeadline())
	switch {
	case err == nil:
		s.answered()
	case ctx.Err() == nil:
		away := time.Since(s.silent.since).Round(time.Second)
		s.err = fmt.Errorf("device %s does not answer at the end of the run, for %v: %w", s.dev.Serial(), away, err)
	}
}
