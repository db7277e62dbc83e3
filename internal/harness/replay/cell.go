package replay

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/harness/ledger"
)

// maxKB is the maximum memory of a process in kB. It is the same for all
// devices, because a table does not state how much memory its device has.
var maxKB, _ = procfs.Bounds(0)

// absent reports whether a cell means that the value is missing.
func absent(cell string) bool {
	switch cell {
	case "", "-", "NA", "N/A", "NaN", "nan", "null", "None":
		return true
	}
	return false
}

// amount parses a number of kB and rounds it to an integer.
func amount(cell string) (int64, error) {
	if n, ok := digits(cell); ok && n <= maxKB {
		return n, nil
	}
	kb, err := strconv.ParseFloat(cell, 64)
	switch {
	case err != nil && !math.IsInf(kb, 0), math.IsNaN(kb):
		return 0, fmt.Errorf("%s is not a number", quoted(cell))
	case kb < 0:
		return 0, fmt.Errorf("%s is negative", quoted(cell))
	case kb > float64(maxKB):
		return 0, fmt.Errorf("%s kB is more than any process has", quoted(cell))
	}
	return int64(math.Round(kb)), nil
}

// moment parses a time in seconds, to the millisecond.
func moment(cell string) (time.Duration, error) {
	s, err := strconv.ParseFloat(cell, 64)
	switch {
	case err != nil && !math.IsInf(s, 0), math.IsNaN(s):
		return 0, fmt.Errorf("%s is not a number", quoted(cell))
	case s < 0:
		return 0, fmt.Errorf("%s is negative", quoted(cell))
	case s > ledger.MaxSeconds:
		return 0, fmt.Errorf("%s is too large; are these seconds?", quoted(cell))
	}
	return time.Duration(math.Round(s*1000)) * time.Millisecond, nil
}

// identity parses a pid or a start time; it returns 0 if there is none.
func identity(cell string) (uint64, error) {
	if absent(cell) {
		return 0, nil
	}
	if n, ok := digits(cell); ok {
		return uint64(n), nil
	}
	// A table that was joined with another one may contain 123.0 in place of
	// 123.
	if f, err := strconv.ParseFloat(cell, 64); err == nil && f >= 0 && f < 1<<53 && f == math.Trunc(f) {
		return uint64(f), nil
	}
	return 0, fmt.Errorf("%s is not a whole number", quoted(cell))
}

// digits parses up to 18 digits, which is the common case.
func digits(cell string) (int64, bool) {
	if cell == "" || len(cell) > 18 {
		return 0, false
	}
	var n int64
	for i := range len(cell) {
		d := cell[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	return n, true
}
