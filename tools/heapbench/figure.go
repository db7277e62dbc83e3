package main

import (
	"fmt"
	"slices"
	"time"
)

// figure is the cost of one run of a process.
type figure struct {
	// wall is the time from before the start of the process to after its end;
	// cpu is its user and system time.
	wall, cpu time.Duration
	// peak is its peak resident memory in bytes, including pages of mapped
	// files; 0 if this is unknown on this system.
	peak   int64
	phases *phases
}

// middle returns the run with the median wall time; if there are two, it
// returns the faster one.
func middle(all []figure) figure {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b figure) int { return int(a.wall - b.wall) })
	return sorted[(len(sorted)-1)/2]
}

// fastest returns the shortest wall time.
func fastest(all []figure) time.Duration {
	least := all[0].wall
	for _, f := range all {
		least = min(least, f.wall)
	}
	return least
}

// largest returns the largest peak, or 0 if any peak is unknown.
func largest(all []figure) int64 {
	var most int64
	for _, f := range all {
		if f.peak == 0 {
			return 0
		}
		most = max(most, f.peak)
	}
	return most
}

// seconds formats a time with three significant digits, but with at most three
// decimals.
func seconds(d time.Duration) string {
	s := d.Seconds()
	switch {
	case s < 1:
		return fmt.Sprintf("%.3f", s)
	case s < 10:
		return fmt.Sprintf("%.2f", s)
	}
	return fmt.Sprintf("%.1f", s)
}

// megabytes formats a size in units of a million bytes.
func megabytes(bytes int64) string {
	if bytes == 0 {
		return "?"
	}
	return fmt.Sprintf("%.0f", float64(bytes)/1e6)
}
