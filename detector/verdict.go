package detector

import "time"

// State is a step of the state machine.
type State uint8

// The four states (article 5.5).
const (
	Normal State = iota
	Suspicious
	Confirming
	Leaking
)

var stateNames = [...]string{"NORMAL", "SUSPICIOUS", "CONFIRMING", "LEAKING"}

// String gives the word that users read: NORMAL, SUSPICIOUS, CONFIRMING, LEAKING.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// LeakKind says which memory leaks. The zero value means that no kind was decided.
type LeakKind uint8

// The kinds of a leak (article 5.6).
const (
	None LeakKind = iota
	Unknown
	Java
	Native
	GPU
	Thread
)

var kindNames = [...]string{"", "unknown", "java_leak", "native_leak", "gpu_leak", "thread_leak"}

// String gives the text form: java_leak, native_leak, gpu_leak, thread_leak,
// unknown, or nothing for None.
func (k LeakKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Gate is the word said when a run ends.
type Gate string

// The words of the end of a run.
const (
	Pass         Gate = "pass"
	Leak         Gate = "leak"
	Settled      Gate = "settled"
	Inconclusive Gate = "inconclusive"
)

// Demand is what the machine wants next. It asks; it never sleeps and never does I/O.
type Demand struct {
	// Interval is the wanted time between two samples of the fast channel, in
	// device time.
	Interval time.Duration
	// Breakdowns is how many extra breakdowns are still wanted, beside the
	// rotation, and Spacing the device time between two of them.
	Breakdowns int
	Spacing    time.Duration
	// Diagnose is the kind to collect diagnostics for now; None for no request.
	Diagnose LeakKind
}

// Transition is one step of the machine.
type Transition struct {
	// At is the device's clock: time since boot.
	At       time.Duration
	From, To State
	Kind     LeakKind
	// Rule names the row of the policy's table: the section of the article and a
	// word, as "5.4 spike".
	Rule string
	// Because is one sentence with the numbers, readable by a tester.
	Because string
}

// Moment is a point on the device's clock that may not have come.
type Moment struct {
	At    time.Duration
	Known bool
}

// Evidence is one number that stands behind a verdict.
type Evidence struct {
	Name  string
	Value float64
	Unit  string
}

// Verdict is what the machine knows at one moment.
type Verdict struct {
	State, Worst State
	Kind         LeakKind
	Gate         Gate
	// Samples and Duration describe the series of the present process.
	Samples  int
	Duration time.Duration
	// Rate is the slope over the window in bytes per hour with its 95 % interval;
	// RateKnown is false where there are too few samples for one.
	Rate, RateLow, RateHigh float64
	RateKnown               bool
	// MinDetectable is the slowest leak in bytes per hour that this series would
	// have shown with 95 %; 0 where it cannot be said.
	MinDetectable float64
	// Growth is the rise of the fitted line over the window, in bytes.
	Growth int64
	// FirstSuspicious and FirstLeaking are times on the device's clock.
	FirstSuspicious, FirstLeaking Moment
	// Restarts counts new identities of the process since the run began.
	Restarts int
	// Because is the evidence in one sentence.
	Because  string
	Evidence []Evidence
	Warnings []error
}
