package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/reporters"
)

func pathsCommand(c *console) *cobra.Command {
	f := pathsFlags{top: defaultTop}
	cmd := &cobra.Command{
		Use: "paths DUMP CLASS|0xID", GroupID: groupDump,
		Short: "show what keeps the instances of a class alive",
		Long: `Find the shortest path from a GC root to each instance of exactly this class, or to one
object, and merge the paths by classes and fields into a tree, the most common first.
A collection counts as one step; its elements and those of an array are merged.

Write CLASS as analyze prints it; "-" as DUMP is standard input.`,
		Example: "  leakgate paths shop.hprof android.graphics.Bitmap\n  leakgate paths shop.hprof 0x12c04948",
		Annotations: manual{
			exits: "0 the paths were printed\n" + dumpExits, page: "docs/formats/paths.md",
		}.annotations(),
		ValidArgsFunction: completeDump,
		RunE:              c.run(f.paths),
	}
	f.declare(cmd.Flags())
	cmd.Flags().Var(number(&f.top, "N", 0), "top", "number of branches to print")
	return cmd
}

type pathsFlags struct {
	dumpFlags
	top int
}

func (f *pathsFlags) paths(c console, args []string) int {
	switch {
	case len(args) > 2:
		return c.usage(fmt.Errorf("want a heap dump and one class or ID, got %d", len(args)))
	case len(args) != 2 || strings.TrimSpace(args[1]) == "":
		return c.usage(errors.New(
			"want a heap dump and a class or object ID, such as android.graphics.Bitmap or 0x12c04948"))
	}
	if err := wrongOrder(args, "the class or ID"); err != nil {
		return c.usage(err)
	}
	class, id, err := parseTarget(args[1])
	if err != nil {
		return c.usage(err)
	}
	return f.run(c, args[0], func(ctx context.Context, file *spool.File, o analysis.Options) error {
		p, err := analysis.FindPaths(ctx, file, file.Size(), class, id, o)
		if err != nil {
			return withHints(err, args[1])
		}
		if f.asJSON {
			return printed(printJSON(c.out, p))
		}
		return printed(reporters.WritePaths(c.out, p, f.top))
	})
}

// parseTarget parses a class or an ID. No class name begins with a digit.
func parseTarget(text string) (class string, id hprof.ID, err error) {
	if text[0] < '0' || text[0] > '9' {
		return text, 0, nil
	}
	id, err = parseID(text)
	return "", id, err
}

// withHints adds suggestions to the error for a class or object that is not in
// the dump.
func withHints(err error, text string) error {
	absent, ok := errors.AsType[*analysis.AbsentError](err)
	if !ok {
		return err
	}
	if hint := decimal(text); hint != "" {
		absent.Warnings = append([]string{hint}, absent.Warnings...)
	} else if id, err := parseID(text); err == nil && text[0] > '9' {
		absent.Warnings = append([]string{"write the ID of an object as " + analysis.Hex(id)}, absent.Warnings...)
	}
	return err
}
