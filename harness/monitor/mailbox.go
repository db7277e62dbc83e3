package monitor

import (
	"sync"

	"github.com/leakgate/leakgate/reporters/record"
)

// mailbox hands events of other goroutines, such as marks of a workload, to the
// one that owns a session.
type mailbox struct {
	bell chan struct{}
	*letters
	// marks and events bound the marks, and the other events that a workload causes.
	marks, events *floodLimit
}

type letters struct {
	mu      sync.Mutex
	waiting []letter
	// closed: nobody takes letters any more.
	closed bool
}

// letter is an event for a session, or something to be done by it; a mark may have somebody
// who waits for its dumps.
type letter struct {
	record.Event
	dumps *awaited
	do    func()
	// bounded: the workload may cause any number of these events.
	bounded bool
	// skipped is how many marks had been skipped when this one came.
	skipped int64
}

// maxLetters bounds what waits, where a session is busy for minutes.
const maxLetters = 10_000

func newMailbox() mailbox {
	return mailbox{make(chan struct{}, 1), &letters{}, newFloodLimit(), newFloodLimit()}
}

// put leaves an event and rings. What nobody will take lets go on who waits for its dumps.
func (m mailbox) put(l letter) {
	if !m.leave(l) {
		l.dumps.lack("the device is no longer watched, or too many marks came at once")
		l.dumps.end()
		return
	}
	select {
	case m.bell <- struct{}{}:
	default: // it rings already
	}
}

// limitOf returns what bounds letters of a kind, nil for nothing: whoever waits for dumps sets no
// other mark meanwhile.
func (m mailbox) limitOf(l letter) *floodLimit {
	switch {
	case l.do != nil || l.dumps != nil && l.dumps.owed:
		return nil
	case l.Event.Event == "mark":
		return m.marks
	case l.bounded:
		return m.events
	}
	return nil
}

func (m mailbox) leave(l letter) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	limit := m.limitOf(l)
	switch {
	case m.closed:
		return false
	case limit == nil:
	case len(m.waiting) >= maxLetters:
		limit.skipped.Add(1)
		return false
	case !limit.admit():
		return false
	}
	l.skipped = m.marks.skipped.Load()
	m.waiting = append(m.waiting, l)
	return true
}

// close ends the taking of letters.
func (m mailbox) close() {
	m.mu.Lock()
	left := m.waiting
	m.waiting, m.closed = nil, true
	m.mu.Unlock()
	for _, l := range left {
		l.dumps.lack("the run had ended")
		l.dumps.end()
	}
}

// take empties the box.
func (m mailbox) take() (waiting []letter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	waiting, m.waiting = m.waiting, nil
	return waiting
}
