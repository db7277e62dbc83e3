package ledger

import (
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// The quantity that the samples of a process measure depends on how the process
// is read and on whether the device was ever seen to swap.
func TestQuantity(t *testing.T) {
	pss := func(source string, swap *int64) record.Sample {
		return record.Sample{Source: source, PSS: new(int64(1000)), SwapPSS: swap}
	}
	breakdown := func(swap int64, inTotal bool) record.Sample {
		return record.Sample{
			Source:    "dumpsys",
			Breakdown: &record.Breakdown{TotalPSS: new(int64(1000)), SwapPSS: &swap, SwapInTotal: &inTotal},
		}
	}
	status := record.Sample{Source: "status", RSSAnon: new(int64(1000)), Swap: new(int64(50))}
	bare := pss("smaps_rollup", nil)
	for name, c := range map[string]struct {
		source string
		lines  []record.Sample
		want   detector.Quantity
	}{
		"Pss and SwapPss": {
			"smaps_rollup", []record.Sample{pss("smaps_rollup", new(int64(5))), pss("smaps_rollup", new(int64(5)))},
			detector.WholeMemory,
		},
		"no SwapPss, swap unknown": {"smaps", []record.Sample{bare, bare, bare, bare}, detector.WholeMemory},
		"no SwapPss, and the device swaps": {
			"smaps", []record.Sample{bare, bare, breakdown(7, false), bare}, detector.WithoutSwap,
		},
		"too few readings": {
			"smaps", []record.Sample{breakdown(7, false), bare, bare}, detector.WholeMemory,
		},
		"some readings without SwapPss": {
			"smaps", []record.Sample{pss("smaps", new(int64(5))), bare, bare, bare}, detector.WholeMemory,
		},
		"no SwapPss, nothing swapped out": {
			"smaps", []record.Sample{breakdown(0, false), bare, bare, bare}, detector.WholeMemory,
		},
		"RssAnon":                      {"status", []record.Sample{status}, detector.Anonymous},
		"dumpsys, total includes swap": {"dumpsys", []record.Sample{breakdown(7, true)}, detector.WholeMemory},
		"dumpsys, total excludes swap": {"dumpsys", []record.Sample{breakdown(7, false)}, detector.WithoutSwap},
		"dumpsys, nothing swapped out": {"dumpsys", []record.Sample{breakdown(0, false)}, detector.WholeMemory},
	} {
		r := newRounds(t)
		r.source = c.source
		r.event("found", shop)
		for _, s := range c.lines {
			r.round(30)
			s.T, s.Up, s.Process, s.PID, s.Start = r.Seconds(r.up), r.up.Seconds(), shop, 1, 1
			r.AddSample(s)
		}
		if got := r.accounts[0].measured; got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// If one process shows that the device swaps, this applies to all processes. If
// a process is read at a different level, its samples measure a different
// quantity.
func TestQuantityFollowsOtherProcesses(t *testing.T) {
	r := newRounds(t)
	bare := func(name string) {
		r.AddSample(record.Sample{
			T: r.Seconds(r.up), Up: r.up.Seconds(), Process: name, PID: 1, Start: 1, Source: "smaps",
			PSS: new(int64(1000)),
		})
	}
	r.source = "smaps"
	r.event("found", shop)
	for range 3 {
		r.round(30)
		bare(shop)
	}
	a := r.accounts[0]
	if a.measured != detector.WholeMemory {
		t.Fatalf("got quantity %d before the swap is known, want %d", a.measured, detector.WholeMemory)
	}
	r.AddSample(record.Sample{
		T: r.Seconds(r.up), Up: r.up.Seconds(), Process: remote, PID: 1, Start: 1, Source: "status",
		RSSAnon: new(int64(1)), Swap: new(int64(9)),
	})
	r.round(30)
	bare(shop)
	if a.measured != detector.WithoutSwap {
		t.Errorf("got quantity %d after another process was swapped out, want %d", a.measured,
			detector.WithoutSwap)
	}
	r.source = "status"
	r.event("level", shop)
	if a.measured != detector.Anonymous {
		t.Errorf("got quantity %d after a change of the level, want %d", a.measured, detector.Anonymous)
	}
}
