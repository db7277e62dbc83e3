package capture

import (
	"context"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/shelltest"
)

// phone returns a device that responds to each part of a joined command
// separately.
func phone(answers func(command string) string) *shelltest.Device {
	return &shelltest.Device{Run: func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
		for label, part := range partsOf(command) {
			var text string
			switch {
			case strings.HasPrefix(part, "cat /proc/"):
				pid, _ := strconv.Atoi(strings.Split(part, "/")[2])
				text = statLine(pid, "five", 1) + "\n"
			case label != "end":
				text = answers(part)
			}
			marker, _, _ := strings.Cut(command[len("echo; echo "):], " ")
			if _, err := fmt.Fprintf(stdout, "\n%s %s\n%s", marker, label, text); err != nil {
				return 0, err
			}
		}
		return 0, nil
	}}
}

// partsOf yields the parts of a joined command line in order, each with its
// label.
func partsOf(command string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		marker, _, _ := strings.Cut(command[len("echo; echo "):], " ")
		for _, piece := range strings.Split(command, "echo; echo "+marker+" ")[1:] {
			label, part, _ := strings.Cut(piece, ";")
			if !yield(strings.Trim(label, "'"), strings.Trim(part, "; ")) {
				return
			}
		}
	}
}

// after returns the character that follows the name of the file in the command.
func after(command, name string) string {
	_, rest, ok := strings.Cut(command, name)
	if !ok {
		return ""
	}
	return rest[:1]
}

const pssLine = "Pss:      10 kB\n"

func TestLevelIsTheBestThatTheProcessAllows(t *testing.T) {
	const denied = "grep: /proc/5/x: Permission denied\n"
	app := Process{Name: "com.x:push", PID: 5, UID: 10123}
	second := Process{Name: "com.x", PID: 5, UID: 1010123, User: 10}
	isolated := Process{Name: "com.x:sandbox", PID: 5, UID: 99001}
	via := func(word, file, good, bad string) func(string) string {
		return func(command string) string {
			if strings.HasPrefix(command, "su ") && strings.Contains(command, "id") &&
				!strings.Contains(command, "grep") {
				if word != "" && strings.HasPrefix(command, word) {
					return "uid=0(root) gid=0(root)\n"
				}
				return "sh: su: inaccessible or not found\n"
			}
			if strings.Contains(command, word) && strings.ContainsAny(after(command, "/"+file), " '") {
				return good
			}
			return bad
		}
	}
	for name, c := range map[string]struct {
		p       Process
		uid     int
		answers func(string) string
		source  Source
		asked   string
	}{
		"root":  {app, 0, via("", "smaps_rollup", pssLine, denied), SmapsRollup, ""},
		"su 0":  {app, 2000, via("su 0", "smaps_rollup", pssLine, denied), SU, "su 0"},
		"su -c": {app, 2000, via("su -c", "smaps_rollup", pssLine, denied), SU, "su -c"},
		"debuggable": {
			app, 2000, via("run-as 'com.x' grep", "smaps_rollup", pssLine, denied), RunAs, "run-as",
		},
		"debuggable, second user": {
			second, 2000, via("run-as 'com.x' --user 10 grep", "smaps_rollup", pssLine, denied), RunAs, "--user 10",
		},
		"old kernel, root": {
			app, 0, via("", "smaps", pssLine, "grep: /proc/5/smaps_rollup: No such file or directory\n"), Smaps, "",
		},
		"old kernel, debuggable": {app, 2000, via("run-as", "smaps", pssLine, denied), Smaps, "run-as"},
		"user build":             {app, 2000, via("", "status", "RssAnon:  9 kB\n", denied), Status, ""},
		"isolated, no run-as":    {isolated, 2000, via("run-as", "smaps_rollup", pssLine, denied), Dumpsys, ""},
		"nothing":                {app, 2000, func(string) string { return denied }, Dumpsys, ""},
		"kernel before 4.5":      {app, 2000, via("", "status", "", denied), Dumpsys, ""},
	} {
		dev := phone(c.answers)
		levels := NewLevels(dev, Facts{UID: c.uid})
		probe, err := levels.Probe(t.Context(), c.p)
		if err != nil {
			t.Fatal(name, err)
		}
		if words := probe.Level.Prefix.String(); probe.Level.Source != c.source || !strings.Contains(words, c.asked) ||
			c.asked == "" && words != "" {
			t.Errorf("%s: %+v", name, probe)
		}
		for _, f := range probe.Findings {
			if f.Answer == Unclear || f.Reason == "" {
				t.Errorf("%s: a finding must have both an answer and a reason: %+v", name, f)
			}
		}
		if !probe.conclusive() {
			t.Errorf("%s: not conclusive: %+v", name, probe)
		}
		asked := len(dev.Commands)
		if _, err := levels.Probe(t.Context(), c.p); err != nil || len(dev.Commands) != asked {
			t.Errorf("%s: probed again (%v)", name, err)
		}
		levels.Forget(c.p)
		if _, err := levels.Probe(t.Context(), c.p); err != nil || len(dev.Commands) == asked {
			t.Errorf("%s: not probed again after Forget (%v)", name, err)
		}
	}
}

// If su waits for the user's confirmation, it is abandoned and not tried for
// any other process, and the next best source is used.
func TestSilentSUIsTriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, asked := unansweredSU()
		levels, began := NewLevels(dev, Facts{UID: 2000}), time.Now()
		for i := range 50 {
			p := Process{Name: fmt.Sprintf("com.x%d", i), PID: 5 + i, UID: 10123 + i}
			for range 3 * retryAfter {
				probe, err := levels.Probe(t.Context(), p)
				if err != nil || probe.Level.Source != Status || !probe.conclusive() {
					t.Fatalf("%+v, %v", probe, err)
				}
				if reasons := strings.Join(probe.Reasons(), "\n"); !strings.Contains(reasons,
					"su: no answer in 10s; not tried again (refused)") {
					t.Fatalf("reasons: %s", reasons)
				}
			}
		}
		if waited := time.Since(began); waited != suTimeout || *asked != 1 {
			t.Errorf("tried su %d times and waited %v, want once and %v", *asked, waited, suTimeout)
		}
	})
}

// unansweredSU returns a device whose su waits for a confirmation that never
// comes.
func unansweredSU() (dev *shelltest.Device, asked *int) {
	asked = new(int)
	inner := phone(func(command string) string {
		if strings.Contains(command, "RssAnon") {
			return "RssAnon: 5 kB\n"
		}
		return "Permission denied\n"
	})
	return &shelltest.Device{Run: func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
		if strings.Contains(command, "su 0") || strings.Contains(command, "su -c") {
			*asked++
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return inner.Run(ctx, command, stdout, stderr)
	}}, asked
}

// If su works, every process is read through su, and su is probed only once.
func TestGrantedSUIsTriedOnce(t *testing.T) {
	dev := phone(func(command string) string {
		switch {
		case command == "su -c 'id' </dev/null 2>&1":
			return "uid=0(root)\n"
		case strings.HasPrefix(command, "su -c 'grep"):
			return pssLine
		}
		return "Permission denied\n"
	})
	levels := NewLevels(dev, Facts{UID: 2000})
	var ps []Process
	for i := range 1000 {
		ps = append(ps, Process{Name: fmt.Sprintf("com.x%d", i), PID: 5 + i, UID: 10123 + i})
	}
	probes, err := levels.ProbeAll(t.Context(), ps)
	if err != nil {
		t.Fatal(err)
	}
	for i, probe := range probes {
		if probe.Level.Source != SU {
			t.Fatalf("%s: %+v", ps[i].Name, probe)
		}
	}
	asked := 0
	for _, c := range dev.Commands {
		asked += strings.Count(c, "su -c 'id'")
	}
	if asked != 1 || len(dev.Commands) != 2*20+1 {
		t.Errorf("tried su %d times in %d commands, want once in 41", asked, len(dev.Commands))
	}
}

// If one read blocks a batch, the other processes are delayed, but their levels
// do not change. The blocked process is probed again after some lookups.
func TestBatchWithAHungProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := phone(func(command string) string {
			if strings.Contains(command, "smaps_rollup") {
				return pssLine
			}
			return "Permission denied\n"
		})
		hangs := true
		dev := &shelltest.Device{Run: func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
			if hangs && strings.Contains(command, "/proc/7/smaps") {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return inner.Run(ctx, command, stdout, stderr)
		}}
		levels := NewLevels(dev, Facts{UID: 2000})
		ps := []Process{
			{Name: "com.a", PID: 6, UID: 10001}, {Name: "com.b", PID: 7, UID: 10002},
			{Name: "com.c", PID: 8, UID: 10003},
		}
		probes, err := levels.ProbeAll(t.Context(), ps)
		if err != nil || probes[0].Level.Source != SmapsRollup || probes[2].Level.Source != SmapsRollup ||
			probes[1].conclusive() {
			t.Fatalf("%+v, %v", probes, err)
		}
		hangs = false
		for range retryAfter {
			if probe, err := levels.Probe(t.Context(), ps[1]); err != nil || probe.conclusive() {
				t.Fatalf("probed again too soon: %+v, %v", probe, err)
			}
		}
		if probe, err := levels.Probe(t.Context(), ps[1]); err != nil || probe.Level.Source != SmapsRollup {
			t.Errorf("not probed again: %+v, %v", probe, err)
		}
	})
}

// For many processes, ProbeAll returns the same results as Probe does for each
// of them.
func TestProbeAllIsProbeOfEach(t *testing.T) {
	answers := func(command string) string {
		pid, _ := strconv.Atoi(strings.Split(command[strings.Index(command, "/proc/"):], "/")[2])
		switch {
		case strings.HasPrefix(command, "run-as") && pid%3 == 0, strings.HasPrefix(command, "grep") && pid%5 == 0 &&
			strings.Contains(command, "smaps "):
			return pssLine
		case strings.Contains(command, "RssAnon") && pid%7 != 0:
			return "RssAnon: 1 kB\n"
		}
		return "Permission denied\n"
	}
	dev := phone(func(command string) string {
		if strings.HasPrefix(command, "su") {
			return ""
		}
		return answers(command)
	})
	var ps []Process
	for i := range 240 {
		// In a package with an isolated process, each process is probed
		// separately.
		ps = append(ps, Process{Name: fmt.Sprintf("com.x%d:p", i/2), PID: 100 + i, UID: 10000 + i%2*89000})
	}
	all, err := NewLevels(dev, Facts{UID: 2000}).ProbeAll(t.Context(), ps)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range ps {
		one, err := NewLevels(dev, Facts{UID: 2000}).Probe(t.Context(), p)
		if err != nil || !reflect.DeepEqual(one, all[i]) {
			t.Fatalf("%+v: ProbeAll returned %+v, Probe returned %+v, %v", p, all[i], one, err)
		}
	}
}
