package main

import (
	"errors"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// measured returns the full plan with two Android dumps. Each row has the
// figures of three rounds. The times and the memory of leakgate equal those of
// its peers, multiplied by factor.
func measured(t *testing.T, factor float64) *plan {
	t.Helper()
	p := newPlan(options{rounds: 3, testdata: android(t)})
	for _, j := range p.jobs {
		d := j.dump
		if d.asked > 0 {
			d.objects, d.bytes = d.asked, d.asked*53
		}
		wall, peak := time.Duration(d.objects)*1000, d.objects*30
		if d.objects == 0 {
			wall, peak = androidLimit, 20e6
		}
		if j.tool.name == ours || j.tool.name == reading || j.tool.name == tracing || j.tool.name == growing {
			wall, peak = time.Duration(float64(wall)*factor), int64(float64(peak)*factor)
		}
		told := &phases{Phases: []phase{{"search", 3, 0}, {"report", 9, 0}, {"find paths", 1, 0}}}
		j.figures = []figure{
			{wall: wall / 2, peak: peak / 2, phases: told}, {wall: wall, peak: peak, phases: told},
			{wall: wall * 2, peak: peak, phases: told},
		}
	}
	return p
}

func states(p *plan) string {
	var all []string
	for _, v := range p.verdicts() {
		all = append(all, string(v.state))
	}
	return strings.Join(all, " ")
}

// set changes the wall times of the rows that match.
func (p *plan) set(pattern string, change func(*job)) {
	for _, j := range p.jobs {
		if regexp.MustCompile(pattern).MatchString(j.name()) {
			change(j)
		}
	}
}

func times(by float64) func(*job) {
	return func(j *job) {
		for i := range j.figures {
			j.figures[i].wall = time.Duration(float64(j.figures[i].wall) * by)
		}
	}
}

// The bars are in this order: mid time, mid memory, big time, mid reading, big
// reading, traces, memory of growth, growth, phone, tablet.
func TestVerdicts(t *testing.T) {
	missing := func(j *job) { j.tool.missing = "cargo is not installed" }
	failed := func(j *job) { j.failed = "exit status 6" }
	for _, c := range []struct {
		name   string
		factor float64
		change func(*plan)
		want   string
	}{
		{"fast", 0.1, nil, "met met met met met met met met met met"},
		{"slow", 10, nil, "missed missed missed missed missed met met met missed missed"},
		{"exactly on the first bar", 0.25, nil, "met met met met met met met met met met"},
		{"just above the first bar", 0.2501, nil, "missed met met met met met met met met met"},
		{"on the memory bar, above the other bars", 1, nil, "missed met missed met met met met met missed missed"},
		{"exactly on the reading bars", 1.5, nil, "missed missed missed met met met met met missed missed"},
		{"just above the reading bars", 1.5001, nil, "missed missed missed missed missed met met met missed missed"},
		{"no peers", 0.1, func(p *plan) { p.set("hprof-", missing) }, "open open open open open met met met met met"},
		{
			"no peers, slow", 10, func(p *plan) { p.set("hprof-", missing) },
			"open open open open open met met met missed missed",
		},
		{"no hprof-slurp", 0.1, func(p *plan) { p.set("slurp", missing) }, "met met met open open met met met met met"},
		{
			"a peer fails", 0.1, func(p *plan) { p.set("big hprof-analyzer", failed) },
			"met met open met met met met met met met",
		},
		{
			"leakgate fails", 0.1, func(p *plan) { p.set("^mid leakgate$", failed) },
			"missed missed met met met met open missed met met",
		},
		{
			"leakgate fails, no peer is installed", 0.1,
			func(p *plan) { p.set("hprof-", missing); p.set("leakgate", failed) },
			"missed missed missed missed missed missed missed missed missed missed",
		},
		{
			"no dump", 0.1, func(p *plan) { p.set("^18M", func(j *job) { j.dump.missing = "javac is not installed" }) },
			"met met met met met met met open met met",
		},
		{
			"nothing measured", 0.1, func(p *plan) { p.set("", func(j *job) { j.figures = nil }) },
			"open open open open open open open open open open",
		},
		{"nothing planned", 0.1, func(p *plan) { p.jobs = nil }, "open open open open open open open open open open"},
		{
			"memory unknown", 0.1, func(p *plan) { p.set("mid", func(j *job) { j.figures[2].peak = 0 }) },
			"met open met met met met open met met met",
		},
		{
			"one run uses too much memory", 0.9,
			func(p *plan) { p.set("mid leakgate$", func(j *job) { j.figures[0].peak *= 3 }) },
			"missed missed missed met met met met met met met",
		},
		{
			"one slow run", 0.1, func(p *plan) { p.set("leakgate", func(j *job) { j.figures[2].wall *= 100 }) },
			"met met met met met met met met met met",
		},
		{
			"growth just met", 0.1, func(p *plan) { p.set("18M", times(2.41)) },
			"met met met met met met met met met met",
		},
		{
			"growth missed", 0.1, func(p *plan) { p.set("18M", times(2.43)) },
			"met met met met met met met missed met met",
		},
		{"quadratic", 0.001, func(p *plan) {
			for _, j := range p.jobs {
				times(float64(j.dump.objects) / 1e6)(j)
			}
		}, "met met met met met met met missed met met"},
		{"traces too slow", 0.1, func(p *plan) {
			p.set("big leakgate, leaks", func(j *job) {
				j.figures[1].phases = &phases{Phases: []phase{{"search", 2.9, 0}, {"read fields", 1, 0}}}
			})
		}, "met met met met met missed met met met met"},
		{
			"no phases", 0.1,
			func(p *plan) { p.set("big leakgate, leaks", func(j *job) { j.figures[1].phases = nil }) },
			"met met met met met open met met met met",
		},
		{"growth uses too much memory", 0.1, func(p *plan) {
			p.set("mid leakgate, growth", func(j *job) { j.figures[2].peak = j.figures[2].peak*2 + 1 })
		}, "met met met met met met missed met met met"},
	} {
		p := measured(t, c.factor)
		if c.change != nil {
			c.change(p)
		}
		if got := states(p); got != c.want {
			t.Errorf("%s: %s, want %s\n%+v", c.name, got, c.want, p.verdicts())
		}
		for _, v := range p.verdicts() {
			if v.measured == "" || v.bar == "" {
				t.Errorf("%s: %+v", c.name, v)
			}
		}
	}
}

// TestGrowth checks that n log n passes the bar and n^1.25 does not.
func TestGrowth(t *testing.T) {
	for _, c := range []struct {
		cost func(n float64) float64
		want state
	}{
		{func(n float64) float64 { return n }, met},
		{func(n float64) float64 { return n * math.Log(n) }, met},
		{func(n float64) float64 { return n * math.Log(n) * math.Pow(n, 0.18) }, met},
		{func(n float64) float64 { return n * math.Log(n) * math.Pow(n, 0.2) }, missed},
		{func(n float64) float64 { return math.Pow(n, 1.3) }, missed},
	} {
		p := measured(t, 1)
		p.set(" leakgate$", func(j *job) {
			j.figures = []figure{{wall: time.Duration(100 * c.cost(float64(j.dump.objects)))}}
		})
		if v := p.growth(); v.state != c.want {
			t.Errorf("%+v, want %s", v, c.want)
		}
	}
}

func TestReport(t *testing.T) {
	for _, c := range []struct {
		states []state
		check  bool
		want   int
	}{
		{[]state{met, open}, true, 0},
		{[]state{met, missed, open}, true, 1},
		{[]state{met, missed, open}, false, 0},
		{nil, true, 0},
	} {
		var verdicts []verdict
		for _, s := range c.states {
			verdicts = append(verdicts, verdict{"bar", "figure", s})
		}
		var log strings.Builder
		if got := report(verdicts, c.check, &log); got != c.want ||
			strings.Count(log.String(), "bar: figure") != len(c.states) {
			t.Errorf("%v: %d, printed:\n%s", c, got, log.String())
		}
	}
}

// TestTables checks that every row has as many cells as the header of its
// table, both with and without figures.
func TestTables(t *testing.T) {
	full, empty := measured(t, 0.1), measured(t, 0.1)
	full.set(" leakgate$", func(j *job) {
		j.figures[1].phases = &phases{Edges: 83e6, Phases: []phase{{"read|again", 1.5, 2e9}, {"dominators", 2, 0}}}
	})
	full.set("big hprof-analyzer", func(j *job) { j.failed = "timed out after 10m0s" })
	empty.set("", func(j *job) { j.tool.missing = "mvn is not installed" })
	for _, p := range []*plan{full, empty} {
		width := 0
		for _, line := range strings.Split(p.markdown("a machine"), "\n") {
			n := strings.Count(line, "|")
			if width > 0 && n > 0 && n != width {
				t.Errorf("got %d cells, want %d: %s", n-1, width-1, line)
			}
			width = n
		}
	}
	text := full.markdown("a machine")
	for _, want := range []string{
		"Measured on a machine; 3 rounds.",
		"| mid | leakgate | 3 | 0.937 | 0.469 | 0.000 | 28 | 3 |",
		"| mid | hprof-analyzer 0.3.2 | 3 | 9.37 | 4.69 | 0.000 | 281 | 30 |",
		"| big | hprof-slurp 0.10.0 | 3 | 36.5 | 18.2 |",
		"| big | hprof-analyzer 0.3.2 | - | - | - | - | - | - |",
		"| mid | leakgate | 83.00 | read again | 1.50 | 2000 |",
		"| mid | leakgate | 83.00 | dominators | 2.00 | ? |",
		"| phone | Shark 2.14 | 3 | 0.200 | 0.100 | 0.000 | 20 |",
		"* big, hprof-analyzer 0.3.2: timed out after 10m0s\n",
		"\n* mid: 497 MB, 9.37 million objects\n",
		"| mid: time at most a quarter of hprof-analyzer's | 0.937 s of 9.37 s = 0.10 | met |",
		"| big: time at most a third of hprof-analyzer's | hprof-analyzer: timed out after 10m0s | open |",
		"| 1M | 1.00 | 0.100 | 100 | 1.00 |",
		"| big | 36.50 | 3.65 | 100 | 0.79 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if n := strings.Count(empty.markdown("a machine"), ": mvn is not installed\n"); n != len(empty.jobs) {
		t.Errorf("%d of %d rows state why their figures are missing, want all", n, len(empty.jobs))
	}
}

func TestReplaced(t *testing.T) {
	page := "a\n" + fromMarker + "old\n" + toMarker + "\nb\n"
	got, err := replaced([]byte(page), "new\n")
	if want := "a\n" + fromMarker + "new\n" + toMarker + "\nb\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{
		"", fromMarker, toMarker, toMarker + "\n" + fromMarker, page + page, fromMarker + fromMarker + toMarker,
	} {
		if _, err := replaced([]byte(bad), "new\n"); err == nil {
			t.Errorf("%q: accepted, want an error", bad)
		}
	}
	if err := writePage(t.TempDir()+"/none.md", ""); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestFigures(t *testing.T) {
	all := []figure{{wall: 4, peak: 1}, {wall: 1, peak: 9}, {wall: 3, peak: 2}, {wall: 2, peak: 3}}
	if middle(all).wall != 2 || middle(all[:3]).wall != 3 || middle(all[:1]).wall != 4 || fastest(all) != 1 ||
		largest(all) != 9 {
		t.Errorf("%v %v %v %v %d", middle(all), middle(all[:3]), middle(all[:1]), fastest(all), largest(all))
	}
	if all[0].wall != 4 {
		t.Error("middle or fastest changed the order of the figures")
	}
	for d, want := range map[time.Duration]string{
		0: "0.000", 34_400_000: "0.034", 999e6: "0.999", 1e9: "1.00", 9_994e6: "9.99", 22_050e6: "22.1",
	} {
		if got := seconds(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
