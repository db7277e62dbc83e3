package reporters

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/reporters/record"
)

// many returns n values.
func many[T any](n int, of func(i int) T) (list []T) {
	for i := range n {
		list = append(list, of(i))
	}
	return list
}

func dumpOf() analysis.Dump {
	return analysis.Dump{
		Format: "JAVA PROFILE 1.0.3", IDSize: 4, Bytes: 9 << 20, Objects: 41_000, Instances: 40_000, ObjectArrays: 600,
		PrimitiveArrays: 400, Classes: 900,
		Heaps: []analysis.Heap{
			{Name: "app", Objects: 1200, Bytes: 3 << 20}, {Name: "zygote", Objects: 7, Bytes: 900},
		},
		ReachableBytes: 8_000_000, ReachableNative: 2_000_000,
	}
}

// TestReportPages tests the report of a dump: each section has one row more
// than a list prints. The second report also contains the rows that the first
// report omits.
func TestReportPages(t *testing.T) {
	full := &analysis.Report{
		Dump: dumpOf(), Leaks: []analysis.Leak{leakOf(), leakOf()},
		Suspects: []analysis.Leak{accumulationOf(), accumulationOf()}, Warnings: []string{"the dump is truncated"},
	}
	full.Dump.Android = &android.Metadata{
		SDK: 34, Manufacturer: "Google", Model: "Pixel 8", Process: "com.shop", Bound: "com.shop:push",
	}
	library := leakOf()
	library.Library, library.Key, library.Pattern, library.Instances = true, "other", "instance field x", 1
	full.Leaks = append(full.Leaks, library)
	full.Leaks[1].Instances, full.Leaks[1].Parts = 5,
		[]analysis.Part{
			{Reference: "mBase", Class: "android.app.ContextImpl", RetainedBytes: 9999},
			{Reference: "mTag", Class: "java.lang.String", RetainedBytes: 10_000},
		}
	full.Leaks[0].Parts = full.Leaks[1].Parts[:1]
	full.Unreachable = []analysis.Garbage{
		{Class: "com.shop.A", Instances: 1, Reason: "it is destroyed"}, {Class: "com.shop.B", Instances: 1234},
	}
	full.Classes = []analysis.Class{
		{Class: "a.B", Instances: 1, ShallowBytes: 1000, RetainedBytes: 2000, RetainedNative: 3000},
	}
	leaf := func(i int) analysis.Dominator {
		return analysis.Dominator{
			Object: fmt.Sprint("0x", i), Class: "a.Leaf", ShallowBytes: 8, RetainedBytes: int64(100 - i),
		}
	}
	full.Dominators = []analysis.Dominator{
		{
			Object: "0x1", Class: "a.Top", ShallowBytes: 16, RetainedBytes: 5_000_000, Children: many(2, leaf),
			Omitted: 3, OmittedBytes: 30,
		},
		{Object: "0x2", Class: "a.Many", RetainedBytes: 1000, Omitted: 40, OmittedBytes: 51},
		{Object: "0x3", Class: "a.Few", RetainedBytes: 1000, Omitted: 40, OmittedBytes: 50},
	}
	full.Bitmaps = &android.Bitmaps{
		Count: 12, Bytes: 5 << 20, EstimatedBytes: 1 << 20, Larger: new(int64(2)), LargerBytes: 4 << 20,
		DuplicatesBy: android.ByNothing,
		Duplicates: many(shownLines+1, func(i int) android.DuplicateBitmap {
			return android.DuplicateBitmap{
				Width: 96, Height: int64(i), Copies: 2, BytesEach: 36_864, WastedBytes: 36_864,
			}
		}),
		List: many(shownLines+1, func(i int) android.Bitmap {
			b := android.Bitmap{
				Object: hprof.ID(0x100 + i), Width: 96, Height: int64(i), Bytes: 36_864, Reachability: "strong",
			}
			if i == 1 {
				b.Owner = &android.Owner{Class: "com.shop.Cart"}
			}
			if i == 2 {
				b.Reachability = "weak"
			}
			return b
		}),
	}
	full.Strings = &android.Strings{
		Count: 5000, Compared: true, Distinct: 4000, WastedBytes: 2 << 20,
		Wasteful: many(shownLines+1, func(i int) android.RepeatedString {
			return android.RepeatedString{Value: fmt.Sprint("value ", i), Count: 1100, WastedBytes: 4400}
		})}
	full.Threads = []android.Thread{
		{
			Name: "main", Object: 0x20, RetainedBytes: 1234, Locals: android.ThreadLocals{Count: 1},
			Frames: many(shownFrames+1, func(i int) string { return fmt.Sprint("a.B.m", i) }),
		},
		{Name: "idle", Object: 0x21},
	}
	full.Components = &android.Components{
		Activities: android.ComponentGroup{
			Count: 11, States: map[string]int64{"resumed": 1, "destroyed": 1010, "created": 0},
			List: many(shownLines+1, func(i int) android.Component {
				return android.Component{
					Object: hprof.ID(0x30 + i), Class: "com.shop.CartActivity", State: "destroyed",
					Reachability: "strong", RetainedBytes: 4096,
				}
			})},
		Services:  android.ComponentGroup{Count: 1, States: map[string]int64{"running": 1}},
		Databases: android.Databases{Count: 3, Open: 2},
	}
	full.Exhaustion = &android.Exhaustion{
		Causes: []android.ExhaustionCause{
			{Cause: "threads", NearLimit: true, Note: "900 of 1000"}, {Cause: "files", Note: "not near"},
			{Cause: "heap", NearLimit: true, Note: "97 %"},
		},
	}

	full.Exhaustion.ThreadGroups = []android.ThreadGroup{
		{Pattern: "upload-*", Threads: 60}, {Pattern: "a *", Threads: 30}, {Pattern: "b *", Threads: 29},
		{Pattern: "c *", Threads: 28}, {Pattern: "d *", Threads: 2},
	}
	withUnused(full, 3<<20)

	bare := &analysis.Report{Dump: dumpOf()}
	bare.Dump.ReachableNative, bare.Dump.Heaps = 0, nil
	bare.Strings, bare.Bitmaps, bare.Components, bare.Exhaustion = &android.Strings{Count: 7}, &android.Bitmaps{},
		&android.Components{Databases: android.Databases{Open: 1}}, &android.Exhaustion{}
	phone := &analysis.Report{Dump: dumpOf(), Suspects: []analysis.Leak{accumulationOf()}}
	phone.Dump.Android, phone.Dump.ReachableBytes = &android.Metadata{Model: "Phone"}, 0
	many := &analysis.Report{Dump: dumpOf(), Leaks: many(shownLeaks+1, func(i int) analysis.Leak {
		l := leakOf()
		l.Key, l.Instances, l.Trace = fmt.Sprint(i), 1, nil
		return l
	})}
	var b strings.Builder
	for i, r := range []*analysis.Report{full, bare, phone, many} {
		write := func(w io.Writer, r *analysis.Report) error { return WriteReport(w, r, i == 0) }
		fmt.Fprintf(&b, "%s\n\n======\n", strings.Join(lines(write, r), "\n"))
	}
	fmt.Fprintf(&b, "%s\n\n======\n", strings.Join(lines(WriteHistogram, full), "\n"))
	fmt.Fprintf(&b, "%s\n", strings.Join(lines(WriteHistogram, &analysis.Report{}), "\n"))
	golden(t, "report.golden", b.String())
}

// withUnused adds unused slots to a report by decoding JSON, because no other
// package can name their type.
func withUnused(r *analysis.Report, bytes int64) {
	err := json.Unmarshal(fmt.Appendf(nil,
		`{"unused_slots": {"collections": 9000, "empty": 4000, "empty_bytes": 1000, "sparse": 1234, "sparse_bytes": %d}}`, bytes), r)
	if err != nil {
		panic(err)
	}
}

// TestNotable checks that threads and collections get a line only if they
// matter.
func TestNotable(t *testing.T) {
	for _, c := range []struct {
		threads, bytes, reachable int64
		want                      bool
	}{{20, 0, 1, true}, {19, 0, 1, false}, {0, worthSlots, worthSlots, true}, {0, worthSlots - 1001, worthSlots, false},
		{0, 1 << 20, 60 << 20, false}} {
		r := &analysis.Report{
			Dump: dumpOf(),
			Exhaustion: &android.Exhaustion{
				ThreadGroups: []android.ThreadGroup{{Pattern: "upload-*", Threads: c.threads}},
			},
		}
		r.Dump.ReachableBytes = c.reachable
		withUnused(r, c.bytes)
		var out page
		out.notable(r)
		if got := out.text.Len() > 0; got != c.want {
			t.Errorf("%+v: %q", c, out.text.String())
		}
	}
}

func change(base, head int64) analysis.Change {
	return analysis.Change{Base: base, Head: head, Delta: head - base}
}

// TestDiffPages tests a diff with one leak more than its limit, paths with the
// same beginning, and a diff of dumps that cannot be compared.
func TestDiffPages(t *testing.T) {
	step := func(class string, base, head int64) analysis.PathStep {
		return analysis.PathStep{Class: class, Objects: change(base/100, head/100), RetainedBytes: change(base, head)}
	}
	way := func(steps ...analysis.PathStep) analysis.PathChange {
		return analysis.PathChange{Change: steps[len(steps)-1].RetainedBytes, Steps: steps}
	}
	top, left, right, deep := step("a.Top", 1000, 9000), step("a.Left", 500, 4000), step("a.Right", 500, 5000),
		step("a.Deep", 100, 3000)
	grew := []analysis.PathChange{
		way(top), way(top, left), way(top, right), way(top, left, deep), way(step("a.Other", 10, 600)),
	}
	grew[0].Below = []analysis.PathStep{right, step("a.Elsewhere", 0, 700)}
	grew[3].Below = []analysis.PathStep{step("a.Below", 0, 100)}
	d := &analysis.Diff{
		Comparable: true, Base: dumpOf(), Head: dumpOf(), Objects: change(41_000, 40_000),
		ReachableBytes: change(8<<20, 5<<20), ReachableNative: change(0, 2048),
		Leaks: []analysis.LeakChange{
			{
				Key: "0123456789", Status: "new", Class: "com.shop.A",
				KeyText: []string{"Registry.all", "accumulates com.shop.Page"}, Instances: change(0, 3),
				RetainedBytes: change(0, 5000),
			},
			{
				Key: "short", Status: "known", Class: "com.shop.B", Library: true, Pattern: "static x",
				KeyText: []string{"hidden"}, Instances: change(2, 2), RetainedBytes: change(7000, 7000),
			},
			{Key: "third", Status: "gone", Class: "com.shop.C"},
		},
		Suspects: []analysis.LeakChange{
			{Key: "pile", Status: "grown", Class: "com.shop.D", Instances: change(1, 2), RetainedBytes: change(1, 2)},
		},
		Growth:    grew,
		Shrinkage: []analysis.PathChange{way(step("a.Gone", 900, 100)), way(step("a.Gone too", 9000, 100))},
		Classes: []analysis.ClassChange{
			{
				Class: "a.B", Status: "grown", Instances: change(1, 5), ShallowBytes: change(8, 40),
				RetainedBytes: change(8, 4000),
			},
		}, ClassesChanged: 3,
		Warnings: []string{"a warning"},
	}
	other := &analysis.Diff{Base: dumpOf(), Head: dumpOf(), Mismatches: []string{"IDs of 4 and of 8 bytes"}}
	other.Head.ReachableNative = 0
	var b strings.Builder
	for _, top := range []int{2, 3, 0} {
		_ = WriteDiff(&b, d, top)
		b.WriteString("\n======\n")
	}
	_ = WriteDiff(&b, other, 30)
	golden(t, "diff.golden", b.String())
}

// TestGrowthPages tests places with children. Some of the lists of counts and
// some of the paths are too long to be printed in full.
func TestGrowthPages(t *testing.T) {
	static := func(owner, name, class string) analysis.GrowthStep {
		return analysis.GrowthStep{Kind: "static_field", Owner: owner, Name: name, Class: class}
	}
	field := func(owner, name, class string) analysis.GrowthStep {
		return analysis.GrowthStep{Kind: "instance_field", Owner: owner, Name: name, Class: class}
	}
	child := func(step analysis.GrowthStep, counts int) analysis.GrowingChild {
		step.Objects = many(counts, func(i int) int64 { return int64(1000 + i) })
		return analysis.GrowingChild{PathEdge: step, RetainedBytes: []int64{5, 9 << 20}, RetainedDelta: 2 << 20}
	}
	root := analysis.GrowthStep{Kind: "gc_root", Name: "sticky class", Class: "class com.shop.A"}
	linked := field("java.util.LinkedList", "next", "java.util.LinkedList$Node")
	linked.Linked = true
	entry := analysis.GrowthStep{Kind: "array_entry", Owner: "java.lang.Object[]", Name: "[x]", Class: "a.B"}
	nested := child(field("com.shop.B", "c", "a.C"), 6)
	nested.Children, nested.ChildrenOmitted = []analysis.GrowingChild{child(entry, 7), child(entry, 8)}, 2
	places := []analysis.GrowingPlace{
		{
			Path: []analysis.GrowthStep{root, static("com.shop.A", "all", "java.util.ArrayList"), linked}, Delta: 1500,
			PerLoop: 2.346, GrowthBytes: 3 << 20, Children: []analysis.GrowingChild{nested},
		},
		{
			Path: []analysis.GrowthStep{root, linked, entry}, PerLoop: 12, Children: []analysis.GrowingChild{nested},
			ChildrenOmitted: 1234,
		},
		{Path: []analysis.GrowthStep{root, linked}, Children: []analysis.GrowingChild{nested, nested}},
		{Path: []analysis.GrowthStep{root, linked}, Children: []analysis.GrowingChild{child(linked, 1)}},
		{Path: []analysis.GrowthStep{root}, Delta: -1}, {Delta: 3},
	}
	for _, steps := range []int{shownStart + shownEnd, shownStart + shownEnd + 1, shownStart + shownEnd + 2} {
		places = append(places,
			analysis.GrowingPlace{
				Path: many(steps, func(i int) analysis.GrowthStep { return field("a.B", fmt.Sprint("f", i), "a.B") }),
			})
	}
	var b strings.Builder
	_ = WriteGrowth(&b,
		&analysis.Growth{Loops: 5, Found: len(places) + 1, Growth: places, Warnings: []string{"a warning"}})
	b.WriteString("\n======\n")
	_ = WriteGrowth(&b, &analysis.Growth{Loops: 1, Found: 1, Growth: places[:1]})
	b.WriteString("\n======\n")
	_ = WriteGrowth(&b, &analysis.Growth{Loops: 1})
	golden(t, "growth.golden", b.String())
}

// TestPathPages tests paths up to the limit, with each kind of reference.
func TestPathPages(t *testing.T) {
	branch := func(kind, owner, reference, class string, below ...analysis.Branch) analysis.Branch {
		return analysis.Branch{
			Kind: kind, Owner: owner, Reference: reference, Class: class, Type: "instance", Objects: 1, Instances: 1500,
			Bytes: 64, Branches: below,
		}
	}
	last := branch("array_entry", "java.util.ArrayList[]", "[x]", "com.shop.Page")
	last.Objects, last.Truncated = 1500, true
	root := branch("", "", "", "com.shop.Registry",
		branch("static_field", "com.shop.Registry", "all", "java.util.ArrayList", last),
		branch("instance_field", "a.B", "c", "a.C"))
	root.GCRoot, root.Type = "STICKY_CLASS", "class"
	p := &analysis.Paths{
		Class: "com.shop.Page", Object: "0x12", Instances: 1500, Reached: 1400, Bytes: 4000, Retained: 4 << 20,
		Branches: []analysis.Branch{root}, Warnings: []string{"a warning"},
	}
	var b strings.Builder
	for _, top := range []int{30, 4, 2, 0} {
		_ = WritePaths(&b, p, top)
		b.WriteString("\n======\n")
	}
	_ = WritePaths(&b, &analysis.Paths{Class: "a.B", Instances: 1}, 30)
	golden(t, "paths.golden", b.String())
}

// TestRunPages tests a run with everything that run.json can contain, and with
// each reason why a run ends.
func TestRunPages(t *testing.T) {
	p := record.Process{
		Device: "S1", User: 10, Process: "com.shop", Source: "smaps_rollup", Samples: 240, Details: 60, Restarts: 1,
		Duration: 7200, Missed: 2, Gaps: 1, Missing: 90, Paused: 7.2,
		CPU: new(4.25), CostCPU: new(0.5), State: detector.Normal, Worst: detector.Leaking, Gate: detector.Settled,
		Growth: 12.3, Reason: "it settled",
		Rate: new(120.04), RateInterval: []float64{-90, 150}, MinDetectable: new(9.55),
		Reasons: []string{"better source: no root"}, Warnings: []string{"a warning"},
		Transitions: []record.Transition{{T: 960, From: detector.Normal, To: detector.Suspicious, Reason: "rises"}},
	}
	quiet := record.Process{
		Process: "com.shop:push", Gate: detector.Pass, Missed: 1, Restarts: 2, RateInterval: []float64{1},
		Rate: new(1.0),
	}
	device := record.Device{Device: "S1", Model: "Pixel", API: 34, Duration: 7200, Usage: record.Usage{
		Fast:         record.Cost{Rounds: 240, MeanMS: 6.04, MaxMS: 30, Failed: 1},
		Detail:       record.Cost{Rounds: 60, MeanMS: 200, Failed: 2},
		SystemServer: new(5.0), DetailSystemServer: new(25.0), CostSystemServer: new(1.5), Thinned: 2, DetailPeriod: 60,
	}, Error: "lost"}
	full := record.Run{
		Policy: detector.PolicyRobust, Processes: []record.Process{p, quiet},
		Devices: []record.Device{device, {Device: "S2"}}, Overhead: &record.Overhead{CPU: 2, Percent: 0.03, Memory: 18},
		Warnings: []string{"of the run"},
		Workload: &record.Workload{
			Kind: "monkey", Seed: new(int64(7)), Events: 1000,
			Interrupted: []record.Interruption{{Device: "S2", T: 600}},
		}, Stopped: "killed", Interrupted: true,
	}
	runs := []record.Run{
		full, {Stopped: "disk"}, {Interrupted: true}, {Workload: &record.Workload{Kind: "command", Exit: new(3)}},
		{Workload: &record.Workload{Kind: "command", Error: "exit 3", Exit: new(3)}},
		{Workload: &record.Workload{Kind: "none"}},
	}
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, "%s\n\n======\n", strings.Join(lines(WriteRun, r), "\n"))
	}
	golden(t, "run.golden", b.String())
}

// In the report, recordings with the same name must be distinguishable, and the
// number of printed steps must be bounded.
func TestReplayPages(t *testing.T) {
	p := func(file, device string, user, pid int) record.ReplayProcess {
		return record.ReplayProcess{
			File: file,
			Process: record.Process{
				Process: "com.shop", Device: device, User: user, PID: pid, Gate: detector.Pass, Duration: 3600,
			},
		}
	}
	long := p("a.csv", "", 0, 1)
	long.Rate, long.RateInterval, long.MinDetectable, long.Kind, long.Reason = new(1.5), []float64{-1, 4}, new(9.5),
		detector.Java, "steady"
	long.Shares, long.Jumps = []record.Share{{Dimension: "Java Heap", Share: 0.85, Growth: 12, Rate: 3}},
		[]record.Jump{{T: 60, Size: 40, Sustained: true}, {T: 90, Size: -4}}
	long.Looks = []record.ReplayLook{{Series: "memory", Fired: true, Text: "memory: fires"}}
	long.Transitions = many(maxSteps+1, func(i int) record.Transition {
		return record.Transition{T: float64(i), From: detector.Suspicious, To: detector.Leaking, Reason: "x"}
	})
	var b strings.Builder
	for _, list := range [][]record.ReplayProcess{
		{long}, {p("a.csv", "S1", 0, 1), p("a.csv", "S2", 10, 1)},
		{p("a.csv", "", 0, 1), p("a.csv", "", 0, 2), p("b.csv", "", 0, 1)},
	} {
		_ = WriteReplay(&b, record.Replay{Policy: detector.PolicyRobust, Base: list[0].File, Processes: list})
		b.WriteString("\n======\n")
	}
	golden(t, "replay.golden", b.String())
}

// Every writer must return the error of the io.Writer that it writes to.
func TestWritersReturnErrors(t *testing.T) {
	r, w := io.Pipe()
	_ = r.CloseWithError(io.ErrClosedPipe)
	for name, err := range map[string]error{
		"run": WriteRun(w, record.Run{}), "diagnosis": WriteDiagnosis(w, record.Diagnosis{}),
		"replay": WriteReplay(w, record.Replay{}), "report": WriteReport(w, &analysis.Report{}, false),
		"histogram": WriteHistogram(w, &analysis.Report{}), "leak": WriteLeak(w, &analysis.Leak{}),
		"diff": WriteDiff(w, &analysis.Diff{}, 1), "growth": WriteGrowth(w, &analysis.Growth{}),
		"paths": WritePaths(w, &analysis.Paths{}, 1), "objects": WriteObjects(w, &analysis.Objects{}),
	} {
		if err != io.ErrClosedPipe {
			t.Errorf("%s: %v", name, err)
		}
	}
}
