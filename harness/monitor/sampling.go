package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// sampling reads the processes that are due over the fast channel and records
// their samples.
type sampling struct {
	*port
	fast   *capture.Fast
	rounds call[[]capture.Round]
	// finalRounds lists channels to close when the final samples of the run are
	// recorded.
	finalRounds []chan<- struct{}
	// deviceClock is the state of the device's clock as seen in the rounds.
	deviceClock deviceClock

	overhead   *overhead
	breakdowns *breakdowns
}

func newSampling(p *port, o *overhead, b *breakdowns) *sampling {
	fast := capture.NewFast(p.dev)
	fast.MemTotal = p.dev.Facts.MemTotal
	return &sampling{port: p, fast: fast, rounds: newCall[[]capture.Round](), overhead: o, breakdowns: b}
}

// dueTargets returns the processes whose samples are due. Intervals are
// aligned, which lets one round serve all processes.
func (m *sampling) dueTargets(now time.Duration) []capture.Target {
	var out []capture.Target
	for _, x := range m.subjects.order {
		if x.present && !x.pause.on && x.sampling.due <= now {
			out = append(out, x.target())
		}
	}
	return out
}

// send reads all processes that are due.
func (m *sampling) send(ctx context.Context, now time.Duration) {
	targets := m.dueTargets(now)
	if m.rounds.inFlight || len(targets) == 0 {
		return
	}
	systemServer, deadline := m.subjects.systemServer, m.subjects.deadline(targets)
	send(m.port, &m.rounds, func() ([]capture.Round, error) {
		return m.fast.Read(ctx, targets, systemServer, deadline)
	})
}

// nextWake returns the earliest device time at which a sample is due, or next
// if that is earlier.
func (m *sampling) nextWake(next time.Duration) time.Duration {
	if m.rounds.inFlight {
		return next
	}
	for _, x := range m.subjects.order {
		if x.present && !x.pause.on {
			next = min(next, x.sampling.due)
		}
	}
	return next
}

func (m *sampling) takeRounds(ctx context.Context, a answer[[]capture.Round]) {
	m.rounds.inFlight = false
	defer m.endFinalRound(a.err)
	if stale(m.port, a) {
		return
	}
	for _, r := range a.value {
		m.takeRound(ctx, r, a.after)
	}
	m.overhead.countRound(a.err)
	if a.err != nil {
		m.silence.roundFailed(ctx, a.err)
		return
	}
	m.silence.roundSucceeded()
}

func (m *sampling) takeRound(ctx context.Context, r capture.Round, after time.Duration) {
	m.silence.advance(ctx, r.Up, after)
	m.checkClock(r.Up)
	m.overhead.addRound(r)
	cost := record.Round(r.Took.Seconds()*1000/float64(max(1, len(r.Readings))), 3)
	for _, reading := range r.Readings {
		x := m.subjects.byKey[reading.Key()]
		if x == nil || !x.Same(reading.Process) || reading.Level != x.probe.Level {
			continue // the process changed after the round began
		}
		x.sampling.due = x.nextDue(align(m.clock.now(), x.Detector.Demand().Interval), m.clock.now())
		if reading.Err != nil {
			m.takeFailure(x, reading.Err)
			continue
		}
		x.cpu.read(r.Up, reading.CPU)
		m.takeReading(x, reading, r.Up, cost)
	}
}

// takeReading records a successful reading of the fast channel.
func (m *sampling) takeReading(x *subject, r capture.Reading, up time.Duration, costMS float64) {
	x.sampling.failures, x.sampling.unanswered, x.sampling.lastError[fastChannel] = 0, 0, ""
	x.sampling.last, x.sampling.costMS = r, costMS
	line := m.newSample(x, up)
	line.Source, line.CostMS = string(r.Level.Source), costMS
	line.PSS, line.SwapPSS = number(r.PSS), number(r.SwapPSS)
	line.RSSAnon, line.Swap, line.Threads = number(r.RSSAnon), number(r.Swap), number(r.Threads)
	if r.Level.Source != capture.Dumpsys {
		m.recordGap(x, up)
	}
	m.record(x, line)
}

// record writes a sample and records the transitions that the sample causes.
func (m *sampling) record(x *subject, line record.Sample) {
	if !m.run.checkWrite(m.run.recorder.AppendSample(line)) {
		return
	}
	before := x.Samples
	m.recordTransitions(m.part.AddSample(line))
	if x.Samples > before {
		x.sampling.interval = m.demandedInterval(x)
	}
	m.loop.sampled(x)
}

// recordGap records a gap in the series before the sample that ends the gap. If
// only one or two samples are missing, a line can still be fitted, because the
// times are correct. The policy determines whether a trend spans a longer gap.
func (m *sampling) recordGap(x *subject, up time.Duration) {
	gap, rhythm := up-x.LastUp-x.pause.total, m.dueWithin(x)
	x.pause.total = 0
	if x.LastUp == 0 || gap <= rhythm*3/2 {
		return
	}
	e := m.processEvent(x.Account, "missed",
		fmt.Sprintf("no sample for %v; the trend continues", gap.Round(time.Second)))
	if gap > 3*rhythm {
		e.Event = "gap"
		if !m.trendSpans(gap) {
			e.Text = fmt.Sprintf("no sample for %v; the trend restarts", gap.Round(time.Second))
		}
	}
	e.Duration = record.Round(gap.Seconds(), 3)
	m.recordEventAt(e, up)
}

// trendSpans reports whether the run's policy continues a trend across a gap.
func (m *sampling) trendSpans(gap time.Duration) bool {
	return m.run.Policy.Name == detector.PolicyRobust && gap <= m.run.Policy.MaxGap
}

// dueWithin returns the maximum time from the latest sample to the next one
// that was due. If only dumpsys can read the process, this is at least one
// round of the rotation.
func (m *sampling) dueWithin(x *subject) time.Duration {
	if x.probe.Level.Source == capture.Dumpsys {
		return max(x.sampling.interval, m.demandedInterval(x))
	}
	return x.sampling.interval
}

func (m *sampling) demandedInterval(x *subject) time.Duration {
	interval := x.Detector.Demand().Interval
	if x.probe.Level.Source == capture.Dumpsys {
		return max(interval, m.breakdowns.round())
	}
	return interval
}

// demand schedules the next sample of a process as its detector demands.
func (m *sampling) demand(x *subject, d detector.Demand, now time.Duration) {
	x.sampling.due = min(x.sampling.due, align(now, d.Interval))
	if x.probe.Level.Source == capture.Dumpsys {
		x.sampling.due = x.nextDue(align(now, d.Interval), now)
	}
}

// sampleAt schedules a sample and an object count for the time when a garbage
// collection has settled.
func (x *subject) sampleAt(at time.Duration) {
	x.sampling.settlesAt, x.counts.due = at, at
	x.sampling.due = min(x.sampling.due, at)
}

// takeFailure handles a failed reading.
func (m *sampling) takeFailure(x *subject, err error) {
	switch {
	case errors.Is(err, capture.ErrGone):
		m.subjects.stopTracking(x, err)
	case errors.Is(err, capture.ErrNoAnswer):
		x.sampling.unanswered++
		x.sampling.due += pauseAfter(x.sampling.unanswered)
		m.recordFailure(x, fastChannel, "unresponsive", err)
	case x.provisional:
		// Kernels before 4.5 do not report RssAnon. Another source is being
		// probed.
	default:
		x.sampling.failures++
		if x.sampling.failures%reprobeAfter == 0 {
			m.loop.reprobe(x.Process)
		}
		m.recordFailure(x, fastChannel, "error", err)
	}
}

// pauseAfter returns how long, in device time, a process that does not respond
// is skipped. It starts at half a minute and doubles each time, up to eight
// minutes.
func pauseAfter(times int) time.Duration {
	return 15 * time.Second << min(times, 5)
}

// recordFailure records an error of one process. The same error is not recorded
// again until the channel has successfully read the process.
func (m *sampling) recordFailure(x *subject, on channel, event string, err error) {
	text := err.Error()
	if text == x.sampling.lastError[on] {
		return
	}
	x.sampling.lastError[on] = text
	m.recordProcessEvent(x, event, text)
}

// checkClock records when the device's clock stops and when it continues.
// Readings without a valid time are not judged.
func (m *sampling) checkClock(up time.Duration) {
	c := &m.deviceClock
	now := time.Now()
	if up != c.up {
		if c.recorded {
			m.recordEvent(record.Event{Event: "clock", Text: "the device's clock runs again"})
		}
		*c = deviceClock{up: up, since: now}
		return
	}
	if c.recorded || now.Sub(c.since) < m.clock.real(stillAfter) {
		return
	}
	c.recorded = true
	m.recordEvent(record.Event{
		Event: "clock",
		Text: fmt.Sprintf("the device's clock has stopped at %.2f s since boot: readings have no time and are not "+
			"judged", up.Seconds()),
	})
}

// stillAfter is the device time after which an unchanged clock counts as
// stopped. While the clock is running, at most two readings are equal: those
// within the same hundredth of a second.
const stillAfter = 2 * scanInterval

// deviceClock detects when a clock has stopped.
type deviceClock struct {
	up time.Duration
	// since is the host's time at which the clock first showed the value up.
	since    time.Time
	recorded bool
}

// recordTrailingGap records that the last part of the run contains no samples
// of a running process.
func (m *sampling) recordTrailingGap(x *subject) {
	now := max(m.part.Up(), m.part.At(m.clock.now()))
	gap := now - x.LastUp - x.pause.total
	if x.pause.on {
		gap -= m.clock.now() - x.pause.since
	}
	if x.present && x.LastUp > 0 && gap > 3*m.dueWithin(x) {
		e := m.processEvent(x.Account, "unseen", fmt.Sprintf("no sample in the last %v", gap.Round(time.Second)))
		if m.deviceClock.recorded {
			e.Text = fmt.Sprintf("no sample with a valid time in the last %v: the device's clock has stopped",
				gap.Round(time.Second))
		}
		e.Duration = record.Round(gap.Seconds(), 3)
		m.recordEvent(e)
	}
}

// endFinalRound notifies the callers that wait for the final samples, even if
// the samples were not taken.
func (m *sampling) endFinalRound(err error) {
	if len(m.finalRounds) == 0 || err == nil && len(m.dueTargets(m.clock.now())) > 0 {
		return
	}
	for _, done := range m.finalRounds {
		close(done)
	}
	m.finalRounds = nil
}
