package androidsim

import (
	"fmt"
	"strings"
	"time"
)

// meminfo is the layout of dumpsys meminfo in one Android version
// (ActivityThread.dumpMemInfoTable; the recorded outputs name the changes).
type meminfo struct {
	api int
	// swapCounts: the table has a SwapPss column and TOTAL has it inside. The word
	// is chosen at run time by whether anything is swapped.
	swapCounts bool
}

func meminfoLayout(api int, m memory) meminfo {
	return meminfo{api: api, swapCounts: api >= 24 && m.sum().swap > 0}
}

// meminfoHead begins every output.
func meminfoHead(api int, up time.Duration) string {
	unit := "in Kilobytes"
	if api < 24 {
		unit = "kB"
	}
	return fmt.Sprintf("Applications Memory Usage (%s):\nUptime: %d Realtime: %d\n", unit, up.Milliseconds(), up.Milliseconds())
}

// block is the answer for one process. what chooses the parts.
func (f meminfo) block(v view, m memory, what meminfoParts) string {
	var b strings.Builder
	if !v.native {
		fmt.Fprintf(&b, "\n** MEMINFO in pid %d [%s] **\n", v.pid, v.name)
	}
	if !what.summaryOnly || f.api < 23 {
		switch {
		case f.api < 19:
			f.jellyBean(&b, v, m)
		case what.full:
			f.fullTable(&b, v, m)
		default:
			f.table(&b, v, m)
		}
		if what.dalvik && f.api >= 19 {
			f.dalvikDetails(&b, m)
		}
	}
	if f.api >= 23 {
		f.summary(&b, m)
	}
	if v.native || what.summaryOnly || what.local {
		return b.String()
	}
	f.objects(&b, v, m)
	return b.String()
}

// meminfoParts are the options of the command that change what is printed.
type meminfoParts struct {
	full, dalvik, summaryOnly, local bool
}

func rowf(b *strings.Builder, width int, name string, cells ...any) {
	fmt.Fprintf(b, "%*s", width, name)
	for _, c := range cells {
		fmt.Fprintf(b, " %8v", c)
	}
	b.WriteByte('\n')
}

// heap gives Heap Size, Heap Alloc and Heap Free of a heap of so many kB.
func heap(kb int64) [3]int64 {
	size := kb + kb/4 + 512
	return [3]int64{size, kb - kb/16, size - kb + kb/16}
}

func (f meminfo) heaps(m memory) (native, dalvik, total [3]int64) {
	grown := func(r row) int64 { return m.rows[r].privateDirty + m.rows[r].swap }
	native, dalvik = heap(grown(rowNative)), heap(grown(rowDalvik))
	for i := range total {
		total[i] = native[i] + dalvik[i]
	}
	return native, dalvik, total
}

// rows are the rows of the table in this version's words and order.
func (f meminfo) rows(m memory) (names []string, rows []usage) {
	add := func(name string, u usage) {
		names, rows = append(names, name), append(rows, u)
	}
	for r := range numRows {
		u, name := m.rows[r], rowNames[r]
		switch {
		case f.api < 21 && (r == rowOAT || r == rowART || r == rowGfxDev):
			continue // folded below
		case f.api < 21 && r == rowOtherDev:
			// Before Android 5 the GPU's node is a device like any other.
			u = u.plus(m.rows[rowGfxDev])
		case f.api < 21 && r == rowDEX:
			u = u.plus(m.rows[rowOAT])
		case f.api < 21 && r == rowDalvik:
			u = u.plus(m.rows[rowART])
		case f.api < 21 && r == rowEGL:
			name = "Graphics"
		case f.api < 21 && r == rowGL:
			name = "GL"
		}
		if r != rowNative && r != rowDalvik && u == (usage{}) {
			continue
		}
		add(name, u)
	}
	return names, rows
}

func (f meminfo) swapTitle() string {
	switch {
	case f.api < 24:
		return "Swapped"
	case f.swapCounts:
		return "SwapPss"
	}
	return "Swap"
}

// table is the usual table.
func (f meminfo) table(b *strings.Builder, v view, m memory) {
	top := []any{"Pss", "Private", "Private", f.swapTitle()}
	under := []any{"Total", "Dirty", "Clean", "Dirty"}
	line := []any{"------", "------", "------", "------"}
	if f.api >= 30 {
		top, under, line = append(top, "Rss"), append(under, "Total"), append(line, "------")
	}
	f.heading(b, 13, top, under, line)
	native, dalvik, heaps := f.heaps(m)
	names, rows := f.rows(m)
	var all usage
	for i, u := range rows {
		all = all.plus(u)
		cells := []any{u.pss(), u.privateDirty, u.privateClean, u.swap}
		if f.api >= 30 {
			cells = append(cells, u.rss())
		}
		rowf(b, 13, names[i], append(cells, heapCells(names[i], native, dalvik)...)...)
	}
	total := all.pss()
	if f.swapCounts {
		total += all.swap
	}
	cells := []any{total, all.privateDirty, all.privateClean, all.swap}
	switch {
	case f.api == 30:
		// Android 11 prints the Pss again where the Rss should be.
		cells = append(cells, total)
	case f.api > 30:
		cells = append(cells, all.rss())
	}
	rowf(b, 13, "TOTAL", append(cells, heaps[0], heaps[1], heaps[2])...)
}

func (f meminfo) heading(b *strings.Builder, width int, top, under, line []any) {
	rowf(b, width, "", append(top, "Heap", "Heap", "Heap")...)
	rowf(b, width, "", append(under, "Size", "Alloc", "Free")...)
	rowf(b, width, "", append(line, "------", "------", "------")...)
}

func heapCells(name string, native, dalvik [3]int64) []any {
	switch name {
	case "Native Heap", "Native":
		return []any{native[0], native[1], native[2]}
	case "Dalvik Heap", "Dalvik":
		return []any{dalvik[0], dalvik[1], dalvik[2]}
	}
	return []any{"", "", ""}
}

// fullTable is the table of `dumpsys meminfo -a`.
func (f meminfo) fullTable(b *strings.Builder, v view, m memory) {
	top := []any{"Pss", "Pss", "Shared", "Private", "Shared", "Private", f.swapTitle()}
	under := []any{"Total", "Clean", "Dirty", "Dirty", "Clean", "Clean", "Dirty"}
	line := []any{"------", "------", "------", "------", "------", "------", "------"}
	if f.api >= 30 {
		top, under, line = append(top, "Rss"), append(under, "Total"), append(line, "------")
	}
	f.heading(b, 13, top, under, line)
	native, dalvik, heaps := f.heaps(m)
	names, rows := f.rows(m)
	row := func(name string, total int64, u usage, heap []any) {
		cells := []any{total, u.privateClean, u.sharedDirty, u.privateDirty, u.sharedClean, u.privateClean, u.swap}
		if f.api >= 30 {
			cells = append(cells, u.rss())
		}
		rowf(b, 13, name, append(cells, heap...)...)
	}
	var all usage
	for i, u := range rows {
		all = all.plus(u)
		row(names[i], u.pss(), u, heapCells(names[i], native, dalvik))
	}
	total := all.pss()
	if f.swapCounts {
		total += all.swap
	}
	row("TOTAL", total, all, []any{heaps[0], heaps[1], heaps[2]})
}

// dalvikDetails is what -d adds: the parts of the Dalvik rows.
func (f meminfo) dalvikDetails(b *strings.Builder, m memory) {
	b.WriteString(" \n Dalvik Details\n")
	detail := func(name string, u usage) {
		if u == (usage{}) {
			return
		}
		cells := []any{u.pss(), u.privateDirty, u.privateClean, u.swap}
		if f.api >= 30 {
			cells = append(cells, u.rss())
		}
		rowf(b, 13, name, append(cells, "", "", "")...)
	}
	dalvik := m.rows[rowDalvik].cut(8)
	los, zygote := dalvik[1], dalvik[2]
	for _, more := range dalvik[3:] {
		dalvik[0] = dalvik[0].plus(more)
	}
	detail(".Heap", dalvik[0])
	detail(".LOS", los)
	detail(".Zygote", zygote)
	other := m.rows[rowDalvikOther].cut(2)
	detail(".LinearAlloc", other[0])
	detail(".GC", other[1])
	detail(".Boot art", m.rows[rowART])
}

// jellyBean is the table of Android 4.3 and before. Driver memory is not in it.
func (f meminfo) jellyBean(b *strings.Builder, v view, m memory) {
	f.heading(b, 13, []any{"", "Shared", "Private"}, []any{"Pss", "Dirty", "Dirty"}, []any{"------", "------", "------"})
	native, dalvik, heaps := f.heaps(m)
	var all usage
	row := func(name string, rows ...row) {
		var u usage
		if len(rows) > 0 {
			u = m.sum(rows...)
		}
		all = all.plus(u)
		rowf(b, 13, name, append([]any{u.pss(), u.sharedDirty, u.privateDirty}, heapCells(name, native, dalvik)...)...)
	}
	row("Native", rowNative)
	row("Dalvik", rowDalvik, rowDalvikOther, rowART)
	row("Cursor")
	row("Ashmem", rowAshmem)
	row("Other dev", rowOtherDev, rowGfxDev)
	row(".so mmap", rowSO)
	row(".jar mmap", rowJAR)
	row(".apk mmap", rowAPK)
	row(".ttf mmap", rowTTF)
	row(".dex mmap", rowDEX, rowOAT)
	row("Other mmap", rowOtherMmap)
	row("Unknown", rowUnknown, rowStack)
	rowf(b, 13, "TOTAL", all.pss(), all.sharedDirty, all.privateDirty, heaps[0], heaps[1], heaps[2])
}

func (f meminfo) summary(b *strings.Builder, m memory) {
	s := m.summarize(f.swapCounts)
	b.WriteString(" \n App Summary\n")
	swap := "TOTAL SWAP (KB):"
	if f.swapCounts {
		swap = "TOTAL SWAP PSS:"
	}
	lines := []struct {
		name     string
		pss, rss any
	}{
		{"", "Pss(KB)", "Rss(KB)"}, {"", "------", "------"},
		{"Java Heap:", s.java, s.javaRSS}, {"Native Heap:", s.native, s.nativeRSS}, {"Code:", s.code, s.codeRSS}, {"Stack:", s.stack, s.stackRSS},
		{"Graphics:", s.graphics, s.graphicsRSS}, {"Private Other:", s.other, nil}, {"System:", s.system, nil}, {"Unknown:", "", s.unknownRSS},
	}
	for _, l := range lines {
		switch {
		case f.api < 30 && l.pss == "":
		case f.api < 30 || l.rss == nil:
			fmt.Fprintf(b, "%21s %8v\n", l.name, l.pss)
		default:
			fmt.Fprintf(b, "%21s %8v %21s %8v\n", l.name, l.pss, "", l.rss)
		}
	}
	if f.api < 30 {
		fmt.Fprintf(b, " \n%21s %8d %21s %8d\n", "TOTAL:", s.total, swap, s.swap)
		return
	}
	fmt.Fprintf(b, " \n%21s %8d %21s %8d %21s %8d\n", "TOTAL PSS:", s.total, "TOTAL RSS:", s.rss, swap, s.swap)
}

// mbPerActivity is the Java memory of a leaked Activity.
const mbPerActivity = 2

// objects are the counts at the end. A Java leak shows as Activities that stay.
func (f meminfo) objects(b *strings.Builder, v view, m memory) {
	n := v.counts(m)
	blank := " \n"
	pair := func(a string, n int, c string, k int) { fmt.Fprintf(b, "%21s %8d %21s %8d\n", a, n, c, k) }
	one := func(a string, n int) { fmt.Fprintf(b, "%21s %8d\n", a, n) }
	b.WriteString(blank + " Objects\n")
	pair("Views:", n.views, "ViewRootImpl:", n.roots)
	pair("AppContexts:", 4+n.activities, "Activities:", n.activities)
	pair("Assets:", 12, "AssetManagers:", 0)
	pair("Local Binders:", 21, "Proxy Binders:", 38)
	if f.api >= 23 {
		pair("Parcel memory:", 11, "Parcel count:", 46)
	}
	switch {
	case f.api < 23:
		one("Death Recipients:", 1)
		one("OpenSSL Sockets:", 2)
	case f.api < 28:
		pair("Death Recipients:", 1, "OpenSSL Sockets:", 2)
	case f.api < 34:
		pair("Death Recipients:", 1, "OpenSSL Sockets:", 2)
		one("WebViews:", 0)
	default:
		pair("Death Recipients:", 1, "WebViews:", 0)
	}
	if f.api >= 35 {
		b.WriteString(blank + " Native Allocations\n")
		fmt.Fprintf(b, "%21s %8s %21s %8s\n%21s %8s %21s %8s\n", "", "Count", "", "Total(kB)", "", "------", "", "------")
		for _, l := range []struct {
			name      string
			count, kb int
		}{{"Other (malloced):", 479, 44}, {"Other (nonmalloced):", 213, 126}, {"Bitmap (malloced):", 63, 2729}} {
			fmt.Fprintf(b, "%21s %8d %21s %8d\n", l.name, l.count, "", l.kb)
		}
	}
	b.WriteString(blank + " SQL\n")
	one("MEMORY_USED:", 462)
	pair("PAGECACHE_OVERFLOW:", 83, "MALLOC_SIZE:", 62)
	fmt.Fprintf(b, "%s DATABASES\n      pgsz     dbsz   Lookaside(b)          cache  Dbname\n", blank)
	fmt.Fprintf(b, "%10d %8d %14d %14s  %s\n%s", 4, 48, 37, "11/22/4", "/data/user/0/"+v.pkg()+"/databases/sample.db", blank)
}
