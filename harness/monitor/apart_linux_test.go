package monitor

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// These tests wait for real time and count what their process leaves behind. Each has
// a process of its own, which runs beside the tests of simulated time; this file comes
// first by its name, so that they begin first. What they found is told at the end.

func TestSoak(t *testing.T)       { apart(t, soakPhones) }
func TestEachFault(t *testing.T)  { apart(t, sufferEachFault) }
func TestLostDevice(t *testing.T) { apart(t, loseDevice) }

const (
	// apartName names the test that a process is there for.
	apartName = "LEAKGATE_APART"
	// patience is how much earlier than this process it gives up, to tell where it hung.
	patience = 10 * time.Second
)

// apart runs a test in a process of its own, beside those that come after it, and takes
// its result at the end. A soak whose length somebody asked for runs here: its words are
// to be seen while it goes on.
func apart(t *testing.T, test func(*testing.T)) {
	t.Helper()
	if os.Getenv(apartName) == t.Name() || os.Getenv("LEAKGATE_SOAK") != "" {
		test(t)
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v", "-test.count=1"}
	if end, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+(time.Until(end)-patience).String())
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), apartName+"="+t.Name())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	ended := make(chan error, 1)
	go func() { ended <- runTied(cmd) }()
	t.Parallel()
	err = <-ended
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, out.Bytes())
	case strings.Contains(out.String(), "--- SKIP: "+t.Name()):
		t.Skip(out.String())
	case !strings.Contains(out.String(), "--- PASS: "+t.Name()):
		t.Errorf("it did not run:\n%s", out.Bytes())
	default:
		t.Log(out.String())
	}
}

// runTied runs cmd to its end; the kernel ends it if this process is killed. The
// signal is tied to the thread that starts cmd, so that thread is kept.
func runTied(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}
