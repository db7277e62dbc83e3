//go:build realtime && e2e

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/stall"
	"github.com/leakgate/leakgate/reporters/record"
)

// personal is a phone whose su waits for a confirmation that never comes.
type personal struct {
	*androidsim.Phone
	asked atomic.Int32
}

func (p *personal) Shell(ctx context.Context, command string, in io.Reader, out, errOut io.Writer) int {
	if strings.Contains(command, "su 0") {
		p.asked.Add(1)
		<-ctx.Done()
		return 1
	}
	return p.Phone.Shell(ctx, command, in, out, errOut)
}

// With a thousand packages every watched process has its first sample within
// two seconds of the start of the program, even if su waits for a confirmation.
func TestFirstSampleOfAThousandPackagesInRealTime(t *testing.T) {
	var apps []androidsim.App
	for i := range 1000 {
		name := fmt.Sprintf("com.shop.p%d", i)
		apps = append(apps,
			androidsim.App{
				Package: name, Debuggable: true,
				Processes: []androidsim.ProcessSpec{{Name: name, Models: []androidsim.Model{androidsim.Typical()}}},
			})
	}
	p := &personal{Phone: androidsim.New(androidsim.Options{Serial: "S1", Seed: 7, Apps: apps})}
	var env []string
	for name, value := range serve(t, p) {
		env = append(env, name+"="+value)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "run")
	stalls := stall.Measure(t)
	cmd := program(t, ctx, env, "watch", "--process", "com.shop.*", "--for", "30s", "--out", dir)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // too short for a verdict
	seen := map[string]bool{}
	for len(seen) < 500 && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		seen = sampledIn(dir)
	}
	took := time.Since(began)
	t.Logf("%d processes have samples after %v; the machine stalled for %v", len(seen), took, stalls.Total())
	if most := 2*time.Second + stalls.Total(); took > most {
		t.Errorf("%d processes have samples after %v, want 500 within %v", len(seen), took, most)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("a run that is too short exited with 0")
	}
	if n := p.asked.Load(); n != 1 {
		t.Errorf("su was called %d times, want 1", n)
	}
}

// sampledIn returns the processes that have a sample in a run in progress.
func sampledIn(dir string) map[string]bool {
	seen := map[string]bool{}
	f, err := os.Open(filepath.Join(dir, record.SamplesName))
	if err != nil {
		return seen
	}
	defer f.Close()
	// The last line may be incomplete.
	_, _ = record.ReadSamples(f, record.Lines{
		Header: func(record.Header) error { return nil },
		Sample: func(s record.Sample) error { seen[s.Process] = true; return nil },
		Event:  func(record.Event) error { return nil },
	})
	return seen
}
