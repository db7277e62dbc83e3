package main

import (
	"fmt"
	"path/filepath"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/internal/harness/gate"
	plans "github.com/leakgate/leakgate/internal/harness/plan"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
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

Values come from, in order of precedence: flags, LEAKGATE_ variables named after the keys
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
2 the command line or the file is invalid, or the run directory cannot be written
3 there was no usable device, a device was disconnected for longer than --device-timeout, or no process of the app was found
4 the workload failed
5 no verdict on the run, on a device or on a long-lived process, or a heap dump is missing; with --strict: any process is inconclusive
6 a heap dump was taken and could not be analyzed
130 interrupted; the run directory is complete`
	watchExits = `0 no leak
1 a leak
2 the command line is invalid, or the run directory cannot be written
3 there was no usable device, a device was disconnected for longer than --device-timeout, or no process of the app was found
5 no verdict on the run, on a device or on a long-lived process, or a heap dump is missing; with --strict: any process is inconclusive
6 a heap dump was taken and could not be analyzed
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
	var options monitor.Options
	if err == nil {
		cfg.Strict = cfg.Strict || f.strict
		cfg.AllowUnjudged = cfg.AllowUnjudged || f.unjudged
		options, err = plans.Of(cfg, filepath.Dir(args[0]))
	}
	if err == nil {
		err = plans.Refused(cfg)
	}
	if err != nil {
		c.problem("%v", err)
		return exitUsage
	}
	prepare := func(p *plan) error {
		p.fill(options)
		p.warning = plans.FileCannotJudge(cfg)
		return p.choose(plans.Choice(cfg))
	}
	if cfg.Gated() {
		return f.runGated(c, cfg, args[0], prepare)
	}
	_, code := f.carryOut(c, prepare)
	return f.conclude(c, code)
}

// runGated executes a run and judges it by the rules of its file.
func (f *runVerbFlags) runGated(c console, cfg *config.Config, path string, prepare func(*plan) error) int {
	g := &gateFlags{ruleFlags: ruleFlags{config: path, strict: f.strict, unjudged: f.unjudged}, asJSON: f.asJSON}
	ctx, stop := untilInterrupt()
	s, err := g.settingsOf(c, cfg)
	if err == nil {
		defer s.close()
		// An error in the baseline must be reported before the run rather than
		// after it.
		var b *gate.Baseline
		if b, err = s.load(ctx); err == nil && cfg.Gate.AbortOnFail {
			f.failing = s.failing(c, b)
		}
	}
	stop()
	if err != nil {
		c.problem("%s", printableError(err))
		return exitUsage
	}
	result, code := f.judged(c, g, s, prepare)
	if result != nil && result.Verdict == comparison.Fail && cfg.Gate.Confirm > 0 && code == record.ExitLeak {
		code = f.confirm(c, g, s, prepare, result)
	}
	return code
}

// judged executes a run and returns the verdict of the gate, or nil if the run
// cannot be judged.
func (f *runVerbFlags) judged(c console, g *gateFlags, s *gateSettings,
	prepare func(*plan) error) (*comparison.Comparison, int) {
	_, code := f.carryOut(c, prepare)
	if f.started == "" || code == exitUsage && !f.unprinted {
		return nil, f.conclude(c, code)
	}
	g.runs = []string{f.started}
	ctx, stop := untilInterrupt()
	defer stop()
	result, err := g.judge(ctx, c, s)
	if err != nil {
		return nil, g.failed(c, ctx, err)
	}
	code = g.reportRun(c, s, result)
	if f.unprinted {
		code = exitUsage // takes precedence over all others
	}
	if !f.asJSON { // reportRun has already printed the reason with --json
		c.note("%s", conclusion(code, text.Printable(result.Text)))
	}
	return result, f.reportLocation(c, code)
}

// confirm repeats a failed run. The result is a failure only for leaks that
// were found in both runs.
func (f *runVerbFlags) confirm(c console, g *gateFlags, s *gateSettings, prepare func(*plan) error,
	first *comparison.Comparison) int {
	c.note("the run fails; repeating it once, because gate.confirm is set")
	f.out, f.started = f.started+"-confirm", ""
	result, code := f.judged(c, g, s, prepare)
	if result == nil || !result.Judged {
		return code
	}
	both := gate.Confirm(first, result)
	code = g.reportRun(c, s, both)
	if !f.asJSON {
		c.note("%s", conclusion(code, text.Printable(both.Text)))
	}
	return code
}
