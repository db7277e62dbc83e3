//go:build linux

package capture

import (
	"cmp"
	"context"
	"errors"
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
)

// trap is a real shell in which run-as exists and writes down its words, and in
// which a canary dies when a name is run.
type trap struct {
	*scripted
	canary, log string
}

func newTrap(t *testing.T, shell []string) *trap {
	t.Helper()
	dir := t.TempDir()
	tr := &trap{canary: filepath.Join(dir, "canary"), log: filepath.Join(dir, "log")}
	const runAs = "#!/bin/sh\nprintf '%s\\000' \"$@\" >>$LOG; shift; [ \"$1\" = --user ] && shift 2; exec \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "run-as"), []byte(runAs), 0o700); err != nil {
		t.Fatal(err)
	}
	tr.scripted = &scripted{shell: func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
		cmd := exec.CommandContext(ctx, shell[0], append(slices.Clone(shell[1:]), "-c", command)...)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "CANARY=" + tr.canary, "LOG=" + tr.log}
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, stdout, stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) && ctx.Err() == nil {
			return exit.ExitCode(), nil
		}
		return 0, err
	}}
	return tr
}

// dead tells whether the canary is dead.
func (tr *trap) dead() bool {
	_, err := os.Stat(tr.canary)
	return err == nil
}

// words gives what run-as was told since the last call.
func (tr *trap) words(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(tr.log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(tr.log); err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\x00")
}

// children starts a process for each name that a process can have.
func children(t *testing.T) map[string]int {
	t.Helper()
	pids := map[string]int{}
	for _, name := range hostileNames {
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
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(string(text), name+"\x00") {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("the child does not take the name %q", name)
}

func TestHostileNamesInRealShells(t *testing.T) {
	pids := children(t)
	for _, shell := range shells(t) {
		t.Run(strings.Join(append([]string{filepath.Base(shell[0])}, shell[1:]...), " "), func(t *testing.T) {
			tr := newTrap(t, shell)
			if _, err := tr.Shell(t.Context(), "echo $("+inject+") 2>/dev/null", io.Discard, io.Discard); err != nil || !tr.dead() {
				t.Fatal("the trap does not work: an unquoted name leaves the canary alive", err)
			}
			if err := os.Remove(tr.canary); err != nil {
				t.Fatal(err)
			}
			findNames(t, tr, pids)
			readNames(t, tr, pids)
			if tr.dead() {
				t.Error("a name was run")
			}
		})
	}
}

// findNames looks for all processes in one command, and for those alone that are
// not refused.
func findNames(t *testing.T, tr *trap, pids map[string]int) {
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
		seen := slices.ContainsFunc(found.Processes, func(p Process) bool { return p.Name == name && p.PID == pid })
		if seen != validName([]byte(name)) {
			t.Errorf("%q found: %v", name, seen)
		}
	}
}

// readNames sends the commands of the levels and of the fast channel that hold the
// package of a name: those under run-as.
func readNames(t *testing.T, tr *trap, pids map[string]int) {
	t.Helper()
	var targets []Target
	for _, name := range hostileNames {
		p := Process{Name: name, User: 10, UID: 10*perUser + 10123, PID: cmp.Or(pids[name], os.Getpid())}
		c := candidate{Level{RunAs, wrapper{words: runAsWords(p)}, "smaps_rollup"}, "", 20 * time.Second}
		f, err := NewLevels(tr, Facts{UID: 2000}).try(t.Context(), p, c)
		if err != nil || f.Answer != Available {
			t.Errorf("%q: %+v, %v", name, f, err)
		}
		checkWords(t, []string{name}, tr.words(t))
		targets = append(targets, Target{p, c.Level})
	}
	rounds, err := NewFast(tr).Read(t.Context(), targets, 0, 20*time.Second)
	if err != nil || len(rounds[0].Readings) != len(targets) {
		t.Errorf("%+v, %v", rounds, err)
	}
	checkWords(t, hostileNames, tr.words(t))
}

// checkWords wants the packages of the names read back by run-as, byte by byte and
// each once.
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
			t.Errorf("run-as was told %q for one of %q", words[i-1], names)
		}
		delete(want, words[i-1])
	}
	if len(want) > 0 {
		t.Errorf("run-as was not told %v: %q", want, words)
	}
}

// simulated is a phone with one app that only run-as can read, without a wire.
func simulated(app androidsim.App) (*androidsim.Phone, *scripted) {
	app.Debuggable = true
	phone := androidsim.New(androidsim.Options{Apps: []androidsim.App{app}})
	return phone, &scripted{shell: func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
		return phone.Shell(ctx, command, strings.NewReader(""), stdout, stderr), ctx.Err()
	}}
}

// A command line of a megabyte is read past, and is no process of an app.
func TestHugeNameIsNone(t *testing.T) {
	app := androidsim.App{Package: "com.x", Processes: []androidsim.ProcessSpec{{Name: "com.x" + strings.Repeat("x", 1<<20)}, {Name: "com.x:y"}}}
	_, dev := simulated(app)
	found, err := FindProcesses(t.Context(), dev, []Pattern{"com.x*"})
	if err != nil || len(found.Processes) != 1 || found.Processes[0].Name != "com.x:y" {
		t.Errorf("%+v, %v", found, err)
	}
}

// The simulated phone has a shell of its own, and apps of such names that only
// run-as can read.
func TestHostileNamesOnASimulatedPhone(t *testing.T) {
	for _, name := range hostileNames {
		phone, dev := simulated(androidsim.App{
			Package: name, Processes: []androidsim.ProcessSpec{{Name: name, Models: []androidsim.Model{androidsim.Typical()}}},
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
			t.Errorf("the name %q was run", name)
		}
	}
	phone, dev := simulated(androidsim.App{Package: "com.x"})
	if _, err := dev.Shell(t.Context(), "echo $("+inject+")", io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := phone.Stat("/data/local/tmp/canary"); err != nil {
		t.Error("the trap does not work: an unquoted name leaves the canary alive")
	}
}
