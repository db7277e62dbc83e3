package monitor

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/reporters/record"
)

// gaps returns the longest time between two samples of a process, and the
// longest such time that no event explains.
func (r result) gaps(process string) (longest, untold time.Duration) {
	samples := r.samplesOf(process, false)
	for i := 1; i < len(samples); i++ {
		gap := secondsOf(samples[i].T - samples[i-1].T)
		longest = max(longest, gap)
		if !r.explainsGap(process, samples[i]) {
			untold = max(untold, gap)
		}
	}
	return longest, untold
}

// explainsGap reports whether an event explains the gap before a sample.
func (r result) explainsGap(process string, s record.Sample) bool {
	for _, e := range r.events {
		ends := e.T == s.T && e.Process == process && (e.Event == "gap" || e.Event == "missed")
		if ends || e.Event == "reboot" && e.T <= s.T && e.T > s.T-60 {
			return true
		}
	}
	return false
}

func TestRunRecordsEveryGap(t *testing.T) {
	for name, c := range map[string]struct {
		away  time.Duration
		event string
	}{
		"one missing sample": {45 * time.Second, "missed"},
		"gap":                {4 * time.Minute, "gap"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := phone("S1", rooted(), healthy("com.shop"))
				go func() {
					time.Sleep(10*time.Minute + 10*time.Second)
					p.unplug(true)
					time.Sleep(c.away)
					p.unplug(false)
				}()
				o := options(t, p)
				o.Duration = 30 * time.Minute
				r := perform(t, t.Context(), o)
				told := r.eventsOf(c.event, "com.shop")
				longest, untold := r.gaps("com.shop")
				if len(told) != 1 {
					t.Fatalf("longest gap %v, events %+v", longest, r.events)
				}
				if secondsOf(told[0].Duration) != longest || untold > 45*time.Second {
					t.Errorf("longest gap %v, longest unexplained gap %v, events %+v", longest, untold, told)
				}
				if longest > c.away+time.Minute {
					t.Errorf("disconnected for %v, but no sample for %v", c.away, longest)
				}
				x := r.process(t, "S1", "com.shop")
				if x.Missing != told[0].Duration || x.Missed+x.Gaps != 1 {
					t.Errorf("%+v", x)
				}
				if back := r.eventsOf("back", ""); len(r.eventsOf("away", "")) != 1 || len(back) != 1 ||
					secondsOf(back[0].Duration) < c.away-time.Minute {
					t.Errorf("events %+v", r.events)
				}
			})
		})
	}
}

// The other devices are not affected.
func TestRunOneOfThreeDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phones := []*simulated{
			phone("S1", rooted(), healthy("com.shop")), phone("S2", rooted(), healthy("com.shop")),
			phone("S3", rooted(), healthy("com.shop")),
		}
		go func() {
			time.Sleep(10*time.Minute + betweenSamples)
			phones[1].unplug(true)
			time.Sleep(3 * time.Minute)
			phones[1].unplug(false)
		}()
		o := options(t, phones...)
		o.Duration = 20 * time.Minute
		r := perform(t, t.Context(), o)
		samples := map[string]int{}
		for _, s := range r.samples {
			if s.Breakdown == nil {
				samples[s.Device]++
			}
		}
		if samples["S1"] < 40 || samples["S3"] < 40 || samples["S2"] < 33 || samples["S2"] > 36 {
			t.Errorf("samples %v", samples)
		}
		for _, e := range r.events {
			if e.Device != "S2" && (e.Event == "gap" || e.Event == "missed" || e.Event == "error") {
				t.Errorf("%s noticed: %+v", e.Device, e)
			}
		}
	})
}

// A device that responds only to pulse requests is queried at its interval and
// not in a tight loop. Its fault is recorded once.
func TestRunDeviceAnswersOnlyPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		bad := &failingOn{simulated: p, refuse: "exec grep"}
		o := options(t, p)
		o.Devices[0].Device = bad
		o.Duration = time.Hour
		r := perform(t, t.Context(), o)
		if n := p.commands("exec grep") + bad.refused; n > 200 {
			t.Errorf("got %d rounds in an hour, want at most 200", n)
		}
		if n := len(r.eventsOf("error", "")); n != 1 {
			t.Errorf("recorded %d times", n)
		}
	})
}

// failingOn is a phone on which every command that contains a given string
// fails.
type failingOn struct {
	*simulated
	refuse string

	mu      sync.Mutex
	refused int
}

func (p *failingOn) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	if strings.Contains(command, p.refuse) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.refused++
		return 0, errors.New("connection ended before the exit status")
	}
	return p.simulated.Shell(ctx, command, stdout, stderr)
}

func TestRunLosesDeviceAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		go func() {
			time.Sleep(10*time.Minute + betweenSamples)
			p.unplug(true)
		}()
		o := options(t, p)
		o.Duration, o.DeviceTimeout = 0, 2*time.Minute
		began := time.Now()
		r := perform(t, t.Context(), o)
		if took := time.Since(began); took < 12*time.Minute || took > 13*time.Minute {
			t.Errorf("the run ended after %v, want 12 to 13 min", took)
		}
		if r.ExitCode != record.ExitNoDevice || r.Stopped != "devices" || len(r.samplesOf("com.shop", false)) < 19 ||
			len(r.eventsOf("lost", "")) != 1 {
			t.Errorf("%+v", r.Run)
		}
	})
}

// After a reboot that takes longer than the previous uptime, the clock is not
// behind its previous value. Only the boot ID reveals the reboot.
func TestRunRebootWithLaterClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := rooted()
		opt.Uptime = time.Minute
		p := phone("S1", opt, healthy("com.shop"))
		go func() {
			time.Sleep(3*time.Minute + betweenSamples)
			p.unplug(true)
			p.Reboot()
			time.Sleep(4*time.Minute + 20*time.Second)
			p.unplug(false)
		}()
		o := options(t, p)
		o.Duration = 20 * time.Minute
		r := perform(t, t.Context(), o)
		reboots := r.eventsOf("reboot", "")
		if len(reboots) != 1 || reboots[0].Up < 240 || reboots[0].T < 440 || reboots[0].T > 480 {
			t.Fatalf("reboots %+v", reboots)
		}
		samples := r.samplesOf("com.shop", false)
		if last := samples[len(samples)-1].T; last < 1170 || last > 1201 {
			t.Errorf("wrong time axis: the last sample of a run of 1200 s is at %v s", last)
		}
		if x := r.process(t, "S1", "com.shop"); x.Restarts != 1 {
			t.Errorf("%+v", x)
		}
	})
}

// returning is a phone that reports its return, as a device behind an adb
// server does.
type returning struct {
	*simulated
	back chan struct{}
}

func (d *returning) Return(ctx context.Context) error {
	select {
	case <-d.back:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestRunContinuesWhenDeviceReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		d := &returning{p, make(chan struct{})}
		var back time.Time
		go func() {
			time.Sleep(10*time.Minute + time.Second)
			p.unplug(true)
			time.Sleep(100 * time.Second)
			p.unplug(false)
			back = time.Now()
			d.back <- struct{}{}
		}()
		o := options(t, p)
		o.Devices[0].Device = d
		o.Duration = 20 * time.Minute
		began := time.Now()
		r := perform(t, t.Context(), o)
		for _, s := range r.samplesOf("com.shop", false) {
			if s.T >= back.Sub(began).Seconds() {
				if late := s.T - back.Sub(began).Seconds(); late > 1 {
					t.Errorf("the first sample comes %.1f s after the reconnection", late)
				}
				return
			}
		}
		t.Error("no sample after the reconnection")
	})
}

func TestMonkeyContinuesAfterDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		d := &dropping{simulated: p, at: 95 * time.Second, away: 40 * time.Second}
		o := options(t, p)
		o.Devices[0].Device, o.Duration = d, 0
		o.Workload = Monkey{Package: "com.shop", Seed: 42, Throttle: 300 * time.Millisecond, Events: 1000}
		r := perform(t, t.Context(), o)
		if r.Stopped != "workload" || r.Workload.Error != "" || r.Workload.Exit == nil || *r.Workload.Exit != 0 {
			t.Errorf("%+v, %+v", r.Run, r.Workload)
		}
		told := r.eventsOf("workload", "")
		if len(told) != 1 || !strings.Contains(told[0].Text, "after about 300 of 1000 events with seed 43") {
			t.Errorf("events %+v", told)
		}
		if n := p.commands("exec monkey -p 'com.shop' -s 43 --throttle 300") + p.commands("-v 700"); n != 2 {
			t.Errorf("%d", n)
		}
		if got := r.Devices[0].Duration; got < 335 || got > 350 {
			t.Errorf("took %.0f s", got)
		}
	})
}

// dropping is a phone that interrupts the first monkey after some time and then
// stays disconnected for another period.
type dropping struct {
	*simulated
	at, away time.Duration
	once     sync.Once
}

func (d *dropping) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	cut := false
	if strings.Contains(command, "monkey") {
		d.once.Do(func() { cut = true })
	}
	if !cut {
		return d.simulated.Shell(ctx, command, stdout, stderr)
	}
	within, cancel := context.WithTimeout(ctx, d.at)
	defer cancel()
	_, _ = d.simulated.Shell(within, command, stdout, stderr)
	d.unplug(true)
	time.AfterFunc(d.away, func() { d.unplug(false) })
	return 0, errCut
}

func TestMonkeyEndsWithLostDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		d := &dropping{simulated: p, at: 95 * time.Second, away: 24 * time.Hour}
		o := options(t, p)
		o.Devices[0].Device, o.Duration, o.DeviceTimeout = d, 0, time.Minute
		o.Workload = Monkey{Package: "com.shop", Seed: 42, Throttle: 300 * time.Millisecond, Events: 1000}
		r := perform(t, t.Context(), o)
		if r.ExitCode != record.ExitNoDevice || r.Devices[0].Duration > 240 {
			t.Errorf("exit %d after %.0f s", r.ExitCode, r.Devices[0].Duration)
		}
	})
}

func TestEventCount(t *testing.T) {
	for line, want := range map[string]int{
		"    // Sending event #300": 300, "// Sending event #-1": -1, "// Sending event #x": -1,
		"Events injected: 5":                         -1,
		"    // Sending event #99999999999999999999": -1,
	} {
		if n, ok := eventCount(line); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %v", line, n, ok)
		}
	}
}

// If a reading costs system_server a third of a core, breakdowns become less
// frequent until their cost is within the budget.
func TestRunStaysWithinBudget(t *testing.T) {
	for name, c := range map[string]struct {
		took   time.Duration
		budget Sampling
		thin   bool
	}{
		"expensive": {9 * time.Second, Sampling{MaxSystemServer: 25}, true},
		"cheap":     {time.Second, Sampling{MaxSystemServer: 25, MaxApp: 5}, false},
		"no budget": {9 * time.Second, Sampling{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt := rooted()
				opt.DumpsysTime = c.took
				o := options(t, phone("S1", opt, healthy("com.shop"), healthy("com.shop:push")))
				o.Sampling = c.budget
				r := perform(t, t.Context(), o)
				d := r.Devices[0]
				if c.thin != (d.Thinned > 0) || c.thin != (d.DetailPeriod > 30) ||
					c.thin != (len(r.eventsOf("thinned", "")) > 0) {
					t.Errorf("%+v %+v", d, r.eventsOf("thinned", ""))
				}
				if d.CostSystemServer == nil || c.thin && *d.CostSystemServer > 25 {
					t.Errorf("%+v", d)
				}
				if x := r.process(t, "S1", "com.shop"); x.CPU == nil || x.CostCPU == nil || *x.CostCPU > *x.CPU {
					t.Errorf("%+v", x)
				}
			})
		})
	}
}

func TestMeterSubtractsIdleLoad(t *testing.T) {
	var m meter
	// The load is 20 %, but 80 % during the dump of 10 s in each minute.
	var used, up time.Duration
	run := func(d time.Duration, share float64) {
		used += time.Duration(share * float64(d))
		up += d
	}
	for range 60 {
		m.read(up, known.OfDuration(used))
		run(50*time.Second, 0.2)
		before := used
		run(10*time.Second, 0.8)
		m.dump(known.OfDuration(used-before), 10*time.Second)
	}
	m.read(up, known.OfDuration(used))
	all, cost := m.share()
	if *all < 29.9 || *all > 30.1 || *cost < 9.9 || *cost > 10.1 {
		t.Errorf("all %v, cost %v", *all, *cost)
	}
	if m.recent < 5900*time.Millisecond || m.recent > 6300*time.Millisecond {
		t.Errorf("a dump takes %v of CPU time, want 5.9 to 6.3 s", m.recent)
	}
}

func TestMeterAcrossLives(t *testing.T) {
	var m meter
	m.read(time.Minute, known.OfDuration(60*time.Second))
	m.read(2*time.Minute, known.OfDuration(90*time.Second))
	m.read(3*time.Minute, known.OfDuration(100*time.Millisecond)) // restarted
	m.read(4*time.Minute, known.OfDuration(30100*time.Millisecond))
	m.read(10*time.Second, known.OfDuration(50*time.Second)) // the device's clock restarted too
	m.read(20*time.Second, known.Duration{})
	if all, cost := m.share(); *all != 50 || cost != nil {
		t.Errorf("%v %v", *all, cost)
	}
}

// unresponsive is a device that stops responding at some time, until its
// connection is reset.
type unresponsive struct {
	*simulated
	mu     sync.Mutex
	silent bool
	wanted int // number of resets until the device responds
	resets []time.Time
}

func (d *unresponsive) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	d.mu.Lock()
	silent := d.silent
	d.mu.Unlock()
	if silent {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return d.simulated.Shell(ctx, command, stdout, stderr)
}

func (d *unresponsive) Reset(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resets = append(d.resets, time.Now())
	if len(d.resets) == d.wanted {
		d.silent = false
	}
	return nil
}

func TestRunReconnectsUnresponsiveDevice(t *testing.T) {
	for name, c := range map[string]struct {
		workload Workload
		wanted   int
		pause    time.Duration
	}{
		"watched":                  {nil, 3, 15 * time.Second},
		"running a device command": {DeviceCommand{Command: "sleep 3600"}, 1, 2*time.Minute + 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &unresponsive{simulated: phone("S1", rooted(), healthy("com.shop")), wanted: c.wanted}
				var from time.Time
				go func() {
					time.Sleep(10*time.Minute + time.Second)
					d.mu.Lock()
					defer d.mu.Unlock()
					d.silent, from = true, time.Now()
				}()
				o := options(t, d.simulated)
				o.Devices[0].Device, o.Workload = d, c.workload
				o.Duration, o.DeviceTimeout = 40*time.Minute, 5*time.Minute
				r := perform(t, t.Context(), o)
				if len(d.resets) != c.wanted || len(r.eventsOf("reset", "")) != c.wanted ||
					r.ExitCode != record.ExitClean {
					t.Fatalf("resets %v, exit %d, events %+v", d.resets, r.ExitCode, r.events)
				}
				for i, at := range d.resets {
					// The outage is detected when the next reading exceeds its
					// deadline.
					previous, noticed := from, 45*time.Second
					if i > 0 {
						previous, noticed = d.resets[i-1], 0
					}
					if took := at.Sub(previous); took < c.pause || took > c.pause+noticed+20*time.Second {
						t.Errorf("reset %d came after %v, want about %v", i+1, took, c.pause)
					}
				}
				if last := r.samplesOf("com.shop", false); last[len(last)-1].T < 2340 {
					t.Errorf("the last sample is at %v s, want at least 2340 s", last[len(last)-1].T)
				}
			})
		})
	}
}

// secondsOf returns the time of a line in seconds.
func secondsOf(s float64) time.Duration {
	return time.Duration(math.Round(s*1000)) * time.Millisecond
}
