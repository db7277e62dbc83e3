package detector

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/known"
)

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

// MarshalText implements [encoding.TextMarshaler].
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts the four words only.
func (s *State) UnmarshalText(text []byte) error {
	i := slices.Index(stateNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown state %.40q: want one of %s", text, strings.Join(stateNames[:], ", "))
	}
	*s = State(i)
	return nil
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

// MarshalText implements [encoding.TextMarshaler].
func (k LeakKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. Nothing is None.
func (k *LeakKind) UnmarshalText(text []byte) error {
	i := slices.Index(kindNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown kind of leak %.40q: want one of %s", text, strings.Join(kindNames[1:], ", "))
	}
	*k = LeakKind(i)
	return nil
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

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts the four words only.
func (g *Gate) UnmarshalText(text []byte) error {
	switch v := Gate(text); v {
	case Pass, Leak, Settled, Inconclusive:
		*g = v
		return nil
	}
	return fmt.Errorf("unknown gate %.40q: want %s, %s, %s or %s", text, Pass, Leak, Settled, Inconclusive)
}

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

// Mark is a point on the time axis that has a meaning for the workload.
type Mark struct {
	// At is the device's clock: time since boot.
	At time.Duration
	// Text names it. Marks whose texts differ only in their digits ("loop 1",
	// "loop 2") begin the loops of one series; "gc", in any case, says that a garbage
	// collection was just forced.
	Text string
}

// Look is one look of policy "robust" at one series, for people who ask why.
type Look struct {
	// At is the device's clock: time since boot.
	At time.Duration
	// Series is what was looked at: "memory" for the total, or the name of a dimension.
	Series string
	// Window is the length of the window that decided.
	Window time.Duration
	// Fired says that the window shows a leak.
	Fired bool
	// Text is why, or why not, in one sentence with the numbers.
	Text string
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
	// have shown with 95 %; 0 if unknown, as always with policy "article".
	MinDetectable float64
	// MinDetectableLately is the same for a leak that began an hour before the end.
	MinDetectableLately float64
	// Flat is for how long memory that rose has been flat at the end of the run; 0 if it has not.
	Flat time.Duration
	// Growth is the rise of the fitted line over the window, in bytes.
	Growth int64
	// FirstSuspicious and FirstLeaking are times on the device's clock.
	FirstSuspicious, FirstLeaking known.Duration
	// Shares is which dimensions carry the growth, the largest first; empty where no
	// dimension grows significantly or no breakdowns came.
	Shares []Share
	// Jumps is the sudden rises of the run, the latest 16.
	Jumps []Jump
	// Restarts counts new identities of the process since the run began.
	Restarts int
	// Because is the evidence in one sentence.
	Because  string
	Evidence []Evidence
	Warnings []error
}

// Share is what one dimension has of the growth.
type Share struct {
	Dimension Dimension
	// Growth is in bytes; Share from 0 to 1 of all dimensions that grow.
	Growth int64
	Share  float64
	// Rate is in bytes per hour.
	Rate float64
}

// Jump is a sudden rise, told at once. It is no leak in itself.
type Jump struct {
	// At is the device's clock: time since boot.
	At time.Duration
	// Bytes is how far above the floor of the minutes before.
	Bytes int64
	// Stayed says that the level did not fall back within half an hour.
	Stayed bool
}
