package record_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// ReadSamples reads the measurements of a run. In this example, samples.ndjson
// contains the first lines of a run that was killed.
func ExampleReadSamples() {
	file := strings.NewReader(`{"schema":"leakgate.samples/1","started":"2026-01-02T03:04:05Z","devices":[{"device":"S1","model":"Pixel 8","api":34,"started_up_s":1000,"time_scale":1}],"plan":{"tool":"leakgate","policy":"robust","revision":1,"intervals":{"normal_s":30,"suspicious_s":15,"leaking_s":60},"cooldown_s":1800,"max_gap_s":1800,"assert":"end","strict":false,"processes":["com.shop"],"workload":null}}
{"t_s":0,"up_s":1000,"device":"S1","event":"found","user":0,"process":"com.shop","pid":7,"start":8,"source":"smaps_rollup"}
{"t_s":0.5,"up_s":1000.5,"device":"S1","user":0,"process":"com.shop","pid":7,"start":8,"source":"smaps_rollup","pss_kb":204800,"swap_pss_kb":0}
{"t_s":30.5,"up_s":10`)
	warnings, err := record.ReadSamples(file, record.Lines{
		Header: func(h record.Header) error {
			fmt.Println("policy", h.Plan.Policy, "on", h.Devices[0].Model)
			return nil
		},
		Event: func(e record.Event) error {
			fmt.Println(e.T, e.Event, e.Process)
			return nil
		},
		Sample: func(s record.Sample) error {
			fmt.Println(s.T, s.Process, *s.PSS>>10, "MB")
			return nil
		},
	})
	fmt.Println(warnings, err)
	// Output:
	// policy robust on Pixel 8
	// 0 found com.shop
	// 0.5 com.shop 200 MB
	// [line 4 of samples.ndjson is truncated, skipped] <nil>
}

// Any program can read a run directory. A gate only has to compare the values
// of run.json with the constants of the package.
func ExampleReadRun() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	err = record.WriteRun(dir, record.Run{
		Schema: record.RunSchema, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Stopped: record.StoppedDuration,
		Policy: detector.PolicyRobust,
		Processes: []record.Process{
			{Process: "com.shop", Gate: detector.Leak, Kind: detector.Java, Reason: "memory rises 300 MB/h"},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := record.ReadRun(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range run.Processes {
		if p.Gate == detector.Leak {
			fmt.Printf("%s: %s: %s\n", p.Process, p.Kind, p.Reason)
		}
	}
	// Output:
	// com.shop: java_leak: memory rises 300 MB/h
}
