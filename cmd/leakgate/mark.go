package main

import (
	"context"
	"errors"
	"strings"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/spf13/cobra"
)

func markCommand(c *console) *cobra.Command {
	var f markFlags
	cmd := &cobra.Command{
		Use: "mark --run DIR [--wait] TEXT", GroupID: groupWatch,
		Short: "record a mark in a run in progress",
		Long: `Record TEXT as a mark at the current time of the run that writes to DIR, on every device:
for example, the start of a loop of a test suite. A workload finds DIR in the variable
LEAKGATE_RUN, or prints a line "leakgate:mark TEXT" instead.

With --wait the command returns once every process has been dumped, if the run dumps at
marks (diagnose.dump is at_marks). Leave the app alone until then: leakgate waits for 5 s,
and then until the object counts of the processes are stable, so that no dump contains
work in progress. Run it after each loop; three such dumps prove a leak. An app that was just
started has 10 s to appear. Missing dumps are listed; if no process was dumped at all,
the exit code is 5.`,
		Example: `  leakgate mark --run leakgate-runs/tonight 'loop 3'
  leakgate mark --run "$LEAKGATE_RUN" --wait checkout`,
		Annotations: manual{exits: `0 the mark was recorded
2 the command line is invalid, or no run is in progress in DIR
5 the mark was recorded, but --wait could not dump any process
130 interrupted while waiting`}.annotations(),
		RunE: c.run(func(c console, args []string) int { return f.mark(c, strings.Join(args, " ")) }),
	}
	cmd.Flags().Var(word(&f.dir, "DIR"), "run", "directory of the run")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait until every process has settled and been dumped")
	return cmd
}

type markFlags struct {
	dir  string
	wait bool
}

func (f *markFlags) mark(c console, text string) int {
	if f.dir == "" {
		return c.usage(errors.New("no run directory: add --run DIR, or in a workload --run \"$LEAKGATE_RUN\""))
	}
	ctx, stop := untilInterrupt()
	defer stop()
	missing, err := monitor.SendMark(ctx, f.dir, text, f.wait)
	switch {
	case errors.Is(err, context.Canceled):
		c.problem("interrupted: %v", err)
		return record.ExitInterrupted
	case err != nil && len(missing) == 0:
		return c.usage(err)
	}
	for _, line := range missing {
		c.problem("%s", line)
	}
	if err != nil { // every dump is missing
		return record.ExitInconclusive
	}
	return exitOK
}
