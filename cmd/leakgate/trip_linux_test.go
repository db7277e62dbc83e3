//go:build realtime && e2e

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/reporters/record"
)

// tripping is a host device whose app runs one loop of a scenario at each
// signal.
type tripping struct {
	*hostdevicetest.Running
	process string
	env     map[string]string
	command []string
}

// startTripping starts an app in one of its modes.
func startTripping(t *testing.T, activity, mode string) *tripping {
	t.Helper()
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.StartRooted(t, hostdevice.Options{Scale: 20})
	r.Must(t, "shell", "am start -n "+r.Package()+"/"+activity)
	p := &tripping{
		Running: r, process: r.Package() + ":" + mode,
		env: map[string]string{"ANDROID_ADB_SERVER_PORT": strconv.Itoa(r.ADBPort), "LEAKGATE_STAND_IN": "1"},
	}
	// The commands of a trip are child processes of this program, and use the
	// same adb server.
	t.Setenv("ANDROID_ADB_SERVER_PORT", strconv.Itoa(r.ADBPort))
	p.command = []string{
		"sh", "-c", fmt.Sprintf(`adb -s "$ANDROID_SERIAL" shell 'kill -28 $(pidof %s)'; sleep 0.05`, p.process),
	}
	return p
}

// trip runs a trip and returns its result.
func (p *tripping) trip(t *testing.T, args ...string) (record.Trip, int) {
	t.Helper()
	t.Chdir(t.TempDir())
	began := time.Now()
	args = append([]string{"trip", "--process", p.process, "--device", p.Serial, "--json", "-q"}, args...)
	code, out, errOut := typed(t, p.env, append(append(args, "--"), p.command...)...)
	var r record.Trip
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("exit %d, %v\n%s\n%s", code, err, out, errOut)
	}
	t.Logf("exit %d in %v: %s: %s (%d loops, %d dumps, %s)", code, time.Since(began).Round(100*time.Millisecond),
		r.Verdict, r.Text, r.Loops, r.Dumps, r.Stopped)
	return r, code
}

// values formats the readings of a measure for the log.
func values(m record.TripMeasure) string {
	text := ""
	for _, v := range m.Values {
		if v == nil {
			text += " ?"
			continue
		}
		text += fmt.Sprintf(" %.0f", *v)
	}
	return text
}

// A list that grows by one object per loop is found from its heap dumps alone,
// and named.
func TestTripOfAList(t *testing.T) {
	p := startTripping(t, ".List", "list")
	r, code := p.trip(t)
	if code != record.ExitLeak || len(r.Growing) != 1 || r.Growing[0].Name != "Leaky.ITEMS (ArrayList)" ||
		*measureIn(r, "heap").PerLoop != 1 || r.Loops > 10 {
		t.Errorf("exit %d, %+v", code, r)
	}
	if m := measureIn(r, "native_heap"); m.Grows {
		t.Errorf("native: %s", values(m))
	}
}

// A leak of 200 kB of native memory per loop is found.
func TestTripOfBuffers(t *testing.T) {
	p := startTripping(t, ".Buffers", "buffers")
	r, code := p.trip(t)
	m := measureIn(r, "native_heap")
	t.Logf("native heap:%s; private other:%s; total:%s", values(m), values(measureIn(r, "private_other")),
		values(measureIn(r, "total_pss")))
	if code != record.ExitLeak || !m.Grows || *m.PerLoop < 150 || *m.PerLoop > 250 || r.Loops > 10 {
		t.Errorf("exit %d, %+v", code, r)
	}
}

// The leaks are found without heap dumps as well, but only the dumps show who
// holds the buffers.
func TestTripOfBuffersWithoutDumps(t *testing.T) {
	p := startTripping(t, ".Buffers", "buffers")
	if r, code := p.trip(t, "--no-dumps"); code != record.ExitLeak || !measureIn(r, "native_heap").Grows {
		t.Errorf("without dumps: exit %d, %+v", code, r)
	}
}

// A cache that fills up passes.
func TestTripOfACache(t *testing.T) {
	p := startTripping(t, ".Filling", "filling")
	r, code := p.trip(t)
	t.Logf("native:%s", values(measureIn(r, "native_heap")))
	if code != exitOK || r.Verdict != record.VerdictPass || r.Stopped != record.TripStoppedQuiet || r.Loops >= 10 {
		t.Errorf("exit %d, %+v", code, r)
	}
}

// A process that accumulates nothing causes no alarm, and its trips end early.
func TestSteadyTrips(t *testing.T) {
	trips := 3
	if os.Getenv("LEAKGATE_E2E") == "long" {
		trips = 200
	}
	p := startTripping(t, ".Steady", "steady")
	verdicts := map[record.CheckVerdict]int{}
	early := 0
	for range trips {
		r, code := p.trip(t)
		verdicts[r.Verdict]++
		if r.Stopped == record.TripStoppedQuiet {
			early++
		}
		if code != exitOK || r.Verdict == record.VerdictLeak {
			t.Errorf("exit %d, %+v", code, r)
		}
	}
	t.Logf("%d trips: verdicts %v, %d stopped early", trips, verdicts, early)
	if verdicts[record.VerdictPass] < trips*95/100 || early < trips*95/100 {
		t.Errorf("%d trips: verdicts %v, %d stopped early", trips, verdicts, early)
	}
}

// A scenario that restarts its app cannot be judged; the error names the loop
// and the reason.
func TestTripRestartsApp(t *testing.T) {
	p := startTripping(t, ".Steady", "steady")
	again := "adb -s \"$ANDROID_SERIAL\" shell 'am force-stop " + p.Package() + "; am start -n " + p.Package() +
		"/.Steady'"
	p.command = []string{"sh", "-c", `[ -e "$LEAKGATE_RUN/workload-5.log" ] && ` + again + `; true`}
	t.Chdir(t.TempDir())
	code, out, errOut := typed(t,
		p.env,
		append([]string{"trip", "--process", p.process, "--no-dumps", "--out", "run", "--"}, p.command...)...)
	want := regexp.MustCompile(`leakgate trip: ` + p.process +
		` restarted in loop 3 \(pid \d+, then \d+\): .+; a scenario must leave its process running\n`)
	if code != record.ExitInconclusive || !want.MatchString(errOut) ||
		!strings.Contains(out, "INCONCLUSIVE: ended after 2 loops:") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	t.Log(want.FindString(errOut))
}

// Ctrl-C stops a trip and its scenario immediately, and the run directory is
// complete.
func TestTripAndCtrlC(t *testing.T) {
	p := startTripping(t, ".Steady", "steady")
	ctx := minute(t)
	dir := t.TempDir()
	alive, out := filepath.Join(dir, "alive"), filepath.Join(dir, "run")
	script := `[ -e "$LEAKGATE_RUN/workload-4.log" ] || exit 0; while :; do touch ` + alive + `; sleep 0.05; done`
	cmd := program(t, ctx, p.Environment(), "trip", "--process", p.process, "--device", p.Serial, "--out", out, "--",
		"sh", "-c", script)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for ctx.Err() == nil {
		if _, err := os.Stat(alive); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	began := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code reports the error
	if code := cmd.ProcessState.ExitCode(); code != record.ExitInterrupted || time.Since(began) > 10*time.Second {
		t.Errorf("exit %d after %v\n%s", code, time.Since(began), text.String())
	}
	var r record.Trip
	written, err := os.ReadFile(filepath.Join(out, record.TripName))
	if err == nil {
		err = json.Unmarshal(written, &r)
	}
	if err != nil || r.Stopped != record.TripStoppedInterrupted || r.Verdict != record.VerdictInconclusive ||
		r.Loops != 1 || r.Readings != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if run, err := record.ReadRun(out); err != nil || !run.Interrupted {
		t.Errorf("%+v, %v", run, err)
	}
	if err := os.Remove(alive); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if _, err := os.Stat(alive); err == nil {
		t.Error("the scenario is still running")
	}
	assertNothingLeft(t, p.Running)
}
