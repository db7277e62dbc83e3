package ledger

import (
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

func TestExitCodeOrder(t *testing.T) {
	late := record.Process{Gate: "leak", Worst: detector.Normal}
	leak := record.Process{Gate: "leak", Worst: detector.Leaking}
	pass := record.Process{Gate: "pass"}
	once := record.Process{Gate: "pass", Worst: detector.Leaking}
	undecided := record.Process{Gate: "inconclusive"}
	dumped := record.Process{Gate: "inconclusive", AtMarks: []record.MarkSeries{{Gate: "inconclusive"}, {Gate: "pass"}}}
	tooFew := record.Process{Gate: "inconclusive", AtMarks: []record.MarkSeries{{Gate: "inconclusive"}}}
	risen := record.Process{
		Gate: "inconclusive", AtMarks: []record.MarkSeries{{Gate: "inconclusive", Rising: true}, {Gate: "pass"}},
	}
	failed := &record.Workload{Error: "exit 1"}
	lost := []record.Device{{Error: "gone"}}
	missing := []record.MissingEvidence{{Text: "no heap dump"}}
	list := func(p ...record.Process) []record.Process { return p }
	end, live := record.Plan{Assert: record.AssertEnd}, record.Plan{Assert: record.AssertLive}
	strict, allow := end, end
	strict.Strict, allow.AllowUnjudged = true, true
	both := strict
	both.AllowUnjudged = true
	for name, c := range map[string]struct {
		run  record.Run
		plan record.Plan
		want int
	}{
		"clean": {record.Run{Processes: list(pass)}, strict, record.ExitClean},
		"full disk takes precedence": {
			record.Run{Stopped: record.StoppedDisk, Devices: lost, Interrupted: true, Processes: list(leak)}, end,
			record.ExitUnwritten,
		},
		"interruption before leak": {
			record.Run{Devices: lost, Interrupted: true, Processes: list(leak), Workload: failed}, strict,
			record.ExitInterrupted,
		},
		"leak before lost device": {
			record.Run{Devices: lost, Processes: list(leak), Workload: failed}, end, record.ExitLeak,
		},
		"lost device before failed workload": {
			record.Run{Devices: lost, Processes: list(pass), Workload: failed}, strict, record.ExitNoDevice,
		},
		"leak": {
			record.Run{Processes: list(undecided, leak), Workload: failed, MissingEvidence: missing}, strict,
			record.ExitLeak,
		},
		"no process":                  {record.Run{}, end, record.ExitNoDevice},
		"no process, allowed":         {record.Run{}, both, record.ExitNoDevice},
		"no process, interrupted":     {record.Run{Interrupted: true}, end, record.ExitInterrupted},
		"no process, failed workload": {record.Run{Workload: failed}, end, record.ExitNoDevice},
		"workload": {
			record.Run{Processes: list(undecided), Workload: failed, MissingEvidence: missing}, strict,
			record.ExitWorkload,
		},
		"one undecided": {record.Run{Processes: list(undecided, pass)}, end, record.ExitClean},
		"one undecided, strict": {
			record.Run{Processes: list(undecided, pass)}, strict, record.ExitInconclusive,
		},
		"one undecided, both": {
			record.Run{Processes: list(undecided, pass)}, both, record.ExitInconclusive,
		},
		"nothing judged": {
			record.Run{Processes: list(undecided, undecided)}, end, record.ExitInconclusive,
		},
		"nothing judged, allowed": {
			record.Run{Processes: list(undecided, undecided)}, allow, record.ExitClean,
		},
		"judged by dumps": {
			record.Run{Processes: list(undecided, dumped)}, end, record.ExitClean,
		},
		"judged by dumps, strict": {
			record.Run{Processes: list(dumped)}, strict, record.ExitInconclusive,
		},
		"too few dumps": {
			record.Run{Processes: list(undecided, tooFew)}, end, record.ExitInconclusive,
		},
		"rising counts without a proof": {
			record.Run{Processes: list(pass, risen)}, end, record.ExitInconclusive,
		},
		"rising counts without a proof, allowed": {record.Run{Processes: list(pass, risen)}, allow, record.ExitClean},
		"missing dump": {
			record.Run{Processes: list(pass), MissingEvidence: missing}, end, record.ExitInconclusive,
		},
		"missing dump, allowed": {
			record.Run{Processes: list(pass), MissingEvidence: missing}, allow, record.ExitClean,
		},
		"earlier LEAKING, assert end":         {record.Run{Processes: list(once)}, end, record.ExitClean},
		"earlier LEAKING, assert live":        {record.Run{Processes: list(once)}, live, record.ExitLeak},
		"leak proved at the end, assert end":  {record.Run{Processes: list(late)}, end, record.ExitLeak},
		"leak proved at the end, assert live": {record.Run{Processes: list(late)}, live, record.ExitLeak},
	} {
		if got := ExitCode(c.run, c.plan); got != c.want {
			t.Errorf("%s: exit %d, want %d", name, got, c.want)
		}
	}
}

// If two conditions hold, the one that comes first in the order of the contract
// determines the exit code.
func TestExitCodeOfTwoConditions(t *testing.T) {
	type condition struct {
		name string
		code int
		add  func(*record.Run, *record.Plan)
	}
	pass := record.Process{Device: "A", Process: "system_server", Gate: "pass", Alive: 28800, LongestStretch: 28800}
	process := func(p record.Process) func(*record.Run, *record.Plan) {
		return func(r *record.Run, _ *record.Plan) { r.Processes = append(r.Processes, p) }
	}
	ordered := []condition{
		{"the directory cannot be written", 2, func(r *record.Run, _ *record.Plan) { r.Stopped = record.StoppedDisk }},
		{"interrupted", 130, func(r *record.Run, _ *record.Plan) { r.Interrupted = true }},
		{"a leak", 1, process(record.Process{Device: "A", Process: "com.shop", Gate: "leak"})},
		{"a leak found by a check", 1, func(r *record.Run, _ *record.Plan) {
			r.Checks = append(r.Checks, record.Check{Device: "A", Verdict: "leak"})
		}},
		{"earlier LEAKING with assert live", 1, func(r *record.Run, p *record.Plan) {
			p.Assert = record.AssertLive
			r.Processes = append(r.Processes,
				record.Process{Device: "A", Process: "com.shop:b", Gate: "pass", Worst: detector.Leaking})
		}},
		{"a phone was lost", 3, func(r *record.Run, _ *record.Plan) {
			r.Devices = append(r.Devices, record.Device{Device: "B", Error: "gone"})
		}},
		{"a dump could not be analyzed", 6, func(r *record.Run, _ *record.Plan) {
			r.MissingEvidence = append(r.MissingEvidence, record.MissingEvidence{Unreadable: true})
		}},
		{
			"the workload failed", 4,
			func(r *record.Run, _ *record.Plan) { r.Workload = &record.Workload{Error: "exit 1"} },
		},
		{"a device dropped the workload", 4, func(r *record.Run, _ *record.Plan) {
			r.Workload = &record.Workload{Interrupted: []record.Interruption{{Device: "A"}}}
		}},
		{"a dump is missing", 5, func(r *record.Run, _ *record.Plan) {
			r.MissingEvidence = append(r.MissingEvidence, record.MissingEvidence{})
		}},
		{
			"a process died early", 5,
			process(record.Process{
				Device: "A", Process: "com.shop:c", Gate: "inconclusive", Samples: 24, Alive: 720, LongestStretch: 690,
			}),
		},
		{
			"a process restarts", 5,
			process(record.Process{
				Device: "A", Process: "com.shop:d", Gate: "inconclusive", Restarts: 47, Alive: 28800,
				LongestStretch: 540,
			}),
		},
		{
			"leaks rise at marks", 5,
			process(record.Process{
				Device: "A", Process: "com.shop:e", Gate: "inconclusive",
				AtMarks: []record.MarkSeries{{Gate: "inconclusive", Rising: true}, {Gate: "pass"}},
			}),
		},
		{"a device without a verdict", 5, func(r *record.Run, _ *record.Plan) {
			r.Devices = append(r.Devices, record.Device{Device: "C", Duration: 28800})
		}},
		{"an undecided process with strict", 5, func(r *record.Run, p *record.Plan) {
			p.Strict = true
			r.Processes = append(r.Processes,
				record.Process{
					Device: "A", Process: "com.shop:f", Gate: "inconclusive", Alive: 28800, LongestStretch: 28800,
				})
		}},
		{
			"a limit is near", 0,
			process(record.Process{
				Device: "A", Process: "com.shop:g", Gate: "pass",
				Limits: []record.LimitWarning{{Text: "near", Urgent: true}},
			}),
		},
		{
			"undecided", 0,
			process(record.Process{
				Device: "A", Process: "com.shop:h", Gate: "inconclusive", Alive: 28800, LongestStretch: 28800,
			}),
		},
	}
	for i, a := range ordered {
		for _, b := range ordered[i:] {
			r := record.Run{Devices: []record.Device{{Device: "A", Duration: 28800}}, Processes: []record.Process{pass}}
			plan := record.Plan{Assert: record.AssertEnd}
			a.add(&r, &plan)
			b.add(&r, &plan)
			r.Unjudged = unjudged(r)
			if got := ExitCode(r, plan); got != a.code {
				t.Errorf("%s, and %s: exit %d, want %d", a.name, b.name, got, a.code)
			}
		}
	}
	// If no process was ever seen, the exit code is 3. This case is combined
	// with each of the other conditions.
	for _, c := range ordered {
		r, plan := record.Run{Devices: []record.Device{{Device: "A", Duration: 28800}}},
			record.Plan{Assert: record.AssertEnd}
		c.add(&r, &plan)
		if len(r.Processes) > 0 {
			continue
		}
		want := record.ExitNoDevice
		if c.code == 2 || c.code == 130 || c.code == 1 {
			want = c.code
		}
		if got := ExitCode(r, plan); got != want {
			t.Errorf("no process, and %s: exit %d, want %d", c.name, got, want)
		}
	}
}
