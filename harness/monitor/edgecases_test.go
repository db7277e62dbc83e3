package monitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/reporters/record"
)

// hooked is a phone whose hook can make a command fail before it runs.
type hooked struct {
	*simulated
	hook func(ctx context.Context, command string) (ends bool, err error)
}

func (h *hooked) Shell(ctx context.Context, command string, out, errOut io.Writer) (int, error) {
	if ends, err := h.hook(ctx, command); ends {
		return -1, err
	}
	return h.simulated.Shell(ctx, command, out, errOut)
}

func isRound(command string) bool { return strings.HasPrefix(command, "cat /proc/uptime; cd /proc") }
func isLook(command string) bool  { return strings.HasPrefix(command, "u=/proc/sys/kernel/random/uuid") }
func isPulse(command string) bool {
	return strings.Contains(command, "boot_id") && !strings.Contains(command, "getprop")
}

func hang(ctx context.Context) (bool, error) {
	<-ctx.Done()
	return true, ctx.Err()
}

func backwards(t *testing.T, samples []record.Sample) {
	t.Helper()
	for i := 1; i < len(samples); i++ {
		if samples[i].T < samples[i-1].T {
			t.Errorf("the time decreased from %v to %v", samples[i-1].T, samples[i].T)
		}
	}
}

// A process that blocks the common round is read separately. The blocked round
// is not mistaken for a reboot.
func TestRunHungFastRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"), healthy("com.shop:hung"))
		o := options(t, p)
		began := time.Now()
		pid := fmt.Sprint(p.PID("com.shop:hung"))
		o.Devices[0].Device = &hooked{p, func(ctx context.Context, command string) (bool, error) {
			since := time.Since(began)
			if isRound(command) && strings.Contains(command, " "+pid+"/stat") && since > 5*time.Minute &&
				since < 9*time.Minute {
				return hang(ctx)
			}
			return false, nil
		}}
		o.Duration = 20 * time.Minute
		r := perform(t, t.Context(), o)
		if n := len(r.eventsOf("reboot", "")) + len(r.eventsOf("gap", "com.shop")); n > 0 {
			t.Errorf("events %+v", r.events)
		}
		if len(r.eventsOf("unresponsive", "com.shop:hung")) == 0 || len(r.eventsOf("gap", "com.shop:hung")) == 0 {
			t.Errorf("the hung process is not reported: %+v", r.events)
		}
		backwards(t, r.samplesOf("com.shop", false))
		if d := r.Devices[0].Duration; d < 1190 || d > 1210 {
			t.Errorf("got a duration of %v s, want about 1200 s", d)
		}
	})
}

// night returns the length, in hours, of a run in which faults happen all the
// time. Under the race detector two hours are enough.
func night() int {
	if racing {
		return 2
	}
	return 8
}

// Scans that fail all night are reported once and do not affect the samples.
func TestRunScansFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		o := options(t, p)
		began := time.Now()
		o.Devices[0].Device = &hooked{p, func(_ context.Context, command string) (bool, error) {
			return isLook(command) && time.Since(began) > time.Minute, errCut
		}}
		hours := night()
		o.Duration = time.Duration(hours) * time.Hour
		r := perform(t, t.Context(), o)
		if n := len(r.eventsOf("error", "")); n != 1 {
			t.Errorf("recorded %d times", n)
		}
		if x := r.process(t, "S1", "com.shop"); x.Samples < 120*hours-5 || x.Samples > 1100*hours/8 || x.Gaps > 0 {
			t.Errorf("%d samples, %d gaps", x.Samples, x.Gaps)
		}
	})
}

// If a series ends long before the run, this is reported, and the process does
// not pass.
func TestRunRecordsTrailingGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		o := options(t, p)
		go func() {
			time.Sleep(time.Hour + betweenSamples)
			for _, name := range []string{"smaps_rollup", "smaps", "status"} {
				p.BreakFile("/proc/*/"+name, androidsim.FileEmpty)
			}
			p.HangDumpsys()
		}()
		// The faults last for more than half of the run, even under the race
		// detector.
		hours := max(night(), 3)
		o.Duration, o.Strict = time.Duration(hours)*time.Hour, true
		r := perform(t, t.Context(), o)
		x := r.process(t, "S1", "com.shop")
		unseen := r.eventsOf("unseen", "com.shop")
		least := (float64(hours) - 1.2) * 3600
		if len(unseen) != 1 || unseen[0].Duration < least || x.Missing < least || x.Gate != "inconclusive" ||
			r.ExitCode != record.ExitInconclusive {
			t.Errorf("exit %d, events %+v, %+v", r.ExitCode, unseen, x)
		}
		if !strings.Contains(strings.Join(x.Warnings, "\n"), "no sample in the last") {
			t.Errorf("warnings %v", x.Warnings)
		}
	})
}

// A phone that takes seconds for one command is slow, not lost.
func TestRunSlowPhoneIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		o := options(t, p)
		began := time.Now()
		var once sync.Once
		d := &hooked{p, func(ctx context.Context, command string) (bool, error) {
			fails := false
			if isRound(command) && time.Since(began) > 10*time.Minute {
				once.Do(func() { fails = true })
			}
			if isPulse(command) {
				time.Sleep(6 * time.Second)
			}
			return fails, errCut
		}}
		o.Devices[0].Device = d
		r := perform(t, t.Context(), o)
		if x := r.process(t, "S1", "com.shop"); r.ExitCode != record.ExitClean || x.Samples < 118 || x.Gaps > 0 {
			t.Errorf("exit %d, %+v", r.ExitCode, x)
		}
	})
}

// A process that dumpsys does not find may still be running.
func TestRunDetailSaysGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		o := options(t, p)
		o.Devices[0].Device = &stranger{p}
		hours := night()
		o.Duration = time.Duration(hours) * time.Hour
		r := perform(t, t.Context(), o)
		if n := len(r.eventsOf("gone", "")) + len(r.eventsOf("back", "")); n > 0 {
			t.Errorf("got %d gone and back events, want none", n)
		}
		if x := r.process(t, "S1", "com.shop"); x.Samples < 120*hours-10 || x.Gaps > 0 {
			t.Errorf("%+v", x)
		}
	})
}

// stranger runs dumpsys for a process that does not exist.
type stranger struct{ *simulated }

var askedPID = regexp.MustCompile(`meminfo \d+ `)

func (d *stranger) Shell(ctx context.Context, command string, out, errOut io.Writer) (int, error) {
	return d.simulated.Shell(ctx, askedPID.ReplaceAllString(command, "meminfo 99999 "), out, errOut)
}

// All marks in a burst and all marks just before the end are counted. Marks
// that exceed the rate limit are recorded as skipped.
func TestRunKeepsEveryMark(t *testing.T) {
	p := phone("S1", rooted(), healthy("com.shop"))
	o := options(t, p)
	o.Duration = 0
	o.Workload = HostCommand{
		Args: []string{"sh", "-c", "sleep 0.2; i=0; while [ $i -lt 1000 ]; do echo leakgate:mark $i; i=$((i+1)); done"},
	}
	r := perform(t, t.Context(), o)
	marks := r.eventsOf("mark", "")
	skipped, _ := r.skippedIn("marks_skipped")
	if len(marks)+skipped != 1000 || len(marks) < eventBurst || r.Devices[0].Marks != 1000 {
		t.Errorf("got %d marks and %d skipped, want 1000 together", len(marks), skipped)
	}
}

// A mark reaches the run whatever the name of the run directory.
func TestSendMarkToUnusualDirectory(t *testing.T) {
	p := phone("S1", rooted(), healthy("com.shop"))
	o := options(t, p)
	o.Dir, o.Duration = filepath.Join(t.TempDir(), "run[1]*"), 2*time.Second
	var wg sync.WaitGroup
	wg.Go(func() {
		time.Sleep(500 * time.Millisecond)
		if _, err := SendMark(t.Context(), o.Dir, "x", false); err != nil {
			t.Error(err)
		}
	})
	r := perform(t, t.Context(), o)
	wg.Wait()
	if len(r.eventsOf("mark", "")) != 1 {
		t.Errorf("%+v", r.events)
	}
}

// A round that was in flight when another level was chosen still measures the
// old quantity.
func TestRunLevelChangeDuringRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		root := p.LoseRoot()
		o := options(t, p)
		began := time.Now()
		var once sync.Once
		o.Devices[0].Device = &slow{&hooked{p, func(_ context.Context, command string) (bool, error) {
			fails := false
			if isRound(command) && time.Since(began) > 10*time.Minute {
				once.Do(func() { fails = true; root() })
			}
			return fails, errCut
		}}, 1500 * time.Millisecond}
		o.Duration = 40 * time.Minute
		r := perform(t, t.Context(), o)
		levels := r.eventsOf("level", "com.shop")
		if len(levels) == 0 {
			t.Fatalf("no level event: %+v", r.events)
		}
		text, err := os.ReadFile(filepath.Join(o.Dir, record.SamplesName))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), `"event":"level"`)
		if strings.Contains(after, `"source":"status","pss_kb":null`) {
			t.Error("the new series starts with a sample of the old level")
		}
	})
}

// slow is a phone whose rounds are delayed on the connection.
type slow struct {
	capture.Device
	by time.Duration
}

func (s *slow) Shell(ctx context.Context, command string, out, errOut io.Writer) (int, error) {
	exit, err := s.Device.Shell(ctx, command, out, errOut)
	if isRound(command) {
		time.Sleep(s.by)
	}
	return exit, err
}

// A breakdown may arrive before the sample that ends a gap. The gap ends at the
// sample.
func TestRunGapAfterSlowRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		o := options(t, p)
		o.Devices[0].Device = &slow{p, 8 * time.Second}
		o.Duration = 3 * time.Hour
		go func() {
			for range 10 {
				time.Sleep(10*time.Minute + 3*time.Second)
				p.unplug(true)
				time.Sleep(4*time.Minute + time.Second)
				p.unplug(false)
			}
		}()
		r := perform(t, t.Context(), o)
		if x := r.process(t, "S1", "com.shop"); strings.Contains(strings.Join(x.Warnings, "\n"), "ignored") ||
			x.Gaps < 9 {
			t.Errorf("%d gaps, %v", x.Gaps, x.Warnings)
		}
	})
}

// The host was suspended, so the host's clock is behind when the phone reboots.
func TestRunLateHostAndReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := rooted()
		opt.Scale = 1.5
		p := phone("S1", opt, healthy("com.shop"))
		o := options(t, p)
		o.Devices[0].Facts.TimeScale = 1
		go func() {
			time.Sleep(30*time.Minute + betweenSamples)
			p.Reboot()
		}()
		r := perform(t, t.Context(), o)
		backwards(t, r.samplesOf("com.shop", false))
		if n := len(r.eventsOf("reboot", "")); n != 1 {
			t.Errorf("%d reboots", n)
		}
	})
}

// When other processes end, a process that only dumpsys can read is read more
// often from then on. The previous, longer interval does not count as a gap.
func TestRunDumpsysOnlyWhileOthersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		specs := []androidsim.ProcessSpec{healthy("com.shop")}
		for i := range 9 {
			specs = append(specs, healthy(fmt.Sprintf("com.shop:p%d", i)))
		}
		p := phone("S1", androidsim.Options{API: 19, Seed: 3}, specs...)
		o := options(t, p)
		o.Duration = 2 * time.Hour
		go func() {
			time.Sleep(time.Hour + 4*time.Minute + 40*time.Second)
			for i := range 9 {
				p.Kill(fmt.Sprintf("com.shop:p%d", i))
			}
		}()
		r := perform(t, t.Context(), o)
		if gaps := append(r.eventsOf("gap", "com.shop"), r.eventsOf("missed", "com.shop")...); len(gaps) > 0 {
			t.Errorf("%+v", gaps)
		}
	})
}

// If one process is expensive to read and the others are cheap, the mean cost
// is compared with the budget. If the mean is within the budget, the period
// does not change.
func TestGovernorDoesNotOscillate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, phone("S1", rooted(), healthy("com.shop")))
		o.MaxSystemServer = 10
		s := loneSession(t, o)
		for i := range 4 {
			s.breakdowns.rotation.Add(capture.Key{Name: fmt.Sprint(i)})
		}
		// 7.2 % of a core on average
		costs := []time.Duration{
			8 * time.Second, 200 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond,
		}
		for dumps := 0; s.clock.now() < 8*time.Hour; dumps++ {
			s.overhead.server.dump(known.OfDuration(costs[dumps%4]), 10*time.Second)
			s.breakdowns.govern(s.clock.now())
			time.Sleep(s.breakdowns.rotation.Period())
		}
		if n := s.breakdowns.governor.thinned; n > 0 {
			t.Errorf("thinned %d times", n)
		}
	})
}

// loneSession returns the session of the first device of a run that has not
// been started.
func loneSession(t *testing.T, o Options) *session {
	t.Helper()
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	m := newRun(o)
	m.stop = func(error) {}
	h := m.header()
	var err error
	if m.recorder, err = record.CreateRecorder(o.Dir, h); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.recorder.Close(); err != nil {
			t.Error(err)
		}
	})
	if m.ledger, err = ledger.New(h, o.Policy); err != nil {
		t.Fatal(err)
	}
	return newSession(m, o.Devices[0])
}

// A command that succeeds counts as successful even if it leaves processes
// behind.
func TestHostCommandLeavesProcessBehind(t *testing.T) {
	t.Parallel()
	o := options(t, phone("S1", rooted(), healthy("com.shop")))
	o.Duration = 0
	o.Workload = HostCommand{Args: []string{"sh", "-c", "sleep 60 & echo done"}}
	r := perform(t, t.Context(), o)
	if r.ExitCode != record.ExitClean || r.Workload.Exit == nil || *r.Workload.Exit != 0 || r.Workload.Error != "" {
		t.Errorf("exit %d, %+v", r.ExitCode, r.Workload)
	}
}

// system_server itself may be watched.
func TestRunWatchesSystemServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, phone("S1", rooted(), healthy("com.shop")))
		o.Patterns, o.Duration = []capture.Pattern{"system_server"}, 10*time.Minute
		if x := perform(t, t.Context(), o).process(t, "S1", "system_server"); x.Samples < 19 {
			t.Errorf("%+v", x)
		}
	})
}

// Random faults of all kinds occur on two phones for hours. The record that is
// rebuilt from the lines equals the original record (perform compares them),
// time never goes backward, and only leaking processes are reported as leaks.
// Under the race detector, each type of phone is tested with one seed.
func TestRunTorture(t *testing.T) {
	seeds := []uint64{0, 1, 2, 3, 4, 5}
	if racing {
		seeds = []uint64{0, 2}
	}
	for _, seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			opt := rooted()
			if seed%3 == 2 {
				opt = androidsim.Options{API: 19, Seed: seed}
			}
			p, q := phone("S1", opt, healthy("com.shop"), healthy("com.shop:b")),
				phone("S2", rooted(), leaky("com.shop", androidsim.Native, 300))
			o := options(t, p, q)
			o.Sampling = defaultBudget
			o.DeviceTimeout, o.Duration = 20*time.Minute, 3*time.Hour
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { torture(ctx, rand.New(rand.NewPCG(seed, 9)), p, q) })
			r := perform(t, t.Context(), o)
			cancel()
			wg.Wait()
			for _, name := range []string{"com.shop", "com.shop:b"} {
				for _, breakdowns := range []bool{false, true} {
					for _, device := range []string{"S1", "S2"} {
						backwards(t, r.of(device, name, breakdowns))
					}
				}
			}
			for _, e := range r.events {
				if e.T < 0 || e.Up < 0 {
					t.Errorf("seed %d: negative %+v", seed, e)
				}
			}
			for _, x := range r.Processes {
				if x.Device == "S1" && x.Gate == detector.Leak {
					t.Errorf("seed %d: %+v", seed, x)
				}
			}
		})
	}
}

func (r result) of(device, process string, breakdowns bool) []record.Sample {
	var out []record.Sample
	for _, s := range r.samplesOf(process, breakdowns) {
		if s.Device == device {
			out = append(out, s)
		}
	}
	return out
}

func torture(ctx context.Context, r *rand.Rand, phones ...*simulated) {
	for ctx.Err() == nil {
		x := phones[r.IntN(len(phones))]
		end := func() {}
		switch r.IntN(8) {
		case 0:
			x.unplug(true)
			end = func() { x.unplug(false) }
		case 1:
			x.Reboot()
		case 2:
			x.Kill("com.shop")
			end = func() { x.Restart("com.shop") }
		case 3:
			end = x.LoseRoot()
		case 4:
			end = x.BreakFile("/proc/*/smaps_rollup", androidsim.FileDenied)
		case 5:
			end = x.TruncateOutput(int64(r.IntN(300)), r.IntN(2) == 0)
		case 6:
			end = x.DelayDumpsys(time.Duration(r.IntN(30)) * time.Second)
		case 7:
			end = x.BreakFile("/proc/uptime", androidsim.FileEmpty)
		}
		rest(ctx, time.Duration(r.IntN(240))*time.Second)
		end()
		rest(ctx, time.Duration(r.IntN(300))*time.Second)
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// clockStops is a phone whose clock stops for a while.
type clockStops struct {
	*simulated
	from, to time.Time
}

var clockLine = regexp.MustCompile(`(?m)^((?:/proc/)?uptime:)?[0-9]+\.[0-9]{2} [0-9]+\.[0-9]{2}$`)

func (d *clockStops) Shell(ctx context.Context, command string, out, errOut io.Writer) (int, error) {
	var answer bytes.Buffer
	exit, err := d.simulated.Shell(ctx, command, &answer, errOut)
	text := answer.Bytes()
	if now := time.Now(); now.After(d.from) && now.Before(d.to) {
		text = clockLine.ReplaceAll(text, []byte("${1}4200.00 5000.00"))
	}
	_, werr := out.Write(text)
	return exit, errors.Join(err, werr)
}

// One event is recorded when the clock stops and one when it continues.
func TestDeviceClockStops(t *testing.T) {
	for _, goesOn := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := phone("S1", rooted(), healthy("com.shop"))
			o := options(t, p)
			from := time.Now().Add(10*time.Minute + betweenSamples)
			d := &clockStops{simulated: p, from: from, to: from.Add(time.Hour)}
			if goesOn {
				d.to = from.Add(20 * time.Minute)
			}
			o.Devices[0].Device = d
			r := perform(t, t.Context(), o)
			told := r.eventsOf("clock", "")
			if len(told) == 0 || told[0].T > 720 || !strings.Contains(told[0].Text, "clock has stopped at 4200.00 s") ||
				len(told) != map[bool]int{false: 1, true: 2}[goesOn] {
				t.Errorf("continues %v: %+v", goesOn, told)
			}
			warnings := strings.Join(r.process(t, "S1", "com.shop").Warnings, "\n")
			if strings.Contains(warnings, "the device's clock has stopped") == goesOn {
				t.Errorf("continues %v: %s", goesOn, warnings)
			}
		})
	}
}
