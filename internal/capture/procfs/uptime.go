package procfs

import (
	"bytes"
	"time"
)

// ParseUptime reads the first number of /proc/uptime: the time since boot,
// suspends included (fs/proc/uptime.c takes CLOCK_BOOTTIME). The number counts
// only if a blank follows it: alone it may be cut.
func ParseUptime(text []byte) (time.Duration, error) {
	w, _, closed := word(text)
	if !closed {
		return 0, formatError("uptime", text)
	}
	seconds, fraction, _ := bytes.Cut(w, []byte("."))
	s, ok := number(seconds)
	if !ok || s > 1e9 || len(fraction) > 9 {
		return 0, formatError("uptime", text)
	}
	up := time.Duration(s) * time.Second
	if len(fraction) == 0 {
		return up, nil
	}
	n, ok := number(fraction)
	if !ok {
		return 0, formatError("uptime", text)
	}
	for range 9 - len(fraction) {
		n *= 10
	}
	return up + time.Duration(n), nil
}
