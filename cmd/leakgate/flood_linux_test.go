//go:build realtime && e2e

package main

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/stall"
	"github.com/leakgate/leakgate/reporters/record"
)

// A workload that prints marks as fast as it can wastes no disk space or CPU
// time, and no samples are lost.
func TestFloodOfMarks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	phone := program(t, ctx, nil, "demo", "--serve", "--speed", "1")
	out, err := phone.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := phone.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = phone.Process.Kill()
		_ = phone.Wait()
	}()
	lines := bufio.NewScanner(out)
	var port []string
	for port == nil && lines.Scan() {
		port = regexp.MustCompile(`ANDROID_ADB_SERVER_PORT=(\d+)`).FindStringSubmatch(lines.Text())
	}
	if port == nil {
		t.Fatal("the demo did not print its port")
	}
	dir := filepath.Join(t.TempDir(), "run")
	config := write(t, `version: 1
app: { package: com.shop, processes: [com.shop] }
workload: { command: ["yes", "leakgate:mark x"] }
duration: 1m
sample: { normal: 1s }
allow_unjudged: true
`)
	stalls := stall.Measure(t)
	cmd := program(t, ctx, []string{"ANDROID_ADB_SERVER_PORT=" + port[1]}, "run", config, "--out", dir)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	// The limit on CPU time also covers the workload, which mostly waits.
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	info, err := os.Stat(filepath.Join(dir, record.SamplesName))
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	x := r.Processes[0]
	t.Logf("%v of CPU time, %d bytes, %d samples, %d gaps, %d missed, %d marks, %d skipped; the machine stalled for %v",
		used,
		info.Size(), x.Samples, x.Gaps, x.Missed, r.Devices[0].Marks, r.Devices[0].MarksSkipped, stalls.Total())
	if used > 15*time.Second || info.Size() > 1<<20 || r.Devices[0].MarksSkipped < 1_000_000 {
		t.Errorf("used %v of CPU time and %d bytes, want at most 15s and 1 MiB; skipped %d marks, want at least 10^6",
			used, info.Size(), r.Devices[0].MarksSkipped)
	}
	if x.Gaps > 1 && stalls.Total() < 5*time.Second {
		t.Errorf("%d gaps", x.Gaps)
	}
}
