package monitor

import (
	"context"
	"math"
	"time"
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
