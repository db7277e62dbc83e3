package hproftest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

func TestBallast(t *testing.T) {
	for _, f := range []Form{
		{}, {IDSize: 8}, {Shuffle: true}, {HeapFirst: true, Shuffle: true}, {Runtime: HotSpot},
		{Runtime: HotSpot, IDSize: 4, HeapFirst: true},
	} {
		const size = 1 << 20
		h := Android(Phone{SDK: 30})
		empty, _, err := h.Dump(f)
		if err != nil {
			t.Fatal(err)
		}
		h.Fill(Ballast{Bytes: size, Seed: 5})
		g, ids, data := write(t, h, f)
		if again, _, err := h.Dump(f); err != nil || !bytes.Equal(again, data) {
			t.Errorf("%+v: the second dump differs: %v", f, err)
		}
		if added := len(data) - len(empty); added < size || added > size+size/2 {
			t.Errorf("%+v: %d bytes added, want %d", f, added, size)
		}
		dangling, instances, arrays := 0, map[string]int{}, map[string]int{}
		for _, n := range g.Nodes {
			for _, to := range append(slices.Clone(n.Elements), values(n.Refs)...) {
				if to != 0 && g.Nodes[to] == nil {
					dangling++
				}
			}
			if n.Kind == hprof.SubInstance {
				instances[javaName(n.Class)]++
			} else {
				arrays[n.Class]++
			}
		}
		if dangling > 0 {
			t.Errorf("%+v: %d references to missing objects", f, dangling)
		}
		for _, class := range []string{
			"java.lang.String", "java.util.ArrayList", "java.util.LinkedList$Node", "java.util.HashMap$Node",
			"java.util.TreeMap$TreeMapEntry", "java.util.WeakHashMap$Entry", "ballast.Row", "ballast.Vertex",
			"ballast.Chunk",
		} {
			if instances[class] < 2 {
				t.Errorf("%+v: %d of %s", f, instances[class], class)
			}
		}
		clean := Android(Phone{SDK: 30})
		clean.Fill(Ballast{Bytes: 100_000, Clean: true, Package: "a.b"})
		if c, ids, _ := write(t, clean,
			f); !c.Reachable()[c.Path(ids.Of(clean.Class("a.b.Registry")), "all.first.items")] {
			t.Errorf("%+v: no static field holds the ballast", f)
		}
		held := g.Retained(ids.Of(h.ballast.registry))
		live, all := len(g.Reachable()), len(g.Nodes)
		if live < all*9/10 || live == all || held < size/2 {
			t.Errorf("%+v: %d of %d objects are reachable, holding %d bytes", f, live, all, held)
		}
	}
}

func values(m map[string]hprof.ID) (out []hprof.ID) {
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// TestBallastIsStreamed checks that writing a large dump needs hardly any
// memory, and that the dump is reproducible and can be read.
func TestBallastIsStreamed(t *testing.T) {
	size := int64(12 << 20)
	if testing.Short() {
		size = 8 << 20
	}
	for _, f := range []Form{{}, {Runtime: HotSpot}} {
		h := Java(1)
		h.Fill(Ballast{Bytes: size})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		sum := &summed{}
		if _, err := h.Write(sum, f); err != nil {
			t.Fatal(err)
		}
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 16<<20 {
			t.Errorf("%+v: allocated %d bytes for a dump of %d, want at most 16 MB", f,
				after.TotalAlloc-before.TotalAlloc, sum.n)
		}
		if sum.n < size || sum.n > size+size/10 {
			t.Errorf("%+v: %d bytes, want %d", f, sum.n, size)
		}
		if n, err := h.Measure(f); n != sum.n || err != nil {
			t.Errorf("%+v: measured %d bytes, wrote %d: %v", f, n, sum.n, err)
		}
		data, _, err := h.Dump(f)
		again := &summed{}
		if _, werr := again.Write(data); err != nil || werr != nil || *again != *sum {
			t.Errorf("%+v: the second dump differs: %v", f, err)
		}
		file, err := hprof.Open(context.Background(), bytes.NewReader(data), int64(len(data)))
		if err != nil || file.Truncated >= 0 {
			t.Fatal(err)
		}
		s, objects := file.Scanner(file.Snapshots[0].Segments), 0
		most := hprof.ID(0)
		for s.Next() {
			if objects++; s.Object < imageSpace || f.Runtime == HotSpot {
				most = max(most, s.Object)
			}
		}
		first := hprof.ID(regionSpace)
		if f.Runtime == HotSpot {
			first = hotSpotHeap
		}
		if most-first > hprof.ID(h.ballast.room()) || most-first < hprof.ID(size/4) {
			t.Errorf("%+v: addresses up to 0x%x, but room only for 0x%x", f, uint64(most), h.ballast.room())
		}
		if s.Err() != nil || objects < int(size/200) {
			t.Errorf("%+v: %d records, %v", f, objects, s.Err())
		}
	}
}

// summed is a writer that computes a checksum of the written bytes.
type summed struct {
	n   int64
	sum uint64
}

func (s *summed) Write(b []byte) (int, error) {
	for _, c := range b {
		s.sum = s.sum*1099511628211 ^ uint64(c)
	}
	s.n += int64(len(b))
	return len(b), nil
}

func TestNoRoom(t *testing.T) {
	for _, f := range []Form{{}, {Runtime: HotSpot, IDSize: 4}} {
		h := Java(1)
		h.Fill(Ballast{Bytes: 5 << 30})
		if _, err := h.Write(io.Discard, f); !errors.Is(err, errNoRoom) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func BenchmarkBallast(b *testing.B) {
	for name, f := range map[string]Form{"ART": {}, "HotSpot": {Runtime: HotSpot}} {
		b.Run(name, func(b *testing.B) {
			const size = 64 << 20
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				h := Java(1)
				h.Fill(Ballast{Bytes: size})
				if _, err := h.Write(io.Discard, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
