package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/analysis/hprof"
	"github.com/leakgate/leakgate/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
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
		return printed(tellPaths(c.out, p, f.top))
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

func tellPaths(w io.Writer, p *analysis.Paths, top int) error {
	var b strings.Builder
	what := p.Class
	if p.Object != "" {
		what += " " + p.Object
	}
	put(&b, "%s: %s, %s reached from GC roots; %s, retaining %s", shown(what), text.Grouped(p.Instances), text.Grouped(p.Reached), text.Size(p.Bytes), text.Size(p.Retained))
	if len(p.Branches) > 0 {
		b.WriteByte('\n')
		put(&b, "%12s %12s  %s", "INSTANCES", "BYTES", "PATH")
		t := pathTree{b: &b, left: top}
		for i := range p.Branches {
			t.branch(&p.Branches[i], 0)
		}
		if t.more > 0 {
			put(&b, "%12s %12s  %s more branches; --top shows them", "", "", text.Grouped(t.more))
		}
	}
	if p.Reached == 0 {
		b.WriteString("no path leads there: it is garbage, or only held by what never tells who holds an object, such as weak references\n")
	}
	for _, text := range p.Warnings {
		put(&b, "warning: %s", text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// pathTree prints a tree up to a number of lines.
type pathTree struct {
	b    *strings.Builder
	left int
	more int64
}

// deepestIndent is how far in a line begins at most.
const deepestIndent = 60

func (t *pathTree) branch(x *analysis.Branch, depth int) {
	if t.left == 0 {
		t.more++
		for i := range x.Branches {
			t.branch(&x.Branches[i], depth+1)
		}
		return
	}
	t.left--
	name := x.Class
	if x.Type == "class" {
		name = "class " + name
	}
	if x.Objects > 1 {
		name = text.Grouped(x.Objects) + " x " + name
	}
	switch {
	case x.GCRoot != "":
		name = x.GCRoot + ": " + name
	case x.Kind == "instance_field" || x.Kind == "static_field":
		name = simpleName(x.Owner) + "." + x.Reference + " → " + name
	default:
		name = simpleName(strings.TrimSuffix(x.Owner, "[]")) + x.Reference + " → " + name
	}
	note := ""
	if x.Cut {
		note = " (what is further down is not shown)"
	}
	put(t.b, "%12s %12s  %s%s%s", text.Grouped(x.Instances), text.Grouped(x.Bytes), strings.Repeat("  ", min(depth, deepestIndent/2)), shown(name), note)
	for i := range x.Branches {
		t.branch(&x.Branches[i], depth+1)
	}
}
