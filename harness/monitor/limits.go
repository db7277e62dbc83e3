package monitor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters/record"
)

// limits reads how close processes are to their resource limits and records
// warnings.
type limits struct {
	*port
	call      call[[]capture.Headroom]
	headrooms *capture.Headrooms
	// due is the time of the next reading on the session's clock.
	due time.Duration

	// requested holds the callers of a LiveRun that wait for a reading;
	// requestedMu guards it.
	requestedMu sync.Mutex
	requested   *capture.Headrooms
}

func newLimits(p *port) *limits {
	l := &limits{
		port: p, call: newCall[[]capture.Headroom](), due: p.run.Headroom,
		requested: capture.NewHeadrooms(p.dev, p.dev.Facts),
	}
	l.reset()
	return l
}

// reset discards the state that depends on the boot and on the user that the
// shell runs as.
func (l *limits) reset() { l.headrooms = capture.NewHeadrooms(l.dev, l.dev.Facts) }

// readBy schedules a reading no later than the given time on the session's
// clock.
func (l *limits) readBy(at time.Duration) { l.due = min(l.due, at) }

func (l *limits) nextWake(next time.Duration) time.Duration {
	if l.run.Headroom > 0 && !l.call.inFlight {
		return min(next, l.due)
	}
	return next
}

// readNow reads the limits of one process for a caller on another goroutine.
func (l *limits) readNow(ctx context.Context, target capture.Target) ([]capture.Headroom, error) {
	l.requestedMu.Lock()
	defer l.requestedMu.Unlock()
	return l.requested.Read(ctx, []capture.Target{target})
}

// send reads the limits of all processes in one request.
func (l *limits) send(ctx context.Context, now time.Duration) {
	if l.run.Headroom <= 0 || l.call.inFlight || now < l.due {
		return
	}
	targets := l.subjects.targets()
	l.due = align(now, l.run.Headroom)
	if len(targets) == 0 {
		return
	}
	rooms := l.headrooms
	send(l.port, &l.call, func() ([]capture.Headroom, error) { return rooms.Read(ctx, targets) })
}

func (l *limits) take(ctx context.Context, a answer[[]capture.Headroom]) {
	l.call.inFlight = false
	if stale(l.port, a) || ctx.Err() != nil {
		return
	}
	if a.err != nil {
		l.silence.requestFailed(ctx, requestHeadroom, a.err)
		return
	}
	l.silence.requestSucceeded(requestHeadroom)
	for _, h := range a.value {
		x := l.subjects.byKey[h.Key()]
		if x == nil || !x.Same(h.Process) || errors.Is(h.Err, capture.ErrGone) {
			continue
		}
		l.silence.advance(ctx, h.Up, a.after)
		l.record(x, h)
	}
}

// record records how close a process is to its limits, and any new warnings.
func (l *limits) record(x *subject, h capture.Headroom) {
	out := &record.Headroom{
		Files: number(h.Files), FileLimit: number(h.FileLimit),
		Threads: number(h.Threads), ThreadLimit: number(h.ThreadLimit), ThreadLimitBy: h.ThreadLimitBy,
		Anonymous: number(h.Anonymous), AnonymousLimit: number(h.AnonymousLimit), AnonymousAssumed: h.AnonymousAssumed,
		Virtual: number(h.Virtual), VirtualLimit: number(h.VirtualLimit), Bits: h.Bits, Reasons: h.Reasons,
	}
	if use := x.response.java; use.Known {
		most, reason := h.HeapLimit(use)
		out.JavaHeap, out.JavaLimit = new(use.N), number(most)
		if reason != "" {
			out.Reasons = append(out.Reasons[:len(out.Reasons):len(out.Reasons)], reason)
		}
	}
	out.JavaGarbage = number(h.Garbage)
	x.limits.headroom = h
	if h.Err != nil {
		out.Reasons = append(out.Reasons[:len(out.Reasons):len(out.Reasons)], h.Err.Error())
	}
	e := l.processEvent(x.Account, "headroom", "")
	e.Headroom = out
	l.recordEventAt(e, h.Up)
	l.recordWarnings(x)
}

// recordWarnings records the warnings that have not been recorded yet. Warnings
// can be derived from other lines, so the recorded ones are ignored when a run
// is rebuilt.
func (l *limits) recordWarnings(x *subject) {
	limits := x.Limits()
	for _, w := range limits[min(x.limits.recorded, len(limits)):] {
		e := l.processEvent(x.Account, "limit", w.Text)
		e.T, e.Up = w.T, record.Round(l.part.At(0).Seconds()+w.T, 3)
		l.write(e)
	}
	x.limits.recorded = len(limits)
}
