package state

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME, the clock behind /proc/uptime
// (fs/proc/uptime.c), whose resolution is only a hundredth of a second.
const clockBoottime = 7

// HostUptime returns the uptime of this machine.
func HostUptime() (time.Duration, error) {
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)),
		0); errno != 0 {
		return 0, fmt.Errorf("read clock: %w", errno)
	}
	return time.Duration(ts.Nano()), nil
}

// Now returns the current time of the device's clock.
func (c Clock) Now() (time.Duration, error) {
	host, err := HostUptime()
	if err != nil {
		return 0, err
	}
	return c.At(host), nil
}
