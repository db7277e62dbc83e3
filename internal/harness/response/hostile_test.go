package response

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/diagnose"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/reporters/record"
)

// hostile is a string with terminal escapes that is six times as long in JSON.
var hostile = "\x1b]0;owned\a\u202e" + strings.Repeat("<&>", 3000)

// Artifacts may contain anything, but records and summaries are Printable and
// bounded.
func TestHostileArtifacts(t *testing.T) {
	var smaps, threads, logcat, exits strings.Builder
	for i := range 300 {
		fmt.Fprintf(&smaps,
			"%x-%x rw-p 00000000 00:00 0    /x%d\x1b[2J%s\nPss: 1099511627776 kB\nSwapPss: 1099511627776 "+
				"kB\nPrivate_Dirty: 9223372036854775807 kB\nVmFlags: rd\n", 0x1000*i+1<<30, 0x1000*i+1<<30+0x1000, i,
			strings.Repeat("<", 900))
		fmt.Fprintf(&threads, "/proc/4321/task/%d/comm:\x1b[2J<%c%c%c>/comm:x\n", 4321+i, 'a'+i%26, 'a'+i/26, '<')
		fmt.Fprintf(&logcat, "01-02 03:04:05.000  4321  4321 E AndroidRuntime: FATAL EXCEPTION: \x1b[2J%s\n", hostile)
		fmt.Fprintf(&exits,
			"        ApplicationExitInfo #%d:\n          timestamp=\x1b[2J pid=4 process=com.shop reason=4 (\x1b[2J) "+
				"description=%s\n", i, hostile)
	}
	files := map[string][]byte{
		"smaps.txt": []byte(smaps.String()), "threads.txt": []byte(threads.String()),
		"logcat.txt": []byte(logcat.String()),
		"exit_info.txt": []byte(
			"ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\n  package: com.shop\n" + exits.String()),
		"status.txt": []byte("Name:\t\x1b[2J\nPid:\t4321\nThreads:\t99999999999\nVmSize:\t9223372036854775807 kB\n"),
		"gpu.txt":    []byte(hostile), "surfaceflinger.txt": []byte(hostile), "gfxinfo.txt": []byte(hostile),
		"showmap.txt": []byte(strings.Repeat("\x00\xff", 1<<16)), "custom_x.txt": []byte(hostile),
		"thread_ids.txt": []byte(strings.Repeat("9223372036854775807 ", 1000)),
	}
	r := New(t.TempDir(), Options{})
	for recipe := range questions {
		first := analyzed(t, r, recipe, nil, nil)
		first.Before = nil
		for _, before := range []*MemorySnapshot{nil, {}} {
			c := analyzed(t, r, recipe, before, files)
			if len(c.Record.Summary) == 0 || len(c.Record.Warnings) == 0 {
				t.Errorf("%s has no summary", recipe)
			}
			again := analyzed(t, r, recipe, c.Now,
				map[string][]byte{
					"smaps.txt":   []byte(smaps.String() + smaps.String()),
					"threads.txt": files["threads.txt"][:len(files["threads.txt"])/2],
				})
			for _, f := range again.Record.Findings {
				if f.Bytes != nil && *f.Bytes < 0 || f.Share != nil && (*f.Share < 0 || *f.Share > 1) {
					t.Errorf("%s: %+v", recipe, f)
				}
			}
		}
	}
}

// A line of samples.ndjson can hold the record of a dump in which all names
// have the maximum length and each character takes six bytes in JSON.
func TestHostileDump(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	wide := strings.Repeat("<", 1000)
	for i := range 12 {
		name := fmt.Sprintf("com.shop.%s\x1b[2J%02d", wide, i)
		a := h.Activity(name+"Activity", hproftest.Destroyed)
		held := a.Ref
		for j := range 20 {
			link := h.Declare(fmt.Sprintf("%sLink%d", name, j), nil, fmt.Sprintf("object %sx%d", wide, j))
			held = h.New(link, hproftest.Fields{fmt.Sprintf("%sx%d", wide, j): held})
		}
		h.Hold(name+"Holder", "held", held)
	}
	c := analyzed(t, New(t.TempDir(), Options{}), "java", nil, map[string][]byte{"heap.hprof": dumped(t, h, 0)})
	leaks := found(c, "leak")
	if len(leaks) != toldLeaks || len(leaks[0].Trace) < 40 || !strings.Contains(leaks[0].Name, "Activity") {
		t.Fatalf("%d leaks, %d lines", len(leaks), len(leaks[0].Trace))
	}
	says(t, c.Record.Warnings, "the traces of ", " findings do not fit into a record")
	if text, err := json.Marshal(c.Record.Findings); err != nil || len(text) > maxFindings {
		t.Errorf("findings of %d bytes, %v", len(text), err)
	}
}

// fit makes any record small enough for a line of samples.ndjson. fit keeps the
// beginning of each list and reports what was dropped.
func TestFit(t *testing.T) {
	line := strings.Repeat("<", maxText)
	c := &Case{
		Record: record.Diagnosis{Process: strings.Repeat("<", 255), Mark: line, Folder: strings.Repeat("x", 300)},
	}
	var all diagnose.Diagnosis
	for i := range 60 {
		all.Steps = append(all.Steps,
			diagnose.StepOutcome{
				Step: fmt.Sprint("step", i), Note: hostile, Reasons: slices.Repeat([]string{hostile}, 100),
			})
		c.Record.Findings = append(c.Record.Findings,
			record.Finding{Type: "leak", Name: fmt.Sprint(i, line), Trace: slices.Repeat([]string{line}, 60)})
		c.warnText(fmt.Sprint(line, i))
	}
	c.Record.Steps = collected(diagnose.Recipe{}, all, folder{})
	c.Record.Summary = bounded(slices.Repeat([]string{line}, 200))
	if last := c.Record.Summary[maxLines-1]; last != "... 121 more lines in the files beside the artifacts" {
		t.Error(last)
	}
	c.fit()
	checkRecord(t, c.Record)
	r := c.Record
	if len(r.Findings) < 20 || !strings.HasPrefix(r.Findings[10].Name, "10<") || r.Findings[0].Trace != nil ||
		len(r.Summary) < 15 || len(r.Warnings) < 10 || len(r.Steps) != 60 {
		t.Errorf("%d findings, %d lines, %d warnings", len(r.Findings), len(r.Summary), len(r.Warnings))
	}
	says(t, r.Warnings, fmt.Sprintf("%d findings do not fit into a record", 60-len(r.Findings)), "the traces of ")

	// A record that is small enough is unchanged.
	small := &Case{
		Record: record.Diagnosis{
			Findings: []record.Finding{{Name: "x", Trace: []string{"a", "b"}}}, Summary: []string{"s"},
			Warnings: []string{"w"},
		},
	}
	want := small.Record
	small.fit()
	equal(t, "record", small.Record, want)
}

// A run directory is untrusted: if its lines name files outside the directory,
// these files are not touched.
func TestResumeStaysInside(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(dir, "run")
	if err := os.MkdirAll(filepath.Join(run, "artifacts", "x", "y"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ folder, file string }{
		{"artifacts/x/y", "../../../../victim"}, {"artifacts/x/y", ".."}, {"artifacts/x/y", `..\..\victim`},
		{"artifacts/x/y", victim},
		{"artifacts/x/y", "../../../../victim.zst"}, {"artifacts/x/y", victim + ".zst"},
		{"artifacts/../../victim", "heap.hprof"}, {"artifacts/../../victim", "heap.hprof.zst"}, {"..", "victim"},
		{"", "victim"}, {"/", "victim"},
	} {
		list := []record.Diagnosis{
			{
				Folder: c.folder, Process: "com.shop", Keep: "none",
				Steps: []record.Collected{{Step: heapStep, File: c.file}},
			},
		}
		warnings, err := Resume(t.Context(), run, Options{}, list)
		if err != nil || len(warnings) != 1 {
			t.Errorf("%v: %v, %v", c, warnings, err)
		}
		if text, err := os.ReadFile(victim); err != nil || string(text) != "mine" {
			t.Fatalf("%v: %q, %v", c, text, err)
		}
	}
}

// Each reader accepts any input: it returns an error or lines, and never more
// than a record can hold.
func FuzzReaders(f *testing.F) {
	names := slices.Sorted(maps.Keys(readers))
	for i, name := range names {
		f.Add(uint8(i), []byte(name), []byte(""))
	}
	for file, seeds := range map[string][]string{
		"meminfo.txt": {
			"api36-memorylab-meminfo-d.txt", "api29-native-process-meminfo.txt", "error-meminfo-no-process.txt",
		}, "showmap.txt": {"api36-memorylab-showmap.txt"},
		"smaps.txt": {"api29-x86_64-smaps_short.txt"}, "gfxinfo.txt": {"api36-memorylab-gfxinfo.txt"},
		"gpu.txt": {"api31-angle-gpumem.txt"}, "surfaceflinger.txt": {"api33-surfaceflinger-buffers.txt"},
	} {
		for _, seed := range seeds {
			text := recorded.Read(f, "device", seed)
			f.Add(uint8(slices.Index(names, file)), text, text[:len(text)/2])
		}
	}
	f.Add(uint8(slices.Index(names, "threads.txt")), []byte("/proc/1/task/1/comm:a\n/proc/1/task/2/comm:b-1\n"),
		[]byte("/proc/1/task/1/comm:a\n"))
	f.Add(uint8(slices.Index(names, "logcat.txt")),
		[]byte("--------- beginning of main\n01-02 03:04:05.678  4321  4321 I com.shop: Background concurrent "+
			"copying GC freed 1(2KB) AllocSpace objects, 0(0B) LOS objects, 50% free, 1MB/2MB, paused 1us total 2ms\n"),
		[]byte("x"))
	f.Fuzz(func(t *testing.T, which uint8, one, two []byte) {
		file := names[int(which)%len(names)]
		process := capture.Process{Name: "com.shop", PID: 4321}
		moments := []*MemorySnapshot{}
		for _, text := range [][]byte{one, two} {
			m := &MemorySnapshot{}
			c := &Case{Order: Order{Process: process}}
			lines, err := readers[file](c, m, text)
			if (err == nil) == (len(lines) == 0) && file != "status.txt" {
				t.Fatalf("%s: %d lines, %v", file, len(lines), err)
			}
			if len(lines) > 60 {
				t.Fatalf("%s: %d lines", file, len(lines))
			}
			if err == nil {
				moments = append(moments, m)
			}
		}
		for _, before := range append(moments, nil, &MemorySnapshot{}) {
			for _, now := range moments {
				for recipe := range questions {
					c := &Case{
						Order: Order{Process: process, Recipe: recipe, Before: before},
						Record: record.Diagnosis{
							Findings: []record.Finding{}, Summary: []string{}, Warnings: []string{},
						},
					}
					c.Record.Summary = bounded(c.growth(now))
					c.fit()
					checkRecord(t, c.Record)
					if before == now && len(c.Record.Findings) > 0 {
						t.Errorf("growth between %s and itself: %+v", file, c.Record.Findings)
					}
				}
			}
		}
	})
}

// If a folder cannot be written, an error is returned, and the case is not
// treated as complete.
func TestFolderGone(t *testing.T) {
	r := New(t.TempDir(), Options{})
	c := given(t, r, "native", nil, map[string][]byte{"status.txt": []byte("Name:\tx\nPid:\t4321\nThreads:\t3\n")})
	if err := os.RemoveAll(c.folder.path); err != nil {
		t.Fatal(err)
	}
	if err := r.Analyze(context.Background(), c); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := New(file, Options{}).Collect(t.Context(), nil, capture.Facts{}, Order{Recipe: "native"}); c != nil ||
		err == nil {
		t.Errorf("%v %v", c, err)
	}
}
