package hub

import (
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
)

// Standing is the current state of a process.
type Standing struct {
	Device, Process string
	PID             int
	// Start is the start time of the process; together with the pid, it
	// identifies the process.
	Start        uint64
	State, Worst detector.State
	Gate         detector.Gate
	Kind         detector.LeakKind
	// Because is the reason for the state, in words.
	Because string
	// Rate and its bounds RateLow and RateHigh are in MB/h. RateKnown is false
	// if the rate is unknown.
	Rate, RateLow, RateHigh float64
	RateKnown               bool
	// MB is the latest reading of the memory of the process.
	MB float64
	// Age is the device time since the latest reading; -1 if there is none. A
	// reading counts as current if it is not older than MaxAge.
	Age, MaxAge time.Duration
	// Present reports whether the process is running; Answers reports whether
	// its device responds.
	Present, Answers bool
}

// maxIntervals is the number of sampling intervals for which a reading counts
// as current.
const maxIntervals = 3

func standingOf(r monitor.Row, interval time.Duration) Standing {
	v := r.Verdict
	return Standing{
		Device: r.Device, Process: r.Name, PID: r.PID, Start: r.Start, State: v.State, Worst: v.Worst, Gate: v.Gate,
		Kind: v.Kind, Because: v.Because,
		Rate: v.Rate / detector.MB, RateLow: v.RateLow / detector.MB, RateHigh: v.RateHigh / detector.MB,
		RateKnown: v.RateKnown,
		MB:        r.MB, Age: r.Age, MaxAge: maxIntervals * interval, Present: r.Present, Answers: r.Answers,
	}
}
