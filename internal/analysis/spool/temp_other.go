//go:build !unix

package spool

import (
	"errors"
	"os"
)

// temporary creates a file in dir that is removed when it is closed: an open
// file cannot lose its name on this system.
func temporary(dir string) (*os.File, func() error, error) {
	f, err := os.CreateTemp(dir, tempPattern)
	if err != nil {
		return nil, nil, err
	}
	return f, func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }, nil
}
