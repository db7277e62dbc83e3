package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/analysis"
)

// shownLeaks bounds the leak traces that are printed.
const shownLeaks = 25

// tellLeaks prints leak traces in the form that Android developers know from
// LeakCanary.
func tellLeaks(b *strings.Builder, r *analysis.Report) {
	library := slices.IndexFunc(r.Leaks, func(l analysis.Leak) bool { return l.Library })
	if library < 0 {
		library = len(r.Leaks)
	}
	b.WriteByte('\n')
	app, others := grouping(r.Leaks[:library]), grouping(r.Leaks[library:])
	switch {
	case len(app) > 0:
		put(b, "LEAKS: %s; ~~~ marks the suspects. fingerprint is LeakCanary's, key stays from build to build; kB are 1024 bytes", howMany(app))
		tellGroups(b, app)
	case r.Dump.Android == nil && len(r.Suspects) == 0:
		put(b, "LEAKS: nothing tells what should be gone from a JVM; ask with --leaking-class CLASS, or compare dumps with leakgate growth")
	default:
		put(b, "LEAKS: none found")
	}
	if len(others) > 0 {
		b.WriteByte('\n')
		put(b, "LIBRARY LEAKS: %s, known, of the platform or a library and not of the app", howMany(others))
		tellGroups(b, others)
	}
	tellGarbage(b, r.Unreachable)
	tellSuspects(b, r.Suspects)
}

// alike are leaks with one key: the same cause, by ways of different shape.
type alike []*analysis.Leak

// grouping puts leaks with one key together.
func grouping(leaks []analysis.Leak) (list []alike) {
	places := map[string]int{}
	for i := range leaks {
		l := &leaks[i]
		at, ok := places[l.Key]
		if !ok {
			at = len(list)
			places[l.Key] = at
			list = append(list, nil)
		}
		list[at] = append(list[at], l)
	}
	return list
}

// howMany says how many causes there are, and of how many objects.
func howMany(list []alike) string {
	objects := 0
	for _, c := range list {
		objects += c.instances()
	}
	if objects == len(list) {
		return fmt.Sprint(len(list))
	}
	return fmt.Sprintf("%d (%s objects)", len(list), grouped(int64(objects)))
}

func (c alike) instances() (n int) {
	for _, l := range c {
		n += l.Instances
	}
	return n
}

func tellGroups(b *strings.Builder, list []alike) {
	for _, c := range list[:min(len(list), shownLeaks)] {
		tellGroup(b, c)
	}
	if n := len(list) - shownLeaks; n > 0 {
		b.WriteByte('\n')
		put(b, "%d more; --json has them", n)
	}
}

func tellGroup(b *strings.Builder, c alike) {
	l, bytes := c[0], int64(0)
	for _, x := range c {
		bytes += x.RetainedBytes
	}
	b.WriteByte('\n')
	put(b, "%s: %s", plural(c.instances(), simpleName(l.Class)), headline(l))
	put(b, "%s retained%s, fingerprint %s, key %s", bytesOf(bytes), partsOf(l, c.instances()), short(l.Fingerprint), short(l.Key))
	if l.Library {
		put(b, "known leak: %s", printable(l.Pattern))
		for _, line := range strings.Split(l.Description, "\n") {
			put(b, "  %s", printable(line))
		}
		if l.Source != "" {
			put(b, "  %s", printable(l.Source))
		}
	}
	tellTrace(b, l, l.Accumulates)
	for _, x := range c {
		tellRelated(b, x.Also)
	}
	if n := len(c) - 1; n > 0 {
		put(b, "%s of these by %s of another shape", grouped(int64(c.instances()-l.Instances)), ways(n))
	}
}

// partsOf tells what most of it is.
func partsOf(l *analysis.Leak, instances int) string {
	if len(l.Parts) == 0 {
		return ""
	}
	var list []string
	for _, p := range l.Parts {
		list = append(list, fmt.Sprintf("%s %s (%s)", bytesOf(p.RetainedBytes), named(p.Reference), named(simpleName(p.Class))))
	}
	of := " (of it "
	if instances > 1 {
		of = " (of the first "
	}
	return of + strings.Join(list, ", ") + ")"
}

func ways(n int) string {
	if n == 1 {
		return "a way"
	}
	return fmt.Sprintf("%d ways", n)
}

// headline names the reference to look at first.
func headline(l *analysis.Leak) string {
	i := lookFirst(l)
	if i < 0 {
		return "held by " + l.GCRootText
	}
	e := l.Trace[i]
	return "held by " + named(simpleName(e.Owner)+joined(e))
}

// lookFirst is the first suspect reference that the app's own code sets, or else the
// first; -1 if there is none.
func lookFirst(l *analysis.Leak) int {
	first := -1
	for i, e := range l.Trace {
		if !e.Suspect {
			continue
		}
		if first < 0 {
			first = i
		}
		// A singleton's field for itself says less than what the singleton holds.
		if !isPlatform(e.Owner) && l.Trace[i+1].Class != e.Owner {
			return i
		}
	}
	return first
}

// platforms are packages whose code an app's developer does not write.
var platforms = []string{"java.", "javax.", "jdk.", "sun.", "android.", "androidx.", "com.android.", "kotlin.", "kotlinx.", "dalvik.", "libcore."}

func isPlatform(class string) bool {
	return slices.ContainsFunc(platforms, func(p string) bool { return strings.HasPrefix(class, p) })
}

// joined is a reference behind its owner.
func joined(e analysis.TraceElement) string {
	if e.Kind == "instance_field" || e.Kind == "static_field" {
		return "." + e.Reference
	}
	return e.Reference
}

// tellTrace draws the trace as Shark does (LeakTrace.leakTraceAsString).
func tellTrace(b *strings.Builder, l *analysis.Leak, pile *analysis.Accumulation) {
	put(b, "┬───")
	put(b, "│ GC Root: %s", l.GCRootText)
	put(b, "│")
	last, look := len(l.Trace)-1, lookFirst(l)
	for i, e := range l.Trace {
		first, more, kind := "├─ ", "│    ", e.Type
		if i == last {
			first, more = "╰→ ", "      "
		}
		put(b, "%s%s %s", first, named(e.Class), kind)
		if i == last && pile != nil {
			tellPile(b, more, pile)
		} else {
			put(b, "%sLeaking: %s", more, leaking(e))
		}
		if e.RetainedBytes != nil {
			put(b, "%sRetaining %s", more, bytesOf(*e.RetainedBytes))
		}
		for _, label := range e.Labels {
			put(b, "%s%s", more, sentence(label))
		}
		if i < last {
			tellReference(b, e, i == look)
		}
	}
}

func leaking(e analysis.TraceElement) string {
	if e.Reason == "" {
		return e.Leaking
	}
	return fmt.Sprintf("%s (%s)", e.Leaking, sentence(e.Reason))
}

// tellReference prints the line of the reference, underlined if it is suspect.
func tellReference(b *strings.Builder, e analysis.TraceElement, look bool) {
	static := ""
	if e.Kind == "static_field" {
		static = " static"
	}
	owner := fmt.Sprintf("    ↓%s %s", static, named(strings.TrimSuffix(simpleName(e.Owner), "[]")))
	name := shown(e.Reference)
	if e.Kind == "instance_field" || e.Kind == "static_field" {
		owner += "."
	}
	put(b, "│%s%s", owner, name)
	if e.Suspect {
		here := ""
		if look {
			here = "  ← look here first"
		}
		put(b, "│%s%s%s", strings.Repeat(" ", len([]rune(owner))), strings.Repeat("~", len([]rune(name))), here)
	}
}

func tellRelated(b *strings.Builder, also []analysis.Related) {
	for _, a := range first(also) {
		put(b, "Also retains leaking object %s (%s), in these bytes", a.Object, named(a.Class))
	}
	if n := len(also) - shownLines; n > 0 {
		put(b, "Also retains %d more leaking objects", n)
	}
}

// tellGarbage prints what should be gone and soon will be.
func tellGarbage(b *strings.Builder, list []analysis.Garbage) {
	if len(list) == 0 {
		return
	}
	b.WriteByte('\n')
	put(b, "GARBAGE: what should be gone, and nothing holds it: no leak; a collection before the dump (am dumpheap -g) takes it")
	for _, g := range first(list) {
		reason := ""
		if g.Reason != "" {
			reason = ", " + sentence(g.Reason)
		}
		put(b, "  %s%s", plural(g.Instances, g.Class), reason)
	}
	if n := len(list) - shownLines; n > 0 {
		put(b, "  and objects of %d more classes", n)
	}
}

// tellSuspects prints where memory piles up.
func tellSuspects(b *strings.Builder, suspects []analysis.Leak) {
	if len(suspects) == 0 {
		return
	}
	b.WriteByte('\n')
	put(b, "MEMORY PILES UP in %s; nothing says that it leaks: leakgate diff and growth compare it with other dumps", places(len(suspects)))
	for i := range suspects {
		l := &suspects[i]
		n, class := l.Accumulates.Count, l.Accumulates.Class
		// What the nodes of a collection hold says more than that they are nodes.
		if h := l.Accumulates; isPlatform(class) && h.Holds != "" && h.Held*10 >= h.Count*9 {
			n, class = h.Held, h.Holds
		}
		b.WriteByte('\n')
		held := headline(l)
		if l.Accumulates.Root != "" {
			held = "each held by a GC root: " + l.GCRootText
		}
		put(b, "%s, %.1f%% of what is reachable, %s", plural(int(n), simpleName(class)), 100*l.Accumulates.Share, held)
		put(b, "%s retained, key %s", bytesOf(l.RetainedBytes), short(l.Key))
		tellTrace(b, l, l.Accumulates)
	}
}

func tellPile(b *strings.Builder, indent string, a *analysis.Accumulation) {
	what, more := "holds", ""
	switch {
	case a.Linked:
		what = "is one of"
	case a.Root != "":
		what, more = "is the largest of", ", each held by a GC root of its own"
	}
	put(b, "%s%s %s objects of %s: %s%s", indent, what, grouped(a.Count), named(a.Class), bytesOf(a.Bytes), more)
	tellBeside(b, indent, a.Beside)
	if a.Holds != "" {
		put(b, "%swhich hold %s objects of %s: %s", indent, grouped(a.Held), named(a.Holds), bytesOf(a.HeldBytes))
		tellBeside(b, indent, a.HeldBeside)
	}
	if a.Cache != "" {
		put(b, "%sin a cache, %s, which bounds them", indent, shown(a.Cache))
	}
}

func tellBeside(b *strings.Builder, indent string, list []analysis.ClassSum) {
	for _, s := range list {
		put(b, "%sand %s objects of %s: %s", indent, grouped(s.Count), named(s.Class), bytesOf(s.Bytes))
	}
}

// longestSentence is the characters that are shown of a reason or a label.
const longestSentence = 500

// sentence is a text of an inspector in a line: its beginning, where it is endless.
func sentence(text string) string {
	runes := []rune(printable(text))
	if len(runes) <= longestSentence {
		return string(runes)
	}
	return string(runes[:longestSentence-1]) + "…"
}

func places(n int) string {
	if n == 1 {
		return "1 place"
	}
	return fmt.Sprintf("%d places", n)
}

// plural names objects of a class with their number.
func plural(n int, class string) string {
	if n == 1 {
		return named(class)
	}
	return grouped(int64(n)) + " x " + named(class)
}

// hiddenClass is the address that a JVM puts behind the name of a lambda's class.
var hiddenClass = regexp.MustCompile(`[./+]0x[0-9a-f]+$`)

// named is a class in a line, without the address that says nothing to a reader.
func named(class string) string { return shown(hiddenClass.ReplaceAllString(class, "")) }

// bytesOf is an amount that may be small.
func bytesOf(n int64) string {
	if n < 10_000 {
		return grouped(n) + " bytes"
	}
	return amount(n)
}

// simpleName is a class name without its package.
func simpleName(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// short is the beginning of an identity, enough to tell those of one dump apart.
func short(identity string) string { return identity[:min(8, len(identity))] }
