package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/internal/harness/doctor"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

func doctorVerb() verb {
	return verb{
		name: "doctor", args: "[flags]",
		summary: "what this host and each device can do, and what is missing",
		help: `Looks at the adb program and server, at the directory of the runs, at each device,
and at how the memory of each process can be read. It says what to do about what is
missing; the first line is the next step. It changes nothing: it starts no adb server
and writes no file, here or on a device. A root manager on a device may ask whether the
shell may be root, as it would in a run. Without --process it looks at the apps that
somebody has installed and that run. The exit code is 0 if a run can begin, 3 if no
device is usable, 2 if a setting or the directory stops every run.`,
		example: "leakgate doctor --process 'com.shop*'",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			var f doctorFlags
			fs.Var(&f.processes, "process", "`NAME` of the processes to look at, or NAME* (repeatable)")
			fs.StringVar(&f.device, "device", "", "`SERIAL` of the one device to look at")
			fs.BoolVar(&f.asJSON, "json", false, "print JSON on stdout and nothing else there")
			return f.examine
		},
	}
}

type doctorFlags struct {
	processes list
	device    string
	asJSON    bool
}

func (f *doctorFlags) examine(c console, args []string) int {
	if len(args) > 0 {
		return doctorVerb().wrong(c, fmt.Errorf("%q stands alone; name a process with --process %s", args[0], args[0]))
	}
	patterns, err := patternsOf(f.processes)
	if err != nil {
		return doctorVerb().wrong(c, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	bar := newBar(c.err)
	report := doctor.Examine(ctx, doctor.Options{
		Device: f.device, Patterns: patterns, Dir: "leakgate-runs", Progress: lookProgress(bar),
		Getenv: func(name string) string {
			value, _ := c.getenv(name)
			return value
		},
	})
	bar.close()
	if err := f.tell(c.out, report); err != nil {
		fmt.Fprintf(c.err, "leakgate doctor: print the report: %v\n", err)
		return exitUsage
	}
	return doctorExit(report.Outcome)
}

// lookProgress tells what is looked at.
func lookProgress(b *bar) func(string) {
	return func(what string) { b.phase("looking at " + text.Printable(what)) }
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

func doctorExit(o doctor.Outcome) int {
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

// isForDoctor tells if an error is one that doctor explains: of the adb server, or
// of a device that cannot be used.
func isForDoctor(err error) bool {
	return slices.ContainsFunc([]error{adb.ErrNoServer, adb.ErrNoDevice, adb.ErrUnauthorized, adb.ErrOffline, adb.ErrDeviceGone, adb.ErrProtocol},
		func(kind error) bool { return errors.Is(err, kind) })
}
