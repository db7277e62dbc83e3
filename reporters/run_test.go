package reporters

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// The report must have a line for the parts of the growth and a line for each
// jump. A process without growth or jumps must have no such line.
func TestTextOfGrowthAndJumps(t *testing.T) {
	text := func(p record.Process) string {
		t.Helper()
		var out strings.Builder
		if err := WriteRun(&out, record.Run{Processes: []record.Process{p}}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	got := text(record.Process{
		Process: "com.x", Gate: "leak", Kind: detector.Java,
		Shares: []record.Share{
			{Dimension: "Java Heap", Growth: 120, Share: 0.846, Rate: 300.04},
			{Dimension: "Native Heap", Growth: 21.85, Share: 0.154, Rate: 54.6},
		},
		Jumps: []record.Jump{{T: 3720, Size: 250.4, Sustained: true}, {T: 7325, Size: 61}},
	})
	for _, want := range []string{
		"\n  growth   Java Heap 85 % (+300.0 MB/h), Native Heap 15 % (+54.6 MB/h)\n",
		"\n  jump     +250 MB at 1h2m, sustained\n  jump     +61 MB at 2h2m\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if bare := text(record.Process{Process: "com.x"}); strings.Contains(bare, "growth") ||
		strings.Contains(bare, "jump") {
		t.Errorf("empty lines are printed:\n%s", bare)
	}
	if hostile := text(record.Process{Shares: []record.Share{{Dimension: "\x1b[2J\n"}}}); strings.Contains(hostile,
		"\x1b") || strings.Count(hostile, "\n") != 3 {
		t.Errorf("%q", hostile)
	}
}

// The report must have a line for each warning about a limit, and for each
// limit that could not be read.
func TestTextOfLimits(t *testing.T) {
	var out strings.Builder
	p := record.Process{
		Process: "com.x", Limits: []record.LimitWarning{{T: 125, Text: "threads: 870 of 1000"}},
		HeadroomReasons: []string{
			"open files: the shell is not allowed to list them",
			"address space: a 64-bit process does not run out of it",
		},
	}
	if err := WriteRun(&out, record.Run{Processes: []record.Process{p}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n  limit    at 2m5s: threads: 870 of 1000\n",
		"\n  unknown  distance to a limit: open files: the shell is not allowed to list them\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "64-bit") {
		t.Errorf("an exempt resource is reported:\n%s", out.String())
	}
}

// LEAKING must be final under the article policy, and also if the end of the
// run has proved the leak. Everything else, including earlier states, must be
// provisional under the robust policy.
func TestHeadlines(t *testing.T) {
	of := func(gate detector.Gate, state, worst detector.State) record.Process {
		return record.Process{
			Gate: gate, State: state, Worst: worst,
			Kind: map[bool]detector.LeakKind{true: detector.Java}[gate == detector.Leak], Growth: 81.24,
		}
	}
	for _, c := range []struct {
		p              record.Process
		policy, expect string
	}{
		{of("leak", detector.Leaking, detector.Leaking), "robust", "LEAK (java leak)"},
		{of("leak", detector.Leaking, detector.Leaking), "article", "LEAK (java leak)"},
		{of("leak", detector.Normal, detector.Leaking), "article", "LEAK (java leak)"},
		{
			of("leak", detector.Normal, detector.Normal), "robust",
			"LEAK (java leak), proved at the end, without an alarm during the run",
		},
		{
			of("leak", detector.Normal, detector.Confirming), "robust",
			"LEAK (java leak), proved at the end, without an alarm during the run, " +
				"live state reached CONFIRMING, NORMAL at the end",
		},
		{of("pass", detector.Normal, detector.Normal), "robust", "PASS"},
		{
			of("pass", detector.Normal, detector.Leaking), "article",
			"PASS, live state reached LEAKING, NORMAL at the end",
		},
		{
			of("settled", detector.Normal, detector.Leaking), "robust",
			"SETTLED, grew 81.2 MB, live state reached LEAKING (provisional), NORMAL at the end",
		},
		{
			of("inconclusive", detector.Leaking, detector.Leaking), "robust",
			"INCONCLUSIVE, live state reached LEAKING (provisional)",
		},
	} {
		if got := Headline(c.p, c.policy); got != c.expect {
			t.Errorf("%s: %q, want %q", c.policy, got, c.expect)
		}
	}
	for want, p := range map[string]record.Process{
		"PASS, restarted once": {Restarts: 1},
		"PASS, restarted 30 times (22 OutOfMemoryErrors, 8 crashes)": {
			Restarts: 30, DeathsByReason: map[string]int{"crash": 8, "out_of_memory": 22, "kill": 0},
		},
		"PASS, restarted at least 2 times (3 kills)": {
			Restarts: 2, Samples: 5, DeathsByReason: map[string]int{"kill": 3},
		},
		"PASS, restarted 2 times (2 kills)": {
			Restarts: 2, Samples: 6, DeathsByReason: map[string]int{"kill": 2},
		},
		"PASS, restarted 2 times, ended 3 times (3 kills)": {
			Restarts: 2, DeathsByReason: map[string]int{"kill": 3},
		},
		"PASS, ended (1 kill by the memory limiter)": {
			DeathsByReason: map[string]int{"memory_limiter": 1},
		},
		"PASS, restarted 2 times (1 ANR, 1 for an unknown reason)": {
			Restarts: 2, DeathsByReason: map[string]int{"anr": 1, "unknown": 1},
		},
		"PASS, ended (3 x?[2J y)": {DeathsByReason: map[string]int{"x\x1b[2J_y": 3}},
	} {
		p.Gate = "pass"
		if got := Headline(p, "robust"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for policy, want := range map[string]string{
		"robust": "CONFIRMING -> LEAKING (provisional): rises\n", "article": "CONFIRMING -> LEAKING: rises\n",
	} {
		var out strings.Builder
		err := WriteRun(&out,
			record.Run{
				Policy: policy,
				Processes: []record.Process{
					{
						Transitions: []record.Transition{
							{From: detector.Confirming, To: detector.Leaking, Reason: "rises"},
						},
					},
				},
			})
		if err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, no %q in\n%s", policy, err, want, out.String())
		}
	}
}

// The report must have lines for the results of dumps at marks, for missing
// dumps and for leaks in windows. It must also print the reason why the exit
// code is not 0. Strings from a device or a program must not break these lines.
func TestTextOfMarksAndWindows(t *testing.T) {
	leak := record.LeakSeries{
		DumpLeak: record.DumpLeak{Name: "DetailActivity, held by Tracker.sScreens\x1b[2J", Bytes: 50 << 20},
		Proved:   true, Counts: []int64{15, 17, 19},
	}
	library := record.LeakSeries{
		DumpLeak: record.DumpLeak{Name: "InputMethodManager", Library: true}, Counts: []int64{1, 1, 1},
	}
	series := record.MarkSeries{
		PID: 7, Gate: detector.Leak, Dumps: []record.MarkDump{{Settled: true}, {Settled: true}, {}},
		Leaks: []record.LeakSeries{leak, library},
	}
	window := record.JudgedWindow{
		Name: "checkout\n",
		Processes: []record.WindowProcess{
			{Process: "com.x", Gate: detector.Leak, Kind: detector.Java, Reason: "it grew"},
			{Process: "com.y", Gate: detector.Pass},
		},
	}
	missing := []record.MissingEvidence{
		{Process: "com.x", T: 61, Text: "no heap dump at mark \"a\""}, {T: 62, Text: "no process was running"},
	}
	for name, c := range map[string]struct {
		run  record.Run
		want []string
	}{
		"marks": {
			record.Run{
				Processes: []record.Process{
					{Process: "com.x", Gate: detector.Leak, Kind: detector.Java, AtMarks: []record.MarkSeries{series}},
				},
			}, []string{
				"com.x: LEAK (java leak), proved by heap dumps at marks\n",
				"\n  marks    3 heap dumps, 2 of them settled: leak\n           LEAK DetailActivity, held by " +
					"Tracker.sScreens", ": 15, 17, 19 objects, 50.0 MB retained now\n",
				"           library leak InputMethodManager: 1, 1, 1 objects",
			}},
		"deaths": {
			record.Run{
				Processes: []record.Process{
					{
						Process: "com.x", DeathsByReason: map[string]int{"low_memory": 39, "crash": 1},
						Objects: []record.ObjectCount{
							{Name: "Activities", First: 1, Max: 30, Last: 25},
							{Name: "Assets", First: 3, Max: 3, Last: 3}, {Name: "WebViews"},
						},
						Deaths: []record.Death{
							{
								T: 61, PID: 7, Reason: "low_memory", Text: "LOW_MEMORY\x1b[2J",
								Lines: []string{"lmkd: kill"},
							},
						}}}}, []string{
				": INCONCLUSIVE, ended (39 low-memory kills, 1 crash)\n",
				"\n  deaths   39 low-memory kills, 1 crash; the last at 1m1s, pid 7: LOW_MEMORY",
				"\n           lmkd: kill\n", "\n  objects  Activities 1 -> 25\n"}},
		"findings": {
			record.Run{
				Processes: []record.Process{
					{
						Process: "com.x",
						Findings: []record.Incident{
							{Kind: "anr", Count: 1, First: 61, Last: 61, Text: "reported by monkey"},
							{Kind: "out_of_memory", Count: 22, First: 60, Last: 7200, Text: "CRASH\x1b[2J"},
						},
					},
				},
			}, []string{
				"\n  incident 1 ANR at 1m1s: reported by monkey\n",
				"\n  incident 22 OutOfMemoryErrors, first at 1m, last at 2h0m: CRASH?[2J\n"}},
		"faults": {
			record.Run{
				Processes: []record.Process{
					{
						Process: "com.x", FaultCount: 7,
						Faults: []record.Death{{}, {}, {T: 61, PID: 7, Reason: "anr", Text: "reported by monkey"}},
					},
				},
			}, []string{
				"\n  fault    anr at 1m1s, pid 7: reported by monkey\n           and 4 before\n"}},
		"windows": {
			record.Run{Windows: []record.JudgedWindow{window}},
			[]string{
				"1 window: 1 leak, 1 pass, 0 settled, 0 inconclusive\n", "  window   \"checkout",
				", com.x: LEAK (java leak): it grew\n",
			},
		},
		"missing": {
			record.Run{MissingEvidence: missing, Processes: []record.Process{{}}, ExitCode: record.ExitInconclusive},
			[]string{
				"missing at 1m1s: com.x: no heap dump at mark \"a\"\nmissing at 1m2s: no process was running\n",
				"Exit code 5: evidence is missing.\n"}},
		"unjudged": {
			record.Run{Processes: []record.Process{{}}, ExitCode: record.ExitInconclusive},
			[]string{"Exit code 5: not judged. Watch for longer"},
		},
		"unjudged, restarted": {
			record.Run{
				Processes: []record.Process{{Restarts: 11, Samples: 49, Duration: 88, Source: "smaps_rollup"}},
				ExitCode:  record.ExitInconclusive,
			}, []string{
				"\n  series   49 samples of 12 successive processes, the last running for 1m28s, by smaps_rollup; ",
				"Exit code 5: not judged. Watch for longer without restarts, or dump heaps"}},
		"unjudged, one of them restarted": {
			record.Run{Processes: []record.Process{{Restarts: 1}, {}}, ExitCode: record.ExitInconclusive},
			[]string{"Exit code 5: not judged. Watch for longer, or"},
		},
		"nothing": {
			record.Run{ExitCode: record.ExitNoDevice},
			[]string{"No matching process found; no verdict.\n", "Exit code 3: no process of the app was seen.\n"},
		},
	} {
		var out strings.Builder
		if err := WriteRun(&out, c.run); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, out.String())
			}
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s: %q", name, out.String())
		}
	}
}
