//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// peak returns the peak resident memory of a process that has ended, in bytes.
// The kernel reports kilobytes, except on Darwin, where it reports bytes
// (getrusage(2)).
func peak(s *os.ProcessState) int64 {
	u, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	most := int64(u.Maxrss) //nolint:unconvert // it has 32 bits on some systems
	if runtime.GOOS != "darwin" {
		most *= 1024
	}
	return most
}
