//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/reporters"
)

// started gives a demo that has its first samples.
func started(t *testing.T, out string) (wait func() int, signal func(syscall.Signal)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := program(t, ctx, nil, "demo", "--out", out)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		samples, err := os.ReadFile(filepath.Join(out, "samples.ndjson"))
		if err == nil && bytes.Count(samples, []byte("pss_kb")) > 3 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return func() int {
			_ = cmd.Wait() // the exit code tells
			return cmd.ProcessState.ExitCode()
		}, func(s syscall.Signal) {
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
		}
}

func TestCtrlCFinishesTheRun(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
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
		run, err := reporters.ReadRun(out)
		if err != nil || !run.Interrupted || run.ExitCode != 130 || len(run.Processes) != 2 {
			t.Errorf("%v: %+v, %v", s, run, err)
		}
	}
}

// A workload that does not want to end gets its grace after one Ctrl-C and none
// after two. Nothing of it is left.
func TestCtrlCTwiceStopsNow(t *testing.T) {
	dir := t.TempDir()
	alive := filepath.Join(dir, "alive")
	env := []string{"ANDROID_ADB_SERVER_PORT=" + serve(t, shop("phone-a"))["ANDROID_ADB_SERVER_PORT"]}
	config := write(t, "version: 1\napp: { package: com.shop }\nworkload:\n  command: [/bin/sh, -c, \"trap '' TERM; while :; do touch "+alive+"; sleep 0.05; done\"]\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
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
	_ = cmd.Wait() // the exit code tells
	if code := cmd.ProcessState.ExitCode(); code != 130 || time.Since(began) > 3*time.Second {
		t.Errorf("exit %d after %v\n%s", code, time.Since(began), text.String())
	}
	if err := os.Remove(alive); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if _, err := os.Stat(alive); err == nil {
		t.Error("the workload lives on")
	}
	if run, err := reporters.ReadRun(filepath.Join(dir, "run")); err != nil || !run.Interrupted {
		t.Errorf("%+v, %v", run, err)
	}
}
