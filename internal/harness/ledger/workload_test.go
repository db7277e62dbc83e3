package ledger

import (
	"testing"

	"github.com/leakgate/leakgate/reporters/record"
)

// These tests check when the last workload of a device ended, according to the
// lines of the run.
func TestWorkloadEnded(t *testing.T) {
	beside := &record.Workload{Kind: "monkey"}
	for name, c := range map[string]struct {
		planned bool
		lines   func(*rounds)
		want    float64
	}{
		"no workload event": {false, func(r *rounds) {}, -1},
		"workload running":  {false, func(r *rounds) { r.device("workload_begin") }, -1},
		"workload ended": {
			true, func(r *rounds) { r.device("workload_begin"); r.grow(10, shop); r.device("workload_end") }, 300,
		},
		"second workload after the first": {
			false, func(r *rounds) { r.device("workload_begin"); r.device("workload_end"); r.device("workload_begin") },
			-1,
		},
		"second workload still running": {
			false, func(r *rounds) { r.device("workload_begin"); r.device("workload_begin"); r.device("workload_end") },
			-1,
		},
		"end without a begin":                  {false, func(r *rounds) { r.device("workload_end") }, -1},
		"output of monkey":                     {false, func(r *rounds) { r.device("workload") }, -1},
		"additional workload, earlier version": {false, func(r *rounds) { r.grow(10, shop); r.ended(beside) }, 300},
		"two additional workloads, earlier version": {
			false, func(r *rounds) { r.ended(beside); r.grow(10, shop); r.ended(beside) }, 300,
		},
		"additional to a planned workload, earlier version": {true, func(r *rounds) { r.ended(beside) }, -1},
	} {
		r := newRounds(t)
		if c.planned {
			r.of.header.Plan = &record.Plan{Workload: &record.PlannedWorkload{Kind: "command"}}
		}
		c.lines(r)
		r.grow(2, shop)
		if at := r.workloadEnded(); at != nil {
			t.Errorf("%s: the workload ended at %.0f s, although the run ended soon after", name, *at)
		}
		r.grow(10, shop)
		got := -1.0
		if at := r.of.Run().Devices[0].WorkloadEnded; at != nil {
			got = *at
		}
		if got != c.want {
			t.Errorf("%s: the workload ended at %.0f s, want %.0f s", name, got, c.want)
		}
	}
}

// ended adds the end of an additional workload, as earlier versions recorded
// it.
func (r *rounds) ended(w *record.Workload) {
	r.AddEvent(record.Event{Event: "workload", T: r.Seconds(r.up), Up: r.up.Seconds(), Workload: w})
}

// A window includes a workload that is running when the window opens, but not
// one that has already ended.
func TestWorkloadOfAWindow(t *testing.T) {
	r := newRounds(t)
	open := func(n int) {
		r.AddEvent(record.Event{Event: "window", Window: n, T: r.Seconds(r.up), Up: r.up.Seconds()})
	}
	r.device("workload_begin")
	open(1)
	r.grow(10, shop)
	r.device("workload_end")
	open(2)
	r.grow(10, shop)
	if at := r.windows.open[0].part.workloadEnded(); at == nil || *at != 300 {
		t.Errorf("got end of the workload at %v in the first window, want 300 s", at)
	}
	if at := r.windows.open[1].part.workloadEnded(); at != nil {
		t.Errorf("got end of the workload at %v s in the second window, want none", *at)
	}
}
