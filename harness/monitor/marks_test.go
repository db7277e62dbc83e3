package monitor

import (
	"context"
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

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/reporters/record"
)

// counted returns the options of a phone that produces heap dumps: dump n of
// com.shop, counted from 0, contains held(n) leaked screens, and each dump of
// another process contains two.
func counted(o androidsim.Options, held func(n int) int) androidsim.Options {
	var mu sync.Mutex
	dumps := 0
	o.DumpHeap = func(w io.Writer, h androidsim.Heap) error {
		mu.Lock()
		defer mu.Unlock()
		screens := 2
		if h.Process == "com.shop" {
			screens = held(dumps)
			dumps++
		}
		heap := hproftest.Android(hproftest.Phone{SDK: h.API, Process: h.Process})
		var list []hproftest.Ref
		for range screens {
			list = append(list, heap.Activity("com.shop.DetailActivity", hproftest.Destroyed).Ref)
		}
		heap.Hold("com.shop.ScreenTracker", "sScreens", heap.ArrayList(list...).Ref)
		_, err := io.Copy(w, heap.Reader(hproftest.Form{}))
		return err
	}
	return o
}

// minutes returns the options of a short run, like that of a pull request: it
// is too short for a trend and dumps heaps at marks.
func minutes(t *testing.T, p *cabled, w Workload) Options {
	t.Helper()
	o := responding(t, response.Options{Dump: response.AtMarks}, p)
	o.Policy, o.Workload, o.Duration, o.AllowUnjudged = detector.DefaultPolicy(), w, 12*time.Minute, false
	return o
}

// rebuilt checks that rebuilding a run from its lines yields the run's verdict.
func rebuilt(t *testing.T, dir string, r record.Run) {
	t.Helper()
	again, warnings, err := ledger.Rebuild(dir)
	if err != nil || len(warnings) > 0 || again.ExitCode != r.ExitCode || len(again.Processes) != len(r.Processes) ||
		len(again.MissingEvidence) != len(r.MissingEvidence) {
		t.Fatalf("rebuilt: exit %d, %d processes, %v %v", again.ExitCode, len(again.Processes), warnings, err)
	}
	for i, p := range again.Processes {
		if was := r.Processes[i]; p.Gate != was.Gate || p.Reason != was.Reason || len(p.AtMarks) != len(was.AtMarks) {
			t.Errorf("rebuilt: %s is %s: %s, not %s: %s", p.Process, p.Gate, p.Reason, was.Gate, was.Reason)
		}
	}
}

// A run that is too short for a trend fails because of the leak that its dumps
// at marks prove, and the report names the holder. A process without a leak
// passes.
func TestMarksProveLeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", counted(rooted(), func(n int) int { return 15 + 2*n }), healthy("com.shop"),
			healthy("com.shop:push")))
		o := minutes(t, p, looping{5, 2 * time.Minute, time.Hour})
		r := respond(t, t.Context(), o)
		x := r.process(t, "S1", "com.shop")
		if r.ExitCode != record.ExitLeak || x.Gate != detector.Leak || x.Kind != detector.Java ||
			!strings.HasPrefix(x.Reason,
				"DetailActivity, held by ScreenTracker.sScreens: 15, 17, 19, 21, 23 objects at marks") {
			t.Errorf("exit %d, %s: %s", r.ExitCode, x.Gate, x.Reason)
		}
		if l := x.AtMarks[0].Leaks[0]; !l.Proved || l.Key == "" ||
			!slices.Equal(l.Counts, []int64{15, 17, 19, 21, 23}) || len(l.Classes) != 1 || l.Classes[0].Count != 23 ||
			l.AllBytes[4] <= l.AllBytes[0] {
			t.Errorf("%+v", l)
		}
		proofs := r.eventsOf("proof", "com.shop")
		if len(proofs) != 1 || !strings.Contains(proofs[0].Text, "sScreens") ||
			len(r.eventsOf("proof", "com.shop:push")) > 0 {
			t.Errorf("%+v", proofs)
		}
		if push := r.process(t, "S1", "com.shop:push"); push.Gate == detector.Leak ||
			push.AtMarks[0].Gate != detector.Pass {
			t.Errorf("%+v", push)
		}
		rebuilt(t, o.Dir, r.Run)
	})
}

// The same run without the leak passes, because it was judged by its dumps.
func TestMarksOfAHealthyApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", counted(rooted(), func(int) int { return 3 }), healthy("com.shop")))
		o := minutes(t, p, looping{5, 2 * time.Minute, time.Hour})
		o.Build = &record.Revision{Variant: "debug", Commit: "8c1d0fe", Branch: "fix", PullRequest: 12}
		r := respond(t, t.Context(), o)
		if r.Build == nil || *r.Build != *o.Build || r.Devices[0].Marks != 5 {
			t.Errorf("%+v, %+v", r.Build, r.Devices)
		}
		checkDumps(t, r.Diagnoses)
		checkSnapshots(t, r.diagnosesOf("com.shop", ""), 1, 5)
		if x := r.process(t, "S1", "com.shop"); r.ExitCode != record.ExitClean || x.Gate != detector.Inconclusive ||
			x.AtMarks[0].Gate != detector.Pass || !strings.Contains(x.Reason, "5 heap dumps at marks: no leak grew") {
			t.Errorf("exit %d, %s: %s", r.ExitCode, x.Gate, x.Reason)
		}
		rebuilt(t, o.Dir, r.Run)
	})
}

// checkDumps checks that each dump at a mark is recorded with the loops, the
// time, the memory of the process, and the totals of the dump.
func checkDumps(t *testing.T, all []record.Diagnosis) {
	t.Helper()
	marks, age := 0, 0.0
	for _, d := range all {
		if d.Trigger != record.TriggerMark {
			continue
		}
		if marks++; d.Marks != marks || d.Age == nil || *d.Age <= age || d.Memory == nil || *d.Memory <= 0 ||
			d.Heap == nil || d.Heap.Summary == "" || d.Heap.Names != "source" {
			t.Errorf("dump %d: %+v", marks, d)
			continue
		}
		age = *d.Age
	}
	if marks == 0 {
		t.Error("no dump at a mark")
	}
}

// checkSnapshots checks that a process has a snapshot after the given number of
// marks, and one at the end that shows the difference, even if nothing was
// suspicious.
func checkSnapshots(t *testing.T, all []record.Diagnosis, first, last int) {
	t.Helper()
	var triggers []string
	for _, d := range all {
		if d.Recipe != "snapshot" {
			continue
		}
		triggers = append(triggers, d.Trigger)
		what := map[string]bool{}
		for _, f := range d.Findings {
			what[f.Type] = true
		}
		isLast, marks := d.Trigger == record.TriggerLast, first
		if isLast {
			marks = last
		}
		if !d.Analyzed || what["native_kind"] != isLast || what["mapping"] != isLast || d.Marks != marks {
			t.Errorf("%s: after %d marks, %v, %q", d.Trigger, d.Marks, what, d.Warnings)
		}
	}
	if !slices.Equal(triggers, []string{record.TriggerFirst, record.TriggerLast}) {
		t.Errorf("snapshots %q", triggers)
	}
}

// Without marks, the first snapshot is taken when a process has completed its
// startup. A snapshot at a later mark replaces it. A mark from before the start
// of the process does not count, and a process that keeps restarting does not
// get a snapshot each time.
func TestSnapshots(t *testing.T) {
	for name, c := range map[string]struct {
		duration, restart time.Duration
		workload          Workload
		want              []string
	}{
		"run too short": {4 * time.Minute, 0, nil, nil},
		"no marks":      {12 * time.Minute, 0, nil, []string{"first 0", "last 0"}},
		"marks after 2 minutes": {
			12 * time.Minute, 0, looping{3, 2 * time.Minute, time.Hour}, []string{"first 1 at loop 1", "last 3"},
		},
		"mark after 7 minutes": {
			12 * time.Minute, 0, looping{1, 7 * time.Minute, time.Hour},
			[]string{"first 0", "first 1 at loop 1", "last 1"},
		},
		"restarts": {77 * time.Minute, 6 * time.Minute, nil, []string{"first 0", "first 0", "first 0"}},
		"restart after a mark": {
			13 * time.Minute, 7 * time.Minute, looping{1, 2 * time.Minute, time.Hour},
			[]string{"first 1 at loop 1", "first 1", "last 1"},
		},
		"a restart": {50 * time.Minute, 38 * time.Minute, nil, []string{"first 0", "first 0", "last 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := cable(phone("S1", smallDumps(rooted()), healthy("com.shop")))
				o := responding(t, response.Options{}, p)
				o.Duration, o.Workload = c.duration, c.workload
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				if c.restart > 0 {
					go func() {
						for sleep(ctx, c.restart+betweenSamples) == nil {
							p.Restart("com.shop")
						}
					}()
				}
				var got []string
				for _, d := range respond(t, ctx, o).Diagnoses {
					when := fmt.Sprint(d.Trigger, " ", d.Marks)
					if d.Mark != "" {
						when += " at " + d.Mark
					}
					got = append(got, when)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%q, want %q", got, c.want)
				}
			})
		})
	}
}

// waiting is a workload that marks the end of each loop and waits for the
// dumps. Objects that a loop still uses are released two seconds later.
type waiting struct {
	loops int
	ended *time.Time
	// between, if not nil, is called after each mark with the result of
	// SendMark.
	between func(loop int, missing []string, err error)
}

func (waiting) Describe() record.Workload { return record.Workload{Kind: "command"} }

func (w waiting) Run(ctx context.Context, stage Env) (record.Workload, error) {
	for i := range w.loops {
		if sleep(ctx, 7*time.Second) != nil {
			break
		}
		*w.ended = time.Now()
		missing, err := SendMark(ctx, stage.Dir, fmt.Sprintf("loop %d", i+1), true)
		if w.between != nil {
			w.between(i+1, missing, err)
		}
	}
	return w.Describe(), nil
}

// With marks that wait, each process is dumped between its loops, after its
// work in progress has been released. Three dumps prove a leak.
func TestMarkWait(t *testing.T) {
	loopsOfHealthy := 100
	if racing {
		loopsOfHealthy = 8
	}
	for leaks, loops := range map[bool]int{true: 8, false: loopsOfHealthy} {
		t.Run(fmt.Sprint(leaks), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := time.Now()
				held := func(n int) int {
					screens := 0
					if leaks {
						screens = n
					}
					if time.Since(ended) < 2*time.Second {
						screens += 5 + 3*(n%4)
					}
					return screens
				}
				p := cable(phone("S1", counted(rooted(), held), healthy("com.shop"), healthy("com.shop:push")))
				w := waiting{loops: loops, ended: &ended, between: func(loop int, missing []string, err error) {
					if len(missing) > 0 || err != nil {
						t.Errorf("loop %d: %q, %v", loop, missing, err)
					}
				}}
				o := minutes(t, p, w)
				o.Duration = 0
				r := respond(t, t.Context(), o)
				checkOrder(t, r, loops)
				want := map[bool]int{true: record.ExitLeak, false: record.ExitClean}[leaks]
				if r.ExitCode != want || len(r.MissingEvidence) > 0 {
					t.Errorf("exit %d, %+v", r.ExitCode, r.MissingEvidence)
				}
				if !leaks {
					for _, d := range r.diagnosesOf("com.shop", record.TriggerMark) {
						if d.Leaks == nil || len(d.Leaks) > 0 {
							t.Errorf("%s: %+v", d.Mark, d.Leaks)
						}
					}
				}
				rebuilt(t, o.Dir, r.Run)
			})
		})
	}
}

// checkOrder checks that each process has one settled dump per mark, requested
// at the mark and completed before the next mark.
func checkOrder(t *testing.T, r result, loops int) {
	t.Helper()
	marks := r.eventsOf("mark", "")
	if len(marks) != loops {
		t.Fatalf("%d marks", len(marks))
	}
	for _, process := range []string{"com.shop", "com.shop:push"} {
		var done []record.Event
		for _, e := range r.eventsOf("diagnose", process) {
			if e.Diagnosis.Trigger == record.TriggerMark {
				done = append(done, e)
			}
		}
		if len(done) != loops {
			t.Errorf("%s: %d dumps", process, len(done))
			continue
		}
		for i, e := range done {
			if d := e.Diagnosis; d.Mark != marks[i].Text || !d.Settled || e.T < marks[i].T+quietTime.Seconds() ||
				i+1 < loops && e.T > marks[i+1].T {
				t.Errorf("%s: got a dump for mark %q (settled: %v) at %v s, want one for mark %q at %v s", process,
					d.Mark, d.Settled, e.T, marks[i].Text, marks[i].T)
			}
		}
	}
}

// With marks 3 s apart that do not wait, each mark has either a dump or an
// event that reports the missing dump. Missing dumps determine the result if
// nothing else does.
func TestMarksWithoutWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", counted(rooted(), func(int) int { return 3 }), healthy("com.shop"),
			healthy("com.shop:push")))
		p.slow = time.Second
		r := respond(t, t.Context(), minutes(t, p, looping{8, 3 * time.Second, time.Hour}))
		for _, process := range []string{"com.shop", "com.shop:push"} {
			dumps, missing := r.diagnosesOf(process, record.TriggerMark), r.eventsOf("missing", process)
			marks := map[string]int{}
			for _, d := range dumps {
				marks[d.Mark]++
			}
			for _, e := range missing {
				marks[e.Mark]++
			}
			if len(dumps) < 3 || len(dumps)+len(missing) != 8 || len(marks) != 8 {
				t.Errorf("%s: %d dumps, %d missing: %v", process, len(dumps), len(missing), marks)
			}
		}
		if r.ExitCode != record.ExitInconclusive || len(r.MissingEvidence) == 0 {
			t.Errorf("exit %d, %+v", r.ExitCode, r.MissingEvidence)
		}
	})
}

// Evidence is missing if no process is running at a mark, if a process ends
// before the dump at the end, or if the device refuses a dump.
func TestMissingDumps(t *testing.T) {
	end := func(o *Options) { o.Respond.Dump = response.AtEnd }
	spoilt := func(o *Options) {
		artifacts := filepath.Join(o.Dir, response.Artifacts)
		o.Observer = eventFunc(func(e record.Event) {
			dumps, err := filepath.Glob(filepath.Join(artifacts, "*", "*", "heap.hprof*"))
			for _, d := range dumps {
				err = errors.Join(err, os.WriteFile(d, []byte("nothing"), 0o600))
			}
			if e.Event == "diagnose" && err != nil {
				t.Error(err)
			}
		})
	}
	for name, c := range map[string]struct {
		change func(*Options)
		phone  androidsim.Options
		kill   bool
		says   string
	}{
		"no process at a mark": {
			func(*Options) {}, rooted(), true, `no heap dump at mark "loop 1": no process of the app was found`,
		},
		"process ended before the end": {end, rooted(), true, "no heap dump at the end: the process had already ended"},
		"dump at a mark refused": {
			func(*Options) {}, androidsim.Options{Seed: 7, BuildType: "user"}, false, "no heap dump at mark",
		},
		"dump at the end refused": {
			end, androidsim.Options{Seed: 7, BuildType: "user"}, false, "no heap dump at the end",
		},
		"unreadable dump": {spoilt, rooted(), false, `no heap dump at mark "loop 1": it could not be analyzed`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := cable(phone("S1", counted(c.phone, func(int) int { return 3 }), healthy("com.shop")))
				o := minutes(t, p, looping{1, 5 * time.Minute, 7 * time.Minute})
				c.change(&o)
				if c.kill {
					time.AfterFunc(4*time.Minute, func() { p.Kill("com.shop") })
				}
				r := respond(t, t.Context(), o)
				exit := record.ExitInconclusive
				if name == "unreadable dump" {
					exit = record.ExitUnread
				}
				if r.ExitCode != exit || len(r.MissingEvidence) != 1 ||
					!strings.Contains(r.MissingEvidence[0].Text, c.says) {
					t.Errorf("exit %d, %+v", r.ExitCode, r.MissingEvidence)
				}
				rebuilt(t, o.Dir, r.Run)
			})
		})
	}
}

// A caller that waits for a mark is notified when the run ends, is interrupted,
// loses its phone, or does not dump heaps at marks.
func TestMarkWaitEnds(t *testing.T) {
	for name, change := range map[string]func(o *Options, p *cabled, interrupt func()){
		"end of the run": func(o *Options, p *cabled, _ func()) { o.Duration = 10 * time.Second },
		"interruption": func(o *Options, p *cabled, interrupt func()) {
			time.AfterFunc(9*time.Second, interrupt)
		},
		"no dumps at marks": func(o *Options, p *cabled, _ func()) { o.Respond.Dump = response.OnLeak },
		"end of the process": func(o *Options, p *cabled, _ func()) {
			time.AfterFunc(8*time.Second, func() { p.Kill("com.shop") })
		},
		"responses disabled": func(o *Options, p *cabled, _ func()) { o.Respond = nil },
		"phone unplugged": func(o *Options, p *cabled, _ func()) {
			o.DeviceTimeout = time.Minute
			time.AfterFunc(8*time.Second, func() { p.unplug(true) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				p := cable(phone("S1", counted(rooted(), func(int) int { return 3 }), healthy("com.shop")))
				o := minutes(t, p, nil)
				type answer struct {
					missing []string
					err     error
				}
				answers := make(chan answer, 1)
				time.AfterFunc(7*time.Second, func() {
					missing, err := SendMark(t.Context(), o.Dir, "loop 1", true)
					answers <- answer{missing, err}
				})
				change(&o, p, interrupt)
				perform(t, ctx, o)
				a := <-answers
				// A run that has ended may have answered already, or its inbox
				// may be gone.
				gone, none := errors.Is(a.err, errNoRun), errors.Is(a.err, errNoDump)
				if a.err != nil && !gone && !none || !gone && len(a.missing) == 0 {
					t.Errorf("%q, %v", a.missing, a.err)
				}
				if asked := o.Respond != nil && o.Respond.Dump == response.AtMarks; none && !asked {
					t.Errorf("got error %v, although the run does not dump at marks", a.err)
				}
			})
		})
	}
}

// A run with a misspelled name does not pass: it immediately reports similar
// names and ends with exit code 3.
func TestMisspelledName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, phone("S1", rooted(), healthy("com.shop"), healthy("com.shop:push")))
		o.Patterns, o.Duration = []capture.Pattern{"com.shpo", "com.shpo:*"}, 5*time.Minute
		r := perform(t, t.Context(), o)
		waits := r.eventsOf("waiting", "")
		if len(waits) != 1 ||
			!strings.HasPrefix(waits[0].Text,
				"waiting for com.shpo or com.shpo:* to start; running processes with similar names: com.shop, "+
					"com.shop:push") {
			t.Errorf("%+v", waits)
		}
		if r.ExitCode != record.ExitNoDevice ||
			!strings.Contains(r.Warnings[0],
				"no process com.shpo was seen; running processes with similar names: com.shop, com.shop:push") {
			t.Errorf("exit %d, %q", r.ExitCode, r.Warnings)
		}
		rebuilt(t, o.Dir, r.Run)
	})
}

func TestMostSimilar(t *testing.T) {
	running := []string{
		"com.android.systemui", "com.shop", "com.shop:push", "com.google.android.gms",
		"com.google.android.gms.persistent", "org.shop.debug", "com.shop",
	}
	for pattern, want := range map[string]string{
		"com.shpo":               "com.shop com.shop:push",
		"com.shop.debug":         "org.shop.debug com.shop com.shop:push",
		"com.shopping":           "com.shop com.shop:push",
		"org.shop:*":             "org.shop.debug com.shop com.shop:push",
		"com.google.android.gsm": "com.google.android.gms com.google.android.gms.persistent",
		"net.other":              "",
		"x":                      "",
	} {
		if got := strings.Join(mostSimilar(slices.Clone(running), []capture.Pattern{capture.Pattern(pattern)}),
			" "); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

// If a test on the device logs a mark, the mark is set in the run. Log lines
// from before the run, with other tags or without a mark are ignored.
func TestMarksInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", counted(rooted(), func(n int) int { return 10 + 3*n }), healthy("com.shop")))
		log := func(tag, message string) {
			if status, err := p.Shell(t.Context(), "log -t "+tag+" '"+message+"'", io.Discard,
				io.Discard); status != 0 ||
				err != nil {
				t.Error(status, err)
			}
		}
		log("leakgate", "mark before the run")
		time.AfterFunc(time.Minute, func() {
			log("leakgate", "no mark")
			log("other", "leakgate:mark of another tag")
		})
		for i := range 5 {
			time.AfterFunc(time.Duration(2*i+2)*time.Minute,
				func() { log("leakgate", fmt.Sprintf("leakgate:mark loop %d", i+1)) })
		}
		time.Sleep(10 * time.Second)
		r := respond(t, t.Context(), minutes(t, p, nil))
		var marks []string
		for _, e := range r.eventsOf("mark", "") {
			marks = append(marks, e.Text)
		}
		if !slices.Equal(marks, []string{"loop 1", "loop 2", "loop 3", "loop 4", "loop 5"}) ||
			r.ExitCode != record.ExitLeak {
			t.Errorf("marks %q, exit %d, missing %+v", marks, r.ExitCode, r.MissingEvidence)
		}
	})
}

func TestMarkOfLog(t *testing.T) {
	const at = "01-02 03:04:05.678"
	for line, want := range map[string]string{
		at + "  1234  1240 I leakgate: mark checkout":          "checkout",
		at + "  1234  1240 I leakgate: leakgate:mark loop 3":   "loop 3",
		at + "  1234  1240 I leakgate  : mark a: b I leakgate": "a: b I leakgate",
		at + "  1234  1240 I leakgate: mark \x1b[2J":           "\ufffd[2J",
		at + "  1234  1240 E leakgate: mark x":                 "",
		at + "  1234  1240 I leakgate: marked":                 "",
		at + "  1234  1240 I leakgate: mark ":                  "",
		at + "  1234  1240 I other: mark x":                    "",
		"--------- beginning of main":                          "",
		"99-99 03:04:05.678  1 1 I leakgate: mark x":           "",
		"": "",
	} {
		stamp, mark, ok := markOfLog(line)
		if mark != want && (want == "" || !strings.HasSuffix(mark, "[2J")) || ok != (want != "") || ok && stamp != at {
			t.Errorf("%q: %q %q %v, want %q", line, stamp, mark, ok, want)
		}
	}
}
