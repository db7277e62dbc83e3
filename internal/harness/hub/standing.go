package hub

import (
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
)

// Standing is a process as it stands now.
type Standing struct {
	Device, Process string
	PID             int
	// Start is when the process started: with the pid it identifies the process.
	Start        uint64
	State, Worst detector.State
	Gate         detector.Gate
	Kind         detector.LeakKind
	// Because is the reason of the state, in words.
	Because string
	// Rate and its interval are in MB an hour; RateKnown is false where there is none.
	Rate, RateLow, RateHigh float64
	RateKnown               bool
	// MB is the latest value of its memory.
	MB float64
	// Age is the device time since the latest reading, -1 where there is none. MaxAge is how
	// old it may be to be taken for the present.
	Age, MaxAge time.Duration
	// Present reports that the process runs, Answers that its device does.
	Present, Answers bool
}

// maxIntervals is how many sampling intervals a reading is taken for the present.
const maxIntervals = 3

func standingOf(r monitor.Row, interval time.Duration) Standing {
	v := r.Verdict
	return Standing{
		Device: r.Device, Process: r.Name, PID: r.PID, Start: r.Start, State: v.State, Worst: v.Worst, Gate: v.Gate, Kind: v.Kind, Because: v.Because,
		Rate: v.Rate / detector.MB, RateLow: v.RateLow / detector.MB, RateHigh: v.RateHigh / detector.MB, RateKnown: v.RateKnown,
		MB: r.MB, Age: r.Age, MaxAge: maxIntervals * interval, Present: r.Present, Answers: r.Answers,
	}
}
