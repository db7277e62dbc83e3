package response

import (
	"encoding/json"
	"fmt"
)

// A record is part of a line of samples.ndjson. Such a line is at most 1 MB
// long, and a run has hundreds of records. These constants bound the parts of a
// record, in encoded bytes; a step is bounded by maxReasons and maxWords.
const (
	maxFindings     = 100 << 10
	maxSummary      = 60 << 10
	maxLeakList     = 60 << 10
	maxAllWarnings  = 40 << 10
	roomForWarnings = 2
)

// fit reduces a record to the size of a line: it drops traces of findings that
// are too long, and truncates the lists.
func (c *Case) fit() {
	r := &c.Record
	all := len(r.Findings)
	traces := 0
	left := maxFindings
	for i := range r.Findings {
		f := &r.Findings[i]
		if len(f.Trace) > 0 && encoded(f) > left {
			f.Trace = nil
			traces++
		}
		if left -= encoded(f); left < 0 {
			r.Findings = r.Findings[:i]
			break
		}
	}
	r.Warnings = within(r.Warnings[:min(len(r.Warnings), maxWarnings-roomForWarnings)], maxAllWarnings)
	if n := all - len(r.Findings); n > 0 {
		c.warnText(fmt.Sprintf("%d findings do not fit into a record", n))
	}
	if traces > 0 {
		c.warnText(fmt.Sprintf("the traces of %d findings do not fit into a record", traces))
	}
	r.Summary = within(r.Summary, maxSummary)
}

// within returns the beginning of a list, limited to the given number of
// encoded bytes.
func within(list []string, most int) []string {
	for i := range list {
		if most -= encoded(list[i]); most < 0 {
			return list[:i]
		}
	}
	return list
}

// encoded returns the size of a value in a line of samples.ndjson, including
// the comma after it.
func encoded(v any) int {
	text, _ := json.Marshal(v) // only strings and numbers
	return len(text) + 1
}
