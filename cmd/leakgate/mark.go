package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/spf13/cobra"
)

func markCommand(c *console) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "mark --run DIR TEXT", GroupID: groupWatch,
		Short: "put a mark on the time axis of a run in progress",
		Long: `Put TEXT on the time axis of the run that writes to DIR, for every device: the start
of a loop of a test suite, for example. A workload finds DIR
in the variable LEAKGATE_RUN, or prints a line "leakgate:mark TEXT" instead.`,
		Example: `  leakgate mark --run leakgate-runs/tonight 'loop 3'
  leakgate mark --run "$LEAKGATE_RUN" checkout`,
		Annotations: manual{exits: "0 the mark is in the record\n2 the command line is wrong, or no run is in progress in DIR"}.annotations(),
		RunE:        c.run(func(c console, args []string) int { return mark(c, dir, strings.Join(args, " ")) }),
	}
	cmd.Flags().Var(word(&dir, "DIR"), "run", "directory of the run")
	return cmd
}

// markWait is how long a run may take to answer, in real time.
const markWait = 5 * time.Second

func mark(c console, dir, text string) int {
	if dir == "" {
		return c.usage(errors.New("no run directory: write --run DIR, or in a workload --run \"$LEAKGATE_RUN\""))
	}
	ctx, cancel := context.WithTimeout(context.Background(), markWait)
	defer cancel()
	if err := monitor.SendMark(ctx, dir, text); err != nil {
		return c.usage(err)
	}
	return exitOK
}
