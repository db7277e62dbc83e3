package capture

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/leakgate/leakgate/internal/capture/shell"
)

// Device is the interface to a phone. The adb client is one implementation; any
// type that runs shell commands and transfers files can be another. All methods
// are safe for concurrent use.
type Device interface {
	// Serial returns the serial number, as adb reports it.
	Serial() string
	// Shell runs one command line in the device's shell and waits until it
	// exits. stdout and stderr receive its output; if a writer returns an
	// error, the command is killed. The error is nil only if the exit status
	// arrived: a connection that ends earlier is an error, whatever was printed
	// before. When ctx is done, the command is killed on the device too.
	Shell(ctx context.Context, command string, stdout, stderr io.Writer) (exit int, err error)
	// Pull copies a file from the device to w and returns its size in bytes.
	Pull(ctx context.Context, remote string, w io.Writer) (int64, error)
	// Push copies r to a file on the device.
	Push(ctx context.Context, r io.Reader, remote string, mode fs.FileMode) error
}

// ErrDevice means that a device did not respond to a request, or that its
// response was not read completely. The error does not mean that anything is
// wrong with a process.
var ErrDevice = shell.ErrDevice

// ErrNoAnswer means that a process does not respond to dumpsys, or blocks a
// reading: it is frozen by the cached apps freezer, hung, or too busy.
var ErrNoAnswer = errors.New("process does not respond")
