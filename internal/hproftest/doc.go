// Package hproftest makes heap dumps whose answers are known: a small language says
// what is in a heap, and the heap is written as ART does it or as HotSpot does it.
//
//	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
//	a := h.Activity("com.shop.MainActivity", hproftest.Destroyed)
//	cache := h.Declare("com.shop.Cache", nil, "object last", "static object sActivities")
//	h.SetStatic(cache, "sActivities", h.ArrayList(a.Ref, h.New(cache, nil)).Ref)
//	dump, ids, err := h.Dump(hproftest.Form{})
//
// A Heap is declared piece by piece: classes, objects, arrays, strings, roots,
// threads, and shapes that Android apps are made of. A Form says how it is written:
// runtime, ID size, order, segments. The same calls with the same seed give the same
// bytes. Ballast adds objects without end, which are written and never kept, so that
// a dump can have any size. Cut, Flip, Retag, Redeclare and Strip break a dump in the
// ways that real ones are broken. LeakCases are small dumps of apps with leaks of all
// kinds that Shark knows, for whoever compares what is said about them. Parse is a plain second reader, and a Graph answers
// by brute force what is reachable and retained.
//
// What ART writes follows AOSP's art/runtime/hprof/hprof.cc, what HotSpot writes
// OpenJDK's services/heapDumper.cpp. The classes are those of AOSP and the JDK with
// the fields that analyses look at, and few others.
//
// It refuses to read dumps for real, which is package hprof's, and to say what is
// right in one. Tests feed on it, and so does the simulated phone.
package hproftest
