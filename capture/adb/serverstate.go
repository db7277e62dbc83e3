package adb

import (
	"context"
	"sync"
	"time"
)

// A server disappears for two reasons. It may have exited (`adb kill-server`, a
// crash, out of memory); an overnight run then needs a new one. Alternatively,
// another server is about to replace it: an adb program of another version
// kills the server that it finds and starts its own (AOSP
// adb/client/adb_client.cpp, adb_connect), and for a few hundred milliseconds
// nothing listens. A server that we started in that gap would be killed in
// turn, or would keep the new server from binding the port. So an unused
// address is watched for a while before a server is started there.
const (
	// grace is how long an address of this machine must have had no listener
	// before a server is started there. It does not apply to the first start by
	// this process.
	grace = 3 * time.Second
	// startEvery is the minimum time between two starts. A server that exits
	// sooner was stopped on purpose or is broken.
	startEvery = 10 * time.Second
	// pollEvery is the interval at which an unused address is dialed.
	pollEvery = 50 * time.Millisecond
)

// servers maps the addresses that clients of this process have used to their
// states.
var servers = struct {
	sync.Mutex
	at map[string]*serverState
}{at: map[string]*serverState{}}

// serverState holds what is known about the server at one address of this
// machine.
type serverState struct {
	// turn is held by the single call that waits for a server or starts one.
	// Other calls can stop waiting for it when their contexts are done.
	turn ctxMutex

	mu sync.Mutex
	presence
}

func serverStateAt(addr string) *serverState {
	servers.Lock()
	defer servers.Unlock()
	s := servers.at[addr]
	if s == nil {
		s = &serverState{turn: newCtxMutex()}
		servers.at[addr] = s
	}
	return s
}

// presence records what recent dials and starts have shown about a server.
type presence struct {
	// seen reports whether a server has been found since the last start or, if
	// none was started, at any time.
	seen bool
	// gone is the time of the first of several consecutive dials that found no
	// server; refused is the time of the latest one.
	gone, refused time.Time
	// started is when the latest start ended, or when it began if it is still
	// in progress; failed is the error of that start.
	started time.Time
	failed  error
}

// found records a successful dial; missed records a failed dial.
func (s *serverState) found() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.gone = true, time.Time{}
}

func (s *serverState) missed(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// If the previous dial was more than grace ago, a server may have come and
	// gone in the meantime.
	if s.gone.IsZero() || now.Sub(s.refused) > grace {
		s.gone = now
	}
	s.refused = now
}

// step is the action to take when no server is listening.
type step int

const (
	stepFail step = iota
	stepWait
	stepStart
)

// next returns the step for the call that holds turn, right after a dial
// failed. mayStart specifies whether the address is on this machine and the
// call is allowed to start a server.
func (s *serverState) next(now time.Time, mayStart bool) step {
	s.mu.Lock()
	defer s.mu.Unlock()
	never := s.started.IsZero()
	recent := !never && now.Sub(s.started) < startEvery
	switch {
	case never && !s.seen && mayStart:
		return stepStart
	case !s.seen && (never || recent):
		return stepFail
	case now.Sub(s.gone) < grace:
		return stepWait
	case recent || !mayStart:
		return stepFail
	}
	return stepStart
}

// start runs launch to start a server. A start that is aborted because ctx is
// done does not count, since it leaves nothing behind.
func (s *serverState) start(ctx context.Context, launch func() error) error {
	s.mu.Lock()
	before := s.presence
	s.seen, s.started, s.failed = false, time.Now(), nil
	s.mu.Unlock()
	err := launch()
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		s.seen, s.started, s.failed = s.seen || before.seen, before.started, before.failed
		return contextError(ctx)
	}
	// startEvery is measured from the end of a start: this way no call starts
	// the server twice, however long a start takes.
	s.started, s.failed = time.Now(), err
	return err
}

// last returns the time since the latest start, and the error of that start. It
// returns zero values if the latest start is at least startEvery ago.
func (s *serverState) last(now time.Time) (ago time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started.IsZero() || now.Sub(s.started) >= startEvery {
		return 0, nil
	}
	return now.Sub(s.started), s.failed
}

// ctxMutex is a mutex for which a caller can stop waiting when its context is
// done.
type ctxMutex chan struct{}

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

func (t ctxMutex) lock(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	}
}

func (t ctxMutex) unlock() { <-t }

// sleep waits for the given time, or returns ctx's error if ctx is done first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	}
}
