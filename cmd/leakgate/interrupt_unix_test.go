//go:build unix && realtime

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

// started starts a demo and waits for its first samples. It returns a function
// that waits for the end of the demo and one that sends a signal to the demo.
func started(t *testing.T, out string) (wait func() int, signal func(syscall.Signal)) {
	t.Helper()
	ctx := minute(t)
	cmd := program(t, ctx, nil, "demo", "--out", out)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitForSamples(out)
	return func() int {
			_ = cmd.Wait() // the exit code reports the error
			return cmd.ProcessState.ExitCode()
		}, func(s syscall.Signal) {
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
		}
}

// waitForSamples waits until a run has its first samples.
func waitForSamples(out string) {
	for range 500 {
		samples, err := os.ReadFile(filepath.Join(out, record.SamplesName))
		if err == nil && bytes.Count(samples, []byte("pss_kb")) > 3 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestCtrlCFinishesTheRun(t *testing.T) {
	ends := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	for _, s := range ends {
		out := filepath.Join(t.TempDir(), "run")
		wait, signal := started(t, out)
		began := time.Now()
		signal(s)
		if code := wait(); code != 130 {
			t.Errorf("%v: exit %d", s, code)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%v: took %v", s, took)
		}
		run, err := record.ReadRun(out)
		if err != nil || !run.Interrupted || run.ExitCode != 130 || len(run.Processes) != 2 {
			t.Errorf("%v: %+v, %v", s, run, err)
		}
	}
}

// A workload that ignores the request to stop gets its grace period after the
// first Ctrl-C, and is killed at once after the second. No process or file of
// the workload remains.
func TestCtrlCTwiceStopsNow(t *testing.T) {
	dir := t.TempDir()
	alive := filepath.Join(dir, "alive")
	env := []string{"ANDROID_ADB_SERVER_PORT=" + serve(t, shop("phone-a"))["ANDROID_ADB_SERVER_PORT"]}
	config := write(t,
		"version: 1\napp: { package: com.shop }\nworkload:\n"+
			"  command: [/bin/sh, -c, \"trap '' TERM; while :; do touch "+alive+"; sleep 0.05; done\"]\n")
	ctx := minute(t)
	cmd := program(t, ctx, env, "run", config, "--out", filepath.Join(dir, "run"))
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(alive); err == nil || ctx.Err() != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
	}
	began := time.Now()
	_ = cmd.Wait() // the exit code reports the error
	if code := cmd.ProcessState.ExitCode(); code != 130 || time.Since(began) > 3*time.Second {
		t.Errorf("exit %d after %v\n%s", code, time.Since(began), text.String())
	}
	if err := os.Remove(alive); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if _, err := os.Stat(alive); err == nil {
		t.Error("the workload is still running")
	}
	if run, err := record.ReadRun(filepath.Join(dir, "run")); err != nil || !run.Interrupted {
		t.Errorf("%+v, %v", run, err)
	}
}

// A workload on the host marks the loops of its run, both with the command and
// with a printed line. The run ends with the workload.
func TestWorkloadMarksItsRun(t *testing.T) {
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "suite.sh")
	text := "set -e\n" + path +
		" mark --run \"$LEAKGATE_RUN\" loop 1\nsleep 0.5\necho leakgate:mark loop 2\nsleep 0.2\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	config := write(t, "version: 1\napp: { package: com.shop }\nworkload:\n  command: [/bin/sh, "+script+"]\n")
	code, out, errOut := typed(t, serve(t, shop("phone-a")), "run", config, "--out", dir)
	if code != record.ExitInconclusive {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	f, err := os.Open(filepath.Join(dir, "samples.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var marks []record.Event
	_, err = record.ReadSamples(f, record.Lines{Event: func(e record.Event) error {
		if e.Event == "mark" {
			marks = append(marks, e)
		}
		return nil
	}})
	// Half a second of real time is 200 seconds of device time.
	if err != nil || len(marks) != 2 || marks[0].Text != "loop 1" || marks[1].Text != "loop 2" ||
		marks[1].T-marks[0].T < 150 {
		t.Errorf("marks %+v, %v", marks, err)
	}
	run, err := record.ReadRun(dir)
	if err != nil || run.Stopped != "workload" || run.Workload == nil || *run.Workload.Exit != 0 {
		t.Errorf("%+v, %v", run, err)
	}
}

// Under nohup, the run continues when the terminal closes.
func TestNohupContinues(t *testing.T) {
	t.Parallel()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `trap "" HUP; exec "$0" demo --out "$1"`, path, out)
	cmd.Dir = t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitForSamples(out)
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if run, err := record.ReadRun(out); err == nil {
		t.Errorf("closing the terminal ended the run: %s", run.Stopped)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the run records how it ended
	if run, err := record.ReadRun(out); err != nil || run.Stopped != record.StoppedInterrupted {
		t.Errorf("got stop reason %q after an interrupt, want %q: %v", run.Stopped, record.StoppedInterrupted, err)
	}
}
