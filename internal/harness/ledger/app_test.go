package ledger

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// rounds writes the lines of a device whose clock starts at 100 s.
type rounds struct {
	*Part
	up time.Duration
	// pids are the pids of the processes; the default is 1.
	pids map[string]int
	// source is what all samples were read from, such as smaps.
	source string
}

func newRounds(t *testing.T) *rounds {
	return &rounds{
		Part: partOf(t, detector.RobustPolicy(), record.HeaderDevice{Device: "S1", StartedUp: 100}),
		up:   100 * time.Second, pids: map[string]int{}, source: "smaps_rollup",
	}
}

func (r *rounds) pid(name string) int { return max(1, r.pids[name]) }

// event adds an event about a process.
func (r *rounds) event(word, name string) {
	r.Part.AddEvent(record.Event{
		Event: word, T: r.Seconds(r.up), Up: r.up.Seconds(), User: new(0), Process: name, PID: r.pid(name), Start: 1,
		Source: r.source,
	})
}

// device adds an event of the device.
func (r *rounds) device(word string) {
	r.Part.AddEvent(record.Event{Event: word, T: r.Seconds(r.up), Up: r.up.Seconds()})
}

// sample adds a sample of the given size in MB, taken at the given time after
// the beginning of the round.
func (r *rounds) sample(name string, mb float64, after time.Duration) {
	if r.byKey[processOf(record.Event{Process: name}).Key()] == nil {
		r.event("found", name)
	}
	up, kb := r.up+after, int64(mb*1024)
	s := record.Sample{
		T: r.Seconds(up), Up: up.Seconds(), Device: "S1", Process: name, PID: r.pid(name), Start: 1, Source: r.source,
		PSS: &kb, SwapPSS: new(int64(0)),
	}
	if r.source == "status" {
		s.PSS, s.SwapPSS, s.RSSAnon = nil, nil, &kb
	}
	r.AddSample(s)
}

// breakdown adds a breakdown with a Java heap of the given size in MB, and with
// driver memory unless its size is 0.
func (r *rounds) breakdown(name string, java, egl float64) {
	b := record.Breakdown{JavaHeap: new(int64(java * 1024)), TotalPSS: new(int64((java + egl) * 1024))}
	if egl > 0 {
		b.EGL = new(int64(egl * 1024))
	}
	r.AddSample(record.Sample{
		T: r.Seconds(r.up), Up: r.up.Seconds(), Process: name, PID: r.pid(name), Start: 1, Source: "dumpsys",
		Breakdown: &b,
	})
}

// round begins the next round after the given number of seconds.
func (r *rounds) round(seconds float64) { r.up += time.Duration(seconds * float64(time.Second)) }

// sum returns the current sum of the app.
func (r *rounds) sum(t *testing.T) *AppSum {
	t.Helper()
	if len(r.apps.opened) != 1 {
		t.Fatalf("got %d sums of apps, want 1", len(r.apps.opened))
	}
	return r.apps.opened[0]
}

const shop, remote = "com.shop", "com.shop:remote"

// These tests check which values a sum contains, when the sum is computed, and
// when it is missing.
func TestSumOfAnApp(t *testing.T) {
	for name, c := range map[string]struct {
		lines func(*rounds)
		// sums is the number of sums; last is the latest sum in MB.
		sums int
		last float64
	}{
		"one round": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.sample(remote, 50, 0)
		}, 1, 150},
		"at slightly different times": {func(r *rounds) {
			for range 5 {
				r.round(30)
				r.sample(shop, 100, 0)
				r.sample(remote, 50, 2*time.Second)
				r.sample(shop+":sandboxed_process0", 25, 4*time.Second)
			}
		}, 5, 175},
		"one process sampled twice as often": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.sample(remote, 50, 0)
			r.round(15)
			r.sample(shop, 110, 0)
			r.round(15)
			r.sample(shop, 120, 0) // the sum in the middle of the round is 110 + 50
			r.sample(remote, 60, 0)
		}, 3, 180},
		"one process unreadable for a short time": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.sample(remote, 50, 0)
			for range 4 { // the last value is used for 2 min: in the rounds at 30, 60 and 90 s
				r.round(30)
				r.sample(shop, 100, 0)
			}
		}, 4, 150},
		"one process unreadable for a long time": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.sample(remote, 50, 0)
			for range 40 {
				r.round(30)
				r.sample(shop, 500, 0)
			}
		}, 5, 550}, // the last value is used for 2 min, then the sum is unknown
		"one process ends": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.sample(remote, 50, 0)
			r.round(30)
			r.event("gone", remote)
			r.sample(shop, 101, 0)
		}, 2, 101},
		"one restarts": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.sample(remote, 50, 0)
			r.round(30)
			r.pids[remote] = 2
			r.event("restart", remote)
			r.sample(shop, 101, 0) // a sum of one process: the restarted one has no value yet
			r.round(30)
			r.sample(shop, 102, 0)
			r.sample(remote, 20, 0)
		}, 3, 102}, // the sum of the latest round does not yet include it
		"second process found later": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.round(30)
			r.sample(shop, 100, 0)
			r.round(30)
			r.sample(shop, 100, 0)
			r.sample(remote, 50, 0)
		}, 1, 150},
		"never two processes at the same time": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.event("gone", shop)
			r.round(30)
			r.sample(remote, 50, 0)
		}, -1, 0},
		"processes of two apps": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.sample("com.shopping:remote", 50, 0)
		}, -1, 0},
		"process without memory": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.sample(remote, 0, 0)
		}, -1, 0},
		"one measured as Pss, one as RssAnon": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.source = "status"
			r.sample(remote, 50, 0)
		}, 0, 0},
		"lines are missing": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.sample(remote, 50, 0)
			r.markMissing()
			r.round(30)
			r.sample(shop, 200, 0) // it is unknown whether the other process is alive
			r.round(30)
			r.sample(shop, 200, 0)
		}, 1, 150},
		"lines are missing, one process ends": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.sample(remote, 50, 0)
			r.markMissing()
			for range 31 {
				r.round(30)
				r.sample(shop, 200, 0)
			}
		}, 2, 200}, // no sample for more than 15 min
		"the device restarts": {func(r *rounds) {
			r.sample(shop, 100, 0)
			r.sample(remote, 50, 0)
			r.up = 10 * time.Second
			r.device("reboot")
			for range 2 {
				r.round(30)
				r.sample(shop, 70, 0) // initially alone
				r.sample(remote, 30, 0)
			}
		}, 3, 100},
	} {
		r := newRounds(t)
		c.lines(r)
		if c.sums < 0 {
			if n := len(r.apps.opened); n != 0 {
				t.Errorf("%s: got %d sums of apps, want none", name, n)
			}
			continue
		}
		x := r.sum(t)
		if got := float64(x.LastBytes) / detector.MB; x.Samples != c.sums || math.Abs(got-c.last) > 0.01 {
			t.Errorf("%s: got %d sums, the last of %.1f MB, want %d, %.1f MB", name, x.Samples, got, c.sums, c.last)
		}
		for _, w := range x.Detector.Verdict().Warnings {
			if !strings.Contains(w.Error(), "breakdowns") {
				t.Errorf("%s: %v", name, w)
			}
		}
	}
}

// grow adds the given number of rounds of samples of some processes, each of
// which grows by 300 MB/h.
func (r *rounds) grow(rounds int, names ...string) {
	for range rounds {
		r.round(30)
		for _, name := range names {
			r.sample(name, 100+r.up.Seconds()/12, 0)
		}
	}
}

// A new trend of a sum begins at every event that makes the sum incomparable
// with earlier values. An event that concerns only one process does not restart
// the series.
func TestSumRestarts(t *testing.T) {
	const restarted, changed = "the process restarted", "memory is measured differently from here on"
	for name, c := range map[string]struct {
		lines func(*rounds)
		// because is the reason why the series restarted, or "" if it did not
		// restart.
		because string
	}{
		"one process restarts": {func(r *rounds) { r.pids[remote] = 2; r.event("restart", remote) }, ""},
		"one process ends": {func(r *rounds) {
			r.event("gone", remote)
			r.grow(4, shop)
			r.pids[remote] = 2
			r.event("restart", remote)
		}, ""},
		"one process dies":             {func(r *rounds) { r.event("death", remote) }, ""},
		"new level of the same source": {func(r *rounds) { r.event("level", remote) }, ""},
		"a gap in one process":         {func(r *rounds) { r.event("gap", remote) }, ""},
		"a diagnosis of one process":   {func(r *rounds) { r.event("diagnose", remote) }, ""},
		"all processes end": {
			func(r *rounds) { r.event("gone", remote); r.pids[shop] = 2; r.event("restart", shop) }, restarted,
		},
		"the device restarts": {
			func(r *rounds) { r.up = 5 * time.Second; r.device("reboot") }, restarted,
		},
		"process wrongly considered ended": {
			func(r *rounds) { r.event("gone", remote); r.grow(1, shop); r.event("back", remote) }, changed,
		},
		"all processes are read from another source": {
			func(r *rounds) { r.source = "su"; r.event("level", remote); r.event("level", shop) }, changed,
		},
		"all processes are read as another quantity": {
			func(r *rounds) { r.source = "status"; r.event("level", remote); r.event("level", shop) }, changed,
		},
		"lines are missing":            {func(r *rounds) { r.markMissing() }, changed},
		"short failure of one process": {func(r *rounds) { r.grow(30, shop) }, ""},
		"long failure of one process":  {func(r *rounds) { r.grow(110, shop) }, "nothing was measured for 5"},
	} {
		r := newRounds(t)
		r.grow(60, shop, remote)
		if x := r.sum(t); len(x.transitions) == 0 || x.transitions[len(x.transitions)-1].To == detector.Normal {
			t.Fatalf("%s: %+v", name, x.transitions)
		}
		c.lines(r)
		r.grow(4, shop, remote)
		got := ""
		for _, step := range r.sum(t).transitions {
			if step.To == detector.Normal {
				got = step.Reason
			}
		}
		if !strings.HasPrefix(got, c.because) || c.because == "" && got != "" {
			t.Errorf("%s: got reason %q for the restart, want %q", name, got, c.because)
		}
	}
}

// A breakdown of the sum contains the dimensions that are known for all
// processes, and the driver memory of all processes that have any.
func TestBreakdownOfASum(t *testing.T) {
	r := newRounds(t)
	var java float64
	for i := range 480 {
		r.round(30)
		r.sample(shop, 100+float64(i), 0)
		r.sample(remote, 100, 0)
		java = 20 + float64(i)
		r.breakdown([]string{shop, remote}[i%2], java, []float64{10, 0}[i%2])
	}
	x := r.sum(t)
	if x.details != 240 {
		t.Errorf("got %d breakdowns of the sum, want 240", x.details)
	}
	run := r.of.Run()
	if a := run.Apps[0]; a.Gate != detector.Leak || len(a.Shares) == 0 || a.Shares[0].Dimension != "Java Heap" ||
		a.Kind != detector.Java {
		t.Errorf("%s (%s): %+v", a.Gate, a.Kind, a.Shares)
	}
	// If only one process has breakdowns, the sum has no breakdowns.
	for range 20 {
		r.round(30)
		r.sample(shop, 600, 0)
		r.sample(remote, 100, 0)
		r.breakdown(shop, java, 10)
	}
	if x.details != 240 {
		t.Errorf("got %d breakdowns of the sum, want 240", x.details)
	}
}

// The sum of two breakdowns contains the dimensions that are known in both, and
// the driver memory that is known in either.
func TestAddBreakdowns(t *testing.T) {
	kb := func(n int64) detector.Amount { return detector.Amount{N: n, Known: true} }
	var a, b, sum detector.Breakdown
	a.Dim[detector.JavaHeap], b.Dim[detector.JavaHeap] = kb(1), kb(2)
	a.Dim[detector.Code] = kb(5)
	a.EGL, b.GL, b.GfxDev = kb(7), kb(8), kb(0)
	addBreakdowns(&sum, a, true)
	addBreakdowns(&sum, b, false)
	want := detector.Breakdown{EGL: kb(7), GL: kb(8), GfxDev: kb(0)}
	want.Dim[detector.JavaHeap] = kb(3)
	if sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
	later := detector.Breakdown{OtherMtrack: kb(1)}
	if got := keepDriver(a, later); got.EGL != kb(7) || got.OtherMtrack != kb(1) {
		t.Errorf("the value of a row that was not printed is lost: %+v", got)
	}
	later.Dim[detector.Graphics] = kb(0)
	if got := keepDriver(a, later); got.EGL.Known {
		t.Errorf("driver memory is kept although there is no graphics memory: %+v", got)
	}
}

// The processes of at most maxApps apps of a device are added up; if there are
// more apps, the record contains a warning.
func TestMaxApps(t *testing.T) {
	r := newRounds(t)
	for i := range maxApps + 5 {
		for range 2 {
			r.round(1)
			r.sample(fmt.Sprintf("com.x%d", i), 100, 0)
			r.sample(fmt.Sprintf("com.x%d:p", i), 100, 0)
		}
	}
	run := r.of.Run()
	if len(run.Apps) != maxApps ||
		!slices.ContainsFunc(run.Warnings,
			func(w string) bool { return strings.Contains(w, "of 5 apps are not added up") }) {
		t.Errorf("%d apps, %q", len(run.Apps), run.Warnings)
	}
}

// Processes that start during the run increase the sum. Such growth alone is
// not reported as a leak.
func TestSumOfMoreProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		// starts lists the rounds in which a process of 100 MB starts; leak is
		// the growth of the app in MB/h.
		starts  []int
		leak    float64
		want    []detector.Gate
		because string
	}{
		"one start in the middle": {
			[]int{480}, 0, []detector.Gate{detector.Pass, detector.Settled, detector.Inconclusive}, "",
		},
		"one start per hour": {
			[]int{120, 240, 360, 480, 600, 720, 840}, 0, []detector.Gate{detector.Inconclusive},
			"belong to processes that started during the growth",
		},
		"one early start and a leak":             {[]int{10}, 60, []detector.Gate{detector.Leak}, ""},
		"several simultaneous starts and a leak": {[]int{5, 5, 5, 5}, 60, []detector.Gate{detector.Leak}, ""},
	} {
		r := newRounds(t)
		chance := rand.New(rand.NewPCG(5, 6))
		for i := range 960 {
			r.round(30)
			r.sample(shop, 300+c.leak*float64(i)/240+2*chance.NormFloat64(), 0)
			r.sample(remote, 80+c.leak*float64(i)/240+2*chance.NormFloat64(), 0)
			for k, at := range c.starts {
				if i >= at {
					r.sample(fmt.Sprintf("%s:sandboxed_process%d", shop, k), 100+2*chance.NormFloat64(), 0)
				}
			}
		}
		a := r.of.Run().Apps[0]
		if !slices.Contains(c.want, a.Gate) || !strings.Contains(a.Reason, c.because) {
			t.Errorf("%s: %s: %s", name, a.Gate, a.Reason)
		}
		if c.leak > 0 &&
			(len(a.ByProcess) < 2 || math.Abs(a.ByProcess[0].Share-0.5) > 0.1 ||
				math.Abs(a.ByProcess[1].Share-0.5) > 0.1) {
			t.Errorf("%s: %+v", name, a.ByProcess)
		}
	}
}

// A leak in the sum fails the run only if no process leaks. A process that
// leaks explains the growth of the sum.
func TestSumAndExitCode(t *testing.T) {
	for name, c := range map[string]struct {
		of      shopping
		exit    int
		leaking []string
	}{
		"leak only in the sum": {shopping{swing: 200, leak: 50, seed: 3}, record.ExitLeak, []string{}},
		"no leak":              {shopping{swing: 200, seed: 3}, record.ExitClean, []string{}},
		"leak of one process":  {shopping{swing: 10, moved: 40, seed: 3}, record.ExitLeak, []string{remote}},
	} {
		r := newRounds(t)
		c.of.play(r)
		r.of.stopped = record.Event{Text: record.StoppedDuration}
		run := r.of.Run()
		a := run.Apps[0]
		if run.ExitCode != c.exit || !slices.Equal(a.Leaking, c.leaking) || a.App != shop ||
			!slices.Equal(a.Processes, []string{shop, remote}) {
			t.Errorf("%s: exit %d, %+v", name, run.ExitCode, a)
		}
		if a.Leaks() != (c.of.leak > 0) {
			t.Errorf("%s: the sum is %s: %s", name, a.Gate, a.Reason)
		}
	}
}

// A window contains the sums that were computed while it was open.
func TestSumOfAWindow(t *testing.T) {
	r := newRounds(t)
	r.grow(5, shop, remote)
	r.Part.AddEvent(record.Event{Event: "window", Window: 1, Text: "w", T: r.Seconds(r.up), Up: r.up.Seconds()})
	r.grow(120, shop, remote)
	r.Part.AddEvent(record.Event{Event: "window_end", Window: 1, T: r.Seconds(r.up), Up: r.up.Seconds()})
	w := r.Window(1)
	if len(w.Apps) != 1 || w.Apps[0].App != shop || w.Apps[0].Samples != 120 || w.Apps[0].Gate != detector.Leak {
		t.Errorf("%+v", w.Apps)
	}
}

// A sum counts as one of the series that are judged together.
func TestSumsAreJudgedTogether(t *testing.T) {
	r := newRounds(t)
	replica := detector.New(detector.RobustPolicy())
	chance := rand.New(rand.NewPCG(7, 7))
	walk := 0.0
	for range 480 {
		r.round(30)
		walk += 4 + chance.NormFloat64()*60
		r.sample(shop, 400+walk/60, 0)
		r.sample(remote, 50, 0)
		replica.AddSample(detector.Sample{At: r.up, Bytes: int64((400+walk/60)*1024) << 10})
	}
	got := r.of.Run().Processes[0]
	replica.SetFamilySize(3)
	if v := replica.Verdict(); got.Reason != v.Because ||
		*got.MinDetectable != record.Round(v.MinDetectable/detector.MB, 4) {
		t.Errorf("%s, want %s", got.Reason, v.Because)
	}
	replica.SetFamilySize(2)
	if v := replica.Verdict(); *got.MinDetectable == record.Round(v.MinDetectable/detector.MB, 4) {
		t.Error("the verdict does not depend on the number of series")
	}
}

// shopping generates, from a seed, eight hours of an app whose processes pass
// work to each other: each has a share of the load. The load moves between the
// processes together with the given number of MB, and busy processes leak.
type shopping struct {
	seed  uint64
	swing float64
	// leak is in MB/h. moved is the memory in MB/h that moves from the app to
	// the other process.
	leak, moved float64
}

func (s shopping) play(r *rounds) {
	chance := rand.New(rand.NewPCG(s.seed, 11))
	const step = 30.0 / 3600
	share, target := 0.5, 0.5
	left := 0
	levels, noise := [2]float64{250 + s.moved*8, 150}, [2]float64{}
	for range 960 {
		if left--; left <= 0 { // a different mix of work, for 5 to 45 min
			target, left = chance.Float64(), 10+chance.IntN(80)
		}
		share += (target - share) * 0.2
		levels[0] += (s.leak*share - s.moved) * step
		levels[1] += (s.leak*(1-share) + s.moved) * step
		r.round(30)
		for i, name := range []string{shop, remote} {
			noise[i] = 0.8*noise[i] + 3*chance.NormFloat64()
			work := []float64{share, 1 - share}[i]
			r.sample(name, levels[i]+noise[i]+s.swing*work, 0)
		}
	}
}

// The sum detects the leak of processes that pass work to each other, causes no
// false alarm, and does not grow if memory moves from one process to another.
func TestSumOracle(t *testing.T) {
	const seeds = 30
	for name, c := range map[string]struct {
		of         shopping
		most, need int
	}{
		"leak of 50 MB/h, swing 80 MB":     {shopping{swing: 80, leak: 50}, seeds, 29},
		"leak of 50 MB/h, swing 200 MB":    {shopping{swing: 200, leak: 50}, seeds, 29},
		"no leak, swing 80 MB":             {shopping{swing: 80}, 0, 0},
		"no leak, swing 200 MB":            {shopping{swing: 200}, 0, 0},
		"15 MB/h moving between processes": {shopping{swing: 10, moved: 15}, 0, 0},
		"40 MB/h moving between processes": {shopping{swing: 10, moved: 40}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leaks, alone, reported := 0, 0, 0
			for seed := range uint64(seeds) {
				r := newRounds(t)
				c.of.seed = seed
				c.of.play(r)
				run := r.of.Run()
				if run.Apps[0].Gate == detector.Leak {
					leaks++
				}
				if run.Apps[0].Leaks() {
					alone++
				}
				for _, p := range run.Processes {
					if slices.ContainsFunc(p.Warnings,
						func(w string) bool { return strings.Contains(w, "may have moved here") }) {
						reported++
					}
				}
			}
			t.Logf("%d of %d runs leak, %d of them only in the sum; %d processes with memory that may have moved",
				leaks, seeds, alone, reported)
			if leaks < c.need || leaks > c.most {
				t.Errorf("the sum leaks in %d of %d runs, want %d to %d", leaks, seeds, c.need, c.most)
			}
			if c.of.moved > 0 && reported < 27 {
				t.Errorf("got %d processes with memory that may have moved, want at least 27", reported)
			}
			if c.of.leak > 0 && c.of.swing > 100 && alone < 20 {
				t.Errorf("got %d leaks only in the sum, want at least 20", alone)
			}
		})
	}
}
