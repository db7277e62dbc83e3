package monitor

import (
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
)

// subject is a watched process name, with its series and the state that
// determines how and when to read the process next.
type subject struct {
	*ledger.Account
	probe capture.Probe
	// provisional is set if the device has not reported yet how the process can
	// be read.
	provisional bool
	present     bool
	// foundAt is the time, on the host's clock, at which a scan found the
	// process after an absence.
	foundAt time.Time

	// returns is the number of times the same life has disappeared and come
	// back.
	returns int
	// childRecorded is set once the record mentions a child with the same name.
	childRecorded bool
	// rebooted is set if the device has rebooted since the process was last
	// seen.
	rebooted bool
	cpu      meter

	// The state that the parts of the session keep for the process.
	sampling sampledSubject
	counts   countedSubject
	response responseState
	limits   limitedSubject
	pause    pausedSubject
	shown    shownSubject
}

// sampledSubject is the state that sampling keeps for a process. Times are
// device times since the start.
type sampledSubject struct {
	// due is the time of the next sample; interval is the interval that the
	// detector demanded after the latest sample.
	due, interval time.Duration
	last          capture.Reading
	costMS        float64
	// failures is the number of consecutive failed readings. unanswered is the
	// number of consecutive rounds in which this process was the only one that
	// did not respond.
	failures, unanswered int
	// lastError is the latest error of each channel. It is used to record each
	// error only once.
	lastError [2]string
	// settlesAt is the time at which a forced collection will have settled and
	// a sample is due.
	settlesAt time.Duration
}

// countedSubject holds the time of the next object count, when a forced
// collection will have settled (0 if no count is due), and the time of the last
// such count. Times are device times since the start.
type countedSubject struct{ due, latest time.Duration }

// limitedSubject holds the latest reading of the limits and the number of limit
// warnings recorded so far.
type limitedSubject struct {
	headroom capture.Headroom
	recorded int
}

// pausedSubject records whether a heap dump suspends the process, when the dump
// began on the session's clock, and the total device time of the dumps since
// the latest sample.
type pausedSubject struct {
	on           bool
	since, total time.Duration
}

// shownSubject is the verdict in the latest row. It is kept because computing
// it for every row would be too expensive.
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

// target returns the subject as a target of the fast channel.
func (s *subject) target() capture.Target {
	return capture.Target{Process: s.Process, Level: s.probe.Level}
}

func (s *subject) row(device string, now time.Duration) Row {
	if news := 1 + s.Inputs(); s.shown.inputs != news {
		s.shown.verdict, s.shown.inputs = s.Detector.Verdict(), news
	}
	r := Row{
		Device: device, Process: s.Key().String(), Name: s.Key().Name, User: s.User, PID: s.PID, Start: s.Start,
		Present: s.present,
		Source:  s.probe.Level.Source, Verdict: s.shown.verdict,
		MB: float64(s.LastBytes) / detector.MB, Threads: -1, Next: max(0, s.sampling.due-now),
		CostMS: s.sampling.costMS,
	}
	if s.sampling.last.Threads.Known {
		r.Threads = s.sampling.last.Threads.N
	}
	return r
}
