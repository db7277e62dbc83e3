package proctable

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/recorded"
)

// child starts a process under another name.
func child(t *testing.T, name string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "100")
	cmd.Args[0] = name
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func TestFind(t *testing.T) {
	name := fmt.Sprintf("com.example.t%d:x", os.Getpid())
	a, b := child(t, name), child(t, name)
	child(t, name+"y")
	want := []int{a.Process.Pid, b.Process.Pid}
	slices.Sort(want)
	deadline := time.Now().Add(10 * time.Second)
	for {
		got, err := Find(name)
		if err == nil && slices.Equal(got, want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("found %v, %v; want %v", got, err, want)
		}
		time.Sleep(time.Millisecond)
	}
	p, err := Read(a.Process.Pid)
	if err != nil || p.Name != name || p.Args != name+" 100" || p.UID != os.Getuid() {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestList holds the list against ps.
func TestList(t *testing.T) {
	out, err := exec.Command("ps", "-A", "-o", "pid=,uid=").Output()
	if err != nil {
		recorded.Missing(t, "needs ps: %v", err)
	}
	theirs := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		theirs[strings.Join(strings.Fields(line), " ")] = true
	}
	list, err := List()
	if err != nil {
		t.Fatal(err)
	}
	both := 0
	for _, p := range list {
		if theirs[fmt.Sprintf("%d %d", p.PID, p.UID)] {
			both++
		}
	}
	// Processes come and go between the two looks.
	if both < len(list)*8/10 || len(list) < len(theirs)*8/10 {
		t.Errorf("%d listed, %d by ps, %d in both", len(list), len(theirs), both)
	}
}

func TestKillWithVariable(t *testing.T) {
	value := fmt.Sprintf("v%d", os.Getpid())
	in, out := child(t, "in", "A=b", "LEAKGATE_T="+value), child(t, "out", "LEAKGATE_T="+value+"x")
	got, err := WithVariable("LEAKGATE_T", value)
	if err != nil || !slices.Equal(got, []int{in.Process.Pid}) {
		t.Errorf("found %v, %v; want %d", got, err, in.Process.Pid)
	}
	if err := KillWithVariable("LEAKGATE_T", value); err != nil {
		t.Error(err)
	}
	if err := in.Wait(); err == nil || in.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("ended with %v", err)
	}
	if err := out.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another process was ended: %v", err)
	}
}
