package monitor

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// leakWatch calls a function at the nth request after a leak was confirmed. It
// counts the requests until the leak has been diagnosed.
type leakWatch struct {
	mu       sync.Mutex
	leaking  bool
	told     bool
	requests int
	at       int
	do       func()
	// seen lists the requests that were made before the diagnosis was recorded.
	seen []string
}

func (w *leakWatch) Happened(e record.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leaking = w.leaking || e.Event == "state" && *e.To == detector.Leaking
	w.told = w.told || e.Event == "diagnose" && e.Diagnosis != nil && e.Diagnosis.Trigger == record.TriggerLeak
}

func (w *leakWatch) Changed(string, func() []Row) {}

func (w *leakWatch) asked(what string) {
	w.mu.Lock()
	if !w.leaking || w.told {
		w.mu.Unlock()
		return
	}
	w.requests++
	w.seen = append(w.seen, what)
	hit := w.requests == w.at
	w.mu.Unlock()
	if hit {
		w.do()
	}
}

// faulty is a run with one leak. A fault happens at request n of its diagnosis;
// n = 0 means that no fault happens.
type faulty struct {
	kind          androidsim.Kind
	phone         androidsim.Options
	respond       response.Options
	duration      time.Duration
	deviceTimeout time.Duration
	n             int
	do            func(p *cabled, stop context.CancelFunc)
}

// run performs the run and returns its phone and the requests of its diagnosis.
func (f faulty) run(t *testing.T) (result, *cabled, []string) {
	t.Helper()
	spec := leaky("com.shop", f.kind, 300)
	spec.RestartAfter = 5 * time.Second
	p := cable(phone("S1", smallDumps(f.phone), spec))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w := &leakWatch{at: f.n, do: func() { f.do(p, stop) }}
	p.listen(w.asked)
	o := responding(t, f.respond, p)
	o.Observer, o.Duration, o.DeviceTimeout = w, f.duration, f.deviceTimeout
	r := respond(t, ctx, o)
	if f.n > 0 && len(w.seen) < f.n {
		t.Fatalf("got only the requests %q, want at least %d", w.seen, f.n)
	}
	return r, p, w.seen
}

// each runs a test for each request of a diagnosis. Under the race detector, it
// tests only some of the requests.
func (f faulty) each(t *testing.T, test func(t *testing.T, f faulty)) {
	t.Helper()
	var all []string
	synctest.Test(t, func(t *testing.T) {
		none := f
		none.n = 0
		_, _, all = none.run(t)
	})
	if len(all) < 8 {
		t.Fatalf("got the requests %q of a diagnosis, want at least 8", all)
	}
	step := 1
	if racing {
		step = 5
	}
	for n := 1; n <= len(all); n += step {
		t.Run(fmt.Sprintf("%d %s", n, requestName(all[n-1])), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f.n = n
				test(t, f)
			})
		})
	}
}

// requestName returns a short name for a request.
func requestName(command string) string {
	for _, part := range []string{
		"am dumpheap", "am help", "df /data", "logcat", "exit-info", "meminfo", "pull", "read", "smaps", "maps",
		"status", "rm -f", "uptime",
	} {
		if strings.Contains(command, part) {
			return part
		}
	}
	return "other"
}

// The phone is unplugged at each request of a diagnosis and plugged in again
// later. The request in flight is interrupted, and the diagnosis is completed
// when the phone is back.
func TestResponseUnpluggedAtEachStep(t *testing.T) {
	for name, kind := range map[string]androidsim.Kind{"java": androidsim.Java, "native": androidsim.Native} {
		t.Run(name, func(t *testing.T) {
			faulty{kind: kind, phone: rooted(), duration: 32 * time.Minute, do: func(p *cabled, _ context.CancelFunc) {
				p.unplug(true)
				time.AfterFunc(40*time.Second, func() { p.unplug(false) })
			}}.each(t, func(t *testing.T, f faulty) {
				r, p, _ := f.run(t)
				if r.Stopped != record.StoppedDuration || r.ExitCode != record.ExitLeak ||
					len(r.eventsOf("lost", "")) > 0 {
					t.Errorf("stopped by %s, exit %d", r.Stopped, r.ExitCode)
				}
				checkRetried(t, r, name)
				// Files that remained on the phone when it was unplugged are
				// removed when it is back.
				if left := leftOn(t, p); len(left) > 0 {
					t.Errorf("files remain on the phone: %v", left)
				}
			})
		})
	}
}

// checkRetried checks that the leak has one completed diagnosis, preceded by at
// most two interrupted ones that are marked as such.
func checkRetried(t *testing.T, r result, recipe string) {
	t.Helper()
	var told []record.Event
	for _, e := range r.eventsOf("diagnose", "com.shop") {
		if e.Diagnosis.Trigger == record.TriggerLeak {
			told = append(told, e)
		}
	}
	leaks := r.diagnosesOf("com.shop", record.TriggerLeak)
	if len(told) == 0 || len(told) > maxAttempts || len(leaks) != len(told) {
		t.Fatalf("got %d diagnoses in the events and %d in run.json, want the same number, 1 to %d", len(told),
			len(leaks), maxAttempts)
	}
	for i, e := range told {
		last := i == len(told)-1
		if e.Retry == last || last != (leaks[i].Outcome == record.DiagnosisComplete) || !last &&
			leaks[i].Outcome != record.DiagnosisInterrupted {
			t.Errorf("attempt %d of %d: again %v, %s: %+v", i+1, len(told), e.Retry, leaks[i].Outcome, leaks[i].Steps)
		}
	}
	if d := leaks[len(leaks)-1]; d.Recipe != recipe || len(d.Findings) == 0 {
		t.Errorf("%s: %+v", d.Recipe, d)
	}
}

// checkSwept starts another run on the phone. The leftovers of the previous run
// must be removed, and their removal must be recorded.
func checkSwept(t *testing.T, p *cabled) {
	t.Helper()
	before := leftOn(t, p)
	if len(before) > maxAttempts {
		t.Errorf("files remain on the phone: %v", before)
	}
	o := responding(t, response.Options{}, p)
	o.Duration = time.Minute
	r := respond(t, t.Context(), o)
	swept := r.eventsOf("swept", "")
	if len(swept) != min(1, len(before)) {
		t.Errorf("left %v, events %+v", before, swept)
	}
	for _, name := range before {
		if !strings.Contains(swept[0].Text, name) {
			t.Errorf("file %s is not recorded in %q", name, swept[0].Text)
		}
	}
	if after := leftOn(t, p); len(after) > 0 {
		t.Errorf("files remain on the phone after the next start: %v", after)
	}
}

// If a phone never comes back, its part of the run ends within the device
// timeout, whichever request was interrupted, and whether the request fails or
// hangs.
func TestResponseOfLostPhone(t *testing.T) {
	for name, do := range map[string]func(*cabled, context.CancelFunc){
		"unplugged": func(p *cabled, _ context.CancelFunc) { p.unplug(true) },
		"hanging":   func(p *cabled, _ context.CancelFunc) { p.hang(true) },
	} {
		for _, n := range []int{1, 4, 6, 8, 9, 12} {
			t.Run(fmt.Sprintf("%s at %d", name, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := faulty{
						kind: androidsim.Java, phone: rooted(), duration: 2 * time.Hour, deviceTimeout: 3 * time.Minute,
						n: n,
					}
					var from time.Time
					f.do = func(p *cabled, stop context.CancelFunc) {
						from = time.Now()
						do(p, stop)
					}
					r, _, _ := f.run(t)
					if took := time.Since(from); r.ExitCode != record.ExitLeak || r.Devices[0].Error == "" ||
						took > 7*time.Minute {
						t.Errorf("exit %d after %v", r.ExitCode, took)
					}
					if n := len(r.diagnosesOf("com.shop", record.TriggerLeak)); n == 0 || n > maxAttempts {
						t.Errorf("%d diagnoses", n)
					}
				})
			})
		}
	}
}

// If a phone hangs for a while during a diagnosis, only that diagnosis is lost.
func TestResponseOfHangingPhone(t *testing.T) {
	for _, n := range []int{1, 5, 8, 10, 12} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, p, _ := faulty{
					kind: androidsim.Java, phone: rooted(), duration: 40 * time.Minute, n: n,
					do: func(p *cabled, _ context.CancelFunc) {
						p.hang(true)
						time.AfterFunc(100*time.Second, func() { p.hang(false) })
					}}.run(t)
				leaks := r.diagnosesOf("com.shop", record.TriggerLeak)
				if r.Stopped != record.StoppedDuration || len(leaks) == 0 || len(leaks) > maxAttempts ||
					!slices.ContainsFunc(leaks,
						func(d record.Diagnosis) bool { return strings.Contains(steps(d), "heap") }) {
					t.Errorf("%s, %d diagnoses, %+v", r.Stopped, len(leaks), leaks)
				}
				checkSwept(t, p)
			})
		})
	}
}

// If the process dies at any request of its diagnosis, the artifacts that are
// still available are collected, and the record describes what happened.
func TestResponseToDyingProcess(t *testing.T) {
	faulty{
		kind: androidsim.Java, phone: rooted(), duration: 26 * time.Minute,
		do: func(p *cabled, _ context.CancelFunc) { p.Kill("com.shop") },
	}.each(t, func(t *testing.T, f faulty) {
		r, p, seen := f.run(t)
		leaks := r.diagnosesOf("com.shop", record.TriggerLeak)
		if len(leaks) != 1 || r.process(t, "S1", "com.shop").Restarts != 1 || r.Stopped != record.StoppedDuration {
			t.Fatalf("%s, %d diagnoses, %+v", r.Stopped, len(leaks), r.process(t, "S1", "com.shop"))
		}
		d := leaks[0]
		if !strings.Contains(steps(d), "logcat exit_info") {
			t.Errorf("collected %s", steps(d))
		}
		i := slices.IndexFunc(d.Steps, func(s record.Collected) bool { return s.Step == "heap" })
		dump := 1 + slices.IndexFunc(seen, isDump) // a dump that already exists may be pulled
		if heap := d.Steps[i]; heap.File == "" && !strings.Contains(strings.Join(heap.Reasons, "\n"), "process") ||
			heap.File != "" && f.n <= dump {
			t.Errorf("the process dies at request %d, dump at request %d: %+v", f.n, dump, heap)
		}
		if left := leftOn(t, p); len(left) > 0 {
			t.Errorf("files remain on the phone: %v", left)
		}
	})
}

// Each fault of a connected phone leads to one clear outcome.
func TestResponseToFaultsOfPhone(t *testing.T) {
	user := androidsim.Options{Seed: 7}
	for name, c := range map[string]struct {
		phone   androidsim.Options
		begin   func(*cabled) func()
		outcome string
		step    string
		ending  string
		words   string
		limit   float64
	}{
		"the dump is truncated": {
			rooted(), func(p *cabled) func() { return p.TruncateDump(5000) }, record.DiagnosisDegraded, "heap",
			"failed",
			"truncated after", 30,
		},
		"the dump is empty": {
			rooted(), func(p *cabled) func() { return p.TruncateDump(0) }, record.DiagnosisDegraded, "heap", "failed",
			"empty", 90,
		},
		"the disk is full": {
			rooted(), func(p *cabled) func() { return p.FillDisk(1 << 20) }, record.DiagnosisDegraded, "heap", "failed",
			"the device's disk is full", 30,
		},
		"dumpsys hangs": {
			rooted(), func(p *cabled) func() { return p.HangDumpsys() }, record.DiagnosisDegraded, "meminfo", "failed",
			"not finished in 15s", 60,
		},
		"the app is not debuggable": {
			user, func(p *cabled) func() { return func() {} }, record.DiagnosisDegraded, "heap", "skipped",
			"com.shop is not debuggable", 30,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := func() {}
				r, p, _ := faulty{
					kind: androidsim.Java, phone: c.phone, duration: 26 * time.Minute, n: 1,
					do: func(p *cabled, _ context.CancelFunc) { end = c.begin(p) },
				}.run(t)
				end()
				leaks := r.diagnosesOf("com.shop", record.TriggerLeak)
				if len(leaks) != 1 || leaks[0].Outcome != c.outcome || leaks[0].Duration > c.limit ||
					r.Stopped != record.StoppedDuration {
					t.Fatalf("%s: %+v", r.Stopped, leaks)
				}
				i := slices.IndexFunc(leaks[0].Steps, func(s record.Collected) bool { return s.Step == c.step })
				if s := leaks[0].Steps[i]; s.Outcome != c.ending || s.File != "" ||
					!strings.Contains(strings.Join(s.Reasons, "\n"), c.words) {
					t.Errorf("%+v", s)
				}
				if !slices.ContainsFunc(leaks[0].Summary,
					func(line string) bool { return strings.HasPrefix(line, c.step+" "+c.ending) }) {
					t.Errorf("got summary %q, want a line that begins with %q", leaks[0].Summary, c.step+" "+c.ending)
				}
				if left := leftOn(t, p); len(left) > 0 {
					t.Errorf("files remain on the phone: %v", left)
				}
			})
		})
	}
}

// Ctrl-C at any request of a diagnosis ends the run promptly, with a complete
// record and no files left on the phone. Collected artifacts already have the
// form in which they are kept.
func TestResponseInterruptedAtEachStep(t *testing.T) {
	var from time.Time
	faulty{
		kind: androidsim.Java, phone: rooted(), duration: 30 * time.Minute,
		do: func(_ *cabled, stop context.CancelFunc) {
			from = time.Now()
			stop()
		}}.each(t, func(t *testing.T, f faulty) {
		r, p, _ := f.run(t)
		if took := time.Since(from); took > 15*time.Second {
			t.Errorf("the run continued for %v, want at most 15 s", took)
		}
		if !r.Interrupted || r.ExitCode != record.ExitInterrupted {
			t.Errorf("exit %d, %s", r.ExitCode, r.Stopped)
		}
		if left := leftOn(t, p); len(left) > 0 {
			t.Errorf("files remain on the phone: %v", left)
		}
		for _, d := range r.diagnosesOf("com.shop", record.TriggerLeak) {
			if d.Outcome != record.DiagnosisInterrupted && f.n < 5 {
				t.Errorf("%+v", d)
			}
		}
	})
}

// If Ctrl-C is pressed during the analysis of a dump, or while the dump waits
// for the analysis of another phone's dump, the dump is kept. The dump is
// stripped unless raw dumps are kept, and a report can analyze it later.
func TestResponseInterruptedInTheAnalysis(t *testing.T) {
	for _, keep := range []response.Keep{response.Stripped, response.Raw, response.Nothing} {
		t.Run(string(keep), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var from time.Time
				a, b := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 300))),
					cable(phone("S2", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 300)))
				o := responding(t, response.Options{Keep: keep, Memory: func() int64 {
					time.Sleep(time.Minute) // meanwhile the dump of the other phone waits
					from = time.Now()
					stop()
					return 0
				}}, a, b)
				r := respond(t, ctx, o)
				if took := time.Since(from); took > 15*time.Second || r.ExitCode != record.ExitInterrupted {
					t.Errorf("exit %d after %v", r.ExitCode, took)
				}
				var kept []string
				for _, d := range r.diagnosesOf("com.shop", record.TriggerLeak) {
					kept = append(kept, strings.Fields(d.Device + " " + steps(d))[0])
					if !strings.Contains(steps(d), "heap") || d.Analyzed {
						t.Errorf("%s: %s, analyzed: %v", d.Device, steps(d), d.Analyzed)
					}
				}
				if !slices.Equal(kept, []string{"S1", "S2"}) {
					t.Errorf("diagnoses of %v", kept)
				}
				checkResumed(t, o.Dir, keep)
			})
		})
	}
}

// checkResumed analyzes, twice, the dumps that a run has not analyzed, as a
// report does.
func checkResumed(t *testing.T, dir string, keep response.Keep) {
	t.Helper()
	var before record.Run
	for range 2 {
		run, warnings, err := ledger.Rebuild(dir)
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		if warnings, err := response.Resume(t.Context(), dir, response.Options{}, run.Diagnoses); err != nil ||
			len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		checkFolders(t, dir, run)
		for _, d := range run.Diagnoses {
			leak := d.Trigger == record.TriggerLeak
			if !d.Analyzed || leak &&
				(len(d.Findings) == 0 || strings.Contains(steps(d), "heap") != (keep != response.Nothing)) {
				t.Errorf("%+v", d)
			}
		}
		if before.Schema != "" && !reflect.DeepEqual(run, before) {
			t.Errorf("second rebuild:\n%+v\nfirst rebuild:\n%+v", run.Diagnoses, before.Diagnoses)
		}
		before = run
	}
}

// Leftovers of an earlier run are removed at the start, but files of other
// programs are not. A dump of this run, or a dump that another host is taking,
// is not mistaken for a leftover.
func TestResponseSweepsAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), healthy("com.shop")))
		touch(t, p, "leakgate-abc-def.hprof")
		p.StepClock(3 * time.Hour)
		touch(t, p, "leakgate-0a1b2c3d-abc-def.hprof", "leakgate-notes.txt", "mine.hprof")
		o := responding(t, response.Options{Dump: response.AtMarks}, p)
		o.Devices[0].Device = lateSweep{p}
		o.Workload, o.Duration = looping{1, time.Second, 0}, 3*time.Minute
		r := respond(t, t.Context(), o)
		swept := r.eventsOf("swept", "")
		if len(swept) != 1 || !strings.HasSuffix(swept[0].Text, "device: /data/local/tmp/leakgate-abc-def.hprof") {
			t.Errorf("swept %+v", swept)
		}
		if left := leftOn(t, p); !slices.Equal(left,
			[]string{"leakgate-0a1b2c3d-abc-def.hprof", "leakgate-notes.txt"}) {
			t.Errorf("left %v", left)
		}
		if d := r.diagnosesOf("com.shop", record.TriggerMark); len(d) != 1 || steps(d[0]) != "heap" {
			t.Errorf("%+v", d)
		}
	})
}

func touch(t *testing.T, p *cabled, names ...string) {
	t.Helper()
	for _, name := range names {
		w, err := p.Create("/data/local/tmp/"+name, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, "x"); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// If the phone fails to remove a dump, the same run removes it later, even if
// the first sweep fails, and even if it is the last dump at the end.
func TestResponseSweepsItsOwnFiles(t *testing.T) {
	for name, c := range map[string]struct {
		respond  response.Options
		spec     androidsim.ProcessSpec
		duration time.Duration
		sweeps   int
	}{
		"removal fails during the run": {
			response.Options{}, leaky("com.shop", androidsim.Java, 300), 40 * time.Minute, 0,
		},
		"removal and sweep fail during the run": {
			response.Options{}, leaky("com.shop", androidsim.Java, 300), 40 * time.Minute, 2,
		},
		"removal fails at the end": {
			response.Options{Dump: response.AtEnd}, healthy("com.shop"), 5 * time.Minute, 0,
		},
		"removal and sweep fail at the end": {
			response.Options{Dump: response.AtEnd}, healthy("com.shop"), 5 * time.Minute, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := cable(phone("S1", smallDumps(rooted()), c.spec))
				o := responding(t, c.respond, p)
				o.Duration = c.duration
				dev := &stubborn{cabled: p, removals: 2, sweeps: c.sweeps}
				o.Devices[0].Device = dev
				r := respond(t, t.Context(), o)
				left, swept := leftOn(t, p), r.eventsOf("swept", "")
				if atEnd := c.respond.Dump == response.AtEnd && c.sweeps > 0; (len(left) > 0) != atEnd ||
					(len(swept) == 1) == atEnd {
					t.Errorf("left %v, swept %+v", left, swept)
				}
				if dev.removals > 0 || dev.sweeps > 0 || len(r.Diagnoses) == 0 || r.Stopped != record.StoppedDuration {
					t.Errorf("%d removals and %d sweeps that should fail did not occur, stopped by %s, %+v",
						dev.removals, dev.sweeps, r.Stopped,
						r.Diagnoses)
				}
				complaints := 0
				for _, e := range r.events {
					if strings.Contains(e.Text, "sweep device") {
						complaints++
					}
				}
				if complaints != min(1, c.sweeps) {
					t.Errorf("got %d sweep errors, want %d", complaints, min(1, c.sweeps))
				}
			})
		})
	}
}

// stubborn is a phone on which the first few removals fail and, once a removal
// has been requested, the first few sweeps.
type stubborn struct {
	*cabled
	at               sync.Mutex
	removals, sweeps int
	began            bool
}

func (d *stubborn) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	d.at.Lock()
	removal, sweep := strings.Contains(command, " 'left'; "), strings.Contains(command, " 'swept'; ")
	d.began = d.began || removal
	fails := removal && d.removals > 0 || sweep && d.began && d.sweeps > 0
	switch {
	case fails && removal:
		d.removals--
	case fails:
		d.sweeps--
	}
	d.at.Unlock()
	if fails {
		return 0, errCut
	}
	return d.cabled.Shell(ctx, command, stdout, stderr)
}

// lateSweep is a device on which the sweep begins while another dump is being
// written.
type lateSweep struct{ *cabled }

func (d lateSweep) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	if strings.Contains(command, "for f in /data/local/tmp/leakgate-") {
		if err := sleep(ctx, 3*time.Second); err != nil {
			return 0, err
		}
	}
	return d.cabled.Shell(ctx, command, stdout, stderr)
}

// If no folder can be created, the leak is recorded with the reason after the
// maximum number of attempts. The diagnosis is not retried at each sample.
func TestResponseWithoutAFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 300)))
		o := responding(t, response.Options{}, p)
		o.Duration = 38 * time.Minute
		time.AfterFunc(time.Minute, func() {
			if err := os.WriteFile(filepath.Join(o.Dir, response.Artifacts), nil, 0o644); err != nil {
				t.Error(err)
			}
		})
		r := perform(t, t.Context(), o)
		var texts []string
		for _, e := range r.eventsOf("diagnose", "com.shop") {
			texts = append(texts, fmt.Sprint(e.Retry, e.Diagnosis != nil))
		}
		// These are two snapshots, which are not retried, and the diagnosis of
		// the leak.
		if !slices.Equal(texts, []string{"false true", "false true", "true false", "true false", "false true"}) {
			t.Errorf("%q", texts)
		}
		leaks := r.diagnosesOf("com.shop", record.TriggerLeak)
		if len(leaks) != 1 || leaks[0].Outcome != record.DiagnosisNothing || leaks[0].Kind != detector.Java ||
			len(leaks[0].Warnings) != 1 {
			t.Errorf("%+v", leaks)
		}
		if r.Stopped != record.StoppedDuration || r.ExitCode != record.ExitLeak ||
			len(r.eventsOf("repeated", "com.shop")) != 1 {
			t.Errorf("%s, exit %d", r.Stopped, r.ExitCode)
		}
	})
}

// A breakdown that is in flight when its process is suspended for a dump is
// interrupted. The process is not reported as unresponsive.
func TestResponseInterruptsBreakdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := smallDumps(rooted())
		opt.DumpsysTime = 8 * time.Second
		p := cable(phone("S1", opt, healthy("com.shop")))
		p.slow = 100 * time.Second
		o := responding(t, response.Options{Dump: response.AtMarks}, p)
		d := &stopping{cabled: p}
		o.Devices[0].Device = d
		// A breakdown begins every half minute; the mark after 92 s requests a
		// dump while one is in flight.
		o.Workload, o.Duration = looping{1, 92 * time.Second, time.Hour}, 10*time.Minute
		r := respond(t, t.Context(), o)
		if d.stopped != 1 {
			t.Fatalf("%d breakdowns were interrupted, want 1", d.stopped)
		}
		if n := len(r.eventsOf("unresponsive", "")); n > 0 || len(r.process(t, "", "com.shop").Warnings) > 0 {
			t.Errorf("%+v", r.eventsOf("unresponsive", ""))
		}
		if n := len(r.samplesOf("com.shop", true)); n < 12 {
			t.Errorf("got %d breakdowns in 10 min, want at least 12", n)
		}
	})
}

// stopping is a phone whose process does not respond to dumpsys while its heap
// is dumped.
type stopping struct {
	*cabled
	at      sync.Mutex
	dumping bool
	stopped int
}

func (d *stopping) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	if isDump(command) {
		d.set(true)
		defer d.set(false)
	}
	exit, err := d.cabled.Shell(ctx, command, stdout, stderr)
	if d.at.Lock(); d.dumping && strings.Contains(command, "meminfo") {
		d.stopped++
		d.at.Unlock()
		return hangUp(ctx)
	}
	d.at.Unlock()
	return exit, err
}

func (d *stopping) set(dumping bool) {
	d.at.Lock()
	defer d.at.Unlock()
	d.dumping = dumping
}

func hangUp(ctx context.Context) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// Ctrl-C during the dumps at the end of a run stops the dumps. The run itself
// was complete, and its verdict is valid.
func TestResponseInterruptedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), healthy("com.shop"), healthy("com.shop:b"), healthy("com.shop:c")))
		p.slow = time.Minute
		o := responding(t, response.Options{Dump: response.AtEnd}, p)
		o.Duration = 5 * time.Minute
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		time.AfterFunc(6*time.Minute+30*time.Second, stop)
		began := time.Now()
		r := respond(t, ctx, o)
		if took := time.Since(began); took > 7*time.Minute {
			t.Errorf("the run continued for %v, want at most 7 min", took)
		}
		var outcomes []string
		for _, d := range r.Diagnoses {
			outcomes = append(outcomes, d.Outcome)
		}
		if !slices.Equal(outcomes, []string{"complete", "interrupted"}) || r.Stopped != record.StoppedDuration ||
			r.ExitCode != record.ExitClean {
			t.Errorf("%q, %s, exit %d", outcomes, r.Stopped, r.ExitCode)
		}
		if left := leftOn(t, p); len(left) > 0 {
			t.Errorf("files remain on the phone: %v", left)
		}
	})
}

// If a phone is disconnected when the run ends, one more request is sent. After
// that, the run does not wait for the phone.
func TestResponseAtEndOfDisconnectedPhone(t *testing.T) {
	for name, c := range map[string]struct {
		back  time.Duration
		dumps int
	}{"disconnected": {time.Hour, 0}, "reconnected just before the end": {5*time.Minute - 10*time.Millisecond, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := cable(phone("S1", smallDumps(rooted()), healthy("com.shop"), healthy("com.shop:b")))
				time.AfterFunc(4*time.Minute+29*time.Second, func() { p.unplug(true) })
				time.AfterFunc(c.back, func() { p.unplug(false) })
				o := responding(t, response.Options{Dump: response.AtEnd}, p)
				o.Duration = 5 * time.Minute
				began := time.Now()
				r := respond(t, t.Context(), o)
				if took := time.Since(began); took > 6*time.Minute || len(r.Diagnoses) != c.dumps ||
					r.Stopped != record.StoppedDuration {
					t.Errorf("got %d dumps in a run of %v, want %d dumps in at most 6 min", len(r.Diagnoses), took,
						c.dumps)
				}
				told := slices.ContainsFunc(r.events, func(e record.Event) bool {
					return strings.Contains(e.Text, "skipping 2 diagnoses")
				})
				if told != (c.dumps == 0) {
					t.Errorf("recorded: %v", told)
				}
			})
		})
	}
}

// Every prefix of the lines of a run with diagnoses is a valid run that
// contains the diagnoses in that prefix.
func TestResponseRebuildOfEveryPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 300),
			leaky("com.shop:thread", androidsim.Thread, 300)))
		o := responding(t, response.Options{}, p)
		o.Headroom, o.Duration = DefaultSampling.Headroom, 28*time.Minute
		whole := respond(t, t.Context(), o)
		text, err := os.ReadFile(filepath.Join(o.Dir, record.SamplesName))
		if err != nil {
			t.Fatal(err)
		}
		lines, diagnoses := strings.SplitAfter(string(text), "\n"), 0
		for n := 1; n < len(lines)-1; n++ {
			if !strings.Contains(lines[n], `"event":"diagnos`) && n%40 != 0 {
				continue
			}
			run, warnings, err := rebuildOf(t, strings.Join(lines[:n+1], ""))
			if err != nil || len(warnings) > 0 || len(run.Diagnoses) < diagnoses ||
				len(run.Diagnoses) > len(whole.Diagnoses) {
				t.Fatalf("first %d lines: got %d diagnoses, warnings %v, error %v; shorter record: %d diagnoses", n,
					len(run.Diagnoses), warnings, err, diagnoses)
			}
			diagnoses = len(run.Diagnoses)
			for i, d := range run.Diagnoses {
				if w := whole.Diagnoses[i]; d.Folder != w.Folder || d.T != w.T || d.Outcome != w.Outcome {
					t.Errorf("first %d lines: got %+v, want %+v", n, d, w)
				}
			}
		}
		if diagnoses != 8 || len(whole.Diagnoses) != 8 {
			t.Errorf("got %d diagnoses, want three snapshots and one leak for each of two processes", diagnoses)
		}
	})
}

// A diagnosis that is interrupted after the end of the run is not marked as
// retried.
func TestResponseUnpluggedAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 300)))
		p.slow = 2 * time.Minute
		o := responding(t, response.Options{}, p)
		o.Duration = 21 * time.Minute
		time.AfterFunc(o.Duration+10*time.Second, func() { p.unplug(true) })
		began := time.Now()
		r := respond(t, t.Context(), o)
		if took := time.Since(began); took > o.Duration+time.Minute || r.Stopped != record.StoppedDuration ||
			r.ExitCode != record.ExitLeak {
			t.Errorf("exit %d, %s after %v", r.ExitCode, r.Stopped, took)
		}
		leaks := r.diagnosesOf("com.shop", record.TriggerLeak)
		if len(leaks) != 1 || leaks[0].Outcome != record.DiagnosisInterrupted || steps(leaks[0]) != "meminfo" {
			t.Errorf("%+v", leaks)
		}
		for _, e := range r.events {
			if e.Retry {
				t.Errorf("diagnosis is marked as retried: %+v", e)
			}
		}
		if x := r.process(t, "S1", "com.shop"); x.Paused < 30 || x.Missing > 0 {
			t.Errorf("paused for %v s, want at least 30 s; absent for %v s, want 0 s", x.Paused, x.Missing)
		}
		checkSwept(t, replugged(p))
	})
}

func replugged(p *cabled) *cabled {
	p.unplug(false)
	p.slow = 0
	return p
}

// If a phone reboots during a dump, its clock restarts; even so, no pause is
// negative, and the run does not wait for the lost dump.
func TestResponseToAReboot(t *testing.T) {
	for _, n := range []int{1, 6, 7, 8, 11} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, p, _ := faulty{
					kind: androidsim.Java, phone: rooted(), duration: 50 * time.Minute, n: n,
					do: func(p *cabled, _ context.CancelFunc) {
						p.unplug(true)
						p.Reboot()
						time.AfterFunc(25*time.Second, func() { p.unplug(false) })
					}}.run(t)
				x := r.process(t, "S1", "com.shop")
				if r.Stopped != record.StoppedDuration || len(r.eventsOf("reboot", "")) != 1 || x.Paused < 0 ||
					x.Paused > 60 || x.Missing < 0 || x.Missing > 120 {
					t.Errorf("%s, paused for %v s, absent for %v s, %+v", r.Stopped, x.Paused, x.Missing,
						r.eventsOf("reboot", ""))
				}
				leaks := r.diagnosesOf("com.shop", record.TriggerLeak)
				if len(leaks) != 2 || leaks[0].Outcome != record.DiagnosisInterrupted ||
					leaks[1].Outcome != record.DiagnosisComplete || leaks[0].PID == leaks[1].PID {
					t.Errorf("%+v", leaks)
				}
				for _, e := range r.events {
					if e.Duration < 0 {
						t.Errorf("%+v", e)
					}
				}
				if len(r.eventsOf("repeated", "")) > 0 {
					t.Error("the interrupted diagnosis started a cooldown")
				}
				checkSwept(t, p)
			})
		})
	}
}

// rebuildOf rebuilds the run from lines.
func rebuildOf(t *testing.T, lines string) (record.Run, []error, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, record.SamplesName), []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	return ledger.Rebuild(dir)
}
