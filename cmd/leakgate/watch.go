package main

import (
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/text"
)

func watchVerb() verb {
	return verb{
		name: "watch", args: "--process NAME [flags]",
		summary: "watch an app on a device, without any file",
		help: `Watches every process whose name is NAME, or begins as NAME does where it ends in
a star, until Ctrl-C or --for. Memory is sampled every 30 s, more often when it
looks like a leak; a verdict per process is given at the end.`,
		example: "leakgate watch --process 'com.shop*' --for 2h",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			var f watchFlags
			fs.Var(&f.processes, "process", "`NAME` of the processes to watch, or NAME* (repeatable)")
			fs.StringVar(&f.device, "device", "", "`SERIAL` of the device, if there are several")
			fs.StringVar(&f.policy, "policy", detector.DefaultPolicy().Name, "`NAME` of the policy: robust or article")
			fs.Var(&f.span, "for", "`TIME` to watch, such as 30m or 2h; without it until Ctrl-C")
			fs.StringVar(&f.dump, "dump", string(response.OnLeak), "`WHEN` heaps are dumped: on_leak, at_end or at_marks")
			f.responseFlags.declare(fs)
			f.runFlags.declare(fs)
			return f.watch
		},
	}
}

type watchFlags struct {
	runFlags
	responseFlags
	dump      string
	processes list
	device    string
	policy    string
	span      span
}

func (f *watchFlags) watch(c console, args []string) int {
	if len(args) > 0 {
		return watchVerb().wrong(c, fmt.Errorf("%q stands alone; name processes with --process %s", args[0], args[0]))
	}
	if len(f.processes) == 0 {
		return watchVerb().wrong(c, fmt.Errorf("no process to watch; write --process NAME, such as --process com.shop"))
	}
	patterns, err := patternsOf(f.processes)
	if err != nil {
		return watchVerb().wrong(c, err)
	}
	policy, err := policyNamed(f.policy)
	if err != nil {
		return watchVerb().wrong(c, fmt.Errorf("--policy: %w", err))
	}
	respond, err := f.responseFlags.options()
	if err == nil {
		respond.Dump = response.Dump(f.dump)
		err = checkDump(respond.Dump)
	}
	if err != nil {
		return watchVerb().wrong(c, err)
	}
	_, code := f.carryOut(c, "watch", func(p *plan) error {
		p.options.Respond = &respond
		p.options.Patterns = patterns
		p.options.Policy = policy
		p.options.Duration = time.Duration(f.span)
		dev, err := p.selectDevice(f.device)
		if err != nil {
			return err
		}
		p.options.Devices = []monitor.Device{dev}
		return nil
	})
	return f.placed(c, "watch", code)
}

func checkDump(d response.Dump) error {
	if !slices.Contains([]response.Dump{response.OnLeak, response.AtEnd, response.AtMarks}, d) {
		return fmt.Errorf("--dump %s: write on_leak, at_end or at_marks", text.Printable(string(d)))
	}
	return nil
}

// policyNamed is a policy with its own constants.
func policyNamed(name string) (detector.Policy, error) {
	p := detector.DefaultPolicy()
	p.Name = name
	return p, p.Validate()
}

func patternsOf(words []string) ([]capture.Pattern, error) {
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

// span is a flag of a positive time.
type span time.Duration

func (s *span) String() string { return time.Duration(*s).String() }

func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("not a time; write one such as 90s, 30m or 2h")
	}
	*s = span(d)
	return nil
}
