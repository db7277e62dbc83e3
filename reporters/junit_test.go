package reporters

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// readSuites reads JUnit XML as a CI server does, and checks what must be true
// of every file: the counts match the cases, no case has two results, and every
// character is valid in XML 1.0.
func readSuites(t *testing.T, text []byte) []junitCase {
	t.Helper()
	for i, r := range string(text) {
		if r == utf8.RuneError && text[i] != 0xef || r < ' ' && r != '\n' && r != '\t' || r == 0xfffe || r == 0xffff {
			t.Fatalf("character %U at %d", r, i)
		}
	}
	var all junitSuites
	d := xml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&all); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if _, err := d.Token(); err != io.EOF {
		if tok, err := d.Token(); err != io.EOF {
			t.Fatalf("content after the end of the document: %v %v", tok, err)
		}
	}
	if len(all.Suites) != 1 {
		t.Fatalf("%d suites", len(all.Suites))
	}
	s := all.Suites[0]
	failures, errs, skipped := 0, 0, 0
	for _, c := range s.Cases {
		results := 0
		for _, r := range []struct {
			is *junitResult
			n  *int
		}{{c.Failure, &failures}, {c.Error, &errs}, {c.Skipped, &skipped}} {
			if r.is != nil {
				results++
				*r.n++
			}
		}
		if results > 1 || c.Name == "" || c.Class == "" {
			t.Errorf("case %+v", c)
		}
	}
	if s.Tests != len(s.Cases) || s.Failures != failures || s.Errors != errs || s.Skipped != skipped ||
		all.Tests != s.Tests || all.Failures != s.Failures {
		t.Errorf("counts %d %d %d %d of %d cases", s.Tests, s.Failures, s.Errors, s.Skipped, len(s.Cases))
	}
	return s.Cases
}

// checkedRun returns a run that contains one result of every kind.
func checkedRun() record.Run {
	leak := record.CheckedLeak{
		DumpLeak: record.DumpLeak{
			Key: "k", Name: "DetailActivity, held by ScreenTracker.sScreens", Count: 3, Bytes: 6 << 20,
		}, New: 2, Trace: []string{"┬───", "│ GC Root: System class", "╰→ DetailActivity instance"},
	}
	known := leak
	known.Known = "SHOP-12 (anna, until 2027-03-01)"
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return record.Run{
		Started: at, Ended: at.Add(90 * time.Second), Policy: "robust",
		Patterns: []string{"com.shop", "com.shop:*", "com.gone", "com.quiet"},
		Workload: &record.Workload{Kind: "instrument", Error: "run tests on S1: 1 of 7 tests failed: a.B#fails"},
		Devices:  []record.Device{{Device: "S1", Model: "Pixel 8", API: 34}},
		Processes: []record.Process{
			{
				Device: "S1", Process: "com.shop", Gate: detector.Leak, Kind: detector.Java, Worst: detector.Leaking,
				State: detector.Leaking, Reason: "grew 90 MB", Duration: 3600,
			},
			{
				Device: "S1", Process: "com.shop:push", Gate: detector.Inconclusive,
				Reason: "only 12 min of uninterrupted data", Duration: 720,
			},
			{Device: "S1", Process: "com.quiet", Gate: detector.Pass, Duration: 3600},
		},
		Diagnoses: []record.Diagnosis{
			{Device: "S1", Process: "com.shop", Summary: []string{"leak: 3 x DetailActivity"}},
		},
		Checks: []record.Check{
			{
				Name: "a.B#passes", Type: record.CheckTest, Device: "S1", T: 1, Ended: 3.5,
				Outcome: record.OutcomePassed, Verdict: record.VerdictPass,
			},
			{
				Name: "a.B#leaks[1: <x>]", Type: record.CheckTest, Device: "S1", T: 4, Ended: 6,
				Outcome: record.OutcomePassed, Verdict: record.VerdictLeak, Text: "com.shop: leaks 2 x DetailActivity",
				Processes: []record.CheckedProcess{
					{
						Process: "com.shop", Leaks: []record.CheckedLeak{known, leak},
						Folder: "artifacts/com.shop/1-dump",
					},
				}},
			{
				Name: "a.B#fails", Type: record.CheckTest, Device: "S1", Outcome: record.OutcomeFailed,
				Stack:   "java.lang.AssertionError: \"a\" & 'b' \x00\x1b[31m\n\tat a.B.fails(B.kt:3)\n",
				Verdict: record.VerdictLeak, Text: "com.shop: leaks 2 x DetailActivity",
				Processes: []record.CheckedProcess{{Process: "com.shop", Leaks: []record.CheckedLeak{leak}}}},
			{
				Name: "a.B#ignored", Type: record.CheckTest, Device: "S1", Outcome: record.OutcomeIgnored,
				Verdict: record.VerdictNotChecked, Text: "not checked: the test is ignored",
			},
			{
				Name: "a.B#assumes", Type: record.CheckTest, Device: "S1", Outcome: record.OutcomeAssumptionFailed,
				Stack: "got: <false>\n", Verdict: record.VerdictInconclusive, Text: "com.shop: more objects",
			},
			{
				Name: "a.B#crashes", Type: record.CheckTest, Device: "S1", Outcome: record.OutcomeCrashed,
				Verdict: record.VerdictNotChecked, Text: "not checked: the process did not outlive the test",
			},
			{
				Name: "a.B", Type: record.CheckTest, Device: "S1", Outcome: record.OutcomeUnfinished,
				Verdict: record.VerdictPass,
			},
			{
				Name: "flows/cart.yaml", Type: record.CheckTest, Device: "S1", Verdict: record.VerdictKnown,
				Text: "com.shop: only accepted leaks",
			},
			{
				Name: "cart opens an item", Type: record.CheckSpec, Device: "S1", Outcome: record.OutcomePassed,
				Location: "cart_test.go:12", Verdict: record.VerdictLeak, Text: "com.shop: leaks 1 x CartActivity",
			},
		},
	}
}

func TestJUnitGolden(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJUnit(&b, checkedRun()); err != nil {
		t.Fatal(err)
	}
	readSuites(t, b.Bytes())
	golden(t, "junit.golden", b.String())
}

// Each case must have the result that the record contains.
func TestJUnitCases(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJUnit(&b, checkedRun()); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range readSuites(t, b.Bytes()) {
		what := "passes"
		switch {
		case c.Failure != nil:
			what = "failure " + c.Failure.Type + ": " + c.Failure.Message
		case c.Error != nil:
			what = "error " + c.Error.Type + ": " + c.Error.Message
		case c.Skipped != nil:
			what = "skipped: " + c.Skipped.Message
		}
		got[c.Class+"/"+c.Name] = what
	}
	for name, want := range map[string]string{
		"leakgate.processes/process com.shop does not leak": "failure leak: com.shop: LEAK (java leak)",
		"leakgate.processes/process com.shop:* does not leak": "skipped: inconclusive: com.shop:push: only 12 min of " +
			"uninterrupted data",
		"leakgate.processes/process com.gone does not leak":  "error no_process: no process matched com.gone",
		"leakgate.processes/process com.quiet does not leak": "passes",
		"leakgate.run/workload instrument succeeds": "error workload: run tests on S1: 1 of 7 tests failed: " +
			"a.B#fails",
		"a.B/passes":        "passes",
		"a.B/leaks[1: <x>]": "failure leak: com.shop: leaks 2 x DetailActivity",
		"a.B/fails": "failure failed: java.lang.AssertionError: \"a\" & 'b' ??[31m; it also " +
			"leaks: com.shop: leaks 2 x DetailActivity",
		"a.B/ignored":                       "skipped: ignored",
		"a.B/assumes":                       "skipped: assumption failed: got: <false>",
		"a.B/crashes":                       "error crashed: the process crashed in the test",
		"a.B/class":                         "failure unfinished: the test did not finish",
		"leakgate.tests/flows/cart.yaml":    "passes",
		"leakgate.specs/cart opens an item": "failure leak: com.shop: leaks 1 x CartActivity",
	} {
		if got[name] != want {
			t.Errorf("%s: %s\nwant %s", name, got[name], want)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("more: %v", got)
	}
}

// If a run uses several kinds of devices, the names of the cases must contain
// the model and the API level. If all devices are of the same kind, the names
// must not contain either.
func TestJUnitDevices(t *testing.T) {
	run := record.Run{
		Devices: []record.Device{{Device: "S1", Model: "Pixel 8", API: 34}, {Device: "S2", API: 26}},
		Checks: []record.Check{
			{Name: "a.B#c", Type: record.CheckTest, Device: "S1"},
			{Name: "a.B#c", Type: record.CheckTest, Device: "S2"},
		},
	}
	names := func() (out []string) {
		var b bytes.Buffer
		if err := WriteJUnit(&b, run); err != nil {
			t.Fatal(err)
		}
		for _, c := range readSuites(t, b.Bytes()) {
			out = append(out, c.Name)
		}
		return out
	}
	if got := names(); !slices.Equal(got, []string{"c[Pixel 8, API 34]", "c[device, API 26]"}) {
		t.Errorf("%q", got)
	}
	run.Devices[1] = record.Device{Device: "S2", Model: "Pixel 8", API: 34}
	if got := names(); !slices.Equal(got, []string{"c", "c"}) {
		t.Errorf("%q", got)
	}
}

// hostile returns strings that are hard to represent in XML and on terminals.
func hostile(r *rand.Rand) string {
	parts := []string{
		"\x00", "\x1b[2J", "<![CDATA[", "]]>", "&#0;", "\ufffe", "\xff\xfe", "\u202e", "a", "\n", "\t", "\"'<>&", "日本",
		strings.Repeat("x", 3000), "\r\n", "#", "\U0001f600", "\ud7ff",
	}
	var b strings.Builder
	for range r.IntN(8) {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	return b.String()
}

// Whatever a record contains, the file must be readable, contain each case, and
// have a bounded size.
func TestJUnitHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for range 300 {
		run := record.Run{Policy: hostile(r), Workload: &record.Workload{Kind: hostile(r), Error: hostile(r)}}
		for range r.IntN(4) {
			run.Patterns = append(run.Patterns, hostile(r))
			run.Processes = append(run.Processes,
				record.Process{
					Process: hostile(r), Reason: hostile(r),
					Duration: []float64{math.NaN(), -1, math.Inf(1), 5}[r.IntN(4)],
					Gate:     []detector.Gate{detector.Leak, detector.Pass, detector.Inconclusive}[r.IntN(3)],
				})
		}
		for range r.IntN(5) {
			run.Checks = append(run.Checks, record.Check{
				Name: "n" + hostile(r), Type: []string{record.CheckTest, record.CheckSpec, hostile(r)}[r.IntN(3)],
				Outcome: []string{
					record.OutcomeFailed, record.OutcomeCrashed, record.OutcomeIgnored, hostile(r),
				}[r.IntN(4)],
				Stack: hostile(r), Text: hostile(r),
				Verdict: []record.CheckVerdict{
					record.VerdictLeak, record.VerdictInconclusive, record.CheckVerdict(hostile(r)),
				}[r.IntN(3)],
				Processes: []record.CheckedProcess{
					{
						Process: hostile(r), Folder: hostile(r),
						Leaks: []record.CheckedLeak{
							{DumpLeak: record.DumpLeak{Name: hostile(r)}, Trace: []string{hostile(r), hostile(r)}},
						},
					},
				},
			})
		}
		var b bytes.Buffer
		if err := WriteJUnit(&b, run); err != nil {
			t.Fatal(err)
		}
		if cases := readSuites(t, b.Bytes()); len(cases) != len(run.Patterns)+1+len(run.Checks) {
			t.Fatalf("%d cases", len(cases))
		}
	}
	big := record.Run{}
	stack := strings.Repeat("\tat a.b.C.d(C.kt:1)\n", 10_000)
	for n := range 5000 {
		big.Checks = append(big.Checks,
			record.Check{
				Name: fmt.Sprintf("a.B#c%d", n), Type: record.CheckTest, Outcome: record.OutcomeFailed, Stack: stack,
			})
	}
	var b bytes.Buffer
	if err := WriteJUnit(&b, big); err != nil || b.Len() > 2*maxJUnitTexts {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
	if cases := readSuites(t, b.Bytes()); len(cases) != 5000 ||
		!strings.HasSuffix(cases[0].Failure.Text, "[more is in run.json]\n") {
		t.Errorf("%d cases", len(cases))
	}
}

func TestJUnitFile(t *testing.T) {
	dir := t.TempDir()
	if err := WriteJUnitFile(dir, checkedRun()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, JUnitName))
	if err != nil {
		t.Fatal(err)
	}
	readSuites(t, text)
	if err := WriteJUnitFile(filepath.Join(dir, "none"), record.Run{}); err == nil {
		t.Error("no error for a missing directory")
	}
}

func FuzzJUnit(f *testing.F) {
	f.Add("a.B#c", "stack\n\tat x", "text", "failed", "leak")
	f.Add("\x00", "]]>", "\ufffe", "crashed", "")
	f.Fuzz(func(t *testing.T, name, stack, text, outcome, verdict string) {
		run := record.Run{
			Patterns: []string{name}, Processes: []record.Process{{Process: name, Reason: text, Gate: detector.Leak}},
			Checks: []record.Check{
				{
					Name: name, Type: record.CheckTest, Stack: stack, Text: text, Outcome: outcome,
					Verdict: record.CheckVerdict(verdict),
				},
			}}
		var b bytes.Buffer
		if err := WriteJUnit(&b, run); err != nil {
			t.Fatal(err)
		}
		var all junitSuites
		if err := xml.Unmarshal(b.Bytes(), &all); err != nil {
			t.Fatal(err)
		}
		cases := all.Suites[0].Cases
		if len(cases) != 2 || cases[0].Failure == nil || all.Tests != 2 {
			t.Fatalf("%+v", cases)
		}
		if leaks := verdict == "leak"; leaks && cases[1].Failure == nil && cases[1].Error == nil ||
			len(b.String()) > 4096+64*(len(name)+len(stack)+len(text)+len(verdict)) {
			t.Fatalf("%+v", cases[1])
		}
	})
}

// The case of a process must report how often the process ended and why.
func TestJUnitDeaths(t *testing.T) {
	p := record.Process{
		Process: "com.x", Gate: detector.Pass, Restarts: 30,
		DeathsByReason: map[string]int{"out_of_memory": 22, "crash": 8},
		Findings: []record.Incident{
			{Kind: "crash", Count: 8, First: 60, Last: 600, Text: "CRASH"},
			{Kind: "out_of_memory", Count: 22, First: 61, Last: 7200, Text: "x"},
		},
	}
	var b strings.Builder
	if err := WriteJUnit(&b, record.Run{Patterns: []string{"com.x"}, Processes: []record.Process{p}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"com.x: PASS, restarted 30 times (22 OutOfMemoryErrors, 8 crashes)\n",
		"\n  8 crashes, first at 1m, last at 10m: CRASH\n",
		"\n  22 OutOfMemoryErrors, first at 1m1s, last at 2h0m: x\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
