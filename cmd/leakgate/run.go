package main

import (
	"fmt"
	"path/filepath"

	"github.com/leakgate/leakgate/harness/monitor"
	plans "github.com/leakgate/leakgate/internal/harness/plan"
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
	var options monitor.Options
	if err == nil {
		options, err = plans.Of(cfg, filepath.Dir(args[0]))
	}
	if err != nil {
		c.problem("%v", err)
		return exitUsage
	}
	_, code := f.carryOut(c, func(p *plan) error {
		p.fill(options)
		return p.choose(plans.Choice(cfg))
	})
	return f.reportLocation(c, code)
}
