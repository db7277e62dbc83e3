package capture

import "github.com/leakgate/leakgate/internal/known"

// within returns a value in kB, unknown where it is larger than most.
func within(kb known.Int, most int64) known.Int {
	if kb.Known && (kb.N < 0 || kb.N > most) {
		return known.Int{}
	}
	return kb
}
