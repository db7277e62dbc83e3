package graphics

import (
	"fmt"
	"strings"
)

const (
	// maxLines bounds a summary; maxUnseen is how many of its lines say what is not seen,
	// maxForeign how many what else grew on the device.
	maxLines   = 12
	maxUnseen  = 4
	maxForeign = 3
)

// Lines says it in at most 12 short lines: what grew, of the layers the first top, what
// else grew on the device, and what cannot be seen.
func (g *Growth) Lines(top int) []string {
	unseen := g.unseen()
	room := maxLines - len(unseen)
	var lines []string
	bytes := 0
	for _, r := range g.Rows {
		if r.Delta > 0 && !r.Foreign && len(lines) < room-1 {
			lines = append(lines, row(r))
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
			lines = append(lines, layer("layer", r))
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
func (g *Growth) foreign() (lines []string) {
	for _, r := range g.Rows {
		if r.Delta > 0 && r.Foreign {
			lines = append(lines, row(r))
		}
	}
	for _, r := range g.Layers {
		if r.Delta > 0 && r.Foreign {
			lines = append(lines, layer("layer of another app", r))
		}
	}
	return lines[:min(len(lines), maxForeign)]
}

func row(r Row) string {
	return fmt.Sprintf("%s (%s) %s: %s -> %s", r.Name, r.Source, signed(r.Delta, r.Unit), size(r.Before.N, r.Unit), size(r.After.N, r.Unit))
}

func layer(what string, r Row) string {
	text := fmt.Sprintf("%s %s %s: %d -> %d buffers", what, r.Name, signed(r.Delta, r.Unit), r.BuffersBefore, r.BuffersAfter)
	if r.Unit == Bytes {
		text += fmt.Sprintf(", %s -> %s", size(r.Before.N, Bytes), size(r.After.N, Bytes))
	}
	return text
}

// unseen says what cannot be seen, a line for each source and reason.
func (g *Growth) unseen() (lines []string) {
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

// size is a number for people.
func size(n int64, unit Unit) string {
	const kb, mb = 1 << 10, 1 << 20
	switch {
	case unit == Count:
		return fmt.Sprint(n)
	case n > -mb && n < mb:
		return fmt.Sprintf("%.0f kB", float64(n)/kb)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/mb)
}

func signed(n int64, unit Unit) string {
	if n > 0 {
		return "+" + size(n, unit)
	}
	return size(n, unit)
}
