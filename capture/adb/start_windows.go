package adb

import (
	"errors"
	"syscall"
)

// detached returns the attributes that start the server without a console and
// protect it from our Ctrl-C. 0x8 is DETACHED_PROCESS, which package syscall
// does not define.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{HideWindow: true, CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | 0x8}
}

// isRefused reports whether the error means that nothing listens at an address.
// 10061 is WSAECONNREFUSED, which package syscall does not define.
func isRefused(err error) bool { return errors.Is(err, syscall.Errno(10061)) }
