//go:build linux && realtime

package harness_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/reporters/record"
	"github.com/onsi/ginkgo/v2/types"
)

// A suite with a spec of each kind runs in one process and in three. Only specs
// that leak fail; their messages contain the class, holder and trace. The names
// of the tests are the same as in the suite without leakgate.
func TestSuiteIsChecked(t *testing.T) {
	plain := testNames(newBench(t).run(t, child{scenario: "shop", args: []string{"--dry-run"}, plain: true}))
	for name, args := range map[string][]string{"serial": nil, "3 processes": {"--procs=3"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			phone := demoPhone(t)
			r := newBench(t, phone).run(t, child{scenario: "shop", args: args})
			checkShop(t, r)
			if got := testNames(r); !slices.Equal(got, plain) || len(got) < 18 {
				t.Errorf("got test names %q\nwant, as without leakgate, %q", got, plain)
			}
			checkPhone(t, phone)
		})
	}
}

// testNames returns the names of the specs in the JUnit report.
func testNames(r result) []string {
	var out []string
	for _, c := range r.junit {
		if strings.HasPrefix(c.Name, "[It] ") {
			out = append(out, c.Name)
		}
	}
	slices.Sort(out)
	return out
}

// checkShop checks a run of the shop scenario.
func checkShop(t *testing.T, r result) {
	t.Helper()
	want := map[string]record.CheckVerdict{
		"cart opens the cart": record.VerdictPass, "cart opens a product": record.VerdictPass,
		"cart leaves another screen open": record.VerdictPass,
		"cart checks out":                 record.VerdictLeak, "cart opens the cart again": record.VerdictPass,
		"cart opens an accepted page":            record.VerdictKnown,
		"cart checks out after an accepted page": record.VerdictLeak,
		"cart opens a page that was accepted":    record.VerdictPass,
		"cart fails for another reason":          record.VerdictLeak,
		"cart passes on its third attempt":       record.VerdictLeak,
		"cart is not checked":                    record.VerdictSkipped,
		"cart opens the cart at the end":         record.VerdictPass,
		"cart item of the cart":                  record.VerdictPass, "cart item that leaks": record.VerdictLeak,
		"cart order is empty": record.VerdictPass, "cart order is paid": record.VerdictLeak,
		"cart is alone": record.VerdictPass,
	}
	if got := r.verdicts(t); !maps.Equal(got, want) {
		t.Errorf("got verdicts %v\nwant %v", got, want)
	}
	failed := []string{
		"cart checks out", "cart checks out after an accepted page", "cart fails for another reason",
		"cart item that leaks",
		"cart opens a page that was accepted", "cart order is paid", "cart passes on its third attempt",
	}
	if got := r.failures(); !slices.Equal(got, failed) || r.code != 1 {
		t.Errorf("exit %d, failed: %q\nwant %q", r.code, got, failed)
	}
	if s := r.spec(t, "order is sent"); s.State != types.SpecStateSkipped {
		t.Errorf("the spec after the leaking one has state %v, want skipped", s.State)
	}
	checkLeak(t, r)
	checkOwnFailure(t, r)
	checkExceptions(t, r)
}

// leakText is the beginning of the verdict on a spec that leaks one screen.
const leakText = "leak: com.cart: leaks 1 x CheckoutActivity, held by ScreenTracker.sScreens ("

// checkLeak checks the failure of a spec that leaks.
func checkLeak(t *testing.T, r result) {
	t.Helper()
	for _, name := range []string{"cart checks out", "order is paid", "item that leaks"} {
		s := r.spec(t, name)
		failure := s.Failure.Message
		if !strings.HasPrefix(failure, leakText) {
			t.Errorf("%s fails with:\n%s", name, failure)
		}
		assertContains(t, name, failure, "╰→ com.cart.CheckoutActivity instance", "↓ static ScreenTracker.sScreens",
			"evidence in "+r.folder, "leaks.Known(harness.Key(\"", "GC Root: ")
		assertContains(t, "the console", r.console, "[FAILED] "+strings.SplitN(failure, "\n", 2)[0])
		if n := strings.Count(failure, "\n"); n > 65 {
			t.Errorf("the failure message of %s has %d lines, want at most 65", name, n)
		}
		e := entry(t, s)
		if len(e.Processes) == 0 || len(e.Processes[0].Leaks) != 1 || e.Processes[0].Leaks[0].New != 1 ||
			e.Device == "" || e.Window == 0 || e.Readings == 0 {
			t.Errorf("%s: entry %+v", name, e)
		}
		checkLocation(t, failure)
	}
	if i := slices.IndexFunc(r.junit, func(c junitCase) bool { return c.Name == "[It] cart checks out" }); i < 0 ||
		r.junit[i].Failure == nil || !strings.HasPrefix(r.junit[i].Failure.Message, leakText) {
		t.Errorf("unexpected JUnit report: %+v", r.junit)
	}
}

// checkLocation checks that a failure message names a line that contains a
// check.
func checkLocation(t *testing.T, failure string) {
	t.Helper()
	_, rest, _ := strings.Cut(failure, "checked at ")
	at, _, _ := strings.Cut(rest, "\n")
	file, line, _ := strings.Cut(at, ".go:")
	// With -trimpath, the location begins with the import path of the package.
	if inside, ok := strings.CutPrefix(file, "github.com/leakgate/leakgate/"); ok {
		file = "../" + inside
	}
	text, err := os.ReadFile(file + ".go")
	if err != nil {
		t.Errorf("checked at %q: %v", at, err)
		return
	}
	for i, l := range strings.Split(string(text), "\n") {
		if line == strconv.Itoa(i+1) && strings.Contains(l, "leaks.Check(") {
			return
		}
	}
	t.Errorf("checked at %q, which has no check", at)
}

// checkOwnFailure checks a spec that leaks and also fails for another reason.
// Ginkgo reports that failure first, and the leak is in all other outputs.
func checkOwnFailure(t *testing.T, r result) {
	t.Helper()
	s := r.spec(t, "fails for another reason")
	if s.Failure.Message != "the total is wrong" {
		t.Errorf("unexpected failure %q", s.Failure.Message)
	}
	e := entry(t, s)
	assertContains(t, "the report entry", e.Text, "leaks 1 x CheckoutActivity")
	failed, verdict := r.verdict()
	if !failed {
		t.Error("the suite passes")
	}
	assertContains(t, "the verdict on the suite", verdict,
		"cart fails for another reason: com.cart: leaks 1 x CheckoutActivity",
		"leakgate: the suite fails", "the run is in "+r.folder)
	if n := strings.Count(r.console, "leaks 1 x CheckoutActivity"); n < 6 {
		t.Errorf("the console shows the leak %d times, want at least 6", n)
	}
	flaky := r.spec(t, "passes on its third attempt")
	if flaky.NumAttempts != 3 || !strings.HasPrefix(flaky.Failure.Message, leakText) {
		t.Errorf("after %d attempts: %s", flaky.NumAttempts, flaky.Failure.Message)
	}
}

// checkExceptions checks the verdicts on accepted leaks.
func checkExceptions(t *testing.T, r result) {
	t.Helper()
	accepted := entry(t, r.spec(t, "opens an accepted page"))
	assertContains(t, "the accepted page", accepted.Text,
		"only accepted leaks: 1 x LegacyActivity, held by LegacyPage.sInstance")
	if len(accepted.Processes) == 0 || len(accepted.Processes[0].Leaks) == 0 ||
		!strings.Contains(accepted.Processes[0].Leaks[0].Known, "SHOP-12, owner anna, until 2999-01-01") {
		t.Errorf("%+v", accepted)
	}
	beside := r.spec(t, "checks out after an accepted page")
	if !strings.HasPrefix(beside.Failure.Message, leakText) {
		t.Errorf("failure after an accepted page: got %s, want prefix %q", beside.Failure.Message, leakText)
	}
	over := r.spec(t, "opens a page that was accepted")
	assertContains(t, "an expired exception", over.Failure.Message,
		"expired exception: LegacyPage.sInstance (SHOP-11, owner anna, until 2020-01-01)")
	skipped := entry(t, r.spec(t, "is not checked"))
	if skipped.Text != "skipped: SHOP-13" {
		t.Errorf("%+v", skipped)
	}
	_, verdict := r.verdict()
	assertContains(t, "the verdict on the suite", verdict, "cart is not checked: skipped: SHOP-13",
		"cart opens an accepted page: com.cart: only accepted leaks",
		"17 checks: 9 passed, 6 leak, 1 known, 0 inconclusive, 0 not checked, 1 skipped")
}
