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

// GraphicsRow is one number at both moments, both known.
type GraphicsRow struct {
	Source Source
	Name   string
	Unit   Unit
	Before known.Int
	After  known.Int
	Delta  int64
	// Buffers are those of a layer.
	BuffersBefore int64
	BuffersAfter  int64
	// Foreign is not to be blamed on the process: a layer that names another app, or a number
	// graphicsOf the whole device where the layers tell whose it is.
	Foreign bool
}

// Unseen is a number that is not known at one of the moments, or at both.
type Unseen struct {
	Source Source
	Name   string
	// Reason is a few words for people.
	Reason string
}

// GraphicsGrowth is how two readings of one process differ. Its lists begin with what grew most;
// bytes come before counts.
type GraphicsGrowth struct {
	// Rows are not to be added up: they count the same memory in several ways.
	Rows []GraphicsRow
	// Layers are the buffers of SurfaceFlinger by layer, the imported ones where both moments
	// have them; "(others)" is what is beyond the cap on names. Each buffer is in one of them.
	Layers []GraphicsRow
	// Unseen is what cannot be observed.
	Unseen []Unseen
}

// CompareGraphics says what grew.
func CompareGraphics(before, after GraphicsReading) GraphicsGrowth {
	var g GraphicsGrowth
	l := layersBetween(&before, &after)
	told := l != nil && l.told()
	for _, q := range quantities {
		b, a := q.value(&before), q.value(&after)
		if !b.Known && !a.Known && q.newer {
			continue
		}
		if !b.Known || !a.Known {
			g.Unseen = append(g.Unseen, Unseen{q.source, q.name, whyUnseen(q.source, &before, &after, b.Known, a.Known)})
			continue
		}
		g.Rows = append(g.Rows, GraphicsRow{Source: q.source, Name: q.name, Unit: q.unit, Before: b, After: a, Delta: a.N - b.N, Foreign: q.whole && told})
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
	return cmp.Or(strings.Compare(string(a.Unit), string(b.Unit)), cmp.Compare(b.Delta, a.Delta), strings.Compare(a.Name, b.Name))
}

// whyUnseen says why a number is not known, in the words of whoever tried to read it if there
// are some.
func whyUnseen(s Source, before, after *GraphicsReading, inBefore, inAfter bool) string {
	switch {
	case inBefore:
		return because("not known after", after.Why[s])
	case inAfter:
		return because("not known before", before.Why[s])
	}
	return because("not known", cmp.Or(after.Why[s], before.Why[s]))
}

func because(what, why string) string {
	if why = printableLayer(why); why == "" {
		return what
	}
	return what + ": " + why
}
