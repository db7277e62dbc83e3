package androidsim

import (
	"context"
	"math"
	"time"
)

type clock struct {
	origin time.Time
	offset time.Duration
	scale  float64
}

func (c clock) up() time.Duration {
	return c.offset + time.Duration(float64(time.Since(c.origin))*c.scale)
}

// maxWait bounds every wait: ten years.
const maxWait = 10 * 365 * 24 * time.Hour

// real converts device time to host time. It rounds up, so that a heap dump is
// complete when the wait for its end is over.
func (c clock) real(device time.Duration) time.Duration {
	return time.Duration(math.Min(math.Ceil(float64(device)/c.scale), float64(maxWait)))
}

// wait waits for the given device time; if ctx is done first, it returns the
// cause.
func (c clock) wait(ctx context.Context, device time.Duration) error {
	if device <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(c.real(device))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
