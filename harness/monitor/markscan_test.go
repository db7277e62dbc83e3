package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// runOn runs a command line on a phone.
func runOn(t *testing.T, p *cabled, command string) {
	t.Helper()
	if status, err := p.Shell(t.Context(), command, io.Discard, io.Discard); status != 0 || err != nil {
		t.Errorf("%s: exit %d, %v", command, status, err)
	}
}

const (
	startShop = "am start -n com.shop/.Main"
	stopShop  = "am force-stop com.shop"
)

// scenario drives an app and marks the end of each loop, as a suite on the host
// does.
type scenario struct {
	loops int
	// before is called before each mark.
	before func(loop int)
	// mark sets a mark.
	mark func(ctx context.Context, stage Env, loop int)
}

func (scenario) Describe() record.Workload { return record.Workload{Kind: "command"} }

func (w scenario) Run(ctx context.Context, stage Env) (record.Workload, error) {
	for i := range w.loops {
		if sleep(ctx, 61*time.Second) != nil {
			break
		}
		w.before(i + 1)
		if sleep(ctx, 2*time.Second) != nil {
			break
		}
		w.mark(ctx, stage, i+1)
	}
	return w.Describe(), nil
}

// waited marks the end of a loop and waits for its dumps, all of which must
// exist.
func waited(t *testing.T) func(context.Context, Env, int) {
	return func(ctx context.Context, stage Env, loop int) {
		if missing, err := SendMark(ctx, stage.Dir, fmt.Sprint("loop ", loop), true); err != nil || len(missing) > 0 {
			t.Errorf("loop %d: %q, %v", loop, missing, err)
		}
	}
}

// passing marks the end of a loop and does not wait.
func passing(*testing.T) func(context.Context, Env, int) {
	return func(_ context.Context, stage Env, loop int) { stage.Mark("", fmt.Sprint("loop ", loop)) }
}

// A scenario starts the app itself, once or in each loop. For every mark,
// including the one with which the run ends, there is a dump of each process
// that is running at that time.
func TestMarkOfAppJustStarted(t *testing.T) {
	firstOnly := func(t *testing.T, p *cabled, loop int) {
		if loop == 1 {
			runOn(t, p, startShop)
		}
	}
	each := func(t *testing.T, p *cabled, _ int) { runOn(t, p, stopShop+"; "+startShop) }
	eachSlowly := func(t *testing.T, p *cabled, _ int) {
		runOn(t, p, stopShop)
		time.AfterFunc(8*time.Second, func() { runOn(t, p, startShop) }) // 6 s after the mark
	}
	for name, c := range map[string]struct {
		before func(t *testing.T, p *cabled, loop int)
		mark   func(*testing.T) func(context.Context, Env, int)
		lives  int
	}{
		"app starts once, mark waits":                 {firstOnly, waited, 1},
		"app starts once, mark does not wait":         {firstOnly, passing, 1},
		"app starts in each loop, mark waits":         {each, waited, 4},
		"app starts in each loop, mark does not wait": {each, passing, 4},
		"app starts after the mark, mark waits":       {eachSlowly, waited, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := cable(phone("S1", counted(rooted(), func(int) int { return 3 }), healthy("com.shop"),
					healthy("com.shop:push")))
				runOn(t, p, stopShop)
				o := minutes(t, p, scenario{loops: 4, before: func(loop int) { c.before(t, p, loop) }, mark: c.mark(t)})
				o.Duration, o.AllowUnjudged = 0, true
				r := respond(t, t.Context(), o)
				if r.ExitCode != record.ExitClean || len(r.MissingEvidence) > 0 {
					t.Errorf("exit %d, missing %+v", r.ExitCode, r.MissingEvidence)
				}
				for _, process := range []string{"com.shop", "com.shop:push"} {
					var at []string
					lives := map[int]bool{}
					for i, d := range r.diagnosesOf(process, record.TriggerMark) {
						at, lives[d.PID] = append(at, d.Mark), true
						if d.Marks != i+1 {
							t.Errorf("%s: %d marks at %s", process, d.Marks, d.Mark)
						}
					}
					if !slices.Equal(at, []string{"loop 1", "loop 2", "loop 3", "loop 4"}) || len(lives) != c.lives {
						t.Errorf("%s: got dumps at marks %q of %d lives, want loops 1 to 4 of %d lives", process, at,
							len(lives), c.lives)
					}
				}
				rebuilt(t, o.Dir, r.Run)
			})
		})
	}
}

// If an app is found while a mark waits, the app's quiet time begins at that
// moment.
func TestQuietTimeOfAppFoundLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", counted(rooted(), func(int) int { return 3 }), healthy("com.shop")))
		runOn(t, p, stopShop)
		w, _ := started(t, response.Options{Dump: response.AtMarks}, p)
		time.Sleep(61 * time.Second)
		var came, dumped time.Time
		time.AfterFunc(8*time.Second, func() {
			runOn(t, p, startShop)
			came = time.Now()
		})
		p.listen(func(what string) {
			if isDump(what) {
				dumped = time.Now()
			}
		})
		missing, err := w.Mark(t.Context(), "loop 1")
		if lasted := dumped.Sub(came); err != nil || len(missing) > 0 || came.IsZero() || lasted < quietTime {
			t.Errorf("dumped %v after the process started, want at least %v; missing %q, error %v", lasted, quietTime,
				missing, err)
		}
		if run, err := w.Stop("done"); err != nil || len(run.MissingEvidence) > 0 {
			t.Errorf("%+v, %v", run.MissingEvidence, err)
		}
	})
}

// If no process is found, a caller that waits for a mark is notified in bounded
// time, and missing dumps are recorded in the order of the marks. If the app is
// running on only one of two phones, it is still dumped on that phone.
func TestMarkWithoutTheApp(t *testing.T) {
	held := func(int) int { return 3 }
	const says = "no process of the app was found"
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", counted(rooted(), held), healthy("com.shop")))
		runOn(t, p, stopShop)
		w, o := started(t, response.Options{Dump: response.AtMarks}, p)
		time.Sleep(61 * time.Second)
		w.run.workloads.mark("", "continues 1")
		synctest.Wait()
		time.Sleep(2 * time.Second)
		if r := readAll(t, o.Dir); len(r.eventsOf("missing", "")) != 1 {
			t.Errorf("want one missing event after a mark that does not wait, got %+v", r.eventsOf("missing", ""))
		}
		time.AfterFunc(time.Second, func() { w.run.workloads.mark("", "continues 2") })
		began := time.Now()
		missing, err := SendMark(t.Context(), o.Dir, "waits", true)
		if lasted := time.Since(began); !errors.Is(err, errNoDump) || len(missing) != 1 ||
			!strings.HasSuffix(missing[0], says) || lasted < maxAppearWait || lasted > maxAppearWait+2*time.Second {
			t.Errorf("%q, %v after %v", missing, err, lasted)
		}
		run, err := w.Stop("done")
		var at []string
		for _, e := range run.MissingEvidence {
			at = append(at, e.Mark)
			if !strings.HasSuffix(e.Text, says) || e.Process != "" {
				t.Errorf("%+v", e)
			}
		}
		if err != nil || !slices.Equal(at, []string{"continues 1", "waits", "continues 2"}) ||
			run.ExitCode != record.ExitNoDevice {
			t.Errorf("dumps are missing at %q, exit %d, %v", at, run.ExitCode, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		with, without := cable(phone("S1", counted(rooted(), held), healthy("com.shop"))),
			cable(phone("S2", counted(rooted(), held), healthy("com.shop")))
		runOn(t, without, stopShop)
		o := responding(t, response.Options{Dump: response.AtMarks}, with, without)
		o.Duration = 0
		w, err := Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Second)
		missing, err := SendMark(t.Context(), o.Dir, "loop 1", true)
		if err != nil || len(missing) != 1 || !strings.HasSuffix(missing[0], says) {
			t.Errorf("%q, %v", missing, err)
		}
		if run, err := w.Stop("done"); err != nil || len(run.Diagnoses) == 0 || len(run.MissingEvidence) != 1 {
			t.Errorf("%d diagnoses, %+v, %v", len(run.Diagnoses), run.MissingEvidence, err)
		}
	})
}

// A slow scan prevents neither the dump of a mark that does not wait nor the
// samples of processes. A mark that waits uses the result of the scan.
func TestMarkDuringSlowScan(t *testing.T) {
	for name, waits := range map[string]bool{"continues": false, "waits": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := cable(phone("S1", counted(rooted(), func(int) int { return 3 }), healthy("com.shop")))
				w, o := started(t, response.Options{Dump: response.AtMarks}, p)
				time.Sleep(61 * time.Second)
				if waits {
					runOn(t, p, stopShop+"; "+startShop)
				}
				const slow = 8 * time.Second
				var dumped time.Time
				p.listen(func(what string) {
					switch {
					case strings.Contains(what, "system_server") && strings.Contains(what, "cmdline"):
						time.Sleep(slow)
					case isDump(what):
						dumped = time.Now()
					}
				})
				began := time.Now()
				if waits {
					if missing, err := w.Mark(t.Context(), "loop 1"); err != nil || len(missing) > 0 {
						t.Errorf("%q, %v", missing, err)
					}
				} else {
					w.run.workloads.mark("", "loop 1")
					time.Sleep(20 * time.Second)
				}
				least, most := maxScanWait, maxScanWait+time.Second
				if waits {
					least, most = slow+quietTime, slow+quietTime+maxSettleTime
				}
				if after := dumped.Sub(began); after < least || after > most {
					t.Errorf("dumped %v after the mark, want %v to %v", after, least, most)
				}
				pid := p.PID("com.shop")
				p.listen(nil)
				run, err := w.Stop("done")
				r := readAll(t, o.Dir)
				dumps := r.eventsOf("diagnosed", "com.shop")
				if err != nil || len(run.MissingEvidence) > 0 || len(dumps) == 0 || dumps[0].Diagnosis.PID != pid ||
					len(r.eventsOf("gap", "com.shop")) > 0 {
					t.Errorf("%+v, gaps %+v, %v", run.MissingEvidence, r.eventsOf("gap", "com.shop"), err)
				}
			})
		})
	}
}

// No mark waits for a process that has ended. The dump of such a process does
// not count as missing, because the scan for the mark did not find the process.
func TestMarkAfterOneProcessEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", counted(rooted(), func(int) int { return 3 }), healthy("com.shop"),
			healthy("com.shop:push")))
		w, _ := started(t, response.Options{Dump: response.AtMarks}, p)
		time.Sleep(61 * time.Second)
		p.Kill("com.shop:push")
		missing, err := w.Mark(t.Context(), "loop 1")
		if err != nil || len(missing) > 0 {
			t.Errorf("%q, %v", missing, err)
		}
		if run, err := w.Stop("done"); err != nil || len(run.MissingEvidence) > 0 {
			t.Errorf("%+v, %v", run.MissingEvidence, err)
		}
	})
}

// Marks in quick succession share scans: at most one per second.
func TestMarksShareScans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", counted(rooted(), func(int) int { return 3 }), healthy("com.shop")))
		w, _ := started(t, response.Options{Dump: response.AtMarks}, p)
		time.Sleep(61 * time.Second)
		looks := 0
		p.listen(func(what string) {
			if strings.Contains(what, "system_server") && strings.Contains(what, "cmdline") {
				looks++
			}
		})
		for i := range 100 {
			w.run.workloads.mark("", fmt.Sprint("step ", i+1))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		p.listen(nil)
		if looks < 9 || looks > 13 {
			t.Errorf("got %d scans in 13 s, want 9 to 13", looks)
		}
		if run, err := w.Stop("done"); err != nil || run.Devices[0].Marks != 100 {
			t.Errorf("%+v, %v", run.Devices, err)
		}
	})
}
