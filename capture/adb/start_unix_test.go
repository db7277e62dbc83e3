//go:build unix

package adb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/adbd/adbtest"
	"github.com/leakgate/leakgate/internal/text"
)

// freeAddr returns an address of this machine on which nothing listens. On
// Linux, a socket that is bound to the address but does not listen reserves it
// until the test ends: the kernel never assigns a bound port automatically, and
// allows explicit binds with SO_REUSEADDR.
func freeAddr(t *testing.T) string {
	t.Helper()
	// If a child inherited the socket, it would hold the port.
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	release := func() { _ = syscall.Close(fd) }
	if runtime.GOOS == "linux" {
		t.Cleanup(release)
	} else {
		defer release()
	}
	if err := errors.Join(
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
	); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

// holdGrace prevents the client from starting a server at an address until a
// server has been found there, however slow the machine is. TestRestartRules
// tests the grace period on the clock of a bubble.
func holdGrace(addr string) {
	s := serverStateAt(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused, s.gone = time.Now(), time.Now().Add(time.Hour)
}

// fakeADB returns an adb program that records every start and then runs body.
func fakeADB(t *testing.T, body string) (path string, started func() []string) {
	t.Helper()
	dir := t.TempDir()
	path, notes := filepath.Join(dir, "adb"), filepath.Join(dir, "notes")
	script := fmt.Sprintf("#!/bin/sh\necho \"$* session $(ps -o sid= -p $$ | tr -d ' ') self $$\" >> %s\n%s\n",
		text.ShellQuote(notes), body)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path, func() []string {
		text, _ := os.ReadFile(notes)
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

// ended waits until nothing listens on an address.
func ended(t *testing.T, addr string) {
	t.Helper()
	waitFor(t, "nothing listens at "+addr, func() bool {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			_ = nc.Close()
		}
		return err != nil
	})
}

func TestStartOnce(t *testing.T) {
	path, started := fakeADB(t, "echo '* daemon not running'; echo 'cannot bind: Address in use' >&2; exit 1")
	addr, logs := freeAddr(t), t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		c, err := NewClient(Options{Addr: addr, ADBPath: path, LogDir: logs, Getenv: env()})
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			wg.Go(func() {
				_, err := c.Version(soon(t))
				checkSentence(t, err, ErrNoServer, "cannot bind: Address in use")
			})
		}
	}
	wg.Wait()
	_, port, _ := net.SplitHostPort(addr)
	got := started()
	if len(got) != 1 || !strings.HasPrefix(got[0], "-L tcp:localhost:"+port+" start-server session ") {
		t.Fatalf("adb was started as %q, want once", got)
	}
	var session, self string
	if _, err := fmt.Sscanf(got[0], "-L tcp:localhost:"+port+" start-server session %s self %s", &session,
		&self); err == nil && session != self && session != "" {
		t.Errorf("adb runs in session %s as %s: not detached", session, self)
	}
	if files, _ := os.ReadDir(logs); len(files) != 1 {
		t.Errorf("%d logs of the failed start, want 1", len(files))
	}
	checkLeaks(t)
}

func TestStartLeavesNothing(t *testing.T) {
	// A server that keeps its streams open must not make the client wait.
	note := filepath.Join(t.TempDir(), "pid")
	path, started := fakeADB(t, "sleep 90 & echo $! >"+text.ShellQuote(note)+"; echo ok")
	logs := t.TempDir()
	c, err := NewClient(Options{Addr: freeAddr(t), ADBPath: path, LogDir: logs, Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Version(soon(t))
	checkSentence(t, err, ErrNoServer, "no adb server at")
	if len(started()) != 1 {
		t.Errorf("started %q", started())
	}
	var pid int
	if text, err := os.ReadFile(note); err != nil {
		t.Error(err)
	} else if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Errorf("%q: %v", text, err)
	} else if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the client waited for the background process of the failed start: %v", err)
	}
	if files, _ := os.ReadDir(logs); len(files) != 0 {
		t.Errorf("left %v", files)
	}
}

func TestStartCancelled(t *testing.T) {
	path, started := fakeADB(t, "exec sleep 60")
	logs := t.TempDir()
	c, err := NewClient(Options{Addr: freeAddr(t), ADBPath: path, LogDir: logs, Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		before := len(started())
		if before == 1 && started()[0] == "" {
			before = 0
		}
		ctx, cancel := context.WithCancel(soon(t))
		ended := make(chan error, 1)
		go func() { ended <- ignoreValue(c.Version(ctx)) }()
		waitFor(t, "adb runs", func() bool { got := started(); return got[0] != "" && len(got) > before })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
	if got := started(); len(got) != 2 {
		t.Errorf("started %q, want two starts: an aborted start must not count", got)
	}
	for _, line := range started() {
		var pid int
		if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &pid); err != nil || syscall.Kill(pid, 0) == nil {
			t.Errorf("%q still runs (%v)", line, err)
		}
	}
	if files, _ := os.ReadDir(logs); len(files) != 0 {
		t.Errorf("left %v", files)
	}
	checkLeaks(t)
}

func TestStartNeverNeeded(t *testing.T) {
	path, started := fakeADB(t, "")
	t.Run("a server listens", func(t *testing.T) {
		c := scripted(t, func(p *peer) { p.request(); p.send("GARBAGE!") })
		c.opt.NoStart, c.opt.ADBPath = false, path
		_, err := c.Version(soon(t))
		checkSentence(t, err, ErrProtocol, "adb server")
	})
	t.Run("not allowed", func(t *testing.T) {
		c := testClient(t, Options{Addr: freeAddr(t), ADBPath: path})
		_, err := c.Version(soon(t))
		checkSentence(t, err, ErrNoServer, "run `adb start-server`")
	})
	if got := started(); len(got) != 1 || got[0] != "" {
		t.Errorf("started %q", got)
	}
	t.Run("no program", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		c, err := NewClient(Options{Addr: freeAddr(t), Getenv: env("ANDROID_HOME", t.TempDir())})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Version(soon(t))
		checkSentence(t, err, ErrNoServer, "install Android platform-tools")
		if !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("the error does not wrap its cause: %v", err)
		}
	})
	t.Run("sdk", func(t *testing.T) {
		home := t.TempDir()
		tools := filepath.Join(home, "platform-tools")
		if err := errors.Join(os.Mkdir(tools, 0o700), os.Symlink(path, filepath.Join(tools, "adb"))); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", t.TempDir())
		c, err := NewClient(Options{Getenv: env("ANDROID_SDK_ROOT", home)})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.findADB(); got != filepath.Join(tools, "adb") || err != nil {
			t.Errorf("found %q, %v", got, err)
		}
	})
}

// TestStartReal starts the real server with the real program and stops it
// again.
func TestStartReal(t *testing.T) {
	program := adbtest.Program(t)
	for _, kv := range adbtest.Environment(t) {
		key, value, _ := strings.Cut(kv, "=")
		t.Setenv(key, value)
	}
	for _, key := range []string{
		"ADB_SERVER_SOCKET", "ANDROID_ADB_SERVER_PORT", "ANDROID_ADB_SERVER_ADDRESS", "ANDROID_SERIAL",
	} {
		t.Setenv(key, "")
	}
	logs := t.TempDir()
	c, err := NewClient(Options{Addr: freeAddr(t), ADBPath: program, LogDir: logs, Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = adbtest.Ask(c.Addr(), "host:kill")
		ended(t, c.Addr())
	})
	if v, err := c.Version(soon(t)); v != 41 || err != nil {
		t.Fatalf("version %d, %v", v, err)
	}
	_, err = c.Select(soon(t), "")
	checkSentence(t, err, ErrNoDevice, "no device is connected")
	if files, _ := os.ReadDir(logs); len(files) != 0 {
		t.Errorf("left %v", files)
	}
	checkLeaks(t)
}
