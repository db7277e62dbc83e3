package monitor

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// eventBurst is the maximum number of events of one kind at the same time,
	// and eventRate is the maximum number per second of wall-clock time. Each
	// event uses CPU time, disk space and a line of progress output. A loop of
	// a suite takes longer than 100 ms.
	eventBurst = 10
	eventRate  = 10.0
	// After eventQuota events, the rate is limited to slowEventRate per second.
	// The marks of one night then stay below 10 MB, and the loops of a suite
	// are still recorded completely if each takes a second or more.
	eventQuota    = 10_000
	slowEventRate = 1.0
	// skippedEvery is the wall-clock time between two events that record the
	// number of skipped events.
	skippedEvery = time.Minute
)

// rateLimit limits the events of one kind that a workload may put on the time
// axis of a device, and counts the skipped events. It uses the host's clock
// even if the device is a simulated phone whose clock runs faster, because the
// load is on the host.
type rateLimit struct {
	began time.Time
	// Events are rejected until fullUntil, which is measured from began;
	// skipped is the number of rejected events. Both are read without a lock,
	// because they are read for each line of a workload that prints only marks.
	fullUntil, skipped atomic.Int64

	mu     sync.Mutex
	tokens float64
	at     time.Duration
	taken  int
}

func newRateLimit() *rateLimit { return &rateLimit{began: time.Now(), tokens: eventBurst} }

// allow reports whether an event is within the limit. If the limit is exceeded,
// the event is counted as skipped.
func (l *rateLimit) allow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	rate := eventRate
	if l.taken >= eventQuota {
		rate = slowEventRate
	}
	now := time.Since(l.began)
	l.tokens = min(eventBurst, l.tokens+rate*(now-l.at).Seconds())
	l.at = now
	if l.tokens < 1 {
		l.fullUntil.Store(int64(now + time.Duration((1-l.tokens)/rate*float64(time.Second))))
		l.skipped.Add(1)
		return false
	}
	l.tokens--
	l.taken++
	return true
}

// isFull reports whether the next event would be skipped.
func (l *rateLimit) isFull(now time.Time) bool { return int64(now.Sub(l.began)) < l.fullUntil.Load() }

const (
	// paceBurst is the number of output bytes that are read at full speed; it
	// equals the maximum size of workload.log. After these bytes, paceRate is
	// the maximum number of bytes per second of wall-clock time.
	paceBurst = maxWorkloadLog
	paceRate  = 2 << 20
	// maxPacePause bounds one pause; the rest of the time is added to the
	// pauses of later writes.
	maxPacePause = time.Second
)

// pace slows down a writer that exceeds paceRate for a long time. Otherwise the
// host would spend its time searching endless workload output for marks instead
// of sampling. A pause blocks the workload in its write, as a slow terminal
// does, and no output is lost.
type pace struct {
	mu   sync.Mutex
	at   time.Time
	debt float64 // bytes
}

// wait adds n written bytes and pauses if the writer is more than paceBurst
// bytes ahead of paceRate.
func (p *pace) wait(n int) {
	p.mu.Lock()
	now := time.Now()
	if !p.at.IsZero() {
		p.debt = max(0, p.debt-now.Sub(p.at).Seconds()*paceRate)
	}
	p.at = now
	p.debt += float64(n)
	pause := time.Duration((p.debt - paceBurst) / paceRate * float64(time.Second))
	p.mu.Unlock()
	if pause > 0 {
		time.Sleep(min(pause, maxPacePause))
	}
}

// pacedWriter is a writer whose rate is limited by a pace.
type pacedWriter struct {
	w io.Writer
	pace
}

func (p *pacedWriter) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.wait(len(b))
	return n, err
}

// Close closes the underlying writer if it is an io.Closer.
func (p *pacedWriter) Close() error {
	if c, ok := p.w.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
