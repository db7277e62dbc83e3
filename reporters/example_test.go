package reporters_test

import (
	"fmt"
	"os"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

// leak returns the result of analysis.Analyze for an activity that a registry
// still holds.
func leak() analysis.Leak {
	return analysis.Leak{
		Fingerprint: "95c1f7fe0001", Key: "7ffe8a980002", Class: "com.shop.CartActivity", Instances: 3,
		GCRootText: "System class", RetainedBytes: 5 << 20,
		Trace: []analysis.TraceElement{
			{
				Class: "com.shop.Registry", Type: "class", Reference: "all", Kind: "static_field",
				Owner: "com.shop.Registry", Leaking: "NO", Reason: "a class is never leaking", Suspect: true,
			},
			{Class: "com.shop.CartActivity", Type: "instance", Leaking: "YES", Reason: "Activity#mDestroyed is true"},
		},
	}
}

func place() analysis.GrowingPlace {
	return analysis.GrowingPlace{
		Path: []analysis.GrowthStep{
			{Kind: "gc_root", Name: "sticky class", Class: "class com.shop.Registry"},
			{Kind: "static_field", Owner: "com.shop.Registry", Name: "all", Class: "java.util.ArrayList"},
		},
		Delta: 40, PerLoop: 10, GrowthBytes: 3 << 20,
		Children: []analysis.GrowingChild{
			{
				PathEdge: analysis.GrowthStep{
					Kind: "array_entry", Owner: "java.util.ArrayList", Name: "[x]", Class: "com.shop.Page",
					Objects: []int64{10, 30, 50},
				}, RetainedBytes: []int64{1 << 20, 4 << 20}, RetainedDelta: 3 << 20,
			},
		},
	}
}

func process() record.Process {
	return record.Process{
		Process: "com.shop", Source: "smaps_rollup", Samples: 240, Details: 60, Duration: 7200,
		State: detector.Leaking, Worst: detector.Leaking, Gate: detector.Leak, Kind: detector.Java,
		Reason: "memory grows 120 MB/h",
	}
}

func ExampleWriteRun() {
	run := record.Run{Policy: detector.PolicyRobust, Processes: []record.Process{process()}}
	if err := reporters.WriteRun(os.Stdout, run); err != nil {
		fmt.Println(err)
	}
	// Output:
	// com.shop: LEAK (java leak)
	//   why      memory grows 120 MB/h
	//   series   240 samples over 2h0m, by smaps_rollup; 60 dumpsys meminfo readings; no restart
	//   gaps     none
}

func ExampleWriteDiagnosis() {
	d := record.Diagnosis{
		Process: "com.shop", Trigger: record.TriggerLeak, T: 3720, Kind: detector.Java, Recipe: "java",
		Outcome: record.DiagnosisComplete, Folder: "artifacts/com.shop/20260102T030405Z-java_leak",
		Steps:   []record.Collected{{Step: "heap", Outcome: "complete", File: "heap.hprof.zst"}},
		Summary: []string{"heap dump: 3 x CartActivity, held by Registry.all, 5.0 MB retained"},
	}
	if err := reporters.WriteDiagnosis(os.Stdout, d); err != nil {
		fmt.Println(err)
	}
	// Output:
	// com.shop, leak at 1h2m: java leak, 1 of 1 artifacts in artifacts/com.shop/20260102T030405Z-java_leak
	//   heap dump: 3 x CartActivity, held by Registry.all, 5.0 MB retained
}

func ExampleWriteReplay() {
	p := process()
	p.Rate, p.RateInterval = new(120.0), []float64{90, 150}
	r := record.Replay{
		Policy: detector.PolicyRobust, Processes: []record.ReplayProcess{{File: "night.csv", Process: p}},
	}
	if err := reporters.WriteReplay(os.Stdout, r); err != nil {
		fmt.Println(err)
	}
	// Output:
	// PROCESS                          VERDICT      WORST      KIND        SAMPLES  LENGTH      MB/h                95 %   DETECTS   GREW MB
	// com.shop                         leak         LEAKING    java_leak       240    2h0m    +120.0     +90.0 to +150.0         -      +0.0
	//
	// com.shop: LEAK (java leak): memory grows 120 MB/h
	// judged by policy robust
}

func ExampleWriteReport() {
	r := &analysis.Report{
		Dump: analysis.Dump{
			Format: "JAVA PROFILE 1.0.3", Bytes: 9 << 20, Objects: 41_000, Instances: 40_000, ObjectArrays: 600,
			PrimitiveArrays: 400, Classes: 900, ReachableBytes: 8 << 20,
		},
		Leaks: []analysis.Leak{leak()}, LeakedBytes: 5 << 20,
		Classes: []analysis.Class{
			{Class: "com.shop.CartActivity", Instances: 3, ShallowBytes: 960, RetainedBytes: 5 << 20},
		},
	}
	if err := reporters.WriteReport(os.Stdout, r, false); err != nil {
		fmt.Println(err)
	}
	// Output:
	// JAVA PROFILE 1.0.3, 9.0 MB, 41 000 objects: 40 000 instances, 600 object arrays, 400 primitive arrays, 900 classes
	// reachable: 8.0 MB (sizes as the dump declares them)
	//
	// LEAKS: 1 (3 objects) in the app, 5.0 MB retained; 0 in libraries
	// (fingerprint: as in LeakCanary; key: the same in every build; 1 kB is 1024 bytes)
	//
	// 3 x CartActivity: held by Registry.all
	// 5.0 MB retained, fingerprint 95c1f7fe, key 7ffe8a98
	// ┬───
	// │ GC Root: System class
	// │
	// ├─ com.shop.Registry class
	// │    Leaking: NO (a class is never leaking)
	// │    ↓ static Registry.all
	// │                      ~~~  ← look here first
	// ╰→ com.shop.CartActivity instance
	//       Leaking: YES (Activity#mDestroyed is true)
	//
	// CLASSES: sizes in bytes
	//       RETAINED       NATIVE        SHALLOW    INSTANCES  CLASS
	//      5 242 880            0            960            3  com.shop.CartActivity
	//
	// verdict: 1 leak in the app, 5.0 MB retained
}

func ExampleWriteHistogram() {
	r := &analysis.Report{
		Dump:    analysis.Dump{Format: "JAVA PROFILE 1.0.3", Bytes: 9 << 20, Objects: 3, Instances: 3},
		Classes: []analysis.Class{{Class: "com.shop.CartActivity", Instances: 3, ShallowBytes: 960}},
	}
	if err := reporters.WriteHistogram(os.Stdout, r); err != nil {
		fmt.Println(err)
	}
	// Output:
	// JAVA PROFILE 1.0.3, 9.0 MB, 3 objects: 3 instances, 0 object arrays, 0 primitive arrays, 0 classes
	//
	//          BYTES    INSTANCES  CLASS
	//            960            3  com.shop.CartActivity
}

func ExampleWriteLeak() {
	l := leak()
	if err := reporters.WriteLeak(os.Stdout, &l); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 3 x CartActivity: held by Registry.all
	// 5.0 MB retained, fingerprint 95c1f7fe, key 7ffe8a98
	// ┬───
	// │ GC Root: System class
	// │
	// ├─ com.shop.Registry class
	// │    Leaking: NO (a class is never leaking)
	// │    ↓ static Registry.all
	// │                      ~~~  ← look here first
	// ╰→ com.shop.CartActivity instance
	//       Leaking: YES (Activity#mDestroyed is true)
}

func ExampleWriteDiff() {
	grew := func(base, head int64) analysis.Change {
		return analysis.Change{Base: base, Head: head, Delta: head - base}
	}
	d := &analysis.Diff{
		Comparable: true, Base: analysis.Dump{Format: "JAVA PROFILE 1.0.3", IDSize: 4, Objects: 40_000},
		Head:           analysis.Dump{Format: "JAVA PROFILE 1.0.3", IDSize: 4, Objects: 41_000},
		ReachableBytes: grew(8<<20, 13<<20), Objects: grew(40_000, 41_000),
		Leaks: []analysis.LeakChange{
			{
				Key: "7ffe8a980002", Status: "new", Class: "com.shop.CartActivity", KeyText: []string{"Registry.all"},
				Instances: grew(0, 3), RetainedBytes: grew(0, 5<<20),
			},
		},
	}
	if err := reporters.WriteDiff(os.Stdout, d, 30); err != nil {
		fmt.Println(err)
	}
	// Output:
	// base: JAVA PROFILE 1.0.3, IDs of 4 bytes, 0.0 kB, 40 000 objects, 0.0 kB reachable
	// head: JAVA PROFILE 1.0.3, IDs of 4 bytes, 0.0 kB, 41 000 objects, 0.0 kB reachable
	// change: +5.0 MB reachable, +1 000 objects
	//
	// LEAKS            CHANGE       RETAINED            OBJECTS  KEY      CLASS
	// new          +5 242 880      5 242 880              0 > 3  7ffe8a98 com.shop.CartActivity
	//                                                             held by Registry.all
	//
	// no class changed
}

func ExampleWriteGrowth() {
	r := &analysis.Growth{
		Loops: 2,
		Dumps: []analysis.GrowthDump{{Name: "after2.hprof", Objects: 40_000}, {Name: "after4.hprof", Objects: 41_000}},
		Found: 1, Growth: []analysis.GrowingPlace{place()},
	}
	if err := reporters.WriteGrowth(os.Stdout, r); err != nil {
		fmt.Println(err)
	}
	// Output:
	// dump 1: after2.hprof, 40 000 objects, 0.0 kB reachable, no date
	// dump 2: after4.hprof, 41 000 objects, 0.0 kB reachable, no date
	//
	// 1 place grew in every dump (by at least 2 objects each time, one for each repetition)
	//
	// 1. Registry.all (ArrayList): +40 objects, 10 for each repetition, +3.0 MB
	//    sticky class class com.shop.Registry
	//      static all -> java.util.ArrayList
	//  +     [x] -> com.shop.Page: 10 > 30 > 50, 4.0 MB (+3.0 MB)
}

func ExampleWritePaths() {
	p := &analysis.Paths{
		Class: "com.shop.Page", Instances: 50, Reached: 50, Bytes: 4000, Retained: 4 << 20,
		Branches: []analysis.Branch{{
			GCRoot: "STICKY_CLASS", Class: "com.shop.Registry", Type: "class", Objects: 1, Instances: 50, Bytes: 4000,
			Branches: []analysis.Branch{
				{
					Owner: "com.shop.Registry", Reference: "all", Kind: "static_field", Class: "com.shop.Page",
					Type: "instance", Objects: 50, Instances: 50, Bytes: 4000,
				},
			},
		}},
	}
	if err := reporters.WritePaths(os.Stdout, p, 30); err != nil {
		fmt.Println(err)
	}
	// Output:
	// com.shop.Page: 50, 50 reached from GC roots; 3.9 kB, retaining 4.0 MB
	//
	//    INSTANCES        BYTES  PATH
	//           50        4 000  STICKY_CLASS: class com.shop.Registry
	//           50        4 000    Registry.all → 50 x com.shop.Page
}

func ExampleWriteObjects() {
	list := &analysis.Objects{
		Objects: []analysis.Object{
			{
				Object: "0x12c04948", Class: "com.shop.Cart", Heap: "app", ShallowBytes: 24, RetainedBytes: 4096,
				Reachability: "strong",
			},
		},
	}
	if err := reporters.WriteObjects(os.Stdout, list); err != nil {
		fmt.Println(err)
	}
	// Output:
	// OBJECT                 RETAINED      SHALLOW       NATIVE  HEAP         REACHABLE   DOMINATOR          CLASS
	// 0x12c04948                4 096           24            0  app          strong      -                  com.shop.Cart
}

func ExampleHeadline() {
	fmt.Println(reporters.Headline(process(), detector.PolicyRobust))
	// Output:
	// LEAK (java leak)
}

func ExampleDescribeKind() {
	fmt.Println(reporters.DescribeKind(detector.Java))
	// Output:
	// java leak
}

func ExampleDescribeState() {
	fmt.Println(reporters.DescribeState(detector.Leaking, detector.PolicyRobust))
	// Output:
	// LEAKING (provisional)
}

func ExampleLeakName() {
	l := leak()
	fmt.Println(reporters.LeakName(&l))
	// Output:
	// 3 x CartActivity, held by Registry.all
}

func ExamplePlaceName() {
	p := place()
	fmt.Println(reporters.PlaceName(&p))
	// Output:
	// Registry.all (ArrayList)
}
