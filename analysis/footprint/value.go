package footprint

// Value is a number that a phone may not say. The zero Value is unknown.
type Value struct {
	N     int64
	Known bool
}

// Known is a number that a phone said.
func Known(n int64) Value { return Value{N: n, Known: true} }

// sane is unknown where the number is not from 0 to most.
func (v Value) sane(most int64) Value {
	if !v.Known || v.N < 0 || v.N > most {
		return Value{}
	}
	return v
}

const (
	// maxKB is a petabyte: no phone has it, and sums of it do not overflow.
	maxKB = 1 << 40
	// maxLines bounds a summary.
	maxLines = 12
)

// unsure is a warning as a line of a summary.
func unsure(w error) string { return "not sure: " + w.Error() }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
