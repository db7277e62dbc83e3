package ledger

import (
	"fmt"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// leastSuspicion is the minimum growth in MB at which an undecided process
// extends a run. A tester would not act on less growth.
const leastSuspicion = 20.0

// Suspicion describes the first running process that seems to leak but is
// undecided; "" if there is none. proved reports whether a running process has
// a proven leak.
func (p *Part) Suspicion() (why string, proved bool) {
	for _, a := range p.accounts {
		if a.presence.since == nil {
			continue
		}
		r := a.Record(len(p.accounts))
		if r.Gate == detector.Leak {
			proved = true
			continue
		}
		if why == "" {
			why = suspicion(r)
		}
	}
	return why, proved
}

// suspicion returns why a process seems to leak; "" if it does not. A series
// that is merely too short is no reason for suspicion.
func suspicion(p record.Process) string {
	if n := len(p.AtMarks); n > 0 && p.AtMarks[n-1].Rising {
		return fmt.Sprintf("%s: %s", p.Process, p.AtMarks[n-1].Reason)
	}
	switch {
	case p.Gate == detector.Leak:
		return ""
	case p.State != detector.Normal:
		return fmt.Sprintf("%s is %v", p.Process, p.State)
	case p.Gate == detector.Inconclusive && p.Rate != nil && len(p.RateInterval) == 2 && p.RateInterval[0] > 0 &&
		p.Growth >= leastSuspicion:
		return fmt.Sprintf("%s grew %.0f MB, %.0f MB/h", p.Process, p.Growth, *p.Rate)
	}
	return ""
}
