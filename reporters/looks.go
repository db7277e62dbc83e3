package reporters

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// stepLooks is the number of consecutive firing looks after which a process
	// is LEAKING. Further firing looks add no information and share a line.
	stepLooks = 3
	// maxLookLines is the maximum number of lines that describe looks of one
	// process.
	maxLookLines = 60
)

// lookLine is the content of one line: a single look, or several further firing
// looks.
type lookLine struct {
	first, last record.ReplayLook
	count       int
}

// looks writes the looks of one process. For each series, it writes how many
// looks there are and the most frequent reasons why they show no leak. Then it
// writes, in time order, the looks that fire and the looks that end a sequence
// of firing looks.
func (out *page) looks(looks []record.ReplayLook) {
	var series []string
	of := map[string][]record.ReplayLook{}
	for _, l := range looks {
		if of[l.Series] == nil {
			series = append(series, l.Series)
		}
		of[l.Series] = append(of[l.Series], l)
	}
	var lines []*lookLine
	for _, name := range series {
		out.line("  looks    %s: %s", name, lookCounts(of[name]))
		lines = append(lines, lookLines(of[name])...)
	}
	slices.SortStableFunc(lines, func(x, y *lookLine) int { return cmp.Compare(x.first.T, y.first.T) })
	for _, line := range lines[:min(len(lines), maxLookLines)] {
		line.write(out)
	}
	if more := len(lines) - maxLookLines; more > 0 {
		out.line("  look     %s; use --json to list all looks", text.Plural(more, "more line", "more lines"))
	}
}

func (l *lookLine) write(out *page) {
	at, fires := text.Span(l.first.T), map[bool]string{true: "FIRES", false: "-"}[l.first.Fired]
	if l.count > 1 {
		out.line("  look     %-8s %-5s %d in a row until %s; the last: %s", at, fires, l.count, text.Span(l.last.T),
			l.last.Text)
		return
	}
	out.line("  look     %-8s %-5s %s", at, fires, l.first.Text)
}

// lookLines returns the lines of one series: the looks that fire, and each look
// that ends a sequence of firing looks.
func lookLines(looks []record.ReplayLook) []*lookLine {
	var out []*lookLine
	row := 0
	for _, l := range looks {
		if !l.Fired && row == 0 {
			continue
		}
		if !l.Fired {
			row = 0
		} else if row++; row > stepLooks+1 {
			last := out[len(out)-1]
			last.last, last.count = l, last.count+1
			continue
		}
		out = append(out, &lookLine{first: l, last: l, count: 1})
	}
	return out
}

// lookCounts returns, for example, "178, 33 fire; the others: does not grow
// enough (120), levels off (25)".
func lookCounts(looks []record.ReplayLook) string {
	reasons := map[string]int{}
	for _, l := range looks {
		if !l.Fired {
			reasons[lookReason(l)]++
		}
	}
	quiet := 0
	names := slices.SortedFunc(maps.Keys(reasons), func(x, y string) int {
		return cmp.Or(cmp.Compare(reasons[y], reasons[x]), cmp.Compare(x, y))
	})
	parts := make([]string, len(names))
	for i, name := range names {
		quiet += reasons[name]
		parts[i] = fmt.Sprintf("%s (%d)", name, reasons[name])
	}
	line := fmt.Sprintf("%d, %d fire", len(looks), len(looks)-quiet)
	if quiet > 0 {
		line += "; the others: " + strings.Join(parts, ", ")
	}
	return line
}

// lookReason returns the reason for a look, which is at the end of its
// description. If the description contains no reason, lookReason returns the
// text after the window.
func lookReason(l record.ReplayLook) string {
	if i := strings.LastIndex(l.Text, ": "); i >= 0 {
		return l.Text[i+2:]
	}
	rest, ok := strings.CutPrefix(l.Text, l.Series+" over ")
	if words := strings.SplitN(rest, " ", 3); ok && len(words) == 3 {
		return words[2] // after "15 min"
	}
	return l.Text
}
