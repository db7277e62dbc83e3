package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/reporters/record"
)

// ended writes the directory of a run with one process, which did not leak.
func ended(t *testing.T, dir string, started time.Time, change func(*record.Run)) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	run := record.Run{
		Schema: record.RunSchema, Started: started, Patterns: []string{"com.shop"},
		Workload:  &record.Workload{Kind: "command", Digest: "d"},
		Devices:   []record.Device{{Device: "S", Model: "Pixel", API: 34}},
		Processes: []record.Process{{Device: "S", Process: "com.shop", Gate: "pass", TrendGate: "pass"}},
	}
	if change != nil {
		change(&run)
	}
	if err := record.WriteRun(dir, run); err != nil {
		t.Fatal(err)
	}
}

// These are cases in which the gate might return a wrong verdict, or no
// verdict.
func TestGateEdgeCases(t *testing.T) {
	inFolder(t)
	now := time.Now().UTC().Truncate(time.Second)
	ended(t, "a", now.Add(-2*time.Hour), nil)
	ended(t, "b", now.Add(-time.Hour), nil)
	ended(t, "other", now, func(r *record.Run) { r.Workload.Digest = "e" })
	ended(t, "future", now.AddDate(4, 0, 0), nil)
	ended(t, "failed", now, func(r *record.Run) { r.ExitCode, r.Workload.Error = 1, "exit status 3" })
	ended(t, "early", now, func(r *record.Run) { r.Stopped, r.StopReason = record.StoppedFinished, "gate: 1 new leak" })
	ended(t, "judged", now, nil)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"gate --run a --run a", 2, "both directories hold the same run"},
		{"gate --run a --run other", 2, "cannot confirm each other: different workload"},
		{"gate --run a --run b", 0, "no leak grows"},
		{"gate --run a --out b", 2, "the directory of another run"},
		{"gate --run failed", 0, "the workload failed: exit status 3"},
		{"gate --run early", 0, "the run ended early"},
		{"baseline update --run future", 2, "in the future"},
		{"baseline update --run failed", 5, "the workload of the run failed"},
		{"gate --run judged --baseline file:b.json", 0, "no base run to compare with yet"},
		{"baseline update --run judged", 2, "judged with the baseline in file:b.json, not file:leak-baseline.json"},
		{"baseline update --run judged --baseline file:c.json", 0, "the run added"},
		{"baseline update --run a", 0, "the run added"},
		{"baseline update --run a", 0, "replaced its earlier copy"},
		{"gate --run a", 0, "the baseline has only this run"},
		{"gate --run other", 0, "different workload"},
	} {
		code, out, errOut := typed(t, nil, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out+errOut, c.want) {
			t.Errorf("%s: exit %d, want %d with %q\n%s%s", c.args, code, c.code, c.want, out, errOut)
		}
	}
}

// If the dumps were compared in the wrong order, growth would look like
// shrinkage.
func TestGateDumpsInOrder(t *testing.T) {
	dir := inFolder(t)
	process, files, _ := strings.Cut(looped(t, dir, "x", true, map[string]int{"CartActivity": 1}), "=")
	list := strings.Split(files, ",")
	code, out, errOut := typed(t, nil, "gate", "--dump", process+"="+list[2]+","+list[1]+","+list[0])
	if code != 2 || !strings.Contains(errOut, "in the order of the loops") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

// If no run matches, the message does not suggest that the address is wrong.
func TestGateWithoutMatchingBase(t *testing.T) {
	inFolder(t)
	now := time.Now().UTC().Truncate(time.Second)
	ended(t, "a", now.Add(-time.Hour), nil)
	ended(t, "other", now, func(r *record.Run) { r.Workload.Digest = "e" })
	if code, _, errOut := typed(t, nil, "baseline", "update", "--run", "a"); code != 0 {
		t.Fatal(errOut)
	}
	code, out, _ := typed(t, nil, "gate", "--run", "other", "--json")
	var c comparison.Comparison
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != 0 || c.Verdict != comparison.Neutral ||
		c.Base.Incomparable != "different workload" || c.Base.Others != 1 {
		t.Errorf("exit %d, %v\n%s", code, err, out)
	}
	if code, out, errOut := typed(t, nil, "gate", "--run", "other", "--strict"); code != 5 {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}
