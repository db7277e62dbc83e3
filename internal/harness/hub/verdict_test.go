package hub

import (
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/reporters/record"
)

// judged returns the verdict on a run with the process com.shop.
func judged(run record.Run, strict bool, accepted ...monitor.Exception) SuiteVerdict {
	h := &Hub{accepted: accepted}
	h.plan.config = &config.Config{}
	h.plan.config.Strict = strict
	h.plan.run.Patterns = []capture.Pattern{"com.shop*"}
	v := SuiteVerdict{Run: run, Started: true}
	h.judge(&v)
	return v
}

// leaking returns a run in which com.shop leaks memory, with a diagnosis for
// each list of leaks.
func leaking(leaks ...[]record.DumpLeak) record.Run {
	run := record.Run{
		Processes: []record.Process{
			{
				Device: "S1", Process: "com.shop", Gate: detector.Leak, Kind: detector.Java, Growth: 90,
				Reason: "+90 MB/h",
			},
		},
	}
	for _, l := range leaks {
		run.Diagnoses = append(run.Diagnoses,
			record.Diagnosis{Device: "S1", Process: "com.shop", Trigger: record.TriggerLeak, Leaks: l})
	}
	return run
}

func dumpLeak(class string) record.DumpLeak {
	return record.DumpLeak{
		Key: "0123456789 " + class, Name: class, Count: 1, Bytes: 80 << 20,
		Classes: []record.ClassCount{{Class: "com.shop." + class}},
	}
}

// If a process leaks memory in the course of the suite, the suite fails, unless
// the cause is known.
func TestSuiteMemory(t *testing.T) {
	until := func(days int) monitor.Exception {
		return monitor.Exception{Class: "Known", Reason: "SHOP-1", Owner: "anna", Until: time.Now().AddDate(0, 0, days)}
	}
	native := leaking([]record.DumpLeak{dumpLeak("Known")})
	native.Processes[0].Kind = detector.Native
	small := dumpLeak("Known")
	small.Bytes = 2 << 20
	library := dumpLeak("Library")
	library.Library = true
	for name, c := range map[string]struct {
		run      record.Run
		accepted []monitor.Exception
		failures string
	}{
		"leak":                  {leaking(), nil, "com.shop: leak: +90 MB/h"},
		"leak of unknown cause": {leaking(), []monitor.Exception{until(1)}, "com.shop: leak: +90 MB/h"},
		"known":                 {leaking([]record.DumpLeak{dumpLeak("Known")}), []monitor.Exception{until(1)}, ""},
		"leak of another kind":  {native, []monitor.Exception{until(1)}, "com.shop: leak: +90 MB/h"},
		"known leak too small": {
			leaking([]record.DumpLeak{small}), []monitor.Exception{until(1)}, "com.shop: leak: +90 MB/h",
		},
		"exception valid until today": {
			leaking([]record.DumpLeak{dumpLeak("Known")}), []monitor.Exception{until(0)}, "",
		},
		"known and unknown leak": {
			leaking([]record.DumpLeak{dumpLeak("Known"), dumpLeak("Other")}), []monitor.Exception{until(1)},
			"com.shop: leak: +90 MB/h",
		},
		"unknown leak in another dump": {
			leaking([]record.DumpLeak{dumpLeak("Known")}, []record.DumpLeak{dumpLeak("Other")}),
			[]monitor.Exception{until(1)}, "com.shop: leak: +90 MB/h",
		},
		"known leak and library leak": {
			leaking([]record.DumpLeak{dumpLeak("Known"), library}), []monitor.Exception{until(1)}, "",
		},
		"over": {
			leaking([]record.DumpLeak{dumpLeak("Known")}), []monitor.Exception{until(-1)},
			"com.shop: leak: +90 MB/h\nexpired exception: Known (SHOP-1, owner anna",
		},
		"nothing": {
			record.Run{Processes: []record.Process{{Process: "com.shop:push", Gate: detector.Pass}}}, nil, "",
		},
		"no process": {record.Run{}, nil, "no process matched com.shop*"},
		"lost device": {
			record.Run{
				Processes: []record.Process{{Process: "com.shop"}},
				Devices:   []record.Device{{Device: "S1\x1b", Error: "device is gone"}},
			}, nil, "device S1",
		},
	} {
		v := judged(c.run, false, c.accepted...)
		got := strings.Join(v.Failures, "\n")
		if (got == "") != (c.failures == "") || !strings.HasPrefix(got, c.failures) || strings.Contains(got, "\x1b") {
			t.Errorf("%s: failures %q, want %q", name, got, c.failures)
		}
	}
}

// The verdict on a suite includes the results of checks that Ginkgo does not
// report.
func TestSuiteChecks(t *testing.T) {
	one := func(verdict record.CheckVerdict, outcome, of string) record.Check {
		return record.Check{
			Name: "spec", Type: of, Device: "S1", Verdict: verdict, Outcome: outcome, Text: "what it shows",
		}
	}
	for name, c := range map[string]struct {
		check         record.Check
		fails, strict bool
	}{
		"passes": {one(record.VerdictPass, record.OutcomePassed, record.CheckSpec), false, false},
		// The leak fails the spec.
		"leaks":                    {one(record.VerdictLeak, record.OutcomePassed, record.CheckSpec), false, false},
		"leaks and fails":          {one(record.VerdictLeak, record.OutcomeFailed, record.CheckSpec), true, true},
		"leaks and is interrupted": {one(record.VerdictLeak, record.OutcomeUnfinished, record.CheckSpec), true, true},
		"leaks and skips":          {one(record.VerdictLeak, record.OutcomeIgnored, record.CheckSpec), false, false},
		"inconclusive and fails": {
			one(record.VerdictInconclusive, record.OutcomeFailed, record.CheckSpec), false, true,
		},
		"inconclusive": {
			one(record.VerdictInconclusive, record.OutcomePassed, record.CheckSpec), false, false,
		},
		"not checked and fails":   {one(record.VerdictNotChecked, record.OutcomeFailed, record.CheckSpec), false, true},
		"instrumented test leaks": {one(record.VerdictLeak, record.OutcomePassed, record.CheckTest), true, true},
		"known":                   {one(record.VerdictKnown, record.OutcomeFailed, record.CheckSpec), false, false},
		"skipped":                 {one(record.VerdictSkipped, record.OutcomeFailed, record.CheckSpec), false, false},
	} {
		for _, strict := range []bool{false, true} {
			run := record.Run{Processes: []record.Process{{Process: "com.shop"}}, Checks: []record.Check{c.check}}
			v := judged(run, strict)
			want := c.fails && !strict || c.strict && strict
			if got := len(v.Failures) > 0; got != want {
				t.Errorf("%s, strict %v: %q", name, strict, v.Failures)
			}
			reported := strings.Contains(strings.Join(append(v.Notes, v.Failures...), "\n"), "spec: what it shows")
			if reported != (c.check.Verdict != record.VerdictPass) {
				t.Errorf("%s, strict %v: reported %v", name, strict, reported)
			}
		}
	}
}

// If a leak is found before the body of a spec runs, the suite fails, unless
// the leak may be older than the suite. Deaths within a failing spec are
// reported as well.
func TestLeaksOlderThanCheck(t *testing.T) {
	with := func(device string, pid int, older bool) record.Check {
		p := record.CheckedProcess{Process: "com.shop", PID: pid, Verdict: record.VerdictPass}
		if older {
			p.Older = []record.CheckedLeak{{DumpLeak: dumpLeak("Old"), New: 1}}
		}
		return record.Check{
			Name: "spec", Type: record.CheckSpec, Device: device, Verdict: record.VerdictPass,
			Outcome: record.OutcomePassed, Processes: []record.CheckedProcess{p},
		}
	}
	known := with("S1", 1, true)
	known.Processes[0].Older[0].Known = "SHOP-1"
	for name, c := range map[string]struct {
		checks   []record.Check
		failures int
	}{
		"first check of a device":       {[]record.Check{with("S1", 1, true)}, 0},
		"second check of a device":      {[]record.Check{with("S1", 1, false), with("S1", 1, true)}, 1},
		"both checks":                   {[]record.Check{with("S1", 1, true), with("S1", 1, true)}, 1},
		"first check of another device": {[]record.Check{with("S1", 1, false), with("S2", 1, true)}, 0},
		"after a restart":               {[]record.Check{with("S1", 1, false), with("S1", 2, true)}, 1},
		"known":                         {[]record.Check{with("S1", 1, false), known}, 0},
	} {
		v := judged(record.Run{Processes: []record.Process{{Process: "com.shop"}}, Checks: c.checks}, false)
		if len(v.Failures) != c.failures {
			t.Errorf("%s: %q", name, v.Failures)
		}
	}
	crash := with("S1", 1, false)
	crash.Verdict, crash.Outcome, crash.Text = record.VerdictLeak, record.OutcomeFailed, "leaks"
	crash.Processes[0].Deaths = []record.Death{
		{PID: 1, Reason: "crash", Text: "boom"}, {PID: 1, Reason: "kill", Text: "stopped"},
	}
	v := judged(record.Run{Processes: []record.Process{{Process: "com.shop"}}, Checks: []record.Check{crash}}, false)
	if notes := strings.Join(v.Notes, "\n"); len(v.Failures) != 1 ||
		!strings.Contains(notes, "spec: com.shop, pid 1, ended: crash: boom") || strings.Contains(notes, "stopped") {
		t.Errorf("%q, %q", v.Failures, notes)
	}
}
