package monitor

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

func rule(begin, end string) *WindowRule {
	return &WindowRule{Begin: regexp.MustCompile(begin), End: regexp.MustCompile(end)}
}

// The rules in the documentation detect the beginning and the end of each test,
// with its name and outcome.
func TestWindowRule(t *testing.T) {
	for _, c := range []struct {
		rule *WindowRule
		line string
		want string
	}{
		{
			rule(`^BEGIN (?P<name>.+)$`, `^END (?P<name>.+?) (?P<outcome>passed|failed)$`), "BEGIN flows/a b.yaml",
			"begin flows/a b.yaml",
		},
		{
			rule(`^BEGIN (?P<name>.+)$`, `^END (?P<name>.+?) (?P<outcome>passed|failed)$`), "END flows/a b.yaml failed",
			"end flows/a b.yaml failed",
		},
		{rule(`^BEGIN (?P<name>.+)$`, `^END (?P<name>.+?) (?P<outcome>passed|failed)$`), "so it BEGINs", ""},
		{
			rule(`TestRunner.*: started: (?P<name>.+)`, `TestRunner.*: finished: (?P<name>.+)`),
			"I/TestRunner( 3192): started: adds(com.shop.CartTest)", "begin adds(com.shop.CartTest)",
		},
		{
			rule(`TestRunner.*: started: (?P<name>.+)`, `TestRunner.*: finished: (?P<name>.+)`),
			"I/TestRunner( 3192): finished: adds(com.shop.CartTest)", "end adds(com.shop.CartTest) ",
		},
		{
			rule(`session created successfully, session (?P<name>\S+) added`, `Removing session (?P<name>\S+) from`),
			"[Appium] New AndroidUiautomator2Driver session created successfully, session f23b2786-ada5 added to " +
				"master session list", "begin f23b2786-ada5",
		},
		{
			rule(`session created successfully, session (?P<name>\S+) added`, `Removing session (?P<name>\S+) from`),
			"[Appium] Removing session f23b2786-ada5 from our master session list", "end f23b2786-ada5 ",
		},
		{rule(`^ > Flow (.*)$`, `x`), " > Flow cart", "begin cart"},
		{rule(`^\[RUN`, `^\[(?P<outcome>Passed|Failed)\]`), "[RUN] a", "begin [RUN"},
		{rule(`^\[RUN`, `^\[(?P<outcome>Passed|Failed)\]`), "[Passed] a (12s)", "end  passed"},
	} {
		got := ""
		if name, ok := c.rule.begins(c.line); ok {
			got = "begin " + name
		}
		if name, outcome, ok := c.rule.ends(c.line); ok {
			got += "end " + name + " " + outcome
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
	for word, want := range map[string]string{
		"": "", " OK ": "passed", "Passed": "passed", "SUCCESS": "passed", "skipped": "ignored", "not ok": "failed",
		"FAILED": "failed",
	} {
		if got := outcomeOf(word); got != want {
			t.Errorf("%q: %q", word, got)
		}
	}
}

// found runs commands on the phone as the workload of a run and returns the
// result of the run.
func found(t *testing.T, p *cabled, r *WindowRule, lines ...string) result {
	t.Helper()
	o := responding(t, response.Options{}, p)
	o.Duration, o.Workload = 0, DeviceCommand{Command: strings.Join(lines, "; "), Windows: r}
	return respond(t, t.Context(), o)
}

// Tests are recognized in the output of a device command, and the one that
// leaks objects is reported.
func TestDeviceCommandWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := []int{0, 3, 3, 3}
		p := cable(phone("S1", counted(rooted(), func(n int) int { return held[min(n, len(held)-1)] }),
			healthy("com.shop")))
		r := rule(`BEGIN (?P<name>\S+)`, `END (?P<name>\S+)( (?P<outcome>\w+))?`)
		r.Options.Heap = true
		got := found(t, p, r, "echo END nothing", "sleep 60", "echo BEGIN one", "sleep 10", "echo 'END one ok'",
			"sleep 30",
			`printf '\033[32mBEGIN two\033[0m\n'`, "sleep 10", "echo END two failed >&2", "sleep 30",
			"echo leakgate:mark BEGIN mark", "echo BEGIN outer", "echo BEGIN inner", "sleep 5", "echo END outer",
			"sleep 60")
		var lines []string
		for _, c := range got.Checks {
			lines = append(lines, c.Name+" "+c.Outcome+" "+string(c.Verdict))
			if c.Type != record.CheckTest || c.Window == 0 {
				t.Errorf("%+v", c)
			}
		}
		if s := strings.Join(lines, ", "); s != "one passed pass, two failed leak, outer  pass, inner unfinished pass" {
			t.Error(s)
		}
		if got.ExitCode != record.ExitLeak || !strings.Contains(got.Checks[1].Text, "leaks 3 x DetailActivity") ||
			got.Checks[0].Ended-got.Checks[0].T < 10 {
			t.Errorf("exit %d, %+v", got.ExitCode, got.Checks)
		}
	})
}

// If a test begins before the heap of the previous test has been dumped, the
// verdict on the previous test is inconclusive.
func TestWindowsWithShortDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", counted(rooted(), func(n int) int { return n }), healthy("com.shop")))
		r := rule(`BEGIN (.+)`, `END`)
		r.Options.Heap = true
		got := found(t, p, r, "sleep 60", "echo BEGIN warm", "sleep 5", "echo END", "sleep 60", "echo BEGIN one",
			"sleep 5", "echo END", "echo BEGIN two", "sleep 60", "echo END", "sleep 60")
		if len(got.Checks) != 3 || got.Checks[1].Verdict != record.VerdictInconclusive ||
			!strings.Contains(got.Checks[1].Text, "leaks 1 x DetailActivity") ||
			!strings.HasSuffix(got.Checks[1].Text, ": let the suite wait longer after a test") ||
			got.Checks[2].Verdict != record.VerdictLeak {
			t.Errorf("%+v", got.Checks)
		}
	})
}

// Tests in the output of a command on the host are found as well.
func TestHostCommandWindows(t *testing.T) {
	needShell(t)
	var th testEnv
	st := th.stage(t.TempDir(), scripted{serial: "S1"})
	c := HostCommand{Args: []string{"/bin/sh", "-c", "echo BEGIN a; echo END a"}, Windows: rule("BEGIN", "END")}
	if rec, err := c.Run(t.Context(), st); err != nil || rec.Exit == nil || *rec.Exit != 0 ||
		!strings.Contains(th.log.String(), "END a") {
		t.Errorf("without a run: %+v, %v", rec, err)
	}
	plain := HostCommand{Args: c.Args}
	if plain.Describe().Digest == c.Describe().Digest {
		t.Error("the digest does not depend on the rule")
	}
}

// However many tests begin, the number of open tests is bounded. If a rule
// matches no test, or no end of a test, evidence is missing: the run ends with
// exit code 5, not 0.
func TestWindowRuleWithoutMatches(t *testing.T) {
	for want, r := range map[string]*WindowRule{
		`no test was checked: no line of the output matches workload.windows.begin, "BEGINN"`: rule("BEGINN", "END"),
		`no test has an end: no line of the output matches workload.windows.end, "ENDE"`: rule("BEGIN (.*)",
			"ENDE"),
	} {
		synctest.Test(t, func(t *testing.T) {
			p := shopOfScreens()
			on(t, p, "am start -n com.shop/.MainActivity")
			o := responding(t, response.Options{}, p)
			o.AllowUnjudged, o.Duration = false, 0
			o.Workload = DeviceCommand{Command: "echo BEGIN a; sleep 60; echo END a", Windows: r}
			run := respond(t, t.Context(), o)
			if run.ExitCode != record.ExitInconclusive || len(run.MissingEvidence) != 1 ||
				run.MissingEvidence[0].Text != want {
				t.Errorf("exit %d, %+v", run.ExitCode, run.MissingEvidence)
			}
		})
	}
}

func TestFoundTestsAreBounded(t *testing.T) {
	f := &foundTests{rule: rule("BEGIN (.*)", "END (?P<name>.*)")}
	for range 3 * maxOpenTests {
		f.addLine("BEGIN x")
	}
	if len(f.open) != maxOpenTests {
		t.Errorf("got %d open tests, want %d", len(f.open), maxOpenTests)
	}
	for range 2 * maxOpenTests {
		f.addLine("END x")
	}
	f.addLine("BEGIN y")
	if len(f.open) != 1 || len(f.justEnded) != 0 {
		t.Errorf("got %d open tests and %d that have just ended, want 1 and none", len(f.open), len(f.justEnded))
	}
	if f.missing() != "" {
		t.Error(f.missing())
	}
	f.finish()
	var none *foundTests
	none.addLine("BEGIN x")
	none.finish()
}

// For any output, the tests that remain open are those that a straightforward
// implementation computes.
func FuzzWindowRule(f *testing.F) {
	f.Add("BEGIN a\nBEGIN b\nEND a\nEND\n\x1b[1mBEGIN a\x1b[0m\nEND c\n")
	f.Add(strings.Repeat("BEGIN x\n", 2*maxOpenTests) + "END x\n")
	f.Fuzz(func(t *testing.T, output string) {
		tests := &foundTests{rule: rule(`^BEGIN (.*)$`, `^END ?(?P<name>\w*)$`)}
		var open []string
		for line := range strings.SplitSeq(output, "\n") {
			tests.addLine(line)
			if strings.Contains(line, "\x1b") {
				line = escapeSequences.ReplaceAllString(line, "")
			}
			if name, ok := strings.CutPrefix(line, "BEGIN "); ok && !strings.Contains(line, "\n") {
				if len(open) == maxOpenTests {
					open = open[1:]
				}
				open = append(open, strings.TrimSpace(name))
			}
			name, ok := strings.CutPrefix(line, "END")
			if name = strings.TrimPrefix(name, " "); !ok || strings.ContainsFunc(name, notWord) {
				continue
			}
			for i := len(open) - 1; i >= 0; i-- {
				if name == "" || open[i] == name {
					open = slices.Delete(open, i, i+1)
					break
				}
			}
		}
		var got []string
		for _, o := range tests.open {
			got = append(got, o.name)
		}
		if !slices.Equal(got, open) {
			t.Fatalf("open %q, want %q", got, open)
		}
	})
}

// notWord reports whether \w does not match a character.
func notWord(r rune) bool {
	return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}
