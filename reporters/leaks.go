package reporters

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/text"
)

// shownLeaks bounds the leak traces that are printed.
const shownLeaks = 25

// leaks adds the leak traces of a dump, in the form that Android developers know from
// LeakCanary, what should be gone and is held by nothing, and where memory accumulates.
func (out *page) leaks(r *analysis.Report) {
	library := slices.IndexFunc(r.Leaks, func(l analysis.Leak) bool { return l.Library })
	if library < 0 {
		library = len(r.Leaks)
	}
	out.blank()
	app, others := grouping(r.Leaks[:library]), grouping(r.Leaks[library:])
	switch {
	case len(app) > 0:
		out.line("LEAKS: %s; ~~~ marks the suspects. fingerprint is LeakCanary's, key stays from build to build; kB are 1024 bytes", howMany(app))
		out.groups(app)
	case r.Dump.Android == nil && len(r.Suspects) == 0:
		out.line("LEAKS: nothing tells what should be gone from a JVM; ask with --leaking-class CLASS, or compare dumps with leakgate growth")
	default:
		out.line("LEAKS: none found")
	}
	if len(others) > 0 {
		out.blank()
		out.line("LIBRARY LEAKS: %s, known, of the platform or a library and not of the app", howMany(others))
		out.groups(others)
	}
	out.garbage(r.Unreachable)
	out.suspects(r.Suspects, r.Leaks)
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
	return fmt.Sprintf("%d (%s objects)", len(list), text.Grouped(int64(objects)))
}

func (c alike) instances() (n int) {
	for _, l := range c {
		n += l.Instances
	}
	return n
}

func (out *page) groups(list []alike) {
	for _, c := range list[:min(len(list), shownLeaks)] {
		out.blank()
		out.group(c)
	}
	if n := len(list) - shownLeaks; n > 0 {
		out.blank()
		out.line("%d more; --json has them", n)
	}
}

func (out *page) group(c alike) {
	l, bytes := c[0], int64(0)
	for _, x := range c {
		bytes += x.RetainedBytes
	}
	out.line("%s: %s", objects(c.instances(), simpleName(l.Class)), leakHeadline(l))
	out.line("%s retained%s, fingerprint %s, key %s", text.Bytes(bytes), partsOf(l, c.instances()), shortID(l.Fingerprint), shortID(l.Key))
	if l.Library {
		out.line("known leak: %s", text.Printable(l.Pattern))
		for _, line := range strings.Split(l.Description, "\n") {
			out.line("  %s", text.Printable(line))
		}
		if l.Source != "" {
			out.line("  %s", text.Printable(l.Source))
		}
	}
	out.trace(l, l.Accumulates)
	for _, x := range c {
		out.related(x.Also)
	}
	if n := len(c) - 1; n > 0 {
		out.line("%s of these by %s of another shape", text.Grouped(int64(c.instances()-l.Instances)), ways(n))
	}
}

// partsOf tells what most of it is.
func partsOf(l *analysis.Leak, instances int) string {
	if len(l.Parts) == 0 {
		return ""
	}
	var list []string
	for _, p := range l.Parts {
		list = append(list, fmt.Sprintf("%s %s (%s)", text.Bytes(p.RetainedBytes), className(p.Reference), className(simpleName(p.Class))))
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
func leakHeadline(l *analysis.Leak) string {
	i := lookFirst(l)
	if i < 0 {
		return "held by " + l.GCRootText
	}
	e := l.Trace[i]
	return "held by " + className(simpleName(e.Owner)+joined(e))
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
		if !isPlatform(e.Owner) && (i+1 == len(l.Trace) || l.Trace[i+1].Class != e.Owner) {
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

// trace draws the trace as Shark does (LeakTrace.leakTraceAsString).
func (out *page) trace(l *analysis.Leak, pile *analysis.Accumulation) {
	out.line("┬───")
	out.line("│ GC Root: %s", l.GCRootText)
	out.line("│")
	last, look := len(l.Trace)-1, lookFirst(l)
	for i, e := range l.Trace {
		first, more, kind := "├─ ", "│    ", e.Type
		if i == last {
			first, more = "╰→ ", "      "
		}
		out.line("%s%s %s", first, className(e.Class), kind)
		if i == last && pile != nil {
			out.accumulation(more, pile)
		} else {
			out.line("%sLeaking: %s", more, statusText(e))
		}
		if e.RetainedBytes != nil {
			out.line("%sRetaining %s", more, text.Bytes(*e.RetainedBytes))
		}
		for _, label := range e.Labels {
			out.line("%s%s", more, sentence(label))
		}
		if i < last {
			out.reference(e, i == look)
		}
	}
}

func statusText(e analysis.TraceElement) string {
	if e.Reason == "" {
		return e.Leaking
	}
	return fmt.Sprintf("%s (%s)", e.Leaking, sentence(e.Reason))
}

// reference prints the line of the reference, underlined if it is suspect.
func (out *page) reference(e analysis.TraceElement, look bool) {
	static := ""
	if e.Kind == "static_field" {
		static = " static"
	}
	owner := fmt.Sprintf("    ↓%s %s", static, className(strings.TrimSuffix(simpleName(e.Owner), "[]")))
	name := shownName(e.Reference)
	if e.Kind == "instance_field" || e.Kind == "static_field" {
		owner += "."
	}
	out.line("│%s%s", owner, name)
	if e.Suspect {
		here := ""
		if look {
			here = "  ← look here first"
		}
		out.line("│%s%s%s", strings.Repeat(" ", text.Columns(owner)), strings.Repeat("~", text.Columns(name)), here)
	}
}

func (out *page) related(also []analysis.Related) {
	for _, a := range firstOf(also) {
		out.line("Also retains leaking object %s (%s), in these bytes", a.Object, className(a.Class))
	}
	if n := len(also) - shownLines; n > 0 {
		out.line("Also retains %s", text.Count(n, "more leaking object", "more leaking objects"))
	}
}

// garbage prints what should be gone and soon will be.
func (out *page) garbage(list []analysis.Garbage) {
	if len(list) == 0 {
		return
	}
	out.blank()
	out.line("GARBAGE: what should be gone, and nothing holds it: no leak; a collection before the dump (am dumpheap -g) takes it")
	for _, g := range firstOf(list) {
		reason := ""
		if g.Reason != "" {
			reason = ", " + sentence(g.Reason)
		}
		out.line("  %s%s", objects(g.Instances, g.Class), reason)
	}
	if n := len(list) - shownLines; n > 0 {
		out.line("  and objects of %s", text.Count(n, "more class", "more classes"))
	}
}

// suspects prints where memory piles up without anything that says that it leaks.
func (out *page) suspects(suspects, leaks []analysis.Leak) {
	suspects = Unexplained(suspects, leaks)
	if len(suspects) == 0 {
		return
	}
	out.blank()
	out.line("MEMORY PILES UP in %s; nothing says that it leaks: leakgate diff and growth compare it with other dumps", places(len(suspects)))
	for i := range suspects {
		out.blank()
		out.suspect(&suspects[i])
	}
}

// Unexplained are the places where memory piles up that no leak tells already, whose trace
// leads through the place and whose objects are nine tenths or more of those in it.
func Unexplained(suspects, leaks []analysis.Leak) []analysis.Leak {
	return slices.DeleteFunc(slices.Clone(suspects), func(s analysis.Leak) bool {
		return slices.ContainsFunc(leaks, func(l analysis.Leak) bool { return explains(&l, &s) })
	})
}

func explains(leak, suspect *analysis.Leak) bool {
	n, class := piledUp(suspect.Accumulates)
	if leak.Class != class || 10*leak.Instances < 9*n {
		return false
	}
	// A trace goes through a collection and not through the array in it.
	places := suspect.Trace[max(0, len(suspect.Trace)-2):]
	if len(places) == 2 && !isPlatform(places[1].Class) && !strings.HasSuffix(places[1].Class, "[]") {
		places = places[1:]
	}
	return slices.ContainsFunc(leak.Trace, func(e analysis.TraceElement) bool {
		return slices.ContainsFunc(places, func(p analysis.TraceElement) bool { return p.Object == e.Object })
	})
}

func (out *page) suspect(l *analysis.Leak) {
	n, class := piledUp(l.Accumulates)
	out.line("%s, %.1f%% of what is reachable, %s", objects(n, simpleName(class)), 100*l.Accumulates.Share, suspectHolder(l))
	out.line("%s retained, key %s", text.Bytes(l.RetainedBytes), shortID(l.Key))
	out.trace(l, l.Accumulates)
}

// piledUp is what there is many of. What the nodes of a collection hold says more than
// that they are nodes.
func piledUp(a *analysis.Accumulation) (n int, class string) {
	if isPlatform(a.Class) && a.Holds != "" && a.Held*10 >= a.Count*9 {
		return int(a.Held), a.Holds
	}
	return int(a.Count), a.Class
}

func suspectHolder(l *analysis.Leak) string {
	if l.Accumulates.Root != "" {
		return "each held by a GC root: " + l.GCRootText
	}
	return leakHeadline(l)
}

func (out *page) accumulation(indent string, a *analysis.Accumulation) {
	what, more := "holds", ""
	switch {
	case a.Linked:
		what = "is one of"
	case a.Root != "":
		what, more = "is the largest of", ", each held by a GC root of its own"
	}
	out.line("%s%s %s objects of %s: %s%s", indent, what, text.Grouped(a.Count), className(a.Class), text.Bytes(a.Bytes), more)
	out.beside(indent, a.Beside)
	if a.Holds != "" {
		out.line("%swhich hold %s objects of %s: %s", indent, text.Grouped(a.Held), className(a.Holds), text.Bytes(a.HeldBytes))
		out.beside(indent, a.HeldBeside)
	}
	if a.Cache != "" {
		out.line("%sin a cache, %s, which bounds them", indent, shownName(a.Cache))
	}
}

func (out *page) beside(indent string, list []analysis.ClassSum) {
	for _, s := range list {
		out.line("%sand %s objects of %s: %s", indent, text.Grouped(s.Count), className(s.Class), text.Bytes(s.Bytes))
	}
}

// longestSentence is the characters that are shown of a reason or a label.
const longestSentence = 500

// sentence is a text of an inspector in a line: its beginning, where it is endless.
func sentence(s string) string { return text.Head(s, longestSentence) }

func places(n int) string {
	if n == 1 {
		return "1 place"
	}
	return fmt.Sprintf("%d places", n)
}

// WriteLeak writes one leak with its trace; of a suspect, the place where memory
// accumulates.
func WriteLeak(w io.Writer, l *analysis.Leak) error {
	var out page
	if l.Accumulates == nil {
		alone := *l
		alone.Also = nil // what leaks by it is in its bytes
		out.group(alike{&alone})
	} else {
		out.suspect(l)
	}
	return out.writeTo(w)
}

// LeakName says in a few words what leaks and what holds it.
func LeakName(l *analysis.Leak) string {
	if l.Accumulates == nil {
		return text.Printable(objects(l.Instances, simpleName(l.Class)) + ", " + leakHeadline(l))
	}
	n, class := piledUp(l.Accumulates)
	return text.Printable(objects(n, simpleName(class)) + ", " + suspectHolder(l))
}
