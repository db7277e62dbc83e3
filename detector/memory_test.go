package detector

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/known"
)

// memoryBar is the maximum heap, in bytes, of a detector with full windows
// under the policy "article". The heap is limited because a small host may
// watch hundreds of processes for weeks. A detector keeps 11.5 kB, and 12.4 kB
// with the evidence of a leak. If a detector exceeds this limit, find out why
// before raising it.
const memoryBar = 13000

// heapOf returns the heap that each of n detectors keeps alive, in bytes. It
// returns the smallest of three measurements, because allocations of the
// runtime can only increase the result.
func heapOf(n int, one func(i int) *Detector) float64 {
	least := 0.0
	for try := range 3 {
		list := make([]*Detector, n)
		before := liveHeap()
		for i := range list {
			list[i] = one(i)
		}
		each := (liveHeap() - before) / float64(n)
		runtime.KeepAlive(list)
		if try == 0 || each < least {
			least = each
		}
	}
	return least
}

// liveHeap returns the size of the live heap in bytes. It collects twice,
// because memory that is held by a finalizer or a pool is freed in the second
// collection.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// filled returns a detector with full windows: all dimensions and driver rows
// are known, and memory rises by rate MB/h.
func filled(p Policy, seed uint64, rate float64) *Detector {
	d := New(p)
	r := rand.New(rand.NewPCG(seed, 3))
	for i := range defaultArticle().highWindow * 5 / 4 {
		at := time.Duration(i) * 15 * time.Second
		mb := 200 + rate*at.Hours() + r.NormFloat64()
		d.AddBreakdown(wholeBreakdown(at, mb))
		d.AddSample(Sample{At: at, Bytes: int64(mb * MB)})
	}
	return d
}

// wholeBreakdown returns a breakdown with all values, each dimension at mb.
func wholeBreakdown(at time.Duration, mb float64) Breakdown {
	b := Breakdown{
		At: at, EGL: known.Of(30 * MB), GL: known.Of(5 * MB), OtherMtrack: known.Of(MB), GfxDev: known.Of(2 * MB),
	}
	for d := range b.Dim {
		b.Dim[d] = known.Of(int64(mb * MB))
	}
	return b
}

var memoryRates = map[string]float64{"quiet": 0, "leaking": 300}

func TestDetectorMemory(t *testing.T) {
	for name, rate := range memoryRates {
		d := filled(ArticlePolicy(), 0, rate)
		m := articleOf(d)
		if m.series.total.Len() < 240 || m.series.rest.Len() < 60 || m.series.dim(Total).Len() < 60 {
			t.Fatalf("%s: the windows are not full", name)
		}
		if rate > 0 && len(m.evidence) < 2*int(NumDimensions) {
			t.Fatalf("%s: got %d pieces of evidence, want at least %d", name, len(m.evidence), 2*int(NumDimensions))
		}
		got := heapOf(100, func(i int) *Detector { return filled(ArticlePolicy(), uint64(i), rate) })
		if got > memoryBar {
			t.Errorf("%s: %.0f bytes per process, want at most %d", name, got, memoryBar)
		}
		t.Logf("%s: %.0f bytes a process", name, got)
	}
}

// TestHeapOverAWeek checks that memory does not grow over a week of restarts,
// gaps, leaks and incomplete breakdowns. Real growth appears in each of three
// tries; growth caused by allocations of the runtime does not.
func TestHeapOverAWeek(t *testing.T) {
	var heap [8]float64
	for range 3 {
		heap = heapOfAWeek(t)
		// The size of the evidence of a leak varies from day to day.
		if heap[7]-heap[1] < 1200 && heap[7] <= memoryBar {
			t.Logf("bytes per process at the end of each day: %.0f", heap[1:])
			return
		}
	}
	t.Errorf("bytes per process at the end of each day: %.0f, want no growth from day 1 to day 7, and at most %d",
		heap[1:], memoryBar)
}

// heapOfAWeek returns the heap of a process at the end of each of seven days.
// Each day ends with two calm hours, so that all days end alike.
func heapOfAWeek(t *testing.T) (heap [8]float64) {
	const lives, day = 8, 24 * time.Hour
	before := liveHeap()
	weeks := make([]*week, lives)
	for i := range weeks {
		weeks[i] = newWeek(uint64(i))
	}
	for d := 1; d <= 7; d++ {
		for _, w := range weeks {
			w.live(time.Duration(d)*day-2*time.Hour, true)
			w.live(time.Duration(d)*day, false)
		}
		heap[d] = (liveHeap() - before) / lives
	}
	for _, w := range weeks {
		w.check(t)
	}
	return heap
}

// week is a process that is sampled every 30 s for a week.
type week struct {
	d    *Detector
	r    *rand.Rand
	life *life
	at   time.Duration
	// halves counts the incomplete breakdowns.
	halves int
}

func newWeek(seed uint64) *week {
	r := rand.New(rand.NewPCG(seed, 11))
	return &week{d: New(ArticlePolicy()), r: r, life: newLife(r)}
}

// live watches the process until the given time, with or without disturbances.
func (w *week) live(until time.Duration, disturbed bool) {
	for ; w.at < until; w.at += 30 * time.Second {
		w.life.step(w.r, w.at.Seconds())
		if disturbed {
			w.disturb()
		}
		b := w.life.breakdown(w.r, w.at)
		if disturbed && w.r.IntN(20) == 0 {
			b.Dim[w.r.IntN(len(b.Dim))] = Amount{}
			w.halves++
		}
		w.d.AddBreakdown(b)
		w.d.AddSample(Sample{At: w.at, Bytes: w.life.smaps(w.r)})
		if w.d.Demand().Diagnose != None {
			w.d.DiagnosisFinished(w.at + time.Second)
		}
	}
}

// check checks that enough events happened and that the verdict is short.
func (w *week) check(t *testing.T) {
	t.Helper()
	v := w.d.Verdict()
	if v.Restarts < 100 || v.Worst != Leaking || articleOf(w.d).ignored < 100 || w.halves < 100 {
		t.Errorf("the run has too few events: %d restarts, worst %v, %d readings ignored, %d incomplete", v.Restarts,
			v.Worst,
			articleOf(w.d).ignored, w.halves)
	}
	if len(v.Warnings) > 3 || len(v.Evidence) > 5+2*int(NumDimensions) {
		t.Errorf("got %d warnings, want at most 3; got %d pieces of evidence, want at most %d", len(v.Warnings),
			len(v.Evidence), 5+2*int(NumDimensions))
	}
}

func (w *week) disturb() {
	switch w.r.IntN(250) {
	case 0, 1:
		w.d.Restart(w.at)
	case 2:
		w.at += time.Duration(w.r.IntN(600)) * time.Second
		w.d.Gap(w.at)
	case 3, 4:
		w.d.AddSample(Sample{At: w.at, Bytes: 0})
	}
}

func TestAddBreakdownDoesNotAllocate(t *testing.T) {
	for name, lacks := range map[string]func(n int) bool{
		"all dimensions known":          func(int) bool { return false },
		"one dimension never known":     func(int) bool { return true },
		"one dimension sometimes known": func(n int) bool { return n%3 > 0 },
	} {
		d, n := New(ArticlePolicy()), 0
		add := func() {
			n++
			at := time.Duration(n) * 30 * time.Second
			b := wholeBreakdown(at, 200+float64(n%2))
			if lacks(n) {
				b.Dim[Code] = Amount{}
			}
			d.AddBreakdown(b)
			d.AddSample(Sample{At: at, Bytes: 200 * MB})
		}
		for range 300 {
			add()
		}
		if allocs := testing.AllocsPerRun(300, add); allocs != 0 {
			t.Errorf("%s: %v allocations a breakdown", name, allocs)
		}
		if articleOf(d).state != Normal {
			t.Errorf("%s: %v", name, articleOf(d).state)
		}
	}
}

func BenchmarkDetectorMemory(b *testing.B) {
	for name, rate := range memoryRates {
		b.Run(name, func(b *testing.B) {
			var bytes float64
			for b.Loop() {
				bytes = heapOf(100, func(i int) *Detector { return filled(ArticlePolicy(), uint64(i), rate) })
			}
			b.ReportMetric(bytes, "B/process")
		})
	}
}

func articleOf(d *Detector) *articleMachine { return d.machine.(*articleMachine) }
