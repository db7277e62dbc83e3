package capture

import "github.com/leakgate/leakgate/internal/known"

// atMost returns kb if it is from 0 to the maximum, both in kB; otherwise it
// returns unknown.
func atMost(kb known.Int, most int64) known.Int {
	if kb.Known && (kb.N < 0 || kb.N > most) {
		return known.Int{}
	}
	return kb
}
