package state

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ScaleProperty is the property in which a device reports its time scale: how
// many seconds pass on its clock (/proc/uptime) in one real second. The scale
// is reported nowhere else. A real phone has no such property; an empty value
// means 1.
const ScaleProperty = "leakgate.time_scale"

// PackageProperty is the property that contains the name of the app installed
// on a host device.
const PackageProperty = "leakgate.package"

// Clock computes the device's time since boot: when this machine's uptime is
// Base, the device's time is also Base; after that, the device's time advances
// Scale times as fast.
type Clock struct {
	Base  time.Duration
	Scale float64
}

// At returns the device's time at the moment when this machine's uptime is
// host.
func (c Clock) At(host time.Duration) time.Duration {
	return c.Base + time.Duration(float64(host-c.Base)*c.Scale)
}

// Real converts a span of device time to wall-clock time.
func (c Clock) Real(device time.Duration) time.Duration {
	return time.Duration(float64(device) / c.Scale)
}

// Uptime formats a time like /proc/uptime, rounded down. The idle time is that
// of a single processor that was never busy.
func Uptime(up time.Duration) string {
	hundredths := int64(up / (10 * time.Millisecond))
	return fmt.Sprintf("%d.%02d %[1]d.%02[2]d\n", hundredths/100, hundredths%100)
}

// WriteClock saves the clock for the device's commands.
func (d Dir) WriteClock(c Clock) error {
	text := fmt.Sprintf("%d %s\n", int64(c.Base), FormatScale(c.Scale))
	if err := os.WriteFile(d.clock(), []byte(text), 0o644); err != nil {
		return fmt.Errorf("write clock: %w", err)
	}
	return nil
}

// Clock reads the clock that WriteClock saved.
func (d Dir) Clock() (Clock, error) {
	text, err := os.ReadFile(d.clock())
	if err != nil {
		return Clock{}, fmt.Errorf("read clock: %w", err)
	}
	base, scale, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	ns, err := strconv.ParseInt(base, 10, 64)
	if err != nil {
		return Clock{}, fmt.Errorf("read clock: %w", err)
	}
	s, err := strconv.ParseFloat(scale, 64)
	if err != nil || !(s > 0) {
		return Clock{}, fmt.Errorf("read clock: invalid time scale %q", scale)
	}
	return Clock{time.Duration(ns), s}, nil
}

// FormatScale returns the shortest decimal number that parses as the same
// scale.
func FormatScale(scale float64) string { return strconv.FormatFloat(scale, 'g', -1, 64) }
