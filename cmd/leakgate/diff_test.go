package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/internal/schema"
	"github.com/leakgate/leakgate/reporters/record"
)

// shopDump writes a dump of a shop with retained sessions and leaked
// activities, and returns its path.
func shopDump(t testing.TB, sessions, activities int) string {
	t.Helper()
	h := hproftest.Android(hproftest.Phone{SDK: 34})
	session := h.Declare("com.shop.Session", nil, "object data")
	list, held := h.ArrayList(), h.ArrayList()
	for range sessions {
		list.Add(h.New(session, hproftest.Fields{"data": h.Padding(500)}))
	}
	for range activities {
		held.Add(h.Activity("com.shop.CartActivity", hproftest.Destroyed).Ref)
	}
	h.Hold("com.shop.Sessions", "sAll", list.Ref)
	h.Hold("com.shop.Screens", "sLast", held.Ref)
	dump, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	return dumpFile(t, dump)
}

// The golden files contain the text output; -update rewrites them.
func TestDiffText(t *testing.T) {
	base, head := shopDump(t, 200, 0), shopDump(t, 600, 2)
	for name, args := range map[string][]string{
		"new":   {base, head, "--top", "5"},
		"gone":  {head, base, "--top", "3"},
		"same":  {head, head},
		"sizes": {recorded.Path(t, "hprof", "hprof-32.bin"), recorded.Path(t, "hprof", "hprof-64.bin"), "--top", "3"},
		"none":  {base, head, "--top", "0"},
	} {
		code, out, errOut := ran(t, append([]string{"diff"}, args...)...)
		if code != exitOK || errOut != "" {
			t.Errorf("%s: exit %d, %s", name, code, errOut)
		}
		checkLines(t, name, out)
		golden(t, filepath.Join("testdata", "diff", name+".txt"), out)
	}
}

// These are the documented keys, with the JSON types of their values.
func TestDiffJSON(t *testing.T) {
	base, head := shopDump(t, 200, 1), shopDump(t, 600, 2)
	var report map[string]any
	answered(t, &report, "diff", base, head, "--json", "--top", "4")
	number := map[string]any{"base": 0.0, "head": 0.0, "delta": 0.0}
	checkShape(t, "", report, map[string]any{
		"schema": "", "base": map[string]any{"objects": 0.0, "reachable_bytes": 0.0},
		"head": map[string]any{"id_size": 0.0, "android": map[string]any{"sdk": 0.0}}, "comparable": true,
		"mismatches": []any{},
		"objects":    number, "shallow_bytes": number, "reachable_bytes": number, "reachable_native_bytes": number,
		"leaks": []any{map[string]any{
			"key": "", "status": "", "class": "", "library": false, "pattern": "", "key_text": []any{""},
			"base_fingerprints": []any{""}, "head_fingerprints": []any{""},
			"instances": number, "retained_bytes": number, "retained_native_bytes": number,
		}},
		"suspects": []any{}, "shrinkage": []any{},
		"growth": []any{map[string]any{
			"base": 0.0, "head": 0.0, "delta": 0.0,
			"steps": []any{map[string]any{"class": "", "objects": number, "retained_bytes": number}}, "below": []any{},
		}},
		"classes": []any{map[string]any{
			"class": "", "status": "", "instances": number, "shallow_bytes": number, "retained_bytes": number,
			"retained_native_bytes": number,
		}},
		"classes_changed": 0.0, "warnings": []any{},
	})
	var d analysis.Diff
	answered(t, &d, "diff", base, head, "--json", "--top", "4")
	leaks := len(d.Leaks) == 1 && d.Leaks[0].Status == "grown" &&
		d.Leaks[0].Instances == analysis.Change{Base: 1, Head: 2, Delta: 1} &&
		d.Leaks[0].Class == "com.shop.CartActivity"
	if d.Schema != "leakgate.diff/1" || !leaks || len(d.Classes) != 4 || len(d.Growth) != 1 {
		t.Errorf("%+v", d)
	}
}

// checkShape checks that a value has the keys of a pattern, with values of the
// same types. A list must have at least one element, and each element is
// checked.
func checkShape(t *testing.T, at string, got, want any) {
	t.Helper()
	if fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want) {
		t.Errorf("%s is a %T, not a %T", at, got, want)
		return
	}
	switch want := want.(type) {
	case map[string]any:
		for name, value := range want {
			checkShape(t, at+"."+name, got.(map[string]any)[name], value)
		}
	case []any:
		if len(want) > 0 && len(got.([]any)) == 0 {
			t.Errorf("%s is empty", at)
		}
		for _, e := range got.([]any) {
			if len(want) > 0 {
				checkShape(t, at+"[]", e, want[0])
			}
		}
	}
}

// The page about the format of diff names every field that analyze does not
// have.
func TestDiffPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/diff.md")
	if err != nil {
		t.Fatal(err)
	}
	fields, others := map[string]bool{}, map[string]bool{}
	collectFields(reflect.TypeOf(analysis.Diff{}), fields)
	collectFields(reflect.TypeOf(analysis.Dump{}), others)
	told := 0
	for name := range fields {
		if others[name] {
			continue
		}
		told++
		if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), "`"+name+"[]`") {
			t.Errorf("no field %s", name)
		}
	}
	if told < 25 {
		t.Errorf("%d fields", told)
	}
}

func TestDiffRejectsWrongInput(t *testing.T) {
	good, folder := shopDump(t, 1, 0), t.TempDir()
	bad := filepath.Join(folder, "bad.hprof")
	if err := os.WriteFile(bad, []byte("not a dump"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(folder, "none.hprof")
	refused(t, exitUnread, []string{"diff", bad, good}, bad, "the error is in BASE", "jmap")
	refused(t, exitUnread, []string{"diff", good, bad}, bad, "the error is in HEAD")
	refused(t, exitUnread, []string{"diff", good, good, "--memory", "1KB"}, "the error is in BASE",
		"--memory allows more")
	refused(t, exitUsage, []string{"diff", good, missing}, missing, "the error is in HEAD")
	// A missing file is reported before the other is read.
	refused(t, exitUsage, []string{"diff", bad, missing}, missing, "the error is in HEAD")
	refused(t, exitUsage, []string{"diff", bad, good, "--mapping", missing}, missing, "the error is in --mapping")
	refused(t, exitUsage, []string{"diff", bad, good, "--base-mapping", missing}, missing,
		"the error is in --base-mapping")
	refused(t, exitUsage, []string{"diff", folder, good}, folder, "is a directory and the other is not",
		"name two heap dumps or two run directories")
	refused(t, exitUsage, []string{"diff", good, folder}, folder, "is a directory")
	refused(t, exitUsage, []string{"diff", good}, "want two heap dumps")
	refused(t, exitUsage, []string{"diff", good, good, good}, "got 3")
	refused(t, exitUsage, []string{"diff", "-", "-"}, "name the other")
	refused(t, exitUsage, []string{"diff", good, good, "--top", "-1"}, "--top")
}

// Either dump may be truncated or compressed, or come through a pipe.
func TestDiffInputs(t *testing.T) {
	base, head := shopDump(t, 200, 0), shopDump(t, 600, 2)
	_, want, _ := ran(t, "diff", base, head)
	dump, err := os.ReadFile(head)
	if err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := fed(t, bytes.NewReader(dump), "diff", base, "-"); code != exitOK || errOut != "" ||
		out != want {
		t.Errorf("exit %d, %s, %.300s", code, errOut, out)
	}
	code, out, errOut := ran(t, "diff", base, dumpFile(t, hproftest.Truncate(dump, len(dump)-2000)))
	if code != exitOK || errOut != "" || !strings.Contains(out, "warning: one dump is complete and the other is not") ||
		!strings.Contains(out, "warning: head: the dump is truncated") {
		t.Errorf("exit %d, %s, %.300s", code, errOut, out)
	}
}

// runWithDumps returns a run directory with the given heap dumps, each of one
// process and one trigger. The first dump and every second one after it are
// plain files, as in earlier versions; the others are zstd files.
func runWithDumps(t *testing.T, dumps ...[3]string) string {
	t.Helper()
	dir := t.TempDir()
	run := record.Run{Schema: record.RunSchema}
	for i, d := range dumps {
		folder := fmt.Sprintf("artifacts/x/%d-dump", i)
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		file := "heap.hprof"
		data, err := os.ReadFile(d[2])
		if i%2 == 1 {
			file, data = "heap.hprof.zst", zstandard(data)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, folder, file), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		run.Diagnoses = append(run.Diagnoses, record.Diagnosis{
			Process: d[0], Trigger: d[1], Folder: folder, Steps: []record.Collected{{Step: "heap", File: file}},
		})
	}
	if err := record.WriteRun(dir, run); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A directory without a run is rejected with advice: for a directory of
// `leakgate diagnose` the error names its heap dumps, for a killed run the
// command that finishes it.
func TestDiffOfDirectoriesWithoutRun(t *testing.T) {
	_, paths := series(t, 5, 10)
	run := runWithDumps(t, [3]string{"com.shop", "end", paths[0]})
	demanded := runWithDumps(t, [3]string{"com.shop", "demand", paths[0]}, [3]string{"com.shop", "demand", paths[1]})
	if err := os.Remove(filepath.Join(demanded, "run.json")); err != nil {
		t.Fatal(err)
	}
	last := filepath.Join(demanded, "artifacts", "x", "1-dump", "heap.hprof.zst")
	for _, folder := range []string{demanded, filepath.Dir(last)} {
		refused(t, exitUsage, []string{"diff", run, folder}, "name two heap dumps, such as "+last+"\n")
	}
	if code, _, errOut := ran(t, "diff", paths[0], last); code != exitOK {
		t.Errorf("exit %d, %s", code, errOut)
	}
	killed := t.TempDir()
	refused(t, exitUsage, []string{"diff", run, killed}, "name two heap dumps or two run directories\n")
	if err := os.WriteFile(filepath.Join(killed, record.SamplesName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, exitUsage, []string{"diff", run, killed}, "`leakgate report "+killed+"` finishes")
}

// summarize replaces each heap dump of a run directory with its summary.
func summarize(t *testing.T, dir string, o analysis.Options) {
	t.Helper()
	run, err := record.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range run.Diagnoses {
		d := &run.Diagnoses[i]
		folder := filepath.Join(dir, d.Folder)
		file, err := spool.Open(t.Context(), filepath.Join(folder, d.Steps[0].File), nil, spool.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := analysis.Summarize(t.Context(), file, file.Size(), o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := s.Encode()
		if err == nil {
			err = errors.Join(file.Close(), os.Remove(filepath.Join(folder, d.Steps[0].File)),
				os.WriteFile(filepath.Join(folder, "heap.summary.json.zst"), zstandard(text), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		d.Steps[0].File, d.Heap = "", &record.HeapDump{Summary: "heap.summary.json.zst", Names: s.Names().Origin}
	}
	if err := record.WriteRun(dir, run); err != nil {
		t.Fatal(err)
	}
}

// Comparing two runs without their heap dumps yields the same result.
func TestDiffRunsWithoutDumps(t *testing.T) {
	base, head := shopDump(t, 200, 0), shopDump(t, 600, 2)
	_, want, _ := ran(t, "diff", "--json", base, head)
	_, wantText, _ := ran(t, "diff", base, head)
	b, h := runWithDumps(t, [3]string{"com.shop", "end", base}),
		runWithDumps(t, [3]string{"com.shop", "mark", base}, [3]string{"com.shop", "mark", head})
	summarize(t, b, analysis.Options{})
	summarize(t, h, analysis.Options{})
	if code, out, errOut := ran(t, "diff", "--json", b, h); code != exitOK || out != want ||
		!strings.Contains(errOut, "1-dump") {
		t.Errorf("exit %d, %s\n%.500s\nwant\n%.500s", code, errOut, out, want)
	}
	checkSchemas(t, want, b, h)
	if code, out, _ := ran(t, "diff", b, h); code != exitOK || out != wantText {
		t.Errorf("exit %d\n%s\nwant\n%s", code, out, wantText)
	}
	// A summary can be given wherever a dump can.
	file := filepath.Join(b, "artifacts", "x", "0-dump", "heap.summary.json.zst")
	if code, out, errOut := ran(t, "diff", "--json", file, head); code != exitOK || out != want {
		t.Errorf("exit %d, %s", code, errOut)
	}
	names := filepath.Join(t.TempDir(), "mapping.txt")
	if err := os.WriteFile(names, []byte("com.shop.A -> a.a:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, exitUsage, []string{"diff", b, h, "--mapping", names},
		"has no heap dump: --mapping, --base-mapping and --size-model need one")
	refused(t, exitUsage, []string{"diff", b, h, "--size-model", "ahat"}, "need one")
	if code, _, errOut := ran(t, "diff", file, head, "--base-mapping", names); code == exitOK ||
		!strings.Contains(errOut, "a summary keeps the names that it was written with") ||
		!strings.Contains(errOut, "BASE") {
		t.Errorf("exit %d, %s", code, errOut)
	}
	// A summary that is damaged or forged is rejected.
	if err := os.WriteFile(file, zstandard([]byte(`{"schema":"leakgate.summary/1"}`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := ran(t, "diff", b, h); code != exitUnread || out != "" ||
		!strings.Contains(errOut, "its tree has no root") || !strings.Contains(errOut, "BASE") {
		t.Errorf("exit %d, %s%s", code, out, errOut)
	}
	refused(t, exitUsage, []string{"diff", b, filepath.Join(b, "none"), "--process", "com.shop"}, "none")
	// A run without summaries and dumps cannot be compared.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refused(t, exitUsage, []string{"diff", b, h}, "no heap dump")
}

// checkSchemas validates a diff, and everything in its runs, against the
// published schemas.
func checkSchemas(t *testing.T, diff string, runs ...string) {
	t.Helper()
	files, err := schema.Files()
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile(files[schema.DiffName])
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check([]byte(diff)); err != nil {
		t.Error(err)
	}
	for _, dir := range runs {
		if n, err := schema.CheckRun(dir); err != nil || n < 2 {
			t.Errorf("%d documents: %v", n, err)
		}
	}
}

// If two run directories are given, the dumps of one process are compared: the
// dumps taken at the end of each run or, if there are none, the last dumps.
func TestDiffRuns(t *testing.T) {
	_, paths := series(t, 5, 10, 20)
	_, want, _ := ran(t, "diff", "--json", paths[0], paths[2])
	base := runWithDumps(t, [3]string{"com.shop", "end", paths[0]}, [3]string{"com.shop", "leak", paths[1]},
		[3]string{"com.shop:push", "end", paths[0]})
	head := runWithDumps(t, [3]string{"com.shop", "mark", paths[1]}, [3]string{"com.shop", "mark", paths[2]})
	code, out, errOut := ran(t, "diff", "--json", base, head)
	if code != exitOK || !strings.Contains(errOut, "0-dump") || !strings.Contains(errOut, "1-dump") {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	if out != want || len(out) < 1000 {
		t.Errorf("%.500s\nwant\n%.500s", out, want)
	}
	refused(t, exitUsage, []string{"diff", base, base}, "com.shop, com.shop:push", "--process")
	if code, _, errOut := ran(t, "diff", base, base, "--process", "com.shop:push"); code != exitOK {
		t.Errorf("exit %d, %s", code, errOut)
	}
	refused(t, exitUsage, []string{"diff", base, head, "--process", "com.shop:push"}, "no heap dump of com.shop:push",
		"it has those of com.shop")
	refused(t, exitUsage, []string{"diff", base, t.TempDir()}, "without a run.json")
	refused(t, exitUsage, []string{"diff", base, runWithDumps(t)}, "no heap dump", "at_end")
	refused(t, exitUsage, []string{"diff", base, runWithDumps(t, [3]string{"com.other", "end", paths[0]})},
		"no process has heap dumps in both runs")
	refused(t, exitUsage, []string{"diff", paths[0], paths[1], "--process", "com.shop"}, "two run directories")
	// Files outside the directory of a run.json are not read, even if it names
	// them.
	hostile := runWithDumps(t, [3]string{"com.shop", "end", paths[0]})
	run, err := record.ReadRun(hostile)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"artifacts/../..", "..", "/etc", "artifacts/../../" + filepath.Base(base)} {
		run.Diagnoses[0].Folder = folder
		if err := record.WriteRun(hostile, run); err != nil {
			t.Fatal(err)
		}
		refused(t, exitUsage, []string{"diff", base, hostile}, "no heap dump")
	}
}
