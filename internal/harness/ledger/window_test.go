package ledger

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// afterHours is a part of a run in which five processes were sampled for so many hours.
func afterHours(tb testing.TB, hours int) (*Part, float64) {
	tb.Helper()
	l, err := New(record.Header{Devices: []record.HeaderDevice{{Device: "S1", StartedUp: 100}}}, detector.DefaultPolicy())
	if err != nil {
		tb.Fatal(err)
	}
	p := l.Part("S1")
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 5 {
		p.AddEvent(record.Event{Event: "found", Up: 100, Process: fmt.Sprint("com.x:", i), User: new(0), PID: 7 + i, Source: "smaps_rollup"})
	}
	t := 0.0
	for range hours * 120 {
		t += 30
		sampleAll(p, t, r)
	}
	return p, t
}

func sampleAll(p *Part, t float64, r *rand.Rand) {
	for i := range 5 {
		p.AddSample(record.Sample{T: t, Up: 100 + t, Process: fmt.Sprint("com.x:", i), PID: 7 + i, Source: "smaps_rollup", PSS: new(100_000 + r.Int64N(3000))})
	}
}

// span opens and closes a window with one round of samples in it.
func span(p *Part, t float64, number int, r *rand.Rand) {
	p.AddEvent(record.Event{Event: "window", Text: "spec", Window: number, T: t, Up: 100 + t})
	sampleAll(p, t+1, r)
	p.AddEvent(record.Event{Event: "window_end", Window: number, T: t + 2, Up: 102 + t})
}

// A window costs the same after eight hours as after one: nothing that it allocates grows
// with the run.
func TestWindowAllocations(t *testing.T) {
	allocs := func(hours int) float64 {
		p, at := afterHours(t, hours)
		n := 0
		return testing.AllocsPerRun(50, func() {
			n++
			p.AddEvent(record.Event{Event: "window", Text: "spec", Window: n, T: at, Up: 100 + at})
			p.AddEvent(record.Event{Event: "window_end", Window: n, T: at, Up: 100 + at})
		})
	}
	if short, long := allocs(1), allocs(8); long > short+2 {
		t.Errorf("%.0f allocations after 8 hours, %.0f after one", long, short)
	}
}

// BenchmarkWindow opens and closes a window with one round of samples of five processes,
// after one and after eight hours. The bar is 1 ms.
func BenchmarkWindow(b *testing.B) {
	for _, hours := range []int{1, 8} {
		b.Run(fmt.Sprintf("after %d h", hours), func(b *testing.B) {
			p, at := afterHours(b, hours)
			r := rand.New(rand.NewPCG(2, 2))
			b.ReportAllocs()
			for n := 1; b.Loop(); n++ {
				at += 30
				span(p, at, n, r)
			}
		})
	}
}

// Windows of hostile lines are bounded; one that is never closed ends with the run, and one
// that was never opened is none.
func TestHostileWindows(t *testing.T) {
	p := partOf(t, detector.DefaultPolicy(), record.HeaderDevice{Device: "S1", StartedUp: 100})
	p.AddEvent(record.Event{Event: "found", Up: 100, Process: "com.x", User: new(0), PID: 7, Source: "smaps_rollup"})
	for n := range MaxOpenWindows + 20 {
		p.AddEvent(record.Event{Event: "window", Text: "\x1b[2J", Window: n % 300, T: 1, Up: 101})
	}
	p.AddSample(record.Sample{T: 2, Up: 102, Process: "com.x", PID: 7, Source: "smaps_rollup", PSS: new(int64(1000))})
	p.AddEvent(record.Event{Event: "window_end", Window: 12345, T: 3, Up: 103})
	if p.OpenWindows() != MaxOpenWindows || p.Window(12345) != nil {
		t.Errorf("%d windows", p.OpenWindows())
	}
	list := p.recordedWindows()
	if len(list) != MaxOpenWindows || !list[0].Open || len(list[0].Processes) != 1 || list[0].Processes[0].Samples != 1 {
		t.Errorf("%d windows, %+v", len(list), list[0])
	}
	if w := p.windowWarnings(); len(w) != 1 || !strings.Contains(w[0], "20 windows are not recorded") {
		t.Errorf("%q", w)
	}
	// Of several of one number the latest is closed; a process that had no line is not in it.
	p.AddEvent(record.Event{Event: "window_end", Window: 5, T: 4, Up: 104})
	if got := p.Window(5); got == nil || !reflect.DeepEqual(got.Processes, list[5].Processes) {
		t.Errorf("%+v", got)
	}
}
