//go:build e2e

package response_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/reporters/record"
)

// bars holds the longest times that section 6.3 of the article permits, in
// seconds.
var bars = []struct {
	kind, process string
	seconds       float64
}{
	{"java", "java", 90}, {"native", "native", 5}, {"thread", "thread", 2}, {"gpu", "native", 20},
	{"unknown", "java", 100},
}

// warming is the wall-clock time for which the processes leak before they are
// examined: at 72,000 MB/h the leak is then 100 MB.
const warming = 5 * time.Second

// BenchmarkResponse measures the time from an order until all artifacts are on
// the host, and how long the analysis takes. It compares both times with those
// in the article. It uses real Java processes behind the real adb server.
func BenchmarkResponse(b *testing.B) {
	hostdevicetest.RequireJava(b)
	r := hostdevicetest.Start(b, hostdevice.Options{})
	r.Must(b, "shell", "am start -n "+r.Package()+"/.All --es mb_per_h 72000 --es for_s "+
		fmt.Sprint(int(warming.Seconds())))
	client, err := adb.NewClient(adb.Options{Addr: r.Server.Addr, NoStart: true})
	if err != nil {
		b.Fatal(err)
	}
	dev, err := client.Select(b.Context(), r.Serial)
	if err != nil {
		b.Fatal(err)
	}
	facts, err := capture.ReadFacts(b.Context(), dev)
	if err != nil {
		b.Fatal(err)
	}
	time.Sleep(warming)
	for _, bar := range bars {
		b.Run(bar.kind, func(b *testing.B) {
			name := capture.Pattern(r.Package() + ":" + bar.process)
			found, err := capture.FindProcesses(b.Context(), dev, []capture.Pattern{name})
			if err != nil || len(found.Processes) != 1 {
				b.Fatal(found, err)
			}
			probe, err := capture.NewLevels(dev, facts).Probe(b.Context(), found.Processes[0])
			if err != nil {
				b.Fatal(err)
			}
			responder := response.New(b.TempDir(), response.Options{Keep: response.Nothing})
			var collected, analyzed float64
			for b.Loop() {
				c, err := responder.Collect(b.Context(), dev, facts, response.Order{
					Process: found.Processes[0], Level: probe.Level, Recipe: bar.kind, Trigger: record.TriggerDemand,
				})
				if err == nil {
					err = responder.Analyze(b.Context(), c)
				}
				if err != nil {
					b.Fatal(err)
				}
				collected += c.Record.Duration
				analyzed += c.Record.Analysis
			}
			n := float64(b.N)
			b.ReportMetric(collected/n, "s/collected")
			b.ReportMetric(analyzed/n, "s/analyzed")
			b.ReportMetric(bar.seconds, "s/article")
		})
	}
}
