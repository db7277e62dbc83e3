package ledger

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// The rate that a pass must rule out is in the plan of the run and applies to
// every process and every window.
func TestMustSee(t *testing.T) {
	gates := func(rate float64) (detector.Gate, detector.Gate, string) {
		plan := record.Plan{Assert: record.AssertEnd, MustSee: rate}
		plan.SetPolicy(detector.RobustPolicy())
		l, err := New(record.Header{Plan: &plan, Devices: []record.HeaderDevice{{Device: "S1", StartedUp: 100}}},
			detector.RobustPolicy())
		if err != nil {
			t.Fatal(err)
		}
		p := l.Part("S1")
		p.AddEvent(record.Event{Event: "window", Text: "test", Window: 1, Up: 100})
		for i := range 240 {
			kb, at := int64(200<<10+i%7*300), 30*float64(i)
			p.AddSample(record.Sample{
				T: at, Up: at + 100, Process: "com.x", PID: 1, Start: 1, Source: "smaps_rollup", PSS: &kb,
			})
		}
		r := l.Run()
		return r.Processes[0].Gate, r.Windows[0].Processes[0].Gate, r.Processes[0].Reason
	}
	for rate, want := range map[float64]detector.Gate{
		0: "pass", 1000: "pass", 1: "inconclusive", -1: "pass", 1e300: "pass",
	} {
		gate, window, because := gates(rate)
		if gate != want || window != want {
			t.Errorf("%v MB/h: got gate %s, gate of the window %s, want %s: %s", rate, gate, window, want, because)
		}
		if want == detector.Inconclusive && !strings.Contains(because, "1.0 MB/h") {
			t.Errorf("because: %s", because)
		}
	}
}
