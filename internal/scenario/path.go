package scenario

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/leakgate/leakgate/detector"
)

// Grid is the time between two points of a path.
const Grid = 15 * time.Second

// Dim is a dimension of the App Summary of dumpsys meminfo, without TOTAL.
type Dim int

// The dimensions of a path, in the order of the App Summary.
const (
	Java Dim = iota
	Native
	Code
	Stack
	Graphics
	Other
	System
	NumDims
)

// base is the level of each dimension in MB (260 MB in total); share is the
// standard deviation of the noise of each dimension, as a fraction of the
// total's standard deviation. The squares of the shares add up to 0.995. Noise
// of 50 MB sometimes makes single dimensions negative, which is necessary for
// the noise to stay symmetric.
var (
	base  = [NumDims]float64{60, 70, 45, 2, 35, 28, 20}
	share = [NumDims]float64{0.70, 0.60, 0.02, 0.01, 0.20, 0.30, 0.12}
)

// Scenario is a process to simulate. Sizes are in MB (1024 kB), times in
// minutes, rates in MB/h. All parts may be combined; a zero part is skipped.
// When the process restarts, all its memory is released, except the noise, the
// load and the peaks. After that, the times of a leak, a warm-up and a cache
// count from the restart.
type Scenario struct {
	Name  string
	Hours float64
	// Sigma is the standard deviation of the noise of the total; Rho is its
	// AR(1) coefficient per 30 s, where 0 means independent noise.
	Sigma, Rho float64
	// Leak starts at LeakStart in dimension LeakDim and continues until
	// LeakEnd, or until the process ends if LeakEnd is 0. If LeakLump > 0, the
	// leak comes in lumps of that size at random times (Poisson).
	Leak, LeakStart, LeakEnd, LeakLump float64
	LeakDim                            Dim
	// Walk is the standard deviation of a random walk after one hour, in MB.
	Walk float64
	// Warm is the size of a warm-up in MB, with time constant WarmTau.
	Warm, WarmTau float64
	// Wave is the peak-to-peak size of a load with period WavePeriod. If Square
	// is set, the load is a square wave; otherwise, it is a sine wave.
	Wave, WavePeriod float64
	Square           bool
	// Steps are rises that happen once; a step with a negative time happens at
	// a random time of the run.
	Steps []Jump
	// Saw is the amplitude of a garbage collector's sawtooth with mean period
	// SawPeriod.
	Saw, SawPeriod float64
	// Tooth is memory that grows linearly at the beginning of each ToothPeriod
	// and is released at the end of the period. ToothRise is the fraction of
	// the period in which the memory grows, from 0 to 1. The phase is random,
	// except that it is 0 for a period of an hour.
	Tooth, ToothPeriod, ToothRise float64
	// Cache is the size of a cache that fills linearly within CacheTime.
	Cache, CacheTime float64
	// Peak is additional memory that is present during the last PeakTime
	// minutes of every PeakEvery minutes.
	Peak, PeakTime, PeakEvery float64
	// Trimmed is the rate at which the kernel drops clean pages of Code, so
	// that the total falls. Code starts higher by the amount that will be
	// dropped, so that it ends at its usual level.
	Trimmed float64
	// Level is constant memory in addition to the base, in MB.
	Level float64
	// Restarts are the times at which the process dies and restarts; Gaps are
	// the spans in which it is not watched. Both lists are sorted by time.
	Restarts []float64
	Gaps     []Gap
	// Dies is the cause of all deaths; WorkEnd is the minute at which the
	// workload ends, or 0 if it does not end.
	Dies    detector.Cause
	WorkEnd float64
}

// Jump is a rise in MB at a given minute.
type Jump struct{ At, MB float64 }

// Gap is a span, in minutes, in which the process is not watched.
type Gap struct{ From, To float64 }

// Path is one simulated process: MB per dimension at each point of the grid.
type Path struct {
	Dims     [NumDims][]float64
	Scenario *Scenario
}

// Len returns the number of points.
func (p *Path) Len() int { return len(p.Dims[0]) }

// minuteOf returns the minute of a point of the grid.
func minuteOf(i int) float64 { return float64(i) * Grid.Minutes() }

// Simulate simulates one process of the scenario. The same random numbers
// produce the same process.
func (s *Scenario) Simulate(r *rand.Rand) *Path {
	m := maker{s: s, r: r, p: &Path{Scenario: s}}
	n := int(s.Hours*3600/Grid.Seconds()) + 1
	all := make([]float64, n*int(NumDims+1))
	m.age, all = all[:n:n], all[n:]
	for d := range m.p.Dims {
		m.p.Dims[d], all = all[:n:n], all[n:]
	}
	m.grow()
	for d := range NumDims {
		m.noise(d)
	}
	m.leak()
	m.walk()
	m.loads()
	m.steps()
	m.saw()
	return m.p
}

// maker is a path under construction.
type maker struct {
	s *Scenario
	r *rand.Rand
	p *Path
	// age is the age of the process in minutes at each point.
	age []float64
}

func (m *maker) grow() {
	born, next := 0.0, m.s.Restarts
	for i := range m.age {
		for len(next) > 0 && minuteOf(i) >= next[0] {
			born, next = next[0], next[1:]
		}
		m.age[i] = minuteOf(i) - born
	}
}

// newborn reports whether a point is the first one after a restart of the
// process.
func (m *maker) newborn(i int) bool { return i > 0 && m.age[i] < m.age[i-1] }

func (m *maker) noise(d Dim) {
	rho, sd := math.Sqrt(m.s.Rho), m.s.Sigma*share[d]
	fresh := sd * math.Sqrt(1-rho*rho)
	out := m.p.Dims[d]
	e := sd * m.r.NormFloat64()
	for i := range out {
		if i > 0 {
			e = rho*e + fresh*m.r.NormFloat64()
		}
		out[i] = base[d] + e
	}
}

// add adds to a dimension an amount that depends on the age of the process.
func (m *maker) add(d Dim, f func(age float64) float64) {
	for i, age := range m.age {
		m.p.Dims[d][i] += f(age)
	}
}

func (m *maker) leak() {
	s := m.s
	if s.Leak == 0 {
		return
	}
	end := s.LeakEnd
	if end == 0 {
		end = math.Inf(1)
	}
	if s.LeakLump == 0 {
		m.add(s.LeakDim, func(age float64) float64 {
			return s.Leak / 60 * max(0, min(age, end)-s.LeakStart)
		})
		return
	}
	level, chance := 0.0, s.Leak*Grid.Hours()/s.LeakLump
	for i, age := range m.age {
		if m.newborn(i) {
			level = 0
		}
		if age >= s.LeakStart && age < end && m.r.Float64() < chance {
			level += s.LeakLump
		}
		m.p.Dims[s.LeakDim][i] += level
	}
}

func (m *maker) walk() {
	if m.s.Walk == 0 {
		return
	}
	level, step := 0.0, m.s.Walk*math.Sqrt(Grid.Hours())
	for i := range m.age {
		if m.newborn(i) {
			level = 0
		}
		m.p.Dims[Java][i] += level
		level += step * m.r.NormFloat64()
	}
}

func (m *maker) loads() {
	s := m.s
	if s.Warm > 0 {
		warm := func(age float64) float64 { return s.Warm * (1 - math.Exp(-age/s.WarmTau)) }
		m.add(Java, func(age float64) float64 { return 0.6 * warm(age) })
		m.add(Native, func(age float64) float64 { return 0.4 * warm(age) })
	}
	if s.Wave > 0 {
		phase, java := m.r.Float64(), m.p.Dims[Java]
		for i := range java {
			java[i] += s.wave(math.Sin(2 * math.Pi * (minuteOf(i)/s.WavePeriod + phase)))
		}
	}
	if s.Cache > 0 {
		m.add(Native, func(age float64) float64 { return s.Cache * min(1, age/s.CacheTime) })
	}
	if s.Peak > 0 {
		java := m.p.Dims[Java]
		for i := range java {
			if math.Mod(minuteOf(i), s.PeakEvery) >= s.PeakEvery-s.PeakTime {
				java[i] += s.Peak
			}
		}
	}
	if s.Tooth > 0 {
		phase := 0.0
		if s.ToothPeriod != 60 {
			phase = m.r.Float64()
		}
		for i := range m.age {
			_, part := math.Modf(minuteOf(i)/s.ToothPeriod + phase)
			m.p.Dims[Java][i] += s.Tooth * min(1, part/s.ToothRise)
		}
	}
	if s.Level > 0 {
		m.add(Native, func(float64) float64 { return s.Level })
	}
	if s.Trimmed > 0 {
		m.add(Code, func(age float64) float64 { return s.Trimmed * (s.Hours - age/60) })
	}
}

func (s *Scenario) wave(x float64) float64 {
	switch {
	case !s.Square:
		return s.Wave / 2 * (1 + x)
	case x > 0:
		return s.Wave
	}
	return 0
}

func (m *maker) steps() {
	java := m.p.Dims[Java]
	for _, step := range m.s.Steps {
		at := step.At
		if at < 0 {
			at = m.r.Float64() * m.s.Hours * 60
		}
		for i := range java {
			// A process that started after the step is not affected by it.
			if minute := minuteOf(i); minute >= at && minute-m.age[i] <= at {
				java[i] += step.MB
			}
		}
	}
}

func (m *maker) saw() {
	s := m.s
	if s.Saw == 0 {
		return
	}
	level := m.r.Float64() * s.Saw
	limit := s.Saw * (0.8 + 0.4*m.r.Float64())
	up := s.Saw / s.SawPeriod * Grid.Minutes()
	for i := range m.age {
		if m.newborn(i) {
			level = 0
		}
		m.p.Dims[Java][i] += level
		level += up * (0.5 + m.r.Float64())
		if level > limit {
			level = s.Saw * 0.1 * m.r.Float64()
			limit = s.Saw * (0.8 + 0.4*m.r.Float64())
		}
	}
}
