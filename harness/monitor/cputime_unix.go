//go:build unix

package monitor

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time used by this process so far, user and kernel.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
