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

// wallClock is the difference between a device's wall clock and the host's.
// Samples are stamped with the time since boot, so the difference matters only
// when the device's logs are compared with the host's.
type wallClock struct {
	// Ahead is how far the device's clock is ahead of the host's, negative if
	// it is behind.
	Ahead time.Duration
	// Within is the maximum error: the true difference is in Ahead ± Within. It
	// is half the round trip plus half a second, because date truncates the
	// time to whole seconds.
	Within time.Duration
}

// clockTimeout is the maximum wall-clock time for reading the wall clock.
const clockTimeout = 10 * time.Second

// readWallClock reads the wall clock of a device, in a separate round trip,
// which keeps the error small.
func readWallClock(ctx context.Context, dev capture.Device) (wallClock, error) {
	began := time.Now()
	a, err := shell.Ask(ctx, dev, clockTimeout, "date +%s")
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

// compareClocks computes the difference between the clocks from the time that
// the device printed and the host's times before and after the round trip. At
// some time during the round trip, the device was in the second that begins at
// shown, so it is ahead by at least shown-end and at most shown+1s-begin.
func compareClocks(shown, began time.Time, took time.Duration) wallClock {
	least := shown.Sub(began.Add(took).Round(0))
	most := shown.Add(time.Second).Sub(began.Round(0))
	return wallClock{Ahead: least + (most-least)/2, Within: (most - least + 1) / 2}
}

// maxEpoch is the end of the year 9999. A later time is not a valid wall clock,
// and its difference would overflow.
const maxEpoch = 253402300799

// parseEpoch parses the seconds since 1970 that `date +%s` prints on its last
// line.
func parseEpoch(out []byte) (time.Time, error) {
	out = bytes.TrimSpace(out)
	last := out[bytes.LastIndexByte(out, '\n')+1:]
	n, err := strconv.ParseInt(string(last), 10, 64)
	if err != nil || n < 0 || n > maxEpoch {
		return time.Time{}, fmt.Errorf("date printed %q, not seconds since 1970", shell.Clip(string(out)))
	}
	return time.Unix(n, 0), nil
}
