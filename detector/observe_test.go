package detector_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// observed are the processes that BenchmarkObserve watches. For the slowest of
// them, the limit is 2 µs per reading and no allocation.
var observed = []scenario.Scenario{
	{Name: "flat", Hours: 8, Sigma: 20, Rho: 0.7},
	{Name: "flat, loud", Hours: 8, Sigma: 50, Rho: 0.9},
	{Name: "warm-up", Hours: 8, Sigma: 5, Rho: 0.7, Warm: 200, WarmTau: 60},
	{Name: "leaking", Hours: 8, Sigma: 20, Rho: 0.7, Leak: 100},
	{Name: "leaking slowly", Hours: 8, Sigma: 20, Rho: 0.9, Leak: 20},
}

// BenchmarkObserve adds a sample every 30 s and a breakdown every 90 s. One
// operation is one sample and a third of a breakdown, with the looks that these
// inputs cause for the total and for the six dimensions that have their own
// series.
func BenchmarkObserve(b *testing.B) {
	for _, s := range observed {
		b.Run(s.Name, func(b *testing.B) {
			p := s.Simulate(rand.New(rand.NewPCG(1, 2)))
			var samples []detector.Sample
			var breakdowns []detector.Breakdown
			for i := 0; i < p.Len(); i += 2 {
				samples = append(samples, p.Sample(i))
				breakdowns = append(breakdowns, p.Breakdown(i))
			}
			day := time.Duration(p.Len()+4) * scenario.Grid
			d := detector.New(detector.RobustPolicy())
			var begin time.Duration
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i == len(samples) {
					i, begin = 0, begin+day
					d.Restart(begin)
				}
				v := samples[i]
				v.At += begin
				d.AddSample(v)
				if i%3 == 0 {
					x := breakdowns[i]
					x.At += begin
					d.AddBreakdown(x)
				}
			}
		})
	}
}

// BenchmarkVerdict computes the verdict of a run of 8 h repeatedly.
func BenchmarkVerdict(b *testing.B) {
	for _, s := range observed {
		b.Run(s.Name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			d := detector.New(detector.RobustPolicy())
			scenario.Play(s.Simulate(r), d, scenario.Conditions{}, r.Float64)
			b.ReportAllocs()
			for b.Loop() {
				d.Verdict()
			}
		})
	}
}
