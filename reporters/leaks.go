package reporters

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/text"
)

// shownLeaks is the maximum number of printed leak traces; shownSuspects is the
// maximum number of printed places where memory accumulates. On request, all
// traces and all places are printed.
const (
	shownLeaks    = 5
	shownSuspects = 2
)

// leaks writes the leaks of a dump: first a line for each leak, then their
// traces, in the format that Android developers know from LeakCanary. After
// that, it writes objects that should be gone and are not held, and places
// where memory accumulates.
func (out *page) leaks(r *analysis.Report, all bool) {
	app, library := split(r.Leaks)
	out.blank()
	switch {
	case len(app) > 0:
		out.line("LEAKS: %s in the app, %s retained; %d in libraries", howMany(app), leaked(r), len(library))
		out.line("(fingerprint: as in LeakCanary; key: the same in every build; 1 kB is 1024 bytes)")
		out.index(app)
	default:
		out.line("LEAKS: %s", noLeaks(r))
	}
	out.traces(app, all)
	if len(library) > 0 {
		out.blank()
		out.line("LIBRARY LEAKS: %s, known leaks of the platform or of a library", howMany(library))
		out.index(library)
		out.traces(library, all)
	}
	out.garbage(r.Unreachable)
	out.suspects(r.Suspects, all)
}

// split separates the leaks of the app from the leaks of libraries, which are
// printed later.
func split(leaks []analysis.Leak) (app, library []analysis.Leak) {
	at := slices.IndexFunc(leaks, func(l analysis.Leak) bool { return l.Library })
	if at < 0 {
		at = len(leaks)
	}
	return leaks[:at], leaks[at:]
}

// noLeaks says how certain it is that there are no leaks.
func noLeaks(r *analysis.Report) string {
	if len(r.Undecided) == 0 {
		return "none found"
	}
	if r.Dump.Android == nil && len(r.Undecided) == 1 && !r.Dump.Truncated && r.Dump.ReachableBytes > 0 {
		return "not judged: a JVM does not mark objects as no longer needed; name classes with --leaking-class, or " +
			"compare dumps with leakgate growth"
	}
	return "none found in the readable part: " + strings.Join(r.Undecided, "; ")
}

// verdict prints the last line, which contains the result in one sentence.
func (out *page) verdict(r *analysis.Report) {
	app, library := split(r.Leaks)
	out.blank()
	known := ""
	if len(library) > 0 {
		known = fmt.Sprintf("; %s in the platform or a library", text.Count(len(library), "known leak", "known leaks"))
	}
	if len(app) > 0 {
		out.line("verdict: %s in the app, %s retained%s", text.Count(len(app), "leak", "leaks"), leaked(r), known)
		return
	}
	if len(r.Undecided) > 0 {
		out.line("verdict: no leak found in the app; not judged: %s%s", strings.Join(r.Undecided, "; "), known)
		return
	}
	out.line("verdict: no leak found in the app%s", known)
}

// howMany returns the number of causes and the number of leaked objects as
// text.
func howMany(leaks []analysis.Leak) string {
	n := 0
	for i := range leaks {
		n += leaks[i].Instances
	}
	if n == len(leaks) {
		return fmt.Sprint(len(leaks))
	}
	return fmt.Sprintf("%s (%s objects)", text.Grouped(int64(len(leaks))), text.Grouped(int64(n)))
}

// leaked returns the combined retained size of the app's leaks.
func leaked(r *analysis.Report) string {
	if r.LeakedIsBound {
		return "at least " + text.Size(r.LeakedBytes)
	}
	return text.Size(r.LeakedBytes)
}

// indexed is the maximum number of leaks that get a line in the index.
const indexed = 100

// index writes a line for each leak; the leaks that retain the most memory come
// first.
func (out *page) index(leaks []analysis.Leak) {
	if len(leaks) == 1 {
		return
	}
	for i := range leaks[:min(len(leaks), indexed)] {
		l := &leaks[i]
		out.line("%14s bytes  %s: %s, key %s", text.Grouped(l.RetainedBytes), objects(l.Instances, simpleName(l.Class)),
			leakHeadline(l), shortID(l.Key))
	}
	out.more(len(leaks) - indexed)
}

// traces prints the traces of the first leaks, or of all leaks.
func (out *page) traces(leaks []analysis.Leak, all bool) {
	shown := len(leaks)
	if !all {
		shown = min(shown, shownLeaks)
	}
	for i := range leaks[:shown] {
		out.blank()
		out.leak(&leaks[i])
	}
	if n := len(leaks) - shown; n > 0 {
		out.blank()
		out.line("%s more; --all prints their traces", text.Grouped(int64(n)))
	}
}

func (out *page) leak(l *analysis.Leak) {
	out.line("%s: %s", objects(l.Instances, simpleName(l.Class)), leakHeadline(l))
	bound := ""
	if l.RetainedIsBound {
		bound = "at least "
	}
	out.line("%s%s retained%s%s, %skey %s", bound, text.Bytes(l.RetainedBytes), partsOf(l, l.Instances), sharedBy(l),
		printOf(l), shortID(l.Key))
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
	out.classesOf(l)
	out.related(l.Consequences, l.ConsequenceCount)
}

// sharedBy describes the memory that is not freed until other leaks are fixed
// as well.
func sharedBy(l *analysis.Leak) string {
	if l.SharedBytes == 0 {
		return ""
	}
	return fmt.Sprintf(", %s shared with %s", text.Bytes(l.SharedBytes),
		text.Count(l.SharedWith, "other leak", "other leaks"))
}

func printOf(l *analysis.Leak) string {
	if l.Fingerprint == "" {
		return ""
	}
	return "fingerprint " + shortID(l.Fingerprint) + ", "
}

// classesOf prints the classes of the leaked objects if there are several.
func (out *page) classesOf(l *analysis.Leak) {
	if len(l.Classes) < 2 {
		return
	}
	for _, c := range firstOf(l.Classes) {
		out.line("  %s", objects(c.Instances, c.Class))
	}
	if n := len(l.Classes) - shownLines; n > 0 {
		out.line("  and objects of %s", text.Count(n, "more class", "more classes"))
	}
}

// partsOf describes what makes up most of the retained memory.
func partsOf(l *analysis.Leak, instances int) string {
	if len(l.Parts) == 0 {
		return ""
	}
	var list []string
	for _, p := range l.Parts {
		list = append(list,
			fmt.Sprintf("%s %s (%s)", text.Bytes(p.RetainedBytes), className(p.Reference),
				className(simpleName(p.Class))))
	}
	of := " (of which "
	if instances > 1 {
		of = " (of the first, "
	}
	return of + strings.Join(list, ", ") + ")"
}

// leakHeadline returns the reference to check first.
func leakHeadline(l *analysis.Leak) string {
	if l.HeldOnlyBy != "" {
		return "held only by " + className(l.HeldOnlyBy)
	}
	i := lookFirst(l)
	if i < 0 {
		return "held by " + l.GCRootText
	}
	e := l.Trace[i]
	return "held by " + className(simpleName(e.Owner)+joined(e))
}

// lookFirst returns the index of the first suspect reference that the app's own
// code sets. If there is none, it returns the index of the first suspect
// reference, or -1 if no reference is suspect.
func lookFirst(l *analysis.Leak) int {
	first := -1
	for i, e := range l.Trace {
		if !e.Suspect {
			continue
		}
		if first < 0 {
			first = i
		}
		// The field of a singleton alone is less informative than the field
		// below it.
		if !android.IsPlatform(e.Owner) && (i+1 == len(l.Trace) || l.Trace[i+1].Class != e.Owner) {
			return i
		}
	}
	return first
}

// joined formats a reference for printing directly after its owner: a field is
// preceded by a dot.
func joined(e analysis.TraceElement) string {
	if e.Kind == "instance_field" || e.Kind == "static_field" {
		return "." + e.Reference
	}
	return e.Reference
}

// trace draws the trace like Shark (LeakTrace.leakTraceAsString).
func (out *page) trace(l *analysis.Leak, place *analysis.Accumulation) {
	out.line("┬───")
	out.line("│ GC Root: %s", l.GCRootText)
	out.line("│")
	last, look := len(l.Trace)-1, lookFirst(l)
	if place != nil {
		// Accumulation of memory does not show which reference is wrong.
		look = -1
	}
	for i, e := range l.Trace {
		first, more, kind := "├─ ", "│    ", e.Type
		if i == last {
			first, more = "╰→ ", "      "
		}
		out.line("%s%s %s", first, className(e.Class), kind)
		switch {
		case i == last && place != nil:
			out.accumulation(more, place)
		case place == nil:
			out.fill(more+"Leaking: ", more+"  ", statusText(e))
		}
		if e.RetainedBytes != nil {
			out.line("%sRetaining %s", more, text.Bytes(*e.RetainedBytes))
		}
		for _, label := range e.Labels {
			out.label(more, sentence(label))
		}
		if i < last {
			out.reference(e, i == look)
		}
	}
}

// label prints what an inspector reports about an object. Advice of more than
// one line is printed in full only once; after that, only its first sentence is
// printed.
func (out *page) label(indent, s string) {
	if text.Columns(indent+s) > width {
		if out.advised[s] {
			s, _, _ = strings.Cut(s, ". ")
			s += " (see above)"
		} else {
			if out.advised == nil {
				out.advised = map[string]bool{}
			}
			out.advised[s] = true
		}
	}
	out.fill(indent, indent+"  ", s)
}

func statusText(e analysis.TraceElement) string {
	if e.Reason == "" {
		return e.Leaking
	}
	return fmt.Sprintf("%s (%s)", e.Leaking, sentence(e.Reason))
}

// reference prints the line of a reference, underlined if the reference is
// suspect.
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
	if e.Repeat > 0 {
		out.line("│    %s more of the same class, each held by the same field", text.Grouped(int64(e.Repeat)))
	}
	if e.Omitted > 0 {
		out.line("│    %s more steps", text.Grouped(int64(e.Omitted)))
	}
}

func (out *page) related(also []analysis.Related, count int) {
	for _, a := range firstOf(also) {
		out.line("Also retains leaking object %s (%s), included in these bytes", a.Object, className(a.Class))
	}
	if n := count - shownLines; n > 0 {
		out.line("Also retains %s", text.Count(n, "more leaking object", "more leaking objects"))
	}
}

// garbage prints the objects that should be gone and will be freed soon.
func (out *page) garbage(list []analysis.Garbage) {
	if len(list) == 0 {
		return
	}
	out.blank()
	out.line("NOT HELD, not a leak: the next garbage collection frees it (am dumpheap -g collects before the dump)")
	for _, g := range firstOf(list) {
		reason := ""
		if g.Reason != "" {
			reason = ", " + sentence(g.Reason)
		}
		if g.Reachability != "" && g.Reachability != heap.Unreachable.String() {
			reason += ", " + g.Reachability + "ly reachable"
		}
		out.line("  %s%s", objects(g.Instances, g.Class), reason)
	}
	if n := len(list) - shownLines; n > 0 {
		out.line("  and objects of %s", text.Count(n, "more class", "more classes"))
	}
}

// suspects prints where memory accumulates without evidence of a leak.
// Accumulations that a leak explains are not printed again.
func (out *page) suspects(suspects []analysis.Leak, all bool) {
	suspects = slices.DeleteFunc(slices.Clone(suspects), func(l analysis.Leak) bool { return l.ExplainedBy != "" })
	if len(suspects) == 0 {
		return
	}
	out.blank()
	out.line("MEMORY ACCUMULATES in %s; one dump cannot distinguish a leak from a cache: compare dumps with leakgate "+
		"growth or leakgate diff", places(len(suspects)))
	out.index(suspects)
	shown := len(suspects)
	if !all {
		shown = min(shown, shownSuspects)
	}
	for i := range suspects[:shown] {
		out.blank()
		out.suspect(&suspects[i])
	}
	if n := len(suspects) - shown; n > 0 {
		out.blank()
		out.line("%s more; --all prints their paths", text.Grouped(int64(n)))
	}
}

func (out *page) suspect(l *analysis.Leak) {
	n, class := l.Accumulates.Accumulated()
	out.line("%s, %.1f%% of what is reachable, %s", objects(n, simpleName(class)), 100*l.Accumulates.Share,
		suspectHolder(l))
	in := ""
	if l.Instances > 1 {
		in = " in " + places(l.Instances)
	}
	out.line("%s retained%s, key %s", text.Bytes(l.RetainedBytes), in, shortID(l.Key))
	out.trace(l, l.Accumulates)
}

func suspectHolder(l *analysis.Leak) string {
	if l.Accumulates.Root != "" {
		return "each held by a GC root: " + l.GCRootText
	}
	if names := l.Accumulates.Sharers; len(names) > 0 {
		return "held by " + allOf(names)
	}
	return leakHeadline(l)
}

// allOf joins static fields and GC roots, as in "A.x, B.y and GC root
// THREAD_OBJECT C".
func allOf(sharers []string) string {
	var names []string
	for _, s := range sharers {
		if kind, class, isRoot := strings.Cut(s, " "); isRoot {
			names = append(names, "GC root "+shownName(kind)+" "+className(simpleName(class)))
			continue
		}
		at := strings.LastIndexByte(s, '.')
		names = append(names, className(simpleName(s[:at])+s[at:]))
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func (out *page) accumulation(indent string, a *analysis.Accumulation) {
	what, more := "holds", ""
	switch {
	case a.Linked:
		what = "is one of"
	case a.Root != "":
		what, more = "is the largest of", ", each held by a GC root of its own"
	case len(a.Sharers) > 1:
		more = ", each held by " + allOf(a.Sharers[1:]) + " as well"
	}
	out.line("%s%s %s objects of %s: %s%s", indent, what, text.Grouped(a.Count), className(a.Class),
		text.Bytes(a.Bytes), more)
	out.beside(indent, a.OtherClasses)
	if a.Holds != "" {
		out.line("%swhich hold %s objects of %s: %s", indent, text.Grouped(a.Held), className(a.Holds),
			text.Bytes(a.HeldBytes))
		out.beside(indent, a.OtherHeld)
	}
	if b := a.AppClass; b != nil {
		out.line("%sand through these %s objects of %s: %s", indent, text.Grouped(b.Count), className(b.Class),
			text.Bytes(b.Bytes))
	}
	if a.Cache != "" {
		out.line("%sin a cache, %s, which bounds their number", indent, shownName(a.Cache))
	}
}

func (out *page) beside(indent string, list []analysis.ClassSum) {
	for _, s := range list {
		out.line("%sand %s objects of %s: %s", indent, text.Grouped(s.Count), className(s.Class), text.Bytes(s.Bytes))
	}
}

// longestSentence is the maximum printed length of a reason or a label, in
// characters.
const longestSentence = 500

// sentence returns a message of an inspector on one line, truncated if
// necessary.
func sentence(s string) string { return text.Head(s, longestSentence) }

func places(n int) string {
	if n == 1 {
		return "1 place"
	}
	return fmt.Sprintf("%d places", n)
}

// WriteLeak writes one leak with its trace. For a suspect, it writes the place
// where memory accumulates.
func WriteLeak(w io.Writer, l *analysis.Leak) error {
	var out page
	if l.Accumulates == nil {
		alone := *l
		alone.Consequences, alone.ConsequenceCount = nil, 0 // its bytes include the leaks that it explains
		out.leak(&alone)
	} else {
		out.suspect(l)
	}
	return out.writeTo(w)
}

// LeakName describes in a few words what leaks and what holds it.
func LeakName(l *analysis.Leak) string {
	if l.Accumulates == nil {
		return text.Printable(objects(l.Instances, simpleName(l.Class)) + ", " + leakHeadline(l))
	}
	n, class := l.Accumulates.Accumulated()
	return text.Printable(objects(n, simpleName(class)) + ", " + suspectHolder(l))
}
