package monitor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// checkQueue checks the tests that a workload reports on one device. A check
// starts when its test begins. A separate goroutine reads and closes the checks
// in order, because reading must not delay the output that reports the next
// test.
type checkQueue struct {
	ctx     context.Context
	live    *LiveRun
	session *session // nil if nothing is checked
	serial  string
	options CheckOptions
	note    func(device string, e record.Event)

	work  chan func()
	ended chan struct{}

	mu              sync.Mutex
	failureRecorded bool // whether the record already states that tests are not checked
}

// maxQueued bounds the queue, and therefore the number of open windows.
const maxQueued = 200

// startChecks starts a queue. The caller must call finish.
func startChecks(ctx context.Context, st Env, serial string, o CheckOptions) *checkQueue {
	q := &checkQueue{
		ctx: ctx, live: st.Live, serial: serial, options: o, note: st.Record, work: make(chan func(), maxQueued),
		ended: make(chan struct{}),
	}
	if st.Live != nil {
		s, err := st.Live.session(serial)
		q.recordFailure(err)
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

// checkedTest is a test and its check.
type checkedTest struct {
	name  string
	check *OpenCheck // nil if the check could not be started
	mu    sync.Mutex
	// delayEnded is the time at which the delay after the test ended, because
	// the next test began or all tests had ended. Until then it is zero.
	delayEnded time.Time
}

// endDelay records the end of the delay after a test.
func (t *checkedTest) endDelay() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.delayEnded.IsZero() {
		t.delayEnded = time.Now()
	}
}

func (t *checkedTest) delayEndedAt() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.delayEnded
}

// open starts the check of a test without counting objects.
func (q *checkQueue) open(name string) *checkedTest {
	t := &checkedTest{name: name}
	if q.session == nil {
		return t
	}
	o := q.options
	o.Name, o.Type, o.Device = name, record.CheckTest, q.serial
	check, err := q.live.openCheck(o)
	q.recordFailure(err)
	if err == nil {
		t.check = check
	}
	return t
}

// close judges and records a check.
func (q *checkQueue) close(t *checkedTest, outcome, stack string) {
	_, err := t.check.Close(q.ctx, outcome, stack)
	q.recordFailure(err)
}

// recordFailure records once that tests are not checked, unless the run is
// ending.
func (q *checkQueue) recordFailure(err error) {
	if err == nil || errors.Is(err, errRunEnded) || q.ctx.Err() != nil {
		return
	}
	q.mu.Lock()
	told := q.failureRecorded
	q.failureRecorded = true
	q.mu.Unlock()
	if !told {
		q.note(q.serial,
			record.Event{Event: "workload", Text: "tests are not checked: " + text.Head(err.Error(), maxReason)})
	}
}

// suspendTime is the wall-clock time between the request for a dump and the
// suspension of the process (art/runtime/hprof/hprof.cc, DumpHeap:
// ScopedSuspendAll).
const suspendTime = 300 * time.Millisecond

// checkTiming adjusts the results of a check if the delay after its test was
// too short. A leak in a heap dump belongs to the test only if the process was
// suspended before the delay ended. The function own is called for such a
// process, because the counts before the dump belong to the test as well.
func (q *checkQueue) checkTiming(check *OpenCheck, over time.Time, instead string, own func(p *record.CheckedProcess)) {
	_ = q.session.ask(func() {
		for _, p := range check.found {
			dumped, known := q.dumpedAt(p)
			if known && !over.Before(dumped.Add(suspendTime)) {
				own(p)
				continue
			}
			switch p.Verdict {
			case record.VerdictLeak, record.VerdictKnown:
				p.Verdict = record.VerdictInconclusive
				p.Text += "; but the delay after the test ended before the heap was dumped" + instead
			case record.VerdictInconclusive:
				p.Text += "; the delay after the test ended too early" + instead
			}
		}
	})
}

// dumpedAt returns when the heap dump of a process began, in host time, and
// whether there is a dump. It runs on the session's goroutine.
func (q *checkQueue) dumpedAt(p *record.CheckedProcess) (at time.Time, known bool) {
	s := q.session
	for _, x := range s.subjects.order {
		if p.Folder != "" && x.Key().Name == p.Process && x.User == p.User && x.PID == p.PID && x.pause.since > 0 {
			return s.clock.started.Add(s.clock.real(x.pause.since)), true
		}
	}
	return time.Time{}, false
}
