//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/reporters/record"
)

// serveDemo starts a program that serves the phone, and reads its address.
func serveDemo(t *testing.T, args ...string) (cmd *exec.Cmd, at served, errOut *bytes.Buffer) {
	t.Helper()
	cmd = program(t, minute(t), nil, append([]string{"demo", "--serve", "--json", "--speed", "400"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errOut = new(bytes.Buffer)
	cmd.Stderr = errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		t.Fatalf("%v\n%s", err, errOut)
	}
	go io.Copy(io.Discard, out)
	return cmd, at, errOut
}

// A served phone is watched like any other, runs tests, and is gone after
// Ctrl-C.
func TestDemoServe(t *testing.T) {
	cmd, at, errOut := serveDemo(t)
	_, port, err := net.SplitHostPort(at.Address)
	if err != nil || at.Serial != "demo-phone" ||
		strings.Join(at.Packages, " ") != "com.shop com.cart com.shop.test com.cart.test" || at.TimeScale != 400 ||
		len(at.Instrumentations) != 2 {
		t.Fatalf("%+v, %v", at, err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	code, out, text := typed(t,
		map[string]string{"ANDROID_ADB_SERVER_PORT": port}, "watch", "--process", "com.shop", "--for",
		"5m", "--stand-in", "--out", dir)
	if run, err := record.ReadRun(dir); err != nil || len(run.Processes) != 1 ||
		run.Processes[0].Process != "com.shop" || code != record.ExitInconclusive {
		t.Errorf("exit %d, %+v, %v\n%s%s", code, run, err, out, text)
	}
	client, err := adb.NewClient(adb.Options{Addr: at.Address, NoStart: true})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := client.Select(t.Context(), at.Serial)
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	exit, err := dev.Shell(t.Context(), "am instrument -w "+at.Instrumentations[0], &printed, &printed)
	if err != nil || exit != 0 || !strings.HasSuffix(printed.String(), "\nOK (4 tests)\n\n\n") {
		t.Errorf("exit %d, %v, %q", exit, err, printed.String())
	}
	stopBy(t, cmd, syscall.SIGINT)
	if errOut.String() != "leakgate demo: stopped\n" {
		t.Errorf("%q", errOut)
	}
	if c, err := net.DialTimeout("tcp", at.Address, time.Second); err == nil {
		c.Close()
		t.Error("the port is still open")
	}
	if left, err := os.ReadDir(cmd.Dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// SIGTERM stops the program in the same way as Ctrl-C, even while a client
// waits for a response. When a client stops the server, the program exits as
// well.
func TestDemoServeEnds(t *testing.T) {
	cmd, at, _ := serveDemo(t)
	waiting := askServer(t, at.Address, "host:transport:demo-phone", "shell:sleep 100000")
	defer waiting.Close()
	stopBy(t, cmd, syscall.SIGTERM)

	cmd, at, errOut := serveDemo(t)
	askServer(t, at.Address, "host:kill").Close()
	if err := cmd.Wait(); err != nil ||
		errOut.String() != "leakgate demo: stopped by a client, for example with `adb kill-server`\n" {
		t.Errorf("%v, %q", err, errOut)
	}
}

// askServer sends adb requests over one connection.
func askServer(t *testing.T, address string, requests ...string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range requests {
		answer := make([]byte, 4)
		if _, err := fmt.Fprintf(c, "%04x%s", len(request), request); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "OKAY" {
			t.Fatalf("%s: %q, %v", request, answer, err)
		}
	}
	return c
}

// stopBy stops a program with a signal and checks that it exits without an
// error within 5 s.
func stopBy(t *testing.T, cmd *exec.Cmd, s syscall.Signal) {
	t.Helper()
	began := time.Now()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("%v: %v after %v", s, err, time.Since(began))
	}
}
