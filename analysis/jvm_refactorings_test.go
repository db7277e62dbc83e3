package analysis_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/jvmtest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// TestRefactorings compares builds of a program in which the code that holds
// the leaks is refactored. Existing leaks keep their identity and are not
// reported as new; leaks that are new are reported as new.
func TestRefactorings(t *testing.T) {
	t.Parallel()
	list := jvmtest.Refactorings()
	if !recorded.Long() {
		list = slices.DeleteFunc(list, func(r jvmtest.Refactoring) bool { return !r.Few })
	}
	builds := jvmtest.New(t).Refactored(t, list, 1)
	base := summaryOf(t, builds[0], builds[0].Mapping, builds[0].Leaking)
	keys := map[string]string{}
	for _, l := range analysis.Compare(base, base, 10).Leaks {
		keys[screenOf(&l)] = l.Key
	}
	var renamed []jvmtest.Variant
	for i, r := range list {
		v := builds[i]
		checkRefactored(t, r, analysis.Compare(base, summaryOf(t, v, v.Mapping, v.Leaking), 1<<16), keys)
		if v.Mapping != "" {
			renamed = append(renamed, v)
		}
	}
	checkRenamed(t, base, renamed)
}

// checkRenamed compares builds that ProGuard has renamed. It checks that the
// leaks are matched if each build has its mapping, and that they are not
// matched without mappings.
func checkRenamed(t *testing.T, base *analysis.Summary, builds []jvmtest.Variant) {
	t.Helper()
	if len(builds) < 2 {
		t.Fatal("too few builds with renamed classes")
	}
	one, other := builds[0], builds[1]
	a, b := summaryOf(t, one, one.Mapping, one.Leaking), summaryOf(t, other, other.Mapping, other.Leaking)
	if d := analysis.Compare(a, b, 10); !d.Comparable ||
		slices.ContainsFunc(d.Leaks, func(l analysis.LeakChange) bool { return l.Status != "known" }) {
		t.Errorf("two builds, each with its own mapping: got mismatches %q, statuses %q", d.Mismatches, statusesOf(d))
	}
	bare, strange := summaryOf(t, one, "", builtNames(t, one)), summaryOf(t, one, other.Mapping, nil)
	for name, pair := range map[string][2]*analysis.Summary{
		"head without a mapping": {base, bare}, "base without a mapping": {bare, base},
		"both without a mapping":       {bare, summaryOf(t, other, "", builtNames(t, other))},
		"the mapping of head for both": {strange, b}, "the mapping of base for both": {b, strange},
	} {
		d := analysis.Compare(pair[0], pair[1], 10)
		if len(d.Mismatches) == 0 ||
			slices.ContainsFunc(d.Mismatches, func(m string) bool { return !strings.Contains(m, "-mapping") }) {
			t.Errorf("%s: no mismatch names the missing mapping: %q", name, d.Mismatches)
		}
		if d.Comparable || len(d.Leaks) == 0 ||
			slices.ContainsFunc(d.Leaks, func(l analysis.LeakChange) bool { return l.Status != "unpaired" }) {
			t.Errorf("%s: comparable %t, %q, %q", name, d.Comparable, d.Mismatches, statusesOf(d))
		}
	}
	if d := analysis.Compare(bare, bare, 10); !d.Comparable || len(d.Leaks) != len(one.Leaking) {
		t.Errorf("one build without a mapping: got mismatches %q, statuses %q", d.Mismatches, statusesOf(d))
	}
}

// builtNames returns the names of the screens in a build.
func builtNames(t *testing.T, v jvmtest.Variant) (names []string) {
	t.Helper()
	text, err := os.ReadFile(v.Mapping)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if source, built, ok := strings.Cut(strings.TrimSuffix(line, ":\n"), " -> "); ok &&
			slices.Contains(v.Leaking, source) {
			names = append(names, built)
		}
	}
	return names
}

func summaryOf(t *testing.T, v jvmtest.Variant, mapping string, leaking []string) *analysis.Summary {
	t.Helper()
	d := readJVM(t, v.Dump)
	s, err := analysis.Summarize(t.Context(), bytes.NewReader(d.data), int64(len(d.data)),
		analysis.Options{Mapping: readMapping(t, mapping), LeakingClasses: leaking})
	if err != nil {
		t.Fatal(v.Name, err)
	}
	return s
}

// checkRefactored checks that each leak has the key that it has in base, and
// that only the expected changes occur.
func checkRefactored(t *testing.T, r jvmtest.Refactoring, d *analysis.Diff, keys map[string]string) {
	t.Helper()
	if !d.Comparable {
		t.Errorf("%s: %q", r.Name, d.Mismatches)
	}
	var changed []string
	for i := range d.Leaks {
		l := &d.Leaks[i]
		screen := screenOf(l)
		if l.Status != "known" {
			changed = append(changed, l.Status+" "+screen)
		}
		if screen == r.Reached && slices.Equal(l.BaseFingerprints, l.HeadFingerprints) {
			t.Errorf("%s: Shark's path to %s is the same: the change proves nothing", r.Name, screen)
		}
		if l.Status == "moved" {
			t.Logf("%s: %s moved from %q to %q", r.Name, screen, l.BaseKeyText, l.KeyText)
			for before, after := range r.Renamed {
				if after == screen {
					screen = before
				}
			}
			if l.MovedFrom == "" || l.MovedFrom != keys[screen] {
				t.Errorf("%s: %s is paired with the wrong leak, %q", r.Name, screen, l.BaseKeyText)
			}
		}
	}
	want := slices.Clone(r.Changed)
	for _, screen := range r.Added {
		want = append(want, "new "+screen)
	}
	slices.Sort(want)
	if slices.Sort(changed); !slices.Equal(changed, want) {
		t.Errorf("%s: %q, want %q: %q", r.Name, changed, want, statusesOf(d))
	}
	if r.Joins != "" && !joined(d, r.Joins) {
		t.Errorf("%s: no leak mentions %s: %q", r.Name, r.Joins, statusesOf(d))
	}
	made := func(c analysis.ClassChange) bool { return c.Class == r.Made && c.Instances.Delta > 0 }
	if r.Made != "" && !slices.ContainsFunc(d.Classes, made) {
		t.Errorf("%s: the number of %s objects did not grow: the change proves nothing", r.Name, r.Made)
	}
}

// screenOf returns the simple name of the leaking class.
func screenOf(l *analysis.LeakChange) string { return l.Class[strings.LastIndexByte(l.Class, '$')+1:] }

// joined reports whether an existing leak contains objects of a new class.
func joined(d *analysis.Diff, class string) bool {
	return slices.ContainsFunc(d.Leaks, func(l analysis.LeakChange) bool {
		return l.Status == "grown" && slices.ContainsFunc(l.Classes, func(c analysis.LeakClassChange) bool {
			return strings.HasSuffix(c.Class, "$"+class) && c.Instances.Base == 0 && c.Instances.Head > 0
		})
	})
}

func statusesOf(d *analysis.Diff) (list []string) {
	for _, l := range d.Leaks {
		list = append(list, l.Status+" "+l.Class+" by "+strings.Join(l.KeyText, ", "))
	}
	return list
}
