package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// parsedJSON returns the result of one call with --json.
func parsedJSON(t *testing.T, kind, path string) map[string]any {
	t.Helper()
	code, out, errOut := typed(t, nil, "parse", kind, path, "--json")
	if code != exitOK || errOut != "" {
		t.Fatalf("%s %s: exit %d, %s", kind, path, code, errOut)
	}
	return decoded(t, []byte(out))
}

func decoded(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	for _, key := range []string{"schema", "kind", "error", "warnings"} {
		if _, ok := doc[key]; !ok {
			t.Fatalf("no %s in %.200s", key, text)
		}
	}
	if doc["schema"] != "leakgate.parse/1" {
		t.Fatalf("schema %v", doc["schema"])
	}
	return doc
}

var blockKeys = []string{
	"java_heap_kb", "native_heap_kb", "code_kb", "stack_kb", "graphics_kb", "private_other_kb", "system_kb",
}

// TestManifestMeminfo reads the table of the recorded outputs and compares the
// output of parse with each number in it.
func TestManifestMeminfo(t *testing.T) {
	manifest := recorded.Read(t, "device", "MANIFEST.md")
	rows := 0
	for line := range strings.Lines(string(manifest)) {
		cells := strings.Split(line, "|")
		if len(cells) < 9 || !strings.Contains(cells[1], "-meminfo") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		file := cells[1]
		if strings.Contains(file, "..") {
			continue
		}
		t.Run(file, func(t *testing.T) { holdMeminfo(t, file, cells) })
		rows++
	}
	if rows != 9 {
		t.Errorf("the table has %d rows, want 9", rows)
	}
}

func holdMeminfo(t *testing.T, file string, cells []string) {
	block := parsedJSON(t, "meminfo", recorded.Path(t, "device", file))["blocks"].([]any)[0].(map[string]any)
	want := map[string]any{"total_pss_kb": cells[3]}
	if dims := strings.Split(strings.Fields(cells[4])[0], "/"); len(dims) == len(blockKeys) {
		for i, key := range blockKeys {
			want[key] = dims[i]
		}
	} else { // "Java 11916, Native 24, rest not available"
		for i, key := range blockKeys {
			want[key] = nil
			if n := regexp.MustCompile(`(?:Java|Native) (\d+)`).FindAllStringSubmatch(cells[4], -1); i < len(n) {
				want[key] = n[i][1]
			}
		}
	}
	want["rss_kb"], want["swap_pss_kb"], want["swap_in_total"] = nil, nil, nil
	if cells[5] != "-" {
		want["rss_kb"] = cells[5]
	}
	if cells[6] != "-" {
		want["swap_pss_kb"] = strings.Fields(cells[6])[0]
		// According to the notes of the table, SwapPss is part of the total;
		// Swap and Swapped are not.
		text := recorded.Read(t, "device", file)
		want["swap_in_total"] = strconv.FormatBool(bytes.Contains(text, []byte("SwapPss")))
	}
	for key, w := range want {
		if w == nil && block[key] != nil || w != nil && jsonText(block[key]) != w {
			t.Errorf("%s is %v, want %v", key, block[key], w)
		}
	}
	if cells[7] == "none" {
		if block["objects"] != nil {
			t.Errorf("objects %v", block["objects"])
		}
		return
	}
	objects := block["objects"].(map[string]any)
	for i, key := range []string{"Activities", "Views", "ViewRootImpl"} {
		if w := strings.Split(cells[7], "/")[i]; jsonText(objects[key]) != w {
			t.Errorf("%s is %v, want %s", key, objects[key], w)
		}
	}
}

func jsonText(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

func TestManifestOthers(t *testing.T) {
	for _, c := range []struct {
		kind, file string
		want       map[string]any
	}{
		{
			"smaps", "api36-memorylab-smaps.txt.gz",
			map[string]any{
				"mappings": 4068, "pss_kb": 282363, "rss_kb": 366032, "swap_kb": 24660, "swap_pss_kb": 162,
				"private_dirty_kb": 238524, "private_clean_kb": 18924,
			},
		},
		{
			"smaps", "api29-x86_64-systemserver-smaps.txt.gz",
			map[string]any{"mappings": 2760, "pss_kb": 108384, "rss_kb": 250332, "swap_pss_kb": 0},
		},
		{
			"smaps", "api29-x86_64-smaps_short.txt",
			map[string]any{"mappings": 6, "pss_kb": 19119, "rss_kb": 32900, "swap_pss_kb": 0},
		},
		{
			"showmap", "api36-memorylab-showmap.txt",
			map[string]any{
				"size_kb": 34495976, "rss_kb": 366032, "pss_kb": 282367, "shared_clean_kb": 81748,
				"shared_dirty_kb":  26836,
				"private_clean_kb": 18924, "private_dirty_kb": 238524, "swap_kb": 24660, "swap_pss_kb": 162,
				"rows": 1109, "mappings": 1109}},
		{
			"smaps_rollup", "api30-galaxy-a52-smaps_rollup.txt",
			map[string]any{
				"rss_kb": 55656, "pss_kb": 7071, "swap_kb": 35232, "swap_pss_kb": 1194, "private_dirty_kb": 5200,
				"pss_anon_kb": nil,
			},
		},
		{
			"smaps_rollup", "api3x-tvbox-smaps_rollup-head.txt",
			map[string]any{"rss_kb": 3892, "pss_kb": 3892, "pss_anon_kb": 1256, "swap_pss_kb": nil, "truncated": true},
		},
		{
			"gfxinfo", "api36-memorylab-gfxinfo.txt",
			map[string]any{"total_gpu_memory_bytes": 4450992, "allocator_kb": 54000, "gralloc_kb": 54432, "views": 25,
				"processes.0.pid": 20602, "processes.0.gralloc_kb": 54432}},
		{
			"gfxinfo", "api33-anavmode-gfxinfo-two-processes.txt",
			map[string]any{
				"processes.0.pid": 28907, "processes.0.total_gpu_memory_bytes": nil, "processes.1.pid": 17477,
				"processes.1.total_gpu_memory_bytes": 6059640, "total_gpu_memory_bytes": nil}},
		{
			"gpu", "api31-angle-gpumem.txt",
			map[string]any{"global_bytes": 516833280, "processes.3.pid": 16513, "processes.3.bytes": 348479488},
		},
		{
			"gpu", "api35-qcom-dumpsys-gpu-head.txt",
			map[string]any{"global_bytes": 764825600, "processes.0.pid": 2035, "processes.0.bytes": 408252416},
		},
		{"surfaceflinger", "api33-surfaceflinger-buffers.txt", map[string]any{"buffers": 6, "total_kb": 61200}},
		{
			"meminfo", "error-meminfo-no-process.txt",
			map[string]any{
				"error.kind": "no_process", "error.text": "No process found for: com.alpicut.app", "blocks.0": nil,
			},
		},
		{"smaps_rollup", "error-smaps_rollup-permission.txt", map[string]any{"error.kind": "permission"}},
		{"smaps", "error-smaps_rollup-permission.txt", map[string]any{"error.kind": "permission"}},
		{"status", "error-kill-not-permitted.txt", map[string]any{"error.kind": "permission"}},
		{"meminfo", "error-dumpsys-timeout.txt", map[string]any{"error.kind": "timeout"}},
		{"am_help", "error-dumpheap-not-debuggable.txt", map[string]any{"error.kind": "not_debuggable"}},
		{"am_help", "api30-am-dumpheap-ok.txt", map[string]any{"error.kind": "format"}},
		{"meminfo", "api28-meminfo-help.txt", map[string]any{"error.kind": "usage"}},
		{"gpu", "api28-dumpsys-help.txt", map[string]any{"error.kind": "usage"}},
	} {
		doc := parsedJSON(t, c.kind, recorded.Path(t, "device", c.file))
		got := flat(doc)
		for key, want := range c.want {
			if fmt.Sprint(want) != jsonText(got[key]) {
				t.Errorf("%s %s: %s is %v, want %v", c.kind, c.file, key, got[key], want)
			}
		}
		if _, ok := c.want["error.kind"]; ok {
			if blocks, ok := doc["blocks"].([]any); !ok || len(blocks) != 0 {
				t.Errorf("%s %s: blocks %v", c.kind, c.file, doc["blocks"])
			}
		} else if doc["error"] != nil {
			t.Errorf("%s %s: error %v", c.kind, c.file, doc["error"])
		}
	}
}

// flat flattens nested values: the keys of the result have the form a.0.b.
func flat(v any) map[string]any {
	out := map[string]any{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(strings.TrimPrefix(path+"."+k, "."), x)
			}
		case []any:
			for i, x := range v {
				walk(path+"."+strconv.Itoa(i), x)
			}
		default:
			out[path] = v
		}
	}
	walk("", v)
	return out
}

// TestParseOutput checks the output of parse for one input of each kind, for
// people and as JSON, key by key.
func TestParseOutput(t *testing.T) {
	parseGolden(t, "error", "meminfo")
	for _, kind := range parseKindNames() {
		parseGolden(t, kind, kind)
	}
}

func parseGolden(t *testing.T, name, kind string) {
	t.Helper()
	path := filepath.Join("testdata", "parse", name)
	var out strings.Builder
	for _, asJSON := range []bool{false, true} {
		if err := runParse(kind, path+".in", asJSON, nil, &out); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, path+".txt", out.String())
}

func TestParseReadsStandardInputAndStatus(t *testing.T) {
	for _, c := range []struct {
		kind, text string
		want       map[string]any
	}{
		{
			"status",
			"Name:\tapp\nPid:\t7\nUid:\t10123\t10123\t10123\t10123\nRssAnon:\t  12 kB\nVmSwap:\t  3 kB\nThreads:\t9\n",
			map[string]any{
				"name": "app", "pid": 7, "uid": 10123, "rss_anon_kb": 12, "vm_swap_kb": 3, "threads": 9,
				"vm_rss_kb": nil,
			}},
		{"stat", "7 (a b) S 1 0 0 0 -1 0 0 0 0 0 5 6 0 0 20 0 9 0 4567 1 1\n",
			map[string]any{
				"pid": 7, "comm": "a b", "state": "S", "ppid": 1, "utime_ticks": 5, "stime_ticks": 6, "threads": 9,
				"start_ticks": 4567,
			}},
		{"am_help", "  dumpheap [--user <USER_ID> current] [-n] [-g] <PROCESS> <FILE>\n  set-debug-app\n",
			map[string]any{
				"dumpheap.gc": true, "dumpheap.bitmaps": false, "dumpheap.native": true, "dumpheap.malloc_info": nil,
				"dumpheap.user": true,
			}},
		{
			"exitinfo",
			"ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\n  package: com.shop\n    Historical " +
				"Process Exit for uid=10123\n        ApplicationExitInfo #0:\n" +
				"          timestamp=2026-01-02 03:04:05.678 pid=123 realUid=10123 packageUid=10123 " +
				"definingUid=10123 user=0\n          process=com.shop:push reason=3 (LOW_MEMORY) subreason=0 " +
				"(UNKNOWN) status=0\n" +
				"          importance=125 pss=0.00 rss=110MB description=null state=empty trace=null\n",
			map[string]any{
				"exits.0.pid": 123, "exits.0.uid": 10123, "exits.0.process": "com.shop:push", "exits.0.reason": 3,
				"exits.0.reason_name": "LOW_MEMORY", "exits.0.pss_kb": nil, "exits.0.rss_kb": 112640,
				"exits.0.description": nil, "exits.0.crash": false, "exits.0.kill": true, "truncated": false,
				"persisted": nil}},
		{
			"exitinfo", "Bad activity command, or no activities match: exit-info\n",
			map[string]any{"error.kind": "unsupported"},
		},
		{
			"logcat", testLog,
			map[string]any{
				"entries": 5, "crash": true, "kill": true, "signal": "SIGSEGV", "exception": nil,
				"kill_reason": "low watermark", "heap_used_kb": 74752, "heap_total_kb": 99328,
				"longest_gc_pause_us": 123, "gc_causes.0.cause": "Background", "gc_causes.0.count": 1,
				"mentions.0.kind": "gc", "mentions.1.kind": "native_crash", "mentions.2.kind": "low_memory_kill",
				"mentions.2.count": 2}},
		{"logcat", "logcat: unknown option -- pid\n", map[string]any{"error.kind": "unknown_option"}},
		{"logcat", "", map[string]any{"error.kind": "empty"}},
		{"smaps", "", map[string]any{"error.kind": "empty"}},
		{"status", "hello\n", map[string]any{"error.kind": "format"}},
	} {
		for _, text := range []string{c.text, gzipped(t, c.text)} {
			var out bytes.Buffer
			if err := runParse(c.kind, "-", true, strings.NewReader(text), &out); err != nil {
				t.Fatal(err)
			}
			got := flat(decoded(t, out.Bytes()))
			for key, want := range c.want {
				if fmt.Sprint(want) != jsonText(got[key]) {
					t.Errorf("%s: %s is %v, want %v", c.kind, key, got[key], want)
				}
			}
		}
	}
}

const testLog = `--------- beginning of main
11-22 15:32:47.123  1234  1250 I com.shop: Background concurrent copying GC freed 12345(800KB) AllocSpace objects, 3(60KB) LOS objects, 24% free, 73MB/97MB, paused 123us total 101ms
11-22 15:32:48.000   400   400 I lowmemorykiller: Kill 'com.shop' (1234), uid 10123, oom_score_adj 900 to free 123456kB rss, 0kB swap; reason: low watermark
11-22 15:32:48.001   400   400 I lowmemorykiller: Kill 'com.other' (77), uid 10124, oom_score_adj 900 to free 123456kB rss, 0kB swap; reason: low watermark
11-22 15:32:49.000    88    88 F libc    : Fatal signal 11 (SIGSEGV), code 1 in tid 88 (x), pid 88 (x)
11-22 15:32:50.000    88    88 I chatty  : end
`

// TestParseLogcatOfOne checks that the flags select the process whose log lines
// are evaluated.
func TestParseLogcatOfOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.txt")
	if err := os.WriteFile(path, []byte(testLog), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--pid", "1234"}, {"--process", "com.shop"}, {"--pid=1234", "--process=com.shop"},
	} {
		code, out, errOut := typed(t, nil, append([]string{"parse", "logcat", path, "--json"}, args...)...)
		got := flat(decoded(t, []byte(out)))
		if code != exitOK || got["crash"] != false || got["kill"] != true || jsonText(got["mentions.1.count"]) != "1" ||
			got["mentions.1.last"] != "11-22 15:32:48.000" {
			t.Errorf("%v: exit %d, %s%s", args, code, out, errOut)
		}
	}
	for _, args := range [][]string{{"meminfo", path, "--pid", "5"}, {"meminfo", path, "--process", "x"}} {
		if code, _, errOut := typed(t, nil, append([]string{"parse"}, args...)...); code != exitUsage ||
			!strings.Contains(errOut, "only for kind logcat") {
			t.Errorf("%v: exit %d, %s", args, code, errOut)
		}
	}
	code, out, _ := typed(t, nil, "parse", "logcat", path)
	for _, want := range []string{"heap_used_kb             74752\n", "mentions: 3", "low_memory_kill"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestParseUsageErrors(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "cut.gz")
	if err := os.WriteFile(broken, []byte(gzipped(t, strings.Repeat("x", 9999))[:30]), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"missing argument": {[]string{"meminfo"}, []string{"a kind and a file", "surfaceflinger"}},
		"unknown kind": {
			[]string{"memifno", "x"}, []string{`unknown kind "memifno"`, "did you mean meminfo?", "smaps_rollup"},
		},
		"unknown kind without a similar one": {
			[]string{"zzzzzzzzz", "x"}, []string{`unknown kind "zzzzzzzzz": want meminfo`},
		},
		"missing file":      {[]string{"meminfo", "no-such.txt"}, []string{"no-such.txt"}},
		"a folder":          {[]string{"meminfo", t.TempDir()}, []string{"read "}},
		"damaged gzip file": {[]string{"smaps", broken}, []string{"cut.gz"}},
		"unknown flag":      {[]string{"meminfo", "x", "--jsn"}, []string{"did you mean --json?"}},
	} {
		code, out, errOut := typed(t, nil, append([]string{"parse"}, c.args...)...)
		if code != exitUsage || out != "" {
			t.Errorf("%s: exit %d, stdout %q", name, code, out)
		}
		for _, want := range c.want {
			if !strings.Contains(errOut, want) {
				t.Errorf("%s: no %q in %q", name, want, errOut)
			}
		}
	}
}

func TestParseForPeople(t *testing.T) {
	var out bytes.Buffer
	text := "** MEMINFO in pid 7 [evil\x1b[2J] **\n App Summary\n           Java Heap:        5\n               " +
		"TOTAL:       9x      TOTAL SWAP PSS:        0\n"
	if err := runParse("meminfo", "-", false, strings.NewReader(text), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"blocks: 1", "evil?[2J", "java_heap_kb             5\n", "total_pss_kb             -\n",
		"the text is truncated", "warning: ", `TOTAL`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
	if strings.ContainsRune(out.String(), 0x1b) {
		t.Error("an escape sequence reaches the terminal")
	}
	if code, text, _ := typed(t, nil, "parse", "showmap",
		recorded.Path(t, "device", "api36-memorylab-showmap.txt")); code != exitOK ||
		!strings.Contains(text, "and 1089 more") || strings.Count(text, "\n") > 200 {
		t.Errorf("exit %d, %.300s", code, text)
	}
	if code, text, _ := typed(t, nil, "parse", "meminfo",
		recorded.Path(t, "device", "error-meminfo-no-process.txt")); code != exitOK ||
		!strings.Contains(text, "device error (no_process): No process found for: com.alpicut.app") {
		t.Errorf("exit %d, %s", code, text)
	}
}

// TestParseOfTruncatedTexts truncates each recorded input at every line
// boundary (large inputs at some of them) and at 300 random bytes. It checks
// that each value equals that of the complete input or is absent, or that the
// input is marked as truncated.
func TestParseOfTruncatedTexts(t *testing.T) {
	mapping := regexp.MustCompile(`^[0-9a-f]+-[0-9a-f]+ [r-][w-]`)
	for _, c := range []struct{ kind, file string }{
		{"meminfo", "api18-sample-meminfo.txt"}, {"meminfo", "api19-sample-meminfo.txt"},
		{"meminfo", "api23-sample-meminfo.txt"},
		{"meminfo", "api23-private-gfx-meminfo.txt"}, {"meminfo", "api29-unity-meminfo-reflowed.txt"},
		{"meminfo", "api29-native-process-meminfo.txt"},
		{"meminfo", "api30-unity-meminfo.txt"}, {"meminfo", "api36-memorylab-meminfo-d.txt"},
		{"meminfo", "api36-emulator-flutter-meminfo.txt"},
		{"smaps", "api29-x86_64-smaps_short.txt"}, {"smaps_rollup", "api30-galaxy-a52-smaps_rollup.txt"},
		{"smaps_rollup", "api3x-tvbox-smaps_rollup-head.txt"},
		{"gfxinfo", "api36-memorylab-gfxinfo.txt"}, {"gfxinfo", "api33-anavmode-gfxinfo-two-processes.txt"},
		{"gpu", "api31-angle-gpumem.txt"},
		{"gpu", "api35-qcom-dumpsys-gpu-head.txt"}, {"surfaceflinger", "api33-surfaceflinger-buffers.txt"},
	} {
		t.Run(c.kind+" "+c.file, func(t *testing.T) {
			text := recorded.Read(t, "device", c.file)
			parsed := func(text []byte) map[string]any {
				var out bytes.Buffer
				if err := runParse(c.kind, "-", true, bytes.NewReader(text), &out); err != nil {
					t.Fatal(err)
				}
				return decoded(t, out.Bytes())
			}
			all := flat(parsed(text))
			for _, at := range cutPlaces(text) {
				if c.kind == "smaps" && at > 0 && text[at-1] == '\n' && mapping.Match(text[at:]) {
					continue // truncated between two mappings: only the transport can detect that
				}
				doc := parsed(text[:at])
				if doc["truncated"] == true || doc["error"] != nil {
					continue
				}
				for key, v := range flat(doc) {
					_, told := all[key]
					// the second process is not in the input yet
					alone := c.kind == "gfxinfo" && !told && !strings.Contains(key, ".")
					if v != nil && v != all[key] && !alone && !strings.HasPrefix(key, "warnings") &&
						!strings.HasSuffix(key, "computed") {
						t.Fatalf("truncated at %d: %s is %v, but %v in the complete input", at, key, v, all[key])
					}
				}
			}
		})
	}
}

func cutPlaces(text []byte) (at []int) {
	for i, c := range text {
		if c == '\n' && i+1 < len(text) {
			at = append(at, i+1)
		}
	}
	r := rand.New(rand.NewPCG(11, 12))
	places := 300
	if recorded.Long() {
		places = 2000
	}
	for range places {
		at = append(at, r.IntN(len(text)))
	}
	return at
}
