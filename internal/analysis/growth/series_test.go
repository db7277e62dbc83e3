package growth

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// classOf is the path to the static fields of a class of an app. As in HotSpot,
// it leads through the list of the class loader.
const classOf = "THREAD_OBJECT java.lang.Thread > contextClassLoader dalvik.system.PathClassLoader > classes " +
	"java.util.ArrayList > [x] class "

// objects creates the given number of objects of a class with one field.
func objects(h *hproftest.Heap, class string, n int, held func(int) hproftest.Ref) (list []hproftest.Ref) {
	c := h.Declare(class, nil, "object held")
	for i := range n {
		held0 := hproftest.Ref(0)
		if held != nil {
			held0 = held(i)
		}
		list = append(list, h.New(c, hproftest.Fields{"held": held0}))
	}
	return list
}

// These heaps have known results.
func TestPlaces(t *testing.T) {
	times := func(per int) func(int) int { return func(dump int) int { return 3 + per*dump } }
	buffer := func(h *hproftest.Heap) func(int) hproftest.Ref {
		return func(int) hproftest.Ref { return h.Bytes(make([]byte, 100)) }
	}
	tests := map[string]struct {
		loops, dumps int
		build        func(h *hproftest.Heap, dump int)
		want         string
	}{
		"list": {1, 3, func(h *hproftest.Heap, d int) {
			h.Hold("a.Cache", "all", h.ArrayList(objects(h, "a.Item", times(2)(d), buffer(h))...).Ref)
		}, classOf + "a.Cache > all java.util.ArrayList\n  [x] a.Item [3 5 7]\n    held byte[] [3 5 7]\n"},
		"map": {1, 3, func(h *hproftest.Heap, d int) {
			var pairs []hproftest.Ref
			for i, o := range objects(h, "a.Item", times(1)(d), nil) {
				pairs = append(pairs, h.String(fmt.Sprint("key", i)), o)
			}
			h.Hold("a.Cache", "all", h.HashMap(pairs...))
		}, classOf + "a.Cache > all java.util.HashMap\n  [x] java.lang.String [3 4 5]\n  [x] a.Item [3 4 5]\n"},
		"set": {1, 3, func(h *hproftest.Heap, d int) {
			h.Hold("a.Cache", "all", h.HashSet(objects(h, "a.Item", times(1)(d), nil)...))
		}, classOf + "a.Cache > all java.util.HashSet\n  [x] a.Item [3 4 5]\n"},
		// The list already holds the elements of the map, so the growing nodes
		// are the internals of the map.
		"same elements in a list and a map": {1, 3, func(h *hproftest.Heap, d int) {
			list := objects(h, "a.Item", times(1)(d), nil)
			first := h.ArrayList(list...).Ref
			c := h.Declare("a.Two", nil, "static object first", "static object second")
			h.SetStatic(c, "first", first)
			h.SetStatic(c, "second", h.HashMap(doubled(list)...))
		},
			classOf +
				"a.Two > second java.util.HashMap > table java.util.HashMap$Node[]\n  [x]* java.util.HashMap$Node [3 " +
				"4 5]\n" +
				classOf + "a.Two > first java.util.ArrayList\n  [x] a.Item [3 4 5]\n"},
		"linked list": {1, 3, func(h *hproftest.Heap, d int) {
			c := h.Declare("a.Node", nil, "object next", "object value")
			head := hproftest.Ref(0)
			for range times(10)(d) {
				head = h.New(c, hproftest.Fields{"next": head, "value": h.Integer(1)})
			}
			h.Hold("a.Log", "head", head)
		}, classOf + "a.Log\n  head* a.Node [3 13 23]\n    value java.lang.Integer [3 13 23]\n"},
		// The jobs of coroutines are in such a ring: if its ends were separate
		// nodes, each would lead to half of the jobs.
		"ring linked in both directions": {10, 3, func(h *hproftest.Heap, d int) {
			c := h.Declare("a.Node", nil, "object next", "object prev", "object value")
			ring := h.New(h.Declare("a.Ring", nil, "object next", "object prev"), nil)
			nodes := []hproftest.Ref{ring}
			for range times(10)(d) {
				nodes = append(nodes, h.New(c, hproftest.Fields{"value": h.Integer(1)}))
			}
			for i, n := range nodes {
				next := nodes[(i+1)%len(nodes)]
				h.Set(n, "next", next)
				h.Set(next, "prev", n)
			}
			h.Hold("a.Log", "ring", ring)
		}, classOf + "a.Log > ring a.Ring\n  next* a.Node [3 13 23]\n    value java.lang.Integer [3 13 23]\n"},
		// Two lists with one holder stay separate.
		"two linked lists": {10, 3, func(h *hproftest.Heap, d int) {
			c := h.Declare("a.Node", nil, "object next")
			heads := make([]hproftest.Ref, 2)
			for i := range heads {
				for range times(10 * i)(d) {
					heads[i] = h.New(c, hproftest.Fields{"next": heads[i]})
				}
			}
			h.Hold("a.Log", "lists",
				h.New(h.Declare("a.Two", nil, "object first", "object second"),
					hproftest.Fields{"first": heads[0], "second": heads[1]}))
		}, classOf + "a.Log > lists a.Two\n  second* a.Node [3 13 23]\n"},
		// The tree leans to one side in one dump, and to the other side in the
		// next.
		"rotating tree": {4, 3, func(h *hproftest.Heap, d int) {
			c := h.Declare("a.Branch", nil, "object left", "object right")
			side := []string{"left", "right"}[d%2]
			top := hproftest.Ref(0)
			for range times(4)(d) {
				top = h.New(c, hproftest.Fields{side: top})
			}
			h.Hold("a.Tree", "top", top)
		}, classOf + "a.Tree\n  top* a.Branch [3 7 11]\n"},
		"lists of lists": {1, 3, func(h *hproftest.Heap, d int) {
			outer := h.ArrayList()
			for range times(1)(d) {
				outer.Add(h.ArrayList().Ref)
			}
			h.Hold("a.Cache", "all", outer.Ref)
		}, classOf + "a.Cache\n  all* java.util.ArrayList [4 5 6]\n    elementData java.lang.Object[] [4 5 6]\n"},
		"threads": {1, 3, func(h *hproftest.Heap, d int) {
			for i, o := range objects(h, "a.Task", times(1)(d), nil) {
				w := h.Thread(fmt.Sprint("worker", i))
				h.Set(w.Ref, "target", o)
			}
		},
			"\n  THREAD_OBJECT java.lang.Thread [4 5 6]\n    name java.lang.String [4 5 6]\n    target a.Task " +
				"[3 4 5]\n"},
		"GC roots and a growing list": {1, 3, func(h *hproftest.Heap, d int) {
			for _, o := range objects(h, "a.Peer", times(1)(d), nil) {
				h.Root(hprof.SubRootJNIGlobal, o)
			}
			h.Hold("a.Cache", "all", h.ArrayList(objects(h, "a.Item", times(2)(d), nil)...).Ref)
		}, classOf + "a.Cache > all java.util.ArrayList\n  [x] a.Item [3 5 7]\n" + "\n  JNI_GLOBAL a.Peer [3 4 5]\n"},
		"list created after the first dump": {1, 3, func(h *hproftest.Heap, d int) {
			c := h.Declare("a.Cache", nil, "static object all")
			if d > 0 {
				h.SetStatic(c, "all", h.ArrayList(objects(h, "a.Item", 2*d, nil)...).Ref)
			}
		}, classOf + "a.Cache > all java.util.ArrayList\n  [x] a.Item [0 2 4]\n"},
		"list created after the first of two dumps": {1, 2, func(h *hproftest.Heap, d int) {
			c, items := h.Declare("a.Cache", nil, "static object all"), objects(h, "a.Item", 2*d, nil)
			if d > 0 {
				h.SetStatic(c, "all", h.ArrayList(items...).Ref)
			}
		}, classOf + "a.Cache\n  all java.util.ArrayList [0 1]\n    [x] a.Item [0 2]\n"},
		// The list of classes grows, and is on the path to the growing list in
		// one of the classes.
		"one more class per dump": {1, 3, func(h *hproftest.Heap, d int) {
			h.Hold("a.Cache", "all", h.ArrayList(objects(h, "a.Item", times(2)(d), nil)...).Ref)
			for i := range d {
				h.Declare(fmt.Sprint("a.Late", i), nil)
			}
			for range d {
				h.Declare("a.Again", nil)
			}
		}, classOf + "a.Cache > all java.util.ArrayList\n  [x] a.Item [3 5 7]\n" +
			strings.TrimSuffix(classOf, " > [x] class ") + "\n  [x] class a.Again [0 1 2]\n"},
		"full cache": {1, 4, func(h *hproftest.Heap, d int) {
			h.Hold("a.Cache", "all", h.ArrayList(objects(h, "a.Item", min(times(5)(d), 13), nil)...).Ref)
		}, ""},
		"shrinking list": {1, 3, func(h *hproftest.Heap, d int) {
			h.Hold("a.Cache", "all", h.ArrayList(objects(h, "a.Item", 9-d, nil)...).Ref)
		}, ""},
		"less than one object per loop": {5, 3, func(h *hproftest.Heap, d int) {
			h.Hold("a.Cache", "all", h.ArrayList(objects(h, "a.Item", times(4)(d), nil)...).Ref)
		}, ""},
		"one object per loop": {5, 3, func(h *hproftest.Heap, d int) {
			h.Hold("a.Cache", "all", h.ArrayList(objects(h, "a.Item", times(5)(d), nil)...).Ref)
		}, classOf + "a.Cache > all java.util.ArrayList\n  [x] a.Item [3 8 13]\n"},
		"weak references": {1, 3, func(h *hproftest.Heap, d int) {
			var list []hproftest.Ref
			for _, o := range objects(h, "a.Item", times(1)(d), nil) {
				list = append(list, h.Weak(o))
			}
			h.Hold("a.Cache", "all", h.ArrayList(list...).Ref)
		}, classOf + "a.Cache > all java.util.ArrayList\n  [x] java.lang.ref.WeakReference [3 4 5]\n"},
		"replaced values": {1, 3, func(h *hproftest.Heap, d int) {
			for range d {
				h.ArrayList(objects(h, fmt.Sprint("a.Old", d), 50, nil)...)
			}
			h.Hold("a.Cache", "all", h.ArrayList(objects(h, "a.Item", 9, nil)...).Ref)
		}, ""},
		"one dump": {1, 1, func(h *hproftest.Heap, d int) {}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := NewSeries(test.loops)
			rules := trace.Rules{
				Matchers: []trace.Matcher{
					{Pattern: trace.Pattern{Class: "java.lang.ref.WeakReference", Name: "referent"}, Ignored: true},
				},
			}
			for d := range test.dumps {
				h := hproftest.Java(1)
				test.build(h, d)
				load(t, h, rules).add(t, s)
			}
			if got := formatPlaces(placesOf(s)); got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func doubled(list []hproftest.Ref) (pairs []hproftest.Ref) {
	for _, o := range list {
		pairs = append(pairs, o, o)
	}
	return pairs
}

// The expected bytes of this series are calculated by hand. Each item has a
// reference of 4 bytes to an array; the first two items share the large array,
// so neither of them retains it alone.
func TestBytes(t *testing.T) {
	const own, array, shared = 8, 100, 5000
	places := grown(t, 2, 3, func(h *hproftest.Heap, d int) {
		common := h.Bytes(make([]byte, shared*(d+1)))
		items := objects(h, "a.Item", 4+3*d, func(i int) hproftest.Ref {
			if i < 2 {
				return common
			}
			return h.Bytes(make([]byte, array))
		})
		// No element is null: the length of the array is the number of items.
		h.Hold("a.Cache", "all", h.Objects(h.Class("a.Item"), items...))
	})
	if len(places) != 1 || len(places[0].Children) != 1 {
		t.Fatalf("%+v", places)
	}
	p, c := places[0], places[0].Children[0]
	var of, all []int64
	for d := range int64(3) {
		items := 4 + 3*d
		of = append(of, own*items+array*(items-2)+shared*(d+1))
		all = append(all, own*items+array*(items-2)+8*items+shared*(d+1))
	}
	if !slices.Equal(c.RetainedBytes, of) || c.RetainedDelta != of[2]-of[0] || c.Delta != 6 {
		t.Errorf("%+v, want %v", c, of)
	}
	if !slices.Equal(p.RetainedBytes, all) || p.GrowthBytes != all[2]-all[0] || p.CreditedBytes != all[2] ||
		p.Delta != 6 || p.PerLoop != 1.5 {
		t.Errorf("%+v, want %v", p, all)
	}
}

// If one place is below another, both retain the bytes of the lower place, but
// only the lower place is credited with them.
func TestCredited(t *testing.T) {
	places := grown(t, 1, 3, func(h *hproftest.Heap, d int) {
		inner := h.ArrayList(objects(h, "a.Inner", 5+d, nil)...)
		box := h.New(h.Declare("a.Box", nil, "object list"), hproftest.Fields{"list": inner.Ref})
		outer := h.ArrayList(append(objects(h, "a.Outer", 7+d, nil), box)...)
		h.Hold("a.Cache", "all", outer.Ref)
	})
	if got, want := formatPlaces(places), classOf+"a.Cache > all java.util.ArrayList\n  [x] a.Outer [7 8 9]\n"+
		classOf+
		"a.Cache > all java.util.ArrayList > [x] a.Box > list java.util.ArrayList\n  [x] a.Inner [5 6 7]\n"+
		""; got != want {
		t.Fatalf("%s\nwant\n%s", got, want)
	}
	outer, inner := places[0], places[1]
	if inner.CreditedBytes != inner.RetainedBytes[2] ||
		outer.CreditedBytes != outer.RetainedBytes[2]-inner.RetainedBytes[2] || inner.CreditedBytes <= 0 {
		t.Errorf("%+v\n%+v", outer, inner)
	}
}

// Very deep structures, such as long lists, result in few nodes, and all of
// their objects are counted.
func TestDeepStructures(t *testing.T) {
	const n = 20_000
	h := hproftest.Java(1)
	odd, even := h.Declare("a.Odd", nil, "object next"), h.Declare("a.Even", nil, "object next")
	alternating, same := hproftest.Ref(0), hproftest.Ref(0)
	node := h.Declare("a.Node", nil, "object next")
	for range n / 2 {
		alternating = h.New(odd, hproftest.Fields{"next": h.New(even, hproftest.Fields{"next": alternating})})
		same = h.New(node, hproftest.Fields{"next": h.New(node, hproftest.Fields{"next": same})})
	}
	h.Hold("a.Holder", "alternating", alternating)
	h.Hold("a.Holder2", "same", same)
	s := NewSeries(1)
	tree := load(t, h, trace.Rules{}).add(t, s)
	if tree.Nodes() > 3*deepest || tree.Objects() < 2*n || tree.Full() {
		t.Errorf("%d nodes, %d objects, full %v", tree.Nodes(), tree.Objects(), tree.Full())
	}
	counts := map[string]int64{}
	for i, c := range tree.walk.counts {
		counts[s.names.classNames[tree.walk.classes[i]]] += int64(c)
	}
	if counts["a.Odd"] != n/2 || counts["a.Even"] != n/2 || counts["a.Node"] != n {
		t.Errorf("got counts %v, want %d odd and %d even nodes", counts, n/2, n/2)
	}
}

// If the node limit is exceeded, an object is counted with the objects that
// lead to it; no object is missing.
func TestTooManyPaths(t *testing.T) {
	free, bound := NewSeries(1), NewSeries(1)
	bound.most = 40
	l := load(t, randomHeap(3, 2), lowRules())
	all, few := l.add(t, free), l.add(t, bound)
	if few.Nodes() > bound.most || few.Objects() != all.Objects() || !few.Full() || all.Full() ||
		all.Nodes() <= bound.most {
		t.Errorf("with a limit: %d nodes, %d objects; without: %d nodes, %d objects", few.Nodes(), few.Objects(),
			all.Nodes(), all.Objects())
	}
}

// All objects share a few tables: ten thousand additional objects cause no
// allocation per object.
func TestFewAllocations(t *testing.T) {
	allocations := func(n int) uint64 {
		h := hproftest.Java(1)
		h.Hold("a.Cache", "all",
			h.ArrayList(objects(h, "a.Item", n, func(i int) hproftest.Ref { return h.Integer(i) })...).Ref)
		l := load(t, h, trace.Rules{})
		s := NewSeries(1)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l.add(t, s)
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	if few, many := allocations(5000), allocations(15_000); many > few+500 {
		t.Errorf("got %d allocations for 5000 objects and %d for 15000, want at most 500 more", few, many)
	}
}

// A series that is interrupted returns the context's error, and leaves the
// graph unchanged.
func TestInterrupted(t *testing.T) {
	l := load(t, randomHeap(1, 1), trace.Rules{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := NewSeries(1)
	tree, err := s.Merge(ctx, l.graph, l.reader)
	if err == nil {
		err = s.Add(ctx, tree)
		tree.Close()
	}
	if !errors.Is(err, context.Canceled) || s.dumps != 0 {
		t.Errorf("%v after %d dumps", err, s.dumps)
	}
	l.add(t, s)
}

// A damaged dump may or may not have places, but the sums must be consistent.
func TestDamagedDumps(t *testing.T) {
	for seed := range uint64(20) {
		s := NewSeries(1)
		for d := range 3 {
			dump, _, err := randomHeap(seed, d).Dump(hproftest.Form{Runtime: hproftest.HotSpot})
			if err != nil {
				t.Fatal(err)
			}
			g, b := damaged(t, hproftest.Flip(dump, seed, 40))
			if g == nil {
				continue
			}
			tree := loaded{g, trace.NewReader(g, b, lowRules())}.add(t, s)
			if tree.Objects() > g.Objects {
				t.Errorf("seed %d: got %d objects, but the dump has %d", seed, tree.Objects(), g.Objects)
			}
		}
		credited, deltas := int64(0), int64(0)
		for _, p := range placesOf(s) {
			credited += p.CreditedBytes
			for _, c := range p.Children {
				if len(c.Objects) != s.dumps || c.Delta < int64(s.dumps-1) || !slices.IsSorted(c.Objects) {
					t.Errorf("seed %d: %+v", seed, c)
				}
				deltas += c.Delta
			}
			if strings.Contains(formatPlaces([]Place{p}), "[x] [x]") {
				t.Errorf("seed %d: %s", seed, formatPlaces([]Place{p}))
			}
		}
		if credited < 0 || deltas < 0 {
			t.Errorf("seed %d: %d bytes, %d objects", seed, credited, deltas)
		}
	}
}

func damaged(t *testing.T, dump []byte) (*heap.Graph, *heap.Outbound) {
	t.Helper()
	f, err := openDump(t, dump)
	if err != nil {
		return nil, nil
	}
	g, err := heap.Load(t.Context(), f, heap.Options{Snapshot: -1, Partial: true, Inbound: true})
	if err != nil {
		return nil, nil
	}
	t.Cleanup(g.Close)
	b, err := g.Outbound(t.Context())
	if err != nil {
		return nil, nil
	}
	t.Cleanup(b.Close)
	return g, b
}

// A reference is ignored only for builds in which it exists.
func TestIgnored(t *testing.T) {
	has := func(b trace.Build, field string) bool {
		return slices.ContainsFunc(Ignored(b), func(m trace.Matcher) bool { return m.Name == field && m.Ignored })
	}
	if has(trace.Build{SDK: 33}, "sProxyMap") || !has(trace.Build{SDK: 34}, "sProxyMap") ||
		has(trace.Build{}, "sProxyMap") || !has(trace.Build{}, "parallelLockMap") {
		t.Errorf("%+v", Ignored(trace.Build{}))
	}
	for _, m := range ignored {
		if m.Class == "" || m.Name == "" || m.Description == "" || m.Source == "" {
			t.Errorf("%+v", m)
		}
	}
}
