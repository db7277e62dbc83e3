package detector_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/scenario"
)

// night returns the run of package scenario with the given name.
func night(t testing.TB, name string) scenario.Night {
	t.Helper()
	all := scenario.Nights()
	i := slices.IndexFunc(all, func(n scenario.Night) bool { return n.Name == name })
	if i < 0 {
		t.Fatalf("no night %q", name)
	}
	return all[i]
}

// spent plays a whole night and returns the detector and its verdict.
func spent(n scenario.Night, seed uint64) (*detector.Detector, detector.Verdict) {
	r := rand.New(rand.NewPCG(seed, 191))
	s := n.Draw(r)
	d := detector.New(detector.RobustPolicy())
	scenario.Play(s.Simulate(r), d, n.Watched, r.Float64)
	return d, d.Verdict()
}

// TestNights checks how many of 12 runs of a night with events end with the
// expected verdict.
func TestNights(t *testing.T) {
	for name, c := range map[string]struct {
		gate  detector.Gate
		least int
		words []string
	}{
		"OOM at 512 MB, app, 600 MB/h": {
			detector.Leak, 12, []string{"restarted ", "out of memory", "out-of-memory deaths", "lives"},
		},
		"plain, 300 MB/h, restart every 10 min": {
			detector.Leak, 10,
			[]string{"restarted 47 times (47 crashes)", "MB per life on average", "over 48 lives", "95 % interval"},
		},
		"plain, 100 MB/h, restart every 25 min": {
			detector.Leak, 10, []string{"restarted 19 times (19 crashes)", "MB per life on average"},
		},
		"plain, 0 MB/h, restart every 10 min": {
			detector.Inconclusive, 12, []string{"longest life 10 min", "a trend needs 30 min"},
		},
		"app, 0 MB/h, restart every 25 min": {
			detector.Inconclusive, 12, []string{"a warm-up can cause this too: run without restarts"},
		},
		"app, 0 MB/h, restart every 60 min": {
			detector.Pass, 7, []string{"restarted 7 times (7 crashes)", "no growth in ", "would have been detected"},
		},
		"app, 300 MB/h, workload ends 40 min early": {
			detector.Leak, 12, []string{"until 7.3 h after the first sample, and not freed since"},
		},
		"app, 300 MB/h, workload ends 40 min early, unknown": {
			detector.Leak, 12, []string{"until 7.0 h after the first sample, and not freed since"},
		},
		"app, 300 MB/h, in the background (-200 MB) for the last 40 min": {
			detector.Leak, 12, []string{"and not freed since"},
		},
		"app, 0 MB/h, in the background (-200 MB) for the last 40 min": {
			detector.Pass, 11, []string{"no sustained growth"},
		},
		"80 MB lumps, one per hour":        {detector.Leak, 6, []string{"MB/h"}},
		"app, 50 MB/h, one trim of 300 MB": {detector.Leak, 7, []string{"MB/h"}},
		"app, 0 MB/h, one trim of 300 MB":  {detector.Pass, 11, nil},
		"plain, 100 MB/h of ashmem, source status": {
			detector.Leak, 12, []string{"according to the breakdowns; the samples do not show it"},
		},
		"plain, 0 MB/h of ashmem, source status": {
			detector.Pass, 11, []string{"no sustained growth of anonymous memory"},
		},
		"app, 100 MB/h, gaps of 28 min every hour":    {detector.Leak, 11, nil},
		"app, 100 MB/h, gaps of 35 min every hour":    {detector.Leak, 11, nil},
		"app, 0 MB/h, gaps of 35 min every hour":      {detector.Pass, 9, nil},
		"teeth of 200 to 300 MB, every 60 to 120 min": {detector.Pass, 2, nil},
		"app, 50 MB/h starting at 4 h":                {detector.Leak, 11, []string{"h after the first sample"}},
	} {
		n := night(t, name)
		hits := 0
		for seed := range uint64(12) {
			_, v := spent(n, seed)
			if err := verdictFault(v); err != nil {
				t.Errorf("%s, seed %d: %v", name, seed, err)
			}
			if v.Gate != c.gate {
				if !n.Leaks && v.Gate == detector.Leak || n.Leaks && v.Gate == detector.Pass {
					t.Errorf("%s, seed %d: %v: %s", name, seed, v.Gate, v.Because)
				}
				continue
			}
			hits++
			for _, word := range c.words {
				if !strings.Contains(v.Because, word) {
					t.Errorf("%s, seed %d: no %q in %q", name, seed, word, v.Because)
				}
			}
		}
		if hits < c.least {
			t.Errorf("%s: %v in %d of 12, want %d", name, c.gate, hits, c.least)
		}
	}
}

// TestSentences checks that no sentence contradicts the interval that is
// printed with it, and that no sentence describes only the last life.
func TestSentences(t *testing.T) {
	list := scenario.Nights()
	for _, s := range slices.Concat(scenario.Null(8), scenario.Null(2), scenario.Shapes(8)) {
		list = append(list, scenario.Night{Name: s.Name, Draw: func(*rand.Rand) scenario.Scenario { return s }})
	}
	seen := map[detector.Gate]int{}
	for _, n := range list {
		for seed := range uint64(3) {
			_, v := spent(n, seed+100)
			seen[v.Gate]++
			if err := sentenceFault(v); err != nil {
				t.Errorf("%s, seed %d: %v: %v, %.1f to %.1f MB/h, grew %.0f MB: %s", n.Name, seed, err, v.Gate,
					v.RateLow/detector.MB, v.RateHigh/detector.MB, float64(v.Growth)/detector.MB, v.Because)
			}
		}
	}
	for _, g := range []detector.Gate{detector.Leak, detector.Pass, detector.Settled, detector.Inconclusive} {
		if seen[g] < 5 {
			t.Errorf("got verdict %v only %d times, want at least 5", g, seen[g])
		}
	}
}

// sentenceFault returns an error that describes a contradiction within a
// verdict, or nil if there is none.
func sentenceFault(v detector.Verdict) error {
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(v.Because, w) })
	}
	rises := v.RateKnown && v.RateLow > 0 && v.Growth >= 20*detector.MB
	switch {
	case rises && says("no sustained growth", "no growth in", "than noise", "nor has been flat"):
		return fmt.Errorf("message denies the growth that the interval shows")
	case v.Gate == detector.Pass && rises:
		return fmt.Errorf("passes despite the growth that the interval shows")
	case v.Gate == detector.Leak && v.RateKnown && v.RateLow <= 0 && !says("out-of-memory deaths"):
		return fmt.Errorf("reports a leak although the interval includes zero")
	case v.RateKnown && v.RateLow > 0 && says("MB/h (95 % interval -"):
		return fmt.Errorf("message has a different interval")
	case v.Gate == detector.Settled && !says("flat since", "went back"):
		return fmt.Errorf("settled, but the message does not say since when")
	case v.Restarts > 0 && !says("restarted "):
		return fmt.Errorf("message does not mention restarts")
	case says("as no leak does", "tells", "watched "):
		return fmt.Errorf("message uses outdated words")
	case v.Gate == detector.Pass && !says("or more would have been detected"):
		return fmt.Errorf("passes without a detection limit")
	}
	return nil
}

// short returns a detector that has watched the given number of lives, each of
// the given number of minutes. level returns the level in MB for a life and an
// age in minutes.
func short(lives, minutes int, cause detector.Cause, early bool,
	level func(life int, age float64) float64) *detector.Detector {
	d := detector.New(detector.RobustPolicy())
	at := bootTime
	for i := range lives {
		if i > 0 {
			ended := at
			at += 20 * time.Second
			if early {
				d.AddDeath(ended-30*time.Second, cause)
			}
			d.Restart(at)
			if !early {
				d.AddDeath(ended-30*time.Second, cause)
			}
		}
		for begin := at; at < begin+time.Duration(minutes)*time.Minute; at += 30 * time.Second {
			d.AddSample(detector.Sample{At: at, Bytes: int64(level(i, (at-begin).Minutes()) * detector.MB)})
		}
	}
	return d
}

// rippled returns a small amount of noise in MB, which is the same in each run.
func rippled(life int, age float64) float64 { return 0.6 * math.Sin(float64(life)*1.7+age*5.1) }

// TestMemoryDeaths checks that lives that are too short for any trend are
// reported as a leak if three of them ran out of memory. A kill due to low
// memory on the device also counts, but only if the process grew.
func TestMemoryDeaths(t *testing.T) {
	flat := func(i int, age float64) float64 { return 200 + rippled(i, age) }
	warm := func(i int, age float64) float64 { return 200 + 100*(1-math.Exp(-age/3)) + rippled(i, age) }
	both := func(i int, age float64) float64 { return warm(i, age)/4 + 10*age }
	for name, c := range map[string]struct {
		lives, minutes int
		cause          detector.Cause
		level          func(int, float64) float64
		want           detector.Gate
	}{
		"out of memory, flat":            {5, 10, detector.OutOfMemory, flat, detector.Leak},
		"two deaths, out of memory":      {3, 10, detector.OutOfMemory, flat, detector.Inconclusive},
		"three deaths, out of memory":    {4, 10, detector.OutOfMemory, flat, detector.Leak},
		"out of memory within a minute":  {6, 1, detector.OutOfMemory, flat, detector.Leak},
		"low memory, flat":               {8, 10, detector.LowMemory, flat, detector.Inconclusive},
		"low memory, warm-up":            {8, 10, detector.LowMemory, warm, detector.Inconclusive},
		"low memory, warm-up and growth": {8, 10, detector.LowMemory, both, detector.Leak},
		"crashes, warm-up and growth":    {8, 10, detector.Crash, both, detector.Inconclusive},
		"crashes, warm-up":               {8, 10, detector.Crash, warm, detector.Inconclusive},
		"unknown cause, flat":            {8, 10, detector.UnknownCause, flat, detector.Inconclusive},
		"invalid cause, flat":            {8, 10, 200, flat, detector.Inconclusive},
	} {
		for _, early := range []bool{false, true} {
			v := short(c.lives, c.minutes, c.cause, early, c.level).Verdict()
			if v.Gate != c.want {
				t.Errorf("%s, death reported early (%v): %v: %s", name, early, v.Gate, v.Because)
			}
			if err := errorsOf(verdictFault(v), sentenceFault(v)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func errorsOf(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestLivesOfALeak checks that lives that grow evenly yield the rate of the
// leak, and that its kind is that of the growing dimension. Lives whose growth
// slows down remain inconclusive.
func TestLivesOfALeak(t *testing.T) {
	line := func(i int, age float64) float64 { return 200 + 4*age + rippled(i, age) }
	curve := func(i int, age float64) float64 { return 200 + 60*(1-math.Exp(-age/5)) + rippled(i, age) }
	v := short(12, 10, detector.Killed, false, line).Verdict()
	if v.Gate != detector.Leak || math.Abs(v.Rate/detector.MB-240) > 15 || v.RateLow > 240*detector.MB ||
		v.RateHigh < 240*detector.MB {
		t.Errorf("%v, %.0f (%.0f to %.0f) MB/h: %s", v.Gate, v.Rate/detector.MB, v.RateLow/detector.MB,
			v.RateHigh/detector.MB, v.Because)
	}
	if !strings.Contains(v.Because, "restarted 11 times (11 kills)") {
		t.Error(v.Because)
	}
	v = short(12, 10, detector.Killed, false, curve).Verdict()
	if v.Gate != detector.Inconclusive || !strings.Contains(v.Because, "a warm-up can cause this too") || !v.RateKnown {
		t.Errorf("%v: %s", v.Gate, v.Because)
	}
	// Lives that rise steeply at first are warming up. A leak requires
	// certainty that the later part keeps its pace. Here the lives differ too
	// much for that.
	uncertain := func(i int, age float64) float64 {
		return 200 + 30*min(age, 1) + 5*min(age, 5) + 3.5*max(0, age-5) + float64(4*(i%2)-2)*math.Abs(age-5) +
			rippled(i, age)
	}
	even := func(i int, age float64) float64 { return uncertain(i, age) - 30*min(age, 1) }
	launch := func(i int, age float64) float64 { return 200 + 30*min(age, 1) + 5*age + rippled(i, age) }
	for _, c := range []struct {
		level func(int, float64) float64
		want  detector.Gate
	}{{uncertain, detector.Inconclusive}, {even, detector.Leak}, {launch, detector.Leak}} {
		if v := short(12, 10, detector.Killed, false, c.level).Verdict(); v.Gate != c.want {
			t.Errorf("want %v: %v: %s", c.want, v.Gate, v.Because)
		}
	}
	// Collections at the same age of each life also look like growth, so a leak
	// must grow by 20 MB per life.
	for rate, want := range map[float64]detector.Gate{2.1: detector.Inconclusive, 2.6: detector.Leak} {
		slow := func(i int, age float64) float64 { return 200 + rate*age + rippled(i, age) }
		if v := short(12, 10, detector.Killed, false, slow).Verdict(); v.Gate != want || !v.RateKnown {
			t.Errorf("%.1f MB/min: %v: %s", rate, v.Gate, v.Because)
		}
	}
	late := func(i int, age float64) float64 { return 200 + 8*max(0, age-6) + rippled(i, age) }
	if v := short(12, 12, detector.Killed, false, late).
		Verdict(); !strings.Contains(v.Because, "over 12 lives, from minute 2 to 11), most of it in the second half") {
		t.Errorf("%v: %s", v.Gate, v.Because)
	}
	// These lives begin with a warm-up, followed by growth along a line. Lives
	// of 20 min are too short to show this growth; lives of 21 min are long
	// enough.
	later := func(i int, age float64) float64 { return 200 + 100*(1-math.Exp(-age/2)) + 5*age + rippled(i, age) }
	for minutes, want := range map[int]detector.Gate{20: detector.Inconclusive, 21: detector.Leak} {
		if v := short(12, minutes, detector.Killed, false, later).Verdict(); v.Gate != want {
			t.Errorf("lives of %d min, the last one unfinished: %v: %s", minutes, v.Gate, v.Because)
		}
	}
	steep := func(i int, age float64) float64 { return 200 + 20*age + rippled(i, age) }
	for minutes, want := range map[int]detector.Gate{4: detector.Inconclusive, 5: detector.Leak} {
		if v := short(12, minutes, detector.Killed, false, steep).Verdict(); v.Gate != want {
			t.Errorf("lives of %d min, the last one unfinished: %v: %s", minutes, v.Gate, v.Because)
		}
	}
	for lives, want := range map[int]detector.Gate{2: detector.Inconclusive, 3: detector.Leak} {
		if v := short(lives, 10, detector.Killed, false, line).Verdict(); v.Gate != want {
			t.Errorf("%d lives: %v: %s", lives, v.Gate, v.Because)
		}
	}
}

// TestDeathsAtOneLevel checks that a process leaks if it is killed whenever it
// reaches 500 MB, whatever the length of its lives. If a process is killed at
// varying levels, the kills do not make it a leak.
func TestDeathsAtOneLevel(t *testing.T) {
	for name, c := range map[string]struct {
		limit func(r *rand.Rand) float64
		want  bool
	}{
		"at 500 MB":    {func(r *rand.Rand) float64 { return 500 + 4*r.NormFloat64() }, true},
		"at any level": {func(r *rand.Rand) float64 { return 330 + 200*r.Float64() }, false},
	} {
		r := rand.New(rand.NewPCG(7, 7))
		d := detector.New(detector.RobustPolicy())
		at := bootTime
		for i := range 14 {
			if i > 0 {
				d.Restart(at)
				d.AddDeath(at-30*time.Second, detector.Killed)
			}
			// Each life grows at its own pace, faster at first. This shape is
			// that of a warm-up and not of a leak.
			rate, limit := 20+30*r.Float64(), c.limit(r)
			for age := 0.0; age < 20; age += 0.5 {
				mb := 200 + rate*20*(1-math.Exp(-age/12)) + rippled(i, age)
				if mb >= limit {
					break
				}
				d.AddSample(detector.Sample{At: at, Bytes: int64(mb * detector.MB)})
				at += 30 * time.Second
			}
			at += 30 * time.Second
		}
		v := d.Verdict()
		if got := strings.Contains(v.Because, "regardless of age"); got != c.want || got && v.Gate != detector.Leak {
			t.Errorf("%s: %v: %s", name, v.Gate, v.Because)
		}
	}
}

// TestGrowthIsNotForgotten checks that a quiet life does not outweigh earlier
// unexplained growth, and that a short quiet life does not decide a night of
// restarts.
func TestGrowthIsNotForgotten(t *testing.T) {
	d := detector.New(detector.RobustPolicy())
	at := bootTime
	feed := func(minutes int, level func(age float64) float64) {
		for begin := at; at < begin+time.Duration(minutes)*time.Minute; at += 30 * time.Second {
			age := (at - begin).Minutes()
			d.AddSample(detector.Sample{At: at, Bytes: int64((level(age) + rippled(1, age)) * detector.MB)})
		}
		at += time.Minute
	}
	feed(60, func(age float64) float64 { return 200 + 1.5*age })
	if v := d.Verdict(); v.Gate != detector.Inconclusive {
		t.Fatalf("%v: %s", v.Gate, v.Because)
	}
	d.Restart(at)
	feed(120, func(float64) float64 { return 200 })
	if v := d.Verdict(); v.Gate != detector.Inconclusive || !strings.Contains(v.Because, "restarted 1 time") {
		t.Errorf("then quiet: %v: %s", v.Gate, v.Because)
	}

	d = detector.New(detector.RobustPolicy())
	for range 20 {
		feed(9, func(float64) float64 { return 200 })
		d.Restart(at)
	}
	feed(40, func(float64) float64 { return 200 })
	if v := d.Verdict(); v.Gate != detector.Inconclusive || !strings.Contains(v.Because, "restarted 20 times") {
		t.Errorf("40 quiet minutes after 20 restarts: %v: %s", v.Gate, v.Because)
	}
	d = detector.New(detector.RobustPolicy())
	feed(9, func(float64) float64 { return 200 })
	d.Restart(at)
	feed(180, func(float64) float64 { return 200 })
	if v := d.Verdict(); v.Gate != detector.Pass {
		t.Errorf("3 quiet hours after one restart: %v: %s", v.Gate, v.Because)
	}
}

// TestMustSee checks that a pass becomes inconclusive if it could have missed a
// leak of the required rate, and that the verdict says so.
func TestMustSee(t *testing.T) {
	d, v := spent(night(t, "app, 0 MB/h"), 1)
	if v.Gate != detector.Pass || v.MinDetectable <= 0 {
		t.Fatalf("%v: %s", v.Gate, v.Because)
	}
	d.SetMustSee(v.MinDetectable * 1.01)
	if w := d.Verdict(); w.Gate != detector.Pass {
		t.Errorf("%v: %s", w.Gate, w.Because)
	}
	d.SetMustSee(v.MinDetectable * 0.99)
	want := fmt.Sprintf("must rule out a leak of %.1f MB/h, but one of %.1f MB/h could have been missed: no sustained",
		v.MinDetectable*0.99/detector.MB, v.MinDetectable/detector.MB)
	if w := d.Verdict(); w.Gate != detector.Inconclusive || !strings.HasPrefix(w.Because, want) {
		t.Errorf("%v: %s", w.Gate, w.Because)
	}
	d.SetMustSee(0)
	if w := d.Verdict(); w.Gate != detector.Pass {
		t.Errorf("%v: %s", w.Gate, w.Because)
	}
}

// TestLivesBetweenSamples checks the verdict on a process whose lives are too
// short for two samples.
func TestLivesBetweenSamples(t *testing.T) {
	d := detector.New(detector.RobustPolicy())
	for i := range 6 {
		at := bootTime + time.Duration(i)*30*time.Second
		if i > 0 {
			d.Restart(at)
		}
		d.AddSample(detector.Sample{At: at, Bytes: 100 * detector.MB})
	}
	if v := d.Verdict(); v.Gate != detector.Inconclusive ||
		v.Because != "restarted 5 times; no life was sampled twice, a trend needs 30 min" {
		t.Errorf("%v: %s", v.Gate, v.Because)
	}
}

// lifetimes returns the verdict on the given lives. Each life is a function
// that returns the level in MB for an age in minutes, and whether the life
// continues.
func lifetimes(lives ...func(age float64) (mb float64, goesOn bool)) detector.Verdict {
	d := detector.New(detector.RobustPolicy())
	at := bootTime
	for i, life := range lives {
		if i > 0 {
			at += 30 * time.Second
			d.Restart(at)
		}
		for begin := at; ; at += 30 * time.Second {
			mb, goesOn := life((at - begin).Minutes())
			if !goesOn {
				break
			}
			d.AddSample(detector.Sample{At: at, Bytes: int64((mb + rippled(i, (at-begin).Minutes())) * detector.MB)})
		}
	}
	return d.Verdict()
}

// TestOneLongLife checks that a crash loop at the start of a night is not a
// leak if the life after it is flat once it has warmed up, and that flat short
// lives do not clear a long life that grows later.
func TestOneLongLife(t *testing.T) {
	warm := func(minutes float64) func(float64) (float64, bool) {
		return func(age float64) (float64, bool) { return 200 + 8*min(age, 12), age < minutes }
	}
	short, long := warm(11), warm(450)
	if v := lifetimes(short, short, short, short, long); v.Gate != detector.Pass {
		t.Errorf("crash loop, then quiet night: %v: %s", v.Gate, v.Because)
	}
	if v := lifetimes(short, short, short, short, short, short); v.Gate == detector.Pass {
		t.Errorf("crash loop: %v: %s", v.Gate, v.Because)
	}
	flat := func(age float64) (float64, bool) { return 200, age < 60 }
	late := func(age float64) (float64, bool) { return 200 + 0.6*max(0, age-70), age < 180 }
	if v := lifetimes(flat, flat, flat, late); v.Gate == detector.Pass || v.Gate == detector.Settled {
		t.Errorf("three quiet lives, then a growing one: %v: %s", v.Gate, v.Because)
	}
}

// TestGraphicsLeakAfterCollections checks that the levels after collections
// also include memory outside smaps.
func TestGraphicsLeakAfterCollections(t *testing.T) {
	d := detector.New(detector.RobustPolicy())
	at := bootTime
	for i := range 40 {
		b := wholeReading(at, 200)
		b.EGL = known.Of(int64(20+3*i) * detector.MB)
		b.Dim[detector.Graphics] = b.EGL
		d.AddBreakdown(b)
		at += 10 * time.Second
		s := detector.Sample{At: at, Bytes: int64((200 + rippled(i, 1)) * detector.MB)}
		d.AddSample(s)
		d.AddCollected(s)
		at += 20 * time.Second
	}
	if v := d.Verdict(); v.Gate != detector.Leak {
		t.Errorf("%v: %s", v.Gate, v.Because)
	}
}
