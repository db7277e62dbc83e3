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
