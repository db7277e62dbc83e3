package reporters

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares output with a file of testdata.
func golden(t *testing.T, file, got string) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%v; got\n%s\nwant\n%s", err, got, want)
	}
}

func diagnosisOf(trigger, outcome string) record.Diagnosis {
	d := record.Diagnosis{
		Device: "S1", Process: "com.shop", PID: 4321, T: 3725, Trigger: trigger, Outcome: outcome, Kind: detector.Java,
		Recipe: "java", Folder: "artifacts/com.shop/20260102T030405Z-java_leak",
		Steps: []record.Collected{
			{Step: "meminfo", Outcome: "complete", File: "meminfo.txt"}, {Step: "heap", Outcome: "failed"},
		},
	}
	switch trigger {
	case "mark":
		d.Mark, d.Kind, d.Recipe = "loop 3", detector.None, "dump"
	case "marks":
		d.Kind, d.Recipe, d.Steps = detector.None, "growth", nil
	case "suspicious", "first", "last":
		d.Kind, d.Recipe = detector.None, "snapshot"
	case "end":
		d.Kind, d.Recipe = detector.None, "dump"
	case "demand":
		d.T = 0
	}
	if outcome == record.DiagnosisNothing {
		d.Steps[0].File = ""
	}
	return d
}

// lines returns the output of a writer, line by line.
func lines[T any](write func(io.Writer, T) error, of T) []string {
	var b strings.Builder
	_ = write(&b, of)
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// The golden file contains each trigger with each outcome; -update rewrites the
// file.
func TestWriteDiagnosis(t *testing.T) {
	var b strings.Builder
	for _, trigger := range []string{"leak", "suspicious", "first", "mark", "marks", "end", "last", "final", "demand"} {
		for _, outcome := range []string{
			record.DiagnosisComplete, record.DiagnosisDegraded, record.DiagnosisInterrupted,
		} {
			d := diagnosisOf(trigger, outcome)
			d.Summary, d.Warnings = []string{"heap dump: 2 x CartActivity", "╰→ com.shop.CartActivity"},
				[]string{"logcat is truncated"}
			fmt.Fprintf(&b, "# %s, %s\n%s\n", trigger, outcome, strings.Join(lines(WriteDiagnosis, d), "\n"))
		}
	}
	d := diagnosisOf("leak", record.DiagnosisNothing)
	d.User, d.Kind = 10, detector.Unknown
	fmt.Fprintf(&b, "# nothing\n%s\n", strings.Join(lines(WriteDiagnosis, d), "\n"))
	d = diagnosisOf("mark", record.DiagnosisComplete)
	d.Keep, d.Steps = "none", []record.Collected{{Step: "heap", Outcome: "complete"}}
	fmt.Fprintf(&b, "# not kept\n%s\n", strings.Join(lines(WriteDiagnosis, d), "\n"))
	d = diagnosisOf("first", record.DiagnosisComplete)
	d.Mark = "loop 1"
	fmt.Fprintf(&b, "# first mark\n%s\n", strings.Join(lines(WriteDiagnosis, d), "\n"))
	golden(t, "diagnosis.golden", b.String())
}

// Whatever a record contains, each printed line must remain a single line.
func TestWriteDiagnosisHostile(t *testing.T) {
	bad := "\x1b[2J\n\u202e\x00" + strings.Repeat("x", 400)
	d := record.Diagnosis{
		Device: bad, Process: bad, Trigger: "mark", Mark: bad, Kind: 99, Recipe: bad, Folder: bad, Outcome: bad,
		Summary: []string{bad}, Warnings: []string{bad},
	}
	got := lines(WriteDiagnosis, d)
	if len(got) != 3 {
		t.Errorf("%d lines", len(got))
	}
	for _, line := range got {
		if line != text.Printable(line) {
			t.Errorf("%q", line)
		}
	}
}

// A second diagnosis of the same leak must not repeat the trace. Another leak
// must have its own trace.
func TestTraceOnce(t *testing.T) {
	diagnosis := func(at float64, key string) record.Diagnosis {
		return record.Diagnosis{
			Process: "com.shop", T: at, Trigger: "leak", Recipe: "java",
			Summary: []string{"2.0 MB retained, fingerprint 0123, key " + key, "┬───", "╰→ trace of " + key},
		}
	}
	var b strings.Builder
	err := WriteRun(&b, record.Run{
		Processes: []record.Process{{Process: "com.shop"}},
		Diagnoses: []record.Diagnosis{diagnosis(60, "aaaa"), diagnosis(120, "bbbb"), diagnosis(180, "aaaa")},
	})
	got := b.String()
	if err != nil || strings.Count(got, "trace of aaaa") != 1 || strings.Count(got, "trace of bbbb") != 1 ||
		strings.Count(got, "key aaaa\n  the trace is printed above") != 1 {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestSpacingWords(t *testing.T) {
	for _, c := range []struct {
		list []record.Transition
		want string
	}{
		{nil, ""},
		{[]record.Transition{{From: detector.Suspicious}}, ""},
		{
			[]record.Transition{{To: detector.Suspicious}, {From: detector.Suspicious}},
			" (the interval depends on the state)",
		},
	} {
		if got := spacingWords(c.list); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.list, got, c.want)
		}
	}
}

// leakOf returns a leak with a trace of three objects.
func leakOf() analysis.Leak {
	return analysis.Leak{
		Fingerprint: "0123456789abcdef", Key: "fedcba9876543210", Class: "com.shop.CartActivity", Instances: 2,
		GCRootText: "System class", RetainedBytes: 5 << 20,
		Trace: []analysis.TraceElement{
			{
				Class: "com.shop.Registry", Type: "class", Reference: "all", Kind: "static_field",
				Owner: "com.shop.Registry", Leaking: "NO", Reason: "a class is never leaking",
			},
			{
				Class: "java.util.ArrayList", Type: "instance", Reference: "[0]", Kind: "array_entry",
				Owner: "java.util.ArrayList", Leaking: "UNKNOWN", Suspect: true, RetainedBytes: new(int64(6 << 20)),
			},
			{
				Class: "com.shop.CartActivity", Type: "instance", Leaking: "YES", Reason: "it is destroyed",
				Labels: []string{"mDestroyed = true"}, RetainedBytes: new(int64(5 << 20)),
			},
		},
	}
}

// accumulationOf returns a place where memory accumulates.
func accumulationOf() analysis.Leak {
	l := leakOf()
	l.Class, l.Instances = "java.util.ArrayList", 1
	l.Trace = l.Trace[:2]
	l.Trace[1] = analysis.TraceElement{
		Class: "java.util.ArrayList", Type: "instance", Leaking: "UNKNOWN", RetainedBytes: new(int64(6 << 20)),
	}
	l.Trace[0].Suspect = true
	l.Accumulates = &analysis.Accumulation{Class: "com.shop.Page", Count: 1400, Bytes: 6 << 20, Share: 0.25}
	return l
}

// A leak and a place where memory accumulates must be printed both in several
// lines and in a few words.
func TestWriteLeak(t *testing.T) {
	own, pile := leakOf(), accumulationOf()
	library := leakOf()
	library.Library, library.Pattern, library.Description, library.Source = true, "instance field x",
		"A known leak.\nOf the platform.", "https://example.org"
	rooted := accumulationOf()
	rooted.Accumulates.Root, rooted.Accumulates.Holds, rooted.Accumulates.Held = "jni global", "com.shop.Picture", 1390
	rooted.Accumulates.Class, rooted.Accumulates.Cache = "java.lang.Object", "android.util.LruCache"
	var b strings.Builder
	for _, c := range []struct {
		name string
		leak analysis.Leak
	}{{"leak", own}, {"library", library}, {"accumulation", pile}, {"rooted", rooted}, {"empty", analysis.Leak{}}} {
		fmt.Fprintf(&b, "# %s: %s\n%s\n", c.name, LeakName(&c.leak), strings.Join(lines(WriteLeak, &c.leak), "\n"))
	}
	golden(t, "leaks.golden", b.String())
}

// The bytes of a leak include the leaks that it explains. The report must not
// list those leaks, and must not modify the leak.
func TestWriteLeakOmitsExplained(t *testing.T) {
	l := leakOf()
	l.Consequences = []analysis.Related{{Class: "com.shop.Other"}}
	if text := strings.Join(lines(WriteLeak, &l), "\n"); strings.Contains(text, "Also") || len(l.Consequences) != 1 {
		t.Error(text)
	}
	// Only an invalid report contains a trace that continues after its last
	// object.
	l.Trace[2].Suspect, l.Trace[2].Owner, l.Trace[1].Suspect = true, "com.shop.CartActivity", false
	if name := LeakName(&l); !strings.Contains(name, "held by CartActivity") {
		t.Error(name)
	}
}

func FuzzWriteLeak(f *testing.F) {
	f.Add("com.shop.CartActivity", "all", "why", true, int64(7))
	f.Add("\x1b[2J\n.", "\u202e", "\xff\n\r", false, int64(-1))
	f.Fuzz(func(t *testing.T, class, reference, reason string, pile bool, n int64) {
		l := leakOf()
		if pile {
			l = accumulationOf()
			a := l.Accumulates
			a.Class, a.Holds, a.Cache, a.Root = class, reference, class, reason
			a.Held, a.Count = n, n
		}
		l.Class, l.Key, l.Fingerprint, l.GCRootText, l.RetainedBytes = class, class, reference, reason, n
		for i := range l.Trace {
			e := &l.Trace[i]
			e.Class, e.Owner, e.Reference, e.Reason, e.Leaking, e.Labels, e.Suspect = class, class, reference, reason,
				reason, []string{reason}, n%2 == int64(i%2)
		}
		got := append(lines(WriteLeak, &l), LeakName(&l))
		for _, line := range got {
			if line != text.Printable(line) {
				t.Errorf("%q", line)
			}
		}
		if len(got) < 4+len(l.Trace) {
			t.Errorf("%d lines", len(got))
		}
	})
}

// The report of a run must end with the leak trace of its last diagnosis.
func TestTextEndsWithTheTrace(t *testing.T) {
	l := leakOf()
	d := diagnosisOf("leak", record.DiagnosisComplete)
	d.Summary, d.Warnings = append([]string{"heap dump: " + LeakName(&l)}, lines(WriteLeak, &l)[1:]...),
		[]string{"a warning"}
	snapshot := diagnosisOf("suspicious", record.DiagnosisComplete)
	snapshot.Summary = []string{"meminfo: TOTAL PSS 5 MB"}
	var b strings.Builder
	run := record.Run{
		Devices: []record.Device{{Device: "S1"}}, Processes: []record.Process{{Process: "com.shop"}},
		Warnings: []string{"of the run"}, Overhead: &record.Overhead{}, Diagnoses: []record.Diagnosis{snapshot, d},
	}
	if err := WriteRun(&b, run); err != nil {
		t.Fatal(err)
	}
	trace := lines(WriteLeak, &l)
	if !strings.HasSuffix(b.String(), "  "+strings.Join(trace[1:], "\n  ")+"\n") ||
		strings.Contains(b.String(), "TOTAL PSS") || !strings.Contains(b.String(), "Retaining 5.0 MB\n") {
		t.Error(b.String())
	}
	run.Devices = append(run.Devices, record.Device{Device: "S2"})
	b.Reset()
	if err := WriteRun(&b, run); err != nil ||
		!strings.Contains(b.String(), "com.shop on S1, leak at 1h2m: java leak, ") {
		t.Error(err, b.String())
	}
}
