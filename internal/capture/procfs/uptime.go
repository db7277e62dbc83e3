package procfs

import (
	"bytes"
	"time"
)

// ParseUptime parses the first number in /proc/uptime: the time since boot,
// including suspends. The number has two decimal places (fs/proc/uptime.c,
// uptime_proc_show); a number without them is something else, or damaged, and
// would make the clock jump. The number counts only if a space follows it,
// because otherwise it may be truncated.
func ParseUptime(text []byte) (time.Duration, error) {
	w, _, closed := word(text)
	seconds, fraction, _ := bytes.Cut(w, []byte("."))
	s, ok := number(seconds)
	hundredths, fine := number(fraction)
	if !closed || !ok || !fine || s > 1e9 || len(fraction) != 2 {
		return 0, formatError("uptime", text)
	}
	return time.Duration(s)*time.Second + time.Duration(hundredths)*10*time.Millisecond, nil
}
