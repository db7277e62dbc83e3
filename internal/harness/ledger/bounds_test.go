package ledger

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

const gib = 1 << 20 // in kB

// impossible lists values in kB that cannot occur on a phone with 8 GB, or that
// overflow when they are added or converted to bytes.
var impossible = []int64{
	-1, math.MinInt64, 8*gib + 1, 1 << 40, 1 << 43, 1 << 53, 1<<53 + 1, 1 << 54, 1<<54 + 1024, 999_999_999_999_999_999,
	math.MaxInt64,
}

// An impossible value in a line of the fast channel counts as missing, whatever
// its source: it is replaced neither with 0 nor with another number. No run
// writes such a line, so a report treats it as damaged.
func TestImpossibleSamples(t *testing.T) {
	device := record.HeaderDevice{Device: "S1", MemTotal: 8 * gib}
	for _, source := range []capture.Source{capture.SmapsRollup, capture.Status} {
		for _, kb := range impossible {
			for _, swapped := range []bool{false, true} {
				if swapped && kb == 8*gib+1 {
					continue // zram holds more than the physical memory
				}
				l, err := New(record.Header{Devices: []record.HeaderDevice{device}}, detector.RobustPolicy())
				if err != nil {
					t.Fatal(err)
				}
				p := l.Part("S1")
				p.AddEvent(record.Event{Event: "found", Process: "com.x", PID: 7, Source: string(source)})
				line := func(at int, kb, swap *int64) record.Sample {
					s := record.Sample{
						T: float64(at), Up: float64(at), Device: "S1", Process: "com.x", PID: 7, Source: string(source),
					}
					if source == capture.Status {
						s.RSSAnon, s.Swap = kb, swap
					} else {
						s.PSS, s.SwapPSS = kb, swap
					}
					return s
				}
				bad := line(60, &kb, new(int64(0)))
				if swapped {
					bad = line(60, new(int64(1024)), &kb)
				}
				for at := range 3 {
					p.AddSample(line(at*30, new(int64(2048)), nil))
				}
				bad.T, bad.Up = 90, 90
				p.AddSample(bad)
				a := l.Accounts()[0].Record(1)
				if a.Samples != 3 || a.LastMB == nil || *a.LastMB != 2 ||
					!strings.Contains(strings.Join(a.Warnings, "\n"), "1 value is impossible and counts as missing") {
					t.Errorf("%s, %d kB, swapped %t: got %d samples, want 3; the last of %g MB, want 2; warnings %q",
						source, kb, swapped, a.Samples, *a.LastMB, a.Warnings)
				}
				if err := l.AddSample(bad); err == nil || !strings.Contains(err.Error(), fmt.Sprint(kb)) {
					t.Errorf("%s, %d kB, swapped %t: want an error that names the value, got %v", source, kb, swapped,
						err)
				}
			}
		}
	}
}

// Impossible values of a breakdown count as missing; its other values are kept.
func TestImpossibleBreakdowns(t *testing.T) {
	for _, kb := range impossible {
		if kb == 8*gib+1 {
			continue // TOTAL includes the swapped memory
		}
		p := partOf(t, detector.RobustPolicy(), record.HeaderDevice{Device: "S1", MemTotal: 8 * gib})
		p.AddEvent(record.Event{Event: "found", Process: "com.x", PID: 7, Source: string(capture.Dumpsys)})
		add := func(at int, b record.Breakdown) {
			p.AddSample(record.Sample{
				T: float64(at), Up: float64(at), Process: "com.x", PID: 7, Source: string(capture.Dumpsys),
				Breakdown: &b,
			})
		}
		good := func() record.Breakdown {
			return record.Breakdown{TotalPSS: new(int64(4096)), NativeHeap: new(int64(1024)), EGL: new(int64(2048))}
		}
		add(30, good())
		total := good()
		total.TotalPSS = &kb
		add(60, total)
		part := good()
		part.NativeHeap = &kb
		add(90, part)
		driver := good()
		driver.EGL = new(int64(5000)) // more than the total
		add(120, driver)
		a := p.accounts[0].Record(1)
		if a.Samples != 2 || *a.LastMB != 2 ||
			!strings.Contains(strings.Join(a.Warnings, "\n"), "3 values are impossible and count as missing") {
			t.Errorf("%d kB: got %d samples, want 2; the last of %g MB, want 2; warnings %q", kb, a.Samples,
				*a.LastMB, a.Warnings)
		}
	}
}

// The bound of a device also applies to a sum of processes: above it, the sum
// is unknown.
func TestImpossibleSums(t *testing.T) {
	p := partOf(t, detector.RobustPolicy(), record.HeaderDevice{Device: "S1", MemTotal: gib})
	swap := int64(4 * gib)
	for at := range 10 {
		for i, name := range []string{"com.x", "com.x:a"} {
			s := record.Sample{
				T: float64(at * 30), Up: float64(at * 30), Process: name, PID: i + 7,
				Source: string(capture.SmapsRollup), PSS: new(int64(1024)),
			}
			if at == 5 {
				s.SwapPSS = &swap
			}
			if at == 0 {
				p.AddEvent(record.Event{Event: "found", Process: name, PID: i + 7, Source: s.Source})
			}
			p.AddSample(s)
		}
	}
	x := p.apps.opened[0].Record(1)
	if x.Samples != 9 || *x.LastMB != 2 {
		t.Errorf("got %d sums, want 9; the last of %g MB, want 2; warnings %q", x.Samples, *x.LastMB, x.Warnings)
	}
}

// If the header does not contain the memory size of the device, as in runs of
// earlier versions, the bound is 1 TiB.
func TestBoundsOfADevice(t *testing.T) {
	for total, want := range map[int64]bounds{
		0: {1 << 30, 1 << 30}, -5: {1 << 30, 1 << 30}, math.MaxInt64: {1 << 30, 1 << 30},
		8 * gib: {8 * gib, 32 * gib}, 1 << 29: {1 << 29, 1 << 30},
	} {
		if got := boundsOf(record.HeaderDevice{MemTotal: total}); got != want {
			t.Errorf("%d kB: %v, want %v", total, got, want)
		}
	}
}
