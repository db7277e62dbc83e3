//go:build unix

package spool

import (
	"errors"
	"os"
)

// temporary creates a file in dir that has no name, so the system deletes the
// file when nothing uses it any more.
func temporary(dir string) (*os.File, func() error, error) {
	f, err := os.CreateTemp(dir, tempPattern)
	if err != nil {
		return nil, nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, f.Close, nil
}
