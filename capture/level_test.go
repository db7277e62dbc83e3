package capture

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/shelltest"
)

// phone answers probes by the way that a command takes.
func phone(answers func(command string) string) *shelltest.Device {
	return &shelltest.Device{Run: func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
		m := shell.Marker(command[len("echo; echo "):strings.Index(command, " 'read'")])
		read := answers(command)
		_, err := io.WriteString(stdout, "\n"+string(m)+" read\n"+read+"\n"+string(m)+" stat\n"+statLine(5, "five", 1)+"\n"+string(m)+" end\n")
		return 0, err
	}}
}

// after gives the one character that follows the file's name.
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
		"root":                    {app, 0, via("", "smaps_rollup", pssLine, denied), SmapsRollup, ""},
		"su 0":                    {app, 2000, via("su 0", "smaps_rollup", pssLine, denied), SU, "su 0"},
		"su -c":                   {app, 2000, via("su -c", "smaps_rollup", pssLine, denied), SU, "su -c"},
		"debuggable":              {app, 2000, via("run-as 'com.x' grep", "smaps_rollup", pssLine, denied), RunAs, "run-as"},
		"debuggable, second user": {second, 2000, via("run-as 'com.x' --user 10 grep", "smaps_rollup", pssLine, denied), RunAs, "--user 10"},
		"old kernel, root":        {app, 0, via("", "smaps", pssLine, "grep: /proc/5/smaps_rollup: No such file or directory\n"), Smaps, ""},
		"old kernel, debuggable":  {app, 2000, via("run-as", "smaps", pssLine, denied), Smaps, "run-as"},
		"user build":              {app, 2000, via("", "status", "RssAnon:  9 kB\n", denied), Status, ""},
		"isolated never run-as":   {isolated, 2000, via("run-as", "smaps_rollup", pssLine, denied), Dumpsys, ""},
		"nothing":                 {app, 2000, func(string) string { return denied }, Dumpsys, ""},
		"kernel before 4.5":       {app, 2000, via("", "status", "", denied), Dumpsys, ""},
	} {
		dev := phone(c.answers)
		levels := NewLevels(dev, Facts{UID: c.uid})
		probe, err := levels.Probe(t.Context(), c.p)
		if err != nil {
			t.Fatal(name, err)
		}
		if words := probe.Level.Prefix.String(); probe.Level.Source != c.source || !strings.Contains(words, c.asked) || c.asked == "" && words != "" {
			t.Errorf("%s: %+v", name, probe)
		}
		for _, f := range probe.Findings {
			if f.Answer == Unclear || f.Reason == "" {
				t.Errorf("%s: finding without an answer and a reason: %+v", name, f)
			}
		}
		if !probe.conclusive() {
			t.Errorf("%s: not conclusive: %+v", name, probe)
		}
		asked := len(dev.Commands)
		if _, err := levels.Probe(t.Context(), c.p); err != nil || len(dev.Commands) != asked {
			t.Errorf("%s: asked again (%v)", name, err)
		}
		levels.Forget(c.p)
		if _, err := levels.Probe(t.Context(), c.p); err != nil || len(dev.Commands) == asked {
			t.Errorf("%s: not asked again after Forget (%v)", name, err)
		}
	}
}

// su may wait for a person to agree: it is given up, its answer is not kept, and
// what is below it is used meanwhile.
func TestLevelThatDoesNotAnswerIsUnclear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := phone(func(command string) string {
			if strings.Contains(command, "RssAnon") {
				return "RssAnon: 5 kB\n"
			}
			return "Permission denied\n"
		})
		dev := &shelltest.Device{Run: func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
			if strings.Contains(command, "su 0") || strings.Contains(command, "su -c") {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return inner.Run(ctx, command, stdout, stderr)
		}}
		levels, began := NewLevels(dev, Facts{UID: 2000}), time.Now()
		probe, err := levels.Probe(t.Context(), Process{Name: "com.x", PID: 5, UID: 10123})
		if err != nil || probe.Level.Source != Status {
			t.Fatalf("%+v, %v", probe, err)
		}
		if probe.conclusive() || len(levels.known) != 0 {
			t.Errorf("an unclear answer was kept for good: %+v", probe)
		}
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("waited %v for su", waited)
		}
		p := Process{Name: "com.x", PID: 5, UID: 10123}
		for look := range askAgainAfter {
			if again, err := levels.Probe(t.Context(), p); err != nil || again.Level != probe.Level || time.Since(began) != 10*time.Second {
				t.Fatalf("look %d: %+v, %v after %v", look, again, err, time.Since(began))
			}
		}
		if _, err := levels.Probe(t.Context(), p); err != nil || time.Since(began) != 20*time.Second {
			t.Errorf("not asked again: %v after %v", err, time.Since(began))
		}
		if reasons := strings.Join(probe.Reasons(), "\n"); !strings.Contains(reasons, "su: no answer in 10s (unclear)") {
			t.Errorf("reasons: %s", reasons)
		}
	})
}
