package ledger

import (
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

// leastIdle is the minimum time, in seconds, that a device must be watched
// after its last workload. Otherwise, the end of the workload does not matter:
// a shorter time may pass merely because the run takes time to finish.
const leastIdle = 120

// workloads tracks the workloads that stress the apps of one device.
type workloads struct {
	// running is the number of workloads that have begun and not ended.
	// recorded means that lines record the beginnings of workloads; earlier
	// versions do not write such lines.
	running  int
	recorded bool
	// ended is the t_s at which the last workload ended, and up is the device's
	// clock at that time; ended is nil while a workload runs.
	ended *float64
	up    time.Duration
}

func (w *workloads) begin() { w.running, w.recorded, w.ended = w.running+1, true, nil }

// end records the end of one of the workloads.
func (w *workloads) end(t float64, up time.Duration) {
	if w.running--; w.running <= 0 {
		w.running, w.ended, w.up = 0, &t, up
	}
}

// addWorkload records an event about a workload.
func (p *Part) addWorkload(e record.Event, up time.Duration) {
	switch {
	case e.Event == "workload_begin":
		p.load.begin()
	case e.Event == "workload_end" && p.load.running > 0:
		p.load.end(e.T, up)
	case e.Event == "workload" && e.Workload != nil && !p.load.recorded && !p.planned():
		p.load.end(e.T, up) // an additional workload, as recorded by an earlier version
	}
}

// planned reports whether the run has a workload of its own.
func (p *Part) planned() bool { return p.of.header.Plan != nil && p.of.header.Plan.Workload != nil }

// workloadEnded returns the t_s at which the last workload of the device ended.
// It returns nil if no end is known, or if the device was watched for less than
// leastIdle seconds after it.
func (p *Part) workloadEnded() *float64 {
	if p.load.ended == nil || p.last-*p.load.ended < leastIdle {
		return nil
	}
	return p.load.ended
}
