package gate

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

// loaded sets the classes of the app that a run has loaded, and returns the
// run.
func loaded(o Observation, classes ...string) Observation {
	o.Processes[0].Loaded = NewClassSet(classes)
	return o
}

func named(o Observation, names string) Observation {
	o.Processes[0].Names = names
	return o
}

// If head no longer contains a class of the base, the class may have a new name
// in head. The missing class excuses exactly one class that the base does not
// contain, and the report shows which one.
func TestRenamedClass(t *testing.T) {
	list := leak("k", "ListScreen", 10, 3, 6, 9)
	catalog := leak("k", "CatalogScreen", 10, 3, 6, 9)
	base := []Observation{loaded(observed(0, list), "ListScreen", "CartScreen")}
	for name, c := range map[string]struct {
		head    Observation
		status  comparison.Status
		was     string
		because string
	}{
		"renamed": {
			loaded(observed(9, catalog), "CatalogScreen", "CartScreen"), comparison.Moved, "ListScreen",
			"holds another class",
		},
		"old class is still loaded": {
			loaded(observed(9, catalog), "CatalogScreen", "ListScreen"), comparison.Wider, "",
			"also holds CatalogScreen",
		},
		"base runs load the new class": {
			loaded(observed(9, leak("k", "CartScreen", 10, 3, 6, 9)), "CartScreen"), comparison.Wider, "",
			"also holds CartScreen",
		},
		"renamed, and a second new class": {
			loaded(observed(9, withClass(catalog, "WishScreen", 10, 1, 2, 3)), "CatalogScreen", "WishScreen"),
			comparison.Wider, "", "also holds CatalogScreen or WishScreen",
		},
		"another class, not growing": {
			loaded(observed(9, leak("k", "CartScreen", 10, 9, 9, 9)), "CartScreen"), comparison.Known, "", "",
		},
		"old class still loaded, not growing": {
			loaded(observed(9, leak("k", "CatalogScreen", 10, 9, 9, 9)), "CatalogScreen", "ListScreen"),
			comparison.Known, "", "",
		},
		"loaded classes unknown": {observed(9, catalog), comparison.Known, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := rowOf(t, judge(base, c.head), "k")
			if got.Status != c.status || got.MovedClass != c.was || got.MovedFrom != "" ||
				!strings.Contains(got.StatusReason, c.because) || got.Fails != (c.status == comparison.Wider) {
				t.Errorf("%s of %q, fails %t: %s", got.Status, got.MovedClass, got.Fails, got.StatusReason)
			}
		})
	}
}

// Base runs with other names are not compared, but they do not prevent a
// comparison with the base runs that have source names.
func TestObfuscatedBase(t *testing.T) {
	list, other := leak("k", "ListScreen", 10, 3, 6, 9), leak("a", "a", 10, 3, 6, 9)
	strange := named(observed(4, other), "obfuscated")
	c := judge(append(runs(3, list), strange), observed(9, list))
	if c.Verdict != comparison.Pass || len(c.Leaks) != 1 || c.Leaks[0].Status != comparison.Known ||
		len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "with 1 base run whose names are obfuscated") {
		t.Errorf("%s: %+v, %q", c.Verdict, c.Leaks, c.Warnings)
	}
	c = judge([]Observation{strange}, observed(9, list))
	if c.Verdict == comparison.Fail || len(c.Leaks) != 1 || c.Leaks[0].Status != comparison.Present ||
		len(c.Warnings) != 1 {
		t.Errorf("%s: %+v, %q", c.Verdict, c.Leaks, c.Warnings)
	}
	// The different names of a pinned release, which is often obfuscated, do
	// not mean that a leak has grown gradually.
	c = judge(runs(3, list), observed(9, list),
		func(in *Input) { in.Pinned, in.PinnedName = []Observation{strange}, "4.1" })
	if c.Verdict != comparison.Pass || c.Leaks[0].Pinned != "" {
		t.Errorf("%s: %+v", c.Verdict, c.Leaks)
	}
}
