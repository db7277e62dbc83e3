package reporters

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/text"
)

// WriteReport writes the report of one heap dump: its leaks, and what retains
// the most memory. Only the traces of the first leaks are printed, unless all
// is set.
func WriteReport(w io.Writer, r *analysis.Report, all bool) error {
	var out page
	out.app(r.Dump.Android)
	out.dump(&r.Dump)
	out.notable(r)
	// The warnings are printed before the leaks, because they change the
	// meaning of everything that follows.
	out.warnings(r.Warnings)
	out.leaks(r, all)
	for _, l := range r.Loaders {
		bound := ""
		if l.RetainedIsBound {
			bound = "at least "
		}
		out.blank()
		out.line("CLASS LOADERS: %s is loaded by %d loaders (%s), %s%s retained", className(l.Class), l.Loaders,
			className(l.LoaderClass), bound, text.Size(l.RetainedBytes))
	}
	out.components(r.Components)
	if out.rows = manyRows; all {
		out.rows = 0
	} else if len(r.Leaks) > 0 {
		out.rows = fewRows
	}
	out.classes(&r.Dump, r.Classes)
	out.dominators(r)
	out.bitmaps(r.Bitmaps)
	out.strings(r.Strings)
	out.finalizers(r.Finalizers)
	out.threads(r.Threads)
	out.limits(r.Exhaustion)
	out.verdict(r)
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
	out.line("%s, %s, %s objects: %s instances, %s object arrays, %s primitive arrays, %s classes", d.Format,
		text.Size(d.Bytes),
		text.Grouped(d.Objects), text.Grouped(d.Instances), text.Grouped(d.ObjectArrays),
		text.Grouped(d.PrimitiveArrays), text.Grouped(d.Classes))
	for _, h := range d.Heaps {
		out.line("heap %s: %s objects, %s", shownName(h.Name), text.Grouped(h.Objects), text.Size(h.Bytes))
	}
	if d.ReachableBytes > 0 {
		native, all := "", int64(0)
		if d.ReachableNative > 0 {
			native = ", and " + text.Size(d.ReachableNative) + " of registered native memory"
		}
		for _, h := range d.Heaps {
			all += h.Bytes
		}
		share := ""
		if all > 0 {
			share = fmt.Sprintf(", %.1f%% of %s", percent(d.ReachableBytes, all), text.Size(all))
		}
		out.line("reachable: %s%s%s (sizes as the dump declares them)", text.Size(d.ReachableBytes), share, native)
	}
}

const (
	// manyAlike is the minimum number of threads in a group that is printed.
	// The largest pool in most apps is that of Binder, with up to 16 threads.
	manyAlike = 20
	// shownGroups is the maximum number of groups of threads listed in one
	// line.
	shownGroups = 3
	// worthSlots (in bytes) and worthSlotsShare (a divisor of the heap size)
	// determine how much memory unused slots in collections must take to be
	// listed.
	worthSlots      = 256 << 10
	worthSlotsShare = 50
)

// notable prints facts that the tables below do not show clearly.
func (out *page) notable(r *analysis.Report) {
	if r.Exhaustion != nil {
		var groups []string
		for _, g := range r.Exhaustion.ThreadGroups {
			if g.Threads >= manyAlike && len(groups) < shownGroups {
				groups = append(groups, text.Grouped(g.Threads)+" "+name(g.Pattern))
			}
		}
		if len(groups) > 0 {
			out.line("threads: %s, of which %s", text.Grouped(int64(len(r.Threads))), strings.Join(groups, ", "))
		}
	}
	if u := r.Unused; u != nil {
		if bytes := u.EmptyBytes + u.SparseBytes; bytes >= worthSlots &&
			bytes*worthSlotsShare >= r.Dump.ReachableBytes {
			out.line("unused slots: %s in %s of %s lists and maps, %s empty and the others at most a quarter full",
				text.Size(bytes), text.Grouped(u.Empty+u.Sparse), text.Grouped(u.Collections), text.Grouped(u.Empty))
		}
	}
}

// The number of rows in each table. If there are leaks, the tables matter less
// and have fewer rows.
const (
	fewRows  = 5
	manyRows = 12
)

// first returns how many of n rows to print.
func (out *page) first(n int) int {
	if out.rows > 0 {
		return min(n, out.rows)
	}
	return n
}

// ownHeap returns the name of the heap that the app filled, or "" if there is
// only one heap.
func ownHeap(d *analysis.Dump) string {
	if len(d.Heaps) > 1 && slices.ContainsFunc(d.Heaps, func(h analysis.Heap) bool { return h.Name == "app" }) {
		return "app"
	}
	return ""
}

func (out *page) classes(d *analysis.Dump, classes []analysis.Class) {
	if len(classes) == 0 {
		return
	}
	out.blank()
	app := ownHeap(d)
	own, ownBytes := "", func(*analysis.Class) string { return "" }
	if app != "" {
		own = fmt.Sprintf("%14s ", "APP HEAP")
		ownBytes = func(c *analysis.Class) string { return fmt.Sprintf("%14s ", text.Grouped(c.RetainedIn[app])) }
	}
	out.line("CLASSES: sizes in bytes")
	out.line("%s%14s %12s %14s %12s  %s", own, "RETAINED", "NATIVE", "SHALLOW", "INSTANCES", "CLASS")
	shown := out.first(len(classes))
	defer out.more(len(classes) - shown)
	for i := range classes[:shown] {
		c := &classes[i]
		bound := ""
		if c.RetainedIsBound {
			bound = "≥ "
		}
		out.line("%s%14s %12s %14s %12s  %s", ownBytes(c), bound+text.Grouped(c.RetainedBytes),
			text.Grouped(c.RetainedNative), text.Grouped(c.ShallowBytes), text.Grouped(c.Instances), shownName(c.Class))
	}
}

// dominators draws the dominator tree; each level is indented by two more
// columns.
func (out *page) dominators(r *analysis.Report) {
	if len(r.Dominators) == 0 {
		return
	}
	out.blank()
	out.line("DOMINATORS: the objects that retain the most memory, as a tree; sizes in bytes")
	out.line("%14s %6s %14s  %s", "RETAINED", "SHARE", "SHALLOW", "DOMINATOR")
	total := r.Dump.ReachableBytes + r.Dump.ReachableNative
	left := out.first(math.MaxInt)
	for i := range r.Dominators {
		if left <= 0 {
			out.more(len(r.Dominators) - i)
			return
		}
		out.dominator(&r.Dominators[i], branch{whole: total, top: r.Dominators[i].RetainedBytes, left: &left})
	}
}

// branch is the position of a dominator in the tree. whole is the number of all
// reachable bytes; top is the number of bytes that the top-level dominator
// above it retains.
type branch struct {
	whole, top int64
	depth      int
	// left is the number of lines that may still be printed, for all branches
	// together.
	left *int
}

// wide determines when small objects are printed. If no object below a
// dominator is large, but together the objects retain more than 1/wide of the
// bytes of the top-level dominator, one line is printed for all of them.
const wide = 20

func (out *page) dominator(d *analysis.Dominator, at branch) {
	if *at.left--; *at.left < 0 {
		return
	}
	indent := strings.Repeat("  ", at.depth)
	out.line("%14s %5.1f%% %14s  %s%s %s", text.Grouped(d.RetainedBytes), percent(d.RetainedBytes, at.whole),
		text.Grouped(d.ShallowBytes), indent, shownName(d.Class), d.Object)
	below := at
	below.depth++
	for i := range d.Children {
		out.dominator(&d.Children[i], below)
	}
	if d.Omitted > 0 && (len(d.Children) > 0 || d.OmittedBytes > at.top/wide) {
		out.line("%14s %5.1f%% %14s  %s  %s more", text.Grouped(d.OmittedBytes), percent(d.OmittedBytes, at.whole), "",
			indent, text.Grouped(d.Omitted))
	}
}

func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}
