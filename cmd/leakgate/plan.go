package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/harness/fleet"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/bisect"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/spf13/pflag"
)

// runFlags are the flags that run, watch and demo share.
type runFlags struct {
	out           string
	asJSON        bool
	strict        bool
	unjudged      bool
	wait          bool
	deviceTimeout time.Duration
	// started is the directory of the run, once the run has started.
	started string
	// recorded is the record of a run that has ended.
	recorded *record.Run
	// unprinted is set if the run is complete and recorded, but its verdict
	// could not be printed.
	unprinted bool
	// failing, if not nil, is called during the run; a non-empty reason stops
	// the run.
	failing func(ctx context.Context, dir string) (reason string)
}

// jsonUsage is the help text of --json.
const jsonUsage = "print JSON, and nothing else, to stdout"

func (f *runFlags) declare(fs *pflag.FlagSet) {
	f.declareOutput(fs, "run.json")
	fs.BoolVar(&f.strict, "strict", false, "exit with 5 if any process is inconclusive")
	fs.BoolVar(&f.unjudged, "allow-unjudged", false,
		"exit with 0 even if nothing could be judged or a heap dump is missing")
	f.deviceTimeout = monitor.DefaultSampling.DeviceTimeout
	fs.Var(span(&f.deviceTimeout), "device-timeout",
		"how long a device may be disconnected before its part of the run ends")
}

// declareOutput declares the output flags, which run, watch, demo, trip and
// diagnose share.
func (f *runFlags) declareOutput(fs *pflag.FlagSet, file string) {
	fs.Var(word(&f.out, "DIR"), "out", "directory to write to; by default a new one in leakgate-runs")
	fs.BoolVar(&f.asJSON, "json", false, "print "+file+", and nothing else, to stdout")
	fs.BoolVar(&f.wait, "wait", false, "wait if another run uses the device or the directory")
}

// plan describes a run that has not started.
type plan struct {
	ctx     context.Context
	console console
	fleet   *fleet.Fleet
	options monitor.Options
	// warning is printed before the run starts if the run cannot reach a
	// verdict; otherwise it is "".
	warning string
}

// fill replaces the options of the plan, but keeps the values that the command
// has already set.
func (p *plan) fill(o monitor.Options) {
	own := p.options
	p.options = o
	p.options.Strict, p.options.AllowUnjudged = o.Strict || own.Strict, o.AllowUnjudged || own.AllowUnjudged
	p.options.Tool, p.options.ForceStop, p.options.DeviceTimeout = own.Tool, own.ForceStop, own.DeviceTimeout
}

// choose selects the devices on which the plan runs.
func (p *plan) choose(c fleet.DeviceChoice) error {
	if c.Client == nil {
		client, err := fleet.NewClient(adb.Options{Dial: p.console.dial, Getenv: p.console.variable})
		if err != nil {
			return usageError{err}
		}
		c.Client = client
	}
	allowed, err := p.console.allowsStandIn(c.StandIn)
	if err != nil {
		return usageError{err}
	}
	c.StandIn = allowed
	p.console.detail("adb server %s", c.Client.Addr())
	c.Getenv = p.console.variable
	f, err := fleet.Open(p.ctx, c)
	if err != nil {
		return err
	}
	for _, text := range f.Skipped() {
		p.console.problem("%s; skipped", text)
	}
	for _, dev := range f.Devices() {
		p.console.detail("device %s: %s %s, Android %s (API %d), %s build, shell uid %d", text.Printable(dev.Serial()),
			text.Printable(dev.Facts.Manufacturer), text.Printable(dev.Facts.Model), text.Printable(dev.Facts.Release),
			dev.Facts.API, text.Printable(dev.Facts.BuildType), dev.Facts.UID)
	}
	p.fleet, p.options.Devices = f, f.Devices()
	return nil
}

// serials returns the serial numbers in the value of a flag, which may be "".
func serials(flag string) []string {
	if flag == "" {
		return nil
	}
	return []string{flag}
}

// sampling returns the settings for sampling the devices.
func (f *runFlags) sampling() monitor.Sampling {
	s := monitor.DefaultSampling
	s.DeviceTimeout = f.deviceTimeout
	return s
}

// carryOut prepares a run and executes it. It handles signals, the directory,
// the screen and the verdict.
func (f *runFlags) carryOut(c console, prepare func(*plan) error) (record.Run, int) {
	ctx, hurry, stop := interruptible(c)
	defer stop()
	p := &plan{ctx: ctx, console: c}
	p.options = monitor.Options{
		ExitRules: monitor.ExitRules{Strict: f.strict, AllowUnjudged: f.unjudged},
		Sampling:  f.sampling(), Tool: "leakgate " + version(), ForceStop: hurry,
	}
	err := prepare(p)
	if err != nil {
		return record.Run{}, f.refused(c, ctx, err)
	}
	p.options.Dir = f.folder(c, c.verb)
	if err := f.hold(p); err != nil {
		return record.Run{}, f.refused(c, ctx, err)
	}
	run, code := f.perform(p)
	if err := p.fleet.Close(); err != nil {
		c.problem("%v", err)
	}
	return run, code
}

// reportLocation prints the run directory and returns the exit code. It is
// called last because all output before it names the artifacts relative to the
// run directory.
func (f *runFlags) reportLocation(c console, code int) int {
	switch dir := text.Printable(f.started); {
	case f.started == "":
	case f.recorded == nil:
		c.note("the run is in %s", dir)
	default:
		c.note("the run is in %s; show it again with `leakgate report %[1]s`", dir)
	}
	return code
}

// conclude prints what decided the exit code, and the run directory.
func (f *runFlags) conclude(c console, code int) int {
	if f.started != "" && f.recorded != nil {
		c.note("%s", conclusion(code, decidedBy(*f.recorded, code)))
	}
	return f.reportLocation(c, code)
}

// folder returns the value of --out or, by default, a new name that contains
// the time and the command.
func (f *runFlags) folder(c console, verb string) string {
	if f.out != "" {
		return f.out
	}
	return filepath.Join(cmp.Or(c.variable(bisect.RunsVariable), "leakgate-runs"),
		time.Now().UTC().Format("20060102T150405.000Z")+"-"+verb)
}

// chooseOutHint adds advice to the error for a run directory that cannot be
// created.
func (f *runFlags) chooseOutHint(err error) error {
	if f.out == "" {
		return fmt.Errorf("%w; name a writable directory with --out DIR", err)
	}
	return fmt.Errorf("%w; choose a writable directory with --out", err)
}

// hold locks the directory and the devices of the plan, so that no other run
// uses them at the same time.
func (f *runFlags) hold(p *plan) error {
	wait, err := p.console.wantsToWait(f.wait)
	if err != nil {
		return usageError{err}
	}
	var waiting func(fleet.InUseError)
	if wait {
		waiting = func(h fleet.InUseError) { p.console.note("%v; waiting for it to end", h) }
	}
	err = p.fleet.Hold(p.ctx, p.options.Dir, p.console.verb, waiting)
	p.options.Devices = p.fleet.Devices()
	held, other := errors.AsType[fleet.InUseError](err)
	if dir, ok := errors.AsType[fleet.DirectoryError](err); ok && dir.Leases {
		return usageError{err}
	} else if ok {
		return usageError{f.chooseOutHint(err)}
	}
	switch {
	case other && held.Directory:
		return usageError{fmt.Errorf("%w: choose another --out, or wait with --wait", err)}
	case other:
		return fmt.Errorf("%w: choose another device, or wait with --wait", err)
	}
	return err
}

// refused reports why a run cannot start.
func (f *runFlags) refused(c console, ctx context.Context, err error) int {
	if ctx.Err() != nil {
		c.problem("interrupted before the start")
		return record.ExitInterrupted
	}
	c.problem("%v", err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	if isForDoctor(err) {
		c.note("run `leakgate doctor` for details; it changes nothing")
	}
	return record.ExitNoDevice
}

// usageError is an error that the user fixes by changing the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func (f *runFlags) perform(p *plan) (record.Run, int) {
	c := p.console
	screen := newScreen(c, p.options)
	p.options.Observer = screen
	if p.warning != "" {
		c.problem("warning: %s", p.warning)
	}
	c.note("writing to %s", p.options.Dir)
	run, err := f.watch(p, screen)
	screen.close()
	if err != nil && run.Schema == "" {
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			err = f.chooseOutHint(err)
		}
		c.problem("%v", err)
		return run, exitUsage
	}
	if err != nil {
		c.problem("%v", err)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		f.started, f.recorded = p.options.Dir, &run
	}
	if perr := printRun(c, run, f.asJSON); perr != nil {
		c.problem("print the verdict: %v", perr)
		f.unprinted, err = err == nil, perr
	}
	if err != nil {
		return run, exitUsage // takes precedence over all others
	}
	return run, run.ExitCode
}

// stopGrace is the wall-clock time between the second Ctrl-C and the exit. It
// is long enough to send stop requests to everything that runs on the device
// and the host, but not to wait until everything has stopped.
const stopGrace = 2 * time.Second

// messageTimeout bounds the time for a message that may have no reader.
const messageTimeout = 100 * time.Millisecond

// interruptible returns a context that is canceled by the first Ctrl-C, so that
// the run is finished cleanly. The second Ctrl-C closes hurry, and soon
// afterwards the program exits even if the run is not finished.
func interruptible(c console) (ctx context.Context, hurry <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals, done, now := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // ignored under nohup, and stays ignored
		ends = append(ends, syscall.SIGHUP)
	}
	signal.Notify(signals, ends...)
	// An overnight run must not end because the reader of its output exits.
	signal.Ignore(syscall.SIGPIPE)
	go func() {
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			case s := <-signals:
				// Act before printing, because printing may block.
				switch n {
				case 1:
					cancel(fmt.Errorf("interrupted by %v", s))
					go fmt.Fprintf(c.err, "\nleakgate: %v; finishing the run; press Ctrl-C again to stop now\n", s)
				case 2:
					close(now)
					time.AfterFunc(stopGrace, func() {
						go fmt.Fprintln(c.err,
							"leakgate: stopped; samples.ndjson has every sample, run.json was not written")
						time.Sleep(messageTimeout)
						os.Exit(record.ExitInterrupted)
					})
				}
			}
		}
	}()
	return ctx, now, func() { signal.Stop(signals); close(done); cancel(nil) }
}
