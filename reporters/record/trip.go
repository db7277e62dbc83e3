package record

import (
	"encoding/json"
	"fmt"
	"path/filepath"
)

// TripSchema names the format of trip.json (docs/formats/trip.md).
const TripSchema = "leakgate.trip/1"

// TripName is the name of the file in a run directory that contains the result
// of a trip.
const TripName = "trip.json"

// Trip is the result of repeating a scenario. It shows what each repetition
// leaves behind in one process.
type Trip struct {
	Schema  string `json:"schema"`
	Device  string `json:"device"`
	User    int    `json:"user"`
	Process string `json:"process"`
	PID     int    `json:"pid"`
	// Digest is the SHA-256 of the scenario's command, in hexadecimal, or "" if
	// the scenario is not a command.
	Digest string `json:"scenario_digest,omitempty"`
	// WarmUp is the number of loops before the first reading, Loops is the
	// number of loops since then, and LoopsPerReading is the number of loops
	// between two readings.
	WarmUp          int `json:"warm_up_loops"`
	Loops           int `json:"loops"`
	LoopsPerReading int `json:"loops_per_reading"`
	// Readings and Dumps are the numbers of readings and heap dumps taken.
	Readings int `json:"readings"`
	Dumps    int `json:"dumps"`
	// Stopped is one of the TripStopped values; Reason explains it.
	Stopped string `json:"stopped"`
	Reason  string `json:"reason"`
	// Verdict is leak, pass or inconclusive; Text explains it in one line.
	// Judged reports whether at least one measure was judged.
	Verdict CheckVerdict `json:"verdict"`
	Text    string       `json:"text"`
	Judged  bool         `json:"judged"`
	// Measures are sorted by growth.
	Measures []TripMeasure `json:"measures"`
	// Found is the number of places in the heap that grow from each dump to the
	// next. Growing contains the first of them.
	Found    int       `json:"found"`
	Growing  []Finding `json:"growing"`
	Warnings []string  `json:"warnings"`
}

// The reasons why a trip ended: nothing grows any more, all loops are done, its
// context is done, the scenario failed, the process restarted or ended, or the
// process could not be read.
const (
	TripStoppedQuiet       = "nothing_grows"
	TripStoppedLoops       = "loops"
	TripStoppedInterrupted = "interrupted"
	TripStoppedLoop        = "loop_failed"
	TripStoppedRestart     = "process_restarted"
	TripStoppedGone        = "process_gone"
	TripStoppedUnread      = "unreadable"
)

// The units of measures.
const (
	UnitKB    = "kB"
	UnitCount = "count"
)

// TripMeasure is one number that describes the process, read again after every
// few loops.
type TripMeasure struct {
	// Name is java_heap, native_heap, code, stack, graphics, private_other,
	// total_pss, threads, files, heap (growing places in the Java heap), or a
	// name of dumpsys meminfo, such as Activities.
	Name string `json:"name"`
	// Unit is kB or count.
	Unit string `json:"unit"`
	// PerLoop is the rate in units per loop, and Interval is its 95 %
	// confidence interval. PerLoop and Interval are nil if unknown.
	PerLoop  *float64  `json:"per_loop"`
	Interval []float64 `json:"interval_per_loop"`
	// Values are the readings; a missing value is null.
	Values []*float64 `json:"values"`
	Grows  bool       `json:"grows"`
	// Verdict is leak, pass, inconclusive or not_checked; Text explains it.
	Verdict CheckVerdict `json:"verdict"`
	Text    string       `json:"text"`
	// SmallestFound is the smallest rate that would have been detected, or nil
	// if unknown.
	SmallestFound *float64 `json:"smallest_found_per_loop"`
}

// WriteTrip writes trip.json into a run directory.
func WriteTrip(dir string, t Trip) error {
	encoded, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", TripName, err)
	}
	return WriteFileAtomic(filepath.Join(dir, TripName), append(encoded, '\n'))
}
