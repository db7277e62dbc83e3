package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/reporters"
)

func pathsVerb() verb {
	return verb{
		name: "paths", args: "DUMP CLASS|0xID [flags]",
		summary: "who holds all instances of a class, or one object: merged shortest paths",
		help: `Searches for the shortest path from a GC root to each instance of exactly this class, or
to one object, and merges them by classes and fields into a tree, the way that most
take first. Collections are one step, and elements of arrays and collections are alike.
CLASS is as analyze prints it; "-" is standard input.`,
		example: "leakgate paths app.hprof android.graphics.Bitmap",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			f := pathsFlags{dumpFlags: dumpFlags{verb: "paths"}}
			f.declare(fs)
			fs.IntVar(&f.top, "top", 30, "`NUMBER` of branches to print; 30 by default")
			return f.paths
		},
	}
}

type pathsFlags struct {
	dumpFlags
	top int
}

func (f *pathsFlags) paths(c console, args []string) int {
	switch {
	case len(args) > 2:
		return pathsVerb().wrong(c, fmt.Errorf("%d arguments; name one heap dump, and one class or ID", len(args)))
	case len(args) != 2 || strings.TrimSpace(args[1]) == "":
		return pathsVerb().wrong(c, errors.New("name a heap dump, and a class or the ID of an object, such as android.graphics.Bitmap or 0x12c04948"))
	case f.top < 0:
		return pathsVerb().wrong(c, errors.New("--top: write a number from 0 on"))
	}
	if err := swapped(args, "the class or ID"); err != nil {
		return pathsVerb().wrong(c, err)
	}
	class, id, err := wantedBy(args[1])
	if err != nil {
		return pathsVerb().wrong(c, err)
	}
	return f.run(c, args[0], func(ctx context.Context, file *spool.File, o analysis.Options) error {
		p, err := analysis.FindPaths(ctx, file, file.Size(), class, id, o)
		if err != nil {
			return hinted(err, args[1])
		}
		if f.asJSON {
			return printed(printJSON(c.out, p))
		}
		return printed(reporters.WritePaths(c.out, p, f.top))
	})
}

// wantedBy reads a class or an ID: no name begins with a digit.
func wantedBy(text string) (class string, id hprof.ID, err error) {
	if text[0] < '0' || text[0] > '9' {
		return text, 0, nil
	}
	id, err = parseID(text)
	return "", id, err
}

// hinted adds to the error of what is not in the dump what else may have been meant.
func hinted(err error, text string) error {
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
