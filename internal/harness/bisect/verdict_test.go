package bisect

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	theKey   = "0123456789abcdef0123456789abcdef01234567"
	otherKey = "89abcdef0123456789abcdef0123456789abcdef"
)

func dumpLeak(key string, count int64) record.DumpLeak {
	return record.DumpLeak{
		Key: key, Name: "com.shop.CartActivity, held by Tracker.screens", Count: count, Bytes: count << 10,
		Classes: []record.ClassCount{{Class: "com.shop.CartActivity", Count: count}},
	}
}

// series returns the counts of one leak in dumps at marks.
func series(key string, gate detector.Gate, proved bool, counts ...int64) record.MarkSeries {
	s := record.MarkSeries{PID: 7, Gate: gate, Reason: "x"}
	for range counts {
		s.Dumps = append(s.Dumps, record.MarkDump{Settled: true})
	}
	s.Leaks = []record.LeakSeries{
		{DumpLeak: dumpLeak(key, counts[len(counts)-1]), Proved: proved, Counts: counts, AllBytes: counts},
	}
	return s
}

// runWith returns a complete run of one process with the given dumps at marks.
func runWith(all ...record.MarkSeries) record.Run {
	run := record.Run{Schema: record.RunSchema, Stopped: record.StoppedDuration}
	p := record.Process{
		Device: "d", Process: "com.shop", PID: 7, State: detector.Normal, Worst: detector.Normal,
		Gate: detector.Inconclusive, TrendGate: detector.Inconclusive, AtMarks: all,
	}
	run.Processes = []record.Process{p}
	return run
}

// markedRun returns a run whose dumps at marks either prove the leak or do not
// contain it.
func markedRun(leak bool) record.Run {
	run := runWith(series(otherKey, detector.Pass, false, 2, 2, 2))
	if leak {
		run = runWith(series(theKey, detector.Leak, true, 1, 2, 3))
		run.ExitCode = record.ExitLeak
	}
	return run
}

// dumped returns a run with heap dumps taken without marks, each with the given
// number of objects of the leak.
func dumped(counts ...int64) record.Run {
	run := runWith()
	for i, n := range counts {
		d := record.Diagnosis{
			Device: "d", Process: "com.shop", PID: 7, T: float64(i), Settled: true, Trigger: record.TriggerEnd,
			Leaks: []record.DumpLeak{dumpLeak(otherKey, 3)}, Steps: []record.Collected{{Step: heapStep}},
		}
		if n > 0 {
			d.Leaks = append(d.Leaks, dumpLeak(theKey, n))
		}
		run.Diagnoses = append(run.Diagnoses, d)
	}
	return run
}

func checked(verdict record.CheckVerdict, leaks ...record.CheckedLeak) record.Run {
	run := runWith()
	run.Checks = []record.Check{
		{
			Name: "adds to the cart", Verdict: verdict, Text: "why",
			Processes: []record.CheckedProcess{{Process: "com.shop", Leaks: leaks}},
		},
	}
	return run
}

func changed(run record.Run, change func(*record.Run)) record.Run {
	change(&run)
	return run
}

func traveled(verdict, heap record.CheckVerdict, keys ...string) *record.Trip {
	t := &record.Trip{
		Schema: record.TripSchema, Process: "com.shop", Loops: 8, Dumps: 3, Stopped: record.TripStoppedLoops,
		Verdict: verdict, Text: "why", Found: len(keys),
		Measures: []record.TripMeasure{{Name: "heap", Verdict: heap, Text: "why not"}},
	}
	for _, key := range keys {
		t.Growing = append(t.Growing, record.Finding{Type: "growing", Name: "Tracker.screens", Key: key})
	}
	return t
}

type runCase struct {
	run  record.Run
	trip *record.Trip
}

func write(tb testing.TB, runs ...runCase) string {
	tb.Helper()
	dir := tb.TempDir()
	for i, c := range runs {
		at := filepath.Join(dir, fmt.Sprintf("2026010%d-run", i))
		if err := os.Mkdir(at, 0o700); err != nil {
			tb.Fatal(err)
		}
		if c.run.Schema != "" {
			if err := record.WriteRun(at, c.run); err != nil {
				tb.Fatal(err)
			}
		}
		if c.trip != nil {
			if err := record.WriteTrip(at, *c.trip); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return dir
}

func TestVerdict(t *testing.T) {
	short := changed(runWith(series(theKey, detector.Inconclusive, false, 1, 2)),
		func(r *record.Run) { r.ExitCode = record.ExitInconclusive })
	for name, c := range map[string]struct {
		runs   []runCase
		want   CommitResult
		reason string
	}{
		"nothing":                {nil, Skip, "no run directory"},
		"run that has not ended": {[]runCase{{}}, Skip, "has not ended"},
		"proved at marks": {
			[]runCase{{markedRun(true), nil}}, Bad, "1, 2, 3 objects at marks in com.shop",
		},
		"absent at marks": {
			[]runCase{{markedRun(false), nil}}, Good, "not in 3 heap dumps at marks of com.shop",
		},
		"another leak is proved": {
			[]runCase{
				{
					changed(runWith(series(otherKey, detector.Leak, true, 1, 2, 3)),
						func(r *record.Run) { r.ExitCode = 1 }), nil,
				},
			}, Good, "not in 3",
		},
		"present, but not growing": {
			[]runCase{{runWith(series(theKey, detector.Pass, false, 4, 4, 4)), nil}}, Good, "does not grow:",
		},
		"growing, but not at every mark": {
			[]runCase{{runWith(series(theKey, detector.Inconclusive, false, 4, 6, 5)), nil}}, Skip,
			"does not grow in each",
		},
		"too few marks": {
			[]runCase{{runWith(series(theKey, detector.Inconclusive, false, 4, 4)), nil}}, Skip,
			"3 heap dumps are needed",
		},
		"too few marks, exit 5": {[]runCase{{short, nil}}, Skip, "exit code 5"},
		"at one mark": {
			[]runCase{{runWith(series(theKey, detector.Inconclusive, false, 4)), nil}}, Bad,
			"4 objects in the only heap dump of com.shop",
		},
		"proved, but interrupted": {
			[]runCase{{changed(markedRun(true), func(r *record.Run) { r.Interrupted, r.ExitCode = true, 130 }), nil}},
			Bad, "at marks",
		},
		"absent, but interrupted": {
			[]runCase{{changed(markedRun(false), func(r *record.Run) { r.Interrupted, r.ExitCode = true, 130 }), nil}},
			Skip, "interrupted",
		},
		"killed": {
			[]runCase{{changed(markedRun(false), func(r *record.Run) { r.Stopped = record.StoppedKilled }), nil}}, Skip,
			"killed",
		},
		"a dump is missing": {
			[]runCase{
				{
					changed(markedRun(false),
						func(r *record.Run) { r.MissingEvidence = []record.MissingEvidence{{Text: "no disk"}} }), nil,
				},
			}, Skip, "1 heap dump is missing: no disk",
		},
		"the record lacks leaks": {
			[]runCase{
				{changed(markedRun(false), func(r *record.Run) { r.Processes[0].AtMarks[0].LeaksOmitted = 2 }), nil},
			}, Skip, "lacks 2 leaks",
		},
		"workload failed": {
			[]runCase{
				{
					changed(markedRun(false),
						func(r *record.Run) { r.ExitCode, r.Workload = 4, &record.Workload{Error: "exit status 9"} }),
					nil,
				},
			}, Skip, "exit code 4: exit status 9",
		},
		"no device": {
			[]runCase{{changed(markedRun(false), func(r *record.Run) { r.ExitCode = 3 }), nil}}, Skip, "exit code 3",
		},
		"leak in the only dump": {[]runCase{{dumped(5), nil}}, Bad, "5 objects in the only heap dump"},
		"leak in the only dump, run incomplete": {
			[]runCase{{changed(dumped(5), func(r *record.Run) { r.ExitCode = 4 }), nil}}, Skip, "exit code 4",
		},
		"leak not in the only dump": {[]runCase{{dumped(0), nil}}, Good, "not in 1 heap dump of com.shop"},
		"growing in each dump":      {[]runCase{{dumped(1, 2, 5), nil}}, Bad, "1, 2, 5 objects in com.shop"},
		"growing in each dump, app in use": {
			[]runCase{{changed(dumped(1, 2, 5), func(r *record.Run) { r.Diagnoses[1].Settled = false }), nil}}, Skip,
			"5 heap dumps are needed",
		},
		"gone at the end": {[]runCase{{dumped(3, 1, 0), nil}}, Good, "does not grow:"},
		"a dump was not analyzed": {
			[]runCase{{changed(dumped(0, 0), func(r *record.Run) { r.Diagnoses[1].Leaks = nil }), nil}}, Skip,
			"not analyzed",
		},
		"a dump is undecided": {
			[]runCase{{changed(dumped(0), func(r *record.Run) { r.Diagnoses[0].Undecided = "truncated" }), nil}}, Skip,
			"truncated",
		},
		"check found the leak": {
			[]runCase{{checked(record.VerdictLeak, record.CheckedLeak{DumpLeak: dumpLeak(theKey, 4), New: 2}), nil}},
			Bad, "2 more objects after adds to the cart",
		},
		"check found another leak": {
			[]runCase{{checked(record.VerdictLeak, record.CheckedLeak{DumpLeak: dumpLeak(otherKey, 4), New: 2}), nil}},
			Good, "no check found the leak",
		},
		"inconclusive check": {
			[]runCase{{checked(record.VerdictInconclusive), nil}}, Skip, "check adds to the cart: why",
		},
		"leak grows during a trip": {
			[]runCase{
				{
					changed(runWith(), func(r *record.Run) { r.ExitCode = 5 }),
					traveled(record.VerdictLeak, record.VerdictLeak, otherKey, theKey),
				},
			}, Bad, "grows with every loop",
		},
		"another leak grows during a trip": {
			[]runCase{{runWith(), traveled(record.VerdictLeak, record.VerdictLeak, otherKey)}}, Good,
			"does not grow in 8 loops",
		},
		"a trip passes": {
			[]runCase{
				{
					changed(runWith(), func(r *record.Run) { r.ExitCode = 5 }),
					traveled(record.VerdictPass, record.VerdictPass),
				},
			}, Good, "does not grow",
		},
		"a trip without dumps": {
			[]runCase{{runWith(), changedTrip(func(t *record.Trip) { t.Dumps = 0 })}}, Skip, "no heap dumps",
		},
		"a trip that ended early": {
			[]runCase{
				{
					runWith(),
					changedTrip(func(t *record.Trip) { t.Stopped, t.Reason = record.TripStoppedGone, "it is gone" }),
				},
			}, Skip, "ended early: it is gone",
		},
		"inconclusive trip": {
			[]runCase{{runWith(), traveled(record.VerdictInconclusive, record.VerdictInconclusive)}}, Skip, "why not",
		},
		"trip with more growing places than listed": {
			[]runCase{{runWith(), changedTrip(func(t *record.Trip) { t.Found = 3 })}}, Skip, "lacks 3 growing places",
		},
		"no dump, all processes pass": {
			[]runCase{{changed(runWith(), func(r *record.Run) { r.Processes[0].Gate = detector.Pass }), nil}}, Good,
			"no process grows",
		},
		"no dump, leaking process": {
			[]runCase{
				{changed(runWith(), func(r *record.Run) { r.Processes[0].Gate, r.ExitCode = detector.Leak, 1 }), nil},
			}, Skip, "no heap dump of com.shop",
		},
		"no dump, no process": {
			[]runCase{{changed(runWith(), func(r *record.Run) { r.Processes = nil }), nil}}, Skip,
			"no matching process was found",
		},
		"one good run, one without a verdict": {[]runCase{{markedRun(false), nil}, {}}, Skip, "has not ended"},
		"one bad run, one without a verdict":  {[]runCase{{}, {markedRun(true), nil}}, Bad, "at marks"},
	} {
		outcome, reason := Verdict(write(t, c.runs...), theKey)
		if outcome != c.want || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %s, %s; want %s, %s", name, outcome, reason, c.want, c.reason)
		}
	}
}

func changedTrip(change func(*record.Trip)) *record.Trip {
	t := traveled(record.VerdictPass, record.VerdictPass)
	change(t)
	return t
}

// A prefix of a key is enough if it matches exactly one leak.
func TestVerdictPrefix(t *testing.T) {
	two := runWith(series(theKey, detector.Leak, true, 1, 2, 3))
	two.Processes[0].AtMarks[0].Leaks = append(two.Processes[0].AtMarks[0].Leaks,
		series(theKey[:20]+"00000000000000000000", detector.Pass, false, 1, 1, 1).Leaks...)
	for _, c := range []struct {
		run  record.Run
		key  string
		want CommitResult
	}{
		{markedRun(true), theKey[:8], Bad},
		{markedRun(true), strings.ToUpper(theKey[:12]), Bad},
		{markedRun(true), theKey[:7], Skip},
		{markedRun(true), "", Skip},
		{markedRun(true), theKey + "0", Skip},
		{markedRun(true), "0123456x", Skip},
		{markedRun(true), otherKey[:8], Good},
		{two, theKey, Bad},
	} {
		if outcome, reason := Verdict(write(t, runCase{c.run, nil}), c.key); outcome != c.want {
			t.Errorf("%s: %s, %s", c.key, outcome, reason)
		}
	}
	apart := write(t, runCase{markedRun(true), nil},
		runCase{runWith(series(theKey[:20]+"00000000000000000000", detector.Pass, false, 1, 1, 1)), nil})
	if outcome, reason := Verdict(apart, theKey[:8]); outcome != Skip ||
		!strings.Contains(reason, "2 leaks: give more digits") {
		t.Errorf("%s, %s", outcome, reason)
	}
}

// Dumps that were not taken at marks are judged by their counts, according to a
// separate rule.
func TestVerdictCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		counts := make([]int64, 1+r.IntN(5))
		rising, most := true, int64(0)
		for i := range counts {
			counts[i] = r.Int64N(4)
			if i > 0 {
				counts[i] = max(counts[i-1]+r.Int64N(3)-r.Int64N(2), 0)
				rising = rising && counts[i] > counts[i-1]
			}
			most = max(most, counts[i])
		}
		want := Skip
		switch n := len(counts); {
		case most == 0, n >= 3 && most == counts[0]:
			want = Good
		case n == 1, n >= 3 && rising:
			want = Bad
		}
		if outcome, reason := Verdict(write(t, runCase{dumped(counts...), nil}), theKey); outcome != want {
			t.Fatalf("%v: %s (%s), want %s", counts, outcome, reason, want)
		}
	}
}

// Other commits must be judged on the same basis as the bad one.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		by   basis
		j    judgment
		want CommitResult
	}{
		{growth, judgment{CommitResult: Bad, basis: growth}, Bad},
		{growth, judgment{CommitResult: Bad, basis: presence}, Skip},
		{growth, judgment{CommitResult: Good, basis: flat}, Good},
		{growth, judgment{CommitResult: Good, basis: absence}, Good},
		{presence, judgment{CommitResult: Bad, basis: presence}, Bad},
		{presence, judgment{CommitResult: Bad, basis: growth}, Bad},
		{presence, judgment{CommitResult: Good, basis: flat}, Skip},
		{presence, judgment{CommitResult: Good, basis: absence}, Good},
	} {
		s := search{by: c.by}
		if got := s.compare(c.j); got.CommitResult != c.want {
			t.Errorf("%v %+v: %+v", c.by, c.j, got)
		}
	}
}

// The following holds for any run files: a bad verdict requires the key, a good
// one requires a run with a verdict, and each verdict has a printable reason.
func FuzzVerdict(f *testing.F) {
	for _, c := range []runCase{
		{markedRun(true), nil}, {dumped(1, 2, 5), nil},
		{runWith(), traveled(record.VerdictLeak, record.VerdictLeak, theKey)},
		{checked(record.VerdictLeak, record.CheckedLeak{DumpLeak: dumpLeak(theKey, 4), New: 2}), nil},
	} {
		run, err := json.Marshal(c.run)
		if err != nil {
			f.Fatal(err)
		}
		trip, err := json.Marshal(c.trip)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(run, trip)
	}
	f.Fuzz(func(t *testing.T, run, trip []byte) {
		dir := t.TempDir()
		at := filepath.Join(dir, "run")
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string][]byte{"run.json": run, record.TripName: trip} {
			if len(content) == 0 || string(content) == "null" {
				continue
			}
			if err := os.WriteFile(filepath.Join(at, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		outcome, reason := Verdict(dir, theKey[:8])
		if reason == "" || reason != text.Printable(reason) || len([]rune(reason)) > 3*maxReason {
			t.Fatalf("%q", reason)
		}
		read, err := record.ReadRun(at)
		switch outcome {
		case Bad:
			if err != nil || !strings.Contains(string(run)+string(trip), theKey[:8]) &&
				!strings.Contains(string(run)+string(trip), `\u`) {
				t.Fatalf("bad commit, but the reason does not contain the key: %s", reason)
			}
		case Good:
			if err != nil || read.Interrupted || len(read.MissingEvidence) > 0 || read.ExitCode != 0 &&
				read.ExitCode != 1 && read.ExitCode != 5 {
				t.Fatalf("good: %+v, %v", read, err)
			}
		case Skip:
		default:
			t.Fatalf("outcome %q", outcome)
		}
	})
}
