//go:build linux

package capture

//unit:sleep bounds a parser that hangs; nothing is measured

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/shelltest"
)

// children starts a process for each hostile name that a process can have, and
// returns the pids by name.
func children(t *testing.T) map[string]int {
	t.Helper()
	pids := map[string]int{}
	for _, name := range shelltest.HostileNames {
		cmd := &exec.Cmd{Path: "/bin/sleep", Args: []string{name, "300"}}
		if name == "" {
			continue
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed
		})
		pids[name] = cmd.Process.Pid
	}
	for name, pid := range pids {
		awaitName(t, name, pid)
	}
	return pids
}

func awaitName(t *testing.T, name string, pid int) {
	t.Helper()
	for range 1000 {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil &&
			strings.HasPrefix(string(text), name+"\x00") {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("the child process did not take the name %q", name)
}

func TestHostileNamesInRealShells(t *testing.T) {
	pids := children(t)
	for _, shell := range shelltest.Shells(t) {
		t.Run(strings.Join(append([]string{filepath.Base(shell[0])}, shell[1:]...), " "), func(t *testing.T) {
			tr := shelltest.NewTrap(t, shell)
			if _, err := tr.Shell(t.Context(), "echo $("+shelltest.Inject+") 2>/dev/null", io.Discard,
				io.Discard); err != nil || !tr.Triggered() {
				t.Fatal("the test proves nothing: an unquoted name did not trigger the trap", err)
			}
			if err := tr.Reset(); err != nil {
				t.Fatal(err)
			}
			findNames(t, tr, pids)
			readNames(t, tr, pids)
			if tr.Triggered() {
				t.Error("a name was executed")
			}
		})
	}
}

// findNames searches for all processes in one command, and for each process
// separately if its name is not rejected.
func findNames(t *testing.T, tr *shelltest.Trap, pids map[string]int) {
	t.Helper()
	var patterns []Pattern
	for name := range pids {
		patterns = append(patterns, Pattern(name), Pattern(name+"*"))
	}
	found, err := FindProcesses(t.Context(), tr, patterns)
	if err != nil {
		t.Error(err)
	}
	for name, pid := range pids {
		seen := slices.ContainsFunc(found.Processes, func(p Process) bool {
			// If several processes have this name, the oldest is found. The
			// process found may be the child of another test run.
			return p.Name == name && (p.PID == pid || p.Start <= startOf(t, pid) && p.Start == startOf(t, p.PID))
		})
		if seen != validName([]byte(name)) {
			t.Errorf("%q found: %v", name, seen)
		}
	}
}

// startOf returns the start time of a child, in ticks since boot.
func startOf(t *testing.T, pid int) uint64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := procfs.ParseStat(text)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(stat.StartTicks.N)
}

// readNames sends the commands that contain the package of a name: those of the
// levels and of the fast channel that use run-as.
func readNames(t *testing.T, tr *shelltest.Trap, pids map[string]int) {
	t.Helper()
	var targets []Target
	for _, name := range shelltest.HostileNames {
		p := Process{Name: name, User: 10, UID: 10*perUser + 10123, PID: cmp.Or(pids[name], os.Getpid())}
		c := candidate{Level{RunAs, shell.RunAs(p.Package(), p.User)}, ""}
		f, err := NewLevels(tr, Facts{UID: 2000}).try(t.Context(), []trial{{0, p, c}})
		if err != nil || f[0].Answer != Available {
			t.Errorf("%q: %+v, %v", name, f, err)
		}
		checkWords(t, []string{name}, tr.Words(t))
		targets = append(targets, Target{p, c.Level})
	}
	rounds, err := NewFast(tr).Read(t.Context(), targets, 0, 20*time.Second)
	if err != nil || len(rounds[0].Readings) != len(targets) {
		t.Errorf("%+v, %v", rounds, err)
	}
	checkWords(t, shelltest.HostileNames, tr.Words(t))
}

// checkWords checks that run-as received the package of each name exactly once,
// byte for byte.
func checkWords(t *testing.T, names, words []string) {
	t.Helper()
	want := map[string]bool{}
	for _, name := range names {
		want[Process{Name: name}.Package()] = true
	}
	for i := 1; i+1 < len(words); i++ {
		if words[i] != "--user" || words[i+1] != "10" {
			continue
		}
		if !want[words[i-1]] {
			t.Errorf("run-as received %q, want one of %q", words[i-1], names)
		}
		delete(want, words[i-1])
	}
	if len(want) > 0 {
		t.Errorf("run-as did not receive %v, only %q", want, words)
	}
}

// simulated returns a phone with one app that only run-as can read; it is
// called directly, without an adb connection.
func simulated(app androidsim.App) (*androidsim.Phone, *shelltest.Device) {
	app.Debuggable = true
	phone := androidsim.New(androidsim.Options{Apps: []androidsim.App{app}})
	return phone,
		&shelltest.Device{Run: func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
			return phone.Shell(ctx, command, strings.NewReader(""), stdout, stderr), ctx.Err()
		}}
}

// A process whose command line is a megabyte long is skipped, because it cannot
// belong to an app.
func TestHugeNameIsSkipped(t *testing.T) {
	app := androidsim.App{
		Package:   "com.x",
		Processes: []androidsim.ProcessSpec{{Name: "com.x" + strings.Repeat("x", 1<<20)}, {Name: "com.x:y"}},
	}
	_, dev := simulated(app)
	found, err := FindProcesses(t.Context(), dev, []Pattern{"com.x*"})
	if err != nil || len(found.Processes) != 1 || found.Processes[0].Name != "com.x:y" {
		t.Errorf("%+v, %v", found, err)
	}
}

// The simulated phone has its own shell, and apps with these names that only
// run-as can read.
func TestHostileNamesOnASimulatedPhone(t *testing.T) {
	for _, name := range shelltest.HostileNames {
		phone, dev := simulated(androidsim.App{
			Package:   name,
			Processes: []androidsim.ProcessSpec{{Name: name, Models: []androidsim.Model{androidsim.Typical()}}},
		})
		found, err := FindProcesses(t.Context(), dev, []Pattern{Pattern(name)})
		if err != nil {
			t.Errorf("%q: %v", name, err)
		}
		want := 0
		if validName([]byte(name)) {
			want = 1
		}
		if len(found.Processes) != want || want == 1 && found.Processes[0].Name != name {
			t.Errorf("%q: %+v", name, found.Processes)
		}
		pid := phone.PID(name)
		p := Process{Name: name, UID: 10123, PID: pid}
		probe, err := NewLevels(dev, Facts{UID: 2000, API: 34}).Probe(t.Context(), p)
		pkg, _, _ := strings.Cut(name, ":")
		if err != nil || pkg == name && name != "" && probe.Level.Source != RunAs {
			t.Errorf("%q: %+v, %v", name, probe, err)
		}
		if _, err := phone.Stat("/data/local/tmp/canary"); err == nil {
			t.Errorf("the name %q was executed", name)
		}
	}
	phone, dev := simulated(androidsim.App{Package: "com.x"})
	if _, err := dev.Shell(t.Context(), "echo $("+shelltest.Inject+")", io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := phone.Stat("/data/local/tmp/canary"); err != nil {
		t.Error("the test proves nothing: an unquoted name did not trigger the trap")
	}
}

// One command finds a thousand processes in the shell of the simulated phone.
func TestFindAThousand(t *testing.T) {
	var processes []androidsim.ProcessSpec
	for i := range 1000 {
		processes = append(processes, androidsim.ProcessSpec{Name: fmt.Sprintf("com.x:p%d", i)})
	}
	_, dev := simulated(androidsim.App{Package: "com.x", Processes: processes})
	found, err := FindProcesses(t.Context(), dev, []Pattern{"com.x:*"})
	if err != nil || len(found.Processes) != 1000 || found.SystemServer == 0 {
		t.Errorf("found %d processes, want 1000; system_server has pid %d; error %v", len(found.Processes),
			found.SystemServer, err)
	}
	if len(dev.Commands) != 1 {
		t.Errorf("%d commands", len(dev.Commands))
	}
}
