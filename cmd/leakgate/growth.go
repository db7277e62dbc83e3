package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
)

func growthVerb() verb {
	return verb{
		name: "growth", args: "DUMP DUMP DUMP... [flags]",
		summary: "what grows in every heap dump of a repeated scenario, and what holds it",
		help: `Compares heap dumps of one process that were taken between repetitions of a scenario,
and tells what becomes more from each dump to the next: which objects, how many for each
repetition, what holds them, by which path from a GC root, and how many bytes that is.
It knows of no class that it should not leak: whatever grows every time is told, and a
cache that fills grows, too, until it is full.

Repeat the scenario a few times before the first dump, so that what is made once is
there; then as often between each two dumps, which --loops tells: less than one object
more for each repetition is no growth. Three dumps or more, in the order in which they
were taken; of two the answer says little. They are read one after the other. "-" is
standard input, for one of them.`,
		example: "leakgate growth after5.hprof after10.hprof after15.hprof --loops 5",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			f := growthFlags{dumpFlags: dumpFlags{verb: "growth"}}
			f.declare(fs)
			fs.IntVar(&f.loops, "loops", 1, "`NUMBER` of repetitions of the scenario between two dumps; 1 by default")
			fs.IntVar(&f.top, "top", 30, "`NUMBER` of places to print; 30 by default")
			return f.growth
		},
	}
}

type growthFlags struct {
	dumpFlags
	loops, top int
}

// mostLoops are more repetitions than anybody has made between two dumps.
const mostLoops = 1 << 30

func (f *growthFlags) growth(c console, args []string) int {
	if err := f.check(args); err != nil {
		return growthVerb().wrong(c, err)
	}
	if err := present(args...); err != nil {
		return f.exit(c, "", outside{err})
	}
	ctx, stop := untilInterrupt()
	defer stop()
	series := analysis.NewGrowthSeries(f.loops)
	for i, path := range args {
		code := f.runIn(ctx, c, path, func(ctx context.Context, file *spool.File, o analysis.Options) error {
			phase := o.Phase
			o.Phase = func(name string) {
				if name != "" {
					name = fmt.Sprintf("dump %d of %d, %s", i+1, len(args), name)
				}
				phase(name)
			}
			if err := series.Add(ctx, path, file, file.Size(), o); err != nil {
				return err
			}
			if i < len(args)-1 {
				return nil
			}
			report := series.Report(f.top)
			if f.asJSON {
				return printed(printJSON(c.out, report))
			}
			return printed(reporters.WriteGrowth(c.out, report))
		})
		if code != exitOK {
			return code
		}
	}
	return exitOK
}

func (f *growthFlags) check(args []string) error {
	for i, path := range args {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return fmt.Errorf("%s is a directory; name heap dumps", text.Printable(path))
		}
		for _, other := range args[:i] {
			switch {
			case !sameFile(other, path):
			case path == "-":
				return errors.New("standard input is one heap dump; name files for the others")
			case path == other:
				return fmt.Errorf("%s is named twice; nothing grows between a heap dump and itself", text.Printable(path))
			default:
				return fmt.Errorf("%s and %s are one file; nothing grows between a heap dump and itself", text.Printable(other), text.Printable(path))
			}
		}
	}
	switch n := len(args); {
	case n == 0:
		return errors.New("name the heap dumps of a series, three or more, in the order in which they were taken")
	case n == 1:
		return errors.New("one heap dump cannot tell what grows; name two at least, better three, in the order in which they were taken. `leakgate analyze` tells what is in one")
	case f.loops < 1 || f.loops > mostLoops:
		return errors.New("--loops: write how often the scenario was repeated between two dumps, 1 or more")
	case f.top < 0:
		return errors.New("--top: write a number from 0 on")
	}
	return nil
}
