package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
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
		return printed(tellDiff(c.out, d, f.top))
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

func tellDiff(w io.Writer, d *analysis.Diff, top int) error {
	var b strings.Builder
	for _, text := range d.Mismatches {
		put(&b, "WARNING: %s", text)
	}
	if !d.Comparable {
		b.WriteByte('\n')
	}
	tellSide(&b, "base", &d.Base)
	tellSide(&b, "head", &d.Head)
	native := ""
	if d.ReachableNative != (analysis.Change{}) {
		native = ", " + text.SignedSize(d.ReachableNative.Delta) + " of registered native memory"
	}
	put(&b, "change: %s reachable%s, %s objects", text.SignedSize(d.ReachableBytes.Delta), native, text.Signed(d.Objects.Delta))
	tellLeakChanges(&b, "LEAKS", d.Leaks, top)
	tellLeakChanges(&b, "SUSPECTS", d.Suspects, top)
	tellWays(&b, "GROWTH", d.Growth)
	tellWays(&b, "SHRINKAGE", d.Shrinkage)
	tellClassChanges(&b, d)
	for _, text := range d.Warnings {
		put(&b, "warning: %s", text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func tellSide(b *strings.Builder, name string, d *analysis.Dump) {
	native := ""
	if d.ReachableNative > 0 {
		native = " and " + text.Size(d.ReachableNative) + " native"
	}
	put(b, "%s: %s, IDs of %d bytes, %s, %s objects, %s%s reachable", name, d.Format, d.IDSize, text.Size(d.Bytes), text.Grouped(d.Objects), text.Size(d.ReachableBytes), native)
}

func tellLeakChanges(b *strings.Builder, title string, list []analysis.LeakChange, top int) {
	if len(list) == 0 {
		return
	}
	b.WriteByte('\n')
	put(b, "%-8s %14s %14s %18s  %-8s %s", title, "CHANGE", "RETAINED", "OBJECTS", "KEY", "CLASS")
	for _, l := range list[:min(top, len(list))] {
		library := ""
		if l.Library {
			library = ", of the platform: " + shown(l.Pattern)
		}
		put(b, "%-8s %14s %14s %18s  %-8s %s%s", l.Status, text.Signed(l.RetainedBytes.Delta), text.Grouped(l.RetainedBytes.Head), fromTo(l.Instances), short(l.Key), shown(l.Class), library)
		tellKey(b, &l)
	}
	tellMore(b, len(list)-top)
}

// tellKey tells what the key of a leak is made of, of a known one nothing new.
func tellKey(b *strings.Builder, l *analysis.LeakChange) {
	if l.Library {
		return
	}
	for _, line := range l.KeyText {
		if !strings.HasPrefix(line, "accumulates ") {
			line = "held by " + line
		}
		put(b, "%58s  %s", "", shown(line))
	}
}

// tellWays draws the ways as a tree.
func tellWays(b *strings.Builder, title string, paths []analysis.PathChange) {
	paths = slices.Clone(paths)
	slices.SortStableFunc(paths, byStep)
	var above []analysis.PathStep
	for i, p := range paths {
		same := 0
		for same < min(len(above), len(p.Steps)) && above[same] == p.Steps[same] {
			same++
		}
		if same == 0 {
			b.WriteByte('\n')
		}
		if i == 0 {
			put(b, "%-9s %4s %14s %14s %18s  %s", title, "", "CHANGE", "RETAINED", "OBJECTS", "WAY DOWN")
		}
		for depth, s := range p.Steps[same:] {
			tellStep(b, &s, strings.Repeat(" ", same+depth))
		}
		above = p.Steps
		for _, s := range p.Below {
			if i+1 < len(paths) && slices.Contains(paths[i+1].Steps, s) {
				continue // it is the next way
			}
			tellStep(b, &s, strings.Repeat(" ", len(p.Steps))+"· ")
		}
	}
}

// byStep puts a way behind those that it branches from, and of two branches the one in
// front that changed more.
func byStep(a, b analysis.PathChange) int {
	for i, s := range a.Steps[:min(len(a.Steps), len(b.Steps))] {
		x, y := s.RetainedBytes.Delta, b.Steps[i].RetainedBytes.Delta
		if a.Delta < 0 {
			x, y = -x, -y
		}
		if c := cmp.Or(cmp.Compare(y, x), strings.Compare(s.Class, b.Steps[i].Class)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a.Steps), len(b.Steps))
}

func tellStep(b *strings.Builder, s *analysis.PathStep, indent string) {
	put(b, "%14s %14s %14s %18s  %s%s", "", text.Signed(s.RetainedBytes.Delta), text.Grouped(s.RetainedBytes.Head), fromTo(s.Objects), indent, shown(s.Class))
}

func tellClassChanges(b *strings.Builder, d *analysis.Diff) {
	b.WriteByte('\n')
	if d.ClassesChanged == 0 {
		put(b, "no class changed")
		return
	}
	put(b, "%-8s %14s %14s %14s %18s  %s", "CLASSES", "RETAINED", "NATIVE", "SHALLOW", "INSTANCES", "CLASS")
	for _, c := range d.Classes {
		put(b, "%-8s %14s %14s %14s %18s  %s", c.Status, text.Signed(c.RetainedBytes.Delta), text.Signed(c.RetainedNative.Delta), text.Signed(c.ShallowBytes.Delta), fromTo(c.Instances), shown(c.Class))
	}
	tellMore(b, d.ClassesChanged-len(d.Classes))
}

func tellMore(b *strings.Builder, n int) {
	if n > 0 {
		put(b, "%s more", text.Grouped(int64(n)))
	}
}

func fromTo(c analysis.Change) string {
	if c.Delta == 0 {
		return text.Grouped(c.Head)
	}
	return text.Grouped(c.Base) + " > " + text.Grouped(c.Head)
}
