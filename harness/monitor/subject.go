package monitor

import (
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
)

// subject is one process name under watch: its account, and when and how to read
// it next.
type subject struct {
	*ledger.Account
	probe capture.Probe
	// provisional: the device has not said yet how it can be read.
	provisional bool
	present     bool
	// met is the host's time at which a look last found it after it was not there.
	met time.Time

	// backs counts how often the same incarnation was gone and back.
	backs int
	// hasChild: a child that keeps its name is already recorded.
	hasChild bool
	// rebooted: the device has started again since the process was last seen.
	rebooted bool
	cpu      meter

	// What each part of the session knows of it.
	sampling sampledSubject
	counts   countedSubject
	response responseTo
	limits   limitedSubject
	pause    pausedSubject
	shown    shownSubject
}

// sampledSubject is what sampling knows of a process. Times are device times since the start.
type sampledSubject struct {
	// due is when the next sample is wanted, wanted the interval that the machine asked for after
	// the latest one.
	due, wanted time.Duration
	last        capture.Reading
	costMS      float64
	// failures counts readings in a row that gave no sample, hung rounds in a row in which the
	// process alone did not answer.
	failures, hung int
	// said has the text of the last fault of each channel, so that one fault is told once.
	said [2]string
	// settles is when a forced collection has settled and a sample is due.
	settles time.Duration
}

// countedSubject says when the objects of a process are to be counted because a forced collection
// has settled, 0 for not, and when they were counted for that reason: device times since the start.
type countedSubject struct{ due, latest time.Duration }

// limitedSubject is the latest reading of how near a process is to its limits, and how many
// warnings of limits were told.
type limitedSubject struct {
	room capture.Headroom
	told int
}

// pausedSubject says that a heap dump has stopped a process, since when on the session's clock, and
// the device time of all dumps since the latest sample.
type pausedSubject struct {
	on           bool
	since, total time.Duration
}

// shownSubject is the verdict of the row shown last; fitting anew for every row would cost more than
// all else.
type shownSubject struct {
	verdict detector.Verdict
	inputs  int
}

// channel is one of the two ways to read a process.
type channel int

const (
	fastChannel channel = iota
	detailChannel
)

// target is the subject as the fast channel reads it.
func (s *subject) target() capture.Target {
	return capture.Target{Process: s.Process, Level: s.probe.Level}
}

func (s *subject) row(device string, now time.Duration) Row {
	if news := 1 + s.Inputs(); s.shown.inputs != news {
		s.shown.verdict, s.shown.inputs = s.Detector.Verdict(), news
	}
	r := Row{
		Device: device, Process: s.Key().String(), Name: s.Key().Name, User: s.User, PID: s.PID, Start: s.Start, Present: s.present,
		Source: s.probe.Level.Source, Verdict: s.shown.verdict,
		MB: float64(s.LastBytes) / detector.MB, Threads: -1, Next: max(0, s.sampling.due-now), CostMS: s.sampling.costMS,
	}
	if s.sampling.last.Threads.Known {
		r.Threads = s.sampling.last.Threads.N
	}
	return r
}
