package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/capture/detail"
	"github.com/leakgate/leakgate/reporters/record"
)

// dueTargets gives the processes that want a sample now. Intervals are aligned, so
// that one trip serves all.
func (s *session) dueTargets(now time.Duration) []capture.Target {
	var out []capture.Target
	for _, x := range s.order {
		if x.present && !x.paused && x.due <= now {
			out = append(out, x.target())
		}
	}
	return out
}

// deadline is the real time that one round may take: smaps costs seconds per
// process on an old phone, everything else milliseconds. It stays below the
// interval, so that a device that has fallen silent is noticed within one.
func (s *session) deadline(targets []capture.Target) time.Duration {
	d := min(max(s.clock.real(s.interval()), 3*time.Second), 10*time.Second)
	for _, t := range targets {
		if t.Level.Source == capture.Smaps {
			d += 5 * time.Second
		}
	}
	return d
}

// interval is the shortest that any machine wants at present, in device time.
func (s *session) interval() time.Duration {
	shortest := discoverEvery
	for _, x := range s.order {
		if x.present {
			shortest = min(shortest, x.Detector.Demand().Interval)
		}
	}
	return shortest
}

func (s *session) sendRound(ctx context.Context, targets []capture.Target) {
	systemServer, deadline := s.systemServer, s.deadline(targets)
	send(s, &s.rounds, func() ([]capture.Round, error) {
		return s.fast.Read(ctx, targets, systemServer, deadline)
	})
}

func (s *session) takeRounds(ctx context.Context, a answer[[]capture.Round]) {
	s.rounds.away = false
	defer s.endFinalRound(a.err)
	if a.boot != s.boots {
		return
	}
	for _, r := range a.value {
		s.takeRound(ctx, r, a.after)
	}
	s.usage.fast.count(a.err)
	if a.err != nil {
		s.stumbled(ctx, a.err)
		return
	}
	s.failing, s.stumbles = time.Time{}, 0
	s.well(errandRound)
}

func (s *session) takeRound(ctx context.Context, r capture.Round, after time.Duration) {
	s.advance(ctx, r.Up, after)
	s.checkClock(r.Up)
	s.usage.fast.add(r.Took)
	s.usage.server.read(r.Up, r.SystemServer)
	cost := record.Round(r.Took.Seconds()*1000/float64(max(1, len(r.Readings))), 3)
	for _, reading := range r.Readings {
		x := s.subjects[reading.Key()]
		if x == nil || !x.Same(reading.Process) || reading.Level != x.probe.Level {
			continue // of what it was when the round began
		}
		x.due = x.nextDue(align(s.clock.now(), x.Detector.Demand().Interval), s.clock.now())
		if reading.Err != nil {
			s.missed(x, reading.Err)
			continue
		}
		x.cpu.read(r.Up, reading.CPU)
		s.sampled(x, reading, r.Up, cost)
	}
}

// sampled takes one good reading of the fast channel.
func (s *session) sampled(x *subject, r capture.Reading, up time.Duration, costMS float64) {
	x.failures, x.hung, x.said[fastChannel] = 0, 0, ""
	x.last, x.costMS = r, costMS
	line := s.line(x, up)
	line.Source, line.CostMS = string(r.Level.Source), costMS
	line.PSS, line.SwapPSS = number(r.PSS), number(r.SwapPSS)
	line.RSSAnon, line.Swap, line.Threads = number(r.RSSAnon), number(r.Swap), number(r.Threads)
	if r.Level.Source != capture.Dumpsys {
		s.bridge(x, up)
	}
	s.record(x, line)
	s.tellLimits(x)
}

// record writes one sample and tells the steps that it causes.
func (s *session) record(x *subject, line record.Sample) {
	if !s.run.keep(s.run.recorder.Sample(line)) {
		return
	}
	before := x.Samples
	s.moved(s.part.AddSample(line))
	if x.Samples > before {
		x.wanted = s.demanded(x)
	}
	s.obey(x)
}

// bridge records a hole in the series before the sample that ends it. Through one
// or two samples that are missing a line can be fitted, because it has the right
// times; what more of them mean is the policy's to say.
func (s *session) bridge(x *subject, up time.Duration) {
	hole, rhythm := up-x.LastUp-x.pauses, s.rhythm(x)
	x.pauses = 0
	if x.LastUp == 0 || hole <= rhythm*3/2 {
		return
	}
	e := s.naming(x.Account, "missed", fmt.Sprintf("no sample for %v; the trend goes on", hole.Round(time.Second)))
	if hole > 3*rhythm {
		e.Event = "gap"
		if !s.crosses(hole) {
			e.Text = fmt.Sprintf("no sample for %v; the trend starts again", hole.Round(time.Second))
		}
	}
	e.Duration = record.Round(hole.Seconds(), 3)
	s.at(e, up)
}

// crosses tells whether a trend of the policy goes on across a gap.
func (s *session) crosses(gap time.Duration) bool {
	return s.run.Policy.Name == detector.PolicyRobust && gap <= s.run.Policy.MaxGap
}

// rhythm is the time within which the sample after the latest one was due. Where
// only dumpsys can read a process, that is its turn.
func (s *session) rhythm(x *subject) time.Duration {
	if x.probe.Level.Source == capture.Dumpsys {
		return max(x.wanted, s.demanded(x))
	}
	return x.wanted
}

func (s *session) demanded(x *subject) time.Duration {
	interval := x.Detector.Demand().Interval
	if x.probe.Level.Source == capture.Dumpsys {
		return max(interval, s.rotation.Round())
	}
	return interval
}

// obey does what the machine demands.
func (s *session) obey(x *subject) {
	d := x.Detector.Demand()
	now := s.clock.now()
	x.due = min(x.due, align(now, d.Interval))
	if x.probe.Level.Source == capture.Dumpsys {
		x.due = x.nextDue(align(now, d.Interval), now)
	}
	switch {
	case d.Breakdowns == 0:
		s.rotation.Cancel(x.Key())
	case s.rotation.Wanted(x.Key()) == 0 && s.reading != x.Key():
		s.rotation.Want(x.Key(), d.Breakdowns, now, d.Spacing)
	}
	s.answerDemand(x, d.Diagnose)
	s.snapAfterStartup(x)
}

// missed takes a reading that gave no sample.
func (s *session) missed(x *subject, err error) {
	switch {
	case errors.Is(err, capture.ErrGone):
		s.lost(x, err)
	case errors.Is(err, capture.ErrNoAnswer):
		x.hung++
		x.due += pauseAfter(x.hung)
		s.complain(x, fastChannel, "unresponsive", err)
	case x.provisional:
		// A kernel before 4.5 has no RssAnon; the way to read it is being asked for.
	default:
		x.failures++
		if x.failures%reprobeAfter == 0 {
			s.discovery.forget = append(s.discovery.forget, x.Process)
			s.discoverAt = min(s.discoverAt, s.clock.now()+discoverSoon)
		}
		s.complain(x, fastChannel, "error", err)
	}
}

// pauseAfter is the device time that a hung process is left alone: half a minute
// doubled each time, up to eight minutes.
func pauseAfter(times int) time.Duration {
	return 15 * time.Second << min(times, 5)
}

// lost takes a process that has ended.
func (s *session) lost(x *subject, err error) {
	if !x.present {
		return
	}
	x.present = false
	s.noteDeath(x, x.Process)
	s.rotation.Remove(x.Key())
	s.discoverAt = min(s.discoverAt, s.clock.now()+discoverSoon)
	if x.backs <= maxBacks {
		s.about(x, "gone", goneText(x.PID, err))
	}
}

// goneText is which incarnation is gone: the line names the process already.
func goneText(pid int, err error) string {
	if errors.Is(err, capture.ErrGone) {
		return fmt.Sprintf("pid %d", pid)
	}
	return err.Error()
}

// complain tells a fault of one process once, until its channel reads it again.
func (s *session) complain(x *subject, on channel, event string, err error) {
	text := err.Error()
	if text == x.said[on] {
		return
	}
	x.said[on] = text
	s.about(x, event, text)
}

func (s *session) sendDetail(ctx context.Context, now time.Duration) {
	key, ok := s.countsTurn(now)
	if !ok {
		key, ok = s.rotation.Turn(now)
	}
	if !ok {
		return
	}
	x := s.subjects[key]
	if x.paused {
		return // a stopped process does not answer
	}
	s.reading = key
	process, systemServer, dev := x.Process, s.systemServer, s.dev
	send(s, &s.details, func() (detail.Detail, error) {
		return detail.Read(ctx, dev, dev.Facts, process, systemServer)
	})
}

func (s *session) takeDetail(ctx context.Context, a answer[detail.Detail]) {
	s.details.away, s.reading = false, capture.Key{}
	disturbed := s.respond.disturbed
	s.respond.disturbed = false
	d := a.value
	s.usage.detail.count(a.err)
	x := s.subjects[d.Key()]
	switch {
	case ctx.Err() != nil || a.boot != s.boots:
	case a.err == nil && !x.Same(d.Process): // it has restarted meanwhile
		s.well(errandDetail)
	case a.err == nil:
		s.well(errandDetail)
		s.advance(ctx, d.Up, a.after)
		s.detailed(x, d)
	case errors.Is(a.err, capture.ErrGone):
		// Where that is so, a look or a round finds it too.
		s.rotation.Skip(s.clock.now())
		s.discoverAt = min(s.discoverAt, s.clock.now()+discoverSoon)
	case disturbed && errors.Is(a.err, capture.ErrNoAnswer):
		s.rotation.Skip(s.clock.now()) // its heap is dumped, or was
	case errors.Is(a.err, capture.ErrNoAnswer):
		s.rotation.Hung(d.Key())
		s.rotation.Skip(s.clock.now())
		s.complain(x, detailChannel, "unresponsive", a.err)
	case errors.Is(a.err, capture.ErrDevice):
		s.failed(ctx, errandDetail, a.err)
	default:
		s.rotation.Skip(s.clock.now())
		s.complain(x, detailChannel, "error", a.err)
	}
}

// detailed takes one good reading of the detail channel.
func (s *session) detailed(x *subject, d detail.Detail) {
	s.rotation.Answered(x.Key())
	x.said[detailChannel] = ""
	s.usage.detail.add(d.Took)
	s.usage.server.dump(d.SystemServer, d.Spent)
	x.cpu.dump(d.App, d.Spent)
	line := s.line(x, d.Up)
	line.Source, line.CostMS = string(capture.Dumpsys), record.Round(d.Took.Seconds()*1000, 3)
	line.Breakdown, line.Warnings = breakdown(d.Block, s.dev.Facts.MemTotal>>10)
	if used := detail.JavaHeapUse(d.Block); used.Known {
		x.response.java, line.Breakdown.JavaAlloc = used, new(used.N>>10)
	}
	for _, w := range d.Warnings {
		line.Warnings = append(line.Warnings, w.Error())
	}
	if x.probe.Level.Source == capture.Dumpsys {
		x.costMS = line.CostMS
		s.bridge(x, d.Up)
	}
	s.record(x, line)
	s.tellLimits(x)
	s.govern(s.clock.now())
}
