package monitor

import "github.com/leakgate/leakgate/reporters/record"

// The exit codes of a run; where several apply, the first of this list counts.
const (
	ExitNoDevice     = 3
	ExitInterrupted  = 130
	ExitLeak         = 1
	ExitWorkload     = 4
	ExitInconclusive = 5
	ExitClean        = 0
	// ExitUnwritten is also that of usage and configuration: the run directory
	// cannot be written.
	ExitUnwritten = 2
)

// exitCode says how a run ends, by its record.
func exitCode(r record.Run, assert Assert, strict bool) int {
	switch {
	case r.Stopped == stoppedDisk:
		return ExitUnwritten
	case deviceLost(r):
		return ExitNoDevice
	case r.Interrupted:
		return ExitInterrupted
	case leaked(r, assert):
		return ExitLeak
	case r.Workload != nil && (r.Workload.Error != "" || len(r.Workload.Interrupted) > 0):
		// A command whose end nobody has seen has not done what it was to do.
		return ExitWorkload
	case strict && doubtful(r):
		return ExitInconclusive
	}
	return ExitClean
}

func deviceLost(r record.Run) bool {
	for _, d := range r.Devices {
		if d.Error != "" {
			return true
		}
	}
	return false
}

func leaked(r record.Run, assert Assert) bool {
	for _, p := range r.Processes {
		if p.Gate == "leak" || assert == AssertLive && p.Worst == "LEAKING" {
			return true
		}
	}
	return false
}

func doubtful(r record.Run) bool {
	for _, p := range r.Processes {
		if p.Gate == "inconclusive" {
			return true
		}
	}
	return len(r.Processes) == 0
}
