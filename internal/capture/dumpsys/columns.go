package dumpsys

import (
	"strings"

	"github.com/leakgate/leakgate/internal/known"
)

// columnKind is a column of the meminfo table. heapSize and the columns after
// it describe the allocator, and are printed in only three rows.
type columnKind uint8

const (
	pss columnKind = iota
	pssClean
	sharedDirty
	privateDirty
	sharedClean
	privateClean
	swap
	swapPss
	rss
	heapSize
	heapAlloc
	heapFree
	numColumns
)

var columnNames = [numColumns]string{
	"Pss", "Pss Clean", "Shared Dirty", "Private Dirty", "Shared Clean", "Private Clean",
	"Swap", "SwapPss", "Rss", "Heap Size", "Heap Alloc", "Heap Free",
}

// columnWords maps the joined words of the two header lines to a column.
// Android 4.3 omits "Total", Android 4.4 to 6 print "Swapped", and Android 5.0
// with -a omits one "Dirty".
var columnWords = map[string]columnKind{
	"pss": pss, "pss total": pss, "pss clean": pssClean,
	"shared dirty": sharedDirty, "private dirty": privateDirty, "private": privateDirty,
	"shared clean": sharedClean, "private clean": privateClean,
	"swapped dirty": swap, "swap dirty": swap, "swapped": swap, "swap": swap,
	"swappss dirty": swapPss, "swappss": swapPss,
	"rss total": rss, "rss": rss,
	"heap size": heapSize, "heap alloc": heapAlloc, "heap free": heapFree,
}

func (r *Row) cell(k columnKind) *known.Int {
	return [numColumns]*known.Int{
		&r.Pss, &r.PssClean, &r.SharedDirty, &r.PrivateDirty, &r.SharedClean, &r.PrivateClean,
		&r.Swap, &r.SwapPss, &r.Rss, &r.HeapSize, &r.HeapAlloc, &r.HeapFree,
	}[k]
}

// columns is the header of a table. The columns and their order differ between
// releases and options, so only the header determines the column of a cell.
type columns struct {
	kinds []columnKind
	edges []int // where each column ends: cells are right-aligned
	// swapped reports whether the header has the wording of Android 4.4 to 6:
	// "Swapped".
	swapped bool
}

const maxColumns = 32 // Android prints at most 11

// columnsOf parses the two header lines, using the dashes under them; it
// returns nil if they are not the header of a memory table.
func columnsOf(upper, lower, dashes string) *columns {
	edges := rightEdges(dashes)
	if len(edges) < 3 || len(edges) > maxColumns {
		return nil
	}
	words := headerWords(upper, lower, edges)
	if words == nil {
		return nil
	}
	c := &columns{edges: edges, swapped: strings.Contains(upper, "Swapped")}
	for _, w := range words {
		kind, ok := columnWords[strings.ToLower(w)]
		if !ok || c.has(kind) {
			return nil
		}
		c.kinds = append(c.kinds, kind)
	}
	return c
}

func rightEdges(dashes string) (edges []int) {
	for _, t := range tokens(dashes, true) {
		edges = append(edges, t.end)
	}
	return edges
}

// headerWords returns the words of each column, assigned by position, or by
// order if the spaces were reflowed.
func headerWords(upper, lower string, edges []int) []string {
	words := make([]string, len(edges))
	placed := true
	for _, line := range []string{upper, lower} {
		for _, t := range tokens(line, true) {
			i := indexOf(edges, t.end)
			if i < 0 {
				placed = false
				break
			}
			words[i] = strings.TrimSpace(words[i] + " " + t.text)
		}
	}
	if placed {
		return words
	}
	up, low := tokens(upper, true), tokens(lower, true)
	if len(up) != len(edges) || len(low) != len(edges) {
		return nil
	}
	for i := range words {
		words[i] = up[i].text + " " + low[i].text
	}
	return words
}

func indexOf(list []int, v int) int {
	for i, x := range list {
		if x == v {
			return i
		}
	}
	return -1
}

func (c *columns) has(kind columnKind) bool {
	if c == nil {
		return false
	}
	for _, k := range c.kinds {
		if k == kind {
			return true
		}
	}
	return false
}

// beforeSummary reports whether the table is from a release up to Android 6: a
// release that prints no App Summary, or one whose App Summary follows exactly
// from the rows. On later releases, output without an App Summary is truncated.
func (c *columns) beforeSummary() bool {
	return c != nil && (c.swapped || !c.has(swap) && !c.has(swapPss) && !c.has(rss))
}

// splitRow splits " Native Heap 25238 ..." at the first number.
func splitRow(ts []token) (name string, cells []token) {
	for i, t := range ts {
		if c := t.text[0]; c >= '0' && c <= '9' || c == '-' && len(t.text) > 1 {
			words := make([]string, i)
			for j := range words {
				words[j] = ts[j].text
			}
			return strings.Join(words, " "), ts[i:]
		}
	}
	return "", nil
}

// assign returns the cell of each column, or "" for a cell that is ambiguous or
// missing; the reason describes such cells.
func (c *columns) assign(line string, cells []token) (assigned []string, reason string) {
	assigned = make([]string, len(c.kinds))
	whole := true
	if last := cells[len(cells)-1]; last.cut {
		cells, reason, whole = cells[:len(cells)-1], "truncated", false
	}
	if c.byPlace(cells, assigned) {
		return assigned, c.missing(assigned, whole, reason)
	}
	touch := c.touching(cells)
	if whole && (touch || !c.fits(len(cells))) && c.splitTouching(line, cells, assigned) {
		return assigned, ""
	}
	clear(assigned)
	switch {
	case touch:
		return assigned, "cells are not separated"
	case len(cells) > len(c.kinds), whole && !c.fits(len(cells)):
		return assigned, "the number of cells matches no column layout"
	}
	// A number wider than its column shifts the other numbers to the right. The
	// numbers are still in order, and only the heap columns at the end may be
	// empty.
	for i, cell := range cells {
		assigned[i] = cell.text
	}
	return assigned, reason
}

func (c *columns) fits(cells int) bool {
	return cells == len(c.kinds) || cells == len(c.kinds)-c.heapColumns()
}

// missing checks a row after its cells have been assigned to columns, and
// returns the reason why cells are missing. If a cell in the middle is empty,
// its value is absent and the others are valid; if the last cells are empty,
// all cells may have shifted.
func (c *columns) missing(assigned []string, whole bool, reason string) string {
	if !whole {
		return reason
	}
	last := len(c.kinds) - c.heapColumns() - 1
	if last >= 0 && assigned[last] == "" {
		clear(assigned)
		return "too few cells"
	}
	for i := range last {
		if assigned[i] == "" {
			return "no " + columnNames[c.kinds[i]]
		}
	}
	return reason
}

// touching reports whether a cell spans the ends of two columns.
func (c *columns) touching(cells []token) bool {
	for _, cell := range cells {
		over := 0
		for _, edge := range c.edges {
			if cell.start < edge && edge <= cell.end {
				over++
			}
		}
		if over > 1 {
			return true
		}
	}
	return false
}

// byPlace assigns each cell to the column that ends at the same position. It
// returns false if a cell ends at any other position.
func (c *columns) byPlace(cells []token, assigned []string) bool {
	at := make([]int, len(cells))
	for i, cell := range cells {
		if at[i] = indexOf(c.edges, cell.end); at[i] < 0 {
			return false
		}
		// A cell that reaches into two columns is in fact two adjacent cells
		// without a space between them.
		if at[i] > 0 && cell.start < c.edges[at[i]-1] {
			return false
		}
	}
	for i, cell := range cells {
		assigned[at[i]] = cell.text
	}
	return true
}

// splitTouching splits touching cells at the ends of the columns, and assigns
// the parts to the columns. It returns false if the parts do not fit the
// columns exactly, because the result would not be reliable.
func (c *columns) splitTouching(line string, cells []token, assigned []string) bool {
	var parts []token
	for _, cell := range cells {
		start := cell.start
		for _, edge := range c.edges {
			if start < edge && edge < cell.end {
				parts = append(parts, token{text: line[start:edge], start: start, end: edge})
				start = edge
			}
		}
		parts = append(parts, token{text: line[start:cell.end], start: start, end: cell.end})
	}
	return c.fits(len(parts)) && c.byPlace(parts, assigned)
}

func (c *columns) heapColumns() (n int) {
	for _, k := range c.kinds {
		if k >= heapSize {
			n++
		}
	}
	return n
}
