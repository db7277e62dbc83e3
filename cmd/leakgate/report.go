package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/lease"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

func reportVerb() verb {
	return verb{
		name: "report", args: "DIR [flags]",
		summary: "build the reports of a run directory again, also of a run that was killed",
		help: `Judges what the run in DIR has measured again, by the rules that the run had, and
writes run.json. A run that was killed is told as such, with everything that it had
until then: artifacts that it had collected and not analysed are analysed now. A line that cannot be read, as a crash or an editor leaves it, is left out
and told with its number, and no verdict crosses it. The exit code says whether that
was possible, not what was found.`,
		example: "leakgate report leakgate-runs/tonight",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			asJSON := fs.Bool("json", false, "print run.json on stdout and nothing else there")
			return func(c console, args []string) int { return report(c, args, *asJSON, untilInterrupt) }
		},
	}
}

func report(c console, args []string, asJSON bool, ending func() (context.Context, context.CancelFunc)) int {
	if len(args) != 1 {
		return reportVerb().wrong(c, fmt.Errorf("want one run directory, got %d", len(args)))
	}
	run, err := finish(c, args[0], ending)
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(c.err, "leakgate report: interrupted; what is not analysed yet is so the next time")
		return record.ExitInterrupted
	}
	if run.Schema != "" { // also where it cannot be written
		if terr := tell(c, run, asJSON); terr != nil {
			err = errors.Join(err, fmt.Errorf("print the verdict: %w", terr))
		}
	}
	if err != nil {
		fmt.Fprintf(c.err, "leakgate report: %v\n", err)
		return exitUsage
	}
	return exitOK
}

// finish rebuilds the record of a run that does not go on any more. What it analyses goes
// on until the context of ending ends.
func finish(c console, dir string, ending func() (context.Context, context.CancelFunc)) (run record.Run, err error) {
	held, err := holdDirectory(c, dir)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	run, warnings, err := ledger.Rebuild(dir)
	if err != nil {
		return run, err
	}
	for _, w := range warnings {
		fmt.Fprintf(c.err, "leakgate report: %v\n", w)
	}
	ctx, stop := ending()
	defer stop()
	warnings, err = response.Resume(ctx, dir, response.Options{Memory: freeMemory}, run.Diagnoses)
	for _, w := range warnings {
		fmt.Fprintf(c.err, "leakgate report: %v\n", w)
	}
	if err != nil {
		return run, err
	}
	if err := record.WriteRun(dir, run); err != nil {
		return run, err
	}
	if len(run.Diagnoses) > 0 {
		if err := record.WriteLeaks(dir, run); err != nil {
			return run, err
		}
	}
	return run, monitor.Finish(dir)
}

// holdDirectory takes a run directory whose run has ended.
func holdDirectory(c console, dir string) (*lease.Lease, error) {
	asked, _ := c.getenv(lease.FolderVariable)
	folder, err := lease.Folder(asked)
	if err != nil {
		return nil, err
	}
	key, err := lease.DirectoryKey(dir)
	if err != nil {
		return nil, err
	}
	return lease.Take(context.Background(), lease.Request{
		Folder: folder, Keys: []lease.Key{key}, Holder: lease.NewHolder("report", dir),
	})
}

// tell prints a run: run.json for machines, else words.
func tell(c console, run record.Run, asJSON bool) error {
	if !asJSON {
		return reporters.WriteRun(c.out, run)
	}
	enc := json.NewEncoder(c.out)
	enc.SetIndent("", "  ")
	return enc.Encode(run)
}
