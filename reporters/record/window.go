package record

import "github.com/leakgate/leakgate/detector"

// JudgedWindow is a span of a run on one device that is judged separately. The
// family size for the verdicts of a window is the number of series in the
// window, multiplied by the number of windows that were opened on the device
// before the window ended.
type JudgedWindow struct {
	// Number is unique in the run; Name is chosen by the program that opens the
	// window.
	Number int    `json:"number"`
	Name   string `json:"name"`
	Device string `json:"device"`
	// T and Ended are the beginning and the end of the window, in seconds since
	// the start of the run on the device's clock.
	T     float64 `json:"t_s"`
	Ended float64 `json:"ended_s"`
	// Open reports whether the window was not closed and ended with the run.
	Open      bool            `json:"open,omitempty"`
	Processes []WindowProcess `json:"processes"`
	Apps      []WindowApp     `json:"apps"`
}

// WindowApp is the verdict on an app in a window, based on the sum of the
// memory of its processes. The fields have the same meaning as in [AppVerdict].
type WindowApp struct {
	User          int               `json:"user"`
	App           string            `json:"app"`
	Samples       int               `json:"samples"`
	Gaps          int               `json:"gaps"`
	Missing       float64           `json:"missing_s"`
	Duration      float64           `json:"duration_s"`
	State         detector.State    `json:"state"`
	Worst         detector.State    `json:"worst"`
	Gate          detector.Gate     `json:"gate"`
	Kind          detector.LeakKind `json:"kind"`
	Reason        string            `json:"reason"`
	Rate          *float64          `json:"rate_mb_per_h"`
	RateInterval  []float64         `json:"rate_interval_mb_per_h"`
	MinDetectable *float64          `json:"min_detectable_mb_per_h"`
	Growth        float64           `json:"growth_mb"`
}

// WindowProcess is the verdict on one process in a window. The fields have the
// same meaning as in [Process].
type WindowProcess struct {
	User          int               `json:"user"`
	Process       string            `json:"process"`
	PID           int               `json:"pid"`
	Samples       int               `json:"samples"`
	Restarts      int               `json:"restarts"`
	Gaps          int               `json:"gaps"`
	Missing       float64           `json:"missing_s"`
	Duration      float64           `json:"duration_s"`
	State         detector.State    `json:"state"`
	Worst         detector.State    `json:"worst"`
	Gate          detector.Gate     `json:"gate"`
	Kind          detector.LeakKind `json:"kind"`
	Reason        string            `json:"reason"`
	Rate          *float64          `json:"rate_mb_per_h"`
	RateInterval  []float64         `json:"rate_interval_mb_per_h"`
	MinDetectable *float64          `json:"min_detectable_mb_per_h"`
	Growth        float64           `json:"growth_mb"`
	AtMarks       []MarkSeries      `json:"at_marks"`
	CountsAtMarks []CountsAtMarks   `json:"counts_at_marks,omitempty"`
}
