package android_test

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/internal/sharktest"
)

//go:embed testdata/Inspections.java
var inspections string

// sharkSays holds Shark's inspections of the objects in a dump, as lines of
// remarks.
type sharkSays struct {
	lines            map[uint64]string
	leaking, watched []uint64
}

// askShark runs Shark's inspectors on all objects of some dumps.
func askShark(tb testing.TB, mode sharktest.Mode, paths []string) []sharkSays {
	tb.Helper()
	program := sharktest.New(tb).Compile(tb, "Inspections", inspections)
	out := string(program.Run(tb, append([]string{string(mode)}, paths...)...))
	var all []sharkSays
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		first, rest, _ := strings.Cut(line, "\t")
		if first == "dump" {
			all = append(all, sharkSays{lines: map[uint64]string{}})
			continue
		}
		s := &all[len(all)-1]
		switch first {
		case "leaking":
			s.leaking = numbers(tb, rest)
		case "watched":
			s.watched = numbers(tb, rest)
		default:
			s.lines[numbers(tb, first)[0]] = rest
		}
	}
	if len(all) != len(paths) {
		tb.Fatalf("got %d results for %d dumps", len(all), len(paths))
	}
	return all
}

// numbers reads the numbers between tabs and returns them sorted.
func numbers(tb testing.TB, text string) []uint64 {
	tb.Helper()
	list := []uint64{}
	for part := range strings.FieldsSeq(text) {
		var n uint64
		if _, err := fmt.Sscan(part, &n); err != nil {
			tb.Fatal(err)
		}
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// lineOfInspection formats an inspection like a line of sharkSays.
func lineOfInspection(s trace.Inspection) string {
	var parts []string
	for _, p := range []struct {
		kind  string
		texts []string
	}{{"+", s.Leaking}, {"-", s.NotLeaking}, {"=", s.Labels}} {
		for _, text := range p.texts {
			parts = append(parts, p.kind+text)
		}
	}
	return strings.Join(parts, "\t")
}

// inspect prepares an Inspector that knows which fields hold contexts.
func inspect(tb testing.TB, g *heap.Graph, o android.InspectorOptions) *android.Inspector {
	tb.Helper()
	out, err := g.Outbound(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(out.Close)
	o.Outbound = out
	i, err := android.NewInspector(tb.Context(), g, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(i.Close)
	return i
}

// idsOf returns the IDs of objects.
func idsOf(g *heap.Graph, objects []heap.Object) []uint64 {
	list := []uint64{}
	for _, o := range objects {
		list = append(list, uint64(g.ID(o)))
	}
	return list
}

func leaking(tb testing.TB, i *android.Inspector) []heap.Object {
	tb.Helper()
	list, err := i.Leaking(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
		tb.Errorf("objects are unsorted or repeated: %v", list)
	}
	return list
}

// signed matches negative IDs, because Shark prints IDs of four bytes as signed
// numbers.
var signed = regexp.MustCompile(`@-[0-9]+`)

// ofShark converts a line printed by Shark to the form of our inspector.
func ofShark(line string) string {
	return signed.ReplaceAllStringFunc(line, func(id string) string {
		n, _ := strconv.ParseInt(id[1:], 10, 64)
		return fmt.Sprintf("@%d", uint32(n))
	})
}

// sorted returns a line with its remarks sorted.
func sorted(line string) string {
	return strings.Join(slices.Sorted(slices.Values(strings.Split(line, "\t"))), "\t")
}

// compareShark compares all inspections of a dump with Shark's. The fields of a
// class are in the order of their names only in dumps written by ART.
func compareShark(t *testing.T, g *heap.Graph, want sharkSays, art bool) (compared int) {
	t.Helper()
	i := inspect(t, g, android.InspectorOptions{Shark214: true})
	if got := idsOf(g, leaking(t, i)); !slices.Equal(got, want.leaking) {
		t.Errorf("leaking %x, want %x", got, want.leaking)
	}
	if got := idsOf(g, i.Watched()); !slices.Equal(got, want.watched) {
		t.Errorf("watched %x, want %x", got, want.watched)
	}
	for o := range heap.Object(g.Objects) {
		if g.IsClass(o) {
			continue
		}
		line := ofShark(want.lines[uint64(g.ID(o))])
		if line == "failed" {
			continue
		}
		compared++
		got := lineOfInspection(i.Inspect(o))
		if got != line && (art || sorted(got) != sorted(line)) {
			t.Errorf("%#x of %s:\n%s, want\n%s", g.ID(o), g.Class(o), got, line)
		}
	}
	return compared
}

// TestInspectorAsShark checks, for each object of many dumps, that our
// implementation of the rules of Shark 2.14 returns the same result as Shark
// 2.14 itself.
func TestInspectorAsShark(t *testing.T) {
	// The omitted cases contain the same objects, reached through other
	// references.
	cases := slices.DeleteFunc(hproftest.LeakCases(), func(c hproftest.LeakCase) bool {
		return strings.HasPrefix(c.Name, "known/") || strings.HasPrefix(c.Name, "mix/1")
	})
	dir := t.TempDir()
	var paths []string
	for n, c := range cases {
		dump, _, err := c.Heap().Dump(c.Form)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.hprof", n))
		if err := os.WriteFile(path, dump, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	answers := askShark(t, sharktest.Android, paths)
	for n, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			dump, err := os.ReadFile(paths[n])
			if err != nil {
				t.Fatal(err)
			}
			if compareShark(t, load(t, dump), answers[n], true) == 0 {
				t.Error("no object was compared")
			}
		})
	}
}

// TestInspectorAsSharkOnRecordedDumps compares our inspections with Shark's for
// dumps of real phones and JVMs.
func TestInspectorAsSharkOnRecordedDumps(t *testing.T) {
	for mode, names := range map[sharktest.Mode][]string{
		sharktest.Android: {"leak_service_binder.hprof"},
		sharktest.JVM:     {"ahat-RI.hprof", "hprof-32.bin", "hprof-64.bin", "pyhprof-example-java.hprof"},
	} {
		var paths []string
		for _, name := range names {
			paths = append(paths, recorded.Path(t, "hprof", name))
		}
		for n, answer := range askShark(t, mode, paths) {
			t.Run(names[n], func(t *testing.T) {
				compareShark(t, loadRecorded(t, names[n]), answer, false)
			})
		}
	}
}
