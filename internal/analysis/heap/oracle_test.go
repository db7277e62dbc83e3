package heap_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/recorded"
)

// load returns the graph of a dump in memory.
func load(tb testing.TB, dump []byte, o heap.Options) *heap.Graph {
	tb.Helper()
	f, err := hprof.Open(context.Background(), bytes.NewReader(dump), int64(len(dump)))
	if err != nil {
		tb.Fatal(err)
	}
	o.Snapshot = -1
	g, err := heap.Load(context.Background(), f, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(g.Close)
	return g
}

// TestOracle compares each object with the values that AOSP's ahat computed.
func TestOracle(t *testing.T) {
	tables, err := filepath.Glob(filepath.Join(recorded.Path(t, "hprof"), "oracle-ahat-*.tsv"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no tables recorded with ahat: %v", err)
	}
	for _, table := range tables {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(table), "oracle-ahat-"), ".tsv")
		t.Run(name, func(t *testing.T) {
			file := name + ".hprof"
			if name == "hprof-64" {
				file = name + ".bin"
			}
			g := load(t, recorded.Read(t, "hprof", file), heap.Options{})
			rows := 0
			for line := range strings.Lines(string(recorded.Read(t, "hprof", filepath.Base(table)))) {
				c := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
				if strings.HasPrefix(c[0], "0x") {
					checkRow(t, g, c)
					rows++
				}
			}
			if rows < 1000 {
				t.Errorf("%d rows", rows)
			}
		})
	}
}

// The columns of checkRow: id, class, kind, heap, shallow_java, native,
// retained_total, reachability, idom, roots.
func checkRow(t *testing.T, g *heap.Graph, c []string) {
	t.Helper()
	id, err := strconv.ParseUint(c[0], 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	o, ok := g.Find(hprof.ID(id))
	if !ok {
		t.Errorf("%s: not found", c[0])
		return
	}
	if g.ID(o) != hprof.ID(id) {
		t.Errorf("%s: number %d is %#x", c[0], o, g.ID(o))
	}
	dominator := "-"
	if d, ok := g.Dominator(o); ok {
		dominator = "0x" + strconv.FormatUint(uint64(g.ID(d)), 16)
	}
	name := g.Class(o)
	if g.IsClass(o) {
		name = g.ClassName(o)
	}
	got := []string{
		c[0], name, c[2], g.Heaps[g.HeapOf(o)].Name, strconv.FormatInt(g.Shallow(o).Java, 10),
		strconv.FormatInt(g.Shallow(o).Native, 10),
		strconv.FormatInt(g.Retained(o).Total(), 10), g.Reachability(o).String(), dominator}
	if g.Reachability(o) > heap.Soft {
		got[6], c[6] = "", ""
	}
	if c[3] == "default" {
		got[3] = c[3]
	}
	for i := range got {
		if got[i] != c[i] {
			t.Errorf("%s\n got %q\nwant %q", c[0], got, c[:len(got)])
			return
		}
	}
}
