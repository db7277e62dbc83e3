package trip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/reporters/record"
)

// dumped is a simulated process with a heap.
type dumped struct {
	*simulated
	// items returns the length of a list after a number of loops. Each element
	// has its own array of the given number of bytes.
	items func(loops int) int
	bytes int
	// opened and closed count the dumps that were opened and those that were
	// closed.
	opened, closed int
	dumpErr        error
}

func (d *dumped) Dump(context.Context) (*Dump, error) {
	if d.dumpErr != nil {
		return nil, d.dumpErr
	}
	h := hproftest.Java(1)
	item := h.Declare("com.shop.Item", nil, "object picture")
	list := h.ArrayList()
	for range d.items(d.loops) {
		list.Add(h.New(item, hproftest.Fields{"picture": h.Bytes(make([]byte, d.bytes))}))
	}
	h.Hold("com.shop.Cache", "all", list.Ref)
	dump, _, err := h.Dump(hproftest.Form{Runtime: hproftest.HotSpot})
	if err != nil {
		return nil, err
	}
	d.opened++
	return &Dump{
		Name: fmt.Sprint("dump ", d.opened), ReaderAt: bytes.NewReader(dump), Size: int64(len(dump)),
		Close: func() error { d.closed++; return nil },
	}, nil
}

func heap(items func(loops int) int) *dumped {
	return &dumped{simulated: steady(1, noise{30, 0}), items: items, bytes: 100}
}

// A list that grows by one object per loop is found even if no count and no
// dimension of memory grows.
func TestListOfOneObjectPerLoop(t *testing.T) {
	s := heap(func(loops int) int { return 3 + loops })
	r, err := Run(t.Context(), s, s.loop, Options{Process: "com.shop"})
	if err != nil || r.Verdict != record.VerdictLeak || r.Loops != 10 || r.WarmUp != 2 || r.Readings != 6 ||
		r.Dumps != 7 || r.Stopped != record.TripStoppedLoops {
		t.Fatalf("%+v, %v", r, err)
	}
	heap := measureOf(r, "heap")
	if !heap.Grows || *heap.PerLoop != 1 || r.Measures[0].Name != "heap" || len(r.Growing) != 1 {
		t.Errorf("%+v, %+v", heap, r.Growing)
	}
	f := r.Growing[0]
	if f.Name != "Cache.all (ArrayList)" || *f.CountDelta != 10 || *f.BytesDelta < 1000 || len(f.Key) != 40 ||
		len(f.Trace) == 0 || !strings.HasSuffix(f.Trace[len(f.Trace)-1], "com.shop.Cache.all -> java.util.ArrayList") {
		t.Errorf("%+v", f)
	}
	if want := "Cache.all (ArrayList): +1 object per loop"; r.Text != want {
		t.Errorf("%q, want %q", r.Text, want)
	}
	if s.opened != s.closed || s.opened != 7 {
		t.Errorf("%d dumps opened, %d closed", s.opened, s.closed)
	}
}

// If dumps show that the heap does not grow, no more dumps are taken and the
// trip stops early.
func TestFlatHeapStopsEarly(t *testing.T) {
	for name, c := range map[string]struct {
		items func(int) int
		dumps int
	}{
		"steady":                        {func(int) int { return 9 }, 3},
		"varying garbage":               {func(n int) int { return 9 + n%3 }, 3},
		"less than one object per loop": {func(n int) int { return n / 2 }, 3},
		"cache full after loop 6":       {func(n int) int { return min(n, 6) }, 5},
		"filled during the warm-up":     {func(n int) int { return 10 * min(n, 2) }, 3},
	} {
		s := heap(c.items)
		r, err := Run(t.Context(), s, s.loop, Options{})
		if err != nil || r.Verdict != record.VerdictPass || r.Stopped != record.TripStoppedQuiet ||
			r.Dumps != c.dumps || r.Loops > 8 || len(r.Growing) > 0 || r.Found != 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// A cache that fills at a steadily decreasing rate is not a leak; the trip
// passes only once this is certain.
func TestSlowingHeapGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		items []int // after 2, 4, ... loops
		want  record.CheckVerdict
	}{
		"cache nearly full":               {[]int{0, 40, 60, 70, 75, 78}, record.VerdictPass},
		"growth half as fast as at first": {[]int{0, 10, 19, 27, 33, 38}, record.VerdictInconclusive},
		"growth as fast as at first":      {[]int{0, 10, 20, 30, 39, 48}, record.VerdictLeak},
	} {
		s := heap(func(n int) int { return c.items[max(n-2, 0)/2] })
		r, err := Run(t.Context(), s, s.loop, Options{})
		if got := measureOf(r, "heap"); err != nil || got.Verdict != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// If Java memory grows after a series of dumps without growth, the heap is
// dumped again, and the result of these dumps counts.
func TestDumpsOverruleJavaMemory(t *testing.T) {
	s := heap(func(int) int { return 9 })
	s.java, s.sawtooth = rate(3000), 100
	r, err := Run(t.Context(), s, s.loop, Options{})
	java := measureOf(r, "java_heap")
	if err != nil || r.Verdict != record.VerdictPass || java.Verdict != record.VerdictPass ||
		java.Text != "heap dumps show no growth" || r.Dumps != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = Run(t.Context(), s, s.loop, Options{NoDumps: true})
	if java = measureOf(r, "java_heap"); err != nil || !java.Grows ||
		measureOf(r, "heap").Verdict != record.VerdictNotChecked {
		t.Errorf("trip without dumps: %+v, %v", r, err)
	}
}

// If the heap cannot be dumped, the trip continues with a warning.
func TestHeapDumpFails(t *testing.T) {
	s := heap(func(int) int { return 9 })
	s.dumpErr = errors.New("com.shop is not debuggable")
	r, err := Run(t.Context(), s, s.loop, Options{})
	if heap := measureOf(r, "heap"); err != nil || r.Verdict != record.VerdictInconclusive || !r.Judged ||
		heap.Text != "the heap could not be dumped: com.shop is not debuggable" ||
		!strings.Contains(r.Text, "not debuggable") {
		t.Errorf("%+v, %v", r, err)
	}
	// A measure whose dump is corrupt is inconclusive.
	broken := &brokenDump{dumped: heap(func(int) int { return 9 })}
	r, err = Run(t.Context(), broken, broken.loop, Options{})
	if heap := measureOf(r, "heap"); err != nil || heap.Verdict != record.VerdictInconclusive ||
		!strings.HasPrefix(heap.Text, "compare heap dumps: ") {
		t.Errorf("%+v, %v", r, err)
	}
}

type brokenDump struct{ *dumped }

func (b *brokenDump) Dump(context.Context) (*Dump, error) {
	return &Dump{Name: "broken", ReaderAt: strings.NewReader("not a dump"), Size: 7}, nil
}

// failing is a process in which an operation fails after a number of calls.
type failing struct {
	*dumped
	// calls counts all calls; when it reaches at, fail runs.
	calls, at int
	fail      func(*failing)

	err error
	now Life
}

func failAt(at int, fail func(*failing)) *failing {
	return &failing{dumped: heap(func(n int) int { return n }), at: at, fail: fail, now: Life{100, 1}}
}

func (f *failing) call() error {
	if f.calls++; f.calls == f.at {
		f.fail(f)
	}
	return f.err
}

func (f *failing) Alive(context.Context) (Life, error) {
	err := f.call()
	return f.now, err
}

func (f *failing) Settle(context.Context) (bool, error) { return true, f.call() }

func (f *failing) Snapshot(ctx context.Context) (Measured, error) {
	err := f.call()
	r, _ := f.simulated.Snapshot(ctx)
	r.Life = f.now
	return r, err
}

func (f *failing) Dump(ctx context.Context) (*Dump, error) {
	if err := f.call(); err != nil {
		return nil, err
	}
	return f.dumped.Dump(ctx)
}

func (f *failing) once(ctx context.Context) error {
	if err := f.call(); err != nil {
		return errors.New("scenario")
	}
	return f.simulated.loop(ctx)
}

// allCalls exceeds the number of calls in a trip of ten loops.
const allCalls = 70

// Whenever the process restarts, the trip ends with an error that names the
// loop and the reason.
func TestRestartAtAnyTime(t *testing.T) {
	restarts := 0
	for at := 2; at < allCalls; at++ {
		s := failAt(at, func(f *failing) { f.now = Life{200, 9} })
		r, err := Run(t.Context(),
			s, s.once,
			Options{
				Process: "com.shop",
				Death:   func(_ context.Context, pid int) string { return fmt.Sprintf("crash of %d", pid) },
			})
		if s.calls < at {
			continue // the trip had already ended
		}
		var restart *RestartError
		if err == nil {
			// The trip ended without noticing the restart.
			if r.Verdict != record.VerdictLeak {
				t.Fatalf("call %d: %+v", at, r)
			}
			continue
		}
		restarts++
		if !errors.As(err, &restart) || restart.Old.PID != 100 || restart.New.PID != 200 ||
			restart.Reason != "crash of 100" || errors.Is(err, ErrGone) {
			t.Fatalf("call %d: %v", at, err)
		}
		if want := "com.shop restarted in "; !strings.HasPrefix(err.Error(), want) ||
			!strings.Contains(err.Error(), "loop ") ||
			!strings.Contains(err.Error(),
				"(pid 100, then 200): crash of 100; a scenario must leave its process running") {
			t.Fatalf("call %d: %v", at, err)
		}
		if r.Stopped != record.TripStoppedRestart || r.Schema != record.TripSchema || r.Verdict == record.VerdictPass {
			t.Fatalf("call %d: %+v", at, r)
		}
	}
	if restarts < 40 {
		t.Errorf("%d restarts", restarts)
	}
}

// If the process ends, the trip ends with ErrGone.
func TestProcessEndsAtAnyTime(t *testing.T) {
	for at := 1; at < allCalls; at++ {
		s := failAt(at, func(f *failing) { f.err = fmt.Errorf("read: %w", ErrGone) })
		r, err := Run(t.Context(), s, s.once, Options{Process: "com.shop"})
		if s.calls < at || err == nil {
			continue
		}
		loop, failed := errors.AsType[*LoopError](err)
		if failed && r.Stopped == record.TripStoppedLoop && strings.HasSuffix(loop.Error(), ": scenario") {
			continue // the scenario detected the end
		}
		if !errors.Is(err, ErrGone) || r.Stopped != record.TripStoppedGone || r.Verdict == record.VerdictPass {
			t.Fatalf("call %d: %+v, %v", at, r, err)
		}
	}
}

// If the context is canceled, the trip stops immediately; the result contains
// the measurements so far, and all dumps are closed.
func TestCancelAtAnyTime(t *testing.T) {
	cause := errors.New("interrupted by SIGINT")
	for at := 1; at < allCalls; at++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := failAt(at, func(f *failing) { cancel(cause) })
		r, err := Run(ctx, s, s.once, Options{})
		cancel(nil)
		if s.calls < at {
			continue
		}
		if !errors.Is(err, cause) && err != nil || err == nil && r.Loops < 10 {
			t.Fatalf("call %d: %v", at, err)
		}
		if r.Stopped != record.TripStoppedInterrupted || s.calls > at || s.opened != s.closed ||
			r.Verdict == record.VerdictPass {
			t.Fatalf("call %d of %d: %d opened, %d closed, %+v", at, s.calls, s.opened, s.closed, r)
		}
	}
}

// If a device does not respond, that is an error; it does not mean that the
// process ended.
func TestUnreadable(t *testing.T) {
	for _, at := range []int{1, 9, 20} {
		s := failAt(at, func(f *failing) { f.err = io.ErrUnexpectedEOF })
		r, err := Run(t.Context(), s, func(context.Context) error { return nil }, Options{NoDumps: true})
		if !errors.Is(err, io.ErrUnexpectedEOF) || r.Stopped != record.TripStoppedUnread ||
			r.Verdict != record.VerdictInconclusive || r.Judged {
			t.Errorf("call %d: %+v, %v", at, r, err)
		}
	}
}

// Invalid options are rejected, and defaults are filled in.
func TestOptions(t *testing.T) {
	minus, many := -1, MaxLoops+1
	for want, o := range map[string]Options{
		"-1 warm-up loops": {WarmUp: &minus}, "10001 warm-up loops": {WarmUp: &many}, "2 loops": {Loops: 2},
		"10001 loops":                      {Loops: 10001},
		"4 loops per reading; want 1 to 3": {LoopsPerReading: 4}, "-1 loops per reading": {LoopsPerReading: -1},
	} {
		s := steady(1, usual)
		if _, err := Run(t.Context(), s, s.loop, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	zero := 0
	s := steady(1, usual)
	s.threads = rate(3)
	r, err := Run(t.Context(), s, s.loop, Options{WarmUp: &zero, Loops: 7, NoDumps: true})
	if err != nil || r.WarmUp != 0 || r.Loops != 7 || r.LoopsPerReading != 1 || r.Readings != 8 || s.loops != 7 {
		t.Errorf("%+v, %v", r, err)
	}
	// With an odd number of loops the last interval is shorter, and no dump is
	// taken at its end.
	d := heap(func(n int) int { return n })
	if r, err = Run(t.Context(), d, d.loop, Options{Loops: 11}); err != nil || r.Loops != 11 || r.Readings != 7 ||
		r.Dumps != 7 || r.Verdict != record.VerdictLeak {
		t.Errorf("%+v, %v", r, err)
	}
}

// Retained screens are found by their counts alone, even if only every second
// loop retains one. A screen that is open now, or that was opened and closed,
// is not a leak.
func TestScreensThatStay(t *testing.T) {
	for name, c := range map[string]struct {
		activities []int64 // at each reading
		want       record.CheckVerdict
		loops      int
	}{
		"one per loop":            {[]int64{1, 3, 5, 7, 9, 11}, record.VerdictLeak, 10},
		"one per two loops":       {[]int64{1, 2, 3, 4, 5, 6}, record.VerdictLeak, 10},
		"still open":              {[]int64{1, 2, 2, 2, 2, 2}, record.VerdictPass, 6},
		"retained, then steady":   {[]int64{1, 3, 5, 5, 5, 5}, record.VerdictPass, 6},
		"closed in the next loop": {[]int64{1, 3, 1, 3, 1, 3}, record.VerdictPass, 8},
		"last screens still open": {[]int64{1, 2, 3, 4, 4, 4}, record.VerdictPass, 8},
	} {
		h := &hostile{simulated: steady(1, usual), reading: func(n int) Measured {
			return Measured{
				Objects: map[string]int64{"Activities": c.activities[n-1]}, Threads: new(int64(20)),
				Files: new(int64(9)),
			}
		}}
		r, err := Run(t.Context(), h, h.loop, Options{NoDumps: true})
		if m := measureOf(r, "Activities"); err != nil || m.Verdict != c.want || r.Loops != c.loops ||
			m.Grows != (c.want == record.VerdictLeak) {
			t.Errorf("%s: %d loops, %+v, %v", name, r.Loops, m, err)
		}
	}
}

// hostile is a process whose readings contain arbitrary data.
type hostile struct {
	*simulated
	reading func(n int) Measured
	n       int
}

func (h *hostile) Snapshot(context.Context) (Measured, error) {
	h.n++
	r := h.reading(h.n)
	r.Life = Life{100, 1}
	return r, nil
}

// Unknown values are null, not zero; a process that cannot be read at all is
// inconclusive; names from a device are bounded.
func TestMissingReadings(t *testing.T) {
	run := func(reading func(int) Measured) record.Trip {
		h := &hostile{simulated: steady(1, usual), reading: reading}
		r, err := Run(t.Context(), h, h.loop, Options{NoDumps: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := run(func(int) Measured { return Measured{Reasons: []string{"threads: permission denied"}} })
	if r.Verdict != record.VerdictInconclusive || r.Judged || r.Text != "nothing could be read" ||
		!slices.Contains(r.Warnings, "threads: permission denied") || len(r.Warnings) != 1 {
		t.Errorf("%+v", r)
	}
	// Only every second reading contains the number of threads, which grows.
	r = run(func(n int) Measured {
		if n%2 == 0 {
			return Measured{}
		}
		return Measured{Threads: new(int64(20 + 4*n))}
	})
	m := measureOf(r, "threads")
	if m.Values[1] != nil || *m.Values[2] != 32 || *m.PerLoop != 2 || m.Verdict != record.VerdictInconclusive {
		t.Errorf("%+v", m)
	}
	// A measure that was read once proves nothing, and does not delay the end
	// of the trip.
	r = run(func(n int) Measured {
		v := Measured{Threads: new(int64(20))}
		if n == 1 {
			v.Files = new(int64(7))
		}
		return v
	})
	if m := measureOf(r, "files"); m.Verdict != record.VerdictInconclusive || r.Stopped != record.TripStoppedQuiet {
		t.Errorf("%+v", r)
	}
	// A growing total is not a leak, because it includes shared memory.
	// Swapped-out memory is reported.
	r = run(func(n int) Measured {
		return Measured{
			Threads: new(int64(20)), PSS: new(int64(1000 * n)),
			Breakdown: record.Breakdown{SwapPSS: new(int64(300 * n))},
		}
	})
	if m := measureOf(r, "total_pss"); m.Verdict != record.VerdictNotChecked || *m.PerLoop != 500 || m.Grows ||
		r.Verdict != record.VerdictPass ||
		!slices.Contains(r.Warnings, "900 kB was swapped out during the trip: the dimensions do not include it") {
		t.Errorf("%+v", r)
	}
	r = run(func(n int) Measured {
		v := Measured{
			Objects: map[string]int64{}, PSS: new(int64(-1 << 62)),
			Breakdown: record.Breakdown{NativeHeap: new(int64(1<<62 - 1))},
		}
		for i := range 10_000 {
			v.Objects[fmt.Sprintf("\x1b[2J%d", i)] = int64(n) << 60
		}
		return v
	})
	if len(r.Measures) > maxObjects+len(dimensions)+1 || len(r.Text) > 1000 {
		t.Errorf("%d measures, %q", len(r.Measures), r.Text)
	}
}
