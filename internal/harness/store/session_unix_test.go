//go:build unix

package store

//unit:program only real processes show that none is left
//unit:sleep other processes take real time

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hanging is a program that writes its own process ID and that of a child
// process that ignores SIGTERM, and then waits.
const hanging = "#!/bin/sh\nsh -c 'trap \"\" TERM; echo $$ >>\"$PIDS\"; echo ready >>\"$PIDS\"; while :; do sleep 1; " +
	"done' &\necho $$ >>\"$PIDS\"\nwait\nsleep 1000\n"

// gone fails the test if a process listed in a file still exists after 10 s, or
// if the file lists fewer than two.
func gone(t *testing.T, pids string) {
	t.Helper()
	content, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(strings.ReplaceAll(string(content), "ready", ""))
	if len(fields) < 2 {
		t.Fatalf("the child did not start: %q", content)
	}
	for _, pid := range fields {
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			// A process that has ended but has not been waited for is in state
			// Z.
			out, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
			if err != nil || strings.HasPrefix(strings.TrimSpace(string(out)), "Z") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("process %s still exists: %s", pid, out)
			}
		}
	}
}

// whenReady calls f as soon as all programs are running.
func whenReady(pids string, f func()) {
	for range 2000 {
		if content, _ := os.ReadFile(pids); strings.Count(string(content), "\n") >= 3 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	f()
}

// If the caller cancels, a hanging program is stopped together with its child
// processes.
func TestCommandHangs(t *testing.T) {
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	if err := os.WriteFile(filepath.Join(dir, "base"), []byte(hanging), 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, "command:./base", Options{Dir: dir, Env: append(os.Environ(), "PIDS="+pids)})
	ctx, cancel := context.WithCancel(t.Context())
	go whenReady(pids, cancel)
	if _, err := s.Load(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, ErrNone) {
		t.Error(err)
	}
	gone(t, pids)
}

// An operation on a remote that never responds fails when its time limit has
// passed.
func TestGitHangs(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("clone")
	pids := filepath.Join(w.root, "pids")
	w.write(filepath.Join(w.root, "ssh"), hanging, 0o700)
	w.git(dir, "remote", "set-url", "origin", "ssh://me:hunter2@example.org/x.git")
	w.env = append(w.env, "PIDS="+pids, "GIT_SSH="+filepath.Join(w.root, "ssh"))
	s := w.open(dir, "git:leaks#shop.json")
	ctx, giveUp := context.WithCancelCause(t.Context())
	go whenReady(pids, func() { giveUp(limitError(s.limit)) })
	if _, err := s.Load(ctx); !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ErrNone) ||
		strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "not finished within 1m0s") {
		t.Error(err)
	}
	gone(t, pids)
	w.clean()
}

// A program is stopped when the time limit of the store expires.
func TestCommandLimit(t *testing.T) {
	s := open(t, "command:sh -c 'exec sleep 1000'", Options{Limit: 50 * time.Millisecond})
	if _, err := s.Load(t.Context()); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "not finished within 50ms") {
		t.Error(err)
	}
}

// A program counts as finished even if a child process outlives it and keeps
// its output open.
func TestCommandLeavesDaemon(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "base"), []byte("#!/bin/sh\nsleep 30 &\necho $! >daemon\nprintf kept\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, "command:./base", Options{Dir: dir}).Load(t.Context())
	if err != nil || string(got[0]) != "kept" {
		t.Errorf("%q, %v", got, err)
	}
	if pid, err := os.ReadFile(filepath.Join(dir, "daemon")); err == nil {
		_ = exec.Command("kill", strings.TrimSpace(string(pid))).Run()
	}
}
