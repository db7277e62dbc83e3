// Package stall measures how long this machine kept a process from running, for
// example because of a suspended virtual machine, a long disk flush or high
// load. A test that runs in wall-clock time extends its time limits by exactly
// the measured time. As a result, a stall does not fail the test, and the test
// does not need a generous limit, which could hide a delay in the tested
// program.
package stall

import (
	"sync/atomic"
	"testing"
	"time"
)

// every is the interval of the ticks; a tick that is late by less than one
// interval is not a stall.
const every = 100 * time.Millisecond

// Meter adds up stalls.
type Meter struct{ total atomic.Int64 }

// Measure starts a Meter, which stops with the test.
func Measure(t testing.TB) *Meter {
	t.Helper()
	m := &Meter{}
	done, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(done)
		<-stopped
	})
	go func() {
		defer close(stopped)
		m.run(done)
	}()
	return m
}

func (m *Meter) run(done <-chan struct{}) {
	for last := time.Now(); ; {
		timer := time.NewTimer(every)
		select {
		case <-done:
			timer.Stop()
			return
		case <-timer.C:
		}
		now := time.Now()
		m.total.Add(int64(stalled(now.Sub(last))))
		last = now
	}
}

// stalled returns the longest possible stall between two ticks: the stall began
// at an unknown time in the interval.
func stalled(passed time.Duration) time.Duration {
	if passed < 2*every {
		return 0
	}
	return passed
}

// Total returns the sum of the stalls since Measure, including a stall that has
// just ended. Each stall may be overestimated by up to a tenth of a second.
func (m *Meter) Total() time.Duration {
	time.Sleep(2 * every) // wait for the tick that detects the latest stall
	return time.Duration(m.total.Load())
}
