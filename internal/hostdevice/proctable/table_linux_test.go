package proctable

//unit:program processes of this machine are what is read
//unit:sleep polls for what comes at once; its deadline is a hang

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/recorded"
)

// child starts a process under a different name.
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

// TestList compares the list with the output of ps.
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
	// Processes may start and end between the two lists.
	if both < len(list)*8/10 || len(list) < len(theirs)*8/10 {
		t.Errorf("Processes lists %d processes, ps %d, but only %d are in both lists", len(list), len(theirs), both)
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
		t.Errorf("the process ended with error %v, want SIGKILL", err)
	}
	if err := out.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the wrong process was killed: %v", err)
	}
}

// TestEnvironmentOfStarting checks that environment never returns an empty
// environment for a process that has one, although the kernel reports an empty
// one while the process is starting.
func TestEnvironmentOfStarting(t *testing.T) {
	var pid atomic.Int64
	var stop atomic.Bool
	var starter sync.WaitGroup
	starter.Go(func() {
		for !stop.Load() {
			cmd := exec.Command("/bin/sh", "-c", "exec /bin/sh -c 'exec /bin/sleep 0.002'")
			cmd.Env = []string{"A=b"}
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			pid.Store(int64(cmd.Process.Pid))
			cmd.Wait()
		}
	})
	defer starter.Wait()
	defer stop.Store(true)
	seen, bare := 0, 0
	for end := time.Now().Add(time.Second); time.Now().Before(end) && !t.Failed(); {
		p := int(pid.Load())
		if p == 0 {
			continue
		}
		if raw, err := read(p, "environ", maxEnvironment); err == nil && len(raw) == 0 {
			bare++
		}
		env, err := environment(p)
		if err != nil {
			continue
		}
		if len(env) > 0 {
			seen++
			continue
		}
		if m, err := memoryOf(p); err == nil && m.size > 0 && int(pid.Load()) == p {
			t.Errorf("process %d has no environment: %+v", p, m)
		}
	}
	if seen == 0 {
		t.Error("no process was seen")
	}
	t.Logf("environment seen %d times, missing %d times", seen, bare)
}

// TestWithout covers processes in each stage of their start, and processes that
// never have an environment.
func TestWithout(t *testing.T) {
	for name, c := range map[string]struct {
		m    memory
		want bool
	}{
		"kernel thread, or ended":    {memory{}, true},
		"not laid out yet":           {memory{size: 1}, false},
		"the environment begins":     {memory{size: 1, start: 9, end: 9}, false},
		"laid out, location unknown": {memory{size: 1, start: 9, end: 12}, false},
		"started":                    {memory{size: 1, data: 4, start: 9, end: 12}, false},
		"started with none":          {memory{size: 1, data: 4, start: 9, end: 9}, true},
	} {
		if got := c.m.without(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestWithoutEnvironment checks that environment does not wait for a process
// that has no environment.
func TestWithoutEnvironment(t *testing.T) {
	none := exec.Command("/bin/sleep", "100")
	none.Env = []string{}
	none.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := none.Start(); err != nil {
		t.Fatal(err)
	}
	defer none.Wait()
	defer none.Process.Kill()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if p, err := Read(none.Process.Pid); err == nil && p.Name == "/bin/sleep" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the process did not start")
		}
	}
	began := time.Now()
	if env, err := environment(none.Process.Pid); err != nil || len(env) > 0 {
		t.Errorf("%q, %v", env, err)
	}
	if took := time.Since(began); took > startWithin/2 {
		t.Errorf("took %v", took)
	}
}
