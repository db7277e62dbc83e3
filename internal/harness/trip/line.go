package trip

import (
	"math"
	"sync"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// line is a straight line fitted to the readings of one measure by least
// squares.
type line struct {
	// slope is the slope per loop; se is its standard error with df degrees of
	// freedom.
	slope, se, df float64
	// own is the standard deviation of the readings around the line.
	own float64
}

// priorWeight is the weight of the usual noise of a measure, in degrees of
// freedom. A few readings may lie on a line by chance, and their scatter then
// suggests a precision that they do not have. The scatter is therefore averaged
// with the usual noise, as in moderated t-tests (Smyth, Statistical
// Applications in Genetics and Molecular Biology 3, 2004), but the result is
// never less than the scatter itself.
const priorWeight = 4

// fit returns the line through readings y after x loops for a measure with the
// given usual noise. It needs at least three readings.
func fit(x, y []float64, noise float64) line {
	slope, sxx, residuals := regress(x, y)
	sse, own := squares(residuals), float64(len(x)-2)
	l := line{slope: slope, own: math.Sqrt(sse / own), df: own + priorWeight}
	variance := (sse + priorWeight*noise*noise) / l.df
	if sse/own > variance {
		variance, l.df = sse/own, own
	}
	l.se = math.Sqrt(variance / sxx)
	return l
}

// bounds returns a lower and an upper bound on the slope, each of which holds
// with the given probability.
func (l line) bounds(p float64) (low, high float64) {
	half := quantile(p, l.df) * l.se
	return l.slope - half, l.slope + half
}

// quantiles caches computed values: all trips need the same few values.
var quantiles sync.Map

// quantile returns a quantile of Student's t distribution.
func quantile(p, df float64) float64 {
	key := [2]float64{p, df}
	if t, ok := quantiles.Load(key); ok {
		return t.(float64)
	}
	t := trend.StudentQuantile(p, df)
	quantiles.Store(key, t)
	return t
}

// scatter returns the standard deviation around a parabola, averaged with the
// usual noise. A parabola is used because a curve in the readings is not noise.
// It needs at least four readings.
func scatter(x, y []float64, noise float64) float64 {
	_, _, straight := regress(x, y)
	squared := make([]float64, len(x))
	m := mean(x)
	for i := range x {
		squared[i] = (x[i] - m) * (x[i] - m)
	}
	_, _, bend := regress(x, squared)
	var product float64
	for i := range bend {
		product += bend[i] * straight[i]
	}
	// By the theorem of Frisch, Waugh and Lovell, the curvature explains what
	// the two residuals have in common.
	sse := squares(straight)
	if b := squares(bend); b > 0 {
		sse -= product * product / b
	}
	return math.Sqrt((max(sse, 0) + priorWeight*noise*noise) / (float64(len(x)-3) + priorWeight))
}

// regress returns the least-squares slope of y on x, the sum of the squared
// deviations of x from its mean, and the residuals.
func regress(x, y []float64) (slope, sxx float64, residuals []float64) {
	mx, my := mean(x), mean(y)
	var sxy float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
	}
	slope = sxy / sxx
	residuals = make([]float64, len(x))
	for i := range x {
		residuals[i] = y[i] - my - slope*(x[i]-mx)
	}
	return slope, sxx, residuals
}

func squares(v []float64) (sum float64) {
	for _, x := range v {
		sum += x * x
	}
	return sum
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
