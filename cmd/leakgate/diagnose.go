package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/capture/diagnose"
	"github.com/leakgate/leakgate/internal/harness/lease"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

func diagnoseVerb() verb {
	return verb{
		name: "diagnose", args: "--process NAME [flags]",
		summary: "collect and analyse the artifacts of one process now",
		help: `Does for one process what a run does when it finds a leak: collects what its kind
calls for (java: a heap dump; native: the memory maps; gpu: buffers and caches; thread:
the threads by name; unknown: java and native), analyses it and writes a folder. With
--for the process is looked at twice, that far apart, and what grew meanwhile is told.
Exit 6 if nothing could be collected, with --kind java no heap dump, or the dump could
not be analysed.`,
		example: "leakgate diagnose --process com.shop --kind java",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			var f diagnoseFlags
			fs.StringVar(&f.process, "process", "", "`NAME` of the process")
			fs.StringVar(&f.kind, "kind", "unknown", "`KIND` of the leak: "+strings.Join(diagnosedKinds, ", "))
			fs.StringVar(&f.device, "device", "", "`SERIAL` of the device, if there are several")
			fs.Var(&f.apart, "for", "look twice, this `TIME` apart, such as 60s")
			f.responseFlags.declare(fs)
			fs.StringVar(&f.out, "out", "", "`DIR` for the artifacts; without it a new one below leakgate-runs")
			fs.BoolVar(&f.asJSON, "json", false, "print diagnosis.json on stdout and nothing else there")
			fs.BoolVar(&f.wait, "wait", false, "wait until no run has the device or the directory")
			return f.diagnose
		},
	}
}

// diagnosedKinds are the kinds that can be asked for.
var diagnosedKinds = []string{"java", "native", "gpu", "thread", "unknown"}

type diagnoseFlags struct {
	runFlags
	responseFlags
	process, kind, device string
	apart                 span
}

// responseFlags say what is collected and what stays of it.
type responseFlags struct {
	keep, mapping string
}

func (f *responseFlags) declare(fs *flag.FlagSet) {
	fs.StringVar(&f.keep, "keep", string(response.Stripped), "what stays of a heap dump: `HOW` is stripped, raw or none")
	fs.StringVar(&f.mapping, "mapping", "", "the mapping.txt `FILE` of ProGuard or R8 for the build: names are those of the source")
}

// options are the flags as the engine takes them.
func (f *responseFlags) options() (response.Options, error) {
	o := response.Options{Keep: response.Keep(f.keep), Cooldown: response.DefaultCooldown, Memory: freeMemory}
	if !slices.Contains([]response.Keep{response.Stripped, response.Raw, response.Nothing}, o.Keep) {
		return o, fmt.Errorf("--keep %s: write stripped, raw or none", text.Printable(f.keep))
	}
	if f.mapping == "" {
		return o, nil
	}
	var err error
	o.Mapping, err = readMapping(f.mapping)
	return o, err
}

func (f *diagnoseFlags) diagnose(c console, args []string) int {
	if len(args) > 0 {
		return diagnoseVerb().wrong(c, fmt.Errorf("%q stands alone; name the process with --process %s", args[0], args[0]))
	}
	if f.process == "" {
		return diagnoseVerb().wrong(c, errors.New("no process; write --process NAME, such as --process com.shop"))
	}
	name, err := capture.ParsePattern(f.process)
	if err != nil {
		return diagnoseVerb().wrong(c, err)
	}
	if !slices.Contains(diagnosedKinds, f.kind) {
		return diagnoseVerb().wrong(c, fmt.Errorf("--kind %s%s; write one of %s", text.Printable(f.kind), meant(f.kind, diagnosedKinds, ""), strings.Join(diagnosedKinds, ", ")))
	}
	options, err := f.responseFlags.options()
	if err != nil {
		return diagnoseVerb().wrong(c, err)
	}
	ctx, _, stop := interruptible(c)
	defer stop()
	p := &plan{ctx: ctx, console: c}
	dev, err := p.selectDevice(f.device)
	if err != nil {
		return f.refused(c, "diagnose", ctx, err)
	}
	p.options.Devices = []monitor.Device{dev}
	p.options.Dir = f.folder("diagnose")
	held, err := f.hold(p, "diagnose")
	if err != nil {
		return f.refused(c, "diagnose", ctx, err)
	}
	code := f.look(p, name, options)
	return f.release(c, held, code)
}

func (f *diagnoseFlags) release(c console, held *lease.Lease, code int) int {
	if err := held.Release(); err != nil {
		fmt.Fprintf(c.err, "leakgate diagnose: %v\n", err)
	}
	return code
}

// look finds the process, has it diagnosed and tells what was found.
func (f *diagnoseFlags) look(p *plan, name capture.Pattern, options response.Options) int {
	c, dev := p.console, p.options.Devices[0]
	process, err := theOne(p.ctx, dev, name)
	var absent absentError
	if errors.As(err, &absent) {
		fmt.Fprintf(c.err, "leakgate diagnose: %v\n", err)
		return exitUsage
	}
	if err != nil {
		return f.refused(c, "diagnose", p.ctx, err)
	}
	// What cannot be removed now is the next one's: the diagnosis does not need it gone.
	if left, err := diagnose.Sweep(p.ctx, dev); err == nil && len(left) > 0 {
		fmt.Fprintf(c.err, "leakgate diagnose: removed what an earlier diagnosis has left on the device: %s\n", strings.Join(left, ", "))
	}
	f.tidy(p, options)
	fmt.Fprintf(c.err, "leakgate diagnose: writing to %s\n", p.options.Dir)
	found, err := f.respond(p, response.New(p.options.Dir, options), process)
	switch {
	case found == nil && f.apart > 0 && p.ctx.Err() != nil:
		fmt.Fprintf(c.err, "leakgate diagnose: interrupted before the second look: nothing is compared; %s has what the first one has collected\n", text.Printable(p.options.Dir))
		return record.ExitInterrupted
	case found == nil:
		return f.refused(c, "diagnose", p.ctx, err)
	}
	if terr := f.tell(c, found.Record); terr != nil {
		fmt.Fprintf(c.err, "leakgate diagnose: print: %v\n", terr)
		return exitUsage
	}
	for _, file := range found.Left {
		fmt.Fprintf(c.err, "leakgate diagnose: %s may be left on the device; the next diagnosis removes it\n", file)
	}
	switch {
	case p.ctx.Err() != nil:
		return record.ExitInterrupted
	case err != nil:
		fmt.Fprintf(c.err, "leakgate diagnose: %v\n", err)
		return record.ExitNoDevice
	case found.Record.Outcome == record.DiagnosisNothing || found.Unread || f.kind == "java" && !dumped(found.Record):
		return exitUnread
	}
	return exitOK
}

// tidy leaves what a diagnosis that was killed has left in the same directory in the form
// that it was to keep; of a run that is for `leakgate report`.
func (f *diagnoseFlags) tidy(p *plan, options response.Options) {
	if _, err := os.Lstat(filepath.Join(p.options.Dir, record.SamplesName)); err == nil {
		return
	}
	warnings, err := response.Resume(p.ctx, p.options.Dir, options, nil)
	if err != nil {
		warnings = append(warnings, err)
	}
	for _, w := range warnings {
		fmt.Fprintf(p.console.err, "leakgate diagnose: %v\n", w)
	}
}

// dumped tells whether a heap dump was taken, also one that was not kept.
func dumped(d record.Diagnosis) bool {
	return slices.ContainsFunc(d.Steps, func(c record.Collected) bool {
		return c.Step == "heap" && (c.Ending == string(diagnose.Complete) || c.Ending == string(diagnose.Fallback))
	})
}

// respond collects and analyses. The case is nil where nothing has begun.
func (f *diagnoseFlags) respond(p *plan, r *response.Responder, process capture.Process) (*response.Case, error) {
	dev := p.options.Devices[0]
	probe, err := capture.NewLevels(dev, dev.Facts).Probe(p.ctx, process)
	if err != nil {
		return nil, err
	}
	order := response.Order{Process: process, Level: probe.Level, Recipe: f.kind, Kind: kindOf(f.kind), Trigger: record.TriggerDemand}
	if f.apart > 0 {
		if order.Before, err = f.before(p, r, order); err != nil {
			return nil, err
		}
	}
	found, err := r.Collect(p.ctx, dev, dev.Facts, order)
	if found == nil {
		return nil, err
	}
	// Also what was interrupted is told, and left in the form that is to be kept.
	return found, errors.Join(err, r.Analyse(p.ctx, found))
}

// before looks at the process for the first time and waits.
func (f *diagnoseFlags) before(p *plan, r *response.Responder, order response.Order) (*response.Moment, error) {
	dev := p.options.Devices[0]
	order.Recipe, order.Kind = response.Snapshot, detector.None
	began := time.Now()
	first, err := r.Collect(p.ctx, dev, dev.Facts, order)
	if first == nil {
		return nil, err
	}
	if err := errors.Join(err, r.Analyse(p.ctx, first)); err != nil {
		return nil, err
	}
	real := time.Duration(float64(f.apart) / dev.Facts.TimeScale)
	fmt.Fprintf(p.console.err, "leakgate diagnose: looked once; once more in %v\n", real.Round(time.Second))
	select {
	case <-time.After(real - time.Since(began)):
		return first.Now, nil
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

// kindOf is the kind that a value of --kind names.
func kindOf(kind string) (k detector.LeakKind) {
	if k.UnmarshalText([]byte(kind+"_leak")) != nil {
		return detector.Unknown
	}
	return k
}

// absentError is a name that does not choose one process.
type absentError struct{ error }

// theOne is the process that the name chooses.
func theOne(ctx context.Context, dev monitor.Device, name capture.Pattern) (capture.Process, error) {
	found, err := capture.FindProcesses(ctx, dev, []capture.Pattern{name})
	if err != nil {
		return capture.Process{}, err
	}
	switch list := found.Processes; len(list) {
	case 1:
		return list[0], nil
	case 0:
		return capture.Process{}, absentError{fmt.Errorf("no process %s runs on %s%s", name, text.Printable(dev.Serial()), running(ctx, dev))}
	default:
		var names []string
		for _, p := range list {
			names = append(names, text.Printable(p.Key().String()))
		}
		return capture.Process{}, absentError{fmt.Errorf("%s is %d processes: %s; name one", name, len(list), strings.Join(names, ", "))}
	}
}

// shownApps bounds the apps that are suggested.
const shownApps = 5

// running names apps that do run.
func running(ctx context.Context, dev monitor.Device) string {
	apps, _, err := capture.RunningApps(ctx, dev, shownApps)
	if err != nil || len(apps) == 0 {
		return ""
	}
	for i := range apps {
		apps[i] = text.Printable(apps[i])
	}
	return "; these apps do: " + strings.Join(apps, ", ")
}

func (f *diagnoseFlags) tell(c console, d record.Diagnosis) error {
	if f.asJSON {
		d.Schema = record.DiagnosisSchema
		return printJSON(c.out, d)
	}
	return reporters.WriteDiagnosis(c.out, d)
}
