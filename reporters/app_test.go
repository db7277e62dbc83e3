package reporters

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// shopping returns a run of two processes that pass, and their sum.
func shopping(gate detector.Gate, leaking ...string) record.Run {
	p := func(name string) record.Process {
		return record.Process{Process: name, Gate: detector.Pass, Reason: "no growth"}
	}
	return record.Run{
		Patterns: []string{"com.shop", "com.shop:*"}, Processes: []record.Process{p("com.shop"), p("com.shop:remote")},
		Apps: []record.AppVerdict{{
			App: "com.shop", Processes: []string{"com.shop", "com.shop:remote"}, Leaking: leaking, Samples: 960,
			Duration: 28800, Gate: gate, Kind: detector.Java,
			Reason: "grew 400 MB", Rate: new(50.0), RateInterval: []float64{45, 55}, Growth: 400,
			ByProcess: []record.ProcessGrowth{
				{Process: "com.shop", Growth: 210, Share: 0.525},
				{Process: "com.shop:remote", Growth: 190, Share: 0.475},
			},
			Shares: []record.Share{{Dimension: "Java Heap", Growth: 390, Share: 1, Rate: 48}},
		}},
	}
}

// A leak that is detected only in the sum must be reported in full. Any other
// sum must take only one line.
func TestTextOfApps(t *testing.T) {
	for name, c := range map[string]struct {
		run  record.Run
		want string
	}{
		"leak only in the sum": {
			shopping(detector.Leak), `all processes of com.shop together: LEAK (java leak), proved at the end, without an alarm during the run; no process leaks by itself
  why      grew 400 MB
  series   960 sums of 2 processes over 8h0m
  rate     +50.0 MB/h (95 %: +45.0 to +55.0)
  held by  com.shop 52 % (+210.0 MB), com.shop:remote 48 % (+190.0 MB)
  growth   Java Heap 100 % (+48.0 MB/h)
`},
		"leak of one process": {
			shopping(detector.Leak, "com.shop"),
			"all processes of com.shop together: leak; com.shop leaks, see above\n",
		},
		"leak of two processes": {
			shopping(detector.Leak, "com.shop", "com.shop:remote"),
			"all processes of com.shop together: leak; 2 processes leak, see above\n",
		},
		"no leak": {
			shopping(detector.Pass), "all processes of com.shop together: pass, +50.0 MB/h (95 %: +45.0 to +55.0)\n",
		},
		"hostile names": {
			record.Run{Apps: []record.AppVerdict{{App: "\x1b[2J\n", Gate: detector.Pass}}}, "together: pass\n",
		},
	} {
		var out strings.Builder
		if err := WriteRun(&out, c.run); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s: no %q in\n%s", name, c.want, out.String())
		}
	}
}

// The report must name a window in which only the sum leaks.
func TestTextOfAppsInWindows(t *testing.T) {
	run := record.Run{Windows: []record.JudgedWindow{{
		Name: "test", Processes: []record.WindowProcess{{Process: "com.shop", Gate: detector.Pass}},
		Apps: []record.WindowApp{{App: "com.shop", Gate: detector.Leak, Reason: "grew"}},
	}}}
	text := func() string {
		var out strings.Builder
		if err := WriteRun(&out, run); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	const want = `  window   "test", all processes of com.shop together: LEAK (kind not decided): grew`
	if got := text(); !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	run.Windows[0].Processes[0].Gate = detector.Leak
	if got := text(); strings.Contains(got, "together") {
		t.Errorf("the leak is reported twice:\n%s", got)
	}
}

// junit.xml must contain a case for each app, which fails if only the sum
// leaks.
func TestJUnitOfApps(t *testing.T) {
	for name, c := range map[string]struct {
		run  record.Run
		want string
	}{
		"leak only in the sum": {shopping(detector.Leak), "failure"},
		"leak of one process":  {shopping(detector.Leak, "com.shop"), ""},
		"no leak":              {shopping(detector.Settled), ""},
		"inconclusive":         {shopping(detector.Inconclusive), "skipped"},
	} {
		var out bytes.Buffer
		if err := WriteJUnit(&out, c.run); err != nil {
			t.Fatal(err)
		}
		cases := readSuites(t, out.Bytes())
		got := cases[2]
		word := ""
		switch {
		case got.Failure != nil:
			word = "failure"
		case got.Skipped != nil:
			word = "skipped"
		}
		if len(cases) != 3 || got.Name != "all processes of com.shop together do not leak" || word != c.want {
			t.Errorf("%s: %d cases, %s %q", name, len(cases), got.Name, word)
		}
		if word == "failure" &&
			(got.Failure.Type != "leak" || !strings.Contains(got.Failure.Text, "held by com.shop 52 %")) {
			t.Errorf("%s: %+v", name, got.Failure)
		}
	}
}

// The table of a replay must contain a row for each app, and the report must
// contain the evidence for an app if only its sum leaks.
func TestReplayOfApps(t *testing.T) {
	run := shopping(detector.Leak)
	r := record.Replay{Policy: "robust", Apps: []record.ReplayApp{{AppVerdict: run.Apps[0]}}}
	for _, p := range run.Processes {
		r.Processes = append(r.Processes, record.ReplayProcess{Process: p})
	}
	var out strings.Builder
	if err := WriteReplay(&out, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\ncom.shop (all processes)         leak", "\ncom.shop (all processes): LEAK (java leak)",
		"  held by  com.shop 52 %",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
