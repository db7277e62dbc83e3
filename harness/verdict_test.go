package harness

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/hub"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/onsi/ginkgo/v2/types"
)

// leakyEntry returns the entry of a spec with the given number of leaks and the
// given number of lines in each trace.
func leakyEntry(leaks, lines int) SpecEntry {
	p := record.CheckedProcess{
		Process: "com.cart", PID: 42, Verdict: record.VerdictLeak, Folder: "artifacts/com.cart/1",
	}
	for n := range leaks {
		l := record.CheckedLeak{
			DumpLeak: record.DumpLeak{Key: fmt.Sprintf("%016d", n), Name: "CheckoutActivity"}, New: 1,
		}
		for i := range lines {
			l.Trace = append(l.Trace, fmt.Sprintf("leak %d, line %d", n, i+1))
		}
		p.Leaks = append(p.Leaks, l)
	}
	return SpecEntry{
		Check: record.Check{
			Name: "spec", Location: "cart_test.go:7", Verdict: record.VerdictLeak, Text: "com.cart: leaks",
			Processes: []record.CheckedProcess{p},
		}, Run: "runs/1",
	}
}

// The console shows the content of an entry.
func TestEntryText(t *testing.T) {
	death := record.Death{PID: 42, Reason: "crash", Text: "boom"}
	fault := record.Death{PID: 43, Reason: "anr", Text: "input timed out"}
	one := func(verdict record.CheckVerdict, text string) SpecEntry {
		return SpecEntry{Check: record.Check{Verdict: verdict, Text: text}}
	}
	died := one(record.VerdictPass, "com.cart: no more objects")
	died.Processes = []record.CheckedProcess{
		{
			Process: "com.cart", Deaths: []record.Death{death}, Faults: []record.Death{fault},
			Older: []record.CheckedLeak{{DumpLeak: record.DumpLeak{Name: "A", Count: 2}, New: 2}},
		},
	}
	expired := one(record.VerdictPass, "com.cart: no more objects")
	expired.Expired = []string{"A (SHOP-1)"}
	for want, c := range map[string]struct {
		e       SpecEntry
		visible bool
	}{
		"pass: com.cart: no more objects": {one(record.VerdictPass, "com.cart: no more objects"), false},
		"leak: com.cart: leaks":           {one(record.VerdictLeak, "com.cart: leaks"), true},
		"known: com.cart: leaks":          {one(record.VerdictKnown, "com.cart: leaks"), true},
		"inconclusive: com.cart: no dump": {one(record.VerdictInconclusive, "com.cart: no dump"), true},
		"not checked: no process":         {one(record.VerdictNotChecked, "not checked: no process"), true},
		"skipped: SHOP-1":                 {one(record.VerdictSkipped, "skipped: SHOP-1"), false},
		"pass: com.cart: no more objects\nexpired exception: A (SHOP-1)": {expired, true},
		"pass: com.cart: no more objects\ncom.cart, pid 42: crash: boom\ncom.cart, pid 43: anr: input timed " +
			"out\ncom.cart: leaked before this spec: 2 x A (0 bytes retained)": {died, true},
	} {
		if got := c.e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := visibility(c.e, false) == types.ReportEntryVisibilityAlways; got != c.visible {
			t.Errorf("%q always visible: %v", want, got)
		}
		if visibility(c.e, true) != types.ReportEntryVisibilityAlways {
			t.Errorf("%q fails but is not always visible", want)
		}
	}
}

// An entry decoded from JSON equals the one that was encoded, including the
// fields of the check.
func TestEntryJSON(t *testing.T) {
	e := leakyEntry(2, 3)
	e.Expired = []string{"x"}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil || fields["verdict"] != "leak" || fields["run"] != "runs/1" ||
		fields["expired"] == nil {
		t.Errorf("%v, %v", fields, err)
	}
	var again SpecEntry
	if err := json.Unmarshal(text, &again); err != nil || again.String() != e.String() ||
		len(again.Processes[0].Leaks[1].Trace) != 3 {
		t.Errorf("%+v, %v", again, err)
	}
}

// The failure message of a spec begins with the verdict, where it was checked
// and where the evidence is; then it contains the trace of the first leak that
// is not accepted. The message fits on one screen.
func TestFailureText(t *testing.T) {
	l := &Leaks{}
	e := leakyEntry(3, 1000)
	e.Processes[0].Leaks[0].Known = "SHOP-1"
	lines := strings.Split(l.failure(e), "\n")
	for i, want := range []string{
		"leak: com.cart: leaks", "checked at cart_test.go:7", "evidence in runs/1/artifacts/com.cart/1",
		`accept it with leaks.Known(harness.Key("00000000"), reason, owner, harness.Until(year, month, day))`, "",
		"leak 1, line 1",
	} {
		if lines[i] != want {
			t.Errorf("line %d is %q, want %q", i+1, lines[i], want)
		}
	}
	if last := lines[len(lines)-1]; last != "... 960 more lines" || len(lines) > shownScreen ||
		strings.Contains(strings.Join(lines, ""), "leak 2, line") {
		t.Errorf("got %d lines, the last %q, want \"... 960 more lines\" after one leak", len(lines), last)
	}
	if len(e.Processes[0].Leaks[1].Trace) != 1000 || e.Processes[0].Leaks[1].Trace[shownTrace] != "leak 1, line 41" {
		t.Error("truncating the message changed the trace of the entry")
	}
	for n := range 200 {
		text := strings.TrimSuffix(strings.Repeat("x\n", n), "\n")
		if got := screen(text); strings.Count(got, "\n") > shownScreen || n <= shownScreen && got != text {
			t.Errorf("string of %d lines was truncated to %q", n, got)
		}
	}
	short := leakyEntry(1, 0)
	short.Processes[0].Leaks[0].Key = "abc"
	if got := l.failure(short); !strings.Contains(got, `harness.Key("abc")`) {
		t.Errorf("%q", got)
	}
}

// This checks which verdicts fail a spec, by default and in strict mode.
func TestFailingChecks(t *testing.T) {
	for _, c := range []struct {
		verdict         record.CheckVerdict
		fails, strictly bool
	}{
		{record.VerdictPass, false, false}, {record.VerdictKnown, false, false}, {record.VerdictSkipped, false, false},
		{record.VerdictLeak, true, true}, {record.VerdictInconclusive, false, true},
		{record.VerdictNotChecked, false, true},
	} {
		e := SpecEntry{Check: record.Check{Verdict: c.verdict}}
		l := &Leaks{}
		if l.fails(e, false) != c.fails || l.fails(e, true) != c.strictly {
			t.Errorf("%s: %v, strictly %v", c.verdict, l.fails(e, false), l.fails(e, true))
		}
		e.Expired = []string{"over"}
		if !l.fails(e, false) { // somebody should read the entry, whatever the verdict
			t.Errorf("%s with an expired exception does not fail", c.verdict)
		}
		l.settings.Observe = true
		if l.fails(e, true) {
			t.Errorf("%s fails in observe mode", c.verdict)
		}
	}
}

func TestLocationOf(t *testing.T) {
	for location, want := range map[string]string{
		"/a/b_test.go:12": "/a/b_test.go:12", `C:\a\b_test.go:7`: `C:\a\b_test.go:7`,
	} {
		if got := locationOf(location); fmt.Sprintf("%s:%d", got.FileName, got.LineNumber) != want {
			t.Errorf("%q is %v", location, got)
		}
	}
	for _, location := range []string{"", "b_test.go", "b_test.go:x"} {
		if got := locationOf(location); got.LineNumber <= 0 {
			t.Errorf("%q is %v", location, got)
		}
	}
}

// This checks which outcome is recorded for each final state of a Ginkgo spec.
func TestOutcome(t *testing.T) {
	for state, want := range map[types.SpecState]string{
		types.SpecStatePassed: record.OutcomePassed, types.SpecStateSkipped: record.OutcomeIgnored,
		types.SpecStatePending:     record.OutcomeIgnored,
		types.SpecStateInterrupted: record.OutcomeUnfinished, types.SpecStateAborted: record.OutcomeUnfinished,
		types.SpecStateFailed: record.OutcomeFailed, types.SpecStatePanicked: record.OutcomeFailed,
		types.SpecStateTimedout: record.OutcomeFailed,
	} {
		got, stack := outcomeOf(types.SpecReport{State: state, Failure: types.Failure{Message: "why"}})
		if got != want || (stack == "why") != state.Is(types.SpecStateFailureStates) {
			t.Errorf("%v is %s with %q", state, got, stack)
		}
	}
}

// A row of the live table shows only the known values of a process.
func TestRowText(t *testing.T) {
	r := hub.Standing{
		Process: "com.shop", PID: 7, State: detector.Leaking, MB: 100.26, Present: true, Answers: true,
		Age: 1500 * time.Millisecond, Rate: 90, RateKnown: true,
	}
	if got := rowText(r); got != "  com.shop  pid 7  LEAKING  100.3 MB  +90.0 MB/h  read 2s ago" {
		t.Errorf("%q", got)
	}
	r.RateKnown, r.Present = false, false
	if got := rowText(r); !strings.Contains(got, "not running") || !strings.Contains(got, "no rate yet") {
		t.Errorf("%q", got)
	}
	r.Answers, r.Process = false, strings.Repeat("x", 500)
	if got := rowText(r); !strings.Contains(got, "the device does not respond") || len(got) > 200 {
		t.Errorf("%q", got)
	}
}

// Decorators record where they are written, and reject empty arguments.
func TestDecorators(t *testing.T) {
	l := newLeaks("com.shop", nil)
	d := l.Check(Heap(), Of("com.shop:push"))
	at := d[0].(types.AroundNodeDecorator).CodeLocation
	s := l.checks[at]
	if s == nil || !s.heap || s.trend || s.live || !slices.Equal(s.patterns, []string{"com.shop:push"}) ||
		!strings.Contains(s.location, "verdict_test.go:") {
		t.Errorf("%+v", s)
	}
	if other := l.Check()[0].(types.AroundNodeDecorator).CodeLocation; other == at {
		t.Error("two decorators have the same location")
	}
	for name, decorate := range map[string]func(){
		"no reason to skip": func() { l.Skip(" ") },
		"no reason":         func() { l.Known(Class("A"), "", "anna", Until(2027, 3, 1)) },
		"no owner":          func() { l.Known(Class("A"), "SHOP-1", "", Until(2027, 3, 1)) },
		"no field":          func() { l.Known(Held("A"), "SHOP-1", "anna", Until(2027, 3, 1)) },
		"short key":         func() { l.Known(Key("1234567"), "SHOP-1", "anna", Until(2027, 3, 1)) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, "verdict_test.go:") {
					t.Errorf("%s: %q", name, text)
				}
			}()
			decorate()
		}()
	}
}
