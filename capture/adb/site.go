package adb

import (
	"context"
	"sync"
	"time"
)

// A server goes for two reasons. Somebody ended it (`adb kill-server`, a crash, the
// kernel out of memory): a run of a night needs a new one. Or somebody is about to
// replace it: an adb program of another version kills the server that it finds and
// starts its own (AOSP adb/client/adb_client.cpp, adb_connect), and for some hundred
// milliseconds nothing listens. A server that we started in that gap would be killed
// in turn, or keep the other from binding the port. So an empty place is watched for
// a while before it is taken.
const (
	// grace is how long nothing may listen at an address of this machine before a
	// server is started there, the first start of this process apart.
	grace = 3 * time.Second
	// startEvery is how long after one start the next may begin. A server that does
	// not live that long is somebody else's wish, or broken.
	startEvery = 10 * time.Second
	// pollEvery is how often an empty place is looked at.
	pollEvery = 50 * time.Millisecond
)

// sites are the addresses that this process has tried, whichever client did.
var sites = struct {
	sync.Mutex
	at map[string]*site
}{at: map[string]*site{}}

// site is one address of this machine and what is known of the server there.
type site struct {
	// turn is held by the one call that waits for a server or starts one; a context
	// can give up waiting for it.
	turn turn

	mu sync.Mutex
	presence
}

func siteAt(addr string) *site {
	sites.Lock()
	defer sites.Unlock()
	s := sites.at[addr]
	if s == nil {
		s = &site{turn: newTurn()}
		sites.at[addr] = s
	}
	return s
}

// presence is when a server was there and when not.
type presence struct {
	// seen: a server was there, since the last start if there was one.
	seen bool
	// gone and refused are the first and the latest dial in a row that found
	// nothing.
	gone, refused time.Time
	// started is when the latest start ended, or began while it goes on, and failed
	// how it ended.
	started time.Time
	failed  error
}

// found notes a dial that was answered, and missed one that was not.
func (s *site) found() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.gone = true, time.Time{}
}

func (s *site) missed(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Who has not looked for that long does not know what was there meanwhile.
	if s.gone.IsZero() || now.Sub(s.refused) > grace {
		s.gone = now
	}
	s.refused = now
}

// step is what to do where nothing listens.
type step int

const (
	stepFail step = iota
	stepWait
	stepStart
)

// next is the step of the call whose turn it is, just after a dial missed. mayStart
// says that it may start a server and that this machine is the place for it.
func (s *site) next(now time.Time, mayStart bool) step {
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

// start runs launch as a start of a server, unless ctx ends it: a start that was
// given up has left nothing and is none.
func (s *site) start(ctx context.Context, launch func() error) error {
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
	// Counted from here, so that no call makes two starts, however long one takes.
	s.started, s.failed = time.Now(), err
	return err
}

// last is how long ago the latest start was, if that is recent, and its error.
func (s *site) last(now time.Time) (ago time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started.IsZero() || now.Sub(s.started) >= startEvery {
		return 0, nil
	}
	return now.Sub(s.started), s.failed
}

// turn is a lock that a context can give up waiting for.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	}
}

func (t turn) give() { <-t }

// sleep waits, or gives ctx's error.
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
