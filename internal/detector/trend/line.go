package trend

import "math"

// Line is a least-squares line y = Intercept + Slope*x, with the figures that
// show how well it fits. For fewer than three points, or if all points have the
// same time, there is no line and only N is set.
type Line struct {
	// Slope is in units of y per second; Intercept is the value at x = 0.
	Slope, Intercept float64
	// R2 is the share of the variance that the line explains, from 0 to 1; it
	// is 0 for a constant series.
	R2 float64
	// T is Slope/SE: 0 for a constant series, infinite for a perfect line.
	T float64
	// SE is the standard error of the slope for independent noise.
	SE float64
	// ResidualSD is the standard deviation of the noise about the line, with
	// N-2 degrees of freedom.
	ResidualSD float64
	// Span is the time from the first point to the last, in seconds.
	Span float64
	N    int
}

// Fitted reports whether there is a line.
func (l Line) Fitted() bool { return l.N >= 3 && l.Span > 0 }

// Growth returns the rise of the line over its span, in units of y.
func (l Line) Growth() float64 { return l.Slope * l.Span }

// Interval returns the confidence interval of the slope (confidence 0.95 for 95
// %), for independent, normal noise. ok is false if there is no line.
func (l Line) Interval(confidence float64) (low, high float64, ok bool) {
	if !l.Fitted() || !(confidence > 0 && confidence < 1) {
		return 0, 0, false
	}
	half := StudentQuantile(0.5+confidence/2, float64(l.N-2)) * l.SE
	return l.Slope - half, l.Slope + half, true
}

// Fit fits a line to the points (x[i], y[i]); x must not decrease. Fit
// subtracts the first point and then the means, so that neither large times nor
// large values reduce the precision. Extra elements of the longer slice are
// ignored.
func Fit(x, y []float64) Line {
	n := min(len(x), len(y))
	none := Line{N: n}
	if n < 3 || x[n-1] <= x[0] {
		return none
	}
	x0, y0 := x[0], y[0]
	var mx, my float64
	for i := range n {
		mx += x[i] - x0
		my += y[i] - y0
	}
	mx /= float64(n)
	my /= float64(n)

	var sxx, sxy, syy float64
	for i := range n {
		dx, dy := x[i]-x0-mx, y[i]-y0-my
		sxx += dx * dx
		sxy += dx * dy
		syy += dy * dy
	}
	slope := sxy / sxx
	var sse float64
	for i := range n {
		e := y[i] - y0 - my - slope*(x[i]-x0-mx)
		sse += e * e
	}
	l := Line{
		Slope:     slope,
		Intercept: y0 + my - slope*(x0+mx),
		Span:      x[n-1] - x0,
		N:         n,
	}
	if math.IsInf(syy, 0) || math.IsInf(sxx, 0) || math.IsNaN(sse) {
		return none
	}
	// The residuals of a perfect line are the rounding errors of the
	// deviations.
	if rounding := 4 * epsilon; sse <= rounding*rounding*syy*float64(n) {
		sse = 0
	}
	switch {
	case syy == 0:
		l.Slope, l.Intercept = 0, y0
	case sse == 0:
		l.R2, l.T = 1, math.Copysign(math.Inf(1), slope)
	default:
		l.R2 = max(0, 1-sse/syy)
		l.ResidualSD = math.Sqrt(sse / float64(n-2))
		l.SE = l.ResidualSD / math.Sqrt(sxx)
		l.T = slope / l.SE
	}
	if !l.finite() {
		return none
	}
	return l
}

// epsilon is the spacing of float64 at 1.
const epsilon = 1.0 / (1 << 52)

// finite reports whether all figures are finite; T may also be infinite.
func (l Line) finite() bool {
	sum := l.Slope + l.Intercept + l.SE + l.ResidualSD + l.R2
	return !math.IsNaN(sum) && !math.IsInf(sum, 0) && !math.IsNaN(l.T)
}
