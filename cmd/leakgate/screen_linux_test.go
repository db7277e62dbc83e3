package main

import (
	"syscall"
	"testing"
	"unsafe"
)

// The width is that of the terminal, however narrow: a line that is too long
// wraps, and cannot be fully removed. If a terminal reports no width, the usual
// width is used.
func TestScreenOfANarrowTerminal(t *testing.T) {
	_, user := pseudoTerminal(t)
	width := terminalWidth(user)
	for columns, want := range map[uint16]int{200: 200, 80: 80, 39: 39, 38: 38, 1: 1, 0: 80} {
		size := [4]uint16{24, columns} // struct winsize of ioctl_tty(2)
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, user.Fd(), syscall.TIOCSWINSZ,
			uintptr(unsafe.Pointer(&size))); errno != 0 {
			t.Fatal(errno)
		}
		if got := width(); got != want {
			t.Errorf("got a width of %d columns, want %d", columns, got)
		}
	}
}
