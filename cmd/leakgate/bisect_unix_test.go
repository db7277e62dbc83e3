//go:build unix && realtime

package main

import (
	"bufio"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The checkout is restored even if the output pipe or the terminal is closed.
func TestBisectRestoresCheckout(t *testing.T) {
	for name, end := range map[string]func(out *os.File, p *os.Process) error{
		"the reader closes the pipe": func(out *os.File, _ *os.Process) error { return out.Close() },
		"the terminal closes":        func(_ *os.File, p *os.Process) error { return p.Signal(syscall.SIGHUP) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			git(t, dir, "init", "-q", "-b", "main", ".")
			for _, message := range []string{"good", "between", "bad"} {
				git(t, dir, "commit", "-q", "--allow-empty", "-m", message)
			}
			temp := t.TempDir()
			cmd := program(t, minute(t), []string{"TMPDIR=" + temp}, "bisect", "--good", "HEAD~2", "--bad", "HEAD",
				"--key", "d97295ca", "--", "sh", "-c", "sleep 1; echo built")
			cmd.Dir = dir
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd.Stdout, cmd.Stderr = in, in
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			in.Close()
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal(line, err)
			}
			if err := end(out, cmd.Process); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // its effects count
			if branch := git(t, dir, "branch", "--show-current"); branch != "main" && branch != "main\n" {
				t.Errorf("the checkout is on branch %q, want main", branch)
			}
			if _, err := os.Stat(filepath.Join(dir, ".git", "BISECT_LOG")); err == nil {
				t.Error("the bisect is still in progress")
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("temporary files remain: %v, %v", left, err)
			}
		})
	}
}
