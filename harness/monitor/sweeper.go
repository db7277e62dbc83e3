package monitor

import (
	"context"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/capture/diagnose"
	"github.com/leakgate/leakgate/reporters/record"
)

// sweeper removes files that diagnoses have left on the device.
type sweeper struct {
	*port
	call call[[]string]
	// left is set if a diagnosis may have left a file on the device, because
	// the device was disconnected or did not remove the file. due is the time
	// of the next sweep on the session's clock.
	left bool
	due  time.Duration
}

func newSweeper(p *port) *sweeper { return &sweeper{port: p, call: newCall[[]string]()} }

// sweepEvery is how long after a failed sweep, in device time, the next one
// starts.
const sweepEvery = 5 * time.Minute

// busy reports whether a sweep is in progress.
func (w *sweeper) busy() bool { return w.call.inFlight }

// sweepNow makes a pending sweep due now.
func (w *sweeper) sweepNow() { w.due = 0 }

// noteLeft records that a file may have been left on the device.
func (w *sweeper) noteLeft() { w.left = true }

// sweepDue starts a sweep if one is due and a file may have been left on the
// device.
func (w *sweeper) sweepDue(ctx context.Context) {
	if w.left && !w.call.inFlight && w.clock.now() >= w.due {
		w.left = false
		w.send(ctx)
	}
}

// send starts a sweep, which removes the files that a diagnosis or a crashed
// run has left on the device.
func (w *sweeper) send(ctx context.Context) {
	if w.run.responder == nil {
		return
	}
	dev := w.dev
	send(w.port, &w.call, func() ([]string, error) { return diagnose.Sweep(ctx, dev) })
}

func (w *sweeper) take(ctx context.Context, a answer[[]string]) {
	w.call.inFlight = false
	if len(a.value) > 0 {
		w.recordEvent(record.Event{
			Event: "swept", Text: "removed files that an earlier diagnosis left on the device: " +
				strings.Join(a.value, ", "),
		})
	}
	switch {
	case a.err == nil:
		w.clearFault(requestSweep)
	case ctx.Err() == nil:
		w.left, w.due = true, w.clock.now()+sweepEvery
		w.recordFault(requestSweep, a.err)
	}
}
