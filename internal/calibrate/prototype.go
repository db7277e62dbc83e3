package main

import "github.com/leakgate/leakgate/internal/scenario"

// These are the figures of the prototype that policy "robust" must match, by
// the names of the rows. The prototype was measured with 300 runs per row
// without a leak and 100 runs per row with one.

// prototypeAlarms is the percentage of 8-hour runs without a leak that were
// LEAKING at some time.
var prototypeAlarms = map[string]float64{
	"iid s5": 0, "iid s20": 0, "iid s50": 0,
	"AR 0.7 s5": 0, "AR 0.7 s20": 0, "AR 0.7 s50": 0.3,
	"AR 0.9 s5": 0, "AR 0.9 s20": 0, "AR 0.9 s50": 0.7,
	"AR 0.97 s5": 0, "AR 0.97 s20": 2.7, "AR 0.97 s50": 4.7,
	"random walk 10": 19, "random walk 20": 25, "random walk 40": 27,
	"warm-up 150 tau 5": 0, "warm-up 200 tau 10": 0, "warm-up 200 tau 30": 23, "warm-up 200 tau 60": 84,
	"warm-up 150 tau 120":            100,
	"warm-up 200 tau 10, AR 0.9 s20": 1.7,
	"sine 60 per 5 min":              0, "sine 60 per 20 min": 0, "sine 60 per 60 min": 3, "sine 60 per 120 min": 42,
	"square 80 per 60 min": 0,
	"step +80 at 2 h":      0, "step +80 at any time, AR 0.7 s20": 0.3, "three steps +40": 4, "step +250 at 2 h": 0,
	"GC saw 40 per 3 min": 0, "GC saw 60 per 15 min": 0, "GC saw 80 per 40 min": 16, "GC saw 80 per 90 min": 47,
	"cache 100 in 60 min": 85, "cache 100 in 180 min": 100,
	"realistic": 0, "realistic 2": 12,
}

// latency is a median and a 90th percentile in minutes.
type latency struct{ p50, p90 float64 }

// prototypeFinds is the time to the first alarm, for the rows for which it is
// known.
var prototypeFinds = map[string]latency{
	"iid s5: 600 MB/h": {20, 25}, "iid s5: 300 MB/h": {20, 30}, "iid s5: 100 MB/h": {35, 45},
	"iid s5: 50 MB/h": {65, 75}, "iid s5: 20 MB/h": {95, 100},
	"AR 0.7 s5: 100 MB/h": {55, 65}, "AR 0.7 s5: 50 MB/h": {70, 95}, "AR 0.7 s5: 20 MB/h": {95, 125},
	"AR 0.9 s5: 20 MB/h": {135, 230},
	"iid s20: 600 MB/h":  {20, 30}, "iid s20: 300 MB/h": {25, 35}, "iid s20: 100 MB/h": {45, 65},
	"iid s20: 50 MB/h": {80, 100}, "iid s20: 20 MB/h": {125, 175},
	"AR 0.7 s20: 600 MB/h": {35, 50}, "AR 0.7 s20: 300 MB/h": {50, 70}, "AR 0.7 s20: 100 MB/h": {85, 105},
	"AR 0.7 s20: 50 MB/h": {125, 165}, "AR 0.7 s20: 20 MB/h": {195, 255},
	"AR 0.9 s20: 300 MB/h": {65, 90}, "AR 0.9 s20: 100 MB/h": {120, 185}, "AR 0.9 s20: 50 MB/h": {185, 245},
	"AR 0.9 s20: 20 MB/h": {265, never},
	"iid s50: 600 MB/h":   {30, 40}, "iid s50: 300 MB/h": {40, 55}, "iid s50: 100 MB/h": {85, 110},
	"iid s50: 50 MB/h": {125, 165}, "iid s50: 20 MB/h": {220, 310},
	"AR 0.7 s50: 600 MB/h": {55, 75}, "AR 0.7 s50: 300 MB/h": {75, 100}, "AR 0.7 s50: 100 MB/h": {125, 185},
	"AR 0.7 s50: 50 MB/h":  {195, 255},
	"AR 0.9 s50: 600 MB/h": {75, 100}, "AR 0.9 s50: 300 MB/h": {110, 180}, "AR 0.9 s50: 100 MB/h": {190, 265},
	"AR 0.9 s50: 50 MB/h": {255, never},
}

// prototypeLate is the median time from the onset of a leak at 2 h to the first
// alarm.
var prototypeLate = map[string]float64{
	"AR 0.7 s5: 600 MB/h from 120 min": 15, "AR 0.7 s5: 100 MB/h from 120 min": 45,
	"AR 0.7 s5: 20 MB/h from 120 min":   75,
	"AR 0.7 s20: 600 MB/h from 120 min": 35, "AR 0.7 s20: 100 MB/h from 120 min": 60,
	"AR 0.7 s20: 20 MB/h from 120 min": 150,
}

// The bars, in percent.
const (
	alarmsBar     = 1.5 // end verdict "leak" after 8 h without a leak
	walkBar       = 5   // the same for random walks
	shortBar      = 5   // the same after 1 h and 2 h
	doubtBar      = 5   // inconclusive without a leak, after 8 h
	liveLeast     = 0.5 // LEAKING at any time, in rows where the prototype was never LEAKING
	realisticBar  = 5   // the same for the realistic rows, whatever the prototype's figure
	baseBar       = 1   // differences from base runs although the builds do not differ
	familyBar     = 5   // runs of 100 processes with an alarm
	foundBar      = 95  // leaks found
	coverLow      = 90  // intervals that contain the true rate
	coverHigh     = 99
	reachedBar    = 90  // slowest leaks found at a rate within a factor of 1.5 of the stated rate
	reachBar      = 70  // leaks of 1.5 times the slowest detectable rate, in another run
	kindBar       = 98  // leaks with the right kind
	gpuBar        = 0.1 // GPU alarms without a leak
	foundRate     = 50  // MB/h; foundBar applies to leaks of this rate or more with any type of noise
	foundSlowly   = "AR 0.7 s20: 20 MB/h"
	lateBarRow    = "AR 0.7 s20: 600 MB/h from 120 min"
	lateBar       = 40 // minutes, 90th percentile
	liveTolerance = 10 // maximum delay of LEAKING after the prototype's alarm, in minutes
)

// undecidable lists the rows on which no verdict can be right after the given
// number of hours: memory still grows evenly when the run ends.
var undecidable = map[string]float64{
	"cache 100 in 60 min": 1, "cache 100 in 180 min": 2, "sine 60 per 120 min": 1,
}

// doubtful is the percentage of 8-hour runs that may be inconclusive, for rows
// where it is more than doubtBar. Memory has not settled if it grew in the last
// three hours, or in several steps, and was not released.
var doubtful = map[string]float64{
	"random walk 10": 10, "random walk 20": 15, "random walk 40": 20,
	"warm-up 150 tau 120": 35, "warm-up 200 tau 10, AR 0.9 s20": 10, "realistic 2": 25,
	"step +80 at any time, AR 0.7 s20": 40, "step +250 at any time, AR 0.7 s20": 45, "three steps +40": 80,
}

// doubtBarOf returns the bar of a row.
func doubtBarOf(name string) float64 { return max(doubtBar, doubtful[name]) }

// liveBar returns the percentage of runs of a row that may be LEAKING at some
// time.
func liveBar(s scenario.Scenario) float64 {
	bar := max(liveLeast, prototypeAlarms[s.Name])
	if s.Warm > 0 && s.Saw > 0 {
		bar = min(bar, realisticBar)
	}
	return bar
}

// suspicionBar returns the latest allowed median time of SUSPICIOUS in minutes:
// 10 % or 5 minutes later than that of the prototype, whichever is later.
func suspicionBar(prototype float64) float64 { return max(1.1*prototype, prototype+5) }
