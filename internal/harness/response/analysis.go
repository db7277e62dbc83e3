package response

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// maxLines bounds the summary of a record, in lines.
const maxLines = 80

// Analyse summarizes what was collected, completes the record and writes the
// texts beside the artifacts. Failures become warnings of the record; the error
// is about a folder that cannot be written. When ctx ends, heap dumps are not
// analysed, the record says so, and they stay in the form that is to be kept.
// If none is to be kept, they stay stripped until a report analyses them.
func (r *Responder) Analyse(ctx context.Context, c *Case) error {
	began := time.Now()
	// The caller of Collect may still hold these slices.
	c.Record.Steps, c.Record.Warnings = slices.Clone(c.Record.Steps), slices.Clone(c.Record.Warnings)
	c.hide = r.hide
	now, said := readSnapshot(c)
	c.hideThreads()
	c.Now = now.or(c.Before)
	var errs []error
	var heap []string
	tell := func(file string, lines []string) {
		if len(lines) > 0 {
			errs = append(errs, c.folder.text(beside(file), lines))
		}
	}
	for _, s := range slices.Clone(c.Record.Steps) {
		if s.File == "" {
			continue
		}
		lines := said[s.File]
		if s.Step == heapStep {
			lines = r.heap(ctx, c, s.File)
			heap = lines
		}
		tell(s.File, lines)
	}
	grown, degraded := c.growth(now), c.degraded()
	c.Record.Summary = bounded(slices.Concat(c.headlines(said), degraded, grown, heap))
	if len(heap) > 0 {
		c.headline = text.Head(heap[0], maxText)
	}
	if first := slices.Concat(grown, degraded); len(first) > 0 {
		c.lead(first[0])
	}
	c.Record.Analysis, c.Record.Analyzed = seconds(time.Since(began)), !c.interrupted
	c.fit()
	errs = append(errs, c.folder.text("summary.txt", c.Record.Summary), c.write())
	if r.drop(c) {
		errs = append(errs, c.write())
	}
	return r.redactHostPaths(errors.Join(errs...))
}

// headlines are the first lines of the short form. For a snapshot, which exists
// for comparison, they are those of all artifacts; otherwise those about how
// processes ended.
func (c *Case) headlines(said map[string][]string) []string {
	var out []string
	for _, s := range c.Record.Steps {
		lines := said[s.File]
		if len(lines) == 0 {
			continue
		}
		switch {
		case c.Recipe == Snapshot:
			out = append(out, s.Step+": "+lines[0])
		case s.Step == "logcat" || s.Step == "exit_info":
			out = append(out, lines[0])
		}
	}
	return out
}

// degraded lists the artifacts that come from a lesser method or are missing.
func (c *Case) degraded() []string {
	var out []string
	for _, s := range c.Record.Steps {
		switch {
		case s.Outcome == "fallback" && s.Note != "":
			out = append(out, s.Step+": "+s.Note)
		case s.File == "" && len(s.Reasons) > 0 && (s.Outcome == "skipped" || s.Outcome == "failed"):
			out = append(out, s.Step+" "+s.Outcome+": "+s.Reasons[len(s.Reasons)-1])
		}
	}
	return out
}

// bounded returns a summary for a record: each line is Printable and short.
func bounded(lines []string) []string {
	out := make([]string, 0, min(len(lines), maxLines))
	for i, line := range lines {
		if i == maxLines-1 && len(lines) > maxLines {
			return append(out, fmt.Sprintf("... %d more lines in the files beside the artifacts", len(lines)-i))
		}
		out = append(out, text.Head(line, maxText))
	}
	return out
}
