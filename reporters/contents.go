package reporters

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/text"
)

// shownFrames is the maximum number of printed lines of a stack.
const shownFrames = 8

// app prints which app the dump is from.
func (out *page) app(m *android.Metadata) {
	if m == nil {
		return
	}
	process := m.Process
	if m.Bound != "" {
		process = m.Bound
	}
	parts := []string{"Android"}
	if m.SDK > 0 {
		parts = append(parts, fmt.Sprintf("API %d", m.SDK))
	}
	for _, text := range []string{m.Manufacturer, m.Model} {
		if text != "" && text != "unknown" { // android.os.Build.UNKNOWN
			parts = append(parts, text)
		}
	}
	if process == "" {
		process = "a process without a name"
	}
	out.line("%s on %s", process, strings.Join(parts, ", "))
}

func (out *page) bitmaps(m *android.Bitmaps) {
	if m == nil || m.Count == 0 {
		return
	}
	out.blank()
	estimated := ""
	if m.EstimatedBytes > 0 {
		estimated = fmt.Sprintf(", of which %s is estimated", text.Size(m.EstimatedBytes))
	}
	out.line("BITMAPS: %s, %s%s", text.Grouped(m.Count), text.Size(m.Bytes), estimated)
	if m.Larger != nil && *m.Larger > 0 {
		out.line("  %s are larger than the screen: %s", text.Grouped(*m.Larger), text.Size(m.LargerBytes))
	}
	if m.DuplicatesBy == android.ByNothing {
		out.line("  the dump does not show which are identical; a dump of `am dumpheap -b png` (Android 15 or later) " +
			"does")
	}
	for _, d := range firstOf(m.Duplicates) {
		out.line("%14s wasted  %d x %d, %d copies of %s bytes%s", text.Grouped(d.WastedBytes), d.Width, d.Height,
			d.Copies, text.Grouped(d.BytesEach), reachableOf(d))
	}
	for _, l := range firstOf(m.List) {
		owner := ""
		if l.Owner != nil {
			owner = "  held by " + shownName(l.Owner.Class)
		}
		if l.Reachability != heap.Strong.String() {
			owner = "  " + l.Reachability
		}
		out.line("%14s bytes   %d x %d %s%s", text.Grouped(l.Bytes), l.Width, l.Height, analysis.Hex(l.Object), owner)
	}
}

func (out *page) strings(s *android.Strings) {
	if s == nil || s.Count == 0 {
		return
	}
	out.blank()
	if !s.Compared {
		out.line("STRINGS: %s, not compared; --strings compares them", text.Grouped(s.Count))
		return
	}
	out.line("STRINGS: %s, %s distinct; %s wasted on duplicates", text.Grouped(s.Count), text.Grouped(s.Distinct),
		text.Size(s.WastedBytes))
	for _, r := range firstOf(s.Wasteful) {
		out.line("%14s wasted  %s times %q", text.Grouped(r.WastedBytes), text.Grouped(r.Count), r.Value)
	}
}

func (out *page) components(c *android.Components) {
	if c == nil {
		return
	}
	for _, g := range []struct {
		name  string
		group android.ComponentGroup
	}{{"ACTIVITIES", c.Activities}, {"FRAGMENTS", c.Fragments}, {"SERVICES", c.Services}} {
		if g.group.Count == 0 {
			continue
		}
		out.blank()
		out.line("%s: %s", g.name, stateCounts(g.group.States))
		for _, l := range firstOf(g.group.List) {
			out.line("%14s bytes   %s %s, %s, %s", text.Grouped(l.RetainedBytes), shownName(l.Class),
				analysis.Hex(l.Object), l.State, l.Reachability)
		}
	}
	if c.Databases.Open > 0 {
		out.line("DATABASES: %s open", text.Grouped(c.Databases.Open))
	}
}

// stateCounts formats the counts that are not 0, in alphabetical order of the
// states.
func stateCounts(counts map[string]int64) string {
	var list []string
	for name, n := range counts {
		if n > 0 {
			list = append(list, fmt.Sprintf("%s %s", text.Grouped(n), name))
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		_, a, _ = strings.Cut(a, " ")
		_, b, _ = strings.Cut(b, " ")
		return strings.Compare(a, b)
	})
	return strings.Join(list, ", ")
}

// finalizers prints the finalizer queue if it is long.
func (out *page) finalizers(f *android.Finalizers) {
	if f == nil || f.Pending < manyWaiting {
		return
	}
	out.blank()
	out.line("FINALIZER QUEUE: %s, which retain %s, await finalization",
		text.Count(int(f.Pending), "object", "objects"), text.Size(f.PendingBytes))
	for _, c := range firstOf(f.Classes) {
		if c.Pending > 0 {
			out.line("  %s", objects(int(c.Pending), c.Class))
		}
	}
}

// manyWaiting is the minimum length of a finalizer queue that is printed; a
// queue of this length shows that finalization does not keep up.
const manyWaiting = 100

func (out *page) threads(threads []android.Thread) {
	if len(threads) == 0 {
		return
	}
	out.blank()
	out.line("THREADS: %d", len(threads))
	shown := out.first(len(threads))
	defer out.more(len(threads) - shown)
	threads = threads[:shown]
	for _, t := range threads {
		locals := ""
		if t.Locals.Count > 0 {
			locals = ", objects held by its frames: " + text.Grouped(t.Locals.Count)
		}
		out.line("%14s bytes   %s %s%s", text.Grouped(t.RetainedBytes), shownName(t.Name), analysis.Hex(t.Object),
			locals)
		for _, f := range t.Frames[:min(len(t.Frames), out.first(shownFrames))] {
			out.line("%22s  at %s", "", shownName(f))
		}
	}
}

func (out *page) limits(e *android.Exhaustion) {
	if e == nil {
		return
	}
	shown := false
	for _, c := range e.Causes {
		if !c.NearLimit {
			continue
		}
		if !shown {
			out.blank()
			out.line("NEAR A LIMIT")
			shown = true
		}
		out.line("  %s: %s", c.Cause, c.Note)
	}
}

// reachableOf returns a note about how many of several copies are still in use,
// or "" if all are.
func reachableOf(d android.DuplicateBitmap) string {
	if d.Reachable == d.Copies {
		return ""
	}
	return fmt.Sprintf(", %d reachable", d.Reachable)
}
