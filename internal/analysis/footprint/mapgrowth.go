package footprint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// Sum is the total memory of some mappings, in kB.
type Sum struct {
	Mappings     int64
	PSS          int64
	SwapPSS      int64
	Size         int64
	PrivateDirty int64
}

// Cost is Pss + SwapPss in kB.
func (s Sum) Cost() int64 { return s.PSS + s.SwapPSS }

func (s *Sum) add(t Sum) {
	s.Mappings += t.Mappings
	s.PSS += t.PSS
	s.SwapPSS += t.SwapPSS
	s.Size += t.Size
	s.PrivateDirty += t.PrivateDirty
}

// Change holds the sums of both maps. Delta is the growth of the cost in kB,
// negative if the cost decreased.
type Change struct {
	Before Sum
	After  Sum
	Delta  int64
}

func (c *Change) add(d Change) {
	c.Before.add(d.Before)
	c.After.add(d.After)
	c.Delta += d.Delta
}

// MapRow stands for all mappings of one name and kind.
type MapRow struct {
	// Name is the mapping's name without the parts that differ from one mapping
	// to the next. "(anonymous)" is memory without a name, and "(others)" is
	// the sum of all names beyond the cap. [bss] after the name of a file is
	// the memory that follows the file.
	Name string
	Kind Kind
	// File is the mapped file to which the row belongs, or "" for other memory.
	File string
	// Example is one of the original names, made printable, if it differs from
	// Name.
	Example string
	Change
}

// KindRow stands for all mappings of a kind.
type KindRow struct {
	Kind Kind
	Change
}

// FileRow is a library or another file: its code, its data and its .bss.
type FileRow struct {
	File string
	Change
}

// MapGrowth is the difference between two maps of one process. Each list begins
// with the largest growth and ends with the largest decrease. The deltas of
// Rows add up to the delta of Total, and so do the deltas of Kinds.
type MapGrowth struct {
	Rows  []MapRow
	Kinds []KindRow
	Files []FileRow
	Total Change
	// Grew is the sum of the deltas of the rows that grew, and Shrank that of
	// the rows that shrank, in kB. Together they add up to the delta of Total.
	Grew   int64
	Shrank int64
	// Warnings describe what is unknown or cannot be compared.
	Warnings []error
}

// CompareMaps returns the growth between two maps of one process. It does not
// modify them.
func CompareMaps(before, after *Map) MapGrowth {
	// Without addresses the owner of a .bss is unknown, so .bss is not assigned
	// to files in either map.
	plain := before.flaws.addresses != after.flaws.addresses && before.flaws.added > 0 && after.flaws.added > 0
	rows := map[mapKey]*MapRow{}
	joinMap(rows, before, plain, func(c *Change) *Sum { return &c.Before })
	joinMap(rows, after, plain, func(c *Change) *Sum { return &c.After })

	var g MapGrowth
	kinds, files := map[Kind]Change{}, map[string]Change{}
	for _, r := range rows {
		r.Delta = r.After.Cost() - r.Before.Cost()
		if r.Example = text.Printable(r.Example[:min(len(r.Example), maxMapping)]); r.Example == r.Name {
			r.Example = ""
		}
		g.Rows = append(g.Rows, *r)
		g.Total.add(r.Change)
		g.Grew += max(r.Delta, 0)
		g.Shrank += min(r.Delta, 0)
		sumUp(kinds, r.Kind, r.Change)
		if r.File != "" {
			sumUp(files, r.File, r.Change)
		}
	}
	for k, c := range kinds {
		g.Kinds = append(g.Kinds, KindRow{k, c})
	}
	for f, c := range files {
		g.Files = append(g.Files, FileRow{f, c})
	}
	slices.SortFunc(g.Rows, func(a, b MapRow) int {
		return cmp.Or(cmp.Compare(b.Delta, a.Delta), strings.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	slices.SortFunc(g.Kinds, func(a, b KindRow) int {
		return cmp.Or(cmp.Compare(b.Delta, a.Delta), cmp.Compare(a.Kind, b.Kind))
	})
	slices.SortFunc(g.Files, func(a, b FileRow) int {
		return cmp.Or(cmp.Compare(b.Delta, a.Delta), strings.Compare(a.File, b.File))
	})
	g.Warnings = mapWarnings(before, after, plain)
	return g
}

// joinMap adds the rows of a map to the combined rows.
func joinMap(rows map[mapKey]*MapRow, m *Map, plain bool, side func(*Change) *Sum) {
	for k, from := range m.rows {
		file := from.file
		if plain && k.from != "" {
			file = ""
			k.name, k.kind = k.from, kindOf([]byte(k.from))
		}
		k.from = ""
		r := rows[k]
		if r == nil {
			r = &MapRow{Name: k.name, Kind: k.kind, File: file, Example: string(from.example)}
			rows[k] = r
		}
		r.Example = min(r.Example, string(from.example))
		side(&r.Change).add(from.sum)
	}
}

func sumUp[K comparable](sums map[K]Change, k K, c Change) {
	sum := sums[k]
	sum.add(c)
	sums[k] = sum
}

func mapWarnings(before, after *Map, plain bool) (list []error) {
	for _, side := range []struct {
		when string
		m    *Map
	}{{"before", before}, {"after", after}} {
		d := side.m.flaws
		if d.added == 0 {
			list = append(list, fmt.Errorf("%s: no mappings recorded", side.when))
		}
		if d.pss > 0 {
			list = append(list, fmt.Errorf("%s: Pss of %d mappings is unknown and counts as 0", side.when, d.pss))
		}
		if d.swap > 0 {
			list = append(list, fmt.Errorf("%s: SwapPss of %d mappings is unknown and counts as 0", side.when, d.swap))
		}
		if d.left > 0 {
			list = append(list,
				fmt.Errorf("%s: %d mappings beyond the first %d are omitted", side.when, d.left, maxAdded))
		}
		if d.full {
			list = append(list,
				fmt.Errorf("%s: there are more than %d names; the rest are combined as %s", side.when, side.m.most,
					othersName))
		}
	}
	if plain {
		list = append(list,
			errors.New("one of the two snapshots has no addresses: .bss is not counted with its library"))
	}
	return list
}

// explained returns the share of the total growth, from 0 to 1, that the given
// number of largest rows accounts for. It returns false if nothing grew.
func (g *MapGrowth) explained(rows int) (share float64, ok bool) {
	if g.Grew <= 0 {
		return 0, false
	}
	var sum int64
	for _, r := range g.Rows[:min(max(rows, 0), len(g.Rows))] {
		sum += max(r.Delta, 0)
	}
	return float64(sum) / float64(g.Grew), true
}

// fileOf returns the file that is part of a name of the kind File.
func fileOf(name string) string { return strings.TrimSuffix(name, bss) }
