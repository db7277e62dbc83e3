package graphics

import (
	"cmp"
	"slices"
	"strings"
)

// Unit is what a row counts.
type Unit string

// The units.
const (
	Bytes Unit = "bytes"
	Count Unit = "count"
)

// Row is one number at both moments, both known.
type Row struct {
	Source Source `json:"source"`
	Name   string `json:"name"`
	Unit   Unit   `json:"unit"`
	Before Value  `json:"before"`
	After  Value  `json:"after"`
	Delta  int64  `json:"delta"`
	// Buffers are those of a layer.
	BuffersBefore int64 `json:"buffers_before,omitempty"`
	BuffersAfter  int64 `json:"buffers_after,omitempty"`
	// Foreign is not to be blamed on the process: a layer that names another app, or a number
	// of the whole device where the layers tell whose it is.
	Foreign bool `json:"foreign,omitempty"`
}

// Unseen is a number that is not known at one of the moments, or at both.
type Unseen struct {
	Source Source `json:"source"`
	Name   string `json:"name"`
	// Reason is a few words for people.
	Reason string `json:"reason"`
}

// Growth is how two readings of one process differ. Its lists begin with what grew most;
// bytes come before counts.
type Growth struct {
	// Rows are not to be added up: they count the same memory in several ways.
	Rows []Row `json:"rows"`
	// Layers are the buffers of SurfaceFlinger by layer, the imported ones where both moments
	// have them; "(others)" is what is beyond the cap on names. Each buffer is in one of them.
	Layers []Row `json:"layers"`
	// Unseen is what cannot be observed.
	Unseen []Unseen `json:"unseen"`
}

// Compare says what grew.
func Compare(before, after Reading) Growth {
	var g Growth
	l := layersBetween(&before, &after)
	told := l != nil && l.told()
	for _, q := range quantities {
		b, a := q.value(&before), q.value(&after)
		if !b.Known && !a.Known && q.newer {
			continue
		}
		if !b.Known || !a.Known {
			g.Unseen = append(g.Unseen, Unseen{q.source, q.name, reason(q.source, &before, &after, b.Known, a.Known)})
			continue
		}
		g.Rows = append(g.Rows, Row{Source: q.source, Name: q.name, Unit: q.unit, Before: b, After: a, Delta: a.N - b.N, Foreign: q.whole && told})
	}
	if l != nil {
		for _, name := range l.names {
			r := l.row(name)
			r.Foreign = foreign(name, after.Package)
			g.Layers = append(g.Layers, r)
		}
	}
	slices.SortStableFunc(g.Rows, byGrowth)
	slices.SortFunc(g.Layers, byGrowth)
	return g
}

func byGrowth(a, b Row) int {
	return cmp.Or(strings.Compare(string(a.Unit), string(b.Unit)), cmp.Compare(b.Delta, a.Delta), strings.Compare(a.Name, b.Name))
}

// reason says why a number is not known, in the words of whoever tried to read it if there
// are some.
func reason(s Source, before, after *Reading, inBefore, inAfter bool) string {
	switch {
	case inBefore:
		return words("not known after", after.Why[s])
	case inAfter:
		return words("not known before", before.Why[s])
	}
	return words("not known", cmp.Or(after.Why[s], before.Why[s]))
}

func words(what, why string) string {
	if why = printable(why); why == "" {
		return what
	}
	return what + ": " + why
}
