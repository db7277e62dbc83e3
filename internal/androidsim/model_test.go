package androidsim

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slope returns the least-squares slope of y over t.
func slope(t, y []float64) float64 {
	var mt, my, sty, stt float64
	for i := range t {
		mt, my = mt+t[i]/float64(len(t)), my+y[i]/float64(len(t))
	}
	for i := range t {
		sty += (t[i] - mt) * (y[i] - my)
		stt += (t[i] - mt) * (t[i] - mt)
	}
	return sty / stt
}

// A leak appears in the outputs at its rate, and only in its own dimension.
func TestLeakSlopes(t *testing.T) {
	kinds := map[string]struct {
		kind    Kind
		mb      float64
		on      []Dimension
		dim     string
		inSmaps bool
	}{
		"java":      {Java, 300, nil, "java", true},
		"slow java": {Java, 20, nil, "java", true},
		"native":    {Native, 150, nil, "native", true},
		"gpu":       {GPU, 100, nil, "graphics", false},
		"gpu, kgsl": {GPU, 100, []Dimension{GfxDev}, "graphics", true},
		"thread":    {Thread, 60, nil, "stack", true},
	}
	for name, c := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leak := Leak(c.kind, c.mb, 0)
				for _, d := range c.on {
					leak = leak.On(d)
				}
				p := shop(Options{Scale: 200, Root: true, DumpsysTime: 1}, leak, Steady(JavaHeap, 5))
				begin := p.Uptime()
				var hours []float64
				series := map[string][]float64{}
				for range 120 {
					time.Sleep(150 * time.Millisecond) // 30 s of device time
					b := blockOf(t, p, "dumpsys meminfo com.shop")
					hours = append(hours, (p.Uptime() - begin).Hours())
					var pss, threads float64
					text := ask(t, p,
						fmt.Sprintf("grep -h -E '^(Pss|Threads):' /proc/%d/smaps_rollup /proc/%[1]d/status",
							p.PID("com.shop")))
					if _, err := fmt.Sscanf(text, "Pss: %f kB\nThreads: %f\n", &pss, &threads); err != nil {
						t.Fatalf("%q: %v", text, err)
					}
					for k, kb := range map[string]float64{
						"java": float64(b.JavaHeap.N), "native": float64(b.NativeHeap.N),
						"graphics": float64(b.Graphics.N), "stack": float64(b.Stack.N),
						"rest": float64(b.Code.N + b.PrivateOther.N + b.System.N), "total": float64(b.TotalPss.N),
						"smaps": pss, "threads": threads * 1024,
					} {
						series[k] = append(series[k], kb/1024)
					}
				}
				for k, y := range series {
					want := 0.0
					switch {
					case k == c.dim, k == "total", k == "smaps" && c.inSmaps:
						want = c.mb
					case k == "threads" && c.kind == Thread:
						want = c.mb / mbPerThread
					}
					// The tolerance allows for threads, which add memory in
					// steps of 0.1 MB, and for the page size of 4 kB.
					if got := slope(hours, y); math.Abs(got-want) > 0.002*want+0.02 {
						t.Errorf("%s grows by %.3f MB/h, want %.3f", k, got, want)
					}
				}
			})
		})
	}
}

func mbAt(m Model, age time.Duration) levels { return evaluate([]Model{m}, 99, age, never) }

func TestCurves(t *testing.T) {
	at := func(m Model, d Dimension, age time.Duration) float64 { return mbAt(m, age).mb[d] }
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"warm-up, java", at(WarmUp(100, time.Minute), JavaHeap, time.Minute), 60 * (1 - 1/math.E)},
		{"warm-up, native", at(WarmUp(100, time.Minute), NativeHeap, time.Hour), 40},
		{"step, before", at(Step(time.Minute, 80), JavaHeap, time.Minute-1), 0},
		{"step, after", at(Step(time.Minute, 80), JavaHeap, time.Minute), 80},
		{"cache, half", at(CacheFill(90, time.Hour), NativeHeap, 30*time.Minute), 45},
		{"cache, full", at(CacheFill(90, time.Hour), NativeHeap, 3*time.Hour), 90},
		{"leak, before", at(Leak(Native, 60, time.Hour), NativeHeap, time.Hour), 0},
		{"leak, after", at(Leak(Native, 60, time.Hour), NativeHeap, 90*time.Minute), 30},
		{"on", at(WarmUp(100, time.Minute).On(Other), Other, time.Hour), 100},
		{"threads", float64(mbAt(Leak(Thread, 60, 0), time.Hour).threads), 600},
		{"swap", mbAt(Swap(0.5, time.Minute, time.Minute), 90*time.Second).swapped, 0.25},
		{"negative", at(Steady(Other, -5), Other, 0), 0},
		{"not a number", at(Steady(Other, math.NaN()), Other, 0), 0},
		{"infinite", at(Steady(Other, math.Inf(1)), Other, 0), maxMB},
	} {
		if math.Abs(c.got-c.want) > 1e-6 {
			t.Errorf("%s: %g, want %g", c.name, c.got, c.want)
		}
	}
	sum := evaluate([]Model{Steady(Code, 3), Steady(Code, 4), Leak(Java, 10, 0), Step(0, 1)}, 1, time.Hour, never)
	if sum.mb[Code] != 7 || sum.mb[JavaHeap] != 11 {
		t.Errorf("models do not add up: %v", sum.mb)
	}
}

func TestPeriodic(t *testing.T) {
	m := Periodic(40, 10*time.Minute)
	low, high := math.Inf(1), math.Inf(-1)
	for age := time.Duration(0); age < 10*time.Minute; age += time.Second {
		v := mbAt(m, age).mb[JavaHeap]
		low, high = math.Min(low, v), math.Max(high, v)
		if again := mbAt(m, age+30*time.Minute).mb[JavaHeap]; math.Abs(again-v) > 1e-6 {
			t.Fatalf("got %g MB at %v, but %g MB three periods later", v, age, again)
		}
	}
	if low > 0.01 || high < 39.99 || high > 40 {
		t.Errorf("from %g to %g", low, high)
	}
}

// Each period has one peak of full length, and its position varies.
func TestPeaks(t *testing.T) {
	const every, lasting, stretches = 600, 60, 200 // seconds
	m := Peaks(150, lasting*time.Second, every*time.Second)
	places := map[int]bool{}
	for k := range stretches {
		var up []int
		for s := range every {
			switch mbAt(m, time.Duration(k*every+s)*time.Second).mb[JavaHeap] {
			case 150:
				up = append(up, s)
			case 0:
			default:
				t.Fatalf("neither 0 nor 150 MB in period %d at %d s", k, s)
			}
		}
		if n := len(up); n != lasting || up[n-1]-up[0] != n-1 {
			t.Fatalf("period %d: the peak is at %v, want consecutive times", k, up)
		}
		places[up[0]/100] = true
	}
	if len(places) < 5 { // a peak fits at six positions
		t.Errorf("the peaks start at too few positions (in units of 100 s): %v", places)
	}
	if got := mbAt(Peaks(5, 0, 0), time.Hour).mb[JavaHeap]; got != 0 {
		t.Errorf("a peak of zero length adds %g MB", got)
	}
}

func TestSawtooth(t *testing.T) {
	m := GCSawtooth(40, 90*time.Second)
	var falls []time.Duration
	last := mbAt(m, 0).mb[JavaHeap]
	for age := time.Second; age < 10*time.Hour; age += time.Second {
		v := mbAt(m, age).mb[JavaHeap]
		if v < 0 || v > 48 {
			t.Fatalf("%g MB at %v", v, age)
		}
		if v < last {
			falls = append(falls, age)
			if v > 4+2 {
				t.Errorf("fell only to %g", v)
			}
		} else if v-last > 48.0/36 {
			t.Errorf("jumped from %g to %g", last, v)
		}
		last = v
	}
	if n := len(falls); n < 395 || n > 405 {
		t.Errorf("%d collections in 400 periods", n)
	}
	for i := range falls[1:] {
		if d := falls[i+1] - falls[i]; d < 35*time.Second || d > 145*time.Second {
			t.Errorf("a period of %v", d)
		}
	}
}

// The noise is an AR(1) series: it satisfies the recursion with the same
// innovations and has the given variance and correlation.
func TestNoiseIsAR1(t *testing.T) {
	for _, rho := range []float64{0, 0.5, 0.7, 0.9, 0.97} {
		a := newAutoregression(rho)
		phi := math.Pow(rho, 0.5)
		const n = 40000
		x := make([]float64, n)
		for i := range x {
			x[i] = a.at(5, int64(i)+1000)
		}
		// This is an independent implementation by recursion.
		y := x[0]
		for i := 1; i < n; i++ {
			y = phi*y + math.Sqrt(1-phi*phi)*normal(5, int64(i)+1000)
			if math.Abs(y-x[i]) > 0.02 {
				t.Fatalf("rho %g: value %d is %g, want %g from the recursion", rho, i, x[i], y)
			}
		}
		var sum, squares, lagged float64
		for i, v := range x {
			sum, squares = sum+v, squares+v*v
			if i >= 2 {
				lagged += v * x[i-2]
			}
		}
		// The effective sample size of the mean of squares of an AR(1) series.
		tolerance := 5 * math.Sqrt(2*(1+rho)/(1-rho)/n)
		if v := squares / n; math.Abs(v-1) > tolerance || math.Abs(lagged/squares-rho) > tolerance ||
			math.Abs(sum/n) > 2*tolerance {
			t.Errorf("rho %g: mean %g, variance %g, correlation at 30 s %g", rho, sum/n, v, lagged/squares)
		}
	}
}

func TestNoiseSigma(t *testing.T) {
	for name, m := range map[string]Model{"spread": Noise(10, 0), "single category": Noise(10, 0).On(NativeHeap)} {
		base := Model{add: func(l *levels, _ moment) {
			for d := range l.mb {
				l.mb[d] += 1000
			}
		}}
		var sum, squares float64
		const n = 20000
		for i := range n {
			l := evaluate([]Model{base, m}, 3, time.Duration(i)*noiseGrid, never)
			x := -1000.0 * float64(numDimensions)
			for _, mb := range l.mb {
				x += mb
			}
			if l.mb[EGL] != 1000 || l.mb[GL] != 1000 {
				t.Fatalf("%s: noise outside smaps", name)
			}
			sum, squares = sum+x, squares+x*x
		}
		if sd := math.Sqrt(squares/n - sum*sum/n/n); math.Abs(sd-10) > 0.3 {
			t.Errorf("%s: standard deviation %g of 10", name, sd)
		}
	}
}

func TestUniform(t *testing.T) {
	var buckets [16]int
	for i := range 16000 {
		u := uniform(42, int64(i))
		if u < 0 || u >= 1 {
			t.Fatalf("%g", u)
		}
		buckets[int(u*16)]++
	}
	chi := 0.0
	for _, n := range buckets {
		chi += float64(n-1000) * float64(n-1000) / 1000
	}
	if chi > 45 { // 15 degrees of freedom: p < 0.0001
		t.Errorf("chi squared %g: %v", chi, buckets)
	}
}

// The main process of the demo leaks 400 MB/h despite its noise; the other
// process does not leak.
func TestDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Demo(200, 11)
		if id := p.Identity(); id.Serial == "" || len(id.Features) == 0 {
			t.Errorf("identity %+v", id)
		}
		hours, main, push := []float64{}, []float64{}, []float64{}
		time.Sleep(3 * time.Second) // 10 minutes
		for range 480 {
			time.Sleep(75 * time.Millisecond)
			a, okA := p.Memory("com.shop")
			b, okB := p.Memory("com.shop:push")
			if !okA || !okB {
				t.Fatal("a process of the demo died")
			}
			hours = append(hours, a.Up.Hours())
			main, push = append(main, float64(a.PSS)/1024), append(push, float64(b.PSS)/1024)
		}
		if s := slope(hours, main); math.Abs(s-400) > 5 {
			t.Errorf("com.shop grows by %g MB/h, want about 400", s)
		}
		if s := slope(hours, push); math.Abs(s) > 3 {
			t.Errorf("com.shop:push grows by %g MB/h, want about 0", s)
		}
		if text := ask(t, p, "cat /proc/$(pidof com.shop)/smaps_rollup"); !strings.Contains(text, "[rollup]") {
			t.Errorf("%q", text)
		}
	})
}

func BenchmarkReading(b *testing.B) {
	p := Demo(1, 1)
	command := fmt.Sprintf("cd /proc && exec grep -E '^(Pss|SwapPss|Threads):' %d/smaps_rollup %[1]d/status "+
		"%d/smaps_rollup", p.PID("com.shop"), p.PID("com.shop:push"))
	for b.Loop() {
		p.Shell(b.Context(), command, nil, nil, nil)
	}
}
