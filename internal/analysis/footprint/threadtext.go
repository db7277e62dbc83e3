package footprint

import (
	"fmt"

	"github.com/leakgate/leakgate/internal/text"
)

// Lines formats the growth as at most 12 short lines: the total number of
// threads, the memory of their stacks, groups that grew, and warnings; top is
// the maximum number of groups.
func (g *ThreadGrowth) Lines(top int) []string {
	lines := []string{
		fmt.Sprintf("%d -> %s (%+d): %d new, %d ended", g.Before, threadCount(g.After), g.After-g.Before, g.New,
			g.Ended),
	}
	if g.StackBefore.Known && g.StackAfter.Known {
		lines = append(lines, fmt.Sprintf("stacks %s -> %s", text.KB(g.StackBefore.N), text.KB(g.StackAfter.N)))
	}
	most := min(max(top, 0), maxLines-len(lines)-len(g.Warnings)-1)
	shown := 0
	for _, group := range g.Groups {
		if group.Delta <= 0 {
			break
		}
		if shown < most {
			lines = append(lines, g.line(group))
		}
		shown++
	}
	switch {
	case shown == 0:
		lines = append(lines, "no group grew")
	case shown == most+1:
		lines = append(lines, "1 more group grew")
	case shown > most:
		lines = append(lines, fmt.Sprintf("%d more groups grew", shown-most))
	}
	for _, w := range g.Warnings {
		lines = append(lines, unsure(w))
	}
	return lines
}

func (g *ThreadGrowth) line(group ThreadGroup) string {
	line := fmt.Sprintf("%s: %d -> %s (%+d)", group.Pattern, group.Before, threadCount(group.After), group.Delta)
	if per := g.PerThread(); per.Known {
		line += fmt.Sprintf(", about %s of stack each", text.KB(per.N))
	}
	// Only one of many pools may be growing.
	if len(group.Parts) > 1 && 2*group.Parts[0].Delta >= group.Delta {
		part := group.Parts[0]
		line += fmt.Sprintf("; of them %s: %d -> %d", part.Pattern, part.Before, part.After)
	}
	return line
}

func threadCount(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}
