package detector

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/known"
)

// State is the present judgement of a process during a run.
type State uint8

// The four states (article 5.5).
const (
	Normal State = iota
	Suspicious
	Confirming
	Leaking
)

var stateNames = [...]string{"NORMAL", "SUSPICIOUS", "CONFIRMING", "LEAKING"}

// String returns the word that users read: NORMAL, SUSPICIOUS, CONFIRMING,
// LEAKING.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// MarshalText implements [encoding.TextMarshaler].
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts the four
// words only.
func (s *State) UnmarshalText(text []byte) error {
	i := slices.Index(stateNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("invalid state %.40q: want one of %s", text, strings.Join(stateNames[:], ", "))
	}
	*s = State(i)
	return nil
}

// LeakKind is the type of memory that leaks. The zero value means that no kind
// was determined.
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

// String returns the text form: java_leak, native_leak, gpu_leak, thread_leak,
// unknown, or the empty string for None.
func (k LeakKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// MarshalText implements [encoding.TextMarshaler].
func (k LeakKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. The empty string is
// None.
func (k *LeakKind) UnmarshalText(text []byte) error {
	i := slices.Index(kindNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("invalid kind of leak %.40q: want one of %s", text, strings.Join(kindNames[1:], ", "))
	}
	*k = LeakKind(i)
	return nil
}

// Gate is the verdict at the end of a run.
type Gate string

// The possible verdicts at the end of a run.
const (
	Pass         Gate = "pass"
	Leak         Gate = "leak"
	Settled      Gate = "settled"
	Inconclusive Gate = "inconclusive"
)

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts the four
// words only.
func (g *Gate) UnmarshalText(text []byte) error {
	switch v := Gate(text); v {
	case Pass, Leak, Settled, Inconclusive:
		*g = v
		return nil
	}
	return fmt.Errorf("invalid gate %.40q: want %s, %s, %s or %s", text, Pass, Leak, Settled, Inconclusive)
}

// Demand is what the detector needs next: samples, breakdowns or a diagnosis.
type Demand struct {
	// Interval is the requested time between two samples of the fast channel,
	// in device time.
	Interval time.Duration
	// Breakdowns is the number of extra breakdowns that are still needed in
	// addition to the regular ones; Spacing is the device time between two
	// extra breakdowns.
	Breakdowns int
	Spacing    time.Duration
	// Diagnose is the kind of leak for which diagnostics should be collected
	// now; None if there is no request.
	Diagnose LeakKind
}

// Mark is a point on the time axis that has a meaning for the workload.
type Mark struct {
	// At is the time since boot on the device's clock.
	At time.Duration
	// Text names the mark. Marks that differ only in their digits ("loop 1",
	// "loop 2") begin the loops of one series. "gc", in upper or lower case,
	// means that a garbage collection was just forced.
	Text string
}

// Look is the result of one evaluation of a series by policy "robust", for
// users who want to know the reason for a verdict.
type Look struct {
	// At is the time since boot on the device's clock.
	At time.Duration
	// Series is "memory" for the total, or the name of a dimension.
	Series string
	// Window is the length of the window that decided the look.
	Window time.Duration
	// Fired reports whether the window shows a leak.
	Fired bool
	// Text is the reason in one sentence with the numbers.
	Text string
}

// Transition is a change of the state, or a jump, which does not change the
// state.
type Transition struct {
	// At is the time since boot on the device's clock.
	At       time.Duration
	From, To State
	Kind     LeakKind
	// Rule is the name of the rule that caused the transition, such as "5.4
	// spike" (a section of the article and a word) or "second look".
	Rule string
	// The sentence in Because explains the transition to a tester and contains
	// the numbers.
	Because string
}

// Evidence is one number that supports a verdict.
type Evidence struct {
	Name  string
	Value float64
	Unit  string
}

// Verdict is the judgement at one point in time.
type Verdict struct {
	State, Worst State
	Kind         LeakKind
	Gate         Gate
	// Samples is the number of samples of the present process; Duration is the
	// time between the first and the last of them.
	Samples  int
	Duration time.Duration
	// Rate is the slope over the window in bytes per hour; RateLow and RateHigh
	// are its 95 % interval. RateKnown is false if there are too few samples
	// for a rate.
	Rate, RateLow, RateHigh float64
	RateKnown               bool
	// MinDetectable is the slowest leak in bytes per hour that would have been
	// detected in this series with 95 % certainty; 0 if unknown. It is always
	// unknown with policy "article".
	MinDetectable float64
	// MinDetectableLately is like MinDetectable, for a leak that began an hour
	// before the end.
	MinDetectableLately float64
	// Flat is how long memory that grew has been flat at the end of the run; 0
	// if it is not flat.
	Flat time.Duration
	// Growth is the rise of the fitted line over the window, in bytes.
	Growth int64
	// FirstSuspicious and FirstLeaking are the times on the device's clock at
	// which SUSPICIOUS and LEAKING were first reached.
	FirstSuspicious, FirstLeaking known.Duration
	// Shares lists the dimensions that contribute to the growth, the largest
	// contribution first. It is empty if no dimension grows significantly or no
	// breakdowns arrived.
	Shares []Share
	// Jumps lists the latest 16 sudden rises of the run.
	Jumps []Jump
	// Restarts counts how often a new process has replaced the previous one
	// since the run began.
	Restarts int
	// The sentence in Because states the evidence.
	Because  string
	Evidence []Evidence
	Warnings []error
}

// Share is the contribution of one dimension to the growth.
type Share struct {
	Dimension Dimension
	// Growth is in bytes. Share is Growth as a fraction, from 0 to 1, of the
	// growth of all dimensions that grow.
	Growth int64
	Share  float64
	// Rate is in bytes per hour.
	Rate float64
}

// Jump is a sudden rise, reported immediately. It is not a leak by itself.
type Jump struct {
	// At is the time since boot on the device's clock.
	At time.Duration
	// Bytes is the height above the floor of the minutes before the jump.
	Bytes int64
	// Stayed reports whether at least half of the height remained half an hour
	// later.
	Stayed bool
}
