package reporters

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// WriteReplay writes the verdicts on recordings: a table, then the evidence for
// each process, with the looks if requested.
func WriteReplay(w io.Writer, r record.Replay) error {
	var out page
	out.line("%s", replayHeading)
	names := replayNames(r.Processes)
	for i, p := range r.Processes {
		out.line("%s", replayLine(p, names[i]))
	}
	for _, a := range r.Apps {
		out.line("%s", replayLine(appAsProcess(a), appNames(a, r)))
	}
	for i, p := range r.Processes {
		out.replayed(p, names[i], r.Policy)
	}
	for _, a := range r.Apps {
		out.replayedApp(a, r)
	}
	out.warnings(r.Warnings)
	against := ""
	switch n := len(r.Bases); {
	case n > 1:
		against = fmt.Sprintf(", as the difference from %d base recordings: %s", n,
			strings.Join(firstOf(r.Bases), ", "))
	case r.Base != "":
		against = ", as the difference from " + r.Base
	}
	out.line("judged by policy %s%s", r.Policy, against)
	return out.writeTo(w)
}

const (
	// nameColumns is the width of the names in the table, and longName is the
	// maximum width of a name above the evidence, both in columns.
	nameColumns = 32
	longName    = 64
	// maxSteps is the maximum number of printed transitions of one process.
	maxSteps = 10
)

var replayHeading = fmt.Sprintf("%-*s %-12s %-10s %-11s %7s %7s %9s %19s %9s %9s",
	nameColumns, "PROCESS", "VERDICT", "WORST", "KIND", "SAMPLES", "LENGTH", "MB/h", "95 %", "DETECTS", "GREW MB")

// replayNames returns a distinct name for each process. The name contains the
// user, the device and the file where they are needed, and the pid if the name
// occurs more than once in a file.
func replayNames(processes []record.ReplayProcess) []string {
	type place struct {
		name, file string
	}
	names := make([]string, len(processes))
	files, devices, here := map[string]bool{}, map[string]bool{}, map[place]int{}
	for i, p := range processes {
		names[i] = p.Process.Process
		if p.User != 0 {
			names[i] += fmt.Sprintf(" (user %d)", p.User)
		}
		files[p.File], devices[p.Device] = true, true
	}
	for i, p := range processes {
		if len(devices) > 1 && p.Device != "" {
			names[i] += " on " + p.Device
		}
		here[place{names[i], p.File}]++
	}
	for i, p := range processes {
		if here[place{names[i], p.File}] > 1 {
			names[i] += fmt.Sprintf(" (pid %d)", p.PID)
		}
	}
	for i, p := range processes {
		if len(files) > 1 {
			names[i] += " in " + p.File
		}
	}
	return names
}

func replayLine(p record.ReplayProcess, name string) string {
	rate, interval, unseen, kind := "-", "-", "-", "-"
	if p.Rate != nil && len(p.RateInterval) == 2 {
		rate = fmt.Sprintf("%+.1f", *p.Rate)
		interval = fmt.Sprintf("%+.1f to %+.1f", p.RateInterval[0], p.RateInterval[1])
	}
	if p.MinDetectable != nil {
		unseen = fmt.Sprintf("%.1f", *p.MinDetectable)
	}
	if p.Kind != detector.None {
		kind = p.Kind.String()
	}
	return fmt.Sprintf("%s %-12s %-10s %-11s %7d %7s %9s %19s %9s %+9.1f", text.Cell(name, nameColumns),
		p.Gate, p.Worst, kind, p.Samples, text.Span(p.Duration), rate, interval, unseen, p.Growth)
}

// appNames returns the name of an app in the table of processes.
func appNames(a record.ReplayApp, r record.Replay) string {
	who := a.App
	if a.User != 0 {
		who += fmt.Sprintf(" (user %d)", a.User)
	}
	who += " (all processes)"
	if slices.ContainsFunc(r.Apps, func(b record.ReplayApp) bool { return b.Device != a.Device }) {
		who += " on " + a.Device
	}
	if slices.ContainsFunc(r.Processes, func(p record.ReplayProcess) bool { return p.File != a.File }) {
		who += " in " + a.File
	}
	return who
}

func appAsProcess(a record.ReplayApp) record.ReplayProcess {
	return record.ReplayProcess{File: a.File, Process: a.Verdict(), Base: a.Base, Looks: a.Looks}
}

// replayedApp writes the evidence for an app, in full if only the sum leaks.
func (out *page) replayedApp(a record.ReplayApp, r record.Replay) {
	p, who := appAsProcess(a), appNames(a, r)
	switch {
	case a.Leaks():
		out.replayed(p, who, r.Policy)
		if held := growthHolders(a.AppVerdict); held != "" {
			out.line("  held by  %s", held)
		}
	case len(a.Looks) > 0:
		out.replayed(p, who, r.Policy)
	case len(a.Leaking) > 0:
		out.blank()
		out.line("%s: %s; %s", text.TailColumns(who, longName), a.Gate, leakingText(a.Leaking))
	case a.Reason != "":
		out.blank()
		out.line("%s: %s: %s", text.TailColumns(who, longName), a.Gate, a.Reason)
	}
}

// replayed writes the evidence for one process, and its looks if there are any.
func (out *page) replayed(p record.ReplayProcess, name, policy string) {
	out.blank()
	because := whyBesideLives(p.Process)
	if because != "" {
		because = ": " + because
	}
	out.line("%s: %s%s", text.TailColumns(name, longName), Headline(p.Process, policy), because)
	for _, s := range p.Shares {
		out.line("  grew     %s %.0f %% (%+.1f MB, %+.1f MB/h)", s.Dimension, 100*s.Share, s.Growth, s.Rate)
	}
	for _, j := range p.Jumps {
		out.line("  jump     %+.0f MB at %s%s", j.Size, text.Span(j.T),
			map[bool]string{true: ", sustained"}[j.Sustained])
	}
	for _, t := range p.Transitions[:min(len(p.Transitions), maxSteps)] {
		out.line("  %-8s %s -> %s: %s", text.Span(t.T), DescribeState(t.From, policy), DescribeState(t.To, policy),
			t.Reason)
	}
	if more := len(p.Transitions) - maxSteps; more > 0 {
		out.line("  %s; use --json to list all", text.Plural(more, "more transition", "more transitions"))
	}
	if p.Unjudged != "" {
		out.line("  not judged: %s", text.Printable(p.Unjudged))
	}
	out.looks(p.Looks)
	for _, text := range p.Warnings {
		out.line("  warning: %s", text)
	}
}
