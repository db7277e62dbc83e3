package monitor

import (
	"fmt"
	"time"

	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// marks handles the marks on the device.
type marks struct {
	*port
	// count is the number of marks so far. scanCount is the value of count when
	// the scan in progress began, at scannedAt; foundCount is its value when
	// the latest complete scan began.
	count, foundCount, scanCount int
	scannedAt                    time.Duration
	// pending lists the marks whose heap dumps wait for a scan.
	pending []pendingMark
	// skipped counts the marks and events of the workload that exceeded the
	// rate limit.
	skipped skips

	discovery *discovery
	garbage   *garbage
	responses *responses
}

const (
	// maxAppearWait is the device time within which a process of the app must
	// be found for a mark whose sender waits. The wait is needed because `am
	// start` may return before a slow phone has forked the process.
	maxAppearWait = 10 * time.Second
	// maxScanWait is the device time within which a scan must end if no sender
	// waits for the mark. After that, the processes of the previous scan are
	// dumped: the later a dump is taken, the less it reflects the state at its
	// mark.
	maxScanWait = 5 * time.Second
	// minScanInterval is the minimum device time between two scans for marks.
	minScanInterval = time.Second
)

// pendingMark is a mark whose heap dumps have not been requested yet. A scan
// must first find the running processes, because processes may have been
// stopped and started since the regular scan.
type pendingMark struct {
	text string
	// number is the position of the mark among the marks of the device, counted
	// from 1.
	number int
	at     time.Time
	// deadline is the device time, since the start of the session, until which
	// the mark may wait for a scan.
	deadline time.Duration
	// dumps collects the dumps of the mark if a caller waits for them.
	dumps *dumpWait
}

// take handles a mark. If the run dumps heaps at marks, every process that a
// scan finds is dumped. If marks before this one were skipped, its position in
// a loop is unknown. In that case objects are not counted, and heaps are dumped
// only if a caller waits for the dumps.
func (m *marks) take(l message) {
	mark, dumps := l.Text, l.dumps
	skipped := m.add(l)
	if skipped == 0 {
		m.garbage.requestAt(mark)
	}
	if !m.run.atMarks() || skipped > 0 && dumps == nil {
		m.responses.orderLoopSnapshots(mark, m.count)
		return
	}
	most := maxScanWait
	if dumps != nil {
		most = maxAppearWait
	}
	dumps.add(1)
	m.pending = append(m.pending,
		pendingMark{text: mark, number: m.count, at: time.Now(), deadline: m.clock.now() + most, dumps: dumps})
	m.requestScan()
}

// requestScan schedules a scan if marks wait for it.
func (m *marks) requestScan() {
	if len(m.pending) > 0 {
		m.loop.scanBy(max(m.clock.now(), m.scannedAt+minScanInterval))
	}
}

// order requests the dumps of the marks whose processes are known, from the
// oldest mark to the latest.
func (m *marks) order() {
	for len(m.pending) > 0 && m.ready(m.pending[0]) {
		m.orderFirst()
	}
}

// ready reports whether the wait for the processes of a mark has ended.
func (m *marks) ready(p pendingMark) bool {
	if m.foundFor(p) && (p.dumps == nil || m.subjects.anyPresent()) {
		return true
	}
	// If a caller waits, the scan in progress may still find the process.
	return m.clock.now() >= p.deadline && (p.dumps == nil || !m.discovery.scanning())
}

// foundFor reports whether a scan started after the mark has completed.
func (m *marks) foundFor(p pendingMark) bool { return p.number <= m.foundCount }

// firstFound reports whether the scan for the first pending mark is complete.
func (m *marks) firstFound() bool { return len(m.pending) > 0 && m.foundFor(m.pending[0]) }

// scanBegan and scanEnded record the beginning and the end of a scan for
// processes.
func (m *marks) scanBegan() { m.scanCount, m.scannedAt = m.count, m.clock.now() }
func (m *marks) scanEnded() { m.foundCount = m.scanCount }

// nextWake returns the earliest device time at which the wait of a mark ends,
// or next if that is earlier.
func (m *marks) nextWake(next time.Duration) time.Duration {
	// If no deadline is pending, the end of a scan wakes the session.
	if len(m.pending) == 0 || m.pending[0].deadline <= m.clock.now() {
		return next
	}
	return min(next, m.pending[0].deadline)
}

// total returns the number of marks so far; waiting reports whether any mark is
// waiting for its dumps.
func (m *marks) total() int    { return m.count }
func (m *marks) waiting() bool { return len(m.pending) > 0 }

// orderAll requests the dumps of all pending marks.
func (m *marks) orderAll() {
	for len(m.pending) > 0 {
		m.orderFirst()
	}
}

// orderFirst requests a dump of every running process for the first pending
// mark.
func (m *marks) orderFirst() {
	p := m.pending[0]
	m.pending = m.pending[1:]
	defer p.dumps.finishOne()
	defer m.responses.orderLoopSnapshots(p.text, p.number)
	if !m.subjects.anyPresent() {
		e := record.Event{
			Event: "missing", Mark: p.text,
			Text: fmt.Sprintf("no heap dump at mark %s: no process of the app was found",
				text.Quote(p.text, maxMarkShown)),
		}
		p.dumps.addMissing(e.Text)
		m.recordEvent(e)
		return
	}
	for _, x := range m.subjects.order {
		if !x.present {
			continue
		}
		o := order{
			subject: x, recipe: response.HeapOnly, trigger: record.TriggerMark, mark: p.text, marks: p.number,
			marked: laterOf(p.at, x.foundAt), dumps: p.dumps, requested: true,
		}
		p.dumps.add(1)
		if !m.responses.enqueue(o) {
			m.responses.recordMissing(o, "the dump of an earlier mark has not been taken yet")
		}
	}
}

// laterOf returns the later of two times.
func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// skips counts the events that exceeded the rate limit.
type skips struct {
	// marks is the number of marks that were skipped before the latest accepted
	// mark.
	marks int64
	// recorded holds the latest recorded number of skipped events of each kind;
	// at is when it was recorded.
	recorded [2]int64
	at       [2]time.Time
	// evidence is set once the record states that heap dumps are missing
	// because marks were skipped.
	evidence bool
}

// add counts a mark and the marks skipped before it, and returns how many were
// skipped.
func (m *marks) add(l message) (skipped int64) {
	skipped = max(0, l.skipped-m.skipped.marks)
	m.skipped.marks += skipped
	m.count += 1 + int(skipped)
	return skipped
}

// recordSkips records how many marks and events of the workload were skipped.
// The first ones are recorded immediately, further ones once per minute. If all
// is set, recordSkips records all skips now.
func (m *marks) recordSkips(all bool) {
	for i, k := range []struct {
		event, one, many, advice string
		limit                    *rateLimit
	}{
		{"marks_skipped", "mark", "marks", "set one mark in each loop", m.mailbox.marks},
		{"events_skipped", "event of the workload", "events of the workload", "", m.mailbox.events},
	} {
		total, r := k.limit.skipped.Load(), &m.skipped
		n := total - r.recorded[i]
		if n == 0 || !all && r.recorded[i] > 0 && time.Since(r.at[i]) < skippedEvery {
			continue
		}
		r.recorded[i], r.at[i] = total, time.Now()
		e := record.Event{
			Event: k.event, Count: n, Text: text.Count(int(n), k.one, k.many) + " skipped: too many in a short time",
		}
		if k.advice != "" {
			e.Text += "; " + k.advice
		}
		m.recordEvent(e)
		if k.event == "marks_skipped" && m.run.atMarks() && !r.evidence {
			r.evidence = true
			m.recordEvent(record.Event{
				Event: "missing",
				Text: fmt.Sprintf("no heap dump at marks that came faster than %.0f per second; %s", eventRate,
					k.advice),
			})
		}
	}
}
