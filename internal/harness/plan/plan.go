// Package plan converts the configuration file of a run to the options of the
// monitor and the choice of devices, for every program that reads such a file.
package plan

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/fleet"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/internal/harness/hostmemory"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/harness/revision"
	"github.com/leakgate/leakgate/reporters/record"
)

// Of returns the options that the file requests; file names in it are relative
// to dir. The caller sets the devices, the run directory and the observer. If a
// line of the file is invalid, the error is a config.Errors.
func Of(cfg *config.Config, dir string) (monitor.Options, error) {
	o := monitor.Options{
		Duration: cfg.Duration, LongestDuration: cfg.LongestDuration, Workload: workload(cfg),
		Sampling: monitor.Sampling{
			Detail: cfg.Sample.Detail, MaxSystemServer: cfg.Sample.MaxSystemServer, MaxApp: cfg.Sample.MaxApp,
			Headroom: monitor.DefaultSampling.Headroom, Collect: monitor.Collect(cfg.Diagnose.Collect),
		},
		ExitRules: monitor.ExitRules{
			Assert: record.Assert(cfg.Detect.Assert), Strict: cfg.Strict,
			AllowUnjudged: cfg.AllowUnjudged, MustSee: float64(cfg.Detect.MustSee),
		},
		Build: Build(context.Background(), dir, cfg.App.Variant), JUnit: cfg.Report.JUnit,
	}
	var err error
	if o.Policy, err = DetectorPolicy(cfg); err != nil {
		return o, err
	}
	if o.Patterns, err = Patterns(cfg.App.Processes); err != nil {
		return o, err
	}
	respond, err := respond(cfg, dir)
	o.Respond = &respond
	return o, err
}

// Build returns what is known about the tested build: its source, from the
// checkout in a directory, and its variant, which may be empty.
func Build(ctx context.Context, dir, variant string) *record.Revision {
	r := revision.Of(ctx, dir, os.Getenv)
	if r == nil && variant != "" {
		r = &record.Revision{}
	}
	if r != nil {
		r.Variant = variant
	}
	return r
}

// BuildOfCI returns the build identified by the environment variables of a CI
// job; nil outside of CI.
func BuildOfCI(getenv func(string) string) *record.Revision { return revision.OfCI(getenv) }

// Choice returns the devices that the file requests.
func Choice(cfg *config.Config) fleet.DeviceChoice {
	return fleet.DeviceChoice{
		Serials: cfg.Devices.Serials, MinAPI: cfg.Devices.MinAPI, Require: cfg.Devices.Require,
		StandIn: cfg.Devices.StandIn,
	}
}

// Policy returns the policy with the given name, with the default constants.
func Policy(name string) (detector.Policy, error) {
	p := detector.DefaultPolicy()
	p.Name = name
	return p, p.Validate()
}

// Patterns parses names of processes.
func Patterns(words []string) ([]capture.Pattern, error) {
	var out []capture.Pattern
	for _, w := range words {
		p, err := capture.ParsePattern(w)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// DetectorPolicy returns the policy that the file describes.
func DetectorPolicy(cfg *config.Config) (detector.Policy, error) {
	p, err := Policy(cfg.Detect.Policy)
	if err != nil {
		return p, err
	}
	p.NormalInterval, p.SuspiciousInterval, p.LeakingInterval = cfg.Sample.Normal, cfg.Sample.Suspicious,
		cfg.Sample.Leaking
	p.Cooldown = cfg.Diagnose.Cooldown
	return p, p.Validate()
}

// respond returns the settings for what to collect after a leak; file names are
// relative to dir.
func respond(cfg *config.Config, dir string) (response.Options, error) {
	d := cfg.Diagnose
	o := response.Options{
		Dump: response.Dump(d.Dump), Keep: response.Keep(d.Keep), Logcat: response.Logcat(d.Logcat),
		ShowTexts: d.Texts == config.TextsShown, Cooldown: d.Cooldown,
		Steps: map[string][]response.Step{}, Memory: hostmemory.Free,
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
	if o.Mapping, err = Mapping(path); err != nil {
		return o, config.Errors{cfg.Problem("app.mapping", err.Error())}
	}
	return o, nil
}

func workload(cfg *config.Config) monitor.Workload {
	w := cfg.Workload
	switch {
	case w.Monkey != nil:
		return monitor.Monkey{
			Package: cfg.App.Package, Seed: seed(w.Monkey.Seed), Throttle: w.Monkey.Throttle, Events: w.Monkey.Events,
		}
	case len(w.Command) > 0:
		return monitor.HostCommand{Args: w.Command, Windows: windows(w.Windows)}
	case w.DeviceCommand != "":
		return monitor.DeviceCommand{Command: w.DeviceCommand, Windows: windows(w.Windows)}
	case w.Instrument != nil:
		return instrument(*w.Instrument)
	}
	return nil
}

// windows returns the rule that finds tests in an output, or nil if the file
// contains none. Both expressions are valid: otherwise the file would have been
// rejected.
func windows(w *config.Windows) *monitor.WindowRule {
	if w == nil {
		return nil
	}
	return &monitor.WindowRule{Begin: regexp.MustCompile(w.Begin), End: regexp.MustCompile(w.End)}
}

func instrument(i config.Instrument) monitor.Instrument {
	arguments := maps.Clone(i.Arguments)
	if len(i.Classes) > 0 {
		if arguments == nil {
			arguments = map[string]string{}
		}
		// This is the `class` argument of AndroidJUnitRunner.
		arguments["class"] = strings.Join(i.Classes, ",")
	}
	return monitor.Instrument{Component: i.Component, Arguments: arguments, Delay: i.DelayAfterTest}
}

// seed returns the seed of the file, or a new one if the file has none; it is
// recorded in run.json.
func seed(of *int64) int64 {
	if of != nil {
		return *of
	}
	return rand.Int64N(1 << 31)
}

// Mapping reads the mapping.txt of an obfuscated build.
func Mapping(path string) (*analysis.Mapping, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the mapping: %w", err)
	}
	defer file.Close()
	m, err := analysis.ReadMapping(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; write the mapping.txt that ProGuard or R8 created for this build", path, err)
	}
	return m, nil
}
