package monitor

import (
	"fmt"
	"time"

	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// marks are those that were set on the device.
type marks struct {
	*port
	// count counts them; found is how many there were when the latest look began that has ended,
	// looking when the one under way began, at lookedAt.
	count, found, looking int
	lookedAt              time.Duration
	// pending are the marks whose heap dumps wait for a look.
	pending []pendingMark
	// skipped are the marks and events of the workload for which there was no room.
	skipped skips

	discovery *discovery
	garbage   *garbage
	responses *responses
}

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

// take takes a mark: where the run dumps at marks, for every process that a look finds. Where
// marks were skipped before it, nobody knows where in a loop it stands: what is left at it is
// neither counted nor dumped, unless somebody waits for that.
func (m *marks) take(l letter) {
	mark, dumps := l.Text, l.dumps
	skipped := m.add(l)
	if skipped == 0 {
		m.garbage.collectAt(mark)
	}
	if !m.run.atMarks() || skipped > 0 && dumps == nil {
		m.responses.snapAfterLoop(mark, m.count)
		return
	}
	most := lookMost
	if dumps != nil {
		most = appearMost
	}
	dumps.begin(1)
	m.pending = append(m.pending, pendingMark{text: mark, number: m.count, at: time.Now(), until: m.clock.now() + most, dumps: dumps})
	m.look()
}

// look has the processes looked for, where marks wait for it.
func (m *marks) look() {
	if len(m.pending) > 0 {
		m.loop.lookBy(max(m.clock.now(), m.lookedAt+lookStep))
	}
}

// order orders the dumps of the marks whose processes are known, in the order of the
// marks.
func (m *marks) order() {
	for len(m.pending) > 0 && m.known(m.pending[0]) {
		m.orderFirst()
	}
}

// known reports whether the wait for the processes of a mark is over.
func (m *marks) known(p pendingMark) bool {
	if m.foundFor(p) && (p.dumps == nil || m.subjects.anyPresent()) {
		return true
	}
	// Somebody waits: what is being looked up right now counts, too.
	return m.clock.now() >= p.until && (p.dumps == nil || !m.discovery.looking())
}

// foundFor reports whether a look that began after the mark has ended.
func (m *marks) foundFor(p pendingMark) bool { return p.number <= m.found }

// firstFound reports whether the look of the first mark that waits has ended.
func (m *marks) firstFound() bool { return len(m.pending) > 0 && m.foundFor(m.pending[0]) }

// lookBegan and lookEnded note a look for processes.
func (m *marks) lookBegan() { m.looking, m.lookedAt = m.count, m.clock.now() }
func (m *marks) lookEnded() { m.found = m.looking }

// nextWake is the earliest device time at which a mark waits no longer, at most next.
func (m *marks) nextWake(next time.Duration) time.Duration {
	if len(m.pending) == 0 || m.pending[0].until <= m.clock.now() { // then the end of the look wakes the session
		return next
	}
	return min(next, m.pending[0].until)
}

// total is how many marks were set until now, waiting whether some wait for their dumps.
func (m *marks) total() int    { return m.count }
func (m *marks) waiting() bool { return len(m.pending) > 0 }

// orderAll orders the dumps of all marks that wait.
func (m *marks) orderAll() {
	for len(m.pending) > 0 {
		m.orderFirst()
	}
}

// orderFirst orders, for the first mark that waits, a dump of every process that is there.
func (m *marks) orderFirst() {
	p := m.pending[0]
	m.pending = m.pending[1:]
	defer p.dumps.end()
	defer m.responses.snapAfterLoop(p.text, p.number)
	if !m.subjects.anyPresent() {
		e := record.Event{Event: "missing", Mark: p.text, Text: fmt.Sprintf("no heap dump at mark %s: no process of the app was found", text.Quote(p.text, maxMarkShown))}
		p.dumps.lack(e.Text)
		m.event(e)
		return
	}
	for _, x := range m.subjects.order {
		if !x.present {
			continue
		}
		o := order{subject: x, recipe: response.HeapOnly, trigger: record.TriggerMark, mark: p.text, marks: p.number, marked: later(p.at, x.met), dumps: p.dumps, owed: true}
		p.dumps.begin(1)
		if !m.responses.want(o) {
			m.responses.recordMissing(o, "that of an earlier mark has not been taken yet")
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

// skips are the events that a session has skipped.
type skips struct {
	// marks is how many had been skipped before the latest mark that was taken.
	marks int64
	// recorded is how many of each kind the record says, which was written at.
	recorded [2]int64
	at       [2]time.Time
	// evidence: the record says that heap dumps are missing because of them.
	evidence bool
}

// add counts a mark that was taken, and those that were skipped before it, which it returns.
func (m *marks) add(l letter) (skipped int64) {
	skipped = max(0, l.skipped-m.skipped.marks)
	m.skipped.marks += skipped
	m.count += 1 + int(skipped)
	return skipped
}

// recordSkips records how many marks and events of the workload were skipped: the first ones at
// once, the others every minute and, with all, now.
func (m *marks) recordSkips(all bool) {
	for i, k := range []struct {
		event, one, many, advice string
		limit                    *floodLimit
	}{
		{"marks_skipped", "mark", "marks", "set one mark in each loop", m.notes.marks},
		{"events_skipped", "event of the workload", "events of the workload", "", m.notes.events},
	} {
		total, r := k.limit.skipped.Load(), &m.skipped
		n := total - r.recorded[i]
		if n == 0 || !all && r.recorded[i] > 0 && time.Since(r.at[i]) < skippedEvery {
			continue
		}
		r.recorded[i], r.at[i] = total, time.Now()
		e := record.Event{Event: k.event, Count: n, Text: text.Count(int(n), k.one, k.many) + " skipped: too many in a short time"}
		if k.advice != "" {
			e.Text += "; " + k.advice
		}
		m.event(e)
		if k.event == "marks_skipped" && m.run.atMarks() && !r.evidence {
			r.evidence = true
			m.event(record.Event{Event: "missing", Text: fmt.Sprintf("no heap dump at marks that came faster than %.0f a second; %s", floodRate, k.advice)})
		}
	}
}
