package record

import "github.com/leakgate/leakgate/detector"

// AppVerdict is the verdict on one app, based on the sum of the memory of its
// processes. Fields that also exist in [Process] have the same meaning.
type AppVerdict struct {
	Device string `json:"device"`
	User   int    `json:"user"`
	// App is the package: the part of the process names before the colon.
	App string `json:"app"`
	// Processes lists the first 50 processes whose memory was added up.
	Processes []string `json:"processes"`
	// Leaking lists the processes that leak by themselves. If a process leaks
	// by itself, the sum provides no additional result.
	Leaking []string `json:"leaking_processes"`
	// Samples is the number of sums. Restarts is the number of times that all
	// processes ended and the app started again.
	Samples  int `json:"samples"`
	Details  int `json:"breakdowns"`
	Restarts int `json:"restarts"`
	// Gaps and Missing cover the intervals in which a process had no value.
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
	// ByProcess lists how much the mean of each process increased during the
	// growth, the largest increase first.
	ByProcess   []ProcessGrowth `json:"growth_by_process"`
	Shares      []Share         `json:"shares"`
	Jumps       []Jump          `json:"jumps"`
	Reason      string          `json:"reason"`
	Evidence    []Evidence      `json:"evidence"`
	Transitions []Transition    `json:"transitions"`
	Warnings    []string        `json:"warnings"`
}

// ProcessGrowth is the contribution of one process to the growth of its app.
type ProcessGrowth struct {
	Process string  `json:"process"`
	Growth  float64 `json:"growth_mb"`
	// Share is the process's part of the growth of all processes that grew,
	// from 0 to 1. It is 0 for a process that did not grow.
	Share float64 `json:"share"`
}

// Leaks reports whether the sum leaks although no process leaks by itself.
func (a AppVerdict) Leaks() bool { return a.Gate == detector.Leak && len(a.Leaking) == 0 }

// SetVerdict copies the verdict from p, but not its states and jumps.
func (a *AppVerdict) SetVerdict(p Process) {
	a.Gate, a.Kind, a.Reason, a.Evidence, a.Warnings = p.Gate, p.Kind, p.Reason, p.Evidence, p.Warnings
	a.Rate, a.RateInterval, a.MinDetectable, a.Growth, a.Shares = p.Rate, p.RateInterval, p.MinDetectable, p.Growth,
		p.Shares
}

// Verdict returns the verdict on an app as a Process.
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
