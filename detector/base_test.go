package detector_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// filling returns a process that leaks at the given rate and whose cache is
// still filling after 2 h.
func filling(leak, hours float64) scenario.Scenario {
	return scenario.Scenario{Hours: hours, Sigma: 5, Rho: 0.7, Cache: 100, CacheTime: 180, Leak: leak}
}

var inLoops = scenario.Conditions{LoopEvery: 8 * time.Minute, Diagnosis: 2 * time.Minute}

// TestCompareTo checks that growth in both builds is not a leak, and that
// growth in the new build alone is one.
func TestCompareTo(t *testing.T) {
	const runs = 20
	pairs := map[string]struct{ base, head scenario.Conditions }{
		"by time":  {asThree, asThree},
		"by loops": {inLoops, inLoops},
		"other sampling": {
			scenario.Conditions{Interval: 15 * time.Second}, scenario.Conditions{Interval: time.Minute, Drop: 0.1},
		},
		"loops in one run": {asThree, inLoops},
	}
	for name, c := range pairs {
		for _, rate := range []float64{0, 50, 100} {
			leaks := 0
			for seed := range uint64(runs) {
				base, _ := watched(filling(0, 2), seed+500, c.base)
				head, _ := watched(filling(rate, 2), seed, c.head)
				v, err := head.CompareTo(base)
				if err != nil {
					t.Fatal(err)
				}
				againstFaults(t, fmt.Sprintf("%s, %g MB/h, seed %d", name, rate, seed), v)
				if loops := strings.HasSuffix(v.Because, "by loops") ||
					strings.Contains(v.Because, "min by loops"); loops != (name == "by loops") {
					t.Errorf("%s: %s", name, v.Because)
				}
				if v.Gate != detector.Leak {
					continue
				}
				leaks++
				if !strings.HasPrefix(v.Because, "grows") {
					continue // a leak that the run proves by itself, with its own rate
				}
				// The shares are those of the head alone, whose cache grows
				// too.
				if math.Abs(v.Rate/detector.MB-rate) > 0.35*rate || v.Kind != detector.Java &&
					v.Kind != detector.Unknown || rate == 100 && v.Kind != detector.Java {
					t.Errorf("%s, %g MB/h, seed %d: %v, %s", name, rate, seed, v.Kind, v.Because)
				}
			}
			if rate == 0 && leaks > 0 || rate > 0 && leaks < runs*9/10 {
				t.Errorf("%s, %g MB/h: leak found in %d of %d runs", name, rate, leaks, runs)
			}
		}
	}
}

func againstFaults(t *testing.T, name string, v detector.Verdict) {
	t.Helper()
	if err := verdictFault(v); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if v.Gate == detector.Settled || !strings.Contains(v.Because, "base run") {
		t.Errorf("%s: %v: %s", name, v.Gate, v.Because)
	}
	if advised := strings.Contains(warningText(v), "a base run to compare with"); advised {
		t.Errorf("%s: compared with a base run, but still recommends one: %v", name, v.Warnings)
	}
}

// TestCompareToShorterSuite checks that loops that occur only in the longer run
// are ignored, both in the growth and in the duration.
func TestCompareToShorterSuite(t *testing.T) {
	for _, hours := range [][2]float64{{6, 6}, {6, 3}, {3, 6}} {
		for seed := range uint64(5) {
			s := scenario.Scenario{Hours: hours[1], Sigma: 5, Rho: 0.7}
			base, _ := watched(s, seed+500, inLoops)
			s.Hours, s.Leak = hours[0], 100
			head, _ := watched(s, seed, inLoops)
			v, err := head.CompareTo(base)
			if err != nil || v.Gate != detector.Leak || math.Abs(v.Rate/detector.MB-100) > 15 {
				t.Errorf("%g h against %g h, seed %d: %v, %.0f MB/h, want 100: %s %v", hours[0], hours[1], seed, v.Gate,
					v.Rate/detector.MB, v.Because, err)
			}
		}
	}
}

// TestCompareToItself checks that a run compared with itself passes, whatever
// happens during the run.
func TestCompareToItself(t *testing.T) {
	for i, s := range lively(2) {
		d, _ := watched(s, uint64(i), asThree)
		v, err := d.CompareTo(d)
		if err != nil {
			t.Fatal(err)
		}
		if v.Gate != detector.Pass && v.Gate != detector.Inconclusive || v.Rate != 0 && v.RateKnown {
			t.Errorf("%s: %v, %v: %s", s.Name, v.Gate, v.Rate, v.Because)
		}
	}
}

// TestCompareToTooShort checks that two runs that share less than half an hour
// get no verdict on their difference, and that this is reported. A leak that
// the run proves by itself is still a leak.
func TestCompareToTooShort(t *testing.T) {
	for _, hours := range [][2]float64{{2, 0.4}, {0.4, 2}, {2, 0}, {0, 2}, {0, 0}} {
		head, base := detector.New(detector.RobustPolicy()), detector.New(detector.RobustPolicy())
		if hours[0] > 0 {
			head, _ = watched(filling(600, hours[0]), 1, asThree)
		}
		if hours[1] > 0 {
			base, _ = watched(filling(0, hours[1]), 2, asThree)
		}
		v, err := head.CompareTo(base)
		if hours[0] == 2 {
			if err != nil || v.Gate != detector.Leak || !strings.Contains(v.Because, "in common") || !v.RateKnown {
				t.Errorf("%g h against %g h: %v %v: %s", hours[0], hours[1], err, v.Gate, v.Because)
			}
			continue
		}
		if err != nil || v.Gate != detector.Inconclusive || !strings.Contains(v.Because, "in common") || v.RateKnown ||
			v.MinDetectable != 0 {
			t.Errorf("%g h against %g h: %v %v: %s", hours[0], hours[1], err, v.Gate, v.Because)
		}
	}
}

// TestCompareToOtherPolicy checks that both runs must be judged by the robust
// policy.
func TestCompareToOtherPolicy(t *testing.T) {
	robust, article := detector.New(detector.RobustPolicy()), detector.New(detector.ArticlePolicy())
	for name, pair := range map[string][2]*detector.Detector{
		"head": {article, robust}, "base": {robust, article}, "both": {article, article},
	} {
		v, err := pair[0].CompareTo(pair[1])
		if err == nil || !strings.Contains(err.Error(), `"article"`) || !strings.Contains(err.Error(), `"robust"`) ||
			v.Gate != "" {
			t.Errorf("%s: %v %v", name, v.Gate, err)
		}
	}
}

// TestCompareToKeepsState checks that a comparison changes neither detector.
func TestCompareToKeepsState(t *testing.T) {
	for i, c := range []scenario.Conditions{asThree, inLoops} {
		watches := func() (list [2]*scenario.Watch, ds [2]*detector.Detector) {
			for k := range list {
				s := filling(float64(k)*200, 4)
				ds[k] = detector.New(detector.RobustPolicy())
				list[k] = scenario.NewWatch(s.Simulate(rand.New(rand.NewPCG(uint64(i), uint64(k)))), ds[k], c, nil)
			}
			return list, ds
		}
		asked, a := watches()
		quiet, q := watches()
		for point := 0; point <= 4*240+1; point += 10 {
			for k := range asked {
				asked[k].Until(point)
				quiet[k].Until(point)
			}
			before := fmt.Sprint(a[0].Verdict(), a[1].Verdict(), a[0].Demand(), a[1].Demand())
			first, err := a[1].CompareTo(a[0])
			if err != nil {
				t.Fatal(err)
			}
			second, _ := a[1].CompareTo(a[0])
			if fmt.Sprint(first) != fmt.Sprint(second) {
				t.Fatalf("point %d: %v, then %v", point, first, second)
			}
			if after := fmt.Sprint(a[0].Verdict(), a[1].Verdict(), a[0].Demand(), a[1].Demand()); after != before {
				t.Fatalf("point %d: %s, then %s", point, before, after)
			}
		}
		for k := range asked {
			if fmt.Sprint(asked[k].Steps()) != fmt.Sprint(quiet[k].Steps()) ||
				fmt.Sprint(a[k].Verdict()) != fmt.Sprint(q[k].Verdict()) {
				t.Errorf("%d: %v, want %v", k, asked[k].Steps(), quiet[k].Steps())
			}
		}
	}
}

// TestCompareToFallingBase checks that a falling base run does not make a
// process that does not grow appear to leak.
func TestCompareToFallingBase(t *testing.T) {
	for seed := range uint64(20) {
		for _, hours := range []float64{2, 4, 8} {
			base, _ := watched(scenario.Scenario{Hours: hours, Sigma: 5, Rho: 0.7, Trimmed: 40, Level: 400}, seed+500,
				asThree)
			head, _ := watched(scenario.Scenario{Hours: hours, Sigma: 5, Rho: 0.7, Level: 400}, seed, asThree)
			v, err := head.CompareTo(base)
			if err != nil || v.Gate != detector.Pass ||
				!strings.Contains(v.Because, "grows no more than the base run") {
				t.Errorf("%g h, seed %d: %v: %s", hours, seed, v.Gate, v.Because)
			}
		}
	}
}

// TestCompareToSameLeak checks that a leak that also occurs in the base run is
// not a difference, and that a base run that leaks less than half as fast does
// not hide it.
func TestCompareToSameLeak(t *testing.T) {
	for seed := range uint64(10) {
		for rate, want := range map[float64]detector.Gate{100: detector.Pass, 20: detector.Leak} {
			base, _ := watched(scenario.Scenario{Hours: 4, Sigma: 5, Rho: 0.7, Leak: rate}, seed+500, asThree)
			head, _ := watched(scenario.Scenario{Hours: 4, Sigma: 5, Rho: 0.7, Leak: 100}, seed, asThree)
			v, err := head.CompareTo(base)
			if err != nil || v.Gate != want {
				t.Errorf("%g MB/h, seed %d: %v: %s", rate, seed, v.Gate, v.Because)
			}
			if want == detector.Pass && !strings.Contains(v.Because, "like the base run") {
				t.Errorf("seed %d: %s", seed, v.Because)
			}
		}
	}
}

// TestCompareToSeveral checks that the same leak is found with three base runs
// as with one, and that a difference is not a leak if the base runs differ from
// each other by as much.
func TestCompareToSeveral(t *testing.T) {
	for seed := range uint64(8) {
		run := func(k uint64, rate float64) *detector.Detector {
			d, _ := watched(scenario.Scenario{Hours: 2, Sigma: 5, Rho: 0.7, Leak: rate}, seed*10+k, asThree)
			return d
		}
		head := run(0, 45)
		alike, err := head.CompareTo(run(1, 0), run(2, 0), run(3, 0))
		if err != nil || alike.Gate != detector.Leak || !strings.Contains(alike.Because, "3 base runs") {
			t.Errorf("seed %d: %v: %s", seed, alike.Gate, alike.Because)
		}
		apart, err := head.CompareTo(run(1, -40), run(2, 0), run(3, 40))
		if err != nil || apart.Gate == detector.Leak {
			t.Errorf("seed %d: with differing base runs: %v: %s", seed, apart.Gate, apart.Because)
		}
	}
	if _, err := detector.New(detector.RobustPolicy()).CompareTo(); err == nil {
		t.Error("no base run was accepted")
	}
}

// TestCompareToLives checks that processes that restart are compared by their
// lives, which all contain the warm-up.
func TestCompareToLives(t *testing.T) {
	for seed := range uint64(8) {
		quiet, _ := spent(night(t, "app, 0 MB/h, restart every 25 min"), seed)
		same, _ := spent(night(t, "app, 0 MB/h, restart every 25 min"), seed) // the same app
		leaking, _ := spent(night(t, "app, 300 MB/h, restart every 25 min"), seed)
		v, err := leaking.CompareTo(quiet)
		if err != nil || v.Gate != detector.Leak || math.Abs(v.Rate/detector.MB-300) > 60 ||
			!strings.Contains(v.Because, "of each life") {
			t.Errorf("seed %d: %v: %s", seed, v.Gate, v.Because)
		}
		alike, _ := spent(night(t, "plain, 100 MB/h, restart every 25 min"), seed)
		other, _ := spent(night(t, "plain, 100 MB/h, restart every 25 min"), seed+100)
		if v, err = alike.CompareTo(other); err != nil || v.Gate != detector.Pass {
			t.Errorf("seed %d, both runs leak equally: %v: %s", seed, v.Gate, v.Because)
		}
		if v, err = same.CompareTo(quiet); err != nil || v.Gate != detector.Pass {
			t.Errorf("seed %d: %v: %s", seed, v.Gate, v.Because)
		}
	}
}

// TestCompareToAfterDeaths checks that a base run does not clear a process that
// repeatedly ran out of memory, whatever its last life shows.
func TestCompareToAfterDeaths(t *testing.T) {
	base, _ := watched(scenario.Scenario{Hours: 2, Sigma: 5, Rho: 0.7}, 1, asThree)
	head := detector.New(detector.RobustPolicy())
	at := bootTime
	for i := range 8 {
		if i > 0 {
			head.Restart(at)
			head.AddDeath(at-30*time.Second, detector.OutOfMemory)
		}
		minutes, rate := 10, 20.0
		if i == 7 {
			minutes, rate = 45, -0.2
		}
		for begin := at; at < begin+time.Duration(minutes)*time.Minute; at += 30 * time.Second {
			head.AddSample(detector.Sample{At: at, Bytes: int64((260 + rate*(at-begin).Minutes()) * detector.MB)})
		}
		at += 30 * time.Second
	}
	if v := head.Verdict(); v.Gate != detector.Leak {
		t.Fatalf("alone: %v: %s", v.Gate, v.Because)
	}
	if v, err := head.CompareTo(base); err != nil || v.Gate != detector.Leak {
		t.Errorf("%v: %s", v.Gate, v.Because)
	}
}
