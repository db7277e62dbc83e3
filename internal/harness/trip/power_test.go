package trip

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/reporters/record"
)

// cell counts the outcomes of trips of one kind.
type cell struct {
	trips, leak, inconclusive, pass, loops int
	// named counts the trips whose verdict names the leaking measure.
	named int
}

func (c cell) share(n int) float64 { return float64(n) / float64(c.trips) }

func (c cell) String() string {
	return fmt.Sprintf("leak %6.2f %%  inconclusive %6.2f %%  pass %6.2f %%  %4.1f loops", 100*c.share(c.leak),
		100*c.share(c.inconclusive), 100*c.share(c.pass), c.share(c.loops))
}

// most returns the number of trips that corresponds to a share, plus two
// standard deviations to allow for chance.
func (c cell) most(share float64) int {
	expected := share * float64(c.trips)
	return int(expected + 2*math.Sqrt(expected))
}

// simulate runs trips of one kind, each with its own seed, and counts their
// outcomes.
func simulate(t *testing.T, trips int, process func(seed uint64) *simulated, leaks string) cell {
	t.Helper()
	c := cell{trips: trips}
	for seed := range uint64(trips) {
		s := process(seed)
		r, err := Run(t.Context(), s, s.loop, Options{Process: "com.shop", NoDumps: true})
		if err != nil {
			t.Fatal(err)
		}
		c.loops += r.Loops
		switch r.Verdict {
		case record.VerdictLeak:
			c.leak++
		case record.VerdictInconclusive:
			c.inconclusive++
		case record.VerdictPass:
			c.pass++
		}
		if slices.ContainsFunc(r.Measures, func(m record.TripMeasure) bool { return m.Name == leaks && m.Grows }) {
			c.named++
		}
	}
	return c
}

// trips returns the number of trips of each kind that are simulated.
func trips() int {
	if os.Getenv("LEAKGATE_E2E") == "long" {
		return 20_000
	}
	return 400
}

// with returns a function that creates a steady process and applies a change to
// it.
func with(n noise, change func(*simulated)) func(uint64) *simulated {
	return func(seed uint64) *simulated {
		s := steady(seed, n)
		change(s)
		return s
	}
}

// usual is the noise of native memory in an idle process.
var usual = noise{100, 0.5}

// A process without a leak hardly ever causes an alarm, whatever its noise,
// one-time objects and caches.
func TestSteadyTripsPass(t *testing.T) {
	for _, c := range []struct {
		name    string
		process func(uint64) *simulated
		// alarms and doubts are the maximum shares of trips that report a leak
		// and of trips that are inconclusive.
		alarms, doubts float64
	}{
		{"noise of 50 kB", with(noise{50, 0}, func(*simulated) {}), 0.001, 0.01},
		{"noise of 100 kB", with(usual, func(*simulated) {}), 0.001, 0.01},
		{"noise of 200 kB", with(noise{200, 0.5}, func(*simulated) {}), 0.001, 0.01},
		{"noise of 300 kB", with(noise{300, 0}, func(*simulated) {}), 0.001, 0.02},
		{"correlated noise of 300 kB", with(noise{300, 0.5}, func(*simulated) {}), 0.001, 0.02},
		{"slow noise of 300 kB", with(noise{300, 0.8}, func(*simulated) {}), 0.001, 0.02},
		{"noise of 500 kB", with(noise{500, 0.5}, func(*simulated) {}), 0.004, 0.1},
		{"garbage of 8 MB", with(usual, func(s *simulated) { s.sawtooth = 8000 }), 0.004, 0.25},
		{"native cache of 1 MB", with(usual, func(s *simulated) { s.native = saturating(1000, 2) }), 0.001, 0.02},
		{"native cache of 2 MB", with(usual, func(s *simulated) { s.native = saturating(2000, 3) }), 0.002, 0.1},
		{"cache full after 4 loops", with(usual, func(s *simulated) { s.native = filling(400, 4) }), 0.001, 0.05},
		{"pool of 8 threads", with(usual, func(s *simulated) { s.threads = filling(1, 6) }), 0.001, 0.05},
		{"quickly filled pool", with(usual, func(s *simulated) { s.threads = filling(3, 3) }), 0.001, 0.01},
		{"files opened once", with(usual, func(s *simulated) { s.files = jump(3, 12) }), 0.001, 0.01},
		{"loaded once", with(usual, func(s *simulated) { s.native = jump(3, 1500) }), 0.001, 0.05},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := simulate(t, trips(), c.process, "")
			t.Log(got)
			if got.leak > got.most(c.alarms) {
				t.Errorf("alarms in %.2f %% of trips, want at most %.2f %%", 100*got.share(got.leak), 100*c.alarms)
			}
			if got.inconclusive > got.most(c.doubts) {
				t.Errorf("%.2f %% of trips are inconclusive, want at most %.2f %%", 100*got.share(got.inconclusive),
					100*c.doubts)
			}
		})
	}
}

// A leak is found within ten loops in at least the given share of trips.
func TestLeaksAreFound(t *testing.T) {
	for _, c := range []struct {
		name, leaks string
		process     func(uint64) *simulated
		power       float64
	}{
		{
			"200 kB in noise of 50 kB", "native_heap",
			with(noise{50, 0.5}, func(s *simulated) { s.native = rate(200) }), 0.99,
		},
		{
			"200 kB in noise of 100 kB", "native_heap",
			with(noise{100, 0}, func(s *simulated) { s.native = rate(200) }), 0.94,
		},
		{
			"200 kB in correlated noise of 100 kB", "native_heap",
			with(usual, func(s *simulated) { s.native = rate(200) }), 0.95,
		},
		{
			"400 kB in noise of 200 kB", "native_heap",
			with(noise{200, 0.5}, func(s *simulated) { s.native = rate(400) }), 0.95,
		},
		{
			"2 MB in noise of 500 kB", "native_heap",
			with(noise{500, 0.5}, func(s *simulated) { s.native = rate(2000) }), 0.95,
		},
		{"600 kB of textures", "graphics", with(usual, func(s *simulated) { s.graphics = rate(600) }), 0.99},
		{"1 thread", "threads", with(usual, func(s *simulated) { s.threads = rate(1) }), 0.95},
		{"2 files", "files", with(usual, func(s *simulated) { s.files = rate(2) }), 0.95},
		{
			"3 MB of Java memory without dumps", "java_heap", with(usual, func(s *simulated) { s.java = rate(3000) }),
			0.95,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := simulate(t, trips(), c.process, c.leaks)
			t.Log(got)
			if got.trips-got.named > got.most(1-c.power) {
				t.Errorf("leak found in %.2f %% of trips, want %.0f %%", 100*got.share(got.named), 100*c.power)
			}
		})
	}
}

// If the process has a leak that the trip claims to be able to detect, the trip
// does not pass.
func TestSmallestFound(t *testing.T) {
	for _, sigma := range []float64{30, 100, 200, 300, 500} {
		for _, perLoop := range []float64{200, 300, 500, 1000} {
			passed := 0
			for seed := range uint64(trips()) {
				s := steady(seed, noise{sigma, 0.5})
				s.native = rate(perLoop)
				r, err := Run(t.Context(), s, s.loop, Options{NoDumps: true})
				if err != nil {
					t.Fatal(err)
				}
				if m := measureOf(r, "native_heap"); m.Verdict == record.VerdictPass && *m.SmallestFound <= perLoop {
					passed++
				}
			}
			share := float64(passed) / float64(trips())
			t.Logf("noise of %.0f kB: %.2f %% of trips pass despite a leak of %.0f kB per loop that they claim to "+
				"detect", sigma,
				100*share, perLoop)
			if passed > (cell{trips: trips()}).most(0.05) {
				t.Errorf("noise of %.0f kB: %.1f %% of trips pass despite a leak of %.0f kB per loop that they claim "+
					"to detect", sigma, 100*share,
					perLoop)
			}
		}
	}
}

func measureOf(r record.Trip, name string) record.TripMeasure {
	i := slices.IndexFunc(r.Measures, func(m record.TripMeasure) bool { return m.Name == name })
	if i < 0 {
		return record.TripMeasure{Verdict: record.VerdictNotChecked}
	}
	return r.Measures[i]
}

// The interval of a rate contains the true rate in at least the promised share
// of trips. The actual share is higher, because a trip never relies only on the
// scatter of its own readings.
func TestIntervalContainsRate(t *testing.T) {
	for _, sigma := range []float64{50, 150, 600} {
		inside := 0
		for seed := range uint64(trips()) {
			s := steady(seed, noise{sigma, 0})
			var x, y []float64
			for i := range 6 {
				r, _ := s.Snapshot(t.Context())
				x, y = append(x, float64(2*i)), append(y, float64(*r.Breakdown.NativeHeap)+300*float64(2*i))
			}
			if low, high := fit(x, y, 150).bounds(0.975); low <= 300 && 300 <= high {
				inside++
			}
		}
		share := float64(inside) / float64(trips())
		t.Logf("noise of %.0f kB: the interval contains the rate in %.1f %% of trips", sigma, 100*share)
		if share < 0.945-1.5/math.Sqrt(float64(trips())) {
			t.Errorf("noise of %.0f kB: the interval contains the rate in only %.1f %% of trips", sigma, 100*share)
		}
	}
}
