package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/analysis/growth"
	"github.com/leakgate/leakgate/analysis/spool"
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
			return printed(tellGrowth(c.out, report))
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
			return fmt.Errorf("%s is a directory; name heap dumps", printable(path))
		}
		for _, other := range args[:i] {
			switch {
			case !sameFile(other, path):
			case path == "-":
				return errors.New("standard input is one heap dump; name files for the others")
			case path == other:
				return fmt.Errorf("%s is named twice; nothing grows between a heap dump and itself", printable(path))
			default:
				return fmt.Errorf("%s and %s are one file; nothing grows between a heap dump and itself", printable(other), printable(path))
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

func tellGrowth(w io.Writer, r *analysis.Growth) error {
	var b strings.Builder
	for i, d := range r.Dumps {
		put(&b, "dump %d: %s, %s objects, %s reachable, %s", i+1, shown(d.Name), grouped(d.Objects), amount(d.ReachableBytes), d.Time.Format("2006-01-02 15:04:05"))
	}
	b.WriteByte('\n')
	often := "each time by 1 object at least"
	if r.Loops > 1 {
		often = fmt.Sprintf("each time by %s objects at least, one for each repetition", grouped(int64(r.Loops)))
	}
	if r.Found == 0 {
		put(&b, "nothing grew in every dump (%s)", often)
	} else {
		put(&b, "%s in every dump (%s)", placesGrew(r.Found), often)
	}
	for i := range r.Growth {
		b.WriteByte('\n')
		tellPlace(&b, &r.Growth[i], i+1)
	}
	if n := r.Found - len(r.Growth); n > 0 {
		b.WriteByte('\n')
		put(&b, "%s more; --top prints more", grouped(int64(n)))
	}
	if len(r.Warnings) > 0 {
		b.WriteByte('\n')
	}
	for _, text := range r.Warnings {
		put(&b, "warning: %s", printable(text))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func placesGrew(n int) string {
	if n == 1 {
		return "1 place grew"
	}
	return grouped(int64(n)) + " places grew"
}

// shownStart and shownEnd bound the steps of a path that are printed.
const (
	shownStart = 4
	shownEnd   = 12
)

func tellPlace(b *strings.Builder, p *growth.Place, number int) {
	put(b, "%d. %s: %s objects, %s for each repetition, %s", number, shown(holder(p)), signed(p.Delta), rate(p.PerLoop), signedAmount(p.GrowthBytes))
	indent := ""
	for i, s := range p.Path {
		// Of a long way only the ends are worth to be read.
		left := len(p.Path) - shownEnd - shownStart
		switch {
		case left > 0 && i == shownStart:
			put(b, "   %s... %d steps more", indent, left)
			fallthrough
		case left > 0 && i > shownStart && i < shownStart+left:
			continue
		}
		put(b, "   %s%s", indent, shown(joinedStep(s)))
		indent += "  "
	}
	tellGrown(b, p.Children, indent)
	if p.LeftOut > 0 {
		put(b, "   %s%s more that grow", indent, grouped(int64(p.LeftOut)))
	}
}

// holder names a place in a few words: the last field on the way to it, of the app if
// there is one, and the class that is there.
func holder(p *growth.Place) string {
	if len(p.Path) == 0 {
		return "GC roots"
	}
	if len(p.Children) == 1 && p.LeftOut == 0 {
		if c := &p.Children[0]; ofField(&c.Step) && !ofPlatform(c.Owner) {
			return fmt.Sprintf("%s.%s (%s)", simpleName(c.Owner), c.Name, simpleName(c.Class))
		}
	}
	class := simpleName(p.Path[len(p.Path)-1].Class)
	last := ""
	for _, s := range slices.Backward(p.Path) {
		if !ofField(&s) {
			continue
		}
		field := simpleName(s.Owner) + "." + s.Name
		if !ofPlatform(s.Owner) {
			last = field
			break
		}
		last = cmp.Or(last, field)
	}
	if last == "" {
		return class
	}
	return fmt.Sprintf("%s (%s)", last, class)
}

func ofField(s *growth.Step) bool {
	return s.Kind == growth.KindStatic || s.Kind == growth.KindInstance
}

// ofPlatform tells whether a class is of Java, Kotlin or Android and not of an app.
func ofPlatform(class string) bool {
	for _, prefix := range []string{"java.", "javax.", "jdk.", "sun.", "kotlin.", "kotlinx.", "android.", "androidx.", "com.android.", "dalvik.", "libcore."} {
		if strings.HasPrefix(class, prefix) {
			return true
		}
	}
	return false
}

// joinedStep is one reference with the class of what it leads to.
func joinedStep(s growth.Step) string {
	linked := ""
	if s.Linked {
		linked = ", linked to each other"
	}
	switch s.Kind {
	case growth.KindRoot:
		return s.Name + " " + s.Class
	case growth.KindStatic:
		return "static " + s.Name + " -> " + s.Class + linked
	case growth.KindInstance:
		return "." + s.Name + " -> " + s.Class + linked
	}
	return s.Name + " -> " + s.Class + linked
}

func tellGrown(b *strings.Builder, list []growth.Child, indent string) {
	for _, c := range list {
		put(b, " + %s%s: %s, %s (%s)", indent, shown(joinedStep(c.Step)), counted(c.Objects), amount(c.RetainedBytes[len(c.RetainedBytes)-1]), signedAmount(c.RetainedDelta))
		tellGrown(b, c.Children, indent+"  ")
		if c.LeftOut > 0 {
			put(b, " + %s  %s more", indent, grouped(int64(c.LeftOut)))
		}
	}
}

// counted writes the counts of a series; of a long one its ends.
func counted(list []int64) string {
	const most = 6
	var texts []string
	for i, n := range list {
		if len(list) > most && i == most/2 {
			texts = append(texts, "...")
		}
		if len(list) <= most || i < most/2 || i >= len(list)-most/2 {
			texts = append(texts, grouped(n))
		}
	}
	return strings.Join(texts, " > ")
}

// rate writes how many objects a repetition adds.
func rate(n float64) string { return strconv.FormatFloat(math.Round(100*n)/100, 'f', -1, 64) }
