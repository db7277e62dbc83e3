package main

//unit:program builds and starts leakgate for tests of the program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/internal/harness/lease"
)

// built is the path of the program for child processes; empty until a test
// needs it.
var built string

// build builds the program once for all tests of the package.
var build = sync.OnceValues(func() (string, error) {
	var err error
	if built, err = os.MkdirTemp("", "leakgate-test-"); err != nil {
		return "", err
	}
	path := filepath.Join(built, "leakgate")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build leakgate: %w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	// The tests use separate leases.
	leases, err := os.MkdirTemp("", "leakgate-leases-")
	if err == nil {
		err = os.Setenv(lease.FolderVariable, leases)
	}
	if err == nil { // the tests use only simulated phones
		err = os.Setenv(config.StandInVariable, "1")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// The runtime's signal receiver must not start in a bubble.
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	signal.Stop(c)
	code := m.Run()
	_ = os.RemoveAll(leases)
	if built != "" {
		_ = os.RemoveAll(built) // leftovers in the temporary directory are harmless
	}
	os.Exit(code)
}

// minute returns a context that is canceled after a minute. The minute starts
// after the program is built, because building takes a minute on a busy
// machine.
func minute(t *testing.T) context.Context {
	t.Helper()
	if _, err := build(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// program returns leakgate as a child process in an empty directory.
func program(t *testing.T, ctx context.Context, env []string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), env...)
	return cmd
}
