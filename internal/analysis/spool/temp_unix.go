//go:build unix

package spool

import (
	"errors"
	"os"
)

// temporary makes a file in dir that has no name, and so ends with its last
// user.
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
