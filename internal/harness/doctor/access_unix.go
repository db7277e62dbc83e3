//go:build linux || darwin

package doctor

import (
	"errors"
	"syscall"
)

// mayWrite reports whether files can be created in a directory, without
// creating one.
func mayWrite(dir string) (writable, known bool) {
	const writeAndEnter = 2 | 1 // W_OK | X_OK of access(2)
	switch err := syscall.Access(dir, writeAndEnter); {
	case err == nil:
		return true, true
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EPERM):
		return false, true
	}
	return false, false
}
