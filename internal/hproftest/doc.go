// Package hproftest creates heap dumps with known contents: calls describe a
// heap, which is then written as ART or HotSpot would write it.
//
//	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
//	a := h.Activity("com.shop.MainActivity", hproftest.Destroyed)
//	cache := h.Declare("com.shop.Cache", nil, "object last", "static object sActivities")
//	h.SetStatic(cache, "sActivities", h.ArrayList(a.Ref, h.New(cache, nil)).Ref)
//	dump, ids, err := h.Dump(hproftest.Form{})
//
// A Heap is declared piece by piece: classes, objects, arrays, strings, roots,
// threads, and typical parts of Android apps. A Form selects how the heap is
// written: runtime, ID size, order, segments. The same calls with the same seed
// produce the same bytes. Ballast adds any number of objects, which are written
// without being stored, so that a dump can have any size. Truncate, Flip,
// Retag, Redeclare and Strip damage a dump in the same ways in which real dumps
// are damaged. LeakCases are small dumps of apps with all kinds of leaks that
// Shark detects, for comparing analyses. Parse is a simple second reader, and
// Graph computes by brute force which objects are reachable and retained.
//
// The output follows AOSP's art/runtime/hprof/hprof.cc for ART and OpenJDK's
// services/heapDumper.cpp for HotSpot. The classes are those of AOSP and the
// JDK, with few fields other than those that analyses read.
package hproftest
