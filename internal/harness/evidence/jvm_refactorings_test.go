package evidence

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/jvmtest"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

const market = "com.example.market"

// gateCI lists the refactorings that a short test judges.
var gateCI = []string{
	"nothing", "classes are loaded in a different order", "an anonymous class instead of a lambda", "different names",
	"different names from another seed",
	"three leaks have other holders, and a new screen has its own holder", "a new screen joins a known list",
	"one leak is fixed, and another screen registers a lambda in the same bus",
	"a screen replaces another in the bus", "the leaking class is renamed",
	"the leaking class is renamed, and another screen joins its list",
	"a second anonymous class that holds more memory",
}

// gateSays lists the refactorings for which the result of the gate, which
// compares three loops, differs from that of a diff of two dumps. Each entry is
// a status and the simple name of a screen, in order.
var gateSays = map[string][]string{
	"a new screen joins a known list":                                 {"wider ListScreen"},
	"the leaking class is renamed":                                    {"moved CatalogScreen"},
	"the leaking class is renamed, and another screen joins its list": {"wider WishScreen"},
	// At every mark there is one object of the newest screen, and each loop
	// adds one object of every other screen.
	"a second, shorter path to the newest screen": {"transient OrderScreen"},
}

// judged is one build of Market and its dumps.
type judged struct {
	jvmtest.Variant
	*Evidence
}

// TestRefactorings judges real programs after a change of the code that holds
// their leaks: the leaks are recognized as those in the base. A new leak is
// found, even if a known reference holds it.
func TestRefactorings(t *testing.T) {
	t.Parallel()
	list := jvmtest.Refactorings()
	if !recorded.Long() {
		list = slices.DeleteFunc(list, func(r jvmtest.Refactoring) bool { return !slices.Contains(gateCI, r.Name) })
		if len(list) != len(gateCI) {
			t.Fatalf("got %d refactorings, want %q", len(list), gateCI)
		}
	}
	// The first build contains no change. A long test runs it three times for
	// the base.
	repeated := 0
	if recorded.Long() {
		repeated = 2
	}
	builds := jvmtest.New(t).Refactored(t, slices.Concat(slices.Repeat(list[:1], repeated), list), 3)
	var base []judged
	for _, v := range builds[:repeated+1] {
		base = append(base, dumped(t, v, v.Mapping, v.Leaking))
	}
	var renamed []jvmtest.Variant
	for i, r := range list {
		v := builds[repeated+i]
		head := dumped(t, v, v.Mapping, v.Leaking)
		for _, n := range []int{1, 3} {
			checkJudged(t, r, n, stored(t, n, base...), head)
		}
		if v.Mapping != "" {
			renamed = append(renamed, v)
		}
	}
	checkNames(t, base[0], renamed)
}

// dumped reads the dumps of a build.
func dumped(t *testing.T, v jvmtest.Variant, mapping string, leaking []string) judged {
	t.Helper()
	o := DumpOptions{App: market, Analysis: analysis.Options{LeakingClasses: leaking}}
	if mapping != "" {
		content, err := os.ReadFile(mapping)
		if err != nil {
			t.Fatal(err)
		}
		if o.Analysis.Mapping, err = analysis.ReadMapping(bytes.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	ev, err := FromDumps(t.Context(), []Scenario{{market, v.Dumps}}, o)
	if err != nil {
		t.Fatal(v.Name, err)
	}
	if h := ev.Observations[0].Processes[0].Heap; len(h.Exposure) != 3 || !h.Settled {
		t.Fatalf("%s: %+v", v.Name, h)
	}
	return judged{v, ev}
}

// stored returns a baseline of n runs, which use the given builds in turn,
// after writing and reading it.
func stored(t *testing.T, n int, of ...judged) *gate.Baseline {
	t.Helper()
	var b gate.Baseline
	for i := range n {
		o := of[i%len(of)].Observations[0]
		o.Commit, o.Started = fmt.Sprintf("%07d", i), time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC)
		b.Add(o, gate.Window)
	}
	raw, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := gate.ReadBaseline(raw)
	if err != nil || len(read.Runs) != n {
		t.Fatalf("%v: %+v", err, read)
	}
	return read
}

// compared judges a build with the default rules.
func compared(base *gate.Baseline, head judged) *comparison.Comparison {
	return gate.Compare(gate.Input{
		Heads: head.Observations, Configured: true, Base: base.Runs, FirstSeen: base.FirstSeen(market),
		Match: gate.MatchAll(), Rules: gate.DefaultRules(), Traces: head.Traces,
		Now: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
	})
}

// expected returns the statuses that the leaks must have if they are compared
// with the given number of base runs.
func expected(r jvmtest.Refactoring, runs int) []string {
	if said, ok := gateSays[r.Name]; ok {
		return said
	}
	var want []string
	for _, changed := range r.Changed {
		// One run does not show how much the results vary.
		if runs >= 3 || !strings.HasPrefix(changed, "grown ") {
			want = append(want, changed)
		}
	}
	for _, screen := range r.Added {
		want = append(want, "new "+screen)
	}
	slices.Sort(want)
	return want
}

// screenOf returns the simple name of a class of Market.
func screenOf(class string) string { return class[strings.LastIndexByte(class, '$')+1:] }

// checkJudged checks the status of each leak, and that the verdict follows from
// these statuses.
func checkJudged(t *testing.T, r jvmtest.Refactoring, runs int, base *gate.Baseline, head judged) {
	t.Helper()
	c := compared(base, head)
	keys := map[string]string{}
	for _, p := range base.Runs[0].Processes[0].Places {
		keys[screenOf(p.Class)] = p.Key
	}
	missing := map[string]bool{}
	for _, class := range head.Leaking {
		missing[screenOf(class)] = true
	}
	var got []string
	for _, row := range c.Leaks {
		screen := screenOf(row.Class)
		for _, of := range row.Classes {
			delete(missing, screenOf(of.Class))
		}
		if row.Status != comparison.Known {
			got = append(got, string(row.Status)+" "+screen)
		}
		switch row.Status {
		case comparison.Moved:
			before, class := screen, ""
			for old, now := range r.Renamed {
				if now == screen {
					before, class = old, marketOf(old)
				}
			}
			if cmp.Or(row.MovedFrom, row.Key) != keys[before] || row.MovedClass != class {
				t.Errorf("%s: %s is wrongly matched with %q, class %q", r.Name, screen, row.MovedFrom, row.MovedClass)
			}
		case comparison.New, comparison.Wider, comparison.Grown:
			if !row.Fails || len(row.Trace) == 0 || len(row.Suspects) == 0 {
				t.Errorf("%s: %+v", r.Name, row)
			}
			if row.Status == comparison.Wider &&
				!(strings.HasPrefix(row.StatusReason, "this reference also holds ") &&
					strings.Contains(row.StatusReason, marketOf(r.Joins))) {
				t.Errorf("%s: the reason does not name %s: %s", r.Name, r.Joins, row.StatusReason)
			}
		}
	}
	want := expected(r, runs)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%s, %d base runs: got %q, want %q", r.Name, runs, got, want)
	}
	if len(missing) > 0 {
		t.Errorf("%s: no row for %v", r.Name, missing)
	}
	fails := slices.ContainsFunc(want, func(s string) bool {
		status, _, _ := strings.Cut(s, " ")
		return slices.Contains([]string{"new", "wider", "grown"}, status)
	})
	if outcome := map[bool]comparison.Result{
		true: comparison.Fail, false: comparison.Pass,
	}[fails]; c.Verdict != outcome || !c.Judged {
		t.Errorf("%s, %d base runs: %s: %s", r.Name, runs, c.Verdict, c.Text)
	}
}

func marketOf(screen string) string { return market + ".Market$" + screen }

// checkNames compares builds whose names were changed by ProGuard. Builds with
// mappings are compared; builds without a mapping are not.
func checkNames(t *testing.T, base judged, builds []jvmtest.Variant) {
	t.Helper()
	if len(builds) < 2 {
		t.Fatalf("got %d builds with different names, want at least 2", len(builds))
	}
	one, other := builds[0], builds[1]
	a, b := dumped(t, one, one.Mapping, one.Leaking), dumped(t, other, other.Mapping, other.Leaking)
	if c := compared(stored(t, 3, a), b); c.Verdict != comparison.Pass || !all(c, comparison.Known) ||
		len(c.Leaks) != len(one.Leaking) {
		t.Errorf("each build with its own mapping: got %s, %+v, want all known", c.Verdict, c.Leaks)
	}
	first, second := classNames(t, one), classNames(t, other)
	sources := map[string]string{}
	for source, name := range second {
		sources[name] = source
	}
	bareOne, bareOther, strange := []string{}, []string{}, []string{}
	for _, class := range one.Leaking {
		bareOne, bareOther = append(bareOne, first[class]), append(bareOther, second[class])
		strange = append(strange, cmp.Or(sources[first[class]], first[class]))
	}
	bare, misread := dumped(t, one, "", bareOne), dumped(t, one, other.Mapping, strange)
	for name, pair := range map[string][2]judged{
		"head without a mapping": {base, bare}, "base without a mapping": {bare, base},
		"both without a mapping":       {bare, dumped(t, other, "", bareOther)},
		"the mapping of head for both": {misread, b}, "the mapping of base for both": {b, misread},
	} {
		c := compared(stored(t, 3, pair[0]), pair[1])
		if c.Verdict == comparison.Fail || !all(c, comparison.Present) || len(c.Leaks) != len(one.Leaking) {
			t.Errorf("%s: %s: %+v", name, c.Verdict, c.Leaks)
		}
		unnamed := func(text string) bool { return !strings.Contains(text, "app.mapping") }
		if len(c.Warnings) != 1 || slices.ContainsFunc(c.Warnings, unnamed) ||
			slices.ContainsFunc(c.Leaks, func(r comparison.Row) bool { return unnamed(r.StatusReason) }) {
			t.Errorf("%s: the messages do not name the missing mapping option: %q, %+v", name, c.Warnings, c.Leaks)
		}
	}
	// A run that was recorded without its mapping does not prevent a comparison
	// with the others.
	mixed := stored(t, 4, base, base, bare)
	if c := compared(mixed, a); c.Verdict != comparison.Pass || !all(c, comparison.Known) || len(c.Warnings) != 1 {
		t.Errorf("one base run without a mapping: %s %q: %+v", c.Verdict, c.Warnings, c.Leaks)
	}
}

func all(c *comparison.Comparison, status comparison.Status) bool {
	return len(c.Leaks) > 0 && !slices.ContainsFunc(c.Leaks, func(r comparison.Row) bool { return r.Status != status })
}

// classNames returns the classes of a build by their source names.
func classNames(t *testing.T, v jvmtest.Variant) map[string]string {
	t.Helper()
	content, err := os.ReadFile(v.Mapping)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if source, name, ok := strings.Cut(strings.TrimSuffix(line, ":\n"), " -> "); ok &&
			!strings.HasPrefix(line, " ") {
			names[source] = name
		}
	}
	return names
}
