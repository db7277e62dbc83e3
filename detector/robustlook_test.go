package detector

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// playSlopes lets a machine watch a process with random noise that rises at a
// random rate until a random time and then rises or falls at another random
// rate. It calls show with the machine every five minutes.
func playSlopes(r *rand.Rand, show func(*robustMachine)) {
	m := newRobustMachine(RobustPolicy())
	length := time.Duration(70+r.IntN(240)) * time.Minute
	turn := time.Duration(r.Float64() * 1.2 * float64(length))
	rate, after := 20+1000*r.Float64(), 200*r.Float64()-150
	rho, sigma, noise := 0.95*math.Pow(r.Float64(), 4), math.Exp(6*r.Float64()-2), 0.0
	for at := time.Duration(0); at <= length; at += 30 * time.Second {
		noise = rho*noise + math.Sqrt(1-rho*rho)*sigma*r.NormFloat64()
		level := 300 + rate*min(at, turn).Hours() + after*max(0, at-turn).Hours() + noise
		m.addSample(Sample{At: at, Bytes: int64(max(level, 1) * MB)})
		if at%(5*time.Minute) == 0 {
			show(m)
		}
	}
}

// plainMedian returns the middle of sorted values, or the mean of the two in
// the middle.
func plainMedian(y []float64) float64 {
	y = slices.Sorted(slices.Values(y))
	return (y[(len(y)-1)/2] + y[len(y)/2]) / 2
}

// For each window that grows and is not noise, the growth is that of the line
// over all its blocks, even if the noise is taken from the windows before it.
// The end of the window counts as rising only if the last quarter is above the
// quarter before it, and the rise is at least half of that of the line.
func TestLookAt(t *testing.T) {
	ends, alone, short := 0, 0, 0
	for seed := range uint64(300) {
		playSlopes(rand.New(rand.NewPCG(seed, 17)), func(m *robustMachine) {
			for i := range lookWindows {
				w := &lookWindows[i]
				slots := w.minutes * int(time.Minute/slotTime)
				if slots > m.axis.closed {
					break
				}
				got, passed := m.lookAt(m.tracks[totalTrack], 0, nil, w, slots)
				if passed < 2 || got.reason == noise {
					continue
				}
				if line := got.drift.Slope * float64(got.blocks); got.growth < got.need ||
					math.Abs(got.growth-line) > 1e-9*line {
					t.Errorf("seed %d, %d min: growth %g, growth of the line %g, need %g", seed, w.minutes, got.growth,
						line,
						got.need)
				}
				if got.drift.T() < m.student.look[got.blocks] {
					t.Errorf("seed %d, %d min: t %g", seed, w.minutes, got.drift.T())
				}
				below, little := endOf(t, m, w, slots, got.growth)
				if fell := got.reason == fallsBack; fell != (below || little) {
					t.Errorf("seed %d, %d min: %s; last quarter not above the one before: %v, growth less than half "+
						"that of the line: %v", seed,
						w.minutes, reasonTexts[got.reason], below, little)
				}
				if got.reason != fallsBack {
					ends++
				} else if below != little {
					alone++
				}
				if w.minutes <= pooledMinutes {
					short++
				}
			}
		})
	}
	if ends < 100 || alone < 20 || short < 100 {
		t.Errorf("too few cases: %d windows end high, %d are rejected by only one rule, %d are short", ends, alone,
			short)
	}
}

// endOf reports whether the last quarter of a window is not above the quarter
// before it, and whether it is above the first quarter by less than half of the
// growth.
func endOf(t *testing.T, m *robustMachine, w *lookWindow, slots int, growth float64) (below, little bool) {
	t.Helper()
	var scratch [maxLevels]float64
	at, n := m.ending(slots, w.blocks, false)
	y, ok := m.tracks[totalTrack].levels(scratch[:], at, n)
	if !ok {
		t.Fatalf("%d min: levels are missing", w.minutes)
	}
	q := n / 4
	last := plainMedian(y[n-q:])
	return last <= plainMedian(y[n-2*q:n-q]), last-plainMedian(y[:q]) < growth/2
}
