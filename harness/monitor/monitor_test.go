package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/schema"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

// simulated is a simulated phone that is called directly, without a connection.
type simulated struct {
	*androidsim.Phone
	mu    sync.Mutex
	calls []string
	// While cut is set, every command fails.
	cut bool
}

func (s *simulated) Serial() string { return s.Identity().Serial }

var errCut = errors.New("connection ended before the exit status")

func (s *simulated) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	s.mu.Lock()
	s.calls = append(s.calls, command)
	cut := s.cut
	s.mu.Unlock()
	if cut {
		return 0, errCut
	}
	exit := s.Phone.Shell(ctx, command, strings.NewReader(""), stdout, stderr)
	return exit, ctx.Err()
}

func (s *simulated) unplug(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
}

func (s *simulated) Pull(context.Context, string, io.Writer) (int64, error) {
	return 0, errors.ErrUnsupported
}

func (s *simulated) Push(context.Context, io.Reader, string, fs.FileMode) error {
	return errors.ErrUnsupported
}

func (s *simulated) commands(part string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if strings.Contains(c, part) {
			n++
		}
	}
	return n
}

func healthy(name string) androidsim.ProcessSpec {
	return androidsim.ProcessSpec{
		Name: name, Models: []androidsim.Model{androidsim.Typical(), androidsim.Noise(2, 0.3)},
	}
}

func leaky(name string, kind androidsim.Kind, rate float64) androidsim.ProcessSpec {
	p := healthy(name)
	p.Models = append(p.Models, androidsim.Leak(kind, rate, 0))
	return p
}

func phone(serial string, o androidsim.Options, specs ...androidsim.ProcessSpec) *simulated {
	o.Serial = serial
	o.Apps = []androidsim.App{{Package: "com.shop", Processes: specs}}
	return &simulated{Phone: androidsim.New(o)}
}

// betweenSamples is added to every time at which a test makes a change, so the
// change never coincides with a sample: their order would be undefined, even in
// virtual time.
const betweenSamples = 5 * time.Second

func rooted() androidsim.Options {
	return androidsim.Options{Root: true, Seed: 7, BuildType: "userdebug"}
}

// defaultBudget is the CPU budget for breakdowns that the commands use.
var defaultBudget = Sampling{MaxSystemServer: DefaultSampling.MaxSystemServer, MaxApp: DefaultSampling.MaxApp}

// options prepares a run on the given phones, as a command does.
func options(t *testing.T, phones ...*simulated) Options {
	t.Helper()
	o := Options{
		Patterns: []capture.Pattern{"com.shop", "com.shop:*"}, Policy: detector.ArticlePolicy(),
		Dir: filepath.Join(t.TempDir(), "run"), Duration: time.Hour, Tool: "test",
		// most runs in these tests are too short for a verdict, and do not need
		// one
		ExitRules: ExitRules{AllowUnjudged: true},
	}
	for _, p := range phones {
		facts, err := capture.ReadFacts(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		o.Devices = append(o.Devices, Device{p, facts})
	}
	return o
}

// result holds everything that a run left behind.
type result struct {
	record.Run
	samples []record.Sample
	events  []record.Event
	lines   []line
}

// line is one line of the file: a sample or an event.
type line struct {
	sample *record.Sample
	event  *record.Event
}

func perform(t *testing.T, ctx context.Context, o Options) result {
	t.Helper()
	run, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	onDisk, err := record.ReadRun(o.Dir)
	if err != nil || onDisk.ExitCode != run.ExitCode || len(onDisk.Processes) != len(run.Processes) {
		t.Fatalf("run.json differs: %+v, %v", onDisk, err)
	}
	again, warnings, err := ledger.Rebuild(o.Dir)
	if err != nil || len(warnings) > 0 || !reflect.DeepEqual(again, onDisk) {
		t.Errorf("the run rebuilt from its lines differs:\n%+v\n%+v\n%v %v", again, onDisk, warnings, err)
	}
	rec := readAll(t, o.Dir)
	rec.Run = run
	if len(rec.lines) < schemaLines {
		if n, err := schema.CheckRun(o.Dir); err != nil || n < 2 {
			t.Errorf("%d documents: %v", n, err)
		}
	}
	if _, err := os.Stat(filepath.Join(o.Dir, inboxName)); err == nil {
		t.Error("the inbox was not removed")
	}
	return rec
}

// schemaLines bounds the number of lines of a run whose files are validated,
// because validation takes longer than the run.
const schemaLines = 150

// readAll reads the lines of a run.
func readAll(t *testing.T, dir string) result {
	t.Helper()
	var rec result
	f, err := os.Open(filepath.Join(dir, "samples.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	warnings, err := record.ReadSamples(f, record.Lines{
		Sample: func(s record.Sample) error {
			rec.samples = append(rec.samples, s)
			rec.lines = append(rec.lines, line{sample: &s})
			return nil
		},
		Event: func(e record.Event) error {
			rec.events = append(rec.events, e)
			rec.lines = append(rec.lines, line{event: &e})
			return nil
		},
	})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	return rec
}

func (r result) process(t *testing.T, device, name string) record.Process {
	t.Helper()
	for _, p := range r.Processes {
		if p.Process == name && (device == "" || p.Device == device) {
			return p
		}
	}
	t.Fatalf("no process %s in %+v", name, r.Processes)
	return record.Process{}
}

func (r result) eventsOf(kind, process string) []record.Event {
	return slices.DeleteFunc(slices.Clone(r.events), func(e record.Event) bool {
		return e.Event != kind || process != "" && e.Process != process
	})
}

func (r result) samplesOf(process string, breakdowns bool) []record.Sample {
	return slices.DeleteFunc(slices.Clone(r.samples), func(s record.Sample) bool {
		return s.Process != process || (s.Breakdown != nil) != breakdowns
	})
}

func TestRunDetectsEachKindOfLeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), leaky("com.shop", androidsim.Java, 300),
			leaky("com.shop:native", androidsim.Native, 300),
			leaky("com.shop:gpu", androidsim.GPU, 300), leaky("com.shop:thread", androidsim.Thread, 300),
			healthy("com.shop:push"))
		r := perform(t, t.Context(), options(t, p))
		for name, kind := range map[string]string{
			"com.shop": "java_leak", "com.shop:native": "native_leak", "com.shop:gpu": "gpu_leak",
			"com.shop:thread": "thread_leak",
		} {
			if x := r.process(t, "S1", name); x.Worst != detector.Leaking || x.Kind.String() != kind ||
				x.Gate != "leak" {
				t.Errorf("%s: %+v", name, x)
			}
		}
		if x := r.process(t, "S1", "com.shop:push"); x.Worst != detector.Normal || x.Gate != "pass" ||
			x.Source != "smaps_rollup" {
			t.Errorf("healthy: %+v", x)
		}
		if r.ExitCode != record.ExitLeak || r.Stopped != "duration" || r.Interrupted {
			t.Errorf("exit %d, stopped by %s", r.ExitCode, r.Stopped)
		}
		d := r.Devices[0]
		if d.SystemServer == nil || d.DetailSystemServer == nil || *d.DetailSystemServer < *d.SystemServer {
			t.Errorf("system_server: %+v", d)
		}
	})
}

// One round trip serves all processes that are due. The rotation takes one
// breakdown every 30 s, whatever the number of processes.
func TestRunCostDoesNotGrowWithProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var specs []androidsim.ProcessSpec
		for i := range 50 {
			specs = append(specs, healthy(fmt.Sprintf("com.shop:p%02d", i)))
		}
		p := phone("S1", rooted(), specs...)
		o := options(t, p)
		o.Duration = 10*time.Minute + 10*time.Second // ends while no request is in flight
		r := perform(t, t.Context(), o)
		if len(r.Processes) != 50 {
			t.Fatalf("%d processes", len(r.Processes))
		}
		// There are 21 samples at an interval of 30 s. A process that is
		// SUSPICIOUS for a while is sampled every 15 s. All samples of a round
		// have the same time, so there are as many times as rounds.
		times := map[float64]bool{}
		for _, x := range r.samples {
			if x.Breakdown == nil {
				times[x.Up] = true
			}
		}
		// One more round at the end detects processes that have ended.
		if n := p.commands("exec grep"); n < 20 || n > 43 || n != len(times)+1 {
			t.Errorf("got %d fast round trips in 10 min, want 20 to 43 and one more than the %d times with samples", n,
				len(times))
		}
		if n := p.commands("meminfo"); n < 19 || n > 21 {
			t.Errorf("got %d meminfo dumps in 10 min, want 19 to 21", n)
		}
		for _, x := range r.Processes {
			if x.Samples < 20 {
				t.Errorf("%s: %d samples", x.Process, x.Samples)
			}
		}
	})
}

// The intervals follow the state (the article, section 4.3). Readings with
// dumpsys never overlap and are at least half a period apart.
func TestRunIntervalsFollowTheDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := perform(t, t.Context(),
			options(t, phone("S1", rooted(), leaky("com.shop", androidsim.Java, 300), healthy("com.shop:push"))))
		x := r.process(t, "S1", "com.shop")
		state, since := "NORMAL", 0.0
		seen := map[string]int{}
		samples := r.samplesOf("com.shop", false)
		for i := 1; i < len(samples); i++ {
			for _, step := range x.Transitions {
				if step.T <= samples[i-1].T && step.T >= since {
					state, since = step.To.String(), step.T
				}
			}
			want := map[string]float64{"NORMAL": 30, "SUSPICIOUS": 15, "CONFIRMING": 15, "LEAKING": 60}[state]
			if step := samples[i].T - samples[i-1].T; step > want+1.5 || state != "NORMAL" && step < 1 {
				t.Errorf("%.1f s after %.1f s in %s", step, samples[i-1].T, state)
			}
			seen[state]++
		}
		if len(seen) != 4 {
			t.Errorf("states seen: %v", seen)
		}
		dumps := slices.Concat(r.samplesOf("com.shop", true), r.samplesOf("com.shop:push", true))
		slices.SortFunc(dumps, func(a, b record.Sample) int { return int(1000 * (a.T - b.T)) })
		for i := 1; i < len(dumps); i++ {
			if step := dumps[i].T - dumps[i-1].T; step < 14 {
				t.Errorf("got two dumps only %.1f s apart", step)
			}
		}
	})
}

func TestRunRestartIsANewSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := leaky("com.shop", androidsim.Java, 300)
		spec.Models = append(spec.Models, androidsim.Crash(12*time.Minute, 20*time.Second))
		o := options(t, phone("S1", rooted(), spec))
		o.Duration = 20 * time.Minute
		r := perform(t, t.Context(), o)
		x := r.process(t, "S1", "com.shop")
		if x.Restarts != 1 || len(r.eventsOf("gone", "com.shop")) != 1 || len(r.eventsOf("restart", "com.shop")) != 1 {
			t.Errorf("%d restarts, events %+v", x.Restarts, r.events)
		}
		for _, e := range r.eventsOf("gone", "com.shop") { // its text is the PID
			if want := fmt.Sprintf("pid %d", e.PID); e.Text != want {
				t.Errorf("gone: %q, want %q", e.Text, want)
			}
		}
		pids := map[int]bool{}
		for _, s := range r.samplesOf("com.shop", false) {
			pids[s.PID] = true
		}
		if len(pids) != 2 {
			t.Errorf("pids %v", pids)
		}
		if x.Duration > 9*60 {
			t.Errorf("the series is %v s long: it includes the restart", x.Duration)
		}
	})
}

func TestRunLateStarter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := healthy("com.shop:late")
		late.StartAfter = 5 * time.Minute
		o := options(t, phone("S1", rooted(), healthy("com.shop"), late))
		o.Duration = 10 * time.Minute
		r := perform(t, t.Context(), o)
		found := r.eventsOf("found", "com.shop:late")
		if len(found) != 1 || found[0].T < 300 || found[0].T > 335 {
			t.Errorf("found %+v", found)
		}
	})
}

func TestRunOnTwoPhonesSeparatesNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := rooted()
		o.Seed = 9
		a, b := phone("S1", rooted(), leaky("com.shop", androidsim.Java, 300)), phone("S2", o, healthy("com.shop"))
		opts := options(t, a, b)
		screen := &watcher{rows: map[string][]Row{}}
		opts.Observer = screen
		r := perform(t, t.Context(), opts)
		if x := r.process(t, "S1", "com.shop"); x.Gate != "leak" {
			t.Errorf("S1: %+v", x)
		}
		if x := r.process(t, "S2", "com.shop"); x.Gate != "pass" || x.Worst != detector.Normal {
			t.Errorf("S2: %+v", x)
		}
		for _, s := range r.samples {
			if s.Device != "S1" && s.Device != "S2" {
				t.Fatalf("sample without a known device: %+v", s)
			}
		}
		for _, e := range r.events {
			if e.Event == "state" && e.Device != "S1" {
				t.Errorf("state transition on the healthy phone: %+v", e)
			}
		}
		var text strings.Builder
		if err := reporters.WriteRun(&text, r.Run); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"com.shop on S1: LEAK (java leak)", "com.shop on S2: PASS"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in\n%s", want, text.String())
			}
		}
		if len(screen.rows["S1"]) != 1 || screen.rows["S1"][0].Verdict.State == screen.rows["S2"][0].Verdict.State {
			t.Errorf("rows %+v", screen.rows)
		}
	})
}

type watcher struct {
	mu     sync.Mutex
	rows   map[string][]Row
	events []record.Event
}

func (w *watcher) Happened(e record.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

func (w *watcher) Changed(device string, rows func() []Row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows[device] = rows()
}

// A frozen process never responds to dumpsys. The fast channel continues at its
// interval. The frozen process is reported and no longer read, while the other
// process is still read.
func TestRunHungDumpsysDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"), healthy("com.shop:frozen"))
		p.Freeze("com.shop:frozen", true)
		o := options(t, p)
		o.Duration = 20 * time.Minute
		r := perform(t, t.Context(), o)
		for _, name := range []string{"com.shop", "com.shop:frozen"} {
			samples := r.samplesOf(name, false)
			for i := 1; i < len(samples); i++ {
				if step := samples[i].T - samples[i-1].T; step > 31.5 {
					t.Errorf("%s: %.1f s without a sample", name, step)
				}
			}
			if len(samples) < 40 {
				t.Errorf("%s: %d samples", name, len(samples))
			}
		}
		if n := len(r.eventsOf("unresponsive", "com.shop:frozen")); n != 1 {
			t.Errorf("reported %d times", n)
		}
		if n := len(r.samplesOf("com.shop", true)); n < 20 {
			t.Errorf("com.shop has %d breakdowns in 20 min, want at least 20", n)
		}
	})
}

func TestUserBuildFallsBackToStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := perform(t, t.Context(),
			options(t, phone("S1", androidsim.Options{Seed: 3}, leaky("com.shop", androidsim.Native, 300))))
		x := r.process(t, "S1", "com.shop")
		if x.Source != "status" || x.Gate != "leak" || x.Kind != detector.Native {
			t.Errorf("%+v", x)
		}
		if reasons := strings.Join(x.Reasons, "\n"); !strings.Contains(reasons, "Permission denied") ||
			!strings.Contains(reasons, "run_as") {
			t.Errorf("reasons: %s", reasons)
		}
		for _, s := range r.samplesOf("com.shop", false) {
			if s.PSS != nil || s.RSSAnon == nil || s.Swap == nil || s.Source != "status" {
				t.Fatalf("%+v", s)
			}
		}
	})
}

func TestRunOldPhones(t *testing.T) {
	for api, source := range map[int]string{18: "dumpsys", 19: "dumpsys", 23: "dumpsys", 29: "status", 36: "status"} {
		t.Run(fmt.Sprint(api), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := perform(t, t.Context(),
					options(t,
						phone("S1", androidsim.Options{API: api, Seed: 3}, leaky("com.shop", androidsim.Native, 400))))
				if x := r.process(t, "S1", "com.shop"); x.Source != source || x.Gate != "leak" || x.Samples < 20 {
					t.Errorf("%+v", x)
				}
			})
		})
	}
}

// The same app runs for two users and has a process with its own uid.
func TestRunUsersAndIsolatedProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sandbox := healthy("com.shop:sandboxed_process0")
		sandbox.Isolated = true
		debuggable := func(user int, specs ...androidsim.ProcessSpec) androidsim.App {
			return androidsim.App{Package: "com.shop", User: user, Debuggable: true, Processes: specs}
		}
		p := &simulated{Phone: androidsim.New(androidsim.Options{Serial: "S1", Seed: 3, Apps: []androidsim.App{
			debuggable(0, healthy("com.shop"), sandbox), debuggable(10, leaky("com.shop", androidsim.Native, 300)),
		}})}
		r := perform(t, t.Context(), options(t, p))
		want := map[string][2]string{
			"0 com.shop": {"run_as", "pass"}, "10 com.shop": {"run_as", "leak"},
			"0 com.shop:sandboxed_process0": {"status", "pass"},
		}
		for _, x := range r.Processes {
			name := fmt.Sprintf("%d %s", x.User, x.Process)
			if got := [2]string{x.Source, string(x.Gate)}; got != want[name] {
				t.Errorf("%s: %v, want %v: %+v", name, got, want[name], x)
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("never seen: %v", want)
		}
	})
}

// If only dumpsys can read the processes, each is read at an interval of 30 s
// times the number of processes. This interval does not count as a gap.
func TestRunManyProcessesWithDumpsysOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		specs := []androidsim.ProcessSpec{leaky("com.shop", androidsim.Native, 400)}
		for i := range 4 {
			specs = append(specs, healthy(fmt.Sprintf("com.shop:p%d", i)))
		}
		o := options(t, phone("S1", androidsim.Options{API: 19, Seed: 3}, specs...))
		o.Duration = 3 * time.Hour
		r := perform(t, t.Context(), o)
		if gaps := r.eventsOf("gap", ""); len(gaps) > 0 {
			t.Errorf("gaps %+v", gaps)
		}
		if x := r.process(t, "S1", "com.shop"); x.Source != "dumpsys" || x.Gate != "leak" || x.Samples < 60 {
			t.Errorf("%+v", x)
		}
		for _, x := range r.Processes {
			if x.Process != "com.shop" && x.Worst == detector.Leaking {
				t.Errorf("%+v", x)
			}
		}
	})
}

// If a cable is unplugged for two minutes, the only effect is a gap.
func TestRunDeviceReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		go func() {
			time.Sleep(10*time.Minute + betweenSamples)
			p.unplug(true)
			time.Sleep(50 * time.Second)
			p.unplug(false)
		}()
		o := options(t, p)
		o.Duration = 20 * time.Minute
		r := perform(t, t.Context(), o)
		if r.ExitCode != record.ExitClean || len(r.eventsOf("error", "")) == 0 {
			t.Errorf("exit %d, events %+v", r.ExitCode, r.events)
		}
		if n := len(r.samplesOf("com.shop", false)); n < 36 {
			t.Errorf("%d samples", n)
		}
	})
}

func TestRunDeviceLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := phone("S1", rooted(), healthy("com.shop")), phone("S2", rooted(), healthy("com.shop"))
		go func() {
			time.Sleep(10*time.Minute + betweenSamples)
			a.unplug(true)
		}()
		o := options(t, a, b)
		o.Duration = 30 * time.Minute
		r := perform(t, t.Context(), o)
		if r.ExitCode != record.ExitNoDevice || r.Devices[0].Error == "" || r.Devices[1].Error != "" {
			t.Errorf("exit %d, %+v", r.ExitCode, r.Devices)
		}
		last := map[string]float64{}
		for _, s := range r.samples {
			last[s.Device] = s.T
		}
		if last["S1"] < 500 || last["S2"] < 1700 {
			t.Errorf("got the last samples at %v s, want at least 500 s on S1 and 1700 s on S2", last)
		}
	})
}

func TestRunReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		go func() {
			time.Sleep(10*time.Minute + betweenSamples)
			p.Reboot()
		}()
		o := options(t, p)
		o.Duration = 20 * time.Minute
		r := perform(t, t.Context(), o)
		x := r.process(t, "S1", "com.shop")
		if x.Restarts != 1 || len(r.eventsOf("reboot", "")) != 1 {
			t.Errorf("%+v, events %+v", x, r.events)
		}
		for i := 1; i < len(r.samples); i++ {
			if r.samples[i].T < r.samples[i-1].T-31 {
				t.Errorf("the time decreased from %.1f to %.1f", r.samples[i-1].T, r.samples[i].T)
			}
		}
		if x.Worst != detector.Normal {
			t.Errorf("the reboot affects the state: %+v", x)
		}
	})
}

func TestRunInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(3*time.Minute + betweenSamples)
			cancel()
		}()
		r := perform(t, ctx, options(t, phone("S1", rooted(), healthy("com.shop"))))
		if r.ExitCode != record.ExitInterrupted || !r.Interrupted || r.Stopped != "interrupted" || len(r.samples) < 6 {
			t.Errorf("%+v", r.Run)
		}
	})
}

func TestRunMonkeyAndMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, phone("S1", rooted(), healthy("com.shop")))
		o.Workload = Monkey{Package: "com.shop", Seed: 42, Throttle: 300 * time.Millisecond, Events: 1000}
		r := perform(t, t.Context(), o)
		if r.Stopped != "workload" || r.Workload.Exit == nil || *r.Workload.Exit != 0 || *r.Workload.Seed != 42 {
			t.Errorf("%+v", r.Run)
		}
		if d := r.Devices[0].Duration; d < 290 || d > 330 {
			t.Errorf("got a duration of %.0f s, want about 300 s for a thousand events 300 ms apart", d)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		o := options(t, phone("S1", rooted(), healthy("com.shop")))
		o.Workload = DeviceCommand{Command: "sleep 60; echo leakgate:mark loop 2; sleep 60; exit 3"}
		// Each workload has its own log.
		if err := os.MkdirAll(o.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(o.Dir, "workload.log"), []byte("another"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := perform(t, t.Context(), o)
		marks := r.eventsOf("mark", "")
		if len(marks) != 1 || marks[0].Text != "loop 2" || marks[0].T < 55 || marks[0].T > 65 {
			t.Errorf("marks %+v", marks)
		}
		if r.ExitCode != record.ExitWorkload ||
			!strings.HasSuffix(r.Workload.Error, "exit 3; its output is in workload-2.log") {
			t.Errorf("%+v", r.Run)
		}
	})
}

func TestRunWithoutTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, phone("S1", rooted(), healthy("com.other")))
		o.Duration = 5 * time.Minute
		r := perform(t, t.Context(), o)
		if r.ExitCode != record.ExitNoDevice || len(r.Warnings) != 2 ||
			!strings.Contains(r.Warnings[0], "no process com.shop was seen") {
			t.Errorf("exit %d, %v", r.ExitCode, r.Warnings)
		}
	})
}

func TestRunRefusesADirectoryWithARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, phone("S1", rooted(), healthy("com.shop")))
		o.Duration = time.Minute
		perform(t, t.Context(), o)
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "already holds a run") {
			t.Errorf("%v", err)
		}
	})
}

// A cache that fills in an hour and then stops growing is LEAKING while it
// fills, but is not a leak at the end. Therefore the run fails only with assert
// live; the verdict is the same with both values. A leak whose process was
// never LEAKING fails with both values, and the reason mentions this. The leak
// is watched for six hours, which takes too long under the race detector.
func TestAssertLiveByRobust(t *testing.T) {
	for name, c := range map[string]struct {
		model     androidsim.Model
		hours     int
		gate      string
		leaking   bool // while it runs
		live, end int
		headline  string
	}{
		"a cache": {
			androidsim.CacheFill(400, time.Hour), 3, "inconclusive", true, record.ExitLeak, record.ExitClean,
			"INCONCLUSIVE",
		},
		"slow leak": {
			androidsim.Leak(androidsim.Java, 12, 0), 6, "leak", false, record.ExitLeak, record.ExitLeak,
			"LEAK (java leak), proved at the end, without an alarm during the run\n",
		},
		"no leak": {
			androidsim.Steady(androidsim.JavaHeap, 12), 2, "pass", false, record.ExitClean, record.ExitClean,
			"PASS\n",
		},
	} {
		if racing && c.hours > 3 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			spec := healthy("com.shop")
			spec.Models = append(spec.Models, c.model)
			o := options(t, phone("S1", rooted(), spec))
			o.Policy, o.Assert, o.Duration = detector.RobustPolicy(), record.AssertLive,
				time.Duration(c.hours)*time.Hour
			r := perform(t, t.Context(), o)
			x := r.process(t, "S1", "com.shop")
			if string(x.Gate) != c.gate || (x.Worst == detector.Leaking) != c.leaking ||
				(x.FirstLeaking != nil) != c.leaking {
				t.Errorf("%s: %s, worst %s, first LEAKING %v: %s", name, x.Gate, x.Worst, x.FirstLeaking, x.Reason)
			}
			if end := ledger.ExitCode(r.Run, record.Plan{Assert: record.AssertEnd}); r.ExitCode != c.live ||
				end != c.end {
				t.Errorf("%s: exit code %d with assert live and %d with assert end, want %d and %d", name, r.ExitCode,
					end, c.live, c.end)
			}
			var text strings.Builder
			if err := reporters.WriteRun(&text, r.Run); err != nil ||
				!strings.HasPrefix(text.String(), "com.shop: "+c.headline) {
				t.Errorf("%s: %v, no %q in\n%s", name, err, c.headline, text.String())
			}
		})
	}
}
