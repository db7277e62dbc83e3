package dumpsys

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/recorded"
)

func TestRecordedGfxinfo(t *testing.T) {
	got, err := ParseGfxinfo(recorded.Read(t, "device", "api36-memorylab-gfxinfo.txt"))
	want := Gfxinfo{
		Processes: []GfxProcess{
			{
				PID: known.Of(20602), Process: "com.androidperformance.memorylab",
				GfxValues: GfxValues{GPUBytes: known.Of(4450992),
					GrallocKB: known.Of(54432), AllocatorKB: known.Of(54000), Views: known.Of(25),
					ViewRoots: known.Of(1)}}}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v, %v\nwant %v", got, err, want)
	}
	got, err = ParseGfxinfo(recorded.Read(t, "device", "api33-anavmode-gfxinfo-two-processes.txt"))
	want = Gfxinfo{Processes: []GfxProcess{
		{
			PID: known.Of(28907), Process: "de.codevoid.aNavMode",
			GfxValues: GfxValues{Views: known.Of(57), ViewRoots: known.Of(1)},
		},
		{PID: known.Of(17477), Process: "de.codevoid.andronavibar", GfxValues: GfxValues{GPUBytes: known.Of(6059640)}},
	}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v, %v\nwant %v", got, err, want)
	}
}

func TestOldGfxinfo(t *testing.T) {
	got, err := ParseGfxinfo([]byte(
		"Applications Graphics Acceleration Info:\r\nUptime: 27522172 Realtime: 74273303\r\n\r\n** Graphics info for " +
			"pid 18222 [com.tencent.mobileqq] **\r\n" +
			"Caches:\r\nCurrent memory usage / total memory usage (bytes):\r\n  TextureCache          1636784 / " +
			"75497472\r\nTotal memory usage:\r\n  2693808 bytes, 2.57 MB\r\n\r\n" +
			"  10 views, 1.2 kB of display lists\r\n\r\nTotal ViewRootImpl: 1\r\nTotal Views:        10\r\n"))
	want := Gfxinfo{
		Processes: []GfxProcess{
			{
				PID: known.Of(18222), Process: "com.tencent.mobileqq",
				GfxValues: GfxValues{GPUBytes: known.Of(2693808), Views: known.Of(10), ViewRoots: known.Of(1)},
			},
		},
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v, %v\nwant %v", got, err, want)
	}
}

func TestRecordedGPU(t *testing.T) {
	for _, c := range []struct {
		file                string
		pid, bytes, global  int64
		processes, warnings int
	}{
		{"api31-angle-gpumem.txt", 16513, 348479488, 516833280, 6, 0},
		{"api35-qcom-dumpsys-gpu-head.txt", 2035, 408252416, 764825600, 2, 0},
	} {
		got, err := ParseGPU(recorded.Read(t, "device", c.file))
		if err != nil || got.Global() != known.Of(c.global) || got.Truncated || len(got.Warnings) != c.warnings ||
			len(got.Processes()) != c.processes {
			t.Errorf("%s: %+v, %v", c.file, got, err)
		}
		found := false
		for _, p := range got.Processes() {
			found = found || p == GPUProcess{PID: c.pid, Bytes: known.Of(c.bytes)}
		}
		if !found {
			t.Errorf("%s: got %v, without pid %d and %d bytes", c.file, got.Processes(), c.pid, c.bytes)
		}
	}
}

func TestTwoGPUs(t *testing.T) {
	got, err := ParseGPU([]byte(
		"Memory snapshot for GPU 0:\nGlobal total: 10\nProc 5 total: 3\nProc 6 total: x\nMemory snapshot for GPU " +
			"1:\nGlobal total: 20\nProc 5 total: 4\n"))
	if err != nil || got.Global() != known.Of(30) ||
		fmt.Sprint(got.Processes()) != fmt.Sprint([]GPUProcess{{5, known.Of(7)}, {6, known.Int{}}}) ||
		len(got.Warnings) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if g, err := ParseGPU([]byte("Memory snapshot for GPU 0:\nProc 5 total: 3\n")); err != nil || g.Global().Known {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestRecordedSurfaceFlinger(t *testing.T) {
	got, err := ParseSurfaceFlinger(recorded.Read(t, "device", "api33-surfaceflinger-buffers.txt"))
	if err != nil || got.Buffers != known.Of(6) || got.TotalKB != known.Of(61200) || got.ImportedKB.Known ||
		got.Truncated || len(got.Warnings) > 0 || len(got.List) != 6 ||
		got.List[1] != (Buffer{known.Of(10200), "Planner"}) {
		t.Errorf("%+v, %v", got, err)
	}
	// The recorded list of imported buffers is truncated, and contains only the
	// app's window.
	window := Buffer{known.Of(10360), "VRI[GoogleDialtactsActivity]#0(BLAST Consumer)0"}
	if !slices.Equal(got.Imported, []Buffer{window, window}) || got.ImportedBuffers.Known {
		t.Errorf("%+v", got)
	}
	got, err = ParseSurfaceFlinger(recordedSurfaceFlinger(t))
	if err != nil || !slices.Equal(got.Imported, []Buffer{window, window}) || got.ImportedBuffers != known.Of(2) ||
		got.ImportedKB != known.Of(20721) || got.Truncated || len(got.Warnings) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// recordedSurfaceFlinger returns the recorded output, with an end added to its
// list of imported buffers.
func recordedSurfaceFlinger(t testing.TB) []byte {
	text := recorded.Read(t, "device", "api33-surfaceflinger-buffers.txt")
	return append(bytes.TrimRight(text, "\n"), "\nTotal imported by gralloc: 20720.50KiB\nFlagManager values: \n"...)
}

// A layer may have any name, and a buffer may have no size.
func TestImportedBuffers(t *testing.T) {
	const head = "Allocated buffers:\nTotal allocated (estimate): 0.00 KB\nImported gralloc buffers:\n"
	for list, want := range map[string][]Buffer{
		"": nil,
		"+ name:a, id:1, size:7KiB, w/h:1x1, id:2, size:9.00KiB, w/h:2x2, usage: 0xb00\n": {
			{known.Of(9), "a, id:1, size:7KiB, w/h:1x1"},
		},
		"+ name:, id:1, size:4.3e+03KiB, w/h:1x1\n": {{known.Of(4300), ""}},
		"+ name:x, id:1, size:4\n+ name:y, id:2\n": {
			{known.Int{}, "x"}, {known.Int{}, "y"},
		},
		"+ name:" + strings.Repeat("x", 2*maxName) +
			", id:1, size:4.00KiB, w/h:1x1\n": {{known.Of(4), field.Text(strings.Repeat("x", maxName))}},
		"Imported gralloc buffers sorted by size:\n* name:x, totalSize:40288KiB, count:4\n":   nil,
		"+ name:a, id:1, size:1KiB,\nImported gralloc buffers:\n+ name:b, id:1, size:2KiB,\n": {{known.Of(2), "b"}},
	} {
		got, err := ParseSurfaceFlinger(
			[]byte(head + list + "Total imported by gralloc: 5.00KiB\n+ Layer (Root#0)\n+ name:no, id:1, size:1KiB\n"))
		if err != nil || !slices.Equal(got.Imported, want) || got.ImportedBuffers != known.Of(int64(len(want))) ||
			got.Truncated {
			t.Errorf("%q: %+v, %v", list, got, err)
		}
	}
	// An invalid line counts as a buffer, and its list counts as incomplete. A
	// list that exceeds the limit is incomplete too.
	one := "+ name:z, id:1, size:1KiB, w/h:1x1\n"
	for list, n := range map[string]int{"+ name:z\n": 0, strings.Repeat(one, maxBuffers+1): maxBuffers} {
		got, err := ParseSurfaceFlinger([]byte(head + list + "Total imported by gralloc: 5.00KiB\n"))
		if err != nil || len(got.Imported) != n || got.ImportedBuffers != known.Of(int64(n+1)) {
			t.Errorf("%d of %v, %v", len(got.Imported), got.ImportedBuffers, err)
		}
	}
}

func TestSurfaceFlingerLayouts(t *testing.T) {
	for name, c := range map[string]struct {
		text      string
		n, kb     int64
		imported  known.Int
		requestor field.Text
		warnings  int
	}{
		"Android 5": {
			"Allocated buffers:\n0xb8856d30: 3600.00 KiB |  720 ( 720) x 1280 |        1 | 0x00000900\n0xb8965dc0:  " +
				"140.62 KiB |  720 ( 720) x   50 |        1 | 0x00000b00\n" +
				"Total allocated (estimate): 3740.62 KB\n", 2, 3741, known.Int{}, "", 0},
		"Android 9, one unknown": {
			"junk\nAllocated buffers:\n0x74c6eec900: 9554.00 KiB | 1080 (1088) x 2248 |    1 |        1 | 0x1a00 | " +
				"FramebufferSurface\n" +
				"0x74c6eecf20: unknown     | 1088 (1152) x 2256 |    1 | 7FA30C06 | 0x20002900 | " +
				"com.android.keyguard\nTotal allocated (estimate): 9554.00 KB\n", 2, 9554, known.Int{},
			"FramebufferSurface", 0},
		"Android 12, two digits": {
			"GraphicBufferAllocator buffers:\n0xb400006e8132ada0: 4320.00 KiB |  720 ( 768) x 1440 |    1 |        1 " +
				"| 0x10000900 | ColorFade#0\n" +
				"Total allocated by GraphicBufferAllocator (estimate): 4320.00 KB\nImported gralloc buffers:\n+ " +
				"name:placeholder, id:1, size:4.3e+03KiB, w/h:1x1\nTotal imported by gralloc: 3.8e+04KiB\n", 1, 4320,
			known.Of(38000), "ColorFade#0", 1},
		"no buffers": {
			"GraphicBufferAllocator buffers:\nTotal allocated by GraphicBufferAllocator (estimate): 0.00 KB\n", 0, 0,
			known.Int{}, "", 0,
		},
	} {
		for _, text := range []string{c.text, strings.ReplaceAll(c.text, "\n", "\r\n")} {
			got, err := ParseSurfaceFlinger([]byte(text))
			if err != nil || got.Buffers != known.Of(c.n) || got.TotalKB != known.Of(c.kb) ||
				got.ImportedKB != c.imported || len(got.Warnings) != c.warnings || got.Truncated {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			if c.n > 0 && got.List[0].Requestor != c.requestor {
				t.Errorf("%s: %+v", name, got.List)
			}
		}
	}
}

func TestNotGraphics(t *testing.T) {
	for text, kind := range map[string]Kind{
		"":                              Empty,
		"No process found for: com.x\n": NoProcess,
		"Applications Graphics Acceleration Info:\nUptime: 1 Realtime: 2\n": Truncated,
		"** Graphics info for pid 5 [x] **\nFailure while dumping the app: ProcessRecord{43294230 " +
			"1516:com.miui.home/1000}\n": DumpFailed,
		"Can't find service: gfxinfo\n": NoService,
	} {
		var e DeviceError
		if got, err := ParseGfxinfo([]byte(text)); !errors.As(err, &e) || e.Kind != kind || got.Processes != nil {
			t.Errorf("gfxinfo %q: %+v, %v", text, got, err)
		}
	}
	for text, kind := range map[string]Kind{
		"":                                                       Empty,
		"Failed to initialize GPU memory eBPF\n":                 Unsupported,
		"GPU memory total usage map is empty\n":                  Unsupported,
		"Stable Game Driver: unsupported\n":                      Format,
		"Memory snapshot for GPU 0:\n":                           Truncated,
		"Memory snapshot for GPU 0:\nGlobal tot":                 Truncated,
		"*** SERVICE 'gpu' DUMP TIMEOUT (10000ms) EXPIRED ***\n": Timeout,
	} {
		var e DeviceError
		if got, err := ParseGPU([]byte(text)); !errors.As(err, &e) || e.Kind != kind || got.GPUs != nil {
			t.Errorf("gpu %q: %+v, %v", text, got, err)
		}
	}
	for text, kind := range map[string]Kind{
		"":                                   Empty,
		"GraphicBufferAllocator buffers:\n":  Truncated,
		"Can't find service: SurfaceFlinger": NoService,
		"Visible layers (count = 11)\n":      Format,
	} {
		var e DeviceError
		if got, err := ParseSurfaceFlinger([]byte(text)); !errors.As(err, &e) || e.Kind != kind || got.List != nil {
			t.Errorf("SurfaceFlinger %q: %+v, %v", text, got, err)
		}
	}
}

// TestTruncatedGraphics truncates the recorded outputs at every byte: each
// value must be either the same as in the complete output or absent.
func TestTruncatedGraphics(t *testing.T) {
	absentOr := func(file string, at int, name string, part, whole known.Int) {
		t.Helper()
		if part.Known && part != whole {
			t.Errorf("%s truncated at %d: %s is %d, want %d", file, at, name, part.N, whole.N)
		}
	}
	for _, file := range []string{"api36-memorylab-gfxinfo.txt", "api33-anavmode-gfxinfo-two-processes.txt"} {
		text := recorded.Read(t, "device", file)
		whole, _ := ParseGfxinfo(text)
		for at := range len(text) {
			part, err := ParseGfxinfo(text[:at])
			if err != nil {
				continue
			}
			for i, p := range part.Processes {
				w := whole.Processes[i]
				absentOr(file, at, "pid", p.PID, w.PID)
				absentOr(file, at, "gpu", p.GPUBytes, w.GPUBytes)
				absentOr(file, at, "gralloc", p.GrallocKB, w.GrallocKB)
				absentOr(file, at, "allocator", p.AllocatorKB, w.AllocatorKB)
				absentOr(file, at, "views", p.Views, w.Views)
				absentOr(file, at, "roots", p.ViewRoots, w.ViewRoots)
				if p.Process != "" && p.Process != w.Process {
					t.Errorf("%s truncated at %d: %q", file, at, p.Process)
				}
			}
			if text[at-1] != '\n' && !part.Truncated {
				t.Errorf("%s truncated at %d is not reported as truncated", file, at)
			}
		}
	}
	for _, file := range []string{"api31-angle-gpumem.txt", "api35-qcom-dumpsys-gpu-head.txt"} {
		text := recorded.Read(t, "device", file)
		whole, _ := ParseGPU(text)
		for at := range len(text) {
			part, err := ParseGPU(text[:at])
			if err != nil {
				continue
			}
			absentOr(file, at, "global", part.Global(), whole.Global())
			for i, p := range part.Processes() {
				w := whole.Processes()[i]
				absentOr(file, at, fmt.Sprint("pid ", p.PID), p.Bytes, w.Bytes)
				if p.PID != w.PID {
					t.Errorf("%s truncated at %d: pid %d", file, at, p.PID)
				}
			}
		}
	}
	text := recordedSurfaceFlinger(t)
	whole, _ := ParseSurfaceFlinger(text)
	for at := range len(text) {
		part, err := ParseSurfaceFlinger(text[:at])
		if err != nil {
			continue
		}
		absentOr("SurfaceFlinger", at, "buffers", part.Buffers, whole.Buffers)
		absentOr("SurfaceFlinger", at, "total", part.TotalKB, whole.TotalKB)
		for i, b := range part.List {
			if b != whole.List[i] {
				t.Errorf("truncated at %d: %+v", at, b)
			}
		}
		absentOr("SurfaceFlinger", at, "imported buffers", part.ImportedBuffers, whole.ImportedBuffers)
		absentOr("SurfaceFlinger", at, "imported", part.ImportedKB, whole.ImportedKB)
		if !slices.Equal(part.Imported, whole.Imported[:len(part.Imported)]) {
			t.Errorf("truncated at %d: %+v", at, part.Imported)
		}
		if !part.Buffers.Known && !part.Truncated {
			t.Errorf("output truncated at %d is not reported as truncated", at)
		}
	}
}

const (
	amHelp16 = "Activity manager (activity) commands:\n" +
		"  help\n" +
		"      Print this help text.\n" +
		"  profile stop [--user <USER_ID> current] <PROCESS>\n" +
		"      --streaming: stream the profiling output to the specified file.\n" +
		"  dumpheap [--user <USER_ID> current] [-n] [-g] [-b <format>] \n" +
		"           <PROCESS> <FILE>\n" +
		"      Dump the heap of a process.  The given <PROCESS> argument may\n" +
		"        be either a process name or pid.  Options are:\n" +
		"      -n: dump native heap instead of managed heap\n" +
		"      -g: force GC before dumping the heap\n" +
		"      -b <format>: dump contents of bitmaps in the format specified,\n" +
		"         which can be \"png\", \"jpg\" or \"webp\".\n" +
		"      --user <USER_ID> | current: When supplying a process name,\n" +
		"          specify user of process to dump; uses current user if not specified.\n" +
		"  set-debug-app [-w] [--persistent] <PACKAGE>\n" +
		"      -m: not of dumpheap\n"
	amHelp7 = "usage: am [subcommand] [options]\n" +
		"usage: am start [-D] [-W] [-g] <INTENT>\n" +
		"       am profile stop [--user <USER_ID> current] [<PROCESS>]\n" +
		"       am dumpheap [--user <USER_ID> current] [-n] <PROCESS> <FILE>\n" +
		"       am set-debug-app [-w] [--persistent] <PACKAGE>\n" +
		"\n" +
		"am start: start an Activity.  Options are:\n" +
		"    -g: something else\n" +
		"\n" +
		"am dumpheap: dump the heap of a process.  Options are:\n" +
		"    -n: dump native heap instead of managed heap\n" +
		"\n" +
		"am monitor: start monitoring for crashes or ANRs.\n" +
		"    -b: not of dumpheap\n"
)

func TestAmHelp(t *testing.T) {
	amHelp13 := strings.Replace(strings.Replace(amHelp16, " [-b <format>] \n          ", "", 1),
		amHelp16[strings.Index(amHelp16, "      -b"):strings.Index(amHelp16,
			"      --user <USER_ID> | current: When supplying a process name,\n          specify user of process to "+
				"dump")], "", 1)
	for name, c := range map[string]struct {
		text string
		want AmHelp
	}{
		"16": {amHelp16, AmHelp{GC: Yes, Bitmaps: Yes, Native: Yes, MallocInfo: Unknown, User: Yes}},
		"13": {amHelp13, AmHelp{GC: Yes, Bitmaps: No, Native: Yes, MallocInfo: Unknown, User: Yes}},
		"7":  {amHelp7, AmHelp{GC: No, Bitmaps: No, Native: Yes, MallocInfo: Unknown, User: Yes}},
		"-m": {"  dumpheap [-m] <P>\n  x\n", AmHelp{GC: No, Bitmaps: No, Native: No, MallocInfo: Yes, User: No}},
		"half": {
			amHelp16[:strings.Index(amHelp16, " [-b")],
			AmHelp{GC: Yes, Bitmaps: Unknown, Native: Yes, MallocInfo: Unknown, User: Yes},
		},
	} {
		for _, text := range []string{c.text, strings.ReplaceAll(c.text, "\n", "\r\n")} {
			if got, err := ParseAmHelp([]byte(text)); err != nil || got != c.want {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
	for _, whole := range []string{amHelp16, amHelp7} {
		want, _ := ParseAmHelp([]byte(whole))
		for at := range len(whole) {
			got, err := ParseAmHelp([]byte(whole[:at]))
			if err != nil {
				continue
			}
			for _, c := range [][2]Answer{
				{got.GC, want.GC}, {got.Bitmaps, want.Bitmaps}, {got.Native, want.Native}, {got.User, want.User},
			} {
				if c[0] != Unknown && c[0] != c[1] {
					t.Errorf("truncated at %d: %+v, whole %+v", at, got, want)
				}
			}
		}
	}
	for text, kind := range map[string]Kind{
		"": Empty, "cmd: Can't find service: activity\n": NoService,
		"Activity manager (activity) commands:\n  help\n": Truncated,
	} {
		var e DeviceError
		if got, err := ParseAmHelp([]byte(text)); !errors.As(err, &e) || e.Kind != kind || got != (AmHelp{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func FuzzGfxinfo(f *testing.F) {
	f.Add([]byte("** Graphics info for pid 5 [x] **\nTotal GPU memory usage:\n  4450992 bytes, 4.24 MB\nTotal "+
		"imported by gralloc: 54432.00KiB\nTotal attached Views : 25\n"), 70)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		g, err := ParseGfxinfo(text)
		if (err != nil) == (len(g.Processes) > 0) || len(g.Processes) > maxBlocks ||
			len(g.Warnings) > field.MaxWarnings+1 {
			t.Fatalf("%+v, %v", g, err)
		}
		for _, p := range g.Processes {
			if p.GPUBytes.N < 0 || p.Views.N < 0 || p.GrallocKB.N < 0 || len(p.Process) > maxName {
				t.Fatalf("%+v", p)
			}
		}
		if at < 0 || at > len(text) {
			return
		}
		if part, err := ParseGfxinfo(text[:at]); err == nil && len(part.Processes) > len(g.Processes) {
			t.Fatalf("truncated at %d: %+v, whole %+v", at, part, g)
		}
	})
}

func FuzzGPU(f *testing.F) {
	f.Add([]byte("Memory snapshot for GPU 0:\nGlobal total: 10\nProc 5 total: 3\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := ParseGPU(text)
		if (err != nil) == (len(g.GPUs) > 0) {
			t.Fatalf("%+v, %v", g, err)
		}
		if err != nil || len(text) == 0 {
			return
		}
		at := rand.New(rand.NewPCG(uint64(len(text)), 9)).IntN(len(text))
		part, err := ParseGPU(text[:at])
		if err != nil {
			return
		}
		for i, m := range part.GPUs {
			for j, p := range m.Processes {
				if p.Bytes.Known && p != g.GPUs[i].Processes[j] {
					t.Fatalf("truncated at %d: %+v, whole %+v", at, p, g.GPUs[i].Processes[j])
				}
			}
		}
	})
}

func FuzzSurfaceFlinger(f *testing.F) {
	f.Add([]byte("GraphicBufferAllocator buffers:\n0xb400 | 10200.00 KiB | 1080 (1088) x 2400 |      1 |        1 | " +
		"0x b00 | Planner\nTotal allocated by GraphicBufferAllocator (estimate): 61200.00 KB\nTotal imported by " +
		"gralloc: 3.8e+04KiB\n"))
	f.Add([]byte("Allocated buffers:\nTotal allocated (estimate): 0.00 KB\nImported gralloc buffers:\n+ " +
		"name:VRI[Main]#0(BLAST Consumer)0, id:2126008817486, size:10360.25KiB, w/h:1080x2400\nTotal imported by " +
		"gralloc: 10360.25KiB\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseSurfaceFlinger(text)
		if err != nil {
			if s.Buffers.Known || s.List != nil || s.TotalKB.Known || s.ImportedBuffers.Known || s.Imported != nil {
				t.Fatalf("%+v, %v", s, err)
			}
			return
		}
		if !s.Buffers.Known && !s.Truncated || s.Buffers.Known && s.Buffers.N < int64(len(s.List)) || s.TotalKB.N < 0 ||
			s.ImportedBuffers.Known && s.ImportedBuffers.N < int64(len(s.Imported)) || len(s.Imported) > maxBuffers ||
			s.ImportedKB.N < 0 {
			t.Fatalf("%+v", s)
		}
	})
}

func FuzzAmHelp(f *testing.F) {
	f.Add([]byte(amHelp16), 700)
	f.Add([]byte(amHelp7), 300)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		h, err := ParseAmHelp(text)
		if err != nil && h != (AmHelp{}) || h.MallocInfo == No {
			t.Fatalf("%+v, %v", h, err)
		}
	})
}
