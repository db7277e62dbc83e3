package monitor

import (
	"context"
	"sync"
	"time"
)

const (
	// finalAge is the device time after which a sample is too old to be the last one of a run.
	finalAge = 5 * time.Second
	// finalLimit is the real time that the last samples of a run may take.
	finalLimit = 10 * time.Second
)

// sampleOnceMore samples every process at the end of the run. Without it a run would end up to one
// interval after its last sample, and one of exactly the time that a verdict needs would have none.
func (m *run) sampleOnceMore(ctx context.Context) {
	var sessions sync.WaitGroup
	for _, s := range m.sessions {
		sessions.Go(func() { s.sampleNow(ctx) })
	}
	sessions.Wait()
}

// sampleNow has the processes sampled whose latest sample is not of now, and returns when that is
// done, or when it takes too long.
func (s *session) sampleNow(ctx context.Context) {
	done := make(chan struct{})
	// Not by ask, which waits for the end of the run: that waits for the duration.
	s.notes.put(letter{do: func() { s.sampling.sampleNow(done) }})
	select {
	case <-done:
	case <-s.over: // its part has ended
	case <-ctx.Done():
	case <-time.After(finalLimit):
	}
}

// sampleNow has the processes sampled whose latest sample is not of now, and closes done then.
func (m *sampling) sampleNow(done chan<- struct{}) {
	now := m.clock.now()
	due := false
	for _, x := range m.subjects.order {
		if x.present && !x.pause.on && m.part.At(now)-x.LastUp >= finalAge {
			x.sampling.due, due = now, true
		}
	}
	if m.silence.on() || !due && !m.rounds.inFlight {
		close(done)
		return
	}
	m.finalRounds = append(m.finalRounds, done)
}
