package reporters

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/text"
)

// WriteDiff writes what changed between two dumps. top is the maximum number of
// leaks, and of suspects, that are printed.
func WriteDiff(w io.Writer, d *analysis.Diff, top int) error {
	var out page
	for _, mismatch := range d.Mismatches {
		out.line("WARNING: %s", mismatch)
	}
	if !d.Comparable {
		out.blank()
	}
	out.side("base", &d.Base)
	out.side("head", &d.Head)
	native := ""
	if d.ReachableNative != (analysis.Change{}) {
		native = ", " + text.SignedSize(d.ReachableNative.Delta) + " of registered native memory"
	}
	out.line("change: %s reachable%s, %s objects", text.SignedSize(d.ReachableBytes.Delta), native,
		text.Signed(d.Objects.Delta))
	out.leakChanges("LEAKS", d.Leaks, top)
	out.leakChanges("SUSPECTS", d.Suspects, top)
	out.pathChanges("GROWTH", d.Growth)
	out.pathChanges("SHRINKAGE", d.Shrinkage)
	out.classChanges(d)
	out.warnings(d.Warnings)
	return out.writeTo(w)
}

func (out *page) side(name string, d *analysis.Dump) {
	native := ""
	if d.ReachableNative > 0 {
		native = " and " + text.Size(d.ReachableNative) + " native"
	}
	out.line("%s: %s, IDs of %d bytes, %s, %s objects, %s%s reachable", name, d.Format, d.IDSize, text.Size(d.Bytes),
		text.Grouped(d.Objects), text.Size(d.ReachableBytes), native)
}

func (out *page) leakChanges(title string, list []analysis.LeakChange, top int) {
	if len(list) == 0 {
		return
	}
	out.blank()
	out.line("%-8s %14s %14s %18s  %-8s %s", title, "CHANGE", "RETAINED", "OBJECTS", "KEY", "CLASS")
	for _, l := range list[:min(top, len(list))] {
		library := ""
		if l.Library {
			library = ", of the platform: " + shownName(l.Pattern)
		}
		out.line("%-8s %14s %14s %18s  %-8s %s%s", l.Status, text.Signed(l.RetainedBytes.Delta),
			text.Grouped(l.RetainedBytes.Head), fromTo(l.Instances), shortID(l.Key), shownName(l.Class), library)
		out.keyLines(&l)
		out.leakClasses(&l)
	}
	out.more(len(list) - top)
}

// keyLines writes the parts of a leak's key. For a leak whose holder changed,
// it also writes the parts of the base's key that are not in this one.
func (out *page) keyLines(l *analysis.LeakChange) {
	if l.Library {
		return
	}
	for _, line := range l.KeyText {
		out.below(heldBy(line))
	}
	for _, line := range l.BaseKeyText {
		if !slices.Contains(l.KeyText, line) {
			out.below("in base " + heldBy(line))
		}
	}
}

func heldBy(line string) string {
	if strings.HasPrefix(line, "accumulates ") {
		return line
	}
	return "held by " + line
}

// leakClasses writes the classes of a leak's objects if there are several.
func (out *page) leakClasses(l *analysis.LeakChange) {
	if len(l.Classes) < 2 {
		return
	}
	for _, c := range l.Classes {
		out.below(fromTo(c.Instances) + " " + c.Class)
	}
}

// below writes a line that belongs to the entry above, aligned with the names
// in the table.
func (out *page) below(words string) { out.line("%58s  %s", "", shownName(words)) }

// pathChanges draws the paths as a tree.
func (out *page) pathChanges(title string, paths []analysis.PathChange) {
	paths = slices.Clone(paths)
	slices.SortStableFunc(paths, byStep)
	var above []analysis.PathStep
	for i, p := range paths {
		same := 0
		for same < min(len(above), len(p.Steps)) && above[same] == p.Steps[same] {
			same++
		}
		if same == 0 {
			out.blank()
		}
		if i == 0 {
			out.line("%-9s %4s %14s %14s %18s  %s", title, "", "CHANGE", "RETAINED", "OBJECTS", "PATH")
		}
		for depth, s := range p.Steps[same:] {
			out.step(&s, strings.Repeat(" ", same+depth))
		}
		above = p.Steps
		for _, s := range p.Below {
			if i+1 < len(paths) && slices.Contains(paths[i+1].Steps, s) {
				continue // printed as the next path
			}
			out.step(&s, strings.Repeat(" ", len(p.Steps))+"· ")
		}
	}
}

// byStep sorts paths so that each follows the path from which it branches. Of
// two branches, the one that changed more comes first.
func byStep(a, b analysis.PathChange) int {
	for i, s := range a.Steps[:min(len(a.Steps), len(b.Steps))] {
		x, y := s.RetainedBytes.Delta, b.Steps[i].RetainedBytes.Delta
		if a.Delta < 0 {
			x, y = -x, -y
		}
		if c := cmp.Or(cmp.Compare(y, x), strings.Compare(s.Class, b.Steps[i].Class)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a.Steps), len(b.Steps))
}

func (out *page) step(s *analysis.PathStep, indent string) {
	out.line("%14s %14s %14s %18s  %s%s", "", text.Signed(s.RetainedBytes.Delta), text.Grouped(s.RetainedBytes.Head),
		fromTo(s.Objects), indent, shownName(s.Class))
}

func (out *page) classChanges(d *analysis.Diff) {
	out.blank()
	if d.ClassesChanged == 0 {
		out.line("no class changed")
		return
	}
	out.line("%-8s %14s %14s %14s %18s  %s", "CLASSES", "RETAINED", "NATIVE", "SHALLOW", "INSTANCES", "CLASS")
	for _, c := range d.Classes {
		out.line("%-8s %14s %14s %14s %18s  %s", c.Status, text.Signed(c.RetainedBytes.Delta),
			text.Signed(c.RetainedNative.Delta), text.Signed(c.ShallowBytes.Delta), fromTo(c.Instances),
			shownName(c.Class))
	}
	out.more(d.ClassesChanged - len(d.Classes))
}

func fromTo(c analysis.Change) string {
	if c.Delta == 0 {
		return text.Grouped(c.Head)
	}
	return text.Grouped(c.Base) + " > " + text.Grouped(c.Head)
}
