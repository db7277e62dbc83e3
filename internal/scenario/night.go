package scenario

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/leakgate/leakgate/detector"
)

// Night is a kind of 8-hour run with events: restarts, the end of the workload,
// a trim, gaps. Each run is drawn at random.
type Night struct {
	Name    string
	Watched Conditions
	// Leaks reports whether the process leaks 20 MB/h or more.
	Leaks bool
	Draw  func(r *rand.Rand) Scenario
}

// between returns a random number, uniformly distributed in a range.
func between(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

// Plain returns a process that has warmed up and has only correlated noise.
func Plain(*rand.Rand) Scenario {
	return Scenario{Hours: 8, Sigma: 10, Rho: 0.7, Level: 400}
}

// App returns a typical app: a warm-up, a collector's sawtooth, correlated
// noise.
func App(r *rand.Rand) Scenario {
	return Scenario{
		Hours: 8, Sigma: between(r, 5, 15), Rho: between(r, 0.7, 0.9), Level: 400,
		Warm: between(r, 60, 160), WarmTau: between(r, 3, 15),
		Saw: between(r, 20, 60), SawPeriod: between(r, 2, 12),
	}
}

// each returns the times of an event that occurs every so many minutes until
// the end of a run.
func (s Scenario) each(minutes float64) []float64 {
	var out []float64
	for m := minutes; m < s.Hours*60; m += minutes {
		out = append(out, m)
	}
	return out
}

// restartTimes returns the times at which a process dies and restarts because
// its memory reaches a limit in MB. The limit varies randomly with a standard
// deviation of 2 %.
func (s Scenario) restartTimes(limit float64, r *rand.Rand) []float64 {
	var out []float64
	for born := 0.0; born < s.Hours*60; {
		high, age := limit*(1+0.02*r.NormFloat64()), 0.0
		for ; born+age < s.Hours*60; age += Grid.Minutes() {
			if 260+s.Level+s.Leak/60*age+s.Warm*(1-math.Exp(-age/s.WarmTau))+s.Saw/2 >= high {
				break
			}
		}
		born += max(1, age)
		out = append(out, born)
	}
	return out[:len(out)-1]
}

// with returns a function that draws a base scenario and applies a change to
// it.
func with(base func(*rand.Rand) Scenario, change func(s *Scenario, r *rand.Rand)) func(*rand.Rand) Scenario {
	return func(r *rand.Rand) Scenario {
		s := base(r)
		change(&s, r)
		return s
	}
}

// Nights returns all kinds of nights.
func Nights() []Night {
	watched := Conditions{Processes: 3}
	var out []Night
	add := func(name string, leaks bool, base func(*rand.Rand) Scenario,
		change func(s *Scenario, r *rand.Rand)) *Night {
		out = append(out, Night{Name: name, Watched: watched, Leaks: leaks, Draw: with(base, change)})
		return &out[len(out)-1]
	}
	restarts := func(minutes, leak float64) func(*Scenario, *rand.Rand) {
		return func(s *Scenario, _ *rand.Rand) { s.Leak, s.Restarts, s.Dies = leak, s.each(minutes), detector.Crash }
	}
	for _, rate := range []float64{600, 1200} {
		add(fmt.Sprintf("OOM at 512 MB, app, %g MB/h", rate), true, App, func(s *Scenario, r *rand.Rand) {
			s.Level, s.Leak, s.Dies = 0, rate, detector.OutOfMemory
			s.Restarts = s.restartTimes(512, r)
		})
	}
	for _, rate := range []float64{0, 300} {
		add(fmt.Sprintf("plain, %g MB/h, restart every 10 min", rate), rate > 0, Plain, restarts(10, rate))
	}
	for _, rate := range []float64{0, 100} {
		add(fmt.Sprintf("plain, %g MB/h, restart every 25 min", rate), rate > 0, Plain, restarts(25, rate))
	}
	for _, minutes := range []float64{10, 25, 60} {
		for _, rate := range []float64{0, 100, 300} {
			add(fmt.Sprintf("app, %g MB/h, restart every %g min", rate, minutes), rate > 0, App,
				restarts(minutes, rate))
		}
	}
	for _, rate := range []float64{0, 300} {
		add(fmt.Sprintf("app, %g MB/h, workload ends 40 min early", rate), rate > 0, App,
			func(s *Scenario, _ *rand.Rand) {
				s.Leak, s.LeakEnd, s.WorkEnd = rate, 440, 440
			})
		add(fmt.Sprintf("app, %g MB/h, workload ends 40 min early, unknown", rate), rate > 0, App,
			func(s *Scenario, _ *rand.Rand) {
				s.Leak, s.LeakEnd = rate, 440
			})
		for _, last := range []float64{20, 40} {
			add(fmt.Sprintf("app, %g MB/h, in the background (-200 MB) for the last %g min", rate, last), rate > 0, App,
				func(s *Scenario, _ *rand.Rand) {
					s.Leak, s.LeakEnd, s.Steps = rate, 480-last, []Jump{{480 - last, -200}}
				})
		}
	}
	add("80 MB lumps, one per hour", true, Plain, func(s *Scenario, _ *rand.Rand) { s.Leak, s.LeakLump = 80, 80 })
	add("80 MB lumps, one every 2 h", true, Plain, func(s *Scenario, _ *rand.Rand) { s.Leak, s.LeakLump = 40, 80 })
	add("40 MB lumps, one per hour", true, Plain, func(s *Scenario, _ *rand.Rand) { s.Leak, s.LeakLump = 40, 40 })
	for i, name := range []string{"1 step", "2 steps", "3 steps"} {
		n := i + 1
		add(name+" of 40 to 80 MB at any time", false, Plain, func(s *Scenario, r *rand.Rand) {
			for range n {
				s.Steps = append(s.Steps, Jump{-1, between(r, 40, 80)})
			}
		})
	}
	for _, rate := range []float64{0, 50} {
		add(fmt.Sprintf("app, %g MB/h, one trim of 300 MB", rate), rate > 0, App, func(s *Scenario, r *rand.Rand) {
			s.Leak, s.Steps = rate, []Jump{{between(r, 60, 420), -300}}
		})
		rate := rate * 2
		add(fmt.Sprintf("plain, %g MB/h of ashmem, source status", rate), rate > 0, Plain,
			func(s *Scenario, _ *rand.Rand) {
				s.Leak, s.LeakDim = rate, Other
			}).Watched.Anonymous = true
		for _, minutes := range []float64{28, 35} {
			add(fmt.Sprintf("app, %g MB/h, gaps of %g min every hour", rate, minutes), rate > 0, App,
				func(s *Scenario, _ *rand.Rand) {
					s.Leak = rate
					for m := 20.0; m < 480; m += 60 {
						s.Gaps = append(s.Gaps, Gap{m, m + minutes})
					}
				})
		}
	}
	add("app, 100 MB/h until a limit after 4 to 6.5 h", true, App,
		func(s *Scenario, r *rand.Rand) { s.Leak, s.LeakEnd = 100, between(r, 240, 390) })
	add("app, 0 MB/h", false, App, func(*Scenario, *rand.Rand) {})
	add("app, 20 MB/h", true, App, func(s *Scenario, _ *rand.Rand) { s.Leak = 20 })
	add("app, 50 MB/h starting at 4 h", true, App, func(s *Scenario, _ *rand.Rand) { s.Leak, s.LeakStart = 50, 240 })
	add("teeth of 200 to 300 MB, every 60 to 120 min", false, Plain, func(s *Scenario, r *rand.Rand) {
		s.Tooth, s.ToothPeriod, s.ToothRise = between(r, 200, 300), between(r, 60, 120), 1
	})
	add("refill of 60 to 150 MB, trimmed every hour", false, Plain, func(s *Scenario, r *rand.Rand) {
		s.Tooth, s.ToothPeriod, s.ToothRise = between(r, 60, 150), 60, between(r, 0.3, 1)
	})
	return out
}

// Bases returns kinds of apps, each of which is run twice so that the runs can
// be compared: growth that occurs in both runs is not a difference.
func Bases(hours float64) []Scenario {
	noisy := func(s Scenario) Scenario {
		if s.Sigma == 0 {
			s.Sigma, s.Rho = 5, 0.7
		}
		s.Hours, s.Level = hours, 400
		return s
	}
	list := []Scenario{
		{Name: "AR 0.7 s5"}, {Name: "AR 0.7 s10", Sigma: 10, Rho: 0.7}, {Name: "AR 0.7 s20", Sigma: 20, Rho: 0.7},
		{Name: "AR 0.9 s10", Sigma: 10, Rho: 0.9},
		{Name: "warm-up 120 tau 6", Warm: 120, WarmTau: 6}, {Name: "warm-up 120 tau 15", Warm: 120, WarmTau: 15},
		{Name: "warm-up 200 tau 30", Warm: 200, WarmTau: 30}, {Name: "warm-up 150 tau 60", Warm: 150, WarmTau: 60},
		{Name: "cache 100 in 60 min", Cache: 100, CacheTime: 60},
		{Name: "cache 100 in 180 min", Cache: 100, CacheTime: 180},
		{Name: "saw 40 per 4 min", Saw: 40, SawPeriod: 4}, {Name: "saw 60 per 15 min", Saw: 60, SawPeriod: 15},
		{Name: "saw 80 per 40 min", Saw: 80, SawPeriod: 40},
		{Name: "sine 60 per 20 min", Wave: 60, WavePeriod: 20}, {Name: "sine 60 per 60 min", Wave: 60, WavePeriod: 60},
		{Name: "square 80 per 60 min", Wave: 80, WavePeriod: 60, Square: true},
		{Name: "app", Sigma: 10, Rho: 0.8, Warm: 110, WarmTau: 8, Saw: 40, SawPeriod: 6},
		{Name: "step +80 after 30 min", Steps: []Jump{{30, 80}}},
	}
	for i := range list {
		list[i] = noisy(list[i])
	}
	return list
}
