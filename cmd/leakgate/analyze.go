package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/reporters"
)

func analyzeCommand(c *console) *cobra.Command {
	f := analyzeFlags{top: defaultTop}
	cmd := &cobra.Command{
		Use: "analyze DUMP", GroupID: groupDump,
		Short: "report leaks, classes, dominators, bitmaps and threads",
		Long: `Report what is in a heap dump from Android or a JVM: what leaks and which references keep
it alive, the classes and objects that retain the most memory, bitmaps, strings, threads and
activities. The retained size of an object is the memory that would be freed with it.

DUMP may be compressed with gzip or zstd; "-" is standard input. A truncated dump is
analyzed up to where it ends, with a warning. A damaged one is an error, unless
--partial is given.`,
		Example: `  leakgate analyze shop.hprof --mapping build/mapping.txt
  leakgate analyze shop.hprof --leaking-class com.shop.Cart --json
  adb exec-out cat /data/local/tmp/shop.hprof | leakgate analyze - --top 50`,
		Annotations: manual{exits: `0 the dump was analyzed, whatever was found
1 the app leaks, with --fail-on leak
5 with --fail-on leak: no leak was found, but the dump cannot rule out leaks
` + dumpExits, page: "docs/formats/analysis.md"}.annotations(),
		ValidArgsFunction: completeFiles(dumpExtensions...),
	}
	flags := cmd.Flags()
	cmd.RunE = c.run(func(c console, args []string) int {
		f.asked = flags.Changed("top")
		return f.analyze(c, args)
	})
	f.declare(flags)
	flags.Var(number(&f.top, "N", 0), "top", "number of classes and dominators to print")
	flags.Var(choice(&f.only, "histogram", "histogram"), "only",
		"only count objects and bytes, in one quick pass, without leaks or retained sizes")
	flags.Var(list{&f.leaking, "CLASS", false}, "leaking-class",
		"treat the instances of exactly this class as leaks, and nothing else (repeatable)")
	flags.Var(choice(&f.failOn, "leak", "leak"), "fail-on",
		"exit with 1 if the app leaks; known leaks in Android are ignored")
	flags.BoolVar(&f.incomplete, "allow-incomplete", false,
		"with --fail-on leak: exit with 0 if no leak was found, even if the dump cannot rule out leaks")
	flags.BoolVar(&f.all, "all", false, "print the traces of all leaks, not only the first")
	flags.BoolVar(&f.texts, "show-texts", false,
		"show map keys, thread names, titles and repeated strings; by default each is replaced by a short hash")
	flags.BoolVar(&f.strings, "strings", false, "look for duplicate strings even if there are very many strings")
	return cmd
}

// defaultTop is the default number of rows that a list shows.
const defaultTop = 30

type analyzeFlags struct {
	dumpFlags
	top     int
	only    string
	strings bool
	// If all or asked is set, tables are not shortened. asked reports whether
	// --top was given.
	all, asked bool
	texts      bool
	leaking    []string
	failOn     string
	// incomplete makes the gate pass a dump that cannot be judged.
	incomplete bool
}

// errLeaks makes the program exit with the code of a failed gate.
var errLeaks = errors.New("the app leaks")

func (f *analyzeFlags) analyze(c console, args []string) int {
	switch {
	case len(args) != 1:
		return c.usage(fmt.Errorf("want one heap dump, or - for standard input, got %d files", len(args)))
	case f.incomplete && f.failOn == "":
		return c.usage(errors.New("--allow-incomplete has no effect without --fail-on leak: add it"))
	case f.only != "" && (f.failOn != "" || len(f.leaking) > 0):
		return c.usage(errors.New(
			"--only histogram does not look for leaks: remove it, or remove --fail-on and --leaking-class"))
	}
	return f.run(c, args[0], func(ctx context.Context, file *spool.File, o analysis.Options) error {
		o.Top, o.AllStrings, o.ShowTexts, o.LeakingClasses = f.top, f.strings, f.texts, f.leaking
		read, write := analysis.Analyze, func(w io.Writer, r *analysis.Report) error {
			return reporters.WriteReport(w, r, f.all || f.asked)
		}
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
		if err == nil && f.failOn != "" {
			return f.gate(report)
		}
		return err
	})
}

// gate returns the verdict of --fail-on leak: nil if the dump passes, otherwise
// the error with which the program exits.
func (f *analyzeFlags) gate(r *analysis.Report) error {
	switch {
	case slices.ContainsFunc(r.Leaks, func(l analysis.Leak) bool { return !l.Library }):
		return errLeaks
	case len(r.Undecided) == 0 || f.incomplete:
		return nil
	case r.Dump.Truncated || r.Dump.Partial:
		return fmt.Errorf("%s; to accept that, add --allow-incomplete", strings.Join(r.Undecided, "; "))
	}
	return unjudged{strings.Join(r.Undecided, "; ")}
}

// unjudged is the error that --fail-on leak returns if no leak was found, but
// the dump cannot prove that there is none.
type unjudged struct{ why string }

func (e unjudged) Error() string {
	return "not judged: " + e.why + "; to accept that, add --allow-incomplete"
}
