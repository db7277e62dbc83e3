package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

func diffCommand(c *console) *cobra.Command {
	f := diffFlags{top: defaultTop}
	cmd := &cobra.Command{
		Use: "diff BASE HEAD", GroupID: groupDump,
		Short: "compare two heap dumps, or two runs",
		Long: `Compare two heap dumps: which leaks are new, larger, smaller, unchanged or gone, by a
key that does not change between builds; where the dominator tree grew or shrank;
and what changed in each class. One of the dumps may be "-",
standard input.

For two run directories, the last heap dumps of one process are compared, preferably
those taken at the end of the run (diagnose.dump: at_end). The dumps themselves are not
needed: a run keeps a summary of each, heap.summary.json.zst, which may also be given as
BASE or HEAD, and has the names from the run's own mapping.

Dumps of different kinds of devices, such as 32-bit and 64-bit, are compared with a
warning, because the same objects have different sizes there.`,
		Example: `  leakgate diff before.hprof after.hprof --top 10
  leakgate diff v1.hprof v2.hprof --base-mapping v1.txt --mapping v2.txt
  leakgate diff leakgate-runs/main leakgate-runs/branch --process com.shop`,
		Annotations: manual{
			exits: "0 the dumps were compared, whatever changed\n" + dumpExits, page: "docs/formats/diff.md",
		}.annotations(),
		ValidArgsFunction: completeFiles(dumpExtensions...),
		RunE:              c.run(f.diff),
	}
	flags := cmd.Flags()
	f.declare(flags)
	flags.Var(number(&f.top, "N", 0), "top", "number of classes and places in the dominator tree to print")
	flags.Var(word(&f.baseMapping, "FILE"), "base-mapping",
		"mapping.txt of BASE, if it is a different build; by default that of --mapping")
	flags.Var(word(&f.process, "NAME"), "process", "process to compare, if the runs have dumps of several processes")
	return cmd
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
		return c.usage(fmt.Errorf("want two heap dumps or two run directories, the older one first, got %d", len(args)))
	case args[0] == "-" && args[1] == "-":
		return c.usage(errors.New("standard input is one heap dump: name the other"))
	}
	switch a, b := isFolder(args[0]), isFolder(args[1]); {
	case checkFiles(args...) != nil: // reported below, with BASE or HEAD
	case a != b:
		return c.usage(fmt.Errorf("%s is a directory and the other is not: name two heap dumps or two run directories",
			text.Printable(args[map[bool]int{true: 0, false: 1}[a]])))
	case a:
		sides, err := f.runSides(args[0], args[1])
		if err != nil {
			return c.usage(err)
		}
		c.note("%s and %s", text.Printable(sides[0]), text.Printable(sides[1]))
		args = sides[:]
	case f.process != "":
		return c.usage(errors.New("--process is only for two run directories"))
	}
	for _, file := range []struct {
		which, path string
	}{{"BASE", args[0]}, {"HEAD", args[1]}, {"--mapping", f.mapping}, {"--base-mapping", f.baseMapping}} {
		if err := checkFiles(file.path); err != nil {
			return f.failedSide(c, file.which, f.exit(c, "", outside{err}))
		}
	}
	return f.compare(c, args[0], args[1])
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// compare reads both dumps and reports what changed.
func (f *diffFlags) compare(c console, basePath, headPath string) int {
	ctx, stop := untilInterrupt()
	defer stop()
	headMapping := f.mapping
	f.mapping = cmp.Or(f.baseMapping, f.mapping)
	var base *analysis.Summary
	code := f.runIn(ctx, c, basePath, func(ctx context.Context, file *spool.File, o analysis.Options) (err error) {
		base, err = f.summarize(ctx, file, o, f.baseMapping != "")
		return err
	})
	if code != exitOK {
		return f.failedSide(c, "BASE", code)
	}
	f.mapping = headMapping
	var compared atomic.Bool
	code = f.runIn(ctx, c, headPath, func(ctx context.Context, file *spool.File, o analysis.Options) error {
		head, err := f.summarize(ctx, file, o, f.mapping != "")
		if err != nil {
			return err
		}
		d := analysis.Compare(base, head, f.top)
		compared.Store(true)
		if sameFile(basePath, headPath) {
			d.Warnings = append(d.Warnings, "BASE and HEAD are the same file")
		}
		if f.asJSON {
			return printed(printJSON(c.out, d))
		}
		return printed(reporters.WriteDiff(c.out, d, f.top))
	})
	// Once the dumps have been compared, an error concerns the output, not a
	// dump.
	if compared.Load() {
		return code
	}
	return f.failedSide(c, "HEAD", code)
}

// errRenamed is the error for a mapping that is given for a summary.
var errRenamed = errors.New("a summary keeps the names that it was written with: " +
	"give a mapping with the heap dump instead")

// summarize reads a dump, or the summary of one. remap reports whether a
// mapping was given for this side.
func (f *diffFlags) summarize(ctx context.Context, file *spool.File, o analysis.Options, remap bool) (*analysis.Summary,
	error) {
	if isSummary(file) {
		if remap {
			return nil, unusable{errRenamed}
		}
		return analysis.ReadSummary(io.NewSectionReader(file, 0, file.Size()))
	}
	s, err := analysis.Summarize(ctx, file, file.Size(), o)
	if err == nil {
		f.objects, f.edges = s.Objects()
	}
	return s, err
}

// isSummary reports whether a file is JSON, which a heap dump never is.
func isSummary(file io.ReaderAt) bool {
	first := make([]byte, 1)
	n, _ := file.ReadAt(first, 0) // an unreadable file is not a summary
	return n == 1 && first[0] == '{'
}

// failedSide prints which of the two dumps caused an error, and returns code.
func (f *diffFlags) failedSide(c console, which string, code int) int {
	if code != exitOK && code != record.ExitInterrupted {
		c.problem("the error is in %s; nothing was compared", which)
	}
	return code
}
