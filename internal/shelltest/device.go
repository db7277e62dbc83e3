// Package shelltest contains what several tests of shell commands use: a device
// whose shell is a function, the real shells of this machine, and names that
// try to escape their quotes.
package shelltest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
)

// Device is a device whose shell is a function. The device cannot transfer
// files.
type Device struct {
	// Run runs one command line in the shell.
	Run func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error)
	// Commands holds the command lines so far. Read Commands only while no
	// command runs.
	Commands []string

	mu sync.Mutex
}

// Serial returns a fixed name.
func (d *Device) Serial() string { return "scripted" }

// Shell records the command and runs it.
func (d *Device) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	d.mu.Lock()
	d.Commands = append(d.Commands, command)
	d.mu.Unlock()
	return d.Run(ctx, command, stdout, stderr)
}

// Pull is not supported.
func (d *Device) Pull(context.Context, string, io.Writer) (int64, error) {
	return 0, errors.ErrUnsupported
}

// Push is not supported.
func (d *Device) Push(context.Context, io.Reader, string, fs.FileMode) error {
	return errors.ErrUnsupported
}
