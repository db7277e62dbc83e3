package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// An app that passes is idle if all its processes together use little CPU time.
func TestIdleApps(t *testing.T) {
	process := func(name string, cpu, cost float64, gate detector.Gate) record.Process {
		return record.Process{Device: "S1", Process: name, CPU: &cpu, CostCPU: &cost, Gate: gate, Alive: 3600}
	}
	idle := process("com.shop", 0.2, 0, detector.Pass)
	push := process("com.shop:push", 0, 0, detector.Pass)
	cart := process("com.cart", 8, 0, detector.Pass)
	undecided := process("com.shop", 0, 0, detector.Inconclusive)
	busy := process("com.shop", 30, 0, detector.Pass)
	brief, elsewhere, other, unknown := idle, busy, busy, push
	brief.Alive, elsewhere.Device, other.User, unknown.CPU = leastAlive-1, "S2", 10, nil
	uncounted := idle
	uncounted.CostCPU = nil
	for name, c := range map[string]struct {
		processes []record.Process
		want      string
	}{
		"idle":                     {[]record.Process{idle}, "com.shop was idle (0.2 % of a core)"},
		"cost not measured":        {[]record.Process{uncounted}, "com.shop was idle (0.2 % of a core)"},
		"measurement is not use":   {[]record.Process{process("com.shop", 4.3, 4, detector.Settled)}, "idle (0.3 %"},
		"cost above use":           {[]record.Process{process("com.shop", 1, 1.1, detector.Pass)}, "idle (0.0 %"},
		"in use":                   {[]record.Process{process("com.shop", 4.3, 0.5, detector.Pass)}, ""},
		"one process is in use":    {[]record.Process{process("com.shop", 9, 0, detector.Pass), push}, ""},
		"only the other is judged": {[]record.Process{undecided, push}, "com.shop was idle"},
		"nothing passes":           {[]record.Process{undecided}, ""},
		"a leak":                   {[]record.Process{process("com.shop", 0, 0, detector.Leak)}, ""},
		"brief":                    {[]record.Process{brief}, ""},
		"not measured for one":     {[]record.Process{idle, unknown}, ""},
		"in use on another device": {[]record.Process{idle, elsewhere}, "device S1: com.shop was idle"},
		"in use by another user":   {[]record.Process{idle, other}, "com.shop was idle"},
		"another app is in use":    {[]record.Process{idle, cart}, "com.shop was idle"},
	} {
		got := idleWarnings(c.processes)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
			t.Errorf("%s: warnings %q, want %q", name, got, c.want)
		}
	}
}

// A run warns about an idle app; the CPU use comes from its usage events.
func TestIdleRun(t *testing.T) {
	for cpu, idle := range map[float64]bool{0.1: true, 5: false} {
		l, err := New(record.Header{Devices: []record.HeaderDevice{{Device: "phone", StartedUp: 1000}}},
			detector.DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		p := l.Part("phone")
		p.AddEvent(record.Event{
			Event: "found", User: new(0), Process: "com.x", PID: 7, Start: 7, Up: 1000, Source: "smaps_rollup",
		})
		for at := 0.0; at <= 2*3600; at += 30 {
			p.AddSample(record.Sample{
				Process: "com.x", PID: 7, Start: 7, T: at, Up: 1000 + at, Source: "smaps_rollup",
				PSS: new(200<<10 + int64(at)%7), SwapPSS: new(int64(0)),
			})
		}
		p.AddEvent(record.Event{Event: "usage", T: 7200, Up: 8200, Usage: &record.Usage{
			Apps: []record.AppUsage{{Process: "com.x", CPU: &cpu}},
		}})
		if err := l.AddEvent(record.Event{Event: "stopped", Text: record.StoppedDuration}); err != nil {
			t.Fatal(err)
		}
		r := l.Run()
		warned := strings.Contains(fmt.Sprint(r.Warnings), "com.x was idle")
		if r.Processes[0].Gate != detector.Pass || warned != idle {
			t.Errorf("%v %%: gate %v, warnings %q", cpu, r.Processes[0].Gate, r.Warnings)
		}
	}
}
