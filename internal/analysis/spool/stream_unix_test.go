//go:build unix

package spool

//unit:program a pipe is read from a real process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

const childFolder = "LEAKGATE_SPOOL_CHILD"

// TestMain runs the tests, or the program that TestKilled kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		spoolForever(dir)
	}
	os.Exit(m.Run())
}

func spoolForever(dir string) {
	_, err := Open(context.Background(), "-", os.Stdin,
		Options{Dir: dir, Progress: func(done, _ int64) { fmt.Fprintln(os.Stdout, "read", done) }})
	fmt.Fprintln(os.Stdout, "ended:", err)
	os.Exit(1)
}

// TestKilled kills a process while it is spooling, and checks that no file
// remains.
func TestKilled(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		killedAfter(t, 1+r.IntN(12))
	}
}

func killedAfter(t *testing.T, lines int) {
	dir := folder(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for data := dumpLike(1 << 16); ; {
			if _, err := stdin.Write(data); err != nil {
				return // the process was killed
			}
		}
	}()
	told := bufio.NewScanner(stdout)
	for range lines {
		if !told.Scan() || !strings.HasPrefix(told.Text(), "read ") {
			t.Fatalf("the child process printed %q", told.Text())
		}
	}
	checkHeld(t, cmd.Process.Pid, dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the process was killed
	checkEmpty(t, dir)
}

// checkHeld checks that a process has an open file without a name in dir, if
// the system supports such files.
func checkHeld(t *testing.T, pid int, dir string) {
	t.Helper()
	checkEmpty(t, dir)
	if runtime.GOOS != "linux" {
		return
	}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, dir) &&
			strings.HasSuffix(to, "(deleted)") {
			return
		}
	}
	t.Errorf("the process has no open file in %s", dir)
}

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPipe(t *testing.T) {
	data := dumpLike(3*pieceSize + 5)
	for _, packed := range [][]byte{data, gzipped(t, data), zstded(t, true, data)} {
		path := fifo(t)
		go func() {
			if err := os.WriteFile(path, packed, 0); err != nil {
				t.Error(err)
			}
		}()
		f, err := Open(t.Context(), path, nil, Options{Dir: folder(t)})
		checkWhole(t, f, err, formatOf(packed), data)
	}
	checkNoGoroutine(t)
}

// TestPipeCancelled cancels Open while it waits for a writer, and while it
// waits for the writer's data; nothing may keep running.
func TestPipeCancelled(t *testing.T) {
	cause := errors.New("cancelled by a test")
	for _, begin := range []int{-1, 0, 100, 3 * pieceSize} {
		path, dir := fifo(t), folder(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		written := make(chan *os.File, 1)
		go func() {
			defer cancel(cause)
			if begin < 0 {
				written <- nil
				return
			}
			w, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				_, err = w.Write(dumpLike(begin))
			}
			if err != nil {
				t.Error(err)
			}
			written <- w
		}()
		f, err := Open(ctx, path, nil, Options{Dir: dir})
		if f != nil || !errors.Is(err, cause) || !strings.Contains(err.Error(), path) {
			t.Errorf("after %d bytes: %v, %v", begin, f, err)
		}
		checkNoGoroutine(t)
		checkEmpty(t, dir)
		if w := <-written; w != nil {
			w.Close()
		}
	}
}

// TestDevice spools an endless device up to the cap.
func TestDevice(t *testing.T) {
	_, err := Open(t.Context(), "/dev/zero", nil, Options{Dir: folder(t), Cap: 1 << 20})
	if !errors.Is(err, ErrCap) {
		t.Error(err)
	}
	_, err = Open(t.Context(), "/dev/null", nil, Options{Dir: folder(t)})
	if err == nil || !strings.Contains(err.Error(), "read /dev/null: it is empty") {
		t.Error(err)
	}
	checkNoGoroutine(t)
}

// TestRemovedInput reads a plain file after its name was removed.
func TestRemovedInput(t *testing.T) {
	data := dumpLike(999)
	path := write(t, "a", data)
	f, err := Open(t.Context(), path, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	checkWhole(t, f, nil, Plain, data)
}

func TestMode(t *testing.T) {
	f, err := open(t, dumpLike(9), Options{Dir: folder(t)})
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.f.Stat()
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the temporary file has mode %v, want -rw-------: %v", info.Mode(), err)
	}
	if got := content(t, f); !bytes.Equal(got, dumpLike(9)) {
		t.Errorf("%q", got)
	}
}

// TestPermission opens a file that the user may not read.
func TestPermission(t *testing.T) {
	path := write(t, "secret.hprof", dumpLike(9))
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	asOther(t, func() {
		f, err := Open(t.Context(), path, nil, Options{})
		if f != nil || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, %v", f, err)
		}
	})
}
