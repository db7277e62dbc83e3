package evidence

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/leakcanary"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

// FromLeakCanary converts a LeakCanary report. The report contains the leaks,
// identified by their signatures, but does not say whether they accumulate.
func FromLeakCanary(report leakcanary.Report, o DumpOptions) *Evidence {
	out := &Evidence{
		Traces: map[gate.TraceKey]gate.Trace{}, Missing: slices.Clone(report.Failures),
		Warnings: slices.Clone(report.Warnings),
		Head: comparison.Head{
			App: cmp.Or(o.App, "app"), Variant: o.Variant, Workload: "LeakCanary", Devices: []comparison.DeviceRow{},
		},
	}
	p := gate.Observed{
		Process: out.Head.App, Heap: gate.Timeline{Exposure: []float64{1}, Settled: true}, Places: []gate.Place{},
		Checked: report.Analyses > 0 || report.Tests > 0,
		Reason:  "LeakCanary reports which leaks exist, not whether they accumulate",
	}
	if report.Analyses == 0 {
		p.Heap = gate.Timeline{}
	}
	for _, reason := range report.Undecided[:min(len(report.Undecided), 1)] {
		p.Undecided = name(reason)
	}
	for i := range report.Leaks {
		l := &report.Leaks[i]
		n := int64(max(l.Traces, 1))
		place := gate.Place{
			Type: gate.TypeLeak, Key: l.Signature, Counts: []int64{n}, Bytes: []int64{0},
			Classes: map[string][]int64{name(l.Class): {n}}, Checks: checksOf(l),
			Description: gate.Description{
				Class: name(l.Class), HeldBy: name(withoutPackage(l.HeldBy)), Fingerprints: []string{l.Signature},
				Library: l.Library,
			},
		}
		if l.RetainedBytes != nil {
			place.Bytes[0] = max(*l.RetainedBytes, 0)
		}
		p.Places = append(p.Places, place)
		t := gate.Trace{HeldBy: place.HeldBy}
		if at := strings.LastIndexByte(l.HeldBy, '.'); at > 0 && !strings.ContainsAny(l.HeldBy, "[<") {
			t.Suspects = []comparison.Suspect{{Class: name(l.HeldBy[:at]), Field: name(l.HeldBy[at+1:])}}
		}
		for _, line := range l.TraceLines[:min(len(l.TraceLines), maxTrace)] {
			t.Lines = append(t.Lines, name(line))
		}
		out.Traces[gate.TraceKey{Process: p.Process, Key: l.Signature}] = t
	}
	out.Observations = []gate.Observation{{
		Unit:      gate.UnitLoop,
		Subject:   gate.Testbed{App: out.Head.App, Variant: o.Variant, Test: o.Test, Workload: "leakcanary"},
		Processes: []gate.Observed{p},
	}}
	return out
}

// withoutPackage returns a reference with the simple name of its class, as in
// other reports.
func withoutPackage(reference string) string {
	class, field, ok := strings.Cut(reference, ".")
	for ok && strings.Contains(field, ".") {
		class, field, _ = strings.Cut(field, ".")
	}
	if !ok {
		return reference
	}
	return class + "." + field
}

// checksOf returns the tests that found a leak. Each of these tests had waited
// until the object should have been collected.
func checksOf(l *leakcanary.SignedLeak) []string {
	var out []string
	for _, test := range l.Tests[:min(len(l.Tests), mostChecks)] {
		out = append(out, name(test))
	}
	if len(out) == 0 {
		out = append(out, "LeakCanary")
	}
	return out
}
