package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

const (
	// grace is the wall-clock time within which a program must exit after
	// SIGTERM.
	grace = 2 * time.Second
	// maxMessages is the maximum number of bytes of the program's standard
	// error that are kept.
	maxMessages = 16 << 10
)

// program is one run of a program.
type program struct {
	argv []string
	dir  string
	env  []string
	// input is written to the program's standard input.
	input []byte
	// most is the maximum size of the program's output in bytes.
	most int
}

// exitError describes a program that exited with a nonzero exit code.
type exitError struct {
	program string
	code    int
	// messages is the program's standard error.
	messages string
	// output is the program's standard output.
	output []byte
}

func (e *exitError) Error() string {
	if e.messages == "" {
		return fmt.Sprintf("%s exited with code %d", e.program, e.code)
	}
	return fmt.Sprintf("%s exited with code %d: %s", e.program, e.code, e.messages)
}

// run returns the output of the program. The program has no terminal, so it
// cannot prompt. If the context is done or the output is too large, the program
// is killed together with all its child processes.
func (p program) run(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	name := text.Printable(redact(p.argv[0]))
	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = p.dir, p.env, bytes.NewReader(p.input), grace
	out := &capped{most: p.most, full: func() {
		cancel(fmt.Errorf("%s printed more than %s", name, text.Bytes(int64(p.most))))
	}}
	messages := &capped{most: maxMessages}
	cmd.Stdout, cmd.Stderr = out, messages
	detach(cmd)
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		endAll(cmd)
		if err != nil || out.overflowed {
			return nil, fmt.Errorf("run %s: %w%s", name, cause, after(messages.String()))
		}
	}
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		// The program has succeeded, but a child process that is still running,
		// such as a credential cache, keeps a pipe open.
		return out.Bytes(), nil
	case errors.As(err, &exit):
		return nil,
			&exitError{program: name, code: exit.ExitCode(), messages: said(messages.String()), output: out.Bytes()}
	}
	return nil, fmt.Errorf("run %s: %w", name, err)
}

// after formats the messages of a killed program as a suffix of an error; it
// returns "" if there are none.
func after(messages string) string {
	if messages = said(messages); messages == "" {
		return ""
	}
	return " (it said: " + messages + ")"
}

// capped keeps the first bytes of an output and discards the rest, so the
// writer never blocks.
type capped struct {
	kept       bytes.Buffer
	most       int
	overflowed bool
	// full is called when the output exceeds the limit.
	full func()
}

func (c *capped) Write(b []byte) (int, error) {
	room := c.most - c.kept.Len()
	if len(b) <= room {
		return c.kept.Write(b)
	}
	c.kept.Write(b[:room])
	if !c.overflowed && c.full != nil {
		c.full()
	}
	c.overflowed = true
	return len(b), nil
}

func (c *capped) Bytes() []byte  { return c.kept.Bytes() }
func (c *capped) String() string { return c.kept.String() }

// variable returns the last value of a variable in an environment.
func variable(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}
