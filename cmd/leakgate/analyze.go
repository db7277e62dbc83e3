package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/analysis/spool"
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
		read := analysis.Analyze
		if f.only != "" {
			read = analysis.Histogram
		}
		report, err := read(ctx, file, file.Size(), o)
		if err != nil {
			return err
		}
		f.objects, f.edges = report.Dump.Objects, report.Dump.References
		if f.asJSON {
			err = printed(printJSON(c.out, report))
		} else {
			err = printed(tellReport(c.out, report, f.only == ""))
		}
		if err == nil && f.failOn != "" && slices.ContainsFunc(report.Leaks, func(l analysis.Leak) bool { return !l.Library }) {
			return errLeaks
		}
		return err
	})
}

func tellReport(w io.Writer, r *analysis.Report, retained bool) error {
	var b strings.Builder
	tellApp(&b, r.Dump.Android)
	tellDump(&b, &r.Dump)
	// They change how all that follows is read.
	for _, text := range r.Warnings {
		put(&b, "warning: %s", text)
	}
	if retained {
		reporters.TellLeaks(&b, r)
	}
	tellComponents(&b, r.Components)
	tellClasses(&b, r.Classes, retained)
	tellDominators(&b, r)
	tellSurvey(&b, r)
	_, err := io.WriteString(w, b.String())
	return err
}

func tellDump(b *strings.Builder, d *analysis.Dump) {
	put(b, "%s, %s, %s objects: %s instances, %s object arrays, %s primitive arrays, %s classes", d.Format, text.Size(d.Bytes),
		text.Grouped(d.Objects), text.Grouped(d.Instances), text.Grouped(d.ObjectArrays), text.Grouped(d.PrimitiveArrays), text.Grouped(d.Classes))
	for _, h := range d.Heaps {
		put(b, "heap %s: %s objects, %s", shown(h.Name), text.Grouped(h.Objects), text.Size(h.Bytes))
	}
	if d.ReachableBytes > 0 {
		native := ""
		if d.ReachableNative > 0 {
			native = ", and " + text.Size(d.ReachableNative) + " of registered native memory"
		}
		put(b, "reachable: %s%s (sizes as the dump declares them)", text.Size(d.ReachableBytes), native)
	}
}

func tellClasses(b *strings.Builder, classes []analysis.Class, retained bool) {
	if len(classes) == 0 {
		return
	}
	if !retained {
		b.WriteByte('\n')
		put(b, "%14s %12s  %s", "BYTES", "INSTANCES", "CLASS")
		for _, c := range classes {
			put(b, "%14s %12s  %s", text.Grouped(c.ShallowBytes), text.Grouped(c.Instances), shown(c.Class))
		}
		return
	}
	b.WriteByte('\n')
	put(b, "%14s %12s %14s %12s  %s", "RETAINED", "NATIVE", "SHALLOW", "INSTANCES", "CLASS")
	for _, c := range classes {
		put(b, "%14s %12s %14s %12s  %s", text.Grouped(c.RetainedBytes), text.Grouped(c.RetainedNative), text.Grouped(c.ShallowBytes), text.Grouped(c.Instances), shown(c.Class))
	}
}

// tellDominators draws the tree, each level two columns further in.
func tellDominators(b *strings.Builder, r *analysis.Report) {
	if len(r.Dominators) == 0 {
		return
	}
	b.WriteByte('\n')
	put(b, "%14s %6s %14s  %s", "RETAINED", "SHARE", "SHALLOW", "DOMINATOR")
	total := r.Dump.ReachableBytes + r.Dump.ReachableNative
	for _, d := range r.Dominators {
		tellDominator(b, &d, branch{whole: total, top: d.RetainedBytes})
	}
}

// branch is where in the tree a dominator stands: below a top that retains so many
// bytes, of so many that are reachable.
type branch struct {
	whole, top int64
	depth      int
}

// wide is the share of its top, as a divisor, that an object with nothing large below
// it must retain in many small ones for them to be told.
const wide = 20

func tellDominator(b *strings.Builder, d *analysis.Dominator, at branch) {
	indent := strings.Repeat("  ", at.depth)
	put(b, "%14s %5.1f%% %14s  %s%s %s", text.Grouped(d.RetainedBytes), percent(d.RetainedBytes, at.whole), text.Grouped(d.ShallowBytes), indent, shown(d.Class), d.Object)
	below := at
	below.depth++
	for i := range d.Children {
		tellDominator(b, &d.Children[i], below)
	}
	if d.Rest > 0 && (len(d.Children) > 0 || d.RestBytes > at.top/wide) {
		put(b, "%14s %5.1f%% %14s  %s  %s more", text.Grouped(d.RestBytes), percent(d.RestBytes, at.whole), "", indent, text.Grouped(d.Rest))
	}
}

func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}
