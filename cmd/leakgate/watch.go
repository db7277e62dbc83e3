package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/fleet"
	"github.com/leakgate/leakgate/harness/monitor"
	plans "github.com/leakgate/leakgate/internal/harness/plan"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/spf13/cobra"
)

func watchCommand(c *console) *cobra.Command {
	f := watchFlags{policy: detector.DefaultPolicy().Name, dump: response.OnLeak}
	cmd := &cobra.Command{
		Use: "watch --process NAME", GroupID: groupWatch,
		Short: "watch an app on a device, without a YAML file",
		Long: `Watch the processes of an app on a device until Ctrl-C, or for the time given by --for.
Memory is sampled every 30 s, or every 15 s while a leak is suspected; each process gets
a verdict at the end. If a process leaks, evidence is collected and analyzed.`,
		Example: `  leakgate watch --process 'com.shop*' --for 2h
  leakgate watch --process com.shop --for 12m --dump at_marks
  leakgate watch --process com.shop --strict --json > run.json`,
		Annotations: manual{exits: watchExits, page: "docs/response.md"}.annotations(),
		RunE:        c.run(f.watch),
	}
	flags := cmd.Flags()
	flags.Var(list{&f.processes, "NAME", true}, "process",
		"process to watch; a star at the end matches any characters: 'com.shop*' (repeatable)")
	flags.Var(word(&f.device, "SERIAL"), "device", "device to use, if several are connected")
	flags.BoolVar(&f.standIn, "stand-in", false, standInUsage)
	flags.Var(choice(&f.policy, "NAME", detector.PolicyRobust, detector.PolicyArticle), "policy",
		"policy that judges memory")
	flags.Var(durationRange(&f.span, &f.longest), "for",
		"how long to watch, such as 2h, or 30m..2h to extend it for a suspected leak; by default until Ctrl-C")
	flags.Var(rate(&f.mustSee), "must-see", mustSeeUsage)
	flags.Var(choice(&f.dump, "WHEN", dumpTimes...), "dump", "when to dump heaps")
	f.responseFlags.declare(flags)
	f.runFlags.declare(flags)
	return cmd
}

// mustSeeUsage is the help text of --must-see.
const mustSeeUsage = "slowest leak that a pass must rule out, such as 50MB/h; " +
	"a process that could hide such a leak is inconclusive"

// errMustSee is the error for --must-see with policy article, which cannot
// check it.
var errMustSee = errors.New("--must-see: policy article has no detection limit: use policy robust")

// dumpTimes are the values of diagnose.dump.
var dumpTimes = []response.Dump{response.OnLeak, response.AtEnd, response.AtMarks}

type watchFlags struct {
	runFlags
	responseFlags
	dump      response.Dump
	processes []string
	device    string
	standIn   bool
	policy    string
	span      time.Duration
	longest   time.Duration
	mustSee   int64
}

func (f *watchFlags) watch(c console, args []string) int {
	if err := withoutArguments(args, "process"); err != nil {
		return c.usage(err)
	}
	if len(f.processes) == 0 {
		return c.usage(errors.New("no process to watch: add --process NAME, such as --process com.shop"))
	}
	patterns, err := plans.Patterns(f.processes)
	if err != nil {
		return c.usage(err)
	}
	policy, err := plans.Policy(f.policy)
	if err != nil {
		return c.usage(err)
	}
	if f.mustSee > 0 && f.policy == detector.PolicyArticle {
		return c.usage(errMustSee)
	}
	respond, err := f.responseFlags.options()
	if err != nil {
		return c.usage(err)
	}
	respond.Dump = f.dump
	c.warnOfVariables()
	why := plans.CannotJudge(monitor.Options{Duration: f.span, LongestDuration: f.longest, Respond: &respond}, false)
	if why != "" && f.strict {
		return c.usage(fmt.Errorf("--for %s: %s; with --strict, such a run would always exit with 5",
			text.Span(f.span.Seconds()), why))
	}
	_, code := f.carryOut(c, func(p *plan) error {
		if !f.unjudged {
			p.warning = why
		}
		p.options.Respond = &respond
		p.options.Patterns = patterns
		p.options.Policy = policy
		p.options.Duration, p.options.LongestDuration = f.span, f.longest
		p.options.MustSee = float64(f.mustSee)
		// The current directory may not be a checkout of the app, so git is not
		// used.
		p.options.Build = plans.BuildOfCI(c.variable)
		return p.choose(fleet.DeviceChoice{Serials: serials(f.device), Single: true, StandIn: f.standIn})
	})
	return f.conclude(c, code)
}
