//go:build unix && realtime

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/stall"
	"github.com/leakgate/leakgate/reporters/record"
)

// A demo killed at any time leaves a directory that can be read and finished,
// with all data up to the last interval. With LEAKGATE_E2E=long, 50 kills are
// spread over the whole demo; without it, 12 kills occur in the first seconds.
func TestKilledAtAnyTime(t *testing.T) {
	t.Parallel()
	moments, span := 12, 3*time.Second
	if os.Getenv("LEAKGATE_E2E") == "long" {
		moments, span = 50, 16*time.Second
	}
	r := rand.New(rand.NewPCG(4, 2))
	var wg sync.WaitGroup
	turn := make(chan struct{}, 4)
	for range moments {
		after := time.Duration(r.Int64N(int64(span)))
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			killedAfter(t, after)
		})
	}
	wg.Wait()
}

func killedAfter(t *testing.T, after time.Duration) {
	out := filepath.Join(t.TempDir(), "run")
	ctx, stalls := minute(t), stall.Measure(t)
	cmd := program(t, ctx, nil, "demo", "--out", out)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	began := time.Now()
	time.Sleep(after)
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	lived := time.Since(began)
	_ = cmd.Wait() // the demo was killed, or ended before the kill
	if _, err := os.Stat(filepath.Join(out, record.SamplesName)); errors.Is(err, fs.ErrNotExist) {
		if lived > 2*time.Second {
			t.Errorf("no run directory after %v: %s", lived, text.String())
		}
		return
	}
	report := program(t, ctx, nil, "report", out, "--json")
	answer, err := report.Output()
	if err != nil {
		t.Errorf("killed after %v: report: %v", lived, err)
		return
	}
	checkFinished(t, out, answer, text.String(), stalls.Total())
}

func checkFinished(t *testing.T, out string, answer []byte, told string, stalled time.Duration) {
	var run record.Run
	if err := json.Unmarshal(answer, &run); err != nil {
		t.Error(err)
		return
	}
	onDisk, err := record.ReadRun(out)
	if err != nil || onDisk.Stopped != run.Stopped {
		t.Errorf("run.json: %+v, %v", onDisk, err)
	}
	if run.Stopped != "killed" && run.Stopped != "duration" {
		t.Errorf("got stop reason %q, want killed or duration", run.Stopped)
	}
	left, err := filepath.Glob(filepath.Join(out, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files remain: %v, %v", left, err)
	}
	// Everything that was shown or written before the kill still exists.
	written, newest := linesOf(t, out)
	for _, p := range run.Processes {
		if bytes.Contains([]byte(told), []byte(p.Process+" found")) && p.PID == 0 {
			t.Errorf("%s was found but is not in the record: %+v", p.Process, p)
		}
		whole, most := run.Devices[0].Duration, 5*60+stalled.Seconds()*run.Devices[0].TimeScale
		if p.Samples != written[p.Process] || p.Samples > 0 && whole-newest[p.Process] > most {
			t.Errorf("%s has %d of %d samples, the last one at %v s of %v s", p.Process, p.Samples, written[p.Process],
				newest[p.Process], whole)
		}
	}
}

// linesOf returns, by process, the number of fast-channel samples that a run
// has on disk, and the t_s of the last one.
func linesOf(t *testing.T, dir string) (count map[string]int, last map[string]float64) {
	count, last = map[string]int{}, map[string]float64{}
	f, err := os.Open(filepath.Join(dir, record.SamplesName))
	if err != nil {
		t.Error(err)
		return count, last
	}
	defer f.Close()
	if _, err := record.ReadSamples(f, record.Lines{Sample: func(s record.Sample) error {
		if s.Breakdown == nil && s.PSS != nil {
			count[s.Process]++
			last[s.Process] = s.T
		}
		return nil
	}}); err != nil {
		t.Error(err)
	}
	return count, last
}
