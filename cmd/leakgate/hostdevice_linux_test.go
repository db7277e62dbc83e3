//go:build realtime

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
)

// onHostDevice returns leakgate as a child process that uses the device's adb
// server.
func onHostDevice(t *testing.T, ctx context.Context, r *hostdevicetest.Running, args ...string) *exec.Cmd {
	t.Helper()
	return program(t, ctx, append(r.Environment(), "LEAKGATE_HOSTDEVICE="+r.Serial), args...)
}

// assertNoHostPath checks that no file of a run directory contains a path of
// the host.
func assertNoHostPath(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"run.json", "samples.ndjson"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		paths := []string{os.TempDir() + "/"}
		if home, err := os.UserHomeDir(); err == nil && home != "/" {
			paths = append(paths, home+"/")
		}
		for _, path := range paths {
			if at := bytes.Index(text, []byte(path)); at >= 0 {
				t.Errorf("%s contains a path of this machine: %s", name, text[max(0, at-100):min(len(text), at+100)])
			}
		}
	}
}
