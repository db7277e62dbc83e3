//go:build realtime

package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/shelltest"
)

// local returns a device that runs commands in this machine's own shell, so
// that real grep reads real files of /proc.
func local() *shelltest.Device {
	return &shelltest.Device{Run: func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
		cmd.Stdout, cmd.Stderr = stdout, stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) && ctx.Err() == nil {
			return exit.ExitCode(), nil
		}
		return 0, err
	}}
}

// child starts a process that has the name of an app's process.
func child(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	cmd := &exec.Cmd{Path: "/bin/sleep", Args: []string{name, "300"}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if the test has already killed the process
		_ = cmd.Wait()
	})
	for range 200 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
		if err == nil && strings.HasPrefix(string(text), name) {
			return cmd
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the child process did not take its name")
	return nil
}

func TestLocalFindProcesses(t *testing.T) {
	base := fmt.Sprintf("com.leakgate.find%d", os.Getpid())
	main, push := child(t, base), child(t, base+":push")
	child(t, base+"2")
	got := find(t, local(), Pattern(base), Pattern(base+":*"))
	if len(got) != 2 {
		t.Fatalf("found %+v, want 2 processes", got)
	}
	for i, cmd := range []*exec.Cmd{main, push} {
		p := got[i]
		start := startOf(t, cmd.Process.Pid)
		if p.PID != cmd.Process.Pid || p.Start != start || p.UID != os.Getuid() {
			t.Errorf("found %+v, want pid %d, start %d", p, cmd.Process.Pid, start)
		}
	}
	files, err := readIdentities(t.Context(), local(), withUID([]int{os.Getuid(), 54321}))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range files {
		p, ok := parseFound(f)
		if ok && p.UID != os.Getuid() {
			t.Errorf("pid %d has uid %d", p.PID, p.UID)
		}
		if slices.Contains([]int{main.Process.Pid, push.Process.Pid}, p.PID) && p.parent == os.Getpid() {
			seen++
		}
	}
	if seen != 2 {
		t.Errorf("%d of 2 children are among the %d processes with their uid", seen, len(files))
	}
}

func TestLocalProbeAndRead(t *testing.T) {
	name := fmt.Sprintf("com.leakgate.read%d", os.Getpid())
	cmd := child(t, name)
	dev := local()
	p := find(t, dev, Pattern(name))[0]
	probe, err := NewLevels(dev, Facts{UID: os.Getuid()}).Probe(t.Context(), p)
	if err != nil || probe.Level.Source != SmapsRollup || !probe.conclusive() {
		t.Fatalf("%+v, %v", probe, err)
	}
	rounds, err := NewFast(dev).Read(t.Context(), []Target{{p, probe.Level}}, 0, 5*time.Second)
	if err != nil || rounds[0].Readings[0].Err != nil {
		t.Fatal(rounds, err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	want, err := procfs.ParseRollup(text)
	if err != nil {
		t.Fatal(err)
	}
	// The Pss of shared libraries changes when other processes start or exit.
	got := rounds[0].Readings[0]
	if diff := got.PSS.N - want.Pss.N; diff > 300 || diff < -300 || got.PSS.N == 0 {
		t.Errorf("Pss %d kB, the kernel reports %d kB", got.PSS.N, want.Pss.N)
	}
	for _, file := range []string{"smaps", "status"} {
		level := Level{Source: Source(file)}
		rounds, err := NewFast(dev).Read(t.Context(), []Target{{p, level}}, 0, 5*time.Second)
		if err != nil || rounds[0].Readings[0].Err != nil || bytesOf(rounds[0].Readings[0]) <= 0 {
			t.Errorf("by %s: %+v, %v", file, rounds, err)
		}
		if file == "smaps" {
			if diff := rounds[0].Readings[0].PSS.N - want.Pss.N; diff > 300 || diff < -300 {
				t.Errorf("smaps: %d kB, smaps_rollup: %d kB", rounds[0].Readings[0].PSS.N, want.Pss.N)
			}
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	rounds, err = NewFast(dev).Read(t.Context(), []Target{{p, probe.Level}}, 0, 5*time.Second)
	if err != nil || !errors.Is(rounds[0].Readings[0].Err, ErrGone) {
		t.Errorf("after the process ended: got %+v, %v, want %v", rounds, err, ErrGone)
	}
}

func TestLocalProbeOfADeadProcessIsNotKept(t *testing.T) {
	dev := local()
	levels := NewLevels(dev, Facts{UID: 2000})
	p := Process{Name: "com.dead", PID: 4194305, UID: 10100} // greater than pid_max
	probe, err := levels.Probe(t.Context(), p)
	if err != nil || probe.Level.Source != Dumpsys || probe.conclusive() {
		t.Errorf("%+v, %v", probe, err)
	}
	if len(levels.known) != 0 {
		t.Errorf("kept: %+v", levels.known)
	}
}

// Readings of this machine's kernel agree with other sources.
func TestLocalHeadroom(t *testing.T) {
	name := fmt.Sprintf("com.leakgate.room%d", os.Getpid())
	cmd := child(t, name)
	dev := local()
	p := find(t, dev, Pattern(name))[0]
	for _, right := range []string{"own", "other"} {
		asked := Device(dev)
		if right == "other" {
			asked = unprivileged(t)
		}
		got, err := NewHeadrooms(asked, Facts{UID: 2000}).Read(t.Context(), []Target{{Process: p}})
		if err != nil || got[0].Err != nil {
			t.Fatal(got, err)
		}
		h := got[0]
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if h.Files != known.Of(int64(len(open))) && (right == "own" || h.Files.Known || !hasReason(h, "open files: ")) {
			t.Errorf("%s: %v files, want %d", right, h.Files, len(open))
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		limits, err := procfs.ParseLimits(text)
		if err != nil || h.FileLimit != limits.OpenFiles.Soft || h.Threads != known.Of(1) || !h.ThreadLimit.Known ||
			h.ThreadLimitBy == "" || !h.Virtual.Known || h.Virtual.N < 1<<20 {
			t.Errorf("%s: %+v, %v", right, h, err)
		}
	}
}
