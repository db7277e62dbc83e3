package reporters

import (
	"io"

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
	out.warnings(list.Warnings)
	return out.writeTo(w)
}
