package procfs

import (
	"bytes"
	"strings"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
)

// Showmap is the table of Android's showmap (system/memory libsmapinfo,
// smapinfo.cpp), which combines the mappings of smaps by name.
type Showmap struct {
	Rows []ShowmapRow
	// Total is the TOTAL row at the end. All its values are unknown if the
	// input ends before this row. With showmap -t, Total includes rows that are
	// not printed.
	Total ShowmapRow
	// Truncated reports whether TOTAL is missing. Other rows may then be
	// missing too.
	Truncated bool
	Warnings  []error
}

// ShowmapRow is one row, in kB. Columns that this release does not print are
// unknown.
type ShowmapRow struct {
	Object       string    `json:"object"` // at most 4096 bytes
	PSS          known.Int `json:"pss_kb"`
	SwapPss      known.Int `json:"swap_pss_kb"`
	PrivateDirty known.Int `json:"private_dirty_kb"`
	PrivateClean known.Int `json:"private_clean_kb"`

	Size, RSS, SharedClean, SharedDirty, Swap known.Int `json:"-"`
	// Count is the number of mappings in the row; it is not printed with -a and
	// -v.
	Count known.Int `json:"-"`
	// Start and End are the addresses that -a prints; Flags holds the flags
	// that -v prints.
	Start, End uint64 `json:"-"`
	Flags      string `json:"-"`
}

const (
	maxShowmap     = 16 << 20
	maxShowmapRows = 1 << 17
	maxColumns     = 64 // showmap -a -v prints 19 columns
)

// ParseShowmap parses the output of showmap according to its header, because
// the columns differ between releases. The error is ErrEmpty or ErrFormat if
// there is no header.
func ParseShowmap(text []byte) (Showmap, error) {
	p := showmapScan{in: lines{rest: text[:min(len(text), maxShowmap)]}}
	for p.step() {
	}
	if p.columns == nil {
		return Showmap{}, formatError("showmap", text)
	}
	if !p.total {
		p.out.Truncated = true
		p.warnings.Add(p.in.n, "TOTAL", nil, "the text ends before this line")
	}
	p.out.Warnings = p.warnings.All()
	return p.out, nil
}

type showmapScan struct {
	in       lines
	before   [2][]byte // the previous two lines
	columns  []string
	headers  int // number of headers seen: the second one precedes TOTAL
	total    bool
	out      Showmap
	warnings field.Warnings
}

func (p *showmapScan) step() bool {
	line, whole, ok := p.in.next()
	if !ok {
		return false
	}
	defer func() { p.before[0], p.before[1] = p.before[1], line }()
	if isDivider(line) {
		p.divider(line)
		return true
	}
	if p.columns == nil || p.total || len(bytes.TrimSpace(line)) == 0 || isShowmapHeader(line) {
		return true
	}
	if p.headers > 1 && bytes.HasSuffix(bytes.TrimSpace(line), []byte(" TOTAL")) {
		p.total = true
		p.out.Total = p.row(line, true, true)
		return true
	}
	if len(p.out.Rows) >= maxShowmapRows {
		return true
	}
	if row := p.row(line, whole, false); row.Object != "" {
		p.out.Rows = append(p.out.Rows, row)
	}
	return true
}

func (p *showmapScan) divider(line []byte) {
	columns := columnNames(p.before[0], p.before[1], line)
	if columns == nil {
		return // the divider before the repeated header
	}
	p.headers++
	p.columns = columns
}

// row parses the cells in the order of the header. The rest of the line is the
// name, which may contain spaces. TOTAL has neither addresses nor flags. If the
// input ends with a cell or name without a newline, that row may be truncated
// and is skipped.
func (p *showmapScan) row(line []byte, whole, total bool) ShowmapRow {
	var r ShowmapRow
	rest := line
	for _, column := range p.columns[:len(p.columns)-1] {
		if total && (column == "flags" || strings.HasSuffix(column, "addr")) {
			continue
		}
		w, after, closed := word(rest)
		if !closed && !whole {
			return ShowmapRow{}
		}
		rest = after
		p.cell(&r, column, w)
	}
	name := bytes.TrimSpace(rest)
	if !whole {
		return ShowmapRow{} // TOTAL is then missing as well, which shows that rows may be missing
	}
	if len(name) == 0 {
		p.warnings.Add(p.in.n, "object", line, "no name, or too few cells")
		return ShowmapRow{}
	}
	r.Object = string(name[:min(len(name), maxName)])
	return r
}

func (p *showmapScan) cell(r *ShowmapRow, column string, w []byte) {
	var ok bool
	switch column {
	case "flags":
		r.Flags = string(w[:min(len(w), 16)])
		return
	case "start addr":
		r.Start, _, ok = hexNumber(w)
	case "end addr":
		r.End, _, ok = hexNumber(w)
	default:
		to := r.slot(column)
		if to == nil {
			return
		}
		to.N, to.Known = number(w)
		ok = to.Known
	}
	if !ok {
		p.warnings.Add(p.in.n, column, w, "not a number")
	}
}

func (r *ShowmapRow) slot(column string) *known.Int {
	switch column {
	case "virtual size":
		return &r.Size
	case "rss":
		return &r.RSS
	case "pss":
		return &r.PSS
	case "shared clean":
		return &r.SharedClean
	case "shared dirty":
		return &r.SharedDirty
	case "private clean":
		return &r.PrivateClean
	case "private dirty":
		return &r.PrivateDirty
	case "swap":
		return &r.Swap
	case "swappss":
		return &r.SwapPss
	case "#":
		return &r.Count
	}
	return nil
}

// isDivider matches "-------- -------- ----".
func isDivider(line []byte) bool {
	return bytes.Contains(line, []byte("-- --")) && len(bytes.Trim(line, "- ")) == 0
}

func isShowmapHeader(line []byte) bool {
	line = bytes.TrimSpace(line)
	return bytes.HasPrefix(line, []byte("virtual ")) || bytes.HasPrefix(line, []byte("start ")) ||
		bytes.HasPrefix(line, []byte("size ")) || bytes.HasPrefix(line, []byte("addr "))
}

// columnNames returns the name of each column: the words of both header lines
// that stand above the same dashes. It returns nil if the last column is not
// "object", because the lines are then not a header.
func columnNames(upper, lower, dashes []byte) []string {
	spans := wordSpans(dashes)
	if len(spans) > maxColumns {
		return nil
	}
	names := make([]string, len(spans))
	for _, header := range [][]byte{upper, lower} {
		for _, w := range wordSpans(header) {
			for i, s := range spans {
				if w[0] < s[1] && s[0] < w[1] {
					names[i] = strings.TrimSpace(names[i] + " " + strings.ToLower(string(header[w[0]:w[1]])))
					break
				}
			}
		}
	}
	// On Android 10 and 11 there is no space between the last two titles if the
	// number of mappings is omitted because of -v or -a (system/memory
	// libmeminfo/tools/showmap.cpp).
	if n := len(names); n > 1 && names[n-1] == "" {
		if joined, ok := strings.CutSuffix(names[n-2], "object"); ok {
			names[n-2], names[n-1] = joined, "object"
		}
	}
	if len(names) == 0 || names[len(names)-1] != "object" {
		return nil
	}
	return names
}

func wordSpans(line []byte) (spans [][2]int) {
	start := -1
	for i := 0; i <= len(line); i++ {
		blank := i == len(line) || line[i] == ' ' || line[i] == '\t'
		if blank && start >= 0 {
			spans, start = append(spans, [2]int{start, i}), -1
		} else if !blank && start < 0 {
			start = i
		}
	}
	return spans
}
