package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// phone is a device whose shell is a Go function. Its serial number may be any
// string.
type phone struct {
	run func(ctx context.Context, stdout io.Writer) (int, error)
}

func (phone) Serial() string { return "one\x1b[2J" }

func (p phone) Shell(ctx context.Context, _ string, stdout, _ io.Writer) (int, error) {
	return p.run(ctx, stdout)
}

// Device errors are reported in plain words instead of Go's error messages;
// programs can still test the kind of the error.
func TestAskExplainsErrors(t *testing.T) {
	hangs := func(ctx context.Context, _ io.Writer) (int, error) {
		<-ctx.Done()
		return -1, fmt.Errorf("run a command on device X: %w", ctx.Err())
	}
	floods := func(_ context.Context, stdout io.Writer) (int, error) {
		for {
			if _, err := stdout.Write(make([]byte, 1<<20)); err != nil {
				return -1, fmt.Errorf("run a command on device X: write the output: %w", err)
			}
		}
	}
	for name, c := range map[string]struct {
		run   func(context.Context, io.Writer) (int, error)
		outer time.Duration
		want  string
		kinds []error
	}{
		"hangs": {
			hangs, time.Hour, `device "one\x1b[2J" is listed, but its shell did not respond within 20s`,
			[]error{ErrDevice, context.DeadlineExceeded},
		},
		"hangs, shorter timeout": {
			hangs, 5 * time.Second, `device "one\x1b[2J" is listed, but its shell did not respond within 5s`,
			[]error{ErrDevice, context.DeadlineExceeded},
		},
		"endless output": {
			floods, time.Hour, `device "one\x1b[2J" printed more than 32.0 MB in answer to a short command`,
			[]error{ErrDevice},
		},
		"other error": {
			func(context.Context, io.Writer) (int, error) { return -1, io.ErrShortWrite }, time.Hour,
			"device does not respond: short write", []error{ErrDevice, io.ErrShortWrite},
		},
		"canceled call": {
			hangs, -1, "device does not respond: run a command on device X: context canceled",
			[]error{ErrDevice, context.Canceled},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), max(c.outer, time.Second))
			defer cancel()
			if c.outer < 0 {
				cancel()
			}
			_, err := Ask(ctx, phone{c.run}, 20*time.Second, "id")
			if err == nil || err.Error() != c.want {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
			for _, kind := range c.kinds {
				if !errors.Is(err, kind) {
					t.Errorf("%s: %v is not %v", name, err, kind)
				}
			}
		})
	}
	if out, err := Ask(t.Context(), phone{func(_ context.Context, stdout io.Writer) (int, error) {
		_, err := io.Copy(stdout, io.LimitReader(strings.NewReader(strings.Repeat("x", MaxOutput)), MaxOutput))
		return 3, err
	}}, time.Minute, "id"); err != nil || out.Exit != 3 || len(out.Stdout) != MaxOutput {
		t.Errorf("%d bytes, exit %d, %v", len(out.Stdout), out.Exit, err)
	}
}
