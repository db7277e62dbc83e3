package trend

import (
	"math"
	"slices"
)

// Quantile returns the q-quantile of sorted values by linear interpolation
// between the order statistics at position q*(n-1) (type 7 of Hyndman and Fan
// 1996; the default of R and NumPy). ok is false if the list is empty or q is
// not within 0..1.
func Quantile(sorted []float64, q float64) (v float64, ok bool) {
	if len(sorted) == 0 || !(q >= 0 && q <= 1) {
		return 0, false
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1], true
	}
	part := at - float64(i)
	if part == 0 {
		return sorted[i], true
	}
	return sorted[i] + part*(sorted[i+1]-sorted[i]), true
}

// onStack is the number of values that can be sorted without an allocation.
const onStack = 256

// P25 returns the 25th percentile of the values, which is their floor; they
// need not be sorted. It sorts a copy, and allocates only for more than 256
// values.
func P25(values []float64) (v float64, ok bool) {
	var scratch [onStack]float64
	return p25(values, scratch[:])
}

func p25(values, scratch []float64) (v float64, ok bool) {
	copied := append(scratch[:0], values...)
	slices.Sort(copied)
	return Quantile(copied, 0.25)
}

// Floor is the P25 of one block of time.
type Floor struct {
	// Block numbers the blocks from 0; a block without points has no Floor.
	Block int64
	// Value is the P25 of the N points of the block.
	Value float64
	N     int
}

// Blocks divides the time axis into equal blocks: block k holds the points with
// From + k*Length <= x < From + (k+1)*Length. All values are in seconds; Length
// is positive.
type Blocks struct{ From, Length float64 }

// Of returns the number of the block that contains x. The number is negative if
// x is less than From.
func (b Blocks) Of(x float64) int64 { return int64(math.Floor((x - b.From) / b.Length)) }

// Floors appends to dst the floors of the complete blocks of a series, in order
// of time. A block is complete if it began at or after the first point of the
// series (so that no part of it has left the window) and a point lies at or
// after its end. x must not decrease. Points before From are skipped.
func Floors(dst []Floor, x, y []float64, b Blocks) []Floor {
	var scratch [onStack]float64
	n := min(len(x), len(y))
	if n == 0 || !(b.Length > 0) {
		return dst
	}
	last := b.Of(x[n-1])
	for i := 0; i < n; {
		k := b.Of(x[i])
		j := i + 1
		for j < n && b.Of(x[j]) == k {
			j++
		}
		if k >= 0 && k < last && b.From+float64(k)*b.Length >= x[0] {
			v, _ := p25(y[i:j], scratch[:])
			dst = append(dst, Floor{Block: k, Value: v, N: j - i})
		}
		i = j
	}
	return dst
}
