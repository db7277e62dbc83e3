package hprof_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/recorded"
)

// count holds the number of records of each kind in a dump.
type count map[string]int

// counts reads a dump and counts its contents. Records inside the heap are
// counted by their names; objects are also counted by the name of their heap.
func counts(t *testing.T, data []byte) (*hprof.File, count) {
	t.Helper()
	f, err := hprof.Open(context.Background(), bytes.NewReader(data), int64(len(data)))
	if err != nil || f.Truncated != -1 || len(f.Warnings) > 0 {
		t.Fatal(f.Truncated, f.Warnings, err)
	}
	distinct := map[hprof.ID]bool{}
	for _, c := range f.Classes {
		distinct[c.Class] = true
	}
	n := count{
		"strings": f.Strings.Len(), "LOAD_CLASS": len(f.Classes), "classes": len(distinct), "frames": len(f.Frames),
		"traces": len(f.Traces), "threads": len(f.Threads), "snapshots": len(f.Snapshots)}
	for _, snapshot := range f.Snapshots {
		n["segments"] += len(snapshot.Segments)
		s := f.Scanner(snapshot.Segments)
		for s.Next() {
			n[s.Kind.String()]++
			if n["records"]++; s.Kind.IsRoot() || s.Kind == hprof.SubHeapInfo {
				continue
			}
			if name, ok := f.Strings.Get(s.HeapName); ok && s.Heap != 0 {
				n[name]++
			}
		}
		if s.Err() != nil || s.Truncated() != -1 {
			t.Fatal(s.Truncated(), s.Err())
		}
	}
	return f, n
}

// TestRecordedCounts compares the counts with those published by the authors of
// the dumps, and with those of other programs.
func TestRecordedCounts(t *testing.T) {
	objects := func(instances, objectArrays, primitiveArrays int) count {
		return count{
			"INSTANCE_DUMP": instances, "OBJECT_ARRAY_DUMP": objectArrays, "PRIMITIVE_ARRAY_DUMP": primitiveArrays,
			"snapshots": 1,
		}
	}
	with := func(c, more count) count {
		for k, v := range more {
			c[k] = v
		}
		return c
	}
	for _, c := range []struct {
		name, format string
		ids          int
		want         count
	}{
		// The other 492 segments of this dump are empty.
		{
			"ahat-O.hprof", hprof.Format103, 4,
			with(objects(51470, 1512, 27335), count{"segments": 1288, "CLASS_DUMP": 2148, "app": 20875, "image": 61590,
				"strings": 9792, "frames": 1554, "traces": 145, "VM_INTERNAL": 36749})},
		{"ahat-RI.hprof", hprof.Format102, 4, with(objects(22454, 740, 1348), count{"segments": 1, "CLASS_DUMP": 476})},
		{
			"leak_service_binder.hprof", hprof.Format103, 4,
			with(objects(25183, 1980, 13610), count{"segments": 647, "CLASS_DUMP": 3645, "app": 3435,
				"zygote": 40983, "THREAD_OBJECT": 12})},
		{"hprof-32.bin", hprof.Format101, 4, with(objects(1293, 423, 849), count{"segments": 1})},
		{"hprof-64.bin", hprof.Format101, 8, with(objects(4149, 748, 2891), count{"segments": 1})},
		{"pyhprof-example-java.hprof", hprof.Format102, 8, objects(14484, 1500, 7977)},
		{"mat-sun_jdk6_32bit.hprof", hprof.Format101, 4, objects(8664, 2431, 3822)},
		{"mat-sun_jdk6_18_x32.hprof", hprof.Format101, 4, count{"frames": 111, "traces": 14}},
		{"mat-sun_jdk6_30_x64_compressedOops.hprof", hprof.Format101, 8, count{"snapshots": 1}},
		{
			"mat-openjdk_jdk11_04_x64.hprof.gz", hprof.Format102, 8,
			with(objects(129433, 8566, 48038), count{"CLASS_DUMP": 1912, "LOAD_CLASS": 2108}),
		},
	} {
		f, got := counts(t, recorded.Read(t, "hprof", c.name))
		if f.Format != c.format || f.IDSize != c.ids || f.Time.Year() < 2006 || f.Time.Year() > 2020 {
			t.Errorf("%s: %+v", c.name, f.Header)
		}
		for what, n := range c.want {
			if got[what] != n {
				t.Errorf("%s: %d %s, want %d", c.name, got[what], what, n)
			}
		}
	}
}

// TestRecordedSummary compares the result with the output of hprof-slurp,
// another reader, for two dumps: its counts, and the stack traces with the
// names of all frames.
func TestRecordedSummary(t *testing.T) {
	lines := map[string]string{
		"UTF-8 Strings": "strings", "Classes loaded": "classes", "Stack traces": "traces", "Stack frames": "frames",
		"Start threads":   "threads",
		"GC root unknown": "UNKNOWN", "GC root thread objects": "THREAD_OBJECT", "GC root JNI global": "JNI_GLOBAL",
		"GC root JNI local":  "JNI_LOCAL",
		"GC root Java frame": "JAVA_FRAME", "GC root native stack": "NATIVE_STACK",
		"GC root sticky class": "STICKY_CLASS",
		"GC root thread block": "THREAD_BLOCK", "GC root monitor used": "MONITOR_USED",
		"GC primitive array dump": "PRIMITIVE_ARRAY_DUMP",
		"GC object array dump":    "OBJECT_ARRAY_DUMP", "GC class dump": "CLASS_DUMP",
		"GC instance dump": "INSTANCE_DUMP",
	}
	line := regexp.MustCompile(`(?m)^(?:\.\.)?([A-Z][^:\n]*): (\d+)$`)
	total := regexp.MustCompile(`(\d+) heap dumps containing in total (\d+) segments`)
	for _, c := range []struct{ dump, summary string }{
		{"hprof-32.bin", "expected-hprof-32-result.txt"},
		{"hprof-64.bin", "expected-hprof-64-result.txt"},
	} {
		f, got := counts(t, recorded.Read(t, "hprof", c.dump))
		text := string(recorded.Read(t, "hprof", c.summary))
		found := 0
		for _, m := range line.FindAllStringSubmatch(text, -1) {
			if what := lines[m[1]]; what != "" {
				found++
				if want, _ := strconv.Atoi(m[2]); got[what] != want {
					t.Errorf("%s: %d of %q, want %d", c.dump, got[what], m[1], want)
				}
			}
		}
		if found != len(lines) {
			t.Errorf("%s: found %d of %d lines", c.summary, found, len(lines))
		}
		if m := total.FindStringSubmatch(text); m == nil || m[1] != strconv.Itoa(got["segments"]) ||
			m[2] != strconv.Itoa(got["records"]) {
			t.Errorf("%s: %d segments, %d records, want %q", c.dump, got["segments"], got["records"], m)
		}
		if m := regexp.MustCompile(`Dump captured at (.*)\.`).FindStringSubmatch(text); m == nil ||
			f.Time.Truncate(time.Second).Format("2006-01-02 15:04:05 MST") != m[1] {
			t.Errorf("%s: %v, want %q", c.dump, f.Time, m)
		}
		begin, end := strings.Index(text, "Found "), strings.Index(text, "Found a total of ")
		if want := text[begin:end]; stacks(t, f) != want {
			t.Errorf("%s: %s\nwant %s", c.dump, stacks(t, f), want)
		}
	}
}

// stacks formats the stack traces that have frames, in the format of
// hprof-slurp.
func stacks(t *testing.T, f *hprof.File) string {
	t.Helper()
	text := func(id hprof.ID) string {
		s, ok := f.Strings.Get(id)
		if !ok {
			t.Fatalf("string 0x%x not found", uint64(id))
		}
		return s
	}
	classes := map[uint32]string{}
	for _, c := range f.Classes {
		classes[c.Serial] = strings.ReplaceAll(text(c.Name), "/", ".")
	}
	frames := map[hprof.ID]string{}
	for _, r := range f.Frames {
		where := strconv.Itoa(int(r.Line))
		switch {
		case r.Line == -3:
			where = "native method"
		case r.Line == -2:
			where = "compiled method"
		case r.Line <= 0:
			where = "unknown line number"
		}
		frames[r.ID] = fmt.Sprintf("  at %s.%s (%s:%s)\n", classes[r.Class], text(r.Method), text(r.Source), where)
	}
	var b strings.Builder
	n := 0
	for _, trace := range f.Traces {
		if len(trace.Frames) == 0 {
			continue
		}
		n++
		fmt.Fprintf(&b, "Thread %d\n", n)
		for _, id := range trace.Frames {
			b.WriteString(frames[id])
		}
		b.WriteString("\n")
	}
	return fmt.Sprintf("Found %d threads with stacktraces:\n\n%s", n, &b)
}

// TestRecordedThreads reads the names of threads, which the hprof agent
// records.
func TestRecordedThreads(t *testing.T) {
	data := recorded.Read(t, "hprof", "ahat-RI.hprof")
	f, err := hprof.Open(context.Background(), bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, thread := range f.Threads {
		name, _ := f.Strings.Get(thread.Name)
		group, _ := f.Strings.Get(thread.Group)
		names = append(names, group+"/"+name)
	}
	if got, want := strings.Join(names, ", "),
		"system/HPROF gc_finish watcher, main/main, system/SIGINT handler"; got != want {
		t.Errorf("threads %s, want %s", got, want)
	}
}
