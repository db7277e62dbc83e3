//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package store

import (
	"context"
	"errors"
	"fmt"
)

// lockFolder always fails: without a lock, an update could be lost.
func lockFolder(context.Context, string, string) (unlock func() error, err error) {
	return nil, fmt.Errorf("no file locks on this system: %w; use git:BRANCH#PATH", errors.ErrUnsupported)
}
