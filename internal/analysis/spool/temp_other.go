//go:build !unix

package spool

import (
	"errors"
	"os"
)

// temporary makes a file in dir that is removed when it is closed: here an open
// file keeps its name.
func temporary(dir string) (*os.File, func() error, error) {
	f, err := os.CreateTemp(dir, tempPattern)
	if err != nil {
		return nil, nil, err
	}
	return f, func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }, nil
}
