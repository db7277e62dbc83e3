package limit

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
)

// life is a process: what it uses after so many minutes, as a share of the limit.
type life func(rng *rand.Rand) func(minutes float64) float64

// The lives that end nowhere. Each is high enough to be near its limit at times.
// allowed of a thousand runs are warned of: an hour of a slow wave, or of steps that
// happen to come evenly, is the hour of a leak.
var harmless = map[string]struct {
	resource Resource
	allowed  int
	life     life
}{
	"flat": {Threads, 0, func(rng *rand.Rand) func(float64) float64 {
		level, sd := 0.4+0.35*rng.Float64(), 0.01*rng.Float64()
		return func(float64) float64 { return min(0.79, level+sd*rng.NormFloat64()) }
	}},
	"random walk that is pulled back": {FileDescriptors, 0, func(rng *rand.Rand) func(float64) float64 {
		x := 0.0
		return func(float64) float64 {
			x += -0.01*x + 0.004*rng.NormFloat64()
			return min(0.79, 0.55+x)
		}
	}},
	"load that comes and goes": {Threads, 0, func(rng *rand.Rand) func(float64) float64 {
		level, height, period, phase := 0.35+0.2*rng.Float64(), 0.2*rng.Float64(), 3+40*rng.Float64(), rng.Float64()
		return func(m float64) float64 {
			return level + height*step(math.Mod(m/period+phase, 1) < 0.4) + 0.005*rng.NormFloat64()
		}
	}},
	"load like a wave": {FileDescriptors, 4, func(rng *rand.Rand) func(float64) float64 {
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
	"sawtooth that starts": {JavaHeap, 0, func(rng *rand.Rand) func(float64) float64 {
		live, tau, period := 0.3+0.35*rng.Float64(), 1+14*rng.Float64(), 0.3+6*rng.Float64()
		return func(m float64) float64 {
			return live*(1-math.Exp(-m/tau)) + 0.25*math.Mod(m/period, 1)
		}
	}},
}

// run gives the warnings of a life, with readings as often as the engine makes them.
func run(r Resource, of life, seed uint64, hours, javaPause float64) []Warning {
	rng := rand.New(rand.NewPCG(seed, uint64(r)))
	use := of(rng)
	pause := 15 + 45*rng.Float64() // seconds
	if r == JavaHeap {
		pause = 30 + (javaPause-30)*rng.Float64()
	}
	const limit = 100000 << 10
	w := new(Watch)
	var out []Warning
	w.Restart(time.Hour)
	for s := 0.0; s < hours*3600; s += pause * (0.8 + 0.4*rng.Float64()) {
		share := min(1, max(0, use(s/60)))
		out = append(out, w.Hear(r, Use{At: time.Hour + time.Duration(s*float64(time.Second)), Used: int64(limit * share), Limit: limit})...)
		if share >= 1 {
			return out
		}
	}
	return out
}

// What never reaches its limit is not warned of.
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

// What leaks is warned of before the limit. The time left is measured to the moment at
// which it is reached.
func TestLeaksAreWarnedOf(t *testing.T) {
	seeds := 40
	if os.Getenv("LEAKGATE_E2E") == "long" {
		seeds = 200
	}
	for _, c := range []struct {
		name     string
		resource Resource
		// perHour is the growth as a share of the limit; least the shortest time between
		// the first warning and the limit, and median the middle one.
		perHour       float64
		javaPause     float64 // longest time between two readings, in seconds
		least, median time.Duration
	}{
		{"slow", Threads, 0.05, 0, 3 * time.Hour, 3 * time.Hour},
		{"20 % an hour", FileDescriptors, 0.2, 0, 50 * time.Minute, 55 * time.Minute},
		{"50 % an hour", Threads, 0.5, 0, 35 * time.Minute, 45 * time.Minute},
		{"200 % an hour", AddressSpace, 2, 0, 3 * time.Minute, 4 * time.Minute},
		{"Java, 5 % an hour", JavaHeap, 0.05, 300, 2 * time.Hour, 2 * time.Hour},
		{"Java, 20 % an hour", JavaHeap, 0.2, 300, 3 * time.Minute, 30 * time.Minute},
		{"Java, 40 % an hour", JavaHeap, 0.4, 60, 10 * time.Minute, 20 * time.Minute},
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
						// The runtime collects before it gives up.
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
			t.Logf("first warning before the limit: least %v, median %v, most %v", left[0].Round(time.Minute), left[len(left)/2].Round(time.Minute), left[len(left)-1].Round(time.Minute))
			if left[0] < c.least || left[len(left)/2] < c.median {
				t.Fail()
			}
		})
	}
}
