package androidtext_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/recorded"
)

// oldest and newest are the supported API levels.
const oldest, newest = 21, 36

// process returns values that differ in every cell, so a misplaced column is
// detected.
func process(api int, swapped bool) *androidtext.Meminfo {
	m := &androidtext.Meminfo{
		API: api, PID: 4321, Name: "com.shop:push",
		NativeHeap: androidtext.Heap{Size: 9001, Alloc: 8001, Free: 1000},
		JavaHeap:   androidtext.Heap{Size: 7001, Alloc: 6001, Free: 1000},
		Objects: androidtext.Objects{
			Views: 101, ViewRoots: 2, AppContexts: 3, Activities: 4, Assets: 5, AssetManagers: 6, LocalBinders: 7,
			ProxyBinders: 8, ParcelKB: 9, Parcels: 10, DeathRecipients: 11, Sockets: 12, WebViews: 13,
		},
		Details:     []androidtext.Detail{{Name: ".Heap", Memory: androidtext.Memory{Rss: 3, Pss: 3}}, {Name: ".LOS"}},
		Allocations: []androidtext.Allocation{{Name: "Bitmap (malloced):", Count: 63, KB: 2729}},
		SQL:         androidtext.SQL{MemoryUsed: 1, CacheOverflow: 2, LargestAllocation: 3},
	}
	for r := range m.Rows {
		n := int64(r)*1000 + 7
		m.Rows[r] = androidtext.Memory{
			Rss: 10*n + 100, Pss: 5*n + 50, SharedClean: n + 1, SharedDirty: n + 2, PrivateClean: n + 3,
			PrivateDirty: 2*n + 4,
			Swap:         n + 5,
		}
		if swapped {
			m.Rows[r].SwapPss = n + 6
		}
	}
	return m
}

// block parses an output with the parser for real phones, which must not print
// a warning.
func block(t *testing.T, text string) dumpsys.Block {
	t.Helper()
	m, err := dumpsys.ParseMeminfo([]byte(text))
	if err != nil || len(m.Blocks) != 1 || len(m.Warnings) > 0 || len(m.Blocks[0].Warnings) > 0 ||
		m.Blocks[0].Truncated {
		t.Fatalf("%v %+v\n%s", err, m, text)
	}
	if m.Uptime.N != 61000 {
		t.Errorf("uptime %v", m.Uptime)
	}
	return m.Blocks[0]
}

// TestMeminfoReadsBack checks, at every API level and with every option, that
// the parser returns the printed values.
func TestMeminfoReadsBack(t *testing.T) {
	for api := oldest; api <= newest; api++ {
		for _, swapped := range []bool{false, true} {
			for _, o := range []androidtext.MeminfoOptions{
				{}, {Full: true}, {Dalvik: true}, {Summary: true}, {Local: true},
			} {
				m := process(api, swapped)
				b := block(t, androidtext.MeminfoHead(api, 61*time.Second)+m.Text(o))
				name := fmt.Sprintf("API %d, swapped %t, %+v", api, swapped, o)
				if b.PID.N != 4321 || b.Process != "com.shop:push" {
					t.Errorf("%s: block of %v %s", name, b.PID, b.Process)
				}
				checkRows(t, name, m, o, b)
				checkSummary(t, name, m, swapped, b)
				if counts := b.Objects != nil; counts == (o.Local || o.Summary && api >= 23) && api >= 23 {
					t.Errorf("%s: objects %v", name, b.Objects)
				}
				if b.Objects != nil &&
					(b.Objects["Activities"] != 4 || b.Objects["Views"] != 101 || b.Objects["ViewRootImpl"] != 2 ||
						b.Objects["AppContexts"] != 3) {
					t.Errorf("%s: objects %v", name, b.Objects)
				}
			}
		}
	}
}

func checkRows(t *testing.T, name string, m *androidtext.Meminfo, o androidtext.MeminfoOptions, b dumpsys.Block) {
	t.Helper()
	if o.Summary && m.API >= 23 {
		if len(b.Rows) > 0 {
			t.Errorf("%s: %d rows", name, len(b.Rows))
		}
		return
	}
	for r, want := range m.Rows {
		row, ok := b.Row(androidtext.Row(r).String())
		swap := row.Swap.N + row.SwapPss.N
		wantSwap := want.Swap
		if m.API >= 24 && want.SwapPss > 0 {
			wantSwap = want.SwapPss
		}
		if !ok || row.Pss.N != want.Pss || row.PrivateDirty.N != want.PrivateDirty ||
			row.PrivateClean.N != want.PrivateClean ||
			swap != wantSwap || row.Rss.Known != (m.API >= 30) || row.Rss.Known && row.Rss.N != want.Rss {
			t.Errorf("%s: %v is %+v, want %+v", name, androidtext.Row(r), row, want)
		}
		if row.SharedDirty.Known != o.Full || o.Full &&
			(row.SharedDirty.N != want.SharedDirty || row.SharedClean.N != want.SharedClean) {
			t.Errorf("%s: %v is %+v, want %+v", name, androidtext.Row(r), row, want)
		}
	}
	native, _ := b.Row("Native Heap")
	total, _ := b.Row("TOTAL")
	if native.HeapSize.N != 9001 || native.HeapAlloc.N != 8001 || native.HeapFree.N != 1000 ||
		total.HeapSize.N != 16002 || total.HeapAlloc.N != 14002 || total.HeapFree.N != 2000 {
		t.Errorf("%s: heaps %+v %+v", name, native, total)
	}
}

func checkSummary(t *testing.T, name string, m *androidtext.Meminfo, swapped bool, b dumpsys.Block) {
	t.Helper()
	swapInTotal := m.API >= 24 && swapped
	if (b.SwapInTotal == dumpsys.Yes) != swapInTotal {
		t.Errorf("%s: swap in total: %v", name, b.SwapInTotal)
	}
	s := m.Rows.Summarize(m.JIT, swapInTotal)
	got := [...]int64{
		b.JavaHeap.N, b.NativeHeap.N, b.Code.N, b.Stack.N, b.Graphics.N, b.PrivateOther.N, b.System.N, b.TotalPss.N,
	}
	want := [...]int64{s.JavaHeap, s.NativeHeap, s.Code, s.Stack, s.Graphics, s.PrivateOther, s.System, s.Total}
	if got != want {
		t.Errorf("%s: App Summary %v, want %v", name, got, want)
	}
	if b.TotalRss.Known != (m.API >= 30) || b.TotalRss.Known && b.TotalRss.N != s.TotalRss {
		t.Errorf("%s: RSS %v, want %d", name, b.TotalRss, s.TotalRss)
	}
	sum := int64(0)
	for _, n := range got[:7] {
		sum += n
	}
	if sum != s.Total {
		t.Errorf("%s: the App Summary adds up to %d, want the total %d", name, sum, s.Total)
	}
}

// TestMeminfoOfNativeProcess checks that neither the name nor the objects are
// printed.
func TestMeminfoOfNativeProcess(t *testing.T) {
	for api := oldest; api <= newest; api++ {
		m := process(api, true)
		m.Native = true
		text := m.Text(androidtext.MeminfoOptions{})
		if b := block(t, androidtext.MeminfoHead(api, 61*time.Second)+text); b.PID.Known || b.Objects != nil ||
			b.NativeHeap.N == 0 {
			t.Errorf("API %d: %+v", api, b)
		}
	}
}

// TestMeminfoIsRecorded prints the values of recorded tables again: all lines
// up to the end of the App Summary must be identical.
func TestMeminfoIsRecorded(t *testing.T) {
	for _, c := range []struct {
		file string
		api  int
	}{
		{"api30-unity-meminfo.txt", 30}, {"api36-emulator-flutter-meminfo.txt", 36},
		{"api36-memorylab-meminfo-d.txt", 36},
		{"api23-sample-meminfo.txt", 23}, {"api23-private-gfx-meminfo.txt", 23},
	} {
		text := strings.ReplaceAll(string(recorded.Read(t, "device", c.file)), "\r", "")
		parsed, err := dumpsys.ParseMeminfo([]byte(text))
		if err != nil || len(parsed.Blocks) != 1 {
			t.Fatalf("%s: %v", c.file, err)
		}
		m, details := again(c.api, parsed.Blocks[0], text)
		ours := m.Text(androidtext.MeminfoOptions{Dalvik: details, Summary: false})
		_, want, _ := strings.Cut(text, "\n** MEMINFO")
		want, _, _ = strings.Cut("** MEMINFO"+want, " Objects\n")
		ours, _, _ = strings.Cut(strings.TrimPrefix(ours, "\n"), " Objects\n")
		if !strings.Contains(want, "0 \n") { // the recording lacks trailing blanks
			ours, want = blanks.ReplaceAllString(ours, "\n"), blanks.ReplaceAllString(want, "\n")
		}
		if ours != want {
			t.Errorf("%s:\n%s\nrecorded:\n%s", c.file, ours, want)
		}
	}
}

var blanks = regexp.MustCompile(` +\n`)

// again converts a parsed block back to the values that were printed.
func again(api int, b dumpsys.Block, text string) (m *androidtext.Meminfo, details bool) {
	m = &androidtext.Meminfo{API: api, PID: int(b.PID.N), Name: string(b.Process)}
	memory := func(r dumpsys.Row) androidtext.Memory {
		return androidtext.Memory{
			Pss: r.Pss.N, PrivateDirty: r.PrivateDirty.N, PrivateClean: r.PrivateClean.N, Rss: r.Rss.N,
			Swap: r.Swap.N, SwapPss: r.SwapPss.N,
		}
	}
	for r := range androidtext.NumRows {
		row, _ := b.Row(r.String())
		m.Rows[r] = memory(row)
	}
	heap := func(name string) androidtext.Heap {
		r, _ := b.Row(name)
		return androidtext.Heap{Size: r.HeapSize.N, Alloc: r.HeapAlloc.N, Free: r.HeapFree.N}
	}
	m.NativeHeap, m.JavaHeap = heap("Native Heap"), heap("Dalvik Heap")
	// Code includes the code from the JIT compiler, which belongs to another
	// row.
	m.JIT.PrivateDirty = b.Code.N - m.Rows.Summarize(androidtext.Memory{}, false).Code
	if rss := regexp.MustCompile(`Code: +\d+ +(\d+)`).FindStringSubmatch(text); rss != nil {
		n, _ := strconv.ParseInt(rss[1], 10, 64)
		m.JIT.Rss = n - m.Rows.Summarize(androidtext.Memory{}, false).CodeRss
	}
	inDetails := false
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, " Dalvik Details"):
			inDetails, details = true, true
		case strings.HasPrefix(line, " App Summary"):
			inDetails = false
		case inDetails && len(f) >= 6:
			d := androidtext.Detail{Name: strings.Join(f[:len(f)-5], " ")}
			for i, to := range []*int64{&d.Pss, &d.PrivateDirty, &d.PrivateClean, &d.SwapPss, &d.Rss} {
				*to, _ = strconv.ParseInt(f[len(f)-5+i], 10, 64)
			}
			m.Details = append(m.Details, d)
		}
	}
	return m, details
}

// TestUsageTexts compares usage messages with recorded ones and checks which
// options other releases lack.
func TestUsageTexts(t *testing.T) {
	for file, ours := range map[string]string{
		"api28-dumpsys-help.txt": androidtext.DumpsysHelp(28), "api28-meminfo-help.txt": androidtext.MeminfoHelp(28),
	} {
		if want := string(recorded.Read(t, "device", file)); ours != want {
			t.Errorf("%s:\n%s\nrecorded:\n%s", file, ours, want)
		}
	}
	for api := oldest; api <= newest; api++ {
		help := androidtext.MeminfoHelp(api)
		for option, since := range map[string]int{"  -s:": 23, "  -S:": 24, "  --proto:": 28, "  --local:": 0} {
			if strings.Contains(help, option) != (api >= since) {
				t.Errorf("API %d: %s in\n%s", api, option, help)
			}
		}
		if strings.Contains(androidtext.DumpsysHelp(api), "--proto") != (api >= 28) {
			t.Errorf("API %d: %s", api, androidtext.DumpsysHelp(api))
		}
	}
}

func TestParseMeminfo(t *testing.T) {
	for args, want := range map[string]androidtext.MeminfoOptions{
		"":                     {},
		"com.shop":             {Process: "com.shop"},
		"-a 77":                {Full: true, Dalvik: true, Process: "77"},
		"-s -S --oom com.shop": {Summary: true, Process: "com.shop"},
		"-d --package a.b":     {Dalvik: true, Package: true, Process: "a.b"},
		"a.b -x --local":       {Local: true, Process: "a.b"},
		"-a -h com.shop":       {Full: true, Dalvik: true, Help: true},
	} {
		if o, problem := androidtext.ParseMeminfo(strings.Fields(args)); o != want || problem != "" {
			t.Errorf("%q: %+v %q", args, o, problem)
		}
	}
	if _, problem := androidtext.ParseMeminfo(
		[]string{"-x", "a"}); problem != "Unknown argument: -x; use -h for help\n" {
		t.Errorf("%q", problem)
	}
}

func TestMeminfoOverview(t *testing.T) {
	text := androidtext.MeminfoOverview(34, time.Second,
		[]androidtext.ProcessPss{{Name: "a", PID: 7, KB: 1234567}, {Name: "b", PID: 8, KB: 12}}, 2000000)
	want := "Applications Memory Usage (in Kilobytes):\nUptime: 1000 Realtime: 1000\n\nTotal PSS by process:\n" +
		" 1,234,567K: a (pid 7)\n        12K: b (pid 8)\n\nTotal RAM: 2,000,000K (status normal)\n Free RAM: " +
		"765,421K\n Used RAM: 1,234,579K\n"
	if text != want {
		t.Errorf("%s", text)
	}
}

func TestParseDumpsys(t *testing.T) {
	for args, want := range map[string]string{
		"":                           "{false false 10s  []}",
		"-l x":                       "{true false 10s  []}",
		"-t 7 meminfo -a b":          "{false false 7s meminfo [-a b]}",
		"-T 700 --priority HIGH gpu": "{false false 700ms gpu []}",
		"--skip a,b --help":          "{false true 10s  []}",
		"-t 0 x":                     "Error: invalid timeout: 0\n",
		"-t soon x":                  "Error: invalid timeout: soon\n",
		"-t":                         androidtext.DumpsysHelp(34),
		"--nosuch meminfo":           androidtext.DumpsysHelp(34),
	} {
		o, problem := androidtext.ParseDumpsys(34, strings.Fields(args))
		if got := fmt.Sprint(o); problem == "" && got != want || problem != "" && problem != want {
			t.Errorf("%q: %s %q", args, got, problem)
		}
	}
	if got := androidtext.DumpsysServices([]string{"a", "b"}); got != "Currently running services:\n  a\n  b\n" {
		t.Errorf("%q", got)
	}
}
