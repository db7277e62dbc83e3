package record

import "github.com/leakgate/leakgate/detector"

// CountsAtMarks describes what one life of a process left behind in the loops
// of a suite. It contains the counts of objects, threads and files at marks
// whose names differ only in their numbers.
type CountsAtMarks struct {
	PID int `json:"pid"`
	// Marks is the name of the marks, with # in place of each number.
	Marks string `json:"marks"`
	// Collected reports whether the judged counts were taken after forced
	// garbage collections.
	Collected bool `json:"collected"`
	// Gate is leak, pass or inconclusive, and Reason explains it; Kind is the
	// kind of leak.
	Gate   detector.Gate     `json:"gate"`
	Kind   detector.LeakKind `json:"kind"`
	Reason string            `json:"reason"`
	// Rising reports whether a count grows, but not provably in every loop.
	Rising bool `json:"rising"`
	// Readings lists the latest 500 readings.
	Readings []CountReading `json:"readings"`
	Counts   []CountSeries  `json:"counts"`
}

// CountReading is the time and the mark of one reading of a CountsAtMarks.
type CountReading struct {
	T    float64 `json:"t_s"`
	Mark string  `json:"mark"`
	// Collected reports whether a garbage collection was forced before the
	// reading.
	Collected bool `json:"collected"`
}

// CountSeries holds the values of one count over the readings of a
// CountsAtMarks.
type CountSeries struct {
	// Name is threads, files, or a name that dumpsys meminfo uses, such as
	// "Activities".
	Name string `json:"name"`
	// Gate is leak, pass or inconclusive; it is "" for a count that is shown
	// but not judged.
	Gate detector.Gate `json:"gate,omitempty"`
	// Values contains one number for each reading, or nil if the count could
	// not be read.
	Values []*int64 `json:"values"`
}
