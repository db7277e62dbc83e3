package trend

import "math"

// Drift is the slope of a line through equally spaced values whose noise may be
// correlated in time, with a standard error that accounts for the correlation.
type Drift struct {
	// Slope and SE are in units of y per step.
	Slope, SE float64
	// Alpha is the first autocorrelation of the noise that SE assumes: 0 for
	// independent noise, 1 for a random walk.
	Alpha float64
	// SD is the standard deviation of the innovations of the noise.
	SD float64
	N  int
}

// T returns Slope/SE; it is infinite for a perfect line, and 0 for a constant.
func (d Drift) T() float64 {
	if d.Slope == 0 {
		return 0
	}
	return d.Slope / d.SE
}

// leastValues is the minimum number of values for a drift.
const leastValues = 6

// FitDrift fits a line to equally spaced values by the feasible quasi
// generalized least squares of Perron and Yabu (Estimating deterministic trends
// with an integrated or stationary noise component, J. of Econometrics 151,
// 2009), with one lag. The autocorrelation of the detrended values is corrected
// for its bias by the method of Roy and Fuller, raised by the given number of
// its standard errors, and set to 1 if it cannot be distinguished from 1. The t
// value is therefore close to normal for stationary noise, and not far from
// normal for random walks (the tests contain the rates). If there are fewer
// than 6 values, only N is set.
func FitDrift(y []float64, raise float64) Drift {
	n := len(y)
	if n < leastValues {
		return Drift{N: n}
	}
	level, slope := fitSteps(y)
	alpha, se := autocorrelation(y, level, slope)
	alpha += royFuller(alpha, se, n)*se + raise*se
	if alpha > 1-1/math.Sqrt(float64(n)) {
		alpha = 1
	}
	return praisWinsten(y, max(alpha, -0.9))
}

// Slope returns the least-squares slope of equally spaced values, per step. It
// returns 0 for fewer than two values.
func Slope(y []float64) float64 {
	if len(y) < 2 {
		return 0
	}
	_, slope := fitSteps(y)
	return slope
}

// fitSteps returns the least-squares line through the points (i, y[i]).
func fitSteps(y []float64) (level, slope float64) {
	n := float64(len(y))
	var sum, cross float64
	for i, v := range y {
		sum += v
		cross += float64(i) * v
	}
	middle := (n - 1) / 2
	slope = (cross - middle*sum) / (n * (n*n - 1) / 12)
	return sum/n - slope*middle, slope
}

// autocorrelation returns the first autocorrelation of the deviations from a
// line, with its standard error.
func autocorrelation(y []float64, level, slope float64) (alpha, se float64) {
	var cross, square float64
	before := y[0] - level
	last := 0.0
	for i := 1; i < len(y); i++ {
		e := y[i] - level - slope*float64(i)
		cross += e * before
		square += before * before
		before, last = e, e
	}
	if square <= 0 {
		return 0, 0
	}
	alpha = cross / square
	// Sum of (e - alpha*before)^2, expanded.
	first := y[0] - level
	sse := square - first*first + last*last - alpha*cross
	return alpha, math.Sqrt(max(0, sse) / float64(len(y)-2) / square)
}

// royFuller returns the correction of Roy and Fuller (2001) for detrended
// values, in standard errors: after the correction, the median estimate for a
// random walk is 1.
func royFuller(alpha, se float64, n int) float64 {
	if se == 0 {
		return 0
	}
	const (
		median = -1.96 // median t value of a unit root, for a fit with a linear trend
		a, r   = 10, 2
	)
	t, size := (alpha-1)/se, float64(n)
	switch {
	case t > median:
		return -t
	case t > -a:
		c2 := ((1+r)*size - median*median*(1+size)) / (median * (a + median) * (1 + size))
		return t/size - (1+r)/(t+c2*(t+a))
	case t > -math.Sqrt((1+r)*size):
		return t/size - (1+r)/t
	}
	return 0
}

func constant(y []float64) bool {
	for _, v := range y {
		if v != y[0] {
			return false
		}
	}
	return true
}

// praisWinsten fits a line by generalized least squares, for noise with a known
// autocorrelation.
func praisWinsten(y []float64, alpha float64) Drift {
	n := len(y)
	// Regressors of the transformed model: level and time.
	var s11, s12, s22, s1y, s2y, syy float64
	add := func(one, time, value float64) {
		s11 += one * one
		s12 += one * time
		s22 += time * time
		s1y += one * value
		s2y += time * value
		syy += value * value
	}
	if alpha < 1 {
		w := math.Sqrt(1 - alpha*alpha)
		add(w, 0, w*y[0])
	}
	for i := 1; i < n; i++ {
		add(1-alpha, float64(i)-alpha*float64(i-1), y[i]-alpha*y[i-1])
	}
	d := Drift{Alpha: alpha, N: n}
	df := float64(n - 2)
	if constant(y) {
		return d // otherwise rounding errors in the sums would yield a slope
	}
	if alpha >= 1 {
		// The slope of a random walk depends only on its steps.
		d.Slope = s2y / s22
		sse := syy - d.Slope*s2y
		d.SD = math.Sqrt(max(0, sse) / df)
		d.SE = d.SD / math.Sqrt(s22)
		return d
	}
	det := s11*s22 - s12*s12
	d.Slope = (s11*s2y - s12*s1y) / det
	level := (s1y - d.Slope*s12) / s11
	sse := syy - level*s1y - d.Slope*s2y
	d.SD = math.Sqrt(max(0, sse) / df)
	d.SE = d.SD * math.Sqrt(s11/det)
	return d
}

// Noise estimates the autocorrelation of noise from several stretches of
// equally spaced values. All stretches have the same length; each is detrended
// by its own line.
type Noise struct {
	cross, square float64
	n, length     int
}

// Add adds a stretch. A stretch of fewer than 6 values is ignored.
func (p *Noise) Add(y []float64) {
	if len(y) < leastValues {
		return
	}
	level, slope := fitSteps(y)
	before := y[0] - level
	for i := 1; i < len(y); i++ {
		e := y[i] - level - slope*float64(i)
		p.cross += e * before
		p.square += before * before
		before = e
	}
	p.n += len(y)
	p.length = len(y)
}

// Alpha returns the autocorrelation, corrected for the effect of fitting a line
// and raised by the given number of its standard errors.
func (p *Noise) Alpha(raise float64) float64 {
	if p.square <= 0 {
		return 0
	}
	a := p.cross / p.square
	a += (2 + 4*a) / float64(p.length)
	a += raise * math.Sqrt(max(0, 1-a*a)/float64(p.n))
	return min(1, a)
}

// FitDriftWith does the same as FitDrift for noise whose autocorrelation is
// known.
func FitDriftWith(y []float64, alpha float64) Drift {
	if len(y) < leastValues {
		return Drift{N: len(y)}
	}
	if alpha > 1-1/math.Sqrt(float64(len(y))*4) {
		alpha = 1
	}
	return praisWinsten(y, max(alpha, -0.9))
}
