//go:build realtime && e2e

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/reporters/record"
)

// loops is the configuration of a run whose workload marks eight loops of three
// seconds of device time.
const loops = `version: 1
app: { package: PACKAGE, processes: ["PACKAGE:*"] }
devices: { serials: ["${LEAKGATE_HOSTDEVICE}"] }
workload:
  command:
    - sh
    - -c
    - |
      ` + awaiting + `
      await found 2
      for i in 1 2 3 4 5 6 7 8; do sleep 0.15; MARK; done
diagnose: { dump: at_marks }
`

// With marks that wait, each process is dumped after each loop, before the next
// loop begins. With marks that do not wait, each process is dumped at least
// three times, and each missing dump is reported as missing evidence.
func TestMarksOnTheHostDevice(t *testing.T) {
	hostdevicetest.RequireJava(t)
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	r := hostdevicetest.StartNested(t, hostdevice.Options{Scale: 20, AppUID: appUser})
	r.Must(t, "shell", "am start -n "+r.Package()+"/.Java --es mb_per_h 60 && am start -n "+r.Package()+"/.Control")
	config := strings.ReplaceAll(loops, "PACKAGE", r.Package())

	waits := begin(t, r, 4*time.Minute,
		strings.ReplaceAll(config, "MARK", path+` mark --run "$LEAKGATE_RUN" --wait loop $i`)).end(t)
	var marks []record.Event
	for _, e := range waits.events {
		if e.Event == "mark" {
			marks = append(marks, e)
		}
	}
	for _, name := range []string{"java", "control"} {
		dumps := waits.diagnosesOf(name, "mark")
		if len(dumps) != 8 || len(marks) != 8 {
			t.Fatalf("%s: got %d dumps at %d marks, want 8 at 8", name, len(dumps), len(marks))
		}
		for i, d := range dumps {
			assertSteps(t, d, "heap complete")
			if want := fmt.Sprintf("loop %d", i+1); d.Mark != want || !d.Settled || d.T < marks[i].T || i < 7 &&
				d.T > marks[i+1].T {
				t.Errorf("%s: got a dump at mark %q at %v (settled: %v), want it after %s at %v", name, d.Mark, d.T,
					d.Settled, want, marks[i].T)
			}
		}
	}
	if len(waits.MissingEvidence) > 0 {
		t.Errorf("missing: %+v", waits.MissingEvidence)
	}
	assertNothingLeft(t, r)

	// Three dumps of two processes need about a second, and more on a busy
	// machine.
	slower := strings.NewReplacer("sleep 0.15", "sleep 0.5", "MARK", "echo leakgate:mark loop $i")
	goes := begin(t, r, 4*time.Minute, slower.Replace(config)).end(t)
	for _, name := range []string{"java", "control"} {
		have := map[string]int{}
		dumps := goes.diagnosesOf(name, "mark")
		for _, d := range dumps {
			have[d.Mark]++
		}
		for _, m := range goes.MissingEvidence {
			if strings.HasSuffix(m.Process, ":"+name) {
				have[m.Mark]++
			}
		}
		if len(dumps) < 3 || len(have) != 8 {
			t.Errorf("%s: %d dumps, %v", name, len(dumps), have)
		}
		for mark, n := range have {
			if n != 1 {
				t.Errorf("%s: %q %d times", name, mark, n)
			}
		}
	}
	assertNothingLeft(t, r)
}

// screens is the configuration of a run whose workload marks its loops. In each
// loop the app opens and closes ten screens.
const screens = `version: 1
app: { package: PACKAGE, processes: ["PACKAGE:*"] }
devices: { serials: ["${LEAKGATE_HOSTDEVICE}"] }
workload:
  command:
    - sh
    - -c
    - |
      ` + awaiting + `
      await found 1
      pid=$(adb -s "$ANDROID_SERIAL" shell pidof PACKAGE:MODE)
      for i in $(seq LOOPS); do adb -s "$ANDROID_SERIAL" shell kill -28 $pid; MARK; done
diagnose: { dump: at_marks, keep: none }
`

// If an app releases its screens two seconds after each loop, a hundred dumps
// at marks that wait show no leak; dumps at marks that do not wait contain work
// in progress. If an app keeps one screen per loop, the run proves the leak.
func TestScreensOnTheHostDevice(t *testing.T) {
	hostdevicetest.RequireJava(t)
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	wait, speak := path+` mark --run "$LEAKGATE_RUN" --wait loop $i`, "echo leakgate:mark loop $i; sleep 0.6"
	for name, c := range map[string]struct {
		mode, mark string
		loops      int
		leaks      func(dump, count int) bool
		exit       int
	}{
		"healthy": {
			"screens", wait, 100, func(_, n int) bool { return n == 0 }, record.ExitClean,
		},
		"healthy, with marks that do not wait": {"screens", speak, 20, nil, 0},
		"leaking": {
			"kept", wait, 5, func(dump, n int) bool { return n == dump }, record.ExitLeak,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := hostdevicetest.StartRooted(t, hostdevice.Options{Scale: 5})
			activity := map[string]string{"screens": ".Screens", "kept": ".Kept"}[c.mode]
			r.Must(t, "shell", "am start -n "+r.Package()+"/"+activity)
			config := strings.NewReplacer("PACKAGE", r.Package(), "MODE", c.mode, "LOOPS", fmt.Sprint(c.loops), "MARK",
				c.mark).Replace(screens)
			w := begin(t, r, 8*time.Minute, config).end(t)
			dumps, inFlight := w.diagnosesOf(c.mode, "mark"), 0
			for i, d := range dumps {
				n := 0
				for _, l := range d.Leaks {
					n += int(l.Count)
				}
				if n > 0 {
					inFlight++
				}
				if c.leaks != nil && (!d.Settled || d.Undecided != "" || !c.leaks(i+1, n)) {
					t.Errorf("dump %d: %d leaks, settled: %t, undecided: %q, leaks %+v", i+1, n, d.Settled, d.Undecided,
						d.Leaks)
				}
			}
			if c.leaks != nil && len(dumps) != c.loops || len(dumps) < 3 {
				t.Errorf("%d dumps at %d marks", len(dumps), c.loops)
			}
			if c.leaks == nil && inFlight == 0 {
				t.Errorf("none of the %d dumps shows screens in use: the test proves nothing", len(dumps))
			}
			t.Logf("%d dumps, %d with leaks", len(dumps), inFlight)
			if c.leaks != nil && w.exit != c.exit {
				t.Errorf("exit %d, want %d", w.exit, c.exit)
			}
			assertNothingLeft(t, r)
		})
	}
}
