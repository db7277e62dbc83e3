package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/pflag"

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
	unjudged bool
	wait     bool
	patience time.Duration
	// started is the directory of a run that has started.
	started string
}

// jsonUsage describes the flag --json.
const jsonUsage = "print JSON, and nothing else, to stdout"

func (f *runFlags) declare(fs *pflag.FlagSet) {
	f.declareOutput(fs, "run.json")
	fs.BoolVar(&f.strict, "strict", false, "exit with 5 if any process is inconclusive")
	fs.BoolVar(&f.unjudged, "allow-unjudged", false, "exit with 0 also if nothing could be judged or a heap dump is missing")
	f.patience = monitor.DefaultPatience
	fs.Var(span(&f.patience), "patience", "how long a device may be disconnected before its part of the run ends")
}

// declareOutput declares the flags that diagnose has, too.
func (f *runFlags) declareOutput(fs *pflag.FlagSet, file string) {
	fs.Var(word(&f.out, "DIR"), "out", "directory to write to; by default a new one in leakgate-runs")
	fs.BoolVar(&f.asJSON, "json", false, "print "+file+", and nothing else, to stdout")
	fs.BoolVar(&f.wait, "wait", false, "wait while another run uses the device or the directory")
}

// plan is a run before it begins.
type plan struct {
	ctx     context.Context
	console console
	client  *adb.Client
	options monitor.Options
}

// carryOut prepares a run and carries it out: signals, directory, screen, verdict.
func (f *runFlags) carryOut(c console, prepare func(*plan) error) (record.Run, int) {
	ctx, hurry, stop := interruptible(c)
	defer stop()
	p := &plan{ctx: ctx, console: c}
	p.options = monitor.Options{
		Strict: f.strict, AllowUnjudged: f.unjudged, Tool: "leakgate " + version(), Hurry: hurry,
		Patience: f.patience, Budget: monitor.DefaultBudget,
		Headroom: monitor.DefaultHeadroom,
	}
	err := prepare(p)
	if err != nil {
		return record.Run{}, f.refused(c, ctx, err)
	}
	p.options.Dir = f.folder(c.verb)
	held, err := f.hold(p)
	if err != nil {
		return record.Run{}, f.refused(c, ctx, err)
	}
	run, code := f.perform(p)
	if err := held.Release(); err != nil {
		c.problem("%v", err)
	}
	return run, code
}

// reportLocation says last where the run is, below which its artifacts are named, and
// returns the exit code.
func (f *runFlags) reportLocation(c console, code int) int {
	if f.started != "" {
		c.note("the run is in %s", text.Printable(f.started))
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
func (f *runFlags) hold(p *plan) (*lease.Lease, error) {
	wait, err := p.console.wantsToWait(f.wait)
	if err != nil {
		return nil, usageError{err}
	}
	dir, err := lease.DirectoryKey(p.options.Dir)
	if err != nil {
		return nil, usageError{f.elsewhere(err)}
	}
	r, err := p.request(dir)
	if err != nil {
		return nil, usageError{err}
	}
	waited := false
	r.Wait, r.Waiting = wait, func(h lease.HeldError) {
		waited = true
		p.console.note("%v; waiting for its end", h)
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
func (p *plan) request(dir lease.Key) (lease.Request, error) {
	folder, err := lease.Folder(p.console.variable(lease.FolderVariable))
	if err != nil {
		return lease.Request{}, err
	}
	r := lease.Request{Folder: folder, Keys: []lease.Key{dir}, Holder: lease.NewHolder(p.console.verb, p.options.Dir)}
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

// refused reports why a run cannot start.
func (f *runFlags) refused(c console, ctx context.Context, err error) int {
	if ctx.Err() != nil {
		c.problem("interrupted before it began")
		return record.ExitInterrupted
	}
	c.problem("%v", err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	if isForDoctor(err) {
		c.note("`leakgate doctor` looks closer and changes nothing")
	}
	return record.ExitNoDevice
}

// usageError is an error that the user mends by writing something else.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func (f *runFlags) perform(p *plan) (record.Run, int) {
	c := p.console
	screen := newScreen(c, p.options)
	p.options.Observer = screen
	c.note("writing to %s", p.options.Dir)
	run, err := monitor.Run(p.ctx, p.options)
	screen.close()
	if err != nil && run.Schema == "" {
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			err = f.elsewhere(err)
		}
		c.problem("%v", err)
		return run, exitUsage
	}
	if err != nil {
		c.problem("%v", err)
	}
	f.started = p.options.Dir
	if perr := tell(c, run, f.asJSON); perr != nil {
		c.problem("print the verdict: %v", perr)
		err = perr
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

// interruptible returns a context that the first Ctrl-C ends, so that the run is
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
					go fmt.Fprintf(c.err, "\nleakgate: %v; finishing the run; press Ctrl-C again to stop now\n", s)
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
	client, err := adb.NewClient(adb.Options{MaxStream: maxStream, Dial: p.console.dial, Getenv: p.console.variable})
	if err != nil {
		return usageError{err}
	}
	p.client = client
	p.console.detail("adb server %s", client.Addr())
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
	if err == nil {
		p.console.detail("device %s: %s %s, Android %s (API %d), %s build, shell uid %d", text.Printable(dev.Serial()),
			text.Printable(facts.Manufacturer), text.Printable(facts.Model), text.Printable(facts.Release), facts.API, text.Printable(facts.BuildType), facts.UID)
	}
	return monitor.Device{Device: dev, Facts: facts}, err
}
