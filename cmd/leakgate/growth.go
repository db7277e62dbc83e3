package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
)

func growthCommand(c *console) *cobra.Command {
	f := growthFlags{loops: 1, top: defaultTop}
	cmd := &cobra.Command{
		Use: "growth DUMP DUMP DUMP...", GroupID: groupDump,
		Short: "report what grows in every dump of a repeated scenario",
		Long: `Compare heap dumps of one process, taken between repetitions of a scenario, and report
what grows from each dump to the next: which objects, how many per repetition, the path
from a GC root that keeps them alive, and their bytes. A cache
that is not yet full grows, too.

Repeat the scenario a few times before the first dump, until everything that is created
only once exists; then the same number of times between the dumps (--loops). Less than
one object per repetition does not count as growth. Name three or more dumps in the order
in which they were taken; two prove little. One of them may be "-",
standard input.`,
		Example: "  leakgate growth loop1.hprof loop2.hprof loop3.hprof\n  leakgate growth after5.hprof " +
			"after10.hprof after15.hprof --loops 5",
		Annotations: manual{
			exits: "0 the dumps were compared, whatever grows\n" + dumpExits, page: "docs/formats/growth.md",
		}.annotations(),
		ValidArgsFunction: completeFiles(dumpExtensions...),
		RunE:              c.run(f.growth),
	}
	flags := cmd.Flags()
	f.declare(flags)
	flags.Var(number(&f.loops, "N", 1), "loops", "repetitions of the scenario between two dumps")
	flags.Var(number(&f.top, "N", 0), "top", "number of growing places to print")
	return cmd
}

type growthFlags struct {
	dumpFlags
	loops, top int
}

// mostLoops is the maximum number of repetitions between two dumps.
const mostLoops = 1 << 30

func (f *growthFlags) growth(c console, args []string) int {
	if err := f.check(args); err != nil {
		return c.usage(err)
	}
	if err := checkFiles(args...); err != nil {
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
				return errors.New("standard input is one heap dump: name files for the others")
			case path == other:
				return fmt.Errorf("%s is named twice; nothing grows between a heap dump and itself",
					text.Printable(path))
			default:
				return fmt.Errorf("%s and %s are the same file; nothing grows between a heap dump and itself",
					text.Printable(other), text.Printable(path))
			}
		}
	}
	switch n := len(args); {
	case n == 0:
		return errors.New("no heap dumps: name three or more in the order in which they were taken")
	case n == 1:
		return errors.New("one heap dump cannot show what grows: name two or, better, three in the order in which " +
			"they were taken; `leakgate analyze` reports the contents of one dump")
	case f.loops > mostLoops:
		return fmt.Errorf("--loops: %w",
			invalid(fmt.Sprint(f.loops), "the number of repetitions between two dumps"))
	}
	return nil
}
