package androidsim

import (
	"math"
	"time"
)

// Dimension is one part of the memory of a process. The models add up in each
// dimension; a negative sum counts as zero.
type Dimension uint8

// The dimensions. EGL and GL are driver memory outside smaps (EGL mtrack, GL
// mtrack); GfxDev is driver memory inside smaps (/dev/kgsl-3d0). Shared is the
// memory that the process shares with others: "System" in the App Summary
// without swap.
const (
	JavaHeap Dimension = iota
	NativeHeap
	Code
	Stack
	EGL
	GL
	GfxDev
	Other
	Shared
	numDimensions
)

// Kind is the resource that a Leak consumes, such as Java memory or threads.
type Kind uint8

// The kinds of leaks.
const (
	Java Kind = iota
	Native
	GPU
	Thread
)

// Model is one component of the memory of a process. The models of a process
// add up. The time of a model counts from the start of the process and does not
// pass while the process is frozen.
type Model struct {
	add     func(*levels, moment)
	crashAt time.Duration
	downFor time.Duration
	crashes bool
}

// moment is the point in a life at which a model is evaluated.
type moment struct {
	age time.Duration
	// gc is the age at the last forced garbage collection, or negative if there
	// was none.
	gc time.Duration
	// stream is the model's own source of random numbers.
	stream uint64
}

// levels is the sum of the models of a process; memory is in MB of 1024*1024
// bytes.
type levels struct {
	mb      [numDimensions]float64
	threads int
	// swapped is the fraction of the anonymous memory that is swapped to zram.
	swapped float64
	// leaked is the Java memory held by leaks, in the form of Activities.
	leaked float64
	// files is the number of open file descriptors; reserved is untouched
	// address space in MB.
	files    int
	reserved float64
}

// On returns a copy of the model that adds all of its memory to one dimension.
func (m Model) On(d Dimension) Model {
	inner := m.add
	if inner == nil {
		return m
	}
	m.add = func(l *levels, at moment) {
		var own levels
		inner(&own, at)
		for _, mb := range own.mb {
			l.mb[d] += mb
		}
		l.threads += own.threads
		l.swapped = math.Max(l.swapped, own.swapped)
		l.leaked += own.leaked
		l.files += own.files
		l.reserved += own.reserved
	}
	return m
}

func curve(d Dimension, mb func(moment) float64) Model {
	return Model{add: func(l *levels, at moment) { l.mb[d] += mb(at) }}
}

// Typical returns the steady memory of a small app with a window: 238 MB, 34 MB
// of which is driver memory outside smaps, and 28 threads.
func Typical() Model {
	return Model{add: func(l *levels, _ moment) {
		for d, mb := range [numDimensions]float64{
			JavaHeap: 48, NativeHeap: 60, Code: 44, Stack: 2, EGL: 30, GL: 4, GfxDev: 2, Other: 28, Shared: 20,
		} {
			l.mb[d] += mb
		}
	}}
}

// Steady adds a constant amount.
func Steady(d Dimension, mb float64) Model {
	return curve(d, func(moment) float64 { return mb })
}

// WarmUp approaches mb MB with the time constant tau: 60 % Java, 40 % native.
func WarmUp(mb float64, tau time.Duration) Model {
	return Model{add: func(l *levels, at moment) {
		x := mb * (1 - math.Exp(-float64(at.age)/float64(max(tau, 1))))
		l.mb[JavaHeap] += 0.6 * x
		l.mb[NativeHeap] += 0.4 * x
	}}
}

// GCSawtooth fills the Java heap and collects it: each ramp is about amplitude
// MB high and about period long. The height varies by 20 %, and the time of the
// collection by 30 % of the period. SIGUSR1 ends a ramp early.
func GCSawtooth(amplitude float64, period time.Duration) Model {
	p := float64(max(period, time.Millisecond))
	// bound returns the start of ramp k; the jitter never changes the order of
	// the ramps.
	bound := func(stream uint64, k int64) float64 {
		return (float64(k) + 0.6*(uniform(stream, 3*k)-0.5)) * p
	}
	return curve(JavaHeap, func(at moment) float64 {
		t := float64(at.age) + uniform(at.stream, -1)*p
		k := int64(math.Floor(t/p)) + 1
		for bound(at.stream, k) > t {
			k--
		}
		begin, end := bound(at.stream, k), bound(at.stream, k+1)
		floor := 0.1 * amplitude * uniform(at.stream, 3*k+1)
		height := amplitude * (0.8 + 0.4*uniform(at.stream, 3*k+2))
		since := t - begin
		if at.gc >= 0 {
			since = math.Min(since, float64(at.age-at.gc))
		}
		return floor + (height-floor)*since/(end-begin)
	})
}

// Periodic adds a sine of the given peak-to-peak amplitude to the Java heap.
func Periodic(amplitude float64, period time.Duration) Model {
	return curve(JavaHeap, func(at moment) float64 {
		turns := float64(at.age)/float64(max(period, 1)) + uniform(at.stream, 0)
		return amplitude / 2 * (1 + math.Sin(2*math.Pi*turns))
	})
}

// Peaks simulates a user who opens many large pages: once in each period, at a
// random time, it adds mb MB to the Java heap; every is the length of a period,
// and lasting is how long the memory is held.
func Peaks(mb float64, lasting, every time.Duration) Model {
	length, room := float64(lasting), float64(max(every, 1))
	return curve(JavaHeap, func(at moment) float64 {
		k := math.Floor(float64(at.age) / room)
		begin := k*room + uniform(at.stream, int64(k))*math.Max(0, room-length)
		if since := float64(at.age) - begin; since < 0 || since >= length {
			return 0
		}
		return mb
	})
}

// Step adds mb MB to the Java heap when the age reaches at.
func Step(at time.Duration, mb float64) Model {
	return curve(JavaHeap, func(now moment) float64 {
		if now.age < at {
			return 0
		}
		return mb
	})
}

// CacheFill grows linearly to mb MB of native memory over the given time and
// then stays constant.
func CacheFill(mb float64, over time.Duration) Model {
	return curve(NativeHeap, func(at moment) float64 {
		return mb * math.Min(1, float64(at.age)/float64(max(over, 1)))
	})
}

// mbPerThread is the touched part of a leaked thread's stack, in MB.
const mbPerThread = 0.1

// Leak grows by mbPerHour MB per hour once the age exceeds onset. GPU leaks
// grow outside smaps (EGL); On(GfxDev) moves them into smaps. Thread leaks grow
// in whole threads, each with 0.1 MB of stack.
func Leak(kind Kind, mbPerHour float64, onset time.Duration) Model {
	grown := func(at moment) float64 {
		return mbPerHour * math.Max(0, (at.age-onset).Hours())
	}
	switch kind {
	case Native:
		return curve(NativeHeap, grown)
	case GPU:
		return curve(EGL, grown)
	case Thread:
		return Model{add: func(l *levels, at moment) {
			n := math.Floor(grown(at) / mbPerThread)
			l.threads += int(math.Min(n, maxThreads))
			l.mb[Stack] += n * mbPerThread
		}}
	}
	return Model{add: func(l *levels, at moment) {
		l.mb[JavaHeap] += grown(at)
		l.leaked += grown(at)
	}}
}

// LeakFiles opens perHour file descriptors per hour, once the age exceeds
// onset, and never closes them. The leak stops at the limit in
// /proc/PID/limits.
func LeakFiles(perHour float64, onset time.Duration) Model {
	return Model{add: func(l *levels, at moment) {
		l.files += int(math.Min(perHour*math.Max(0, (at.age-onset).Hours()), maxFDs))
	}}
}

// LeakAddresses maps mbPerHour MB per hour once the age exceeds onset, without
// touching the pages: VmSize grows, but the memory in use does not. The leak
// stops at the limit of the address space.
func LeakAddresses(mbPerHour float64, onset time.Duration) Model {
	return Model{add: func(l *levels, at moment) {
		l.reserved += mbPerHour * math.Max(0, (at.age-onset).Hours())
	}}
}

// noiseShares distributes noise over the dimensions inside smaps; the squares
// of the shares add up to one.
var noiseShares = normalized([numDimensions]float64{JavaHeap: 0.72, NativeHeap: 0.6, Other: 0.32, Shared: 0.13})

func normalized(shares [numDimensions]float64) [numDimensions]float64 {
	sum := 0.0
	for _, s := range shares {
		sum += s * s
	}
	for d := range shares {
		shares[d] /= math.Sqrt(sum)
	}
	return shares
}

// Noise adds a stationary AR(1) process with standard deviation sigmaMB to the
// memory inside smaps; rho is the correlation of two values 30 s apart. Each
// value of the noise lasts 15 s.
func Noise(sigmaMB, rho float64) Model {
	series := newAutoregression(rho)
	return Model{add: func(l *levels, at moment) {
		i := int64(at.age / noiseGrid)
		for d, share := range noiseShares {
			if share > 0 {
				l.mb[d] += sigmaMB * share * series.at(mix(at.stream, uint64(d)), i)
			}
		}
	}}
}

// Swap moves a fraction of the anonymous memory to zram, linearly over the
// given time, once the age exceeds at: Pss falls, SwapPss grows, and their sum
// does not change. If a process has several Swap models, the largest fraction
// applies.
func Swap(fraction float64, at, over time.Duration) Model {
	return Model{add: func(l *levels, now moment) {
		ramp := math.Min(1, math.Max(0, float64(now.age-at)/float64(max(over, 1))))
		l.swapped = math.Max(l.swapped, math.Min(1, fraction)*ramp)
	}}
}

// Crash ends the process once, when its first life since boot reaches the age
// at, and restarts it downFor later; if downFor is zero, it stays down.
func Crash(at, downFor time.Duration) Model {
	return Model{crashAt: at, downFor: downFor, crashes: true}
}

// evaluate adds up the models of a process at the given age in one of its
// lives.
func evaluate(models []Model, stream uint64, age, gc time.Duration) levels {
	var l levels
	for i, m := range models {
		if m.add != nil {
			m.add(&l, moment{age: age, gc: gc, stream: mix(stream, uint64(i))})
		}
	}
	for d, mb := range l.mb {
		// This comparison is also false for NaN.
		if !(mb > 0) {
			l.mb[d] = 0
		}
		l.mb[d] = math.Min(l.mb[d], maxMB)
	}
	if !(l.reserved > 0) {
		l.reserved = 0
	}
	l.files, l.reserved = max(l.files, 0), math.Min(l.reserved, maxMB)
	return l
}

// maxMB is 1 TB, which keeps the numbers of kB and pages in range, whatever a
// model returns.
const maxMB = 1 << 20
