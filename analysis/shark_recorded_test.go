package analysis

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/internal/sharktest"
)

// recordedAnswer is Shark 2.14's answer for a real dump.
type recordedAnswer struct {
	Finder           string
	LeakingObjectIDs []string `json:"leakingObjectIds"`
	Leaks            []struct {
		Type, Signature, LeakingClass string
		TotalRetainedHeapByteSize     int64
		Traces                        []struct {
			GCRoot, Reason, Text string
			RetainedHeapByteSize int64
			Path                 []string
		}
	}
	UnreachableObjects []struct{ Class string }
}

// readAnswer returns an answer and the dump that it describes.
func readAnswer(t *testing.T, name string) (a recordedAnswer, dump []byte) {
	t.Helper()
	if err := json.Unmarshal(recorded.Read(t, "hprof", "shark-2.14", name), &a); err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSuffix(name, ".json")
	base = strings.TrimSuffix(base, filepath.Ext(base))
	if _, err := os.Stat(filepath.Join(recorded.Path(t, "hprof"), base)); err != nil {
		base += ".gz"
	}
	return a, recorded.Read(t, "hprof", base)
}

// sharkText formats a trace like Shark, without sizes and object counts
// (LeakTrace.kt).
func sharkText(x *trace.Trace) string {
	var b strings.Builder
	fmt.Fprintf(&b, "┬───\n│ GC Root: %s\n│", x.Root.Description())
	for i := range x.Elements {
		e := &x.Elements[i]
		head, rest := "├─ ", "│    "
		if i == len(x.Elements)-1 {
			head, rest = "╰→ ", "\u200b     "
		}
		status := e.Status.String()
		if e.Reason != "" {
			status += " (" + e.Reason + ")"
		}
		fmt.Fprintf(&b, "\n%s%s %s\n%sLeaking: %s", head, e.Class, e.Type, rest, status)
		for _, l := range e.Labels {
			b.WriteString("\n" + rest + l)
		}
		if i < len(x.Elements)-1 {
			b.WriteString(sharkReference(e))
		}
	}
	return b.String()
}

func sharkReference(e *trace.Element) string {
	owner, field := e.Owner[strings.LastIndexByte(e.Owner, '.')+1:], e.Shown
	switch {
	case e.Kind == trace.StaticEdge:
		owner = "static " + owner + "."
	case e.Kind == trace.FieldEdge:
		owner += "."
	}
	line := "\n│    ↓ " + owner + field
	if e.Suspect {
		line += "\n│      " + strings.Repeat(" ", len(owner)) + strings.Repeat("~", len(field))
	}
	return line
}

// withoutSizes removes the lines that contain sizes.
func withoutSizes(text string) string {
	lines := strings.Split(text, "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool {
		return strings.Contains(l, "     Retaining ") || strings.HasPrefix(l, "│    Retaining ")
	})
	return strings.Join(lines, "\n")
}

// For a leak in a real app, the traces are as Shark prints them, and the sizes
// are those of Shark and ahat. Our own rules change one status: that of the
// binder that native code holds.
func TestSharkRecordedService(t *testing.T) {
	for name, o := range map[string]Options{
		"leak_service_binder.hprof.filter.json": {shark214: true},
		"leak_service_binder.hprof.keyed.json":  {shark214: true, watched: true},
	} {
		want, data := readAnswer(t, name)
		f := find(t, data, o)
		defer f.graph.Close()
		if len(f.Leaks) != len(want.Leaks) || len(f.Unreachable) != len(want.UnreachableObjects) {
			t.Fatalf("%s: %d leaks and %d unreachable objects, want %d and %d", name, len(f.Leaks), len(f.Unreachable),
				len(want.Leaks), len(want.UnreachableObjects))
		}
		for i, l := range want.Leaks {
			got := &f.Leaks[i]
			if got.Fingerprint() != l.Signature || len(got.Traces) != len(l.Traces) ||
				got.Credited.Total() != l.TotalRetainedHeapByteSize || got.Library() != nil {
				t.Errorf("%s: leak %s of %d bytes, want %s of %d", name, got.Fingerprint(), got.Credited.Total(),
					l.Signature, l.TotalRetainedHeapByteSize)
			}
			for j, x := range l.Traces {
				if text := sharkText(&got.Traces[j]); text != withoutSizes(x.Text) {
					t.Errorf("%s:\n%s\nwant\n%s", name, text, withoutSizes(x.Text))
				}
				if size := f.graph.Retained(got.Traces[j].Leaking().Object); size.Total() != x.RetainedHeapByteSize {
					t.Errorf("%s: %d bytes, want %d", name, size.Total(), x.RetainedHeapByteSize)
				}
			}
		}
	}
	_, data := readAnswer(t, "leak_service_binder.hprof.filter.json")
	a := &sharkAnswer{kind: "filter"}
	ours := find(t, data, Options{})
	defer ours.graph.Close()
	if more := changes(a.ask(t, data).fates, ours.fates()); len(more) != 1 || more["statuses"] != 1 {
		t.Errorf("our own rules change %v, want only one status", more)
	}
	if _, err := attribute(t, &sharkCase{name: "leak_service_binder", data: data}, a,
		make([]differenceCount, len(sharkDifferences))); err != nil {
		t.Error(err)
	}
}

// recordedDifferences are the entries of sharkDifferences that occur in
// recorded dumps.
var recordedDifferences = map[string][]string{
	"leak_service_binder.hprof.hashmap.json": {"values of a WeakHashMap are its elements"},
}

// dottedNames is the answer about the dump of an old JVM, in which the names of
// classes contain dots. Shark 2.14 expects slashes if the format is not
// Android's. Shark therefore does not find any of its known classes, and reads
// collections like any other object.
const dottedNames = "hprof-32.bin.hashmap.json"

// TestSharkRecordedMaps treats all HashMaps of seven real dumps as leaking.
// Under Shark's rules, the leaks and their identities are the same as Shark's;
// every change that our own rules make is due to a known difference.
func TestSharkRecordedMaps(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(recorded.Path(t, "hprof", "shark-2.14"), "*.hashmap.json"))
	if err != nil || len(names) != 7 {
		t.Fatalf("%d answers: %v", len(names), err)
	}
	for _, name := range names {
		name = filepath.Base(name)
		t.Run(name, func(t *testing.T) {
			want, data := readAnswer(t, name)
			a := &sharkAnswer{kind: "class", class: "java.util.HashMap"}
			err := difference(a.ask(t, data).leaks(), want.leaks())
			if (err != nil) != (name == dottedNames) {
				t.Errorf("leaks: %v", err)
			}
			if name == dottedNames {
				compareUnflattened(t, data, &want)
			}
			equal := 0
			for _, l := range want.Leaks {
				if a.mine.credited[leakLine(l.Type == sharktest.Library, l.Signature,
					len(l.Traces))] == l.TotalRetainedHeapByteSize {
					equal++
				}
			}
			t.Logf("%d leaks, %d of equal size", len(want.Leaks), equal)
			compareDifferences(t, &sharkCase{name: name, data: data}, a)
		})
	}
}

func (a *ourAnswer) leaks() []string { return slices.Collect(maps.Keys(a.credited)) }

func (a *recordedAnswer) leaks() (lines []string) {
	for _, l := range a.Leaks {
		lines = append(lines, leakLine(l.Type == sharktest.Library, l.Signature, len(l.Traces)))
	}
	return lines
}

// compareUnflattened compares the results of a search that treats collections
// like any other object.
func compareUnflattened(t *testing.T, data []byte, want *recordedAnswer) {
	t.Helper()
	s := newScale(t, data)
	defer s.close()
	r := &rules{without: []string{
		"java.util.ArrayList", "java.util.LinkedList", "java.util.concurrent.CopyOnWriteArrayList", "java.util.HashMap",
		"java.util.LinkedHashMap",
		"java.util.concurrent.ConcurrentHashMap", "java.util.HashSet", "java.util.LinkedHashSet",
	}}
	if err := difference(answerOf(r.find(t, s, "java.util.HashMap")).leaks(), want.leaks()); err != nil {
		t.Errorf("without collections: %v", err)
	}
}

// compareDifferences checks that exactly the differences in recordedDifferences
// change Shark's answer.
func compareDifferences(t *testing.T, c *sharkCase, a *sharkAnswer) {
	t.Helper()
	counts := make([]differenceCount, len(sharkDifferences))
	if _, err := attribute(t, c, a, counts); err != nil {
		t.Error(err)
	}
	var shown []string
	for i, d := range sharkDifferences {
		if counts[i].dumps > 0 {
			shown = append(shown, d.name)
		}
	}
	if !slices.Equal(shown, recordedDifferences[c.name]) {
		t.Errorf("our own rules show %q, want %q", shown, recordedDifferences[c.name])
	}
}
