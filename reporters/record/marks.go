package record

import "github.com/leakgate/leakgate/detector"

// DumpLeak is one leak of a heap dump.
type DumpLeak struct {
	// Key does not change between builds. Name describes what leaks and what
	// holds it.
	Key  string `json:"key"`
	Name string `json:"name"`
	// Library reports whether this is a leak of the platform or of a library.
	Library bool `json:"library,omitempty"`
	// Count is the number of leaked objects; Bytes is their retained size.
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
	// Classes lists the classes of the objects, the most frequent first, at
	// most 10.
	Classes []ClassCount `json:"classes"`
}

// ClassCount is a class and the number of its leaked objects.
type ClassCount struct {
	Class string `json:"class"`
	Count int64  `json:"count"`
}

// MarkSeries is the combined result of the heap dumps that were taken at marks
// in one life of a process.
type MarkSeries struct {
	PID int `json:"pid"`
	// Gate is leak, pass or inconclusive, and Reason explains it.
	Gate   detector.Gate `json:"gate"`
	Reason string        `json:"reason"`
	// Rising reports whether objects of some leak increase in number, but no
	// leak is proved.
	Rising bool       `json:"rising"`
	Dumps  []MarkDump `json:"dumps"`
	// Leaks lists at most 100 leaks, sorted by their bytes in the last dump.
	// LeaksOmitted is the number of leaks that are not listed.
	Leaks        []LeakSeries `json:"leaks"`
	LeaksOmitted int          `json:"leaks_omitted,omitempty"`
}

// MarkDump is one dump of a MarkSeries.
type MarkDump struct {
	T    float64 `json:"t_s"`
	Mark string  `json:"mark"`
	// Settled reports whether the dump was taken while the app was idle.
	Settled bool   `json:"settled"`
	Folder  string `json:"folder"`
}

// LeakSeries describes one leak across the dumps of a MarkSeries.
type LeakSeries struct {
	DumpLeak
	// Proved reports whether the growth of the number of leaked objects proves
	// a leak. It is false for leaks of the platform and of libraries.
	Proved bool `json:"proved"`
	// Counts and AllBytes contain one number for each dump: 0 if the dump does
	// not contain the leak.
	Counts   []int64 `json:"counts_at_marks"`
	AllBytes []int64 `json:"bytes_at_marks"`
}

// MissingEvidence is a heap dump that should have been taken and analyzed but
// was not.
type MissingEvidence struct {
	Device  string  `json:"device"`
	User    int     `json:"user"`
	Process string  `json:"process"`
	T       float64 `json:"t_s"`
	// Mark is the mark of the dump, or "" for a dump at the end of the run.
	Mark string `json:"mark,omitempty"`
	Text string `json:"text"`
	// Unreadable reports whether the dump was taken but could not be analyzed.
	Unreadable bool `json:"unreadable,omitempty"`
}
