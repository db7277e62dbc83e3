package monitor

import (
	"runtime/metrics"
	"sync"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// own measures what the program itself uses, from its start on.
type own struct {
	mu      sync.Mutex
	started time.Time
	before  time.Duration
	most    uint64
}

func newOwn() *own {
	o := &own{started: time.Now(), before: cpuTime()}
	o.record()
	return o
}

// record is what was used until now; memory is the most that any call has seen.
func (o *own) record() *record.Overhead {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.most = max(o.most, memory())
	used := cpuTime() - o.before
	out := &record.Overhead{CPU: record.Round(used.Seconds(), 2), Memory: record.Round(float64(o.most)/detector.MB, 1)}
	if p := percent(used, time.Since(o.started)); p != nil {
		out.Percent = *p
	}
	return out
}

// memory is what the program holds of the machine, in bytes: all that the runtime
// has mapped, less what it has given back.
func memory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
