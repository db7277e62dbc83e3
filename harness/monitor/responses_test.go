package monitor

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/reporters/record"
)

// cabled is a simulated phone on a cable: files can be pulled from it, and
// unplugging the cable interrupts the requests in flight.
type cabled struct {
	*simulated
	mu   sync.Mutex
	ways map[*context.CancelCauseFunc]bool
	// asked is called before each command and each pull. It may be nil.
	asked func(what string)
	// slow is added to the duration of a heap dump.
	slow time.Duration
	// hung is closed when the phone responds again; it is nil while the phone
	// responds.
	hung chan struct{}
}

func cable(p *simulated) *cabled {
	return &cabled{simulated: p, ways: map[*context.CancelCauseFunc]bool{}}
}

func (c *cabled) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	ctx, end := c.begin(ctx, command)
	defer end()
	if err := c.wait(ctx); err != nil {
		return 0, err
	}
	if isDump(command) {
		if err := sleep(ctx, c.slow); err != nil {
			return 0, context.Cause(ctx)
		}
	}
	exit, err := c.simulated.Shell(ctx, command, stdout, stderr)
	if err != nil && errors.Is(context.Cause(ctx), errCut) {
		return 0, errCut
	}
	return exit, err
}

func (c *cabled) Pull(ctx context.Context, remote string, w io.Writer) (int64, error) {
	ctx, end := c.begin(ctx, "pull "+remote)
	defer end()
	if err := c.wait(ctx); err != nil {
		return 0, err
	}
	c.simulated.mu.Lock()
	cut := c.cut
	c.simulated.mu.Unlock()
	if cut {
		return 0, errCut
	}
	f, err := c.Open(remote)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var n int64
	for buf := make([]byte, 64<<10); ; {
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		k, err := f.Read(buf)
		if k > 0 {
			written, werr := w.Write(buf[:k])
			if n += int64(written); werr != nil {
				return n, werr
			}
			c.tell("read " + remote)
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func (c *cabled) tell(what string) {
	c.mu.Lock()
	asked := c.asked
	c.mu.Unlock()
	if asked != nil {
		asked(what)
	}
}

// begin opens a connection to the phone. The connection ends when the cable is
// unplugged.
func (c *cabled) begin(ctx context.Context, what string) (context.Context, func()) {
	c.tell(what)
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ways[&cancel] = true
	return ctx, func() {
		c.mu.Lock()
		delete(c.ways, &cancel)
		c.mu.Unlock()
		cancel(nil)
	}
}

func (c *cabled) listen(asked func(string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = asked
}

// unplug unplugs the cable or plugs it in.
func (c *cabled) unplug(cut bool) {
	c.simulated.unplug(cut)
	if !cut {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for cancel := range c.ways {
		(*cancel)(errCut)
	}
}

// hang makes the phone stop responding or respond again. Earlier requests
// continue.
func (c *cabled) hang(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case on && c.hung == nil:
		c.hung = make(chan struct{})
	case !on && c.hung != nil:
		close(c.hung)
		c.hung = nil
	}
}

// wait waits until the phone responds; earlier requests are lost.
func (c *cabled) wait(ctx context.Context) error {
	c.mu.Lock()
	hung := c.hung
	c.mu.Unlock()
	if hung == nil {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func isDump(command string) bool { return strings.Contains(command, "am dumpheap") }

// responding returns the options of a run that diagnoses leaks.
func responding(t *testing.T, r response.Options, phones ...*cabled) Options {
	t.Helper()
	var plain []*simulated
	for _, p := range phones {
		plain = append(plain, p.simulated)
	}
	o := options(t, plain...)
	for i, p := range phones {
		o.Devices[i].Device = p
	}
	if r.Cooldown == 0 {
		r.Cooldown = response.DefaultCooldown
	}
	o.Respond = &r
	return o
}

// respond is perform with additional checks that every run with responses must
// pass.
func respond(t *testing.T, ctx context.Context, o Options) result {
	t.Helper()
	r := perform(t, ctx, o)
	checkFolders(t, o.Dir, r.Run)
	return r
}

// checkFolders compares the artifacts on the disk with those in run.json: every
// file is complete and listed, and every listed file exists.
func checkFolders(t *testing.T, dir string, run record.Run) {
	t.Helper()
	want := map[string]bool{}
	for _, d := range run.Diagnoses {
		if d.Folder == "" {
			continue
		}
		want[d.Folder+"/diagnosis.json"] = true
		for _, s := range d.Steps {
			if s.File == "" {
				continue
			}
			want[d.Folder+"/"+s.File] = true
			info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(d.Folder), s.File))
			if err != nil || info.Size() != s.Bytes {
				t.Errorf("%s of %s: %d bytes recorded, %v, %v", s.File, d.Folder, s.Bytes, info, err)
				continue
			}
			checkWhole(t, filepath.Join(dir, filepath.FromSlash(d.Folder), s.File), d.Keep)
		}
	}
	root := filepath.Join(dir, response.Artifacts)
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		name = filepath.ToSlash(name)
		switch base := filepath.Base(name); {
		case strings.HasPrefix(base, "."):
			t.Errorf("temporary file remains: %s", name)
		case strings.HasSuffix(base, "summary.txt"), base == "analysis.json", base == "growth.json",
			base == "heap.summary.json.zst":
		case !want[name]:
			t.Errorf("%s is not in run.json", name)
		}
		delete(want, name)
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for name := range want {
		t.Errorf("%s is in run.json, but does not exist", name)
	}
}

// checkWhole checks that a heap dump is complete, and that it contains typed
// text only if raw dumps are kept.
func checkWhole(t *testing.T, path, keep string) {
	t.Helper()
	if !strings.HasPrefix(filepath.Base(path), "heap.hprof") {
		return
	}
	f, err := spool.Open(t.Context(), path, nil, spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Format != spool.Zstd || f.Truncated != nil || f.Damage != nil {
		t.Errorf("%s: %v, %v, %v", path, f.Format, f.Truncated, f.Damage)
	}
	if _, err := hprof.Strip(t.Context(), io.Discard, f, f.Size()); err != nil {
		t.Errorf("%s is not complete: %v", path, err)
	}
	if got := has(t, io.NewSectionReader(f, 0, f.Size()), secret); got != (keep == string(response.Raw)) {
		t.Errorf("%s, kept as %s: contains the typed text: got %v, want %v", path, keep, got, !got)
	}
}

// has reports whether a dump contains a string. It reads the dump in pieces,
// because dumps are large.
func has(t *testing.T, r io.Reader, text string) bool {
	t.Helper()
	piece, begun := make([]byte, 1<<20), 0
	for {
		n, err := io.ReadFull(r, piece[begun:])
		if bytes.Contains(piece[:begun+n], []byte(text)) {
			return true
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		begun = copy(piece, piece[len(piece)-len(text)+1:])
	}
}

// diagnosesOf returns the diagnoses of a process with the given trigger, or
// with any trigger if it is empty.
func (r result) diagnosesOf(process, trigger string) []record.Diagnosis {
	return slices.DeleteFunc(slices.Clone(r.Diagnoses), func(d record.Diagnosis) bool {
		return process != "" && d.Process != process || trigger != "" && d.Trigger != trigger
	})
}

// leftOn returns the heap dumps that are left on a phone.
func leftOn(t *testing.T, p *cabled) []string {
	t.Helper()
	files, err := p.ReadDir("/data/local/tmp")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "leakgate-") {
			out = append(out, f.Name())
		}
	}
	return out
}

// smallDumps makes phones write dumps with a small leak, however much the
// process has leaked. Most tests do not depend on the contents of dumps.
func smallDumps(o androidsim.Options) androidsim.Options {
	o.DumpHeap = func(w io.Writer, h androidsim.Heap) error {
		heap := hproftest.Android(hproftest.Phone{SDK: h.API, Process: h.Process})
		heap.Hold("com.shop.Screens", "sAll",
			heap.ArrayList(heap.Activity("com.shop.DetailActivity", hproftest.Destroyed).Ref).Ref)
		heap.Hold("com.shop.Login", "sToken", heap.String(secret))
		_, err := io.Copy(w, heap.Reader(hproftest.Form{}))
		return err
	}
	return o
}

// secret is text that somebody has typed into the app.
const secret = "correct horse battery staple"

func steps(d record.Diagnosis) string {
	var out []string
	for _, s := range d.Steps {
		if s.File != "" {
			out = append(out, s.Step)
		}
	}
	return strings.Join(out, " ")
}

// at returns the position of an event among the lines, and fails the test if
// there is no such event.
func (r result) at(t *testing.T, what string, is func(record.Event) bool) int {
	t.Helper()
	i := slices.IndexFunc(r.events, is)
	if i < 0 {
		t.Fatalf("no event: %s", what)
	}
	return i
}

// When a process becomes LEAKING, the artifacts of the recipe for its kind of
// leak are collected. They are compared with the snapshot that was taken when
// the process became suspicious. Nothing is collected from processes that do
// not leak. A leak that recurs too soon is recorded, and one that recurs later
// is diagnosed again.
func TestResponseToEachKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", rooted(), leaky("com.shop", androidsim.Java, 300),
			leaky("com.shop:native", androidsim.Native, 300),
			leaky("com.shop:gpu", androidsim.GPU, 300), leaky("com.shop:thread", androidsim.Thread, 300),
			healthy("com.shop:push")))
		o := responding(t, response.Options{}, p)
		o.Headroom = DefaultSampling.Headroom
		screen := &watcher{rows: map[string][]Row{}}
		o.Observer = screen
		r := respond(t, t.Context(), o)
		checkObserved(t, r, screen.events)
		for process, want := range map[string]struct{ recipe, files, says, finding string }{
			"com.shop": {
				"java", "meminfo heap logcat exit_info", "DetailActivity, held by ScreenTracker.sScreens", "leak",
			},
			"com.shop:native": {
				"native", "status smaps showmap maps meminfo logcat exit_info", "native heap [anon:scudo:primary] +",
				"native_kind",
			},
			"com.shop:gpu":    {"gpu", "meminfo gfxinfo gpu surfaceflinger logcat exit_info", "graphics: ", "graphics"},
			"com.shop:thread": {"thread", "status threads meminfo logcat exit_info", "pool-3-thread-*", "threads"},
		} {
			checkResponse(t, r, process, want.recipe, want.files, want.says, want.finding)
		}
		checkSnapshots(t, r.diagnosesOf("com.shop:push", ""), 0, 0)
		if left, err := filepath.Glob(filepath.Join(o.Dir, response.Artifacts, "*push*", "*")); err != nil ||
			len(left) != 2 {
			t.Errorf("got folders %v and error %v for the healthy process, want two folders", left, err)
		}
		for _, e := range r.events {
			switch e.Event {
			case "gap", "missed", "unseen", "unresponsive", "error":
				t.Errorf("%s of %s: %s", e.Event, e.Process, e.Text)
			case "pause":
				if e.Process != "com.shop" || e.Duration <= 0 {
					t.Errorf("unexpected pause of %s: %v", e.Process, e.Duration)
				}
			}
		}
		if x := r.process(t, "S1", "com.shop"); x.Paused < 2 || x.Paused > 10 {
			t.Errorf("paused for %v s", x.Paused)
		}
		if left := leftOn(t, p); len(left) > 0 {
			t.Errorf("files remain on the phone: %v", left)
		}
		checkLeaksTable(t, o.Dir, r.Run)
	})
}

// checkObserved compares the diagnoses that an observer received with those in
// the lines: an analysis must not change the observer's copy.
func checkObserved(t *testing.T, r result, told []record.Event) {
	t.Helper()
	seen, written := []record.Diagnosis{}, []record.Diagnosis{}
	for _, e := range told {
		if e.Event == "diagnose" {
			seen = append(seen, *e.Diagnosis)
		}
	}
	for _, e := range r.eventsOf("diagnose", "") {
		written = append(written, *e.Diagnosis)
	}
	a, err := json.Marshal(seen)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(written)
	if err != nil || !bytes.Equal(a, b) || len(seen) < 8 {
		t.Errorf("seen\n%s\nwritten\n%s\n%v", a, b, err)
	}
}

// checkResponse checks the responses to the leaks of one process.
func checkResponse(t *testing.T, r result, process, recipe, files, says, finding string) {
	t.Helper()
	kind := recipe + "_leak"
	leaks := r.diagnosesOf(process, record.TriggerLeak)
	if len(leaks) != 2 {
		t.Fatalf("%s: got %d diagnoses in an hour, want 2: the first one and another after the cooldown", process,
			len(leaks))
	}
	d := leaks[0]
	if d.Recipe != recipe || d.Kind.String() != kind || steps(d) != files || d.Outcome != record.DiagnosisComplete ||
		!strings.Contains(strings.Join(d.Summary, "\n"), says) || len(d.Warnings) > 0 {
		t.Errorf("%s: %s, %s, %s, %s:\n%s\n%q", process, d.Recipe, d.Kind, d.Outcome, steps(d),
			strings.Join(d.Summary, "\n"), d.Warnings)
	}
	if !slices.ContainsFunc(d.Findings, func(f record.Finding) bool { return f.Type == finding }) {
		t.Errorf("%s: no finding %s in %+v", process, finding, d.Findings)
	}
	of := func(event, to string) func(record.Event) bool {
		return func(e record.Event) bool {
			return e.Process == process && e.Event == event && (to == "" || e.To.String() == to)
		}
	}
	by := func(event, trigger string) func(record.Event) bool {
		return func(e record.Event) bool {
			return e.Process == process && e.Event == event && e.Diagnosis != nil && e.Diagnosis.Trigger == trigger
		}
	}
	order := []int{
		r.at(t, "SUSPICIOUS", of("state", "SUSPICIOUS")), r.at(t, "snapshot", by("diagnose", "suspicious")),
		r.at(t, "diagnosed", by("diagnosed", "suspicious")),
		r.at(t, "LEAKING", of("state", "LEAKING")), r.at(t, "collected", by("diagnose", "leak")),
		r.at(t, "NORMAL", of("state", "NORMAL")), r.at(t, "analyzed", by("diagnosed", "leak")),
	}
	if !slices.IsSorted(order) {
		t.Errorf("%s: events are out of order: %v", process, order)
	}
	leaking, collected := r.events[order[3]], r.events[order[4]]
	if late := d.T - leaking.T; late < 0 || late > 1 {
		t.Errorf("%s: diagnosis requested %.1f s after LEAKING", process, late)
	}
	if recipe != "java" && collected.T-leaking.T > 6 {
		t.Errorf("%s: collected %.1f s after LEAKING", process, collected.T-leaking.T)
	}
	if normal := r.events[order[5]]; normal.T != collected.T ||
		!strings.Contains(normal.Text, "the diagnosis is done") {
		t.Errorf("%s: the diagnosis did not end the state LEAKING: %+v", process, normal)
	}
	again := r.eventsOf("repeated", process)
	if len(again) != 1 || again[0].Kind.String() != kind || again[0].Diagnosis != nil ||
		!strings.Contains(again[0].Text, " MB/h, ") ||
		!strings.Contains(again[0].Text, " MB now; not diagnosed again: the last diagnosis was 1") {
		t.Errorf("%s: repeated %+v", process, again)
	}
	if again[0].T >= collected.T+1800 || leaks[1].T < collected.T+1800 {
		t.Errorf("%s: diagnosed at %v, repeated at %v, diagnosed again at %v", process, collected.T, again[0].T,
			leaks[1].T)
	}
}

// checkLeaksTable compares leaks.csv with the findings of run.json.
func checkLeaksTable(t *testing.T, dir string, run record.Run) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "leaks.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, d := range run.Diagnoses {
		if d.Trigger == record.TriggerLast {
			continue // a difference between two snapshots is not a leak
		}
		for _, f := range d.Findings {
			want = append(want, d.Process+" "+f.Type+" "+d.Folder)
		}
	}
	var have []string
	for _, row := range rows[1:] {
		have = append(have, row[2]+" "+row[7]+" "+row[16])
	}
	if !slices.Equal(have, want) || len(want) < 8 {
		t.Errorf("rows of leaks.csv:\n%q\nwant, from run.json:\n%q", have, want)
	}
}

// Under policy robust, a process stays LEAKING after a diagnosis. During the
// cooldown, a new leak after a restart is only recorded; after the cooldown, it
// is diagnosed again.
func TestResponseByTheRobustPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 400), healthy("com.shop:push")))
		o := responding(t, response.Options{Cooldown: 2 * time.Hour}, p)
		o.Policy = detector.RobustPolicy()
		o.Policy.Cooldown = 2 * time.Hour
		o.Duration = 5 * time.Hour
		restarts := []time.Duration{80*time.Minute + betweenSamples, 200*time.Minute + betweenSamples}
		go func() {
			began := time.Now()
			for _, at := range restarts {
				time.Sleep(time.Until(began.Add(at)))
				p.Restart("com.shop")
			}
		}()
		r := respond(t, t.Context(), o)
		leaks, again := r.diagnosesOf("com.shop", record.TriggerLeak), r.eventsOf("repeated", "com.shop")
		if len(leaks) != 2 || len(again) != 1 || len(r.eventsOf("restart", "com.shop")) != 2 {
			t.Fatalf("%d diagnoses, %+v, events %+v", len(leaks), again, r.eventsOf("state", ""))
		}
		if leaks[0].T > 4800 || again[0].T < 4800 || again[0].T > leaks[0].T+7200 || leaks[1].T < 12000 ||
			leaks[0].PID == leaks[1].PID {
			t.Errorf("diagnosed at %v and %v, repeated at %v", leaks[0].T, leaks[1].T, again[0].T)
		}
		for _, e := range r.eventsOf("state", "com.shop") {
			if *e.From == detector.Leaking && !strings.Contains(e.Text, "restarted") {
				t.Errorf("the diagnosis ended the state LEAKING: %+v", e)
			}
		}
		if x := r.process(t, "S1", "com.shop"); x.Worst != detector.Leaking || x.State != detector.Leaking ||
			x.Gate != "leak" {
			t.Errorf("%+v", x)
		}
		checkSnapshots(t, r.diagnosesOf("com.shop:push", ""), 0, 0)
	})
}

// A process that Android's memory limiter kills repeatedly, each time before a
// trend is visible, becomes LEAKING in its fourth life and is diagnosed before
// that life ends. This alarm can fail a run.
func TestResponseToMemoryDeaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phoneOf := smallDumps(rooted())
		phoneOf.API = 37
		phoneOf.MemoryLimiter = &androidsim.MemoryLimiter{
			Visible: 400, VisibleSwap: 112, NotVisible: 300, NotVisibleSwap: 100,
		}
		spec := leaky("com.shop", androidsim.Java, 900)
		spec.RestartAfter = 10 * time.Second
		p := cable(phone("S1", phoneOf, spec, healthy("com.shop:push")))
		o := responding(t, response.Options{}, p)
		o.Policy, o.Assert, o.Duration = detector.RobustPolicy(), record.AssertLive, 2*time.Hour
		r := respond(t, t.Context(), o)
		x := r.process(t, "S1", "com.shop")
		if x.DeathsByReason["memory_limiter"] < 4 || x.Worst != detector.Leaking || x.FirstLeaking == nil ||
			x.Gate != "leak" || r.ExitCode != record.ExitLeak {
			t.Fatalf("exit %d, %s, worst %s, deaths %v: %s", r.ExitCode, x.Gate, x.Worst, x.DeathsByReason, x.Reason)
		}
		third, fourth := x.Deaths[2].T, x.Deaths[3].T
		leaks := r.diagnosesOf("com.shop", record.TriggerLeak)
		if len(leaks) == 0 || leaks[0].T < third || leaks[0].T > fourth ||
			leaks[0].Outcome != record.DiagnosisComplete {
			t.Errorf("got diagnoses %+[3]v, want one between the deaths at %[1]v and %[2]v s", third, fourth, leaks)
		}
		alarms := slices.DeleteFunc(r.eventsOf("state", "com.shop"),
			func(e record.Event) bool { return *e.To != detector.Leaking })
		if len(alarms) == 0 || !strings.HasPrefix(alarms[0].Text, "3 out-of-memory deaths, and ") {
			t.Errorf("%+v", alarms)
		}
		if push := r.process(t, "S1", "com.shop:push"); push.Worst == detector.Leaking {
			t.Errorf("com.shop:push is LEAKING: %+v", push)
		}
	})
}

// stretch is a period in which an operation was in progress.
type stretch struct {
	what     string
	from, to time.Time
}

// stretches collects periods that several goroutines report.
type stretches struct {
	mu   sync.Mutex
	list []stretch
}

func (s *stretches) add(x stretch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, x)
}

// apart reports whether no two of the periods overlap.
func (s *stretches) apart() bool {
	slices.SortFunc(s.list, func(a, b stretch) int { return a.from.Compare(b.from) })
	for i := 1; i < len(s.list); i++ {
		if s.list[i].from.Before(s.list[i-1].to) {
			return false
		}
	}
	return true
}

// timed records how long each heap dump and pull takes.
type timed struct {
	*cabled
	stretches *stretches
}

func (d timed) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	from := time.Now()
	exit, err := d.cabled.Shell(ctx, command, stdout, stderr)
	if isDump(command) {
		d.stretches.add(stretch{command, from, time.Now()})
	}
	return exit, err
}

func (d timed) Pull(ctx context.Context, remote string, w io.Writer) (int64, error) {
	from := time.Now()
	n, err := d.cabled.Pull(ctx, remote, w)
	d.stretches.add(stretch{"pull " + remote, from, time.Now()})
	return n, err
}

// Two processes that leak at the same time are dumped one after the other.
// Processes that are not being dumped keep their interval. The process that is
// being dumped has no samples, and this is not a gap.
func TestResponseOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 300),
			leaky("com.shop:b", androidsim.Java, 300), healthy("com.shop:push")))
		p.slow = 100 * time.Second
		o := responding(t, response.Options{}, p)
		went := &stretches{}
		o.Devices[0].Device, o.Duration = timed{p, went}, 40*time.Minute
		r := respond(t, t.Context(), o)
		if !went.apart() || len(went.list) != 4 {
			t.Errorf("got dumps and pulls %+v, want 4 that do not overlap", went.list)
		}
		a, b := r.diagnosesOf("com.shop", record.TriggerLeak), r.diagnosesOf("com.shop:b", record.TriggerLeak)
		if len(a) != 1 || len(b) != 1 || a[0].Outcome != record.DiagnosisComplete ||
			b[0].Outcome != record.DiagnosisComplete {
			t.Fatalf("%+v %+v", a, b)
		}
		if apart := b[0].T - a[0].T; apart < -100 || apart > 100 {
			t.Fatalf("the leaks are reported %v s apart, want at most 100 s", apart)
		}
		pauses := r.eventsOf("pause", "")
		if len(pauses) != 2 {
			t.Fatalf("%+v", pauses)
		}
		for _, e := range pauses {
			if e.Duration < 100 || e.Duration > 110 {
				t.Errorf("%s paused for %v s", e.Process, e.Duration)
			}
			for _, s := range r.samples {
				if s.Process == e.Process && s.T > e.T-e.Duration+1 && s.T < e.T-1 {
					t.Errorf("sample of %s at %v s, while its heap is dumped until %v s", s.Process, s.T, e.T)
				}
			}
		}
		checkIntervals(t, r, "com.shop:push", 0)
		checkIntervals(t, r, "com.shop", 111)
		for _, e := range r.events {
			if e.Event == "gap" || e.Event == "missed" || e.Event == "unresponsive" {
				t.Errorf("%s of %s: %s", e.Event, e.Process, e.Text)
			}
		}
	})
}

// checkIntervals checks the intervals of the fast channel: at most one and a
// half times the demanded interval, plus the pause.
func checkIntervals(t *testing.T, r result, process string, pause float64) {
	t.Helper()
	samples, x := r.samplesOf(process, false), r.process(t, "", process)
	for i := 1; i < len(samples); i++ {
		state := "NORMAL"
		for _, step := range x.Transitions {
			if step.T <= samples[i-1].T {
				state = step.To.String()
			}
		}
		most := 1.5 * map[string]float64{"NORMAL": 30, "SUSPICIOUS": 15, "CONFIRMING": 15, "LEAKING": 60}[state]
		switch step := samples[i].T - samples[i-1].T; {
		case step <= most:
		case step <= most+pause:
			pause = 0
		default:
			t.Errorf("%s: %.1f s without a sample at %v in %s", process, step, samples[i].T, state)
		}
	}
	if len(samples) < 60 {
		t.Errorf("%s: %d samples", process, len(samples))
	}
}

// Two phones are dumped at the same time, but their dumps are analyzed one at a
// time.
func TestResponseOnTwoPhones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		analyses, dumps := &stretches{}, &stretches{}
		a, b := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 300))),
			cable(phone("S2", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 300)))
		a.slow, b.slow = 30*time.Second, 30*time.Second
		o := responding(t, response.Options{Memory: func() int64 {
			from := time.Now()
			time.Sleep(3 * time.Minute) // advances only the fake clock
			analyses.add(stretch{"analysis", from, time.Now()})
			return 0
		}}, a, b)
		o.Devices[0].Device, o.Devices[1].Device, o.Duration = timed{a, dumps}, timed{b, dumps}, 40*time.Minute
		r := respond(t, t.Context(), o)
		if len(analyses.list) != 2 || !analyses.apart() {
			t.Errorf("analyses %+v", analyses.list)
		}
		if len(dumps.list) != 4 || dumps.apart() {
			t.Errorf("dumps %+v", dumps.list)
		}
		for _, serial := range []string{"S1", "S2"} {
			i := slices.IndexFunc(r.Diagnoses,
				func(d record.Diagnosis) bool { return d.Device == serial && d.Trigger == record.TriggerLeak })
			if i < 0 || len(r.Diagnoses[i].Findings) == 0 || r.Diagnoses[i].Outcome != record.DiagnosisComplete {
				t.Errorf("%s: %+v", serial, r.Diagnoses)
			}
		}
		for _, e := range r.events {
			if e.Event == "gap" || e.Event == "missed" || e.Event == "unseen" {
				t.Errorf("%s of %s: %s", e.Event, e.Process, e.Text)
			}
		}
	})
}

// At the end of a run every process is dumped if this was requested, and
// suspicious processes without a final diagnosis are diagnosed. The time that
// this takes is not a gap in any series.
func TestResponseAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		dump     response.Dump
		duration time.Duration
		stop     bool
		want     map[string]string
	}{
		// The suspicion begins with the sample at 5 min.
		"healthy": {
			response.AtEnd, 4*time.Minute + 2*time.Second, false,
			map[string]string{"com.shop": "end", "com.shop:push": "end"},
		},
		"suspected": {
			response.OnLeak, 12 * time.Minute, false,
			map[string]string{"com.shop": "suspicious first final last", "com.shop:push": "first last"},
		},
		"suspected, with dumps at the end": {
			response.AtEnd, 12 * time.Minute, false,
			map[string]string{"com.shop": "suspicious first final last", "com.shop:push": "first end last"},
		},
		"diagnosed and suspected": {
			response.OnLeak, 30 * time.Minute, false,
			map[string]string{"com.shop": "suspicious first leak last", "com.shop:push": "first last"},
		},
		"diagnosed long ago": {
			response.OnLeak, 55 * time.Minute, false,
			map[string]string{"com.shop": "suspicious first leak suspicious final last", "com.shop:push": "first last"},
		},
		"interrupted": {
			response.AtEnd, 12 * time.Minute, true,
			map[string]string{"com.shop": "suspicious first", "com.shop:push": "first"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 300),
					healthy("com.shop:push")))
				p.slow = 200 * time.Second
				o := responding(t, response.Options{Dump: c.dump}, p)
				o.Duration = c.duration
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				if c.stop {
					time.AfterFunc(c.duration-time.Minute, stop)
				}
				r := respond(t, ctx, o)
				got := map[string]string{}
				for _, d := range r.Diagnoses {
					got[d.Process] = strings.TrimSpace(got[d.Process] + " " + d.Trigger)
					if d.Trigger == "end" && (d.Recipe != "dump" || steps(d) != "heap" || d.Kind != detector.None) {
						t.Errorf("%+v", d)
					}
				}
				if fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("diagnoses %v, want %v", got, c.want)
				}
				if r.Interrupted != c.stop || len(r.eventsOf("unseen", "")) > 0 {
					t.Errorf("%s, events %+v", r.Stopped, r.eventsOf("unseen", ""))
				}
				for _, x := range r.Processes {
					if x.Missing > 0 || len(x.Warnings) > 0 {
						t.Errorf("%s was absent for %v s: %v", x.Process, x.Missing, x.Warnings)
					}
				}
			})
		})
	}
}

// looping is a workload that marks the loops of a suite and waits after the
// last loop.
type looping struct {
	loops          int
	every, lingers time.Duration
}

func (looping) Describe() record.Workload { return record.Workload{Kind: "host_command"} }

func (w looping) Run(ctx context.Context, stage Env) (record.Workload, error) {
	for i := range w.loops {
		if sleep(ctx, w.every) != nil {
			return w.Describe(), nil
		}
		stage.Mark("", fmt.Sprintf("loop %d", i+1))
	}
	_ = sleep(ctx, w.lingers) // returns early when the run ends
	return w.Describe(), nil
}

// At each mark, every process is dumped, and the objects that grew in all dumps
// are reported at the end.
func TestResponseAtMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", rooted(), leaky("com.shop", androidsim.Java, 100), healthy("com.shop:push")))
		o := responding(t, response.Options{Dump: response.AtMarks}, p)
		o.Workload, o.Duration = looping{4, 3 * time.Minute, 0}, 0
		r := respond(t, t.Context(), o)
		for _, process := range []string{"com.shop", "com.shop:push"} {
			marks := r.diagnosesOf(process, record.TriggerMark)
			var texts []string
			for _, d := range marks {
				texts = append(texts, d.Mark)
			}
			if !slices.Equal(texts, []string{"loop 1", "loop 2", "loop 3", "loop 4"}) {
				t.Errorf("%s: got dumps at %q", process, texts)
			}
		}
		grown := r.diagnosesOf("com.shop", record.TriggerMarks)
		if len(grown) != 1 || !strings.Contains(grown[0].Summary[0], "4 dumps at marks") ||
			len(grown[0].Findings) == 0 || grown[0].Findings[0].Type != "growing" {
			t.Errorf("growth %+v", grown)
		}
		// The foreground Activity of a healthy process does not change.
		for _, d := range r.diagnosesOf("com.shop:push", record.TriggerMarks) {
			if len(d.Findings) > 0 {
				t.Errorf("unexpected findings for the healthy process: %+v", d.Findings)
			}
		}
		if n := len(r.eventsOf("error", "")); n > 0 {
			t.Errorf("%+v", r.eventsOf("error", ""))
		}
	})
}

// If marks arrive faster than dumps can be taken, each mark without a dump is
// reported; a late dump is not assigned to a later mark.
func TestResponseToMarksInQuickSuccession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), healthy("com.shop")))
		p.slow = 2 * time.Minute
		o := responding(t, response.Options{Dump: response.AtMarks}, p)
		o.Workload, o.Duration = looping{10, 30 * time.Second, 0}, 20*time.Minute
		r := respond(t, t.Context(), o)
		dumps, late := r.diagnosesOf("com.shop", record.TriggerMark), r.eventsOf("missing", "com.shop")
		if len(dumps)+len(late) != 10 || len(dumps) < 2 || len(late) < 5 || late[0].Mark != "loop 3" ||
			!strings.Contains(late[0].Text, `no heap dump at mark "loop 3": the dump of an earlier mark`) {
			t.Errorf("%d dumps, %+v", len(dumps), late)
		}
		if len(r.MissingEvidence) != len(late) {
			t.Errorf("run.json has %+v", r.MissingEvidence)
		}
		if code := ledger.ExitCode(r.Run, record.Plan{Assert: record.AssertEnd}); code != record.ExitInconclusive {
			t.Errorf("exit %d", code)
		}
	})
}
