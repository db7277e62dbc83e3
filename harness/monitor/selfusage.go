package monitor

import (
	"runtime/metrics"
	"sync"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// selfUsage measures the CPU time and memory that leakgate itself has used
// since the selfUsage was created.
type selfUsage struct {
	mu      sync.Mutex
	started time.Time
	before  time.Duration
	most    uint64
}

func newSelfUsage() *selfUsage {
	o := &selfUsage{started: time.Now(), before: cpuTime()}
	o.record()
	return o
}

// record returns the usage so far. The memory is the maximum over all calls.
func (o *selfUsage) record() *record.Overhead {
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

// memory returns how much of the machine's memory the program uses, in bytes:
// the memory that the runtime has mapped minus the memory that it has returned.
func memory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
