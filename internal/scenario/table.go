package scenario

import "fmt"

// noise returns the name of the noise of a process: "iid s5", "AR 0.7 s20".
func noise(sigma, rho float64) string {
	if rho == 0 {
		return fmt.Sprintf("iid s%g", sigma)
	}
	return fmt.Sprintf("AR %g s%g", rho, sigma)
}

// Noise returns the scenarios of noise alone, with runs of the given number of
// hours.
func Noise(hours float64) []Scenario {
	var out []Scenario
	for _, rho := range []float64{0, 0.7, 0.9, 0.97} {
		for _, sigma := range []float64{5, 20, 50} {
			out = append(out, Scenario{Name: noise(sigma, rho), Hours: hours, Sigma: sigma, Rho: rho})
		}
	}
	return out
}

// Null returns the scenarios without a leak, starting with those of [Noise].
func Null(hours float64) []Scenario {
	out := Noise(hours)
	add := func(s Scenario) {
		s.Hours = hours
		out = append(out, s)
	}
	for _, walk := range []float64{10, 20, 40} {
		add(Scenario{Name: fmt.Sprintf("random walk %g", walk), Sigma: 3, Walk: walk})
	}
	for _, w := range [][2]float64{{150, 5}, {200, 10}, {200, 30}, {200, 60}, {150, 120}} {
		add(Scenario{Name: fmt.Sprintf("warm-up %g tau %g", w[0], w[1]), Sigma: 5, Rho: 0.7, Warm: w[0], WarmTau: w[1]})
	}
	add(Scenario{Name: "warm-up 200 tau 10, AR 0.9 s20", Sigma: 20, Rho: 0.9, Warm: 200, WarmTau: 10})
	for _, w := range [][2]float64{{60, 5}, {60, 20}, {60, 60}, {60, 120}} {
		add(Scenario{Name: fmt.Sprintf("sine %g per %g min", w[0], w[1]), Sigma: 5, Wave: w[0], WavePeriod: w[1]})
	}
	add(Scenario{Name: "square 80 per 60 min", Sigma: 5, Wave: 80, WavePeriod: 60, Square: true})
	add(Scenario{Name: "step +80 at 2 h", Sigma: 5, Steps: []Jump{{120, 80}}})
	add(Scenario{Name: "step +80 at any time, AR 0.7 s20", Sigma: 20, Rho: 0.7, Steps: []Jump{{-1, 80}}})
	add(Scenario{Name: "three steps +40", Sigma: 5, Rho: 0.7, Steps: []Jump{{-1, 40}, {-1, 40}, {-1, 40}}})
	add(Scenario{Name: "step +250 at 2 h", Sigma: 5, Steps: []Jump{{120, 250}}})
	for _, w := range [][2]float64{{40, 3}, {60, 15}, {80, 40}, {80, 90}} {
		add(Scenario{Name: fmt.Sprintf("GC saw %g per %g min", w[0], w[1]), Sigma: 5, Saw: w[0], SawPeriod: w[1]})
	}
	add(Scenario{Name: "cache 100 in 60 min", Sigma: 5, Rho: 0.7, Cache: 100, CacheTime: 60})
	add(Scenario{Name: "cache 100 in 180 min", Sigma: 5, Rho: 0.7, Cache: 100, CacheTime: 180})
	add(Scenario{Name: "realistic", Sigma: 10, Rho: 0.7, Warm: 120, WarmTau: 6, Saw: 40, SawPeriod: 4})
	add(Scenario{
		Name: "realistic 2", Sigma: 15, Rho: 0.9, Warm: 120, WarmTau: 12, Saw: 60, SawPeriod: 15,
		Steps: []Jump{{-1, 40}},
	})
	return out
}

// Leaks returns scenarios with a leak that should be detected: each kind of
// noise with each rate of growth.
func Leaks(start, hours float64) []Scenario {
	var out []Scenario
	for _, sigma := range []float64{5, 20, 50} {
		for _, rho := range []float64{0, 0.7, 0.9} {
			for _, rate := range []float64{600, 300, 100, 50, 20} {
				s := Scenario{
					Name: fmt.Sprintf("%s: %g MB/h", noise(sigma, rho), rate), Hours: hours, Sigma: sigma, Rho: rho,
					Leak: rate, LeakStart: start,
				}
				if start > 0 {
					s.Name += fmt.Sprintf(" from %g min", start)
				}
				out = append(out, s)
			}
		}
	}
	return out
}

// Shapes returns scenarios with and without a leak in which memory does not
// simply grow in a straight line: lumps, loads, collections, warm-ups,
// restarts, gaps, memory that the kernel reclaims.
func Shapes(hours float64) []Scenario {
	var out []Scenario
	add := func(name string, s Scenario) {
		s.Name, s.Hours = name, hours
		out = append(out, s)
	}
	for _, rate := range []float64{300, 100, 50, 20} {
		add(fmt.Sprintf("%g MB/h in lumps of 4, AR 0.7 s10", rate),
			Scenario{Sigma: 10, Rho: 0.7, Leak: rate, LeakLump: 4})
		add(fmt.Sprintf("%g MB/h + sine 60 per 20 min", rate), Scenario{Sigma: 5, Leak: rate, Wave: 60, WavePeriod: 20})
		add(fmt.Sprintf("%g MB/h + GC saw 60 per 15 min, AR 0.7 s10", rate),
			Scenario{Sigma: 10, Rho: 0.7, Leak: rate, Saw: 60, SawPeriod: 15})
	}
	for _, sigma := range []float64{5, 20} {
		for _, rate := range []float64{600, 300, 100, 50, 20} {
			add(fmt.Sprintf("%g MB/h + warm-up 120 tau 6 + GC saw 40 per 4 min, AR 0.7 s%g", rate, sigma),
				Scenario{Sigma: sigma, Rho: 0.7, Leak: rate, Warm: 120, WarmTau: 6, Saw: 40, SawPeriod: 4})
		}
	}
	for _, rate := range []float64{100, 50} {
		add(fmt.Sprintf("%g MB/h + warm-up 200 tau 30", rate),
			Scenario{Sigma: 5, Rho: 0.7, Leak: rate, Warm: 200, WarmTau: 30})
	}
	add("launch 300 tau 2", Scenario{Sigma: 5, Rho: 0.7, Warm: 300, WarmTau: 2})
	add("launch 400 tau 3", Scenario{Sigma: 5, Rho: 0.7, Warm: 400, WarmTau: 3})
	add("peak +150 for 5 of 45 min", Scenario{Sigma: 5, Rho: 0.7, Peak: 150, PeakTime: 5, PeakEvery: 45})
	add("step +250 at any time, AR 0.7 s20", Scenario{Sigma: 20, Rho: 0.7, Steps: []Jump{{-1, 250}}})
	var born []float64
	for m := 90.0; m < hours*60; m += 90 {
		born = append(born, m)
	}
	for _, rate := range []float64{0, 50, 100} {
		leak := "no leak"
		if rate > 0 {
			leak = fmt.Sprintf("%g MB/h", rate)
		}
		add(leak+", restart every 90 min, warm-up 120 tau 6",
			Scenario{Sigma: 5, Rho: 0.7, Leak: rate, Warm: 120, WarmTau: 6, Restarts: born})
		add(leak+", gap of 10 min, AR 0.7 s20", Scenario{Sigma: 20, Rho: 0.7, Leak: rate, Gaps: []Gap{{100, 110}}})
		add(leak+", gap of 60 min, AR 0.7 s20", Scenario{Sigma: 20, Rho: 0.7, Leak: rate, Gaps: []Gap{{100, 160}}})
	}
	add("100 MB/h that ends after 2 h", Scenario{Sigma: 5, Rho: 0.7, Leak: 100, LeakEnd: 120})
	add("no leak, Code falls 80 MB/h", Scenario{Sigma: 5, Rho: 0.7, Trimmed: 80})
	for _, rate := range []float64{100, 50} {
		add(fmt.Sprintf("%g MB/h while Code falls 80 MB/h", rate),
			Scenario{Sigma: 5, Rho: 0.7, Leak: rate, Trimmed: 80})
	}
	return out
}

// Kinds returns, for each level of noise, scenarios in which one dimension
// leaks and a scenario without a leak.
func Kinds(hours float64) []Scenario {
	dims := []struct {
		name string
		dim  Dim
	}{{"java", Java}, {"native", Native}, {"gpu", Graphics}, {"thread", Stack}}
	var out []Scenario
	for _, sigma := range []float64{5, 20} {
		for _, d := range dims {
			for _, rate := range []float64{300, 100} {
				out = append(out, Scenario{Name: fmt.Sprintf("%s %g MB/h, %s", d.name, rate, noise(sigma, 0.7)),
					Hours: hours, Sigma: sigma, Rho: 0.7, Leak: rate, LeakDim: d.dim})
			}
		}
		out = append(out, Scenario{Name: "no leak, " + noise(sigma, 0.7), Hours: hours, Sigma: sigma, Rho: 0.7})
	}
	return out
}
