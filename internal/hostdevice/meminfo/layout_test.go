package meminfo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/recorded"
)

// area returns a mapping of smaps whose memory is all private and dirty.
func area(start, end uint64, perms, name string, kb int64) string {
	return fmt.Sprintf("%x-%x %s 00000000 00:00 0    %s\nSize: %d kB\nRss: %d kB\nPss: %[6]d kB\n"+
		"Shared_Clean: 0 kB\nShared_Dirty: 0 kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: %[6]d kB\n"+
		"Swap: 0 kB\nSwapPss: 0 kB\nVmFlags: rd\n",
		start, end, perms, name, int64(end-start)>>10, kb)
}

func TestReadHotSpot(t *testing.T) {
	const (
		m    = 1 << 20
		heap = 0xf0000000
		high = 0x7f0000000000
	)
	smaps := area(heap, heap+2*m, "rw-p", "", 1) + // young generation
		area(heap+2*m, heap+100*m, "rw-p", "", 2) + // old generation
		area(heap+100*m, heap+256*m, "---p", "", 0) + // not committed
		area(heap+256*m, heap+300*m, "rw-p", "", 4) + // class space after the heap
		area(0x550000000000, 0x550000001000, "r-xp", "/usr/lib/jvm/bin/java", 8) +
		area(0x560000000000, 0x560000100000, "rw-p", "[heap]", 16) +
		area(high, high+0x4000, "---p", "", 0) +
		area(high+0x4000, high+m, "rw-p", "", 32) + // a Java thread, guard page inside the stack
		area(high+m, high+m+0x1000, "---p", "", 0) +
		area(high+m+0x1000, high+2*m+0x1000, "rw-p", "", 64) + // a native thread, guard page before the stack
		area(high+3*m, high+3*m+0x4000, "---p", "", 0) +
		area(high+3*m+0x4000, high+9*m, "rw-p", "", 128) + // after a guard page, but too long
		area(high+9*m, high+10*m, "rw-p", "", 256) + // 1 MiB, but no guard page
		area(high+11*m, high+75*m, "---p", "", 0) +
		area(high+75*m, high+76*m, "rw-p", "", 512) + // not directly after a guard page
		area(high+80*m, high+81*m, "rwxp", "", 1024) +
		area(high+90*m, high+91*m, "r--p", "/usr/lib/libc.so.6", 2048) +
		area(high+91*m, high+92*m, "rw-p", "/usr/lib/jvm/lib/server/classes.jsa", 4096) +
		area(high+92*m, high+93*m, "rw-p", "[anon: glibc: malloc]", 8192) +
		area(high+93*m, high+94*m, "rw-p", "[anon:libc_malloc]", 16384) +
		area(high+94*m, high+95*m, "rw-s", "/memfd:x (deleted)", 32768) +
		area(high+95*m, high+96*m, "rw-p", "[stack]", 65536)
	l, err := Read(strings.NewReader(smaps), 256*m)
	if err != nil {
		t.Fatal(err)
	}
	want := map[androidtext.Row]int64{
		androidtext.DalvikHeap:  1 + 2,
		androidtext.NativeHeap:  4 + 16 + 128 + 256 + 512 + 8192 + 16384,
		androidtext.Stack:       32 + 64 + 65536,
		androidtext.DalvikOther: 1024,
		androidtext.SoMmap:      8 + 2048,
		androidtext.OatMmap:     4096,
		androidtext.Ashmem:      32768,
	}
	for row := range androidtext.NumRows {
		if got := l.Rows[row].Pss; got != want[row] {
			t.Errorf("%v: Pss %d, want %d", row, got, want[row])
		}
	}
	if l.JIT.Pss != 1024 {
		t.Errorf("JIT Pss = %d, want 1024", l.JIT.Pss)
	}
	s := l.Rows.Summarize(l.JIT, false)
	if s.Code != 1024+8+2048+4096 || s.PrivateOther != 32768 {
		t.Errorf("Code = %d, Private Other = %d", s.Code, s.PrivateOther)
	}
}

func TestHeapSize(t *testing.T) {
	for line, want := range map[string]uint64{
		"java\x00-Xmx256m\x00X":           256 << 20,
		"java\x00-Xmx1G\x00-Xmx2k\x00X":   2 << 10,
		"java\x00-Xmx1048576\x00":         1 << 20,
		"java\x00-Xmxm\x00-Xmx\x00-Xms1m": 0,
		"":                                0,
	} {
		if got := parseHeapSize([]byte(line)); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}

var number = regexp.MustCompile(` *[0-9]+`)

// skeleton returns the label of a line, and the line with its digits replaced,
// because values differ but columns end at the same positions.
func skeleton(line string) (label, form string) {
	form = number.ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat("#", len(s)) })
	label, _, _ = strings.Cut(form, "#")
	return strings.TrimRight(label, " \n"), form
}

// TestLooksLikeAndroid compares our output with a recorded one: the columns of
// lines that occur in both must be at the same positions.
func TestLooksLikeAndroid(t *testing.T) {
	real := recorded.Read(t, "device", "api36-memorylab-meminfo-d.txt")
	l, err := Read(bytes.NewReader(recorded.Read(t, "device", "api36-memorylab-smaps.txt.gz")), 0)
	if err != nil {
		t.Fatal(err)
	}
	ours := androidtext.MeminfoHead(34, 277763066*time.Millisecond) +
		l.Meminfo(34, 20602, "com.androidperformance.memorylab", 0).Text(androidtext.MeminfoOptions{Dalvik: true})
	forms := map[string]string{}
	for line := range strings.Lines(string(real)) {
		label, form := skeleton(line)
		forms[label] = form
	}
	compared := 0
	for line := range strings.Lines(ours) {
		label, form := skeleton(line)
		want, ok := forms[label]
		if !ok || label == "" {
			continue
		}
		compared++
		if form != want {
			t.Errorf("\n got %q\nwant %q", form, want)
		}
	}
	if compared < 40 {
		t.Errorf("only %d lines were compared, want at least 40:\n%s", compared, ours)
	}
}

// TestRecordedSums compares the sums over a real phone's smaps with its showmap
// output, recorded in the same minute.
func TestRecordedSums(t *testing.T) {
	l, err := Read(bytes.NewReader(recorded.Read(t, "device", "api36-memorylab-smaps.txt.gz")), 0)
	if err != nil {
		t.Fatal(err)
	}
	total := l.Rows.Sum()
	if total.Pss != 282363 || total.Rss != 366032 || total.SwapPss != 162 || total.PrivateDirty != 238524 ||
		len(l.Mappings) != 4068 {
		t.Errorf("total = %+v of %d mappings", total, len(l.Mappings))
	}
	checkReport(t, l)
	checkShowmap(t, l)
}

// checkReport parses a report with the parser for real phones and checks the
// sums that hold on every phone.
func checkReport(t testing.TB, l *Layout) {
	t.Helper()
	for _, o := range []androidtext.MeminfoOptions{{}, {Local: true}, {Dalvik: true}, {Full: true}, {Summary: true}} {
		text := androidtext.MeminfoHead(34, time.Second) + l.Meminfo(34, 42, "com.example.leaky:java", 0).Text(o)
		m, err := dumpsys.ParseMeminfo([]byte(text))
		if err != nil || len(m.Blocks) != 1 || len(m.Warnings)+len(m.Blocks[0].Warnings) > 0 {
			t.Fatalf("%+v: %v\n%v\n%s", m, err, m, text)
		}
		checkBlock(t, l, m.Blocks[0], !o.Summary)
	}
}

func checkBlock(t testing.TB, l *Layout, b dumpsys.Block, table bool) {
	t.Helper()
	total := l.Rows.Sum()
	wantTotal := total.Pss
	if total.SwapPss > 0 {
		wantTotal += total.SwapPss
	}
	swapInTotal := dumpsys.No
	if total.SwapPss > 0 {
		swapInTotal = dumpsys.Yes
	}
	s := l.Rows.Summarize(l.JIT, total.SwapPss > 0)
	for what, got := range map[string][2]int64{
		"TOTAL PSS":   {b.TotalPss.N, wantTotal},
		"TOTAL RSS":   {b.TotalRss.N, total.Rss},
		"Java Heap":   {b.JavaHeap.N, l.Rows[androidtext.DalvikHeap].PrivateDirty},
		"Native Heap": {b.NativeHeap.N, l.Rows[androidtext.NativeHeap].PrivateDirty},
		"Stack":       {b.Stack.N, l.Rows[androidtext.Stack].PrivateDirty},
		"Code":        {b.Code.N, s.Code},
		"System":      {b.System.N, wantTotal - total.PrivateClean - total.PrivateDirty},
		"sum of all": {
			b.JavaHeap.N + b.NativeHeap.N + b.Code.N + b.Stack.N + b.Graphics.N + b.PrivateOther.N + b.System.N,
			wantTotal,
		},
		"swap in total": {int64(b.SwapInTotal), int64(swapInTotal)},
	} {
		if got[0] != got[1] {
			t.Errorf("%s = %d, want %d", what, got[0], got[1])
		}
	}
	if !table {
		return
	}
	var pss int64
	for _, r := range b.Rows {
		if r.Name != "TOTAL" && !strings.HasPrefix(r.Name, ".Heap") && !strings.HasPrefix(r.Name, ".AppJIT") {
			pss += r.Pss.N
		}
	}
	if pss != total.Pss {
		t.Errorf("sum of rows is %d, want %d", pss, total.Pss)
	}
}

func checkShowmap(t testing.TB, l *Layout) {
	t.Helper()
	names := map[string]bool{}
	for _, m := range l.Mappings {
		names[m.Name] = true
	}
	for _, o := range []androidtext.ShowmapOptions{
		{}, {Verbose: true}, {Addresses: true}, {Verbose: true, Addresses: true},
	} {
		m, err := procfs.ParseShowmap([]byte(androidtext.Showmap(34, l.Mappings, o)))
		if err != nil || len(m.Warnings) > 0 {
			t.Fatalf("%v %v", err, m.Warnings)
		}
		if single := o.Verbose || o.Addresses; single && len(m.Rows) != len(l.Mappings) || !single &&
			len(m.Rows) != len(names) {
			t.Errorf("showmap has %d lines for %d mappings with %d names", len(m.Rows), len(l.Mappings), len(names))
		}
		checkRows(t, l, o, m)
	}
}

func checkRows(t testing.TB, l *Layout, o androidtext.ShowmapOptions, m procfs.Showmap) {
	t.Helper()
	var sum procfs.ShowmapRow
	for i, r := range m.Rows {
		sum.PSS.N += r.PSS.N
		sum.RSS.N += r.RSS.N
		sum.Count.N += r.Count.N
		if o.Addresses && (r.Start != l.Mappings[i].Start || r.End != l.Mappings[i].End) || o.Verbose &&
			len(r.Flags) != 3 {
			t.Errorf("line %d is %+v of %+v", i, r, l.Mappings[i])
			return
		}
	}
	total := l.Rows.Sum()
	if sum.PSS.N != total.Pss || m.Total.PSS.N != total.Pss || m.Total.RSS.N != sum.RSS.N ||
		m.Total.Count.N != sum.Count.N {
		t.Errorf("rows %+v, TOTAL %+v, layout %+v", sum, m.Total, total)
	}
}

// TestOwnProcess compares our sum with the kernel's own. There is a tolerance
// because the process runs while it is read. The garbage of earlier tests is
// freed first, so that no memory is returned to the kernel in the meantime.
func TestOwnProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		recorded.Missing(t, "needs a kernel with smaps_rollup: %v", err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	debug.FreeOSMemory()
	l, err := OfProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Fatal(err)
	}
	checkReport(t, l)
	checkShowmap(t, l)
	whole, err := procfs.ParseRollup(text)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := l.Rows.Sum().Pss, whole.Pss.N; got < want-2048 || got > want+2048 {
		t.Errorf("Pss = %d kB, want %d kB, as the kernel reports", got, want)
	}
}

func TestOfNoProcess(t *testing.T) {
	if _, err := OfProcess(1 << 30); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("err = %v", err)
	}
}

func TestCutSmaps(t *testing.T) {
	text := area(0x1000, 0x2000, "rw-p", "", 4) + area(0x3000, 0x4000, "rw-p", "", 4)
	if _, err := Read(strings.NewReader(text[:len(text)-40]), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("err = %v", err)
	}
	if _, err := Read(strings.NewReader("cat: /proc/1/smaps: Permission denied\n"), 0); err == nil {
		t.Error("an error message was parsed as mappings")
	}
}

// FuzzRead checks that Read returns an error, or rows and mappings whose sums
// both equal the plain sum over all mappings.
func FuzzRead(f *testing.F) {
	f.Add(area(0xf0000000, 0xf0100000, "rw-p", "", 7)+area(0x7f0000000000, 0x7f0000001000, "---p", "", 0),
		uint64(1<<20))
	f.Add(area(0x1000, 0x2000, "rwxp", "[anon:x]", 3), uint64(0))
	f.Add("1000-2000 rw-p", uint64(1)<<63)
	f.Fuzz(func(t *testing.T, text string, heap uint64) {
		l, err := Read(strings.NewReader(text), heap)
		if err != nil {
			return
		}
		want, err := procfs.ParseSmaps(strings.NewReader(text))
		if err != nil {
			t.Fatalf("Read succeeded, but ParseSmaps failed: %v", err)
		}
		var sum androidtext.Memory
		for _, m := range l.Mappings {
			sum = sum.Plus(m.Memory)
		}
		if sum != l.Rows.Sum() {
			t.Errorf("mappings %+v, rows %+v", sum, l.Rows.Sum())
		}
		if want.Pss.Known && want.Pss.N != sum.Pss {
			t.Errorf("Pss %d, want %d", sum.Pss, want.Pss.N)
		}
	})
}
