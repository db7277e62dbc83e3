package trend

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// normalEquations fits a line with the textbook's normal equations in rational
// numbers: no rounding, no centering, no code shared with Fit.
func normalEquations(x, y []float64) (slope, intercept, r2, t float64) {
	rat := func(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }
	mul := func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }
	sub := func(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }
	n := rat(float64(len(x)))
	sx, sy, sxx, sxy, syy := rat(0), rat(0), rat(0), rat(0), rat(0)
	for i := range x {
		xi, yi := rat(x[i]), rat(y[i])
		sx.Add(sx, xi)
		sy.Add(sy, yi)
		sxx.Add(sxx, mul(xi, xi))
		sxy.Add(sxy, mul(xi, yi))
		syy.Add(syy, mul(yi, yi))
	}
	dxx := sub(mul(n, sxx), mul(sx, sx))
	dxy := sub(mul(n, sxy), mul(sx, sy))
	dyy := sub(mul(n, syy), mul(sy, sy))
	b := new(big.Rat).Quo(dxy, dxx)
	a := new(big.Rat).Quo(sub(sy, mul(b, sx)), n)
	f := func(r *big.Rat) float64 { v, _ := r.Float64(); return v }
	if dyy.Sign() == 0 {
		return 0, f(a), 0, 0
	}
	share := new(big.Rat).Quo(mul(dxy, dxy), mul(dxx, dyy))
	left := sub(rat(1), share)
	if left.Sign() == 0 {
		return f(b), f(a), 1, math.Copysign(math.Inf(1), f(b))
	}
	square := f(new(big.Rat).Quo(mul(rat(float64(len(x)-2)), share), left))
	return f(b), f(a), f(share), math.Copysign(math.Sqrt(square), f(b))
}

func near(a, b, relative float64) bool {
	return a == b || math.Abs(a-b) <= relative*max(math.Abs(a), math.Abs(b))
}

func TestFitAgainstNormalEquations(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	for range 300 {
		n := 3 + r.IntN(238)
		x, y := make([]float64, n), make([]float64, n)
		at := math.Floor(r.Float64() * 1e6)
		rate, level, noise := r.NormFloat64()*1e5, 3e8*r.Float64(), 5e6*r.Float64()
		for i := range x {
			at += 1 + float64(r.IntN(90)) + float64(r.IntN(100))/100
			x[i] = at
			y[i] = math.Floor(level + rate*(at-x[0]) + noise*r.NormFloat64())
		}
		l := Fit(x, y)
		slope, intercept, r2, tt := normalEquations(x, y)
		if !near(l.Slope, slope, 1e-8) || !near(l.R2, r2, 1e-7) || !near(l.T, tt, 1e-7) {
			t.Fatalf("n %d: Fit %+v, normal equations slope %v r2 %v t %v", n, l, slope, r2, tt)
		}
		if math.Abs(l.Intercept-intercept) > 1e-6*(math.Abs(intercept)+level) {
			t.Fatalf("intercept %v, want %v", l.Intercept, intercept)
		}
		if !near(l.T*l.T, float64(n-2)*l.R2/(1-l.R2), 1e-6) {
			t.Fatalf("t^2 = (n-2) R2/(1-R2) does not hold for %+v", l)
		}
		if !near(l.SE*l.T, l.Slope, 1e-9) {
			t.Fatalf("SE %v times t %v is not the slope %v", l.SE, l.T, l.Slope)
		}
	}
}

func TestFitOfPlainSeries(t *testing.T) {
	inf := math.Inf(1)
	tests := map[string]struct {
		x, y []float64
		want Line
	}{
		"no points":   {nil, nil, Line{}},
		"two points":  {[]float64{1, 2}, []float64{1, 2}, Line{N: 2}},
		"equal times": {[]float64{5, 5, 5}, []float64{1, 2, 3}, Line{N: 3}},
		"constant":    {[]float64{1, 2, 4}, []float64{0.1, 0.1, 0.1}, Line{N: 3, Intercept: 0.1, Span: 3}},
		"perfect rise": {
			[]float64{1, 2, 4}, []float64{3, 5, 9}, Line{N: 3, Slope: 2, Intercept: 1, R2: 1, T: inf, Span: 3},
		},
		"perfect fall": {
			[]float64{0, 1, 2}, []float64{2, 1, 0}, Line{N: 3, Slope: -1, Intercept: 2, R2: 1, T: -inf, Span: 2},
		},
		"no slope": {
			[]float64{0, 1, 2, 3}, []float64{1, 2, 2, 1},
			Line{N: 4, Intercept: 1.5, Span: 3, ResidualSD: math.Sqrt(0.5), SE: math.Sqrt(0.1)},
		},
		"longer y":         {[]float64{0, 1, 2}, []float64{0, 0, 0, 9}, Line{N: 3, Span: 2}},
		"overflow":         {[]float64{0, 1, 2}, []float64{0, 1e300, -1e300}, Line{N: 3}},
		"descending times": {[]float64{9, 1, 2}, []float64{0, 1, 2}, Line{N: 3}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Fit(tt.x, tt.y)
			if !near(got.SE, tt.want.SE, 1e-12) || !near(got.ResidualSD, tt.want.ResidualSD, 1e-12) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			got.SE, got.ResidualSD = tt.want.SE, tt.want.ResidualSD
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestFitOfPerfectLargeLines(t *testing.T) {
	for _, origin := range []float64{0, 1e3, 1e7} {
		var x, y []float64
		for i := range 240 {
			x = append(x, origin+30*float64(i))
			y = append(y, 2.6e8+float64(i)*123457)
		}
		l := Fit(x, y)
		if !math.IsInf(l.T, 1) || l.R2 != 1 || l.SE != 0 || !near(l.Slope, 123457.0/30, 1e-13) {
			t.Errorf("origin %v: %+v", origin, l)
		}
		if y[7]++; math.IsInf(Fit(x, y).T, 0) {
			t.Errorf("a line with a deviation of one byte still has an infinite t: %+v", Fit(x, y))
		}
	}
}

func TestFitOriginInvariance(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var x, y, later, higher []float64
	for i := range 100 {
		x = append(x, float64(30*i+r.IntN(20)))
		y = append(y, math.Floor(1e6*r.NormFloat64()+1e4*float64(i)))
		later = append(later, x[i]+86400*30)
		higher = append(higher, y[i]+512*(1<<20))
	}
	want := Fit(x, y)
	for name, got := range map[string]Line{"time": Fit(later, y), "value": Fit(x, higher)} {
		got.Intercept = want.Intercept
		if got != want {
			t.Errorf("shifted %s: %+v, want %+v", name, got, want)
		}
	}
}

func TestInterval(t *testing.T) {
	l := Line{N: 12, Span: 1, Slope: 10, SE: 2}
	low, high, ok := l.Interval(0.95)
	// Student's t for 10 degrees of freedom at 97.5 % is 2.228.
	if !ok || math.Abs(low-(10-2*2.228)) > 1e-3 || math.Abs(high-(10+2*2.228)) > 1e-3 {
		t.Errorf("interval %v..%v, %v", low, high, ok)
	}
	for _, c := range []float64{0, 1, -1, math.NaN()} {
		if _, _, ok := l.Interval(c); ok {
			t.Errorf("Interval accepts confidence %v", c)
		}
	}
	if _, _, ok := (Line{N: 2}).Interval(0.95); ok {
		t.Error("an unfitted line has an interval")
	}
}

// TestIntervalCovers checks by simulation that the 95 % interval contains the
// true slope in 95 % of all cases.
func TestIntervalCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	const runs = 4000
	x, y := make([]float64, 12), make([]float64, 12)
	covered := 0
	for range runs {
		for i := range x {
			x[i], y[i] = float64(i), 3*float64(i)+r.NormFloat64()
		}
		if low, high, _ := Fit(x, y).Interval(0.95); low <= 3 && 3 <= high {
			covered++
		}
	}
	// The standard deviation of the share is 0.34 %.
	if share := float64(covered) / runs; math.Abs(share-0.95) > 0.012 {
		t.Errorf("the 95 %% interval covers %.1f %%", 100*share)
	}
}

func FuzzFit(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	f.Add([]byte{0, 9, 0, 9, 0, 9, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		var x, y []float64
		at := 0.0
		for i := 0; i+1 < len(data) && i < 200; i += 2 {
			at += float64(data[i])
			x = append(x, at)
			y = append(y, math.Ldexp(float64(data[i+1]), int(data[i])/8))
		}
		l := Fit(x, y)
		if l.N != len(x) || math.IsNaN(l.T) || l.R2 < 0 || l.R2 > 1 || l.SE < 0 {
			t.Fatalf("%+v", l)
		}
		if l.T > 0 != (l.Slope > 0) && l.T != 0 {
			t.Fatalf("t and slope have different signs: %+v", l)
		}
		if !l.Fitted() {
			return
		}
		// The line passes through the means, and no other slope fits better.
		var sum, best, other float64
		scale := 0.0
		for i := range x {
			e := y[i] - l.Intercept - l.Slope*x[i]
			o := e - 0.01*(math.Abs(l.Slope)+1)*(x[i]-x[0])
			sum, best, other = sum+e, best+e*e, other+o*o
			scale += math.Abs(y[i]) + math.Abs(l.Slope*x[i])
		}
		if math.Abs(sum) > 1e-9*(scale+1)*float64(len(x)) {
			t.Fatalf("residuals add up to %v, want 0: %+v", sum, l)
		}
		if best > other*(1+1e-9)+1e-9*scale {
			t.Fatalf("a steeper line fits better: %v > %v: %+v", best, other, l)
		}
	})
}

func BenchmarkFit(b *testing.B) {
	c := fullColumn(240)
	b.ReportAllocs()
	for b.Loop() {
		Fit(c.X(), c.Y())
	}
}
