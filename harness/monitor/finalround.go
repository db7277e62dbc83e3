package monitor

import (
	"context"
	"sync"
	"time"
)

const (
	// maxFinalAge is the maximum age, in device time, of a sample that counts
	// as the final one of a run.
	maxFinalAge = 5 * time.Second
	// finalTimeout is the wall-clock time within which the final samples of a
	// run must be taken.
	finalTimeout = 10 * time.Second
)

// takeFinalSamples samples every process at the end of the run. Without final
// samples, a run could end one interval after its last sample. If the run lasts
// only as long as a verdict requires, it would end without a verdict.
func (m *run) takeFinalSamples(ctx context.Context) {
	var sessions sync.WaitGroup
	for _, s := range m.sessions {
		sessions.Go(func() { s.sampleFinally(ctx) })
	}
	sessions.Wait()
}

// sampleFinally samples the processes that have no recent sample. It returns
// when they are sampled or the time limit is reached.
func (s *session) sampleFinally(ctx context.Context) {
	done := make(chan struct{})
	// Do not use ask, which waits for the end of the run: the run waits for
	// this function.
	s.mailbox.post(message{do: func() { s.sampling.sampleNow(done) }})
	select {
	case <-done:
	case <-s.over: // the device's part has ended
	case <-ctx.Done():
	case <-time.After(finalTimeout):
	}
}

// sampleNow schedules a sample of each process that has no recent one, and
// closes done when these samples have been taken.
func (m *sampling) sampleNow(done chan<- struct{}) {
	now := m.clock.now()
	due := false
	for _, x := range m.subjects.order {
		if x.present && !x.pause.on && m.part.At(now)-x.LastUp >= maxFinalAge {
			x.sampling.due, due = now, true
		}
	}
	if m.silence.on() || !due && !m.rounds.inFlight {
		close(done)
		return
	}
	m.finalRounds = append(m.finalRounds, done)
}
