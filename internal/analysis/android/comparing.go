package android

import (
	"context"
	"slices"
	"unicode/utf16"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// CompareTexts reports which Strings are equal to a given string. Strings whose
// characters are not in the dump are absent from the result.
func CompareTexts(ctx context.Context, g *heap.Graph, strings []heap.Object, text string) (map[heap.Object]bool,
	error) {
	c := comparing{
		layout: newLayout(g), want: utf16.Encode([]rune(text)), equal: map[heap.Object]bool{},
		by: map[heap.Object][]*compared{},
	}
	if err := g.Read(ctx, strings, c.findCharacters); err != nil {
		return nil, err
	}
	arrays := make([]heap.Object, 0, len(c.by))
	for o := range c.by {
		arrays = append(arrays, o)
	}
	slices.Sort(arrays)
	if err := g.Read(ctx, arrays, c.compareCharacters); err != nil {
		return nil, err
	}
	for _, list := range c.by {
		for _, x := range list {
			equal := !x.differs && x.same == len(c.want)
			if x.known && (equal || c.written || x.other) {
				c.equal[x.object] = equal
			}
		}
	}
	return c.equal, nil
}

// comparing compares characters piece by piece, because large arrays come in
// several records.
type comparing struct {
	layout *layout
	want   []uint16
	equal  map[heap.Object]bool
	by     map[heap.Object][]*compared
	// written reports whether any String contains characters that strippers do
	// not write: in that case, no String was stripped.
	written bool
}

// compared holds one String and the number of its characters that have matched
// so far.
type compared struct {
	span
	object         heap.Object
	same           int
	known, differs bool
	// other reports whether the String's length, which strippers keep, differs
	// from that of the given string.
	other bool
}

func (c *comparing) findCharacters(r *heap.Record) error {
	s, ok := c.layout.span(r)
	switch {
	case !ok:
	case s.array == noArray || s.length == 0:
		c.equal[r.Object] = len(c.want) == 0
	default:
		c.by[s.array] = append(c.by[s.array], &compared{span: s, object: r.Object})
	}
	return nil
}

func (c *comparing) compareCharacters(r *heap.Record) error {
	if r.Kind != hprof.SubPrimitiveArray || r.Type != hprof.Byte && r.Type != hprof.Char {
		return nil
	}
	for _, x := range c.by[r.Object] {
		x.known = true
		x.other = x.characters(r) != len(c.want)
		c.written = c.written || x.hasCharacters(r)
		x.differs = x.differs || x.other || !x.matches(r, c.want)
	}
	return nil
}

// characters returns the length of the String in UTF-16 units, given a record
// of its array.
func (x *compared) characters(r *heap.Record) int {
	n := min(uint64(x.length), uint64(r.Count)-min(uint64(x.first), uint64(r.Count)))
	if r.Type == hprof.Byte && x.wide {
		n /= 2
	}
	return int(n)
}

// hasCharacters reports whether a piece of the array contains characters of the
// String other than the filler that strippers write.
func (x *compared) hasCharacters(r *heap.Record) bool {
	from, to := x.within(r)
	if from >= to {
		return false
	}
	size := uint64(r.Type.Size(8))
	return !stripped(r.Body[(from-uint64(r.First))*size:(to-uint64(r.First))*size], r.Type)
}

// matches reports whether the characters in a piece of the array equal those of
// want at the same positions.
func (x *compared) matches(r *heap.Record, want []uint16) bool {
	size := r.Type.Size(8)
	from, to := x.within(r)
	if from >= to {
		return true
	}
	each := uint64(1)
	if r.Type == hprof.Byte && x.wide {
		each = 2
	}
	body := r.Body[(from-uint64(r.First))*uint64(size):][:(to-from)*uint64(size)]
	for i := (from - uint64(x.first)) / each; len(body) > 0 && i < uint64(len(want)); i++ {
		got, n := (&characters{span: x.span}).unit(body, r.Type)
		if got != want[i] {
			return false
		}
		x.same++
		body = body[n:]
	}
	return true
}
