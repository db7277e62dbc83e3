package footprint

import (
	"fmt"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

const (
	// maxUnseen is how many lines of a summary say what is not seen, maxForeign how many
	// what else grew on the device.
	maxUnseen  = 4
	maxForeign = 3
)

// Lines says it in at most 12 short lines: what grew, of the layers the first top, what
// else grew on the device, and what cannot be seen.
func (g *GraphicsGrowth) Lines(top int) []string {
	unseen := g.unseen()
	room := maxLines - len(unseen)
	var lines []string
	bytes := 0
	for _, r := range g.Rows {
		if r.Delta > 0 && !r.Foreign && len(lines) < room-1 {
			lines = append(lines, graphicsLine(r))
			if r.Unit == Bytes {
				bytes++
			}
		}
	}
	if bytes > 1 && len(lines) < room {
		lines = append(lines, "these count the same memory in several ways: do not add them up")
	}
	for _, r := range g.Layers {
		if top > 0 && r.Delta > 0 && !r.Foreign && len(lines) < room {
			lines = append(lines, layerLine("layer", r))
			top--
		}
	}
	others := g.foreign()
	switch {
	case len(lines) > 0:
	case len(others) > 0:
		lines = []string{"nothing of the process that can be seen grew"}
	default:
		lines = []string{"nothing that can be seen grew"}
	}
	lines = append(lines, others[:min(len(others), room-len(lines))]...)
	return append(lines, unseen...)
}

// foreign says what grew and is not to be blamed on the process.
func (g *GraphicsGrowth) foreign() (lines []string) {
	for _, r := range g.Rows {
		if r.Delta > 0 && r.Foreign {
			lines = append(lines, graphicsLine(r))
		}
	}
	for _, r := range g.Layers {
		if r.Delta > 0 && r.Foreign {
			lines = append(lines, layerLine("layer of another app", r))
		}
	}
	return lines[:min(len(lines), maxForeign)]
}

func graphicsLine(r GraphicsRow) string {
	return fmt.Sprintf("%s (%s) %s: %s -> %s", r.Name, r.Source, signedAmount(r.Delta, r.Unit), amount(r.Before.N, r.Unit), amount(r.After.N, r.Unit))
}

func layerLine(what string, r GraphicsRow) string {
	text := fmt.Sprintf("%s %s %s: %d -> %d buffers", what, r.Name, signedAmount(r.Delta, r.Unit), r.BuffersBefore, r.BuffersAfter)
	if r.Unit == Bytes {
		text += fmt.Sprintf(", %s -> %s", amount(r.Before.N, Bytes), amount(r.After.N, Bytes))
	}
	return text
}

// unseen says what cannot be seen, a line for each source and reason.
func (g *GraphicsGrowth) unseen() (lines []string) {
	type key struct {
		source Source
		reason string
	}
	names := map[key][]string{}
	var keys []key
	for _, u := range g.Unseen {
		k := key{u.Source, u.Reason}
		if names[k] == nil {
			keys = append(keys, k)
		}
		names[k] = append(names[k], u.Name)
	}
	for i, k := range keys {
		if i == maxUnseen-1 && len(keys) > maxUnseen {
			return append(lines, fmt.Sprintf("not seen: %d more", len(keys)-i))
		}
		lines = append(lines, fmt.Sprintf("not seen in %s: %s (%s)", k.source, strings.Join(names[k], ", "), k.reason))
	}
	return lines
}

// amount is a number for people.
func amount(n int64, unit Unit) string {
	if unit == Count {
		return fmt.Sprint(n)
	}
	return text.KB(n >> 10)
}

// signedAmount is amount with the sign of a change.
func signedAmount(n int64, unit Unit) string {
	if n > 0 {
		return "+" + amount(n, unit)
	}
	return amount(n, unit)
}
