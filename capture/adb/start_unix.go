//go:build unix

package adb

import (
	"errors"
	"syscall"
)

// detached returns the attributes that put the server into its own session: a
// Ctrl-C in our terminal must not reach it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// isRefused reports whether the error means that nothing listens at an address.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
