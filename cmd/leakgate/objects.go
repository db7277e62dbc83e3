package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
)

func objectsCommand(c *console) *cobra.Command {
	var f objectsFlags
	cmd := &cobra.Command{
		Use: "objects DUMP 0xID...", GroupID: groupDump,
		Short: "show sizes, dominator and heap of single objects",
		Long: `Show for each object its size, what would be freed with it, what dominates it, and how
the GC roots reach it; for up to 16 objects also its fields, and which objects
reference it. IDs are written as analyze prints them; "-" as DUMP is standard input.`,
		Example:           "  leakgate objects shop.hprof 0x12c04948\n  leakgate objects shop.hprof 0x12c04948 0x12c04c28 --json",
		Annotations:       manual{exits: "0 the objects were found\n" + dumpExits, page: "docs/formats/analysis.md"}.annotations(),
		ValidArgsFunction: completeDump,
		RunE:              c.run(func(c console, args []string) int { return lookUp(&f, c, args) }),
	}
	f.declare(cmd.Flags())
	cmd.Flags().BoolVar(&f.texts, "show-texts", false, "show the texts of strings; without it a short hash stands for each")
	return cmd
}

type objectsFlags struct {
	dumpFlags
	texts bool
}

func lookUp(f *objectsFlags, c console, args []string) int {
	if len(args) < 2 {
		return c.usage(errors.New("want a heap dump and the IDs of objects, such as 0x12c04948"))
	}
	if err := swapped(args, "the IDs"); err != nil {
		return c.usage(err)
	}
	ids := make([]hprof.ID, 0, len(args)-1)
	for _, text := range args[1:] {
		id, err := parseID(text)
		if err != nil {
			return c.usage(err)
		}
		ids = append(ids, id)
	}
	return f.run(c, args[0], func(ctx context.Context, file *spool.File, o analysis.Options) error {
		o.ShowTexts = f.texts
		list, err := analysis.Lookup(ctx, file, file.Size(), ids, o)
		if err != nil {
			return err
		}
		for i, id := range ids {
			if hint := decimal(args[i+1]); hint != "" && !slices.ContainsFunc(list.Objects, func(o analysis.Object) bool { return o.Object == analysis.Hex(id) }) {
				list.Warnings = append(list.Warnings, hint)
			}
		}
		if f.asJSON {
			return printed(printJSON(c.out, list))
		}
		return printed(reporters.WriteObjects(c.out, list))
	})
}

// parseID reads the ID of an object, with or without 0x.
func parseID(s string) (hprof.ID, error) {
	id, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(s), "0x"), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not the ID of an object: write it as 0x12c04948", text.Printable(s))
	}
	return hprof.ID(id), nil
}

// decimal tells of an ID that no object has what it is if it was meant to be decimal, as
// some programs print IDs; "" for one that was not.
func decimal(text string) string {
	n, err := strconv.ParseUint(text, 10, 64)
	id := analysis.Hex(hprof.ID(n))
	if err != nil || id == "0x"+text {
		return ""
	}
	return fmt.Sprintf("IDs are hexadecimal; decimal %s is %s", text, id)
}
