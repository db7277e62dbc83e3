package monitor

import (
	"fmt"
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// appearMost is the device time within which a process of the app must be found for a mark
	// whose sender waits: `am start` may return before a slow phone has forked the process.
	appearMost = 10 * time.Second
	// lookMost is the device time within which the look for another mark must end. After it the
	// processes of the look before count: the later a dump, the less it shows of its mark.
	lookMost = 5 * time.Second
	// lookStep is the least device time between two looks for marks.
	lookStep = time.Second
)

// pendingMark is a mark whose heap dumps are not ordered yet: the processes that run at it are
// looked for first. Those of the regular look may have been stopped and started since.
type pendingMark struct {
	text string
	// number is that among the marks of the device, from 1.
	number int
	at     time.Time
	// until is the device time since the start of the session until which it may wait.
	until time.Duration
	// dumps are those of the mark, where somebody waits for them.
	dumps *awaited
}

// marked takes a mark: where the run dumps at marks, for every process that a look finds. Where
// marks were skipped before it, nobody knows where in a loop it stands: what is left at it is
// neither counted nor dumped, unless somebody waits for that.
func (s *session) marked(l letter) {
	mark, dumps := l.Text, l.dumps
	skipped := s.addMark(l)
	if skipped == 0 {
		s.collectAt(mark)
	}
	if !s.run.atMarks() || skipped > 0 && dumps == nil {
		s.snapAfterLoop(mark, s.marks)
		return
	}
	most := lookMost
	if dumps != nil {
		most = appearMost
	}
	dumps.begin(1)
	s.pending = append(s.pending, pendingMark{text: mark, number: s.marks, at: time.Now(), until: s.clock.now() + most, dumps: dumps})
	s.lookForMarks()
}

// lookForMarks has the processes looked for, where marks wait for it.
func (s *session) lookForMarks() {
	if len(s.pending) > 0 {
		s.discoverAt = min(s.discoverAt, max(s.clock.now(), s.lookedAt+lookStep))
	}
}

// orderAtMarks orders the dumps of the marks whose processes are known, in the order of the
// marks.
func (s *session) orderAtMarks() {
	for len(s.pending) > 0 && s.known(s.pending[0]) {
		s.orderFirstMark()
	}
}

// known reports whether the wait for the processes of a mark is over.
func (s *session) known(m pendingMark) bool {
	if s.foundFor(m) && (m.dumps == nil || s.anyPresent()) {
		return true
	}
	// Somebody waits: what is being looked up right now counts, too.
	return s.clock.now() >= m.until && (m.dumps == nil || !s.looking())
}

// foundFor reports whether a look that began after the mark has ended.
func (s *session) foundFor(m pendingMark) bool { return m.number <= s.foundMarks }

func (s *session) anyPresent() bool {
	return slices.ContainsFunc(s.order, func(x *subject) bool { return x.present })
}

// markWake is the earliest device time at which a mark waits no longer, false for none.
func (s *session) markWake() (at time.Duration, ok bool) {
	if len(s.pending) == 0 || s.pending[0].until <= s.clock.now() { // then the end of the look wakes the session
		return 0, false
	}
	return s.pending[0].until, true
}

// orderFirstMark orders, for the first mark that waits, a dump of every process that is there.
func (s *session) orderFirstMark() {
	m := s.pending[0]
	s.pending = s.pending[1:]
	defer m.dumps.end()
	defer s.snapAfterLoop(m.text, m.number)
	if !s.anyPresent() {
		e := record.Event{Event: "missing", Mark: m.text, Text: fmt.Sprintf("no heap dump at mark %s: no process of the app was found", text.Quote(m.text, maxMarkShown))}
		m.dumps.lack(e.Text)
		s.event(e)
		return
	}
	for _, x := range s.order {
		if !x.present {
			continue
		}
		o := order{subject: x, recipe: response.HeapOnly, trigger: record.TriggerMark, mark: m.text, marks: m.number, marked: later(m.at, x.met), dumps: m.dumps, owed: true}
		m.dumps.begin(1)
		if !s.want(o) {
			s.lack(o, "that of an earlier mark has not been taken yet")
		}
	}
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
