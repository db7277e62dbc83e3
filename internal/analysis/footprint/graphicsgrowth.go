package footprint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/known"
)

// Unit is what a row counts.
type Unit string

// The units.
const (
	Bytes Unit = "bytes"
	Count Unit = "count"
)

// GraphicsRow is one number that is known in both snapshots.
type GraphicsRow struct {
	Source Channel
	Name   string
	Unit   Unit
	Before known.Int
	After  known.Int
	Delta  int64
	// Buffers is the number of buffers of a layer.
	BuffersBefore int64
	BuffersAfter  int64
	// Foreign is true if the process is not responsible: for a layer that names
	// another app, or for a number of the whole device if the names of layers
	// show their owners.
	Foreign bool
}

// Incomparable is a number that is unknown in one or both of the snapshots.
type Incomparable struct {
	Source Channel
	Name   string
	// Reason is a short text for the user.
	Reason string
}

// GraphicsGrowth is the difference between two readings of one process. Its
// lists begin with the largest growth; bytes come before counts.
type GraphicsGrowth struct {
	// Rows must not be added up: they count the same memory in several ways.
	Rows []GraphicsRow
	// Layers are the buffers of SurfaceFlinger by layer, or the imported
	// buffers if both snapshots have them; "(others)" is everything beyond the
	// cap on names. Each buffer is counted in one layer.
	Layers []GraphicsRow
	// Unavailable are the numbers that are not available.
	Unavailable []Incomparable
}

// CompareGraphics returns what grew.
func CompareGraphics(before, after GraphicsReading) GraphicsGrowth {
	var g GraphicsGrowth
	l := layersBetween(&before, &after)
	haveNames := l != nil && l.haveNames()
	for _, q := range quantities {
		b, a := q.value(&before), q.value(&after)
		if !b.Known && !a.Known && q.newer {
			continue
		}
		if !b.Known || !a.Known {
			g.Unavailable = append(g.Unavailable,
				Incomparable{q.source, q.name, whyUnavailable(q.source, &before, &after, b.Known, a.Known)})
			continue
		}
		g.Rows = append(g.Rows,
			GraphicsRow{
				Source: q.source, Name: q.name, Unit: q.unit, Before: b, After: a, Delta: a.N - b.N, Foreign: q.whole &&
					haveNames,
			})
	}
	if l != nil {
		for _, name := range l.names {
			r := l.row(name)
			r.Foreign = foreign(name, after.Package)
			g.Layers = append(g.Layers, r)
		}
	}
	slices.SortStableFunc(g.Rows, byUnit)
	slices.SortFunc(g.Layers, byUnit)
	return g
}

func byUnit(a, b GraphicsRow) int {
	return cmp.Or(strings.Compare(string(a.Unit), string(b.Unit)), cmp.Compare(b.Delta, a.Delta),
		strings.Compare(a.Name, b.Name))
}

// whyUnavailable returns why a number is unknown, in the words of its reader if
// the reader had a reason.
func whyUnavailable(s Channel, before, after *GraphicsReading, inBefore, inAfter bool) string {
	switch {
	case inBefore:
		return because("unknown after", after.Why[s])
	case inAfter:
		return because("unknown before", before.Why[s])
	}
	return because("unknown", cmp.Or(after.Why[s], before.Why[s]))
}

func because(what, why string) string {
	if why = printableLayer(why); why == "" {
		return what
	}
	return what + ": " + why
}
