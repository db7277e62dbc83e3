package androidsim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/androidtext"
)

// mapping is one virtual memory area of a process.
type mapping struct {
	start, end uint64
	perms      string
	file       bool
	name       string
	row        androidtext.Row
	usage
}

func (m mapping) size() int64 { return int64(m.end-m.start) / 1024 }

// anonymousKB returns the Anonymous line: pages that do not belong to a file.
func (m mapping) anonymousKB() int64 {
	if !isAnonymous(m.row) {
		return 0
	}
	return m.privateDirty + m.sharedDirty
}

// names returns the names of a row's areas; the rules of AOSP
// (core/jni/android_os_Debug.cpp, later system/memory androidprocheaps) map all
// of them to this row.
func names(r androidtext.Row, v view, api int) []string {
	dalvik, app := "/dev/ashmem/dalvik-", appCode(v.pkg(), api)
	if api >= 29 {
		dalvik = "[anon:dalvik-"
	}
	lib, isa := "lib64", "arm64"
	if v.bits32 {
		lib, isa = "lib", "arm"
	}
	anon := func(s string) string {
		if strings.HasPrefix(dalvik, "[") {
			return dalvik + s + "]"
		}
		return dalvik + s + " (deleted)"
	}
	switch r {
	case androidtext.NativeHeap:
		switch {
		case api >= 30:
			return []string{"[anon:scudo:primary]", "[anon:scudo:secondary]"}
		case api >= 24:
			return []string{"[anon:libc_malloc]"}
		}
		return []string{"[heap]"}
	case androidtext.DalvikHeap:
		if api >= 26 {
			return []string{anon("main space (region space)"), anon("zygote space")}
		}
		return []string{anon("main space"), anon("zygote space")}
	case androidtext.DalvikOther:
		return []string{anon("LinearAlloc"), anon("indirect ref table"), anon("card table")}
	case androidtext.Ashmem:
		return []string{"/dev/ashmem/MemoryHeapBase (deleted)"}
	case androidtext.GfxDev:
		return []string{"/dev/kgsl-3d0"}
	case androidtext.OtherDev:
		return []string{"/dev/__properties__/properties_serial"}
	case androidtext.SoMmap:
		return []string{
			"/system/" + lib + "/libhwui.so", "/system/" + lib + "/libandroid_runtime.so",
			"/system/" + lib + "/libc.so", app + "/lib/" + isa + "/libapp.so",
		}
	case androidtext.JarMmap:
		return []string{"/system/framework/framework.jar", "/system/framework/core-oj.jar"}
	case androidtext.ApkMmap:
		return []string{app + "/base.apk", "/system/framework/framework-res.apk"}
	case androidtext.TtfMmap:
		return []string{"/system/fonts/Roboto-Regular.ttf"}
	case androidtext.DexMmap:
		return []string{app + "/oat/" + isa + "/base.vdex", app + "/oat/" + isa + "/base.odex"}
	case androidtext.OatMmap:
		return []string{"/system/framework/" + isa + "/boot.oat"}
	case androidtext.ArtMmap:
		if api >= 29 {
			return []string{"[anon:dalvik-/system/framework/boot.art]"}
		}
		return []string{"/data/dalvik-cache/" + isa + "/system@framework@boot.art"}
	case androidtext.OtherMmap:
		return []string{"/data/data/" + v.pkg() + "/files/store.db", "/system/usr/share/zoneinfo/tzdata"}
	}
	return []string{""}
}

const (
	// maxArea is the maximum size of one area of a growing heap, in kB.
	maxArea = 64 << 10
	// maxAreas is the maximum number of areas of one row; the areas of a very
	// large row are larger than maxArea instead.
	maxAreas = 256
	// areaGap is the distance between two areas, in bytes.
	areaGap = 0x10000
)

// areas returns the mappings of a process sorted by address. The memory usage
// of the mappings adds up exactly to that of the rows.
func (m memory) areas(v view, api int) []mapping {
	var out []mapping
	at := uint64(0x12c00000)
	if v.bits32 {
		at = 0x8000 // the address space is scarce
	}
	var used int64
	for r := range androidtext.NumRows {
		u := m.rows[r]
		if !isMapped(r) || u == (usage{}) {
			continue
		}
		called := names(r, v, api)
		if r == androidtext.Stack {
			called = stackNames(v, m.threads, api)
		}
		n := max(len(called), int(u.rss()/maxArea)+1)
		for i, piece := range u.cut(min(n, maxAreas)) {
			name := called[i%len(called)]
			area := mapping{name: name, row: r, file: strings.HasPrefix(name, "/"), usage: piece, perms: perms(r)}
			size := (piece.rss()+piece.swap+3)/4*4 + 32
			area.start, area.end = at, at+uint64(size)*1024
			at = area.end + areaGap
			used += area.size()
			out = append(out, area)
		}
		if r == androidtext.DalvikHeap && !v.bits32 {
			at = 0x70000000 + at&^0xfff
		}
	}
	for _, area := range m.empty(v, used) {
		area.start, area.end = at, at+area.end
		at = area.end + areaGap
		out = append(out, area)
	}
	return out
}

func perms(r androidtext.Row) string {
	switch r {
	case androidtext.SoMmap, androidtext.OatMmap:
		return "r-xp"
	case androidtext.JarMmap, androidtext.ApkMmap, androidtext.TtfMmap, androidtext.DexMmap:
		return "r--p"
	case androidtext.Ashmem, androidtext.GfxDev:
		return "rw-s"
	}
	return "rw-p"
}

func stackNames(v view, threads, api int) []string {
	out := []string{"[stack]"}
	for i := 1; i < min(threads, maxAreas); i++ {
		if api >= 29 {
			out = append(out, fmt.Sprintf("[anon:stack_and_tls:%d]", v.pid+i))
		} else {
			out = append(out, fmt.Sprintf("[stack:%d]", v.pid+i))
		}
	}
	return out
}

// cut splits a usage into n parts of whole pages; the first takes the
// remainder.
func (u usage) cut(n int) []usage {
	each := func(kb, unit int64) int64 { return kb / int64(n) / unit * unit }
	one := usage{
		each(u.privateDirty, 4), each(u.privateClean, 4), each(u.sharedDirty, 4), each(u.sharedClean, 4),
		each(u.sharedPss, 1), each(u.swap, 4),
	}
	out := make([]usage, n)
	for i := range out {
		out[i] = one
	}
	k := int64(n - 1)
	out[0] = usage{
		u.privateDirty - k*one.privateDirty, u.privateClean - k*one.privateClean, u.sharedDirty - k*one.sharedDirty,
		u.sharedClean - k*one.sharedClean, u.sharedPss - k*one.sharedPss, u.swap - k*one.swap,
	}
	return out
}

type kernel struct {
	swapPss, named, hugetlb, pssDirty, pssAnon, lazyFree, fileHuge bool
}

func kernelOf(api int) kernel {
	return kernel{
		swapPss: api >= 24, named: api >= 21, hugetlb: api >= 26, lazyFree: api >= 29, pssAnon: api >= 31,
		fileHuge: api >= 31, pssDirty: api >= 34,
	}
}

// fields writes the lines that smaps and smaps_rollup have in common
// (fs/proc/task_mmu.c, __show_smap).
func (k kernel) fields(b *strings.Builder, u usage, anonymous, anonymousPss int64, rollup bool) {
	line := func(name string, kb int64) {
		b.WriteString(name)
		b.WriteByte(':')
		digits := strconv.FormatInt(kb, 10)
		for range max(1, 23-len(name)-len(digits)) {
			b.WriteByte(' ')
		}
		b.WriteString(digits)
		b.WriteString(" kB\n")
	}
	line("Rss", u.rss())
	line("Pss", u.pss())
	if k.pssDirty {
		line("Pss_Dirty", anonymousPss)
	}
	if rollup && k.pssAnon {
		line("Pss_Anon", anonymousPss)
		line("Pss_File", u.pss()-anonymousPss)
		line("Pss_Shmem", 0)
	}
	line("Shared_Clean", u.sharedClean)
	line("Shared_Dirty", u.sharedDirty)
	line("Private_Clean", u.privateClean)
	line("Private_Dirty", u.privateDirty)
	line("Referenced", u.rss())
	line("Anonymous", anonymous)
	if k.lazyFree {
		line("LazyFree", 0)
	}
	line("AnonHugePages", 0)
	if k.hugetlb {
		line("ShmemPmdMapped", 0)
		if k.fileHuge {
			line("FilePmdMapped", 0)
		}
		line("Shared_Hugetlb", 0)
		line("Private_Hugetlb", 0)
	}
	line("Swap", u.swap)
	if k.swapPss {
		line("SwapPss", u.swap)
	}
	line("Locked", 0)
}

func (m memory) smapsText(v view, api int) string {
	var b strings.Builder
	k := kernelOf(api)
	for _, a := range m.areas(v, api) {
		a.header(&b)
		if k.named && strings.HasPrefix(a.name, "[anon:") {
			fmt.Fprintf(&b, "Name:           %s\n", a.name)
		}
		fmt.Fprintf(&b, "Size:           %8d kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\n", a.size())
		k.fields(&b, a.usage, a.anonymousKB(), a.anonymousPss(), false)
		b.WriteString(a.vmFlags())
	}
	return b.String()
}

// vmFlags returns the flags of an area other than its permissions.
func (m mapping) vmFlags() string {
	if m.perms == "---p" {
		return "VmFlags: mr mw me nr \n"
	}
	return "VmFlags: rd wr mr mw me ac \n"
}

func (m memory) mapsText(v view, api int) string {
	var b strings.Builder
	for _, a := range m.areas(v, api) {
		a.header(&b)
	}
	return b.String()
}

func (m mapping) header(b *strings.Builder) {
	device, inode := "00:00", uint64(0)
	if m.file {
		device, inode = "fe:00", hashText(m.name)%90000+1000
	}
	head := fmt.Sprintf("%08x-%08x %s %08x %s %d", m.start, m.end, m.perms, 0, device, inode)
	if m.name != "" {
		head = fmt.Sprintf("%-72s %s", head, m.name)
	}
	b.WriteString(head + "\n")
}

// anonymousPss returns the part of the Pss that is anonymous memory.
func (m mapping) anonymousPss() int64 {
	if !isAnonymous(m.row) {
		return 0
	}
	if m.sharedDirty > 0 {
		return m.privateDirty + m.sharedPss
	}
	return m.privateDirty
}

func (m memory) rollupText(v view, api int) string {
	var b strings.Builder
	areas := m.areas(v, api)
	start, end := uint64(0), uint64(0)
	var anonymous, anonymousPss int64
	for i, a := range areas {
		if i == 0 {
			start = a.start
		}
		end = a.end
		anonymous += a.anonymousKB()
		anonymousPss += a.anonymousPss()
	}
	fmt.Fprintf(&b, "%-72s %s\n", fmt.Sprintf("%08x-%08x ---p %08x 00:00 0", start, end, 0), "[rollup]")
	kernelOf(api).fields(&b, m.mapped(), anonymous, anonymousPss, true)
	return b.String()
}
