package doctor

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/shell"
)

// wallClock is what a device's wall clock shows, against the host's. Samples are
// stamped with the time since boot, so it matters only where the device's logs
// are laid beside the host's.
type wallClock struct {
	// Ahead is how far the device's clock is ahead of the host's, negative where
	// it is behind.
	Ahead time.Duration
	// Within bounds the error: the true value is in Ahead ± Within. It is half the
	// round trip and half of the second that date cuts off.
	Within time.Duration
}

// askClock is the real time that a device has to tell its wall clock.
const askClock = 10 * time.Second

// readWallClock asks a device for its wall clock, in a round trip of its own so
// that the error is small.
func readWallClock(ctx context.Context, dev capture.Device) (wallClock, error) {
	began := time.Now()
	a, err := shell.Ask(ctx, dev, askClock, "date +%s")
	took := time.Since(began)
	if err != nil {
		return wallClock{}, fmt.Errorf("read wall clock: %w", err)
	}
	shown, err := parseEpoch(a.Stdout)
	if err != nil {
		return wallClock{}, fmt.Errorf("read wall clock of %s: %w", dev.Serial(), err)
	}
	return compareClocks(shown, began, took), nil
}

// compareClocks: the device was in the second that begins at shown at some moment
// of the trip, so that it is ahead by shown-end at least and by shown+1s-begin at
// most.
func compareClocks(shown, began time.Time, took time.Duration) wallClock {
	least := shown.Sub(began.Add(took).Round(0))
	most := shown.Add(time.Second).Sub(began.Round(0))
	return wallClock{Ahead: least + (most-least)/2, Within: (most - least + 1) / 2}
}

// maxEpoch is the end of the year 9999. Times beyond it, and what the difference
// to them would be, are no wall clock.
const maxEpoch = 253402300799

// parseEpoch reads the seconds since 1970 that `date +%s` prints on its last line.
func parseEpoch(out []byte) (time.Time, error) {
	out = bytes.TrimSpace(out)
	last := out[bytes.LastIndexByte(out, '\n')+1:]
	n, err := strconv.ParseInt(string(last), 10, 64)
	if err != nil || n < 0 || n > maxEpoch {
		return time.Time{}, fmt.Errorf("date printed %q, not seconds since 1970", shell.Clip(string(out)))
	}
	return time.Unix(n, 0), nil
}
