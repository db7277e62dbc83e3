package ledger

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// afterHours returns a part of a run in which five processes were sampled for
// the given number of hours.
func afterHours(tb testing.TB, hours int) (*Part, float64) {
	tb.Helper()
	l, err := New(record.Header{Devices: []record.HeaderDevice{{Device: "S1", StartedUp: 100}}},
		detector.DefaultPolicy())
	if err != nil {
		tb.Fatal(err)
	}
	p := l.Part("S1")
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 5 {
		p.AddEvent(record.Event{
			Event: "found", Up: 100, Process: fmt.Sprint("com.x:", i), User: new(0), PID: 7 + i, Source: "smaps_rollup",
		})
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
		p.AddSample(record.Sample{
			T: t, Up: 100 + t, Process: fmt.Sprint("com.x:", i), PID: 7 + i, Source: "smaps_rollup",
			PSS: new(100_000 + r.Int64N(3000)),
		})
	}
}

// span opens a window, adds one round of samples and closes the window.
func span(p *Part, t float64, number int, r *rand.Rand) {
	p.AddEvent(record.Event{Event: "window", Text: "spec", Window: number, T: t, Up: 100 + t})
	sampleAll(p, t+1, r)
	p.AddEvent(record.Event{Event: "window_end", Window: number, T: t + 2, Up: 102 + t})
}

// A window costs the same after eight hours as after one hour: the number of
// allocations does not grow with the length of the run.
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
		t.Errorf("got %.0f allocations after 8 hours, but %.0f after one hour", long, short)
	}
}

// BenchmarkWindow opens and closes a window with one round of samples of five
// processes, after one and after eight hours. The limit is 1 ms.
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

// The number of windows in hostile lines is bounded. A window that is never
// closed ends with the run; closing a window that was never opened has no
// effect.
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
	if len(list) != MaxOpenWindows || !list[0].Open || len(list[0].Processes) != 1 ||
		list[0].Processes[0].Samples != 1 {
		t.Errorf("%d windows, %+v", len(list), list[0])
	}
	if w := p.windowWarnings(); len(w) != 1 || !strings.Contains(w[0], "20 windows are not recorded") {
		t.Errorf("%q", w)
	}
	// If several windows have the same number, the most recently opened one is
	// closed. A process without a line in a window is not part of the window.
	p.AddEvent(record.Event{Event: "window_end", Window: 5, T: 4, Up: 104})
	if got := p.Window(5); got == nil || !reflect.DeepEqual(got.Processes, list[5].Processes) {
		t.Errorf("%+v", got)
	}
}

// A death is counted in the run and in each open window. The time of a death is
// the time at which the process was last seen, if this is known.
func TestDeathOfLine(t *testing.T) {
	for name, c := range map[string]struct {
		event record.Event
		at    time.Duration
		want  detector.Cause
	}{
		"out of memory": {
			record.Event{Reason: "out_of_memory", EndedUp: new(90.5)}, 90500 * time.Millisecond, detector.OutOfMemory,
		},
		"memory limiter": {
			record.Event{Reason: "memory_limiter", EndedUp: new(0.0)}, 0, detector.OutOfMemory,
		},
		"anomaly": {record.Event{Reason: "anomaly"}, 100 * time.Second, detector.OutOfMemory},
		"low memory": {
			record.Event{Reason: "low_memory"}, 100 * time.Second, detector.LowMemory,
		},
		"crash":        {record.Event{Reason: "crash"}, 100 * time.Second, detector.Crash},
		"native crash": {record.Event{Reason: "native_crash"}, 100 * time.Second, detector.Crash},
		"ANR":          {record.Event{Reason: "anr"}, 100 * time.Second, detector.NotResponding},
		"kill":         {record.Event{Reason: "kill"}, 100 * time.Second, detector.Killed},
		"exit":         {record.Event{Reason: "exit"}, 100 * time.Second, detector.Exited},
		"reboot":       {record.Event{Reason: "reboot"}, 100 * time.Second, detector.Rebooted},
		"unknown": {
			record.Event{Reason: "unknown"}, 100 * time.Second, detector.UnknownCause,
		},
		"unknown reason from a later version": {
			record.Event{Reason: "sadness"}, 100 * time.Second, detector.UnknownCause,
		},
		"end after the reading": {
			record.Event{Reason: "crash", EndedUp: new(200.0)}, 100 * time.Second, detector.Crash,
		},
		"end before the boot": {record.Event{Reason: "crash", EndedUp: new(-1.0)}, 100 * time.Second, detector.Crash},
		"impossible times":    {record.Event{Reason: "crash", EndedUp: new(1e300)}, 100 * time.Second, detector.Crash},
	} {
		if at, got := endOf(c.event, 100*time.Second); at != c.at || got != c.want {
			t.Errorf("%s: %v at %v, want %v at %v", name, got, at, c.want, c.at)
		}
	}
}

func TestDeathsInWindows(t *testing.T) {
	p, at := afterHours(t, 1)
	p.AddEvent(record.Event{Event: "window", Text: "spec", Window: 1, T: at, Up: 100 + at})
	p.AddEvent(record.Event{
		Event: "death", Process: "com.x:1", User: new(0), PID: 8, Reason: "out_of_memory", T: at + 1, Up: 101 + at,
	})
	p.eachWindow(func(inner *Part) {
		for _, a := range inner.accounts {
			if want := map[bool]int{true: 1}[a.Name == "com.x:1"]; a.reasonsOfDeath["out_of_memory"] != want {
				t.Errorf("%s: got deaths %v in the window, want %d out_of_memory", a.Name, a.reasonsOfDeath, want)
			}
		}
	})
}

// A crash that the workload reports and the death that it causes count as one
// incident. An ANR that the process survived also counts as one incident. A
// death that the device does not explain is given the reason that the workload
// reported.
func TestIncidents(t *testing.T) {
	fault := func(at float64, pid int, reason, text string) record.Event {
		return record.Event{
			Event: "fault", Process: "com.x", User: new(0), PID: pid, Reason: reason, Text: text, T: at, Up: 100 + at,
		}
	}
	death := func(at float64, pid int, reason, text string) record.Event {
		e := fault(at, pid, reason, text)
		e.Event = "death"
		return e
	}
	for name, c := range map[string]struct {
		events []record.Event
		want   []record.Incident
		deaths map[string]int
	}{
		"none": {want: []record.Incident{}, deaths: map[string]int{}},
		"crash and the death it caused": {
			[]record.Event{fault(1, 7, "crash", "java.lang.Error"), death(3, 7, "crash", "CRASH")},
			[]record.Incident{{Kind: "crash", Count: 1, First: 3, Last: 3, Text: "CRASH"}}, map[string]int{"crash": 1}},
		"out-of-memory crash": {
			[]record.Event{
				fault(1, 7, "crash", "x"), death(3, 7, "out_of_memory", "y"), death(9, 8, "out_of_memory", "z"),
			},
			[]record.Incident{{Kind: "out_of_memory", Count: 2, First: 3, Last: 9, Text: "z"}},
			map[string]int{"out_of_memory": 2}},
		"ANR that the process survived": {[]record.Event{fault(1, 7, "anr", "x"), death(3, 7, "kill", "y")},
			[]record.Incident{{Kind: "anr", Count: 1, First: 1, Last: 1, Text: "x"}}, map[string]int{"kill": 1}},
		"ANR that killed the process": {[]record.Event{fault(1, 7, "anr", "x"), death(3, 7, "anr", "y")},
			[]record.Incident{{Kind: "anr", Count: 1, First: 3, Last: 3, Text: "y"}}, map[string]int{"anr": 1}},
		"death explained only by the workload": {
			[]record.Event{fault(1, 7, "crash", "java.lang.OutOfMemoryError"), death(3, 7, "unknown", "?")},
			[]record.Incident{
				{
					Kind: "out_of_memory", Count: 1, First: 3, Last: 3,
					Text: "reported by the workload: java.lang.OutOfMemoryError",
				},
			}, map[string]int{"out_of_memory": 1}},
		"crash of another pid": {[]record.Event{fault(1, 7, "crash", "x"), death(3, 8, "unknown", "?")},
			[]record.Incident{{Kind: "crash", Count: 1, First: 1, Last: 1, Text: "x"}}, map[string]int{"unknown": 1}},
		"incidents in the order of their kinds": {
			[]record.Event{
				death(1, 7, "low_memory", ""), death(2, 8, "memory_limiter", ""), death(3, 9, "native_crash", ""),
				death(4, 10, "exit", ""), death(5, 11, "anomaly", ""),
			},
			[]record.Incident{
				{Kind: "native_crash", Count: 1, First: 3, Last: 3},
				{Kind: "memory_limiter", Count: 1, First: 2, Last: 2}, {Kind: "anomaly", Count: 1, First: 5, Last: 5},
				{Kind: "low_memory", Count: 1, First: 1, Last: 1},
			},
			map[string]int{"low_memory": 1, "memory_limiter": 1, "native_crash": 1, "exit": 1, "anomaly": 1}},
	} {
		l, err := New(record.Header{Devices: []record.HeaderDevice{{Device: "S1", StartedUp: 100}}},
			detector.DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		p := l.Part("S1")
		p.AddEvent(record.Event{
			Event: "found", Up: 100, Process: "com.x", User: new(0), PID: 7, Source: "smaps_rollup",
		})
		for _, e := range c.events {
			p.AddEvent(e)
		}
		got := p.accounts[0].Record(1)
		if !reflect.DeepEqual(got.Findings, c.want) || !reflect.DeepEqual(got.DeathsByReason, c.deaths) {
			t.Errorf("%s: %+v, %v", name, got.Findings, got.DeathsByReason)
		}
	}
}

// The anonymous memory in samples is compared with the limit from the latest
// reading. If a process no longer has a limit, it is not judged. A warning is
// added if the limit is assumed.
func TestAnonymousMemoryOfSamples(t *testing.T) {
	for name, c := range map[string]struct {
		limit   *int64
		assumed bool
		swap    *int64
		used    int64
	}{
		"a limit":          {limit: new(int64(512 << 20)), swap: new(int64(1024)), used: 491 << 20},
		"an assumed limit": {limit: new(int64(512 << 20)), assumed: true, used: 490 << 20},
		"no reading":       {},
		"a limit of zero":  {limit: new(int64(0))},
	} {
		l, err := New(record.Header{Devices: []record.HeaderDevice{{Device: "S1", StartedUp: 100}}},
			detector.DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		p := l.Part("S1")
		p.AddEvent(record.Event{
			Event: "found", Up: 100, Process: "com.x", User: new(0), PID: 7, Source: "smaps_rollup",
		})
		p.AddEvent(record.Event{
			Event: "headroom", T: 1, Up: 101, Process: "com.x", User: new(0), PID: 7,
			Headroom: &record.Headroom{AnonymousLimit: c.limit, AnonymousAssumed: c.assumed},
		})
		for at := 30.0; at <= 1200; at += 30 {
			p.AddSample(record.Sample{
				T: at, Up: 100 + at, Process: "com.x", PID: 7, Source: "smaps_rollup", PSS: new(int64(600 << 10)),
				RSSAnon: new(int64(490 << 10)), Swap: c.swap,
			})
		}
		got := p.accounts[0].Record(1)
		if c.used == 0 {
			if len(got.Headroom)+len(got.Limits) > 0 {
				t.Errorf("%s: %+v", name, got.Headroom)
			}
			continue
		}
		if len(got.Headroom) != 1 || got.Headroom[0].Resource != "anonymous_memory" || got.Headroom[0].Used != c.used ||
			got.Headroom[0].Assumed != c.assumed || !got.Headroom[0].Warned {
			t.Errorf("%s: %+v", name, got.Headroom)
		}
		if len(got.Limits) != 1 || got.Limits[0].Assumed != c.assumed ||
			strings.Contains(got.Limits[0].Text, "assumed") != c.assumed {
			t.Errorf("%s: %+v", name, got.Limits)
		}
	}
}
