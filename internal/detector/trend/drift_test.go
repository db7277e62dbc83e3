package trend

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// project computes least squares by orthogonal columns (modified Gram-Schmidt).
// It returns the residuals of y, the length of the part of the last column that
// is independent of the other columns, and the coefficient of the last column.
// It shares no formula with the package.
func project(y []float64, columns ...[]float64) (left []float64, own, coefficient float64) {
	left = slices.Clone(y)
	var units [][]float64
	for _, column := range columns {
		q := slices.Clone(column)
		for range 2 { // repeated to remove rounding errors
			for _, u := range units {
				take(q, u, dot(q, u))
			}
		}
		own = math.Sqrt(dot(q, q))
		for i := range q {
			q[i] /= own
		}
		part := dot(left, q)
		take(left, q, part)
		coefficient = part / own
		units = append(units, q)
	}
	return left, own, coefficient
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func take(a, b []float64, times float64) {
	for i := range a {
		a[i] -= times * b[i]
	}
}

// columnOf returns a column of n values.
func columnOf(n int, f func(i int) float64) []float64 {
	c := make([]float64, n)
	for i := range c {
		c[i] = f(i)
	}
	return c
}

func ones(n int) []float64 { return columnOf(n, func(int) float64 { return 1 }) }

func steps(n int) []float64 { return columnOf(n, func(i int) float64 { return float64(i) }) }

// whitened multiplies a column by the inverse of the Cholesky factor of the
// covariance of AR(1) noise, alpha^|i-j|/(1-alpha^2), written out in full.
func whitened(column []float64, alpha float64) []float64 {
	n := len(column)
	l := make([][]float64, n)
	out := make([]float64, n)
	for i := range n {
		l[i] = make([]float64, n)
		out[i] = column[i]
		for j := range i + 1 {
			sum := math.Pow(alpha, float64(i-j)) / (1 - alpha*alpha)
			for k := range j {
				sum -= l[i][k] * l[j][k]
			}
			if l[i][j] = math.Sqrt(sum); i != j {
				l[i][j] = sum / l[j][j]
				out[i] -= l[i][j] * out[j]
			}
		}
		out[i] /= l[i][i]
	}
	return out
}

// generalized fits the line for noise with a known covariance. A random walk
// has no stationary covariance, so its steps, which are independent, are fitted
// instead.
func generalized(y []float64, alpha float64) Drift {
	n := len(y)
	df := float64(n - 2)
	d := Drift{Alpha: alpha, N: n}
	var left []float64
	var own float64
	if alpha == 1 {
		left, own, d.Slope = project(columnOf(n-1, func(i int) float64 { return y[i+1] - y[i] }), ones(n-1))
	} else {
		left, own, d.Slope = project(whitened(y, alpha), whitened(ones(n), alpha), whitened(steps(n), alpha))
	}
	d.SD = math.Sqrt(dot(left, left) / df)
	d.SE = d.SD / own
	return d
}

// roughness regresses the residuals of a line on the same residuals one step
// earlier.
func roughness(y []float64) (alpha, se float64) {
	n := len(y)
	e, _, _ := project(y, ones(n), steps(n))
	left, own, alpha := project(e[1:], e[:n-1])
	return alpha, math.Sqrt(dot(left, left)/float64(n-2)) / own
}

// royAndFuller computes the correction as printed in the paper, for a line and
// one lag.
func royAndFuller(tau, n float64) float64 {
	const pct, a, r, lags = -1.96, 10.0, 2.0, 1.0
	switch {
	case tau > pct:
		return -tau
	case tau > -a:
		c2 := 1 / (pct * (a + pct) * (lags + n)) * ((1+r)*n - pct*pct*(lags+n))
		return lags/n*tau - (1+r)/(tau+c2*(tau+a))
	case tau > -math.Pow((1+r)*n, 0.5):
		return lags/n*tau - (1+r)/tau
	}
	return 0
}

// plainDrift is a second implementation of FitDrift. sure is false if rounding
// errors could decide whether the noise is a random walk.
func plainDrift(y []float64, raise float64) (d Drift, sure bool) {
	n := float64(len(y))
	alpha, se := roughness(y)
	alpha += se * (royAndFuller((alpha-1)/se, n) + raise)
	edge := 1 - 1/math.Sqrt(n)
	sure = math.Abs(alpha-edge) > 1e-6
	if alpha > edge {
		alpha = 1
	}
	return generalized(y, max(alpha, -0.9)), sure
}

// noisy returns AR(1) noise of standard deviation sigma, or a random walk whose
// steps have that standard deviation.
func noisy(r *rand.Rand, n int, rho, sigma float64) []float64 {
	y := make([]float64, n)
	fresh, e := math.Sqrt(1-rho*rho), r.NormFloat64()
	if rho == 1 {
		fresh, e = 1, 0
	}
	for i := range y {
		y[i] = sigma * e
		e = rho*e + fresh*r.NormFloat64()
	}
	return y
}

func alike(a, b, part float64) bool {
	return a == b || math.Abs(a-b) <= part*max(math.Abs(a), math.Abs(b))
}

func sameDrift(t *testing.T, what string, got, want Drift) {
	t.Helper()
	if got.N != want.N || !alike(got.Alpha, want.Alpha, 1e-7) || math.Abs(got.Slope-want.Slope) > 1e-7*want.SE ||
		!alike(got.SE, want.SE, 1e-6) || !alike(got.SD, want.SD, 1e-6) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

func TestDriftAgainstMatrices(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 1))
	walks, smooth, rough := 0, 0, 0
	for range 600 {
		n := 6 + r.IntN(60)
		rho := []float64{-0.99, -0.5, 0, 0.3, 0.5, 0.7, 0.9, 0.97, 1}[r.IntN(9)]
		y := noisy(r, n, rho, math.Exp(6*r.Float64()-1))
		take(y, steps(n), []float64{0, 0, 1, -3}[r.IntN(4)])
		raise := []float64{0, 0.1, 1, 1.5}[r.IntN(4)]
		want, sure := plainDrift(y, raise)
		if !sure {
			continue
		}
		got := FitDrift(y, raise)
		sameDrift(t, "FitDrift", got, want)
		if got.T() != got.Slope/got.SE {
			t.Errorf("T = %v of %+v", got.T(), got)
		}
		switch {
		case got.Alpha == 1:
			walks++
		case got.Alpha == -0.9:
			rough++
		default:
			smooth++
		}
		alpha := -1 + 2.2*r.Float64()
		known := max(alpha, -0.9)
		if alpha > 1-1/math.Sqrt(4*float64(n)) {
			known = 1
		}
		sameDrift(t, "FitDriftWith", FitDriftWith(y, alpha), generalized(y, known))
	}
	if walks < 100 || smooth < 100 || rough < 5 {
		t.Errorf("too few cases: %d random walks, %d others, %d at the bound", walks, smooth, rough)
	}
}

// TestRoyFuller checks values computed by hand from the paper's formula on each
// side of each of its limits, where the formula must be continuous.
func TestRoyFuller(t *testing.T) {
	tests := []struct {
		tau, want float64
		n         int
	}{
		{1, -1, 24},
		{0, 0, 24},
		{-1.9, 1.9, 24},
		// c2 = (72 - 3.8416*25) / (-1.96*8.04*25) = 0.0610214...
		{-3, -3.0/24 + 3/(3-7*0.06102142), 24},
		{-6, -6.0/24 + 3/(6-4*0.06102142), 24},
		// The square root of 3*100 is 17.3.
		{-12, -0.12 + 0.25, 100},
		{-17, -0.17 + 3.0/17, 100},
		{-18, 0, 100},
		// The square root of 3*24 is 8.49. The formula ends at -a in any case,
		// before it reaches -8.49.
		{-8, -8.0/24 + 3/(8-2*0.06102142), 24},
	}
	for _, tt := range tests {
		const se = 0.05
		got := royFuller(1+tt.tau*se, se, tt.n)
		if math.Abs(got-tt.want) > 1e-6 {
			t.Errorf("tau %v of %d values: %v, want %v", tt.tau, tt.n, got, tt.want)
		}
		if tt.tau > -8 && math.Abs(got-royAndFuller(tt.tau, float64(tt.n))) > 1e-9 {
			t.Errorf("tau %v of %d values: %v, want %v", tt.tau, tt.n, got, royAndFuller(tt.tau, float64(tt.n)))
		}
	}
	for _, n := range []int{40, 100, 480} {
		for _, edge := range []float64{-1.96, -10, -math.Sqrt(3 * float64(n))} {
			above, below := royFuller(1+edge+1e-9, 1, n), royFuller(1+edge-1e-9, 1, n)
			if math.Abs(above-below) > 1e-6 {
				t.Errorf("%d values: royFuller jumps at tau %v: %v just above, %v just below", n, edge, above, below)
			}
		}
	}
	if got := royFuller(0.5, 0, 24); got != 0 {
		t.Errorf("royFuller without a standard error = %v, want 0", got)
	}
}

func TestNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 2))
	for range 200 {
		length, count := 8+r.IntN(50), 1+r.IntN(5)
		rho := []float64{0, 0.5, 0.9, 0.99}[r.IntN(4)]
		var p Noise
		var now, before []float64
		for range count {
			y := noisy(r, length, rho, 7)
			p.Add(y)
			e, _, _ := project(y, ones(length), steps(length))
			now, before = append(now, e[1:]...), append(before, e[:length-1]...)
		}
		_, _, a := project(now, before)
		a += (2 + 4*a) / float64(length)
		raise := []float64{0, 1, 1.5}[r.IntN(3)]
		want := min(1, a+raise*math.Sqrt(max(0, 1-a*a)/float64(length*count)))
		if got := p.Alpha(raise); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%d parts of length %d: got alpha %v, want %v", count, length, got, want)
		}
	}
	var none Noise
	if none.Alpha(1) != 0 {
		t.Errorf("empty Noise: got autocorrelation %v, want 0", none.Alpha(1))
	}
	none.Add(ones(20))
	if none.Alpha(1) != 0 {
		t.Errorf("a constant has autocorrelation %v", none.Alpha(1))
	}
}

// TestNoiseFindsItsCorrelation checks that over many stretches the pooled
// estimate comes close to the true value, and that it is too low if the
// stretches are short.
func TestNoiseFindsItsCorrelation(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 3))
	for _, rho := range []float64{0, 0.5, 0.8} {
		var p Noise
		for range 2000 {
			p.Add(noisy(r, 48, rho, 1))
		}
		if got := p.Alpha(0); math.Abs(got-rho) > 0.03 {
			t.Errorf("%v, want %v", got, rho)
		}
	}
}

// TestRoyFullerOfWalks checks that the correction alone identifies slightly
// more than a third of all random walks, whatever their length.
func TestRoyFullerOfWalks(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 9))
	for _, n := range []int{24, 60, 240} {
		const runs = 5000
		whole := 0
		for range runs {
			y := noisy(r, n, 1, 1)
			level, slope := fitSteps(y)
			alpha, se := autocorrelation(y, level, slope)
			if alpha+royFuller(alpha, se, n)*se >= 1-1e-9 {
				whole++
			}
		}
		if share := float64(whole) / runs; share < 0.31 || share > 0.41 {
			t.Errorf("%d values: share of recognized random walks = %v, want 0.31 to 0.41", n, share)
		}
	}
}

// TestDriftSize checks the share of series without a drift whose |T| is above
// the two-sided quantiles of Student's t, with wide bounds. Noise whose
// correlation time exceeds the length of the series cannot be distinguished
// from a drift by its T alone, so for the slowest noise the shares are several
// times the nominal ones. Raising the correlation reduces the shares in all
// cases.
func TestDriftSize(t *testing.T) {
	tests := []struct {
		name       string
		rho, raise float64
		n          int
		// These are the largest allowed shares of |T| above the 5 % and the 0.1
		// % quantile.
		five, one float64
	}{
		{"independent, uncorrected", 0, 0, 24, 0.09, 0.006},
		{"AR .5, uncorrected", 0.5, 0, 24, 0.11, 0.018},
		{"AR .9, uncorrected", 0.9, 0, 24, 0.20, 0.085},
		{"random walk, uncorrected", 1, 0, 24, 0.28, 0.15},
		{"independent", 0, 1, 24, 0.045, 0.002},
		{"AR .5", 0.5, 1, 24, 0.05, 0.006},
		{"AR .9", 0.9, 1, 24, 0.10, 0.04},
		{"random walk", 1, 1, 24, 0.16, 0.065},
		{"independent, long", 0, 1, 60, 0.045, 0.002},
		{"AR .5, long", 0.5, 1, 60, 0.045, 0.003},
		{"AR .9, long", 0.9, 1, 60, 0.055, 0.016},
		{"random walk, long", 1, 1, 60, 0.12, 0.045},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(31, 4))
			df := float64(tt.n - 2)
			q5, q1 := StudentQuantile(0.975, df), StudentQuantile(0.9995, df)
			const runs = 10000
			above5, above1, up := 0.0, 0.0, 0
			for range runs {
				d := FitDrift(noisy(r, tt.n, tt.rho, 1), tt.raise)
				x := math.Abs(d.T())
				if x > q5 {
					above5++
				}
				if x > q1 {
					above1++
				}
				if d.T() > 0 {
					up++
				}
			}
			t.Logf("|T| above the 5 %% quantile in %.2f %%, above the 0.1 %% quantile in %.3f %% of the runs; %d of "+
				"%d slopes are positive", 100*above5/runs,
				100*above1/runs, up, runs)
			if above5/runs > tt.five || above1/runs > tt.one {
				t.Errorf("shares above the quantiles are %.4f and %.4f, want at most %v and %v", above5/runs,
					above1/runs, tt.five, tt.one)
			}
			if above5 == 0 || up < 4700 || up > 5300 {
				t.Errorf("|T| above the 5 %% quantile in %v runs, want at least 1; %d of %d slopes are positive, "+
					"want 4700 to 5300", above5, up, runs)
			}
		})
	}
}

// TestDriftIsFound is the counterpart of TestDriftSize: a drift of several
// standard errors is found, whatever the noise.
func TestDriftIsFound(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 5))
	for _, tt := range []struct{ rho, slope float64 }{{0, 0.5}, {0.5, 0.8}, {0.9, 1}, {1, 2}} {
		found, sum := 0, 0.0
		const runs = 1000
		for range runs {
			y := noisy(r, 24, tt.rho, 1)
			take(y, steps(24), -tt.slope)
			d := FitDrift(y, 0)
			if sum += d.Slope; d.T() > StudentQuantile(0.999, 22) {
				found++
			}
		}
		if found < runs*9/10 || math.Abs(sum/runs-tt.slope) > 0.05*tt.slope {
			t.Errorf("rho %v: found in %d of %d runs, mean slope %v, want %v", tt.rho, found, runs, sum/runs, tt.slope)
		}
	}
}

func TestDriftOfLines(t *testing.T) {
	for _, n := range []int{6, 24, 36, 64} {
		for _, slope := range []float64{1, -1, 0.1, -1e-3, 1e6} {
			for _, level := range []float64{0, 0.3, -250, 1e4} {
				y := columnOf(n, func(i int) float64 { return level + slope*float64(i) })
				d := FitDrift(y, 1)
				if !alike(d.Slope, slope, 1e-6) {
					t.Errorf("line of %d values from %v with step %v: got slope %v", n, level, slope, d.Slope)
				}
				if x := d.T() * math.Copysign(1, slope); !(x > 1000) {
					t.Errorf("line of %d values from %v with step %v: got t %v", n, level, slope, d.T())
				}
			}
		}
	}
}

func TestDriftOfConstants(t *testing.T) {
	for _, n := range []int{6, 7, 24, 36, 64} {
		for _, level := range []float64{0, 1, -1, 0.1, 1.0 / 3, 260.7, -1e4 / 7, 1e6 + 0.1} {
			y := columnOf(n, func(int) float64 { return level })
			for name, d := range map[string]Drift{"FitDrift": FitDrift(y, 1), "FitDriftWith": FitDriftWith(y, 0.8)} {
				if math.Abs(d.Slope)*float64(n) > 1e-9*math.Abs(level) {
					t.Errorf("%s of %d times %v: %+v", name, n, level, d)
				}
				if math.Abs(d.T()) > 1e-3 {
					t.Errorf("%s of %d times %v: t %v of %+v, want 0", name, n, level, d.T(), d)
				}
			}
		}
	}
}

func TestDriftInvariance(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 6))
	for range 300 {
		n := 8 + r.IntN(50)
		y := noisy(r, n, []float64{0, 0.7, 1}[r.IntN(3)], 5)
		if _, sure := plainDrift(y, 1); !sure {
			continue
		}
		times, plus, slope := math.Exp(8*r.Float64()-4), 1e4*r.NormFloat64(), 10*r.NormFloat64()
		d := FitDrift(y, 1)
		changed := columnOf(n, func(i int) float64 { return times*y[i] + plus + slope*float64(i) })
		want := Drift{Slope: times*d.Slope + slope, SE: times * d.SE, SD: times * d.SD, Alpha: d.Alpha, N: n}
		got := FitDrift(changed, 1)
		if got.N != n || !alike(got.Alpha, want.Alpha, 1e-5) || !alike(got.SE, want.SE, 1e-4) ||
			!alike(got.SD, want.SD, 1e-4) ||
			math.Abs(got.Slope-want.Slope) > 1e-4*want.SE {
			t.Errorf("%v*y+%v+%v*i: got %+v, want %+v", times, plus, slope, got, want)
		}
	}
}

func TestDriftOfFewValues(t *testing.T) {
	y := []float64{1, 2, 4, 3, 9, 7}
	for n := range 6 {
		if got := FitDrift(y[:n], 1); got != (Drift{N: n}) {
			t.Errorf("FitDrift of %d values: %+v", n, got)
		}
		if got, panicked := trying(func() Drift { return FitDriftWith(y[:n], 0.5) }); panicked != nil ||
			got != (Drift{N: n}) {
			t.Errorf("FitDriftWith of %d values: %+v, panic %v", n, got, panicked)
		}
		if _, panicked := trying(
			func() Drift { var p Noise; p.Add(y[:n]); return Drift{Slope: p.Alpha(1)} }); panicked != nil {
			t.Errorf("Noise of %d values: panic %v", n, panicked)
		}
	}
	if got := FitDrift(y, 1); got.N != 6 || !(got.SE > 0) {
		t.Errorf("FitDrift of 6 values: %+v", got)
	}
}

// trying calls a function and returns its result or its panic.
func trying(f func() Drift) (d Drift, panicked any) {
	defer func() { panicked = recover() }()
	return f(), nil
}

func TestDriftOfNonFiniteValues(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 7))
	for range 2000 {
		y := noisy(r, r.IntN(30), 0.5, 1)
		for range r.IntN(4) {
			if len(y) > 0 {
				y[r.IntN(len(y))] = []float64{
					math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64,
					math.SmallestNonzeroFloat64,
				}[r.IntN(6)]
			}
		}
		raise := []float64{0, 1, math.NaN(), math.Inf(1)}[r.IntN(4)]
		if d := FitDrift(y, raise); d.N != len(y) {
			t.Fatalf("FitDrift(%v) = %+v", y, d)
		}
		if len(y) >= 6 {
			FitDriftWith(y, raise)
		}
	}
}

// finiteValues reads values of at most 1e12 from bytes, at most 80 of them.
func finiteValues(data []byte) []float64 {
	var y []float64
	for len(data) >= 4 && len(y) < 80 {
		bits := binary.LittleEndian.Uint32(data)
		data = data[4:]
		mantissa := float64(int32(bits) >> 8)
		y = append(y, mantissa*math.Pow(10, float64(bits&0xff)/255*14-9)) // at most 8.4e6 * 1e5
	}
	return y
}

func seedValues(f *testing.F) {
	f.Add([]byte{})
	r := rand.New(rand.NewPCG(31, 8))
	for n := 5; n < 70; n += 8 {
		data := make([]byte, 4*n)
		for i := range data {
			data[i] = byte(r.IntN(256))
			if n%3 == 0 && i%4 == 0 {
				data[i] = 0x80
			}
		}
		f.Add(data)
		f.Add(make([]byte, 4*n))
	}
}

// FuzzDrift checks that the results for finite values are in their ranges, and
// that changing the sign, or multiplying the unit by a power of two, changes no
// digit.
func FuzzDrift(f *testing.F) {
	seedValues(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		y := finiteValues(data)
		n := len(y)
		d := FitDrift(y, 1)
		if d.N != n || n < 6 && d != (Drift{N: n}) {
			t.Fatalf("%+v of %d values", d, n)
		}
		if n < 6 {
			return
		}
		turned := columnOf(n, func(i int) float64 { return -8 * y[i] })
		for name, pair := range map[string][2]Drift{
			"FitDrift":     {d, FitDrift(turned, 1)},
			"FitDriftWith": {FitDriftWith(y, 0.7), FitDriftWith(turned, 0.7)},
		} {
			d, turned := pair[0], pair[1]
			for _, v := range []float64{d.Slope, d.SE, d.SD} {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("%s: %+v of %v", name, d, y)
				}
			}
			if d.SE < 0 || d.SD < 0 || !(d.Alpha >= -0.9 && d.Alpha <= 1) || math.IsNaN(d.T()) {
				t.Fatalf("%s: %+v of %v", name, d, y)
			}
			if want := (Drift{Slope: -8 * d.Slope, SE: 8 * d.SE, SD: 8 * d.SD, Alpha: d.Alpha, N: n}); turned != want {
				t.Fatalf("%s: %+v of -8*%v, want %+v", name, turned, y, want)
			}
		}
	})
}
