package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/harness/check"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/reporters/record"
)

func ruled(t *testing.T, path, written string) func(*Input) {
	t.Helper()
	rule, err := ParseRule(path, written)
	if err != nil {
		t.Fatal(err)
	}
	return func(in *Input) { in.Rules = []Rule{rule} }
}

// A baseline that contains only the judged run counts as empty. The text says
// so, and there is no warning about runs that cannot be compared.
func TestComparedWithItself(t *testing.T) {
	c := judge([]Observation{observed(9)}, observed(9))
	if len(c.Warnings) != 0 || !strings.Contains(c.Text, "the baseline has only this run") || c.Base.Others != 1 {
		t.Errorf("%q %q", c.Text, c.Warnings)
	}
}

// Every verdict has a sentence that explains it, whatever the exit code of the
// run.
func TestVerdictHasText(t *testing.T) {
	few := observed(20, leak("k", "A", kB, 3, 6))
	for _, exit := range []int{
		0, record.ExitLeak, record.ExitUnwritten, record.ExitNoDevice, record.ExitWorkload, record.ExitInconclusive,
		record.ExitUnread, record.ExitInterrupted, 99,
	} {
		for _, head := range []Observation{few, observed(20, leak("k", "A", kB, 3, 6, 9))} {
			c := judge(runs(3), head, func(in *Input) { in.RunExit, in.Rules = exit, nil })
			if c.Text == "" {
				t.Errorf("run exit code %d: got verdict %s and exit code %d, but no text", exit, c.Verdict, c.ExitCode)
			}
		}
	}
}

// Pinned runs of another subject are not compared.
func TestCreepOfAnotherSubject(t *testing.T) {
	now := leak("k", "ListScreen", 100*kB, 6, 12, 18, 24)
	pinned := runs(3, leak("k", "ListScreen", 100*kB, 3, 6, 9, 12))
	for i := range pinned {
		pinned[i].Subject.Workload = "w2"
	}
	c := judge(runs(5, now), observed(9, now), func(in *Input) { in.Pinned, in.PinnedName = pinned, "4.1" })
	if row := rowOf(t, c, "k"); row.Pinned != "" || c.Verdict != comparison.Pass || c.Base.PinnedRuns != 0 {
		t.Errorf("%s, %d pinned runs: %q", c.Verdict, c.Base.PinnedRuns, row.Pinned)
	}
}

// Numbers of objects per life, or per event, are not compared with numbers of
// objects per loop.
func TestOtherUnits(t *testing.T) {
	lives, events := observed(9, leak("k", "A", kB, 4, 4, 4, 4)), observed(9, leak("k", "A", kB, 5, 10, 15, 20))
	lives.Processes[0].Heap.SeparateLives = true
	events.Unit = UnitEvent
	for name, head := range map[string]Observation{"lives": lives, "events": events} {
		c := judge(runs(3, leak("k", "A", kB, 4, 5, 6, 7)), head)
		if row := rowOf(t, c, "k"); row.Status != comparison.Present || row.PerLoop.Base != nil ||
			c.Verdict == comparison.Fail {
			t.Errorf("%s: %s %s, %s", name, c.Verdict, row.Status, row.StatusReason)
		}
	}
}

// A rate that was not measured in the base does not count as zero.
func TestUnknownBaseRates(t *testing.T) {
	var trips, trends []Observation
	for n := range 3 {
		o := tripped(n, 200)
		m := &o.Processes[0].Measures[0]
		m.PerLoop, m.Lower, m.Upper = nil, nil, nil
		trips = append(trips, o)
		o = trending(observed(n), "leak", 40)
		o.Processes[0].Trend.Rate, o.Processes[0].Trend.Lower, o.Processes[0].Trend.Upper = nil, nil, nil
		trends = append(trends, o)
	}
	for _, c := range []*comparison.Comparison{
		judge(trips, tripped(9, 200)), judge(trends, trending(observed(9), "leak", 40)),
	} {
		if c.Verdict != comparison.Pass || len(c.Leaks) != 1 || c.Leaks[0].Status != comparison.Known {
			t.Errorf("%s: %+v", c.Verdict, c.Leaks)
		}
	}
}

// A rule that requires a minimum number of leaks fails if there are none.
func TestRuleAsksForLeaks(t *testing.T) {
	for rule, fails := range map[string]bool{
		"new > 0": true, "new != 0": true, "new >= 1": true, "new >= 0": false, "new < 1": false,
	} {
		c := judge(runs(3), observed(9), ruled(t, RulePerLoop, rule))
		if (c.Verdict == comparison.Fail) != fails || (len(c.Reasons) == 1) != fails {
			t.Errorf("%s: %s %+v", rule, c.Verdict, c.Reasons)
		}
	}
}

// The limits for leaks do not apply to measures of a trip, which have their own
// units.
func TestLimitsOfMeasures(t *testing.T) {
	if c := judge([]Observation{tripped(0, 200)}, tripped(9, 200),
		ruled(t, RulePerLoop, "objects <= 1")); len(c.Reasons) != 0 {
		t.Errorf("%+v", c.Reasons)
	}
}

// If a leak had already disappeared from the base branch, the run is not
// reported as having fixed it.
func TestGoneBefore(t *testing.T) {
	list, other := leak("k", "A", kB, 1, 2, 3, 4), leak("o", "O", 10, 1, 1, 1, 1)
	base := append(runs(7, list, other), observed(7, other), observed(8, other), observed(9, other))
	for _, r := range judge(base, observed(20, other)).Leaks {
		if r.Key == "k" {
			t.Errorf("%+v", r)
		}
	}
}

// An entry that accepts one class does not accept another class held by the
// same reference.
func TestAcceptedClassAndWider(t *testing.T) {
	list := leak("list12345", "ListScreen", 100*kB, 3, 6, 9, 12)
	wider := withClass(list, "WishScreen", 50*kB, 1, 2, 3, 4)
	accept := func(class string) func(*Input) {
		return func(in *Input) { in.Accepted = []check.Exception{{Class: class, Reason: "r", Owner: "o", Until: day}} }
	}
	for class, want := range map[string]comparison.Status{
		"ListScreen": comparison.Wider, "WishScreen": comparison.Accepted,
	} {
		if row := rowOf(t, judge(runs(3, list), observed(9, wider), accept(class)), "list12345"); row.Status != want {
			t.Errorf("%s is accepted: %s, want %s", class, row.Status, want)
		}
	}
}

// Two devices of one model count as two observations of a run, but a leak on
// both devices counts as one leak.
func TestDevicesOfOneModel(t *testing.T) {
	a, b := observed(0, leak("k", "A", kB, 1, 2, 3, 4)), observed(0)
	a.Device, b.Device, b.Twin = "serial-1", "serial-2", 1
	base := &Baseline{}
	for range 2 {
		base.Add(a, Window)
		base.Add(b, Window)
	}
	again, err := ReadBaseline(encoded(t, base))
	if err != nil || len(again.Runs) != 2 {
		t.Fatalf("%v, %d runs", err, len(again.Runs))
	}
	base.Merge(again, Window)
	if len(base.Runs) != 2 {
		t.Errorf("%d runs", len(base.Runs))
	}
	x, y := observed(9, leak("n", "N", kB, 1, 2, 3, 4)), observed(9, leak("n", "N", kB, 1, 2, 3, 4))
	x.Device, y.Device, y.Twin = "serial-1", "serial-2", 1
	both := func(in *Input) { in.Heads = []Observation{x, y} }
	if c := judge(base.Runs, x, both); c.Text != "1 new leak" || len(c.Reasons) != 2 {
		t.Errorf("%q %+v", c.Text, c.Reasons)
	}
	if c := judge(base.Runs, x, both, ruled(t, RulePerLoop, "new <= 1")); c.Verdict != comparison.Pass {
		t.Errorf("one leak on two devices is counted twice: %q", c.Text)
	}
}

// Three devices of one run do not show how much the results of runs vary.
func TestDevicesOfOneModelAreOneRun(t *testing.T) {
	more := observed(9, leak("k", "A", kB, 4, 8, 12, 16))
	for want, of := range map[comparison.Status]func(o *Observation, i int){
		comparison.Known: func(o *Observation, i int) { o.Twin = i },
		comparison.Grown: func(o *Observation, i int) { o.Started = day.AddDate(0, 0, i) },
	} {
		var base []Observation
		for i := range 3 {
			o := observed(0, leak("k", "A", kB, 3, 6, 9, 12))
			of(&o, i)
			base = append(base, o)
		}
		if row := rowOf(t, judge(base, more), "k"); row.Status != want {
			t.Errorf("%s: %s, want %s", row.Status, row.StatusReason, want)
		}
	}
}

// TestWindowCountsRuns checks that the window of a baseline is a number of
// runs, however many devices of one model each of them has: otherwise five
// devices would leave two runs, too few for any growth to count.
func TestWindowCountsRuns(t *testing.T) {
	const devices = 5
	var b Baseline
	for run := range Window + 2 {
		for twin := range devices {
			o := observed(run, leak("k", "A", kB, 3, 6, 9, 12))
			o.Twin, o.Failed = twin, run == Window+1
			b.Add(o, Window)
		}
	}
	if got := CountRuns(b.Runs); got != Window+1 || len(b.Runs) != devices*got {
		t.Errorf("got %d observations of %d runs, want %d good runs and a failed one", len(b.Runs), got, Window)
	}
	got := judge(b.Runs, observed(99, leak("k", "A", kB, 4, 8, 12, 16)))
	if row := rowOf(t, got, "k"); row.Status != comparison.Grown || !row.Fails {
		t.Errorf("got %s, %s; want %s", row.Status, row.StatusReason, comparison.Grown)
	}
	if got.Base.Runs != Window+1 || got.Base.Observed != 1 {
		t.Errorf("got %+v, want %d runs, one of which failed", got.Base, Window+1)
	}
	if got := b.Pin("4.1"); got != Window {
		t.Errorf("%d runs are pinned, want %d", got, Window)
	}
	// The reasons count runs too.
	row := rowOf(t, judge(b.Runs, observed(99, leak("new", "B", kB, 1, 2, 3, 4))), "new")
	if want := fmt.Sprintf("in none of %d base runs", Window+1); !strings.HasPrefix(row.StatusReason, want) {
		t.Errorf("got %q, want %q", row.StatusReason, want)
	}
}

// TestReturnedOnDevicesOfOneModel checks that a run contains a leak if any of
// its devices has the leak, and that runs are counted, not devices.
func TestReturnedOnDevicesOfOneModel(t *testing.T) {
	list := leak("k", "ListScreen", 100*kB, 3, 6, 9, 12)
	for name, c := range map[string]struct {
		runs   int
		leaks  func(run, twin int) bool
		status comparison.Status
		reason string
	}{
		"on one device, in none of three": {
			7, func(run, twin int) bool { return run < 4 && twin == 0 }, comparison.New,
			"in none of the latest 3 base runs, but in all earlier ones",
		},
		"on one device, in six of seven, in none of three": {
			10, func(run, twin int) bool { return run < 7 && run != 2 && twin == 1 }, comparison.New,
			"in none of the latest 3 base runs, but in 6 of the 7 earlier ones",
		},
		"in none of two, on four devices": {
			6, func(run, _ int) bool { return run < 4 }, comparison.Known, "",
		},
		"on one device of the newest run": {
			7, func(run, twin int) bool { return run < 3 || run == 6 && twin == 0 }, comparison.Known, "",
		},
	} {
		var base []Observation
		for run := range c.runs {
			for twin := range 2 {
				o := observed(run)
				if c.leaks(run, twin) {
					o = observed(run, list)
				}
				o.Twin = twin
				base = append(base, o)
			}
		}
		row := rowOf(t, judge(base, observed(20, list)), "k")
		if row.Status != c.status || !strings.HasPrefix(row.StatusReason, c.reason) {
			t.Errorf("%s: %s, %q; want %s, %q", name, row.Status, row.StatusReason, c.status, c.reason)
		}
	}
}

// A published comparison contains no serial number.
func TestPublishedWithoutSerial(t *testing.T) {
	x, y := observed(9), observed(9)
	x.Device, y.Device, y.Subject.Model = "serial-1", "serial-2", "Pixel 9"
	c := judge(runs(3), x, func(in *Input) { in.Heads = []Observation{x, y} })
	if all := c.Text + strings.Join(c.Warnings, "\n"); strings.Contains(all, "serial") ||
		!strings.Contains(all, "Pixel 9") {
		t.Error(all)
	}
}

// A baseline that could not be read back is not written.
func TestEncodeErrors(t *testing.T) {
	twice := observed(1)
	twice.Processes = append(twice.Processes, twice.Processes[0])
	short := observed(1, leak("k", "A", kB, 1, 2, 3))
	short.Processes[0].Places[0].Bytes = nil
	for _, o := range []Observation{twice, short, observed(1, leak(strings.Repeat("k", 2*maxName), "A", kB, 1, 2, 3))} {
		b := &Baseline{}
		b.Add(o, Window)
		if raw, err := b.Encode(); err == nil {
			_, err = ReadBaseline(raw)
			t.Errorf("after a round trip: %v", err)
		}
	}
}

// A run that could not be judged does not refute a failed run. If one of two
// runs could not be judged, the reason is stated even if no rule fails because
// of it.
func TestConfirmUnjudged(t *testing.T) {
	wish, list := leak("wish", "WishScreen", kB, 1, 2, 3), leak("list", "ListScreen", kB, 3, 6, 9)
	few := judge(runs(3), observed(9, leak("wish", "WishScreen", kB, 1, 2)))
	if c := Confirm(few, judge(runs(3), observed(10, wish))); c.Verdict != comparison.Fail {
		t.Errorf("%s %d %s", c.Verdict, c.ExitCode, c.Text)
	}
	if c := Confirm(judge(runs(3), observed(9)), judge(runs(3), observed(10, wish))); c.Verdict != comparison.Pass ||
		c.Text != "only one of two runs fails: not confirmed" {
		t.Errorf("%s %q", c.Verdict, c.Text)
	}
	// The result does not depend on whether another process was judged.
	beside := func(o Observation) Observation {
		o.Processes = append(o.Processes,
			Observed{
				Process: "com.shop:push", Heap: Timeline{Exposure: []float64{1, 2, 3}, Settled: true}, Names: "source",
			})
		return o
	}
	few = judge(runs(3), beside(observed(9, leak("wish", "WishScreen", kB, 1, 2))))
	if c := Confirm(few, judge(runs(3), beside(observed(10, wish)))); c.Verdict != comparison.Fail ||
		!c.Leaks[0].Fails || c.Text != "1 new leak" {
		t.Errorf("%s %d %s", c.Verdict, c.ExitCode, c.Text)
	}
	first := judge(runs(3), observed(9, list))
	for exit, more := range map[int]func(*Input){
		record.ExitInconclusive: func(in *Input) { in.Missing = []string{"com.shop: no dump at loop 3"} },
		record.ExitWorkload:     func(in *Input) { in.RunExit = record.ExitWorkload },
		record.ExitInterrupted:  func(in *Input) { in.RunExit = record.ExitInterrupted },
	} {
		c := Confirm(first, judge(runs(3), observed(10, wish), more))
		if c.Verdict != comparison.Neutral || c.ExitCode != exit || len(c.Reasons) != 0 {
			t.Errorf("%s %d, want neutral %d", c.Verdict, c.ExitCode, exit)
		}
	}
}

// If a process is in none of three base runs, its deaths are judged as well.
func TestDeathsOfNewProcess(t *testing.T) {
	head := observed(9)
	head.Processes = append(head.Processes, Observed{Process: "com.shop:new", Deaths: map[string]int{"crash": 2}})
	for n, fails := range map[int]bool{0: false, 2: false, 3: true} {
		if c := judge(runs(n), head, ruled(t, RuleDeaths, "any == 0")); (c.Verdict == comparison.Fail) != fails ||
			strings.Contains(fmt.Sprint(c.Reasons), "by any") {
			t.Errorf("%d base runs: %s %+v", n, c.Verdict, c.Reasons)
		}
	}
}

// If a check finds objects of another class held by a known reference, the
// check alone proves the leak.
func TestWiderByCheck(t *testing.T) {
	checked := func(p Place) Observation {
		p.Checks = []string{"opening the list"}
		o := observed(9, p)
		o.Processes[0].Loaded = NewClassSet([]string{"ListScreen", "WishScreen"})
		return o
	}
	base := checked(leak("k", "ListScreen", kB, 1))
	base.Started = day
	for status, class := range map[comparison.Status]string{
		comparison.Wider: "WishScreen", comparison.Known: "ListScreen",
	} {
		head := leak("k", "ListScreen", kB, 1)
		if class != "ListScreen" {
			head = withClass(head, class, kB, 1)
		}
		if row := rowOf(t, judge([]Observation{base}, checked(head)), "k"); row.Status != status ||
			row.Fails != (status == comparison.Wider) {
			t.Errorf("%s: %s, %s", class, row.Status, row.StatusReason)
		}
	}
}

// A baseline with the maximum number of sightings is read quickly.
func TestManySightings(t *testing.T) {
	b := &Baseline{}
	for i := range maxSeen {
		b.Seen = append(b.Seen,
			FirstSighting{App: "com.shop", Process: "com.shop", Type: TypeLeak, Key: fmt.Sprintf("%08d", i), Time: day})
	}
	start := time.Now()
	out := &Baseline{}
	out.Merge(b, Window)
	out.Merge(b, Window)
	if len(out.Seen) != maxSeen || time.Since(start) > 10*time.Second {
		t.Errorf("%d sightings in %s", len(out.Seen), time.Since(start))
	}
}
