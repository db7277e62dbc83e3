package monitor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/adbd/adbtest"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// soakScale is device seconds per real second: an interval of 30 s takes 5 s.
	soakScale    = 6
	soakInterval = 30.0
	// faultScale makes the interval 3 s.
	faultScale = 10
	// steadyKB is the memory of every process of the soak.
	steadyKB = 100 << 10
)

// soakTime is how long the soak lasts: LEAKGATE_SOAK, else a minute where
// everything is required, else a part of it.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	if text := os.Getenv("LEAKGATE_SOAK"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if recorded.Required() {
		return time.Minute
	}
	return 25 * time.Second
}

// bench is a phone behind the real adb server, and what can be done to it.
type bench struct {
	*androidsim.Phone
	daemon *adbd.Daemon
	serial string
	faults []androidsim.Fault

	mu   sync.Mutex
	past []trouble
}

// trouble is one fault that was on, in real time.
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

// ownTemporary gives the test a folder for temporary files in which only it writes.
func ownTemporary(t *testing.T) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
}

func newBench(t *testing.T, server *adbtest.Server, seed uint64, scale float64) *bench {
	t.Helper()
	return newBenchOf(t, server, androidsim.Options{Scale: scale, Seed: seed, Root: true, BuildType: "userdebug"})
}

// newBenchOf is newBench for a phone of its own kind.
func newBenchOf(t *testing.T, server *adbtest.Server, o androidsim.Options) *bench {
	t.Helper()
	steady := []androidsim.Model{androidsim.Steady(androidsim.JavaHeap, 60), androidsim.Steady(androidsim.NativeHeap, 40)}
	o.Apps = []androidsim.App{{Package: "com.shop", Processes: []androidsim.ProcessSpec{
		{Name: "com.shop", Models: steady, RestartAfter: time.Second}, {Name: "com.shop:push", Models: steady, RestartAfter: time.Second},
	}}}
	p := androidsim.New(o)
	line := &adbd.Line{}
	d := adbd.NewDaemon(p)
	d.Wire = line.Wire
	if err := d.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{Phone: p, daemon: d, serial: server.Connect(t, d.Addr()), faults: androidsim.Faults(p, d, line)}
}

// torment lets one fault after the other happen until ctx ends.
func (b *bench) torment(ctx context.Context, r *rand.Rand) {
	for pause(ctx, time.Second+time.Duration(r.Int64N(int64(5*time.Second)))) {
		f := b.faults[r.IntN(len(b.faults))]
		x := trouble{name: f.Name, effect: f.Effect, from: time.Now()}
		end := f.Start()
		pause(ctx, 200*time.Millisecond+time.Duration(r.Int64N(int64(7*time.Second))))
		end()
		x.to = time.Now()
		b.suffered(x)
	}
}

// pause waits and tells whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// killServer ends the adb server now and then; somebody starts it again.
func killServer(ctx context.Context, t *testing.T, s *adbtest.Server, r *rand.Rand, all []*bench) {
	for pause(ctx, 8*time.Second+time.Duration(r.Int64N(int64(15*time.Second)))) {
		x := trouble{name: "adb server killed", effect: androidsim.Silences, from: time.Now()}
		s.Kill()
		pause(ctx, time.Duration(r.Int64N(int64(4*time.Second))))
		if err := s.Restart(); err != nil {
			t.Error(err)
			return
		}
		x.to = time.Now()
		for _, b := range all {
			b.suffered(x)
		}
	}
}

// TestSoak lets random faults happen to two of three phones and to the adb server.
// What is recorded is complete but for recorded holes, which are no longer than the
// faults and two intervals for each; it is true; and nothing is left.
func TestSoak(t *testing.T) {
	span := soakTime(t)
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("LEAKGATE_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%v, LEAKGATE_SEED=%d repeats the faults", span, seed)
	ownTemporary(t)
	server := adbtest.StartServer(t)
	benches := []*bench{newBench(t, server, 1, soakScale), newBench(t, server, 2, soakScale), newBench(t, server, 3, soakScale)}
	before := census(t)
	o := soakOptions(t, server.Addr, benches)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	time.AfterFunc(span, stop)
	var torments sync.WaitGroup
	for i, b := range benches[1:] {
		torments.Go(func() { b.torment(ctx, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	torments.Go(func() { killServer(ctx, t, server, rand.New(rand.NewPCG(seed, 99)), benches) })
	watching, end := context.WithCancel(t.Context())
	defer end()
	go func() {
		torments.Wait()
		time.Sleep(15 * time.Second) // two intervals and a half
		end()
	}()
	r := perform(t, watching, o)
	for _, b := range benches {
		checkSoak(t, r, b, 2)
	}
	checkCensus(t, before, benches)
}

// TestEachFault lets every fault happen to a phone of its own, all in one run: the
// phone is sampled again after it, what was missing is told, and no value is false
// but where a fault can make one that nobody could tell.
func TestEachFault(t *testing.T) {
	ownTemporary(t)
	server := adbtest.StartServer(t)
	benches := []*bench{newBench(t, server, 1, faultScale)}
	for range benches[0].faults {
		benches = append(benches, newBench(t, server, uint64(len(benches)+1), faultScale))
	}
	// Two that are healthy and short of what others have: no shell_v2 before Android
	// 7, so that no exit status comes, and no smaps_rollup.
	benches = append(benches,
		newBenchOf(t, server, androidsim.Options{Scale: faultScale, API: 22, Root: true, BuildType: "userdebug"}),
		newBenchOf(t, server, androidsim.Options{Scale: faultScale, API: 28, Root: true, BuildType: "userdebug"}))
	before := census(t)
	o := soakOptions(t, server.Addr, benches)
	o.Duration = 36 * faultScale * time.Second
	began := time.Now()
	var faults sync.WaitGroup
	for i, b := range benches[1 : 1+len(benches[0].faults)] {
		f := b.faults[i]
		faults.Go(func() {
			pause(t.Context(), 8*time.Second)
			x := trouble{name: f.Name, effect: f.Effect, from: time.Now()}
			end := f.Start()
			pause(t.Context(), 6*time.Second)
			end()
			x.to = time.Now()
			b.suffered(x)
		})
	}
	r := perform(t, t.Context(), o)
	faults.Wait()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v", took)
	}
	if r.ExitCode != ExitClean || r.Stopped != "duration" {
		t.Errorf("exit %d, stopped by %s", r.ExitCode, r.Stopped)
	}
	for _, b := range benches {
		intervals := 2.0
		if len(b.past) > 0 {
			intervals = max(intervals, slowlyNoticed[b.past[0].name])
		}
		checkSoak(t, r, b, intervals)
	}
	for _, e := range r.events {
		healthy := slices.ContainsFunc(benches, func(b *bench) bool { return len(b.past) == 0 && b.serial == e.Device })
		if healthy && (e.Event == "gap" || e.Event == "missed" || e.Event == "error") {
			t.Errorf("a healthy phone noticed: %+v", e)
		}
	}
	checkCensus(t, before, benches)
}

// slowlyNoticed are the faults that cost more than the interval before them and the one
// after, and how many in all: a real interval is ten times as long as one here. A read of
// a flood that is on its way at the end goes on to its deadline, which is never less than
// 3 s (session.deadline) and so one interval here; a length that was damaged is noticed
// after seconds.
var slowlyNoticed = map[string]float64{"output without an end": 3, "output with a line of 100 MB": 3, "line garbled": 4}

// A device that stays away ends its part of the run with exit code 3; all that it
// had measured is kept, and the others are watched to the end.
func TestLostDevice(t *testing.T) {
	server := adbtest.StartServer(t)
	benches := []*bench{newBench(t, server, 1, faultScale), newBench(t, server, 2, faultScale)}
	o := soakOptions(t, server.Addr, benches)
	o.Duration, o.Patience = 20*faultScale*time.Second, 4*time.Second
	time.AfterFunc(6*time.Second, func() { benches[1].Become(adbd.StateUnauthorized) })
	r := perform(t, t.Context(), o)
	if r.ExitCode != ExitNoDevice || r.Devices[0].Error != "" || !strings.Contains(r.Devices[1].Error, "accept the USB debugging dialog") {
		t.Errorf("exit %d, %+v", r.ExitCode, r.Devices)
	}
	_, stayed := r.checkHoles(t, benches[0].serial, "com.shop")
	_, left := r.checkHoles(t, benches[1].serial, "com.shop")
	if stayed < 6 || left < 1 || left > 4 {
		t.Errorf("%d and %d samples", stayed, left)
	}
}

func soakOptions(t *testing.T, addr string, benches []*bench) Options {
	t.Helper()
	client, err := adb.NewClient(adb.Options{Addr: addr, NoStart: true})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Patterns: []capture.Pattern{"com.shop", "com.shop:*"}, Policy: detector.ArticlePolicy(),
		Dir: filepath.Join(t.TempDir(), "run"), Tool: "soak", Budget: DefaultBudget,
	}
	for _, b := range benches {
		dev, err := client.Select(t.Context(), b.serial)
		if err != nil {
			t.Fatal(err)
		}
		facts, err := capture.ReadFacts(t.Context(), dev)
		if err != nil {
			t.Fatal(err)
		}
		o.Devices = append(o.Devices, Device{dev, facts})
	}
	return o
}

// checkSoak holds what was recorded of a phone against what happened to it; each
// fault may cost its own time and some intervals.
func checkSoak(t *testing.T, r result, b *bench, intervals float64) {
	t.Helper()
	faults, distorted := len(b.past), false
	var lasted time.Duration
	for _, x := range b.past {
		lasted += x.to.Sub(x.from)
		distorted = distorted || x.effect == androidsim.Distorts
	}
	device := r.Devices[slices.IndexFunc(r.Devices, func(d record.Device) bool { return d.Device == b.serial })]
	allowed := lasted.Seconds()*device.TimeScale + intervals*soakInterval*float64(faults)
	for _, name := range []string{"com.shop", "com.shop:push"} {
		holes, n := r.checkHoles(t, b.serial, name)
		t.Logf("%s %s: %d samples, %.0f s in holes of %.0f s allowed by %d faults of %v%s", b.serial, name, n, holes, allowed, faults, lasted.Round(time.Millisecond), b.history())
		if holes > allowed {
			t.Errorf("%s on %s: %.0f s without samples, the faults allow %.0f s: %s", name, b.serial, holes, allowed, b.history())
		}
		if left := device.Duration - r.latest(b.serial, name); left > 2*soakInterval {
			t.Errorf("%s on %s: no sample in the last %.0f s: %s", name, b.serial, left, b.history())
		}
		x := r.process(t, b.serial, name)
		if !distorted && (x.Worst != "NORMAL" || x.Growth > 1) {
			t.Errorf("%s on %s: a verdict out of nothing: %+v", name, b.serial, x)
		}
	}
	for _, s := range r.samples {
		at := r.Started.Add(time.Duration(s.T / device.TimeScale * float64(time.Second)))
		if s.Device == b.serial && s.PSS != nil && *s.PSS != steadyKB && !b.distorts(at) {
			t.Errorf("a value that never was: %+v", s)
		}
	}
}

// distorts tells whether a value read at a time may be wrong without a sign.
func (b *bench) distorts(at time.Time) bool {
	const slack = 2 * time.Second // for what was on its way, and for the two clocks
	return slices.ContainsFunc(b.past, func(x trouble) bool {
		return x.effect == androidsim.Distorts && at.After(x.from.Add(-slack)) && at.Before(x.to.Add(slack))
	})
}

// latest is the time of the last sample of a series.
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

// checkHoles gives the seconds in holes of the series, and the number of samples. A
// hole without an event is an error.
func (r result) checkHoles(t *testing.T, device, process string) (sum float64, n int) {
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
		hole := s.T - last.T
		if hole <= 0 {
			t.Errorf("%s on %s: time stands still at %v", process, device, s.T)
		}
		if hole > 1.5*soakInterval {
			sum += hole
			if !r.explains(device, process, last.T, s.T) {
				t.Errorf("%s on %s: no event tells why there is no sample from %.1f to %.1f", process, device, last.T, s.T)
			}
		}
		last = &r.samples[i]
	}
	return sum, n
}

// explains says whether an event tells of a hole in a series.
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

// inventory is what a run may leave behind on the host.
type inventory struct{ goroutines, files, children, temporary int }

func (n inventory) within(m inventory) bool {
	return n.goroutines <= m.goroutines && n.files <= m.files && n.children <= m.children && n.temporary <= m.temporary
}

func census(t *testing.T) inventory {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	temporary, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return inventory{runtime.NumGoroutine(), len(files), children(t), len(temporary)}
}

// children is the number of processes that this one has started and that live.
func children(t *testing.T) int {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range lists {
		pids, err := os.ReadFile(path)
		if err != nil {
			continue // a thread that has ended
		}
		n += len(strings.Fields(string(pids)))
	}
	return n
}

// checkCensus waits until as much is left as there was before: connections of the
// adb server that has been killed end after the run.
func checkCensus(t *testing.T, before inventory, benches []*bench) {
	t.Helper()
	for _, b := range benches {
		// A stream whose opening was garbled on the line lives as long as the
		// connection: no host knows its number.
		b.daemon.Drop()
	}
	var now inventory
	for range 200 {
		if now = census(t); now.within(before) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if !now.within(before) {
		stacks := make([]byte, 1<<20)
		t.Errorf("left behind: %+v, before %+v\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
	}
	for _, b := range benches {
		if left, err := b.ReadDir("/data/local/tmp"); err != nil || len(left) > 0 {
			t.Errorf("left on %s: %v %v", b.serial, left, err)
		}
	}
}
