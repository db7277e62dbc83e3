package ledger

import (
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// ExitCode returns the exit code of a run, by its record.
func ExitCode(r record.Run, assert record.Assert, strict bool) int {
	switch {
	case r.Stopped == record.StoppedDisk:
		return record.ExitUnwritten
	case deviceLost(r):
		return record.ExitNoDevice
	case r.Interrupted:
		return record.ExitInterrupted
	case leaked(r, assert):
		return record.ExitLeak
	case r.Workload != nil && (r.Workload.Error != "" || len(r.Workload.Interrupted) > 0):
		// A command whose end nobody has seen has not done what it was to do.
		return record.ExitWorkload
	case strict && doubtful(r):
		return record.ExitInconclusive
	}
	return record.ExitClean
}

func deviceLost(r record.Run) bool {
	for _, d := range r.Devices {
		if d.Error != "" {
			return true
		}
	}
	return false
}

func leaked(r record.Run, assert record.Assert) bool {
	for _, p := range r.Processes {
		if p.Gate == detector.Leak || assert == record.AssertLive && p.Worst == detector.Leaking {
			return true
		}
	}
	return false
}

func doubtful(r record.Run) bool {
	for _, p := range r.Processes {
		if p.Gate == detector.Inconclusive {
			return true
		}
	}
	return len(r.Processes) == 0
}
