package capture

import "github.com/leakgate/leakgate/internal/known"

// atMost returns a value in kB, or unknown if the value is negative or exceeds
// most.
func atMost(kb known.Int, most int64) known.Int {
	if kb.Known && (kb.N < 0 || kb.N > most) {
		return known.Int{}
	}
	return kb
}
