package monitor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters/record"
)

// limits reads how near processes are to their limits, and records warnings.
type limits struct {
	*port
	call      call[[]capture.Headroom]
	headrooms *capture.Headrooms
	// due is when the next reading is due, on the session's clock.
	due time.Duration

	// requested reads the same for callers of a LiveRun; requestedMu guards it.
	requestedMu sync.Mutex
	requested   *capture.Headrooms
}

func newLimits(p *port) *limits {
	l := &limits{port: p, call: newCall[[]capture.Headroom](), due: p.run.Headroom, requested: capture.NewHeadrooms(p.dev, p.dev.Facts)}
	l.reset()
	return l
}

// reset forgets what holds for the present boot and user of the shell.
func (l *limits) reset() { l.headrooms = capture.NewHeadrooms(l.dev, l.dev.Facts) }

// readBy has the limits read by a time of the session's clock.
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

// send asks for all processes at once how near they are to their limits.
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

// record records how near a process is to its limits, and tells the warnings that follow.
func (l *limits) record(x *subject, h capture.Headroom) {
	room := &record.Headroom{
		Files: number(h.Files), FileLimit: number(h.FileLimit),
		Threads: number(h.Threads), ThreadLimit: number(h.ThreadLimit), ThreadLimitBy: h.ThreadLimitBy,
		Anonymous: number(h.Anonymous), AnonymousLimit: number(h.AnonymousLimit), AnonymousAssumed: h.AnonymousAssumed,
		Virtual: number(h.Virtual), VirtualLimit: number(h.VirtualLimit), Bits: h.Bits, Reasons: h.Reasons,
	}
	if use := x.response.java; use.Known {
		most, reason := h.HeapLimit(use)
		room.JavaHeap, room.JavaLimit = new(use.N), number(most)
		if reason != "" {
			room.Reasons = append(room.Reasons[:len(room.Reasons):len(room.Reasons)], reason)
		}
	}
	room.JavaGarbage = number(h.Garbage)
	x.limits.room = h
	if h.Err != nil {
		room.Reasons = append(room.Reasons[:len(room.Reasons):len(room.Reasons)], h.Err.Error())
	}
	e := l.naming(x.Account, "headroom", "")
	e.Headroom = room
	l.at(e, h.Up)
	l.recordWarnings(x)
}

// recordWarnings tells the warnings that nobody was told yet. They follow from the lines, so
// that a rebuild does not hear them.
func (l *limits) recordWarnings(x *subject) {
	limits := x.Limits()
	for _, w := range limits[min(x.limits.told, len(limits)):] {
		e := l.naming(x.Account, "limit", w.Text)
		e.T, e.Up = w.T, record.Round(l.part.At(0).Seconds()+w.T, 3)
		l.write(e)
	}
	x.limits.told = len(limits)
}
