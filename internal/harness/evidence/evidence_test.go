package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/reporters/record"
)

// shop returns a heap dump of an app whose list holds the given number of
// closed screens and whose registry holds one.
func shop(t testing.TB, carts, wishes int) []byte {
	t.Helper()
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	var held []hproftest.Ref
	for range carts {
		held = append(held, h.Activity("com.shop.CartActivity", hproftest.Destroyed).Ref)
	}
	for range wishes {
		held = append(held, h.Activity("com.shop.WishActivity", hproftest.Destroyed).Ref)
	}
	h.Hold("com.shop.Registry", "all", h.ArrayList(held...).Ref)
	dump, _, err := h.Dump(hproftest.Form{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

func file(t testing.TB, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// FromDumps counts the objects of each leak in heap dumps, which are given in
// the order of their loops, and returns the traces of the leaks.
func TestFromDumps(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for i := 1; i <= 3; i++ {
		files = append(files, file(t, dir, fmt.Sprint(i, ".hprof"), shop(t, 2*i, i-1)))
	}
	ev, err := FromDumps(t.Context(), []Scenario{{"com.shop", files}}, DumpOptions{App: "com.shop"})
	if err != nil {
		t.Fatal(err)
	}
	o := ev.Observations[0]
	p := o.Processes[0]
	if len(p.Places) != 1 || !reflect.DeepEqual(p.Heap, gate.Timeline{Exposure: []float64{1, 2, 3}, Settled: true}) ||
		p.Names != "source" || p.Undecided != "" || o.Subject.API != 34 {
		t.Fatalf("%+v", o)
	}
	l := p.Places[0]
	want := map[string][]int64{"com.shop.CartActivity": {2, 4, 6}, "com.shop.WishActivity": {0, 1, 2}}
	if !reflect.DeepEqual(l.Counts, []int64{2, 5, 8}) || !reflect.DeepEqual(l.Classes, want) || l.Bytes[0] <= 0 ||
		len(l.KeyText) == 0 || len(p.Reachable) != 3 || p.Loaded == "" {
		t.Errorf("%+v", l)
	}
	trace := ev.Traces[gate.TraceKey{Process: "com.shop", Key: l.Key}]
	if trace.HeldBy != "Registry.all" || len(trace.Suspects) != 1 || trace.Suspects[0].Class != "com.shop.Registry" ||
		trace.Suspects[0].Field != "all" || len(trace.Lines) < 5 {
		t.Errorf("%+v", trace)
	}
	broken := file(t, dir, "broken.hprof", []byte("JAVA PROFILE 1.0.3\x00"))
	var failed *DumpError
	if _, err := FromDumps(t.Context(), []Scenario{{"com.shop", []string{files[0], broken}}},
		DumpOptions{}); !errors.As(err, &failed) || failed.File != broken {
		t.Errorf("%v", err)
	}
	used, err := FromDumps(t.Context(), []Scenario{{"com.shop", files}}, DumpOptions{InUse: true})
	if err != nil || used.Observations[0].Processes[0].Heap.Settled {
		t.Errorf("%+v, %v", used, err)
	}
}

// packed returns the summary of a dump in the form in which a run stores it.
func packed(t testing.TB, dump []byte) []byte {
	t.Helper()
	s, err := analysis.Summarize(t.Context(), bytes.NewReader(dump), int64(len(dump)), analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z, err := spool.Pack(&out, int64(len(raw)))
	if err == nil {
		_, err = z.Write(raw)
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// night returns a run with dumps of one process at marks; pids lists the pid of
// the process in each dump.
func night(t testing.TB, dir string, pids ...int) record.Run {
	t.Helper()
	run := record.Run{
		Schema: record.RunSchema, Started: time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC),
		Patterns: []string{"com.shop", "com.shop:*"}, ExitCode: 1,
		Workload: &record.Workload{Kind: "command", Digest: "abc"},
		Build:    &record.Revision{Commit: "8c1d0fe", Branch: "main", Variant: "debug"},
		Devices: []record.Device{
			{Device: "S", Model: "Pixel 6", API: 34, ABI: "x86_64", Duration: 600, MarksDigest: "m"},
		},
		Processes: []record.Process{
			{
				Device: "S", Process: "com.shop", Gate: detector.Leak, TrendGate: detector.Inconclusive,
				Kind: detector.Java, Reason: "15, 17", DeathsByReason: map[string]int{"low_memory": 2, "anr": 1},
				Findings: []record.Incident{{Kind: "low_memory", Count: 2}, {Kind: "anr", Count: 3}},
			},
		},
	}
	for i, pid := range pids {
		folder := fmt.Sprintf("artifacts/com.shop/%d-mark", i)
		dump := shop(t, 2*(i+1), 0)
		file(t, dir, folder+"/heap.summary.json.zst", packed(t, dump))
		d := record.Diagnosis{
			Device: "S", Process: "com.shop", PID: pid, T: float64(60 * (i + 1)), Trigger: record.TriggerMark,
			Folder: folder, Settled: true, Marks: 3*i + 1,
			Heap: &record.HeapDump{
				Summary: "heap.summary.json.zst", ReachableBytes: 1000, ReachableNative: 1, Names: "source",
			}, Leaks: []record.DumpLeak{},
		}
		run.Diagnoses = append(run.Diagnoses, d)
	}
	last := shop(t, 2*len(pids), 0)
	report, err := analysis.Analyze(t.Context(), bytes.NewReader(last), int64(len(last)), analysis.Options{Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	file(t, dir, run.Diagnoses[len(pids)-1].Folder+"/analysis.json", asJSON(t, report))
	return run
}

func read(t testing.TB, dir string, run record.Run) *Evidence {
	t.Helper()
	if err := record.WriteRun(dir, run); err != nil {
		t.Fatal(err)
	}
	ev, err := FromRun(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

func TestFromRun(t *testing.T) {
	dir := t.TempDir()
	run := night(t, dir, 7, 7, 7)
	run.MissingEvidence = []record.MissingEvidence{{Process: "com.shop", Text: "no dump at loop 4"}}
	ev := read(t, dir, run)
	o := ev.Observations[0]
	if want := (gate.Testbed{
		App: "com.shop", Variant: "debug", Workload: "abc", Marks: "m", Model: "Pixel 6", API: 34, ABI: "x86_64",
	}); o.Subject != want || o.Commit != "8c1d0fe" || o.Unit != gate.UnitLoop || o.Device != "S" {
		t.Errorf("%+v", o)
	}
	p := o.Processes[0]
	if !reflect.DeepEqual(p.Heap, gate.Timeline{Exposure: []float64{1, 4, 7}, Settled: true}) ||
		!reflect.DeepEqual(p.Places[0].Counts, []int64{2, 4, 6}) || p.Reachable[0] != 1001 {
		t.Errorf("%+v", p)
	}
	if p.Trend.Gate != "inconclusive" || p.Gate != "leak" || p.Deaths["low_memory"] != 2 || p.Deaths["anr"] != 1 ||
		p.Deaths[gate.SurvivedANR] != 2 {
		t.Errorf("%+v", p)
	}
	if tr := ev.Traces[gate.TraceKey{
		Device: "S", Process: "com.shop", Key: p.Places[0].Key,
	}]; tr.HeldBy != "Registry.all" {
		t.Errorf("%+v", ev.Traces)
	}
	if len(ev.Missing) != 1 || ev.RunExit != 1 || ev.Head.Run != filepath.Base(dir) || len(ev.Warnings) != 0 {
		t.Errorf("%+v", ev)
	}
}

// The sum of an app's processes is recorded as a pseudo-process if it has a
// verdict.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	run := night(t, dir, 7, 7, 7)
	app := func(user int, verdict detector.Gate, leaking ...string) record.AppVerdict {
		return record.AppVerdict{
			Device: "S", User: user, App: "com.shop", Gate: verdict, Reason: "grows", Leaking: leaking, Rate: new(50.0),
			RateInterval: []float64{45, 55},
		}
	}
	run.Apps = []record.AppVerdict{
		app(0, detector.Leak), app(10, detector.Leak, "com.shop"), app(11, detector.Inconclusive),
	}
	var got []gate.Observed
	for _, p := range read(t, dir, run).Observations[0].Processes {
		if p.WholeApp {
			got = append(got, p)
		}
	}
	if len(got) != 2 || got[0].Process != "com.shop (all processes)" || got[0].Explained ||
		got[1].Process != "com.shop (user 10) (all processes)" || !got[1].Explained {
		t.Fatalf("%+v", got)
	}
	if tr := got[0].Trend; tr.Gate != "leak" || *tr.Rate != 50 || *tr.Lower != 45 || got[0].Reason != "grows" {
		t.Errorf("%+v", tr)
	}
}

// The comparison uses the dumps of the life that has the most dumps, or one
// dump of each life.
func TestLives(t *testing.T) {
	for name, c := range map[string]struct {
		pids  []int
		dumps int
		lives bool
	}{
		"one process": {[]int{7, 7, 7}, 3, false}, "one restart": {[]int{7, 8, 8, 8}, 3, false},
		"one process per dump": {[]int{7, 8, 9}, 3, true}, "single dump": {[]int{7}, 1, false},
	} {
		dir := t.TempDir()
		p := read(t, dir, night(t, dir, c.pids...)).Observations[0].Processes[0]
		if len(p.Heap.Exposure) != c.dumps || p.Heap.SeparateLives != c.lives {
			t.Errorf("%s: %+v", name, p.Heap)
		}
	}
}

// A process that starts later under the same PID is a new life.
func TestLivesOfOnePID(t *testing.T) {
	for name, c := range map[string]struct {
		began []float64
		dumps int
		lives bool
	}{
		"one process":          {[]float64{10, 10, 10.4}, 3, false},
		"one restart":          {[]float64{10, 10, 130}, 2, false},
		"one process per dump": {[]float64{10, 70, 130}, 3, true},
	} {
		dir := t.TempDir()
		run := night(t, dir, 7, 7, 7)
		for i := range run.Diagnoses {
			run.Diagnoses[i].Age = new(run.Diagnoses[i].T - c.began[i])
		}
		p := read(t, dir, run).Observations[0].Processes[0]
		if len(p.Heap.Exposure) != c.dumps || p.Heap.SeparateLives != c.lives {
			t.Errorf("%s: %+v", name, p.Heap)
		}
	}
}

// Without summaries, the record of the run is used; the evidence states what
// the record lacks.
func TestWithoutSummaries(t *testing.T) {
	dir := t.TempDir()
	run := night(t, dir, 7, 7, 7)
	for i := range run.Diagnoses {
		d := &run.Diagnoses[i]
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(d.Folder), d.Heap.Summary)); err != nil {
			t.Fatal(err)
		}
		d.Leaks = []record.DumpLeak{
			{
				Key: "k", Name: "1 x A, held by B.c", Count: int64(i + 1), Bytes: 10,
				Classes: []record.ClassCount{{Class: "A", Count: int64(i + 1)}},
			},
		}
		d.LeaksOmitted = 4
	}
	p := read(t, dir, run).Observations[0].Processes[0]
	if len(p.Places) != 1 || p.Places[0].Class != "A" || p.Places[0].Counts[2] != 3 ||
		!strings.Contains(p.Undecided, "4 leaks") {
		t.Errorf("%+v", p)
	}
}

// The unit of a Monkey run is the event. Different runs may have different
// numbers of events.
func TestMonkey(t *testing.T) {
	dir := t.TempDir()
	run := night(t, dir, 7, 7, 7)
	run.Workload = &record.Workload{Kind: "monkey", Digest: "d", Events: 6000}
	o := read(t, dir, run).Observations[0]
	if o.Unit != gate.UnitEvent || !reflect.DeepEqual(o.Processes[0].Heap.Exposure, []float64{600, 1200, 1800}) ||
		o.Subject.Marks != "" {
		t.Errorf("%+v", o)
	}
}

// The findings of checks are evidence by themselves.
func TestChecks(t *testing.T) {
	dir := t.TempDir()
	run := night(t, dir, 7)
	run.Diagnoses = nil
	found := record.CheckedLeak{
		DumpLeak: record.DumpLeak{
			Key: "k", Name: "1 x Cart, held by Bus.all", Count: 5, Bytes: 50,
			Classes: []record.ClassCount{{Class: "com.shop.Cart", Count: 5}},
		}, New: 2, Trace: []string{"┬───"},
	}
	for _, name := range []string{"opens", "closes"} {
		run.Checks = append(run.Checks,
			record.Check{
				Name: name, Device: "S", Verdict: record.VerdictLeak,
				Processes: []record.CheckedProcess{
					{Process: "com.shop", Verdict: record.VerdictLeak, Leaks: []record.CheckedLeak{found}},
				},
			})
	}
	p := read(t, dir, run).Observations[0].Processes[0]
	if !p.Checked || len(p.Places) != 1 || p.Places[0].Counts[0] != 4 ||
		!reflect.DeepEqual(p.Places[0].Checks, []string{"opens", "closes"}) || p.Places[0].HeldBy != "Bus.all" {
		t.Errorf("%+v", p)
	}
	again := read(t, dir, run)
	c := gate.Compare(gate.Input{
		Heads: again.Observations, Configured: true,
		Base: []gate.Observation{
			{
				Subject: again.Observations[0].Subject, Unit: gate.UnitLoop,
				Processes: []gate.Observed{
					{Process: "com.shop", Checked: true, Heap: gate.Timeline{Exposure: []float64{1}, Settled: true}},
				},
			},
		}, Match: gate.MatchAll(), Rules: gate.DefaultRules(),
	})
	if c.Verdict != "fail" || c.Leaks[0].Status != "new" {
		t.Errorf("%+v", c)
	}
}

// A base run whose checks found nothing has no heap dump, but it can still be
// compared: anything that a check finds now is new.
func TestChecksFoundNothingBefore(t *testing.T) {
	suite := func(day int, verdict record.CheckVerdict, leaks ...record.CheckedLeak) []gate.Observation {
		dir := t.TempDir()
		run := night(t, dir, 7)
		run.Diagnoses, run.Started = nil, run.Started.AddDate(0, 0, day)
		run.Checks = []record.Check{
			{
				Name: "opens", Device: "S", Verdict: verdict,
				Processes: []record.CheckedProcess{{Process: "com.shop", Verdict: verdict, Leaks: leaks}},
			},
		}
		return read(t, dir, run).Observations
	}
	base := suite(0, record.VerdictPass)
	for want, head := range map[comparison.Result][]gate.Observation{
		comparison.Fail: suite(1, record.VerdictLeak,
			record.CheckedLeak{DumpLeak: record.DumpLeak{Key: "k", Count: 2, Bytes: 2000}, New: 2}),
		comparison.Pass: suite(1, record.VerdictPass),
	} {
		c := gate.Compare(gate.Input{
			Heads: head, Configured: true, Base: base, Match: gate.MatchAll(), Rules: gate.DefaultRules(), Strict: true,
		})
		if c.Verdict != want {
			t.Errorf("%s, want %s: %s", c.Verdict, want, c.Text)
		}
	}
}

// The retained size per object does not depend on the number of checks if each
// check leaves one object in its own process.
func TestCheckedBytes(t *testing.T) {
	for _, checks := range []int{1, 10} {
		dir := t.TempDir()
		run := night(t, dir, 7)
		run.Diagnoses = nil
		found := record.CheckedLeak{DumpLeak: record.DumpLeak{Key: "k", Count: 2, Bytes: 2000}, New: 2}
		for i := range checks {
			run.Checks = append(run.Checks,
				record.Check{
					Name: fmt.Sprint("test ", i), Device: "S",
					Processes: []record.CheckedProcess{
						{Process: "com.shop", Verdict: record.VerdictLeak, Leaks: []record.CheckedLeak{found}},
					},
				})
		}
		if l := read(t, dir, run).Observations[0].Processes[0].Places[0]; l.Bytes[0] != 1000*l.Counts[0] {
			t.Errorf("%d checks: got %[3]d bytes retained by %[2]d objects, want 1000 per object", checks, l.Counts[0],
				l.Bytes[0])
		}
	}
}

// Devices of the same model are observed separately.
func TestDevicesOfOneModel(t *testing.T) {
	dir := t.TempDir()
	run := night(t, dir, 7, 7, 7)
	twin := run.Devices[0]
	twin.Device = "T"
	other := twin
	other.Device, other.Model = "U", "Pixel 9"
	run.Devices = append(run.Devices, twin, other)
	var twins []int
	for _, o := range read(t, dir, run).Observations {
		twins = append(twins, o.Twin)
	}
	if !reflect.DeepEqual(twins, []int{0, 1, 0}) {
		t.Error(twins)
	}
}

// A list that holds different classes in each dump can be written to a baseline
// and read again.
func TestManyClasses(t *testing.T) {
	var moments []moment
	for i := range 5 {
		l := analysis.SummaryLeak{Key: "k", Class: "A", Classes: map[string]int64{}}
		for k := range mostClasses {
			l.Classes[fmt.Sprintf("C%d_%d", i, k)] = 1
		}
		moments = append(moments, moment{at: float64(i + 1), leaks: []analysis.SummaryLeak{l}})
	}
	p := gate.Observed{Process: "com.shop", Places: []gate.Place{}}
	series(&p, moments, false)
	b := &gate.Baseline{}
	b.Add(gate.Observation{Unit: gate.UnitLoop, Processes: []gate.Observed{p}}, gate.Window)
	raw, err := b.Encode()
	if err == nil {
		_, err = gate.ReadBaseline(raw)
	}
	if err != nil || len(p.Places[0].Classes) != mostClasses || p.Places[0].Classes["C4_0"] == nil {
		t.Errorf("%v, %d classes", err, len(p.Places[0].Classes))
	}
}

// The evidence contains what grew between the first and the last snapshot.
func TestSnapshots(t *testing.T) {
	dir := t.TempDir()
	run := night(t, dir, 7, 7, 7)
	run.Diagnoses = append(run.Diagnoses,
		record.Diagnosis{Device: "S", Process: "com.shop", PID: 7, Trigger: record.TriggerFirst, Marks: 1},
		record.Diagnosis{
			Device: "S", Process: "com.shop", PID: 7, Trigger: record.TriggerLast, Marks: 6, Findings: []record.Finding{
				{Type: "threads", Name: "pool-*", Key: "t", Count: new(int64(12)), CountDelta: new(int64(10))},
				{
					Type: "library", Name: "libshop.so", Key: "l", Bytes: new(int64(5 << 20)),
					BytesDelta: new(int64(1 << 20)),
				},
				{Type: "library", Name: "libc.so", Key: "c", Bytes: new(int64(5 << 20)), BytesDelta: new(int64(100))},
				{Type: "growing", Name: "A.b", Key: "g", Count: new(int64(1))},
			}})
	p := read(t, dir, run).Observations[0].Processes[0]
	if len(p.Places) != 3 || !reflect.DeepEqual(p.Snapshots.Exposure, []float64{1, 6}) ||
		!reflect.DeepEqual(p.Places[1].Counts, []int64{2, 12}) || p.Places[2].Class != "libshop.so" {
		t.Errorf("%+v", p.Places)
	}
}

// A trip measures what grows with each loop; objects are identified by the
// places that hold them.
func TestTrip(t *testing.T) {
	dir := t.TempDir()
	run := night(t, dir, 7)
	trip := record.Trip{
		Schema: record.TripSchema, Device: "S", Process: "com.shop", Loops: 10, Verdict: record.VerdictLeak,
		Judged: true,
		Measures: []record.TripMeasure{
			{
				Name: "native_heap", Unit: record.UnitKB, PerLoop: new(200.0), Interval: []float64{180, 220},
				Grows: true, Verdict: record.VerdictLeak,
			},
			{Name: "Activities", Unit: record.UnitCount, PerLoop: new(1.0), Grows: true, Verdict: record.VerdictLeak},
			{Name: "threads", Unit: record.UnitCount, PerLoop: new(0.0), Verdict: record.VerdictPass},
		},
		Growing: []record.Finding{
			{Type: "growing", Name: "Cache.all (ArrayList)", Key: "abc", CountDelta: new(int64(10))},
		},
	}
	if err := record.WriteTrip(dir, trip); err != nil {
		t.Fatal(err)
	}
	p := read(t, dir, run).Observations[0].Processes[0]
	var grows []string
	for _, m := range p.Measures {
		if m.Grows {
			grows = append(grows, fmt.Sprint(m.Key, " ", *m.PerLoop, " ", m.Unit))
		}
	}
	if !reflect.DeepEqual(grows, []string{"native_heap 200 kB", "abc 1 count"}) || len(p.Measures) != 4 {
		t.Errorf("%q of %+v", grows, p.Measures)
	}
	trip.Process = "com.shop:push"
	if err := record.WriteTrip(dir, trip); err != nil {
		t.Fatal(err)
	}
	if p := read(t, dir, run).Observations[0].Processes[0]; len(p.Measures) != 0 {
		t.Errorf("measures of another process's trip were used: %+v", p.Measures)
	}
}

// The run directory is untrusted: nothing outside it is read, and damage is an
// error.
func TestHostileRun(t *testing.T) {
	outside := file(t, t.TempDir(), "heap.summary.json.zst", packed(t, shop(t, 3, 0)))
	for name, spoil := range map[string]func(dir string, run *record.Run){
		"folder outside the run": func(_ string, run *record.Run) {
			run.Diagnoses[1].Folder = "artifacts/../../" + filepath.Base(filepath.Dir(outside))
		},
		"folder without artifacts": func(_ string, run *record.Run) { run.Diagnoses[1].Folder = "." },
		"a link": func(dir string, run *record.Run) {
			path := filepath.Join(dir, filepath.FromSlash(run.Diagnoses[1].Folder), "heap.summary.json.zst")
			if err := errors.Join(os.Remove(path), os.Symlink(outside, path)); err != nil {
				t.Fatal(err)
			}
		},
		"garbage": func(dir string, run *record.Run) {
			file(t, dir, run.Diagnoses[1].Folder+"/heap.summary.json.zst", []byte("garbage"))
		},
		"half a summary": func(dir string, run *record.Run) {
			whole := packed(t, shop(t, 3, 0))
			file(t, dir, run.Diagnoses[1].Folder+"/heap.summary.json.zst", whole[:len(whole)/2])
		},
	} {
		dir := t.TempDir()
		run := night(t, dir, 7, 7, 7)
		spoil(dir, &run)
		if err := record.WriteRun(dir, run); err != nil {
			t.Fatal(err)
		}
		if ev, err := FromRun(t.Context(), dir); err == nil {
			t.Errorf("%s: %+v", name, ev.Observations[0].Processes[0])
		}
	}
}

func asJSON(t testing.TB, of any) []byte {
	t.Helper()
	raw, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Counts that prove a leak, and their wording, are part of the verdict on the
// trend; counts that prove nothing are not.
func TestCountsAtMarks(t *testing.T) {
	const trend = "only 12 min of uninterrupted data"
	for name, c := range map[string]struct {
		process       record.Process
		gate, because string
	}{
		"leak": {
			record.Process{
				Gate: detector.Leak, TrendGate: detector.Inconclusive,
				Reason: "1 more Activity after each of 24 loops: 1 to 25; memory trend: " + trend,
				CountsAtMarks: []record.CountsAtMarks{
					{Gate: detector.Pass},
					{
						Gate: detector.Leak, Kind: detector.Thread,
						Reason: "1 more Activity after each of 24 loops: 1 to 25",
					},
				}},
			"leak", "1 more Activity after each of 24 loops: 1 to 25; " + trend},
		"leak in counts and trend": {
			record.Process{
				Gate: detector.Leak, TrendGate: detector.Leak, Kind: detector.Thread,
				Reason: "1 more thread after each of 24 loops: 1 to 25; grows 9 MB/h",
				CountsAtMarks: []record.CountsAtMarks{
					{
						Gate: detector.Leak, Kind: detector.Thread,
						Reason: "1 more thread after each of 24 loops: 1 to 25",
					},
				}},
			"leak", "1 more thread after each of 24 loops: 1 to 25; grows 9 MB/h"},
		"pass": {
			record.Process{
				Gate: detector.Inconclusive, TrendGate: detector.Inconclusive,
				Reason: "24 loops: no Activity retained; memory trend not judged: " + trend,
				CountsAtMarks: []record.CountsAtMarks{
					{Gate: detector.Pass, Reason: "24 loops: no Activity retained"},
				}},
			"inconclusive", trend},
	} {
		dir := t.TempDir()
		run := night(t, dir, 7)
		c.process.Device, c.process.Process = "S", "com.shop"
		run.Diagnoses, run.Processes = nil, []record.Process{c.process}
		p := read(t, dir, run).Observations[0].Processes[0]
		if p.Trend.Gate != c.gate || p.Reason != c.because || c.gate == "leak" &&
			p.Trend.Kind != detector.Thread.String() {
			t.Errorf("%s: %+v, %q", name, p.Trend, p.Reason)
		}
	}
}
