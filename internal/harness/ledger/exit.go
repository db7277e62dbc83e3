package ledger

import (
	"slices"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// ExitCode returns the exit code for the record of a run with the given plan.
// If several conditions hold, the first of 2, 130, 1, 3, 6, 4, 5, 0 is
// returned: a leak that is proved on one phone remains a leak even if another
// phone was lost.
func ExitCode(r record.Run, plan record.Plan) int {
	switch {
	case r.Stopped == record.StoppedDisk:
		return record.ExitUnwritten
	case r.Interrupted:
		return record.ExitInterrupted
	case leaked(r, plan.Assert), checked(r, record.VerdictLeak):
		return record.ExitLeak
	case deviceLost(r), len(r.Processes) == 0:
		return record.ExitNoDevice
	case !plan.AllowUnjudged &&
		slices.ContainsFunc(r.MissingEvidence, func(m record.MissingEvidence) bool { return m.Unreadable }):
		return record.ExitUnread
	case r.Workload != nil && (r.Workload.Error != "" || len(r.Workload.Interrupted) > 0):
		// If the end of a command was not observed, the command does not count
		// as successful.
		return record.ExitWorkload
	case plan.Strict &&
		(slices.ContainsFunc(r.Processes, inconclusive) ||
			checked(r, record.VerdictInconclusive, record.VerdictNotChecked)):
		return record.ExitInconclusive
	case !plan.AllowUnjudged &&
		(len(r.MissingEvidence) > 0 || slices.ContainsFunc(r.Processes, rising) || len(r.Unjudged) > 0 || !judged(r)):
		return record.ExitInconclusive
	}
	return record.ExitClean
}

// judged reports whether there is any verdict, either on a process or by a
// check.
func judged(r record.Run) bool {
	return slices.ContainsFunc(r.Processes, Judged) || checked(r, record.VerdictPass, record.VerdictKnown)
}

// checked reports whether any check has one of the given verdicts.
func checked(r record.Run, verdicts ...record.CheckVerdict) bool {
	return slices.ContainsFunc(r.Checks, func(c record.Check) bool { return slices.Contains(verdicts, c.Verdict) })
}

func deviceLost(r record.Run) bool {
	return slices.ContainsFunc(r.Devices, func(d record.Device) bool { return d.Error != "" })
}

func leaked(r record.Run, assert record.Assert) bool {
	return slices.ContainsFunc(r.Apps, record.AppVerdict.Leaks) ||
		slices.ContainsFunc(r.Processes, func(p record.Process) bool {
			return p.Gate == detector.Leak || assert == record.AssertLive && p.Worst == detector.Leaking
		})
}

// rising reports whether the leaks or counts of an inconclusive process grow at
// marks without proving a leak. A pass of another process must not hide this
// growth.
func rising(p record.Process) bool {
	return inconclusive(p) && (slices.ContainsFunc(p.AtMarks, func(s record.MarkSeries) bool { return s.Rising }) ||
		slices.ContainsFunc(p.CountsAtMarks, func(s record.CountsAtMarks) bool { return s.Rising }))
}

func inconclusive(p record.Process) bool { return p.Gate == detector.Inconclusive }

// Judged reports whether there is a result for a process, from its memory
// trend, its heap dumps at marks or its counts at marks.
func Judged(p record.Process) bool {
	flat := p.Flat > 0 && 2*p.Flat >= p.Duration // it grew, and was idle for most of the time after that
	return !inconclusive(p) || flat ||
		slices.ContainsFunc(p.AtMarks, func(s record.MarkSeries) bool { return s.Gate == detector.Pass }) ||
		slices.ContainsFunc(p.CountsAtMarks, func(s record.CountsAtMarks) bool { return s.Gate == detector.Pass })
}
