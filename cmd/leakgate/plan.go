package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/lease"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// runFlags are what run, watch and demo have in common.
type runFlags struct {
	out      string
	asJSON   bool
	strict   bool
	wait     bool
	patience span
	// begun is the directory of a run that has begun.
	begun string
}

func (f *runFlags) declare(fs *flag.FlagSet) {
	fs.StringVar(&f.out, "out", "", "`DIR` for the run; without it a new one below leakgate-runs")
	fs.BoolVar(&f.asJSON, "json", false, "print run.json on stdout and nothing else there")
	fs.BoolVar(&f.strict, "strict", false, "exit 5 where the evidence is not enough to judge")
	fs.BoolVar(&f.wait, "wait", false, "wait until no other run has the device or the directory")
	f.patience = span(monitor.DefaultPatience)
	fs.Var(&f.patience, "patience", "`TIME` that a device may be away before its part of the run ends")
}

// plan is a run before it begins.
type plan struct {
	ctx     context.Context
	console console
	client  *adb.Client
	options monitor.Options
}

// carryOut prepares a run and carries it out: signals, directory, screen, verdict.
func (f *runFlags) carryOut(c console, verb string, prepare func(*plan) error) (record.Run, int) {
	ctx, hurry, stop := interruptible(c)
	defer stop()
	p := &plan{ctx: ctx, console: c}
	p.options = monitor.Options{
		Strict: f.strict, Tool: "leakgate " + version(), Hurry: hurry,
		Patience: time.Duration(f.patience), Budget: monitor.DefaultBudget,
		Headroom: monitor.DefaultHeadroom,
	}
	err := prepare(p)
	if err != nil {
		return record.Run{}, f.refused(c, verb, ctx, err)
	}
	p.options.Dir = f.folder(verb)
	held, err := f.hold(p, verb)
	if err != nil {
		return record.Run{}, f.refused(c, verb, ctx, err)
	}
	run, code := f.perform(p, verb)
	if err := held.Release(); err != nil {
		fmt.Fprintf(c.err, "leakgate %s: %v\n", verb, err)
	}
	return run, code
}

// placed tells last where the run is, below which its artifacts are named, and gives the exit code.
func (f *runFlags) placed(c console, verb string, code int) int {
	if f.begun != "" {
		fmt.Fprintf(c.err, "leakgate %s: the run is in %s\n", verb, text.Printable(f.begun))
	}
	return code
}

// folder is the directory of the run.
func (f *runFlags) folder(verb string) string {
	if f.out != "" {
		return f.out
	}
	return filepath.Join("leakgate-runs", time.Now().UTC().Format("20060102T150405.000Z")+"-"+verb)
}

// elsewhere says what to do where a run cannot begin because its directory cannot be made.
func (f *runFlags) elsewhere(err error) error {
	if f.out == "" {
		return fmt.Errorf("%w; name a directory that can be written with --out DIR", err)
	}
	return fmt.Errorf("%w; choose another --out, a directory that can be written", err)
}

// hold takes the directory and the devices of the plan, so that no other run uses
// them meanwhile.
func (f *runFlags) hold(p *plan, verb string) (*lease.Lease, error) {
	dir, err := lease.DirectoryKey(p.options.Dir)
	if err != nil {
		return nil, usageError{f.elsewhere(err)}
	}
	r, err := p.request(verb, dir)
	if err != nil {
		return nil, usageError{err}
	}
	waited := false
	r.Wait, r.Waiting = f.wait, func(h lease.HeldError) {
		waited = true
		fmt.Fprintf(p.console.err, "leakgate %s: %v; waiting for its end\n", verb, h)
	}
	held, err := lease.Take(p.ctx, r)
	var other lease.HeldError
	switch {
	case errors.As(err, &other) && other.Key == dir:
		return nil, usageError{fmt.Errorf("%w: choose another --out, or wait for its end with --wait", err)}
	case errors.As(err, &other):
		return nil, fmt.Errorf("%w: choose another device, or wait for its end with --wait", err)
	case err != nil || !waited:
		return held, err
	}
	if err := p.refresh(); err != nil {
		return nil, errors.Join(err, held.Release())
	}
	return held, nil
}

// request asks for the directory and the devices of the plan.
func (p *plan) request(verb string, dir lease.Key) (lease.Request, error) {
	asked, _ := p.console.getenv(lease.FolderVariable)
	folder, err := lease.Folder(asked)
	if err != nil {
		return lease.Request{}, err
	}
	r := lease.Request{Folder: folder, Keys: []lease.Key{dir}, Holder: lease.NewHolder(verb, p.options.Dir)}
	for _, d := range p.options.Devices {
		r.Keys = append(r.Keys, lease.DeviceKey(p.client.Addr(), d.Serial()))
	}
	return r, nil
}

// refresh asks the devices again: their clocks have gone on since they were read.
func (p *plan) refresh() error {
	for i, d := range p.options.Devices {
		facts, err := capture.ReadFacts(p.ctx, d)
		if err != nil {
			return err
		}
		p.options.Devices[i].Facts = facts
	}
	return nil
}

// refused tells why a run cannot begin.
func (f *runFlags) refused(c console, verb string, ctx context.Context, err error) int {
	if ctx.Err() != nil {
		fmt.Fprintf(c.err, "leakgate %s: interrupted before it began\n", verb)
		return record.ExitInterrupted
	}
	fmt.Fprintf(c.err, "leakgate %s: %v\n", verb, err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	if isForDoctor(err) {
		fmt.Fprintf(c.err, "leakgate %s: `leakgate doctor` looks closer and changes nothing\n", verb)
	}
	return record.ExitNoDevice
}

// usageError is an error that the user mends by writing something else.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func (f *runFlags) perform(p *plan, verb string) (record.Run, int) {
	screen := newScreen(p.console.err, p.options)
	p.options.Observer = screen
	fmt.Fprintf(p.console.err, "leakgate %s: writing to %s\n", verb, p.options.Dir)
	run, err := monitor.Run(p.ctx, p.options)
	screen.close()
	if err != nil && run.Schema == "" {
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			err = f.elsewhere(err)
		}
		fmt.Fprintf(p.console.err, "leakgate %s: %v\n", verb, err)
		return run, exitUsage
	}
	if err != nil {
		fmt.Fprintf(p.console.err, "leakgate %s: %v\n", verb, err)
	}
	f.begun = p.options.Dir
	if terr := tell(p.console, run, f.asJSON); terr != nil {
		fmt.Fprintf(p.console.err, "leakgate %s: print the verdict: %v\n", verb, terr)
		err = terr
	}
	if err != nil {
		return run, exitUsage // counts before all others
	}
	return run, run.ExitCode
}

// lastMoment is the real time between the second Ctrl-C and the end: enough to
// end what runs on the device and on the host, not to wait for it.
const lastMoment = 2 * time.Second

// lastWord is how long a message may take that nobody may read.
const lastWord = 100 * time.Millisecond

// interruptible gives a context that the first Ctrl-C ends, so that the run is
// finished cleanly. The second closes hurry and ends the program soon, finished
// or not.
func interruptible(c console) (ctx context.Context, hurry <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals, done, now := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup, and stays
		ends = append(ends, syscall.SIGHUP)
	}
	signal.Notify(signals, ends...)
	// A reader of our output who goes away ends no night.
	signal.Ignore(syscall.SIGPIPE)
	go func() {
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			case s := <-signals:
				// First what was asked for: nobody may read what is said.
				switch n {
				case 1:
					cancel(fmt.Errorf("interrupted by %v", s))
					go fmt.Fprintf(c.err, "\nleakgate: %v; finishing the run, once more to stop now\n", s)
				case 2:
					close(now)
					time.AfterFunc(lastMoment, func() {
						go fmt.Fprintln(c.err, "leakgate: stopped; samples.ndjson has every sample, run.json is not written")
						time.Sleep(lastWord)
						os.Exit(record.ExitInterrupted)
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
	client, err := adb.NewClient(adb.Options{MaxStream: maxStream, Dial: p.console.dial, Getenv: func(name string) string {
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
