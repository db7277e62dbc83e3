package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/query"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
)

func objectsCommand(c *console) *cobra.Command {
	f := objectsFlags{top: defaultTop}
	cmd := &cobra.Command{
		Use: "objects DUMP 0xID...|--class NAME", GroupID: groupDump,
		Short: "show single objects, or instances of a class with certain field values",
		Long: `Show for each object its size, how much memory would be freed with it, what dominates it, and how
the GC roots reach it; for up to 16 objects also its fields, and which objects
reference it. Write IDs as analyze prints them; "-" as DUMP is standard input.

With --class, show the instances of exactly this class that retain the most memory,
with their fields. --where filters them by a field: FIELD=VALUE, FIELD!=VALUE, and for numbers
FIELD<VALUE, <=, >, >=. VALUE is a number, true, false, a character, the contents
of a String, the name of an enum constant, null or the ID of an object; in double quotes it
is always a string. Quote it for the shell. If --where is
repeated, an object must match all comparisons.`,
		Example: "  leakgate objects shop.hprof 0x12c04948 0x12c04c28 --json\n" +
			"  leakgate objects shop.hprof --class com.shop.Cart --where 'total>100'",
		Annotations: manual{
			exits: "0 an object was found, or none matches --where\n" + dumpExits, page: "docs/formats/analysis.md",
		}.annotations(),
		ValidArgsFunction: completeDump,
		RunE:              c.run(func(c console, args []string) int { return lookUp(&f, c, args) }),
	}
	f.declare(cmd.Flags())
	flags := cmd.Flags()
	flags.Var(word(&f.class, "NAME"), "class",
		"show the instances of this class; write its name as analyze prints it")
	flags.Var(list{to: &f.where, placeholder: "COMPARISON"}, "where",
		"with --class: show only objects whose field has this value, such as state=CLOSED (repeatable)")
	flags.Var(number(&f.top, "N", 0), "top", "with --class: number of objects to print")
	flags.BoolVar(&f.texts, "show-texts", false,
		"show the contents of strings; by default each is replaced by a short hash")
	return cmd
}

type objectsFlags struct {
	dumpFlags
	class string
	where []string
	top   int
	texts bool
}

// check rejects a command line that requests nothing or two different things.
func (f *objectsFlags) check(c console, args []string) error {
	switch given := c.command.Flags().Changed; {
	case f.class == "" && given("where"):
		return errors.New("--where filters the objects of a class: add --class")
	case f.class == "" && given("top"):
		return errors.New("--top limits the number of objects of a class: add --class")
	case f.class != "" && len(args) > 1:
		return errors.New("--class and object IDs cannot be used together: remove one of them")
	case len(args) == 0 || f.class == "" && len(args) < 2:
		return errors.New("want a heap dump and object IDs, such as 0x12c04948, or --class")
	}
	for _, s := range f.where {
		if _, err := query.Parse(s); err != nil {
			return fmt.Errorf("--where: %w", err)
		}
	}
	return wrongOrder(args, "the IDs")
}

func lookUp(f *objectsFlags, c console, args []string) int {
	if err := f.check(c, args); err != nil {
		return c.usage(err)
	}
	ids := make([]hprof.ID, 0, len(args)-1)
	for _, text := range args[1:] {
		id, err := parseID(text)
		if err != nil {
			return c.usage(err)
		}
		ids = append(ids, id)
	}
	return f.run(c, args[0], func(ctx context.Context, file *spool.File, o analysis.Options) error {
		o.Top, o.ShowTexts = f.top, f.texts
		list, err := analysis.Lookup(ctx, file, file.Size(), ids, f.class, f.where, o)
		if errors.As(err, new(*query.ValueError)) {
			return unusable{fmt.Errorf("--where: %w", err)}
		}
		if err != nil {
			return err
		}
		for i, id := range ids {
			if hint := decimal(args[i+1]); hint != "" &&
				!slices.ContainsFunc(list.Objects,
					func(o analysis.Object) bool { return o.Object == analysis.Hex(id) }) {
				list.Warnings = append(list.Warnings, hint)
			}
		}
		if len(ids) > 0 && len(list.Objects) == 0 {
			return unusable{errors.New(strings.Join(list.Warnings, "; "))}
		}
		if f.asJSON {
			return printed(printJSON(c.out, list))
		}
		return printed(reporters.WriteObjects(c.out, list))
	})
}

// parseID parses the ID of an object, with or without 0x.
func parseID(s string) (hprof.ID, error) {
	id, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(s), "0x"), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not an object ID: write it as 0x12c04948", text.Printable(s))
	}
	return hprof.ID(id), nil
}

// decimal returns a hint for an ID that is not in the dump but may have been
// meant as decimal, because some programs print decimal IDs. Otherwise it
// returns "".
func decimal(text string) string {
	n, err := strconv.ParseUint(text, 10, 64)
	id := analysis.Hex(hprof.ID(n))
	if err != nil || id == "0x"+text {
		return ""
	}
	return fmt.Sprintf("IDs are hexadecimal; decimal %s is %s", text, id)
}
