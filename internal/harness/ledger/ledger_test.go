package ledger

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// partOf returns the part of a device in a run that has no other device.
func partOf(t *testing.T, policy detector.Policy, device record.HeaderDevice) *Part {
	t.Helper()
	l, err := New(record.Header{Devices: []record.HeaderDevice{device}}, policy)
	if err != nil {
		t.Fatal(err)
	}
	return l.Part(device.Device)
}

// expected makes the same calls to the detector that a ledger must make for the
// lines.
type expected struct {
	*detector.Detector
	// without is a type of line that is ignored, to show whether lines of this
	// type affect the result.
	without string
}

func (h expected) add(sort string, call func(*detector.Detector)) {
	if sort != h.without {
		call(h.Detector)
	}
}

// script adds the history of one process, generated from one seed, both as
// lines to a part and as calls to detectors: eight hours with loops, gaps,
// changes of the source and restarts. The process leaks in two out of three
// cases.
func script(seed uint64, l *Part, to []expected) {
	r := rand.New(rand.NewPCG(seed, 1))
	p := capture.Process{Name: "com.x", PID: 7, Start: 8}
	line := func(e record.Event, up time.Duration) {
		e.Up, e.T = up.Seconds(), l.Seconds(up)
		if e.Event != "mark" {
			e.User, e.Process, e.PID, e.Start, e.Source = new(0), p.Name, p.PID, p.Start, "smaps_rollup"
		}
		l.AddEvent(e)
	}
	all := func(sort string, call func(*detector.Detector)) {
		for _, h := range to {
			h.add(sort, call)
		}
	}
	up, loops, level := 100*time.Second, 0, 0.0
	line(record.Event{Event: "found"}, up)
	for range 960 {
		up += 30 * time.Second
		switch n := r.IntN(500); {
		case n < 25:
			loops++
			text := fmt.Sprintf("loop %d", loops)
			line(record.Event{Event: "mark", Text: text}, up)
			all("mark", func(d *detector.Detector) { d.AddMark(detector.Mark{At: up, Text: text}) })
		case n == 25:
			up += time.Duration(r.IntN(3600)) * time.Second
			line(record.Event{Event: "gap"}, up)
			all("gap", func(d *detector.Detector) { d.Gap(up) })
		case n == 26:
			line(record.Event{Event: "level"}, up)
			all("level", func(d *detector.Detector) { d.ChangeQuantity(up) })
			level -= 100
		case n == 27:
			p.PID++
			line(record.Event{Event: "restart"}, up)
			all("restart", func(d *detector.Detector) { d.Restart(up) })
			level = 0
		}
		level += 0.5 * float64(seed%3) // size in MB
		kb := 300<<10 + int64(level*1024) + r.Int64N(8<<10)
		l.AddSample(record.Sample{
			T: l.Seconds(up), Up: up.Seconds(), User: 0, Process: p.Name, PID: p.PID, Start: p.Start,
			Source: "smaps_rollup", PSS: &kb,
		})
		all("sample", func(d *detector.Detector) { d.AddSample(detector.Sample{At: up, Bytes: kb << 10}) })
	}
}

// A ledger passes the contents of its lines to the detector. Marks, gaps,
// changes and restarts are passed on unchanged, and each of them that the
// policy uses affects the result. Policy "robust" computes the length of a gap
// from the samples; policy "article" does not use marks.
func TestLedgerFeedsTheDetector(t *testing.T) {
	for _, c := range []struct {
		policy detector.Policy
		unused string
	}{{detector.RobustPolicy(), "gap"}, {detector.ArticlePolicy(), "mark"}} {
		policy, without, gates, gaps := c.policy, map[string]int{}, map[string]int{}, 0
		for seed := range uint64(20) {
			l := partOf(t, policy, record.HeaderDevice{Device: "S1", StartedUp: 100})
			to := []expected{{detector.New(policy), ""}}
			for _, sort := range []string{"mark", "gap", "level", "restart"} {
				to = append(to, expected{detector.New(policy), sort})
			}
			script(seed, l, to)
			got := l.accounts[0].Detector.Verdict()
			gates[string(got.Gate)]++
			for _, w := range got.Warnings {
				if strings.Contains(w.Error(), "nothing was measured for more than") {
					gaps++
				}
			}
			if want := to[0].Verdict(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, seed %d:\ngot  %+v\nwant %+v", policy.Name, seed, got, want)
			}
			for _, h := range to[1:] {
				if !reflect.DeepEqual(got, h.Verdict()) {
					without[h.without]++
				}
			}
		}
		t.Logf("%s: gates %v, %d verdicts with gaps; number of verdicts that differ without an event: %v", policy.Name,
			gates, gaps, without)
		for _, sort := range []string{"mark", "gap", "level", "restart"} {
			if (without[sort] > 0) != (sort != c.unused) {
				t.Errorf("%s: %d of 20 verdicts differ without %s events", policy.Name, without[sort], sort)
			}
		}
		if len(gates) < 2 || policy.Name == detector.PolicyRobust && gaps == 0 {
			t.Errorf("%s: gates %v, %d verdicts with gaps: the simulated processes are too similar", policy.Name, gates,
				gaps)
		}
	}
}

// watched returns the ledger of one device after four hours, and detectors that
// received the same samples. Each process grows at the given rate in MB/h, plus
// a random walk.
func watched(t *testing.T, device string, rates ...float64) (*Part, []*detector.Detector) {
	r := rand.New(rand.NewPCG(uint64(len(device)), 3))
	l := partOf(t, detector.RobustPolicy(), record.HeaderDevice{Device: device, StartedUp: 100})
	alone := make([]*detector.Detector, len(rates))
	for i, rate := range rates {
		alone[i] = detector.New(detector.RobustPolicy())
		name := fmt.Sprintf("com.x%d", i) // each process is an app of its own
		l.AddEvent(record.Event{
			Event: "found", Up: 100, User: new(0), Process: name, PID: i + 1, Start: 1, Source: "smaps_rollup",
		})
		walk := 0.0
		for k := range 480 {
			walk += 3 * r.NormFloat64()
			up := 100*time.Second + time.Duration(k)*30*time.Second
			kb := 300<<10 + int64(1024*(rate*float64(k)/120+walk))
			l.AddSample(record.Sample{
				Up: up.Seconds(), T: l.Seconds(up), Process: name, PID: i + 1, Start: 1, Source: "smaps_rollup",
				PSS: &kb,
			})
			alone[i].AddSample(detector.Sample{At: up, Bytes: kb << 10})
		}
	}
	return l, alone
}

// All processes of a run, including those of other devices, are judged
// together. Each has the verdict that its detector returns for a family of this
// size. For some processes, this verdict differs from the one for a family that
// contains only the processes of their own device.
func TestFamilySizeOverAllDevices(t *testing.T) {
	rates := make([]float64, 100)
	for i := range rates {
		rates[i] = 20 + float64(i)/2
	}
	one, alone := watched(t, "S1", rates...)
	two, others := watched(t, "S22", make([]float64, 500)...)
	run := (&Ledger{parts: []*Part{one, two}}).Run()
	if len(run.Processes) != 600 {
		t.Fatalf("%d processes", len(run.Processes))
	}
	changed := 0
	for i, d := range append(alone, others...) {
		d.SetFamilySize(len(rates))
		fewer := d.Verdict().Gate
		d.SetFamilySize(600)
		got, want := run.Processes[i], d.Verdict()
		if got.Gate != want.Gate || got.Reason != want.Because {
			t.Errorf("%s of %s: %s, %s, want %s, %s", got.Process, got.Device, got.Gate, got.Reason, want.Gate,
				want.Because)
		}
		if fewer != want.Gate {
			changed++
		}
	}
	if changed == 0 {
		t.Error("no verdict depends on the number of processes")
	}
	t.Logf("%d verdicts differ", changed)
}
