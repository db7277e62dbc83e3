package android

import "github.com/leakgate/leakgate/internal/analysis/heap"

// UnusedSlots counts unused slots in the arrays of ArrayLists and HashMaps that
// are at most a quarter full. Every app has many unused slots by design; it is
// unusual if they take up a large part of the heap.
type UnusedSlots struct {
	// Collections is the number of collections that were read: reachable ones
	// with an array of their own.
	Collections int64 `json:"collections"`
	// Empty is the number of collections without elements, and Sparse is the
	// number of other collections that are at most a quarter full. EmptyBytes
	// and SparseBytes are the sizes of the unused slots.
	Empty       int64 `json:"empty"`
	EmptyBytes  int64 `json:"empty_bytes"`
	Sparse      int64 `json:"sparse"`
	SparseBytes int64 `json:"sparse_bytes"`
	// Partial reports whether some objects were not read because the dump
	// contains too many strings, ArrayLists or HashMaps.
	Partial bool `json:"partial,omitempty"`
}

// sparse determines which collections are sparse: those that use at most
// 1/sparse of their slots. Right after a HashMap has grown, it uses three
// eighths of its slots.
const sparse = 4

// unusedTopic reads UnusedSlots.
type unusedTopic struct {
	UnusedSlots

	kinds   []slotKind
	strings heap.Family
	// met holds the arrays that have already been counted, because libraries
	// share one array among all empty collections.
	met map[heap.Object]bool
}

// slotKind is a collection class and its fields, with every name they have had.
type slotKind struct {
	heap.Family

	size   *heap.Field
	arrays []*heap.Field
}

func (t *unusedTopic) families() []*heap.Family {
	t.kinds = []slotKind{
		{Family: heap.Family{Class: listClass, Limit: mostStrings}},
		{Family: heap.Family{Class: "java.util.HashMap", Limit: mostStrings}},
	}
	t.strings.Class = "java.lang.String"
	return []*heap.Family{&t.kinds[0].Family, &t.kinds[1].Family, &t.strings}
}

func (t *unusedTopic) begin(p *plan) {
	t.met = map[heap.Object]bool{}
	most := int64(mostStrings)
	if runtime(p.graph) == RuntimeJVM {
		most = mostJVMStrings
	}
	for n := range t.kinds {
		k := &t.kinds[n]
		// If the strings are not compared, no other topic rereads most of the
		// file, and this topic must not do so either.
		if max(k.Count, t.strings.Count) > most {
			t.Partial = true
			continue
		}
		k.size = p.graph.Field(k.Class, "size")
		for _, name := range []string{"elementData", "array", "table"} {
			if f := p.graph.Field(k.Class, name); f.Declared() {
				k.arrays = append(k.arrays, f)
			}
		}
		for _, o := range k.Objects {
			if p.reachable(o) {
				p.ask(o, uint8(n), 0)
			}
		}
	}
}

func (t *unusedTopic) visit(p *plan, r *heap.Record, tag uint8, _ uint32) {
	k := &t.kinds[tag]
	used, ok := r.IntOf(k.size)
	if !ok || used < 0 {
		return
	}
	for _, f := range k.arrays {
		array, ok := r.RefOf(f)
		if !ok || t.met[array] {
			continue
		}
		t.met[array] = true
		t.count(p.graph.Shallow(array).Java/int64(p.graph.IDSize), used, int64(p.graph.IDSize))
	}
}

// count adds a collection whose array has the given numbers of slots and used
// slots; size is the size of a slot in bytes.
func (t *unusedTopic) count(slots, used, size int64) {
	if slots == 0 {
		return
	}
	t.Collections++
	unused := max(slots-used, 0) * size
	switch {
	case used == 0:
		t.Empty++
		t.EmptyBytes += unused
	case used*sparse <= slots:
		t.Sparse++
		t.SparseBytes += unused
	}
}

func (t *unusedTopic) advance(*plan) {}
func (t *unusedTopic) finish(*plan)  { t.met, t.kinds = nil, nil }
