package analysis_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// leakyDump returns a heap dump in which a static field of com.shop.Cache holds
// the given number of destroyed activities.
func leakyDump(activities int) []byte {
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	cache := h.Declare("com.shop.Cache", nil, "static object last")
	var held []hproftest.Ref
	for range activities {
		held = append(held, h.Activity("com.shop.MainActivity", hproftest.Destroyed).Ref)
	}
	h.SetStatic(cache, "last", h.ArrayList(held...).Ref)
	dump, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		panic(err)
	}
	return dump
}

// This example shows what leaks in a heap dump, and which references are
// suspected of causing the leak.
func ExampleAnalyze() {
	dump := leakyDump(1)
	report, err := analysis.Analyze(context.Background(), bytes.NewReader(dump), int64(len(dump)),
		analysis.Options{Top: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, leak := range report.Leaks {
		fmt.Printf("%s leaks %d time(s), from %s\n", leak.Class, leak.Instances, leak.GCRoot)
		for _, e := range leak.Trace {
			if e.Suspect {
				fmt.Printf("look at %s of %s\n", e.Reference, e.Class)
			}
		}
	}
	// Output:
	// com.shop.MainActivity leaks 1 time(s), from THREAD_OBJECT
	// look at last of com.shop.Cache
	// look at [0] of java.util.ArrayList
}

// This example shows which leaks are new, or have grown, since an earlier dump.
func ExampleCompare() {
	var summaries []*analysis.Summary
	for _, dump := range [][]byte{leakyDump(1), leakyDump(3)} {
		s, err := analysis.Summarize(context.Background(), bytes.NewReader(dump), int64(len(dump)), analysis.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		summaries = append(summaries, s)
	}
	diff := analysis.Compare(summaries[0], summaries[1], 10)
	for _, leak := range diff.Leaks {
		fmt.Printf("%s: %s, %d -> %d objects\n", leak.Status, leak.Class, leak.Instances.Base, leak.Instances.Head)
	}
	// Output: grown: com.shop.MainActivity, 1 -> 3 objects
}
