package monitor

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// leastPass is the device time between two beginnings of a workload that is repeated.
	leastPass = 5 * time.Second
	// quietFor is the device time without a suspicion after which it counts as decided: one look
	// may miss what the next one sees.
	quietFor = time.Minute
)

// extension extends a run whose processes look like leaks and are not decided.
type extension struct {
	run *run
	// extended: a suspicion has extended the run.
	extended atomic.Bool
}

// longest is how long a suspicion extends the run, 0 for not at all.
func (e *extension) longest() time.Duration {
	if e.run.LongestDuration <= e.run.Duration {
		return 0
	}
	return e.run.LongestDuration
}

// extend waits, at the end of the duration, as long as something looks like a leak and is not
// decided, but not beyond the longest duration.
func (e *extension) extend(ctx context.Context) {
	if e.longest() == 0 || !e.suspicious(ctx) {
		return
	}
	every := e.run.Policy.SuspiciousInterval
	for quiet := time.Duration(0); quiet < quietFor; {
		left := e.left()
		if left <= 0 || nap(ctx, min(left, e.run.sessions[0].clock.real(every))) != nil {
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

// left is the real time until every device has lived through the longest duration.
func (e *extension) left() time.Duration {
	left := time.Duration(0)
	for _, s := range e.run.sessions {
		left = max(left, s.clock.until(e.longest()))
	}
	return left
}

// goesOn reports whether a run whose workload has ended goes on, because of a suspicion.
func (e *extension) goesOn(ctx context.Context) bool {
	return e.longest() > 0 && e.left() > 0 && e.suspicious(ctx)
}

// suspicious reports whether something looks like a leak and is not decided, and records the first
// time that this extends the run.
func (e *extension) suspicious(ctx context.Context) bool {
	why, _ := e.suspicion(ctx)
	if why != "" && e.extended.CompareAndSwap(false, true) {
		e.run.note("", record.Event{Event: "extended", Text: why})
	}
	return why != ""
}

// suspicion says what looks like a leak and is not decided, "" for nothing, and whether a leak is
// proved.
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

// suspicion is that of one device; one that is gone has none.
func (s *session) suspicion(ctx context.Context) (string, bool) {
	type answer struct {
		why    string
		proved bool
	}
	answers := make(chan answer, 1)
	s.notes.put(letter{do: func() {
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
