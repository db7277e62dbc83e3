package trip

import (
	"math"
	"math/rand/v2"
	"testing"
)

// solve solves linear equations by Gaussian elimination with pivoting.
func solve(a [][]float64, b []float64) []float64 {
	n := len(b)
	for i := range n {
		p := i
		for k := i; k < n; k++ {
			if math.Abs(a[k][i]) > math.Abs(a[p][i]) {
				p = k
			}
		}
		a[i], a[p], b[i], b[p] = a[p], a[i], b[p], b[i]
		for k := i + 1; k < n; k++ {
			f := a[k][i] / a[i][i]
			for j := i; j < n; j++ {
				a[k][j] -= f * a[i][j]
			}
			b[k] -= f * b[i]
		}
	}
	x := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		x[i] = b[i]
		for j := i + 1; j < n; j++ {
			x[i] -= a[i][j] * x[j]
		}
		x[i] /= a[i][i]
	}
	return x
}

// polynomial fits a polynomial of the given degree by its normal equations, and
// returns the coefficients and the residual sum of squares.
func polynomial(x, y []float64, degree int) (c []float64, sse float64) {
	n := degree + 1
	a, b := make([][]float64, n), make([]float64, n)
	for i := range n {
		a[i] = make([]float64, n)
		for k := range x {
			for j := range n {
				a[i][j] += math.Pow(x[k], float64(i+j))
			}
			b[i] += math.Pow(x[k], float64(i)) * y[k]
		}
	}
	c = solve(a, b)
	for k := range x {
		r := y[k]
		for i := range n {
			r -= c[i] * math.Pow(x[k], float64(i))
		}
		sse += r * r
	}
	return c, sse
}

// studentBelow returns the probability that Student's t is below a value, by
// Simpson's rule over its density.
func studentBelow(t, df float64) float64 {
	lg := func(v float64) float64 { g, _ := math.Lgamma(v); return g }
	scale := math.Exp(lg((df+1)/2)-lg(df/2)) / math.Sqrt(df*math.Pi)
	density := func(u float64) float64 { return scale * math.Pow(1+u*u/df, -(df+1)/2) }
	const steps = 2000
	h, sum := t/steps, density(0)+density(t)
	for i := 1; i < steps; i++ {
		sum += density(float64(i)*h) * float64(2+2*(i%2))
	}
	return 0.5 + sum*h/3
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(1+math.Abs(a)+math.Abs(b)) }

// Slope, error, scatter and interval agree with an independent computation:
// normal equations for lines and parabolas, and numerical integration of
// Student's density.
func TestLineAgainstNormalEquations(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		n := 3 + random.IntN(12)
		x, y := make([]float64, n), make([]float64, n)
		at, slope, sigma, noise := 0.0, 100*random.NormFloat64(), 300*random.Float64(), 1+200*random.Float64()
		for i := range n {
			x[i], y[i] = at, 1000+slope*at+sigma*random.NormFloat64()
			at += float64(1 + random.IntN(3))
		}
		l := fit(x, y, noise)
		c, sse := polynomial(x, y, 1)
		own := float64(n - 2)
		pooled := (sse + 4*noise*noise) / (own + 4)
		variance, df := pooled, own+4
		if sse/own > pooled {
			variance, df = sse/own, own
		}
		// The variance of the slope is the variance of the residuals times the
		// slope's diagonal element of the inverse of the normal matrix.
		sx, sxx := 0.0, 0.0
		for _, v := range x {
			sx, sxx = sx+v, sxx+v*v
		}
		inverse := float64(n) / (float64(n)*sxx - sx*sx)
		if !near(l.slope, c[1]) || !near(l.own, math.Sqrt(sse/own)) || l.df != df ||
			!near(l.se, math.Sqrt(variance*inverse)) {
			t.Fatalf("%v %v: %+v, want %v, %v, %v", x, y, l, c[1], math.Sqrt(variance*inverse), df)
		}
		low, high := l.bounds(0.975)
		if !near(low+high, 2*l.slope) || math.Abs(studentBelow((high-l.slope)/l.se, l.df)-0.975) > 1e-5 {
			t.Fatalf("%v to %v of %+v", low, high, l)
		}
		if n < 4 {
			continue
		}
		_, bent := polynomial(x, y, 2)
		if want := math.Sqrt((bent + 4*noise*noise) / (float64(n-3) + 4)); math.Abs(
			scatter(x, y, noise)-want) > 1e-4*want {
			t.Fatalf("%v %v: scatter %v, want %v", x, y, scatter(x, y, noise), want)
		}
	}
}

// The verdict does not depend on the level of a measure. The unit of the
// measure affects the verdict only through the noise.
func TestVerdictIsInvariant(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	states := map[state]int{}
	for range 5000 {
		n := 3 + random.IntN(6)
		x, y, shifted, scaled := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
		slope, sigma := 600*random.NormFloat64(), 300*random.Float64()
		for i := range n {
			x[i] = float64(2 * i)
			y[i] = math.Round(slope*x[i] + sigma*random.NormFloat64())
			shifted[i], scaled[i] = y[i]+1<<20, 4*y[i]
		}
		is := memory(150).judge(x, y)
		states[is.state]++
		if got := memory(150).judge(x, shifted); got.state != is.state {
			t.Fatalf("%v: %v, shifted %v", y, is.state, got.state)
		}
		if got := memory(600).judge(x, scaled); got.state != is.state {
			t.Fatalf("%v: %v, scaled %v", y, is.state, got.state)
		}
	}
	for _, s := range []state{quiet, open, rising, growing} {
		if states[s] < 20 {
			t.Errorf("state %d: %d of 5000", s, states[s])
		}
	}
}
