//go:build realtime && e2e

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/reporters/record"
)

// settlers is the configuration of a run of three hours in which real processes
// grow and stop growing: one loads 225 MB within a quarter of an hour, one
// fills a cache of 200 MB in 40 min and then keeps it full. The leaking
// processes in this run leak half as fast as those of the nightly run.
const settlers = `version: 1
app:
  package: PACKAGE
  processes: ["PACKAGE:*"]
devices:
  serials: ["${LEAKGATE_HOSTDEVICE}"]
workload:
  device_command: >-
    am start -n PACKAGE/.All --es mb_per_h 150
    && am start -n PACKAGE/.WarmUp --es mb_per_h 900 --es for_s 900
    && am start -n PACKAGE/.Cache --es mb_per_h 300 --es for_s 2400
    && exec sleep 86400
duration: 3h
detect: { policy: robust }
`

// Processes that stop growing do not leak, and the leaks of the other processes
// are found.
func TestSettlingProcessesOnTheHostDevice(t *testing.T) {
	if os.Getenv("LEAKGATE_E2E") != "long" {
		t.Skip("this test takes ten minutes: set LEAKGATE_E2E=long")
	}
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.StartRooted(t, hostdevice.Options{Scale: 20})
	dir := t.TempDir()
	config, out := filepath.Join(dir, "settlers.yaml"), filepath.Join(dir, "run")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(settlers, "PACKAGE", r.Package())), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := onHostDevice(t, ctx, r, "run", config, "--out", out)
	text, err := cmd.CombinedOutput()
	t.Logf("%s", text)
	if cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit %d (%v), want 1: a leak", cmd.ProcessState.ExitCode(), err)
	}
	run, err := record.ReadRun(out)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]record.Process{}
	for _, p := range run.Processes {
		_, name, _ := strings.Cut(p.Process, ":")
		seen[name] = p
	}
	for name, want := range map[string]struct {
		kind string // empty for no leak
		mb   float64
	}{
		"java": {"java_leak", 450}, "native": {"native_leak", 450}, "thread": {"thread_leak", 450},
		"control": {"", 0}, "warmup": {"", 225}, "cache": {"", 200},
	} {
		p, ok := seen[name]
		leaks := p.Gate == "leak"
		switch {
		case !ok:
			t.Errorf("process %s was not found", name)
		case leaks != (want.kind != "") || leaks && p.Kind.String() != want.kind:
			t.Errorf("%s: gate %s, %s, want %q: %s", name, p.Gate, p.Kind, want.kind, p.Reason)
		case p.LastMB == nil || *p.LastMB < want.mb:
			t.Errorf("%s did not grow to %v MB: %v", name, want.mb, p.LastMB)
		}
	}
}

// This end-to-end test uses real components: the real adb server, the real
// adbd, a real shell, and four Java processes, three of which really leak. One
// run is on a build that allows everything to be read. The other run is on a
// user build with a released app, on which the kernel denies access.
func TestNightOnTheHostDevice(t *testing.T) {
	if testing.Short() {
		t.Skip("this test takes more than two minutes")
	}
	t.Parallel()
	hostdevicetest.RequireJava(t)
	rooted := hostdevicetest.StartNested(t, hostdevice.Options{Scale: nightScale, AppUID: appUser})
	user := hostdevicetest.StartNested(t,
		hostdevice.Options{Scale: nightScale, ShellUID: shellUser, AppUID: appUser, BuildType: "user", Released: true})
	one, other := beginNight(t, rooted), beginNight(t, user)
	t.Run("root", func(t *testing.T) { one.end(t).assertWhole(t, rooted) })
	t.Run("user build", func(t *testing.T) { other.end(t).assertDegraded(t, user) })
}

// nearing is the configuration of a run with processes that approach a limit:
// on open files, or on the Java heap.
const nearing = `version: 1
app: { package: PACKAGE, processes: ["PACKAGE:*"] }
devices: { serials: ["${LEAKGATE_HOSTDEVICE}"] }
workload:
  device_command: am start -n PACKAGE/.Files --es mb_per_h 300 && am start -n PACKAGE/.Busy --es mb_per_h 150 && exec sleep 86400
duration: 110m
`

// A warning is reported before a process dies at a limit.
func TestLimitsOnTheHostDevice(t *testing.T) {
	if testing.Short() {
		t.Skip("this test takes more than a minute")
	}
	t.Parallel()
	hostdevicetest.RequireJava(t)
	const heapMB, files = 320, 1024
	r := hostdevicetest.StartNested(t, hostdevice.Options{Scale: 80, AppUID: appUser, HeapMB: heapMB, FileLimit: files})
	w := begin(t, r, 3*time.Minute, strings.ReplaceAll(nearing, "PACKAGE", r.Package())).end(t)
	for _, want := range []struct {
		process, resource, words string
		limit                    int64
	}{
		{"files", "file_descriptors", "file descriptors", files},
		{"busy", "java_heap", "Java heap", heapMB * mb},
	} {
		p := w.process(t, want.process)
		for _, l := range p.Limits {
			if l.Resource != want.resource {
				t.Errorf("unexpected warning for %s: %s", want.process, l.Text)
			}
		}
		if len(p.Limits) == 0 {
			t.Errorf("no warning for %s: %+v, %q", want.process, p.Headroom, p.HeadroomReasons)
			continue
		}
		l := p.Limits[0]
		if l.Limit != want.limit || l.Used < want.limit*4/10 || l.Used > want.limit || l.TimeLeft == nil ||
			*l.TimeLeft > 3600 {
			t.Errorf("%s: %+v", want.process, l)
		}
		if !strings.Contains(l.Text, want.words) || !w.has(want.process, "limit") {
			t.Errorf("%s: %q", want.process, l.Text)
		}
		w.says(t, l.Text)
	}
	// The process died as predicted, and at the predicted time: an app that can
	// open no more files cannot run.
	warned := w.process(t, "files").Limits[0]
	gone := slices.IndexFunc(w.events,
		func(e record.Event) bool { return e.Event == "gone" && modeOf(e.Process) == "files" })
	if gone < 0 {
		t.Fatal("the process that leaks files is still running")
	}
	if left := w.events[gone].T - warned.T; left < 0.7**warned.TimeLeft || left > 1.3**warned.TimeLeft {
		t.Errorf("the process ended after %.0f s, the prediction was %.0f s", left, *warned.TimeLeft)
	}
}
