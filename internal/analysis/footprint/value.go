package footprint

import "github.com/leakgate/leakgate/internal/known"

// sane returns the number, or an unknown one if it is not between 0 and most.
func sane(v known.Int, most int64) known.Int {
	if !v.Known || v.N < 0 || v.N > most {
		return known.Int{}
	}
	return v
}

const (
	// maxKB is a pebibyte, in kB: more than any phone has, and small enough for
	// sums not to overflow.
	maxKB = 1 << 40
	// maxLines is the maximum number of lines in a summary.
	maxLines = 12
)

// unsure formats a warning as a line of a summary.
func unsure(w error) string { return "warning: " + w.Error() }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
