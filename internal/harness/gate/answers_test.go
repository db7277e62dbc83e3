package gate

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/harness/check"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

// Incomplete evidence is not a pass, even if checks have produced a verdict.
func TestUndecidedIsNotAPass(t *testing.T) {
	head := observed(9)
	head.Processes[0].Heap, head.Processes[0].Checked = Timeline{Exposure: []float64{1}, Settled: true}, true
	if c := judge([]Observation{observed(0)}, head); c.ExitCode != 0 {
		t.Errorf("%d: %s", c.ExitCode, c.Text)
	}
	head.Processes[0].Undecided = "1 of 2 leaks could be read"
	c := judge([]Observation{observed(0)}, head)
	if c.Verdict != comparison.Neutral || c.ExitCode != 5 || !strings.Contains(c.Text, "1 of 2 leaks could be read") {
		t.Errorf("%s %d: %s", c.Verdict, c.ExitCode, c.Text)
	}
}

// Growth since a pinned release fails a run of the base branch; on any other
// branch, it is only reported.
func TestCreepOfABranch(t *testing.T) {
	list, now := leak("k", "ListScreen", 100*kB, 3, 6, 9, 12), leak("k", "ListScreen", 100*kB, 6, 12, 18, 24)
	for branch, want := range map[string]int{"main": 1, "": 1, "wish": 0} {
		c := judge(runs(5, now), observed(9, now), func(in *Input) {
			in.Pinned, in.PinnedName, in.Head.Branch = runs(3, list), "4.1", branch
		})
		if c.ExitCode != want || want == 1 && c.Text != "1 leak worse than in release 4.1" {
			t.Errorf("%q: %d %s", branch, c.ExitCode, c.Text)
		}
	}
}

// The sentence names what fails; for a limit, it also contains the number that
// exceeds the limit.
func TestWordsOfReasons(t *testing.T) {
	expired := check.Exception{Key: "12345678", Reason: "r", Owner: "o", Until: day.AddDate(0, 0, -1)}
	c := judge(runs(3), observed(9), func(in *Input) { in.Accepted = []check.Exception{expired} })
	if c.Text != "1 expired acceptance" {
		t.Error(c.Text)
	}
	list := leak("k", "A", 100*kB, 2, 4, 6, 8)
	c = judge(runs(3, list), observed(9, list), ruled(t, RulePerLoop, "bytes < 50KB"))
	if len(c.Reasons) != 1 || !strings.HasSuffix(c.Reasons[0].Text, "; 200.0 kB per loop") {
		t.Errorf("%+v", c.Reasons)
	}
}

// Add returns whether the run is new, was already there, or is older than the
// runs of a full baseline.
func TestAdded(t *testing.T) {
	b := filled(t, 10, 1)
	for _, c := range []struct {
		n      int
		window int
		want   Added
	}{{20, Window, Appended}, {20, Window, Replaced}, {-5, Window, TooOld}} {
		if got := b.Add(observed(c.n), c.window); got != c.want {
			t.Errorf("run %d: %d, want %d", c.n, got, c.want)
		}
	}
}
