package trend

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// leaves returns the residual sum of squares of y after a fit of the
// regressors.
func leaves(y []float64, columns ...[]float64) float64 {
	left, _, _ := project(y, columns...)
	return dot(left, left)
}

// rising returns the residual sum of squares of y after a fit of a regressor
// and a constant, or of the constant alone if the coefficient of the regressor
// is not positive.
func rising(y, column []float64) float64 {
	left, _, slope := project(y, ones(len(y)), column)
	if slope <= 0 {
		return leaves(y, ones(len(y)))
	}
	return dot(left, left)
}

// levelled returns the residual sum of squares of y after a fit of constant
// levels between the given positions.
func levelled(y []float64, places ...int) (sse float64) {
	from := 0
	for _, to := range append(slices.Clone(places), len(y)) {
		sse += leaves(y[from:to], ones(to-from))
		from = to
	}
	return sse
}

// stepPlaces returns all ways to divide n values at the given number of
// positions, with at least 2 values in each part.
func stepPlaces(n, count int) (all [][]int) {
	if count == 0 {
		return [][]int{nil}
	}
	for last := 2 * count; last <= n-2; last++ {
		for _, before := range stepPlaces(last, count-1) {
			all = append(all, append(slices.Clone(before), last))
		}
	}
	return all
}

// bestSteps returns the best positions at which to divide the values, and the
// residual sum of squares.
func bestSteps(y []float64, count int) (sse float64, places []int) {
	sse = math.Inf(1)
	for _, p := range stepPlaces(len(y), count) {
		if v := levelled(y, p...); v < sse {
			sse, places = v, p
		}
	}
	return sse, places
}

// oneMore returns the residual sum of squares for the best way to add one
// position to the given ones.
func oneMore(y []float64, places []int) float64 {
	best := levelled(y, places...)
	for k := 2; k <= len(y)-2; k++ {
		more := append(slices.Clone(places), k)
		slices.Sort(more)
		from, ok := 0, true
		for _, to := range append(slices.Clone(more), len(y)) {
			ok = ok && to-from >= 2
			from = to
		}
		if ok {
			best = min(best, levelled(y, more...))
		}
	}
	return best
}

// taus are the time constants that are tried, as fractions of the series.
var taus = []float64{0.1, 0.17, 0.25, 0.35, 0.5, 0.7, 1, 1.5}

func saturation(n int, part float64) []float64 {
	return columnOf(n, func(i int) float64 { return 1 - math.Exp(-float64(i)/(part*float64(n))) })
}

func onsetAt(n, k int) []float64 {
	return columnOf(n, func(i int) float64 { return float64(max(0, i-k)) })
}

func filledAt(n, k int) []float64 {
	return columnOf(n, func(i int) float64 { return float64(min(i, k)) })
}

func stepAt(n int, places ...int) []float64 {
	return columnOf(n, func(i int) float64 {
		_, passed := slices.BinarySearch(places, i)
		level := 0.0
		for _, k := range places {
			if i > k || passed && i == k {
				level++
			}
		}
		return level
	})
}

// plainShapes does the same as FitShapes by brute force; best3 is the residual
// sum of squares of the best fit with at most three steps.
func plainShapes(y []float64) (s Shapes, best3 float64) {
	n := len(y)
	s = Shapes{N: n, Constant: leaves(y, ones(n)), Line: leaves(y, ones(n), steps(n))}
	s.Onset, s.Filled, s.Saturating = s.Constant, s.Constant, s.Constant
	for k := 1; k <= n-3; k++ {
		if v := rising(y, onsetAt(n, k)); v < s.Onset {
			s.Onset, s.OnsetAt = v, k
		}
		s.Filled = min(s.Filled, rising(y, filledAt(n, k+1)))
	}
	for _, part := range taus {
		s.Saturating = min(s.Saturating, rising(y, saturation(n, part)))
	}
	s.Step, _ = bestSteps(y, 1)
	var places []int
	s.TwoSteps, places = bestSteps(y, 2)
	s.ThreeSteps = oneMore(y, places)
	best3, _ = bestSteps(y, 3)
	return s, min(best3, s.TwoSteps)
}

// sums returns the residual sum of squares of each shape, by name.
func (s Shapes) sums() map[string]float64 {
	return map[string]float64{
		"Constant": s.Constant, "Line": s.Line, "Onset": s.Onset, "Step": s.Step, "TwoSteps": s.TwoSteps,
		"ThreeSteps": s.ThreeSteps, "Saturating": s.Saturating, "Filled": s.Filled,
	}
}

// randomSeries returns a series with a random shape, noise, level and size.
func randomSeries(r *rand.Rand, n int) []float64 {
	y := noisy(r, n, []float64{0, 0.7, 1}[r.IntN(3)], 1)
	size := []float64{0, 3, 30, -10}[r.IntN(4)]
	k := 2 + r.IntN(n-4)
	take(y, [][]float64{
		steps(n), onsetAt(n, k), filledAt(n, k), stepAt(n, k), saturation(n, taus[r.IntN(len(taus))]),
	}[r.IntN(5)], -size)
	level, unit := 100*r.NormFloat64(), math.Exp(4*r.NormFloat64())
	for i := range y {
		y[i] = unit * (y[i] + level)
	}
	return y
}

func TestShapesAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 1))
	onsets := 0
	for range 120 {
		y := randomSeries(r, 8+r.IntN(15))
		got := FitShapes(y)
		want, best3 := plainShapes(y)
		tolerance := 1e-9 * (want.Constant + dot(y, y)*1e-6)
		for name, v := range want.sums() {
			if math.Abs(got.sums()[name]-v) > tolerance {
				t.Errorf("%s of %v: %v, want %v", name, y, got.sums()[name], v)
			}
		}
		if got.N != want.N || got.OnsetAt != want.OnsetAt {
			t.Errorf("shapes of %v: %d values, onset at %d, want %d, %d", y, got.N, got.OnsetAt, want.N, want.OnsetAt)
		}
		if got.ThreeSteps < best3-tolerance || got.ThreeSteps > got.TwoSteps+tolerance {
			t.Errorf("three steps leave %v, want %v (the best three steps) to %v (two steps)", got.ThreeSteps, best3,
				got.TwoSteps)
		}
		if got.OnsetAt > 0 {
			onsets++
		}
	}
	if onsets < 40 {
		t.Errorf("only %d series have an onset, want at least 40", onsets)
	}
}

// TestLongShapes checks the longest series in the same way, without triples of
// steps.
func TestLongShapes(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 2))
	for _, n := range []int{24, 36, 63, 64} {
		y := randomSeries(r, n)
		got := FitShapes(y)
		one, _ := bestSteps(y, 1)
		two, places := bestSteps(y, 2)
		for name, pair := range map[string][2]float64{
			"Constant": {got.Constant, leaves(y, ones(n))}, "Line": {got.Line, leaves(y, ones(n), steps(n))},
			"Step": {got.Step, one}, "TwoSteps": {got.TwoSteps, two},
			"ThreeSteps": {got.ThreeSteps, oneMore(y, places)},
		} {
			if !alike(pair[0], pair[1], 1e-7) {
				t.Errorf("%s of %d values: %v, want %v", name, n, pair[0], pair[1])
			}
		}
	}
}

// ordered checks properties that hold for every series.
func (s Shapes) ordered(t *testing.T, y []float64) {
	t.Helper()
	// The possible rounding error, as a fraction of the sum.
	rounding := 1e-11 * s.Constant
	for name, v := range s.sums() {
		if math.IsNaN(v) || v < 0 || v > s.Constant+rounding {
			t.Fatalf("%s of %v leaves %v, but the constant leaves %v", name, y, v, s.Constant)
		}
	}
	if s.TwoSteps > s.Step+rounding || s.ThreeSteps > s.TwoSteps+rounding {
		t.Fatalf("steps of %v: %v, %v, %v", y, s.Step, s.TwoSteps, s.ThreeSteps)
	}
	if s.OnsetAt < 0 || s.OnsetAt > s.N-3 || s.OnsetAt == 0 && s.Onset < s.Constant {
		t.Fatalf("onset of %v at %d leaves %v, but the constant leaves %v", y, s.OnsetAt, s.Onset, s.Constant)
	}
	for _, v := range s.sums() {
		if math.IsNaN(s.BIC(v, 3)) || s.BIC(v, 3) < s.BIC(v, 2) || s.BIC(v, 2) > s.BIC(2*v, 2) {
			t.Fatalf("BIC of %v: %v, %v, %v", v, s.BIC(v, 2), s.BIC(v, 3), s.BIC(2*v, 2))
		}
	}
}

func TestShapesLengths(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 3))
	for n := range 130 {
		y := noisy(r, n, 0.5, 3)
		got := FitShapes(y)
		if n < 8 || n > 64 {
			if got != (Shapes{}) {
				t.Errorf("%d values have shapes: %+v", n, got)
			}
			continue
		}
		if got.N != n {
			t.Errorf("%d values: %+v", n, got)
		}
		got.ordered(t, y)
	}
}

// TestShapesInvariance checks that adding a constant has no effect, and that
// multiplying the values by a factor multiplies all sums by its square. The
// results for steps and lines do not depend on the sign.
func TestShapesInvariance(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 4))
	for range 300 {
		n := 8 + r.IntN(57)
		y := noisy(r, n, 0.7, 5)
		take(y, steps(n), r.NormFloat64())
		level, unit := 1e4*r.NormFloat64(), math.Exp(3*r.NormFloat64())
		s := FitShapes(y)
		higher := FitShapes(columnOf(n, func(i int) float64 { return unit*y[i] + level*unit }))
		for name, v := range s.sums() {
			if got := higher.sums()[name]; math.Abs(got-unit*unit*v) > 1e-6*unit*unit*s.Constant {
				t.Errorf("%s of %v*y+%v: %v, want %v", name, unit, level, got, unit*unit*v)
			}
		}
		down := FitShapes(columnOf(n, func(i int) float64 { return -y[i] }))
		for _, name := range []string{"Constant", "Line", "Step", "TwoSteps", "ThreeSteps"} {
			if down.sums()[name] != s.sums()[name] {
				t.Errorf("%s of -y: %v, want %v", name, down.sums()[name], s.sums()[name])
			}
		}
		back := slices.Clone(y)
		slices.Reverse(back)
		for _, name := range []string{"Constant", "Line", "Step", "TwoSteps", "ThreeSteps"} {
			if got := FitShapes(back).sums()[name]; math.Abs(got-s.sums()[name]) > 1e-9*s.Constant {
				t.Errorf("%s of y backwards: %v, want %v", name, got, s.sums()[name])
			}
		}
	}
}

// TestFallsAreNotCurves checks that a falling series is not recognized as an
// onset, a filling or a saturation.
func TestFallsAreNotCurves(t *testing.T) {
	for _, column := range [][]float64{steps(24), onsetAt(24, 8), filledAt(24, 8), saturation(24, 0.25)} {
		down := columnOf(24, func(i int) float64 { return -10 * column[i] })
		s := FitShapes(down)
		if s.Onset != s.Constant || s.Filled != s.Constant || s.Saturating != s.Constant || s.OnsetAt != 0 {
			t.Errorf("%v: %+v", down, s)
		}
	}
}

// TestShapesAreDistinguished checks that the BIC ranks the true shape of a
// series before all others. Two shapes that differ by only a few points count
// as the same here: steps and more steps, or a line and a line that begins
// late.
func TestShapesAreDistinguished(t *testing.T) {
	const flat, line, step, curve = "flat", "line", "step", "curve"
	named := func(s Shapes) map[string]float64 {
		return map[string]float64{
			flat:  s.BIC(s.Constant, 1),
			line:  min(s.BIC(s.Line, 2), s.BIC(s.Onset, 3)),
			step:  min(s.BIC(s.Step, 3), s.BIC(s.TwoSteps, 5), s.BIC(s.ThreeSteps, 7)),
			curve: min(s.BIC(s.Saturating, 3), s.BIC(s.Filled, 3)),
		}
	}
	for _, n := range []int{18, 24, 36, 64} {
		tests := map[string]struct {
			column []float64
			want   string
		}{
			"line":         {steps(n), line},
			"late line":    {onsetAt(n, n/2), line},
			"one step":     {stepAt(n, n/3), step},
			"two steps":    {stepAt(n, n/4, n/2), step},
			"three steps":  {stepAt(n, n/6, n/2, n-n/4), step},
			"warm-up":      {saturation(n, 0.25), curve},
			"long warm-up": {saturation(n, 0.7), curve},
			"filled cache": {filledAt(n, n/2), curve},
		}
		for name, tt := range tests {
			r := rand.New(rand.NewPCG(32, 5))
			left, _, _ := project(tt.column, ones(n))
			spread := math.Sqrt(dot(left, left) / float64(n))
			const runs = 100
			told := 0
			for range runs {
				y := noisy(r, n, 0, 0.02*spread)
				take(y, tt.column, -1)
				got := named(FitShapes(y))
				best := tt.want
				for other, v := range got {
					if v < got[best] {
						best = other
					}
				}
				if best == tt.want {
					told++
				}
			}
			if told < runs*95/100 {
				t.Errorf("%s of %d values: recognized in only %d of %d runs", name, n, told, runs)
			}
		}
	}
}

// TestParametersCost checks that the BIC prefers the simpler of two shapes that
// fit equally well, and that on noise alone a line seldom beats the constant.
func TestParametersCost(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 6))
	const runs = 2000
	lines := 0
	for range runs {
		s := FitShapes(noisy(r, 24, 0, 1))
		if s.BIC(s.Line, 2) < s.BIC(s.Constant, 1) {
			lines++
		}
	}
	// P(F(1,22) > 22*(24^(1/24)-1)) is 0.083.
	if share := float64(lines) / runs; share < 0.06 || share > 0.11 {
		t.Errorf("a line fits better than a constant in a share of %v of noise series, want 0.083", share)
	}
	s := Shapes{N: 24, Constant: 24 * math.E, Line: 24}
	if got := s.BIC(s.Line, 2); got != 2*math.Log(24) {
		t.Errorf("BIC %v, want %v", got, 2*math.Log(24))
	}
	if got := s.BIC(s.Constant, 1); math.Abs(got-24-math.Log(24)) > 1e-12 {
		t.Errorf("BIC %v, want %v", got, 24+math.Log(24))
	}
}

// TestPerfectShapes checks that rounding does not decide which curve is best if
// a curve fits to the last digit.
func TestPerfectShapes(t *testing.T) {
	for _, n := range []int{8, 24, 36, 64} {
		constant := FitShapes(columnOf(n, func(int) float64 { return 0.1 }))
		constant.ordered(t, nil)
		if constant.BIC(constant.Line, 2) < constant.BIC(constant.Constant, 1) {
			t.Errorf("%d equal values were recognized as a line: %+v", n, constant)
		}
		line := FitShapes(columnOf(n, func(i int) float64 { return 0.1*float64(i) + 7 }))
		for name, v := range line.sums() {
			if name != "Line" && line.BIC(v, 2) < line.BIC(line.Line, 2)+10 {
				t.Errorf("a line of %d values was not distinguished from %s: %+v", n, name, line)
			}
		}
		step := FitShapes(stepAt(n, n/2))
		if step.BIC(step.TwoSteps, 5) < step.BIC(step.Step, 3) ||
			step.BIC(step.ThreeSteps, 7) < step.BIC(step.Step, 3) {
			t.Errorf("one step of %d values was recognized as several: %+v", n, step)
		}
	}
}

// FuzzShapes checks that, for finite values, no sum of squared residuals is
// negative or exceeds that of the constant.
func FuzzShapes(f *testing.F) {
	seedValues(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		y := finiteValues(data)
		s := FitShapes(y)
		if len(y) < 8 || len(y) > 64 {
			if s != (Shapes{}) {
				t.Fatalf("%d values have shapes: %+v", len(y), s)
			}
			return
		}
		if s.N != len(y) {
			t.Fatalf("%d values: %+v", len(y), s)
		}
		s.ordered(t, y)
	})
}
