package ledger

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// dumpAt returns the line of an analyzed heap dump at a mark, with the given
// number of objects for each leak.
func dumpAt(pid, n int, settled bool, leaks ...record.DumpLeak) record.Event {
	if leaks == nil {
		leaks = []record.DumpLeak{}
	}
	d := record.Diagnosis{
		Process: "com.x", PID: pid, Trigger: record.TriggerMark, Mark: fmt.Sprintf("loop %d", n), T: float64(n),
		Folder: fmt.Sprintf("artifacts/com.x/%d-%d", pid, n), Analyzed: true, Settled: settled, Leaks: leaks,
	}
	return record.Event{
		T: float64(n), Up: 100 + float64(n), Event: "diagnosed", Process: "com.x", User: new(0), PID: pid,
		Diagnosis: &d,
	}
}

// The digest of the marks depends neither on the numbers in them nor on how
// many times they were set. Different marks have different digests.
func TestMarksDigest(t *testing.T) {
	digest := func(marks ...string) string {
		p := partOf(t, detector.DefaultPolicy(), record.HeaderDevice{Device: "S1", StartedUp: 100})
		for i, words := range marks {
			p.AddEvent(record.Event{T: float64(i), Up: 100 + float64(i), Event: "mark", Text: words})
		}
		d := p.device()
		if d.Marks != len(marks) {
			t.Errorf("got %d marks, want %d", d.Marks, len(marks))
		}
		return d.MarksDigest
	}
	two := digest("loop 1", "checkout 1", "loop 2", "checkout 2")
	for name, same := range map[string]bool{
		digest(): false, digest("loop 1"): false, digest("loop 1", "loop 2"): false,
		digest("checkout 12", "loop 7", "checkout 13"): true, digest("loop#checkout", "x"): false,
	} {
		if (name == two) != same || name != "" && len(name) != 64 {
			t.Errorf("%q and %q", name, two)
		}
	}
	if digest() != "" {
		t.Error("a run without marks has a digest")
	}
}

func screens(n int64) record.DumpLeak {
	return record.DumpLeak{Key: "k1", Name: "DetailActivity, held by Tracker.sScreens", Count: n, Bytes: 1000 * n}
}

// accountOf returns the account of a process with the given lines.
func accountOf(t *testing.T, lines ...record.Event) *Account {
	t.Helper()
	p := partOf(t, detector.DefaultPolicy(), record.HeaderDevice{Device: "S1", StartedUp: 100})
	p.AddEvent(record.Event{Event: "found", Up: 100, Process: "com.x", User: new(0), PID: 7})
	for _, e := range lines {
		p.AddEvent(e)
	}
	return p.accounts[0]
}

func TestDumpsAtMarks(t *testing.T) {
	dumps := func(settled bool, counts ...int64) []record.Event {
		var out []record.Event
		for i, n := range counts {
			if n < 0 {
				out = append(out, dumpAt(7, i, settled))
				continue
			}
			out = append(out, dumpAt(7, i, settled, screens(n)))
		}
		return out
	}
	known := screens(1)
	known.Library = true
	library := []record.Event{}
	for i := range 8 {
		known.Count = int64(i)
		library = append(library, dumpAt(7, i, true, known))
	}
	skipped := dumps(true, 5, 5, 5)
	skipped[1].Diagnosis.LeaksOmitted = 3
	undecided := dumps(true, 5, 5, 5)
	undecided[1].Diagnosis.Undecided = "the dump is truncated"
	grows := append(dumps(true, 5, 5, 5),
		record.Event{
			Event: "diagnosed", Process: "com.x", User: new(0), PID: 7, T: 9, Up: 109, Diagnosis: &record.Diagnosis{
				PID: 7, Trigger: record.TriggerMarks, Folder: "f",
				Findings: []record.Finding{{Type: "growing", Name: "ImageCache.map (HashMap)"}}}})
	again := dumps(true, 1, 2, 3)
	again[2].Diagnosis.Folder = again[1].Diagnosis.Folder // the same dump, reported twice
	restarted := append(dumps(true, 1, 2), dumpAt(8, 3, true, screens(1)), dumpAt(8, 4, true, screens(2)),
		dumpAt(8, 5, true, screens(3)))
	for name, c := range map[string]struct {
		lines []record.Event
		gate  detector.Gate
		says  string
	}{
		"more objects at every mark": {
			dumps(true, 15, 17, 19), detector.Leak,
			"DetailActivity, held by Tracker.sScreens: 15, 17, 19 objects at marks",
		},
		"no objects at the first mark":      {dumps(true, -1, 1, 2), detector.Leak, "0, 1, 2"},
		"not settled, growth at every mark": {dumps(false, 15, 17, 19, 21, 23), detector.Leak, "15, 17, 19, 21, 23"},
		"not settled, too few dumps": {
			dumps(false, 15, 17, 19, 21), detector.Inconclusive,
			"4 heap dumps at marks; a verdict needs 5, because the app was in use: objects increased: DetailActivity",
		},
		"not settled, growth at some marks": {
			dumps(false, 1, 2, 12, 13, 30), detector.Inconclusive, "objects increased, but not at every mark",
		},
		"settled, uneven growth": {dumps(true, 1, 2, 12, 13, 30), detector.Leak, "1, 2, 12, 13, 30"},
		"one dump": {
			dumps(true, 15), detector.Inconclusive, "1 heap dump at a mark; a verdict needs 3",
		},
		"screen retained once": {
			dumps(true, -1, 1, 1, 1), detector.Pass, "4 heap dumps at marks: no leak grew",
		},
		"steady":         {dumps(true, 5, 5, 5), detector.Pass, "no leak grew"},
		"nothing":        {dumps(true, -1, -1, -1), detector.Pass, "no leak grew"},
		"falling counts": {dumps(true, 9, 5, 1), detector.Pass, "no leak grew"},
		"one mark without growth": {
			dumps(true, 2, 4, 6, 6, 8, 10), detector.Inconclusive,
			"objects increased, but not at every mark: DetailActivity, held by Tracker.sScreens: 2, 4, 6, 6, 8, 10",
		},
		"library leak":                {library, detector.Pass, "no leak grew"},
		"leaks omitted from the list": {skipped, detector.Inconclusive, "3 leaks were not compared"},
		"leaks not ruled out": {
			undecided, detector.Inconclusive, "leaks cannot be ruled out: the dump is truncated",
		},
		"filling cache": {
			grows, detector.Pass,
			"no leak grew; ImageCache.map (HashMap) grew in every one of them, consistent with a filling cache",
		},
		"dump reported twice":         {again, detector.Inconclusive, "2 heap dumps at marks; a verdict needs 3"},
		"leak proved after a restart": {restarted, detector.Leak, "1, 2, 3 objects"},
		"only some dumps settled": {
			append(dumps(true, 1, 2), dumpAt(7, 9, false, screens(3))), detector.Inconclusive, "needs 5",
		},
		"leak only at the last mark": {dumps(true, -1, -1, -1, -1, 30), detector.Pass, "no leak grew"},
	} {
		p := accountOf(t, c.lines...).Record(1)
		last := p.AtMarks[len(p.AtMarks)-1]
		if last.Gate != c.gate || !strings.Contains(last.Reason, c.says) {
			t.Errorf("%s: %s: %s", name, last.Gate, last.Reason)
		}
		if last.Rising != (c.gate == detector.Inconclusive && strings.Contains(last.Reason, "objects increased")) {
			t.Errorf("%s: got Rising %v: %s", name, last.Rising, last.Reason)
		}
		if leak := c.gate == detector.Leak; leak != (p.Gate == detector.Leak) || leak && p.Kind != detector.Java ||
			!strings.Contains(p.Reason, c.says) {
			t.Errorf("%s: got %s, %s: %s, want %s: %s", name, p.Gate, p.Kind, p.Reason, c.gate, c.says)
		}
	}
}

// A leak that was proved before the app restarted remains proved. After a
// reboot, the same pids belong to other processes.
func TestDumpsOverRestarts(t *testing.T) {
	first := []record.Event{
		dumpAt(7, 1, true, screens(1)), dumpAt(7, 2, true, screens(2)), dumpAt(7, 3, true, screens(3)),
	}
	restart := record.Event{Event: "restart", T: 4, Up: 104, Process: "com.x", User: new(0), PID: 8}
	p := accountOf(t, append(first, restart, dumpAt(8, 5, true), dumpAt(8, 6, true), dumpAt(8, 7, true))...).Record(1)
	if p.Gate != detector.Leak || len(p.AtMarks) != 2 || p.AtMarks[1].Gate != detector.Pass {
		t.Errorf("%s: %+v", p.Gate, p.AtMarks)
	}
	reboot := record.Event{Event: "reboot", T: 4, Up: 3}
	p = accountOf(t, first[0], first[1], reboot, dumpAt(7, 8, true, screens(3))).Record(1)
	if p.Gate == detector.Leak || len(p.AtMarks) != 2 {
		t.Errorf("over a reboot: %s: %+v", p.Gate, p.AtMarks)
	}
}

// Random counts are rarely mistaken for a leak: if the app is in use, each kind
// of object in flight is reported as a leak in at most 2 of 1,000 runs.
// Accumulation is always reported as a leak. The first bound follows from the
// spacings of sorted random numbers. The probability that a random sequence
// rises is 1/n!; the smallest step of such a sequence is at least half of the
// mean step with probability 2^-(n-2).
func TestProvesRandomCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const draws = 200_000
	for _, n := range []int{5, 6, 8, 12} {
		wrong := 0
		for range draws {
			counts := make([]int64, n)
			for i := range counts {
				counts[i] = r.Int64N(1000)
			}
			if Proves(counts, false) {
				wrong++
			}
		}
		expected := 1.0
		for i := 2; i <= n; i++ {
			expected /= float64(i)
		}
		for range n - 2 {
			expected /= 2
		}
		if share := float64(wrong) / draws; share > 1.5*expected+1e-5 || share < 0.5*expected-1e-4 {
			t.Errorf("%d dumps: a share of %.5f of random series proves a leak, want about %.5f", n, share, expected)
		}
		if n == 5 && float64(wrong)/draws > 0.002 {
			t.Errorf("5 dumps: %d of %d", wrong, draws)
		}
	}
	for range 10_000 {
		counts := []int64{r.Int64N(50)}
		each := 1 + r.Int64N(9)
		for range 2 + r.IntN(20) {
			counts = append(counts, counts[len(counts)-1]+each)
		}
		if !Proves(counts, true) || len(counts) >= fewestUnsettled && !Proves(counts, false) {
			t.Fatalf("the counts %v do not prove a leak", counts)
		}
	}
}

// The test computes Kendall's tau from its definition.
func TestRises(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		counts := make([]int64, 2+r.IntN(9))
		for i := range counts {
			counts[i] = r.Int64N(4)
		}
		concordant, discordant := 0, 0
		for j := range counts {
			for i := range j {
				switch {
				case counts[j] > counts[i]:
					concordant++
				case counts[j] < counts[i]:
					discordant++
				}
			}
		}
		pairs := len(counts) * (len(counts) - 1) / 2
		if want := float64(concordant-discordant)/float64(pairs) >= 0.6-1e-9; rises(counts) != want {
			t.Fatalf("%v: %v", counts, !want)
		}
	}
}

// The dump lines that are kept from a hostile file are bounded, and are judged
// without a panic.
func TestDumpsAreBounded(t *testing.T) {
	var lines []record.Event
	for n := range maxMarkDumps + 50 {
		e := dumpAt(7, n, true)
		for k := range 3 {
			e.Diagnosis.Leaks = append(e.Diagnosis.Leaks,
				record.DumpLeak{Key: fmt.Sprint(n, k), Name: "\x1b[2J", Count: -1 << 62, Bytes: 1 << 62})
		}
		lines = append(lines, e)
	}
	for pid := range maxSeries + 50 {
		lines = append(lines, dumpAt(100+pid, 1, true))
	}
	p := accountOf(t, lines...).Record(1)
	if len(p.AtMarks) != maxSeries || len(p.AtMarks[0].Dumps) != maxMarkDumps ||
		len(p.AtMarks[0].Leaks) != shownLeaksAtMarks || p.AtMarks[0].LeaksOmitted == 0 || p.Gate == detector.Leak {
		t.Errorf("%d series, %d dumps, %d leaks, %d skipped, %s", len(p.AtMarks), len(p.AtMarks[0].Dumps),
			len(p.AtMarks[0].Leaks), p.AtMarks[0].LeaksOmitted, p.Gate)
	}
	text, err := json.Marshal(p)
	if err != nil || len(text) > 1<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	var back record.Process
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back.AtMarks, p.AtMarks) {
		t.Errorf("the series differs after a round trip: %v", err)
	}
}

// Missing heap dumps, whether they belong to a process or not, are in the
// record, and determine the exit code if nothing else does.
func TestMissingEvidence(t *testing.T) {
	l, err := New(record.Header{
		Devices: []record.HeaderDevice{{Device: "S1"}}, Plan: &record.Plan{Policy: "robust", Assert: record.AssertEnd},
		Started: time.Unix(0, 0),
	}, detector.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	lines := []record.Event{
		{Event: "found", Device: "S1", Process: "com.x", User: new(0), PID: 7},
		{Event: "missing", Device: "S1", T: 9, Up: 9, Mark: "loop 1", Text: "no process was running"},
		{
			Event: "missing", Device: "S1", T: 5, Up: 5, Process: "com.x", User: new(0), PID: 7,
			Text: "the process had already ended",
		},
		{Event: "stopped", Text: record.StoppedDuration},
	}
	for _, e := range lines {
		if err := l.AddEvent(e); err != nil {
			t.Fatal(err)
		}
	}
	want := []record.MissingEvidence{
		{Device: "S1", Process: "com.x", T: 5, Text: "the process had already ended"},
		{Device: "S1", T: 9, Mark: "loop 1", Text: "no process was running"},
	}
	r := l.Run()
	if !reflect.DeepEqual(r.MissingEvidence, want) || r.ExitCode != record.ExitInconclusive {
		t.Errorf("exit %d, %+v", r.ExitCode, r.MissingEvidence)
	}
}

// The recorded object counts are those of the current life of the process.
func TestObjectCounts(t *testing.T) {
	p := partOf(t, detector.DefaultPolicy(), record.HeaderDevice{Device: "S1", StartedUp: 100})
	p.AddEvent(record.Event{Event: "found", Up: 100, Process: "com.x", User: new(0), PID: 7, Source: "smaps_rollup"})
	count := func(at float64, pid int, activities int64) {
		p.AddSample(record.Sample{
			T: at, Up: 100 + at, Process: "com.x", PID: pid, Source: "dumpsys",
			Breakdown: &record.Breakdown{Objects: map[string]int64{"Activities": activities, "Views": 80}},
		})
	}
	count(1, 7, 30)
	p.AddEvent(record.Event{Event: "restart", T: 2, Up: 102, Process: "com.x", User: new(0), PID: 8})
	for i, n := range []int64{1, 9, 4} {
		count(float64(3+i), 8, n)
	}
	want := []record.ObjectCount{
		{Name: "Activities", First: 1, Max: 9, Last: 4}, {Name: "Views", First: 80, Max: 80, Last: 80},
	}
	if got := p.accounts[0].Record(1).Objects; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
