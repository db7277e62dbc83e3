package trend

import "math"

// Shapes describes how well simple curves fit equally spaced values: the
// residual sum of squares of each curve, in units of y squared, and the number
// of values. Every curve except the constant and the line may be fitted at many
// positions; the best fit is used.
type Shapes struct {
	N int
	// Constant has one parameter; Line has two.
	Constant, Line float64
	// Onset is flat, then rises to the end.
	Onset float64
	// OnsetAt is the step at which the onset begins to rise.
	OnsetAt int
	// Step is a sudden rise or fall. TwoSteps has two steps, and ThreeSteps
	// adds a third at the best position.
	Step, TwoSteps, ThreeSteps float64
	// Saturating rises as 1-exp(-t/tau). Filled rises up to some point and then
	// stays flat.
	Saturating, Filled float64
}

// maxShape bounds the number of values of FitShapes.
const maxShape = 64

// FitShapes fits all shapes to 8 to 64 values. For other lengths N is 0.
func FitShapes(y []float64) Shapes {
	n := len(y)
	if n < 8 || n > maxShape {
		return Shapes{}
	}
	var p prefix
	p.sum(y)
	s := Shapes{N: n, Constant: p.within(0, n)}
	s.Line = p.left(p.lineRegressor())
	s.Step, s.TwoSteps, s.ThreeSteps = p.steps()
	s.Onset, s.Filled = math.Inf(1), math.Inf(1)
	for k := 1; k < n-2; k++ {
		if sse, slope := p.onset(k); slope > 0 && sse < s.Onset {
			s.Onset, s.OnsetAt = sse, k
		}
		if sse, slope := p.filled(k + 1); slope > 0 {
			s.Filled = min(s.Filled, sse)
		}
	}
	s.Saturating = p.saturating(y)
	s.Onset, s.Filled = min(s.Onset, s.Constant), min(s.Filled, s.Constant)
	return s
}

// BIC returns the Bayesian information criterion of a curve with the given
// number of parameters for independent noise; smaller is better. Residuals of
// less than a billionth of the spread are rounding errors, so curves with such
// residuals count as equally good.
func (s Shapes) BIC(sse float64, parameters int) float64 {
	n := float64(s.N)
	return n*math.Log(max(sse, 1e-18*s.Constant, math.SmallestNonzeroFloat64)/n) + float64(parameters)*math.Log(n)
}

// prefix holds the sums of a series, relative to its mean, up to each position.
type prefix struct {
	n int
	// y, ty and yy are the sums of y, i*y and y*y before a position.
	y, ty, yy [maxShape + 1]float64
}

func (p *prefix) sum(y []float64) {
	p.n = len(y)
	mean := 0.0
	for _, v := range y {
		mean += v
	}
	mean /= float64(p.n)
	for i, v := range y {
		v -= mean
		p.y[i+1] = p.y[i] + v
		p.ty[i+1] = p.ty[i] + float64(i)*v
		p.yy[i+1] = p.yy[i] + v*v
	}
}

// within returns the sum of squares about the mean of values i to j-1.
func (p *prefix) within(i, j int) float64 {
	sum := p.y[j] - p.y[i]
	return max(0, p.yy[j]-p.yy[i]-sum*sum/float64(j-i))
}

// left returns the residual sum of squares of the regression of y on a variable
// z, computed from the sums of z, of its squares (zz) and of its products with
// y (zy).
func (p *prefix) left(z, zz, zy float64) (sse float64) {
	sse, _ = p.regress(z, zz, zy)
	return sse
}

func (p *prefix) regress(z, zz, zy float64) (sse, slope float64) {
	n := float64(p.n)
	szz := zz - z*z/n
	szy := zy - z*p.y[p.n]/n
	total := p.within(0, p.n)
	if szz <= 0 {
		return total, 0
	}
	return max(0, total-szy*szy/szz), szy / szz
}

func (p *prefix) lineRegressor() (z, zz, zy float64) {
	n := float64(p.n)
	return n * (n - 1) / 2, (n - 1) * n * (2*n - 1) / 6, p.ty[p.n]
}

// onset fits a + b*max(0, i-k), which is flat up to step k and then rises, and
// returns the residual sum of squares and b.
func (p *prefix) onset(k int) (sse, slope float64) {
	m := float64(p.n - 1 - k) // z runs 1..m after k
	z, zz := m*(m+1)/2, m*(m+1)*(2*m+1)/6
	zy := (p.ty[p.n] - p.ty[k]) - float64(k)*(p.y[p.n]-p.y[k])
	return p.regress(z, zz, zy)
}

// filled fits a + b*min(i, k), which rises up to step k and then stays flat,
// and returns the residual sum of squares and b.
func (p *prefix) filled(k int) (sse, slope float64) {
	m, f := float64(k), float64(p.n-k)
	z, zz := m*(m-1)/2+m*f, (m-1)*m*(2*m-1)/6+m*m*f
	zy := p.ty[k] + m*(p.y[p.n]-p.y[k])
	return p.regress(z, zz, zy)
}

// steps returns the residual sums of squares of the best single step, of the
// best two steps, and of those two with a third. Every level has at least two
// values.
func (p *prefix) steps() (one, two, three float64) {
	one, two = math.Inf(1), math.Inf(1)
	var places [4]int
	for i := 2; i <= p.n-2; i++ {
		head := p.within(0, i)
		one = min(one, head+p.within(i, p.n))
		if head >= two {
			continue
		}
		for j := i + 2; j <= p.n-2; j++ {
			if sse := head + p.within(i, j) + p.within(j, p.n); sse < two {
				two, places = sse, [4]int{0, i, j, p.n}
			}
		}
	}
	three = two
	for k := range 3 {
		from, to := places[k], places[k+1]
		rest := two - p.within(from, to)
		for i := from + 2; i <= to-2; i++ {
			three = min(three, rest+p.within(from, i)+p.within(i, to))
		}
	}
	return one, min(one, two), min(one, three)
}

// saturating fits a + b*exp(-i/tau) for time constants tau from a tenth of the
// length of the series to one and a half times its length, and returns the
// smallest residual sum of squares.
func (p *prefix) saturating(y []float64) float64 {
	best := p.within(0, p.n)
	for _, part := range [...]float64{0.1, 0.17, 0.25, 0.35, 0.5, 0.7, 1, 1.5} {
		q, v := math.Exp(-1/(part*float64(p.n))), 1.0
		var z, zz, zy float64
		for i := range y {
			z += v
			zz += v * v
			zy += v * (p.y[i+1] - p.y[i])
			v *= q
		}
		if sse, slope := p.regress(z, zz, zy); slope < 0 {
			best = min(best, sse)
		}
	}
	return best
}
