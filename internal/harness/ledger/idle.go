package ledger

import (
	"fmt"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// idleCPU is the CPU use, in percent of one core, below which an app counts
	// as idle. An app in the background, or behind a lock screen, uses less;
	// starting one activity every 30 s takes 1 % or more.
	idleCPU = 0.5
	// leastAlive is the time in seconds for which an idle app must have been
	// watched before this is reported.
	leastAlive = 600
)

// appKey identifies an app on one device.
type appKey struct {
	device string
	user   int
	pkg    string
}

// appUse is the CPU use of all processes of an app together.
type appUse struct {
	// cpu excludes the cost of watching; known reports whether it was measured
	// for all processes.
	cpu   float64
	known bool
	// alive is the longest time for which one of the processes was watched, in
	// seconds. passes reports whether the verdict on one of them is pass or
	// settled.
	alive  float64
	passes bool
}

func (u *appUse) add(p record.Process) {
	u.known = u.known && p.CPU != nil
	if p.CPU != nil {
		u.cpu += *p.CPU
	}
	if p.CostCPU != nil {
		u.cpu -= *p.CostCPU
	}
	u.alive = max(u.alive, p.Alive)
	u.passes = u.passes || p.Gate == detector.Pass || p.Gate == detector.Settled
}

// idleWarnings warns about each app that has passed but did hardly anything,
// for example because the device was locked or the workload did not reach the
// app: a leak in code that does not run cannot be found.
func idleWarnings(processes []record.Process) []string {
	uses := map[appKey]*appUse{}
	var order []appKey
	for _, p := range processes {
		k := appKey{p.Device, p.User, capture.Process{Name: p.Process}.Package()}
		if uses[k] == nil {
			uses[k] = &appUse{known: true}
			order = append(order, k)
		}
		uses[k].add(p)
	}
	var out []string
	for _, k := range order {
		u := uses[k]
		if !u.known || !u.passes || u.alive < leastAlive || u.cpu >= idleCPU {
			continue
		}
		out = append(out,
			fmt.Sprintf("device %s: %s was idle (%.1f %% of a core), and a leak in code that does not run cannot be "+
				"found: check that the device is unlocked and that the test reaches the app",
				text.Printable(k.device), text.Printable(k.pkg), max(0, u.cpu)))
	}
	return out
}
