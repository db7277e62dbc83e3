package reporters

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// tripWidth is the maximum width of a trip's lines, in columns.
const tripWidth = 100

// WriteTrip writes what the repetitions of a scenario leave behind: the
// verdict, what grows, and a table of the other measures.
func WriteTrip(w io.Writer, t record.Trip) error {
	var out page
	out.tripLine("%s: %s: %s", name(t.Process), strings.ToUpper(string(t.Verdict)), t.Text)
	for i := range t.Growing[:min(len(t.Growing), shownLines)] {
		out.growing(&t.Growing[i])
	}
	if more := t.Found - min(len(t.Growing), shownLines); more > 0 && len(t.Growing) > 0 {
		out.line("  %s", text.Count(more, "more place", "more places"))
	}
	var others []record.TripMeasure
	for i := range t.Measures {
		m := &t.Measures[i]
		switch {
		case m.Grows && m.Name != "heap": // the places where it grows are printed above
			out.tripLine("  %s %s per loop%s: %s", name(m.Name), rateOf(m, m.PerLoop), intervalOf(m), valuesOf(m))
		case m.Verdict == record.VerdictInconclusive && (m.PerLoop != nil || m.Name == "heap"):
			out.tripLine("  %s%s%s inconclusive: %s", name(m.Name), doubtfulRate(m), intervalOf(m), m.Text)
		case !m.Grows && m.PerLoop != nil: // the rest have too few readings, as the verdict states
			others = append(others, *m)
		}
	}
	out.tripLine("  %s after %s, %s, %s%s", text.Count(t.Loops, "loop", "loops"),
		text.Count(t.WarmUp, "warm-up loop", "warm-up loops"),
		text.Count(t.Readings, "reading", "readings"), text.Count(t.Dumps, "heap dump", "heap dumps"), stopText(&t))
	if len(others) > 0 {
		out.line("  %-14s %10s  %-22s %-10s", "", "per loop", "95 %", "detects")
	}
	var still []string
	for i := range others {
		switch m := &others[i]; {
		case constant(m):
			still = append(still, name(m.Name))
		default:
			out.tripRow(m)
		}
	}
	if len(still) > 0 {
		out.tripLine("  %s: all readings are the same", strings.Join(still, ", "))
	}
	for _, warning := range t.Warnings[:min(len(t.Warnings), shownLines)] {
		out.tripLine("  warning: %s", warning)
	}
	return out.writeTo(w)
}

// stopText returns why a completed trip stopped. If a trip did not complete,
// its verdict states the reason.
func stopText(t *record.Trip) string {
	if t.Stopped != record.TripStoppedQuiet && t.Stopped != record.TripStoppedLoops {
		return ""
	}
	return "; stopped: " + t.Reason
}

// tripLine writes a message in lines of at most tripWidth columns and indents
// continuation lines.
func (out *page) tripLine(format string, args ...any) {
	line := text.Printable(fmt.Sprintf(format, args...))
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	now, below := indent, indent+"    "
	for _, word := range strings.Fields(line) {
		if now != indent && text.Columns(now)+1+text.Columns(word) > tripWidth {
			out.line("%s", now)
			indent = below
			now = indent
		}
		if now != indent {
			now += " "
		}
		now += text.TailColumns(word, tripWidth-len(indent))
	}
	out.line("%s", now)
}

// constant reports whether a count is the same in all readings. Such a count
// needs no row of its own.
func constant(m *record.TripMeasure) bool {
	if m.Unit != record.UnitCount || m.Verdict != record.VerdictPass || len(m.Values) == 0 {
		return false
	}
	for _, v := range m.Values {
		if v == nil || *v != *m.Values[0] {
			return false
		}
	}
	return true
}

// shownTripSteps is the number of steps printed from the end of a path.
const shownTripSteps = 4

func (out *page) growing(f *record.Finding) {
	line := "  " + name(f.Name)
	if f.CountDelta != nil && *f.CountDelta != 0 {
		line += fmt.Sprintf(": %s objects", text.Signed(*f.CountDelta))
	}
	if f.BytesDelta != nil {
		line += ", " + text.SignedSize(*f.BytesDelta)
	}
	out.tripLine("%s", line)
	for _, step := range f.Trace[max(0, len(f.Trace)-shownTripSteps):] {
		out.line("      %s", text.TailColumns(step, tripWidth-6))
	}
}

func (out *page) tripRow(m *record.TripMeasure) {
	found := "-"
	if m.SmallestFound != nil {
		found = strings.TrimPrefix(rateOf(m, m.SmallestFound), "+")
	}
	row := fmt.Sprintf("  %-14s %10s  %-22s %-10s  %s", text.Cell(name(m.Name), 14), rateOf(m, m.PerLoop),
		strings.TrimSuffix(strings.TrimPrefix(intervalOf(m), " (95 %: "), ")"), found, m.Text)
	out.line("%s", text.Row(strings.TrimRight(row, " "), tripWidth))
}

// doubtfulRate returns the rate of an inconclusive measure, or "" for the heap.
func doubtfulRate(m *record.TripMeasure) string {
	if m.Name == "heap" {
		return ""
	}
	return fmt.Sprintf(" %s per loop", rateOf(m, m.PerLoop))
}

// rateOf formats a rate in the unit of a measure.
func rateOf(m *record.TripMeasure, v *float64) string {
	switch {
	case v == nil || math.IsNaN(*v) || math.IsInf(*v, 0):
		return "-"
	case m.Unit == record.UnitKB:
		return text.SignedKB(int64(math.Round(max(-maxRate, min(maxRate, *v)))))
	}
	return fmt.Sprintf("%+.3g", *v)
}

// maxRate is the maximum printed rate, in kB per loop.
const maxRate = 1 << 40

func intervalOf(m *record.TripMeasure) string {
	if len(m.Interval) != 2 {
		return ""
	}
	return fmt.Sprintf(" (95 %%: %s to %s)", rateOf(m, &m.Interval[0]), rateOf(m, &m.Interval[1]))
}

// shownValues is the maximum number of printed readings; half of them are the
// first ones, and half are the last ones.
const shownValues = 8

func valuesOf(m *record.TripMeasure) string {
	var parts []string
	for i, v := range m.Values {
		skipped := len(m.Values) - shownValues
		switch {
		case skipped > 0 && i == shownValues/2:
			parts = append(parts, "...")
		case skipped > 0 && i > shownValues/2 && i < shownValues/2+skipped:
		case v == nil:
			parts = append(parts, "?")
		case m.Unit == record.UnitKB:
			parts = append(parts, text.KB(int64(max(-maxRate, min(maxRate, *v)))))
		default:
			parts = append(parts, text.Grouped(int64(max(-maxRate, min(maxRate, *v)))))
		}
	}
	return strings.Join(parts, " > ")
}
