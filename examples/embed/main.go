// Command embed watches an app from a Go program, as a test suite or a service would.
// It uses only the public packages of leakgate:
//
//	go run ./examples/embed com.shop      # for two minutes, on the attached phone
//	go run ./examples/embed shop.hprof    # what leaks in a heap dump
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: embed PROCESS | embed DUMP.hprof")
		os.Exit(2)
	}
	show := watch
	if strings.HasSuffix(os.Args[1], ".hprof") {
		show = analyze
	}
	if err := show(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

// watch runs monkey on an app for two minutes and prints the verdicts.
func watch(ctx context.Context, process string) error {
	device, err := connect(ctx)
	if err != nil {
		return err
	}
	pattern, err := capture.ParsePattern(process)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "leakgate-")
	if err != nil {
		return err
	}
	policy := detector.DefaultPolicy()
	policy.NormalInterval = 10 * time.Second
	run, err := monitor.Run(ctx, monitor.Options{
		Devices:  []monitor.Device{device},
		Patterns: []capture.Pattern{pattern},
		Policy:   policy,
		Workload: monitor.Monkey{Package: process, Throttle: 300 * time.Millisecond},
		Duration: 2 * time.Minute,
		Dir:      dir,
		Respond:  &monitor.Response{Dump: monitor.OnLeak, Keep: monitor.Stripped, Cooldown: policy.Cooldown},
		Observer: printer{},
	})
	if err != nil {
		return err
	}
	for _, p := range run.Processes {
		if p.Gate == detector.Leak {
			fmt.Printf("%s leaks %s memory\n", p.Process, p.Kind)
		}
	}
	fmt.Println("the record is in", dir)
	return reporters.WriteRun(os.Stdout, run)
}

// connect describes the one phone that adb knows, or the one in ANDROID_SERIAL.
func connect(ctx context.Context) (monitor.Device, error) {
	client, err := adb.NewClient(adb.Options{})
	if err != nil {
		return monitor.Device{}, err
	}
	device, err := client.Select(ctx, "")
	if err != nil {
		return monitor.Device{}, err
	}
	facts, err := capture.ReadFacts(ctx, device)
	return monitor.Device{Device: device, Facts: facts}, err
}

// printer prints events while a run lasts.
type printer struct{}

func (printer) Happened(e record.Event)              { fmt.Println(e.Event, e.Process, e.Text) }
func (printer) Changed(string, func() []monitor.Row) {}

// analyze prints what leaks in a heap dump.
func analyze(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	report, err := analysis.Analyze(ctx, file, info.Size(), analysis.Options{Top: 10})
	if err != nil {
		return fmt.Errorf("analyze %s: %w", filepath.Base(path), err)
	}
	return reporters.WriteReport(os.Stdout, report, false)
}
