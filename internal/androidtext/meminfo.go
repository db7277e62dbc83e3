package androidtext

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Meminfo holds the values that `dumpsys meminfo` prints for one process.
type Meminfo struct {
	API  int
	PID  int
	Name string
	// Native means that the process has no runtime: neither its name nor object
	// counts are printed.
	Native bool
	Rows   Rows
	// JIT is the part of Dalvik Other that is compiled code.
	JIT                  Memory
	NativeHeap, JavaHeap Heap
	Details              []Detail
	Objects              Objects
	Allocations          []Allocation
	SQL                  SQL
	Databases            []Database
}

// Heap holds the statistics that an allocator reports, in kB.
type Heap struct{ Size, Alloc, Free int64 }

// Plus returns the sum of h and o.
func (h Heap) Plus(o Heap) Heap { return Heap{h.Size + o.Size, h.Alloc + o.Alloc, h.Free + o.Free} }

// Detail is a row of the Dalvik Details. A row that contains only zeros is not
// printed.
type Detail struct {
	Name string
	Memory
}

// Objects holds the counts of framework objects.
type Objects struct {
	Views, ViewRoots, AppContexts, Activities, Assets, AssetManagers, LocalBinders, ProxyBinders int
	ParcelKB, Parcels, DeathRecipients, Sockets, WebViews                                        int
}

// Allocation is a row of the Native Allocations section, which Android 15
// added.
type Allocation struct {
	Name      string
	Count, KB int
}

// SQL is the memory of SQLite, in kB.
type SQL struct{ MemoryUsed, CacheOverflow, LargestAllocation int }

// Database is a SQLite database that the process has open. Sizes are in kB; the
// cache is formatted as hits/misses/size.
type Database struct {
	PageSize, Size, Lookaside int
	Cache, Name               string
}

// MeminfoOptions holds the arguments of `dumpsys meminfo`.
type MeminfoOptions struct {
	// Full (-a) prints all columns and implies Dalvik; Dalvik (-d) adds the
	// Dalvik Details; Summary (-s) prints only the App Summary; Local (--local)
	// does not query the process and omits its object counts.
	Full, Dalvik, Summary, Local bool
	// Package means that Process names a package and selects all of its
	// processes.
	Package bool
	// Help requests the usage message, MeminfoHelp.
	Help bool
	// Process is a name or a pid; if empty, all processes are selected.
	Process string
}

// ParseMeminfo parses the arguments of `dumpsys meminfo`. If an argument is
// invalid, problem is the message that Android prints.
func ParseMeminfo(args []string) (o MeminfoOptions, problem string) {
	for i, a := range args {
		switch a {
		case "-a":
			o.Full, o.Dalvik = true, true
		case "-d":
			o.Dalvik = true
		case "-s":
			o.Summary = true
		case "-S", "--oom", "-p":
		case "--local":
			o.Local = true
		case "--package":
			o.Package = true
		case "-h":
			o.Help = true
			return o, ""
		default:
			if strings.HasPrefix(a, "-") {
				return o, fmt.Sprintf("Unknown argument: %s; use -h for help\n", a)
			}
			o.Process = a
			for _, rest := range args[i+1:] {
				o.Local = o.Local || rest == "--local"
			}
			return o, ""
		}
	}
	return o, ""
}

// MeminfoHelp returns the usage message of `dumpsys meminfo`
// (ActivityManagerService.dumpApplicationMemoryUsage).
func MeminfoHelp(api int) string {
	var b strings.Builder
	short := ""
	if api >= 23 {
		short = "[-s] "
	}
	fmt.Fprintf(&b, "meminfo dump options: [-a] [-d] [-c] %s[--oom] [process]\n", short)
	b.WriteString("  -a: include all available information for each process.\n  -d: include dalvik details.\n" +
		"  -c: dump in a compact machine-parseable representation.\n")
	if api >= 23 {
		b.WriteString("  -s: dump only summary of application memory usage.\n")
	}
	if api >= 24 {
		b.WriteString("  -S: dump also SwapPss.\n")
	}
	b.WriteString(`  --oom: only show processes organized by oom adj.
  --local: only collect details locally, don't call process.
  --package: interpret process arg as package, dumping all
             processes that have loaded that package.
  --checkin: dump data for a checkin
`)
	if api >= 28 {
		b.WriteString("  --proto: dump data to proto\n")
	}
	b.WriteString("If [process] is specified it can be the name or\npid of a specific process to dump.\n")
	return b.String()
}

// NoProcess returns the message that a dump prints for a process that is not
// running.
func NoProcess(name string) string { return fmt.Sprintf("No process found for: %s\n", name) }

// MeminfoHead returns the first lines of every output.
func MeminfoHead(api int, up time.Duration) string {
	unit := "in Kilobytes"
	if api < 24 {
		unit = "kB"
	}
	ms := up.Milliseconds()
	return fmt.Sprintf("Applications Memory Usage (%s):\nUptime: %d Realtime: %d\n", unit, ms, ms)
}

// Text returns the block of the process, without the lines that MeminfoHead
// returns (ActivityThread.dumpMemInfoTable).
func (m *Meminfo) Text(o MeminfoOptions) string {
	t := meminfoTable{Meminfo: m, full: o.Full}
	t.swapInTotal = m.API >= 24 && m.Rows.Sum().SwapPss > 0
	if !m.Native {
		fmt.Fprintf(&t.b, "\n** MEMINFO in pid %d [%s] **\n", m.PID, m.Name)
	}
	if !o.Summary || m.API < 23 {
		if m.API < 19 {
			t.jellyBean()
		} else {
			t.table()
			if o.Dalvik || o.Full {
				t.details()
			}
		}
	}
	if m.API >= 23 {
		t.summary()
	}
	if !m.Native && !o.Summary && !o.Local {
		t.objects()
	}
	return t.b.String()
}

type meminfoTable struct {
	*Meminfo
	full bool
	// swapInTotal means that the table has a SwapPss column, which TOTAL
	// includes. Android decides at run time: the column is printed if anything
	// is swapped out (Debug.MemoryInfo.hasSwappedOutPss).
	swapInTotal bool
	b           strings.Builder
}

func (t *meminfoTable) line(name string, cells ...any) {
	fmt.Fprintf(&t.b, "%13s", name)
	for _, c := range cells {
		fmt.Fprintf(&t.b, " %8v", c)
	}
	t.b.WriteByte('\n')
}

func (t *meminfoTable) swapTitle() string {
	switch {
	case t.API < 24:
		return "Swapped"
	case t.swapInTotal:
		return "SwapPss"
	}
	return "Swap"
}

func (t *meminfoTable) swap(m Memory) int64 {
	if t.swapInTotal {
		return m.SwapPss
	}
	return m.Swap
}

// rows returns the names and the memory of the rows that this Android version
// prints.
func (t *meminfoTable) rows() (names []string, rows []Memory) {
	for r, m := range t.Rows {
		row, name := Row(r), rowNames[r]
		switch {
		case t.API < 21 && (row == OatMmap || row == ArtMmap || row == GfxDev):
			continue // part of another row, see below
		case t.API < 21 && row == OtherDev:
			// Before Android 5, the GPU's device node is not listed separately.
			m = m.Plus(t.Rows[GfxDev])
		case t.API < 21 && row == DexMmap:
			m = m.Plus(t.Rows[OatMmap])
		case t.API < 21 && row == DalvikHeap:
			m = m.Plus(t.Rows[ArtMmap])
		case t.API < 21 && row == EGLMtrack:
			name = "Graphics"
		case t.API < 21 && row == GLMtrack:
			name = "GL"
		}
		if row != NativeHeap && row != DalvikHeap && m.Pss == 0 && m.Rss == 0 && t.swap(m) == 0 {
			continue
		}
		names, rows = append(names, name), append(rows, m)
	}
	return names, rows
}

func (t *meminfoTable) heading(top, under []any) {
	line := make([]any, len(top), len(top)+3)
	for i := range line {
		line[i] = "------"
	}
	t.line("", append(top, "Heap", "Heap", "Heap")...)
	t.line("", append(under, "Size", "Alloc", "Free")...)
	t.line("", append(line, "------", "------", "------")...)
}

func (t *meminfoTable) table() {
	top := []any{"Pss", "Private", "Private", t.swapTitle()}
	under := []any{"Total", "Dirty", "Clean", "Dirty"}
	if t.full {
		top = []any{"Pss", "Pss", "Shared", "Private", "Shared", "Private", t.swapTitle()}
		under = []any{"Total", "Clean", "Dirty", "Dirty", "Clean", "Clean", "Dirty"}
	}
	if t.API >= 30 {
		top, under = append(top, "Rss"), append(under, "Total")
	}
	t.heading(top, under)
	names, rows := t.rows()
	var all Memory
	for i, m := range rows {
		all = all.Plus(m)
		t.line(names[i], append(t.cells(m), t.heapCells(names[i])...)...)
	}
	cells, total := t.cells(all), all.Pss
	if t.swapInTotal {
		total += all.SwapPss
	}
	cells[0] = total
	if t.API == 30 && !t.full {
		// In the Rss column, Android 11 prints the Pss again.
		cells[len(cells)-1] = total
	}
	heaps := t.NativeHeap.Plus(t.JavaHeap)
	t.line("TOTAL", append(cells, heaps.Size, heaps.Alloc, heaps.Free)...)
}

// cells returns the columns with the kernel's numbers. Android's Pss Clean is
// the part of Pss that is neither private dirty nor shared dirty; here it is
// estimated from the private part alone.
func (t *meminfoTable) cells(m Memory) []any {
	cells := []any{m.Pss, m.PrivateDirty, m.PrivateClean, t.swap(m)}
	if t.full {
		clean := min(m.Pss, m.PrivateClean)
		cells = []any{m.Pss, clean, m.SharedDirty, m.PrivateDirty, m.SharedClean, m.PrivateClean, t.swap(m)}
	}
	if t.API >= 30 {
		cells = append(cells, m.Rss)
	}
	return cells
}

func (t *meminfoTable) heapCells(name string) []any {
	switch name {
	case "Native Heap", "Native":
		return []any{t.NativeHeap.Size, t.NativeHeap.Alloc, t.NativeHeap.Free}
	case "Dalvik Heap", "Dalvik":
		return []any{t.JavaHeap.Size, t.JavaHeap.Alloc, t.JavaHeap.Free}
	}
	return []any{"", "", ""}
}

func (t *meminfoTable) details() {
	t.full = false
	t.b.WriteString(" \n Dalvik Details\n")
	for _, d := range t.Details {
		if d.Memory != (Memory{Size: d.Size}) {
			t.line(d.Name, append(t.cells(d.Memory), "", "", "")...)
		}
	}
}

// jellyBean prints the table of Android 4.3 and earlier, which has no driver
// memory.
func (t *meminfoTable) jellyBean() {
	t.heading([]any{"", "Shared", "Private"}, []any{"Pss", "Dirty", "Dirty"})
	var all Memory
	for _, l := range []struct {
		name string
		rows []Row
	}{
		{"Native", []Row{NativeHeap}}, {"Dalvik", []Row{DalvikHeap, DalvikOther, ArtMmap}}, {"Cursor", nil},
		{"Ashmem", []Row{Ashmem}}, {"Other dev", []Row{OtherDev, GfxDev}}, {".so mmap", []Row{SoMmap}},
		{".jar mmap", []Row{JarMmap}}, {".apk mmap", []Row{ApkMmap}}, {".ttf mmap", []Row{TtfMmap}},
		{".dex mmap", []Row{DexMmap, OatMmap}}, {"Other mmap", []Row{OtherMmap}}, {"Unknown", []Row{Unknown, Stack}},
	} {
		var m Memory
		if l.rows != nil {
			m = t.Rows.Sum(l.rows...)
		}
		all = all.Plus(m)
		t.line(l.name, append([]any{m.Pss, m.SharedDirty, m.PrivateDirty}, t.heapCells(l.name)...)...)
	}
	heaps := t.NativeHeap.Plus(t.JavaHeap)
	t.line("TOTAL", all.Pss, all.SharedDirty, all.PrivateDirty, heaps.Size, heaps.Alloc, heaps.Free)
}

func (t *meminfoTable) summary() {
	s, swap := t.Rows.Summarize(t.JIT, t.swapInTotal), t.swap(t.Rows.Sum())
	t.b.WriteString(" \n App Summary\n")
	swapName := "TOTAL SWAP (KB):"
	if t.swapInTotal {
		swapName = "TOTAL SWAP PSS:"
	}
	for _, l := range []struct {
		name     string
		pss, rss any
	}{
		{"", "Pss(KB)", "Rss(KB)"}, {"", "------", "------"},
		{"Java Heap:", s.JavaHeap, s.JavaHeapRss}, {"Native Heap:", s.NativeHeap, s.NativeHeapRss},
		{"Code:", s.Code, s.CodeRss}, {"Stack:", s.Stack, s.StackRss}, {"Graphics:", s.Graphics, s.GraphicsRss},
		{"Private Other:", s.PrivateOther, nil}, {"System:", s.System, nil}, {"Unknown:", "", s.UnknownRss},
	} {
		switch {
		case t.API < 30 && l.pss == "":
		case t.API < 30 || l.rss == nil:
			fmt.Fprintf(&t.b, "%21s %8v\n", l.name, l.pss)
		default:
			fmt.Fprintf(&t.b, "%21s %8v %21s %8v\n", l.name, l.pss, "", l.rss)
		}
	}
	t.b.WriteString(" \n")
	if t.API < 30 {
		t.pair("TOTAL:", s.Total, swapName, swap)
		return
	}
	fmt.Fprintf(&t.b, "%21s %8d %21s %8d %21s %8d\n", "TOTAL PSS:", s.Total, "TOTAL RSS:", s.TotalRss, swapName, swap)
}

func (t *meminfoTable) pair(a string, n any, b string, m any) {
	fmt.Fprintf(&t.b, "%21s %8v %21s %8v\n", a, n, b, m)
}

func (t *meminfoTable) one(name string, n int) { fmt.Fprintf(&t.b, "%21s %8d\n", name, n) }

// objects prints the object counts and the sections that follow them.
func (t *meminfoTable) objects() {
	o := t.Objects
	t.b.WriteString(" \n Objects\n")
	t.pair("Views:", o.Views, "ViewRootImpl:", o.ViewRoots)
	t.pair("AppContexts:", o.AppContexts, "Activities:", o.Activities)
	t.pair("Assets:", o.Assets, "AssetManagers:", o.AssetManagers)
	t.pair("Local Binders:", o.LocalBinders, "Proxy Binders:", o.ProxyBinders)
	if t.API >= 23 {
		t.pair("Parcel memory:", o.ParcelKB, "Parcel count:", o.Parcels)
	}
	switch {
	case t.API < 23:
		t.one("Death Recipients:", o.DeathRecipients)
		t.one("OpenSSL Sockets:", o.Sockets)
	case t.API < 34:
		t.pair("Death Recipients:", o.DeathRecipients, "OpenSSL Sockets:", o.Sockets)
		if t.API >= 28 {
			t.one("WebViews:", o.WebViews)
		}
	default:
		t.pair("Death Recipients:", o.DeathRecipients, "WebViews:", o.WebViews)
	}
	if t.API >= 35 && len(t.Allocations) > 0 {
		t.b.WriteString(" \n Native Allocations\n")
		t.pair("", "Count", "", "Total(kB)")
		t.pair("", "------", "", "------")
		for _, a := range t.Allocations {
			t.pair(a.Name, a.Count, "", a.KB)
		}
	}
	t.b.WriteString(" \n SQL\n")
	t.one("MEMORY_USED:", t.SQL.MemoryUsed)
	t.pair("PAGECACHE_OVERFLOW:", t.SQL.CacheOverflow, "MALLOC_SIZE:", t.SQL.LargestAllocation)
	if len(t.Databases) > 0 {
		t.b.WriteString(" \n DATABASES\n      pgsz     dbsz   Lookaside(b)          cache  Dbname\n")
		for _, d := range t.Databases {
			fmt.Fprintf(&t.b, "%10d %8d %14d %14s  %s\n", d.PageSize, d.Size, d.Lookaside, d.Cache, d.Name)
		}
	}
	t.b.WriteString(" \n")
}

// ProcessPss is one process in the overview of the entire phone.
type ProcessPss struct {
	Name string
	PID  int
	KB   int64
}

// MeminfoOverview returns the output of `dumpsys meminfo` without a process: a
// list of the given processes, and their sum compared with the memory of the
// phone, in kB.
func MeminfoOverview(api int, up time.Duration, processes []ProcessPss, ramKB int64) string {
	var b strings.Builder
	b.WriteString(MeminfoHead(api, up) + "\nTotal PSS by process:\n")
	var used int64
	for _, p := range processes {
		used += p.KB
		fmt.Fprintf(&b, "%11s: %s (pid %d)\n", thousands(p.KB), p.Name, p.PID)
	}
	fmt.Fprintf(&b, "\nTotal RAM: %s (status normal)\n Free RAM: %s\n Used RAM: %s\n",
		thousands(ramKB), thousands(max(ramKB-used, 0)), thousands(used))
	return b.String()
}

// thousands formats kB as 123,456K.
func thousands(kb int64) string {
	text := strconv.FormatInt(kb, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text + "K"
}
