//go:build realtime

package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/internal/stall"
	"github.com/leakgate/leakgate/reporters/record"
)

// shellUser and appUser are the UIDs of the shell of a user build and of an
// app.
const (
	shellUser = 2000
	appUser   = 10123
)

// The nightly run of the examples takes little more than two minutes of real
// time on the host device. In device time, the run lasts as long as a verdict
// requires.
const (
	nightScale    = 25
	nightDuration = "55m"
	// nightInterval is the time between two samples of a process that does not
	// leak, in seconds. The interval is shorter than the time that a heap dump
	// takes.
	nightInterval = 15.0
	// leakRate is the rate of each leak, in MB/h.
	leakRate = 300
)

// watched is the result of a run.
type watched struct {
	record.Run
	// dir is the run directory; text and exit are the output and the exit code
	// of the run.
	dir, text string
	exit      int
	samples   []record.Sample
	events    []record.Event
	// stalled is how long the machine kept the test from running, in seconds of
	// device time.
	stalled float64
}

// watching is a `leakgate run` in progress.
type watching struct {
	cmd    *exec.Cmd
	stalls *stall.Meter
	text   *bytes.Buffer
	dir    string
	began  time.Time
}

// begin starts a run with the given configuration on the device.
func begin(t *testing.T, r *hostdevicetest.Running, within time.Duration, config string) watching {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	w := watching{
		dir: filepath.Join(t.TempDir(), "run"), text: new(bytes.Buffer), began: time.Now(), stalls: stall.Measure(t),
	}
	w.cmd = onHostDevice(t, ctx, r, "run", write(t, config), "--out", w.dir)
	w.cmd.Stdout, w.cmd.Stderr = w.text, w.text
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// end waits until the run ends and reads the results.
func (w watching) end(t *testing.T) watched {
	t.Helper()
	_ = w.cmd.Wait() // the exit code reports the error
	out := watched{dir: w.dir, text: w.text.String(), exit: w.cmd.ProcessState.ExitCode()}
	t.Logf("%s\nexit %d in %v", out.text, out.exit, time.Since(w.began).Round(time.Second))
	out.read(t)
	for _, d := range out.Devices { // one MB
		out.stalled = w.stalls.Total().Seconds() * d.TimeScale
	}
	return out
}

func (w *watched) read(t *testing.T) {
	t.Helper()
	var err error
	if w.Run, err = record.ReadRun(w.dir); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(w.dir, record.SamplesName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doubts, err := record.ReadSamples(f, record.Lines{
		Sample: func(s record.Sample) error { w.samples = append(w.samples, s); return nil },
		Event:  func(e record.Event) error { w.events = append(w.events, e); return nil },
	})
	if err != nil || len(doubts) > 0 {
		t.Fatal(err, doubts)
	}
}

// beginNight starts a run with the configuration of the nightly example.
func beginNight(t *testing.T, r *hostdevicetest.Running) watching {
	t.Helper()
	text, err := os.ReadFile("../../examples/nightly/hostdevice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer("com.example.leaky", r.Package(), "duration: 55m", "duration: "+nightDuration,
		"normal: 30s", "normal: 15s").Replace(string(text))
	if !strings.Contains(config, "duration: "+nightDuration) || !strings.Contains(config, "normal: 15s") {
		t.Fatal("the duration or the interval could not be replaced in the example")
	}
	return begin(t, r, 4*time.Minute, config)
}

// assertNight checks the results that do not depend on the build.
func (w watched) assertNight(t *testing.T, r *hostdevicetest.Running) {
	t.Helper()
	if w.exit != 1 {
		t.Errorf("exit %d, want 1: a leak", w.exit)
	}
	w.assertKinds(t)
	assertNoHostPath(t, w.dir)
	w.says(t, r.Package()+":control: PASS")
	for _, p := range w.Processes {
		// A gap lasts as long as the stall and the two intervals around it.
		if most := 4*nightInterval + 3*w.stalled; p.Missing > most || p.Gaps > 0 && w.stalled == 0 {
			t.Errorf("%s has %d gaps and lacks %d samples: %.0f s, want at most %.0f s", p.Process, p.Gaps, p.Missed,
				p.Missing, most)
		}
		if name := modeOf(p.Process); name != "java" && p.Paused > 0 {
			t.Errorf("%s: paused for %v s", p.Process, p.Paused)
		}
	}
	for _, name := range []string{"java", "native", "thread"} {
		w.assertOrder(t, name)
	}
	w.assertControl(t)
	w.assertFolders(t)
	assertNothingLeft(t, r)
	w.assertRebuilt(t)
}

// assertRebuilt checks that the same reports can be rebuilt from the samples
// alone.
func (w watched) assertRebuilt(t *testing.T) {
	t.Helper()
	table, err := os.ReadFile(filepath.Join(w.dir, "leaks.csv"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := program(t, t.Context(), nil, "report", w.dir)
	if text, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("report: %v\n%s", err, text)
	}
	again, err := record.ReadRun(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Diagnoses, w.Diagnoses) {
		t.Errorf("rebuilt %+v, want %+v", again.Diagnoses, w.Diagnoses)
	}
	if anew, err := os.ReadFile(filepath.Join(w.dir, "leaks.csv")); err != nil || !bytes.Equal(anew, table) {
		t.Errorf("leaks.csv differs: %v\n%s", err, anew)
	}
	for i, p := range again.Processes {
		if was := w.Processes[i]; p.Gate != was.Gate || p.Worst != was.Worst || p.Kind != was.Kind ||
			!reflect.DeepEqual(p.Headroom, was.Headroom) || !reflect.DeepEqual(p.Limits, was.Limits) {
			t.Errorf("rebuilt %+v, want %+v", p, was)
		}
	}
}

// assertKinds checks that each process of the app has the verdict and the kind
// of leak that match its mode.
func (w watched) assertKinds(t *testing.T) {
	t.Helper()
	want := map[string]string{"java": "java_leak", "native": "native_leak", "thread": "thread_leak", "control": ""}
	for _, p := range w.Processes {
		kind, ok := want[modeOf(p.Process)]
		delete(want, modeOf(p.Process))
		switch {
		case !ok:
			t.Errorf("unexpected process %s", p.Process)
		case kind == "" && (p.Worst != detector.Normal || p.Gate != "pass"):
			t.Errorf("%s was %s, gate %s: %s", p.Process, p.Worst, p.Gate, p.Reason)
		case kind != "" && (p.Worst != detector.Leaking || p.Kind.String() != kind || p.Gate != "leak"):
			t.Errorf("%s is %s, %s, gate %s, want %s: %s", p.Process, p.Worst, p.Kind, p.Gate, kind, p.Reason)
		}
	}
	if len(want) > 0 {
		t.Errorf("not found: processes %v", want)
	}
}

// modeOf returns the name of a process of the app without the package.
func modeOf(process string) string {
	_, name, _ := strings.Cut(process, ":")
	return name
}

// process returns the process with the given mode.
func (w watched) process(t *testing.T, name string) record.Process {
	t.Helper()
	for _, p := range w.Processes {
		if modeOf(p.Process) == name {
			return p
		}
	}
	t.Fatalf("process %s not found", name)
	return record.Process{}
}

// diagnosis returns the diagnosis of a process for a trigger; there must be
// exactly one.
func (w watched) diagnosis(t *testing.T, name, trigger string) record.Diagnosis {
	t.Helper()
	list := w.diagnosesOf(name, trigger)
	if len(list) != 1 {
		t.Fatalf("%s has %d diagnoses for the trigger %s, want 1", name, len(list), trigger)
	}
	return list[0]
}

func (w watched) diagnosesOf(name, trigger string) (list []record.Diagnosis) {
	for _, d := range w.Diagnoses {
		if modeOf(d.Process) == name && d.Trigger == trigger {
			list = append(list, d)
		}
	}
	return list
}

// says checks that the output contains each of the given strings.
func (w watched) says(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(w.text, part) {
			t.Errorf("the output does not contain %q", part)
		}
	}
}

// assertOrder checks the order of the events: the suspicion, a first diagnosis
// to compare with, the leak, the artifacts and the analysis. The detector does
// not wait for the collection.
func (w watched) assertOrder(t *testing.T, name string) {
	t.Helper()
	var had []string
	for _, e := range w.events {
		if modeOf(e.Process) != name || e.Event == "headroom" {
			continue
		}
		word := e.Event
		switch {
		case e.Event == "state":
			word += " " + e.To.String()
		case e.Diagnosis != nil:
			word += " " + e.Diagnosis.Trigger
		}
		had = append(had, word)
	}
	for _, want := range [][]string{
		{"found", "state SUSPICIOUS", "state CONFIRMING", "state LEAKING", "diagnose leak", "diagnosed leak"},
		{"state SUSPICIOUS", "diagnose suspicious", "diagnosed suspicious", "diagnose leak"},
	} {
		rest := had
		for _, word := range want {
			at := slices.Index(rest, word)
			if at < 0 {
				t.Errorf("%s: event %q is missing or out of order in %q", name, word, had)
				break
			}
			rest = rest[at+1:]
		}
	}
}

// assertControl checks that the process that does not leak has only the two
// snapshots that every run takes.
func (w watched) assertControl(t *testing.T) {
	t.Helper()
	folders := 0
	for _, d := range w.Diagnoses {
		if modeOf(d.Process) != "control" {
			continue
		}
		if d.Trigger != record.TriggerFirst && d.Trigger != record.TriggerLast || d.Recipe != "snapshot" ||
			d.Kind != detector.None {
			t.Errorf("the control process was diagnosed: %+v", d)
		}
		folders++
	}
	have, err := filepath.Glob(filepath.Join(w.dir, "artifacts", "*control*", "*"))
	if err != nil || len(have) != folders || folders == 0 {
		t.Errorf("the control process has the directories %q, want %d snapshots: %v", have, folders, err)
	}
}

// assertRhythm checks that processes that are not being dumped are sampled at
// the usual interval. Delays of the machine itself, measured while nothing is
// collected, are allowed.
func (w watched) assertRhythm(t *testing.T) {
	t.Helper()
	d := w.diagnosis(t, "java", "leak")
	from, to := d.T, d.T+(d.Duration+d.Analysis)*nightScale
	last, usual, during := w.foundAt("control"), nightInterval, 0.0
	for _, s := range w.samples {
		if modeOf(s.Process) != "control" || s.Breakdown != nil {
			continue
		}
		if gap := s.T - last; s.T > from && last < to {
			during = max(during, gap)
		} else {
			usual = max(usual, gap)
		}
		last = s.T
	}
	if during == 0 || during > 1.5*usual+w.stalled {
		t.Errorf("the control process was not sampled for %.1f s of the %.0f s heap dump, and otherwise for at most "+
			"%.1f s", during, to-from, usual)
	}
}

// assertFolders checks that each artifact is at the recorded path and has the
// recorded size, that its summary is in the same directory, and that there are
// no other files.
func (w watched) assertFolders(t *testing.T) {
	t.Helper()
	for _, d := range w.Diagnoses {
		known := map[string]bool{
			"summary.txt": true, "diagnosis.json": true, "analysis.json": true, "growth.json": true,
		}
		if d.Heap != nil {
			known[d.Heap.Summary] = true
		}
		for _, s := range d.Steps {
			if s.File == "" {
				continue
			}
			known[s.File], known[strings.TrimSuffix(s.File, ".zst")+".summary.txt"] = true, true
			info, err := os.Stat(w.in(d, s.File))
			if err != nil || info.Size() != s.Bytes || info.Size() == 0 {
				t.Errorf("%s/%s: %v, want %d bytes", d.Folder, s.File, err, s.Bytes)
			}
		}
		files, err := os.ReadDir(w.in(d, ""))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !known[f.Name()] {
				t.Errorf("%s has %s", d.Folder, f.Name())
			}
		}
		for _, line := range d.Summary {
			if text, err := os.ReadFile(w.in(d, "summary.txt")); d.Recipe != "growth" &&
				(err != nil || !strings.Contains(string(text), line)) {
				t.Errorf("%s/summary.txt does not contain %q: %v", d.Folder, line, err)
			}
		}
	}
}

// in returns the path of a file of a diagnosis.
func (w watched) in(d record.Diagnosis, file string) string {
	return filepath.Join(w.dir, filepath.FromSlash(d.Folder), file)
}

// assertNothingLeft checks that everything created on the device was removed.
func assertNothingLeft(t *testing.T, r *hostdevicetest.Running) {
	t.Helper()
	if out := r.Must(t, "shell", "ls -A /data/local/tmp"); out != "" {
		t.Errorf("files remain on the device: %s", out)
	}
}

// step returns the named step of a diagnosis.
func step(t *testing.T, d record.Diagnosis, name string) record.Collected {
	t.Helper()
	for _, s := range d.Steps {
		if s.Step == name {
			return s
		}
	}
	t.Fatalf("%s, %s: step %s is missing", d.Process, d.Recipe, name)
	return record.Collected{}
}

// assertSteps compares the results of steps, as "step result", with the
// expected ones.
func assertSteps(t *testing.T, d record.Diagnosis, want ...string) {
	t.Helper()
	var got []string
	for _, s := range d.Steps {
		got = append(got, s.Step+" "+s.Outcome)
		if has := s.File != ""; has != (s.Outcome == "complete" || s.Outcome == "fallback") || !has &&
			len(s.Reasons) == 0 {
			t.Errorf("%s: step %s with outcome %s has file %q and reasons %q, want one of them", d.Process, s.Step,
				s.Outcome, s.File, s.Reasons)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s, %s: steps %q, want %q", d.Process, d.Recipe, got, want)
	}
}

// found returns the first finding of the given type, which is the largest.
func found(t *testing.T, d record.Diagnosis, what string) record.Finding {
	t.Helper()
	for _, f := range d.Findings {
		if f.Type == what {
			return f
		}
	}
	t.Fatalf("%s, %s: finding %s is missing in %+v", d.Process, d.Recipe, what, d.Findings)
	return record.Finding{}
}

const mb = 1 << 20

// assertMB checks that a number of bytes lies between two bounds in MB.
func assertMB(t *testing.T, what string, got *int64, least, most float64) {
	t.Helper()
	if got == nil || float64(*got) < least*mb || float64(*got) > most*mb {
		t.Errorf("%s: %s, want %.1f to %.1f MB", what, bytesText(got), least, most)
	}
}

// assertLeaked compares the growth that a diagnosis found with the rate of the
// leak; the growth began no earlier than the time from and no later than the
// time since. On a busy machine the artifacts of a diagnosis may be collected
// long after it was requested.
func (w watched) assertLeaked(t *testing.T, what string, got *int64, from, since float64, d record.Diagnosis) {
	t.Helper()
	assertMB(t, what, got, 0.8*leaked(since, d.T), 1.2*leaked(from, w.collectedAt(t, d)))
}

// assertGrown compares the growth between two diagnoses with the rate of the
// leak.
func (w watched) assertGrown(t *testing.T, what string, got *int64, before, d record.Diagnosis) {
	t.Helper()
	w.assertLeaked(t, what, got, before.T, w.collectedAt(t, before), d)
}

// collectedAt returns the time at which the last artifact of a diagnosis was
// collected.
func (w watched) collectedAt(t *testing.T, d record.Diagnosis) float64 {
	t.Helper()
	for _, e := range w.events {
		if e.Event == "diagnose" && e.Diagnosis != nil && e.Diagnosis.Folder == d.Folder {
			return e.T
		}
	}
	t.Fatalf("diagnosis %s was never collected", d.Folder)
	return 0
}

func bytesText(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f MB", float64(*n)/mb)
}

// leaked returns how much a leak of the nightly run adds between two times, in
// MB.
func leaked(from, to float64) float64 { return (to - from) * leakRate / 3600 }

// assertWhole checks that no data is missing on a build where everything can be
// read.
func (w watched) assertWhole(t *testing.T, r *hostdevicetest.Running) {
	t.Helper()
	w.assertNight(t, r)
	for _, p := range w.Processes {
		if p.Source != "smaps_rollup" {
			t.Errorf("process %s was read from %s, want smaps_rollup", p.Process, p.Source)
		}
	}
	w.assertRhythm(t)
	w.assertJavaLeak(t)
	w.assertNativeLeak(t)
	w.assertThreadLeak(t)
	w.assertTable(t, "java_leak", "native_leak", "thread_leak")
}

// assertJavaLeak checks that the dump is stripped, and that its analysis names
// the leaking class and the path to it.
func (w watched) assertJavaLeak(t *testing.T) {
	t.Helper()
	d := w.diagnosis(t, "java", "leak")
	assertSteps(t, d, "meminfo complete", "heap complete", "logcat complete", "exit_info complete")
	f := found(t, d, "suspect")
	if !strings.Contains(f.Name, "Leaky$Session, held by Leaky.OPEN_SESSIONS") ||
		!strings.Contains(strings.Join(f.Trace, "\n"), "static Leaky.OPEN_SESSIONS") {
		t.Errorf("got suspect %s with trace %q, want Leaky$Session, held by Leaky.OPEN_SESSIONS", f.Name, f.Trace)
	}
	// The leak began slightly before the process was first found.
	began := w.foundAt("java")
	w.assertLeaked(t, "leaked sessions", f.Bytes, began, began, d)
	w.says(t, "x Leaky$Session, held by Leaky.OPEN_SESSIONS", "↓ static Leaky.OPEN_SESSIONS", "MB retained")
	if p := w.process(t, "java"); !(p.Paused > 0 && p.Paused < 300) {
		t.Errorf("the process was paused for %v s, want more than 0 s and less than 300 s", p.Paused)
	}
	if !w.has("java", "pause") {
		t.Error("the series has no pause event for the heap dump")
	}
	assertStripped(t, w.in(d, step(t, d, "heap").File), true)
}

// foundAt returns the time at which a process was first found.
func (w watched) foundAt(name string) float64 {
	for _, e := range w.events {
		if e.Event == "found" && modeOf(e.Process) == name {
			return e.T
		}
	}
	return 0
}

func (w watched) has(name, event string) bool {
	return slices.ContainsFunc(w.events,
		func(e record.Event) bool { return e.Event == event && modeOf(e.Process) == name })
}

// assertStripped recognizes a stripped dump by a string that every Java virtual
// machine has in an array: the path of its own directory.
func assertStripped(t *testing.T, dump string, want bool) {
	t.Helper()
	data := keptDump(t, dump)
	if !bytes.HasPrefix(data, []byte("JAVA PROFILE 1.0.2\x00")) ||
		!bytes.Contains(data, []byte("com/example/leaky/Leaky$Session")) {
		t.Errorf("%s is not a dump of the app", dump)
	}
	if texts := bytes.Contains(data, []byte("java.vm.specification.version")); texts == want {
		t.Errorf("%s contains strings: %t, want %t", dump, texts, !want)
	}
}

// assertNativeLeak checks the maps at two times and the mapping that grew.
func (w watched) assertNativeLeak(t *testing.T) {
	t.Helper()
	before, d := w.diagnosis(t, "native", "suspicious"), w.diagnosis(t, "native", "leak")
	assertSteps(t, d, "status complete", "smaps complete", "showmap complete", "maps complete", "meminfo complete",
		"logcat complete", "exit_info complete")
	f := found(t, d, "mapping")
	if f.Name != "[heap]" && f.Name != "(anonymous)" {
		t.Errorf("%s grew", f.Name)
	}
	if f.Share == nil || *f.Share < 0.8 {
		t.Errorf("%s accounts for a share of %v of the growth, want at least 0.8", f.Name, f.Share)
	}
	w.assertGrown(t, "growth of "+f.Name, f.BytesDelta, before, d)
	w.says(t, f.Name+" +", "% of +")
}

// assertThreadLeak checks the names of the threads and the pool that grew.
func (w watched) assertThreadLeak(t *testing.T) {
	t.Helper()
	before, d := w.diagnosis(t, "thread", "suspicious"), w.diagnosis(t, "thread", "leak")
	assertSteps(t, d, "status complete", "threads complete", "meminfo complete", "logcat complete",
		"exit_info complete")
	f := found(t, d, "threads")
	if f.Name != "pool-3-thread-*" || f.Count == nil || f.CountDelta == nil || *f.CountDelta < 30 ||
		*f.Count < *f.CountDelta {
		t.Fatalf("threads %+v", f)
	}
	names, err := os.ReadFile(w.in(d, step(t, d, "threads").File))
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(strings.Count(string(names), "pool-3-thread-")); n != *f.Count {
		t.Errorf("got %d threads of the pool, but %d in the artifact", *f.Count, n)
	}
	w.assertGrown(t, "growth of the stacks", f.BytesDelta, before, d)
	w.says(t, "pool-3-thread-*: ", fmt.Sprintf("-> %d threads (+%d)", *f.Count, *f.CountDelta))
}

// assertTable checks that leaks.csv agrees with run.json for these kinds.
func (w watched) assertTable(t *testing.T, kinds ...string) {
	t.Helper()
	f, err := os.Open(filepath.Join(w.dir, "leaks.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, d := range w.Diagnoses {
		if d.Trigger == record.TriggerLast {
			continue // a difference between two snapshots is not a leak
		}
		for _, f := range d.Findings {
			want = append(want, d.Process+" "+d.Kind.String()+" "+f.Type+" "+f.Name)
		}
	}
	var got []string
	seen := map[string]bool{}
	for _, row := range rows[1:] {
		seen[row[6]] = true
		got = append(got, row[2]+" "+row[6]+" "+row[7]+" "+row[8])
	}
	if !slices.Equal(got, want) || !slices.Equal(slices.Sorted(maps.Keys(seen)), kinds) {
		t.Errorf("leaks.csv has %q with the kinds %v, want %q with %v", got, seen, want, kinds)
	}
}

// assertDegraded checks that on a build where the kernel denies access, the
// other data is collected and the reasons are recorded.
func (w watched) assertDegraded(t *testing.T, r *hostdevicetest.Running) {
	t.Helper()
	w.assertNight(t, r)
	for _, p := range w.Processes {
		reasons := strings.Join(p.Reasons, "\n")
		if p.Source != "status" || !strings.Contains(reasons, "smaps_rollup") ||
			!strings.Contains(reasons, "Permission denied") ||
			!strings.Contains(reasons, "package not debuggable: "+r.Package()) {
			t.Errorf("process %s was read from %s, want status because of denied permissions: %q", p.Process, p.Source,
				p.Reasons)
		}
		w.says(t, p.Process+" found: pid "+fmt.Sprint(p.PID)+", memory source status")
		assertFilesTold(t, p)
	}
	w.says(t, "user build, shell", "by status;", "no smaps_rollup: ", "no run_as: run-as: package not debuggable")
	w.assertNoJavaDump(t)
	w.assertNativeRows(t)
	w.assertThreadLeak(t)
	w.assertTable(t, "native_leak", "thread_leak")
}

// assertFilesTold checks that the record contains the number of open files,
// which newer kernels let everybody read, or the reason why it is missing.
func assertFilesTold(t *testing.T, p record.Process) {
	t.Helper()
	told := slices.ContainsFunc(p.Headroom,
		func(s record.Standing) bool { return s.Resource == "file_descriptors" && s.Used > 3 })
	said := slices.ContainsFunc(p.HeadroomReasons,
		func(text string) bool { return strings.HasPrefix(text, "open files: ") })
	if told == said {
		t.Errorf("%s: got number of open files: %t, got reason: %t; want exactly one of them", p.Process, told, said)
	}
}

func (w watched) assertNoJavaDump(t *testing.T) {
	t.Helper()
	d := w.diagnosis(t, "java", "leak")
	assertSteps(t, d, "meminfo complete", "heap skipped", "logcat complete", "exit_info complete")
	const advice = "is not debuggable: use a debuggable build, a userdebug image or an emulator"
	if reasons := strings.Join(step(t, d, "heap").Reasons, "\n"); !strings.Contains(reasons, advice) {
		t.Errorf("unexpected reasons for the missing heap dump: %q", reasons)
	}
	if d.Outcome != record.DiagnosisDegraded || len(d.Findings) > 0 {
		t.Errorf("%s, %+v", d.Outcome, d.Findings)
	}
	if dumps, err := filepath.Glob(w.in(d, "heap.hprof*")); err != nil || len(dumps) > 0 {
		t.Errorf("unexpected heap dumps: %v, %v", dumps, err)
	}
	w.says(t, "heap skipped: ", advice)
}

func (w watched) assertNativeRows(t *testing.T) {
	t.Helper()
	before, d := w.diagnosis(t, "native", "suspicious"), w.diagnosis(t, "native", "leak")
	assertSteps(t, d, "status complete", "smaps fallback", "showmap skipped", "maps skipped", "meminfo complete",
		"logcat complete", "exit_info complete")
	const lost = "the library is unknown"
	if s := step(t, d, "smaps"); !strings.Contains(s.Note, lost) ||
		!strings.Contains(strings.Join(s.Reasons, "\n"), "Permission denied") {
		t.Errorf("smaps: note %q, reasons %q", s.Note, s.Reasons)
	}
	f := found(t, d, "meminfo")
	if f.Name != "Native Heap" || d.Outcome != record.DiagnosisDegraded {
		t.Errorf("outcome %s, but %s grew", d.Outcome, f.Name)
	}
	w.assertGrown(t, "growth of the native heap", f.BytesDelta, before, d)
	w.says(t, lost, "meminfo, by row:")
}

// awaiting is a shell function for the workloads below: it waits until the run
// has the given number of events of a kind, however long that takes on a busy
// machine.
const awaiting = `await() { until [ "$(grep -c "\"event\":\"$1\"" "$LEAKGATE_RUN/samples.ndjson")" -ge "$2" ]; do sleep 0.1; done; }`

// marking is the configuration of a run whose workload marks its loops; each of
// two processes is dumped at each mark.
const marking = `version: 1
app: { package: PACKAGE, processes: ["PACKAGE:*"] }
devices: { serials: ["${LEAKGATE_HOSTDEVICE}"] }
workload:
  command:
    - sh
    - -c
    - |
      ` + awaiting + `
      await found 2
      for i in 1 2 3 4; do sleep 2; echo leakgate:mark loop $i; await diagnose $((2 * i)); done
diagnose: { dump: at_marks }
`

// ending is the configuration of a short run at whose end two processes are
// dumped.
const ending = `version: 1
app: { package: PACKAGE, processes: ["PACKAGE:*"] }
devices: { serials: ["${LEAKGATE_HOSTDEVICE}"] }
workload:
  command:
    - sh
    - -c
    - |
      ` + awaiting + `
      await found 2
      sleep 2
diagnose: { dump: at_end }
`

// Heaps are dumped at marks and at the end, even those of processes that do not
// leak, and the places that grew in every dump are named.
func TestDumpsOnTheHostDevice(t *testing.T) {
	if testing.Short() {
		t.Skip("this test takes half a minute")
	}
	t.Parallel()
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.StartNested(t, hostdevice.Options{Scale: 20, AppUID: appUser})
	r.Must(t, "shell", "am start -n "+r.Package()+"/.Java --es mb_per_h 600 && am start -n "+r.Package()+"/.Control")
	w := begin(t, r, 2*time.Minute, strings.ReplaceAll(marking, "PACKAGE", r.Package())).end(t)
	for _, name := range []string{"java", "control"} {
		dumps := w.diagnosesOf(name, "mark")
		if len(dumps) != 4 {
			t.Fatalf("%s was dumped %d times, want 4", name, len(dumps))
		}
		for i, d := range dumps {
			assertSteps(t, d, "heap complete")
			if want := fmt.Sprintf("loop %d", i+1); d.Mark != want || d.Kind != detector.None || d.Recipe != "dump" {
				t.Errorf("%s: mark %q, want %q; %q, %s", name, d.Mark, want, d.Kind, d.Recipe)
			}
		}
	}
	grown := w.diagnosis(t, "java", "marks")
	f := found(t, grown, "growing")
	if f.Name != "Leaky.OPEN_SESSIONS (ArrayList)" || f.CountDelta == nil || *f.CountDelta < 100 ||
		f.BytesDelta == nil || *f.BytesDelta < mb {
		t.Errorf("found %+v", f)
	}
	w.says(t, "4 dumps at marks: 1 place", "[x] -> com.example.leaky.Leaky$Session: ")
	if d := w.diagnosis(t, "control", "marks"); len(d.Findings) > 0 {
		t.Errorf("the control process grows: %+v", d.Findings)
	}
	w.assertFolders(t)
	assertNothingLeft(t, r)

	e := begin(t, r, 2*time.Minute, strings.ReplaceAll(ending, "PACKAGE", r.Package())).end(t)
	for _, name := range []string{"java", "control"} {
		assertSteps(t, e.diagnosis(t, name, "end"), "heap complete")
	}
	assertNothingLeft(t, r)

	first, last := w.diagnosesOf("java", "mark")[0], e.diagnosis(t, "java", "end")
	cmd := program(t, t.Context(), nil, "diff", w.in(first, step(t, first, "heap").File),
		e.in(last, step(t, last, "heap").File))
	text, _ := cmd.CombinedOutput() // the exit code reports the error
	if code := cmd.ProcessState.ExitCode(); code != 0 || !strings.Contains(string(text), "Leaky.OPEN_SESSIONS") ||
		!strings.Contains(string(text), "grown") {
		t.Errorf("leakgate diff: exit %d\n%s", code, text)
	}
}
