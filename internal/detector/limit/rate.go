package limit

import (
	"math"
	"slices"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// Rate is a growth rate in units of the resource per hour, with its 99 %
// interval. The zero Rate is unknown.
type Rate struct {
	PerHour, Low, High float64
	Known              bool
}

// leastPoints is the minimum number of points for a rate.
const leastPoints = 6

// sen returns the median of the slopes between all pairs of points, with the
// interval of Kendall's test (Sen, Estimates of the regression coefficient
// based on Kendall's tau, JASA 63, 1968). The values of x are in seconds and
// strictly increasing. The result hardly changes even if a third of the points
// are outliers.
func sen(x, y []float64) Rate {
	n := len(x)
	if n < leastPoints {
		return Rate{}
	}
	slopes := make([]float64, 0, n*(n-1)/2)
	for i := range n {
		for j := i + 1; j < n; j++ {
			slopes = append(slopes, (y[j]-y[i])/(x[j]-x[i]))
		}
	}
	slices.Sort(slopes)
	middle, _ := trend.Quantile(slopes, 0.5)
	// z is the 99.5 % quantile of the normal distribution. The variance under
	// the square root is that of Kendall's S without ties; with ties the
	// variance is smaller, so the interval is wider than necessary.
	const z = 2.5758
	m := float64(n)
	width := z * math.Sqrt(m*(m-1)*(2*m+5)/18)
	low := max(0, int((float64(len(slopes))-width)/2))
	return Rate{
		PerHour: 3600 * middle, Low: 3600 * slopes[low], High: 3600 * slopes[len(slopes)-1-low],
		Known: true,
	}
}

const (
	// The readings are divided into eight parts; at least risingParts of them
	// must be above the preceding part. If the app only loads data once or a
	// few times, only a few parts are above the preceding part.
	risingParts = 6
	// The readings are also divided into quarters. Each of the three steps from
	// one quarter to the next must be at least leastShare times the mean step.
	leastShare = 0.25
	// The last step must be at least leastLast times the mean of the first two,
	// because the growth of a cache slows down as the cache fills.
	leastLast = 0.75
)

// lasting reports whether growth is even over the whole time and still
// continues at the end.
func lasting(x, y []float64) bool {
	if len(x) < 8 {
		return false
	}
	rising := 0
	for _, step := range steps(x, y, 8) {
		if step > 0 {
			rising++
		}
	}
	quarter := steps(x, y, 4)
	mean := (quarter[0] + quarter[1] + quarter[2]) / 3
	return rising >= risingParts && min(quarter[0], quarter[1], quarter[2]) >= leastShare*mean && mean > 0 &&
		quarter[2] >= leastLast*(quarter[0]+quarter[1])/2
}

// steps divides a series into the given number of parts and returns the slope
// from the median of each part to that of the next.
func steps(x, y []float64, parts int) []float64 {
	out := make([]float64, 0, parts)
	var at, level float64
	for i := range parts {
		from, to := i*len(x)/parts, (i+1)*len(x)/parts
		a, l := median(x[from:to]), median(y[from:to])
		if i > 0 {
			out = append(out, (l-level)/(a-at))
		}
		at, level = a, l
	}
	return out
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	m, _ := trend.Quantile(v, 0.5)
	return m
}
