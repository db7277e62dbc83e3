package monitor

import (
	"context"
	"math"
	"time"
)

// clock estimates the device time since the start of a session: the wall-clock
// time multiplied by the device's time scale. It is used for scheduling only;
// all recorded times are readings of the device's own clock.
type clock struct {
	started time.Time
	scale   float64
}

// now returns the device time since the start.
func (c clock) now() time.Duration {
	return time.Duration(float64(time.Since(c.started)) * c.scale)
}

// until returns the wall-clock time to wait until the given device time since
// the start.
func (c clock) until(at time.Duration) time.Duration {
	return max(0, c.real(at-c.now()))
}

// real returns the wall-clock time that corresponds to a device time.
func (c clock) real(d time.Duration) time.Duration {
	// Round up, because waking too early would lead to busy waiting.
	return time.Duration(math.Ceil(float64(d) / c.scale))
}

// align returns the first multiple of step that is later than the given time.
// It lets processes with the same interval share a round.
func align(at, step time.Duration) time.Duration {
	return at - at%step + step
}

// sleep waits for the given wall-clock time, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
