package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/fleet"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/capture/diagnose"
	"github.com/leakgate/leakgate/internal/harness/hostmemory"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func diagnoseCommand(c *console) *cobra.Command {
	f := diagnoseFlags{kind: "unknown"}
	cmd := &cobra.Command{
		Use: "diagnose --process NAME", GroupID: groupWatch,
		Short: "collect and analyze evidence about one process now",
		Long: `Collect and analyze evidence about one process now, as a run does when it finds a
leak, and write it to a directory. The kind of the leak selects what is collected:

  java     a heap dump
  native   the memory maps
  gpu      graphics caches and buffers
  thread   the threads by name
  unknown  everything that java and native collect

With --for, the process is read twice, with that much time between the readings, and the
growth is reported.`,
		Example: `  leakgate diagnose --process com.shop --kind java
  leakgate diagnose --process com.shop:push --kind native --for 60s`,
		Annotations: manual{exits: `0 the evidence was collected
2 the command line is invalid, or NAME does not match exactly one process
3 no usable device
6 nothing could be collected or analyzed; with --kind java: there is no heap dump
130 interrupted`, page: "docs/response.md"}.annotations(),
		RunE: c.run(f.diagnose),
	}
	flags := cmd.Flags()
	flags.Var(word(&f.process, "NAME"), "process", "process to diagnose")
	flags.IntVar(&f.pid, "pid", 0, "pid of the process, if several have this name")
	flags.Var(choice(&f.kind, "KIND", diagnosedKinds...), "kind", "kind of the leak")
	flags.Var(word(&f.device, "SERIAL"), "device", "device to use, if several are connected")
	flags.BoolVar(&f.standIn, "stand-in", false, standInUsage)
	flags.Var(span(&f.apart), "for", "read the process twice, with this much time between the readings, such as 60s")
	f.responseFlags.declare(flags)
	f.declareOutput(flags, "diagnosis.json")
	return cmd
}

// diagnosedKinds are the accepted values of --kind.
var diagnosedKinds = []string{"java", "native", "gpu", "thread", "unknown"}

// keptForms are the values of diagnose.keep.
var keptForms = []response.Keep{response.Stripped, response.Raw, response.Nothing}

// keptLogs are the values of diagnose.logcat.
var keptLogs = []response.Logcat{response.LogcatApp, response.LogcatAll, response.LogcatNone}

// logcatUsage is the help text of --logcat.
const logcatUsage = `lines of the device log to keep; "all" includes those of other apps`

type diagnoseFlags struct {
	runFlags
	responseFlags
	process, kind, device string
	standIn               bool
	apart                 time.Duration
	// pid chooses one of several processes with the given name; 0 if it is not
	// given.
	pid int
}

// responseFlags select what is collected and what is kept.
type responseFlags struct {
	keep    response.Keep
	logcat  response.Logcat
	texts   bool
	mapping string
}

// textsUsage is the help text of --show-texts.
const textsUsage = "show map keys, thread names and titles; by default each is replaced by a short hash"

// mappingUsage is the help text of --mapping.
const mappingUsage = "mapping.txt of ProGuard or R8, to show source names"

func (f *responseFlags) declare(fs *pflag.FlagSet) {
	f.keep = response.Stripped
	fs.Var(choice(&f.keep, "WHAT", keptForms...), "keep", "form in which to keep heap dumps")
	f.logcat = response.LogcatApp
	fs.Var(choice(&f.logcat, "WHAT", keptLogs...), "logcat", logcatUsage)
	fs.BoolVar(&f.texts, "show-texts", false, textsUsage)
	fs.Var(word(&f.mapping, "FILE"), "mapping", mappingUsage)
}

// options converts the flags to options of package response.
func (f *responseFlags) options() (response.Options, error) {
	o := response.Options{
		Keep: f.keep, Logcat: f.logcat, ShowTexts: f.texts, Cooldown: response.DefaultCooldown, Memory: hostmemory.Free,
	}
	if f.mapping == "" {
		return o, nil
	}
	var err error
	o.Mapping, err = readMapping(f.mapping)
	return o, err
}

func (f *diagnoseFlags) diagnose(c console, args []string) int {
	if err := withoutArguments(args, "process"); err != nil {
		return c.usage(err)
	}
	if f.process == "" {
		return c.usage(errors.New("no process to diagnose: add --process NAME, such as --process com.shop"))
	}
	name, err := capture.ParsePattern(f.process)
	if err != nil {
		return c.usage(err)
	}
	options, err := f.responseFlags.options()
	if err != nil {
		return c.usage(err)
	}
	c.warnOfVariables()
	ctx, _, stop := interruptible(c)
	defer stop()
	p := &plan{ctx: ctx, console: c}
	if err := p.choose(fleet.DeviceChoice{Serials: serials(f.device), Single: true, StandIn: f.standIn}); err != nil {
		return f.refused(c, ctx, err)
	}
	p.options.Dir = f.folder(c, "diagnose")
	if err := f.hold(p); err != nil {
		return f.refused(c, ctx, err)
	}
	code := f.diagnoseProcess(p, name, options)
	if err := p.fleet.Close(); err != nil {
		c.problem("%v", err)
	}
	return code
}

// diagnoseProcess finds the process, diagnoses it and reports the findings.
func (f *diagnoseFlags) diagnoseProcess(p *plan, name capture.Pattern, options response.Options) int {
	c, dev := p.console, p.options.Devices[0]
	process, err := selectProcess(p.ctx, dev, name, f.pid)
	var absent absentError
	if errors.As(err, &absent) {
		c.problem("%v", err)
		return exitUsage
	}
	if err != nil {
		return f.refused(c, p.ctx, err)
	}
	// A leftover file that cannot be removed now is left for the next
	// diagnosis, because this diagnosis does not depend on it.
	if left, err := diagnose.Sweep(p.ctx, dev); err == nil && len(left) > 0 {
		c.note("removed what an earlier diagnosis left on the device: %s", strings.Join(left, ", "))
	}
	f.finishKilled(p, options)
	c.note("writing to %s", p.options.Dir)
	found, err := f.respond(p, response.New(p.options.Dir, options), process)
	switch {
	case found == nil && f.apart > 0 && p.ctx.Err() != nil:
		c.problem("interrupted before the second reading: no comparison; the evidence from the first one is in %s",
			text.Printable(p.options.Dir))
		return record.ExitInterrupted
	case found == nil:
		return f.refused(c, p.ctx, err)
	}
	if terr := f.tell(c, found.Record); terr != nil {
		c.problem("print: %v", terr)
		return exitUsage
	}
	for _, file := range found.Left {
		c.problem("%s may be left on the device; the next diagnosis tries to remove it", file)
	}
	switch {
	case p.ctx.Err() != nil:
		return record.ExitInterrupted
	case err != nil:
		c.problem("%v", err)
		return record.ExitNoDevice
	case found.Record.Outcome == record.DiagnosisNothing || found.Unread || f.kind == "java" && !dumped(found.Record):
		return exitUnread
	}
	return exitOK
}

// finishKilled handles the files that a killed diagnosis left in the same
// directory: it converts them to the form in which they are kept. It does not
// touch the directory of a run, which `leakgate report` handles.
func (f *diagnoseFlags) finishKilled(p *plan, options response.Options) {
	if _, err := os.Lstat(filepath.Join(p.options.Dir, record.SamplesName)); err == nil {
		return
	}
	warnings, err := response.Resume(p.ctx, p.options.Dir, options, nil)
	if err != nil {
		warnings = append(warnings, err)
	}
	for _, w := range warnings {
		p.console.problem("%v", w)
	}
}

// dumped reports whether a heap dump was taken, even if it was not kept.
func dumped(d record.Diagnosis) bool {
	return slices.ContainsFunc(d.Steps, func(c record.Collected) bool {
		return c.Step == "heap" && (c.Outcome == string(diagnose.Complete) || c.Outcome == string(diagnose.Fallback))
	})
}

// respond collects and analyzes the evidence. The returned case is nil if the
// collection was not started.
func (f *diagnoseFlags) respond(p *plan, r *response.Responder, process capture.Process) (*response.Case, error) {
	dev := p.options.Devices[0]
	probe, err := capture.NewLevels(dev, dev.Facts).Probe(p.ctx, process)
	if err != nil {
		return nil, err
	}
	p.console.detail("reading %s (pid %d) by %s", text.Printable(process.Name), process.PID, probe.Level.Source)
	for _, reason := range probe.Reasons() {
		p.console.detail("source not used: %s", text.Printable(reason))
	}
	order := response.Order{
		Process: process, Level: probe.Level, Findings: probe.Findings, Recipe: f.kind, Kind: kindOf(f.kind),
		Trigger: record.TriggerDemand, App: siblings(p.ctx, dev, process),
	}
	if f.apart > 0 {
		if order.Before, err = f.before(p, r, order); err != nil {
			return nil, err
		}
	}
	found, err := r.Collect(p.ctx, dev, dev.Facts, order)
	if found == nil {
		return nil, err
	}
	// An interrupted diagnosis is reported as well, and kept in the chosen
	// form.
	return found, errors.Join(err, r.Analyze(p.ctx, found))
}

// siblings returns the other processes of the app. If these processes were not
// listed, the diagnosis would drop their log lines.
func siblings(ctx context.Context, dev monitor.Device, of capture.Process) (out []diagnose.KnownProcess) {
	if of.Package() == "" {
		return nil
	}
	found, err := capture.FindProcesses(ctx,
		dev,
		[]capture.Pattern{capture.Pattern(of.Package()), capture.Pattern(of.Package() + ":*")})
	if err != nil {
		return nil
	}
	for _, p := range found.Processes {
		if p.User == of.User && !p.Same(of) {
			out = append(out, diagnose.KnownProcess{Process: p})
		}
	}
	return out
}

// before reads the process for the first time and then waits.
func (f *diagnoseFlags) before(p *plan, r *response.Responder, order response.Order) (*response.MemorySnapshot, error) {
	dev := p.options.Devices[0]
	order.Recipe, order.Kind = response.Snapshot, detector.None
	began := time.Now()
	first, err := r.Collect(p.ctx, dev, dev.Facts, order)
	if first == nil {
		return nil, err
	}
	if err := errors.Join(err, r.Analyze(p.ctx, first)); err != nil {
		return nil, err
	}
	real := time.Duration(float64(f.apart) / dev.Facts.TimeScale)
	p.console.note("read once; reading again in %v", real.Round(time.Second))
	select {
	case <-time.After(real - time.Since(began)):
		return first.Now, nil
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

// kindOf returns the kind of leak for a value of --kind.
func kindOf(kind string) (k detector.LeakKind) {
	if k.UnmarshalText([]byte(kind+"_leak")) != nil {
		return detector.Unknown
	}
	return k
}

// absentError is the error for a name that does not match exactly one process.
type absentError struct{ error }

// selectProcess returns the process that matches the name and, unless pid is 0,
// has this pid.
func selectProcess(ctx context.Context, dev monitor.Device, name capture.Pattern, pid int) (capture.Process, error) {
	found, err := capture.FindProcesses(ctx, dev, []capture.Pattern{name})
	if err != nil {
		return capture.Process{}, err
	}
	list := found.Processes
	if i := slices.IndexFunc(list, func(p capture.Process) bool { return p.PID == pid }); i >= 0 {
		return list[i], nil
	}
	switch {
	case len(list) == 0:
		return capture.Process{},
			absentError{fmt.Errorf("no process %s on %s%s", name, text.Printable(dev.Serial()), running(ctx, dev))}
	case len(list) == 1 && pid == 0:
		return list[0], nil
	}
	var names []string
	for _, p := range list {
		names = append(names, fmt.Sprintf("%s (pid %d, uid %d)", text.Printable(p.Key().String()), p.PID, p.UID))
	}
	these := strings.Join(names, ", ")
	if pid != 0 {
		return capture.Process{},
			absentError{
				fmt.Errorf("no process %s with pid %d on %s; the processes with that name are %s", name, pid,
					text.Printable(dev.Serial()), these),
			}
	}
	return capture.Process{},
		absentError{
			fmt.Errorf("%s matches %d processes: %s; name one, or choose one with --pid", name, len(list), these),
		}
}

// shownApps bounds the number of apps that are suggested.
const shownApps = 5

// running returns a list of running apps to append to a message, or "" if none
// is found.
func running(ctx context.Context, dev monitor.Device) string {
	apps, _, err := capture.RunningApps(ctx, dev, shownApps)
	if err != nil || len(apps) == 0 {
		return ""
	}
	for i := range apps {
		apps[i] = text.Printable(apps[i])
	}
	return "; running apps: " + strings.Join(apps, ", ")
}

func (f *diagnoseFlags) tell(c console, d record.Diagnosis) error {
	if f.asJSON {
		d.Schema = record.DiagnosisSchema
		return printJSON(c.out, d)
	}
	return reporters.WriteDiagnosis(c.out, d)
}
