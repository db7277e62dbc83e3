package android_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// recordedDumps are the dumps that tests read.
var recordedDumps = []string{
	"leak_service_binder.hprof", "ahat-O.hprof", "ahat-RI.hprof", "hprof-32.bin", "hprof-64.bin",
	"pyhprof-example-java.hprof",
	"mat-sun_jdk6_32bit.hprof", "mat-sun_jdk6_18_x32.hprof", "mat-sun_jdk6_30_x64_compressedOops.hprof",
}

// load returns the graph of a dump that is held in memory.
func load(tb testing.TB, dump []byte) *heap.Graph {
	tb.Helper()
	f, err := hprof.Open(context.Background(), bytes.NewReader(dump), int64(len(dump)))
	if err != nil {
		tb.Fatal(err)
	}
	g, err := heap.Load(context.Background(), f, heap.Options{Snapshot: -1})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(g.Close)
	return g
}

// loadRecorded returns the graph of a recorded dump.
func loadRecorded(tb testing.TB, name string) *heap.Graph {
	tb.Helper()
	return load(tb, recorded.Read(tb, "hprof", name))
}

// read returns the survey of a graph.
func read(tb testing.TB, g *heap.Graph, o android.Options) *android.Survey {
	tb.Helper()
	s, err := android.Read(context.Background(), g, o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// made returns the survey of a heap that a test describes.
func made(tb testing.TB, h *hproftest.Heap, f hproftest.Form, o android.Options) (*android.Survey, hproftest.IDs) {
	tb.Helper()
	dump, ids, err := h.Dump(f)
	if err != nil {
		tb.Fatal(err)
	}
	s := read(tb, load(tb, dump), o)
	if len(s.Warnings) > 0 {
		tb.Errorf("warnings: %v", s.Warnings)
	}
	return s, ids
}

// text formats a value as JSON.
func text(tb testing.TB, v any) string {
	tb.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}
