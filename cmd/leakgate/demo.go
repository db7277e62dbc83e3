package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/fleet"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/capture/diagnose"
	"github.com/leakgate/leakgate/internal/harness/hostmemory"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/spf13/cobra"
)

const (
	demoScale = 200
	// demoDuration is long enough to prove the leak at the end, not only to
	// suspect it: the growth is three times what policy robust requires.
	demoDuration = time.Hour
	demoLeak     = "com.shop"
	demoHealthy  = "com.shop:push"
)

func demoCommand(c *console) *cobra.Command {
	f := demoFlags{seed: 1, serving: serving{speed: serveSpeed}}
	cmd := &cobra.Command{
		Use: "demo", GroupID: groupWatch,
		Short: "find a leak on a simulated phone; no device needed",
		Long: `Watch an app on a simulated phone whose clock runs 200 times faster: one process
leaks Java memory, the other is healthy. An hour of phone time takes 18 seconds. The
phone speaks adb's protocol; everything else is real.

The heap dump and its copy need 1 GB of free disk space; 0.3 GB remain in the run
directory.

With --serve, the phone is served by an adb server on 127.0.0.1 until Ctrl-C, so that
you can try leakgate, adb and your own scripts without a phone. The phone has an
app that leaks, and instrumented tests of that app. The commands to type in another shell are printed.`,
		Example: "  leakgate demo\n  leakgate demo --seed 7 --out runs/demo\n  leakgate demo --serve --speed 60",
		Annotations: manual{
			exits: `0 the demo found and traced the leak, and found no leak in the healthy process; or the phone was served until Ctrl-C
1 the demo failed
2 the command line is invalid, or the run directory cannot be written
3 the simulated phone cannot be started
130 interrupted`, page: "docs/formats/demo.md"}.annotations(),
		RunE: c.run(f.demo),
	}
	cmd.Flags().Var(number(&f.seed, "N", 0), "seed", "seed of the simulated memory")
	f.declareOutput(cmd.Flags(), "run.json (with --serve: the address of the phone)")
	f.serving.declare(cmd.Flags())
	f.deviceTimeout = monitor.DefaultSampling.DeviceTimeout
	return cmd
}

type demoFlags struct {
	runFlags
	serving
	seed uint64
}

func (f *demoFlags) demo(c console, args []string) int {
	if err := withoutArguments(args, ""); err != nil {
		return c.usage(err)
	}
	if err := f.serving.check(c.command.Flags()); err != nil {
		return c.usage(err)
	}
	if f.serve {
		return f.serving.run(c, f.seed, f.asJSON)
	}
	phone := androidsim.Demo(demoScale, f.seed)
	server, err := adbd.Listen(phone)
	if err != nil {
		c.problem("start the simulated phone: %v", err)
		return record.ExitNoDevice
	}
	run, code := f.carryOut(c, func(p *plan) error {
		client, err := fleet.NewClient(adb.Options{Addr: server.Addr(), NoStart: true})
		if err != nil {
			return err
		}
		p.options.Patterns = []capture.Pattern{demoLeak, demoLeak + ":*"}
		p.options.Policy = detector.DefaultPolicy()
		p.options.Duration = demoDuration
		p.options.Respond = &response.Options{Cooldown: response.DefaultCooldown, Memory: hostmemory.Free}
		return p.choose(fleet.DeviceChoice{Client: client, Serials: []string{phone.Identity().Serial}, StandIn: true})
	})
	if err := server.Close(); err != nil {
		c.problem("stop the simulated phone: %v", err)
	}
	return f.reportLocation(c, demoCode(c, run, code))
}

// demoCode prints whether a demo passed, and converts the exit code of its run
// to the exit code of the demo. A demo that was interrupted or could not start
// proves nothing.
func demoCode(c console, run record.Run, code int) int {
	if code != record.ExitLeak && code != record.ExitClean {
		return code
	}
	if fault := demoFault(run); fault != "" {
		c.problem("%s", fault)
		return record.ExitLeak
	}
	c.note("passed: found and traced the leak; no alarm for the healthy process (a run would exit with 1 here)")
	return exitOK
}

// reportIt is the advice for a fault of leakgate itself.
const reportIt = "; please report it with the run directory"

// demoFault returns what a demo failed to show and what to do about it, or ""
// if it passed.
func demoFault(run record.Run) string {
	for _, p := range run.Processes {
		leak := p.Gate == detector.Leak && p.Kind == detector.Java
		switch {
		case p.Process == demoLeak && !leak:
			return "the Java leak of com.shop was not found" + reportIt
		case p.Process == demoLeak && p.FirstLeaking == nil:
			return "the leak of com.shop was not reported during the run" + reportIt
		case p.Process == demoHealthy && p.Worst != detector.Normal:
			return "leakgate suspected a leak in the healthy process com.shop:push" + reportIt
		}
	}
	if len(run.Processes) != 2 {
		return fmt.Sprintf("found %d processes, want 2%s", len(run.Processes), reportIt)
	}
	return demoUntraced(run)
}

// demoUntraced returns why the leak that was found has no trace, or "" if it
// has one.
func demoUntraced(run record.Run) string {
	var why []string
	for _, d := range run.Diagnoses {
		if d.Process != demoLeak || d.Trigger == record.TriggerSuspicious {
			continue
		}
		if slices.ContainsFunc(d.Findings,
			func(f record.Finding) bool { return f.Type == "leak" && len(f.Trace) > 0 }) {
			return ""
		}
		for _, s := range d.Steps {
			if s.Step == "heap" && s.Outcome == string(diagnose.Failed) {
				why = append(why, s.Reasons...)
			}
		}
		why = append(why, d.Warnings...)
	}
	text := "the leak was found, but no heap dump shows what leaks"
	if len(why) > 0 {
		text += ": " + strings.Join(why, "; ")
	}
	if strings.Contains(text, "the host's disk is full") || strings.Contains(text, syscall.ENOSPC.Error()) {
		return text + "; free space or choose another --out"
	}
	return text + reportIt
}
