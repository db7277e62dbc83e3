package monitor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// checkQueue checks the tests that a workload reports on one device. Checks are opened as tests
// begin, and read and closed one after the other by a goroutine of their own: what a check
// reads must not hold up the output in which the next test is reported.
type checkQueue struct {
	ctx     context.Context
	live    *LiveRun
	session *session // nil where nothing is checked
	serial  string
	options CheckOptions
	note    func(device string, e record.Event)

	work  chan func()
	ended chan struct{}

	mu   sync.Mutex
	lost bool // reported that a test is not checked
}

// maxWaiting bounds what waits for its turn: as many windows may be open.
const maxWaiting = 200

// startChecks begins a queue. Each one is ended by finish.
func startChecks(ctx context.Context, st Stage, serial string, o CheckOptions) *checkQueue {
	q := &checkQueue{ctx: ctx, live: st.Live, serial: serial, options: o, note: st.Note, work: make(chan func(), maxWaiting), ended: make(chan struct{})}
	if st.Live != nil {
		s, err := st.Live.session(serial)
		q.complain(err)
		q.session = s
	}
	go func() {
		defer close(q.ended)
		for do := range q.work {
			do()
		}
	}()
	return q
}

// finish waits until all tests are checked.
func (q *checkQueue) finish() {
	close(q.work)
	<-q.ended
}

// checkedTest is one test and its check.
type checkedTest struct {
	name  string
	check *OpenCheck // nil where none could be opened
	mu    sync.Mutex
	// over is when the room after it was over, as the next test began or the tests ended;
	// zero where it was not yet.
	over time.Time
}

// leave ends the room after a test.
func (t *checkedTest) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over.IsZero() {
		t.over = time.Now()
	}
}

func (t *checkedTest) overAt() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// open opens the check of a test, and counts nothing yet.
func (q *checkQueue) open(name string) *checkedTest {
	t := &checkedTest{name: name}
	if q.session == nil {
		return t
	}
	o := q.options
	o.Name, o.Of, o.Device = name, record.CheckTest, q.serial
	check, err := q.live.openCheck(o)
	q.complain(err)
	if err == nil {
		t.check = check
	}
	return t
}

// close judges and records a check.
func (q *checkQueue) close(t *checkedTest, outcome, stack string) {
	_, err := t.check.Close(q.ctx, outcome, stack)
	q.complain(err)
}

// complain reports once that tests are not checked; not at the end of the run.
func (q *checkQueue) complain(err error) {
	if err == nil || errors.Is(err, errOver) || q.ctx.Err() != nil {
		return
	}
	q.mu.Lock()
	told := q.lost
	q.lost = true
	q.mu.Unlock()
	if !told {
		q.note(q.serial, record.Event{Event: "workload", Text: "tests are not checked: " + text.Head(err.Error(), maxReason)})
	}
}

// suspending is the real time within which a process stands still after its dump is ordered
// (art/runtime/hprof/hprof.cc, DumpHeap: ScopedSuspendAll).
const suspending = 300 * time.Millisecond

// doubt looks at what was read when the room after the test was over: a leak in a heap dump is
// the test's own only where the dump came first, and then so are the counts before the dump.
func (q *checkQueue) doubt(check *OpenCheck, over time.Time, instead string, own func(p *record.CheckedProcess)) {
	_ = q.session.ask(func() {
		for _, p := range check.found {
			dumped, known := q.dumpedAt(p)
			if known && !over.Before(dumped.Add(suspending)) {
				own(p)
				continue
			}
			switch p.Verdict {
			case record.VerdictLeak, record.VerdictKnown:
				p.Verdict = record.VerdictInconclusive
				p.Text += "; but the room after the test was over before the heap was dumped" + instead
			case record.VerdictInconclusive:
				p.Text += "; the room after the test was over" + instead
			}
		}
	})
}

// dumpedAt is the host's time at which the heap dump of a process began, and whether there was
// one. The session's goroutine calls it.
func (q *checkQueue) dumpedAt(p *record.CheckedProcess) (at time.Time, known bool) {
	s := q.session
	for _, x := range s.subjects.order {
		if p.Folder != "" && x.Key().Name == p.Process && x.User == p.User && x.PID == p.PID && x.pause.since > 0 {
			return s.clock.started.Add(s.clock.real(x.pause.since)), true
		}
	}
	return time.Time{}, false
}
