package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/spf13/cobra"
)

func runCommand(c *console) *cobra.Command {
	var f runVerbFlags
	cmd := &cobra.Command{
		Use: "run CONFIG.yaml", GroupID: groupWatch,
		Short: "run the stability test that a YAML file describes",
		Long: `Watch the processes of an app on one or more devices while a workload stresses it,
judge each process, and write a run directory with the samples, the verdicts and
the evidence for each leak.

Values come from, strongest first: flags, LEAKGATE_ variables named after the keys
of the file, the profile, the file, defaults. ` + "`leakgate config print`" + ` shows them all.`,
		Example: `  leakgate run nightly.yaml
  leakgate run nightly.yaml --profile pr --for 30m --out runs/pr
  LEAKGATE_SAMPLE_NORMAL=10s leakgate run nightly.yaml --device emulator-5554`,
		Annotations:       manual{exits: runExits, page: "docs/formats/config.md"}.annotations(),
		ValidArgsFunction: completeFiles("yaml", "yml"),
		RunE:              c.run(f.run),
	}
	f.fileFlags.declare(cmd)
	f.runFlags.declare(cmd.Flags())
	return cmd
}

// The exit codes of run and watch.
const (
	runExits = `0 no leak
1 a leak
2 the command line or the file is wrong, or the run directory cannot be written
3 no usable device, one disconnected for longer than --patience, or no process of the app was seen
4 the workload failed
5 nothing could be judged, or a heap dump is missing; with --strict: any process is inconclusive
130 interrupted; the run directory is complete`
	watchExits = `0 no leak
1 a leak
2 the command line is wrong, or the run directory cannot be written
3 no usable device, one disconnected for longer than --patience, or no process of the app was seen
5 nothing could be judged, or a heap dump is missing; with --strict: any process is inconclusive
130 interrupted; the run directory is complete`
)

type runVerbFlags struct {
	runFlags
	fileFlags
}

func (f *runVerbFlags) run(c console, args []string) int {
	if len(args) != 1 {
		return c.usage(fmt.Errorf("want one YAML file, got %d", len(args)))
	}
	c.warnOfVariables()
	cfg, err := f.load(c, args[0])
	var policy detector.Policy
	var respond response.Options
	if err == nil {
		policy, err = policyOf(cfg)
	}
	if err == nil {
		respond, err = respondOf(cfg, filepath.Dir(args[0]))
	}
	if err != nil {
		c.problem("%v", err)
		return exitUsage
	}
	_, code := f.carryOut(c, func(p *plan) error {
		if p.options.Patterns, err = patternsOf(cfg.App.Processes); err != nil {
			return usageError{err}
		}
		p.options.Policy, p.options.Respond = policy, &respond
		p.options.Detail = cfg.Sample.Detail
		p.options.Duration = cfg.Duration
		p.options.Budget = monitor.Budget{SystemServer: cfg.Sample.MaxSystemServer, App: cfg.Sample.MaxApp}
		p.options.Assert = record.Assert(cfg.Detect.Assert)
		p.options.Strict = p.options.Strict || cfg.Strict
		p.options.AllowUnjudged = p.options.AllowUnjudged || cfg.AllowUnjudged
		p.options.Workload = workloadOf(cfg)
		p.options.Devices, err = p.devices(cfg.Devices)
		return err
	})
	return f.reportLocation(c, code)
}

// policyOf returns the policy that the file describes.
func policyOf(cfg *config.Config) (detector.Policy, error) {
	p, err := policyNamed(cfg.Detect.Policy)
	if err != nil {
		return p, err
	}
	p.NormalInterval, p.SuspiciousInterval, p.LeakingInterval = cfg.Sample.Normal, cfg.Sample.Suspicious, cfg.Sample.Leaking
	p.Cooldown = cfg.Diagnose.Cooldown
	return p, p.Validate()
}

// respondOf is what is collected of a leak; names of files are below dir.
func respondOf(cfg *config.Config, dir string) (response.Options, error) {
	d := cfg.Diagnose
	o := response.Options{
		Dump: response.Dump(d.Dump), Keep: response.Keep(d.Keep), ShowTexts: d.Texts == config.TextsShown, Cooldown: d.Cooldown,
		Steps: map[string][]response.Step{}, Memory: freeMemory,
	}
	for kind, list := range d.Steps {
		for _, s := range list {
			step, err := response.NewStep(s.Name, s.Command, s.Limit)
			if err != nil {
				return o, config.Errors{cfg.Problem("diagnose.steps."+kind, err.Error())}
			}
			o.Steps[kind] = append(o.Steps[kind], step)
		}
	}
	path := cfg.App.Mapping
	if path == "" {
		return o, nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	var err error
	if o.Mapping, err = readMapping(path); err != nil {
		return o, config.Errors{cfg.Problem("app.mapping", err.Error())}
	}
	return o, nil
}

func workloadOf(cfg *config.Config) monitor.Workload {
	w := cfg.Workload
	switch {
	case w.Monkey != nil:
		return monitor.Monkey{Package: cfg.App.Package, Seed: seedOf(w.Monkey.Seed), Throttle: w.Monkey.Throttle, Events: w.Monkey.Events}
	case len(w.Command) > 0:
		return monitor.HostCommand{Args: w.Command}
	case w.DeviceCommand != "":
		return monitor.DeviceCommand{Command: w.DeviceCommand}
	}
	return nil
}

// seedOf returns a new seed where the file leaves it to chance; run.json keeps it.
func seedOf(seed *int64) int64 {
	if seed != nil {
		return *seed
	}
	return rand.Int64N(1 << 31)
}

// devices takes the devices that the file names, or every one that is attached.
func (p *plan) devices(want config.Devices) ([]monitor.Device, error) {
	serials := want.Serials
	if len(serials) == 0 {
		attached, err := p.attached()
		if err != nil {
			return nil, err
		}
		serials = attached
	}
	var out []monitor.Device
	var old []string
	for _, serial := range serials {
		dev, err := p.selectDevice(serial)
		if err != nil {
			return nil, err
		}
		if dev.Facts.API < want.MinAPI {
			old = append(old, fmt.Sprintf("%s has API %d", dev.Serial(), dev.Facts.API))
			continue
		}
		out = append(out, dev)
	}
	if len(out) < want.Require {
		why := ""
		if len(old) > 0 {
			why = fmt.Sprintf("; devices.min_api is %d but %s", want.MinAPI, strings.Join(old, " and "))
		}
		return nil, fmt.Errorf("the run needs %d devices (devices.require) and has %d%s", want.Require, len(out), why)
	}
	return out, nil
}

// attached returns the serials of every device that is ready; ANDROID_SERIAL, as
// for adb, chooses one.
func (p *plan) attached() ([]string, error) {
	if serial := p.console.variable("ANDROID_SERIAL"); serial != "" {
		return []string{serial}, nil
	}
	if err := p.connect(); err != nil {
		return nil, err
	}
	infos, err := p.client.Devices(p.ctx)
	if err != nil {
		return nil, err
	}
	var out, left []string
	for _, d := range infos {
		if d.State != "device" {
			left = append(left, fmt.Sprintf("device %s is %s", text.Printable(d.Serial), text.Printable(d.State)))
			continue
		}
		out = append(out, d.Serial)
	}
	if len(out) > 0 {
		for _, text := range left {
			p.console.problem("%s; skipped", text)
		}
		return out, nil
	}
	// Select says what is wrong with what is there: unauthorized, offline or nothing.
	if _, err := p.client.Select(p.ctx, ""); err != nil {
		return nil, err
	}
	return nil, errors.New("no device is ready")
}
