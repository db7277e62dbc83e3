//go:build unix

package adb

import (
	"errors"
	"syscall"
)

// detached gives the server a session of its own: a ^C in our terminal is not for
// it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// isRefused tells that nothing listens at an address.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
