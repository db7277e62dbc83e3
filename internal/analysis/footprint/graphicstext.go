package footprint

import (
	"fmt"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

const (
	// maxUnseen is the maximum number of lines about unavailable numbers in a
	// summary; maxForeign is the maximum number of lines about other growth on
	// the device.
	maxUnseen  = 4
	maxForeign = 3
)

// Lines formats the growth as at most 12 short lines: the numbers that grew,
// including those of layers, other growth on the device, and the numbers that
// are not available; top is the maximum number of layers.
func (g *GraphicsGrowth) Lines(top int) []string {
	unavailable := g.unavailable()
	room := maxLines - len(unavailable)
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
		lines = append(lines, "these numbers overlap: do not add them up")
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
		lines = []string{"no growth of the process in the available numbers"}
	default:
		lines = []string{"no growth in the available numbers"}
	}
	lines = append(lines, others[:min(len(others), room-len(lines))]...)
	return append(lines, unavailable...)
}

// foreign returns lines about growth for which the process is not responsible.
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
	return fmt.Sprintf("%s (%s) %s: %s -> %s", r.Name, r.Source, signedAmount(r.Delta, r.Unit),
		amount(r.Before.N, r.Unit), amount(r.After.N, r.Unit))
}

func layerLine(what string, r GraphicsRow) string {
	text := fmt.Sprintf("%s %s %s: %d -> %d buffers", what, r.Name, signedAmount(r.Delta, r.Unit), r.BuffersBefore,
		r.BuffersAfter)
	if r.Unit == Bytes {
		text += fmt.Sprintf(", %s -> %s", amount(r.Before.N, Bytes), amount(r.After.N, Bytes))
	}
	return text
}

// unavailable returns lines about unavailable numbers, one for each source and
// reason.
func (g *GraphicsGrowth) unavailable() (lines []string) {
	type key struct {
		source Channel
		reason string
	}
	names := map[key][]string{}
	var keys []key
	for _, u := range g.Unavailable {
		k := key{u.Source, u.Reason}
		if names[k] == nil {
			keys = append(keys, k)
		}
		names[k] = append(names[k], u.Name)
	}
	for i, k := range keys {
		if i == maxUnseen-1 && len(keys) > maxUnseen {
			return append(lines, fmt.Sprintf("not available: %d more", len(keys)-i))
		}
		lines = append(lines,
			fmt.Sprintf("not available from %s: %s (%s)", k.source, strings.Join(names[k], ", "), k.reason))
	}
	return lines
}

// amount formats a number.
func amount(n int64, unit Unit) string {
	if unit == Count {
		return fmt.Sprint(n)
	}
	return text.KB(n >> 10)
}

// signedAmount does the same as amount, with the sign of a change.
func signedAmount(n int64, unit Unit) string {
	if n > 0 {
		return "+" + amount(n, unit)
	}
	return amount(n, unit)
}
