package monitor

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

// clock is the device time that has passed since the start of a session, as far
// as the host can tell without asking: real time, times the device's own scale.
// It only schedules; what is recorded carries the device's clock.
type clock struct {
	started time.Time
	scale   float64
}

// now is the device time since the start.
func (c clock) now() time.Duration {
	return time.Duration(float64(time.Since(c.started)) * c.scale)
}

// until is the real time to wait for the moment at, in device time since the start.
func (c clock) until(at time.Duration) time.Duration {
	return max(0, c.real(at-c.now()))
}

// real is how long a device time takes.
func (c clock) real(d time.Duration) time.Duration {
	// Rounded up: who woke before the time would wait for nothing, again and again.
	return time.Duration(math.Ceil(float64(d) / c.scale))
}

// align gives the first multiple of step after at, so that processes with the
// same interval share a round trip.
func align(at, step time.Duration) time.Duration {
	return at - at%step + step
}

// nap waits for a real time, or until ctx ends.
func nap(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// stillAfter is the device time after which a clock that shows the same counts as stopped: two
// looks may fall on one hundredth of a second, not more.
const stillAfter = 2 * discoverEvery

// deviceClock notices a clock that has stopped.
type deviceClock struct {
	up time.Duration
	// since is the host's time at which the clock first showed up.
	since time.Time
	told  bool
}

// checkClock records once that the device's clock stands still, and that it runs again: readings
// without a time of their own are not judged.
func (s *session) checkClock(up time.Duration) {
	c := &s.deviceClock
	now := time.Now()
	if up != c.up {
		if c.told {
			s.event(record.Event{Event: "clock", Text: "the device's clock runs again"})
		}
		*c = deviceClock{up: up, since: now}
		return
	}
	if c.told || now.Sub(c.since) < s.clock.real(stillAfter) {
		return
	}
	c.told = true
	s.event(record.Event{Event: "clock", Text: fmt.Sprintf("the device's clock has stopped at %.2f s since boot: readings have no time and are not judged", up.Seconds())})
}
