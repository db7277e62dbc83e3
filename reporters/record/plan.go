package record

import (
	"fmt"
	"math"
	"time"

	"github.com/leakgate/leakgate/detector"
)

// Plan describes what a run is to do. It contains the settings that are needed
// to judge the lines again without the program that wrote them.
type Plan struct {
	Tool string `json:"tool"`
	// Policy is the name of the policy; Revision is the revision of its rules.
	Policy   string `json:"policy"`
	Revision int    `json:"revision"`
	// Intervals are the times between two samples, Cooldown is the minimum time
	// between two diagnoses, and MaxGap is the longest gap that a trend may
	// span; all are in seconds.
	Intervals Intervals `json:"intervals"`
	Cooldown  float64   `json:"cooldown_s"`
	MaxGap    float64   `json:"max_gap_s"`
	Assert    Assert    `json:"assert"`
	Strict    bool      `json:"strict"`
	// If AllowUnjudged is set, a run does not fail because nothing could be
	// judged or because evidence is missing.
	AllowUnjudged bool `json:"allow_unjudged,omitempty"`
	// Duration is the planned maximum duration of the run; LongestDuration is
	// the maximum if a suspicion extends the run. Duration and LongestDuration
	// are in seconds; 0 means unlimited.
	Duration        float64 `json:"duration_s,omitempty"`
	LongestDuration float64 `json:"longest_duration_s,omitempty"`
	// MustSee is the rate, in MB/h, of the slowest leak that a pass must rule
	// out; 0 if no leak has to be ruled out.
	MustSee float64 `json:"must_see_mb_per_h,omitempty"`
	// Processes are the patterns that select the watched processes.
	Processes []string `json:"processes"`
	// Workload is the load on the app, or null if there is none.
	Workload *PlannedWorkload `json:"workload"`
	// Build is the tested build, or nil if unknown.
	Build *Revision `json:"build,omitempty"`
}

// Intervals are the times between two samples in each state, in seconds.
// CONFIRMING uses the interval of SUSPICIOUS.
type Intervals struct {
	Normal     float64 `json:"normal_s"`
	Suspicious float64 `json:"suspicious_s"`
	Leaking    float64 `json:"leaking_s"`
}

// PlannedWorkload describes a workload before it started.
type PlannedWorkload struct {
	Kind string `json:"kind"`
	// Seed and Events are options of monkey.
	Seed   *int64 `json:"seed"`
	Events int    `json:"events"`
	Digest string `json:"digest,omitempty"`
}

// Assert specifies which verdicts fail a run.
type Assert string

// AssertEnd fails a run if any verdict at the end of the run is leak.
// AssertLive also fails a run if any process ever reached LEAKING.
const (
	AssertEnd  Assert = "end"
	AssertLive Assert = "live"
)

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts only "end"
// and "live".
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

// duration converts seconds to a duration. A value above the maximum of a
// policy is replaced with the longest possible duration.
func duration(seconds float64) time.Duration {
	if math.Abs(seconds) > 1e9 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(seconds * 1e9))
}
