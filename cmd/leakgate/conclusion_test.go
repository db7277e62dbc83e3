package main

import (
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// The last line of a run names the exit code and what decided it.
func TestRunConclusion(t *testing.T) {
	of := func(name string, gate detector.Gate) record.Process { return record.Process{Process: name, Gate: gate} }
	leak, pass, unsure := of("com.shop", detector.Leak), of("com.shop:push", detector.Pass),
		of("com.shop:sync", detector.Inconclusive)
	for want, c := range map[string]struct {
		code int
		run  record.Run
	}{
		"failed (exit code 1): com.shop leaks": {
			record.ExitLeak, record.Run{Processes: []record.Process{leak, leak, pass, unsure}},
		},
		"failed (exit code 1): a, b, c and 1 more leak": {record.ExitLeak, record.Run{Processes: []record.Process{
			of("a", detector.Leak), of("b", detector.Leak), of("c", detector.Leak), of("d", detector.Leak)}}},
		"failed (exit code 1): live leaks": {
			record.ExitLeak, record.Run{Processes: []record.Process{{Process: "live", Worst: detector.Leaking}}},
		},
		"failed (exit code 1): a check found a leak": {record.ExitLeak, record.Run{Processes: []record.Process{pass}}},
		"passed (exit code 0): no leak found":        {exitOK, record.Run{Processes: []record.Process{pass}}},
		"passed (exit code 0): no leak found; no verdict on com.shop:sync": {
			exitOK, record.Run{Processes: []record.Process{pass, unsure}},
		},
		"passed (exit code 0): nothing could be judged, which --allow-unjudged accepts": {
			exitOK, record.Run{Processes: []record.Process{unsure}},
		},
		"inconclusive (exit code 5): no verdict on com.shop:sync": {
			record.ExitInconclusive, record.Run{Processes: []record.Process{pass, unsure}},
		},
		"inconclusive (exit code 5): a heap dump is missing": {
			record.ExitInconclusive, record.Run{MissingEvidence: []record.MissingEvidence{{}}},
		},
		"inconclusive (exit code 5): no verdict on device S?[1": {
			record.ExitInconclusive, record.Run{Unjudged: []record.Unjudged{{Device: "S\x1b[1"}}},
		},
		"inconclusive (exit code 5): nothing could be judged":   {record.ExitInconclusive, record.Run{}},
		"failed (exit code 3): no process of the app was found": {record.ExitNoDevice, record.Run{}},
		"failed (exit code 3): device S1 was lost": {
			record.ExitNoDevice, record.Run{Devices: []record.Device{{Device: "S0"}, {Device: "S1", Error: "lost"}}},
		},
		"failed (exit code 4): the workload failed": {
			record.ExitWorkload, record.Run{},
		},
		"failed (exit code 6): a heap dump could not be analyzed": {record.ExitUnread, record.Run{}},
		"interrupted (exit code 130): the run was stopped before its end": {
			record.ExitInterrupted, record.Run{},
		},
		"failed (exit code 2): the run directory or the report could not be written": {exitUsage, record.Run{}},
	} {
		if got := conclusion(c.code, decidedBy(c.run, c.code)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
