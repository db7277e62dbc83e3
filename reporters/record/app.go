package record

import "github.com/leakgate/leakgate/detector"

// AppVerdict is the verdict on all processes of one app together: on the sum of
// their memory. The fields that [Process] has, too, mean the same.
type AppVerdict struct {
	Device string `json:"device"`
	User   int    `json:"user"`
	// App is the part of the process names before the colon: the package.
	App string `json:"app"`
	// Processes are the first 50 that were added up.
	Processes []string `json:"processes"`
	// Leaking are those of them that leak by themselves; the sum adds nothing
	// then.
	Leaking []string `json:"leaking_processes"`
	// Samples counts the sums, Restarts how often all processes had ended.
	Samples  int `json:"samples"`
	Details  int `json:"breakdowns"`
	Restarts int `json:"restarts"`
	// Gaps and Absent are the holes in which a process had no value.
	Gaps            int               `json:"gaps"`
	Missing         float64           `json:"missing_s"`
	Duration        float64           `json:"duration_s"`
	LastMB          *float64          `json:"last_mb"`
	State           detector.State    `json:"state"`
	Worst           detector.State    `json:"worst"`
	Gate            detector.Gate     `json:"gate"`
	Kind            detector.LeakKind `json:"kind"`
	FirstSuspicious *float64          `json:"first_suspicious_s"`
	FirstLeaking    *float64          `json:"first_leaking_s"`
	Rate            *float64          `json:"rate_mb_per_h"`
	RateInterval    []float64         `json:"rate_interval_mb_per_h"`
	MinDetectable   *float64          `json:"min_detectable_mb_per_h"`
	Growth          float64           `json:"growth_mb"`
	// ByProcess is by how much the mean of each process rose over the time of
	// the growth, the largest first.
	ByProcess   []ProcessGrowth `json:"growth_by_process"`
	Shares      []Share         `json:"shares"`
	Jumps       []Jump          `json:"jumps"`
	Reason      string          `json:"reason"`
	Evidence    []Evidence      `json:"evidence"`
	Transitions []Transition    `json:"transitions"`
	Warnings    []string        `json:"warnings"`
}

// ProcessGrowth is the part of one process in the growth of its app.
type ProcessGrowth struct {
	Process string  `json:"process"`
	Growth  float64 `json:"growth_mb"`
	// Share is from 0 to 1 of all processes that grew; 0 for one that did not.
	Share float64 `json:"share"`
}

// Leaks reports whether the sum leaks and none of its processes does by itself.
func (a AppVerdict) Leaks() bool { return a.Gate == detector.Leak && len(a.Leaking) == 0 }

// SetVerdict copies the verdict on a series from a process.
func (a *AppVerdict) SetVerdict(p Process) {
	a.Gate, a.Kind, a.Reason, a.Evidence, a.Warnings = p.Gate, p.Kind, p.Reason, p.Evidence, p.Warnings
	a.Rate, a.RateInterval, a.MinDetectable, a.Growth, a.Shares = p.Rate, p.RateInterval, p.MinDetectable, p.Growth,
		p.Shares
}

// Verdict returns the verdict on an app in the form of one on a process.
func (a AppVerdict) Verdict() Process {
	return Process{
		Device: a.Device, User: a.User, Process: a.App, Samples: a.Samples, Details: a.Details, Restarts: a.Restarts,
		Gaps: a.Gaps, Missing: a.Missing,
		Duration: a.Duration, LastMB: a.LastMB, State: a.State, Worst: a.Worst, Gate: a.Gate, TrendGate: a.Gate,
		Kind:            a.Kind,
		FirstSuspicious: a.FirstSuspicious, FirstLeaking: a.FirstLeaking, Rate: a.Rate, RateInterval: a.RateInterval,
		MinDetectable: a.MinDetectable,
		Growth:        a.Growth, Shares: a.Shares, Jumps: a.Jumps, Reason: a.Reason, Evidence: a.Evidence,
		Transitions: a.Transitions, Warnings: a.Warnings,
	}
}
