package androidsim

import (
	"math"

	"github.com/leakgate/leakgate/internal/androidtext"
)

func isMapped(r androidtext.Row) bool { return r != androidtext.EGLMtrack && r != androidtext.GLMtrack }

// isAnonymous reports whether dirty pages of the row are anonymous memory; in
// other rows they belong to a driver or to shared memory.
func isAnonymous(r androidtext.Row) bool {
	return isMapped(r) && r != androidtext.GfxDev && r != androidtext.Ashmem && r != androidtext.OtherDev
}

// usage is an amount of memory by type of page, in kB. All swap is private, so
// Swap and SwapPss are equal.
type usage struct {
	privateDirty, privateClean int64
	sharedDirty, sharedClean   int64
	// sharedPss is the process's share of the shared pages.
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

// pages rounds kB down to whole pages of 4 kB.
func pages(kb float64) int64 { return int64(kb/4) * 4 }

type memory struct {
	rows    [androidtext.NumRows]usage
	threads int
	leaked  float64
	// leakedActivities is the number of Activities that make up the leak.
	leakedActivities int
	// files is the number of open file descriptors; reserved is untouched
	// address space, in kB.
	files    int
	reserved int64
}

// sharers is the average number of processes that share a page.
const sharers = 6

type part struct {
	row   androidtext.Row
	share float64
	dirty bool
}

// How a dimension with several rows is distributed over them; the first row
// gets the remainder. The shares follow a recorded breakdown of an app on
// Android 14 to 16.
var (
	codeParts = []part{
		{androidtext.SoMmap, 0, false}, {androidtext.SoMmap, .06, true}, {androidtext.JarMmap, .08, false},
		{androidtext.ApkMmap, .16, false}, {androidtext.TtfMmap, .03, false},
		{androidtext.DexMmap, .03, true}, {androidtext.DexMmap, .24, false}, {androidtext.OatMmap, .06, false},
	}
	otherParts = []part{
		{androidtext.Unknown, 0, true}, {androidtext.DalvikOther, .16, true}, {androidtext.Ashmem, .01, true},
		{androidtext.OtherDev, .01, true},
		{androidtext.OtherMmap, .01, true}, {androidtext.OtherMmap, .09, false},
	}
	sharedParts = []part{
		{androidtext.SoMmap, 0, false}, {androidtext.JarMmap, .12, false}, {androidtext.ArtMmap, .14, true},
		{androidtext.OatMmap, .06, false}, {androidtext.DexMmap, .04, false}, {androidtext.ApkMmap, .04, false},
		{androidtext.TtfMmap, .03, false}, {androidtext.DalvikOther, .08, true}, {androidtext.OtherMmap, .10, false},
		{androidtext.NativeHeap, .004, true}, {androidtext.DalvikHeap, .01, true},
	}
)

// spread distributes total kB over parts, in multiples of unit.
func spread(parts []part, total, unit int64, give func(part, int64)) {
	rest := total
	for _, p := range parts[1:] {
		n := int64(p.share*float64(total)) / unit * unit
		rest -= n
		give(p, n)
	}
	give(parts[0], rest)
}

// layout distributes levels over rows. The App Summary of these rows has
// exactly the private kB of each dimension, minus what is swapped out.
func layout(l levels, threads int) memory {
	m := memory{threads: threads, leaked: l.leaked, files: l.files, reserved: pages(l.reserved * 1024)}
	kb := func(d Dimension) int64 { return pages(l.mb[d] * 1024) }
	java := kb(JavaHeap)
	art := pages(math.Min(float64(java)/8, 9216))
	artClean := pages(float64(art) / 9)
	m.rows[androidtext.ArtMmap] = usage{privateDirty: art - artClean, privateClean: artClean}
	m.rows[androidtext.DalvikHeap].privateDirty = java - art
	m.rows[androidtext.NativeHeap].privateDirty = kb(NativeHeap)
	m.rows[androidtext.Stack].privateDirty = kb(Stack)
	m.rows[androidtext.EGLMtrack].privateDirty = kb(EGL)
	m.rows[androidtext.GLMtrack].privateDirty = kb(GL)
	m.rows[androidtext.GfxDev].privateDirty = kb(GfxDev)
	spread(codeParts, kb(Code), 4, m.own)
	spread(otherParts, kb(Other), 4, m.own)
	spread(sharedParts, kb(Shared), 1, m.share)
	m.swapOut(l.swapped)
	return m
}

// own adds n kB of private pages.
func (m *memory) own(p part, n int64) {
	if p.dirty {
		m.rows[p.row].privateDirty += n
	} else {
		m.rows[p.row].privateClean += n
	}
}

// share adds n kB of Pss in pages shared with other processes.
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

// swapOut swaps out a fraction of the private anonymous pages.
func (m *memory) swapOut(part float64) {
	for r := range androidtext.NumRows {
		if u := &m.rows[r]; isAnonymous(r) {
			u.swap = pages(part * float64(u.privateDirty))
			u.privateDirty -= u.swap
		}
	}
}

// sum adds up the given rows, or all rows if none are given.
func (m memory) sum(rows ...androidtext.Row) usage {
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

// mapped returns the sum of the rows that appear in smaps.
func (m memory) mapped() usage {
	var u usage
	for r, v := range m.rows {
		if isMapped(androidtext.Row(r)) {
			u = u.plus(v)
		}
	}
	return u
}

// resident splits the mapped Rss into anonymous, file and shared memory, as
// /proc/PID/status does.
func (m memory) resident() (anonymous, file, shmem int64) {
	for r := range androidtext.NumRows {
		u := m.rows[r]
		switch {
		case !isMapped(r):
		case isAnonymous(r):
			anonymous += u.privateDirty + u.sharedDirty
			file += u.privateClean + u.sharedClean
		default:
			shmem += u.rss()
		}
	}
	return anonymous, file, shmem
}

func (u usage) text() androidtext.Memory {
	return androidtext.Memory{
		Rss: u.rss(), Pss: u.pss(), SharedClean: u.sharedClean, SharedDirty: u.sharedDirty,
		PrivateClean: u.privateClean, PrivateDirty: u.privateDirty, Swap: u.swap, SwapPss: u.swap,
	}
}

func (m memory) table() (rows androidtext.Rows) {
	for r, u := range m.rows {
		rows[r] = u.text()
	}
	return rows
}

// summarize returns the App Summary, whose total includes swap.
func (m memory) summarize() androidtext.Summary {
	rows := m.table()
	return rows.Summarize(androidtext.Memory{}, true)
}
