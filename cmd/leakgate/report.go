package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/hostmemory"
	"github.com/leakgate/leakgate/internal/harness/lease"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/spf13/cobra"
)

func reportCommand(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "report DIR", GroupID: groupRecords,
		Short: "rebuild the reports of a run, even of one that was killed",
		Long: `Judge the samples of the run in DIR again, by the rules of that run, and write
run.json. A run that was killed is marked as such and keeps all its measurements;
collected artifacts that are not analyzed yet are analyzed now. A corrupt line, such
as one written during a crash, is skipped and reported with its number, and no trend
spans it.`,
		Example: "  leakgate report leakgate-runs/tonight\n  leakgate report leakgate-runs/tonight --json",
		Annotations: manual{exits: `0 the reports were written, whatever the verdict
2 the command line is invalid, or DIR cannot be read or written
130 interrupted; the next report continues`, page: "docs/formats/run.md"}.annotations(),
		ValidArgsFunction: completeFolders,
		RunE:              c.run(func(c console, args []string) int { return report(c, args, asJSON, untilInterrupt) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print run.json, and nothing else, to stdout")
	return cmd
}

func report(c console, args []string, asJSON bool, ending func() (context.Context, context.CancelFunc)) int {
	if len(args) != 1 {
		return c.usage(fmt.Errorf("want one run directory, got %d", len(args)))
	}
	run, err := finish(c, args[0], ending)
	if errors.Is(err, context.Canceled) {
		c.problem("interrupted; the next report analyzes the rest")
		return record.ExitInterrupted
	}
	if run.Schema != "" { // also if the record cannot be written
		if terr := printRun(c, run, asJSON); terr != nil {
			err = errors.Join(err, fmt.Errorf("print the verdict: %w", terr))
		}
	}
	if err != nil {
		c.problem("%v", err)
		return exitUsage
	}
	return exitOK
}

// finish rebuilds the record of a run that has ended, and analyzes the
// artifacts that are not analyzed yet. The ending parameter returns the context
// of the analysis; the analysis stops when that context is done.
func finish(c console, dir string, ending func() (context.Context, context.CancelFunc)) (run record.Run, err error) {
	if err := notADirectory(dir); err != nil {
		return run, err
	}
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
		c.problem("%v", w)
	}
	ctx, stop := ending()
	defer stop()
	warnings, err = response.Resume(ctx, dir, response.Options{Memory: hostmemory.Free}, run.Diagnoses)
	for _, w := range warnings {
		c.problem("%v", w)
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
	if err := rewriteJUnit(dir, run); err != nil {
		return run, err
	}
	return run, monitor.Finish(dir)
}

// rewriteJUnit writes junit.xml if the run directory already contains one, or
// if the run has checks.
func rewriteJUnit(dir string, run record.Run) error {
	if _, err := os.Lstat(filepath.Join(dir, reporters.JUnitName)); err != nil && len(run.Checks) == 0 {
		return nil
	}
	return reporters.WriteJUnitFile(dir, run)
}

// holdDirectory locks the directory of a run that has ended.
func holdDirectory(c console, dir string) (*lease.Lease, error) {
	folder, err := lease.Folder(c.variable(lease.FolderVariable))
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

// printRun prints a run: run.json with --json, text otherwise.
func printRun(c console, run record.Run, asJSON bool) error {
	if !asJSON {
		return reporters.WriteRun(c.out, run)
	}
	enc := json.NewEncoder(c.out)
	enc.SetIndent("", "  ")
	return enc.Encode(run)
}
