package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leakgate/leakgate/internal/harness/evidence"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/hostfile"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

func showCommand(c *console) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "show RUN KEY", GroupID: groupGate,
		Short: "show one leak of a run in full",
		Long: `Show one leak of a run directory: how many objects there were at each mark, what each retains,
the references from the GC root that keep them alive, and how that compares with the base
runs if the gate has compared them. KEY is the key that every report shows, or its first digits.`,
		Example: "  leakgate show leakgate-runs/pr d97295ca\n  gh run download 9482 -n leakgate-shop && " +
			"leakgate show leakgate-shop d97295ca",
		Annotations: manual{
			exits: "0 the leak was shown\n" +
				"2 the command line or the run directory is invalid, or the run has no such leak",
			page: "docs/formats/gate.md",
		}.annotations(),
		ValidArgsFunction: completeFolders,
		RunE:              c.run(func(c console, args []string) int { return show(c, args, asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, jsonUsage)
	return cmd
}

func show(c console, args []string, asJSON bool) int {
	if len(args) != 2 || strings.TrimSpace(args[1]) == "" {
		return c.usage(errors.New("want a run directory and the key of a leak, such as leakgate-runs/pr d97295ca"))
	}
	ctx, stop := untilInterrupt()
	defer stop()
	rows, err := shownRows(ctx, args[0])
	var row *comparison.Row
	if err == nil {
		row, err = rowOf(rows, args[1])
	}
	if err != nil {
		c.problem("%s", printableError(err))
		return exitUsage
	}
	if asJSON {
		err = printJSON(c.out, row)
	} else {
		err = comparison.WriteRow(c.out, row)
	}
	if err != nil {
		c.problem("print the leak: %v", err)
		return exitUsage
	}
	return exitOK
}

// shownRows returns the leaks of a run: those that the gate compared or,
// without a comparison, all of them.
func shownRows(ctx context.Context, dir string) ([]comparison.Row, error) {
	if err := notADirectory(dir); err != nil {
		return nil, err
	}
	file, err := hostfile.Open(filepath.Join(dir, comparison.FileName))
	if err == nil {
		defer file.Close()
		c, err := comparison.Read(file)
		if err != nil {
			return nil, err
		}
		return c.Leaks, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open comparison: %w", err)
	}
	ev, err := readRun(ctx, dir)
	if err != nil {
		return nil, err
	}
	return (&gateSettings{}).withoutBase(ev).Leaks, nil
}

// withoutBase returns a run as a comparison without base runs.
func (s *gateSettings) withoutBase(ev *evidence.Evidence) *comparison.Comparison {
	return gate.Compare(s.input(ev, &gate.Baseline{}))
}

// proved returns the leaks and measures that fail the gate when a run is judged
// without base runs. These include known leaks.
func (s *gateSettings) proved(ev *evidence.Evidence) []comparison.Row {
	s.rules = gate.DefaultRules()
	var out []comparison.Row
	for _, row := range s.withoutBase(ev).Leaks {
		if row.Fails && (row.Type == gate.TypeLeak || row.Type == gate.TypeMeasure) && keyForm.MatchString(row.Key) {
			out = append(out, row)
		}
	}
	return out
}
