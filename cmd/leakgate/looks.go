package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/text"

	replays "github.com/leakgate/leakgate/harness/replay"
)

const (
	// stepLooks is how many looks in a row take a process to LEAKING: those that fire
	// after them add nothing and share a line.
	stepLooks = 3
	// maxLookLines bounds the looks of one process that are told in words.
	maxLookLines = 60
)

// lookLine is one line: a look, or several that fire after others.
type lookLine struct {
	first, last replays.Look
	count       int
}

// tellLooks tells the looks of one process: of each series how many there were and why
// most of them show no leak; then, in the order of time, those that fire and those that
// do no longer.
func tellLooks(b *strings.Builder, looks []replays.Look) {
	var series []string
	of := map[string][]replays.Look{}
	for _, l := range looks {
		if of[l.Series] == nil {
			series = append(series, l.Series)
		}
		of[l.Series] = append(of[l.Series], l)
	}
	var lines []*lookLine
	for _, name := range series {
		put(b, "  looks    %s: %s", name, lookCounts(of[name]))
		lines = append(lines, lookLines(of[name])...)
	}
	slices.SortStableFunc(lines, func(x, y *lookLine) int { return cmp.Compare(x.first.T, y.first.T) })
	for _, line := range lines[:min(len(lines), maxLookLines)] {
		line.tell(b)
	}
	if more := len(lines) - maxLookLines; more > 0 {
		put(b, "  look     %d more lines; --json has all looks", more)
	}
}

func (l *lookLine) tell(b *strings.Builder) {
	at, fires := text.Span(l.first.T), map[bool]string{true: "FIRES", false: "-"}[l.first.Fired]
	if l.count > 1 {
		put(b, "  look     %-8s %-5s %d in a row until %s; the last: %s", at, fires, l.count, text.Span(l.last.T), l.last.Text)
		return
	}
	put(b, "  look     %-8s %-5s %s", at, fires, l.first.Text)
}

// lookLines are the looks of one series that fire, and those that do no longer.
func lookLines(looks []replays.Look) []*lookLine {
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

// lookCounts: "178, 33 fire; the others: does not grow enough (120), levels off (25)".
func lookCounts(looks []replays.Look) string {
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
	text := fmt.Sprintf("%d, %d fire", len(looks), len(looks)-quiet)
	if quiet > 0 {
		text += "; the others: " + strings.Join(parts, ", ")
	}
	return text
}

// lookReason is the part of a look's text that says why: what stands behind the
// numbers, or behind the window where there are none.
func lookReason(l replays.Look) string {
	if i := strings.LastIndex(l.Text, ": "); i >= 0 {
		return l.Text[i+2:]
	}
	rest, ok := strings.CutPrefix(l.Text, l.Series+" over ")
	if words := strings.SplitN(rest, " ", 3); ok && len(words) == 3 {
		return words[2] // behind "15 min"
	}
	return l.Text
}
