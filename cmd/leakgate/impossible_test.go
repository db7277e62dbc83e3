package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// lyingPhone is a simulated phone with 7.5 GB of memory. lie computes the nth
// reading of the memory of a process.
type lyingPhone struct {
	hostilePhone
	lie   func(n int, kb string) string
	reads int
}

var pssLine = regexp.MustCompile(`(?m)^([0-9]+/smaps_rollup:Pss:\s+)(\S+)( kB)$`)

func (p *lyingPhone) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	var out bytes.Buffer
	exit := p.Phone.Shell(ctx, command, strings.NewReader(""), &out, stderr)
	text := pssLine.ReplaceAllStringFunc(out.String(), func(line string) string {
		p.reads++
		m := pssLine.FindStringSubmatch(line)
		return m[1] + p.lie(p.reads, m[2]) + m[3]
	})
	_, err := io.WriteString(stdout, text)
	return exit, errors.Join(err, ctx.Err())
}

// An impossible value becomes a missing sample, both in a run and in its
// report. An impossible value is never treated as 0 bytes, and never leads to
// the verdict pass.
func TestImpossibleReadings(t *testing.T) {
	from := func(first, every int, value string) func(int, string) string {
		return func(n int, kb string) string {
			if n >= first && (n-first)%every == 0 {
				return value
			}
			return kb
		}
	}
	const never = 1 << 30
	for name, c := range map[string]struct {
		lie  func(int, string) string
		want []detector.Gate
	}{
		"none":                              {from(never, 1, ""), []detector.Gate{detector.Pass}},
		"one petabyte":                      {from(40, never, "1099511627776"), []detector.Gate{detector.Pass}},
		"one value that exceeds the memory": {from(40, never, "7864321"), []detector.Gate{detector.Pass}},
		"2^54 at the end": {
			from(100, 1, "18014398509481984"), []detector.Gate{detector.Inconclusive},
		},
		"18 digits in every other sample": {from(40, 2, "999999999999999999"), []detector.Gate{detector.Inconclusive}},
		"2^53 in every other sample":      {from(1, 2, "9007199254740992"), []detector.Gate{detector.Inconclusive}},
		"not a number":                    {from(40, 2, "NaN"), []detector.Gate{detector.Inconclusive}},
		"negative":                        {from(40, 2, "-5"), []detector.Gate{detector.Inconclusive}},
		"only impossible values":          {from(1, 1, "18014398509481984"), []detector.Gate{detector.Inconclusive}},
	} {
		synctest.Test(t, func(t *testing.T) {
			phone := &lyingPhone{
				lie: c.lie, hostilePhone: hostilePhone{serial: "S1", Phone: androidsim.New(androidsim.Options{
					Root: true,
					Apps: []androidsim.App{
						{
							Package: "com.x",
							Processes: []androidsim.ProcessSpec{
								{Name: "com.x", Models: []androidsim.Model{androidsim.Typical()}},
							},
						},
					},
				})}}
			facts, err := capture.ReadFacts(t.Context(), phone)
			if err != nil || facts.MemTotal != 7680<<20 {
				t.Fatalf("got %d bytes of device memory, want %d: %v", facts.MemTotal, int64(7680)<<20, err)
			}
			dir := filepath.Join(t.TempDir(), "run")
			run, err := monitor.Run(t.Context(), monitor.Options{
				Devices: []monitor.Device{{Device: phone, Facts: facts}}, Patterns: []capture.Pattern{"com.x"},
				Policy: detector.RobustPolicy(),
				Dir:    dir, Duration: 80 * time.Minute,
			})
			if err != nil || len(run.Processes) != 1 {
				t.Fatalf("%s: %v, %d processes", name, err, len(run.Processes))
			}
			p := run.Processes[0]
			if !slices.Contains(c.want, p.Gate) {
				t.Errorf("%s: verdict %s from %d samples, %g s missing: %s, %q", name, p.Gate, p.Samples, p.Missing,
					p.Reason,
					p.Warnings)
			}
			if p.LastMB != nil && (*p.LastMB < 10 || *p.LastMB > 7680) {
				t.Errorf("%s: last value %g MB", name, *p.LastMB)
			}
			if told := strings.Contains(strings.Join(p.Warnings, "\n"), "read "); told != (name != "none") {
				t.Errorf("%s: warnings %q", name, p.Warnings)
			}
			again, warnings, err := ledger.Rebuild(dir)
			if err != nil || len(warnings) > 0 {
				t.Fatalf("%s: %v %v", name, err, warnings)
			}
			if q := again.Processes[0]; q.Gate != p.Gate || q.Samples != p.Samples || q.Reason != p.Reason {
				t.Errorf("%s: verdict %s from %d samples, but %s from %d in the report", name, p.Gate, p.Samples,
					q.Gate,
					q.Samples)
			}
			if code := ledger.ExitCode(run,
				record.Plan{Assert: record.AssertEnd}); (code == record.ExitClean) != (p.Gate == detector.Pass) {
				t.Errorf("%s: exit %d", name, code)
			}
		})
	}
}
