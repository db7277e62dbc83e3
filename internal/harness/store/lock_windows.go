package store

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
)

const (
	fileFlagDeleteOnClose = 0x04000000
	errorSharingViolation = syscall.Errno(32)
)

// lockFolder opens a file that no other process can open at the same time and
// that Windows deletes when it is closed, even if the process is killed.
func lockFolder(ctx context.Context, dir, base string) (unlock func() error, err error) {
	name, err := syscall.UTF16PtrFromString(filepath.Join(dir, "."+base+".lock"))
	if err != nil {
		return nil, err
	}
	var handle syscall.Handle
	denied := 0
	err = waitForLock(ctx, func() (bool, error) {
		var err error
		handle, err = syscall.CreateFile(name, syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS,
			fileFlagDeleteOnClose, 0)
		if errors.Is(err, errorSharingViolation) {
			return false, nil
		}
		// Access to a file that is being deleted is denied briefly; access to a
		// directory is denied permanently.
		if denied++; errors.Is(err, syscall.ERROR_ACCESS_DENIED) && denied < 100 {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	return func() error { return syscall.CloseHandle(handle) }, nil
}
