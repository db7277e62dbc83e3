package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// A pass on a device that reports no graphics memory, such as an emulator, does
// not cover it.
func TestGraphicsNotReported(t *testing.T) {
	const windows, none = 1, 0
	for _, c := range []struct {
		name      string
		windows   int64
		breakdown record.Breakdown
		growth    int64 // in kB per sample
		warned    bool
	}{
		{"emulator", windows, record.Breakdown{Graphics: new(int64(0))}, 0, true},
		{"no rows", windows, record.Breakdown{}, 0, true},
		{"phone", windows, record.Breakdown{Graphics: new(int64(57172)), EGL: new(int64(40000))}, 0, false},
		{"only the driver's mapping", windows, record.Breakdown{GfxDev: new(int64(4084))}, 0, false},
		{"no windows", none, record.Breakdown{}, 0, false},
		{"leak", windows, record.Breakdown{}, 2000, false},
	} {
		l, err := New(record.Header{Devices: []record.HeaderDevice{{Device: "phone", StartedUp: 1000}}},
			detector.DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		p := l.Part("phone")
		p.AddEvent(record.Event{
			Event: "found", User: new(0), Process: "com.x", PID: 7, Start: 7, Up: 1000, Source: "smaps_rollup",
		})
		for i := range int64(240) {
			at := float64(30 * i)
			s := record.Sample{
				Process: "com.x", PID: 7, Start: 7, T: at, Up: 1000 + at, Source: "smaps_rollup",
				PSS: new(200<<10 + i%7 + c.growth*i), SwapPSS: new(int64(0)),
			}
			p.AddSample(s)
			b := c.breakdown
			b.Objects = map[string]int64{"ViewRootImpl": c.windows}
			s.Source, s.Breakdown, s.PSS, s.SwapPSS = "dumpsys", &b, nil, nil
			p.AddSample(s)
		}
		if err := l.AddEvent(record.Event{Event: "stopped", Text: record.StoppedDuration}); err != nil {
			t.Fatal(err)
		}
		r := l.Run()
		if warned := strings.Contains(fmt.Sprint(r.Warnings), "phone reports no graphics memory"); warned != c.warned {
			t.Errorf("%s: gate %v, warnings %q", c.name, r.Processes[0].Gate, r.Warnings)
		}
	}
}
