package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/fleet"
	"github.com/leakgate/leakgate/harness/monitor"
	plans "github.com/leakgate/leakgate/internal/harness/plan"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/harness/trip"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/spf13/cobra"
)

func tripCommand(c *console) *cobra.Command {
	f := tripFlags{loops: trip.DefaultLoops, warmUp: trip.DefaultWarmUp}
	cmd := &cobra.Command{
		Use: "trip --process NAME -- COMMAND [ARG...]", GroupID: groupWatch,
		Short: "repeat a scenario and report what grows each time",
		Long: `Run COMMAND repeatedly on this computer and report what grows with each repetition in a
process of the app: objects, threads, files, memory by dimension and, from heap dumps, the
places that accumulate objects.

COMMAND is a scenario that ends where it began: it opens the cart and comes back. It must
not stop the process. It runs twice as a warm-up, then up to --loops times; after every
two loops, leakgate waits until the app is idle, and takes a reading. The trip ends
early once nothing grows any more. Caches that fill and one-time initialization are not
leaks; growth by the same amount with every loop is.

COMMAND finds the device in ANDROID_SERIAL and the run directory in LEAKGATE_RUN; its
output is in the logs of that directory.`,
		Example: `  leakgate trip --process com.shop -- maestro test cart.yaml
  leakgate trip --process com.shop --loops 20 -- sh cart.sh
  leakgate trip --process com.shop --no-dumps --json -- sh cart.sh > trip.json`,
		Annotations: manual{exits: tripExits, page: "docs/formats/trip.md"}.annotations(),
		RunE:        c.run(f.trip),
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.Var(word(&f.process, "NAME"), "process", "process that runs the scenario")
	flags.Var(word(&f.device, "SERIAL"), "device", "device to use, if several are connected")
	flags.BoolVar(&f.standIn, "stand-in", false, standInUsage)
	flags.Var(number(&f.loops, "N", leastTripLoops), "loops", "maximum number of repetitions after the warm-up")
	flags.Var(number(&f.warmUp, "N", 0), "warmup", "number of repetitions before the first reading")
	flags.BoolVar(&f.noDumps, "no-dumps", false, "judge without heap dumps")
	f.responseFlags.declare(flags)
	f.declareOutput(flags, record.TripName)
	flags.BoolVar(&f.strict, "strict", false, "exit with 5 if any measure is inconclusive")
	f.deviceTimeout = monitor.DefaultSampling.DeviceTimeout
	return cmd
}

const tripExits = `0 nothing grows, or the growth may be a cache
1 something grows with every loop
2 the command line is invalid, or the run directory cannot be written
3 no usable device, or the process was never found
4 the command failed
5 nothing could be judged, for example because the process restarts; with --strict: any measure is inconclusive
130 interrupted; the run directory is complete`

const (
	leastTripLoops = 3
	// mostTripLoops bounds the number of loops, because a run directory has one
	// log per loop.
	mostTripLoops = 900
)

type tripFlags struct {
	runFlags
	responseFlags
	process, device string
	standIn         bool
	loops, warmUp   int
	noDumps         bool
}

func (f *tripFlags) trip(c console, args []string) int {
	if err := f.check(args); err != nil {
		return c.usage(err)
	}
	patterns, err := plans.Patterns([]string{f.process})
	if err != nil {
		return c.usage(err)
	}
	respond, err := f.responseFlags.options()
	if err != nil {
		return c.usage(err)
	}
	// Dumps can be compared only after their analysis.
	if respond.Keep == response.Nothing {
		respond.Keep = response.Stripped
	}
	c.warnOfVariables()
	ctx, hurry, stop := interruptible(c)
	defer stop()
	p := &plan{ctx: ctx, console: c}
	if err := p.choose(fleet.DeviceChoice{Serials: serials(f.device), Single: true, StandIn: f.standIn}); err != nil {
		return f.refused(c, ctx, err)
	}
	p.options.Dir, p.options.Tool, p.options.ForceStop = f.folder(c, c.verb), "leakgate "+version(), hurry
	p.options.Sampling = f.sampling()
	p.options.Collect = monitor.CollectNever // a trip counts objects between its loops, when the app is idle
	p.options.Respond, p.options.Patterns, p.options.Policy = &respond, patterns, detector.DefaultPolicy()
	// The current directory may not be a checkout of the app, so git is not
	// used.
	p.options.Build = plans.BuildOfCI(c.variable)
	if err := f.hold(p); err != nil {
		return f.refused(c, ctx, err)
	}
	t := &tripRunner{
		flags: f, plan: p, command: args, deaths: &trip.Deaths{}, screen: newScreen(c, p.options), began: time.Now(),
	}
	t.heap = analysis.Options{Mapping: respond.Mapping, ShowTexts: respond.ShowTexts, Memory: respond.Memory()}
	code := t.runTrip()
	if err := p.fleet.Close(); err != nil {
		c.problem("%v", err)
	}
	return f.reportLocation(c, code)
}

func (f *tripFlags) check(args []string) error {
	switch {
	case f.process == "":
		return errors.New("no process to read: add --process NAME, such as --process com.shop")
	case strings.HasSuffix(f.process, "*"):
		return fmt.Errorf("--process: %w", invalid(f.process, "the full name of one process"))
	case len(args) == 0:
		return errors.New("no command to repeat: add it after --, such as -- maestro test cart.yaml")
	case f.loops > mostTripLoops:
		return fmt.Errorf("--loops: %w", invalid(fmt.Sprint(f.loops), fmt.Sprintf("at most %d", mostTripLoops)))
	case f.warmUp > mostTripLoops/10:
		return fmt.Errorf("--warmup: %w", invalid(fmt.Sprint(f.warmUp), fmt.Sprintf("at most %d", mostTripLoops/10)))
	}
	return nil
}

// tripRunner executes one trip.
type tripRunner struct {
	flags   *tripFlags
	plan    *plan
	command []string
	deaths  *trip.Deaths
	screen  *screen
	began   time.Time
	heap    analysis.Options

	run  *monitor.LiveRun
	live *trip.Live
}

// Happened implements monitor.Observer.
func (t *tripRunner) Happened(e record.Event) {
	t.deaths.Happened(e)
	t.screen.Happened(e)
}

// Changed implements monitor.Observer.
func (t *tripRunner) Changed(device string, rows func() []monitor.Row) {
	t.screen.Changed(device, rows)
}

// showProgress shows progress as an event of the run.
func (t *tripRunner) showProgress(line string) {
	scale := 1.0
	if d := t.plan.options.Devices[0]; d.Facts.TimeScale > 0 {
		scale = d.Facts.TimeScale
	}
	t.screen.Happened(record.Event{
		T: time.Since(t.began).Seconds() * scale, Device: t.plan.options.Devices[0].Serial(), Process: t.flags.process,
		Event: "trip", Text: line,
	})
}

// runTrip runs the trip and writes its result.
func (t *tripRunner) runTrip() int {
	p, c := t.plan, t.plan.console
	p.options.Observer = t
	c.note("writing to %s", p.options.Dir)
	var err error
	if t.run, err = monitor.Start(p.ctx, p.options); err != nil {
		t.screen.close()
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			err = t.flags.chooseOutHint(err)
		}
		c.problem("%v", err)
		return exitUsage
	}
	t.flags.started = p.options.Dir
	result, terr := t.repeat()
	run, rerr := t.run.Stop("the trip has ended")
	t.screen.close()
	if terr != nil && p.ctx.Err() == nil {
		c.problem("%v", terr)
	}
	return t.finish(result, terr, run, rerr)
}

// repeat waits for the process and runs the trip. If necessary, it first runs
// the scenario once to start the process.
func (t *tripRunner) repeat() (record.Trip, error) {
	p, f := t.plan, t.flags
	serial := p.options.Devices[0].Serial()
	t.live = &trip.Live{Run: t.run, Device: serial, Process: f.process, Dir: p.options.Dir, Heap: t.heap}
	warmUp := f.warmUp
	started, err := t.awaitProcess()
	if err != nil {
		return record.Trip{}, err
	}
	if started {
		warmUp = max(warmUp-1, 0)
	}
	return trip.Run(p.ctx, t.live, t.once, trip.Options{
		Device: serial, Process: f.process, WarmUp: &warmUp, Loops: f.loops, NoDumps: f.noDumps,
		Death: t.deaths.Reason, Progress: func(line string) { t.showProgress(t.of(line)) },
	})
}

// of appends " of up to N" to a line that begins with "loop K"; N is the
// maximum number of loops. It returns other lines unchanged.
func (t *tripRunner) of(line string) string {
	var n int
	if _, err := fmt.Sscanf(line, "loop %d", &n); err == nil {
		return fmt.Sprintf("%s of up to %d", line, t.flags.loops)
	}
	return line
}

// once runs the scenario's command on this computer.
func (t *tripRunner) once(ctx context.Context) error {
	_, err := t.run.RunWorkload(ctx, t.live.Device, monitor.HostCommand{Args: t.command})
	return err
}

// startWithin is the device time within which a process must appear after its
// scenario has run.
const startWithin = 10 * time.Second

// errNeverSeen is part of the error for a process that neither ran before the
// trip nor was started by its scenario.
var errNeverSeen = errors.New("not found")

// awaitProcess returns once the process runs; started reports whether the
// scenario was run to start the process.
func (t *tripRunner) awaitProcess() (started bool, err error) {
	ctx := t.plan.ctx
	if _, err = t.live.Alive(ctx); err == nil || !errors.Is(err, trip.ErrGone) {
		return false, err
	}
	t.showProgress("not running yet; running the command once to start it")
	if err := t.once(ctx); err != nil {
		return true, &trip.LoopError{Loop: 1, WarmUp: true, Err: err}
	}
	scale := max(t.plan.options.Devices[0].Facts.TimeScale, 1)
	for end := time.Now().Add(time.Duration(float64(startWithin) / scale)); ; {
		_, err = t.live.Alive(ctx)
		if err == nil || !errors.Is(err, trip.ErrGone) {
			return true, err
		}
		if time.Now().After(end) {
			return true, fmt.Errorf("process %s %w before or after the command ran%s",
				text.Printable(t.flags.process), errNeverSeen, running(ctx, t.plan.options.Devices[0]))
		}
		select {
		case <-time.After(time.Duration(float64(time.Second) / scale)):
		case <-ctx.Done():
			return true, context.Cause(ctx)
		}
	}
}

// finish writes trip.json and the report, and returns the exit code.
func (t *tripRunner) finish(result record.Trip, terr error, run record.Run, rerr error) int {
	p, c, f := t.plan, t.plan.console, t.flags
	if rerr != nil {
		c.problem("%v", rerr)
		return exitUsage
	}
	if result.Schema != "" {
		result.Digest = monitor.HostCommand{Args: t.command}.Describe().Digest
		if f.discards(result) {
			if err := t.live.RemoveDumps(); err != nil {
				c.problem("%v", err)
			}
		}
		if err := record.WriteTrip(p.options.Dir, result); err != nil {
			c.problem("%v", f.chooseOutHint(err))
			return exitUsage
		}
		if err := f.tell(c, result); err != nil {
			c.problem("print the verdict: %v", err)
			return exitUsage
		}
	}
	return f.exitCode(p.ctx, result, terr, run)
}

// discards reports whether to remove the dumps: always if no dumps are to be
// kept, and after a trip that passed if the user did not ask for whole dumps.
func (f *tripFlags) discards(r record.Trip) bool {
	return f.keep == response.Nothing || r.Verdict == record.VerdictPass && f.keep == response.Stripped
}

func (f *tripFlags) tell(c console, r record.Trip) error {
	if f.asJSON {
		return printJSON(c.out, r)
	}
	return reporters.WriteTrip(c.out, r)
}

// exitCode returns the exit code of a trip, by the precedence of exit codes.
func (f *tripFlags) exitCode(ctx context.Context, r record.Trip, err error, run record.Run) int {
	_, failed := errors.AsType[*trip.LoopError](err)
	lost := slices.ContainsFunc(run.Devices, func(d record.Device) bool { return d.Error != "" })
	switch {
	case ctx.Err() != nil:
		return record.ExitInterrupted
	case r.Verdict == record.VerdictLeak:
		return record.ExitLeak
	case lost, errors.Is(err, errNeverSeen):
		return record.ExitNoDevice
	case failed:
		return record.ExitWorkload
	case err != nil, !r.Judged, f.strict && r.Verdict == record.VerdictInconclusive:
		return record.ExitInconclusive
	}
	return exitOK
}
