package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/leakgate/leakgate/harness/monitor"
)

func markVerb() verb {
	return verb{
		name: "mark", args: "--run DIR TEXT",
		summary: "put a mark on the time axis of a run that goes on",
		help: `Puts TEXT on the time axis of the run that writes to DIR, on every device, such as
the beginning of a loop of a suite. A workload may print "leakgate:mark TEXT" instead.`,
		example: "leakgate mark --run leakgate-runs/tonight 'loop 3'",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			dir := fs.String("run", "", "`DIR` of the run")
			return func(c console, args []string) int { return mark(c, *dir, strings.Join(args, " ")) }
		},
	}
}

// markWait is how long a run may take to answer, in real time.
const markWait = 5 * time.Second

func mark(c console, dir, text string) int {
	if dir == "" {
		return markVerb().wrong(c, fmt.Errorf("no run; write --run DIR (a workload finds it in LEAKGATE_RUN)"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), markWait)
	defer cancel()
	if err := monitor.SendMark(ctx, dir, text); err != nil {
		return markVerb().wrong(c, err)
	}
	return exitOK
}
