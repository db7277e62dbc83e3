package monitor

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/instrument"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

const shopTests = "com.shop.test/androidx.test.runner.AndroidJUnitRunner"

// instrumented returns a phone that can run the tests of com.shop.
func instrumented(orchestrated bool, tests ...androidsim.Test) *cabled {
	o := rooted()
	o.Instrumentations = []androidsim.Instrumentation{
		{
			Package: "com.shop.test", Target: "com.shop", Orchestrated: orchestrated,
			Models: healthy("com.shop").Models, Tests: tests,
		},
	}
	return cable(phone("S1", o, healthy("com.shop"), healthy("com.shop:push")))
}

// runTests runs tests as the workload of a run, and returns their checks by
// name.
func runTests(t *testing.T, i Instrument, p *cabled) (result, map[string]record.Check) {
	t.Helper()
	o := responding(t, response.Options{}, p)
	o.Duration, o.Workload = 0, i
	r := respond(t, t.Context(), o)
	checks := map[string]record.Check{}
	for _, c := range r.Checks {
		if _, twice := checks[c.Name]; twice || c.Type != record.CheckTest || c.Device != "S1" || c.Window == 0 ||
			c.Ended < c.T {
			t.Errorf("check %+v", c)
		}
		checks[c.Name] = c
	}
	junit, err := os.ReadFile(filepath.Join(o.Dir, "junit.xml"))
	if written := err == nil; written != (len(checks) > 0) || strings.Count(string(junit), "<testcase ") != len(checks)+
		3*min(1, len(checks)) {
		t.Errorf("junit.xml: %v\n%s", err, junit)
	}
	return r, checks
}

// Of several tests, the one that leaks is reported with the class of the leaked
// object. The other tests pass, except one that is ignored.
func TestInstrument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := instrumented(false,
			androidsim.Test{Name: "com.shop.CartTest#adds", Took: 2 * time.Second},
			androidsim.Test{
				Name: "com.shop.CartTest#pays", Took: 3 * time.Second,
				Leaks: []androidsim.LeakedActivities{{Class: "com.shop.PayActivity", Count: 3}},
			},
			androidsim.Test{Name: "com.shop.CartTest#empties", Outcome: androidsim.TestIgnored},
			androidsim.Test{Name: "com.shop.LoginTest#signsIn"},
		)
		r, checks := runTests(t, Instrument{Component: shopTests}, p)
		for name, want := range map[string][3]string{
			"com.shop.CartTest#adds":     {"passed", "pass", "com.shop: no more objects than before"},
			"com.shop.CartTest#pays":     {"passed", "leak", "com.shop: leaks 3 x PayActivity"},
			"com.shop.CartTest#empties":  {"ignored", "not_checked", "not checked: the test is ignored"},
			"com.shop.LoginTest#signsIn": {"passed", "pass", "com.shop: no more objects than before"},
		} {
			if c := checks[name]; c.Outcome != want[0] || string(c.Verdict) != want[1] ||
				!strings.HasPrefix(c.Text, want[2]) {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if c := checks["com.shop.CartTest#pays"]; len(c.Processes) == 0 || len(c.Processes[0].Leaks) != 1 ||
			len(c.Processes[0].Leaks[0].Trace) == 0 || c.Processes[0].Folder == "" {
			t.Errorf("%+v", c)
		}
		if len(checks) != 4 || r.ExitCode != record.ExitLeak || r.Workload.Error != "" || r.Workload.Exit == nil ||
			*r.Workload.Exit != 0 || r.Stopped != record.StoppedWorkload {
			t.Errorf("exit %d, %d checks, %+v", r.ExitCode, len(checks), r.Workload)
		}
		for _, e := range r.events {
			if e.Event == "workload" {
				t.Errorf("a complaint: %s", e.Text)
			}
		}
	})
}

// If the delay is too short, the verdict on a test that leaks is inconclusive;
// the leak is never attributed to another test.
func TestInstrumentWithShortDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := instrumented(false,
			androidsim.Test{
				Name:  "com.shop.CartTest#pays",
				Leaks: []androidsim.LeakedActivities{{Class: "com.shop.PayActivity", Count: 3}},
			},
			androidsim.Test{Name: "com.shop.CartTest#adds", Took: time.Minute},
		)
		_, checks := runTests(t, Instrument{Component: shopTests, Delay: time.Second}, p)
		if c := checks["com.shop.CartTest#pays"]; c.Verdict != record.VerdictInconclusive ||
			!strings.Contains(c.Text, "leaks 3 x PayActivity") ||
			!strings.HasSuffix(c.Text,
				"; but the delay after the test ended before the heap was dumped: increase it (delay_msec)") {
			t.Errorf("%+v", c)
		}
		// The process ends after the last test.
		if c := checks["com.shop.CartTest#adds"]; c.Verdict != record.VerdictInconclusive ||
			!strings.HasSuffix(c.Text, "; the delay after the test ended too early: increase it (delay_msec)") {
			t.Errorf("%+v", c)
		}
	})
}

// If the tests themselves fail, the workload returns an error that describes
// the failures.
func TestInstrumentFails(t *testing.T) {
	for name, c := range map[string]struct {
		i        Instrument
		tests    []androidsim.Test
		want     string
		outcomes string
	}{
		"failed test": {
			Instrument{Component: shopTests},
			[]androidsim.Test{
				{Name: "a.B#c", Outcome: androidsim.TestFails},
				{Name: "a.B#d", Outcome: androidsim.TestAssumptionFails}, {Name: "a.B#e"},
			},
			"run tests on S1: 1 of 3 tests failed: a.B#c; its output is in workload.log",
			"failed assumption_failed passed"},
		"crash of the process": {
			Instrument{Component: shopTests},
			[]androidsim.Test{{Name: "a.B#c"}, {Name: "a.B#d", Outcome: androidsim.TestCrashes}, {Name: "a.B#e"}},
			"the process ended after 2 of 3 tests: Process crashed.; 1 of 2 tests failed: a.B#d", "passed crashed"},
		"no such runner": {
			Instrument{Component: "com.shop.test/.Runner"}, nil,
			"Unable to find instrumentation info for: ComponentInfo{com.shop.test/com.shop.test.Runner}", "",
		},
		"no such class": {
			Instrument{Component: shopTests, Arguments: map[string]string{"class": "a.B#none"}},
			[]androidsim.Test{{Name: "a.B#c"}}, "no test ran: no class or method matches the arguments", "",
		},
		"a component's name": {Instrument{Component: "it's"}, nil, "No instrumentation found for: it's", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := runTests(t, c.i, instrumented(false, c.tests...))
				var outcomes []string
				for _, c := range r.Checks {
					outcomes = append(outcomes, c.Outcome)
				}
				if r.ExitCode != record.ExitWorkload || !strings.Contains(r.Workload.Error, c.want) ||
					strings.Join(outcomes, " ") != c.outcomes {
					t.Errorf("exit %d, %s\nwant %s\n%s", r.ExitCode, r.Workload.Error, c.want, outcomes)
				}
				for _, c := range r.Checks {
					if c.Outcome == record.OutcomeCrashed &&
						(c.Verdict != record.VerdictNotChecked ||
							c.Text != "not checked: the process did not outlive the test" || len(c.Processes) != 1 ||
							len(c.Processes[0].Deaths) != 1) {
						t.Errorf("%+v", c)
					}
				}
			})
		})
	}
}

// Under the orchestrator, each test has its own process. This is reported once,
// and a leaking test is still reported.
func TestInstrumentOrchestrated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := instrumented(true,
			androidsim.Test{Name: "a.B#c"},
			androidsim.Test{
				Name: "a.B#d", Leaks: []androidsim.LeakedActivities{{Class: "com.shop.PayActivity", Count: 1}},
			}, androidsim.Test{Name: "a.B#e"})
		r, checks := runTests(t, Instrument{Component: shopTests, Delay: 15 * time.Second}, p)
		told := 0
		for _, e := range r.events {
			if e.Event == "workload" && e.Text == orchestratedText {
				told++
			}
		}
		if told != 1 || checks["a.B#c"].Verdict != record.VerdictPass ||
			checks["a.B#d"].Verdict != record.VerdictLeak || checks["a.B#e"].Verdict != record.VerdictPass {
			t.Errorf("recorded %d times: %+v", told, checks)
		}
	})
}

// Each of a hundred tests is a check with its own window, even if one crashes.
func TestInstrumentManyTests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tests []androidsim.Test
		for n := range 100 {
			tests = append(tests,
				androidsim.Test{
					Name: fmt.Sprintf("com.shop.T%dTest#case[%d: a b]", n%7, n),
					Outcome: []androidsim.TestOutcome{
						androidsim.TestPasses, androidsim.TestFails, androidsim.TestIgnored,
						androidsim.TestAssumptionFails,
					}[n%4],
				})
		}
		tests[50].Outcome = androidsim.TestCrashes
		r, _ := runTests(t, Instrument{Component: shopTests, Delay: 3 * time.Second}, instrumented(true, tests...))
		if len(r.Checks) != len(tests) || len(r.Windows) != len(tests) {
			t.Fatalf("%d checks, %d windows", len(r.Checks), len(r.Windows))
		}
		outcomes := map[androidsim.TestOutcome]string{
			androidsim.TestPasses: "passed", androidsim.TestFails: "failed", androidsim.TestIgnored: "ignored",
			androidsim.TestAssumptionFails: "assumption_failed", androidsim.TestCrashes: "crashed",
		}
		for n, c := range r.Checks {
			w := r.Windows[n]
			if c.Name != tests[n].Name || c.Outcome != outcomes[tests[n].Outcome] || w.Number != c.Window ||
				w.Name != c.Name || w.T != c.T || n > 0 && c.T < r.Checks[n-1].T {
				t.Errorf("%d: %s %s %+v", n, c.Name, c.Outcome, w)
			}
			if tests[n].Outcome != androidsim.TestIgnored && tests[n].Outcome != androidsim.TestCrashes &&
				c.Verdict != record.VerdictPass {
				t.Errorf("%d: %s %s", n, c.Verdict, c.Text)
			}
		}
		if !strings.Contains(r.Workload.Error, "26 of 100 tests failed") {
			t.Error(r.Workload.Error)
		}
	})
}

// All values in the command are quoted. Arguments that remove the delay cause a
// warning.
func TestInstrumentCommand(t *testing.T) {
	i := Instrument{
		Component: "a/b",
		Arguments: map[string]string{"class": "a.B#c d", "newRunListenerMode": "True", "delay_msec": "1"},
	}
	if got := i.command(i.delayOn(1)); got != "exec am instrument -w -r -e delay_msec 10000 -e 'class' 'a.B#c d' -e "+
		"'newRunListenerMode' 'True' 'a/b'" {
		t.Error(got)
	}
	if got := i.delayOn(60); got != 128*time.Second {
		t.Error(got)
	}
	if w := i.warnings(); len(w) != 1 || !strings.Contains(w[0], "newRunListenerMode") {
		t.Errorf("%q", w)
	}
	if w := (Instrument{Component: "androidx.test.orchestrator/.AndroidTestOrchestrator"}).warnings(); len(w) != 1 ||
		w[0] != orchestratedText {
		t.Errorf("%q", w)
	}
	other := i
	other.Arguments = map[string]string{"class": "a.B#c d"}
	same := i
	if i.Describe().Digest == other.Describe().Digest || i.Describe().Digest != same.Describe().Digest {
		t.Error("digests")
	}
}

// It is an error if a run ends with fewer tests than announced, or without
// reporting its end.
func TestTestsFailed(t *testing.T) {
	for want, output := range map[string]string{
		"only 1 of 3 announced tests ran": "INSTRUMENTATION_STATUS: class=a\nINSTRUMENTATION_STATUS: " +
			"test=b\nINSTRUMENTATION_STATUS: numtests=3\nINSTRUMENTATION_STATUS_CODE: 0\nINSTRUMENTATION_CODE: -1\n",
		"the output ended after 0 of 0 tests": "",
		"": "INSTRUMENTATION_STATUS: class=a\nINSTRUMENTATION_STATUS: " +
			"test=b\nINSTRUMENTATION_STATUS_CODE: -3\nINSTRUMENTATION_CODE: -1\n",
		"6 of 6 tests failed: a#x, a#x, a#x, a#x, a#x and 1 more": strings.Repeat(
			"INSTRUMENTATION_STATUS: class=a\nINSTRUMENTATION_STATUS: test=x\nINSTRUMENTATION_STATUS_CODE: -2\n", 6) +
			"INSTRUMENTATION_CODE: -1\n",
	} {
		dev := scripted{
			serial: "S1", shell: func(_ context.Context, command string, stdout, stderr io.Writer) (int, error) {
				_, err := io.WriteString(stdout, output)
				return 0, err
			}}
		var th testEnv
		st := th.stage(t.TempDir(), dev)
		st.Record = func(device string, e record.Event) { t.Errorf("%s: %+v", device, e) }
		rec, err := Instrument{Component: "a/b"}.Run(t.Context(), st)
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != "run tests on S1: "+want ||
			rec.Kind != "instrument" {
			t.Errorf("%s, want %s", got, want)
		}
		if th.log.String() != output {
			t.Errorf("log %q", th.log.String())
		}
	}
}

// A process that has another life at the next test counts as restarted.
func TestRestarted(t *testing.T) {
	of := func(name string, pid int) life { return life{name: name, pid: pid} }
	before := map[life]bool{of("a", 1): true, of("b", 2): true}
	for _, c := range []struct {
		now  map[life]bool
		want bool
	}{
		{map[life]bool{of("a", 1): true, of("b", 2): true}, false},
		{map[life]bool{of("a", 3): true, of("b", 2): true}, true},
		{map[life]bool{of("b", 2): true, of("c", 4): true}, false},
		{nil, false},
	} {
		if got := restarted(before, c.now); got != c.want {
			t.Errorf("%v: %v", c.now, got)
		}
	}
	if testsFailed(instrument.Totals{Seen: 1, Code: new(-1)}, nil) != "" {
		t.Error("a successful run is reported as failed")
	}
}
