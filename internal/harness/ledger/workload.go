package ledger

import (
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

// leastIdle is how many seconds a device must have continued without its
// workload before the end of the workload matters; ending a run takes some time
// as well.
const leastIdle = 120

// workloads are the workloads that stress the apps of one device.
type workloads struct {
	// running is the number of workloads that have begun and not ended.
	// recorded reports that lines record their beginnings, which earlier
	// versions do not do.
	running  int
	recorded bool
	// ended is t_s of the end of the last workload, and up is the device's
	// clock at that time; nil while a workload runs.
	ended *float64
	up    time.Duration
}

func (w *workloads) begin() { w.running, w.recorded, w.ended = w.running+1, true, nil }

// end ends one of the workloads.
func (w *workloads) end(t float64, up time.Duration) {
	if w.running--; w.running <= 0 {
		w.running, w.ended, w.up = 0, &t, up
	}
}

// addWorkload adds an event about a workload.
func (p *Part) addWorkload(e record.Event, up time.Duration) {
	switch {
	case e.Event == "workload_begin":
		p.load.begin()
	case e.Event == "workload_end" && p.load.running > 0:
		p.load.end(e.T, up)
	case e.Event == "workload" && e.Workload != nil && !p.load.recorded && !p.planned():
		p.load.end(e.T, up) // a workload beside the run, in a record of an earlier version
	}
}

// planned reports whether the run has a workload of its own.
func (p *Part) planned() bool { return p.of.header.Plan != nil && p.of.header.Plan.Workload != nil }

// workloadEnded returns t_s at which the workload of the device ended for good
// while the run continued; nil if it did not end.
func (p *Part) workloadEnded() *float64 {
	if p.load.ended == nil || p.last-*p.load.ended < leastIdle {
		return nil
	}
	return p.load.ended
}
