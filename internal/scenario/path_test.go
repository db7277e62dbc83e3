package scenario

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

func chance(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func (p *Path) totals() []float64 {
	out := make([]float64, p.Len())
	for i := range out {
		out[i] = p.total(i)
	}
	return out
}

// moments returns the mean, the standard deviation, and the correlation of
// points that are lag apart.
func moments(x []float64, lag int) (mean, sd, correlation float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	var square, cross float64
	for i, v := range x {
		square += (v - mean) * (v - mean)
		if i >= lag {
			cross += (v - mean) * (x[i-lag] - mean)
		}
	}
	return mean, math.Sqrt(square / float64(len(x))), cross / square
}

// TestNoise checks that the level, the standard deviation and the correlation
// at 30 s are those of the scenario, for the total and for each dimension.
func TestNoise(t *testing.T) {
	for _, s := range Noise(300) {
		p := s.Simulate(chance(1))
		check := func(what string, x []float64, level, sigma float64) {
			// Correlated points count as fewer points: n (1-r)/(1+r), where r
			// is the correlation per point of the grid.
			r := math.Sqrt(s.Rho)
			n := float64(len(x)) * (1 - r) / (1 + r)
			mean, sd, correlation := moments(x, 2)
			if math.Abs(mean-level) > 5*sigma/math.Sqrt(n) {
				t.Errorf("%s, %s: mean %.3f, want %.3f", s.Name, what, mean, level)
			}
			if math.Abs(sd/sigma-1) > 5/math.Sqrt(2*n) {
				t.Errorf("%s, %s: sd %.3f, want %.3f", s.Name, what, sd, sigma)
			}
			if math.Abs(correlation-s.Rho) > 5/math.Sqrt(n) {
				t.Errorf("%s, %s: correlation at 30 s %.3f, want %.3f", s.Name, what, correlation, s.Rho)
			}
		}
		check("total", p.totals(), 260, s.Sigma*math.Sqrt(0.9949))
		for d, x := range p.Dims {
			check("a dimension", x, base[d], s.Sigma*share[d])
		}
	}
}

// TestShapes compares each noise-free part with its formula, which the test
// implements independently.
func TestShapes(t *testing.T) {
	over := func(m, from float64) float64 { return max(0, m-from) }
	tests := map[string]struct {
		s    Scenario
		dim  Dim
		want func(m float64) float64
	}{
		"leak": {Scenario{Leak: 60, LeakDim: Native}, Native, func(m float64) float64 { return 70 + m }},
		"late leak": {
			Scenario{Leak: 30, LeakStart: 20}, Java, func(m float64) float64 { return 60 + over(m, 20)/2 },
		},
		"ending leak": {Scenario{Leak: 60, LeakEnd: 90}, Java, func(m float64) float64 { return 60 + min(m, 90) }},
		"warm-up java": {
			Scenario{Warm: 100, WarmTau: 10}, Java, func(m float64) float64 { return 120 - 60*math.Pow(math.E, -m/10) },
		},
		"warm-up nat.": {
			Scenario{Warm: 100, WarmTau: 10}, Native,
			func(m float64) float64 { return 110 - 40*math.Pow(math.E, -m/10) },
		},
		"cache": {Scenario{Cache: 100, CacheTime: 50}, Native, func(m float64) float64 { return min(170, 70+2*m) }},
		"steps": {Scenario{Steps: []Jump{{10, 5}, {100, 7}}}, Java, func(m float64) float64 {
			switch {
			case m < 10:
				return 60
			case m < 100:
				return 65
			}
			return 72
		}},
		"peak": {Scenario{Peak: 9, PeakTime: 2, PeakEvery: 12}, Java, func(m float64) float64 {
			if m-12*math.Floor(m/12) >= 10 {
				return 69
			}
			return 60
		}},
		"trimmed": {Scenario{Trimmed: 30}, Code, func(m float64) float64 { return 45 + 90 - m/2 }},
		"restarts": {
			Scenario{Leak: 60, Restarts: []float64{50, 60}, Steps: []Jump{{55, 3}}}, Java, func(m float64) float64 {
				switch {
				case m < 50:
					return 60 + m
				case m < 55:
					return 60 + m - 50
				case m < 60:
					return 63 + m - 50
				}
				return m // 60 MB at the restart in minute 60
			}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.s.Hours = 3
			p := tt.s.Simulate(chance(2))
			if p.Len() != 3*240+1 {
				t.Fatalf("%d points", p.Len())
			}
			for i := range p.Len() {
				if want := tt.want(minuteOf(i)); math.Abs(p.Dims[tt.dim][i]-want) > 1e-9 {
					t.Fatalf("minute %g: %g MB, want %g", minuteOf(i), p.Dims[tt.dim][i], want)
				}
			}
		})
	}
}

// TestLumps checks that lumps come one at a time, at the mean rate, and that
// their memory is gone after a restart.
func TestLumps(t *testing.T) {
	s := Scenario{Hours: 500, Leak: 50, LeakLump: 4, LeakStart: 60, LeakDim: Other}
	p := s.Simulate(chance(3))
	rises := 0
	for i := 1; i < p.Len(); i++ {
		switch d := p.Dims[Other][i] - p.Dims[Other][i-1]; {
		case d == 4 && minuteOf(i) >= 60:
			rises++
		case d != 0:
			t.Fatalf("minute %g: memory changed by %g MB, want 0, or 4 once the leak has started", minuteOf(i), d)
		}
	}
	want := 499 * 50.0 / 4
	if math.Abs(float64(rises)-want) > 5*math.Sqrt(want) {
		t.Errorf("%d lumps, want about %.0f", rises, want)
	}
	s.Hours, s.LeakStart, s.Restarts = 2, 0, []float64{90}
	p = s.Simulate(chance(3))
	if before := p.Dims[Other][90*4-1]; before < 40 {
		t.Errorf("%g MB before the restart, want at least 40", before)
	}
	if after := p.Dims[Other][90*4]; after != 28 && after != 32 {
		t.Errorf("%g MB after the restart, want 28 or 32", after)
	}
}

// TestWalk checks that the steps are independent and have the variance that the
// scenario states.
func TestWalk(t *testing.T) {
	s := Scenario{Hours: 500, Walk: 20, Restarts: []float64{60 * 250}}
	x := s.Simulate(chance(4)).Dims[Java]
	if x[0] != 60 || x[60*250*4] != 60 {
		t.Errorf("processes start with %g and %g MB, want 60 MB", x[0], x[60*250*4])
	}
	steps := make([]float64, 60*250*4-1)
	for i := range steps {
		steps[i] = x[i+1] - x[i]
	}
	n := math.Sqrt(float64(len(steps)))
	mean, sd, correlation := moments(steps, 1)
	if want := 20 / math.Sqrt(240); math.Abs(mean) > 5*want/n || math.Abs(sd/want-1) > 5/n ||
		math.Abs(correlation) > 5/n {
		t.Errorf("steps: mean %.4f, sd %.4f (want %.4f), correlation %.4f", mean, sd, want, correlation)
	}
}

// TestSaw checks that the level stays within its bounds, and that collections
// are as frequent as the scenario states.
func TestSaw(t *testing.T) {
	s := Scenario{Hours: 1000, Saw: 60, SawPeriod: 15}
	x := s.Simulate(chance(5)).Dims[Java]
	falls, top := 0, 0.0
	for i := 1; i < len(x); i++ {
		top = max(top, x[i]-60)
		if x[i] < x[i-1] {
			falls++
			if x[i]-60 > 6 || x[i-1]-60 < 0.75*60 {
				t.Fatalf("collection reduces memory from %.1f to %.1f MB, want from at least 45 to at most 6 MB",
					x[i-1]-60, x[i]-60)
			}
		}
	}
	if top < 0.75*60 || top > 1.2*60 {
		t.Errorf("highest level %.1f MB", top)
	}
	// On average, a collection leaves 5 % of the amplitude.
	if want := 1000 * 60 / (0.95 * 15); math.Abs(float64(falls)/want-1) > 0.05 {
		t.Errorf("%d collections, want about %.0f", falls, want)
	}
}

// TestWave checks the peak-to-peak size, the period and the shape.
func TestWave(t *testing.T) {
	for _, square := range []bool{false, true} {
		s := Scenario{Hours: 10, Wave: 60, WavePeriod: 20, Square: square}
		x := s.Simulate(chance(6)).Dims[Java]
		mean, _, period := moments(x, 80)
		_, _, half := moments(x, 40)
		if math.Abs(mean-90) > 1 || period < 0.95 || half > -0.9 {
			t.Errorf("square %v: mean %.2f, correlation after one period %.2f, after half a period %.2f", square, mean,
				period, half)
		}
		low, high, between := x[0], x[0], 0
		for _, v := range x {
			low, high = min(low, v), max(high, v)
			if v > 61 && v < 119 {
				between++
			}
		}
		if math.Abs(low-60) > 0.1 || math.Abs(high-120) > 0.1 || (between == 0) != square {
			t.Errorf("square %v: got %.2f to %.2f MB with %d values between, want 60 to 120 MB, none if square",
				square, low, high, between)
		}
	}
}

// TestSeed checks that a seed determines a process, that another seed produces
// a different one, and that simulating does not change the scenario.
func TestSeed(t *testing.T) {
	for _, list := range [][]Scenario{Null(2), Leaks(60, 2), Shapes(3), Kinds(2)} {
		seen := map[string]bool{}
		for _, s := range list {
			if seen[s.Name] {
				t.Errorf("two scenarios have the name %q", s.Name)
			}
			seen[s.Name] = true
			before := s
			a, b, c := s.Simulate(chance(7)), s.Simulate(chance(7)), s.Simulate(chance(8))
			if !reflect.DeepEqual(a.Dims, b.Dims) {
				t.Errorf("%s: the same seed produced different processes", s.Name)
			}
			if reflect.DeepEqual(a.Dims, c.Dims) {
				t.Errorf("%s: different seeds produced the same process", s.Name)
			}
			if !reflect.DeepEqual(s, before) {
				t.Errorf("%s: Simulate changed the scenario", s.Name)
			}
		}
	}
}

// TestNullScenariosHaveNoLeak checks that no scenario of Null or Noise has a
// leak, and that every scenario of Leaks has one. The tables of rates rely on
// this.
func TestNullScenariosHaveNoLeak(t *testing.T) {
	for _, s := range append(Null(8), Noise(8)...) {
		if s.Leak != 0 || s.Trimmed != 0 || len(s.Restarts)+len(s.Gaps) > 0 {
			t.Errorf("%s: %+v", s.Name, s)
		}
	}
	for _, s := range Leaks(30, 8) {
		if s.Leak < 20 || s.LeakStart != 30 || s.LeakDim != Java {
			t.Errorf("%s: %+v", s.Name, s)
		}
	}
}
