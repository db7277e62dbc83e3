package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
)

func analyzeVerb() verb {
	return verb{
		name: "analyze", args: "DUMP [flags]",
		summary: "what a heap dump holds: leaks, classes, dominators, bitmaps, threads",
		help: `Reads a heap dump (.hprof of Android or a JVM, plain or packed by gzip or zstd; "-" is
standard input) and says what is in it: what leaks and who holds it, the classes that retain most, the objects that
dominate most with what is below them, bitmaps, strings, threads, activities. Retained
is what would go if all objects of a class, or one object, went. Bytes are those of the
dump, Java and registered native memory apart.

A dump that ends early is analysed as far as it goes, and said to be cut. A damaged one
is an error with exit code 6, unless --partial is given.`,
		example: "adb exec-out cat /data/local/tmp/app.hprof | leakgate analyze - --top 50",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			f := analyzeFlags{dumpFlags: dumpFlags{verb: "analyze"}}
			f.declare(fs)
			fs.IntVar(&f.top, "top", 30, "`NUMBER` of classes and dominators to print; 30 by default")
			fs.StringVar(&f.only, "only", "", "`histogram` counts objects and their bytes in one quick pass, without retained sizes")
			fs.Var(&f.leaking, "leaking-class", "take every instance of exactly this `CLASS`, and nothing else, as leaking; may be repeated")
			fs.StringVar(&f.failOn, "fail-on", "", "`leak` ends with exit code 1 where the app leaks; leaks of the platform do not count")
			fs.BoolVar(&f.strings, "strings", false, "compare all strings also in a dump that has more than a phone")
			return f.analyze
		},
	}
}

type analyzeFlags struct {
	dumpFlags
	top     int
	only    string
	strings bool
	leaking names
	failOn  string
}

// names is a flag that may be given several times.
type names []string

func (n *names) String() string { return "" }

func (n *names) Set(text string) error {
	if text == "" {
		return errors.New("write a name")
	}
	*n = append(*n, text)
	return nil
}

// errLeaks ends the program with the exit code of a gate that failed.
var errLeaks = errors.New("the app leaks")

func (f *analyzeFlags) analyze(c console, args []string) int {
	switch {
	case len(args) != 1:
		return analyzeVerb().wrong(c, fmt.Errorf("%d files; name one heap dump, or - for standard input", len(args)))
	case f.top < 0:
		return analyzeVerb().wrong(c, errors.New("--top: write a number from 0 on"))
	case f.only != "" && f.only != "histogram":
		return analyzeVerb().wrong(c, fmt.Errorf("--only: %q is unknown; write histogram", text.Printable(f.only)))
	case f.failOn != "" && f.failOn != "leak":
		return analyzeVerb().wrong(c, fmt.Errorf("--fail-on: %q is unknown; write leak", text.Printable(f.failOn)))
	case f.only != "" && (f.failOn != "" || len(f.leaking) > 0):
		return analyzeVerb().wrong(c, errors.New("--only histogram looks for no leaks; leave it out, or --fail-on and --leaking-class"))
	}
	return f.run(c, args[0], func(ctx context.Context, file *spool.File, o analysis.Options) error {
		o.Top, o.AllStrings, o.LeakingClasses = f.top, f.strings, f.leaking
		read, write := analysis.Analyze, reporters.WriteReport
		if f.only != "" {
			read, write = analysis.Histogram, reporters.WriteHistogram
		}
		report, err := read(ctx, file, file.Size(), o)
		if err != nil {
			return err
		}
		f.objects, f.edges = report.Dump.Objects, report.Dump.References
		if f.asJSON {
			err = printed(printJSON(c.out, report))
		} else {
			err = printed(write(c.out, report))
		}
		if err == nil && f.failOn != "" && slices.ContainsFunc(report.Leaks, func(l analysis.Leak) bool { return !l.Library }) {
			return errLeaks
		}
		return err
	})
}
