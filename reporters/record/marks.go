package record

import "github.com/leakgate/leakgate/detector"

// DumpLeak is one leak of a heap dump.
type DumpLeak struct {
	// Key is the same from build to build. Name is what leaks and what holds
	// it.
	Key  string `json:"key"`
	Name string `json:"name"`
	// Library leaks are those of the platform or of a library.
	Library bool `json:"library,omitempty"`
	// Count is how many objects leak, Bytes what they retain.
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
	// Classes are those of the objects, the most frequent first and at most 10.
	Classes []ClassCount `json:"classes"`
}

// ClassCount is a class and how many of its objects leak.
type ClassCount struct {
	Class string `json:"class"`
	Count int64  `json:"count"`
}

// MarkSeries is the combined result of the heap dumps of one incarnation of a
// process that were taken at marks.
type MarkSeries struct {
	PID int `json:"pid"`
	// Gate is leak, pass or inconclusive, Reason is why.
	Gate   detector.Gate `json:"gate"`
	Reason string        `json:"reason"`
	// Rising reports that a leak grows and is not proved.
	Rising bool       `json:"rising"`
	Dumps  []MarkDump `json:"dumps"`
	// Leaks are in the order of their bytes in the last dump, at most 100;
	// LeaksOmitted counts the others.
	Leaks        []LeakSeries `json:"leaks"`
	LeaksOmitted int          `json:"leaks_omitted,omitempty"`
}

// MarkDump is one dump of a MarkSeries.
type MarkDump struct {
	T    float64 `json:"t_s"`
	Mark string  `json:"mark"`
	// Settled dumps were taken while the app was idle.
	Settled bool   `json:"settled"`
	Folder  string `json:"folder"`
}

// LeakSeries is one leak over the dumps of a MarkSeries.
type LeakSeries struct {
	DumpLeak
	// Proved leaks have more objects at every mark.
	Proved bool `json:"proved"`
	// Counts and AllBytes have a number for each dump: 0 if the leak is not in
	// it.
	Counts   []int64 `json:"counts_at_marks"`
	AllBytes []int64 `json:"bytes_at_marks"`
}

// MissingEvidence is a heap dump that should have been taken and was not.
type MissingEvidence struct {
	Device  string  `json:"device"`
	User    int     `json:"user"`
	Process string  `json:"process"`
	T       float64 `json:"t_s"`
	// Mark is that of the dump, "" for one at the end of the run.
	Mark string `json:"mark,omitempty"`
	Text string `json:"text"`
	// Unreadable reports that the dump was taken and could not be analyzed.
	Unreadable bool `json:"unreadable,omitempty"`
}
