package growth

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// loaded is a heap that was written into a dump and read back.
type loaded struct {
	graph  *heap.Graph
	reader *trace.Reader
}

func load(t testing.TB, h *hproftest.Heap, rules trace.Rules) loaded {
	t.Helper()
	dump, _, err := h.Dump(hproftest.Form{Runtime: hproftest.HotSpot})
	if err != nil {
		t.Fatal(err)
	}
	f, err := openDump(t, dump)
	if err != nil {
		t.Fatal(err)
	}
	g, err := heap.Load(t.Context(), f, heap.Options{Snapshot: -1, Inbound: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	b, err := g.Outbound(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return loaded{g, trace.NewReader(g, b, rules)}
}

func openDump(t testing.TB, dump []byte) (*hprof.File, error) {
	return hprof.Open(t.Context(), bytes.NewReader(dump), int64(len(dump)))
}

// add merges a dump and adds it to a series.
func (l loaded) add(t testing.TB, s *Series) *Tree {
	t.Helper()
	tree, err := s.Merge(t.Context(), l.graph, l.reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// grown returns the places of a series of heaps. The given function creates
// each heap; its argument is the index of the dump, from 0.
func grown(t testing.TB, loops, dumps int, build func(h *hproftest.Heap, dump int)) []Place {
	t.Helper()
	s := NewSeries(loops)
	for d := range dumps {
		h := hproftest.Java(1)
		build(h, d)
		load(t, h, trace.Rules{}).add(t, s)
	}
	return placesOf(s)
}

// placesOf returns all places of a series.
func placesOf(s *Series) []Place {
	list, found := s.Places(1 << 30)
	if len(list) != found {
		panic(fmt.Sprint("found ", found, " places, but listed ", len(list)))
	}
	return list
}

// formatPlaces formats places as lines: the path, the children with their
// counts, and what grows below the children.
func formatPlaces(places []Place) string {
	var b strings.Builder
	for _, p := range places {
		for i, s := range p.Path {
			if i > 0 {
				b.WriteString(" > ")
			}
			b.WriteString(word(s))
		}
		b.WriteByte('\n')
		tellChildren(&b, p.Children, "  ")
	}
	return b.String()
}

func tellChildren(b *strings.Builder, list []Child, indent string) {
	for _, c := range list {
		fmt.Fprintf(b, "%s%s %v\n", indent, word(c.PathEdge), c.Objects)
		tellChildren(b, c.Children, indent+"  ")
	}
}

func word(s PathEdge) string {
	if s.Linked {
		return s.Name + "* " + s.Class
	}
	return s.Name + " " + s.Class
}

// randomHeap returns a heap of random links, with a list, arrays, runs and
// low-priority references. Each dump adds objects to the heap.
func randomHeap(seed uint64, dumps int) *hproftest.Heap {
	rnd := rand.New(rand.NewPCG(seed, 1))
	h := hproftest.Java(seed)
	var classes []*hproftest.Class
	for i := range 4 {
		classes = append(classes,
			h.Declare(fmt.Sprintf("a.C%d", i), nil, "object f", "object g", "object low",
				fmt.Sprintf("static object s%d", i)))
	}
	var all []hproftest.Ref
	for _, c := range classes {
		all = append(all, c.Ref())
	}
	pick := func() hproftest.Ref {
		if rnd.IntN(4) == 0 {
			return 0
		}
		return all[rnd.IntN(len(all))]
	}
	list := h.ArrayList()
	h.Hold("a.Holder", "list", list.Ref)
	var instances []hproftest.Ref
	step := func(n int) {
		for i := range n {
			switch rnd.IntN(7) {
			case 0:
				all = append(all, h.Objects(h.Class("java.lang.Object"), pick(), pick(), pick(), pick()))
			case 1:
				all = append(all, h.String("x"))
			case 2:
				all = append(all, h.Bytes(make([]byte, i)))
			default:
				o := h.New(classes[rnd.IntN(len(classes))], hproftest.Fields{"f": pick(), "g": pick(), "low": pick()})
				all, instances = append(all, o), append(instances, o)
			}
		}
		// Some old objects reference new ones.
		for range n {
			switch rnd.IntN(4) {
			case 0:
				list.Add(pick())
			case 1:
				i := rnd.IntN(len(classes))
				h.SetStatic(classes[i], fmt.Sprintf("s%d", i), pick())
			default:
				h.Set(instances[rnd.IntN(len(instances))], []string{"f", "g", "low"}[rnd.IntN(3)], pick())
			}
		}
	}
	step(20 + rnd.IntN(60))
	for range dumps {
		step(3 + rnd.IntN(12))
	}
	return h
}
