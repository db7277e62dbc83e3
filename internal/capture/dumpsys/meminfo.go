package dumpsys

import (
	"strings"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
)

// Meminfo is the output of dumpsys meminfo PROCESS: one block for each process
// that has this name (one per user), or that has loaded the package.
type Meminfo struct {
	Blocks []Block
	// Uptime and Realtime are the times since the device booted, in ms. Only
	// Realtime includes the time in deep sleep.
	Uptime, Realtime known.Int
	// Interrupted is the device's message if the service failed after it had
	// begun to print, for example because of a dump timeout. Truncated is set
	// in the affected blocks.
	Interrupted *DeviceError
	// Warnings are the warnings that do not belong to a block.
	Warnings []error
}

// Block is one process. All sizes are in kB.
type Block struct {
	// PID is unknown and Process is empty for a native process, whose output
	// does not have a "** MEMINFO" line. The caller must check that PID is the
	// expected pid.
	PID     known.Int  `json:"pid"`
	Process field.Text `json:"process"`

	// TotalPss is TOTAL PSS as printed. It includes SwapPss if SwapInTotal is
	// Yes.
	TotalPss known.Int `json:"total_pss_kb"`
	// SwapPss is the proportional share of the swapped-out memory. Swap counts
	// this memory in full, and is never included in TotalPss. A block has
	// either SwapPss or Swap, depending on whether the running kernel reports
	// SwapPss.
	SwapPss     known.Int `json:"swap_pss_kb"`
	Swap        known.Int `json:"-"`
	SwapInTotal Answer    `json:"swap_in_total"`
	// TotalRss is printed by Android 11 and later.
	TotalRss known.Int `json:"rss_kb"`

	// The seven dimensions, as printed in the App Summary (since Android 6).
	JavaHeap     known.Int `json:"java_heap_kb"`
	NativeHeap   known.Int `json:"native_heap_kb"`
	Code         known.Int `json:"code_kb"`
	Stack        known.Int `json:"stack_kb"`
	Graphics     known.Int `json:"graphics_kb"`
	PrivateOther known.Int `json:"private_other_kb"`
	System       known.Int `json:"system_kb"`

	// The Pss of individual rows of the table. Android omits rows that contain
	// only zeros: in a TableComplete block, an unknown row is zero or not
	// measured on this device. The three mtrack rows are not included in smaps;
	// the two dev rows are.
	EGLMtrack     known.Int `json:"egl_mtrack_kb"`
	GLMtrack      known.Int `json:"gl_mtrack_kb"`
	OtherMtrack   known.Int `json:"other_mtrack_kb"`
	GfxDev        known.Int `json:"gfx_dev_kb"`
	OtherDev      known.Int `json:"other_dev_kb"`
	TableComplete bool      `json:"-"`

	// Objects holds the counts in the Objects section: Activities, Views,
	// ViewRootImpl, AppContexts, WebViews, ... It is nil if the section is
	// missing.
	Objects map[string]int64 `json:"objects"`
	Rows    []Row            `json:"-"`
	// Computed reports whether the dimensions were computed from the rows,
	// because the output had no App Summary.
	Computed bool `json:"computed"`

	// Truncated reports whether this block is visibly truncated.
	Truncated bool    `json:"truncated"`
	Warnings  []error `json:"-"`
}

// AnySwap returns the swap column of the table: SwapPss if the kernel reports
// it, and otherwise Swap.
func (b *Block) AnySwap() known.Int {
	if b.SwapInTotal == No {
		return b.Swap
	}
	return b.SwapPss
}

// Row is one row of the table, in kB. Missing columns are unknown.
type Row struct {
	Name                          string
	Pss, PssClean                 known.Int
	SharedDirty, PrivateDirty     known.Int
	SharedClean, PrivateClean     known.Int
	Swap, SwapPss, Rss            known.Int
	HeapSize, HeapAlloc, HeapFree known.Int
}

const (
	maxBlocks  = 512
	maxRows    = 128 // maximum for one block; Android prints 19
	maxObjects = 64
)

// Row returns the row with the given name.
func (b *Block) Row(name string) (Row, bool) {
	for _, r := range b.Rows {
		if r.Name == name {
			return r, true
		}
	}
	return Row{}, false
}

// ParseMeminfo parses the output of dumpsys meminfo for a process, on Android
// 4.3 to 16, with or without -a, -d and -s. If the output contains no block,
// the error is a DeviceError with the message that was printed instead.
func ParseMeminfo(text []byte) (Meminfo, error) {
	s, tooLong := input(text)
	p := meminfoScan{in: lines{rest: s}}
	for p.step() {
	}
	p.endBlock(!tooLong)
	p.out.Warnings = p.loose.All()
	told, usable := false, false
	for i := range p.out.Blocks {
		told = told || !p.out.Blocks[i].empty()
		usable = usable || told || p.out.Blocks[i].PID.Known
	}
	switch {
	case p.out.Interrupted != nil && !told:
		return Meminfo{}, *p.out.Interrupted
	case !usable:
		return Meminfo{}, notAnAnswer(text, p.began)
	}
	return p.out, nil
}

func (b *Block) empty() bool {
	return len(b.Rows) == 0 && b.Objects == nil && !b.TotalPss.Known && !b.JavaHeap.Known && !b.NativeHeap.Known
}

type section uint8

const (
	inTable section = iota
	inSummary
	inObjects
	inOther
)

var sections = map[string]section{
	"App Summary": inSummary, "Objects": inObjects,
	"Dalvik Details": inOther, "Native Allocations": inOther, "SQL": inOther, "DATABASES": inOther,
	"Asset Allocations": inOther, "Unreachable memory": inOther, "PER CONNECTION STATS": inOther,
}

type meminfoScan struct {
	in     lines
	before [2]string // the previous two lines
	out    Meminfo
	loose  field.Warnings
	began  bool // a line that only meminfo prints was found

	cur      *Block
	at       section
	columns  *columns
	warnings field.Warnings
	facts    blockFacts
}

// blockFacts holds the facts about the lines of a block that are needed when
// the block ends.
type blockFacts struct {
	table, totalRow     bool // the header of the table, and its last row
	summary, summaryEnd bool // the title of the App Summary, and its TOTAL
	summaryRss          bool // the App Summary has an Rss column
	badCell             bool // a cell of the table is invalid
	lostRow             bool // a row has no name: it may be one of the rows that seem to be missing
	brokenOff, cut      bool // the dump was aborted in this block; the input ends in it without a newline
	rssRow              known.Int
	totals              []known.Int // TOTAL PSS wherever it is printed
}

func (p *meminfoScan) step() bool {
	line, whole, ok := p.in.next()
	if !ok {
		return false
	}
	if !strings.HasPrefix(line, "** ") {
		line = foldDigits(line)
	}
	p.line(line, strings.TrimSpace(line), whole)
	p.before[0], p.before[1] = p.before[1], line
	if !whole {
		p.facts.cut = true
	}
	return true
}

func (p *meminfoScan) line(line, trimmed string, whole bool) {
	if rest, ok := strings.CutPrefix(trimmed, "** MEMINFO in pid "); ok {
		p.startBlock()
		p.cur.PID, p.cur.Process = processOf(rest)
		return
	}
	switch {
	case trimmed == "":
		return
	case strings.HasPrefix(trimmed, "Applications Memory Usage"):
		p.endBlock(true)
		p.began = true
		return
	case p.cur == nil && strings.HasPrefix(trimmed, "Uptime:"):
		p.clocks(line, whole)
		return
	}
	if e, ok := interruption(trimmed); ok {
		p.out.Interrupted = &e
		p.facts.brokenOff = true
		return
	}
	if at, ok := sections[trimmed]; ok && whole {
		p.startSection(at)
		return
	}
	if strings.Trim(trimmed, "- ") == "" && strings.HasPrefix(trimmed, "--") {
		p.dashes(line, whole)
		return
	}
	if p.cur == nil {
		return
	}
	switch p.at {
	case inTable:
		p.row(line, whole)
	case inSummary:
		p.summary(line, whole)
	case inObjects:
		p.objects(line, whole)
	}
}

func (p *meminfoScan) clocks(line string, whole bool) {
	for _, pr := range pairs(line, whole) {
		n, ok := number(pr.value.text)
		if !ok || pr.value.cut {
			p.loose.Add(p.in.n, pr.label, []byte(pr.value.text), "not a whole number")
			continue
		}
		switch {
		case pr.label == "Uptime" && !p.out.Uptime.Known:
			p.out.Uptime = known.Of(n)
		case pr.label == "Realtime" && !p.out.Realtime.Known:
			p.out.Realtime = known.Of(n)
		}
	}
}

func (p *meminfoScan) startBlock() {
	p.endBlock(true)
	p.began = true
	p.cur = &Block{}
}

func (p *meminfoScan) startSection(at section) {
	if at == inSummary && (p.cur == nil || p.facts.summary) {
		p.startBlock() // -s of a native process has no "** MEMINFO" line
	}
	p.at = at
	if at == inSummary {
		p.facts.summary = true
	}
}

// dashes handles the dashes under the headers of the table, the App Summary and
// other sections.
func (p *meminfoScan) dashes(line string, whole bool) {
	c := columnsOf(p.before[0], p.before[1], line)
	if c == nil {
		if p.cur != nil && p.at == inSummary {
			p.facts.summaryRss = len(rightEdges(line)) > 1
		}
		return
	}
	if !whole {
		return
	}
	if p.cur == nil || p.facts.table || p.facts.summary {
		p.startBlock() // a native process has no "** MEMINFO" line
	}
	p.at, p.columns, p.facts.table = inTable, c, true
}

func (p *meminfoScan) row(line string, whole bool) {
	if p.columns == nil || p.facts.totalRow || len(p.cur.Rows) >= maxRows {
		return
	}
	name, cells := splitRow(tokens(line, whole))
	if len(cells) == 0 {
		return
	}
	if name == "" {
		p.facts.badCell, p.facts.lostRow = true, true
		p.warnings.Add(p.in.n, "row", []byte(line), "no name")
		return
	}
	r := Row{Name: clip(name, maxName)}
	assigned, reason := p.columns.assign(line, cells)
	if reason != "" {
		p.facts.badCell = true
		p.warnings.Add(p.in.n, name, []byte(line), reason)
	}
	for i, cell := range assigned {
		if cell == "" {
			continue
		}
		to := r.cell(p.columns.kinds[i])
		n, ok := number(cell)
		if !ok {
			p.facts.badCell = p.facts.badCell || p.columns.kinds[i] < heapSize
			p.warnings.Add(p.in.n, name+", "+columnNames[p.columns.kinds[i]], []byte(cell), "not a number")
			continue
		}
		if to != nil {
			*to = known.Of(n)
		}
	}
	if name != "TOTAL" {
		p.cur.Rows = append(p.cur.Rows, r)
		return
	}
	p.facts.totalRow = whole && reason == ""
	if r.Pss.Known {
		p.facts.totals = append(p.facts.totals, r.Pss)
	}
	p.cur.Rows = append(p.cur.Rows, r)
	p.cur.SwapPss, p.cur.Swap, p.facts.rssRow = r.SwapPss, r.Swap, r.Rss
}

var dimensions = map[string]func(*Block) *known.Int{
	"Java Heap":     func(b *Block) *known.Int { return &b.JavaHeap },
	"Native Heap":   func(b *Block) *known.Int { return &b.NativeHeap },
	"Code":          func(b *Block) *known.Int { return &b.Code },
	"Stack":         func(b *Block) *known.Int { return &b.Stack },
	"Graphics":      func(b *Block) *known.Int { return &b.Graphics },
	"Private Other": func(b *Block) *known.Int { return &b.PrivateOther },
	"System":        func(b *Block) *known.Int { return &b.System },
}

// twoColumns are the rows that have both Pss and Rss on Android 11 and later.
var twoColumns = map[string]bool{"Java Heap": true, "Native Heap": true, "Code": true, "Stack": true, "Graphics": true}

func (p *meminfoScan) summary(line string, whole bool) {
	for _, pr := range pairs(line, whole) {
		to := p.summarySlot(pr.label)
		if to == nil {
			continue
		}
		n, ok := number(pr.value.text)
		switch {
		case pr.value.cut:
			p.warnings.Add(p.in.n, pr.label, []byte(pr.value.text), "truncated")
		case !ok:
			p.warnings.Add(p.in.n, pr.label, []byte(line), "not a number")
		case p.facts.summaryRss && whole && twoColumns[pr.label] && len(tokens(line[pr.value.end:], whole)) == 0:
			p.warnings.Add(p.in.n, pr.label, []byte(line), "only one number for Pss and Rss")
		default:
			if to == &p.cur.TotalPss {
				p.facts.totals = append(p.facts.totals, known.Of(n))
				p.facts.summaryEnd = true
			}
			*to = known.Of(n)
		}
	}
}

func (p *meminfoScan) summarySlot(label string) *known.Int {
	if f, ok := dimensions[label]; ok {
		return f(p.cur)
	}
	switch label {
	case "TOTAL", "TOTAL PSS":
		return &p.cur.TotalPss
	case "TOTAL RSS":
		return &p.cur.TotalRss
	case "TOTAL SWAP PSS":
		return &p.cur.SwapPss
	case "TOTAL SWAP (KB)":
		return &p.cur.Swap
	}
	return nil
}

func (p *meminfoScan) objects(line string, whole bool) {
	for _, pr := range pairs(line, whole) {
		n, ok := number(pr.value.text)
		switch {
		case pr.value.cut:
			p.warnings.Add(p.in.n, pr.label, []byte(pr.value.text), "truncated")
		case !ok:
			p.warnings.Add(p.in.n, pr.label, []byte(line), "not a number")
		case len(p.cur.Objects) < maxObjects:
			if p.cur.Objects == nil {
				p.cur.Objects = map[string]int64{}
			}
			p.cur.Objects[pr.label] = n
		}
	}
}

// endBlock finishes the current block. whole is false if the input was
// truncated within the block.
func (p *meminfoScan) endBlock(whole bool) {
	if p.cur == nil {
		p.facts, p.columns = blockFacts{}, nil
		return
	}
	b, f := p.cur, &p.facts
	b.TableComplete = f.totalRow && !f.badCell
	p.resolveDuplicates()
	b.EGLMtrack, b.GLMtrack = b.rowPss("EGL mtrack", "Graphics"), b.rowPss("GL mtrack", "GL")
	b.OtherMtrack = b.rowPss("Other mtrack", "Memtrack")
	b.GfxDev, b.OtherDev = b.rowPss("Gfx dev"), b.rowPss("Other dev")
	switch {
	case p.columns.has(swapPss) || b.SwapPss.Known:
		b.SwapInTotal = Yes
	case p.columns.has(swap) || b.Swap.Known:
		b.SwapInTotal = No
	}
	if f.totalRow && !f.lostRow && !f.summary && p.columns.beforeSummary() {
		b.compute(p.columns)
	}
	b.Truncated = !whole || f.brokenOff || f.table && !f.totalRow || f.summary && !f.summaryEnd ||
		!f.table && !f.summary || f.cut ||
		f.table && !f.summary && !p.columns.beforeSummary() || p.at == inObjects && b.Objects == nil
	p.checkSum()
	b.Warnings = p.warnings.All()
	if len(p.out.Blocks) < maxBlocks {
		p.out.Blocks = append(p.out.Blocks, *b)
	}
	p.cur, p.at, p.columns, p.facts, p.warnings = nil, inTable, nil, blockFacts{}, field.Warnings{}
}

func (b *Block) rowPss(names ...string) known.Int {
	for _, name := range names {
		if r, ok := b.Row(name); ok {
			return r.Pss
		}
	}
	return known.Int{}
}

// resolveDuplicates determines TotalPss and TotalRss, which the table and the
// App Summary both contain.
func (p *meminfoScan) resolveDuplicates() {
	b, f := p.cur, &p.facts
	for _, v := range f.totals {
		if !b.TotalPss.Known {
			b.TotalPss = v
		}
		if v != b.TotalPss {
			p.warnings.Add(p.in.n, "TOTAL PSS", nil, "the table and the App Summary differ; the App Summary is used")
		}
	}
	// Android 11 repeats Pss in the Rss cell of the TOTAL row: the value is
	// reliable only if the App Summary contains it as TOTAL RSS, or if it
	// differs from Pss.
	switch {
	case b.TotalRss.Known || !f.rssRow.Known || !b.TotalPss.Known:
	case f.rssRow == b.TotalPss:
		p.warnings.Add(p.in.n, "TOTAL RSS", nil, "the table repeats Pss in the Rss column, as on Android 11")
	default:
		b.TotalRss = f.rssRow
	}
}

// checkSum compares the table with its own TOTAL, which is the sum of Pss, plus
// SwapPss if the header says so (Debug.MemoryInfo.getTotalPss).
func (p *meminfoScan) checkSum() {
	b := p.cur
	if !b.TableComplete || !p.columns.has(pss) {
		return
	}
	var sum int64
	for _, r := range b.Rows {
		if !r.Pss.Known {
			return
		}
		if r.Name != "TOTAL" {
			sum += r.Pss.N
		}
	}
	total, _ := b.Row("TOTAL")
	if want := sum + total.SwapPss.N; want != total.Pss.N {
		p.warnings.Add(p.in.n, "TOTAL", nil, "differs from the sum of the rows")
	}
}
