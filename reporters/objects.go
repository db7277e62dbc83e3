package reporters

import (
	"fmt"
	"io"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/text"
)

// WriteObjects writes a row for each object that was looked up.
func WriteObjects(w io.Writer, list *analysis.Objects) error {
	var out page
	out.selection(list)
	if list.Selection == nil || len(list.Objects) > 0 {
		out.objects(list.Objects)
	}
	out.warnings(list.Warnings)
	return out.writeTo(w)
}

// selection prints which objects of a class are shown and how many there are in
// total.
func (out *page) selection(list *analysis.Objects) {
	s := list.Selection
	if s == nil {
		return
	}
	name, count := shownName(s.Class), text.Count(s.Instances, "instance", "instances")
	if len(s.Where) > 0 {
		name += " where " + text.Head(strings.Join(s.Where, ", "), longestSentence)
		count = text.Grouped(int64(s.Matching)) + " of " + count
	}
	least := ""
	if s.RetainedIsBound {
		least = "at least "
	}
	out.line("%s: %s; %s, retaining %s%s", name, count, text.Size(s.ShallowBytes), least, text.Size(s.RetainedBytes))
	if n := s.Matching - len(list.Objects); n > 0 && len(list.Objects) > 0 {
		out.line("%s more retain less; --top shows them", text.Grouped(int64(n)))
	}
	if len(list.Objects) > 0 {
		out.blank()
	}
}

func (out *page) objects(list []analysis.Object) {
	out.line("%-18s %12s %12s %12s  %-12s %-11s %-18s %s", "OBJECT", "RETAINED", "SHALLOW", "NATIVE", "HEAP",
		"REACHABLE", "DOMINATOR", "CLASS")
	for _, o := range list {
		dominator := o.Dominator
		if dominator == "" {
			dominator = "-"
		}
		out.line("%-18s %12s %12s %12s  %-12s %-11s %-18s %s", o.Object, text.Grouped(o.RetainedBytes),
			text.Grouped(o.ShallowBytes), text.Grouped(o.NativeBytes), shownName(o.Heap), o.Reachability, dominator,
			shownName(o.Class))
	}
	for i := range list {
		out.details(&list[i])
	}
}

// details prints the fields of an object and the references that hold it.
func (out *page) details(o *analysis.Object) {
	if len(o.Fields)+len(o.Holders) == 0 {
		return
	}
	out.blank()
	out.line("%s %s", shownName(o.Class), o.Object)
	for _, f := range o.Fields {
		value := "null"
		switch {
		case f.Object != "" && f.Value != nil:
			value = fmt.Sprintf("%s %s %q", className(f.Class), f.Object, *f.Value)
		case f.Object != "":
			value = strings.TrimSpace(className(f.Class) + " " + f.Object)
		case f.Value != nil:
			value = *f.Value
		}
		out.line("  %s = %s", shownName(f.Name), text.Head(value, longestSentence))
	}
	for _, h := range o.Holders {
		out.line("  held by %s %s, %s", className(h.Class), h.Object, shownName(h.Reference))
	}
	out.more(o.HolderCount - len(o.Holders))
}
