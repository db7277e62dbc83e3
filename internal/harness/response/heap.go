package response

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// topClasses is the maximum number of rows in the histogram and in the
	// dominators of analysis.json.
	topClasses = 30
	// toldLeaks is the maximum number of leaks in a record; toldTrace is the
	// maximum number of lines in each trace.
	toldLeaks = 10
	toldTrace = 60
	// listedLeaks is the maximum number of leaks in the list of all leaks of a
	// dump; listedClasses is the maximum number of classes of each leak.
	listedLeaks   = 100
	listedClasses = 10
)

// heap analyzes a heap dump, converts it to the form in which it is kept, and
// returns the lines for the summary.
func (r *Responder) heap(ctx context.Context, c *Case, file string) []string {
	report, err := r.analyseHeap(ctx, c, file)
	var lines []string
	interrupted := err != nil && ctx.Err() != nil
	switch {
	case err == nil:
		lines = c.heapLines(report)
	case interrupted:
		c.interrupted = true
	default:
		lines = []string{"cannot analyze the dump: " + c.folder.paths().Error(err)}
		c.warn(fmt.Errorf("analyze %s: %w", unpacked(file), err))
		c.Unread = true
	}
	if c.Trigger == record.TriggerMark && err == nil {
		r.addToSeries(ctx, c, file)
	}
	kept, err := r.keep(c, file)
	if err != nil {
		c.warn(err)
	}
	if interrupted {
		lines = []string{r.notAnalysed(c, kept)}
	}
	return lines
}

func (r *Responder) analyseHeap(ctx context.Context, c *Case, file string) (*analysis.Report, error) {
	d, err := r.openDump(ctx, c.folder, file)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	options := r.heapOptions()
	options.Cut = d.cut
	report, summary, err := analysis.Examine(ctx, d, d.size, options)
	if err != nil {
		return nil, err
	}
	c.Record.Heap = heapOf(report, c.summarize(summary))
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode analysis.json: %w", err)
	}
	return report, record.WriteFileAtomic(c.folder.in("analysis.json"), append(text, '\n'))
}

// SummaryName is the file name of the summary of a heap dump. The summary is
// used to compare the dump with other dumps.
const SummaryName = "heap.summary.json.zst"

// summarize writes the summary of a dump and returns the name of the file, or
// "" if the summary cannot be written.
func (c *Case) summarize(s *analysis.Summary) string {
	var packed bytes.Buffer
	encoded, err := s.Encode()
	if err == nil {
		err = packInto(&packed, encoded)
	}
	if err == nil {
		err = record.WriteFileAtomic(c.folder.in(SummaryName), packed.Bytes())
	}
	if err != nil {
		c.warn(fmt.Errorf("write %s: %w; other runs can compare only with the heap dump", SummaryName, err))
		return ""
	}
	return SummaryName
}

func packInto(out io.Writer, content []byte) error {
	z, err := spool.Pack(out, int64(len(content)))
	if err != nil {
		return err
	}
	_, err = z.Write(content)
	return errors.Join(err, z.Close())
}

// heapOf returns the results of the analysis of a dump for the record.
func heapOf(r *analysis.Report, summary string) *record.HeapDump {
	h := &record.HeapDump{
		Summary: summary, Objects: r.Dump.Objects, ReachableBytes: r.Dump.ReachableBytes,
		ReachableNative: r.Dump.ReachableNative, Names: r.Dump.Names.Origin,
	}
	if m := r.Dump.Names.Mapping; m != nil {
		h.Mapping = &record.Mapping{
			ID: m.ID, SHA256: m.SHA256, Classes: m.Classes, Found: m.Found, Unknown: m.Unknown, Fields: m.Fields,
			Missing: m.Missing,
		}
	}
	return h
}

func (r *Responder) heapOptions() analysis.Options {
	o := analysis.Options{Top: topClasses, Mapping: r.options.Mapping, ShowTexts: r.options.ShowTexts}
	if r.options.Memory != nil {
		o.Memory = r.options.Memory()
	}
	return o
}

// heapLines summarizes a dump: its first leaks or, if there are none, the
// places where memory accumulates.
func (c *Case) heapLines(r *analysis.Report) []string {
	var lines []string
	for _, text := range r.Warnings {
		c.warnText("heap dump: " + text)
	}
	c.listLeaks(r.Leaks)
	c.Record.Undecided = text.Head(strings.Join(r.Undecided, "; "), maxText)
	for i := range r.Leaks {
		c.findLeak(&r.Leaks[i], map[bool]string{false: "leak", true: "library_leak"}[r.Leaks[i].Library])
	}
	piles := slices.DeleteFunc(slices.Clone(r.Suspects), func(s analysis.Leak) bool { return s.ExplainedBy != "" })
	for i := range piles {
		c.findLeak(&piles[i], "suspect")
	}
	first := firstLeak(r.Leaks, piles)
	switch {
	case first == nil:
		lines = append(lines,
			fmt.Sprintf("heap dump: no leak and no place where memory accumulates; %s reachable",
				text.Bytes(r.Dump.ReachableBytes)))
		if len(r.Undecided) > 0 {
			lines[0] += "; not judged: " + strings.Join(r.Undecided, "; ")
		}
	case first.Accumulates != nil:
		lines = append(lines, "heap dump: memory accumulates: "+reporters.LeakName(first))
	default:
		lines = append(lines,
			fmt.Sprintf("heap dump: %s, %s retained", reporters.LeakName(first), text.Bytes(first.RetainedBytes)))
	}
	if n := len(r.Leaks) + len(piles) - 1; n > 0 {
		lines[0] += fmt.Sprintf("; %d more in analysis.json", n)
	}
	if first != nil {
		lines = append(lines, textLines(reporters.WriteLeak, first)[1:]...)
	}
	return lines
}

// listLeaks adds the leaks of a dump and their keys to the record, for
// comparison with other dumps.
func (c *Case) listLeaks(leaks []analysis.Leak) {
	c.Record.Leaks, c.Record.LeaksOmitted = []record.DumpLeak{}, 0
	order := make([]*analysis.Leak, len(leaks))
	for i := range leaks {
		order[i] = &leaks[i]
	}
	slices.SortStableFunc(order, func(a, b *analysis.Leak) int { return cmp.Compare(b.RetainedBytes, a.RetainedBytes) })
	left := maxLeakList
	for i, l := range order {
		found := leakOf(l)
		if left -= encoded(found); left < 0 || i == listedLeaks {
			c.Record.LeaksOmitted = len(order) - i
			return
		}
		c.Record.Leaks = append(c.Record.Leaks, found)
	}
}

// leakOf converts a leak to the form in which it is recorded.
func leakOf(l *analysis.Leak) record.DumpLeak {
	one := *l
	one.Instances = 1 // the number of instances is shown beside the name
	out := record.DumpLeak{
		Key: l.Key, Name: text.Head(reporters.LeakName(&one), maxText), Library: l.Library,
		Count: int64(l.Instances), Bytes: l.RetainedBytes, Classes: []record.ClassCount{},
	}
	for _, k := range l.Classes {
		out.Classes = append(out.Classes,
			record.ClassCount{Class: text.Head(k.Class, maxText), Count: int64(k.Instances)})
	}
	if len(out.Classes) == 0 {
		out.Classes = append(out.Classes, record.ClassCount{Class: text.Head(l.Class, maxText), Count: out.Count})
	}
	slices.SortStableFunc(out.Classes, func(a, b record.ClassCount) int { return cmp.Compare(b.Count, a.Count) })
	out.Classes = out.Classes[:min(len(out.Classes), listedClasses)]
	return out
}

// firstLeak returns the leak to look at first: the app's own leak that retains
// the most memory, otherwise the place where most memory accumulates, otherwise
// a leak of a library.
func firstLeak(leaks, piles []analysis.Leak) *analysis.Leak {
	var own, library, pile *analysis.Leak
	larger := func(have, l *analysis.Leak) *analysis.Leak {
		if have == nil || l.RetainedBytes > have.RetainedBytes {
			return l
		}
		return have
	}
	for i := range leaks {
		if l := &leaks[i]; l.Library {
			library = larger(library, l)
		} else {
			own = larger(own, l)
		}
	}
	for i := range piles {
		pile = larger(pile, &piles[i])
	}
	// A leak that retains very little cannot explain growing memory.
	if own != nil && (pile == nil || own.RetainedBytes*smallLeak >= pile.RetainedBytes) {
		return own
	}
	if pile != nil {
		return pile
	}
	return library
}

// An accumulation is reported before a leak if it retains more than smallLeak
// times as much memory.
const smallLeak = 20

func (c *Case) findLeak(l *analysis.Leak, what string) {
	n := 0
	for _, f := range c.Record.Findings {
		if f.Type == what {
			n++
		}
	}
	if n >= toldLeaks {
		return
	}
	count := int64(l.Instances)
	if l.Accumulates != nil {
		count = l.Accumulates.Count
	}
	trace := head(textLines(reporters.WriteLeak, l), "analysis.json")
	c.Record.Findings = append(c.Record.Findings, record.Finding{
		Type: what, Name: reporters.LeakName(l), Count: &count, Bytes: new(l.RetainedBytes),
		Fingerprint: l.Fingerprint, Key: l.Key, Trace: trace,
	})
}

// textLines returns the lines that a writer function of package reporters
// writes.
func textLines[T any](write func(io.Writer, T) error, of T) []string {
	var b strings.Builder
	_ = write(&b, of) // a Builder never fails
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// head returns the beginning of a trace; the file contains the whole trace.
func head(trace []string, file string) []string {
	if len(trace) <= toldTrace {
		return trace
	}
	return append(trace[:toldTrace:toldTrace], fmt.Sprintf("... %d more lines in %s", len(trace)-toldTrace, file))
}

// Notes on a stripped dump: zeroed if the dump is kept, waiting if a report
// must still analyze it.
const (
	zeroed  = "the contents of primitive arrays are zeroed: text, pixels, buffers (diagnose.keep: stripped)"
	waiting = "the contents of primitive arrays are zeroed; kept until leakgate report has analyzed it " +
		"(diagnose.keep: none)"
)

// waits reports whether a dump that is not to be kept must wait for a report,
// because its analysis was interrupted. A diagnosis on demand is not followed
// by a report.
func (r *Responder) waits(c *Case) bool {
	return r.options.Keep == Nothing && c.interrupted && c.Trigger != record.TriggerDemand
}

// keep converts a dump to the form in which it is kept, and returns the name of
// the file that remains, or "" if no file remains. A dump that cannot be
// stripped is removed: it contains text that people have typed, and the folder
// may be uploaded. A dump that is not to be kept is removed later, by drop.
func (r *Responder) keep(c *Case, file string) (string, error) {
	if r.options.Keep == Nothing && !r.waits(c) {
		return file, nil
	}
	to, err := r.pack(c.folder, file)
	if err != nil {
		to = file
	}
	c.moved(file, to)
	if r.options.Keep == Raw {
		if err != nil {
			err = fmt.Errorf("compress %s: %w; it is kept unchanged", unpacked(file), err)
		}
		return to, err
	}
	note := zeroed
	if r.waits(c) {
		note = waiting
	}
	if err != nil {
		note = "removed: it could not be stripped"
		left, gone := c.folder.remove(file)
		if gone != nil {
			c.moved(file, left)
			to = left
		}
		err = errors.Join(fmt.Errorf("strip %s: %w", unpacked(file), err), gone)
	}
	return c.kept(to, note, err), err
}

// drop removes the dump of a case if no dump is to be kept, and reports whether
// there was one. It is called last, after the results have been written.
func (r *Responder) drop(c *Case) (some bool) {
	if r.options.Keep != Nothing || r.waits(c) {
		return false
	}
	note := "removed after its analysis (diagnose.keep: none)"
	if c.interrupted {
		note = "removed (diagnose.keep: none)"
	}
	for _, s := range slices.Clone(c.Record.Steps) {
		if s.Step != heapStep || s.File == "" {
			continue
		}
		left, err := c.folder.remove(s.File)
		if err != nil {
			c.warn(err)
			c.moved(s.File, left)
		}
		c.kept(left, note, err)
		some = true
	}
	return some
}

// kept records in a step what was done with a dump; err is the error if the
// dump could not be removed. It returns the name of the remaining file, or ""
// if there is none.
func (c *Case) kept(file, note string, err error) string {
	_, missing := os.Lstat(c.folder.in(file))
	gone := errors.Is(missing, fs.ErrNotExist)
	if err != nil && !gone {
		note = "NOT REMOVED, STILL COMPLETE: removing it failed"
	}
	for i := range c.Record.Steps {
		s := &c.Record.Steps[i]
		if s.File != file {
			continue
		}
		// The notes of an interrupted analysis no longer apply.
		before := strings.TrimSuffix(strings.TrimSuffix(s.Note, zeroed), waiting)
		s.Note = strings.TrimPrefix(strings.TrimSuffix(before, "; ")+"; "+note, "; ")
		if gone {
			s.File, s.Bytes = "", 0
		}
	}
	if gone {
		return ""
	}
	return file
}

// notAnalysed returns a note on what to do with a dump that an interrupted run
// has not analyzed. file is its current name, empty if the dump is gone.
func (r *Responder) notAnalysed(c *Case, file string) string {
	switch {
	case c.Trigger != record.TriggerDemand:
		return "the run was interrupted before the dump was analyzed: run leakgate report"
	case r.options.Keep == Nothing:
		return "the diagnosis was interrupted before the dump was analyzed, and the dump is not kept"
	case file == "":
		return "the diagnosis was interrupted before the dump was analyzed, and the dump could not be kept"
	}
	return "the diagnosis was interrupted before the dump was analyzed: run leakgate analyze " + file
}
