//go:build realtime && e2e

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/reporters/record"
)

// living is the configuration of a run whose workload repeatedly restarts an
// app.
const living = `version: 1
app: { package: PACKAGE, processes: ["PACKAGE:*"] }
devices: { serials: ["${LEAKGATE_HOSTDEVICE}"] }
workload:
  device_command: while :; do WORKLOAD; done
duration: DURATION
`

// A life lasts 20 minutes of device time, which take 20 seconds of real time.
const livesScale = 60

func beginLives(t *testing.T, r *hostdevicetest.Running, duration, workload string) watching {
	t.Helper()
	return begin(t, r, 4*time.Minute,
		strings.NewReplacer("PACKAGE", r.Package(), "DURATION", duration, "WORKLOAD",
			strings.ReplaceAll(workload, "PACKAGE", r.Package())).Replace(living))
}

// A process grows until it dies of an OutOfMemoryError, each time too early for
// a trend. The leak is still found, both from the deaths and from the growth
// that all lives have in common.
func TestRepeatedOutOfMemoryIsLeak(t *testing.T) {
	t.Parallel()
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.StartRooted(t, hostdevice.Options{Scale: livesScale, HeapMB: 80})
	w := beginLives(t, r, "2h20m", "am start -n PACKAGE/.Java --es mb_per_h 240; sleep 0.3").end(t)
	p := w.process(t, "java")
	died := p.DeathsByReason["out_of_memory"]
	if w.exit != record.ExitLeak || p.Gate != detector.Leak || p.Kind != detector.Java {
		t.Errorf("exit %d, gate %s, %s: %s", w.exit, p.Gate, p.Kind, p.Reason)
	}
	if died < 4 || len(p.DeathsByReason) != 1 || p.Restarts != died || len(p.Deaths) != died {
		t.Errorf("%d restarts, deaths %v: %+v", p.Restarts, p.DeathsByReason, p.Deaths)
	}
	for _, d := range p.Deaths {
		if d.Reason != "out_of_memory" || !strings.Contains(d.Text, "java.lang.OutOfMemoryError") {
			t.Errorf("got death reason %s at %v, want out_of_memory: %q", d.Reason, d.T, d.Text)
		}
	}
	if p.Rate == nil || *p.Rate < 220 || *p.Rate > 260 {
		t.Errorf("rate: %s", p.Reason)
	}
	w.says(t, fmt.Sprintf("%s:java: LEAK (java leak)", r.Package()),
		fmt.Sprintf("restarted %d times (%d OutOfMemoryErrors)", died, died),
		fmt.Sprintf("%d out-of-memory deaths", died),
		fmt.Sprintf("\n  deaths   %d OutOfMemoryErrors; the last at ", died),
		"held by Leaky.OPEN_SESSIONS")
	// After three deaths the next life is diagnosed before it dies.
	if leaks := w.diagnosesOf("java", record.TriggerLeak); len(leaks) == 0 || leaks[0].T < p.Deaths[2].T ||
		leaks[0].T > p.Deaths[3].T {
		t.Errorf("deaths %+v, diagnosed %+v", p.Deaths, leaks)
	}
	w.assertRebuilt(t)
	assertNothingLeft(t, r)
}

// A process that its suite kills every six seconds cannot be judged, and does
// not pass.
func TestKilledEverySixSeconds(t *testing.T) {
	for name, c := range map[string]struct {
		scale      float64
		duration   string
		restarts   int
		times, why string
	}{
		// Each life lasts two minutes of device time and has a few samples.
		"two minutes": {20, "25m", 8, "restarted %d times", `longest life [0-9.]+ min, a trend needs 30 min`},
		// Between two samples the process was killed several times.
		"six seconds": {
			1, "100s", 2, "restarted at least %d times",
			`(?:no life was sampled twice|longest life .*), a trend needs 30 min`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hostdevicetest.RequireJava(t)
			r := hostdevicetest.StartRooted(t, hostdevice.Options{Scale: c.scale})
			w := beginLives(t, r, c.duration, "am start -n PACKAGE/.Control; sleep 6; am force-stop PACKAGE").end(t)
			p := w.process(t, "control")
			if w.exit != record.ExitInconclusive || p.Gate != detector.Inconclusive || p.MinDetectable != nil {
				t.Errorf("exit %d, gate %s: %s", w.exit, p.Gate, p.Reason)
			}
			if p.Restarts < c.restarts || p.DeathsByReason["kill"] < p.Restarts || len(p.DeathsByReason) != 1 {
				t.Errorf("%d restarts, deaths %v", p.Restarts, p.DeathsByReason)
			}
			if why := fmt.Sprintf(`^restarted %d times(?:, ended \d+ times)? \(%d kills\); %s$`, p.Restarts,
				p.DeathsByReason["kill"], c.why); !regexp.MustCompile(why).MatchString(p.Reason) {
				t.Errorf("reason %q, want %s", p.Reason, why)
			}
			w.says(t, fmt.Sprintf("INCONCLUSIVE, "+c.times, p.Restarts),
				"\n  why      "+p.Reason[strings.Index(p.Reason, "; ")+2:]+"\n",
				"Exit code 5: no verdict on the entries listed as not judged")
			w.assertRebuilt(t)
			assertNothingLeft(t, r)
		})
	}
}

// If a suite restarts a process without a leak every 20 minutes, the verdict is
// inconclusive and never a leak. The verdict states how large a leak could have
// been missed.
func TestHealthyProcessRestartedEveryTwentyMinutes(t *testing.T) {
	t.Parallel()
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.StartRooted(t, hostdevice.Options{Scale: livesScale})
	w := beginLives(t, r, "2h10m", "am start -n PACKAGE/.Control; sleep 20; am force-stop PACKAGE").end(t)
	p := w.process(t, "control")
	if w.exit != record.ExitInconclusive || p.Gate != detector.Inconclusive || p.Worst != detector.Normal {
		t.Errorf("exit %d, gate %s, worst %s: %s", w.exit, p.Gate, p.Worst, p.Reason)
	}
	if p.Restarts < 5 || p.DeathsByReason["kill"] < p.Restarts || len(p.DeathsByReason) != 1 {
		t.Errorf("%d restarts, deaths %v", p.Restarts, p.DeathsByReason)
	}
	if p.MinDetectable == nil || *p.MinDetectable < 30 {
		t.Errorf("got %+v as the slowest detectable leak, want at least 30 MB/h", p.MinDetectable)
	}
	w.says(t, "longest life ", ", a trend needs 30 min", "Exit code 5: no verdict on the entries listed as not judged")
	w.assertRebuilt(t)
	assertNothingLeft(t, r)
}
