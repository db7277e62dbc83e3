package detector

import (
	"math"

	"github.com/leakgate/leakgate/detector/trend"
)

// How slow a leak would this series have shown? The article's rule is a chain, and each
// link has a power for independent noise of standard deviation s:
//
//	trend    R2 > r is t > sqrt(r/(1-r)*(n-2)); for even samples of spacing h the slope b
//	         has t about b*sqrt(Sxx)/s with Sxx = h^2*n*(n^2-1)/12. For r = 0.6 that is
//	         b > sqrt(1.5)*sqrt(12)*s/T = 4.24*s/T over the window T, with even chances.
//	floors   the P25 of a segment of m samples has the standard deviation
//	         sqrt(0.25*0.75/m)/phi(z25) * s, and all floors must be in order.
//	growth   b*time plus the noise of two samples must exceed MinGrowth, at any of the
//	         looks of CONFIRMING.
//
// A suspicion that the floors refuse comes back after the time-out, on segments of its
// own, so a long run has several attempts.

// minDetectable is the slowest leak, in bytes per second, that comes to LEAKING with 95 %
// in a run of length seconds with samples interval seconds apart and noise sd; 0 where
// it cannot be said: where the reading of the floors or the windows has no such model.
func (a *Article) minDetectable(sd, interval, length float64) float64 {
	if a.FloorsFrom == FloorsFromHistory || a.Windows == WindowsDisjoint || !(interval > 0) {
		return 0
	}
	c := chain{a: a, sd: max(sd, 1), interval: interval, length: length}
	low, high := 0.0, 1.0
	for c.found(high) < confidence {
		low, high = high, high*2
		if high > 1e15 {
			return 0
		}
	}
	for high-low > high*1e-4 {
		if mid := (low + high) / 2; c.found(mid) < confidence {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// chain is one series as the article's rule sees it: sd in bytes, times in seconds.
type chain struct {
	a                    *Article
	sd, interval, length float64
}

// found is the probability that a leak of slope bytes per second is LEAKING in time.
func (c chain) found(slope float64) float64 {
	n, ok := c.entry(slope)
	if !ok {
		return 0
	}
	left := c.length - float64(n-1)*c.interval - c.a.stages().Seconds()
	if left < 0 {
		return 0
	}
	once := c.floors(slope) * c.growth(slope)
	attempts := 1 + math.Floor(left/c.cycle(slope))
	return 1 - math.Pow(1-once, attempts)
}

// entry is the number of points with which the trend is found with 95 %. More points at
// the same spacing always show it better.
func (c chain) entry(slope float64) (n int, ok bool) {
	low, high := c.a.firstPoints(), c.a.HighWindow
	if c.a.Windows == WindowsLast {
		high = min(high, int(tenMinutes.Seconds()/c.interval)+1)
	}
	if low > high || c.trend(slope, high) < confidence {
		return 0, false
	}
	for low < high {
		mid := (low + high) / 2
		if c.trend(slope, mid) >= confidence {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return high, true
}

// trend is the power of one look at n points: that of a noncentral t, by the normal
// approximation of Johnson and Welch (1940).
func (c chain) trend(slope float64, n int) float64 {
	df := float64(n - 2)
	need := max(c.a.TMin, math.Sqrt(c.a.R2Min/(1-c.a.R2Min)*df))
	sxx := c.interval * c.interval * float64(n) * (float64(n)*float64(n) - 1) / 12
	shown := slope * math.Sqrt(sxx) / c.sd
	return trend.NormalCDF((shown - need*(1-1/(4*df))) / math.Sqrt(1+need*need/(2*df)))
}

// cycle is the time from one suspicion to the next. During one the window fills with
// fast samples and gets shorter. A leak too slow for that waits, at the pace at which
// slow samples push the fast ones out, until its trend has even chances again.
func (c chain) cycle(slope float64) float64 {
	stay := c.a.SuspiciousMax.Seconds() + float64(c.a.Consecutive)*c.interval
	fast := c.a.SuspiciousInterval.Seconds()
	if c.a.Windows == WindowsLast || fast >= c.interval {
		return stay
	}
	n := float64(c.a.HighWindow)
	need := max(c.a.TMin, math.Sqrt(c.a.R2Min/(1-c.a.R2Min)*(n-2)))
	span := need * c.sd * math.Sqrt(12/n) / slope
	return stay + max(0, span-n*fast)/(1-fast/c.interval)
}

// floors is the probability that the floors of all segments are in order.
func (c chain) floors(slope float64) float64 {
	const z25, step, half = 0.6744897501960817, 0.05, 120
	density := math.Exp(-z25*z25/2) / math.Sqrt(2*math.Pi)
	samples := max(1, c.a.Segment.Seconds()/c.a.SuspiciousInterval.Seconds())
	sd := c.sd * math.Sqrt(0.25*0.75/samples) / density
	rise := slope * c.a.Segment.Seconds() / sd
	if rise > 2*half*step {
		return 1
	}

	// below[i] is the probability that the floors so far are in order and the last one
	// is less than x[i] above its own expectation.
	var below [2*half + 1]float64
	for i := range below {
		below[i] = trend.NormalCDF(float64(i-half) * step)
	}
	at := func(x float64) float64 {
		p := x/step + half
		i := int(math.Floor(p))
		switch {
		case i < 0:
			return 0
		case i >= 2*half:
			return below[2*half]
		}
		return below[i] + (p-float64(i))*(below[i+1]-below[i])
	}
	for range c.a.MinSegments - 1 {
		var next [2*half + 1]float64
		for i := 1; i < len(next); i++ {
			left, right := float64(i-1-half)*step, float64(i-half)*step
			weight := trend.NormalCDF(right) - trend.NormalCDF(left)
			next[i] = next[i-1] + weight*at((left+right)/2+rise)
		}
		below = next
	}
	return below[2*half]
}

// growth is the probability that one of the looks of CONFIRMING sees MinGrowth.
func (c chain) growth(slope float64) float64 {
	missing := (float64(c.a.MinGrowth) - slope*c.a.stages().Seconds()) / c.sd
	left := c.a.ConfirmingMax.Seconds() - c.a.stages().Seconds() + float64(c.a.MinSegments)*c.a.Segment.Seconds()
	looks := max(1, math.Floor(left/c.a.ConfirmingInterval.Seconds()))
	const step = 0.1
	var p float64
	for z := -6.0; z < 6; z += step {
		mid := z + step/2
		weight := trend.NormalCDF(z+step) - trend.NormalCDF(z)
		p += weight * (1 - math.Pow(trend.NormalCDF(missing+mid), looks))
	}
	return p
}
