package record

import (
	"encoding/json"
	"fmt"
	"path/filepath"
)

// TripSchema names the format of trip.json (docs/formats/trip.md).
const TripSchema = "leakgate.trip/1"

// TripName is the file of a run directory that has the result of a trip.
const TripName = "trip.json"

// Trip is a scenario that was repeated, and what each repetition leaves behind
// in one process.
type Trip struct {
	Schema  string `json:"schema"`
	Device  string `json:"device"`
	User    int    `json:"user"`
	Process string `json:"process"`
	PID     int    `json:"pid"`
	// Digest is the SHA-256 of the command that is the scenario, in hexadecimal
	// digits; "" if it is not a command.
	Digest string `json:"scenario_digest,omitempty"`
	// WarmUp is how often the scenario ran before the first reading, Loops how
	// often since; LoopsPerReading how often between two readings.
	WarmUp          int `json:"warm_up_loops"`
	Loops           int `json:"loops"`
	LoopsPerReading int `json:"loops_per_reading"`
	// Readings and Dumps count what was taken.
	Readings int `json:"readings"`
	Dumps    int `json:"dumps"`
	// Stopped is one of the TripStopped values; Reason explains it.
	Stopped string `json:"stopped"`
	Reason  string `json:"reason"`
	// Verdict is leak, pass or inconclusive; Text explains it in one line.
	// Judged reports that at least one measure was judged.
	Verdict CheckVerdict `json:"verdict"`
	Text    string       `json:"text"`
	Judged  bool         `json:"judged"`
	// Measures are sorted by growth.
	Measures []TripMeasure `json:"measures"`
	// Found is the number of places of the heap that grow in every dump;
	// Growing has the first of them.
	Found    int       `json:"found"`
	Growing  []Finding `json:"growing"`
	Warnings []string  `json:"warnings"`
}

// Why a trip has ended: nothing grows any more, every loop is done, its context
// ended, the scenario failed, the process has restarted or ended, or it could
// not be read.
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

// TripMeasure is one number of the process, read after every few loops.
type TripMeasure struct {
	// Name is java_heap, native_heap, code, stack, graphics, private_other,
	// total_pss, threads, files, heap (places of the Java heap), or a name of
	// dumpsys meminfo, such as Activities.
	Name string `json:"name"`
	// Unit is kB or count.
	Unit string `json:"unit"`
	// PerLoop is the rate in units per loop, Interval that of 95 % confidence;
	// nil where unknown.
	PerLoop  *float64  `json:"per_loop"`
	Interval []float64 `json:"interval_per_loop"`
	// Values are the readings, null if one lacks it.
	Values []*float64 `json:"values"`
	Grows  bool       `json:"grows"`
	// Verdict is leak, pass, inconclusive or not_checked; Text is the reason.
	Verdict CheckVerdict `json:"verdict"`
	Text    string       `json:"text"`
	// SmallestFound is the smallest rate that would have been found; nil where
	// unknown.
	SmallestFound *float64 `json:"smallest_found_per_loop"`
}

// WriteTrip writes trip.json of a run directory.
func WriteTrip(dir string, t Trip) error {
	encoded, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", TripName, err)
	}
	return WriteFileAtomic(filepath.Join(dir, TripName), append(encoded, '\n'))
}
