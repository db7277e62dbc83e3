package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

func diffVerb() verb {
	return verb{
		name: "diff", args: "BASE HEAD [flags]",
		summary: "what changed from one heap dump, or run, to another: leaks, growth, classes",
		help: `Compares two heap dumps, one after the other, so that it takes the memory of one. It
tells which leaks are new, grew, shrank, are as they were or gone, by a key that stays
the same from build to build; where in the dominator tree there is more or less, as the
way down to it; and what changed of each class. Retained is what would go if all objects
of a class, or of a way, went. "-" is standard input, for one of the two. Of two run
directories the last heap dumps of one process are compared, of the end of the run where
there are some (diagnose.dump: at_end).

Dumps of different kinds of devices, as with IDs of 4 and 8 bytes, are compared with a
warning: their bytes are not the same.`,
		example: "leakgate diff before.hprof after.hprof --top 10",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			f := diffFlags{dumpFlags: dumpFlags{verb: "diff"}}
			f.declare(fs)
			fs.IntVar(&f.top, "top", 30, "`NUMBER` of classes and ways to print; 30 by default")
			fs.StringVar(&f.baseMapping, "base-mapping", "", "the mapping.txt `FILE` of BASE, where it is another build than HEAD; --mapping is for both without it")
			fs.StringVar(&f.process, "process", "", "the `NAME` of the process, where two run directories have dumps of several")
			return f.diff
		},
	}
}

type diffFlags struct {
	dumpFlags
	top         int
	baseMapping string
	process     string
}

func (f *diffFlags) diff(c console, args []string) int {
	switch {
	case len(args) != 2:
		return diffVerb().wrong(c, fmt.Errorf("%d files; name two heap dumps, the older one first", len(args)))
	case args[0] == "-" && args[1] == "-":
		return diffVerb().wrong(c, errors.New("standard input is one heap dump; name the other"))
	case f.top < 0:
		return diffVerb().wrong(c, errors.New("--top: write a number from 0 on"))
	}
	switch a, b := isFolder(args[0]), isFolder(args[1]); {
	case a != b:
		return diffVerb().wrong(c, fmt.Errorf("%s is a directory and the other is not: name two heap dumps or two run directories", text.Printable(args[map[bool]int{true: 0, false: 1}[a]])))
	case a:
		var err error
		if args[0], args[1], err = runDumps(args[0], args[1], f.process); err != nil {
			return diffVerb().wrong(c, err)
		}
		fmt.Fprintf(c.err, "leakgate diff: %s and %s\n", text.Printable(args[0]), text.Printable(args[1]))
	case f.process != "":
		return diffVerb().wrong(c, errors.New("--process is for two run directories"))
	}
	for _, file := range []struct{ which, path string }{{"BASE", args[0]}, {"HEAD", args[1]}, {c.named("mapping"), f.mapping}, {c.named("base-mapping"), f.baseMapping}} {
		if err := present(file.path); err != nil {
			return f.blame(c, file.which, f.exit(c, "", outside{err}))
		}
	}
	return f.compare(c, args[0], args[1])
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// compare reads both dumps and tells what changed.
func (f *diffFlags) compare(c console, basePath, headPath string) int {
	ctx, stop := untilInterrupt()
	defer stop()
	headMapping := f.mapping
	f.mapping = cmp.Or(f.baseMapping, f.mapping)
	var base *analysis.Summary
	code := f.runIn(ctx, c, basePath, func(ctx context.Context, file *spool.File, o analysis.Options) (err error) {
		base, err = f.summarize(ctx, file, o)
		return err
	})
	if code != exitOK {
		return f.blame(c, "BASE", code)
	}
	f.mapping = headMapping
	var compared atomic.Bool
	code = f.runIn(ctx, c, headPath, func(ctx context.Context, file *spool.File, o analysis.Options) error {
		head, err := f.summarize(ctx, file, o)
		if err != nil {
			return err
		}
		d := analysis.Compare(base, head, f.top)
		compared.Store(true)
		if sameFile(basePath, headPath) {
			d.Warnings = append(d.Warnings, "BASE and HEAD are one file")
		}
		if f.asJSON {
			return printed(printJSON(c.out, d))
		}
		return printed(reporters.WriteDiff(c.out, d, f.top))
	})
	// What goes wrong from then on is about the output.
	if compared.Load() {
		return code
	}
	return f.blame(c, "HEAD", code)
}

func (f *diffFlags) summarize(ctx context.Context, file *spool.File, o analysis.Options) (*analysis.Summary, error) {
	s, err := analysis.Summarize(ctx, file, file.Size(), o)
	if err == nil {
		f.objects, f.edges = s.Objects()
	}
	return s, err
}

// blame tells which of the two dumps an error was about, and gives its exit code.
func (f *diffFlags) blame(c console, which string, code int) int {
	if code != exitOK && code != record.ExitInterrupted {
		fmt.Fprintf(c.err, "leakgate diff: this is about %s; nothing was compared\n", which)
	}
	return code
}
