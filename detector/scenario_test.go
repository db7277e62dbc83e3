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

	"github.com/leakgate/leakgate/internal/recorded"
)

// TestQuietProcess: noise of 5 MB for eight hours is NORMAL, always.
func TestQuietProcess(t *testing.T) {
	for seed := range uint64(30) {
		d, steps := simulation{seed: seed, length: 8 * time.Hour, sigma: 5}.run()
		v := d.Verdict()
		if v.Worst != Normal || v.Gate != Pass || len(steps) != 0 {
			t.Errorf("seed %d: %v %v %v", seed, v.Worst, v.Gate, steps)
		}
		if v.RateLow > 0 && v.RateLow > 3*MB || v.RateHigh < -3*MB || v.MinDetectable/MB < 15 || v.MinDetectable/MB > 35 {
			t.Errorf("seed %d: rate %v..%v, detectable %.1f MB/h", seed, v.RateLow, v.RateHigh, v.MinDetectable/MB)
		}
	}
}

// TestLeaks: each kind of leak, found in time and named.
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
				// The main path needs 21 minutes; the GPU path needs ten breakdowns.
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

// TestKnownFaults keeps what the article's rules get wrong, so that a change is noticed:
// they are explained in docs/article.md.
func TestKnownFaults(t *testing.T) {
	warmUp := func(mb float64, tau time.Duration) func(time.Duration) float64 {
		return func(t time.Duration) float64 { return mb * (1 - math.Exp(-t.Minutes()/tau.Minutes())) }
	}
	tests := map[string]struct {
		shape    func(time.Duration) float64
		sigma    float64
		min, max int // of 20 runs of 8 h that come to LEAKING
	}{
		"a warm-up is a leak":              {warmUp(200, 10*minute), 5, 20, 20},
		"a step of 80 MB is none":          {func(t time.Duration) float64 { return 80 * float64(min(1, t/(4*time.Hour))) }, 5, 0, 1},
		"a step of 250 MB is one":          {func(t time.Duration) float64 { return 250 * float64(min(1, t/(4*time.Hour))) }, 5, 20, 20},
		"a load of 20 min is none":         {func(t time.Duration) float64 { return 30 * math.Sin(2*math.Pi*t.Minutes()/20) }, 5, 0, 0},
		"noise of 50 MB is a spike at odd": {nil, 50, 5, 15},
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
				t.Errorf("%d of 20 runs", n)
			}
		})
	}
}

// TestTrendPower checks the one-look formula: the share of windows with R2 > 0.6.
func TestTrendPower(t *testing.T) {
	a := ArticlePolicy().Article
	r := rand.New(rand.NewPCG(21, 22))
	x, y := make([]float64, 240), make([]float64, 240)
	for _, n := range []int{10, 20, 60, 240} {
		c := chain{a: &a, sd: 5 * MB, interval: 30}
		// The even chances of 4.24 s/T, and the 95 % that the verdict promises.
		span := float64(n-1) * 30
		even := 4.24 * c.sd / span
		sure := even
		for c.trend(sure, n) < confidence {
			sure *= 1.001
		}
		for slope, want := range map[float64]float64{even: c.trend(even, n), sure: confidence} {
			const runs = 3000
			hit := 0
			for range runs {
				for i := range n {
					x[i] = 30 * float64(i)
					y[i] = slope*x[i] + c.sd*r.NormFloat64()
				}
				f := regression(x[:n], y[:n])
				if f.t > 2 && f.r2 > 0.6 {
					hit++
				}
			}
			got := float64(hit) / runs
			if math.Abs(got-want) > 0.025 {
				t.Errorf("n %d, %.1f MB/h: %.3f of the windows, formula %.3f", n, slope*3600/MB, got, want)
			}
			if slope == even && n >= 60 && math.Abs(got-0.5) > 0.15 {
				t.Errorf("n %d: 4.24 s/T is found in %.2f, want about half", n, got)
			}
		}
	}
}

// TestFloorsPower checks the probability of floors in order, and its value for no slope:
// one of 3! orders.
func TestFloorsPower(t *testing.T) {
	a := ArticlePolicy().Article
	c := chain{a: &a, sd: 5 * MB, interval: 30}
	if got := c.floors(0); math.Abs(got-1.0/6) > 0.002 {
		t.Errorf("no slope: %v, want 1/6", got)
	}
	r := rand.New(rand.NewPCG(31, 32))
	values := make([]float64, 20)
	for _, perHour := range []float64{5, 20, 50, 80} {
		slope := perHour * MB / 3600
		const runs = 3000
		hit := 0
		for range runs {
			var floors [3]float64
			for k := range floors {
				for i := range values {
					values[i] = slope*float64(300*k+15*i) + c.sd*r.NormFloat64()
				}
				floors[k] = p25Of(values)
			}
			if floors[0] < floors[1] && floors[1] < floors[2] {
				hit++
			}
		}
		if got, want := float64(hit)/runs, c.floors(slope); math.Abs(got-want) > 0.03 {
			t.Errorf("%v MB/h: %.3f, formula %.3f", perHour, got, want)
		}
	}
}

// TestMinDetectable: a leak as slow as the verdict of a pass says is found in 95 % of the
// runs, and one of half that rate is not.
func TestMinDetectable(t *testing.T) {
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
	for _, tt := range []struct {
		sigma float64
		hours float64
	}{{5, 1}, {5, 8}, {20, 1}, {20, 8}} {
		s := simulation{length: time.Duration(tt.hours * float64(time.Hour)), sigma: tt.sigma}
		a := ArticlePolicy().Article
		a.SpikeMin = 1 << 40 // so that spikes do not help
		s.policy = Policy{Name: PolicyArticle, Article: a}
		rate := perHour(a.minDetectable(tt.sigma*MB, 30, s.length.Seconds())) / MB
		if n := found(s, rate); n < 92 {
			t.Errorf("sigma %v, %v h: %.0f MB/h found in %d %%", tt.sigma, tt.hours, rate, n)
		}
		if n := found(s, rate/2); n > 85 {
			t.Errorf("sigma %v, %v h: half of %.0f MB/h still found in %d %%", tt.sigma, tt.hours, rate, n)
		}
		t.Logf("sigma %v MB, %v h: %.0f MB/h", tt.sigma, tt.hours, rate)
	}
	for name, change := range map[string]func(*Article){
		"history":  func(a *Article) { a.FloorsFrom = FloorsFromHistory },
		"disjoint": func(a *Article) { a.Windows = WindowsDisjoint },
	} {
		a := ArticlePolicy().Article
		change(&a)
		if got := a.minDetectable(MB, 30, 3600); got != 0 {
			t.Errorf("%s: %v though there is no model", name, got)
		}
	}
}

// trace reads seconds and one column in kB.
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

// TestRecordedRuns replays the PSS of Android Monkey runs, where one number serves as
// sample and as TOTAL. The literal GPU path finds a GPU leak
// in most of them although both its series are the same numbers; the default does not.
func TestRecordedRuns(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recorded.Path(t, "traces"), "android_monkey_*.csv"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d traces, %v", len(files), err)
	}
	leaks := func(column string, gpu GPUPath) (n int) {
		for _, file := range files {
			p := ArticlePolicy()
			p.Article.GPU = gpu
			d := New(p)
			var last time.Duration
			for i, s := range trace(t, file, column) {
				d.AddSample(s)
				if i == 0 || s.At-last >= 90*time.Second || d.Demand().Breakdowns > 0 {
					b := Breakdown{At: s.At}
					b.Dim[Total] = Known(s.Bytes)
					d.AddBreakdown(b)
					last = s.At
				}
				if d.Demand().Diagnose != None {
					d.DiagnosisDone(s.At)
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
	// One of them rises by 24 MB in 21 minutes once in eleven hours.
	servers := leaks("system_server_pss_kb", GPUGraphics)
	if servers > 1 {
		t.Errorf("system_server leaks in %d runs", servers)
	}
	literal := leaks("system_server_pss_kb", GPULiteral)
	if literal < len(files)/2 {
		t.Errorf("the literal GPU path fires in %d of %d runs, expected most", literal, len(files))
	}
	apps := leaks("app_pss_kb", GPUGraphics)
	if apps < len(files)/5 || apps > len(files)*9/10 {
		t.Errorf("apps leak in %d of %d runs", apps, len(files))
	}
	t.Logf("of %d runs: apps %d, system_server %d, by the literal GPU path %d", len(files), apps, servers, literal)
}
