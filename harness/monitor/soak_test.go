package monitor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	soakInterval = 30.0
	// steadyKB is the constant memory of each process in the soak tests, in kB.
	steadyKB = 100 << 10
)

// bench is a phone, the connection to it, and the faults of both.
type bench struct {
	*androidsim.Phone
	device Device
	faults []androidsim.Fault
	// hangUp interrupts all connections.
	hangUp func()

	mu   sync.Mutex
	past []trouble
}

// trouble is one injected fault. All times are on the test's clock.
type trouble struct {
	name     string
	effect   androidsim.Effect
	from, to time.Time
}

func (b *bench) suffered(x trouble) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.past = append(b.past, x)
}

// ownTemporary creates a folder for temporary files that only this test uses.
func ownTemporary(t *testing.T) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
}

// newBench connects a phone. The caller determines how the phone is reached.
func newBench(t *testing.T, p *androidsim.Phone, client *adb.Client, serial string, faults []androidsim.Fault) *bench {
	t.Helper()
	dev, err := client.Select(t.Context(), serial)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := capture.ReadFacts(t.Context(), dev)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{Phone: p, device: Device{dev, facts}, faults: faults}
}

// steadyPhone returns a rooted phone with an app of two processes whose memory
// never changes.
func steadyPhone(o androidsim.Options) *androidsim.Phone {
	steady := []androidsim.Model{
		androidsim.Steady(androidsim.JavaHeap, 60), androidsim.Steady(androidsim.NativeHeap, 40),
	}
	o.Root, o.BuildType = true, "userdebug"
	o.Apps = []androidsim.App{{Package: "com.shop", Processes: []androidsim.ProcessSpec{
		{Name: "com.shop", Models: steady, RestartAfter: time.Second},
		{Name: "com.shop:push", Models: steady, RestartAfter: time.Second},
	}}}
	return androidsim.New(o)
}

// memoryServer is an adb server in memory that can be killed.
type memoryServer struct {
	phone adbd.Phone
	wire  func(net.Conn) net.Conn

	mu  sync.Mutex
	now *adbd.Server // nil while the server is down
}

func (s *memoryServer) start() {
	server := adbd.NewServer(s.phone)
	server.Wire = s.wire
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = server
}

func (s *memoryServer) kill() {
	s.mu.Lock()
	server := s.now
	s.now = nil
	s.mu.Unlock()
	if server != nil {
		server.Close()
	}
}

func (s *memoryServer) Dial(ctx context.Context) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return nil, syscall.ECONNREFUSED
	}
	return s.now.Dial(ctx)
}

// Drop interrupts all connections.
func (s *memoryServer) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil {
		s.now.Drop()
	}
}

// newMemoryBench returns a phone behind an adb server in memory. In a bubble, a
// stall of the machine does not cause a gap.
func newMemoryBench(t *testing.T, o androidsim.Options) (*bench, *memoryServer) {
	t.Helper()
	p, line := steadyPhone(o), &adbd.Line{}
	server := &memoryServer{phone: p, wire: line.Wire}
	server.start()
	t.Cleanup(server.kill)
	client, err := adb.NewClient(adb.Options{Dial: server.Dial})
	if err != nil {
		t.Fatal(err)
	}
	faults := androidsim.Faults(p, server, line)
	if racing {
		faults = slices.DeleteFunc(faults, floods)
	}
	return newBench(t, p, client, p.Identity().Serial, faults), server
}

// floods reports whether a fault makes a command print many megabytes. The race
// detector instruments every byte of every copy, so these faults are tested
// without it.
func floods(f androidsim.Fault) bool { return strings.HasPrefix(f.Name, "output with") }

// memoryPhone returns the options of phone number n.
func memoryPhone(n int) androidsim.Options {
	return androidsim.Options{Serial: fmt.Sprintf("phone%d", n), Seed: uint64(n)}
}

// torment injects one fault after the other until ctx is done. unit is 30 s of
// device time.
func (b *bench) torment(ctx context.Context, r *rand.Rand, unit time.Duration) {
	upTo := func(intervals float64) time.Duration { return time.Duration(r.Float64() * intervals * float64(unit)) }
	for pause(ctx, unit/5+upTo(1)) {
		f := b.faults[r.IntN(len(b.faults))]
		x := trouble{name: f.Name, effect: f.Effect, from: time.Now()}
		end := f.Start()
		pause(ctx, unit/25+upTo(1.4))
		end()
		x.to = time.Now()
		b.suffered(x)
	}
}

// pause waits for the given time. It returns false if ctx is done first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// killServers repeatedly kills the adb servers of all phones and starts them
// again.
func killServers(ctx context.Context, r *rand.Rand, unit time.Duration, all []*bench, kill, start func()) {
	upTo := func(intervals float64) time.Duration { return time.Duration(r.Float64() * intervals * float64(unit)) }
	for pause(ctx, unit*8/5+upTo(3)) {
		x := trouble{name: "adb server killed", effect: androidsim.Silences, from: time.Now()}
		kill()
		pause(ctx, upTo(0.8))
		start()
		x.to = time.Now()
		for _, b := range all {
			b.suffered(x)
		}
	}
}

// seed returns LEAKGATE_SEED, or one from the clock.
func seed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("LEAKGATE_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("to repeat this run, set LEAKGATE_SEED=%d", seed)
	return seed
}

// TestSoak injects random faults into two of three phones and into the adb
// server for half an hour. The record contains only gaps that are recorded as
// such and are no longer than the faults plus two intervals each. Its values
// are correct, and nothing is left behind.
func TestSoak(t *testing.T) {
	seed := seed(t) // called outside the bubble, whose clock always starts at the same time
	synctest.Test(t, func(t *testing.T) {
		ownTemporary(t)
		var benches []*bench
		var servers []*memoryServer
		for n := range 3 {
			b, s := newMemoryBench(t, memoryPhone(n))
			benches, servers = append(benches, b), append(servers, s)
		}
		each := func(do func(*memoryServer)) func() {
			return func() {
				for _, s := range servers {
					do(s)
				}
			}
		}
		watching, end := context.WithCancel(t.Context())
		defer end()
		go func() {
			const unit = soakInterval * time.Second
			tormentAll(t.Context(), seed, 30*time.Minute, unit, benches, each((*memoryServer).kill),
				each((*memoryServer).start))
			time.Sleep(5 * unit / 2)
			end()
		}()
		r := perform(t, watching, soakOptions(t, benches))
		for _, b := range benches {
			checkSoak(t, r, b, 0)
		}
		checkNothingLeft(t, benches)
	})
}

// tormentAll injects faults into all benches except the first for a while.
func tormentAll(ctx context.Context, seed uint64, span, unit time.Duration, benches []*bench, kill, start func()) {
	ctx, stop := context.WithTimeout(ctx, span)
	defer stop()
	var torments sync.WaitGroup
	for i, b := range benches[1:] {
		torments.Go(func() { b.torment(ctx, rand.New(rand.NewPCG(seed, uint64(i))), unit) })
	}
	torments.Go(func() { killServers(ctx, rand.New(rand.NewPCG(seed, 99)), unit, benches, kill, start) })
	torments.Wait()
}

// TestEachFault injects each fault into a phone of its own, all in one run.
// Afterwards, the phone is sampled again and missing samples are recorded. No
// recorded value is wrong, unless the fault distorts values in a way that
// cannot be detected.
func TestEachFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ownTemporary(t)
		first, _ := newMemoryBench(t, memoryPhone(0))
		benches := []*bench{first}
		for n := range first.faults {
			b, _ := newMemoryBench(t, memoryPhone(1+n))
			benches = append(benches, b)
		}
		// Two healthy phones lack features. Both lack smaps_rollup; the one
		// with API 22 also lacks shell_v2, and therefore exit statuses.
		for _, api := range []int{22, 28} {
			b, _ := newMemoryBench(t, androidsim.Options{Serial: fmt.Sprintf("api%d", api), API: api})
			benches = append(benches, b)
		}
		o := soakOptions(t, benches)
		o.Duration = 6 * time.Minute
		for i, b := range benches[1 : 1+len(first.faults)] {
			go b.suffer(t.Context(), b.faults[i], 80*time.Second, time.Minute)
		}
		r := perform(t, t.Context(), o)
		checkEachFault(t, r, benches, 0)
		checkNothingLeft(t, benches)
	})
}

// suffer injects one fault, which begins after a given delay and lasts for a
// given time.
func (b *bench) suffer(ctx context.Context, f androidsim.Fault, after, span time.Duration) {
	pause(ctx, after)
	x := trouble{name: f.Name, effect: f.Effect, from: time.Now()}
	end := f.Start()
	pause(ctx, span)
	end()
	x.to = time.Now()
	b.suffered(x)
}

// checkEachFault checks a run in which each phone had at most one fault.
func checkEachFault(t *testing.T, r result, benches []*bench, stalled time.Duration) {
	t.Helper()
	if r.ExitCode != record.ExitClean || r.Stopped != "duration" {
		t.Errorf("exit %d, stopped by %s", r.ExitCode, r.Stopped)
	}
	for _, b := range benches {
		checkSoak(t, r, b, stalled)
	}
	for _, e := range r.events {
		healthy := slices.ContainsFunc(benches,
			func(b *bench) bool { return len(b.past) == 0 && b.device.Serial() == e.Device })
		if healthy && stalled == 0 && (e.Event == "gap" || e.Event == "missed" || e.Event == "error") {
			t.Errorf("unexpected event on a phone without faults: %+v", e)
		}
	}
}

// If a device does not come back, its part of the run ends with exit code 3.
// Its measurements are kept, and the other devices are watched to the end.
func TestLostDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, _ := newMemoryBench(t, memoryPhone(0))
		lost, _ := newMemoryBench(t, memoryPhone(1))
		o := soakOptions(t, []*bench{kept, lost})
		o.Duration, o.DeviceTimeout = 200*time.Second, 40*time.Second
		time.AfterFunc(time.Minute, func() { lost.SetAdbState(adbd.StateUnauthorized) })
		r := perform(t, t.Context(), o)
		if r.ExitCode != record.ExitNoDevice || r.Devices[0].Error != "" ||
			!strings.Contains(r.Devices[1].Error, "accept the USB debugging dialog") {
			t.Errorf("exit %d, %+v", r.ExitCode, r.Devices)
		}
		_, stayed := r.checkGaps(t, kept.device.Serial(), "com.shop", 0)
		_, left := r.checkGaps(t, lost.device.Serial(), "com.shop", 0)
		if stayed < 6 || left < 1 || left > 4 {
			t.Errorf("%d and %d samples", stayed, left)
		}
	})
}

func soakOptions(t *testing.T, benches []*bench) Options {
	t.Helper()
	o := Options{
		Patterns: []capture.Pattern{"com.shop", "com.shop:*"}, Policy: detector.ArticlePolicy(),
		Dir: filepath.Join(t.TempDir(), "run"), Tool: "soak",
		Sampling: defaultBudget, ExitRules: ExitRules{AllowUnjudged: true},
	}
	for _, b := range benches {
		o.Devices = append(o.Devices, b.device)
	}
	return o
}

// checkSoak compares the record of a phone with its faults: each fault may
// cause missing samples while it lasts and for one interval before and after
// it. Stalls of the test machine, as measured by its clock, are allowed as
// well.
func checkSoak(t *testing.T, r result, b *bench, stalled time.Duration) {
	t.Helper()
	faults, distorted := len(b.past), false
	var lasted time.Duration
	for _, x := range b.past {
		lasted += x.to.Sub(x.from)
		distorted = distorted || x.effect == androidsim.Distorts
	}
	device := r.Devices[slices.IndexFunc(r.Devices,
		func(d record.Device) bool { return d.Device == b.device.Serial() })]
	stalls := stalled.Seconds() * device.TimeScale
	allowed := lasted.Seconds()*device.TimeScale + 2*soakInterval*float64(faults) + stalls
	for _, name := range []string{"com.shop", "com.shop:push"} {
		if b.misread(r) {
			break
		}
		gaps, n := r.checkGaps(t, b.device.Serial(), name, stalls)
		t.Logf("%s %s: %d samples, gaps of %.0f s in total, at most %.0f s allowed by %d faults of %v%s",
			b.device.Serial(), name, n,
			gaps, allowed, faults, lasted.Round(time.Millisecond), b.history())
		if gaps > allowed {
			t.Errorf("%s on %s: %.0f s without samples, but the faults allow only %.0f s: %s", name, b.device.Serial(),
				gaps,
				allowed, b.history())
		}
		if left := device.Duration - r.latest(b.device.Serial(), name); left > 2*soakInterval+stalls {
			t.Errorf("%s on %s: no sample in the last %.0f s: %s", name, b.device.Serial(), left, b.history())
		}
		x := r.process(t, b.device.Serial(), name)
		if !distorted && (x.Worst != detector.Normal || x.Growth > 1) {
			t.Errorf("%s on %s: unexpected verdict: %+v", name, b.device.Serial(), x)
		}
	}
	for _, s := range r.samples {
		at := r.Started.Add(time.Duration(s.T / device.TimeScale * float64(time.Second)))
		if s.Device == b.device.Serial() && s.PSS != nil && *s.PSS != steadyKB && !b.distorts(at) {
			t.Errorf("sample with a value that the process never had: %+v", s)
		}
	}
}

// misread reports whether a digit of the phone's clock was corrupted. The run's
// time then jumps, and when the clock is right again, the phone seems to have
// rebooted.
func (b *bench) misread(r result) bool {
	garbled := slices.ContainsFunc(b.past, func(x trouble) bool { return x.name == "output garbled" })
	return garbled &&
		slices.ContainsFunc(r.events,
			func(e record.Event) bool { return e.Device == b.device.Serial() && e.Event == "reboot" })
}

// distorts reports whether a value that was read at the given time may be wrong
// without being marked as such.
func (b *bench) distorts(at time.Time) bool {
	const slack = 2 * time.Second // for requests in flight and for differences between the two clocks
	return slices.ContainsFunc(b.past, func(x trouble) bool {
		return x.effect == androidsim.Distorts && at.After(x.from.Add(-slack)) && at.Before(x.to.Add(slack))
	})
}

// latest returns the time of the last sample of a series.
func (r result) latest(device, process string) float64 {
	out := 0.0
	for _, s := range r.of(device, process, false) {
		out = max(out, s.T)
	}
	return out
}

func (b *bench) history() string {
	var out strings.Builder
	for _, x := range b.past {
		fmt.Fprintf(&out, "\n%s to %s %s", x.from.Format("05.000"), x.to.Format("05.000"), x.name)
	}
	return out.String()
}

// checkGaps returns the total length of the gaps in a series, in seconds, and
// the number of samples. A gap that no event explains is an error, unless a
// stall of the machine can account for it.
func (r result) checkGaps(t *testing.T, device, process string, stalls float64) (sum float64, n int) {
	t.Helper()
	var last *record.Sample
	for i, s := range r.samples {
		if s.Device != device || s.Process != process || s.Breakdown != nil {
			continue
		}
		n++
		if last == nil {
			last = &r.samples[i]
			continue
		}
		gap := s.T - last.T
		if gap <= 0 {
			t.Errorf("%s on %s: the time does not increase at %v s", process, device, s.T)
		}
		if gap > 1.5*soakInterval {
			sum += gap
			if gap > 1.5*soakInterval+stalls && !r.explains(device, process, last.T, s.T) {
				t.Errorf("%s on %s: no event explains why there is no sample from %.1f to %.1f", process, device,
					last.T, s.T)
			}
		}
		last = &r.samples[i]
	}
	return sum, n
}

// explains reports whether an event explains a gap in a series.
func (r result) explains(device, process string, from, to float64) bool {
	return slices.ContainsFunc(r.events, func(e record.Event) bool {
		if e.Device != device || e.T < from || e.T > to {
			return false
		}
		switch e.Event {
		case "gap", "missed", "restart":
			return e.Process == process
		case "reboot":
			return true
		}
		return false
	})
}

// checkNothingLeft checks that no file of the run is left on the phones or in
// the folder for temporary files. A leftover goroutine fails the bubble.
func checkNothingLeft(t *testing.T, benches []*bench) {
	t.Helper()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("temporary files remain: %v %v", left, err)
	}
	for _, b := range benches {
		if left, err := b.ReadDir("/data/local/tmp"); err != nil || len(left) > 0 {
			t.Errorf("files remain on %s: %v %v", b.device.Serial(), left, err)
		}
	}
}
