package monitor

import (
	"sync"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// mailbox hands events of other goroutines, such as marks of a workload, to the
// one that owns a session.
type mailbox struct {
	bell chan struct{}
	*letters
}

type letters struct {
	mu      sync.Mutex
	waiting []letter
	dropped int
	// closed: nobody takes letters any more.
	closed bool
}

// letter is an event for a session, or something to be done by it; a mark may have somebody
// who waits for its dumps.
type letter struct {
	record.Event
	dumps *awaited
	do    func()
}

// maxLetters bounds what waits: a workload that prints nothing but marks.
const maxLetters = 10_000

func newMailbox() mailbox { return mailbox{make(chan struct{}, 1), &letters{}} }

// put leaves an event and rings. What nobody will take lets go on who waits for its dumps.
func (m mailbox) put(l letter) {
	if !m.leave(l) {
		l.dumps.lack("the device is no longer watched, or too many marks came at once")
		l.dumps.end()
	}
	select {
	case m.bell <- struct{}{}:
	default: // it rings already
	}
}

func (m mailbox) leave(l letter) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return false
	case len(m.waiting) >= maxLetters && l.do == nil:
		m.dropped++
		return false
	}
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
func (m mailbox) take() (waiting []letter, dropped int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	waiting, dropped = m.waiting, m.dropped
	m.waiting, m.dropped = nil, 0
	return waiting, dropped
}

func (s *session) takeNotes() {
	waiting, dropped := s.notes.take()
	for _, l := range waiting {
		if l.do != nil {
			l.do()
			continue
		}
		s.event(l.Event)
		if l.Event.Event == "mark" {
			s.marked(l.Text, l.dumps)
		}
		l.dumps.end()
	}
	if dropped > 0 {
		s.event(record.Event{Event: "error", Text: text.Plural(dropped, "mark", "marks") + " came faster than could be written: skipped"})
	}
}
