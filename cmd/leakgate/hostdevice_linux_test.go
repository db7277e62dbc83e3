package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/reporters/record"
)

// onHostDevice is leakgate as a child process that uses the device's adb server.
func onHostDevice(t *testing.T, ctx context.Context, r *hostdevicetest.Running, args ...string) *exec.Cmd {
	t.Helper()
	return program(t, ctx, append(r.Environment(), "LEAKGATE_HOSTDEVICE="+r.Serial), args...)
}

// settlers is a run of three hours in which real processes grow and stop: one loads
// 225 MB within a quarter of an hour, one fills a cache of 200 MB in 40 min and goes
// on with it. The leaks beside them are half as fast as those of the nightly run.
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

// What grows and stops is no leak, and what leaks beside it is found.
func TestSettlersOnTheHostDevice(t *testing.T) {
	if os.Getenv("LEAKGATE_E2E") != "long" {
		t.Skip("takes ten minutes; LEAKGATE_E2E=long")
	}
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.Start(t, hostdevice.Options{Scale: 20})
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
			t.Errorf("never seen: %s", name)
		case leaks != (want.kind != "") || leaks && p.Kind != want.kind:
			t.Errorf("%s: gate %s, %s, want %q: %s", name, p.Gate, p.Kind, want.kind, p.Because)
		case p.LastMB == nil || *p.LastMB < want.mb:
			t.Errorf("%s has not grown to %v MB: %v", name, want.mb, p.LastMB)
		}
	}
}

// assertNoHostPath holds a run directory against the rule that no file names a
// path of the host.
func assertNoHostPath(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"run.json", "samples.ndjson"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		paths := []string{os.TempDir() + "/"}
		if home, err := os.UserHomeDir(); err == nil && home != "/" {
			paths = append(paths, home+"/")
		}
		for _, path := range paths {
			if at := bytes.Index(text, []byte(path)); at >= 0 {
				t.Errorf("%s names a path of this machine: %s", name, text[max(0, at-100):min(len(text), at+100)])
			}
		}
	}
}
