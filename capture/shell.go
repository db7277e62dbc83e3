package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Quote makes text one word of a POSIX shell, whatever is in it.
func Quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// answer is what a short command printed.
type answer struct {
	out, err []byte
	exit     int
}

// maxAnswer bounds what one short command may print, in bytes. The largest
// honest one is the grep over smaps of 50 processes.
const maxAnswer = 32 << 20

// ErrDevice is a device that did not do what it was asked to: it is gone, or its
// answer was not taken to the end. It says nothing about a process.
var ErrDevice = errors.New("device does not answer")

// ask runs one command with a deadline in real time and gives all that it printed.
func ask(ctx context.Context, dev Device, deadline time.Duration, command string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	var a answer
	out, errOut := capped{max: maxAnswer}, capped{max: maxAnswer}
	exit, err := dev.Shell(ctx, command, &out, &errOut)
	if err != nil {
		return answer{out: out.Bytes(), err: errOut.Bytes()}, fmt.Errorf("%w: %w", ErrDevice, err)
	}
	a.out, a.err, a.exit = out.Bytes(), errOut.Bytes(), exit
	return a, nil
}

// capped is a buffer that refuses to grow beyond max bytes.
type capped struct {
	bytes.Buffer
	max int
}

func (c *capped) Write(p []byte) (int, error) {
	if c.Len()+len(p) > c.max {
		return 0, fmt.Errorf("more than %d bytes of output", c.max)
	}
	return c.Buffer.Write(p)
}

// clip shortens text from a device for a message: one line, at most 120 bytes,
// nothing that a terminal would obey.
func clip(text string) string {
	text = strings.TrimSpace(text)
	text, _, _ = strings.Cut(text, "\n")
	if len(text) > 120 {
		text = text[:120] + "..."
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}
