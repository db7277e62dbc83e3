package detector_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/known"
)

// robustMemoryBar is the maximum heap, in bytes, of a detector under the policy
// "robust". The heap is limited because a small host may watch hundreds of
// processes for weeks.
const robustMemoryBar = 64 << 10

// long is a process that is watched for a long time with every kind of input:
// all dimensions and driver rows, marks, collections and jumps.
type long struct {
	d *detector.Detector
	r *rand.Rand
	// rate is in MB/h; a jump of jump MB occurs twice a day and lasts two
	// hours.
	rate, jump float64
	at         time.Duration
	n          int
}

func newLong(seed uint64, rate, jump float64) *long {
	return &long{d: detector.New(detector.RobustPolicy()), r: rand.New(rand.NewPCG(seed, 91)), rate: rate, jump: jump}
}

func (l *long) live(until time.Duration) {
	for ; l.at < until; l.at += 30 * time.Second {
		mb := 400 + l.rate*l.at.Hours() + 5*l.r.NormFloat64()
		if l.at%(12*time.Hour) < 2*time.Hour {
			mb += l.jump
		}
		l.mark()
		if l.n%3 == 0 {
			b := detector.Breakdown{
				At: l.at, EGL: known.Of(30 * detector.MB), GL: known.Of(5 * detector.MB),
				OtherMtrack: known.Of(detector.MB), GfxDev: known.Of(2 * detector.MB),
			}
			for d := range b.Dim {
				b.Dim[d] = known.Of(int64(mb * detector.MB))
			}
			l.d.AddBreakdown(b)
		}
		l.d.AddSample(detector.Sample{At: l.at, Bytes: int64(mb * detector.MB)})
		if l.d.Demand().Diagnose != detector.None {
			l.d.DiagnosisFinished(l.at)
		}
		l.n++
	}
}

func (l *long) mark() {
	switch l.n % 20 {
	case 1:
		l.d.AddMark(detector.Mark{
			At: l.at, Text: fmt.Sprintf("loop %d of a long suite with a long name, %d", l.n, l.n),
		})
	case 11:
		l.d.AddMark(detector.Mark{At: l.at, Text: "gc"})
	}
}

// heapInUse returns the heap after a full collection.
func heapInUse() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// TestRobustMemory checks how much heap the detector of one process uses after
// 8 h, 48 h and 60 days.
func TestRobustMemory(t *testing.T) {
	const lives = 2
	for name, rate := range map[string]float64{"quiet": 0, "leaking": 5} {
		before := heapInUse()
		list := make([]*long, lives)
		for i := range list {
			list[i] = newLong(uint64(i), rate, 300)
		}
		for _, until := range []time.Duration{8 * time.Hour, 48 * time.Hour, 60 * 24 * time.Hour} {
			for _, l := range list {
				l.live(until)
			}
			each := (heapInUse() - before) / lives
			if each > robustMemoryBar {
				t.Errorf("%s: %.0f bytes per process after %v, want at most %d", name, each, until, robustMemoryBar)
			}
			t.Logf("%s: %.0f bytes per process after %v", name, each, until)
		}
		for i, l := range list {
			v := l.d.Verdict()
			if err := verdictFault(v); err != nil {
				t.Errorf("%s, process %d: %v", name, i, err)
			}
			if len(v.Jumps) != 16 || (v.Gate == detector.Leak) != (rate > 0) {
				t.Errorf("%s, process %d: %d jumps, %v: %s", name, i, len(v.Jumps), v.Gate, v.Because)
			}
		}
		runtime.KeepAlive(list)
	}
}

// TestRobustOfTwoMonths checks that a leak that begins after 60 days is found.
// After a few days the floors are longer, and so is the time between two looks:
// up to 80 min.
func TestRobustOfTwoMonths(t *testing.T) {
	for days, latest := range map[int]time.Duration{
		1: time.Hour, 3: 80 * time.Minute, 5: 2 * time.Hour, 9: 3 * time.Hour, 17: 6 * time.Hour, 33: 6 * time.Hour,
		60: 6 * time.Hour,
	} {
		l := newLong(1, 0, 0)
		l.live(time.Duration(days) * 24 * time.Hour)
		if v := l.d.Verdict(); v.Gate != detector.Pass || v.Worst != detector.Normal ||
			v.Duration != l.at-30*time.Second {
			t.Errorf("%d days: %v %v in %v: %s", days, v.Gate, v.Worst, v.Duration, v.Because)
		}
		begin := l.at
		var leaking time.Duration
		for ; l.at < begin+latest && leaking == 0; l.at += 30 * time.Second {
			mb := 400 + 300*(l.at-begin).Hours() + 5*l.r.NormFloat64()
			for _, step := range l.d.AddSample(detector.Sample{At: l.at, Bytes: int64(mb * detector.MB)}) {
				if step.Rule == "third look" {
					leaking = step.At - begin
				}
			}
		}
		if leaking == 0 {
			t.Errorf("300 MB/h after %d days: not LEAKING within %v", days, latest)
		}
		t.Logf("300 MB/h after %d days: LEAKING after %v", days, leaking)
	}
}

// TestRobustDoesNotAllocate checks that a reading in NORMAL does not allocate,
// including the floors and looks of an entire day.
func TestRobustDoesNotAllocate(t *testing.T) {
	for name, marks := range map[string]bool{"readings": false, "readings and marks": true} {
		l := newLong(1, 0, 0)
		add := func() {
			mb := 400 + 5*l.r.NormFloat64()
			b := wholeReading(l.at, 400)
			for d := range b.Dim {
				b.Dim[d] = known.Of(int64(mb * detector.MB))
			}
			if marks {
				switch l.n % 20 {
				case 1:
					l.d.AddMark(detector.Mark{At: l.at, Text: "loop"})
				case 11:
					l.d.AddMark(detector.Mark{At: l.at, Text: "gc"})
				}
			}
			l.d.AddBreakdown(b)
			l.d.AddSample(detector.Sample{At: l.at, Bytes: int64(mb * detector.MB)})
			l.at += 30 * time.Second
			l.n++
		}
		for range 60 {
			add()
		}
		const day = 2880
		// An average below one allocation is rounded down to zero, so an entire
		// day is measured.
		allocs := testing.AllocsPerRun(1, func() {
			for range day {
				add()
			}
		})
		if allocs > day/100 {
			t.Errorf("%s: %v allocations a day", name, allocs)
		}
		if v := l.d.Verdict(); v.State != detector.Normal || v.Worst != detector.Normal {
			t.Fatalf("%s: %v %v", name, v.State, v.Worst)
		}
	}
}
