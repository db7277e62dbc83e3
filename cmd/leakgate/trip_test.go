package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/trip"
	"github.com/leakgate/leakgate/internal/schema"
	"github.com/leakgate/leakgate/reporters/record"
)

// quietShop returns a phone in real time with an app whose memory grows only as
// its models specify.
func quietShop(spec androidsim.ProcessSpec) *androidsim.Phone {
	spec.Name = "com.shop"
	spec.Models = append([]androidsim.Model{androidsim.Typical(), androidsim.Noise(0.05, 0.3)}, spec.Models...)
	return androidsim.New(androidsim.Options{
		Serial: "phone-a", Model: "Sim phone-a", Scale: 1, Seed: 5, Root: true, BuildType: "userdebug",
		Apps: []androidsim.App{{Package: "com.shop", Processes: []androidsim.ProcessSpec{spec}}},
	})
}

// scenario returns the arguments for a scenario that is a script.
func scenario(t *testing.T, command string) []string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the scenarios of these tests are shell scripts")
	}
	return []string{"--", "sh", "-c", command}
}

// tripped runs a trip and returns its result, if one exists.
func tripped(t *testing.T, phone *androidsim.Phone, args ...string) (r record.Trip, code int, out, errOut string) {
	t.Helper()
	phones := attach(t, phone)
	code, out, errOut = phones.typed(t, append([]string{"trip", "--process", "com.shop", "--out", "run"}, args...)...)
	if text, err := os.ReadFile("run/trip.json"); err == nil {
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		if n, err := schema.CheckRun("run"); err != nil || n < 2 {
			t.Errorf("%d documents, %v", n, err)
		}
	}
	return r, code, out, errOut
}

func TestTripFindsALeak(t *testing.T) {
	args := scenario(t, `echo "$ANDROID_SERIAL $LEAKGATE_RUN"`)
	synctest.Test(t, func(t *testing.T) {
		t.Chdir(t.TempDir())
		r, code, out, errOut := tripped(t,
			quietShop(androidsim.ProcessSpec{Models: []androidsim.Model{androidsim.Leak(androidsim.Native, 600, 0)}}),
			args...)
		if code != record.ExitLeak || r.Verdict != record.VerdictLeak || r.Loops != 10 ||
			!strings.HasPrefix(out, "com.shop: LEAK: ") || !strings.Contains(out, "native_heap +") {
			t.Errorf("exit %d, %+v\n%s%s", code, r, out, errOut)
		}
		if m := measureIn(r, "native_heap"); !m.Grows || len(m.Interval) != 2 || m.Interval[0] <= 0 {
			t.Errorf("%+v", m)
		}
		for _, want := range []string{"loop 10 of up to 10", "warm-up loop 2", "the run is in run\n"} {
			if !strings.Contains(errOut, want) {
				t.Errorf("no %q in\n%s", want, errOut)
			}
		}
		run, err := record.ReadRun("run")
		if err != nil || run.Stopped != record.StoppedFinished || run.Interrupted {
			t.Errorf("%+v, %v", run, err)
		}
		logs, err := filepath.Glob("run/workload*.log")
		if err != nil || len(logs) != 12 {
			t.Errorf("%q, %v", logs, err)
		}
		if log, err := os.ReadFile("run/workload-3.log"); err != nil || !strings.HasPrefix(string(log), "phone-a /") ||
			!strings.HasSuffix(string(log), "/run\n") {
			t.Errorf("%q, %v", log, err)
		}
	})
}

// A trip in which nothing grows stops early and keeps no heap dumps, unless
// they are requested.
func TestTripWithoutALeak(t *testing.T) {
	args := scenario(t, "true")
	synctest.Test(t, func(t *testing.T) {
		for _, keep := range [][]string{nil, {"--keep", "none"}, {"--keep", "raw"}} {
			t.Chdir(t.TempDir())
			r, code, out, errOut := tripped(t,
				quietShop(androidsim.ProcessSpec{}), append(append(keep, "--json"), args...)...)
			if code != exitOK || r.Verdict != record.VerdictPass || r.Stopped != record.TripStoppedQuiet ||
				r.Loops > 8 || r.Dumps != 3 {
				t.Errorf("exit %d, %+v\n%s%s", code, r, out, errOut)
			}
			if want, err := os.ReadFile("run/trip.json"); err != nil || out != string(want) {
				t.Errorf("stdout differs from trip.json: %s", out)
			}
			dumps, err := filepath.Glob("run/artifacts/*/*/heap.hprof.zst")
			if kept := len(keep) > 0 && keep[1] == "raw"; err != nil || kept != (len(dumps) == 3) {
				t.Errorf("%q: %q, %v", keep, dumps, err)
			}
			// A record remains valid after its dumps are removed.
			if code, out, errOut := typed(t, nil, "report", "run"); code != exitOK ||
				strings.Contains(errOut, "heap.hprof") {
				t.Errorf("report: exit %d\n%s%s", code, out, errOut)
			}
		}
	})
}

func TestTripCommandFails(t *testing.T) {
	args := scenario(t, `[ -e "$LEAKGATE_RUN/workload-4.log" ] && { echo broken; exit 3; } || true`)
	synctest.Test(t, func(t *testing.T) {
		t.Chdir(t.TempDir())
		r, code, out, errOut := tripped(t,
			quietShop(androidsim.ProcessSpec{}), append([]string{"--no-dumps"}, args...)...)
		if code != record.ExitWorkload || r.Stopped != record.TripStoppedLoop || r.Loops != 1 ||
			!strings.Contains(errOut,
				"leakgate trip: loop 2: run workload sh: exit status 3; its output is in workload-4.log") {
			t.Errorf("exit %d, %+v\n%s%s", code, r, out, errOut)
		}
		if log, err := os.ReadFile("run/workload-4.log"); err != nil || string(log) != "broken\n" {
			t.Errorf("%q, %v", log, err)
		}
	})
}

// A process that restarts cannot be compared: the error names the time and the
// reason.
func TestTripProcessRestarts(t *testing.T) {
	args := scenario(t, "true")
	synctest.Test(t, func(t *testing.T) {
		t.Chdir(t.TempDir())
		phone := quietShop(androidsim.ProcessSpec{
			Models: []androidsim.Model{androidsim.Crash(12*time.Second, time.Second)},
		})
		r, code, out, errOut := tripped(t, phone, append([]string{"--no-dumps"}, args...)...)
		if code != record.ExitInconclusive || r.Judged || !strings.Contains(errOut, "com.shop ") ||
			!strings.Contains(errOut, "crash") ||
			!strings.Contains(errOut, "a scenario must leave its process running") {
			t.Errorf("exit %d, %+v\n%s%s", code, r, out, errOut)
		}
		if _, err := record.ReadRun("run"); err != nil {
			t.Error(err)
		}
	})
}

func TestTripOfMissingProcess(t *testing.T) {
	args := scenario(t, "true")
	synctest.Test(t, func(t *testing.T) {
		t.Chdir(t.TempDir())
		phones := attach(t, quietShop(androidsim.ProcessSpec{}))
		code, out, errOut := phones.typed(t,
			append([]string{"trip", "--process", "com.sho", "--out", "run"}, args...)...)
		if code != record.ExitNoDevice || out != "" ||
			!strings.Contains(errOut,
				"process com.sho not found before or after the command ran; running apps: com.shop") {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
		if logs, err := filepath.Glob("run/workload*.log"); err != nil || len(logs) != 1 {
			t.Errorf("%q, %v", logs, err)
		}
		code, out, errOut = attach(t).typed(t, append([]string{"trip", "--process", "com.shop"}, args...)...)
		if code != record.ExitNoDevice || out != "" || !strings.Contains(errOut, "no device is connected") {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
	})
}

func TestTripUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"add --process NAME":                  {"--", "true"},
		"no command to repeat":                {"--process", "com.shop"},
		"the full name of one process":        {"--process", "com.shop*", "--", "true"},
		"an integer of at least 3":            {"--process", "com.shop", "--loops", "2", "--", "true"},
		"--loops: invalid value \"901\"":      {"--process", "com.shop", "--loops", "901", "--", "true"},
		"--warmup: invalid value \"91\"":      {"--process", "com.shop", "--warmup", "91", "--", "true"},
		"invalid character":                   {"--process", "$(reboot)", "--", "true"},
		"unknown flag --lops (did you mean":   {"--process", "com.shop", "--lops", "3", "--", "true"},
		"--keep: invalid value \"something\"": {"--process", "com.shop", "--keep", "something", "--", "true"},
	} {
		code, out, errOut := typed(t, nil, append([]string{"trip"}, args...)...)
		if code != exitUsage || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%q: exit %d, no %q in %q", args, code, want, errOut)
		}
	}
}

// The exit code follows the precedence of exit codes.
func TestTripExitCode(t *testing.T) {
	failed := &trip.LoopError{Loop: 3, Err: os.ErrNotExist}
	pass := record.Trip{Verdict: record.VerdictPass, Judged: true}
	leak := record.Trip{Verdict: record.VerdictLeak, Judged: true}
	doubt := record.Trip{Verdict: record.VerdictInconclusive, Judged: true}
	none := record.Trip{Verdict: record.VerdictInconclusive}
	lost := record.Run{Devices: []record.Device{{Error: "gone"}}}
	for name, c := range map[string]struct {
		trip   record.Trip
		err    error
		run    record.Run
		strict bool
		want   int
	}{
		"pass": {pass, nil, record.Run{}, true, 0}, "leak": {leak, nil, record.Run{}, false, 1},
		"leak before a failure": {leak, failed, lost, false, 1},
		"failure":               {none, failed, record.Run{}, false, 4}, "device lost": {none, failed, lost, false, 3},
		"warning": {doubt, nil, record.Run{}, false, 0}, "warning with --strict": {doubt, nil, record.Run{}, true, 5},
		"no verdict":        {none, nil, record.Run{}, false, 5},
		"restarted":         {none, &trip.RestartError{}, record.Run{}, false, 5},
		"process not found": {record.Trip{}, errNeverSeen, record.Run{}, false, 3},
	} {
		f := &tripFlags{}
		f.strict = c.strict
		if got := f.exitCode(t.Context(), c.trip, c.err, c.run); got != c.want {
			t.Errorf("%s: exit %d, want %d", name, got, c.want)
		}
	}
}

func measureIn(r record.Trip, name string) record.TripMeasure {
	for _, m := range r.Measures {
		if m.Name == name {
			return m
		}
	}
	return record.TripMeasure{}
}
