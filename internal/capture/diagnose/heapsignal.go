package diagnose

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/capture/shell"
)

const garbage = "the dump includes garbage"

// collect triggers a GC with a signal, for releases whose am cannot trigger
// one, and waits for the GC and the finalizers.
func (h *heapDump) collect(ctx context.Context, status []byte) error {
	why := h.signal(ctx, status)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if why != nil {
		h.result.note = garbage
		h.result.reasons = append(h.result.reasons, fmt.Sprintf("no GC before the dump: %v", why))
		return nil
	}
	return h.wait(ctx, time.Duration(float64(settle)/h.scale()))
}

// sigUSR1 is the signal that triggers a GC of ART and Dalvik.
const sigUSR1 = 10

// signal sends the GC signal as root or, if that is not possible, as the app.
func (h *heapDump) signal(ctx context.Context, status []byte) error {
	// The signal kills a process that does not handle it.
	if !handles(status, sigUSR1) {
		return errors.New("the process does not handle the GC signal")
	}
	var why error
	for _, as := range []As{AsRoot, AsApp} {
		prefix, err := h.prefix(ctx, as)
		if err == nil {
			err = h.kill(ctx, prefix)
		}
		if err == nil {
			return nil
		}
		why = joined(why, fmt.Errorf("%s: %w", as, err))
	}
	return why
}

func joined(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w; %w", a, b)
}

func (h *heapDump) kill(ctx context.Context, prefix shell.Prefix) error {
	line := prefix.Wrap(fmt.Sprintf("kill -%d %d", sigUSR1, h.req.Process.PID))
	a, err := shell.Ask(ctx, h.dev, h.scaled(quickLimit), line+" </dev/null")
	switch {
	case err != nil:
		return err
	case a.Exit != 0 || len(a.Stderr) > 0:
		return fmt.Errorf("%s", shell.Clip(string(a.Stderr)+string(a.Stdout)))
	}
	return nil
}

// handles reports whether a process blocks or catches a signal (proc(5), SigBlk
// and SigCgt). ART blocks the GC signal in every thread, and one of the threads
// waits for it.
func handles(status []byte, signal int) bool {
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		if key != "SigBlk" && key != "SigCgt" {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err == nil && mask>>(signal-1)&1 != 0 {
			return true
		}
	}
	return false
}
