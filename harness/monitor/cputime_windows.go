package monitor

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time used by this process so far, user and kernel.
// Windows reports user and kernel time as durations in units of 100 ns, not as
// dates.
func cpuTime() time.Duration {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0
	}
	var created, exited, kernel, user syscall.Filetime
	if syscall.GetProcessTimes(self, &created, &exited, &kernel, &user) != nil {
		return 0
	}
	span := func(f syscall.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return time.Duration(100 * (span(kernel) + span(user)))
}
