package record

import (
	"fmt"
	"math"
	"time"

	"github.com/leakgate/leakgate/detector"
)

// Plan is the task of a run. With it the lines can be judged again without the
// program that wrote them.
type Plan struct {
	Tool string `json:"tool"`
	// Policy is the name of the policy, Revision that of its rules.
	Policy   string `json:"policy"`
	Revision int    `json:"revision"`
	// Intervals are the times between two samples, Cooldown is the least time
	// between two diagnoses, MaxGap the longest gap that a trend crosses: all
	// in seconds.
	Intervals Intervals `json:"intervals"`
	Cooldown  float64   `json:"cooldown_s"`
	MaxGap    float64   `json:"max_gap_s"`
	Assert    Assert    `json:"assert"`
	Strict    bool      `json:"strict"`
	// AllowUnjudged makes a run that could judge nothing, or lacks evidence,
	// exit with 0.
	AllowUnjudged bool `json:"allow_unjudged,omitempty"`
	// Duration is the planned maximum of the run, LongestDuration that with
	// extension by a suspicion, in seconds; 0 for no such end.
	Duration        float64 `json:"duration_s,omitempty"`
	LongestDuration float64 `json:"longest_duration_s,omitempty"`
	// MustSee is the slowest leak that a pass must rule out, in MB/h; 0 for
	// any.
	MustSee float64 `json:"must_see_mb_per_h,omitempty"`
	// Processes are the patterns that select the watched processes.
	Processes []string `json:"processes"`
	// Workload is what stresses the app; null for nothing.
	Workload *PlannedWorkload `json:"workload"`
	// Build is the tested build; nil if unknown.
	Build *Revision `json:"build,omitempty"`
}

// Intervals are the times between two samples in the states, in seconds.
// CONFIRMING has that of SUSPICIOUS.
type Intervals struct {
	Normal     float64 `json:"normal_s"`
	Suspicious float64 `json:"suspicious_s"`
	Leaking    float64 `json:"leaking_s"`
}

// PlannedWorkload is a workload before it began.
type PlannedWorkload struct {
	Kind string `json:"kind"`
	// Seed and Events of monkey.
	Seed   *int64 `json:"seed"`
	Events int    `json:"events"`
	Digest string `json:"digest,omitempty"`
}

// Assert is which verdicts fail a run.
type Assert string

// The gate at the end fails a run, or any process that ever reached LEAKING.
const (
	AssertEnd  Assert = "end"
	AssertLive Assert = "live"
)

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts the two words
// only.
func (a *Assert) UnmarshalText(text []byte) error {
	switch v := Assert(text); v {
	case AssertEnd, AssertLive:
		*a = v
		return nil
	}
	return fmt.Errorf("invalid word %.40q: want %s or %s", text, AssertEnd, AssertLive)
}

// SetPolicy sets the policy of a plan.
func (p *Plan) SetPolicy(d detector.Policy) {
	p.Policy, p.Revision = d.Name, d.Revision
	p.Intervals = Intervals{d.NormalInterval.Seconds(), d.SuspiciousInterval.Seconds(), d.LeakingInterval.Seconds()}
	p.Cooldown, p.MaxGap = d.Cooldown.Seconds(), d.MaxGap.Seconds()
}

// DetectorPolicy returns the policy of a plan.
func (p *Plan) DetectorPolicy() detector.Policy {
	return detector.Policy{
		Name: p.Policy, Revision: p.Revision,
		NormalInterval: duration(p.Intervals.Normal), SuspiciousInterval: duration(p.Intervals.Suspicious),
		LeakingInterval: duration(p.Intervals.Leaking),
		Cooldown:        duration(p.Cooldown), MaxGap: duration(p.MaxGap),
	}
}

// duration converts seconds to a time; more than a policy may have becomes the
// largest time.
func duration(seconds float64) time.Duration {
	if math.Abs(seconds) > 1e9 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(seconds * 1e9))
}
