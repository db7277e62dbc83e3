package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/harness/response"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters"
)

const (
	demoScale = 200
	// demoDuration is long enough for the leak to be proved at the end, by three times
	// the growth that policy robust asks for, and not only suspected.
	demoDuration = time.Hour
	demoLeak     = "com.shop"
	demoHealthy  = "com.shop:push"
)

func demoVerb() verb {
	return verb{
		name: "demo", args: "[flags]",
		summary: "the whole job on a simulated phone, nothing else installed",
		help: `Watches an app on a simulated phone whose clock runs 200 times faster: one process
leaks Java memory, the other is healthy. An hour of the phone takes eighteen
seconds. The phone speaks the protocol of adb, so that all the rest is the real thing.
The exit code is 0 if the leak was found and the healthy process left alone.`,
		example: "leakgate demo",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			var f demoFlags
			fs.Uint64Var(&f.seed, "seed", 1, "`SEED` of the simulated memory")
			f.runFlags.declare(fs)
			return f.demo
		},
	}
}

type demoFlags struct {
	runFlags
	seed uint64
}

func (f *demoFlags) demo(c console, args []string) int {
	if len(args) > 0 {
		return demoVerb().wrong(c, fmt.Errorf("unexpected %q", args[0]))
	}
	phone := androidsim.Demo(demoScale, f.seed)
	server, err := adbd.Listen(phone)
	if err != nil {
		fmt.Fprintf(c.err, "leakgate demo: start the simulated phone: %v\n", err)
		return monitor.ExitNoDevice
	}
	run, code := f.carryOut(c, "demo", func(p *plan) error {
		p.client, err = adb.NewClient(adb.Options{Addr: server.Addr(), NoStart: true})
		if err != nil {
			return err
		}
		dev, err := p.selectDevice(phone.Identity().Serial)
		if err != nil {
			return err
		}
		p.options.Devices = []monitor.Device{dev}
		p.options.Patterns = []capture.Pattern{demoLeak, demoLeak + ":*"}
		p.options.Policy = detector.DefaultPolicy()
		p.options.Duration = demoDuration
		p.options.Respond = &response.Options{Cooldown: response.DefaultCooldown, Memory: freeMemory}
		return nil
	})
	if err := server.Close(); err != nil {
		fmt.Fprintf(c.err, "leakgate demo: stop the simulated phone: %v\n", err)
	}
	if code != monitor.ExitLeak {
		return code
	}
	if fault := demoFault(run); fault != "" {
		fmt.Fprintf(c.err, "leakgate demo: %s; please report it with the run directory\n", fault)
		return code
	}
	fmt.Fprintln(c.err, "leakgate demo: went as it should: the leak was found, the healthy process left alone (a run would exit 1 here)")
	return exitOK
}

// demoFault says what a demo did not show; empty if it went as it should.
func demoFault(run reporters.Run) string {
	for _, p := range run.Processes {
		leak := p.Gate == string(detector.Leak) && p.Kind == detector.Java.String()
		switch {
		case p.Process == demoLeak && !leak:
			return "the Java leak of com.shop was not found"
		case p.Process == demoLeak && p.FirstLeaking == nil:
			return "the leak of com.shop was not told while it ran"
		case p.Process == demoHealthy && p.Worst != detector.Normal.String():
			return "the healthy process com.shop:push was suspected"
		}
	}
	if len(run.Processes) != 2 {
		return fmt.Sprintf("%d processes were seen, not two", len(run.Processes))
	}
	return ""
}
