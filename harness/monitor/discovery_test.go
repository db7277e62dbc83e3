package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

// delayed is a phone with a round-trip delay for every command. Its su command
// waits for confirmation.
type delayed struct {
	*simulated
	each time.Duration
	asks bool
	su   int
}

func (d *delayed) Shell(ctx context.Context, command string, out, errOut io.Writer) (int, error) {
	if err := sleep(ctx, d.each); err != nil {
		return -1, err
	}
	if strings.Contains(command, "su 0") {
		d.su++
		if d.asks {
			<-ctx.Done()
			return -1, ctx.Err()
		}
	}
	return d.simulated.Shell(ctx, command, out, errOut)
}

// Every process is sampled within two seconds, whatever the number of packages,
// with the round-trip times of a real phone, even if su waits for a
// confirmation. su is called only once.
func TestFirstSampleWithManyPackages(t *testing.T) {
	waits := []bool{true, false}
	if racing {
		waits = waits[:1] // the same goroutines
	}
	for _, asks := range waits {
		synctest.Test(t, func(t *testing.T) {
			var apps []androidsim.App
			for i := range 1000 {
				name := fmt.Sprintf("com.shop.p%d", i)
				apps = append(apps,
					androidsim.App{
						Package: name, Debuggable: i%2 == 0, Processes: []androidsim.ProcessSpec{healthy(name)},
					})
			}
			p := &simulated{Phone: androidsim.New(androidsim.Options{Serial: "S1", Seed: 7, Apps: apps})}
			o := options(t, p)
			dev := &delayed{simulated: p, each: 40 * time.Millisecond, asks: asks}
			o.Devices[0].Device, o.Patterns, o.Duration, o.Detail = dev, []capture.Pattern{"com.shop.*"}, time.Minute,
				time.Hour
			r := perform(t, t.Context(), o)
			first := map[string]float64{}
			for _, s := range r.samples {
				if _, ok := first[s.Process]; !ok {
					first[s.Process] = s.T
				}
			}
			if len(first) != maxSubjects {
				t.Errorf("su prompt %v: %d processes have samples, want %d", asks, len(first), maxSubjects)
			}
			for name, at := range first {
				if at > 2 {
					t.Fatalf("su prompt %v: the first sample of %s came after %v s", asks, name, at)
				}
			}
			if dev.su != 1 {
				t.Errorf("su was run %d times, want 1", dev.su)
			}
			sources := map[capture.Source]int{}
			for _, x := range r.Processes {
				sources[capture.Source(x.Source)]++
			}
			if n := sources[capture.RunAs]; n < 200 || n+sources[capture.Status] != maxSubjects {
				t.Errorf("su prompt %v: got processes per source %v, want at least 200 read with run-as", asks, sources)
			}
			if len(r.eventsOf("error", "")) != 1 ||
				!strings.Contains(r.eventsOf("error", "")[0].Text, "more than 500 processes") {
				t.Errorf("su prompt %v: %+v", asks, r.eventsOf("error", ""))
			}
		})
	}
}

// Two processes with one name are both watched, whichever of them leaks and
// whichever is older.
func TestTwinsAreBothWatched(t *testing.T) {
	for leaks := range 2 {
		synctest.Test(t, func(t *testing.T) {
			spec := func(i int) androidsim.ProcessSpec {
				if i == leaks {
					return leaky("com.shop", androidsim.Java, 400)
				}
				return healthy("com.shop")
			}
			later := spec(1)
			later.StartAfter = 90 * time.Second
			p := &simulated{Phone: androidsim.New(androidsim.Options{
				Serial: "S1", Root: true, Seed: 7, BuildType: "userdebug", Apps: []androidsim.App{
					{Package: "com.shop", Processes: []androidsim.ProcessSpec{spec(0)}},
					{Package: "com.other", Processes: []androidsim.ProcessSpec{later}},
				},
			})}
			o := options(t, p)
			o.Policy, o.Duration = detector.RobustPolicy(), 2*time.Hour
			r := perform(t, t.Context(), o)
			if len(r.Processes) != 2 || r.ExitCode != record.ExitLeak {
				t.Fatalf("exit %d, %d processes: %+v", r.ExitCode, len(r.Processes), r.events)
			}
			for i, name := range []string{"com.shop", "com.shop#2"} {
				want := detector.Pass
				if i == leaks {
					want = detector.Leak
				}
				if x := r.process(t, "S1", name); x.Gate != want || x.Restarts > 0 {
					t.Errorf("%d leaks: %s: %+v", leaks, name, x)
				}
			}
			if found := r.eventsOf("found", "com.shop#2"); len(found) != 1 ||
				!strings.Contains(found[0].Text, "one of several processes with the same name") {
				t.Errorf("%+v", found)
			}
		})
	}
}

// A process that restarts while a scan sees both lives is one series, and a
// twin that restarts remains the same twin.
func TestTwinKeepsNumberAcrossRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crashing := healthy("com.shop")
		crashing.StartAfter, crashing.CrashAfter, crashing.RestartAfter = 2*time.Minute, 9*time.Minute, 20*time.Second
		p := &simulated{Phone: androidsim.New(androidsim.Options{
			Serial: "S1", Root: true, Seed: 7, BuildType: "userdebug", Apps: []androidsim.App{
				{Package: "com.shop", Processes: []androidsim.ProcessSpec{healthy("com.shop")}},
				{Package: "com.other", Processes: []androidsim.ProcessSpec{crashing}},
			},
		})}
		o := options(t, p)
		o.Duration = time.Hour
		r := perform(t, t.Context(), o)
		if len(r.Processes) != 2 {
			t.Fatalf("%+v", r.Processes)
		}
		if x := r.process(t, "S1", "com.shop"); x.Restarts != 0 || x.Samples < 115 {
			t.Errorf("%+v", x)
		}
		if x := r.process(t, "S1", "com.shop#2"); x.Restarts < 5 {
			t.Errorf("%+v", x)
		}
	})
}

// A run whose device fails to list its processes is reported differently from
// one in which the app did not run.
func TestProcessListFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		o := options(t, p)
		o.Devices[0].Device = &hooked{p, func(ctx context.Context, command string) (bool, error) {
			if isLook(command) {
				return hang(ctx)
			}
			return false, nil
		}}
		o.Duration = 12 * time.Minute
		r := perform(t, t.Context(), o)
		d := r.Devices[0]
		if r.ExitCode != record.ExitNoDevice || !strings.Contains(d.Error, "its processes could not be listed") {
			t.Errorf("exit %d, device %+v", r.ExitCode, d)
		}
	})
}

// If the process list fails and the app restarts after that, the app is no
// longer watched, so the run does not end cleanly.
func TestProcessListFailsBeforeARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := healthy("com.shop")
		shop.CrashAfter, shop.RestartAfter = 40*time.Minute, 5*time.Second
		p := phone("S1", rooted(), shop)
		o := options(t, p)
		began := time.Now()
		o.Devices[0].Device = &hooked{p, func(_ context.Context, command string) (bool, error) {
			return isLook(command) && time.Since(began) > 35*time.Minute, errCut
		}}
		o.Duration = 2 * time.Hour
		r := perform(t, t.Context(), o)
		if d := r.Devices[0]; r.ExitCode != record.ExitNoDevice ||
			!strings.Contains(d.Error, "no watched process is left") {
			t.Errorf("exit %d, device %+v", r.ExitCode, d)
		}
	})
}

// A process with an unprintable name is counted.
func TestUnprintableNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"), healthy("com.shop:\x1b[2Jpush"), healthy("com.shop:größe 2"))
		o := options(t, p)
		o.Duration = 5 * time.Minute
		r := perform(t, t.Context(), o)
		errs := r.eventsOf("error", "")
		if len(r.Processes) != 2 || len(errs) != 1 || !strings.Contains(errs[0].Text, "1 names are not printable") {
			t.Errorf("%d processes, %+v", len(r.Processes), errs)
		}
		r.process(t, "S1", "com.shop:größe 2")
	})
}

// A run whose directory is deleted or moved ends immediately, reports the
// reason, and writes nothing at the old path.
func TestRunDirectoryMoved(t *testing.T) {
	for name, displace := range map[string]func(dir string) error{
		"deleted": os.RemoveAll,
		"moved":   func(dir string) error { return os.Rename(dir, dir+"-moved") },
		"replaced": func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700),
				os.WriteFile(filepath.Join(dir, record.SamplesName), []byte("{}\n"), 0o600))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := phone("S1", rooted(), leaky("com.shop", androidsim.Java, 400))
			o := options(t, p)
			began := time.Now()
			go func() {
				time.Sleep(30*time.Minute + betweenSamples)
				if err := displace(o.Dir); err != nil {
					t.Error(err)
				}
			}()
			o.Duration = 8 * time.Hour
			r, err := Run(t.Context(), o)
			if !errors.Is(err, os.ErrNotExist) || r.Stopped != record.StoppedDisk ||
				r.ExitCode != record.ExitUnwritten {
				t.Errorf("%s: stopped %s, exit %d: %v", name, r.Stopped, r.ExitCode, err)
			}
			if took := time.Since(began); took > 31*time.Minute {
				t.Errorf("%s: the run continued for %v, want at most 31 min", name, took)
			}
			entries, err := os.ReadDir(o.Dir)
			if name == "replaced" && (err != nil || len(entries) != 1) || name != "replaced" &&
				!errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: unexpected entries at the old path: %v, %v", name, entries, err)
			}
			if name != "moved" {
				return
			}
			if rec := readAll(t, o.Dir+"-moved"); len(rec.samples) < 50 ||
				rec.events[len(rec.events)-1].Event != "stopped" {
				t.Errorf("moved directory: %d samples, last event %+v", len(rec.samples), rec.events[len(rec.events)-1])
			}
		})
	}
}

// A child with the name of its parent is recorded if it keeps that name for a
// while.
func TestChildWithNameOfParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, phone("S1", rooted(), healthy("com.shop")))
		s := loneSession(t, o)
		parent := capture.Process{Name: "com.shop", UID: 10123, PID: 100, Start: 5}
		s.subjects.reconcile(parent, provisionalProbe())
		child := parent
		child.PID, child.Start = 200, 9
		for s.clock.now() < childAfter+10*scanInterval {
			if s.clock.now() == 2*scanInterval {
				child.PID = 201 // a different child: the first was short-lived
			}
			found := capture.Found{Processes: []capture.Process{parent}, Children: []capture.Process{child}}
			s.discovery.twins.number(found)
			s.discovery.recordChildren(found)
			time.Sleep(scanInterval)
		}
		told := readAll(t, o.Dir).eventsOf("error", "com.shop")
		if len(told) != 1 || told[0].T != (childAfter+2*scanInterval).Seconds() ||
			!strings.Contains(told[0].Text, "pid 201 is a child") {
			t.Errorf("%+v", told)
		}
	})
}

// A diagnosis that is due after the directory is gone does not recreate it.
func TestRunDirectoryMovedBeforeDiagnosis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, phone("S1", rooted(), healthy("com.shop")))
		o.Respond = &Response{Dump: AtMarks}
		w, err := Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + betweenSamples)
		if err := os.RemoveAll(o.Dir); err != nil {
			t.Fatal(err)
		}
		// The run ends whether or not it gets a response.
		_, _ = w.Mark(t.Context(), "loop 1")
		if r, err := w.Wait(); !errors.Is(err, os.ErrNotExist) || r.ExitCode != record.ExitUnwritten {
			t.Errorf("exit %d: %v", r.ExitCode, err)
		}
		if _, err := os.Stat(o.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("recreated: %v", err)
		}
	})
}
