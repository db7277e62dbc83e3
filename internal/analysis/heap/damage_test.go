package heap_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// boundaries returns the offsets at which a complete record outside the heap
// ends, and the offset at which the first segment's body begins.
func boundaries(dump []byte) (ends map[int]bool, body int) {
	ends = map[int]bool{}
	for at := len(hprof.Format103) + 1 + 12; at < len(dump); {
		ends[at] = true
		if tag := hprof.Tag(dump[at]); body == 0 && (tag == hprof.TagHeapDump || tag == hprof.TagHeapDumpSegment) {
			body = at + 9
		}
		at += 9 + int(binary.BigEndian.Uint32(dump[at+5:]))
	}
	ends[len(dump)] = true
	return ends, body
}

// prefix returns the world that the first bytes of a dump describe.
func (w *world) prefix(written written, n int) *world {
	p := &world{idSize: w.idSize, classes: w.classes, jvm: w.jvm}
	for i, o := range w.objects {
		if written.ends[i] <= int64(n) {
			p.objects = append(p.objects, o)
		}
	}
	for i, r := range w.roots {
		if written.roots[i] <= int64(n) {
			p.roots = append(p.roots, r)
		}
	}
	return p
}

// TestTruncated truncates dumps at each byte and checks that exactly the
// remaining objects are loaded.
func TestTruncated(t *testing.T) {
	step := 1
	if racing {
		step = 7
	}
	for seed, segments := range []hproftest.Segmentation{{Records: 16}, {Single: true}, {Bytes: 300}} {
		d, w := randomWorld(uint64(seed)+100, 40)
		f := d.form()
		f.segments, f.namesLast = segments, false
		written := w.write(t, f)
		ends, body := boundaries(written.dump)
		var want *answer
		for n := seed; n < len(written.dump); n += step {
			g, err := open(written.dump[:n], heap.Options{Workers: 1})
			if n < body {
				if err == nil || !strings.Contains(err.Error(), "heap") && !strings.Contains(err.Error(), "header") {
					t.Fatalf("%d bytes: %v", n, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if cut := g.Truncated >= 0; cut == ends[n] || g.Truncated > int64(n) {
				t.Fatalf("%d bytes: got Truncated %d; the dump ends with a whole record: %t", n, g.Truncated, ends[n])
			}
			if p := w.prefix(written, n); want == nil || len(p.objects)+len(p.roots) > len(want.objects)+
				len(want.roots) {
				p.number()
				want = p.solve()
			}
			if err := want.differs(g); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if err := broken(g); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			g.Close()
		}
	}
}

// TestPartial corrupts one record of a long dump. Without Partial, Load reports
// the position of the damage; with Partial, it loads everything except the rest
// of the damaged part of the file.
func TestPartial(t *testing.T) {
	const objects = 30_000
	w := newScribe(4)
	w.class(0x100, "C", 8, 1)
	w.Root(hprof.Root{Kind: hprof.SubRootUnknown, Object: 0x1000})
	broken := int64(0)
	for i := range objects {
		if i == objects/2 {
			broken = w.Written()
		}
		w.instance(hprof.ID(0x1000+8*i), 0x100, hprof.ID(0x1008+8*i))
	}
	dump := w.dump(t)
	if dump[broken] != byte(hprof.SubInstance) {
		// The record begins a segment.
		broken += 9
	}
	dump[broken] = 0x77
	_, err := open(dump, heap.Options{})
	var damage *hprof.DamageError
	if !errors.As(err, &damage) || damage.Offset != broken {
		t.Fatalf("got error %v, want damage at offset %d", err, broken)
	}
	g := load(t, dump, heap.Options{Partial: true, Workers: 2})
	if len(g.Damage) != 1 || !errors.As(g.Damage[0], &damage) || damage.Offset != broken {
		t.Errorf("got damage %v, want it at offset %d", g.Damage, broken)
	}
	// A part is about 64 kB long, and an instance takes 21 bytes.
	if lost := objects + 1 - g.Objects; lost < 1 || lost > 2*(64<<10)/21 || g.Dangling != 2 {
		t.Errorf("got %d missing objects and %d dangling references", lost, g.Dangling)
	}
	if o, ok := g.Find(0x1000); !ok || g.Retained(o).Java != 8*objects/2 {
		t.Errorf("the part before the damage retains %v", g.Retained(o))
	}
	readAll(t, g)
}

// survives loads a dump that may be damaged. The result must be either an error
// that includes the position or a consistent graph, and memory must be bounded.
func survives(t *testing.T, dump []byte) {
	// The read buffers take a few MB, independent of the size of the dump.
	limit := int64(4<<20 + 100*len(dump))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, err := hprof.Open(context.Background(), bytes.NewReader(dump), int64(len(dump)))
	if err != nil && !errors.As(err, new(*hprof.DamageError)) {
		t.Fatal(err)
	}
	for _, partial := range []bool{false, true} {
		if err != nil && !partial || len(f.Snapshots) == 0 {
			continue
		}
		g, err := heap.Load(context.Background(), f,
			heap.Options{
				Snapshot: -1, Workers: 1, Partial: partial, Limit: limit,
				Model: []heap.SizeModel{heap.Ahat, heap.Leakgate}[len(dump)%2], Inbound: true,
			})
		if err != nil {
			if partial || !errors.As(err, new(*hprof.DamageError)) {
				t.Fatalf("partial %t: %v", partial, err)
			}
			continue
		}
		if err := broken(g); err != nil {
			t.Fatalf("partial %t: %v", partial, err)
		}
		readAll(t, g)
		weighAll(t, g)
		if !partial && g.Duplicates == 0 {
			c, err := heap.Count(context.Background(), f, heap.Options{Snapshot: -1, Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := differsCensus(c, g); err != nil {
				t.Fatal(err)
			}
		}
		g.Close()
		if held := heap.Held(g); held != 0 {
			t.Fatalf("%d bytes are held after Close", held)
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20+2000*uint64(len(dump)) {
		t.Fatalf("%d bytes were allocated for a dump of %d bytes", used, len(dump))
	}
}

// weighAll computes the costs of several sets of objects. Each cost must be at
// least the size of the union of the subtrees that the objects dominate, and at
// most the size of everything reachable. The costs computed for groups must not
// be higher than the costs of the sets.
func weighAll(t *testing.T, g *heap.Graph) {
	t.Helper()
	ctx := context.Background()
	sets := make([][]heap.Object, 3)
	for o := range heap.Object(g.Objects) {
		sets[o%3] = append(sets[o%3], o)
	}
	least, err := g.Costs(ctx, sets, &heap.VisitBudget{})
	if err != nil {
		t.Fatal(err)
	}
	costs, err := g.Costs(ctx, sets, &heap.VisitBudget{Left: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := g.GroupCosts(ctx, heap.Groups{Count: 3, Of: func(o heap.Object) uint32 { return uint32(o)%3 + 1 }})
	if err != nil {
		t.Fatal(err)
	}
	all := g.ReachableBytes().Total()
	for i := range sets {
		if c := costs[i].Size.Total(); c < least[i].Size.Total() || c > all || groups.Bytes[i+1] > all {
			t.Fatalf("set %d: cost %d, lower bound %d, cost as a group %d, reachable %d bytes", i, c,
				least[i].Size.Total(),
				groups.Bytes[i+1], all)
		}
	}
	if _, err := g.Shares(ctx, sets, &heap.VisitBudget{Left: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	g.WaitingForFinalizer()
	g.LoadedByMany(2)
}

// readAll reads all objects again and calls every accessor.
func readAll(t *testing.T, g *heap.Graph) {
	t.Helper()
	all := make([]heap.Object, g.Objects)
	for o := range all {
		all[o] = heap.Object(o)
	}
	met := make([]bool, g.Objects)
	err := g.Read(context.Background(), all, func(r *heap.Record) error {
		met[r.Object] = true
		r.References(func(heap.Object) {})
		for _, field := range []string{"referent", "size", "f0", "f1"} {
			r.Ref(field)
			r.Int(field)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for o, there := range met {
		if !there && !g.IsClass(heap.Object(o)) {
			t.Fatalf("object %d was not read", o)
		}
	}
}

// harm simulates the damage that storage, transports and editors may do to a
// dump. Every 4 bytes of edits encode a position, an operation and a value.
func harm(dump, edits []byte) []byte {
	const header = len(hprof.Format103) + 1 + 12
	dump = slices.Clone(dump)
	for ; len(edits) >= 4 && len(dump) > header+16; edits = edits[4:] {
		at := header + int(binary.BigEndian.Uint16(edits))%(len(dump)-header-8)
		value := edits[3]
		n := min(1+int(value)%40, len(dump)-at)
		switch edits[2] % 7 {
		case 0, 1:
			dump[at] ^= 1 << (value % 8)
		case 2:
			dump[at] = value
		case 3:
			binary.BigEndian.PutUint32(dump[at:], []uint32{0, 1, 0x7fffffff, 0xffffffff, 0x80000000}[value%5])
		case 4:
			dump = slices.Delete(dump, at, at+n)
		case 5:
			dump = slices.Insert(dump, at, slices.Clone(dump[at:at+n])...)
		case 6:
			clear(dump[at : at+n])
		}
	}
	return dump
}

// victim returns a dump to damage.
func victim(tb testing.TB, seed uint64) []byte {
	d, w := randomWorld(seed, 30)
	if seed%3 == 0 {
		d.double()
	}
	return w.write(tb, d.form()).dump
}

// TestDamage damages dumps at random.
func TestDamage(t *testing.T) {
	dumps := uint64(2000)
	if racing {
		dumps /= 10
	}
	for seed := range dumps {
		dice := rand.New(rand.NewPCG(seed, 9))
		edits := binary.BigEndian.AppendUint64(nil, dice.Uint64())
		survives(t, harm(victim(t, seed%50), edits[:4+seed%2*4]))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzLoad damages dumps that are generated from a seed. The edits are short,
// so the fuzzer can minimize an input within its time limit.
func FuzzLoad(f *testing.F) {
	for seed := range uint16(12) {
		f.Add(seed, []byte{byte(seed), byte(37 * seed), byte(seed), byte(101 * seed)})
	}
	// A class and an object without references have the same ID.
	f.Add(uint16(199), []byte("\x00\xd700"))
	// An array and an instance have the same class.
	f.Add(uint16(74), []byte("\xff\x7f10"))
	f.Fuzz(func(t *testing.T, seed uint16, edits []byte) {
		survives(t, harm(victim(t, uint64(seed)), edits[:min(len(edits), 64)]))
	})
}
