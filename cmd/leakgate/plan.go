package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/reporters"
)

// runFlags are what run, watch and demo have in common.
type runFlags struct {
	out    string
	asJSON bool
	strict bool
}

func (f *runFlags) declare(fs *flag.FlagSet) {
	fs.StringVar(&f.out, "out", "", "`DIR` for the run; without it a new one below leakgate-runs")
	fs.BoolVar(&f.asJSON, "json", false, "print run.json on stdout and nothing else there")
	fs.BoolVar(&f.strict, "strict", false, "exit 5 where the evidence is not enough to judge")
}

// plan is a run before it begins.
type plan struct {
	ctx     context.Context
	console console
	client  *adb.Client
	options monitor.Options
}

// carryOut prepares a run and carries it out: signals, directory, screen, verdict.
func (f *runFlags) carryOut(c console, verb string, prepare func(*plan) error) (reporters.Run, int) {
	ctx, hurry, stop := interruptible(c)
	defer stop()
	p := &plan{ctx: ctx, console: c}
	p.options = monitor.Options{Strict: f.strict, Tool: "leakgate " + version(), Hurry: hurry}
	err := prepare(p)
	if err != nil {
		return reporters.Run{}, f.refused(c, verb, ctx, err)
	}
	p.options.Dir = f.out
	if f.out == "" {
		p.options.Dir = filepath.Join("leakgate-runs", time.Now().UTC().Format("20060102T150405.000Z")+"-"+verb)
	}
	return f.perform(p, verb)
}

// refused tells why a run cannot begin.
func (f *runFlags) refused(c console, verb string, ctx context.Context, err error) int {
	if ctx.Err() != nil {
		fmt.Fprintf(c.err, "leakgate %s: interrupted before the run began\n", verb)
		return monitor.ExitInterrupted
	}
	fmt.Fprintf(c.err, "leakgate %s: %v\n", verb, err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return monitor.ExitNoDevice
}

// usageError is an error that the user mends by writing something else.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func (f *runFlags) perform(p *plan, verb string) (reporters.Run, int) {
	screen := newScreen(p.console.err, p.options)
	p.options.Observer = screen
	fmt.Fprintf(p.console.err, "leakgate %s: writing to %s\n", verb, p.options.Dir)
	run, err := monitor.Run(p.ctx, p.options)
	screen.close()
	if err != nil {
		fmt.Fprintf(p.console.err, "leakgate %s: %v\n", verb, err)
		if run.Schema == "" {
			return run, exitUsage
		}
	}
	if terr := f.tell(p.console, run); terr != nil {
		fmt.Fprintf(p.console.err, "leakgate %s: print the verdict: %v\n", verb, terr)
		err = terr
	}
	if err != nil && run.ExitCode == 0 {
		return run, exitUsage
	}
	return run, run.ExitCode
}

func (f *runFlags) tell(c console, run reporters.Run) error {
	if f.asJSON {
		enc := json.NewEncoder(c.out)
		enc.SetIndent("", "  ")
		return enc.Encode(run)
	}
	return reporters.WriteText(c.out, run)
}

// lastMoment is the real time between the second Ctrl-C and the end: enough to
// end what runs on the device and on the host, not to wait for it.
const lastMoment = 2 * time.Second

// interruptible gives a context that the first Ctrl-C ends, so that the run is
// finished cleanly. The second closes hurry and ends the program soon, finished
// or not.
func interruptible(c console) (ctx context.Context, hurry <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals, done, now := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			case s := <-signals:
				switch n {
				case 1:
					fmt.Fprintf(c.err, "\nleakgate: %v; finishing the run, once more to stop now\n", s)
					cancel(fmt.Errorf("interrupted by %v", s))
				case 2:
					close(now)
					time.AfterFunc(lastMoment, func() {
						fmt.Fprintln(c.err, "leakgate: stopped; samples.ndjson has every sample, run.json is not written")
						os.Exit(monitor.ExitInterrupted)
					})
				}
			}
		}
	}()
	return ctx, now, func() { signal.Stop(signals); close(done); cancel(nil) }
}

// maxStream bounds what one command may print, in bytes. A workload may talk all
// night, and its log keeps only the beginning; every other reader has its own bound.
const maxStream = 1 << 40

// connect makes the adb client of the plan, once.
func (p *plan) connect() error {
	if p.client != nil {
		return nil
	}
	client, err := adb.NewClient(adb.Options{MaxStream: maxStream, Getenv: func(name string) string {
		value, _ := p.console.getenv(name)
		return value
	}})
	if err != nil {
		return usageError{err}
	}
	p.client = client
	return nil
}

// selectDevice takes one device: by its serial, or the only one.
func (p *plan) selectDevice(serial string) (monitor.Device, error) {
	if err := p.connect(); err != nil {
		return monitor.Device{}, err
	}
	dev, err := p.client.Select(p.ctx, serial)
	if err != nil {
		return monitor.Device{}, err
	}
	facts, err := capture.ReadFacts(p.ctx, dev)
	return monitor.Device{Device: dev, Facts: facts}, err
}
