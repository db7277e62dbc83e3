package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/replay"
	"github.com/leakgate/leakgate/reporters/record"
)

var (
	agreementRuns = flag.Int("agreement.runs", 12, "number of simulated runs to compare with their report and replay")
	agreementSeed = flag.Uint64("agreement.seed", 1, "seed of the first simulated run")
)

// A run, its report and its replay agree, whatever happens to the phone: random
// leaks, caches, crashes and faults, under each policy. perform compares the
// run with its report. With -agreement.runs 200 the test takes minutes.
func TestRunReportAndReplayAgree(t *testing.T) {
	gates, runs := map[detector.Gate]int{}, *agreementRuns
	if racing {
		runs = min(runs, 2)
	}
	for i := range runs {
		seed := *agreementSeed + uint64(i)
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 11))
			o, faults := randomRun(t, r)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { faults(ctx) })
			run := perform(t, t.Context(), o)
			cancel()
			wg.Wait()
			again, err := replay.Run(t.Context(), []string{o.Dir}, replay.Options{Policy: o.Policy})
			if err != nil || len(again.Processes) != len(run.Processes) {
				t.Fatalf("seed %d: %d of %d processes, %v", seed, len(again.Processes), len(run.Processes), err)
			}
			for k, want := range run.Processes {
				gates[want.Gate]++
				said, err := json.Marshal(want)
				got, gerr := json.Marshal(onTheAxisOf(want, run, again.Processes[k].Process))
				if err != nil || gerr != nil || !bytes.Equal(got, said) {
					t.Errorf("seed %d: replayed\n%s\nrun\n%s", seed, got, said)
				}
			}
			if t.Failed() {
				t.Fatalf("to repeat this run: -agreement.seed %d -agreement.runs 1", seed)
			}
		})
	}
	t.Logf("%d runs from seed %d: %v", runs, *agreementSeed, gates)
	if runs >= 12 && len(gates) < 3 {
		t.Errorf("the runs have too few different verdicts: %v", gates)
	}
}

// randomRun prepares a run of up to an hour, and the faults of its phone.
func randomRun(t *testing.T, r *rand.Rand) (Options, func(context.Context)) {
	t.Helper()
	opt := rooted()
	opt.Seed = r.Uint64()
	if r.IntN(4) == 0 {
		opt.Root, opt.BuildType = false, "user"
	}
	var specs []androidsim.ProcessSpec
	for i := range 1 + r.IntN(2) {
		spec := healthy(fmt.Sprintf("com.shop:p%d", i))
		switch r.IntN(5) {
		case 0, 1:
			kinds := []androidsim.Kind{androidsim.Java, androidsim.Native, androidsim.GPU, androidsim.Thread}
			spec.Models = append(spec.Models, androidsim.Leak(kinds[r.IntN(len(kinds))], 100+float64(r.IntN(300)), 0))
		case 2:
			spec.Models = append(spec.Models, androidsim.CacheFill(float64(100+r.IntN(200)), 20*time.Minute))
		case 3:
			spec.Models = append(spec.Models,
				androidsim.Crash(time.Duration(10+r.IntN(20))*time.Minute, time.Duration(5+r.IntN(60))*time.Second))
		}
		specs = append(specs, spec)
	}
	p := phone("S1", opt, specs...)
	o := options(t, p)
	o.Sampling = defaultBudget
	o.DeviceTimeout, o.Headroom = 20*time.Minute, DefaultSampling.Headroom
	o.Duration = time.Duration(25+r.IntN(35)) * time.Minute
	if r.IntN(2) == 0 {
		o.Policy = detector.RobustPolicy()
	}
	if r.IntN(2) == 0 {
		return o, func(context.Context) {}
	}
	return o, func(ctx context.Context) { torture(ctx, r, p) }
}

// onTheAxisOf shifts a replayed process to the time axis of its run: times in a
// replay are relative to the first sample, even if the process restarted.
func onTheAxisOf(want record.Process, r result, got record.Process) record.Process {
	first := 0.0
	for _, s := range r.samples {
		judged := s.Breakdown == nil && (s.PSS != nil || s.Source == "status" && s.RSSAnon != nil) ||
			s.Breakdown != nil && want.Source == "dumpsys" && s.Breakdown.TotalPSS != nil
		if judged && s.Device == want.Device && s.Process == want.Process && s.User == want.User {
			first = s.T
			break
		}
	}
	back := func(t float64) float64 { return record.Round(t+first, 3) }
	for i := range got.Transitions {
		got.Transitions[i].T = back(got.Transitions[i].T)
	}
	for i := range got.Jumps {
		got.Jumps[i].T = back(got.Jumps[i].T)
	}
	for _, at := range []*float64{got.FirstSuspicious, got.FirstLeaking} {
		if at != nil {
			*at = back(*at)
		}
	}
	got.Duration, got.Alive = want.Duration, want.Alive
	return got
}
