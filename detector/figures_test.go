package detector

import (
	"math"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// TestConstants checks the defaults against the article, section by section.
func TestConstants(t *testing.T) {
	a, p := defaultArticle(), ArticlePolicy()
	for name, ok := range map[string]bool{
		"5.2 t > 2.0":                             a.tMin == 2.0,
		"5.2 R2 > 0.6":                            a.r2Min == 0.6,
		"5.5 two consecutive windows":             a.consecutive == 2,
		"8.1 ten points":                          a.minPoints == 10,
		"4.3 240 samples":                         a.highWindow == 240,
		"8.3 60 breakdowns":                       a.lowWindow == 60,
		"5.3 segments of 5 min":                   a.segment == 5*minute,
		"5.3 three segments":                      a.minSegments == 3,
		"4.3 30 s in NORMAL":                      p.NormalInterval == 30*time.Second,
		"4.3, 5.5 15 s in SUSPICIOUS, CONFIRMING": p.SuspiciousInterval == 15*time.Second,
		"4.3 60 s in LEAKING":                     p.LeakingInterval == time.Minute,
		"5.5 SUSPICIOUS 30 min":                   a.suspiciousMax == 30*minute,
		"5.5 CONFIRMING 10 min":                   a.confirmingMax == 10*minute,
		"5.5 three extra dumpsys calls":           a.extraBreakdowns == 3,
		"8.2 30 s apart":                          a.extraSpacing == 30*time.Second,
		"5.5 20 MB":                               a.minGrowth == 20*1024*1024,
		"6.4 30 min":                              p.Cooldown == 30*minute,
		"5.4 50 %":                                a.spikePct == 50,
		"5.4 200 MB":                              a.spikeMin == 200*1024*1024,
		"5.4 smaps t < 1.0":                       a.flatT == 1.0,
		"4.3 240 samples at 30 s span 2 h":        time.Duration(a.highWindow)*p.NormalInterval == 2*time.Hour,
		"4.3 240 samples at 15 s span 1 h":        time.Duration(a.highWindow)*p.SuspiciousInterval == time.Hour,
		"8.1 ten points span about 5 min":         time.Duration(a.minPoints)*p.NormalInterval == 5*minute,
		"5.3 three segments span about 15 min":    time.Duration(a.minSegments)*a.segment == 15*minute,
		"LEAKING after 21 min at the earliest":    newArticleMachine(p).minTime() == 21*minute,
	} {
		if !ok {
			t.Errorf("%s does not hold: %+v", name, a)
		}
	}
}

// floorsOf adds segments of five minutes with the given P25 values in MB, after
// a steep start, and reports whether they confirm a leak.
func floorsOf(floors ...float64) bool {
	p := play(func(a *articleRules) { a.suspiciousMax = time.Hour }).suspicious()
	entered := p.steps[0].At
	for p.t < entered+time.Duration(len(floors))*5*minute {
		k := int((p.t - entered) / (5 * minute))
		p.level = floors[k] + float64(p.n%2) // alternates between +0 and +1 MB
		p.sample()
		p.t += 15 * time.Second
	}
	p.sample()
	return p.d.Verdict().Worst == Confirming
}

// TestFloors53 checks "200, 208, 215, 224: 3 of 4 segments rise, at least N-1"
// and the walk-through's "280, 328, 379: 2 of 3 segments rise".
func TestFloors53(t *testing.T) {
	tests := []struct {
		floors []float64
		want   bool
	}{
		{[]float64{400, 408, 415, 424}, true},
		{[]float64{480, 528, 579}, true},
		{[]float64{400, 408}, false},
		{[]float64{400, 408, 408}, false},
		{[]float64{400, 408, 405, 424}, false},
		{[]float64{400, 392, 405, 424}, false},
		{[]float64{400, 392, 384}, false},
	}
	for _, tt := range tests {
		if got := floorsOf(tt.floors...); got != tt.want {
			t.Errorf("floors %v: %v, want %v", tt.floors, got, tt.want)
		}
	}
}

// TestSpike54 checks the rule spike > max(P25 * 50 %, 200 MB), which needs at
// least five samples.
func TestSpike54(t *testing.T) {
	tests := []struct {
		floor, jump float64
		points      int
		want        bool
	}{
		{260, 203, 10, true}, {260, 197, 10, false},
		{100, 190, 10, false}, // a jump of 190 % in a small process may be a measurement error
		{600, 290, 10, false}, {600, 310, 10, true},
		{400, 203, 10, true}, {260, 250, 5, true}, {260, 250, 4, false}, {260, 250, 1, false},
	}
	for _, tt := range tests {
		p := play(nil)
		p.level = tt.floor
		for range tt.points - 1 {
			p.sample()
			p.t += 30 * time.Second
		}
		p.level += tt.jump
		p.sample()
		if got := p.d.Verdict().Worst == Leaking; got != tt.want {
			t.Errorf("jump of %v MB above %v MB after %d points: LEAKING %v, want %v", tt.jump, tt.floor, tt.points,
				got, tt.want)
		}
	}
}

// noisyLine returns the line fitted to n points whose residuals have exactly
// the given standard deviation and are orthogonal to the line.
func noisyLine(n int, interval, perHour, sd float64) trend.Line {
	x, y, e := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range x {
		x[i], e[i] = interval*float64(i), float64(i%2*2-1)*(1+float64(i%5))
	}
	l := trend.Fit(x, e)
	for i := range x {
		e[i] -= l.Intercept + l.Slope*x[i]
		y[i] = 200 + perHour/3600*x[i] + e[i]*sd/l.ResidualSD
	}
	return trend.Fit(x, y)
}

// TestTwoProcesses52 checks that the same 50 MB/h yields a t of 8.5 in a quiet
// process and of 0.85 in a noisy one. With 50 samples (25 minutes), both values
// match the printed values.
func TestTwoProcesses52(t *testing.T) {
	for sd, want := range map[float64]float64{5: 8.5, 50: 0.85} {
		if l := noisyLine(50, 30, 50, sd); math.Abs(l.T-want) > 0.005*want {
			t.Errorf("sigma %v: t %.3f, want %v", sd, l.T, want)
		}
	}
}

// TestTable72 checks that the printed table follows its printed formula, which
// is the article's condition t > 2 alone, at an interval of 15 s. With R2 >
// 0.6, the rule requires 3.9 to 9.5 times the printed rate.
func TestTable72(t *testing.T) {
	printed := map[float64][4]float64{5: {33, 18, 6, 2}, 20: {131, 72, 25, 9}, 50: {329, 179, 63, 22}}
	for sd, row := range printed {
		for i, minutes := range []float64{10, 15, 30, 60} {
			n := minutes * 4
			formula := 6.93 * sd / math.Pow(n, 1.5) * (3600 / 15)
			if math.Abs(formula-row[i]) > 1 {
				t.Errorf("sigma %v, %v min: the formula gives %.1f, the article prints %v", sd, minutes, formula,
					row[i])
			}
			// At the printed rate, t is 2 and R2 is far below 0.6.
			l := noisyLine(int(n), 15, formula, sd)
			if math.Abs(l.T-2) > 0.05 || l.R2 > 0.11 {
				t.Errorf("sigma %v, %v min at %.1f MB/h: t %.2f R2 %.2f", sd, minutes, formula, l.T, l.R2)
			}
			both := 4.24 * sd / (minutes / 60)
			if l := noisyLine(int(n), 15, both, sd); math.Abs(l.R2-0.6) > 0.015 || l.T < 2 {
				t.Errorf("sigma %v, %v min at %.1f MB/h: R2 %.3f, want 0.6", sd, minutes, both, l.R2)
			}
			if ratio := both / formula; ratio < 3.8 || ratio > 9.5 {
				t.Errorf("ratio %v", ratio)
			}
		}
	}
}

// TestDoublingThePoints55 checks the article's claim that doubling the points
// increases t from 1.5 to 4.2. The claim holds for twice the time; at twice the
// density, t is 2.1.
func TestDoublingThePoints55(t *testing.T) {
	const n = 60
	rate := 1.5 / noisyLine(n, 30, 1, 5).T
	for name, tt := range map[string]struct{ got, want float64 }{
		"once":           {noisyLine(n, 30, rate, 5).T, 1.5},
		"twice as long":  {noisyLine(2*n, 30, rate, 5).T, 4.24},
		"twice as dense": {noisyLine(2*n, 15, rate, 5).T, 2.12},
	} {
		if math.Abs(tt.got-tt.want) > 0.03 {
			t.Errorf("%s: t %.2f, want %v", name, tt.got, tt.want)
		}
	}
}

// TestPrintedPairs55 checks the walk-through's pairs of t and R2. Since t^2 =
// (n-2) R2/(1-R2), these pairs are impossible with the number of points that a
// window has at an interval of 30 s, and t > 2 never decides if R2 > 0.6 is
// also required.
func TestPrintedPairs55(t *testing.T) {
	tFor := func(n, r2 float64) float64 { return math.Sqrt((n - 2) * r2 / (1 - r2)) }
	for _, tt := range []struct{ n, r2, printed, really float64 }{
		{10, 0.45, 1.3, 2.56}, {16, 0.72, 2.8, 6.00}, {18, 0.68, 3.1, 5.83},
	} {
		if got := tFor(tt.n, tt.r2); math.Abs(got-tt.really) > 0.01 || math.Abs(got-tt.printed) < 1 {
			t.Errorf("%v points with R2 %v: t %.2f, want %v, which differs from the printed %v", tt.n, tt.r2, got,
				tt.really, tt.printed)
		}
	}
	for n := 5.0; n <= 240; n++ {
		if tFor(n, 0.6) <= 2 {
			t.Errorf("t > 2 is the stricter condition at %v points", n)
		}
	}
}

// TestStep checks the article's claim that the R2 of a step is below 0.6. The
// R2 of a clean step at the fraction f of the window is 3f(1-f), which is above
// 0.6 near the middle.
func TestStep(t *testing.T) {
	const n = 240
	for k := 1; k < n; k++ {
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = 30 * float64(i)
			if i >= k {
				y[i] = 80
			}
		}
		f := float64(k) / n
		l := trend.Fit(x, y)
		if math.Abs(l.R2-3*f*(1-f)) > 1e-4 || (l.R2 > 0.6) != (f > 0.276 && f < 0.724) {
			t.Errorf("step at %.3f: R2 %.4f", f, l.R2)
		}
	}
}

// TestWalkThrough55 replays the article's walk-through: 600 MB/h of Java heap.
// Its order, floors and growth are reproduced. Its times are not reproduced: a
// quiet process is SUSPICIOUS at minute 5, and the third segment is complete 15
// minutes later, not 12.
func TestWalkThrough55(t *testing.T) {
	leak := simulation{seed: 1, length: 25 * minute, sigma: 5, rotation: 90 * time.Second, diagnosis: 90 * time.Second}
	leak.rate[JavaHeap] = 600
	_, steps := leak.run()
	if len(steps) < 4 {
		t.Fatal(steps)
	}
	want := []time.Duration{5 * minute, 20 * minute, 21 * minute}
	for i, s := range []State{Suspicious, Confirming, Leaking, Normal} {
		if steps[i].To != s || i < 3 && steps[i].At != want[i] {
			t.Errorf("step %d is %+v, want %v", i, steps[i], s)
		}
	}
	if steps[2].Kind != Java || steps[3].Rule != "6.4 diagnosis done" {
		t.Errorf("%+v", steps[2:4])
	}
}
