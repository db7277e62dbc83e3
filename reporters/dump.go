package reporters

import (
	"io"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/text"
)

// WriteReport writes the report of one heap dump: its leaks, and what retains most.
func WriteReport(w io.Writer, r *analysis.Report) error {
	var out page
	out.app(r.Dump.Android)
	out.dump(&r.Dump)
	// They change how all that follows is read.
	out.warnings(r.Warnings)
	out.leaks(r)
	out.components(r.Components)
	out.classes(r.Classes)
	out.dominators(r)
	out.bitmaps(r.Bitmaps)
	out.strings(r.Strings)
	out.threads(r.Threads)
	out.limits(r.Exhaustion)
	return out.writeTo(w)
}

// WriteHistogram writes the report of a dump whose objects were only counted
// ([analysis.Histogram]).
func WriteHistogram(w io.Writer, r *analysis.Report) error {
	var out page
	out.dump(&r.Dump)
	out.warnings(r.Warnings)
	if len(r.Classes) > 0 {
		out.blank()
		out.line("%14s %12s  %s", "BYTES", "INSTANCES", "CLASS")
	}
	for _, c := range r.Classes {
		out.line("%14s %12s  %s", text.Grouped(c.ShallowBytes), text.Grouped(c.Instances), shownName(c.Class))
	}
	return out.writeTo(w)
}

func (out *page) dump(d *analysis.Dump) {
	out.line("%s, %s, %s objects: %s instances, %s object arrays, %s primitive arrays, %s classes", d.Format, text.Size(d.Bytes),
		text.Grouped(d.Objects), text.Grouped(d.Instances), text.Grouped(d.ObjectArrays), text.Grouped(d.PrimitiveArrays), text.Grouped(d.Classes))
	for _, h := range d.Heaps {
		out.line("heap %s: %s objects, %s", shownName(h.Name), text.Grouped(h.Objects), text.Size(h.Bytes))
	}
	if d.ReachableBytes > 0 {
		native := ""
		if d.ReachableNative > 0 {
			native = ", and " + text.Size(d.ReachableNative) + " of registered native memory"
		}
		out.line("reachable: %s%s (sizes as the dump declares them)", text.Size(d.ReachableBytes), native)
	}
}

func (out *page) classes(classes []analysis.Class) {
	if len(classes) == 0 {
		return
	}
	out.blank()
	out.line("%14s %12s %14s %12s  %s", "RETAINED", "NATIVE", "SHALLOW", "INSTANCES", "CLASS")
	for _, c := range classes {
		out.line("%14s %12s %14s %12s  %s", text.Grouped(c.RetainedBytes), text.Grouped(c.RetainedNative), text.Grouped(c.ShallowBytes), text.Grouped(c.Instances), shownName(c.Class))
	}
}

// dominators draws the tree, each level two columns further in.
func (out *page) dominators(r *analysis.Report) {
	if len(r.Dominators) == 0 {
		return
	}
	out.blank()
	out.line("%14s %6s %14s  %s", "RETAINED", "SHARE", "SHALLOW", "DOMINATOR")
	total := r.Dump.ReachableBytes + r.Dump.ReachableNative
	for _, d := range r.Dominators {
		out.dominator(&d, branch{whole: total, top: d.RetainedBytes})
	}
}

// branch is where in the tree a dominator stands: below a top that retains so many
// bytes, of so many that are reachable.
type branch struct {
	whole, top int64
	depth      int
}

// wide is the share of its top, as a divisor, that an object with nothing large below
// it must retain in many small ones for them to be told.
const wide = 20

func (out *page) dominator(d *analysis.Dominator, at branch) {
	indent := strings.Repeat("  ", at.depth)
	out.line("%14s %5.1f%% %14s  %s%s %s", text.Grouped(d.RetainedBytes), percent(d.RetainedBytes, at.whole), text.Grouped(d.ShallowBytes), indent, shownName(d.Class), d.Object)
	below := at
	below.depth++
	for i := range d.Children {
		out.dominator(&d.Children[i], below)
	}
	if d.Rest > 0 && (len(d.Children) > 0 || d.RestBytes > at.top/wide) {
		out.line("%14s %5.1f%% %14s  %s  %s more", text.Grouped(d.RestBytes), percent(d.RestBytes, at.whole), "", indent, text.Grouped(d.Rest))
	}
}

func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}
