package monitor

import (
	"context"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// scanInterval is the device time between two scans for new processes.
	scanInterval = 30 * time.Second
	// rescanDelay is the device time until the next scan if no process was
	// found, or if a process must be seen or probed again.
	rescanDelay = 5 * time.Second
	// usageEvery is the device time between two usage events.
	usageEvery = 10 * time.Minute
	// reprobeAfter is the number of consecutive failed readings after which a
	// process is probed again.
	reprobeAfter = 3
)

// session watches one device. Each part of a session owns its state, and only
// the session's goroutine uses the parts. Requests to the device run in
// separate goroutines and return their results to the session's goroutine.
type session struct {
	*port
	sampling   *sampling
	breakdowns *breakdowns
	limits     *limits
	garbage    *garbage
	discovery  *discovery
	builds     *builds
	deaths     *deaths
	marks      *marks
	responses  *responses
	analyses   *analyses
	sweeper    *sweeper
	overhead   *overhead
	// gone is closed when the device is lost before the run ends.
	gone chan struct{}
	// over is closed when nothing more will be recorded about the device.
	over chan struct{}
}

func newSession(r *run, d Device) *session {
	s := &session{gone: make(chan struct{}), over: make(chan struct{})}
	p := newPort(r, d, s)
	s.port = p
	s.overhead = &overhead{port: p, due: usageEvery}
	s.breakdowns = newBreakdowns(p, s.overhead)
	s.overhead.breakdowns = s.breakdowns
	s.sampling = newSampling(p, s.overhead, s.breakdowns)
	s.breakdowns.sampling = s.sampling
	s.limits = newLimits(p)
	s.garbage = newGarbage(p, s.limits)
	s.deaths = newDeaths(p)
	s.builds = newBuilds(p)
	s.sweeper = newSweeper(p)
	s.analyses = newAnalyses(p)
	s.marks = &marks{port: p, garbage: s.garbage}
	s.responses = newResponses(p)
	s.discovery = newDiscovery(p, s.marks)
	p.subjects.rotation, p.subjects.builds, p.subjects.deaths = s.breakdowns.rotation, s.builds, s.deaths
	s.responses.breakdowns, s.responses.deaths, s.responses.marks = s.breakdowns, s.deaths, s.marks
	s.responses.analyses, s.responses.sweeper = s.analyses, s.sweeper
	s.analyses.responses = s.responses
	s.marks.discovery, s.marks.responses = s.discovery, s.responses
	return s
}

func headerOf(d Device) record.HeaderDevice {
	return record.HeaderDevice{
		Device: d.Serial(), Model: d.Facts.Model, API: d.Facts.API,
		StartedUp: record.Round(d.Facts.Up.Seconds(), 3), TimeScale: d.Facts.TimeScale,
		ABI: d.Facts.ABI, Fingerprint: d.Facts.Fingerprint, Emulator: d.Facts.Emulator,
		HeapLimit: record.Round(float64(d.Facts.HeapLimit)/detector.MB, 2),
		MemTotal:  d.Facts.MemTotal >> 10,
	}
}

// watch runs until ctx is done or the device is lost. Diagnoses continue until
// they are complete or user is done.
func (s *session) watch(ctx, user context.Context) {
	defer s.calls.Wait()
	responding, giveUp := context.WithCancel(user)
	defer giveUp()
	// Requests end with the session even if the run continues without it.
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.recordEvent(record.Event{Event: "start", Text: s.dev.Facts.Describe()})
	s.sweeper.send(responding)
	s.followMarks(ctx)
	wake := time.NewTimer(0)
	defer wake.Stop()
	for s.silence.lost() == nil && ctx.Err() == nil {
		if !s.takeNext(ctx, responding, wake.C) {
			continue
		}
		s.sendResponses(responding)
		s.run.Observer.Changed(s.dev.Serial(), s.rows)
		wake.Reset(s.clock.until(s.nextWake()))
	}
	s.end(ctx, responding, giveUp)
}

// takeNext waits for the next result or wake-up and passes it to the part
// concerned. It returns false when ctx is done.
func (s *session) takeNext(ctx, responding context.Context, wake <-chan time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-wake:
		s.sendDue(ctx)
	case a := <-s.discovery.call.done:
		s.discovery.take(ctx, a)
	case a := <-s.discovery.probing.call.done:
		s.discovery.takeProbes(ctx, a)
	case a := <-s.sampling.rounds.done:
		s.sampling.takeRounds(ctx, a)
	case a := <-s.breakdowns.call.done:
		s.breakdowns.take(ctx, a)
	case a := <-s.silence.pulses.done:
		s.silence.takePulse(ctx, a)
	case a := <-s.silence.returns.done:
		s.silence.takeReturn(ctx, a)
	case a := <-s.silence.resets.done:
		s.silence.takeReset(ctx, a)
	case a := <-s.limits.call.done:
		s.limits.take(ctx, a)
	case a := <-s.garbage.call.done:
		s.garbage.take(ctx, a)
	case a := <-s.builds.call.done:
		s.builds.take(a)
	case a := <-s.deaths.call.done:
		s.deaths.take(a)
	case a := <-s.sweeper.call.done:
		s.sweeper.take(responding, a)
	case on := <-s.responses.pauses:
		s.responses.setPaused(on)
	case a := <-s.responses.call.done:
		s.responses.take(ctx, a)
	case a := <-s.analyses.call.done:
		s.analyses.take(a)
	case <-s.mailbox.notify:
		s.takeMessages()
	}
	return true
}

// ask runs do on the session's goroutine and waits until do has returned. It
// returns an error if the session has ended.
func (s *session) ask(do func()) error {
	done := make(chan struct{})
	s.mailbox.post(message{do: func() { do(); close(done) }})
	select {
	case <-done:
		return nil
	case <-s.over:
	}
	select {
	case <-done: // do ran at the end of the session
		return nil
	default:
		return errRunEnded
	}
}

// sendDue sends every request that is due. It sends only pulse requests to a
// device that does not respond.
func (s *session) sendDue(ctx context.Context) {
	s.marks.order()
	now := s.clock.now()
	if s.silence.on() {
		s.garbage.cancel() // the mark will be too old when the device responds again
		s.silence.probe(ctx)
		s.discovery.rejectWaiters()
		return
	}
	s.discovery.endScan(ctx)
	s.discovery.sendDue(ctx, now)
	s.garbage.send(ctx)
	s.sampling.send(ctx, now)
	s.breakdowns.send(ctx, now)
	s.limits.send(ctx, now)
	s.builds.send(ctx)
	s.deaths.send(ctx, deathDelay)
	s.overhead.recordDue(now)
}

// nextWake returns the time of the next request, in device time since the
// start.
func (s *session) nextWake() time.Duration {
	now := s.clock.now()
	if s.silence.on() {
		return s.marks.nextWake(s.silence.nextWake(now))
	}
	next := s.breakdowns.nextWake(now, s.overhead.nextWake())
	next = s.garbage.nextWake(now, next)
	next = s.discovery.nextWake(now, next)
	next = s.deaths.nextWake(next)
	next = s.limits.nextWake(next)
	next = s.sampling.nextWake(next)
	return s.marks.nextWake(next)
}

func (s *session) takeMessages() {
	for _, l := range s.mailbox.drain() {
		if l.do != nil {
			l.do()
			continue
		}
		s.recordEvent(l.Event)
		if l.Event.Event == "mark" {
			s.marks.take(l)
		}
		l.dumps.finishOne()
	}
	s.marks.recordSkips(false)
}

// sampled implements loop.
func (s *session) sampled(x *subject) {
	d, now := x.Detector.Demand(), s.clock.now()
	s.sampling.demand(x, d, now)
	s.breakdowns.want(x, d, now)
	s.responses.orderDemanded(x, d.Diagnose)
	s.responses.orderStartupSnapshot(x)
	s.limits.recordWarnings(x)
}

// transitioned implements loop.
func (s *session) transitioned(t ledger.Entry) { s.responses.onTransition(t) }

// scanBy implements loop.
func (s *session) scanBy(at time.Duration) { s.discovery.scanBy(at) }

// reprobe implements loop.
func (s *session) reprobe(p capture.Process) { s.discovery.reprobe(p) }

// userChanged implements loop.
func (s *session) userChanged() {
	s.limits.reset()
	s.discovery.userChanged()
}

// restarted implements loop. The time axis of the run continues according to
// the host's clock. It never goes backward, even if the host was suspended and
// its clock is behind.
func (s *session) restarted(up time.Duration) {
	latest := s.part.Seconds(s.part.Up())
	e := record.Event{
		Event: "reboot", Text: "device rebooted; trends restart",
		T: max(latest, record.Round(s.clock.now().Seconds(), 3)), Up: record.Round(up.Seconds(), 3),
	}
	e.Duration = record.Round(e.T-latest, 3)
	s.boots++
	s.subjects.restarted()
	s.limits.reset()
	s.discovery.restarted()
	if s.write(e) {
		s.recordTransitions(s.part.AddEvent(e))
	}
}
