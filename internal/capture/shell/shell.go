// Package shell runs short commands in a device's shell. A command line has a
// deadline and an output limit; markers separate the outputs of several
// commands and prove that the outputs are complete.
package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// Runner runs a command line in a device's shell.
type Runner interface {
	Shell(ctx context.Context, command string, stdout, stderr io.Writer) (exit int, err error)
}

// Output is the output of a short command.
type Output struct {
	Stdout, Stderr []byte
	Exit           int
}

// MaxOutput is the maximum output of one short command, in bytes. The largest
// legitimate output is that of a grep over the smaps of 50 processes.
const MaxOutput = 32 << 20

// ErrDevice means that a device did not respond to a command: it is gone, or
// its output was not read completely. The error does not mean that anything is
// wrong with a process.
var ErrDevice = errors.New("device does not respond")

// errTooLong is the error for an output of more than MaxOutput bytes.
var errTooLong = fmt.Errorf("more than %s of output", text.Size(MaxOutput))

// Ask runs one command and returns its output. The deadline is in wall-clock
// time.
func Ask(ctx context.Context, dev Runner, deadline time.Duration, command string) (Output, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	end, _ := ctx.Deadline() // the caller's deadline, if it is sooner
	within := time.Until(end)
	stdout, stderr := Buffer{}, Buffer{}
	exit, err := dev.Shell(ctx, command, &stdout, &stderr)
	if err != nil {
		return Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}, Failure(dev, within, err)
	}
	return Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Exit: exit}, nil
}

// Failure returns an ErrDevice that explains why dev.Shell failed for a command
// with this deadline. Failure is needed because the error messages of contexts
// and buffers are not meant for users.
func Failure(dev Runner, within time.Duration, err error) error {
	switch {
	case errors.Is(err, errTooLong):
		return failure{
			fmt.Sprintf("%s printed more than %s in answer to a short command", name(dev), text.Size(MaxOutput)), err,
		}
	case errors.Is(err, context.DeadlineExceeded):
		return failure{
			fmt.Sprintf("%s is listed, but its shell did not respond within %v", name(dev),
				within.Round(100*time.Millisecond)), err,
		}
	}
	return fmt.Errorf("%w: %w", ErrDevice, err)
}

// failure is an error whose message does not include the message of its cause.
type failure struct {
	text  string
	cause error
}

func (f failure) Error() string   { return f.text }
func (f failure) Unwrap() []error { return []error{ErrDevice, f.cause} }

// name returns the name of the device for messages.
func name(dev Runner) string {
	if d, ok := dev.(interface{ Serial() string }); ok {
		return "device " + text.Quote(d.Serial(), 160)
	}
	return "the device"
}

// Buffer is a bytes.Buffer that rejects writes beyond a total of MaxOutput
// bytes.
type Buffer struct{ bytes.Buffer }

func (b *Buffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > MaxOutput {
		return 0, errTooLong
	}
	return b.Buffer.Write(p)
}

// Clip returns the first line of a string from a device for use in a message:
// printable, and at most 120 characters.
func Clip(said string) string { return text.FirstLine(said, 120) }
