package footprint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/known"
)

// Unit is the unit of a row's number.
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
	// BuffersBefore and BuffersAfter are the numbers of buffers of a layer.
	BuffersBefore int64
	BuffersAfter  int64
	// Foreign reports whether the process is not responsible for the growth.
	// This is so for a layer that names another app. It is also so for a number
	// about the whole device, if the names of layers identify their owners.
	Foreign bool
}

// Incomparable is a number that is unknown in one or both of the snapshots.
type Incomparable struct {
	Source Channel
	Name   string
	// Reason is a short explanation for the user.
	Reason string
}

// GraphicsGrowth is the difference between two readings of one process. In each
// list of rows, sizes in bytes come before counts, and the largest growth comes
// first.
type GraphicsGrowth struct {
	// Rows must not be added up: they count the same memory in different ways.
	Rows []GraphicsRow
	// Layers lists, by layer, the buffers that SurfaceFlinger allocated, or the
	// imported buffers if both snapshots contain them; "(others)" is the sum of
	// all layers beyond the cap on names. Each buffer is counted in one layer.
	Layers []GraphicsRow
	// Unavailable lists the numbers that are not available.
	Unavailable []Incomparable
}

// CompareGraphics returns the growth between two readings.
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

// whyUnavailable says in which snapshots a number is unknown, and appends the
// reason that the reading contains for the number's source, if any.
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
