package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// Each recorded dump is analyzed with all its classes: the report must agree
// with the manifest of the dump, and the numbers of the report with one
// another.
func TestAnalyzeRecordedDumps(t *testing.T) {
	for _, d := range recordedDumps {
		t.Run(d.file, func(t *testing.T) {
			full := analyzed(t, d.path(t), "--top", strconv.Itoa(manyRows))
			quick := analyzed(t, d.path(t), "--top", strconv.Itoa(manyRows), "--only", "histogram")
			checkManifest(t, &d, &full.Dump)
			checkManifest(t, &d, &quick.Dump)
			checkSums(t, &full)
			checkHistogram(t, &full, &quick)
			code, out, errOut := ran(t, "analyze", d.path(t))
			if code != exitOK || errOut != "" || !strings.Contains("\n"+out, "\n"+d.format+", ") {
				t.Errorf("exit %d, %s\n%.300s", code, errOut, out)
			}
			checkLines(t, "text", out)
		})
	}
}

// manyRows exceeds the number of classes of every recorded dump.
const manyRows = 1000

func checkManifest(t *testing.T, d *recordedDump, got *analysis.Dump) {
	t.Helper()
	for name, pair := range map[string][2]int64{
		"id_size": {int64(d.idSize), int64(got.IDSize)}, "instances": {d.instances, got.Instances},
		"object_arrays":    {d.objectArrays, got.ObjectArrays},
		"primitive_arrays": {d.primitives, got.PrimitiveArrays}, "classes": {d.classes, got.Classes},
		"snapshots": {1, int64(got.Snapshots)},
		"objects":   {got.Instances + got.ObjectArrays + got.PrimitiveArrays + got.Classes, got.Objects},
	} {
		if pair[0] != 0 && pair[0] != pair[1] {
			t.Errorf("%s: %d, want %d", name, pair[1], pair[0])
		}
	}
	if got.Format != d.format || got.Truncated || got.TruncatedAt != nil || got.Partial || got.SizeModel != "leakgate" {
		t.Errorf("%+v", got)
	}
	info, err := os.Stat(d.path(t))
	if err != nil {
		t.Fatal(err)
	}
	if unpacked := cmp.Or(d.bytes, info.Size()); got.Bytes != unpacked {
		t.Errorf("%d bytes, want %d", got.Bytes, unpacked)
	}
	for _, h := range got.Heaps {
		if d.heaps != nil && d.heaps[h.Name] != h.Objects {
			t.Errorf("heap %s: %d objects", h.Name, h.Objects)
		}
	}
}

// checkSums checks the sums of a report with all classes and most dominators.
func checkSums(t *testing.T, r *findings) {
	t.Helper()
	var objects, bytes, tops int64
	// The app heap comes first.
	android := slices.ContainsFunc(r.Dump.Heaps,
		func(h analysis.Heap) bool { return h.Name == "image" || h.Name == "zygote" })
	own := func(c *analysis.Class) int64 {
		if android {
			return c.RetainedIn["app"] + c.RetainedNative
		}
		return c.RetainedBytes
	}
	for i, c := range r.Classes {
		objects += c.Instances
		bytes += c.ShallowBytes
		if c.Reachable > c.Instances || c.RetainedNative > c.RetainedBytes || i > 0 && own(&c) > own(&r.Classes[i-1]) {
			t.Errorf("class %d: %+v", i, c)
		}
	}
	var inHeaps, heapBytes int64
	for _, h := range r.Dump.Heaps {
		inHeaps += h.Objects
		heapBytes += h.Bytes
	}
	for i, d := range r.Dominators {
		tops += d.RetainedBytes
		if i > 0 && !android && d.RetainedBytes > r.Dominators[i-1].RetainedBytes {
			t.Errorf("dominator %d retains more than the previous one", i)
		}
	}
	if objects != r.Dump.Objects || inHeaps != r.Dump.Objects || bytes != heapBytes {
		t.Errorf("classes have %d objects with %d bytes, heaps have %d objects with %d bytes, want %d objects",
			objects, bytes, inHeaps, heapBytes, r.Dump.Objects)
	}
	// Every reachable object belongs to exactly one top-level dominator.
	if all := r.Dump.ReachableBytes + r.Dump.ReachableNative; tops > all || tops < all && len(r.Dominators) < manyRows {
		t.Errorf("dominators retain %d bytes, want %d", tops, all)
	}
}

// checkHistogram compares the quick histogram with that of the graph.
func checkHistogram(t *testing.T, full, quick *findings) {
	t.Helper()
	counts := map[string][2]int64{}
	for _, c := range full.Classes {
		counts[c.Class] = [2]int64{c.Instances, c.ShallowBytes}
	}
	if len(quick.Classes) != len(full.Classes) || len(quick.Dominators) != 0 {
		t.Errorf("got %d classes with the graph, %d without it", len(full.Classes), len(quick.Classes))
	}
	for i, c := range quick.Classes {
		if got := [2]int64{c.Instances, c.ShallowBytes}; got != counts[c.Class] || c.RetainedBytes != 0 {
			t.Errorf("%s: got %v without the graph, %v with it", c.Class, c, counts[c.Class])
		}
		if i > 0 && c.ShallowBytes > quick.Classes[i-1].ShallowBytes {
			t.Errorf("%s has more bytes than the previous class", c.Class)
		}
	}
	if !maps.Equal(full.Dump.GCRoots, quick.Dump.GCRoots) {
		t.Errorf("roots %v and %v", full.Dump.GCRoots, quick.Dump.GCRoots)
	}
}

// These are the documented keys of the report, with the JSON types of their
// values.
func TestAnalyzeKeys(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{SDK: 25})
	picture := hproftest.Picture{Width: 96, Height: 96, Content: 1}
	h.Hold("com.shop.Cache", "all", h.ArrayList(h.Bytes(make([]byte, 1000)), h.Bitmap(picture), h.Bitmap(picture)).Ref)
	dump, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"analyze", "--json"}, {"analyze", "--json", "--only", "histogram"}, {"analyze", "--json", "--top", "0"},
	} {
		whole := !slices.Contains(args, "histogram")
		var report map[string]any
		answered(t, &report, append(args, dumpFile(t, dump))...)
		checkKeys(t, report, "", map[string]string{
			"schema": "string", "dump": "object", "leaks": "array", "suspects": "array", "classes": "array",
			"dominators": "array", "threads": "array", "warnings": "array",
		})
		checkKeys(t, report["dump"], "dump.", map[string]string{
			"format": "string", "id_size": "number", "bytes": "number", "truncated": "bool", "partial": "bool",
			"snapshots": "number", "classes": "number", "instances": "number",
			"object_arrays": "number", "primitive_arrays": "number", "gc_roots": "object", "heaps": "array",
			"reachable_bytes": "number", "size_model": "string",
		})
		if report["schema"] != "leakgate.analysis/1" {
			t.Errorf("schema %v", report["schema"])
		}
		if whole {
			checkKeys(t, report, "", map[string]string{"bitmaps": "object"})
			checkKeys(t, report["bitmaps"], "bitmaps.",
				map[string]string{"count": "number", "bytes": "number", "duplicates": "array"})
			checkKeys(t, report["dump"], "dump.", map[string]string{"android": "object"})
			checkKeys(t, report["dump"].(map[string]any)["android"], "dump.android.",
				map[string]string{"sdk": "number", "manufacturer": "string", "process": "string"})
		}
		if len(args) > 2 {
			continue
		}
		for list, keys := range map[string]map[string]string{
			"classes": {
				"class": "string", "instances": "number", "shallow_bytes": "number", "retained_bytes": "number",
			},
			"dominators": {
				"object": "string", "class": "string", "shallow_bytes": "number", "retained_bytes": "number",
			},
			"threads": {"name": "string"},
		} {
			if len(report[list].([]any)) == 0 {
				t.Errorf("no %s", list)
			}
			for _, row := range report[list].([]any) {
				checkKeys(t, row, list+"[].", keys)
			}
		}
		for _, d := range report["bitmaps"].(map[string]any)["duplicates"].([]any) {
			checkKeys(t, d, "bitmaps.duplicates[].",
				map[string]string{"width": "number", "height": "number", "copies": "number", "bytes_each": "number"})
		}
		for _, heap := range report["dump"].(map[string]any)["heaps"].([]any) {
			checkKeys(t, heap, "dump.heaps[].",
				map[string]string{"name": "string", "objects": "number", "bytes": "number"})
		}
	}
}

func checkKeys(t *testing.T, value any, where string, keys map[string]string) {
	t.Helper()
	object, ok := value.(map[string]any)
	if !ok {
		t.Errorf("%s is a %T", where, value)
		return
	}
	for key, want := range keys {
		kind := map[string]bool{"string": false, "number": false, "bool": false, "array": false, "object": false}
		switch object[key].(type) {
		case string:
			kind["string"] = true
		case float64:
			kind["number"] = true
		case bool:
			kind["bool"] = true
		case []any:
			kind["array"] = true
		case map[string]any:
			kind["object"] = true
		}
		if !kind[want] {
			t.Errorf("%s%s is %v, want a %s", where, key, object[key], want)
		}
	}
}

// The page about the format names every field.
func TestAnalysisPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/analysis.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	for _, v := range []any{analysis.Report{}, analysis.Objects{}, phases{}} {
		collectFields(reflect.TypeOf(v), fields)
	}
	for name := range fields {
		if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), "`"+name+"[]`") &&
			!strings.HasSuffix(name, "omitted") {
			t.Errorf("no field %s", name)
		}
	}
	if len(fields) < 60 {
		t.Errorf("%d fields", len(fields))
	}
}

// collectFields collects the JSON names of a type and of its fields,
// recursively.
func collectFields(v reflect.Type, names map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collectFields(v.Elem(), names)
	case reflect.Struct:
		for f := range v.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			names[name] = true
			if f.Type.Kind() != reflect.Slice || f.Type.Elem() != v { // a tree
				collectFields(f.Type, names)
			}
		}
	}
}

// The number of records, the roots and the instances of each class are compared
// with those of hprof-slurp. hprof-slurp uses other size constants, so the
// small sizes cannot be compared. It also appends one [] too many to array
// names in dumps of the old agent.
func TestAnalyzeAgainstHprofSlurp(t *testing.T) {
	count := regexp.MustCompile(`(?m)^\.\.GC root ([a-zA-Z ]+): (\d+)$`)
	row := regexp.MustCompile(`(?m)^\| +[0-9.]+[A-Za-z]+ \| +(\d+) \| +[0-9.]+[A-Za-z]+ \| (\S+) +\|$`)
	kinds := map[string]string{
		"unknown": "UNKNOWN", "thread objects": "THREAD_OBJECT", "JNI global": "JNI_GLOBAL", "JNI local": "JNI_LOCAL",
		"Java frame":   "JAVA_FRAME",
		"native stack": "NATIVE_STACK", "sticky class": "STICKY_CLASS", "thread block": "THREAD_BLOCK",
		"monitor used": "MONITOR_USED",
	}
	for name, oneMore := range map[string]bool{"hprof-32": true, "hprof-64": false} {
		text := string(recorded.Read(t, "hprof", "expected-"+name+"-result.txt"))
		r := analyzed(t, recorded.Path(t, "hprof", name+".bin"), "--top", strconv.Itoa(manyRows))
		roots := count.FindAllStringSubmatch(text, -1)
		for _, m := range roots {
			if n, _ := strconv.ParseInt(m[2], 10, 64); kinds[m[1]] == "" || r.Dump.GCRoots[kinds[m[1]]] != n {
				t.Errorf("%s: root %s: %d, want %s", name, m[1], r.Dump.GCRoots[kinds[m[1]]], m[2])
			}
		}
		top, _, _ := strings.Cut(text, "largest instances:")
		rows := row.FindAllStringSubmatch(top, -1)
		for _, m := range rows {
			class := m[2]
			if base, ok := strings.CutSuffix(class, "[][]"); ok && oneMore {
				class = base + "[]"
			}
			want, _ := strconv.ParseInt(m[1], 10, 64)
			got := r.row(class).Instances
			if class == "java.lang.Class" {
				got -= r.Dump.Classes // hprof-slurp does not count the classes themselves
			}
			if got != want {
				t.Errorf("%s: %d of %s, want %d", name, got, class, want)
			}
		}
		if len(roots) != len(kinds) || len(rows) != 20 {
			t.Errorf("%s: got %d roots and %d rows, want %d and 20", name, len(roots), len(rows), len(kinds))
		}
	}
}

// The classes are compared with the class histogram that the virtual machine
// wrote with the dump. The virtual machine computes sizes differently, and
// lists internal classes that no dump contains.
func TestAnalyzeAgainstJVMHistogram(t *testing.T) {
	r := analyzed(t, recorded.Path(t, "hprof", "mat-sun_jdk6_30_x64_compressedOops.hprof"), "--top",
		strconv.Itoa(manyRows))
	rows := machineRows(recorded.Read(t, "hprof", "expected-mat-sun_jdk6_30_x64_compressedOops.notes.txt"))
	// int[][] stands for internal tables of the virtual machine.
	// java.lang.Class has instances without a class dump.
	differ := map[string]bool{"int[][]": true, "java.lang.Class": true, "java.lang.Object": true}
	for class, n := range rows {
		if got := r.row(class).Instances; (got == n) == differ[class] {
			t.Errorf("%d of %s, want %d", got, class, n)
		}
	}
	if len(rows) < 150 {
		t.Errorf("%d rows", len(rows))
	}
	// This histogram was taken at another time, with fewer live objects.
	r = analyzed(t, recorded.Path(t, "hprof", "mat-sun_jdk6_18_x32.hprof"), "--top", strconv.Itoa(manyRows))
	rows = machineRows(recorded.Read(t, "hprof", "expected-mat-histogram_sun_jdk6_18_x32.txt"))
	fewer := 0
	for class, n := range rows {
		if r.row(class).Instances < n {
			fewer++
		}
	}
	if len(rows) < 140 || fewer > 5 {
		t.Errorf("%d of %d classes have fewer objects than in the histogram, want at most 5", fewer, len(rows))
	}
}

// machineRows returns the rows of a class histogram, whose lines have the form
// "NUMBER: COUNT BYTES NAME".
func machineRows(text []byte) map[string]int64 {
	rows := map[string]int64{}
	for _, m := range regexp.MustCompile(`(?m)^ *(?:\d+: +)?(\d+) +\d+ +(\[*)(\S+?);? *\r?$`).
		FindAllStringSubmatch(string(text), -1) {
		name := m[3]
		if strings.HasPrefix(name, "<") {
			continue
		}
		if m[2] != "" {
			primitive := map[string]string{
				"C": "char", "B": "byte", "I": "int", "S": "short", "J": "long", "Z": "boolean", "F": "float",
				"D": "double",
			}
			name = cmp.Or(primitive[name], strings.TrimPrefix(name, "L")) + strings.Repeat("[]", len(m[2]))
		}
		rows[name], _ = strconv.ParseInt(m[1], 10, 64)
	}
	return rows
}

// Retained bytes are the sum of Java memory and registered native memory,
// wherever they are shown.
func TestAnalyzeCountsNativeMemory(t *testing.T) {
	path := recorded.Path(t, "hprof", "ahat-O.hprof")
	r := analyzed(t, path)
	b := lookedUp(t, path, "0x12c04c28").Objects[0]
	if row := r.row("b"); row.RetainedBytes != 1290432 || row.RetainedNative != 50000 || b.RetainedBytes != 1290432 ||
		b.RetainedNative != 50000 {
		t.Errorf("class %+v\nobject %+v", row, b)
	}
	main := r.Dominators[0]
	if main.Object != "0x12c04948" || main.RetainedBytes != 1290660 || main.RetainedNative != 50000 ||
		main.Children[0].RetainedBytes != 1290432 || r.Dump.ReachableNative != 50200 {
		t.Errorf("%+v", main)
	}
	code, out, _ := ran(t, "analyze", path, "--top", "1")
	if code != exitOK || !strings.Contains(out, "and 49.0 kB of registered native memory") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// The result is the same for a plain and a compressed dump, from a file, from
// standard input and in small pieces.
func TestAnalyzeInputs(t *testing.T) {
	dump := recorded.Read(t, "hprof", "hprof-32.bin")
	_, want, _ := typed(t, nil, "analyze", "--json", dumpFile(t, dump))
	if !json.Valid([]byte(want)) {
		t.Fatal(want)
	}
	forms := map[string][]byte{
		"plain": dump, "gzip": packed(t, dump), "zstd": zstandard(dump),
		"gzip with two members": append(packed(t, dump[:5000]), packed(t, dump[5000:])...),
	}
	for name, form := range forms {
		if _, out, errOut := typed(t, nil, "analyze", "--json", dumpFile(t, form)); out != want {
			t.Errorf("%s: %s %.200s", name, errOut, out)
		}
		if _, out, errOut := fed(t, bytes.NewReader(form), "analyze", "--json", "-"); out != want {
			t.Errorf("%s on stdin: %s %.200s", name, errOut, out)
		}
		if _, out, errOut := fed(t, &sluggish{form}, "objects", "-", "0x5000002d"); !strings.Contains(out,
			"class java.lang.System") {
			t.Errorf("%s, objects: %s %.200s", name, errOut, out)
		}
	}
}

// sluggish returns a few bytes per read.
type sluggish struct{ rest []byte }

func (s *sluggish) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest[:min(997, len(s.rest))])
	s.rest = s.rest[n:]
	return n, nil
}

// A truncated dump is analyzed up to the truncation, with a warning.
func TestAnalyzeTruncated(t *testing.T) {
	dump := recorded.Read(t, "hprof", "leak_service_binder.hprof")
	whole := analyzed(t, dumpFile(t, dump), "--top", "1")
	last := whole.Dump.Objects
	for _, n := range []int{len(dump) - 10, len(dump) - 1000, 2_000_000, 1_200_000} {
		path := dumpFile(t, hproftest.Truncate(dump, n))
		r := analyzed(t, path, "--top", "3")
		d := r.Dump
		if !d.Truncated || d.TruncatedAt == nil || *d.TruncatedAt > int64(n) || d.Partial || d.Objects > last ||
			d.Objects == 0 || len(r.Warnings) == 0 ||
			!strings.Contains(r.Warnings[0], fmt.Sprintf("truncated at offset %d", *d.TruncatedAt)) {
			t.Errorf("%d bytes: %+v, %q", n, d, r.Warnings)
			continue
		}
		last = d.Objects
		quick := analyzed(t, path, "--top", "3", "--only", "histogram").Dump
		if quick.Objects != d.Objects || !quick.Truncated || *quick.TruncatedAt != *d.TruncatedAt {
			t.Errorf("%d bytes: got the histogram %+v, truncated at %d, want %+v", n, quick, *quick.TruncatedAt, d)
		}
		if _, out, _ := ran(t, "analyze", path); !strings.Contains(out, "\nwarning: the dump is truncated at offset ") {
			t.Errorf("%d bytes: the text has no warning about the truncation", n)
		}
		if list := lookedUp(t, path, "0xb0cc6c78"); !slices.ContainsFunc(list.Warnings,
			func(w string) bool { return strings.Contains(w, "truncated") }) {
			t.Errorf("%d bytes: got warnings %q from objects, want one about the truncation", n, list.Warnings)
		}
	}
	// This dump is compressed and truncated.
	short := packed(t, recorded.Read(t, "hprof", "hprof-32.bin"))
	r := analyzed(t, dumpFile(t, short[:len(short)*9/10]), "--top", "1")
	if !r.Dump.Truncated || r.Dump.Objects == 0 || r.Dump.Objects >= 2926 || len(r.Warnings) < 2 ||
		!strings.Contains(r.Warnings[0], "gzip data ends early") {
		t.Errorf("%+v, %q", r.Dump, r.Warnings)
	}
	// The report of an empty dump is empty.
	for _, n := range []int{31, 40, 500, 700_000} {
		path := dumpFile(t, hproftest.Truncate(dump, n))
		for _, verb := range [][]string{
			{"analyze"}, {"analyze", "--json", "--partial"}, {"analyze", "--only", "histogram"}, {"objects", "0x1"},
		} {
			args := slices.Insert(slices.Clone(verb), 1, path)
			refused(t, exitUnread, args, "the dump contains no objects", "copy it again", args[1])
		}
	}
}

// For a damaged dump the error states where the damage is; --partial analyzes
// the readable part.
func TestAnalyzeDamaged(t *testing.T) {
	dump := recorded.Read(t, "hprof", "leak_service_binder.hprof")
	_, records, err := hproftest.Parse(dump)
	if err != nil {
		t.Fatal(err)
	}
	whole := analyzed(t, dumpFile(t, dump), "--top", "1")
	// One record is within a segment, the other between segments.
	inner, outer := len(records)*3/4, len(records)/2
	for records[inner].Sub == 0 {
		inner++
	}
	for records[outer].Sub != 0 || records[outer].Tag != hprof.TagHeapDumpSegment {
		outer++
	}
	for name, number := range map[string]int{"record": inner, "segment": outer} {
		broken, err := hproftest.Retag(dump, number, 0x77)
		if err != nil {
			t.Fatal(err)
		}
		path, at := dumpFile(t, broken), fmt.Sprintf("damaged at offset %d, in ", records[number].Offset)
		for _, verb := range [][]string{{"analyze"}, {"analyze", "--only", "histogram"}, {"objects", "0xb0f5c788"}} {
			args := slices.Insert(slices.Clone(verb), 1, path)
			refused(t, exitUnread, args, path, at, "0x77", "--partial")
		}
		for _, args := range [][]string{{path, "--partial"}, {path, "--partial", "--only", "histogram"}} {
			r := analyzed(t, args...)
			if !r.Dump.Partial || r.Dump.Objects == 0 || r.Dump.Objects >= whole.Dump.Objects || len(r.Warnings) == 0 ||
				!strings.Contains(strings.Join(r.Warnings, "\n"), at) {
				t.Errorf("%s: %+v, %q", name, r.Dump, r.Warnings)
			}
		}
	}
	// Compressed data may be damaged, too.
	wrong := packed(t, recorded.Read(t, "hprof", "hprof-32.bin"))
	wrong[len(wrong)-6] ^= 1
	path := dumpFile(t, wrong)
	refused(t, exitUnread, []string{"analyze", path}, path, "damaged gzip data", "--partial")
	if r := analyzed(t, path, "--partial", "--top", "1"); r.Dump.Objects != 2926 || len(r.Warnings) == 0 {
		t.Errorf("%+v, %q", r.Dump, r.Warnings)
	}
}

// A file that is not a dump is rejected, and the error says what the file is.
func TestAnalyzeWrongInput(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		path  string
		code  int
		words []string
	}{
		"empty": {file("empty", ""), exitUnread, []string{"is empty"}},
		"text": {
			file("notes.txt", "some notes\n"), exitUnread, []string{"not a heap dump", "JAVA PROFILE", "am dumpheap"},
		},
		"output of a failed command": {
			file("failed", "run-as: package not debuggable: com.shop\n"), exitUnread,
			[]string{"command that failed", "not debuggable"},
		},
		"zip": {
			file("a.zip", "PK\x03\x04\x00\x00\x00\x00"), exitUnread, []string{"zip archive", "unpack it first"},
		},
		"unsupported version": {
			file("old", "JAVA PROFILE 1.0\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00"), exitUnread,
			[]string{"header", "JAVA PROFILE"},
		},
		"unsupported ID size": {
			file("wide", "JAVA PROFILE 1.0.2\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00"), exitUnread,
			[]string{"IDs of 7 bytes", "4 or 8"},
		},
		"folder":       {dir, exitUsage, []string{"it is a folder", "name a file"}},
		"missing":      {filepath.Join(dir, "none.hprof"), exitUsage, []string{"none.hprof", "does not exist"}},
		"empty name":   {"", exitUsage, []string{"is empty"}},
		"hostile name": {filepath.Join(dir, "a\x1b[2Jb"), exitUsage, []string{"a?[2Jb"}},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, c.code, []string{"analyze", c.path}, append(c.words, "leakgate analyze: ")...)
			refused(t, c.code, []string{"analyze", "--json", "--partial", c.path}, c.words...)
			refused(t, c.code, []string{"objects", c.path, "0x1"}, append(c.words, "leakgate objects: ")...)
		})
	}
	if code, out, errOut := fed(t, strings.NewReader(""), "analyze", "-"); code != exitUnread || out != "" ||
		!strings.Contains(errOut, "standard input") {
		t.Errorf("empty stdin: exit %d, %q, %q", code, out, errOut)
	}
	if code, _, errOut := fed(t, strings.NewReader("JAVA PROFILE 1.0.2"), "analyze", "-"); code != exitUnread ||
		!strings.Contains(errOut, "standard input: the dump contains no objects") {
		t.Errorf("header on stdin: exit %d, want %d: %q", code, exitUnread, errOut)
	}
	if _, _, errOut := typed(t, nil, "analyze", "--partial", file("text", "text")); strings.Contains(errOut,
		"--partial") {
		t.Errorf("the error recommends a flag that is already set: %s", errOut)
	}
}

func TestAnalyzeWrongFlags(t *testing.T) {
	path := dumpFile(t, recorded.Read(t, "hprof", "hprof-32.bin"))
	for _, c := range []struct {
		args  []string
		words []string
	}{
		{[]string{}, []string{"0 files", "standard input", "Usage: leakgate analyze DUMP"}},
		{[]string{path, path}, []string{"2 files"}},
		{[]string{path, "--topp", "3"}, []string{"unknown flag --topp", "did you mean --top?"}},
		{[]string{path, "--top", "-1"}, []string{"--top", "at least 0"}},
		{[]string{path, "--top", "many"}, []string{"--top"}},
		{[]string{path, "--only", "histo\x1b[2J"}, []string{"--only", "want histogram"}},
		{[]string{path, "--memory", "lots"}, []string{"--memory", "512KB"}},
		{[]string{path, "--spool-cap", "-1GB"}, []string{"--spool-cap"}},
	} {
		refused(t, exitUsage, append([]string{"analyze"}, c.args...), c.words...)
	}
}

func TestAnalyzeTop(t *testing.T) {
	path := recorded.Path(t, "hprof", "hprof-32.bin")
	for top, want := range map[string]int{"0": 0, "1": 1, "7": 7} {
		for _, args := range [][]string{{path, "--top", top}, {path, "--top", top, "--only", "histogram"}} {
			r := analyzed(t, args...)
			if len(r.Classes) != want || len(args) == 3 && len(r.Dominators) != want || r.Classes == nil ||
				r.Dominators == nil {
				t.Errorf("--top %s: got %d classes, %d dominators", top, len(r.Classes), len(r.Dominators))
			}
		}
	}
	if r := analyzed(t, path); len(r.Classes) != 30 || len(r.Dominators) != 30 {
		t.Errorf("got %d classes and %d dominators by default, want 30 of each", len(r.Classes), len(r.Dominators))
	}
}

// For a dump that needs more memory than is available, the error states the
// required memory, and nothing is printed.
func TestAnalyzeLimits(t *testing.T) {
	path := recorded.Path(t, "hprof", "mat-openjdk_jdk11_04_x64.hprof.gz")
	refused(t, exitUnread, []string{"analyze", path, "--memory", "4MB"}, path, "needs about", "MB of memory",
		"--memory allows more", "--only histogram")
	refused(t, exitUnread, []string{"analyze", path, "--memory", "1MB"}, path,
		"the data outside the heap needs about", "--memory allows more")
	refused(t, exitUnread, []string{"objects", path, "0x1", "--memory", "1MB"}, "needs about", "--memory allows more")
	refused(t, exitUnread, []string{"analyze", path, "--spool-cap", "2MB"}, path, "2.0 MB", "--spool-cap")
	if r := analyzed(t, path, "--memory", "4MB", "--only", "histogram"); r.Dump.Objects != 187949 {
		t.Errorf("%+v", r.Dump)
	}
	if r := analyzed(t, path, "--memory", "1GB", "--spool-cap", "20MB"); r.Dump.Objects != 187949 {
		t.Errorf("%+v", r.Dump)
	}
}

func TestAnalyzePhases(t *testing.T) {
	dir := t.TempDir()
	path, file := recorded.Path(t, "hprof", "hprof-64.bin"), filepath.Join(dir, "phases.json")
	analyzed(t, path, "--phases", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got phases
	if err := json.Unmarshal(text, &got); err != nil || got.Objects != 8262 || got.Edges == 0 {
		t.Errorf("%v: %s", err, text)
	}
	names := map[string]bool{}
	for _, p := range got.Phases {
		if names[p.Name] || p.Seconds < 0 || p.Name == "" {
			t.Errorf("phase %+v", p)
		}
		names[p.Name] = true
	}
	for _, name := range []string{
		"open", "read names", "read objects", "read references", "search", "dominators", "sizes", "report",
	} {
		if !names[name] {
			t.Errorf("phase %s is missing from %s", name, text)
		}
	}
	code, _, errOut := typed(t, nil, "analyze", path, "--phases", filepath.Join(dir, "none", "phases.json"))
	if code != exitUsage || !strings.Contains(errOut, "write phases") {
		t.Errorf("exit %d: %s", code, errOut)
	}
	// An invalid value of --phases is reported before the dump is read; reading
	// this dump would fail as well.
	for _, file := range []string{dir, filepath.Join(dir, "none", "phases.json")} {
		code, _, errOut = typed(t, nil, "analyze", filepath.Join(dir, "damaged.hprof"), "--phases", file)
		if code != exitUsage || !strings.Contains(errOut, "write phases") {
			t.Errorf("exit %d, %s", code, errOut)
		}
	}
	// If a dump cannot be analyzed, no file is written.
	file = filepath.Join(dir, "of nothing.json")
	if code, _, _ = typed(t, nil, "analyze", filepath.Join(dir, "damaged.hprof"), "--phases", file); code == exitOK {
		t.Error("a damaged dump was analyzed")
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the --phases file was written for a damaged dump: %v", err)
	}
}

// If a file contains two heaps, as the JVM agent writes them, only the last one
// is analyzed.
func TestAnalyzeTwoSnapshots(t *testing.T) {
	first, second := hproftest.Java(1), hproftest.Java(2)
	for range 1000 {
		first.Root(hprof.SubRootJNIGlobal, first.Ints(1, 2, 3))
	}
	kept := second.Longs(make([]int64, 5000)...)
	second.Root(hprof.SubRootJNIGlobal, kept)
	var both bytes.Buffer
	ids, err := hproftest.Write(&both, hproftest.Form{Runtime: hproftest.HotSpot}, first, second)
	if err != nil {
		t.Fatal(err)
	}
	alone, _, err := second.Dump(hproftest.Form{Runtime: hproftest.HotSpot})
	if err != nil {
		t.Fatal(err)
	}
	path, want := dumpFile(t, both.Bytes()), analyzed(t, dumpFile(t, alone))
	for _, r := range []findings{analyzed(t, path), analyzed(t, path, "--only", "histogram")} {
		if r.Dump.Snapshots != 2 || r.Dump.Objects != want.Dump.Objects ||
			r.row("long[]").Instances != want.row("long[]").Instances ||
			!slices.Contains(r.Warnings, "the file has 2 heaps; the last one is analyzed") {
			t.Errorf("%+v, %q, want %+v", r.Dump, r.Warnings, want.Dump)
		}
	}
	if list := lookedUp(t, path, analysis.Hex(ids[1].Of(kept))); list.Objects[0].ShallowBytes != 40000 ||
		len(list.Warnings) != 1 {
		t.Errorf("%+v", list)
	}
}

// Names come from an untrusted file. The text output contains nothing that a
// terminal interprets; the JSON contains the names unchanged.
func TestAnalyzeHostileNames(t *testing.T) {
	for _, name := range []string{
		evil, "com.x\nwarning: all is well", "\u202eelbissop", strings.Repeat("very.", 1000) + "Long", "\xff\xfe", "",
	} {
		var dump bytes.Buffer
		w := small(&dump, name, firstObject)
		w.String(0x2000, name)
		w.HeapInfo('E', 0x2000)
		w.Instance(firstObject, 0, nodeClass, []byte{0, 0, 0, 0})
		w.EndHeap()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		path := dumpFile(t, dump.Bytes())
		for _, args := range [][]string{
			{"analyze", path}, {"analyze", path, "--only", "histogram"},
			{"objects", path, analysis.Hex(firstObject), analysis.Hex(nodeClass)},
		} {
			code, out, errOut := typed(t, nil, args...)
			if code != exitOK || errOut != "" {
				t.Errorf("%q: exit %d, %s", args, code, errOut)
			}
			checkLines(t, name, out)
			if strings.Contains(out, "\nwarning") {
				t.Errorf("a name was printed on a separate line:\n%s", out)
			}
		}
		// A class name may contain slashes. Invalid UTF-8 in a name is
		// replaced.
		want := strings.ToValidUTF8(name, "\ufffd\ufffd")
		if o := lookedUp(t, path, analysis.Hex(firstObject)).
			Objects[0]; o.Class != strings.ReplaceAll(want, "/", ".") && name != "" || o.Heap != want {
			t.Errorf("class %q in heap %q, want %q", o.Class, o.Heap, want)
		}
	}
}

// The output for a list and an array of a million objects is bounded.
func TestAnalyzeBoundsTheTree(t *testing.T) {
	const n = 1_000_000
	deep := chainFile(t, n)
	array := firstObject + 16*n
	flat := writtenDump(t, func(out io.Writer) *hproftest.Writer {
		w := small(out, "com.shop.Node", array)
		nodes(w, n, false)
		elements := make([]hprof.ID, n)
		for i := range elements {
			elements[i] = firstObject + 16*hprof.ID(i)
		}
		w.ObjectArray(array, 0, arrayClass, elements)
		return w
	})
	code, out, errOut := ran(t, "analyze", deep)
	if lines := strings.Count(out, "\n"); code != exitOK || errOut != "" || lines > 60 {
		t.Errorf("list: exit %d, %s, %d lines", code, errOut, lines)
	}
	r := analyzed(t, deep, "--top", "1")
	if d := &r.Dominators[0]; d.RetainedBytes != 12*n+4 {
		t.Errorf("the list retains %d bytes, want %d", d.RetainedBytes, 12*n+4)
	}
	if code, out, errOut = ran(t, "analyze", flat); code != exitOK || errOut != "" || strings.Count(out, "\n") > 60 ||
		!strings.Contains(out, "1 000 000 more\n") {
		t.Errorf("array: exit %d, %s\n%.3000s", code, errOut, out)
	}
	r = analyzed(t, flat, "--top", "1")
	if d := r.Dominators[0].Children[0]; d.Object != analysis.Hex(array) || d.ShallowBytes != 4*n ||
		d.RetainedBytes != 16*n || d.Omitted != n || d.OmittedBytes != 12*n || d.Children != nil {
		t.Errorf("%+v", d)
	}
}

// The golden files contain the text output for a recorded dump and for a
// synthetic one; -update rewrites them.
func TestAnalyzeText(t *testing.T) {
	made := hproftest.Java(1)
	cache := made.Declare("com.shop.Cache", nil, "object pages", "static object all")
	var pages []hproftest.Ref
	for i := range 40 {
		pages = append(pages, made.Bytes(make([]byte, 1000+i)))
	}
	list := made.ArrayList(append(pages, made.Filler(hprof.Long, 20_000))...)
	made.SetStatic(cache, "all", made.New(cache, hproftest.Fields{"pages": list.Ref}))
	dump, _, err := made.Dump(hproftest.Form{Runtime: hproftest.HotSpot})
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"recorded": {"analyze", recorded.Path(t, "hprof", "leak_service_binder.hprof"), "--top", "4"},
		"histogram": {
			"analyze", recorded.Path(t, "hprof", "leak_service_binder.hprof"), "--top", "4", "--only", "histogram",
		},
		"objects": {
			"objects", recorded.Path(t, "hprof", "leak_service_binder.hprof"), "0xb0f5c788", "0xb0fa7cb0", "0xb0fa7de0",
			"0x1",
		},
		"made": {"analyze", dumpFile(t, dump[:len(dump)-9]), "--top", "2"},
		"cut":  {"analyze", dumpFile(t, hproftest.Truncate(dump, len(dump)-500)), "--top", "1"},
	} {
		code, out, errOut := ran(t, args...)
		if code != exitOK || errOut != "" {
			t.Errorf("%s: exit %d, %s", name, code, errOut)
		}
		golden(t, filepath.Join("testdata", "analyze", name+".txt"), out)
	}
}
