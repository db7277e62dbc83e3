package detector

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/recorded"
)

// TestQuietProcess checks that a process with noise of 5 MB stays NORMAL for
// eight hours.
func TestQuietProcess(t *testing.T) {
	for seed := range uint64(30) {
		d, steps := simulation{seed: seed, length: 8 * time.Hour, sigma: 5}.run()
		v := d.Verdict()
		if v.Worst != Normal || v.Gate != Pass || len(steps) != 0 {
			t.Errorf("seed %d: %v %v %v", seed, v.Worst, v.Gate, steps)
		}
		if v.RateLow > 0 && v.RateLow > 3*MB || v.RateHigh < -3*MB {
			t.Errorf("seed %d: rate %v..%v", seed, v.RateLow, v.RateHigh)
		}
	}
}

// TestLeaks checks that each kind of leak is found in time and named.
func TestLeaks(t *testing.T) {
	tests := map[string]struct {
		dim    Dimension
		rate   float64
		sigma  float64
		latest time.Duration
		kind   LeakKind
	}{
		"java 300 MB/h":   {JavaHeap, 300, 5, 35 * minute, Java},
		"java 600 MB/h":   {JavaHeap, 600, 5, 25 * minute, Java},
		"native 300 MB/h": {NativeHeap, 300, 5, 35 * minute, Native},
		"stack 300 MB/h":  {Stack, 300, 5, 35 * minute, Thread},
		"other 300 MB/h":  {PrivateOther, 300, 5, 35 * minute, Unknown},
		"gpu 300 MB/h":    {Graphics, 300, 5, 35 * minute, GPU},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(15) {
				s := simulation{seed: seed, length: time.Hour, sigma: tt.sigma}
				s.rate[tt.dim] = tt.rate
				_, steps := s.run()
				at, kind, ok := leakAt(steps)
				// The main path needs 21 minutes; the GPU path needs ten
				// breakdowns.
				soonest := 21 * minute
				if tt.kind == GPU {
					soonest = 9 * 90 * time.Second
				}
				if !ok || at < soonest || at > tt.latest || kind != tt.kind {
					t.Errorf("seed %d: LEAKING %v %v at %v", seed, ok, kind, at)
				}
			}
		})
	}
}

// TestKnownFaults records the cases that the article's rules get wrong, so that
// a change is noticed. docs/article.md explains them.
func TestKnownFaults(t *testing.T) {
	warmUp := func(mb float64, tau time.Duration) func(time.Duration) float64 {
		return func(t time.Duration) float64 { return mb * (1 - math.Exp(-t.Minutes()/tau.Minutes())) }
	}
	tests := map[string]struct {
		shape    func(time.Duration) float64
		sigma    float64
		min, max int // how many of 20 runs of 8 h reach LEAKING
	}{
		"warm-up is reported": {warmUp(200, 10*minute), 5, 20, 20},
		"step of 80 MB is not reported": {
			func(t time.Duration) float64 { return 80 * float64(min(1, t/(4*time.Hour))) }, 5, 0, 1,
		},
		"step of 250 MB is reported": {
			func(t time.Duration) float64 { return 250 * float64(min(1, t/(4*time.Hour))) }, 5, 20, 20,
		},
		"load of 20 min is not reported": {
			func(t time.Duration) float64 { return 30 * math.Sin(2*math.Pi*t.Minutes()/20) }, 5, 0, 0,
		},
		"noise of 50 MB is sometimes a spike": {nil, 50, 5, 15},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := 0
			for seed := range uint64(20) {
				d, _ := simulation{seed: seed, length: 8 * time.Hour, sigma: tt.sigma, shape: tt.shape}.run()
				if d.Verdict().Worst == Leaking {
					n++
				}
			}
			if n < tt.min || n > tt.max {
				t.Errorf("%d of 20 runs reach LEAKING, want %d to %d", n, tt.min, tt.max)
			}
		})
	}
}

// TestEvenChances checks that a leak at a rate of 4.24 s/T, where s is the
// noise, yields R2 > 0.6 in about half of the windows of length T.
func TestEvenChances(t *testing.T) {
	const sd, runs = 5 * MB, 3000
	r := rand.New(rand.NewPCG(21, 22))
	for _, n := range []int{60, 240} {
		x, y := make([]float64, n), make([]float64, n)
		even := 4.24 * sd / (float64(n-1) * 30)
		hit := 0
		for range runs {
			for i := range n {
				x[i] = 30 * float64(i)
				y[i] = even*x[i] + sd*r.NormFloat64()
			}
			if regression(x, y).r2 > 0.6 {
				hit++
			}
		}
		if got := float64(hit) / runs; math.Abs(got-0.5) > 0.15 {
			t.Errorf("n %d: found in a fraction %.2f of the runs, want 0.35 to 0.65", n, got)
		}
	}
}

// TestSlowestLeaks checks that leaks at the rates in docs/article.md are found
// in nearly all runs, and that leaks at half these rates are not.
func TestSlowestLeaks(t *testing.T) {
	const runs = 100
	found := func(s simulation, rate float64) (n int) {
		s.rate[JavaHeap] = rate
		for s.seed = range uint64(runs) {
			_, steps := s.run()
			if _, _, ok := leakAt(steps); ok {
				n++
			}
		}
		return n
	}
	for _, tt := range []struct{ sigma, hours, rate float64 }{{5, 1, 71}, {5, 8, 24}, {20, 1, 203}, {20, 8, 61}} {
		s := simulation{length: time.Duration(tt.hours * float64(time.Hour)), sigma: tt.sigma}
		s.change = func(a *articleRules) { a.spikeMin = 1 << 40 } // disables spikes
		all, half := found(s, tt.rate), found(s, tt.rate/2)
		if all < 92 || half > 85 {
			t.Errorf("sigma %v, %v h: %v MB/h found in %d %% of the runs, half that rate in %d %%", tt.sigma, tt.hours,
				tt.rate, all,
				half)
		}
		t.Logf("sigma %v MB, %v h: %v MB/h found in %d %% of the runs, half that rate in %d %%", tt.sigma, tt.hours,
			tt.rate, all, half)
	}
}

// trace reads samples from a file: the seconds, and one column in kB.
func trace(t *testing.T, file, column string) []Sample {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	x, y := slices.Index(all[0], "t_s"), slices.Index(all[0], column)
	if x < 0 || y < 0 {
		t.Fatalf("%s: columns %v", file, all[0])
	}
	var list []Sample
	for _, row := range all[1:] {
		at, err1 := strconv.ParseFloat(row[x], 64)
		kb, err2 := strconv.ParseFloat(row[y], 64)
		if err1 == nil && err2 == nil {
			list = append(list, Sample{At: seconds(at), Bytes: int64(kb * 1024)})
		}
	}
	return list
}

// TestRecordedRuns replays the PSS of Android Monkey runs, where each value
// serves both as a sample and as the TOTAL of a breakdown.
func TestRecordedRuns(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recorded.Path(t, "traces"), "android_monkey_*.csv"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d traces, %v", len(files), err)
	}
	leaks := func(column string) (n int) {
		for _, file := range files {
			d := New(ArticlePolicy())
			var last time.Duration
			for i, s := range trace(t, file, column) {
				d.AddSample(s)
				if i == 0 || s.At-last >= 90*time.Second || d.Demand().Breakdowns > 0 {
					b := Breakdown{At: s.At}
					b.Dim[Total] = known.Of(s.Bytes)
					d.AddBreakdown(b)
					last = s.At
				}
				if d.Demand().Diagnose != None {
					d.DiagnosisFinished(s.At)
				}
			}
			v := d.Verdict()
			if v.Worst == Leaking {
				n++
			}
			if v.Samples < 100 || v.Because == "" || strings.Contains(v.Because, "NaN") {
				t.Errorf("%s: %+v", filepath.Base(file), v)
			}
		}
		return n
	}
	// One of the runs rises by 24 MB in 21 minutes once in eleven hours.
	servers := leaks("system_server_pss_kb")
	if servers > 1 {
		t.Errorf("leak of system_server found in %d runs, want at most 1", servers)
	}
	apps := leaks("app_pss_kb")
	if apps < len(files)/5 || apps > len(files)*9/10 {
		t.Errorf("leak of an app found in %d of %d runs", apps, len(files))
	}
	t.Logf("of %d runs, leaks found: %d of apps, %d of system_server", len(files), apps, servers)
}

// TestPlateau checks that t stays high after a rise that ends, while R2 falls,
// so only the timeout ends the suspicion.
func TestPlateau(t *testing.T) {
	p := play(nil).suspicious().leak(40*minute, 0)
	if len(p.steps) < 2 || p.steps[1].Rule != "5.5 time-out" {
		t.Errorf("%v", p.steps)
	}
}

// TestLeakWithinCooldown checks that a leak during the cooldown is reported as
// LEAKING but demands no diagnosis.
func TestLeakWithinCooldown(t *testing.T) {
	p := play(nil).diagnosed().leak(5*minute, 0).feed(24*minute, 600, true)
	reports := 0
	for _, s := range p.steps {
		if s.To == Leaking {
			reports++
			if !strings.Contains(s.Because, "reported only: diagnosed") {
				t.Errorf("%q does not mention the cooldown", s.Because)
			}
		}
	}
	if reports == 0 {
		t.Errorf("%v", p.steps)
	}
}

// TestDimensionsOverTheWholeWindow checks that growth of the Java heap that
// lasted a long time and stopped before CONFIRMING is found over the entire
// window of breakdowns.
func TestDimensionsOverTheWholeWindow(t *testing.T) {
	p := play(func(a *articleRules) { a.minPoints = 11 }) // too few breakdowns for the GPU path, which needs ten
	p.feed(5*minute+40*time.Second, 600, true).leak(15*minute, 600)
	for i := range 4 {
		p.t += 30 * time.Second
		b := Breakdown{At: p.t}
		b.Dim[JavaHeap], b.Dim[Total] = known.Of(int64(200-i%2)*MB), known.Of(int64(500+10*i)*MB)
		p.keep(p.d.AddBreakdown(b))
		p.sample()
	}
	if kind, worst := articleOf(p.d).kind, p.d.Verdict().Worst; kind != Java || worst != Leaking {
		t.Errorf("%v %v", kind, worst)
	}
}

// TestGPUPath checks that graphics memory that grows is found without the main
// path, and that the GPU path does not report noise as a leak.
func TestGPUPath(t *testing.T) {
	alone := func(a *articleRules) { a.minSegments, a.spikeMin = 1000, 1<<40 }
	textures := simulation{change: alone, length: 35 * minute, sigma: 2, rate: [NumDimensions]float64{Graphics: 120}}
	noise := simulation{change: alone, length: 8 * time.Hour, sigma: 20}
	for seed := range uint64(20) {
		textures.seed, noise.seed = seed, seed
		_, steps := textures.run()
		if at, kind, ok := leakAt(steps); !ok || kind != GPU {
			t.Errorf("seed %d: %v at %v, found %v", seed, kind, at, ok)
		}
		_, steps = noise.run()
		if at, kind, ok := leakAt(steps); ok {
			t.Errorf("seed %d: found %v at %v in mere noise", seed, kind, at)
		}
	}
}
