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
	"syscall"

	"github.com/leakgate/leakgate/detector"
	replays "github.com/leakgate/leakgate/internal/harness/replay"
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
func (f *replayFlags) judge(ctx context.Context, c console, files []string, policy detector.Policy) (record.Replay, error) {
	type outcome struct {
		result record.Replay
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
		return record.Replay{}, ctx.Err()
	}
}

// readProgress tells how far a file is read.
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

func (f *replayFlags) tell(w io.Writer, r record.Replay) error {
	if f.asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(r)
	}
	return reporters.WriteReplay(w, r)
}
