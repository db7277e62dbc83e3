package response

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// The summary of a recorded process agrees with the total in the file itself.
func TestRecordedTotals(t *testing.T) {
	for _, c := range []struct {
		recorded, file string
		pss, swap      int64
		line           string
	}{
		{"api36-memorylab-smaps.txt.gz", "smaps.txt", 282363, 162, "Pss + SwapPss 275.9 MB in 4068 mappings"},
		{"api36-memorylab-showmap.txt", "showmap.txt", 282367, 162, "Pss + SwapPss 275.9 MB in 1109 mappings"},
		{"api29-x86_64-systemserver-smaps.txt.gz", "smaps.txt", 108384, 0, "Pss + SwapPss 105.8 MB in 2760 mappings"},
		{"api29-x86_64-smaps_short.txt", "smaps.txt", 19119, 0, "Pss + SwapPss 18.7 MB in 6 mappings"},
	} {
		r := New(t.TempDir(), Options{})
		files := map[string][]byte{c.file: recorded.Read(t, "device", c.recorded)}
		got := analyzed(t, r, "native", nil, files)
		sum := composition(got.Now.maps()).Total.After
		if sum.PSS != c.pss || sum.SwapPSS != c.swap {
			t.Errorf("%s: %+v", c.recorded, sum)
		}
		says(t, got.Record.Summary, "no earlier snapshot", c.line, "the largest:")
		says(t, []string{string(contents(t, got.folder.path)[beside(c.file)])}, c.line)
		if len(got.Record.Findings) > 0 || len(got.Record.Warnings) > 0 {
			t.Errorf("%s: %v %v", c.recorded, got.Record.Findings, got.Record.Warnings)
		}
		// A snapshot compared with itself shows no growth.
		again := analyzed(t, r, "native", got.Now, files)
		says(t, again.Record.Summary, "no growth")
		if len(again.Record.Findings) > 0 {
			t.Errorf("%s: %v", c.recorded, again.Record.Findings)
		}
	}
}

// area is a mapping of a synthetic process.
type area struct {
	name      string
	pss, swap int64
}

// smapsOf writes areas in the format of smaps (fs/proc/task_mmu.c, show_smap).
func smapsOf(areas []area) []byte {
	var b strings.Builder
	at := uint64(0x7000_0000)
	for _, a := range areas {
		fmt.Fprintf(&b, "%x-%x rw-p 00000000 00:00 0                                  %s\n", at, at+0x10000, a.name)
		fmt.Fprintf(&b,
			"Size:                 64 kB\nRss:            %d kB\nPss:            %d kB\nPrivate_Dirty:  %d kB\nSwap: "+
				"          %d kB\nSwapPss:        %d kB\nVmFlags: rd wr mr mw me ac\n",
			a.pss, a.pss, a.pss, a.swap, a.swap)
		at += 0x20000 // gaps, so that no area looks like the .bss of another
	}
	return []byte(b.String())
}

// These names cover all kinds of mappings.
var areaNames = []string{
	"", "[heap]", "[anon:libc_malloc]", "[anon:scudo:primary]", "[stack]", "[anon:stack_and_tls:%d]",
	"[anon:dalvik-main space (region space)]",
	"/data/app/com.shop/lib/arm64/libshop.so", "/system/lib64/libc.so", "/dev/kgsl-3d0", "/dev/ashmem/x (deleted)",
	"[anon:.bss]", "/dmabuf:%d",
}

// All growth is attributed: the kinds and also the mappings add up to the
// measured total, and each of them has its true growth.
func TestGrowthSumsUp(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	r := New(t.TempDir(), Options{})
	for range 60 {
		side := func() (list []area, cost int64) {
			for range rnd.IntN(200) {
				name := areaNames[rnd.IntN(len(areaNames))]
				if strings.Contains(name, "%d") {
					name = fmt.Sprintf(name, rnd.IntN(1000))
				}
				a := area{name, rnd.Int64N(5000), rnd.Int64N(300)}
				list, cost = append(list, a), cost+a.pss+a.swap
			}
			return append(list, area{"[vdso]", 4, 0}), cost + 4
		}
		was, before := side()
		is, after := side()
		first := analyzed(t, r, "native", nil, map[string][]byte{"smaps.txt": smapsOf(was)})
		second := analyzed(t, r, "native", first.Now, map[string][]byte{"smaps.txt": smapsOf(is)})
		for _, what := range []string{"native_kind", "mapping"} {
			var delta int64
			var share float64
			for _, f := range found(second, what) {
				delta += *f.BytesDelta
				if f.Share != nil {
					share += *f.Share
				}
				if *f.Bytes < *f.BytesDelta || *f.Count < *f.CountDelta {
					t.Errorf("%+v: the growth exceeds the value", f)
				}
			}
			if delta != (after-before)<<10 {
				t.Errorf("%s: reported growth of %d bytes, want %d", what, delta, (after-before)<<10)
			}
			// Some of the rows that are summed under "others" may shrink.
			if rows := len(found(second, what)); share > 1 || what == "mapping" && rows <= toldFindings &&
				share < 0.99 && delta > 0 {
				t.Errorf("%s: the shares add up to %v, want about 1", what, share)
			}
		}
		says(t, second.Record.Summary, fmt.Sprintf("-> %s", sizeWords(after)))
	}
}

// sizeWords returns a size in kB as the summary prints it.
func sizeWords(kb int64) string {
	if kb < 1024 {
		return fmt.Sprintf("%d kB", kb)
	}
	return fmt.Sprintf("%.1f MB", float64(kb)/1024)
}

// Two sources of the same memory have different sums: they are not compared,
// and the summary says so. A source that is in both snapshots is compared.
func TestGrowthOfOtherSource(t *testing.T) {
	r := New(t.TempDir(), Options{})
	smaps, showmap := recorded.Read(t, "device", "api36-memorylab-smaps.txt.gz"),
		recorded.Read(t, "device", "api36-memorylab-showmap.txt")
	bySmaps := analyzed(t, r, Snapshot, nil, map[string][]byte{"smaps.txt": smaps}).Now
	byShowmap := analyzed(t, r, Snapshot, nil, map[string][]byte{"showmap.txt": showmap}).Now
	both := analyzed(t, r, Snapshot, nil, map[string][]byte{"smaps.txt": smaps, "showmap.txt": showmap}).Now
	for _, c := range []struct {
		before *MemorySnapshot
		file   string
		words  string
	}{
		{bySmaps, "showmap.txt", "memory maps: smaps before, showmap now; the growing library is unknown"},
		{byShowmap, "smaps.txt", "memory maps: showmap before, smaps now; the growing library is unknown"},
		{&MemorySnapshot{}, "smaps.txt", "memory maps: not read before, smaps now; the growing library is unknown"},
		{both, "showmap.txt", "Pss + SwapPss 275.9 MB -> 275.9 MB (0 kB)"},
		{both, "smaps.txt", "Pss + SwapPss 275.9 MB -> 275.9 MB (0 kB)"},
	} {
		got := analyzed(t, r, "native", c.before,
			map[string][]byte{c.file: map[string][]byte{"smaps.txt": smaps, "showmap.txt": showmap}[c.file]})
		says(t, got.Record.Summary, c.words)
		if len(got.Record.Findings) > 0 {
			t.Errorf("%s: %+v", c.words, got.Record.Findings)
		}
	}
}

// If a reading is missing in one snapshot, the next one is compared with the
// last reading before the gap.
func TestSnapshotKeepsEarlierReadings(t *testing.T) {
	r := New(t.TempDir(), Options{})
	threads := func(n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "/proc/4321/task/%d/comm:pool-1-thread-%d\n", 4321+i, i)
		}
		return []byte(b.String())
	}
	first := analyzed(t, r, Snapshot, nil,
		map[string][]byte{"threads.txt": threads(10), "smaps.txt": smapsOf([]area{{"[heap]", 100, 0}})})
	second := analyzed(t, r, "native", first.Now, map[string][]byte{"smaps.txt": smapsOf([]area{{"[heap]", 300, 0}})})
	third := analyzed(t, r, "thread", second.Now, map[string][]byte{"threads.txt": threads(25)})
	list := found(third, "threads")
	if len(list) != 1 || *list[0].Count != 25 || *list[0].CountDelta != 15 ||
		!strings.HasPrefix(list[0].Name, "pool-1-thread-") {
		t.Errorf("%+v\n%v", list, third.Record.Summary)
	}
	last := analyzed(t, r, "native", third.Now, map[string][]byte{"smaps.txt": smapsOf([]area{{"[heap]", 350, 0}})})
	if list := found(last, "mapping"); len(list) != 1 || *list[0].BytesDelta != 50<<10 {
		t.Errorf("%+v", list)
	}
	// If nothing could be read, the earlier readings are kept.
	none := analyzed(t, r, "native", last.Now, nil)
	if none.Now != last.Now {
		t.Error("earlier readings were not kept")
	}
}

// Threads without names do not form a separate group beside threads with names:
// only the totals are compared, and the names are kept for later comparisons.
func TestThreadsWithoutNames(t *testing.T) {
	r := New(t.TempDir(), Options{})
	named := func(n int) map[string][]byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "/proc/4321/task/%d/comm:pool-1-thread-%d\n", 4321+i, i)
		}
		return map[string][]byte{"threads.txt": []byte(b.String())}
	}
	nameless := func(n int) map[string][]byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d\n", 4321+i)
		}
		return map[string][]byte{"thread_ids.txt": []byte(b.String())}
	}
	const cannot = "thread names are missing in one of the snapshots; the growing group is unknown"
	seen := func(c *Case) (list []string) {
		for _, f := range found(c, "threads") {
			list = append(list, fmt.Sprintf("%s %d %+d", f.Name, *f.Count, *f.CountDelta))
		}
		return list
	}
	first := analyzed(t, r, Snapshot, nil, named(20))
	same := analyzed(t, r, "thread", first.Now, nameless(20))
	equal(t, "no growth", seen(same), []string(nil))
	equal(t, "no growth", same.Record.Summary, []string{"threads: 20 -> 20 threads (+0): 0 new, 0 ended", cannot})

	more := analyzed(t, r, "thread", same.Now, nameless(50))
	equal(t, "more", seen(more), []string{"(unknown name) 50 +30"})
	equal(t, "more", more.Record.Summary, []string{"threads: 20 -> 50 threads (+30): 30 new, 0 ended", cannot})
	if !strings.HasPrefix(more.Headline(), "threads: 20 -> 50 threads") {
		t.Error(more.Headline())
	}
	// The latest total is used, together with the latest names.
	again := analyzed(t, r, "thread", more.Now, nameless(51))
	equal(t, "again", seen(again), []string{"(unknown name) 51 +1"})
	back := analyzed(t, r, "thread", again.Now, named(60))
	if list := found(back, "threads"); len(list) != 1 || *list[0].CountDelta != 40 ||
		!strings.HasPrefix(list[0].Name, "pool-1-thread-") {
		t.Errorf("%+v", list)
	}
	equal(t, "then", seen(analyzed(t, r, "thread", back.Now, nameless(60))), []string(nil))

	// In the first case, names are in the later snapshot only; in the second,
	// no threads were read earlier.
	late := analyzed(t, r, "thread", analyzed(t, r, "thread", nil, nameless(20)).Now, named(20))
	equal(t, "late", late.Record.Summary, []string{"threads: 20 -> 20 threads (+0): 0 new, 0 ended", cannot})
	none := analyzed(t, r, "thread", &MemorySnapshot{}, nameless(7))
	says(t, none.Record.Summary, "threads: missing in one of the snapshots\nthreads: 7\n      7  (unknown name)")
	// Readings of other values do not remove the ids of the threads.
	native := analyzed(t, r, "native", more.Now, map[string][]byte{"smaps.txt": smapsOf([]area{{"[heap]", 100, 0}})})
	equal(t, "kept", seen(analyzed(t, r, "thread", native.Now, nameless(52))), []string{"(unknown name) 52 +2"})
}

// If an artifact is unreadable, there is a warning and no summary for it; the
// other artifacts are read.
func TestDamagedArtifact(t *testing.T) {
	r := New(t.TempDir(), Options{})
	whole := smapsOf([]area{{"[heap]", 100, 0}, {"[stack]", 8, 0}})
	c := analyzed(t, r, "native", nil, map[string][]byte{
		"smaps.txt": whole[:len(whole)-70], "showmap.txt": []byte("\x1b[2Jno\x00thing\n"),
		"status.txt":  []byte("Name:\tx\nPid:\t4321\nThreads:\t31\n"),
		"meminfo.txt": make([]byte, maxArtifact+1), "custom_x.txt": []byte("\x1b]0;x\a"),
	})
	says(t, c.Record.Warnings, "read smaps.txt: ", "read showmap.txt: ",
		"read meminfo.txt: it has 33554433 bytes, more than 33554432")
	if len(c.Record.Warnings) != 3 {
		t.Errorf("%q", c.Record.Warnings)
	}
	files := contents(t, c.folder.path)
	if files[beside("smaps.txt")] != nil || string(files[beside("custom_x.txt")]) != "?]0;x?\n" ||
		!strings.HasPrefix(string(files[beside("status.txt")]), "31 threads\n") {
		t.Errorf("%q", files[beside("status.txt")])
	}
}
