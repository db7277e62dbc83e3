package heap_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// TestOrder writes one heap in many orders and reads it with few and many
// goroutines: the results must be identical byte for byte.
func TestOrder(t *testing.T) {
	objects := 12_000
	if racing {
		objects /= 4
	}
	for seed := range uint64(3) {
		d, w := randomWorld(seed, objects)
		classesLast := make([]int, 0, len(w.objects))
		for _, last := range []bool{false, true} {
			for i, o := range w.objects {
				if (o.kind == hprof.SubClassDump) == last {
					classesLast = append(classesLast, i)
				}
			}
		}
		forms := map[string]form{
			"default order": {},
			"one segment":   {segments: hproftest.Segmentation{Single: true}, rootsAt: objects / 2},
			"tiny segments": {segments: hproftest.Segmentation{Records: 1}, rootsAt: objects / 3},
			"shuffled":      {order: d.Perm(len(w.objects)), rootsAt: len(w.objects)},
			"shuffled tiny segments": {
				order: d.Perm(len(w.objects)), segments: hproftest.Segmentation{Records: 3}, namesLast: true,
			},
			"classes last": {order: classesLast, segments: hproftest.Segmentation{Bytes: 1 << 16, Fit: true}},
			"names last":   {namesLast: true, rootsAt: len(w.objects) - 7},
		}
		want := portrait(load(t, w.dump(t), heap.Options{Workers: 1}))
		for name, f := range forms {
			dump := w.write(t, f).dump
			for _, workers := range []int{1, 2, 8} {
				t.Run(fmt.Sprint(seed, " ", name, " ", workers), func(t *testing.T) {
					g := load(t, dump, heap.Options{Workers: workers})
					same(t, portrait(g), want)
					if workers == 2 {
						if err := broken(g); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
	}
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("line %d\n got %s\nwant %s", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
}

// double adds, for some objects, another record with the same ID before the
// object's own record. The additional record may be of another type; that of a
// class object, however, is always a class record.
func (d *dice) double() {
	before := d.objects
	for range 1 + d.IntN(8) {
		o := before[d.IntN(len(before))]
		var old *object
		if o.kind == hprof.SubClassDump {
			c := *o.class
			c.size += 100
			c.fields = append([]field{{"shifts", hprof.Int}, {"all", hprof.Object}}, c.fields...)
			c.statics = []static{{field{"s0", hprof.Object}, value{}}}
			old = &object{kind: hprof.SubClassDump, class: &c}
		} else {
			old = d.make()
			d.objects = before
		}
		old.n = o.n
		d.rewire(old)
		old.id, old.heap = o.id, o.heap
		d.older = append(d.older, old)
	}
}

// TestDuplicates writes objects twice and checks that all results follow the
// last record.
func TestDuplicates(t *testing.T) {
	worlds := uint64(2000)
	if racing {
		worlds /= 10
	}
	for seed := range worlds {
		d, w := randomWorld(seed, 1+int(seed%60))
		d.double()
		g, err := open(w.write(t, d.form()).dump, heap.Options{Workers: 1})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := w.solve().differs(g); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := broken(g); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		g.Close()
	}
}

// TestDuplicatesApart places duplicates in other chunks of the file, which
// other goroutines may read earlier or later.
func TestDuplicatesApart(t *testing.T) {
	worlds := uint64(100)
	if racing {
		worlds /= 3
	}
	for seed := range worlds {
		d, w := randomWorld(seed, 40)
		for range 6 {
			w.primitives(hprof.Byte, 80_000).id = hprof.ID(0xfff00000 + 8*len(w.objects))
		}
		d.double()
		// The long arrays are between the first and the second object of each
		// kind.
		order := d.Perm(len(w.objects))
		slices.SortStableFunc(order, func(a, b int) int { return int(w.objects[b].count) - int(w.objects[a].count) })
		var beyond atomic.Int64
		g, err := open(w.write(t, form{order: order}).dump, heap.Options{Workers: 8, Progress: func(done, all int64) {
			if done > all {
				beyond.Store(done - all)
			}
		}})
		if n := beyond.Load(); n > 0 {
			t.Fatalf("seed %d: progress exceeded the total by %d bytes", seed, n)
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := w.solve().differs(g); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		g.Close()
	}
}

// TestOneSegment loads a segment with more objects than one batch holds, with
// heap changes at odd intervals, and duplicate objects far apart.
func TestOneSegment(t *testing.T) {
	if racing {
		t.Skip("TestOrder covers this with fewer objects")
	}
	const objects, doubles = 1_200_000, 5
	heaps := []uint32{'A', 0, 'I', 'A', 'Z'}
	w := newScribe(4)
	for id, name := range heapNames {
		w.String(hprof.ID(0x1000+id), name)
	}
	w.loaded(0x100, "Leaf")
	w.loaded(0x110, "Node")
	w.Segment(hproftest.Segmentation{Single: true})
	w.classDump(0x100, 8, 0)
	w.classDump(0x110, 12, 1)
	at := func(i int) hprof.ID { return hprof.ID(0x10000 + 8*i) }
	heapOf := func(i int) uint32 { return heaps[i/65_537%len(heaps)] }
	w.Root(hprof.Root{Kind: hprof.SubRootUnknown, Object: at(0)})
	for i := range doubles {
		w.PrimitiveArray(at(i*200_000+7), 0, hprof.Byte, make([]byte, 1000+i))
	}
	for i := range objects {
		if i == 0 || heapOf(i) != heapOf(i-1) {
			w.HeapInfo(heapOf(i), hprof.ID(0x1000+heapOf(i)))
		}
		if i%5 == 4 {
			w.instance(at(i), 0x100)
		} else {
			w.instance(at(i), 0x110, at(min(i+1, objects-1)))
		}
	}
	g := load(t, w.dump(t), heap.Options{Workers: 4})
	if g.Objects != objects+2 || g.Duplicates != doubles || g.PrimitiveArrays != 0 || g.Instances != objects {
		t.Errorf("got %d objects, %d duplicates, %d instances", g.Objects, g.Duplicates, g.Instances)
	}
	for i := range objects {
		o, _ := g.Find(at(i))
		retained := int64(0)
		if i < 5 {
			retained = int64(12*(4-i) + 8)
		}
		if g.ID(o) != at(i) || g.Heaps[g.HeapOf(o)].Name != heapNames[heapOf(i)] ||
			(g.Class(o) == "Leaf") != (i%5 == 4) || g.Retained(o).Java != retained {
			t.Fatalf("object %d is a %s in %s that retains %v", i, g.Class(o), g.Heaps[g.HeapOf(o)].Name, g.Retained(o))
		}
	}
	if err := broken(g); err != nil {
		t.Error(err)
	}
}

// TestSuperclassCycle loads classes that are their own superclasses, and checks
// that Load returns.
func TestSuperclassCycle(t *testing.T) {
	const wide, objects = 2000, 300
	w := newScribe(4)
	w.Segment(hproftest.HotSpotSegments())
	declare := func(id, super hprof.ID, fields int) {
		c := &hprof.Class{ID: id, Super: super, InstanceSize: 16}
		for range fields {
			c.Fields = append(c.Fields, hprof.Field{Name: 1, Type: hprof.Object})
		}
		w.Class(c)
	}
	w.String(1, "f")
	declare(0x100, 0x200, 1)
	declare(0x200, 0x100, 2)
	declare(0x300, 0x300, wide)
	w.Root(hprof.Root{Kind: hprof.SubRootUnknown, Object: 0x1000})
	at := func(i int) hprof.ID { return hprof.ID(0x1000 + 8*i) }
	for i := range objects {
		w.instance(at(i), []hprof.ID{0x100, 0x200, 0x300}[i%3], 0, at(i+1))
	}
	// The file is only 20 kB long; the sizes that it declares do not matter.
	g := load(t, w.dump(t), heap.Options{Limit: 4 << 20})
	for i := range objects {
		o, _ := g.Find(at(i))
		if want := int64(16 * (objects - i)); g.Retained(o).Java != want || g.InstanceOf(o, "java.lang.Object") {
			t.Fatalf("object %d retains %v, want %d", i, g.Retained(o), want)
		}
	}
}

// TestSnapshots loads files with several heaps.
func TestSnapshots(t *testing.T) {
	for name, segments := range map[string]hproftest.Segmentation{
		"segments": hproftest.ARTSegments(), "old": {Single: true},
	} {
		t.Run(name, func(t *testing.T) {
			var worlds []*world
			var file []byte
			for i := range 3 {
				w := &world{idSize: 4}
				c := w.class(fmt.Sprintf("C%d", i), nil, uint32(10+i), field{"next", hprof.Object})
				c.object.id = hprof.ID(0x100 + 16*i)
				last := w.instance(c)
				for range 5 + i {
					last = w.instance(c, refs(last)...)
				}
				w.root(hprof.SubRootJNIGlobal, last)
				w.root(hprof.SubRootUnreachable, c.object)
				part := w.write(t, form{segments: segments}).dump
				if i > 0 {
					part = part[len(hprof.Format103)+1+12:]
				}
				file = append(file, part...)
				worlds = append(worlds, w)
			}
			f, err := hprof.Open(t.Context(), bytes.NewReader(file), int64(len(file)))
			if err != nil {
				t.Fatal(err)
			}
			for snapshot, w := range map[int]*world{-1: worlds[2], 0: worlds[0], 1: worlds[1], 2: worlds[2]} {
				g, err := heap.Load(t.Context(), f, heap.Options{Snapshot: snapshot})
				if err != nil {
					t.Fatal(err)
				}
				w.solve().check(t, g)
				g.Close()
			}
			for _, snapshot := range []int{3, 1 << 40} {
				if g, err := heap.Load(t.Context(), f, heap.Options{Snapshot: snapshot}); err == nil {
					g.Close()
					t.Errorf("snapshot %d of 3 was loaded", snapshot)
				}
				if _, err := heap.Count(t.Context(), f, heap.Options{Snapshot: snapshot}); err == nil {
					t.Errorf("snapshot %d of 3 was counted", snapshot)
				}
			}
		})
	}
}

// TestNoHeap checks that loading a file without a heap is an error.
func TestNoHeap(t *testing.T) {
	w := newScribe(4)
	w.String(1, "a")
	dump := w.dump(t)
	f, err := hprof.Open(t.Context(), bytes.NewReader(dump), int64(len(dump)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := heap.Load(t.Context(), f, heap.Options{}); err == nil {
		t.Error("loaded")
	}
	if _, err := heap.Count(t.Context(), f, heap.Options{}); err == nil {
		t.Error("counted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hprof.Open(ctx, bytes.NewReader(dump), int64(len(dump))); !errors.Is(err, context.Canceled) {
		t.Errorf("open: %v", err)
	}
}

// TestEmptyHeap loads empty heaps, and heaps in which nothing is reachable.
func TestEmptyHeap(t *testing.T) {
	for _, roots := range []int{0, 3} {
		w := &world{idSize: 4}
		for range roots {
			w.root(hprof.SubRootUnknown, &object{id: 8, n: 1})
		}
		s := newScribe(4)
		s.BeginSegment()
		for _, r := range w.roots {
			s.Root(hprof.Root{Kind: r.kind, Object: r.object.id})
		}
		g := load(t, s.dump(t), heap.Options{})
		w.number()
		w.solve().check(t, g)
		if _, ok := g.Find(8); ok || len(g.Histogram()) != 0 {
			t.Errorf("object 8 was found: %t; got rows %v, want none", ok, g.Histogram())
		}
	}
}
