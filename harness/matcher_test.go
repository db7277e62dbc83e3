package harness

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/hub"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

// sampled returns the state of a process that was read a short time ago.
func sampled(s detector.State, rate *Slope) ProcessState {
	return ProcessState{Process: "com.shop", PID: 7, State: s, MB: 100, Slope: rate, Because: "it grows"}
}

// The matchers describe values for both Should and ShouldNot, and return the
// expected errors.
func TestMatchers(t *testing.T) {
	leaky := &Dump{
		Process: "com.shop", Folder: "runs/1", Report: &analysis.Report{},
		Leaks: []record.DumpLeak{
			{Key: "k", Name: "CartActivity, held by A.b", Count: 2, Bytes: 2 << 20},
			{Key: "l", Name: "of a library", Library: true, Count: 9},
		},
	}
	clean := &Dump{Process: "com.shop", Folder: "runs/2", Report: &analysis.Report{}, Leaks: leaky.Leaks[1:]}
	unsure := &Dump{
		Process: "com.shop", Folder: "runs/3", Report: &analysis.Report{Undecided: []string{"the dump is truncated"}},
	}
	classes := &Dump{Process: "com.shop", Folder: "runs/4", Report: &analysis.Report{}}
	classes.Report.Classes = append(classes.Report.Classes,
		analysis.Class{Class: "com.shop.Cart", Instances: 3, RetainedBytes: 5000},
		analysis.Class{Class: "com.shop.Big", RetainedBytes: 5000, RetainedIsBound: true},
		analysis.Class{Class: "com.shop.Row", Instances: 9, RetainedBytes: 1000})
	steady := &Trip{Process: "com.shop", Verdict: record.VerdictPass, Text: "nothing grows"}
	growing := &Trip{Process: "com.shop", Verdict: record.VerdictLeak, Text: "Activities grow"}
	open := &Trip{Process: "com.shop", Verdict: record.VerdictInconclusive, Text: "the loop failed"}
	for name, c := range map[string]struct {
		m      types.GomegaMatcher
		actual any
		ok     bool
		// text is part of the error, or of the failure message of Should or
		// ShouldNot, whichever fails.
		text  string
		fails bool
	}{
		"leaking": {
			BeLeaking(), sampled(detector.Leaking, nil), true,
			"com.shop, pid 7: LEAKING, 100.0 MB, no rate yet: it grows\nexpected it not to be leaking", false,
		},
		"not leaking": {
			BeLeaking(), sampled(detector.Normal, nil), false,
			"com.shop, pid 7: NORMAL, 100.0 MB, no rate yet: it grows\nexpected it to be leaking", false,
		},
		"state": {
			HaveState(detector.Suspicious), sampled(detector.Normal, nil), false, "expected it to be SUSPICIOUS", false,
		},
		"slope below": {
			HaveSlopeBelow(20), sampled(detector.Normal, &Slope{5, 1, 19.9}), true, "+5.0 MB/h (+1.0 to +19.9)", false,
		},
		"slope not below": {
			HaveSlopeBelow(20), sampled(detector.Normal, &Slope{5, 1, 20}), false,
			"expected it to grow by less than 20 MB/h, with 95 % confidence", false,
		},
		"no slope": {
			HaveSlopeBelow(20), sampled(detector.Normal, nil), false, "the rate is still unknown", true,
		},
		"leaks": {
			HaveLeaks(), leaky, true,
			"the heap dump of com.shop in runs/1 has 2 x CartActivity, held by A.b (2.0 MB retained)\nexpected it " +
				"not to have leaks", false,
		},
		"library leaks": {
			HaveLeaks(), clean, false, "the heap dump of com.shop in runs/2 has no leak\nexpected it to have leaks",
			false,
		},
		"leaks not ruled out": {
			HaveLeaks(), unsure, false, "leaks cannot be ruled out: the dump is truncated", true,
		},
		"retained below": {
			HaveRetainedBelow("com.shop.Cart", 5001), classes, true, "3 objects of com.shop.Cart", false,
		},
		"retained not below": {
			HaveRetainedBelow("com.shop.Cart", 5000), classes, false, "retained by com.shop.Cart", false,
		},
		"retains at least 5 000 bytes": {
			HaveRetainedBelow("com.shop.Big", 5001), classes, false, "com.shop.Big retains at least 5 000 bytes", true,
		},
		"retained size of an unlisted class": {
			HaveRetainedBelow("com.shop.Other", 1001), classes, true, "is not among the 3 classes that retain the most",
			false,
		},
		"retained size unknown": {
			HaveRetainedBelow("com.shop.Other", 1000), classes, false,
			"is not among the classes that retain the most memory", true,
		},
		"growing trip": {
			HaveGrowingObjects(), growing, true, "expected it not to grow with every repetition",
			false,
		},
		"steady trip": {
			HaveGrowingObjects(), steady, false, "expected it to grow with every repetition", false,
		},
		"trip without a verdict": {
			HaveGrowingObjects(), open, false, "judge the trip of com.shop: the loop failed", true,
		},
		"another type": {BeLeaking(), 3, false, "want harness.ProcessState, got int", true},
		"nil":          {BeLeaking(), nil, false, "want harness.ProcessState, got <nil>", true},
		"no snapshot":  {HaveLeaked(nil), sampled(detector.Normal, nil), false, "the snapshot is nil", true},
		"other snapshot": {
			HaveLeaked(&Snapshot{Process: "com.other"}), sampled(detector.Normal, nil), false,
			"the snapshot is of com.other", true,
		},
		"asked": {
			BeLeaking(), func(context.Context) (ProcessState, error) { return sampled(detector.Leaking, nil), nil },
			true, "LEAKING", false,
		},
		"the function fails": {
			BeLeaking(), func(context.Context) (ProcessState, error) { return ProcessState{}, errors.New("no device") },
			false, "no device", true,
		},
	} {
		ok, err := c.m.Match(c.actual)
		if ok != c.ok || (err != nil) != c.fails {
			t.Errorf("%s: %v, %v", name, ok, err)
			continue
		}
		text := c.m.FailureMessage(c.actual)
		switch {
		case err != nil:
			text = err.Error()
		case ok:
			text = c.m.NegatedFailureMessage(c.actual)
		}
		if !strings.Contains(text, c.text) || strings.Count(text, "\n") > shownScreen+2 {
			t.Errorf("%s: %q, want %q", name, text, c.text)
		}
	}
}

// A nil dump or trip, as after a failed call, causes an error and not a panic.
func TestMatchersOfNil(t *testing.T) {
	for name, c := range map[string]struct {
		m      types.GomegaMatcher
		actual any
	}{"dump": {HaveLeaks(), (*Dump)(nil)}, "class": {HaveRetainedBelow("A", 1), (*Dump)(nil)},
		"trip": {HaveGrowingObjects(), (*Trip)(nil)}, "dump without a report": {HaveLeaks(), &Dump{}},
		"class without a report": {HaveRetainedBelow("A", 1), &Dump{}}} {
		if ok, err := c.m.Match(c.actual); ok || err == nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
}

// If a value has a final result, an Eventually ends immediately; otherwise it
// continues. Gomega ignores whether a result is final if it polls a function
// (internal/async_assertion.go).
func TestFinalAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed string
		g := gomega.NewGomega(func(message string, _ ...int) { failed = message })
		began := time.Now()
		g.Eventually(t.Context(), &Dump{Report: &analysis.Report{}}).WithTimeout(time.Hour).Should(HaveLeaks())
		if time.Since(began) > time.Second || !strings.Contains(failed, "has no leak") {
			t.Errorf("after %v: %s", time.Since(began), failed)
		}
		began, failed = time.Now(), ""
		g.Eventually(t.Context(), func() ProcessState { return sampled(detector.Normal, nil) }).
			WithTimeout(time.Minute).Should(BeLeaking())
		if time.Since(began) < time.Minute || !strings.Contains(failed, "expected it to be leaking") {
			t.Errorf("after %v: %s", time.Since(began), failed)
		}
		began, failed = time.Now(), ""
		g.Consistently(t.Context(), func() ProcessState { return sampled(detector.Leaking, nil) }).
			WithTimeout(time.Hour).ShouldNot(BeLeaking())
		if time.Since(began) > time.Second || !strings.Contains(failed, "expected it not to be leaking") {
			t.Errorf("after %v: %s", time.Since(began), failed)
		}
	})
}

// Matching a process that is not being read causes an error.
func TestStateOfRows(t *testing.T) {
	now := hub.Standing{
		Device: "S1", Process: "com.shop", PID: 7, State: detector.Leaking, MB: 5, Present: true, Answers: true,
		Age: time.Second, MaxAge: time.Minute, Rate: 3, RateLow: 1, RateHigh: 9, RateKnown: true,
	}
	change := func(do func(*hub.Standing)) []hub.Standing {
		row := now
		do(&row)
		return []hub.Standing{row}
	}
	for want, rows := range map[string][]hub.Standing{
		"":                                    {now},
		"read com.shop: it has not been seen": nil,
		"read com.shop: 2 processes match: name one of them": {now, now},
		"read com.shop: the device S1 does not respond":      change(func(r *hub.Standing) { r.Answers = false }),
		"read com.shop: it is not running":                   change(func(r *hub.Standing) { r.Present = false }),
		"read com.shop: it has not been sampled yet":         change(func(r *hub.Standing) { r.Age = -1 }),
		"read com.shop: the latest sample is 1m1s old": change(
			func(r *hub.Standing) { r.Age = 61 * time.Second }),
	} {
		s, err := (&Leaks{}).state("com.shop", rows)
		switch {
		case want == "" && (err != nil || s.PID != 7 || s.State != detector.Leaking || *s.Slope != Slope{3, 1, 9}):
			t.Errorf("%+v, %v", s, err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Only values that exist in both snapshots can grow.
func TestSnapshotGrowth(t *testing.T) {
	before := &Snapshot{
		Objects: map[string]int64{"Activities": 1, "Views": 9}, Threads: new(int64(5)), Files: new(int64(7)),
	}
	now := &Snapshot{
		Objects: map[string]int64{"Activities": 2, "Assets": 9}, Threads: new(int64(5)), Files: new(int64(8)),
	}
	var names []string
	for _, r := range snapshotGrowth(before, now) {
		names = append(names, r.Name)
	}
	if !slices.Equal(names, []string{"Activities", "open files"}) {
		t.Errorf("%q", names)
	}
	if got := snapshotGrowth(&Snapshot{}, now); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
