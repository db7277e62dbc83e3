// Command embed watches an app from a Go program, as a test suite or a service
// would. It uses only the public packages of leakgate:
//
//	go run ./examples/embed com.shop      # three loops, on the attached phone
//	go run ./examples/embed shop.hprof    # what leaks in a heap dump
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/fleet"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: embed PROCESS | embed DUMP.hprof")
		os.Exit(2)
	}
	if err := show(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

func show(what string) error {
	ctx, done := signal.NotifyContext(context.Background(), os.Interrupt)
	defer done()
	if strings.HasSuffix(what, ".hprof") {
		return analyze(ctx, what)
	}
	client, err := adb.NewClient(adb.Options{}) // the address of adb's own server
	if err != nil {
		return err
	}
	return watch(ctx, os.Stdout, client, what)
}

// watch watches an app and its :push process for three loops of a scenario,
// requests a dump, and prints the verdicts. The heap is dumped after each loop;
// the dumps prove a leak that grows with the number of loops.
func watch(ctx context.Context, out io.Writer, client *adb.Client, process string) error {
	phones, err := fleet.Open(ctx, fleet.DeviceChoice{Client: client, Single: true})
	if err != nil {
		return err
	}
	defer phones.Close()
	dir := filepath.Join("leakgate-runs", time.Now().UTC().Format("20060102T150405.000Z")+"-embed")
	if err := phones.Hold(ctx, dir, "embed", nil); err != nil {
		return err
	}
	run, err := monitor.Start(ctx, monitor.Options{
		Devices: phones.Devices(), Dir: dir, Policy: detector.DefaultPolicy(),
		Patterns: []capture.Pattern{capture.Pattern(process), capture.Pattern(process + ":push")},
		Respond:  &monitor.Response{Dump: monitor.AtMarks},
	})
	if err != nil {
		return err
	}
	window, err := run.Window("checkout")
	for i := 1; i <= 3 && err == nil; i++ {
		scenario(ctx)
		_, err = run.Mark(ctx, fmt.Sprint("loop ", i)) // every process settles and is dumped
	}
	if err == nil {
		_, err = window.Close()
	}
	if err == nil {
		_, err = run.Diagnose(ctx, "", process, "dump")
	}
	result, werr := run.Stop("three loops completed")
	if result.ExitCode == record.ExitLeak {
		_, _ = fmt.Fprintln(out, "leak found; the record is in", dir)
	}
	return errors.Join(err, werr, reporters.WriteRun(out, result))
}

// scenario is a placeholder for the steps with which a suite exercises the app.
func scenario(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(2 * time.Second):
	}
}

// analyze prints the leaks in a heap dump.
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
