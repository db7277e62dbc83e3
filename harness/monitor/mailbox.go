package monitor

import (
	"sync"

	"github.com/leakgate/leakgate/reporters/record"
)

// mailbox passes events from other goroutines, such as the marks of a workload,
// to the goroutine of a session.
type mailbox struct {
	notify chan struct{}
	*messageQueue
	// marks limits the marks of a workload; events limits its other events.
	marks, events *rateLimit
}

type messageQueue struct {
	mu      sync.Mutex
	waiting []message
	// closed is set once the mailbox accepts no more messages.
	closed bool
}

// message is an event, or a function to run on the session's goroutine. If the
// event is a mark, a caller may wait for the mark's dumps.
type message struct {
	record.Event
	dumps *dumpWait
	do    func()
	// bounded is set for events whose number depends on a workload.
	bounded bool
	// skipped is the number of marks skipped before this one.
	skipped int64
}

// maxMessages bounds the queue, which grows while a session is busy for
// minutes.
const maxMessages = 10_000

func newMailbox() mailbox {
	return mailbox{make(chan struct{}, 1), &messageQueue{}, newRateLimit(), newRateLimit()}
}

// post adds a message to the queue. If the message is rejected, post notifies
// the caller that waits for the dumps, if any.
func (m mailbox) post(l message) {
	if !m.enqueue(l) {
		l.dumps.addMissing("the device is no longer watched, or too many marks came at the same time")
		l.dumps.finishOne()
		return
	}
	select {
	case m.notify <- struct{}{}:
	default: // already notified
	}
}

// limitOf returns the rate limit for a message, or nil if the message is not
// limited. A caller that waits for dumps sets no other mark while it waits.
func (m mailbox) limitOf(l message) *rateLimit {
	switch {
	case l.do != nil || l.dumps != nil && l.dumps.requested:
		return nil
	case l.Event.Event == "mark":
		return m.marks
	case l.bounded:
		return m.events
	}
	return nil
}

func (m mailbox) enqueue(l message) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	limit := m.limitOf(l)
	switch {
	case m.closed:
		return false
	case limit == nil:
	case len(m.waiting) >= maxMessages:
		limit.skipped.Add(1)
		return false
	case !limit.allow():
		return false
	}
	l.skipped = m.marks.skipped.Load()
	m.waiting = append(m.waiting, l)
	return true
}

// close makes the mailbox reject further messages.
func (m mailbox) close() {
	m.mu.Lock()
	left := m.waiting
	m.waiting, m.closed = nil, true
	m.mu.Unlock()
	for _, l := range left {
		l.dumps.addMissing("the run had ended")
		l.dumps.finishOne()
	}
}

// drain returns and removes all messages.
func (m mailbox) drain() (waiting []message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	waiting, m.waiting = m.waiting, nil
	return waiting
}
