package capture

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/leakgate/leakgate/internal/capture/shell"
)

// Device is the port to a phone. The adb client is one implementation; anything
// that runs a shell command and moves files can be another. All methods may be
// called at the same time.
type Device interface {
	// Serial names the device, as adb does.
	Serial() string
	// Shell runs one command line in the device's shell and waits for its end.
	// stdout and stderr get what it prints; an error from a writer ends the
	// command. The error is nil only if the exit status arrived: a connection
	// that ends before it is an error, whatever was printed until then. When ctx
	// ends, the command is ended on the device too.
	Shell(ctx context.Context, command string, stdout, stderr io.Writer) (exit int, err error)
	// Pull copies a file of the device to w and returns its size in bytes.
	Pull(ctx context.Context, remote string, w io.Writer) (int64, error)
	// Push copies r to a file of the device.
	Push(ctx context.Context, r io.Reader, remote string, mode fs.FileMode) error
}

// ErrDevice reports a device that did not do what it was asked to: it is gone, or
// its answer was not read to the end. It says nothing about a process.
var ErrDevice = shell.ErrDevice

// ErrNoAnswer is a process that did not answer dumpsys: frozen by the cached
// apps freezer, hung, or too busy.
var ErrNoAnswer = errors.New("process does not answer")
