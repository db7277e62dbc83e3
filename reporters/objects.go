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
	out.line("%-18s %12s %12s %12s  %-12s %-11s %-18s %s", "OBJECT", "RETAINED", "SHALLOW", "NATIVE", "HEAP", "REACHABLE", "DOMINATOR", "CLASS")
	for _, o := range list.Objects {
		dominator := o.Dominator
		if dominator == "" {
			dominator = "-"
		}
		out.line("%-18s %12s %12s %12s  %-12s %-11s %-18s %s", o.Object, text.Grouped(o.RetainedBytes), text.Grouped(o.ShallowBytes), text.Grouped(o.NativeBytes), shownName(o.Heap), o.Reachability, dominator, shownName(o.Class))
	}
	for i := range list.Objects {
		out.details(&list.Objects[i])
	}
	out.warnings(list.Warnings)
	return out.writeTo(w)
}

// details prints the fields of an object, and who holds it.
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
