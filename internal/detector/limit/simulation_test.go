package limit

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
)

// life returns a random process: a function that returns its use at a time in
// minutes, as a share of the limit.
type life func(rng *rand.Rand) func(minutes float64) float64

// These processes never reach the limit, but each is sometimes close to it.
// allowed is the number of runs, out of a thousand, that may cause a warning.
// Such warnings cannot be avoided: an hour of a slow wave, or of steps that
// happen to be evenly spaced, looks like an hour of a leak.
var harmless = map[string]struct {
	resource Resource
	allowed  int
	life     life
}{
	"flat": {Threads, 0, func(rng *rand.Rand) func(float64) float64 {
		level, sd := 0.4+0.35*rng.Float64(), 0.01*rng.Float64()
		return func(float64) float64 { return min(0.79, level+sd*rng.NormFloat64()) }
	}},
	"mean-reverting random walk": {FileDescriptors, 0, func(rng *rand.Rand) func(float64) float64 {
		x := 0.0
		return func(float64) float64 {
			x += -0.01*x + 0.004*rng.NormFloat64()
			return min(0.79, 0.55+x)
		}
	}},
	"periodic load": {Threads, 0, func(rng *rand.Rand) func(float64) float64 {
		level, height, period, phase := 0.35+0.2*rng.Float64(), 0.2*rng.Float64(), 3+40*rng.Float64(), rng.Float64()
		return func(m float64) float64 {
			return level + height*step(math.Mod(m/period+phase, 1) < 0.4) + 0.005*rng.NormFloat64()
		}
	}},
	"sinusoidal load": {FileDescriptors, 4, func(rng *rand.Rand) func(float64) float64 {
		level, height, period := 0.5+0.1*rng.Float64(), 0.15*rng.Float64(), 10+600*rng.Float64()
		return func(m float64) float64 { return level + height*math.Sin(2*math.Pi*m/period) + 0.005*rng.NormFloat64() }
	}},
	"steps": {Threads, 5, func(rng *rand.Rand) func(float64) float64 {
		level, next := 0.3, 60*rng.ExpFloat64()
		return func(m float64) float64 {
			if m > next && level < 0.7 {
				level, next = min(0.78, level+0.1*rng.Float64()), m+60*rng.ExpFloat64()
			}
			return level + 0.004*rng.NormFloat64()
		}
	}},
	"start": {AddressSpace, 0, func(rng *rand.Rand) func(float64) float64 {
		height, tau := 0.4+0.35*rng.Float64(), 0.5+9.5*rng.Float64()
		return func(m float64) float64 { return height*(1-math.Exp(-m/tau)) + 0.003*rng.NormFloat64() }
	}},
	"sawtooth of collections": {JavaHeap, 0, func(rng *rand.Rand) func(float64) float64 {
		live := 0.3 + 0.4*rng.Float64()
		top := min(0.95, live+0.05+0.2*rng.Float64())
		period, load := math.Exp(math.Log(0.2)+math.Log(100)*rng.Float64()), 10+100*rng.Float64()
		return func(m float64) float64 {
			at := live + 0.03*math.Sin(m/load)
			return min(0.97, at+(top-live)*math.Mod(m/period*(1+0.001*rng.Float64()), 1))
		}
	}},
	"sawtooth from a start": {JavaHeap, 0, func(rng *rand.Rand) func(float64) float64 {
		live, tau, period := 0.3+0.35*rng.Float64(), 1+14*rng.Float64(), 0.3+6*rng.Float64()
		return func(m float64) float64 {
			return live*(1-math.Exp(-m/tau)) + 0.25*math.Mod(m/period, 1)
		}
	}},
}

// run returns the warnings of a life, with readings as often as the monitor
// takes them.
func run(r Resource, of life, seed uint64, hours, javaPause float64) []Warning {
	rng := rand.New(rand.NewPCG(seed, uint64(r)))
	use := of(rng)
	pause := 15 + 45*rng.Float64() // seconds
	if r == JavaHeap {
		pause = 30 + (javaPause-30)*rng.Float64()
	}
	const limit = 100000 << 10
	// No collection in these processes frees more than three tenths of the
	// limit. Half of the phones report that amount, and the others report 0.
	garbage := int64(seed%2) * limit * 3 / 10
	w := new(Watch)
	var out []Warning
	w.Restart(time.Hour)
	for s := 0.0; s < hours*3600; s += pause * (0.8 + 0.4*rng.Float64()) {
		share := min(1, max(0, use(s/60)))
		out = append(out,
			w.Add(r,
				Use{
					At: time.Hour + time.Duration(s*float64(time.Second)), Used: int64(limit * share), Limit: limit,
					Garbage: garbage,
				})...)
		if share >= 1 {
			return out
		}
	}
	return out
}

// Processes that never reach their limit cause no more warnings than allowed.
func TestFalseAlarms(t *testing.T) {
	seeds := 200
	if os.Getenv("LEAKGATE_E2E") == "long" {
		seeds = 1000
	}
	for name, c := range harmless {
		t.Run(name, func(t *testing.T) {
			alarms := 0
			for seed := range seeds {
				if got := run(c.resource, c.life, uint64(seed), 6, 300); len(got) > 0 {
					if alarms++; alarms <= 3 {
						t.Logf("seed %d: %v: %s", seed, got[0].At-time.Hour, got[0].Text)
					}
				}
			}
			t.Logf("%d false alarms in %d runs of 6 h", alarms, seeds)
			if alarms > (c.allowed*seeds+999)/1000 {
				t.Fail()
			}
		})
	}
}

// A leak causes a warning before the limit is reached. The test measures the
// time from the first warning until the limit is reached.
func TestLeaksAreWarnedOf(t *testing.T) {
	seeds := 40
	if os.Getenv("LEAKGATE_E2E") == "long" {
		seeds = 200
	}
	for _, c := range []struct {
		name     string
		resource Resource
		// perHour is the growth as a share of the limit. least and median are
		// lower bounds on the time from the first warning until the limit is
		// reached: least applies to every run, and median to the median of all
		// runs.
		perHour       float64
		javaPause     float64 // longest time between two readings, in seconds
		least, median time.Duration
	}{
		{"slow", Threads, 0.05, 0, 3 * time.Hour, 3 * time.Hour},
		{"20 % per hour", FileDescriptors, 0.2, 0, 50 * time.Minute, 55 * time.Minute},
		{"50 % per hour", Threads, 0.5, 0, 35 * time.Minute, 45 * time.Minute},
		{"200 % per hour", AddressSpace, 2, 0, 3 * time.Minute, 4 * time.Minute},
		{"Java, 5 % per hour", JavaHeap, 0.05, 300, 2 * time.Hour, 2 * time.Hour},
		{"Java, 20 % per hour", JavaHeap, 0.2, 300, 3 * time.Minute, 30 * time.Minute},
		{"Java, 40 % per hour", JavaHeap, 0.4, 60, 10 * time.Minute, 20 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			var left []time.Duration
			for seed := range seeds {
				rng := rand.New(rand.NewPCG(uint64(seed), 99))
				level, period, height := 0.1+0.3*rng.Float64(), 0.3+2*rng.Float64(), 0.0
				if c.resource == JavaHeap {
					height = 0.05 + 0.1*rng.Float64()
				}
				got := run(c.resource, func(rng *rand.Rand) func(float64) float64 {
					return func(m float64) float64 {
						floor := level*(1-math.Exp(-m)) + c.perHour*m/60
						// The runtime runs a collection before an allocation
						// fails.
						saw := min(height, max(0, 1-floor)) * math.Mod(m/period, 1)
						if floor >= 1 {
							return 1
						}
						return min(0.999, floor+saw+0.003*rng.NormFloat64()*step(c.resource != JavaHeap))
					}
				}, uint64(seed), 1/c.perHour+1, c.javaPause)
				end := time.Hour + time.Duration((1-level)/c.perHour*float64(time.Hour))
				if len(got) == 0 {
					t.Errorf("seed %d: no warning", seed)
					continue
				}
				left = append(left, end-got[0].At)
			}
			slices.Sort(left)
			if len(left) == 0 {
				return
			}
			t.Logf("time from first warning to limit: at least %v, median %v, at most %v", left[0].Round(time.Minute),
				left[len(left)/2].Round(time.Minute), left[len(left)-1].Round(time.Minute))
			if left[0] < c.least || left[len(left)/2] < c.median {
				t.Fail()
			}
		})
	}
}

// artHeap is a Java heap in MB as ART manages it: a collection runs when the
// heap has reached its target, and sets a new target above what is left
// (art/runtime/gc/heap.cc, GrowForUtilization).
type artHeap struct {
	live, used, target, limit, maxFree float64
}

// pass advances the heap by a second. Retained and temporary allocations are in
// MB per second.
func (h *artHeap) pass(kept, other float64) {
	h.live += kept
	h.used += max(0, kept) + other
	if h.used > min(h.target, h.limit) {
		h.used = h.live
		h.target = h.live + 3*min(h.maxFree, h.live)
	}
}

// watched simulates a heap until it is full or a time limit is reached, and
// returns the first warning and the time at which the simulation ended.
func watched(h *artHeap, rng *rand.Rand, most time.Duration, step func(h *artHeap, seconds float64)) (first *Warning,
	end time.Duration) {
	const mb = 1 << 20
	w := new(Watch)
	w.Restart(0)
	pause, next := 60+60*rng.Float64(), 0.0
	for s := 0.0; ; s++ {
		at := time.Duration(s) * time.Second
		step(h, s)
		if h.live >= h.limit || at >= most {
			return first, at
		}
		if s < next {
			continue
		}
		next = s + pause*(0.9+0.2*rng.Float64())
		got := w.Add(JavaHeap,
			Use{At: at, Used: int64(h.used * mb), Limit: int64(h.limit * mb), Garbage: int64(3 * h.maxFree * mb)})
		if first == nil && len(got) > 0 {
			first = &got[0]
		}
	}
}

// A heap that fills within an hour or two causes a warning before its floors
// show a trend, even if the process retains everything that it allocates, so
// that collections free nothing.
func TestSteepHeaps(t *testing.T) {
	for _, c := range []struct {
		limit, maxFree, perHour float64 // in MB
		// bare is the median time from the warning to the end for a process
		// that retains everything that it allocates; busy is the same for a
		// process that additionally allocates 1 MB of garbage per second.
		bare, busy time.Duration
	}{
		{192, 8, 100, 15 * time.Minute, 25 * time.Minute}, {192, 8, 200, 10 * time.Minute, 8 * time.Minute},
		{256, 8, 200, 25 * time.Minute, 20 * time.Minute}, {256, 16, 100, 0, 40 * time.Minute},
		{256, 16, 200, 12 * time.Minute, 12 * time.Minute}, {512, 8, 400, 30 * time.Minute, 30 * time.Minute},
		{512, 16, 400, 25 * time.Minute, 25 * time.Minute}, {512, 32, 400, 15 * time.Minute, 15 * time.Minute},
	} {
		for other, bar := range map[float64]time.Duration{0: c.bare, 1: c.busy} {
			var left []time.Duration
			for seed := range 60 {
				rng := rand.New(rand.NewPCG(uint64(seed), 5))
				base := 20 + 40*rng.Float64()
				h := &artHeap{live: base, used: base, target: base + c.maxFree, limit: c.limit, maxFree: c.maxFree}
				first, end := watched(h, rng, 24*time.Hour,
					func(h *artHeap, _ float64) { h.pass(c.perHour/3600, other) })
				if first == nil {
					left = append(left, 0)
					continue
				}
				left = append(left, end-first.At)
			}
			slices.Sort(left)
			median, missed := left[len(left)/2], 0
			for _, l := range left {
				if l == 0 {
					missed++
				}
			}
			t.Logf("limit %v MB, maxfree %v, %v MB/h, %v MB/s of garbage: no warning in %d of %d runs, at least %v, "+
				"median %v",
				c.limit, c.maxFree, c.perHour, other,
				missed, len(left), left[0].Round(time.Minute), median.Round(time.Minute))
			if median < bar {
				t.Fail()
			}
		}
	}
}

// In at least 99 of 100 cases, a heap that fills and then stays constant causes
// no warning, however much garbage its collections free. The heaps that cause a
// warning fill evenly for half an hour, or their collections coincide with the
// readings.
func TestHeapsThatStay(t *testing.T) {
	seeds := 300
	if os.Getenv("LEAKGATE_E2E") == "long" {
		seeds = 3000
	}
	alarms := 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(uint64(seed), 6))
		limit := []float64{192, 256, 512}[rng.IntN(3)]
		maxFree := []float64{8, 16, 32}[rng.IntN(3)]
		level, tau := (0.3+0.45*rng.Float64())*limit, 60+600*rng.Float64()
		wave, period := 0.04*limit*rng.Float64(), 60+7200*rng.Float64()
		other := math.Exp(math.Log(0.003) + math.Log(3000)*rng.Float64()) // MB per second
		h := &artHeap{limit: limit, maxFree: maxFree, target: 2}
		first, _ := watched(h, rng, 6*time.Hour, func(h *artHeap, s float64) {
			live := level*(1-math.Exp(-s/tau)) + wave*math.Sin(2*math.Pi*s/period)
			h.pass(live-h.live, other)
		})
		if first != nil {
			if alarms++; alarms <= 3 {
				t.Logf("seed %d, level %.0f of %.0f MB: %v: %s", seed, level, limit, first.At, first.Text)
			}
		}
	}
	t.Logf("%d false alarms in %d runs of 6 h", alarms, seeds)
	if alarms > seeds/100 {
		t.Fail()
	}
}
