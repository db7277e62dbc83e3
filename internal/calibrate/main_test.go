package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// texts runs the measurement and returns the printed tables.
func texts(o options, workers int, b *bars) string {
	tables := chosen(o)
	measure(tables, o.seed, workers, io.Discard)
	var out strings.Builder
	for _, t := range tables {
		out.WriteString(t.markdown(b))
	}
	return out.String()
}

// TestWorkers checks that the figures depend only on the seed, not on the
// number of workers or on what else is measured.
func TestWorkers(t *testing.T) {
	// One row of each table, with runs of 1 h or 2 h except in the first table.
	o := must(t, "-runs", "6", "-detections", "4", "-only", `^iid s50(, 1 h)?$|loops|300 MB/h, gap of 10|^1$`)
	one, four := texts(o, 1, &bars{}), texts(o, 4, &bars{})
	if one != four || strings.Count(one, "\n") < 12 {
		t.Errorf("one worker:\n%s\nfour:\n%s", one, four)
	}
	o.tables = []string{"alarms"}
	if alone := texts(o, 2, &bars{}); !strings.HasPrefix(one, alone) {
		t.Errorf("rows measured alone:\n%s\nwith other rows:\n%s", alone, one)
	}
	o.tables, o.seed = nil, 2
	if other := texts(o, 2, &bars{}); strings.ReplaceAll(other, "Seed 2", "Seed 1") == one {
		t.Error("another seed produces the same figures")
	}
	a, b := source(1, "t", "r", 1).Uint64(), source(1, "t", "r", 2).Uint64()
	if a == b || a != source(1, "t", "r", 1).Uint64() || a == source(1, "t", "r1", 0).Uint64() ||
		a == source(2, "t", "r", 1).Uint64() {
		t.Error("runs share their random numbers")
	}
}

// A row that was renamed must keep its random numbers, and so its figures.
func TestRenamedRowsKeepTheirSeeds(t *testing.T) {
	for first, now := range map[string]string{
		"app, 0 MB/h, restart each 25 min":           "app, 0 MB/h, restart every 25 min",
		"80 MB lumps, one in 2 h":                    "80 MB lumps, one every 2 h",
		"app, 0 MB/h, holes of 28 min each hour":     "app, 0 MB/h, gaps of 28 min every hour",
		"teeth of 200 to 300 MB, each 60 to 120 min": "teeth of 200 to 300 MB, every 60 to 120 min",
		"refill of 60 to 150 MB, trimmed each hour":  "refill of 60 to 150 MB, trimmed every hour",
		"app, 50 MB/h from 4 h on":                   "app, 50 MB/h starting at 4 h",
		"1 MB a loop":                                "1 MB per loop",
		"step +80 anywhere, AR 0.7 s20":              "step +80 at any time, AR 0.7 s20",
		"40 MB lumps, one in 1 h":                    "40 MB lumps, one per hour",
		"1 steps of 40 to 80 MB anywhere":            "1 step of 40 to 80 MB at any time",
		"each tenth sample lost":                     "every tenth sample lost",
		"a sample each 15 s":                         "a sample every 15 s",
	} {
		if source(1, "t", first, 0).Uint64() != source(1, "t", now, 0).Uint64() {
			t.Errorf("the random numbers of %q differ from those of %q", now, first)
		}
	}
}

func must(t *testing.T, args ...string) options {
	t.Helper()
	o, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestTables checks that the rows of each table have unique names, and as many
// cells as the table's header, whatever the results of the runs.
func TestTables(t *testing.T) {
	for _, table := range chosen(must(t)) {
		names := map[string]bool{}
		for _, r := range table.rows {
			if names[r.name] {
				t.Errorf("%s has two rows %q: they would have the same random numbers", table.name, r.name)
			}
			names[r.name] = true
			if r.runs < 1 || r.hours <= 0 {
				t.Errorf("%s, %s: %d runs of %g h", table.name, r.name, r.runs, r.hours)
			}
		}
	}
	for _, made := range chosen(
		must(t, "-runs", "1", "-detections", "1", "-only",
			`^iid s5$|^iid s5: 600|s20: 600|lumps|gpu 300|no leak, AR 0.7 s5, 1|^1$|iid s5, 1 h|loops`)) {
		measure([]table{made}, 1, 2, io.Discard)
		for _, line := range strings.Split(strings.TrimSpace(made.markdown(&bars{})), "\n")[2:] {
			if strings.Count(line, "|") != len(made.head)+1 {
				t.Errorf("%s: %s", made.name, line)
			}
		}
	}
}

// TestKnownRates compares how often the article policy reports a leak with the
// figures of another simulation of the article's rules (300 runs per row
// without a leak, 100 with one).
func TestKnownRates(t *testing.T) {
	known := map[string]int{ // percentage of 8-hour runs in which the article's policy reports a leak
		"iid s5": 0, "AR 0.7 s20": 1, "random walk 20": 22, "warm-up 200 tau 10": 100, "sine 60 per 20 min": 0,
		"sine 60 per 60 min":   35,
		"GC saw 60 per 15 min": 0, "GC saw 80 per 90 min": 55, "cache 100 in 180 min": 78, "realistic": 73,
	}
	runs, seen := 24, 0
	if racing {
		runs = 12
	}
	for _, s := range scenario.Null(whole) {
		percent, ok := known[s.Name]
		if !ok {
			continue
		}
		seen++
		hits := 0
		for i := range runs {
			if article().end(&s, source(1, "known", s.Name, i)).gate == detector.Leak {
				hits++
			}
		}
		// The other simulation differs in spikes and in the GPU path, so a
		// difference of up to 5 percentage points is allowed.
		p := float64(percent) / 100
		if tail(hits, runs, min(1, p+0.05)) < surprise || tail(runs-hits, runs, min(1, 1-p+0.05)) < surprise {
			t.Errorf("%s: %d of %d runs, want about %d %%", s.Name, hits, runs, percent)
		}
	}
	if seen != len(known) {
		t.Errorf("found %d of %d rows", seen, len(known))
	}
	for name, median := range map[string]float64{
		"iid s5: 600 MB/h": 21, "iid s5: 100 MB/h": 30, "iid s20: 300 MB/h": 32, "AR 0.7 s20: 300 MB/h": 28,
	} {
		all := scenario.Leaks(0, 2)
		s := all[slices.IndexFunc(all, func(s scenario.Scenario) bool { return s.Name == name })]
		var times []float64
		for i := range runs {
			times = append(times, article().end(&s, source(1, "known", s.Name, i)).leaking)
		}
		if got := quantile(times, 0.5); got < 0.8*median || got > 1.25*median {
			t.Errorf("%s: LEAKING after %.0f min, want about %.0f", name, got, median)
		}
	}
}

// TestArguments checks that invalid arguments are reported before anything is
// measured.
func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		`unknown table "x": want alarms`:    {"-tables", "alarms,x"},
		"parse -only: error parsing regexp": {"-only", "("},
		"-write needs entire tables":        {"-only", "iid", "-write", "page"},
		"at least 1":                        {"-runs", "0"},
		`unexpected argument "more"`:        {"more"},
		"find rows: no row of these tables": {"-only", "no such row"},
	} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 || !strings.Contains(errs.String(), want) || out.Len() > 0 {
			t.Errorf("%q: exit %d, %q", args, code, errs.String())
		}
	}
}

// TestRun checks the figures, the page, the bars and the exit code.
func TestRun(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("# x\n<!-- calibrate:family -->\n<!-- /calibrate:family -->\nend\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := run([]string{"-tables", "family", "-runs", "1", "-write", page}, &out, &errs)
	got, err := os.ReadFile(page)
	if code != 0 || err != nil || !strings.Contains(string(got), "-->\n3 processes a row") &&
		!strings.Contains(string(got), "| 100 | 3 |") {
		t.Errorf("exit %d, %v, page:\n%s", code, err, got)
	}
	text, _ := strings.CutPrefix(out.String(), "### family\n\n")
	if !strings.Contains(string(got), strings.TrimSpace(text)) ||
		!strings.HasSuffix(string(got), "<!-- /calibrate:family -->\nend\n") {
		t.Errorf("printed:\n%s\npage:\n%s", out.String(), got)
	}
	errs.Reset()
	if code := run([]string{"-tables", "family", "-runs", "1", "-only", "^1$", "-check"}, io.Discard,
		&errs); code != 0 || !strings.Contains(errs.String(), "all bars are met") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	errs.Reset()
	if code := report([]string{"alarms, iid s5: leak"}, &errs); code != 1 ||
		!strings.Contains(errs.String(), "missed: alarms, iid s5: leak\n") ||
		!strings.Contains(errs.String(), "1 bars") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	if code := run([]string{"-tables", "late", "-detections", "1", "-write", page}, io.Discard, &errs); code != 1 ||
		!strings.Contains(errs.String(), "find marker <!-- calibrate:late -->") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
