package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/reporters/record"
)

// header maps the columns to the indices of cells in a row; an index of -1
// means that the column is missing.
type header struct {
	width                           int
	time, process, pid, start, mark int
	death                           int
	value, swap                     int
	parts                           []part
	source                          string // the name of the value's column
	mapped                          bool   // the value is TOTAL PSS minus driver memory
}

// part is a column for one part of a breakdown.
type part struct {
	column int
	name   string
	of     func(*record.Breakdown) **int64
}

// These are the columns that a table may have; values are in kB.
const (
	timeColumn    = "t_s"
	processColumn = "process"
	pidColumn     = "pid"
	startColumn   = "start"
	markColumn    = "mark"
	deathColumn   = "death"
	pssColumn     = "pss_kb"
	swapColumn    = "swap_pss_kb"
	totalColumn   = "total_pss_kb"
)

// parts lists the columns of a breakdown, with the names that `leakgate parse`
// uses.
var parts = []part{
	{name: "java_heap_kb", of: func(b *record.Breakdown) **int64 { return &b.JavaHeap }},
	{name: "native_heap_kb", of: func(b *record.Breakdown) **int64 { return &b.NativeHeap }},
	{name: "code_kb", of: func(b *record.Breakdown) **int64 { return &b.Code }},
	{name: "stack_kb", of: func(b *record.Breakdown) **int64 { return &b.Stack }},
	{name: "graphics_kb", of: func(b *record.Breakdown) **int64 { return &b.Graphics }},
	{name: "private_other_kb", of: func(b *record.Breakdown) **int64 { return &b.PrivateOther }},
	{name: "system_kb", of: func(b *record.Breakdown) **int64 { return &b.System }},
	{name: totalColumn, of: func(b *record.Breakdown) **int64 { return &b.TotalPSS }},
	{name: "egl_mtrack_kb", of: func(b *record.Breakdown) **int64 { return &b.EGL }},
	{name: "gl_mtrack_kb", of: func(b *record.Breakdown) **int64 { return &b.GL }},
	{name: "other_mtrack_kb", of: func(b *record.Breakdown) **int64 { return &b.OtherMtrack }},
	{name: "gfx_dev_kb", of: func(b *record.Breakdown) **int64 { return &b.GfxDev }},
}

// readHeader parses the first row. column is the name of the column to judge;
// if it is empty, pss_kb is used or, if that is missing, total_pss_kb.
func readHeader(cells []string, column string) (header, error) {
	names := make([]string, len(cells))
	for i, c := range cells {
		names[i] = strings.ToLower(strings.TrimSpace(c))
	}
	h := header{width: len(names)}
	var err error
	at := func(name string) int {
		n := slices.Index(names, name)
		if n >= 0 && slices.Contains(names[n+1:], name) {
			err = fmt.Errorf("line 1: duplicate column %s", quoted(name))
		}
		return n
	}
	h.time, h.process, h.pid, h.start, h.mark = at(timeColumn), at(processColumn), at(pidColumn), at(startColumn),
		at(markColumn)
	h.swap, h.death = at(swapColumn), at(deathColumn)
	for _, p := range parts {
		if p.column = at(p.name); p.column >= 0 {
			h.parts = append(h.parts, p)
		}
	}
	switch {
	case column != "":
		h.choose(at(strings.ToLower(column)), column)
	case at(pssColumn) >= 0:
		h.value, h.source = at(pssColumn), pssColumn
	default:
		// TOTAL includes swapped memory if the table has a column for it.
		h.value, h.source, h.swap, h.mapped = at(totalColumn), totalColumn, -1, true
	}
	if err != nil {
		return h, err
	}
	if h.time < 0 {
		return h, fmt.Errorf("line 1: no column %s with the seconds; the columns are %s", timeColumn, listed(cells))
	}
	if h.value < 0 && column != "" {
		return h, fmt.Errorf("line 1: no column %s; the columns are %s", quoted(column), listed(cells))
	}
	if h.value < 0 {
		return h, fmt.Errorf("line 1: no column %s or %s; name one of %s with --column",
			pssColumn, totalColumn, listed(cells))
	}
	return h, nil
}

// choose judges the column that the user named, in place of the PSS. A column
// that also belongs to a breakdown, or holds the swap, is judged alone, because
// the rest of the row measures another quantity.
func (h *header) choose(column int, name string) {
	h.value, h.source = column, name
	own := slices.ContainsFunc(h.parts, func(p part) bool { return p.column == column })
	if own || column == h.swap {
		h.parts, h.swap = nil, -1
	}
}

// maxListed is the maximum number of columns that a message names.
const maxListed = 20

func listed(cells []string) string {
	var names []string
	for _, c := range cells[:min(len(cells), maxListed)] {
		names = append(names, quoted(c))
	}
	if len(cells) > maxListed {
		names = append(names, fmt.Sprintf("and %d more", len(cells)-maxListed))
	}
	return strings.Join(names, ", ")
}
