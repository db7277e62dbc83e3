package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/internal/schema"
)

// closedScreens returns a heap dump of an app with a number of closed screens
// of each class. One list holds all of them; if apart is true, each class has
// its own list.
func closedScreens(t testing.TB, counts map[string]int, apart bool, at time.Time) []byte {
	t.Helper()
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	var all []hproftest.Ref
	for _, class := range []string{"CartActivity", "ListActivity", "WishActivity"} {
		var own []hproftest.Ref
		for range counts[class] {
			a := h.Activity("com.shop."+class, hproftest.Destroyed)
			own, all = append(own, a.Ref), append(all, a.Ref)
		}
		if apart && counts[class] > 0 {
			h.Hold("com.shop."+strings.TrimSuffix(class, "Activity")+"Bus", "listeners", h.ArrayList(own...).Ref)
		}
	}
	if !apart {
		h.Hold("com.shop.Registry", "all", h.ArrayList(all...).Ref)
	}
	dump, _, err := h.Dump(hproftest.Form{Time: at})
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

// takings is the number of series of dumps so far. The times of the dumps
// depend on it, so they differ between series.
var takings int

// looped writes three dumps, one after each loop, and returns the value of
// --dump.
func looped(t testing.TB, dir, name string, apart bool, perLoop map[string]int) string {
	t.Helper()
	var files []string
	takings++
	for loop := 1; loop <= 3; loop++ {
		counts := map[string]int{}
		for class, n := range perLoop {
			counts[class] = n * loop
		}
		path := filepath.Join(dir, fmt.Sprintf("%s-%d.hprof", name, loop))
		if err := os.WriteFile(path,
			closedScreens(t, counts, apart, time.Date(2000, 1, 1, 0, takings, loop, 0, time.UTC)), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	return "com.shop=" + strings.Join(files, ",")
}

// inFolder makes a new directory the current directory for a test, and returns
// its path.
func inFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	return dir
}

// The gate works with heap dumps and no runs: base dumps are recorded, a change
// that leaks fails, an accepted leak passes, and a change without a leak
// passes.
func TestGateByDumps(t *testing.T) {
	dir := inFolder(t)
	known := map[string]int{"CartActivity": 2}
	base := looped(t, dir, "base", true, known)
	same := looped(t, dir, "same", true, known)
	worse := looped(t, dir, "worse", true, map[string]int{"CartActivity": 2, "WishActivity": 1})
	more := looped(t, dir, "more", true, map[string]int{"CartActivity": 3})

	code, out, errOut := typed(t, nil, "gate", "--dump", same)
	if code != 1 || !strings.Contains(out, "CartActivity") {
		t.Errorf("no baseline and a growing leak: exit %d, want 1\n%s%s", code, out, errOut)
	}
	if code, _, errOut = typed(t, nil, "baseline", "update", "--dump", base); code != 0 {
		t.Fatalf("exit %d\n%s", code, errOut)
	}
	code, out, errOut = typed(t, nil, "gate", "--dump", same)
	if code != 0 || !strings.Contains(out, "nothing is worse than in 1 base run") {
		t.Errorf("same dumps: exit %d\n%s%s", code, out, errOut)
	}
	code, out, errOut = typed(t, nil, "gate", "--dump", worse, "--json", "--out", "result")
	var c comparison.Comparison
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != 1 || c.Verdict != comparison.Fail ||
		len(c.Reasons) != 1 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errOut)
	}
	row := c.Leaks[0]
	if row.Status != comparison.New || row.Class != "com.shop.WishActivity" || row.HeldBy != "WishBus.listeners" ||
		*row.PerLoop.Head != 1 || *row.BytesEach.Head <= 0 || len(row.Trace) == 0 {
		t.Errorf("%+v", row)
	}
	if n, err := schema.CheckRun("result"); err != nil || n != 1 {
		t.Errorf("checked %d files: %v", n, err)
	}
	comment, err := os.ReadFile(filepath.Join("result", "comment.md"))
	if err != nil || !strings.Contains(string(comment), "WishActivity") {
		t.Errorf("%v\n%s", err, comment)
	}
	if code, out, errOut = typed(t, nil, "show", "result", row.Key[:8]); code != 0 ||
		!strings.Contains(out, "WishBus.listeners") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	if code, out, errOut = typed(t, nil, "comment", "--run", "result", "--dry-run"); code != 0 ||
		out != string(comment) {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}

	// With three base runs, one more object per loop is reported as growth.
	if code, out, _ = typed(t, nil, "gate", "--dump", more); code != 0 || !strings.Contains(out, "too few base runs") {
		t.Errorf("one base run: exit %d, want 0\n%s", code, out)
	}
	second, third := looped(t, dir, "second", true, known), looped(t, dir, "third", true, known)
	for _, run := range []string{second, third, third} { // the second copy of a run is ignored
		if code, _, errOut = typed(t, nil, "baseline", "update", "--dump", run); code != 0 {
			t.Fatalf("exit %d\n%s", code, errOut)
		}
	}
	if code, out, _ = typed(t, nil, "gate", "--dump", more); code != 1 || !strings.Contains(out, "grown") {
		t.Errorf("three base runs: exit %d, want 1\n%s", code, out)
	}

	if code, _, errOut = typed(t, nil, "accept", row.Key, "--reason", "SHOP-1", "--owner", "kim", "--until",
		"2999-01-01"); code != 0 {
		t.Fatalf("exit %d\n%s", code, errOut)
	}
	if code, out, errOut = typed(t, nil, "gate", "--dump", worse); code != 0 || !strings.Contains(out, "accepted") {
		t.Errorf("accepted: exit %d\n%s%s", code, out, errOut)
	}
	if code, out, errOut = typed(t, nil, "baseline", "show"); code != 0 || !strings.Contains(out, "3 runs") ||
		!strings.Contains(out, "com.shop.CartActivity, held by CartBus.listeners: 2, 4, 6") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

// The default baseline is in the current directory, even if the config file is
// in another one.
func TestGateConfigElsewhere(t *testing.T) {
	dir := inFolder(t)
	if err := os.Mkdir("ci", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("ci/run.yaml",
		[]byte("version: 1\napp: { package: com.shop }\nworkload: none\nduration: 8h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	base, worse := looped(t, dir, "base", true, map[string]int{"CartActivity": 2}),
		looped(t, dir, "worse", true, map[string]int{"CartActivity": 2, "WishActivity": 1})
	if code, _, errOut := typed(t, nil, "baseline", "update", "--dump", base, "--config", "ci/run.yaml"); code != 0 {
		t.Fatalf("exit %d\n%s", code, errOut)
	}
	for _, more := range [][]string{nil, {"--config", "ci/run.yaml"}} {
		if code, out, errOut := typed(t, nil, append([]string{"gate", "--dump", worse}, more...)...); code != 1 ||
			!strings.Contains(out, "1 new leak") {
			t.Errorf("%v: exit %d\n%s%s", more, code, out, errOut)
		}
	}
}

// A new screen in a known list is a separate leak.
func TestGateWider(t *testing.T) {
	dir := inFolder(t)
	base := looped(t, dir, "base", false, map[string]int{"ListActivity": 3})
	if code, _, errOut := typed(t, nil, "baseline", "update", "--dump", base); code != 0 {
		t.Fatal(errOut)
	}
	code, out, errOut := typed(t,
		nil, "gate", "--dump",
		looped(t, dir, "head", false, map[string]int{"ListActivity": 3, "WishActivity": 1}), "--json")
	var c comparison.Comparison
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != 1 || c.Leaks[0].Status != comparison.Wider ||
		!strings.Contains(c.Leaks[0].StatusReason, "WishActivity") {
		t.Errorf("exit %d, %v\n%s%s", code, err, out, errOut)
	}
}

// A gate without a verdict writes no reports: an empty report would close the
// findings of earlier ones.
func TestGateReportsNeedAVerdict(t *testing.T) {
	dir := inFolder(t)
	dumps := looped(t, dir, "a", true, map[string]int{"CartActivity": 1})
	one, _, _ := strings.Cut(dumps, ",")
	for dump, judged := range map[string]bool{one: false, dumps: true} {
		code, out, errOut := typed(t, nil, "gate", "--dump", dump, "--code-quality", "q.json", "--sarif", "x.sarif")
		for _, name := range []string{"q.json", "x.sarif"} {
			_, err := os.Stat(name)
			if (err == nil) != judged || strings.Contains(errOut, "no verdict: "+name+" not written") == judged {
				t.Errorf("judged %v: exit %d, %s: %v\n%s%s", judged, code, name, err, out, errOut)
			}
			_ = os.Remove(name) // the other case starts without the file
		}
	}
}

// Each problem causes its own exit code and a message with advice.
func TestGateErrors(t *testing.T) {
	dir := inFolder(t)
	dumps := looped(t, dir, "a", true, map[string]int{"CartActivity": 1})
	one, _, _ := strings.Cut(dumps, ",")
	if err := os.WriteFile("broken.json", []byte(`{"schema":"leakgate.baseline/9"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("junit.xml", []byte(`<testsuite tests="1"><testcase name="a" classname="b"/></testsuite>`),
		0o600); err != nil {
		t.Fatal(err)
	}
	var later []string
	for i := range 3 {
		later = append(later, fmt.Sprintf("later-%d.hprof", i))
		if err := os.WriteFile(later[i],
			closedScreens(t, map[string]int{"CartActivity": i + 1}, true, time.Now().AddDate(1, 0, i)),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"dumps from the future": {
			[]string{"baseline", "update", "--dump", "com.shop=" + strings.Join(later, ",")}, 2,
			"which is in the future",
		},
		"nothing":        {[]string{"gate"}, 2, "nothing to judge"},
		"two sources":    {[]string{"gate", "--run", "x", "--dump", dumps}, 2, "cannot be used together"},
		"no run":         {[]string{"gate", "--run", "nowhere"}, 2, "no such file or directory"},
		"no process":     {[]string{"gate", "--dump", "a.hprof"}, 2, "PROCESS=FILE"},
		"a missing dump": {[]string{"gate", "--dump", dumps + ",x.hprof"}, 2, "x.hprof"},
		"same dump twice": {
			[]string{"gate", "--dump", one + "," + strings.TrimPrefix(one, "com.shop=")}, 2, "duplicate file",
		},
		"not a dump":             {[]string{"gate", "--dump", "com.shop=broken.json"}, 6, "broken.json"},
		"too few dumps":          {[]string{"gate", "--dump", one}, 5, "nothing could be judged"},
		"too few dumps, allowed": {[]string{"gate", "--dump", one, "--allow-unjudged"}, 0, ""},
		"a corrupt baseline": {
			[]string{"gate", "--dump", dumps, "--baseline", "file:broken.json"}, 2, "its schema is",
		},
		"missing baseline": {
			[]string{"gate", "--dump", dumps, "--baseline", "file:leak-baselin.json"}, 0,
			"file:leak-baselin.json has no base runs",
		},
		"an unknown store": {[]string{"gate", "--dump", dumps, "--baseline", "broken.json"}, 2, "file:"},
		"missing file of accepted leaks": {
			[]string{"gate", "--dump", dumps, "--accepted", "none.yaml"}, 2, "none.yaml",
		},
		"not a LeakCanary report": {
			[]string{"gate", "--leakcanary", "junit.xml"}, 5, "a test that passes prints neither",
		},
		"accept without a key": {[]string{"accept"}, 2, "want one leak key"},
		"accept a class name": {
			[]string{"accept", "CartActivity", "--reason", "r", "--owner", "o", "--until", "2999-01-01"}, 2,
			"hexadecimal",
		},
		"accept until a past date": {
			[]string{"accept", "d97295ca", "--reason", "r", "--owner", "o", "--until", "2001-01-01"}, 2,
			"is in the past",
		},
		"show without a key":     {[]string{"show", dir}, 2, "want a run directory"},
		"comment without a gate": {[]string{"comment", "--run", dir, "--dry-run"}, 2, "has no gate.json"},
		"baseline":               {[]string{"baseline"}, 2, "Usage"},
		"baseline from one dump": {[]string{"baseline", "update", "--dump", one}, 5, "not added to the baseline"},
		"pin without runs":       {[]string{"baseline", "pin", "4.1"}, 2, "no good run"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := typed(t, nil, c.args...)
			if code != c.code || !strings.Contains(out+errOut, c.want) {
				t.Errorf("exit %d, want %d with %q\n%s%s", code, c.code, c.want, out, errOut)
			}
		})
	}
}
