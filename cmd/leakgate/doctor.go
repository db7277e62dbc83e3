package main

import (
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/internal/harness/doctor"
	plans "github.com/leakgate/leakgate/internal/harness/plan"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/spf13/cobra"
)

func doctorCommand(c *console) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use: "doctor", GroupID: groupHost,
		Short: "check this computer, adb and each device",
		Long: `Check the adb program and server, the directory for runs, each device, and how the
memory of each process can be read, and report how to fix what is missing. The first line
is the next step. Without --process, the running apps that are not part of Android are checked.

Nothing is changed: no adb server is started, no file is written. A root manager on a
device may ask whether the shell may be root, as it would in a run.`,
		Example: `  leakgate doctor
  leakgate doctor --process 'com.shop*' --device emulator-5554`,
		Annotations: manual{exits: `0 a run can start
2 the command line, a setting or the directory for runs is invalid
3 no usable device
130 interrupted`, page: "docs/formats/doctor.md"}.annotations(),
		RunE: c.run(f.examine),
	}
	flags := cmd.Flags()
	flags.Var(list{&f.processes, "NAME", true}, "process",
		"process to check; a star at the end matches any characters: 'com.shop*' (repeatable)")
	flags.Var(word(&f.device, "SERIAL"), "device", "the only device to check")
	flags.BoolVar(&f.standIn, "stand-in", false, standInUsage)
	flags.BoolVar(&f.asJSON, "json", false, jsonUsage)
	return cmd
}

type doctorFlags struct {
	processes []string
	device    string
	standIn   bool
	asJSON    bool
}

func (f *doctorFlags) examine(c console, args []string) int {
	if err := withoutArguments(args, "process"); err != nil {
		return c.usage(err)
	}
	patterns, err := plans.Patterns(f.processes)
	if err != nil {
		return c.usage(err)
	}
	standIn, err := c.allowsStandIn(f.standIn)
	if err != nil {
		return c.usage(err)
	}
	c.warnOfVariables()
	ctx, stop := untilInterrupt()
	defer stop()
	bar := newBar(c)
	report := doctor.Examine(ctx, doctor.Options{
		Device: f.device, Patterns: patterns, Dir: "leakgate-runs", Progress: lookProgress(bar),
		Getenv: c.variable, StandIn: standIn,
	})
	bar.close()
	if err := f.tell(c.out, report); err != nil {
		c.problem("print the report: %v", err)
		return exitUsage
	}
	return doctorExit(report.Outcome)
}

// lookProgress returns a function that shows what is being checked.
func lookProgress(b *bar) func(string) {
	return func(what string) { b.phase("checking " + text.Printable(what)) }
}

func (f *doctorFlags) tell(w io.Writer, r doctor.Report) error {
	if !f.asJSON {
		return doctor.WriteText(w, r)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

func doctorExit(o doctor.Readiness) int {
	switch o {
	case doctor.Usable:
		return exitOK
	case doctor.Misconfigured:
		return exitUsage
	case doctor.Interrupted:
		return record.ExitInterrupted
	}
	return record.ExitNoDevice
}

// isForDoctor reports whether doctor can explain an error: one from the adb
// server, or one about a device that cannot be used.
func isForDoctor(err error) bool {
	return slices.ContainsFunc(
		[]error{
			adb.ErrNoServer, adb.ErrNoDevice, adb.ErrUnauthorized, adb.ErrOffline, adb.ErrDeviceGone, adb.ErrProtocol,
			capture.ErrDevice,
		},
		func(kind error) bool { return errors.Is(err, kind) })
}
