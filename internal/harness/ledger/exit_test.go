package ledger

import (
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

func TestExitCodeOrder(t *testing.T) {
	late := record.Process{Gate: "leak", Worst: detector.Normal}
	leak := record.Process{Gate: "leak", Worst: detector.Leaking}
	once := record.Process{Gate: "pass", Worst: detector.Leaking}
	doubt := record.Process{Gate: "inconclusive"}
	failed := &record.Workload{Error: "exit 1"}
	lost := []record.Device{{Error: "gone"}}
	for name, c := range map[string]struct {
		run    record.Run
		assert record.Assert
		strict bool
		want   int
	}{
		"clean":             {record.Run{Processes: []record.Process{{Gate: "pass"}}}, record.AssertEnd, true, record.ExitClean},
		"lost before all":   {record.Run{Devices: lost, Interrupted: true, Processes: []record.Process{leak}, Workload: failed}, record.AssertEnd, true, record.ExitNoDevice},
		"interrupted":       {record.Run{Interrupted: true, Processes: []record.Process{leak}, Workload: failed}, record.AssertEnd, true, record.ExitInterrupted},
		"leak":              {record.Run{Processes: []record.Process{doubt, leak}, Workload: failed}, record.AssertEnd, true, record.ExitLeak},
		"workload":          {record.Run{Processes: []record.Process{doubt}, Workload: failed}, record.AssertEnd, true, record.ExitWorkload},
		"doubt, strict":     {record.Run{Processes: []record.Process{doubt}}, record.AssertEnd, true, record.ExitInconclusive},
		"doubt":             {record.Run{Processes: []record.Process{doubt}}, record.AssertEnd, false, record.ExitClean},
		"was leaking, end":  {record.Run{Processes: []record.Process{once}}, record.AssertEnd, false, record.ExitClean},
		"was leaking, live": {record.Run{Processes: []record.Process{once}}, record.AssertLive, false, record.ExitLeak},
		"leak at the end":   {record.Run{Processes: []record.Process{late}}, record.AssertEnd, false, record.ExitLeak},
		"the same, live":    {record.Run{Processes: []record.Process{late}}, record.AssertLive, false, record.ExitLeak},
	} {
		if got := ExitCode(c.run, c.assert, c.strict); got != c.want {
			t.Errorf("%s: exit %d, want %d", name, got, c.want)
		}
	}
}
