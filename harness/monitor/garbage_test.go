package monitor

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// shopScreens returns a phone with an app whose screens are opened and closed
// in loops.
func shopScreens(o androidsim.Options, debuggable bool, screen androidsim.Screen,
	others ...androidsim.ProcessSpec) *simulated {
	screen.Class = ".CartActivity"
	o.Serial = "S1"
	main := androidsim.ProcessSpec{
		Name: "com.shop",
		Models: []androidsim.Model{
			androidsim.Typical(), androidsim.Noise(1, 0.3), androidsim.GCSawtooth(30, 40*time.Second),
		},
	}
	o.Apps = []androidsim.App{{
		Package: "com.shop", Debuggable: debuggable, Processes: append([]androidsim.ProcessSpec{main}, others...),
		Screens: []androidsim.Screen{{Class: ".MainActivity"}, screen},
	}}
	return &simulated{Phone: androidsim.New(o)}
}

// openAndClose returns a workload that performs a number of loops on the
// device, each with a mark.
func openAndClose(loops int, every time.Duration) DeviceCommand {
	return DeviceCommand{
		Command: fmt.Sprintf("am start -n com.shop/.MainActivity; sleep 5; i=0; while [ $i -lt %d ]; do i=$((i+1)); "+
			"echo leakgate:mark loop $i; "+
			"sleep 4; am start -n com.shop/.CartActivity; sleep 4; input keyevent BACK; sleep %g; done; sleep 20",
			loops, (every - 8*time.Second).Seconds())}
}

func TestCollectAtMarks(t *testing.T) {
	leaks, closes := androidsim.Screen{Leaks: true, JavaKB: 200}, androidsim.Screen{}
	for name, c := range map[string]struct {
		phone   func() *simulated
		change  func(*Options)
		loops   int
		every   time.Duration
		gate    detector.Gate
		because string
		exit    int
		// forced and refused are the numbers of events expected for the main
		// process; -1 allows any number.
		forced, refused int
	}{
		"debuggable app with a leak": {
			phone: func() *simulated { return shopScreens(androidsim.Options{}, true, leaks) }, loops: 24,
			every: 30 * time.Second,
			gate:  detector.Leak, because: "1 more Activity after each of 23 loops: 1 to 24", exit: record.ExitLeak,
			forced: 24,
		},
		"debuggable app without a leak": {
			phone: func() *simulated { return shopScreens(androidsim.Options{}, true, closes) }, loops: 24,
			every: 30 * time.Second,
			gate:  detector.Pass,
			because: "would have been detected; 23 loops: no Activity, window, context, WebView, Binder proxy, " +
				"thread or file retained", exit: record.ExitClean, forced: 24,
		},
		"root shell, native and isolated processes": {
			phone: func() *simulated {
				return shopScreens(rooted(), false, leaks, androidsim.ProcessSpec{Name: "com.shop:tool", Native: true},
					androidsim.ProcessSpec{Name: "com.shop:web", Isolated: true})
			}, loops: 24, every: 30 * time.Second,
			gate: detector.Leak, because: "more Activity after each of ", exit: record.ExitLeak, forced: 24,
		},
		"loops of 12 s": {
			phone: func() *simulated { return shopScreens(androidsim.Options{}, true, leaks) }, loops: 50,
			every: 12 * time.Second,
			gate:  detector.Leak, because: "more Activ", exit: record.ExitLeak, forced: 50,
		},
		"release build": {
			phone: func() *simulated { return shopScreens(androidsim.Options{}, false, leaks) }, loops: 24,
			every: 30 * time.Second,
			gate:  detector.Leak, because: "1 more Activity after each of 23 loops: 1 to 24", exit: record.ExitLeak,
			refused: 24,
		},
		"release build without a leak": {
			phone: func() *simulated { return shopScreens(androidsim.Options{}, false, closes) }, loops: 24,
			every: 30 * time.Second,
			gate:  detector.Inconclusive, exit: record.ExitInconclusive, refused: 24,
		},
		"never": {
			phone: func() *simulated { return shopScreens(androidsim.Options{}, true, leaks) }, loops: 24,
			every:  30 * time.Second,
			change: func(o *Options) { o.Collect = CollectNever }, gate: detector.Inconclusive,
			exit: record.ExitInconclusive,
		},
		"long run": {
			phone: func() *simulated { return shopScreens(androidsim.Options{}, true, leaks) }, loops: 6,
			every:  time.Minute,
			change: func(o *Options) { o.Duration = 2 * time.Hour }, gate: detector.Inconclusive,
			exit: record.ExitInconclusive,
		},
		"long run with requested collections": {
			phone: func() *simulated { return shopScreens(androidsim.Options{}, true, leaks) }, loops: 8,
			every:  time.Minute,
			change: func(o *Options) { o.Duration, o.Collect = 2*time.Hour, CollectAtMarks }, gate: detector.Leak,
			exit: record.ExitLeak, forced: 8,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := c.phone()
				pids := map[string]int{}
				for _, process := range []string{"com.shop:tool", "com.shop:web"} {
					pids[process] = p.PID(process)
				}
				o := options(t, p)
				o.Policy, o.Workload, o.Duration, o.AllowUnjudged, o.Headroom = detector.DefaultPolicy(),
					openAndClose(c.loops, c.every), 0, false, DefaultSampling.Headroom
				if c.change != nil {
					c.change(&o)
				}
				r := perform(t, t.Context(), o)
				x := r.process(t, "S1", "com.shop")
				if x.Gate != c.gate || !strings.Contains(x.Reason, c.because) || r.ExitCode != c.exit {
					t.Errorf("exit %d, %s: %s", r.ExitCode, x.Gate, x.Reason)
				}
				forced, refused := len(r.eventsOf("collected", "com.shop")),
					len(r.eventsOf("not_collected", "com.shop"))
				if forced != c.forced || refused != c.refused {
					t.Errorf("got %d collections and %d refusals, want %d and %d", forced, refused, c.forced, c.refused)
				}
				for process, pid := range pids {
					if p.PID(process) != pid {
						t.Errorf("the signal killed %s", process)
					}
				}
				checkBudget(t, r)
				rebuilt(t, o.Dir, r.Run)
			})
		})
	}
}

// checkBudget checks that there are no more breakdowns than without forced
// collections: one every 30 s of device time.
func checkBudget(t *testing.T, r result) {
	t.Helper()
	details := 0
	for _, p := range r.Processes {
		details += p.Details
	}
	if most := int(r.Devices[0].Duration/30) + maxBorrowed/2 + 2; details > most {
		t.Errorf("got %d breakdowns in %.0f s, want at most %d", details, r.Devices[0].Duration, most)
	}
}

// TestCollectRules checks which marks may begin a loop, and which runs force
// collections by default.
func TestCollectRules(t *testing.T) {
	var got []string
	newLoops := func() *garbage { return &garbage{families: map[string]bool{}, latest: -1} }
	g := newLoops()
	for _, mark := range []string{"start", "loop 1", "step 1.1", "loop 2", "step 2.1", "end", "loop 3"} {
		if g.addMark(ledger.MarkFamily(mark)) {
			got = append(got, mark)
		}
	}
	if want := "start, loop 1, step 1.1, loop 2, loop 3"; strings.Join(got, ", ") != want {
		t.Errorf("collections at %v, want %s", got, want)
	}
	g, n := newLoops(), 0
	for i := range 100 {
		if g.addMark(fmt.Sprintf("%c", 'a'+i)) {
			n++
		}
	}
	if n != maxLoopFamilies {
		t.Errorf("got %d marks outside a loop, want %d", n, maxLoopFamilies)
	}
	load := openAndClose(1, time.Minute)
	for _, c := range []struct {
		o    Options
		want bool
	}{
		{Options{Duration: 12 * time.Minute}, true}, {Options{Duration: 2 * time.Hour}, false},
		{Options{Workload: load}, true}, {Options{Workload: load, Duration: 8 * time.Hour}, false}, {Options{}, false},
	} {
		g := &garbage{port: &port{run: &run{Options: c.o}}}
		if g.enabled() != c.want {
			t.Errorf("duration %v, workload %v: %v", c.o.Duration, c.o.Workload, !c.want)
		}
	}
}

// Immediate readings replace the regular readings of the round, until too many
// slots are taken.
func TestRotationBorrow(t *testing.T) {
	r := newRotation(30 * time.Second)
	r.Add(capture.Key{Name: "A"})
	equal(t, turns(r, 0, time.Second), []string{"0s A"})
	for i, want := range []bool{true, true, true, true, false} {
		if r.Borrow(20*time.Second) != want {
			t.Errorf("extra reading %d allowed: %v", i, !want)
		}
	}
	equal(t, turns(r, 20*time.Second, 170*time.Second), []string{"2m30s A"})
	r = newRotation(30 * time.Second)
	r.Add(capture.Key{Name: "A"})
	for now := time.Duration(0); now < time.Hour; now += 30 * time.Second { // once per period, indefinitely
		if _, ok := r.Turn(now - time.Second); ok && now > 30*time.Second {
			t.Fatalf("%v: a regular turn in addition to the extra reading", now)
		}
		if !r.Borrow(now) {
			t.Fatalf("%v: refused", now)
		}
	}
}
