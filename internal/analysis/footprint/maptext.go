package footprint

import (
	"fmt"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

const (
	// maxWarnings is the maximum number of warnings in a summary.
	maxWarnings = 3
	// leastGrowth is the minimum growth of a listed row, in kB.
	leastGrowth = 4
)

var kindWords = map[Kind]string{
	Heap: "native heap", Java: "runtime", Stack: "stacks", Anonymous: "anonymous memory",
	Named: "named memory", File: "file", Device: "device",
}

// Lines formats the growth as at most 12 short lines: the total, the kinds, the
// rows that grew (at most top of them, with their shares), and warnings.
func (g *MapGrowth) Lines(top int) []string {
	total := g.Total
	lines := []string{fmt.Sprintf("Pss + SwapPss %s -> %s (%s) in %d -> %d mappings",
		text.KB(total.Before.Cost()), text.KB(total.After.Cost()), text.SignedKB(total.Delta), total.Before.Mappings,
		total.After.Mappings)}
	if g.Grew > 0 && g.Shrank < 0 {
		lines[0] += fmt.Sprintf(": %s grew, %s shrank", text.SignedKB(g.Grew), text.SignedKB(g.Shrank))
	}
	if kinds := g.kinds(); kinds != "" {
		lines = append(lines, "by kind: "+kinds)
	}
	doubts := g.doubts()
	shown := g.shown(min(top, maxLines-len(lines)-len(doubts)-1))
	for _, r := range g.Rows[:shown] {
		lines = append(lines, g.line(r))
	}
	switch share, ok := g.explained(shown); {
	case !ok:
		lines = append(lines, "no growth")
	case shown < len(g.Rows) && shown > 0:
		lines = append(lines, fmt.Sprintf("%s %s of the growth", explains(shown, len(g.Rows)), percent(share)))
	}
	return append(lines, doubts...)
}

func explains(rows, all int) string {
	if rows == 1 {
		return fmt.Sprintf("the first of %d rows accounts for", all)
	}
	return fmt.Sprintf("the first %d of %d rows account for", rows, all)
}

// shown returns the number of rows to list: those that grew by at least
// leastGrowth, but at most top.
func (g *MapGrowth) shown(top int) (n int) {
	for n < min(max(top, 0), len(g.Rows)) && g.Rows[n].Delta >= leastGrowth {
		n++
	}
	return n
}

func (g *MapGrowth) line(r MapRow) string {
	what := kindWords[r.Kind]
	if r.Name != noName {
		what += " " + r.Name
	}
	line := fmt.Sprintf("%s %s (%s of %s): %s -> %s", what, text.SignedKB(r.Delta),
		percent(float64(r.Delta)/float64(g.Grew)), text.SignedKB(g.Grew),
		text.KB(r.Before.Cost()), text.KB(r.After.Cost()))
	if r.Before.Mappings != r.After.Mappings {
		line += fmt.Sprintf(", %d -> %d mappings", r.Before.Mappings, r.After.Mappings)
	}
	return line
}

// kinds lists the kinds that changed by at least leastGrowth.
func (g *MapGrowth) kinds() string {
	var list []string
	for _, k := range g.Kinds {
		if k.Delta <= -leastGrowth || k.Delta >= leastGrowth {
			list = append(list, string(k.Kind)+" "+text.SignedKB(k.Delta))
		}
	}
	return strings.Join(list, ", ")
}

func (g *MapGrowth) doubts() (lines []string) {
	for i, w := range g.Warnings {
		if i == maxWarnings-1 && len(g.Warnings) > maxWarnings {
			return append(lines, fmt.Sprintf("warning: %d more warnings", len(g.Warnings)-i))
		}
		lines = append(lines, unsure(w))
	}
	return lines
}

func percent(share float64) string {
	if share > 0 && share < 0.01 {
		return "below 1 %"
	}
	return fmt.Sprintf("%.0f %%", share*100)
}
