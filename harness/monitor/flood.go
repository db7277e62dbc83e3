package monitor

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// floodBurst events of a kind may come at once, and floodRate a second of real time. A line
	// costs CPU, disk and a line of the progress: a loop of a suite takes longer than 100 ms.
	floodBurst = 10
	floodRate  = 10.0
	// After fastEvents of them there may be slowRate a second: a night of marks stays below 10 MB,
	// and a suite that marks loops of a second or more is recorded to its end.
	fastEvents = 10_000
	slowRate   = 1.0
	// skippedEvery is the real time between two records of how many were skipped.
	skippedEvery = time.Minute
)

// floodLimit bounds how many events of a kind a workload may put on the time axis of a device, and
// counts the others. The host's real time counts, also on a simulated phone whose own time runs
// faster: it is the host that a flood wears out.
type floodLimit struct {
	began time.Time
	// full is the time since began until which there is no room, and skipped counts what found
	// none. Both are read for each line of a workload that prints nothing but marks: without a lock.
	full, skipped atomic.Int64

	mu    sync.Mutex
	room  float64
	at    time.Duration
	taken int
}

func newFloodLimit() *floodLimit { return &floodLimit{began: time.Now(), room: floodBurst} }

// admit reports whether there is room for an event, and counts it as skipped where there is none.
func (l *floodLimit) admit() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	rate := floodRate
	if l.taken >= fastEvents {
		rate = slowRate
	}
	now := time.Since(l.began)
	l.room = min(floodBurst, l.room+rate*(now-l.at).Seconds())
	l.at = now
	if l.room < 1 {
		l.full.Store(int64(now + time.Duration((1-l.room)/rate*float64(time.Second))))
		l.skipped.Add(1)
		return false
	}
	l.room--
	l.taken++
	return true
}

// isFull reports whether the next event is skipped anyway.
func (l *floodLimit) isFull(now time.Time) bool { return int64(now.Sub(l.began)) < l.full.Load() }

const (
	// paceBurst bytes of output are taken as fast as they come: as much as workload.log keeps.
	// Beyond them it is paceRate bytes a second of real time.
	paceBurst = maxWorkloadLog
	paceRate  = 2 << 20
	// paceNap bounds one pause: what is not slept off now is at the next write.
	paceNap = time.Second
)

// pace slows who writes more than paceRate for long. A workload that prints without end would have
// the host read and search its output for marks instead of sampling; a pause makes it wait in its
// write, as a slow terminal does, and nothing is lost.
type pace struct {
	mu   sync.Mutex
	at   time.Time
	debt float64 // bytes
}

// wait pauses, if need be, after so many bytes.
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
		time.Sleep(min(pause, paceNap))
	}
}

// paced is a writer that keeps a pace.
type paced struct {
	w io.Writer
	pace
}

func (p *paced) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.wait(len(b))
	return n, err
}

// Close closes the writer, where that can be closed.
func (p *paced) Close() error {
	if c, ok := p.w.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
