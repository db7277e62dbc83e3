package ledger

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// loopRun holds the lines of a run of 12 min with loops of 30 s.
type loopRun struct {
	*Ledger
	*Part
	pid int
	up  time.Duration
	// forced means that a garbage collection is forced at each mark.
	forced bool
}

const loopEvery = 30 * time.Second

func newLoopRun(t *testing.T, forced bool) *loopRun {
	t.Helper()
	l, err := New(record.Header{Devices: []record.HeaderDevice{{Device: "phone", StartedUp: 1000}}},
		detector.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	r := &loopRun{Ledger: l, Part: l.Part("phone"), pid: 7, up: 1000 * time.Second, forced: forced}
	r.event(record.Event{Event: "found", Source: "smaps_rollup"})
	return r
}

func (r *loopRun) event(e record.Event) {
	e.User, e.Process, e.PID, e.Start, e.Up, e.T = new(0), "com.x", r.pid, uint64(r.pid), r.up.Seconds(),
		r.Seconds(r.up)
	r.Part.AddEvent(e)
}

// loop adds one loop and the counts at its end; nil stands for counts that are
// not read.
func (r *loopRun) loop(mark string, objects map[string]int64, threads, files *int64) {
	r.up += loopEvery
	e := record.Event{Event: "not_collected", Mark: mark}
	if r.forced {
		e.Event = "collected"
	}
	r.event(e)
	sample := record.Sample{
		Process: "com.x", PID: r.pid, Start: uint64(r.pid), Source: "smaps_rollup", PSS: new(int64(200 << 10)),
		SwapPSS: new(int64(0)), Threads: threads,
	}
	at := func(s record.Sample, after time.Duration) {
		s.Up, s.T = (r.up + after).Seconds(), r.Seconds(r.up+after)
		r.Part.AddSample(s)
	}
	late := sample
	late.Threads = new(int64(1000)) // in the middle of a loop, any number is possible
	at(late, time.Second)
	at(sample, 2*time.Second)
	at(late, 15*time.Second)
	if objects != nil {
		sample.Breakdown, sample.Source = &record.Breakdown{Objects: objects}, "dumpsys"
		at(sample, 4*time.Second)
	}
	if files != nil {
		e := record.Event{Event: "headroom", Headroom: &record.Headroom{Files: files}}
		r.up += 3 * time.Second
		r.event(e)
		r.up -= 3 * time.Second
	}
}

// finished returns the record of the completed run.
func (r *loopRun) finished(t *testing.T) record.Run {
	t.Helper()
	if err := r.Ledger.AddEvent(record.Event{Event: "stopped", Text: record.StoppedDuration}); err != nil {
		t.Fatal(err)
	}
	return r.Run()
}

func TestCountsAtMarks(t *testing.T) {
	steady := func(r *loopRun, n int, activities func(i int) int64) {
		for i := range n {
			r.loop(fmt.Sprintf("loop %d", i),
				map[string]int64{"Activities": activities(i), "AppContexts": 4, "Views": int64(20 + i)}, new(int64(30)),
				new(int64(90)))
		}
	}
	for name, c := range map[string]struct {
		unforced bool
		lines    func(*loopRun)
		gate     detector.Gate
		kind     detector.LeakKind
		because  string
		exit     int
	}{
		"one more in each loop": {lines: func(r *loopRun) { steady(r, 25, func(i int) int64 { return int64(3 + i) }) },
			gate: detector.Leak, kind: detector.Java,
			because: "1 more Activity after each of 24 loops: 3 to 27; memory trend: ", exit: record.ExitLeak},
		"two or more in each loop": {
			lines: func(r *loopRun) { steady(r, 7, func(i int) int64 { return int64(2*i + i*i) }) },
			gate:  detector.Leak, kind: detector.Java,
			because: "at least 3 more Activities after each of 6 loops: 0 to 48", exit: record.ExitLeak},
		"five loops": {lines: func(r *loopRun) { steady(r, 6, func(i int) int64 { return int64(i) }) },
			gate: detector.Leak, kind: detector.Java, because: "1 more Activity after each of 5 loops: 0 to 5",
			exit: record.ExitLeak},
		"four loops": {lines: func(r *loopRun) { steady(r, 5, func(i int) int64 { return int64(i) }) },
			gate: detector.Inconclusive,
			because: "4 loops: counts rose, but not provably in every loop: Activities: 0, 1, 2, 3, 4; memory " +
				"trend not judged: ", exit: record.ExitInconclusive},
		"nothing retained": {lines: func(r *loopRun) { steady(r, 13, func(int) int64 { return 1 }) },
			gate:    detector.Pass,
			because: "would have been detected; 12 loops: no Activity, context, thread or file retained",
			exit:    record.ExitClean},
		"screen open at every second mark": {
			lines:   func(r *loopRun) { steady(r, 13, func(i int) int64 { return int64(1 + i%2) }) },
			gate:    detector.Pass,
			because: "would have been detected; 12 loops: no Activity, context, thread or file retained",
			exit:    record.ExitClean},
		"navigation into the app and back": {
			lines: func(r *loopRun) { steady(r, 24, func(i int) int64 { return int64(1 + i%8) }) },
			gate:  detector.Pass, exit: record.ExitClean},
		"growth only in the last loops": {
			lines: func(r *loopRun) { steady(r, 24, func(i int) int64 { return int64(max(1, i-18)) }) },
			gate:  detector.Inconclusive, because: "counts rose, but not provably in every loop",
			exit: record.ExitInconclusive},
		"one more in every second loop": {
			lines: func(r *loopRun) { steady(r, 24, func(i int) int64 { return int64(i / 2) }) },
			gate:  detector.Inconclusive, because: "counts rose, but not provably in every loop",
			exit: record.ExitInconclusive},
		"threads": {lines: func(r *loopRun) {
			for i := range 12 {
				r.loop(fmt.Sprintf("loop %d", i), map[string]int64{"Activities": 1}, new(int64(30+2*i)), nil)
			}
		}, gate: detector.Leak, kind: detector.Thread, because: "2 more threads after each of 11 loops: 30 to 52",
			exit: record.ExitLeak},
		"filling thread pool": {lines: func(r *loopRun) {
			for i := range 16 {
				r.loop(fmt.Sprintf("loop %d", i), map[string]int64{"Activities": 1}, new(int64(30+min(i, 8))), nil)
			}
		}, gate: detector.Pass, exit: record.ExitClean},
		"files": {lines: func(r *loopRun) {
			for i := range 12 {
				r.loop(fmt.Sprintf("loop %d", i), nil, nil, new(int64(90+i)))
			}
		}, gate: detector.Leak, kind: detector.Java, because: "1 more file after each of 11 loops: 90 to 101",
			exit: record.ExitLeak},
		"missing readings": {lines: func(r *loopRun) {
			for i := range 24 {
				objects := map[string]int64{"Activities": int64(i)}
				if i%3 == 1 {
					objects = nil
				}
				r.loop(fmt.Sprintf("loop %d", i), objects, nil, nil)
			}
		}, gate: detector.Leak, kind: detector.Java,
			because: "at least 1 more Activity after each of 15 loops: 0 to 23", exit: record.ExitLeak},
		"other marks": {lines: func(r *loopRun) {
			for i := range 24 {
				r.loop(fmt.Sprintf("%c", 'a'+i), map[string]int64{"Activities": int64(i)}, nil, nil)
			}
		}, gate: detector.Inconclusive, exit: record.ExitInconclusive},
		"restarts": {lines: func(r *loopRun) {
			for i := range 24 {
				if i%5 == 4 {
					r.pid++
					r.event(record.Event{Event: "restart"})
				}
				r.loop(fmt.Sprintf("loop %d", i), map[string]int64{"Activities": int64(i)}, nil, nil)
			}
		}, gate: detector.Inconclusive, exit: record.ExitInconclusive},
		"seven loops without collections": {
			unforced: true, lines: func(r *loopRun) { steady(r, 8, func(i int) int64 { return int64(i) }) },
			gate: detector.Inconclusive, because: "7 loops: counts rose, but not provably",
			exit: record.ExitInconclusive},
		"eight loops without collections": {
			unforced: true, lines: func(r *loopRun) { steady(r, 9, func(i int) int64 { return int64(i) }) },
			gate: detector.Leak, kind: detector.Java, because: "1 more Activity after each of 8 loops: 0 to 8",
			exit: record.ExitLeak},
		"counts lag without collections": {
			unforced: true, lines: func(r *loopRun) { steady(r, 17, func(i int) int64 { return int64(i / 2 * 2) }) },
			gate: detector.Leak, kind: detector.Java, because: "2 more Activities after 8 of 16 loops: 0 to 16",
			exit: record.ExitLeak},
		"counts fall without collections": {
			unforced: true, lines: func(r *loopRun) { steady(r, 24, func(i int) int64 { return int64(i - i/23*2) }) },
			gate: detector.Inconclusive, because: "counts rose, but not provably", exit: record.ExitInconclusive},
		"nothing retained without collections": {
			unforced: true, lines: func(r *loopRun) { steady(r, 24, func(int) int64 { return 1 }) },
			gate: detector.Inconclusive, exit: record.ExitInconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			r := newLoopRun(t, !c.unforced)
			c.lines(r)
			run := r.finished(t)
			p := run.Processes[0]
			if p.Gate != c.gate || p.Kind != c.kind || !strings.Contains(p.Reason, c.because) {
				t.Errorf("%s, %s: %s; want %s, %s: %s", p.Gate, p.Kind, p.Reason, c.gate, c.kind, c.because)
			}
			if exit := ExitCode(run, record.Plan{}); exit != c.exit {
				t.Errorf("exit code %d, want %d: %s", exit, c.exit, p.Reason)
			}
			// With 12 collections the memory is judged as well; in this run it
			// does not grow.
			if p.TrendGate == detector.Leak || !strings.Contains(p.Reason, "no growth after forced collections") &&
				p.TrendGate != detector.Inconclusive {
				t.Errorf("the trend has the reason that belongs to the counts: %s", p.Reason)
			}
		})
	}
}

// bruteLeak is the oracle of judgeCount; it tries all ways to divide the loops.
func bruteLeak(known []int64, least int, collected bool) bool {
	loops := len(known) - 1
	if !collected {
		up := 0
		for i := range max(loops, 0) {
			if known[i+1] < known[i] {
				return false
			}
			if known[i+1] != known[i] {
				up++
			}
		}
		return up >= least+3 && up+up >= loops
	}
	for from := range known {
		tail := known[from:]
		strict := slices.IsSorted(tail) && len(slices.Compact(slices.Clone(tail))) == len(tail)
		if strict && len(tail)-1 >= least && 2*(len(tail)-1) >= loops {
			return true
		}
	}
	return false
}

func TestJudgeRandomCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	leaks, passes := 0, 0
	for n := range 200_000 {
		known := make([]int64, r.IntN(24))
		for i := range known {
			known[i] = int64(r.IntN(3))
			if i > 0 && n%4 != 0 { // mostly rising
				known[i] = max(0, known[i-1]+min(1, int64(r.IntN(2+n%12)))-int64(r.IntN(30)/29))
			}
		}
		k := countKinds[r.IntN(2)*6] // Activities or threads
		collected := n%3 != 0
		got, want := judgeCount(k, known, collected), bruteLeak(known, k.rises, collected)
		if (got == detector.Leak) != want {
			t.Fatalf("%s %v, collected %t: got %s; the oracle reports a leak: %t", k.name, known, collected, got, want)
		}
		switch got {
		case detector.Leak:
			leaks++
			proof := proofText(k, known, collected)
			if !strings.HasSuffix(proof, fmt.Sprintf(" to %d", known[len(known)-1])) ||
				strings.Contains(proof, "after each of 0 loops") {
				t.Fatalf("%v: %s", known, proof)
			}
			if judgeCount(k, append(slices.Clone(known), 0), collected) == detector.Leak {
				t.Fatalf("%v is judged a leak although a 0 follows", known)
			}
		case detector.Pass:
			passes++
			if !collected || len(known) <= leastCountLoops || known[len(known)-1] > slices.Max(known[:1]) &&
				slices.IsSorted(known) && risesWithoutFall(known) > len(known)/2 {
				t.Fatalf("%v: pass", known)
			}
		}
	}
	if leaks < 1000 || passes < 1000 {
		t.Errorf("got %d leaks and %d passes, too few to test the property", leaks, passes)
	}
}

// These runs resemble those of a pull request: 12 min, 24 loops of 30 s, a
// varying number of threads and files, and one failed reading in ten. A leak of
// one Activity per loop is found in all runs. A screen that is open at some
// marks is never reported as a leak.
func TestTwelveMinutes(t *testing.T) {
	const runs = 100
	for name, c := range map[string]struct {
		activities func(r *rand.Rand, loop int) int64
		leaks      int
		atLeast    int // clean runs
	}{
		"one more Activity per loop": {func(_ *rand.Rand, loop int) int64 { return int64(2 + loop) }, runs, 0},
		"one screen open at some marks": {
			func(r *rand.Rand, _ int) int64 { return 1 + r.Int64N(2) }, 0, runs * 9 / 10,
		},
		"several screens open at some marks": {
			func(r *rand.Rand, _ int) int64 { return 1 + r.Int64N(4) }, 0, runs * 9 / 10,
		},
	} {
		leaks, clean := 0, 0
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, 9))
			run := newLoopRun(t, true)
			for i := range 24 {
				n := c.activities(r, i)
				objects := map[string]int64{
					"Activities": n, "ViewRootImpl": n, "AppContexts": n + 3, "Views": 40 * n, "Proxy Binders": 30 +
						r.Int64N(4),
				}
				if r.IntN(10) == 0 {
					objects = nil
				}
				run.loop(fmt.Sprintf("loop %d of 24", i), objects, new(30+r.Int64N(5)), new(90+r.Int64N(9)))
			}
			got := run.finished(t)
			switch ExitCode(got, record.Plan{}) {
			case 1:
				leaks++
			case 0:
				clean++
			}
		}
		if leaks != c.leaks || clean < c.atLeast {
			t.Errorf("%s: got %d leaks and %d passes in %d runs, want %d and at least %d", name, leaks, clean, runs,
				c.leaks,
				c.atLeast)
		}
	}
}

// If a device produces endless output, the memory use stays bounded.
func TestCountsAreBounded(t *testing.T) {
	r := newLoopRun(t, true)
	for i := range maxCountReadings + 7 {
		r.loop(fmt.Sprintf("loop %d", i), map[string]int64{"Activities": int64(i), strings.Repeat("x", 9999): 1},
			new(int64(-1)), nil)
	}
	for i := range 99 {
		r.loop(strings.Repeat("y", i+1), map[string]int64{"Activities": 1}, nil, nil)
		r.loop(strings.Repeat("y", i+1), map[string]int64{"Activities": 1}, nil, nil)
	}
	p := r.finished(t).Processes[0]
	if len(p.CountsAtMarks) != maxFamilies {
		t.Fatalf("%d series", len(p.CountsAtMarks))
	}
	s := p.CountsAtMarks[0]
	if len(s.Readings) != maxCountReadings || len(s.Counts) != 1 || len(s.Counts[0].Values) != maxCountReadings ||
		s.Counts[0].Name != "Activities" || *s.Counts[0].Values[0] != 7 {
		t.Errorf("got %d readings and %d counts, want %d and 1", len(s.Readings), len(s.Counts), maxCountReadings)
	}
}

// After a forced collection, the detector receives only the first sample as the
// level.
func TestCollectionsReachTheDetector(t *testing.T) {
	verdict := func(forced bool) (got, want, without detector.Verdict) {
		r := newLoopRun(t, forced)
		to, other := detector.New(detector.DefaultPolicy()), detector.New(detector.DefaultPolicy())
		for i := range 240 {
			mark := fmt.Sprintf("loop %d", i)
			r.loop(mark, nil, nil, nil)
			for k, after := range []time.Duration{time.Second, 2 * time.Second, 15 * time.Second} {
				s := detector.Sample{At: r.up + after, Bytes: 200 << 20}
				to.AddSample(s)
				other.AddSample(s)
				if k == 1 {
					to.AddCollected(s)
				}
			}
		}
		return r.accounts[0].Detector.Verdict(), to.Verdict(), other.Verdict()
	}
	got, want, without := verdict(true)
	if !reflect.DeepEqual(got, want) || reflect.DeepEqual(got, without) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got, _, without := verdict(false); !reflect.DeepEqual(got, without) {
		t.Errorf("a mark without a collection: got %+v, want %+v", got, without)
	}
}
