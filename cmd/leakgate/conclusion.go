package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// conclusion returns the result of a run in one line: "failed (exit code 1):
// com.shop leaks".
func conclusion(code int, why string) string {
	word := "failed"
	switch code {
	case exitOK:
		word = "passed"
	case record.ExitInconclusive:
		word = "inconclusive"
	case record.ExitInterrupted:
		word = "interrupted"
	}
	return fmt.Sprintf("%s (exit code %d): %s", word, code, why)
}

// decidedBy returns the reason for the exit code of a run that no gate judged.
func decidedBy(r record.Run, code int) string {
	unsure := chosen(r, func(p record.Process) bool { return p.Gate == detector.Inconclusive })
	switch code {
	case exitOK:
		switch {
		case len(r.Processes) > 0 && !slices.ContainsFunc(r.Processes, ledger.Judged):
			return "nothing could be judged, which --allow-unjudged accepts"
		case len(unsure) > 0:
			return "no leak found; no verdict on " + listed(unsure)
		}
		return "no leak found"
	case record.ExitLeak:
		return leakers(r)
	case record.ExitNoDevice:
		for _, d := range r.Devices {
			if d.Error != "" {
				return "device " + text.Printable(d.Device) + " was lost"
			}
		}
		return "no process of the app was found"
	case record.ExitWorkload:
		return "the workload failed"
	case record.ExitUnread:
		return "a heap dump could not be analyzed"
	case record.ExitInterrupted:
		return "the run was stopped before its end"
	case record.ExitInconclusive:
		return undecided(r, unsure)
	}
	return "the run directory or the report could not be written"
}

// leakers returns a phrase with the names of the processes that leak. If no
// single process leaks, it names what leaks instead.
func leakers(r record.Run) string {
	for _, leaks := range []func(record.Process) bool{
		func(p record.Process) bool { return p.Gate == detector.Leak },
		func(p record.Process) bool { return p.Worst == detector.Leaking },
	} {
		switch names := chosen(r, leaks); len(names) {
		case 0:
		case 1:
			return names[0] + " leaks"
		default:
			return listed(names) + " leak"
		}
		for _, a := range r.Apps {
			if a.Leaks() {
				return "the processes of " + text.Printable(a.App) + " leak together"
			}
		}
	}
	return "a check found a leak"
}

// undecided returns what is missing for a verdict.
func undecided(r record.Run, unsure []string) string {
	switch {
	case len(r.MissingEvidence) > 0:
		return "a heap dump is missing"
	case len(unsure) > 0:
		return "no verdict on " + listed(unsure)
	case len(r.Unjudged) > 0 && r.Unjudged[0].Process == "":
		return "no verdict on device " + text.Printable(r.Unjudged[0].Device)
	case len(r.Unjudged) > 0:
		return "no verdict on " + text.Printable(r.Unjudged[0].Process)
	}
	return "nothing could be judged"
}

// chosen returns the names of the selected processes, each once. If there are
// several devices, each name includes its device.
func chosen(r record.Run, include func(record.Process) bool) []string {
	var names []string
	for _, p := range r.Processes {
		name := p.Process
		if len(r.Devices) > 1 {
			name += " on " + p.Device
		}
		if name = text.Printable(name); include(p) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// namedProcesses bounds the number of processes that a line names.
const namedProcesses = 3

func listed(names []string) string {
	if more := len(names) - namedProcesses; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:namedProcesses], ", "), more)
	}
	return strings.Join(names, ", ")
}
