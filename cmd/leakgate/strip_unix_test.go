//go:build unix

package main

//unit:program pipes, signals and rights are those of a process
//unit:sleep polls for what comes at once; its deadline is a hang

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// If strip is interrupted while it is reading its input or writing the copy,
// either no file remains or the copy is complete.
func TestStripInterrupted(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.hprof")
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		r, w := pipe(t)
		j := startJob(t, r, "strip", "-", out)
		if _, err := w.Write(append([]byte("JAVA PROFILE 1.0.3\x00"), make([]byte, 1<<20)...)); err != nil {
			t.Fatal(err)
		}
		j.interrupted(t, s)
		assertFiles(t, dir)
	}
	path := chainFile(t, 3_000_000)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := strippedOf(t, data)
	rng := rand.New(rand.NewPCG(3, 5))
	interrupted := 0
	for range 12 {
		j := startJob(t, nil, "strip", path, out)
		time.Sleep(time.Duration(rng.Int64N(int64(120 * time.Millisecond))))
		j.signal(t, syscall.SIGINT)
		code := j.end(t)
		_, missing := os.Stat(out)
		switch {
		case code == exitOK, code == -1 && missing == nil: // finished, or already ignored signals
			checkFile(t, out, want)
			if err := os.Remove(out); err != nil {
				t.Fatal(err)
			}
			assertFiles(t, dir)
		case code == 130 && strings.Contains(j.errOut.String(), "interrupted; nothing was written"):
			interrupted++
			assertFiles(t, dir)
		case code == -1 && j.errOut.Len() == 0:
			assertFiles(t, dir) // the program did not handle signals yet
		default:
			t.Errorf("exit %d, %s", code, j.errOut.String())
		}
	}
	t.Logf("%d of 12 programs were interrupted while they worked", interrupted)
}

// If nobody reads standard output, Ctrl-C stops the program, and the message
// says that the output is incomplete.
func TestStripInterruptedWhileWriting(t *testing.T) {
	out, w := pipe(t)
	j := &job{temp: t.TempDir()}
	j.Cmd = program(t, t.Context(), []string{"TMPDIR=" + j.temp}, "strip", chainFile(t, 200_000), "-")
	j.Stdout, j.Stderr = w, &j.errOut
	if err := j.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	j.signal(t, syscall.SIGINT)
	if code := j.end(t); code != 130 || !strings.Contains(j.errOut.String(), "the output is incomplete") {
		t.Errorf("exit %d, %q", code, j.errOut.String())
	}
}

// If the disk is full, the error names OUT, and no file remains.
func TestStripOntoAFullDisk(t *testing.T) {
	path := chainFile(t, 100_000)
	if full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil { // only Linux has it
		defer full.Close()
		ctx := minute(t)
		cmd := program(t, ctx, nil, "strip", path, "-")
		var errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &errOut
		_ = cmd.Run() // the exit code reports the error
		if code := cmd.ProcessState.ExitCode(); code != exitUnread ||
			!strings.Contains(errOut.String(), "no space left") || strings.Count(errOut.String(), "\n") != 1 {
			t.Errorf("exit %d, %s", code, errOut.String())
		}
	}
	// A limit on the file size has the same effect: the write fails in the
	// middle.
	dir := t.TempDir()
	exe, err := build()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `ulimit -f 2048; trap "" XFSZ; exec "$0" strip "$1" "$2"`, exe,
		path, filepath.Join(dir, "out.hprof"))
	text, _ := cmd.CombinedOutput() // the exit code reports the error
	if code := cmd.ProcessState.ExitCode(); code != exitUnread || !strings.Contains(string(text), "file too large") ||
		strings.Contains(string(text), ".out.hprof") {
		t.Errorf("exit %d, %s", code, text)
	}
	assertFiles(t, dir)
}
