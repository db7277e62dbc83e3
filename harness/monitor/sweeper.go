package monitor

import (
	"context"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/capture/diagnose"
	"github.com/leakgate/leakgate/reporters/record"
)

// sweeper removes what diagnoses have left on the device.
type sweeper struct {
	*port
	call call[[]string]
	// left says that a diagnosis may have left a file on the device: the device went away in the
	// middle, or did not remove it. It is looked for from due on, on the session's clock.
	left bool
	due  time.Duration
}

func newSweeper(p *port) *sweeper { return &sweeper{port: p, call: newCall[[]string]()} }

// sweepEvery is the device time between two sweeps of a device that did not let the first one end.
const sweepEvery = 5 * time.Minute

// busy reports whether a sweep is under way.
func (w *sweeper) busy() bool { return w.call.inFlight }

// hurry has what was left looked for now.
func (w *sweeper) hurry() { w.due = 0 }

// noteLeft notes that something may have been left.
func (w *sweeper) noteLeft() { w.left = true }

// again removes what a diagnosis has left on the device.
func (w *sweeper) again(ctx context.Context) {
	if w.left && !w.call.inFlight && w.clock.now() >= w.due {
		w.left = false
		w.send(ctx)
	}
}

// send has removed what a run that crashed has left on the device.
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
		w.event(record.Event{Event: "swept", Text: "removed what an earlier diagnosis has left on the device: " + strings.Join(a.value, ", ")})
	}
	switch {
	case a.err == nil:
		w.clearFault(requestSweep)
	case ctx.Err() == nil:
		w.left, w.due = true, w.clock.now()+sweepEvery
		w.recordFault(requestSweep, a.err)
	}
}
