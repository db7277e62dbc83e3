package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	plans "github.com/leakgate/leakgate/internal/harness/plan"
	replays "github.com/leakgate/leakgate/internal/harness/replay"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/spf13/cobra"
)

func replayCommand(c *console) *cobra.Command {
	f := replayFlags{policy: detector.PolicyRobust}
	cmd := &cobra.Command{
		Use: "replay FILE...", GroupID: groupRecords,
		Short: "judge recorded samples again",
		Long: `Judge recorded samples again: a run directory or its samples.ndjson, even if the run was
killed, or a CSV table. "-" is standard input.

A table has a header with t_s (seconds) and pss_kb. If it has several processes,
a column "process" names them. Other columns are used if they exist: swap_pss_kb,
java_heap_kb, native_heap_kb, graphics_kb, total_pss_kb, pid, mark, death.

With --base, the difference from the same process of another recording is judged; give
it several times to compare with several earlier runs.`,
		Example: `  leakgate replay leakgate-runs/tonight --gate
  leakgate replay memory.csv --column app_pss_kb --base release.csv --explain`,
		Annotations: manual{exits: `0 the files were judged, whatever the verdict; with --gate: no leak was found
1 a leak, with --gate
2 the command line is invalid, or a file cannot be read or has no samples
5 with --gate: no process has a verdict, or a long-lived process has none; with --gate --strict: a process is inconclusive
130 interrupted`, page: "docs/formats/replay.md"}.annotations(),
		ValidArgsFunction: completeFiles("csv", "ndjson"),
		RunE:              c.run(f.replay),
	}
	flags := cmd.Flags()
	flags.Var(choice(&f.policy, "NAME", detector.PolicyRobust, detector.PolicyArticle), "policy",
		"policy that judges memory")
	flags.Var(list{&f.bases, "FILE", false}, "base",
		"recording to compare with, such as one of the last release; "+
			"several recordings show how much runs vary (repeatable)")
	flags.Var(word(&f.column, "NAME"), "column", "column of a table to judge instead of pss_kb")
	flags.Var(rate(&f.mustSee), "must-see", mustSeeUsage+"; by default that of the run")
	flags.BoolVar(&f.explain, "explain", false,
		"show how the verdict of policy robust develops over time, with reasons; --json has every step")
	flags.BoolVar(&f.gate, "gate", false, "exit with 1 if there is a leak")
	flags.BoolVar(&f.strict, "strict", false, "with --gate: exit with 5 if any process is inconclusive")
	flags.BoolVar(&f.unjudged, "allow-unjudged", false, "with --gate: exit with 0 even if nothing could be judged")
	flags.BoolVar(&f.asJSON, "json", false, jsonUsage)
	return cmd
}

type replayFlags struct {
	policy, column                string
	bases                         []string
	explain, gate, strict, asJSON bool
	unjudged                      bool
	mustSee                       int64
}

func (f *replayFlags) replay(c console, args []string) int {
	if len(args) == 0 {
		return c.usage(errors.New("no file to judge: name a run directory, its samples.ndjson or a CSV file"))
	}
	policy, err := plans.Policy(f.policy)
	if err != nil {
		return c.usage(err)
	}
	if f.mustSee > 0 && policy.Name == detector.PolicyArticle {
		return c.usage(errMustSee)
	}
	if f.explain && policy.Name != detector.PolicyRobust {
		c.note("--explain is for policy robust; policy article always shows its steps")
	}
	ctx, stop := untilInterrupt()
	defer stop()
	result, err := f.judge(ctx, c, args, policy)
	switch {
	case errors.Is(err, context.Canceled):
		c.problem("interrupted; nothing was judged")
		return record.ExitInterrupted
	case err != nil:
		c.problem("%v", err)
		return exitUsage
	}
	if err := f.tell(c.out, result); err != nil {
		c.problem("print the verdict: %v", err)
		return exitUsage
	}
	return f.exit(result)
}

// judge reads and judges the input. It returns when ctx is done, even if a read
// blocks because the input is a terminal or a pipe to which nobody writes.
func (f *replayFlags) judge(ctx context.Context, c console, files []string, policy detector.Policy) (record.Replay,
	error) {
	type outcome struct {
		result record.Replay
		err    error
	}
	bar := newBar(c)
	defer bar.close()
	bar.phase("read the recordings")
	done := make(chan outcome, 1)
	go func() {
		result, err := replays.Run(ctx, files, replays.Options{
			Policy: policy, MustSee: float64(f.mustSee), Bases: f.bases, Column: f.column, Explain: f.explain,
			Stdin: c.in, Progress: readProgress(bar),
		})
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		return record.Replay{}, ctx.Err()
	}
}

// readProgress returns a function that shows how much of a file has been read.
func readProgress(b *bar) func(string, float64) {
	const whole = 1000
	return func(file string, share float64) {
		b.at("read "+text.Printable(file), int64(share*whole), whole)
	}
}

func (f *replayFlags) exit(r record.Replay) int {
	if !f.gate {
		return exitOK
	}
	judged, unjudged := false, false
	for _, p := range r.Processes {
		judged, unjudged = judged || ledger.Judged(p.Process), unjudged || p.Unjudged != ""
		if p.Gate == detector.Leak {
			return record.ExitLeak
		}
	}
	if slices.ContainsFunc(r.Apps, func(a record.ReplayApp) bool { return a.Leaks() }) {
		return record.ExitLeak
	}
	inconclusive := slices.ContainsFunc(r.Processes,
		func(p record.ReplayProcess) bool { return p.Gate == detector.Inconclusive })
	if f.strict && inconclusive || (!judged || unjudged) && !f.unjudged {
		return record.ExitInconclusive
	}
	return exitOK
}

func (f *replayFlags) tell(w io.Writer, r record.Replay) error {
	if f.asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(r)
	}
	return reporters.WriteReplay(w, r)
}
