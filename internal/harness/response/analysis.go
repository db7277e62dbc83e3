package response

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// maxLines is the maximum number of lines in the summary of a record.
const maxLines = 80

// Analyze summarizes what was collected, completes the record and writes the
// summaries beside the artifacts. Failures become warnings of the record; an
// error means that a folder cannot be written. If ctx is done, the remaining
// heap dumps are not analyzed, and the record says so. Until a report analyzes
// these dumps, they are stored in the form that will be kept, or stripped if no
// dump will be kept.
func (r *Responder) Analyze(ctx context.Context, c *Case) error {
	began := time.Now()
	// Clone the slices, because the caller of Collect may still use them.
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

// headlines returns the lines for the summary of the record: the first line
// about each artifact that it covers. For a snapshot, which is taken for
// comparison, the summary covers all artifacts. For any other recipe, it covers
// only how processes ended.
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

// degraded lists the artifacts that are missing or were collected with a
// fallback method.
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

// bounded shortens a summary for a record: it limits the number of lines and
// the length of each line.
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
