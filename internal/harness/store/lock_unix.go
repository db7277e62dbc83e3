//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFolder locks the directory itself, because flock(2) accepts any open
// file. No lock file remains.
func lockFolder(ctx context.Context, dir, _ string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = waitForLock(ctx, func() (bool, error) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		_ = f.Close()
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EBADF) {
			return nil, fmt.Errorf("the file system of %s does not support locks: %w; "+
				"keep the baseline on a local disk or in another store", dir, err)
		}
		return nil, err
	}
	return f.Close, nil
}
