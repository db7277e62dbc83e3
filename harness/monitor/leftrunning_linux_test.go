package monitor

//unit:sleep a script of another process writes a file

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/reporters"
)

// pidsIn returns the process IDs in a file that a script has written.
func pidsIn(t *testing.T, path string, n int) []int {
	t.Helper()
	for range 500 {
		content, _ := os.ReadFile(path)
		if words := strings.Fields(string(content)); len(words) == n {
			var out []int
			for _, w := range words {
				pid, err := strconv.Atoi(w)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, pid)
			}
			return out
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not contain %d process IDs", path, n)
	return nil
}

// Processes that have left the process group of a workload continue after the
// workload ends, and the run reports them. Daemons that are meant to continue
// are not reported. None of these processes is killed.
func TestLeftRunningProcessesAreRecorded(t *testing.T) {
	needShell(t)
	if _, err := exec.LookPath("setsid"); err != nil {
		recorded.Missing(t, "no setsid on this system")
	}
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	adb := filepath.Join(dir, "adb")
	if err := os.WriteFile(adb, []byte("#!/bin/sh\necho $$ >> "+pids+"\nsleep 60\n:\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	script := `setsid sh -c 'echo $$ >> ` + pids + `; exec sleep 60' & setsid ` + adb +
		` -L tcp:5037 fork-server server & while [ "$(wc -l < ` + pids + ` 2>/dev/null)" != 2 ]; do sleep 0.01; done`
	o := options(t, phone("S1", rooted(), healthy("com.shop")))
	o.Duration, o.Workload = 0, HostCommand{Args: []string{"/bin/sh", "-c", script}}
	r := perform(t, t.Context(), o)
	left := pidsIn(t, pids, 2)
	defer func() {
		for _, pid := range left {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	}()
	for _, pid := range left {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Errorf("pid %d: %v", pid, err)
		}
	}
	if got := strings.Join(r.Workload.LeftRunning, ", "); !regexp.MustCompile(`sleep \(pid \d+\)`).MatchString(got) ||
		strings.Contains(got, "adb") {
		t.Errorf("%q", got)
	}
	var text bytes.Buffer
	if err := reporters.WriteRun(&text, r.Run); err != nil ||
		!strings.Contains(text.String(), "the workload left processes running: ") {
		t.Errorf("%v\n%s", err, &text)
	}
}

// If all processes of a workload have ended with it, nothing is reported.
func TestNothingLeftRunning(t *testing.T) {
	needShell(t)
	var th testEnv
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rec, err := HostCommand{
		Args: []string{"/bin/sh", "-c", "sleep 60 & sleep 0.05"},
	}.Run(ctx, th.stage(t.TempDir(), scripted{serial: "S1"}))
	if err != nil || len(rec.LeftRunning) > 0 {
		t.Errorf("%v, %q", err, rec.LeftRunning)
	}
}
