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
	"strings"
	"syscall"

	"github.com/leakgate/leakgate/detector"
	replays "github.com/leakgate/leakgate/harness/replay"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

func replayVerb() verb {
	return verb{
		name: "replay", args: "FILE... [flags]",
		summary: "judge recorded samples again",
		help: `Judges memory that was recorded before: a run directory or its samples.ndjson, also of
a run that was killed, or a table as CSV; "-" is standard input. A table has a header;
t_s (seconds) and pss_kb must be there. Many processes stand one below the other with
their names in a column process. Columns swap_pss_kb, java_heap_kb, native_heap_kb,
graphics_kb, total_pss_kb, pid, mark and others are used where they are.

With --base what is judged is the difference from the same process of another
recording. The exit code says whether the files could be judged, not what was found;
with --gate it is 1 for a leak.`,
		example: "leakgate replay memory.csv --column app_pss_kb",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			var f replayFlags
			fs.StringVar(&f.policy, "policy", detector.PolicyRobust, "`NAME` of the policy: robust or article")
			fs.StringVar(&f.base, "base", "", "`FILE` to compare with, such as the recording of the release before")
			fs.StringVar(&f.column, "column", "", "`NAME` of the column of a table to judge instead of pss_kb")
			fs.BoolVar(&f.explain, "explain", false, "print the looks of policy robust that count, with their reasons; --json has all looks")
			fs.BoolVar(&f.gate, "gate", false, "exit with 1 if there is a leak")
			fs.BoolVar(&f.strict, "strict", false, "with --gate: exit with 5 if there is not enough evidence")
			fs.BoolVar(&f.asJSON, "json", false, "print JSON on stdout and nothing else there")
			return f.replay
		},
	}
}

type replayFlags struct {
	policy, base, column          string
	explain, gate, strict, asJSON bool
}

func (f *replayFlags) replay(c console, args []string) int {
	if len(args) == 0 {
		return replayVerb().wrong(c, errors.New("no file to judge; name a run directory, its samples.ndjson or a CSV file"))
	}
	policy, err := policyNamed(f.policy)
	if err != nil {
		return replayVerb().wrong(c, fmt.Errorf("--policy: %w", err))
	}
	if f.explain && policy.Name != detector.PolicyRobust {
		fmt.Fprintln(c.err, "leakgate replay: --explain is for policy robust; policy article tells its steps anyway")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	result, err := f.judge(ctx, c, args, policy)
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(c.err, "leakgate replay: interrupted; nothing was judged")
		return record.ExitInterrupted
	case err != nil:
		fmt.Fprintf(c.err, "leakgate replay: %v\n", err)
		return exitUsage
	}
	if err := f.tell(c.out, result); err != nil {
		fmt.Fprintf(c.err, "leakgate replay: print the verdict: %v\n", err)
		return exitUsage
	}
	return f.exit(result)
}

// judge reads and judges, and gives up with ctx even where a read waits: on a
// terminal, or on a pipe that nobody writes to.
func (f *replayFlags) judge(ctx context.Context, c console, files []string, policy detector.Policy) (replays.Result, error) {
	type outcome struct {
		result replays.Result
		err    error
	}
	bar := newBar(c.err)
	defer bar.close()
	bar.phase("read the recordings")
	done := make(chan outcome, 1)
	go func() {
		result, err := replays.Run(ctx, files, replays.Options{
			Policy: policy, Base: f.base, Column: f.column, Explain: f.explain,
			Stdin: c.in, Progress: readProgress(bar),
		})
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		return replays.Result{}, ctx.Err()
	}
}

// readProgress tells how far a file is read.
func readProgress(b *bar) func(string, float64) {
	const whole = 1000
	return func(file string, share float64) {
		b.at("read "+text.Printable(file), int64(share*whole), whole)
	}
}

func (f *replayFlags) exit(r replays.Result) int {
	if !f.gate {
		return exitOK
	}
	code := exitOK
	for _, p := range r.Processes {
		switch {
		case p.Gate == detector.Leak:
			return record.ExitLeak
		case f.strict && p.Gate == detector.Inconclusive:
			code = record.ExitInconclusive
		}
	}
	return code
}

func (f *replayFlags) tell(w io.Writer, r replays.Result) error {
	if f.asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(r)
	}
	var b strings.Builder
	b.WriteString(replayHeading + "\n")
	names := replayNames(r.Processes)
	for i, p := range r.Processes {
		put(&b, "%s", replayLine(p, names[i]))
	}
	for i, p := range r.Processes {
		tellReplayed(&b, p, names[i], r.Policy)
	}
	for _, text := range r.Warnings {
		put(&b, "warning: %s", text)
	}
	against := ""
	if r.Base != "" {
		against = ", as the difference from " + r.Base
	}
	put(&b, "judged by policy %s%s", r.Policy, against)
	_, err := io.WriteString(w, b.String())
	return err
}

// put writes one line, Printable whatever is in the arguments.
func put(b *strings.Builder, format string, args ...any) {
	b.WriteString(text.Printable(fmt.Sprintf(format, args...)))
	b.WriteByte('\n')
}

var replayHeading = fmt.Sprintf("%-*s %-12s %-10s %-11s %7s %7s %9s %19s %9s %9s",
	nameColumns, "PROCESS", "VERDICT", "WORST", "KIND", "SAMPLES", "LENGTH", "MB/h", "95 %", "UNSEEN <", "GREW MB")

// replayNames tell the processes apart: by user and device, and by file or pid where
// the same name is there more than once.
func replayNames(processes []replays.Process) []string {
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
		names[i] = text.Printable(names[i])
	}
	return names
}

func replayLine(p replays.Process, name string) string {
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

// maxSteps bounds the steps of one process that are told in words.
const maxSteps = 10

// tellReplayed tells the evidence of one process, and its looks where there are any.
func tellReplayed(b *strings.Builder, p replays.Process, name, policy string) {
	b.WriteByte('\n')
	because := p.Because
	if because != "" {
		because = ": " + because
	}
	put(b, "%s: %s%s", text.TailColumns(name, maxName), reporters.Headline(p.Process, policy), because)
	for _, s := range p.Shares {
		put(b, "  grew     %s %.0f %% (%+.1f MB, %+.1f MB/h)", s.Dimension, 100*s.Share, s.Growth, s.Rate)
	}
	for _, j := range p.Jumps {
		put(b, "  jump     %+.0f MB at %s%s", j.MB, text.Span(j.T), map[bool]string{true: ", and it stayed"}[j.Stayed])
	}
	for _, t := range p.Transitions[:min(len(p.Transitions), maxSteps)] {
		put(b, "  %-8s %s -> %s: %s", text.Span(t.T), reporters.StateWords(t.From, policy), reporters.StateWords(t.To, policy), t.Because)
	}
	if more := len(p.Transitions) - maxSteps; more > 0 {
		put(b, "  %d more steps; --json has them", more)
	}
	tellLooks(b, p.Looks)
	for _, text := range p.Warnings {
		put(b, "  warning: %s", text)
	}
}
