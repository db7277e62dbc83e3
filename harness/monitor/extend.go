package monitor

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// minRepeatInterval is the minimum device time between two starts of a
	// repeated workload.
	minRepeatInterval = 5 * time.Second
	// decidedAfter is the device time without a suspicion after which the run
	// counts as decided. It spans more than one evaluation, because one
	// evaluation may miss what the next one detects.
	decidedAfter = time.Minute
)

// extension extends a run while a process appears to leak but is undecided.
type extension struct {
	run *run
	// extended is set once the run has been extended.
	extended atomic.Bool
}

// longest returns the maximum duration of an extended run, or 0 if the run may
// not be extended.
func (e *extension) longest() time.Duration {
	if e.run.LongestDuration <= e.run.Duration {
		return 0
	}
	return e.run.LongestDuration
}

// extend waits at the end of the duration while a process appears to leak but
// is undecided. It stops waiting when the run reaches its longest duration.
func (e *extension) extend(ctx context.Context) {
	if e.longest() == 0 || !e.suspicious(ctx) {
		return
	}
	every := e.run.Policy.SuspiciousInterval
	for quiet := time.Duration(0); quiet < decidedAfter; {
		left := e.remaining()
		if left <= 0 || sleep(ctx, min(left, e.run.sessions[0].clock.real(every))) != nil {
			return
		}
		why, proved := e.suspicion(ctx)
		switch {
		case why != "":
			quiet = 0
		case proved:
			return
		default:
			quiet += every
		}
	}
}

// remaining returns the wall-clock time until every device has reached the
// longest duration.
func (e *extension) remaining() time.Duration {
	left := time.Duration(0)
	for _, s := range e.run.sessions {
		left = max(left, s.clock.until(e.longest()))
	}
	return left
}

// extends reports whether a suspicion keeps the run going although its workload
// has ended.
func (e *extension) extends(ctx context.Context) bool {
	return e.longest() > 0 && e.remaining() > 0 && e.suspicious(ctx)
}

// suspicious reports whether a process appears to leak but is undecided. It
// records the first extension of the run.
func (e *extension) suspicious(ctx context.Context) bool {
	why, _ := e.suspicion(ctx)
	if why != "" && e.extended.CompareAndSwap(false, true) {
		e.run.postEvent("", record.Event{Event: "extended", Text: why})
	}
	return why != ""
}

// suspicion describes a process that appears to leak but is undecided, or
// returns "" if there is none. It also reports whether a leak is proved.
func (e *extension) suspicion(ctx context.Context) (why string, proved bool) {
	for _, s := range e.run.sessions {
		text, leak := s.suspicion(ctx)
		if why == "" {
			why = text
		}
		proved = proved || leak
	}
	return why, proved
}

// suspicion describes a process on this device that appears to leak but is
// undecided, and reports whether a leak is proved. It returns "" if there is no
// such process or the device is lost.
func (s *session) suspicion(ctx context.Context) (string, bool) {
	type answer struct {
		why    string
		proved bool
	}
	answers := make(chan answer, 1)
	s.mailbox.post(message{do: func() {
		why, proved := s.part.Suspicion()
		answers <- answer{why, proved}
	}})
	select {
	case a := <-answers:
		return a.why, a.proved
	case <-s.over:
	case <-ctx.Done():
	}
	return "", false
}
