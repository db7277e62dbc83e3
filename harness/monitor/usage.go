package monitor

import (
	"math/rand/v2"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters"
)

// usage is what watching one device costs.
type usage struct {
	fast, detail channelCost
	// firstUp and lastUp bracket the readings of system_server's CPU time.
	firstUp, lastUp       time.Duration
	firstTicks, lastTicks capture.CPU
	// spent and during sum system_server's CPU time and the device time of
	// the dumps alone.
	spent  capture.CPU
	during time.Duration
}

type channelCost struct {
	rounds, failed int
	sum, most      time.Duration
}

func (c *channelCost) count(err error) {
	if err != nil {
		c.failed++
	}
}

func (c *channelCost) add(took time.Duration) {
	c.rounds++
	c.sum += took
	c.most = max(c.most, took)
}

func (c channelCost) record() reporters.Cost {
	out := reporters.Cost{Rounds: c.rounds, Failed: c.failed, MaxMS: ms(c.most)}
	if c.rounds > 0 {
		out.MeanMS = ms(c.sum / time.Duration(c.rounds))
	}
	return out
}

func ms(d time.Duration) float64 { return round(d.Seconds()*1000, 3) }

// cpu notes system_server's CPU time at one moment of the device's clock. A
// count that falls is another system_server: the measure begins again.
func (u *usage) cpu(up time.Duration, c capture.CPU) {
	switch {
	case !c.Known:
	case !u.firstTicks.Known || c.Ticks < u.lastTicks.Ticks || up < u.lastUp:
		u.firstUp, u.firstTicks = up, c
		fallthrough
	default:
		u.lastUp, u.lastTicks = up, c
	}
}

func (u *usage) detailCPU(d capture.Detail) {
	if d.SystemServer.Known {
		u.spent = capture.CPU{Ticks: u.spent.Ticks + d.SystemServer.Ticks, Known: true}
		u.during += d.Spent
	}
}

// percent is CPU time over device time in percent of one core; nil if nothing
// was measured.
func percent(ticks int64, over time.Duration, known bool) *float64 {
	if !known || over <= 0 {
		return nil
	}
	// One tick is 10 ms.
	return new(round(float64(ticks)*0.01/over.Seconds()*100, 2))
}

func (s *session) record() reporters.Device {
	u := s.usage
	d := reporters.Device{
		Device: s.dev.Serial(), Model: s.dev.Facts.Model, API: s.dev.Facts.API, TimeScale: s.dev.Facts.TimeScale,
		StartedUp: round(s.dev.Facts.Up.Seconds(), 3), Duration: s.seconds(s.begun + s.clock.now()),
		Fast: u.fast.record(), Detail: u.detail.record(),
		SystemServer:       percent(u.lastTicks.Ticks-u.firstTicks.Ticks, u.lastUp-u.firstUp, u.firstTicks.Known),
		DetailSystemServer: percent(u.spent.Ticks, u.during, u.spent.Known),
	}
	if s.err != nil {
		d.Error = s.err.Error()
	}
	return d
}

// silence is how long a device has not answered, in real time.
type silence struct {
	since time.Time
	until time.Time
	pause time.Duration
}

// fail notes a failed trip and gives for how long there was no good one.
func (q *silence) fail(now time.Time) time.Duration {
	if q.since.IsZero() {
		q.since, q.pause = now, retryFirst/2
	}
	q.pause = min(2*q.pause, retryMost)
	// Jitter keeps several devices behind one server from knocking together.
	q.until = now.Add(q.pause*3/4 + rand.N(q.pause/2))
	return now.Sub(q.since)
}

func (q *silence) reset()                           { *q = silence{} }
func (q *silence) over(now time.Time) bool          { return !now.Before(q.until) }
func (q *silence) left(now time.Time) time.Duration { return q.until.Sub(now) }
