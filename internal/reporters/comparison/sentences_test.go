package comparison

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// terminal returns the output of WriteText on one line.
func terminal(t *testing.T, c *Comparison) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteText(&out, c); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

// TestUnmatched checks the sentence for a baseline in which no run is
// comparable: it must not ask the user to start a first run.
func TestUnmatched(t *testing.T) {
	const advice = " Base runs must have the same app, variant, workload, marks and device; the workload's command " +
		"must not change from run to run."
	for _, test := range []struct {
		base Base
		want string
	}{
		{Base{}, ""},
		{Base{Runs: 3, Incomparable: "different workload", Others: 4}, ""},
		{
			Base{Incomparable: "different workload", Others: 4},
			"This run is not compared with earlier runs: none of the 4 base runs matches it (different workload)." +
				advice,
		},
		{
			Base{Incomparable: "different workload, different API", Others: 1},
			"This run is not compared with earlier runs: the only base run does not match it (different workload, " +
				"different API)." +
				advice,
		},
		{
			Base{Incomparable: "different device"},
			"This run is not compared with earlier runs: no base run matches it (different device)." + advice,
		},
		{
			Base{Incomparable: "the baseline has only this run", Others: 1},
			"This run is not compared with earlier runs: the baseline has only this run.",
		},
	} {
		c := firstDay()
		c.Base = test.base
		if got := c.unmatched(onTerminal); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		if first := test.base == (Base{}); c.firstDay() != first ||
			strings.Contains(terminal(t, c)+Markdown(c, options()), "no baseline yet") != first {
			t.Errorf("%+v: firstDay is %t", test.base, c.firstDay())
		}
		if test.want != "" &&
			(!strings.Contains(terminal(t, c), test.want) ||
				!strings.Contains(Markdown(c, options()), "\n"+test.want+"\n")) {
			t.Errorf("%q is missing", test.want)
		}
	}
}

// TestUnjudged checks that the list of leaks that are not judged yet contains
// only growth with too few base runs.
func TestUnjudged(t *testing.T) {
	row := func(edit func(*Row)) Row {
		r := fewRuns().Leaks[1]
		edit(&r)
		return r
	}
	for _, test := range []struct {
		row  Row
		want string
	}{
		{row(func(*Row) {}), "not judged yet, too few base runs: `ListScreen1`, 1 → 2 per loop, key `a0000001`"},
		{
			row(func(r *Row) { r.PerLoop = sides(0, 0.5) }),
			"not judged yet, too few base runs: `ListScreen1`, 0 → 0.5 per loop, key `a0000001`",
		},
		{
			row(func(r *Row) { r.Unit, r.PerLoop = "event", sides(0.001, 0.002) }),
			"not judged yet, too few base runs: `ListScreen1`, 1 → 2 per 1 000 events, key `a0000001`",
		},
		{
			row(func(r *Row) { r.Type, r.Class, r.Key = "native", "libx.so", "native:libx.so" }),
			"not judged yet, too few base runs: `libx.so`, 1 → 2 kB per loop, key `native:libx.so`",
		},
		{
			row(func(r *Row) { r.Type, r.Unit = "trend", "hour" }),
			"not judged yet, too few base runs: `com.shop.list.ListScreen1`, 1 → 2 MB per hour, key `a0000001`",
		},
		{row(func(r *Row) { r.PerLoop = sides(4, 5) }), ""},
		{row(func(r *Row) { r.PerLoop.Base = nil }), ""},
		{row(func(r *Row) { r.PerLoop.Head = nil }), ""},
		{row(func(r *Row) { r.Status = Accepted }), ""},
		{row(func(r *Row) { r.Library = true }), ""},
		{row(func(r *Row) { r.Pinned = "not in 3 runs of that release" }), ""},
		{row(func(r *Row) { r.StatusReason = "" }), ""},
	} {
		got := ""
		c := fewRuns()
		c.Leaks = []Row{test.row}
		for _, r := range c.unjudged() {
			got += r.pending(inLine)
		}
		if got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		if page := Markdown(c, options()); strings.Contains(page, "\n- not judged yet, ") != (test.want != "") ||
			!strings.Contains(page, test.want) {
			t.Errorf("%q: the comment differs", test.want)
		}
	}
	// If many leaks cannot be judged yet, the page lists the first ones and
	// reports the number of the others.
	c := many(100, 20)
	for range 50 {
		c.Leaks = append(c.Leaks, fewRuns().Leaks[1])
	}
	page := Markdown(c, options())
	checkPage(t, page, options())
	if n := strings.Count(page, "\n- not judged yet"); n != maxPending ||
		!strings.Contains(page, "40 leaks that are not judged yet") {
		t.Errorf("%d lines", n)
	}
}

// TestCountsAgree checks the number of known leaks in the headline. It must be
// the sum of the accepted leaks and the known leaks, which the list counts
// separately.
func TestCountsAgree(t *testing.T) {
	c := fewRuns()
	if got := terminal(t, c); !strings.Contains(got, "; 3 leaks are known") ||
		strings.Count(got, "not judged yet") != 1 ||
		!strings.Contains(got, "other leaks: 1 accepted, 1 known processes") {
		t.Errorf("%s", got)
	}
	if page := Markdown(c, options()); !strings.Contains(page, "; 3 leaks are known") ||
		!strings.Contains(page, ": 1 accepted, 2 known.") {
		t.Errorf("%s", page)
	}
}

func TestAcceptable(t *testing.T) {
	for _, test := range []struct {
		what, key string
		fails     bool
		status    Status
		want      bool
	}{
		{"leak", "d97295ca5be1f0a2", true, New, true},
		{"leak", "d97295ca", false, Grown, true},
		{"leak", "d97295ca", true, Known, true},
		{"leak", "d97295ca", false, Known, false},
		{"leak", "d97295c", true, New, false},
		{"leak", "com.shop.WishScreen", true, New, false},
		{"leak", strings.Repeat("a", 65), true, New, false},
		{"measure", "77ab1e5dc0ffee00", true, New, true},
		{"measure", "threads", true, New, false},
		{"trend", "d97295ca", true, New, false},
		{"threads", "d97295ca", true, New, false},
	} {
		r := Row{Type: test.what, Key: test.key, Fails: test.fails, Status: test.status}
		if r.acceptable() != test.want {
			t.Errorf("%+v: acceptable() is %t", test, r.acceptable())
		}
	}
	// The type of a row in gate.json, such as "measure", must not be printed as
	// its name.
	var out bytes.Buffer
	if err := WriteSARIF(&out, trip(), ""); err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{out.String(), Markdown(trip(), options()), terminal(t, trip())} {
		if strings.Contains(page, "measure") || !strings.Contains(page, "Cache.entries") ||
			!strings.Contains(page, "grows with each loop of a trip") {
			t.Errorf("%s", page)
		}
	}
}

// TestFirstSeen checks that an unknown value leaves no gap in the sentence.
func TestFirstSeen(t *testing.T) {
	for _, test := range []struct {
		seen                 *Sighting
		full, comment, known string
	}{
		{
			&Sighting{Commit: sha, Time: at(25)}, "first seen at " + sha + ", 25 Nov 2026",
			"\n- First seen at `8c1d0fe`, 25 Nov 2026\n", "| `8c1d0fe`, 25 Nov 2026 |\n",
		},
		{&Sighting{Commit: sha}, "first seen at " + sha, "\n- First seen at `8c1d0fe`\n", "| `8c1d0fe` |\n"},
		{&Sighting{Time: at(25)}, "first seen 25 Nov 2026", "\n- First seen 25 Nov 2026\n", "| 25 Nov 2026 |\n"},
		{
			&Sighting{Commit: " ", Time: at(25)}, "first seen 25 Nov 2026", "\n- First seen 25 Nov 2026\n",
			"| 25 Nov 2026 |\n",
		},
		{&Sighting{}, "", "", "| – |\n"},
		{nil, "", "", "| – |\n"},
	} {
		c := one()
		c.Leaks[0].FirstSeen = test.seen
		c.Leaks = append(c.Leaks, listScreen(1, Known))
		c.Leaks[1].FirstSeen = test.seen
		var out bytes.Buffer
		if err := WriteRow(&out, &c.Leaks[0]); err != nil {
			t.Fatal(err)
		}
		page := Markdown(c, options())
		if !strings.Contains(out.String(), test.full) || !strings.Contains(page, test.comment) ||
			!strings.Contains(page, test.known) {
			t.Errorf("%+v:\n%s%s", test.seen, out.String(), page)
		}
		if test.full == "" &&
			strings.Contains(strings.ToLower(out.String()+strings.ReplaceAll(page, "| first seen |", "")),
				"first seen") {
			t.Errorf("%+v: unexpected text \"first seen\"", test.seen)
		}
	}
}

// TestLeakCanary checks that a LeakCanary report is not described as a run with
// heap dumps.
func TestLeakCanary(t *testing.T) {
	for _, dumps := range []int{0, 1} {
		c := ofLeakCanary()
		c.Processes[0].Dumps = dumps
		for _, page := range []string{Markdown(c, options()), terminal(t, c)} {
			if strings.Contains(page, "idle") || strings.Contains(page, "dump") ||
				strings.Contains(page, "each loop") || !strings.Contains(page, "LeakCanary") {
				t.Errorf("%s", page)
			}
		}
	}
	if page := Markdown(clean(), options()); !strings.Contains(page,
		"3 heap dumps over 12 loops, app idle before each") {
		t.Error("the comment does not describe the heap dumps and loops of the run")
	}
}

// TestWarnings checks that every page reports that a run ended early, whatever
// else could not be judged.
func TestWarnings(t *testing.T) {
	const early = "the run ended early because a rule was violated"
	for i, c := range []*Comparison{
		clean(), worse(), firstDay(), notJudged(), noMatch(), ofLeakCanary(), many(500, 100),
	} {
		c.Warnings = slices.Concat([]string{early}, c.Warnings)
		for n := range 20 {
			c.Processes = append(c.Processes,
				ProcessRow{Process: fmt.Sprint("com.shop:p", n), Trend: "not judged: 1 min, a trend needs 30"})
		}
		if page := Markdown(c, options()); !strings.Contains(page, "\n- "+early+"\n") {
			t.Errorf("comment %d does not warn that the run ended early", i)
		}
		if !strings.Contains(terminal(t, c), "warning: "+early) {
			t.Errorf("terminal report %d does not warn that the run ended early", i)
		}
		c.Processes = nil
		if !strings.Contains(terminal(t, c), "warning: "+early) ||
			!strings.Contains(Markdown(c, options()), "\n- "+early+"\n") {
			t.Errorf("reports %d without processes do not warn that the run ended early", i)
		}
	}
}
