package trip

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/leakgate/leakgate/reporters/record"
)

// shape is a function that returns by how much a measure has grown after a
// number of loops.
type shape func(loops float64) float64

func flat(float64) float64 { return 0 }

// rate returns the shape of a constant leak.
func rate(perLoop float64) shape { return func(x float64) float64 { return perLoop * x } }

// saturating returns the shape of a cache that fills at a decreasing rate: it
// approaches level, and reaches 63 % of it after tau loops.
func saturating(level, tau float64) shape {
	return func(x float64) float64 { return level * (1 - math.Exp(-x/tau)) }
}

// filling returns the shape of a cache or pool that fills at a constant rate
// until it is full.
func filling(perLoop, until float64) shape {
	return func(x float64) float64 { return perLoop * math.Min(x, until) }
}

// jump returns the shape of an object that is created once.
func jump(at, by float64) shape {
	return func(x float64) float64 {
		if x < at {
			return 0
		}
		return by
	}
}

// noise is an AR(1) process: sigma is its standard deviation, rho the
// correlation of two successive readings.
type noise struct{ sigma, rho float64 }

// simulated is a process in memory that has no heap dumps.
type simulated struct {
	random *rand.Rand
	loops  int
	// java, native, graphics, threads and files are the shapes of the growth of
	// these measures.
	java, native, graphics, threads, files shape
	// nativeNoise is in kB; sawtooth is the amplitude of garbage in the Java
	// heap, and threadNoise the maximum number of threads that come and go.
	nativeNoise noise
	sawtooth    float64
	threadNoise int

	state    float64
	readings int
}

// steady returns a process without a leak.
func steady(seed uint64, n noise) *simulated {
	return &simulated{
		random: rand.New(rand.NewPCG(seed, 7)), java: flat, native: flat, graphics: flat, threads: flat, files: flat,
		nativeNoise: n, sawtooth: 2000, threadNoise: 1,
	}
}

func (s *simulated) loop(context.Context) error { s.loops++; return nil }

func (s *simulated) Alive(context.Context) (Life, error) { return Life{100, 1}, nil }

func (s *simulated) Settle(context.Context) (bool, error) { return true, nil }

func (s *simulated) Dump(context.Context) (*Dump, error) { panic("dumps are disabled") }

func (s *simulated) Snapshot(context.Context) (Measured, error) {
	if n := s.nativeNoise; s.readings == 0 {
		s.state = s.random.NormFloat64() * n.sigma
	} else {
		s.state = n.rho*s.state + math.Sqrt(1-n.rho*n.rho)*s.random.NormFloat64()*n.sigma
	}
	s.readings++
	x := float64(s.loops)
	kb := func(v float64) *int64 { return new(int64(math.Round(v))) }
	little := func(sigma float64) float64 { return s.random.NormFloat64() * sigma }
	java := 48_000 + s.java(x) + s.sawtooth*s.random.Float64()
	native := 60_000 + s.native(x) + s.state
	code, stack, gpu, other := 44_000+little(20), 2000+little(10), 36_000+s.graphics(x)+little(100), 28_000+little(80)
	r := Measured{
		Life: Life{100, 1},
		Objects: map[string]int64{
			"Activities": 1, "Views": 40 + int64(s.random.IntN(3)), "ViewRootImpl": 1, "AppContexts": 4,
			"Local Binders": 20 + int64(s.random.IntN(4)), "Parcel memory": int64(s.random.IntN(50)) + 2*int64(x),
		},
		Threads: kb(28 + s.threads(x) + float64(s.random.IntN(s.threadNoise+1))),
		Files:   kb(90 + s.files(x) + float64(s.random.IntN(3))),
		Breakdown: record.Breakdown{
			JavaHeap: kb(java), NativeHeap: kb(native), Code: kb(code), Stack: kb(stack), Graphics: kb(gpu),
			PrivateOther: kb(other),
		},
		PSS: kb(java + native + code + stack + gpu + other + 20_000 + little(100)),
	}
	return r, nil
}
