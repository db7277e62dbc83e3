package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
)

func objectsVerb() verb {
	return verb{
		name: "objects", args: "DUMP 0xID... [flags]",
		summary: "sizes, dominator and heap of single objects of a heap dump",
		help: `Tells of each object how large it is, how much would go with it, what dominates it and
how the GC roots reach it. IDs are as analyze prints them; "-" is standard input.`,
		example: "leakgate objects app.hprof 0x12c04948 0x12c04c28",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			f := dumpFlags{verb: "objects"}
			f.declare(fs)
			return func(c console, args []string) int { return lookUp(&f, c, args) }
		},
	}
}

func lookUp(f *dumpFlags, c console, args []string) int {
	if len(args) < 2 {
		return objectsVerb().wrong(c, errors.New("name a heap dump and the IDs of objects, such as 0x12c04948"))
	}
	if err := swapped(args, "the IDs"); err != nil {
		return objectsVerb().wrong(c, err)
	}
	ids := make([]hprof.ID, 0, len(args)-1)
	for _, text := range args[1:] {
		id, err := parseID(text)
		if err != nil {
			return objectsVerb().wrong(c, err)
		}
		ids = append(ids, id)
	}
	return f.run(c, args[0], func(ctx context.Context, file *spool.File, o analysis.Options) error {
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
		return 0, fmt.Errorf("%q is not the ID of an object; write it as 0x12c04948", text.Printable(s))
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
