package androidsim

import "math"

// row is a row of the table of dumpsys meminfo, in its order
// (android.os.Debug.MemoryInfo.getOtherLabel).
type row int

const (
	rowNative row = iota
	rowDalvik
	rowDalvikOther
	rowStack
	rowAshmem
	rowGfxDev
	rowOtherDev
	rowSO
	rowJAR
	rowAPK
	rowTTF
	rowDEX
	rowOAT
	rowART
	rowOtherMmap
	rowEGL
	rowGL
	rowUnknown
	numRows
)

var rowNames = [numRows]string{
	"Native Heap", "Dalvik Heap", "Dalvik Other", "Stack", "Ashmem", "Gfx dev", "Other dev", ".so mmap", ".jar mmap", ".apk mmap",
	".ttf mmap", ".dex mmap", ".oat mmap", ".art mmap", "Other mmap", "EGL mtrack", "GL mtrack", "Unknown",
}

// mapped tells whether smaps sees the row.
func (r row) mapped() bool { return r != rowEGL && r != rowGL }

// anonymous tells whether dirty pages of the row are anonymous memory; those of
// the others belong to a driver or to shared memory.
func (r row) anonymous() bool {
	return r.mapped() && r != rowGfxDev && r != rowAshmem && r != rowOtherDev
}

// usage is memory in kB. Private swap is the only swap there is, so Swap and
// SwapPss are the same.
type usage struct {
	privateDirty, privateClean int64
	sharedDirty, sharedClean   int64
	// sharedPss is the process's part of the shared pages.
	sharedPss int64
	swap      int64
}

func (u usage) private() int64 { return u.privateDirty + u.privateClean }
func (u usage) pss() int64     { return u.private() + u.sharedPss }
func (u usage) rss() int64     { return u.private() + u.sharedDirty + u.sharedClean }

func (u usage) plus(v usage) usage {
	return usage{
		u.privateDirty + v.privateDirty, u.privateClean + v.privateClean,
		u.sharedDirty + v.sharedDirty, u.sharedClean + v.sharedClean, u.sharedPss + v.sharedPss, u.swap + v.swap,
	}
}

// pages cuts kB to whole pages of 4 kB.
func pages(kb float64) int64 { return int64(kb/4) * 4 }

// memory is what a process uses at one moment.
type memory struct {
	rows    [numRows]usage
	threads int
	leaked  float64
	// leakedActivities is how many Activities what is leaked shows as.
	leakedActivities int
	// files are open file descriptors; reserved are kB of address space that nothing
	// has touched.
	files    int
	reserved int64
}

// sharers is how many processes share a page that is not private, on average.
const sharers = 6

// part is what a row gets of a dimension.
type part struct {
	row   row
	share float64
	dirty bool
}

// The rows of the dimensions that have several; what is left over goes to the
// first. They follow the recorded breakdown of an app on Android 14 to 16.
var (
	codeParts = []part{
		{rowSO, 0, false}, {rowSO, .06, true}, {rowJAR, .08, false}, {rowAPK, .16, false}, {rowTTF, .03, false},
		{rowDEX, .03, true}, {rowDEX, .24, false}, {rowOAT, .06, false},
	}
	otherParts = []part{
		{rowUnknown, 0, true}, {rowDalvikOther, .16, true}, {rowAshmem, .01, true}, {rowOtherDev, .01, true},
		{rowOtherMmap, .01, true}, {rowOtherMmap, .09, false},
	}
	sharedParts = []part{
		{rowSO, 0, false}, {rowJAR, .12, false}, {rowART, .14, true}, {rowOAT, .06, false}, {rowDEX, .04, false}, {rowAPK, .04, false},
		{rowTTF, .03, false}, {rowDalvikOther, .08, true}, {rowOtherMmap, .10, false}, {rowNative, .004, true}, {rowDalvik, .01, true},
	}
)

// spread hands out total kB over parts, in whole units of kB.
func spread(parts []part, total, unit int64, give func(part, int64)) {
	rest := total
	for _, p := range parts[1:] {
		n := int64(p.share*float64(total)) / unit * unit
		rest -= n
		give(p, n)
	}
	give(parts[0], rest)
}

// layout spreads levels over rows. Every private kB of a dimension, less what is
// swapped, comes out in the rows that the App Summary adds up for it.
func layout(l levels, threads int) memory {
	m := memory{threads: threads, leaked: l.leaked, files: l.files, reserved: pages(l.reserved * 1024)}
	kb := func(d Dimension) int64 { return pages(l.mb[d] * 1024) }
	java := kb(JavaHeap)
	art := pages(math.Min(float64(java)/8, 9216))
	artClean := pages(float64(art) / 9)
	m.rows[rowART] = usage{privateDirty: art - artClean, privateClean: artClean}
	m.rows[rowDalvik].privateDirty = java - art
	m.rows[rowNative].privateDirty = kb(NativeHeap)
	m.rows[rowStack].privateDirty = kb(Stack)
	m.rows[rowEGL].privateDirty = kb(EGL)
	m.rows[rowGL].privateDirty = kb(GL)
	m.rows[rowGfxDev].privateDirty = kb(GfxDev)
	spread(codeParts, kb(Code), 4, m.own)
	spread(otherParts, kb(Other), 4, m.own)
	spread(sharedParts, kb(Shared), 1, m.share)
	m.swapOut(l.swapped)
	return m
}

// own adds private pages of n kB.
func (m *memory) own(p part, n int64) {
	if p.dirty {
		m.rows[p.row].privateDirty += n
	} else {
		m.rows[p.row].privateClean += n
	}
}

// share adds pages that other processes map too, n kB of Pss.
func (m *memory) share(p part, n int64) {
	u := &m.rows[p.row]
	u.sharedPss += n
	mapped := (n*sharers + 3) / 4 * 4
	if p.dirty {
		u.sharedDirty += mapped
	} else {
		u.sharedClean += mapped
	}
}

// swapOut moves a part of the private anonymous pages to swap.
func (m *memory) swapOut(part float64) {
	for r := range numRows {
		if u := &m.rows[r]; r.anonymous() {
			u.swap = pages(part * float64(u.privateDirty))
			u.privateDirty -= u.swap
		}
	}
}

// sum adds rows up; without any it adds all.
func (m memory) sum(rows ...row) usage {
	var u usage
	if len(rows) == 0 {
		for _, v := range m.rows {
			u = u.plus(v)
		}
		return u
	}
	for _, r := range rows {
		u = u.plus(m.rows[r])
	}
	return u
}

// mapped is what smaps shows in all.
func (m memory) mapped() usage {
	var u usage
	for r, v := range m.rows {
		if row(r).mapped() {
			u = u.plus(v)
		}
	}
	return u
}

// resident splits the mapped Rss as /proc/PID/status does.
func (m memory) resident() (anonymous, file, shmem int64) {
	for r := range numRows {
		u := m.rows[r]
		switch {
		case !r.mapped():
		case r.anonymous():
			anonymous += u.privateDirty + u.sharedDirty
			file += u.privateClean + u.sharedClean
		default:
			shmem += u.rss()
		}
	}
	return anonymous, file, shmem
}

// summary is the App Summary (android.os.Debug.MemoryInfo.getSummary*).
type summary struct {
	java, native, code, stack, graphics, other, system, total int64
	javaRSS, nativeRSS, codeRSS, stackRSS, graphicsRSS        int64
	unknownRSS, rss, swap                                     int64
}

// summarize adds up the App Summary; swapCounts says whether TOTAL has SwapPss in it.
func (m memory) summarize(swapCounts bool) summary {
	java := m.sum(rowDalvik, rowART)
	code := m.sum(rowSO, rowJAR, rowAPK, rowTTF, rowDEX, rowOAT)
	graphics := m.sum(rowGfxDev, rowEGL, rowGL)
	all := m.sum()
	s := summary{
		java: java.private(), native: m.rows[rowNative].privateDirty, code: code.private(),
		stack: m.rows[rowStack].privateDirty, graphics: graphics.private(), total: all.pss(), swap: all.swap, rss: all.rss(),
		nativeRSS: m.rows[rowNative].rss(), codeRSS: code.rss(), stackRSS: m.rows[rowStack].rss(), graphicsRSS: graphics.rss(), javaRSS: java.rss(),
	}
	if swapCounts {
		s.total += all.swap
	}
	s.other = all.private() - s.java - s.native - s.code - s.stack - s.graphics
	s.system = s.total - all.private()
	s.unknownRSS = s.rss - s.javaRSS - s.nativeRSS - s.codeRSS - s.stackRSS - s.graphicsRSS
	return s
}
