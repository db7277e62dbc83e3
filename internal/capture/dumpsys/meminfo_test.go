package dumpsys

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/recorded"
)

var meminfoFiles = []string{
	"api18-sample-meminfo.txt", "api19-sample-meminfo.txt", "api23-sample-meminfo.txt", "api23-private-gfx-meminfo.txt",
	"api29-unity-meminfo-reflowed.txt", "api29-native-process-meminfo.txt", "api30-unity-meminfo.txt",
	"api36-memorylab-meminfo-d.txt", "api36-emulator-flutter-meminfo.txt",
}

// values returns the values of a Block by name; an unknown value is -1.
func values(b Block) map[string]int64 {
	out := map[string]int64{}
	v := reflect.ValueOf(b)
	for i := range v.NumField() {
		if x, ok := v.Field(i).Interface().(known.Int); ok {
			out[v.Type().Field(i).Name] = -1
			if x.Known {
				out[v.Type().Field(i).Name] = x.N
			}
		}
	}
	for k, n := range b.Objects {
		out["object "+k] = n
	}
	for _, r := range b.Rows {
		w := reflect.ValueOf(r)
		for i := range w.NumField() {
			if x, ok := w.Field(i).Interface().(known.Int); ok && x.Known {
				out["row "+r.Name+" "+w.Type().Field(i).Name] = x.N
			}
		}
	}
	return out
}

func one(t *testing.T, text string) Block {
	t.Helper()
	m, err := ParseMeminfo([]byte(text))
	if err != nil || len(m.Blocks) != 1 {
		t.Fatalf("%d blocks, %v", len(m.Blocks), err)
	}
	return m.Blocks[0]
}

func TestRecordedMeminfo(t *testing.T) {
	type want struct {
		file, process                                          string
		pid, total, java, native, code, stack, gfx, other, sys int64
		rss, swap, swapPss, egl, gl, gfxDev, otherDev          int64
		inTotal                                                Answer
		activities, views, roots                               int64
		computed                                               bool
		warned                                                 string
	}
	for _, w := range []want{
		{
			"api18-sample-meminfo.txt", "com.sample.package", 29607, 28929, 11916, 24, -1, -1, -1, -1, -1, -1, -1, -1,
			-1, -1, -1, 56, Unknown, 1, 115, 1, true, "",
		},
		{
			"api19-sample-meminfo.txt", "com.sample.package", 30125, 44563, 22764, 0, 6408, 272, 0, 12324, 2795, -1, 0,
			-1, -1, -1, -1, 4014, No, 1, 690, 1, true, "",
		},
		{
			"api23-sample-meminfo.txt", "com.sample.package", 22861, 145991, 17976, 24240, 33748, 1316, 40829, 17932,
			9950, -1, 22236, -1, 7962, 32867, -1, 9, No, 1, 553, 1, false, "",
		},
		{
			"api23-private-gfx-meminfo.txt", "com.xxxxxx", 21828, 99172, 35216, 31896, 16920, 636, 4084, 2456, 7964, -1,
			0, -1, -1, -1, 9602, 4, No, 1, 34, 2, false, "",
		},
		{
			"api29-unity-meminfo-reflowed.txt", "com.unity.TowerDefenceIncremental", 21501, 312674, 1234, 43210, 764,
			36, 107884, 6580, 169230, -1, -1, 165001, 49956, -1, 57928, 66, Yes, 1, 7, 1, false, "",
		},
		{
			"api29-native-process-meminfo.txt", "", -1, 1383, 1, 156, 60, 4, 2, 260, 903, -1, -1, 880, -1, -1, -1, 0,
			Yes, -1, -1, -1, false, "2(6)",
		},
		{
			"api30-unity-meminfo.txt", "com.DefaultCompany.MemoryTests", 14978, 688561, 10152, 396792, 46672, 1536,
			85032, 143112, 5265, 746132, -1, 15, 49956, -1, 35076, 153, Yes, 1, 8, 1, false, "",
		},
		{
			"api36-memorylab-meminfo-d.txt", "com.androidperformance.memorylab", 20602, 337790, 69716, 80824, 30304,
			2072, 57172, 72624, 25078, 421296, -1, 162, 54432, 832, 1908, 460, Yes, 1, 779, 1, false, "",
		},
		{
			"api36-emulator-flutter-meminfo.txt", "com.example.app_movil", 3794, 353574, 34292, 57464, 37436, 1632, 0,
			203408, 19342, 508256, 0, -1, -1, -1, -1, 16, No, 1, 31, 1, false, "",
		},
	} {
		t.Run(w.file, func(t *testing.T) {
			text := string(recorded.Read(t, "device", w.file))
			for _, text := range []string{
				text, strings.ReplaceAll(text, "\n", "\r\n"), strings.ReplaceAll(text, "\n", "\r\r\n"),
				strings.ReplaceAll(text, "\n", "   \n"),
			} {
				b := one(t, text)
				got := values(b)
				for name, n := range map[string]int64{
					"PID": w.pid, "TotalPss": w.total, "JavaHeap": w.java, "NativeHeap": w.native, "Code": w.code,
					"Stack":    w.stack,
					"Graphics": w.gfx, "PrivateOther": w.other, "System": w.sys, "TotalRss": w.rss, "Swap": w.swap,
					"SwapPss":   w.swapPss,
					"EGLMtrack": w.egl, "GLMtrack": w.gl, "OtherMtrack": -1, "GfxDev": w.gfxDev,
					"OtherDev": w.otherDev} {
					if got[name] != n {
						t.Errorf("%s is %d, want %d", name, got[name], n)
					}
				}
				if string(b.Process) != w.process || b.SwapInTotal != w.inTotal || b.Computed != w.computed ||
					b.Truncated || !b.TableComplete {
					t.Errorf("got %+v", b)
				}
				if w.activities < 0 && b.Objects != nil || w.activities >= 0 &&
					(b.Objects["Activities"] != w.activities || b.Objects["Views"] != w.views ||
						b.Objects["ViewRootImpl"] != w.roots) {
					t.Errorf("objects %v", b.Objects)
				}
				switch said := fmt.Sprint(b.Warnings); {
				case w.warned != "" && !strings.Contains(said, w.warned):
					t.Errorf("warnings %v do not contain %q", b.Warnings, w.warned)
				case w.warned == "" && len(b.Warnings) > 0 && !strings.Contains(w.file, "reflowed"):
					t.Errorf("warnings %v", b.Warnings)
				}
			}
		})
	}
}

// TestIdentities checks whether the rows, dimensions and TOTAL of each recorded
// output are consistent, which verifies that the columns were read correctly.
func TestIdentities(t *testing.T) {
	for _, file := range meminfoFiles {
		if strings.Contains(file, "reflowed") || strings.Contains(file, "native") {
			continue // edited by hand
		}
		b := one(t, string(recorded.Read(t, "device", file)))
		total, _ := b.Row("TOTAL")
		var pss, dirty, clean int64
		for _, r := range b.Rows {
			if r.Name != "TOTAL" {
				pss, dirty, clean = pss+r.Pss.N, dirty+r.PrivateDirty.N, clean+r.PrivateClean.N
			}
		}
		if pss+total.SwapPss.N != b.TotalPss.N || dirty != total.PrivateDirty.N || clean != total.PrivateClean.N {
			t.Errorf("%s: rows add up to %d, %d, %d, want TOTAL %+v", file, pss, dirty, clean, total)
		}
		if !b.System.Known {
			continue
		}
		if sum := b.JavaHeap.N + b.NativeHeap.N + b.Code.N + b.Stack.N + b.Graphics.N + b.PrivateOther.N +
			b.System.N; sum != b.TotalPss.N {
			t.Errorf("%s: categories add up to %d, want %d", file, sum, b.TotalPss.N)
		}
		again := b
		again.compute(&columns{kinds: []columnKind{privateClean}})
		if again.JavaHeap != b.JavaHeap || again.NativeHeap != b.NativeHeap || again.Graphics != b.Graphics ||
			again.Stack != b.Stack || again.System != b.System {
			t.Errorf("%s: computed %+v", file, again)
		}
	}
}

// TestTruncatedMeminfo truncates the output at every byte: no value may differ
// from that of the complete output.
func TestTruncatedMeminfo(t *testing.T) {
	for _, file := range meminfoFiles {
		text := string(recorded.Read(t, "device", file))
		for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\r\n")} {
			whole := one(t, text)
			all := values(whole)
			for at := range len(text) {
				m, err := ParseMeminfo([]byte(text[:at]))
				if err != nil {
					var e DeviceError
					if !errors.As(err, &e) || e.Kind != Empty && e.Kind != Format && e.Kind != Truncated {
						t.Fatalf("%s truncated at %d: %v", file, at, err)
					}
					continue
				}
				b := m.Blocks[0]
				for name, n := range values(b) {
					if n != -1 && n != all[name] {
						t.Errorf("%s truncated at %d: %s is %d, want %d", file, at, name, n, all[name])
					}
				}
				if b.Process != "" && b.Process != whole.Process || len(m.Blocks) > 1 {
					t.Errorf("%s truncated at %d: got process %q, want %q or none; got %d blocks, want 1", file, at,
						b.Process, whole.Process, len(m.Blocks))
				}
				if !b.Truncated &&
					(!b.TotalPss.Known || b.Computed != whole.Computed && !strings.HasPrefix(file, "api23")) {
					t.Errorf("%s truncated at %d is not reported as truncated", file, at)
				}
			}
		}
	}
}

// layout formats a table like ActivityThread.printRow.
type layout struct {
	upper, lower []string
	heap         int // number of heap columns at the end
	width        int
}

var layouts = map[string]layout{
	"4.4": {
		[]string{"Pss", "Private", "Private", "Swapped", "Heap", "Heap", "Heap"},
		[]string{"Total", "Dirty", "Clean", "Dirty", "Size", "Alloc", "Free"}, 3, 9,
	},
	"8": {
		[]string{"Pss", "Private", "Private", "SwapPss", "Heap", "Heap", "Heap"},
		[]string{"Total", "Dirty", "Clean", "Dirty", "Size", "Alloc", "Free"}, 3, 9,
	},
	"14": {
		[]string{"Pss", "Private", "Private", "Swap", "Rss", "Heap", "Heap", "Heap"},
		[]string{"Total", "Dirty", "Clean", "Dirty", "Total", "Size", "Alloc", "Free"}, 3, 9,
	},
	"5 -a": {[]string{"Pss", "Pss", "Shared", "Private", "Shared", "Private", "Swapped", "Heap", "Heap", "Heap"},
		[]string{"Total", "Clean", "Dirty", "", "Clean", "Clean", "Dirty", "Size", "Alloc", "Free"}, 3, 9},
	"14 -a": {
		[]string{"Pss", "Pss", "Shared", "Private", "Shared", "Private", "SwapPss", "Rss", "Heap", "Heap", "Heap"},
		[]string{"Total", "Clean", "Dirty", "Dirty", "Clean", "Clean", "Dirty", "Total", "Size", "Alloc", "Free"}, 3,
		9},
	"touching": {
		[]string{"Pss", "Private", "Private", "SwapPss", "Rss", "Heap", "Heap", "Heap"},
		[]string{"Total", "Dirty", "Clean", "Dirty", "Total", "Size", "Alloc", "Free"}, 3, 8,
	},
}

func (l layout) line(name string, cells ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%13s", name)
	for _, c := range cells {
		if l.width == 9 {
			fmt.Fprintf(&b, " %8s", c) // like AOSP: a space even before a wide cell
		} else {
			fmt.Fprintf(&b, "%*s", l.width, c)
		}
	}
	return b.String() + "\n"
}

// table formats rows, given as named cells, and returns what a parser must
// find.
func (l layout) table(r *rand.Rand, limit int64) (text string, want map[string]int64) {
	want = map[string]int64{}
	dashes := make([]string, len(l.upper))
	for i := range dashes {
		dashes[i] = "------"
	}
	text = "** MEMINFO in pid 7 [a.b:c] **\n" + l.line("", l.upper...) + l.line("", l.lower...) + l.line("", dashes...)
	fields := map[string]string{
		"Pss Total": "Pss", "Pss Clean": "PssClean", "Shared Dirty": "SharedDirty", "Private Dirty": "PrivateDirty",
		"Private":      "PrivateDirty",
		"Shared Clean": "SharedClean", "Private Clean": "PrivateClean", "Swapped Dirty": "Swap", "Swap Dirty": "Swap",
		"SwapPss Dirty": "SwapPss", "Rss Total": "Rss",
		"Heap Size": "HeapSize", "Heap Alloc": "HeapAlloc", "Heap Free": "HeapFree"}
	for _, name := range []string{
		"Native Heap", "Dalvik Heap", ".so mmap", "EGL mtrack", "Vendor thing", "Unknown", "TOTAL",
	} {
		cells := make([]string, len(l.upper))
		for i := range cells {
			if i >= len(cells)-l.heap && name != "Native Heap" && name != "Dalvik Heap" && name != "TOTAL" {
				continue
			}
			n := r.Int64N(limit)
			if i == 0 {
				n %= 1e6 // a wider number would touch the name
			}
			if r.IntN(3) == 0 {
				n = r.Int64N(100)
			}
			cells[i] = strconv.FormatInt(n, 10)
			want["row "+name+" "+fields[strings.TrimSpace(l.upper[i]+" "+l.lower[i])]] = n
		}
		text += l.line(name, cells...)
	}
	return text, want
}

func TestLayouts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, l := range layouts {
		for round := range 200 {
			limit := []int64{1000, 99999999}[round%2]
			if l.width == 9 && round%4 == 3 {
				limit = 999999999 // wider than a column: the rest of the row shifts
			}
			text, want := l.table(r, limit)
			if round%3 == 0 {
				text = strings.ReplaceAll(text, "\n", "\r\n")
			}
			if round%5 == 0 {
				text = arabic(text)
			}
			got := values(one(t, text))
			for k, n := range want {
				if got[k] != n {
					t.Fatalf("%s: %s is %d, want %d in\n%s", name, k, got[k], n, text)
				}
			}
		}
	}
}

// arabic returns the table in Arabic-Indic digits, except in the names of
// processes.
func arabic(text string) string {
	head, rest, _ := strings.Cut(text, "\n")
	return head + "\n" + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r - '0' + '٠'
		}
		return r
	}, rest)
}

func TestOtherDigits(t *testing.T) {
	if got := foldDigits("٧٨ ۷۸ ৭৮ ७८ 78 𝟕𝟖 x²½"); got != "78 78 78 78 78 78 x²½" {
		t.Errorf("%q", got)
	}
}

// TestRowsInAnyOrder permutes and drops rows: the remaining rows keep their
// values.
func TestRowsInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, file := range []string{"api23-sample-meminfo.txt", "api36-memorylab-meminfo-d.txt"} {
		text := string(recorded.Read(t, "device", file))
		all := values(one(t, text))
		start := strings.Index(text, "  Native Heap")
		end := strings.Index(text, "        TOTAL")
		rows := strings.SplitAfter(strings.TrimSuffix(text[start:end], "\n"), "\n")
		rows[len(rows)-1] += "\n"
		for range 100 {
			r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			kept := rows[:r.IntN(len(rows)+1)]
			got := values(one(t, text[:start]+strings.Join(kept, "")+text[end:]))
			for k, n := range got {
				if n != -1 && n != all[k] {
					t.Fatalf("%s: %s is %d, want %d", file, k, n, all[k])
				}
			}
			for _, row := range kept {
				name := strings.TrimSpace(row[:13])
				if got["row "+name+" Pss"] != all["row "+name+" Pss"] {
					t.Fatalf("%s: row %q is missing", file, name)
				}
			}
		}
	}
}

func TestOneBadField(t *testing.T) {
	text := string(recorded.Read(t, "device", "api36-memorylab-meminfo-d.txt"))
	all := values(one(t, text))
	for _, c := range []struct{ from, to, lost, named string }{
		{"Java Heap:    69716", "Java Heap:    6971x", "JavaHeap", "Java Heap"},
		{
			"Graphics:    57172                          57176", "Graphics:                                  57176",
			"Graphics", "Graphics",
		},
		{"System:    25078", "System:         ", "System", "System"},
		{
			"TOTAL PSS:   337790            TOTAL RSS:   421296", "TOTAL PSS:   337790            TOTAL RSS:   4212,6",
			"", "TOTAL RSS",
		},
		{"Views:      779", "Views:      N/A", "object Views", "Views"},
		{"EGL mtrack    54432", "EGL mtrack    5443?", "EGLMtrack", "EGL mtrack"},
		{"      Gfx dev     1908     1908", "      Gfx dev     1908", "GfxDev", "Gfx dev"},
	} {
		changed := strings.Replace(text, c.from, c.to, 1)
		if changed == text {
			t.Fatalf("the recorded output does not contain %q", c.from)
		}
		b := one(t, changed)
		got := values(b)
		if n, ok := got[c.lost]; c.lost != "" && ok && n != -1 {
			t.Errorf("%s: %s is %d", c.to, c.lost, got[c.lost])
		}
		if !strings.Contains(fmt.Sprint(b.Warnings), c.named) {
			t.Errorf("%s: warnings %v", c.to, b.Warnings)
		}
		for _, name := range []string{
			"PID", "TotalPss", "TotalRss", "JavaHeap", "NativeHeap", "Code", "Stack", "Graphics", "PrivateOther",
			"System", "EGLMtrack", "GLMtrack", "object Activities",
		} {
			if name != c.lost && got[name] != all[name] {
				t.Errorf("%s: %s is %d, want %d", c.to, name, got[name], all[name])
			}
		}
	}
}

func TestSummaryOnly(t *testing.T) {
	text := string(recorded.Read(t, "device", "api36-memorylab-meminfo-d.txt"))
	head := text[:strings.Index(text, "                   Pss")]
	summary := text[strings.Index(text, " App Summary"):strings.Index(text, " Objects")]
	b := one(t, head+summary)
	if b.TotalPss != known.Of(337790) || b.JavaHeap != known.Of(69716) || b.SwapPss != known.Of(162) ||
		b.TotalRss != known.Of(421296) || b.SwapInTotal != Yes {
		t.Errorf("%+v", b)
	}
	if b.EGLMtrack.Known || b.GfxDev.Known || b.TableComplete || b.Objects != nil || b.Truncated || b.Computed ||
		len(b.Warnings) > 0 {
		t.Errorf("%+v", b)
	}
	// The lines have lost their leading spaces, as in copied text.
	if c := one(t,
		regexp.MustCompile(`(?m)^ +`).ReplaceAllString(head+summary, "")); fmt.Sprint(values(c)) != fmt.Sprint(
		values(b)) {
		t.Errorf("reflowed: %+v", c)
	}
	// A native process has no line with the pid.
	native := one(t, "Applications Memory Usage (in Kilobytes):\nUptime: 1 Realtime: 2\n"+summary)
	if native.PID.Known || native.Code != known.Of(30304) {
		t.Errorf("%+v", native)
	}
}

func TestSeveralBlocks(t *testing.T) {
	a, b := string(recorded.Read(t, "device", "api36-memorylab-meminfo-d.txt")),
		string(recorded.Read(t, "device", "api30-unity-meminfo.txt"))
	native := string(recorded.Read(t, "device", "api29-native-process-meminfo.txt"))
	block := func(s string) string { return s[strings.Index(s, "** MEMINFO"):] }
	m, err := ParseMeminfo([]byte(a + "\n\n" + block(b) + native + native[strings.Index(native, "       "):]))
	if err != nil || len(m.Blocks) != 4 {
		t.Fatalf("%d blocks, %v", len(m.Blocks), err)
	}
	for i, text := range []string{a, b, native, native} {
		if got, want := values(m.Blocks[i]), values(one(t, text)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("block %d: %v\nwant %v", i, got, want)
		}
	}
	if m.Uptime != known.Of(277763066) || m.Realtime != known.Of(766707569) {
		t.Errorf("clocks %v %v", m.Uptime, m.Realtime)
	}
}

func TestInterruptedMeminfo(t *testing.T) {
	text := string(recorded.Read(t, "device", "api36-memorylab-meminfo-d.txt"))
	const timeout = "\n*** SERVICE 'meminfo' DUMP TIMEOUT (10000ms) EXPIRED ***\n\n"
	m, err := ParseMeminfo([]byte(text[:strings.Index(text, " App Summary")] + timeout))
	if err != nil || m.Interrupted == nil || m.Interrupted.Kind != Timeout || !m.Blocks[0].Truncated ||
		m.Blocks[0].TotalPss != known.Of(337790) || m.Blocks[0].JavaHeap.Known {
		t.Errorf("%+v, %v", m, err)
	}
	for end, kind := range map[string]Kind{
		timeout:                  Timeout,
		"Got RemoteException!\n": DumpFailed,
		"Got IoException! java.io.IOException: Timeout\n": Timeout,
	} {
		m, err := ParseMeminfo([]byte(text[:strings.Index(text, "                   Pss")] + end))
		var e DeviceError
		if !errors.As(err, &e) || e.Kind != kind || len(m.Blocks) != 0 {
			t.Errorf("%q: %+v, %v", end, m, err)
		}
	}
}

func TestNotMeminfo(t *testing.T) {
	for text, kind := range map[string]Kind{
		"": Empty,
		"No process found for: com.alpicut.app\n":                                            NoProcess,
		"Applications Memory Usage (in Kilobytes):\nUptime: 278194816 Realtime: 525880208\n": Truncated,
		"hello\n":  Format,
		"\x00\xff": Format,
		"time,278194816,525880208\nproc,fore,com.x,1,2\n": Format, // -c
	} {
		m, err := ParseMeminfo([]byte(text))
		var e DeviceError
		if !errors.As(err, &e) || e.Kind != kind || m.Blocks != nil {
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	}
}

func TestHostileNames(t *testing.T) {
	table, _ := layouts["8"].table(rand.New(rand.NewPCG(1, 1)), 100)
	_, table, _ = strings.Cut(table, "\n")
	for name, want := range map[string]string{
		"a] ** [b":                "a] ** [b",
		"٧٨":                      "٧٨",
		strings.Repeat("x", 9999): strings.Repeat("x", maxName),
		"":                        "",
	} {
		if b := one(t, "** MEMINFO in pid 7 ["+name+"] **\n"+table); string(b.Process) != want || b.PID != known.Of(7) {
			t.Errorf("%.20q: %.20q %v", name, b.Process, b.PID)
		}
	}
	m, err := ParseMeminfo([]byte(strings.Repeat("** MEMINFO in pid 7 [x] **\n"+table, 2*maxBlocks)))
	if err != nil || len(m.Blocks) != maxBlocks {
		t.Error(len(m.Blocks), err)
	}
	long := strings.Repeat("  Native Heap        1        2        3        4\n", 200)
	if b := one(t,
		strings.Replace("** MEMINFO in pid 7 [x] **\n"+table, "  Native Heap", long+"  Native Heap", 1)); len(
		b.Rows) > maxRows {
		t.Error(len(b.Rows))
	}
}

func FuzzMeminfo(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, l := range layouts {
		text, _ := l.table(r, 100000)
		f.Add([]byte(text), 300)
		f.Add([]byte(text+
			" \n App Summary\n                       Pss(KB)                        Rss(KB)\n                        "+
			"------                         ------\n           Java Heap:    69716                          84804\n"+
			"             Unknown:                                   75752\n \n           TOTAL PSS:   337790        "+
			"    TOTAL RSS:   421296       TOTAL SWAP PSS:      162\n \n Objects\n               Views:      779     "+
			"    ViewRootImpl:        1\n"), 900)
	}
	f.Add([]byte("No process found for: x\n"), 5)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		m, err := ParseMeminfo(text)
		if (err != nil) == (len(m.Blocks) > 0) {
			t.Fatalf("error %v and %d blocks", err, len(m.Blocks))
		}
		for i := range m.Blocks {
			b := &m.Blocks[i]
			if len(b.Process) > maxName || len(b.Rows) > maxRows || len(b.Objects) > maxObjects ||
				len(b.Warnings) > field.MaxWarnings+1 {
				t.Fatalf("%+v", b)
			}
			if b.TableComplete && len(b.Rows) == 0 || b.Computed && b.Code.Known && len(b.Rows) == 0 {
				t.Fatalf("%+v", b)
			}
		}
		if at < 0 || at > len(text) || err != nil {
			return
		}
		part, err := ParseMeminfo(text[:at])
		if err != nil {
			return
		}
		if len(part.Blocks) > len(m.Blocks) {
			t.Fatalf("%d blocks in the truncated output, %d in the complete output", len(part.Blocks), len(m.Blocks))
		}
		for i, b := range part.Blocks {
			if b.PID.Known && b.PID != m.Blocks[i].PID {
				t.Fatalf("truncated at %d: got pid %v, want %v", at, b.PID, m.Blocks[i].PID)
			}
		}
	})
}

func BenchmarkMeminfo(b *testing.B) {
	text := recorded.Read(b, "device", "api36-memorylab-meminfo-d.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseMeminfo(text); err != nil {
			b.Fatal(err)
		}
	}
}

// TestLongLinesTakeLinearTime passes each parser 512 kB of input that repeats
// one of the parser's keywords. A parser that takes quadratic time would exceed
// the time limit.
func TestLongLinesTakeLinearTime(t *testing.T) {
	table, _ := layouts["8"].table(rand.New(rand.NewPCG(1, 1)), 100)
	for _, unit := range []string{
		":", ": 1 ", "1 ", "- ", "-- ", "[-g ", "** ", "0x|", "] ** ", "٣", "Proc 1 total: 2\n", "0x1 | 1.00 KiB\n",
		" Objects\n a: 1\n", " App Summary\n",
	} {
		long := strings.Repeat(unit, (512<<10)/len(unit))
		for _, head := range []string{
			"", table, "** MEMINFO in pid 7 [x] **\n Objects\n", "** MEMINFO in pid 7 [x] **\n App Summary\n",
			"** Graphics info for pid 5 [x] **\n", "Memory snapshot for GPU 0:\n", "GraphicBufferAllocator buffers:\n",
			"  dumpheap [-g] "} {
			text := []byte(head + long)
			_, _ = ParseMeminfo(text)
			_, _ = ParseGfxinfo(text)
			_, _ = ParseGPU(text)
			_, _ = ParseSurfaceFlinger(text)
			_, _ = ParseAmHelp(text)
			_, _ = ClassifyError(text)
		}
	}
}

// An invalid value in the SwapPss column counts as unknown. It is never
// replaced with the value of the Swap column, because TOTAL includes SwapPss
// but not Swap.
func TestAnySwap(t *testing.T) {
	for _, c := range []struct {
		b    Block
		want known.Int
	}{
		{Block{SwapInTotal: Yes, SwapPss: known.Of(5)}, known.Of(5)},
		{Block{SwapInTotal: No, Swap: known.Of(7)}, known.Of(7)},
		{Block{SwapInTotal: Yes, Swap: known.Of(7)}, known.Int{}},
		{Block{}, known.Int{}},
	} {
		if got := c.b.AnySwap(); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.b, got, c.want)
		}
	}
}
