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

	// due is when the next sample is wanted, in device time since the start.
	due time.Duration
	// wanted is the interval that the machine asked for after the latest sample.
	wanted time.Duration
	last   capture.Reading
	costMS float64
	cpu    meter

	// failures counts readings in a row that gave no sample; said has the text of
	// the last fault of each channel, so that one fault is told once.
	failures int
	said     [2]string
	// backs counts how often the same incarnation was gone and back.
	backs int
	// hasChild: a child that keeps its name is already recorded.
	hasChild bool
	// rebooted: the device has started again since the process was last seen.
	rebooted bool
	// hung counts rounds in a row in which the process alone did not answer.
	hung int

	// settles is when a forced collection has settled and a sample is due, counts when its objects
	// are to be counted then, 0 for not; counted is when they were counted for that reason. All
	// are device times since the start.
	settles, counts, counted time.Duration

	// response is what is done about a leak of this incarnation.
	response responseTo
	// room is the latest reading of how near it is to its limits.
	room capture.Headroom
	// told is how many warnings of limits were told.
	told int
	// paused says that a heap dump has stopped it, since pausedAt on the session's clock;
	// pauses is the device time of all dumps since the latest sample.
	paused   bool
	pausedAt time.Duration
	pauses   time.Duration

	// shown is the verdict of the row shown last; fitting anew for every row would
	// cost more than all else.
	shown   detector.Verdict
	shownAt int
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
	if news := 1 + s.Inputs(); s.shownAt != news {
		s.shown, s.shownAt = s.Detector.Verdict(), news
	}
	r := Row{
		Device: device, Process: s.Key().String(), Name: s.Key().Name, User: s.User, PID: s.PID, Start: s.Start, Present: s.present,
		Source: s.probe.Level.Source, Verdict: s.shown,
		MB: float64(s.LastBytes) / detector.MB, Threads: -1, Next: max(0, s.due-now), CostMS: s.costMS,
	}
	if s.last.Threads.Known {
		r.Threads = s.last.Threads.N
	}
	return r
}
