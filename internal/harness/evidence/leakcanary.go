package evidence

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/leakcanary"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

// FromLeakCanary takes what LeakCanary has reported: which leaks there are, by their signatures,
// and not whether they become more.
func FromLeakCanary(report leakcanary.Report, o DumpOptions) *Evidence {
	out := &Evidence{
		Traces: map[gate.TraceKey]gate.Trace{}, Missing: slices.Clone(report.Failures), Warnings: slices.Clone(report.Warnings),
		Head: comparison.Head{App: cmp.Or(o.App, "app"), Variant: o.Variant, Workload: "LeakCanary", Devices: []comparison.DeviceRow{}},
	}
	p := gate.Observed{
		Process: out.Head.App, Heap: gate.Moments{At: []float64{1}, Settled: true}, Places: []gate.Place{}, Checked: report.Analyses > 0 || report.Tests > 0,
		Because: "LeakCanary says which leaks there are, not whether they become more",
	}
	if report.Analyses == 0 {
		p.Heap = gate.Moments{}
	}
	for _, reason := range report.Undecided[:min(len(report.Undecided), 1)] {
		p.Undecided = name(reason)
	}
	for i := range report.Leaks {
		l := &report.Leaks[i]
		n := int64(max(l.Traces, 1))
		place := gate.Place{
			What: gate.WhatLeak, Key: l.Signature, Counts: []int64{n}, Bytes: []int64{0}, Classes: map[string][]int64{name(l.Class): {n}}, Checks: checksOf(l),
			Description: gate.Description{Class: name(l.Class), HeldBy: name(l.HeldBy), Fingerprints: []string{l.Signature}, Library: l.Library},
		}
		if l.RetainedBytes != nil {
			place.Bytes[0] = max(*l.RetainedBytes, 0)
		}
		p.Places = append(p.Places, place)
		t := gate.Trace{HeldBy: place.HeldBy}
		for _, line := range l.TraceLines[:min(len(l.TraceLines), maxTrace)] {
			t.Lines = append(t.Lines, name(line))
		}
		out.Traces[gate.TraceKey{Process: p.Process, Key: l.Signature}] = t
	}
	out.Observations = []gate.Observation{{
		Unit: gate.UnitLoop, Subject: gate.Testbed{App: out.Head.App, Variant: o.Variant, Test: o.Test, Workload: "leakcanary"}, Processes: []gate.Observed{p},
	}}
	return out
}

// checksOf are the tests that have found a leak; each has waited until the object should be gone.
func checksOf(l *leakcanary.SignedLeak) []string {
	var out []string
	for _, test := range l.Tests[:min(len(l.Tests), mostChecks)] {
		out = append(out, name(test))
	}
	if len(out) == 0 {
		out = append(out, fmt.Sprintf("LeakCanary, %d heap dumps", max(l.Analyses, 1)))
	}
	return out
}
