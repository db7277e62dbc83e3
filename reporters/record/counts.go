package record

import "github.com/leakgate/leakgate/detector"

// CountsAtMarks is what one incarnation of a process left behind in the loops
// of a suite: counts of its objects, threads and files at marks that differ
// only in their numbers.
type CountsAtMarks struct {
	PID int `json:"pid"`
	// Marks is the text of the marks, with # for each number.
	Marks string `json:"marks"`
	// Collected reports that the judged counts are those after forced garbage
	// collections.
	Collected bool `json:"collected"`
	// Gate is leak, pass or inconclusive, Reason is why; Kind is that of a
	// leak.
	Gate   detector.Gate     `json:"gate"`
	Kind   detector.LeakKind `json:"kind"`
	Reason string            `json:"reason"`
	// Rising reports that a count grows but not provably in every loop.
	Rising bool `json:"rising"`
	// Readings are the latest 500.
	Readings []CountReading `json:"readings"`
	Counts   []CountSeries  `json:"counts"`
}

// CountReading is one reading of a CountsAtMarks.
type CountReading struct {
	T    float64 `json:"t_s"`
	Mark string  `json:"mark"`
	// Collected: a garbage collection was forced before.
	Collected bool `json:"collected"`
}

// CountSeries is one count over the readings of a CountsAtMarks.
type CountSeries struct {
	// Name is that of dumpsys meminfo, such as "Activities", or threads or
	// files.
	Name string `json:"name"`
	// Gate is leak, pass or inconclusive, and "" for a count that is shown and
	// not judged.
	Gate detector.Gate `json:"gate,omitempty"`
	// Values has a number for each reading, nil if it was not read.
	Values []*int64 `json:"values"`
}
