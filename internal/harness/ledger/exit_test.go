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
	doubt := record.Process{Gate: "inconclusive"}
	dumped := record.Process{Gate: "inconclusive", AtMarks: []record.MarkSeries{{Gate: "inconclusive"}, {Gate: "pass"}}}
	tooFew := record.Process{Gate: "inconclusive", AtMarks: []record.MarkSeries{{Gate: "inconclusive"}}}
	risen := record.Process{Gate: "inconclusive", AtMarks: []record.MarkSeries{{Gate: "inconclusive", Rising: true}, {Gate: "pass"}}}
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
		"clean":                       {record.Run{Processes: list(pass)}, strict, record.ExitClean},
		"disk before all":             {record.Run{Stopped: record.StoppedDisk, Devices: lost, Interrupted: true, Processes: list(leak)}, end, record.ExitUnwritten},
		"interrupted, then leak":      {record.Run{Devices: lost, Interrupted: true, Processes: list(leak), Workload: failed}, strict, record.ExitInterrupted},
		"leak before a lost device":   {record.Run{Devices: lost, Processes: list(leak), Workload: failed}, end, record.ExitLeak},
		"lost before the workload":    {record.Run{Devices: lost, Processes: list(pass), Workload: failed}, strict, record.ExitNoDevice},
		"leak":                        {record.Run{Processes: list(doubt, leak), Workload: failed, MissingEvidence: missing}, strict, record.ExitLeak},
		"no process":                  {record.Run{}, end, record.ExitNoDevice},
		"no process, allowed":         {record.Run{}, both, record.ExitNoDevice},
		"no process, interrupted":     {record.Run{Interrupted: true}, end, record.ExitInterrupted},
		"no process, failed workload": {record.Run{Workload: failed}, end, record.ExitNoDevice},
		"workload":                    {record.Run{Processes: list(doubt), Workload: failed, MissingEvidence: missing}, strict, record.ExitWorkload},
		"one in doubt":                {record.Run{Processes: list(doubt, pass)}, end, record.ExitClean},
		"one in doubt, strict":        {record.Run{Processes: list(doubt, pass)}, strict, record.ExitInconclusive},
		"one in doubt, both":          {record.Run{Processes: list(doubt, pass)}, both, record.ExitInconclusive},
		"nothing judged":              {record.Run{Processes: list(doubt, doubt)}, end, record.ExitInconclusive},
		"nothing judged, allowed":     {record.Run{Processes: list(doubt, doubt)}, allow, record.ExitClean},
		"judged by dumps":             {record.Run{Processes: list(doubt, dumped)}, end, record.ExitClean},
		"judged by dumps, strict":     {record.Run{Processes: list(dumped)}, strict, record.ExitInconclusive},
		"too few dumps":               {record.Run{Processes: list(doubt, tooFew)}, end, record.ExitInconclusive},
		"rising, not proved":          {record.Run{Processes: list(pass, risen)}, end, record.ExitInconclusive},
		"rising, allowed":             {record.Run{Processes: list(pass, risen)}, allow, record.ExitClean},
		"a dump is missing":           {record.Run{Processes: list(pass), MissingEvidence: missing}, end, record.ExitInconclusive},
		"a dump is missing, allowed":  {record.Run{Processes: list(pass), MissingEvidence: missing}, allow, record.ExitClean},
		"was leaking, end":            {record.Run{Processes: list(once)}, end, record.ExitClean},
		"was leaking, live":           {record.Run{Processes: list(once)}, live, record.ExitLeak},
		"leak at the end":             {record.Run{Processes: list(late)}, end, record.ExitLeak},
		"the same, live":              {record.Run{Processes: list(late)}, live, record.ExitLeak},
	} {
		if got := ExitCode(c.run, c.plan); got != c.want {
			t.Errorf("%s: exit %d, want %d", name, got, c.want)
		}
	}
}
