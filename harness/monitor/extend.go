package monitor

import (
	"context"
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

// longest is how long a suspicion extends the run, 0 for not at all.
func (m *run) longest() time.Duration {
	if m.LongestDuration <= m.Duration {
		return 0
	}
	return m.LongestDuration
}

// extend waits, at the end of the duration, as long as something looks like a leak and is not
// decided, but not beyond the longest duration.
func (m *run) extend(ctx context.Context) {
	if m.longest() == 0 || !m.suspicious(ctx) {
		return
	}
	every := m.Policy.SuspiciousInterval
	for quiet := time.Duration(0); quiet < quietFor; {
		left := m.left()
		if left <= 0 || nap(ctx, min(left, m.sessions[0].clock.real(every))) != nil {
			return
		}
		why, proved := m.suspicion(ctx)
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
func (m *run) left() time.Duration {
	left := time.Duration(0)
	for _, s := range m.sessions {
		left = max(left, s.clock.until(m.longest()))
	}
	return left
}

// goesOn reports whether a run whose workload has ended goes on, because of a suspicion.
func (m *run) goesOn(ctx context.Context) bool {
	return m.longest() > 0 && m.left() > 0 && m.suspicious(ctx)
}

// suspicious reports whether something looks like a leak and is not decided, and records the first
// time that this extends the run.
func (m *run) suspicious(ctx context.Context) bool {
	why, _ := m.suspicion(ctx)
	if why != "" && m.extended.CompareAndSwap(false, true) {
		m.note("", record.Event{Event: "extended", Text: why})
	}
	return why != ""
}

// suspicion says what looks like a leak and is not decided, "" for nothing, and whether a leak is
// proved.
func (m *run) suspicion(ctx context.Context) (why string, proved bool) {
	for _, s := range m.sessions {
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
