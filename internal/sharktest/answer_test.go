package sharktest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// record is a recorded answer. Its path has one line per reference.
type record struct {
	Mode, Finder, Status string
	LeakingObjectIDs     []string `json:"leakingObjectIds"`
	LeakingObjectCount   int
	Metadata             map[string]string
	Leaks                []struct {
		Type, Signature, ShortDescription, LeakingClass string
		TotalRetainedHeapByteSize                       int64
		TotalRetainedObjectCount                        int64
		Traces                                          []struct {
			GCRoot, LeakingObjectClass, Reason, Text string
			RetainedHeapByteSize                     int64
			RetainedObjectCount                      int64
			Path                                     []string
		}
	}
	UnreachableObjects []struct{ Class, Status, Reason, Labels string }
}

// lines returns the contents of a recorded answer, or of an answer in the same
// form.
func (r *record) lines() (out []string) {
	out = append(out, fmt.Sprint(r.LeakingObjectCount), fmt.Sprint(r.LeakingObjectIDs), fmt.Sprint(r.Metadata))
	for _, l := range r.Leaks {
		out = append(out,
			fmt.Sprint(l.Type, l.Signature, l.ShortDescription, l.LeakingClass, l.TotalRetainedHeapByteSize,
				l.TotalRetainedObjectCount))
		for _, t := range l.Traces {
			out = append(out,
				fmt.Sprint(t.GCRoot, t.LeakingObjectClass, t.Reason, t.RetainedHeapByteSize, t.RetainedObjectCount))
			out = append(out, t.Path...)
			out = append(out, t.Text)
		}
	}
	for _, u := range r.UnreachableObjects {
		out = append(out, fmt.Sprint(u.Class, u.Status, u.Reason, u.Labels))
	}
	return out
}

// most is the maximum number of IDs in a record.
const most = 200

func (a *Answer) lines() (out []string) {
	ids := []string{}
	for _, id := range slices.Sorted(slices.Values(a.Leaking)) {
		ids = append(ids, fmt.Sprintf("0x%x", id))
	}
	if len(ids) > most {
		ids = append(ids[:most], "...")
	}
	out = append(out, fmt.Sprint(len(a.Leaking)), fmt.Sprint(ids), fmt.Sprint(a.Metadata))
	for _, l := range a.Leaks {
		out = append(out,
			fmt.Sprint(l.Type, l.Signature, l.ShortDescription, l.Traces[0].Leaking.Class, l.RetainedBytes,
				l.RetainedObjects))
		for _, t := range l.Traces {
			out = append(out,
				fmt.Sprint(t.Root, t.Leaking.Class, t.Leaking.Reason, t.Leaking.RetainedBytes,
					t.Leaking.RetainedObjects))
			for _, p := range t.Path {
				out = append(out,
					fmt.Sprintf("%s %s %s.%s [%s]", p.Origin.Class, p.Kind, p.Owner, p.Name, p.Origin.Status))
			}
			out = append(out, t.Text)
		}
	}
	for _, u := range a.Unreachable {
		out = append(out, fmt.Sprint(u.Class, u.Status, u.Reason, "["+strings.Join(u.Labels, ", ")+"]"))
	}
	return out
}

// request returns the request of a recorded answer.
func request(t *testing.T, name string, r *record) Request {
	t.Helper()
	dump := ""
	for _, suffix := range []string{".filter.json", ".keyed.json", ".hashmap.json"} {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			dump = base
		}
	}
	out := Request{Dump: filepath.Join(recorded.Path(t, "hprof"), dump), Mode: Mode(r.Mode)}
	if _, err := os.Stat(out.Dump); err != nil {
		out.Dump = filepath.Join(t.TempDir(), dump)
		if err := os.WriteFile(out.Dump, recorded.Read(t, "hprof", dump+".gz"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	switch r.Finder {
	case "FilteringLeakingObjectFinder":
		out.Finder = Filter
	case "KeyedWeakReferenceFinder":
		out.Finder = Keyed
	default:
		out.Finder = Finder(r.Finder)
	}
	return out
}

// TestRecorded repeats the requests of the recorded answers and checks that the
// answers are the same.
func TestRecorded(t *testing.T) {
	folder := recorded.Path(t, "hprof", "shark-2.14")
	s := New(t)
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d recorded answers: %v", len(files), err)
	}
	var requests []Request
	records := make([]record, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &records[i]); err != nil || records[i].Status != "success" {
			t.Fatalf("%s: %s, %v", file, records[i].Status, err)
		}
		requests = append(requests, request(t, filepath.Base(file), &records[i]))
	}
	traces := 0
	for i, a := range s.Analyze(t, requests) {
		name := filepath.Base(files[i])
		if a.Failure != "" {
			t.Errorf("%s: %s", name, a.Failure)
			continue
		}
		got, want := a.lines(), records[i].lines()
		for j := range max(len(got), len(want)) {
			if j >= len(got) || j >= len(want) || got[j] != want[j] {
				t.Errorf("%s, line %d:\n%q, want\n%q", name, j, at(got, j), at(want, j))
				break
			}
		}
		traces += a.check(t)
	}
	t.Logf("%d answers, %d traces", len(files), traces)
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}

// check verifies properties that a comparison with the recorded answers does
// not cover, and returns the number of traces.
func (a *Answer) check(t *testing.T) (traces int) {
	t.Helper()
	for _, l := range a.Leaks {
		for _, trace := range l.Traces {
			traces++
			if !slices.Contains(a.Leaking, trace.Leaking.ID) {
				t.Errorf("%s: a trace ends at 0x%x, which is not leaking", a.Request.Dump, trace.Leaking.ID)
			}
			for _, p := range trace.Path {
				if p.Origin.ID == 0 {
					t.Errorf("%s: %s has no ID", a.Request.Dump, p.Origin.Class)
				}
			}
		}
	}
	for _, u := range a.Unreachable {
		if !slices.Contains(a.Leaking, u.ID) {
			t.Errorf("%s: 0x%x is unreachable and not leaking", a.Request.Dump, u.ID)
		}
	}
	return traces
}

// TestFailures checks that a dump on which Shark fails does not affect the
// other requests.
func TestFailures(t *testing.T) {
	dumps := recorded.Path(t, "hprof")
	s := New(t)
	requests := []Request{
		{filepath.Join(dumps, "ahat-O.hprof"), Android, Filter},
		{filepath.Join(t.TempDir(), "nothing"), Android, Filter},
		{filepath.Join(dumps, "hprof-32.bin"), JVM, "else"},
		{filepath.Join(dumps, "hprof-32.bin"), JVM, Filter},
	}
	answers := s.Analyze(t, requests)
	for i, want := range []string{"NullPointerException", "nothing", "no finder else", ""} {
		if got := answers[i].Failure; !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("request %d failed with %q, want %q", i, got, want)
		}
	}
}
