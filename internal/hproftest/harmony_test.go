package hproftest

import (
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// TestHarmony reads the collections of Android 6 as their own code does.
func TestHarmony(t *testing.T) {
	h := Android(Phone{SDK: 23, Harmony: true})
	var elements, pairs []Ref
	for i := range 30 {
		elements = append(elements, h.Integer(i))
		pairs = append(pairs, h.String(string(rune('a'+i))), elements[i])
	}
	list, linked := h.ArrayList(elements...), h.LinkedList(elements...)
	set, byNull := h.HashSet(elements...), h.LinkedHashMap(append(pairs, 0, elements[0])...)
	l := lookAt(t, h)
	array := l.Nodes[l.Path(l.Of(list.Ref), "array")].Elements
	void := l.Path(l.Of(linked), "voidLink")
	link, last := l.Path(void, "next"), void
	for i, e := range elements {
		if array[i] != l.Of(e) || l.Path(link, "data") != l.Of(e) || l.Path(link, "previous") != last {
			t.Fatalf("element %d", i)
		}
		last, link = link, l.Path(link, "next")
	}
	if link != void || l.Path(void, "previous") != last || l.Path(void, "data") != 0 {
		t.Error("the linked list is not circular")
	}
	if keys := l.keys(l.Path(l.Of(set), "backingMap")); len(keys) != len(elements) {
		t.Errorf("set has %d elements", len(keys))
	}
	if keys := l.keys(l.Of(byNull)); len(keys) != len(pairs)/2 ||
		l.Path(l.Of(byNull), "entryForNullKey.value") != l.Of(elements[0]) {
		t.Errorf("map has %d non-null keys or a wrong value for null, want %d keys", len(keys), len(pairs)/2)
	}
	header := l.Path(l.Of(byNull), "header")
	entry := l.Path(header, "nxt")
	for i := 0; i < len(pairs); i += 2 {
		if l.Path(entry, "key") != l.Of(pairs[i]) || l.Path(entry, "value") != l.Of(pairs[i+1]) {
			t.Fatalf("the map is out of order at %d", i)
		}
		entry = l.Path(entry, "nxt")
	}
	if l.Path(entry, "key") != 0 || l.Path(entry, "nxt") != header || l.Path(header, "prv") != entry {
		t.Error("the list of map entries is not circular")
	}
}

// keys returns the keys in the table of a map, and checks that each key is in
// the bucket that its hash determines.
func (l look) keys(m hprof.ID) map[hprof.ID]bool {
	l.Helper()
	out := map[hprof.ID]bool{}
	table := l.Nodes[l.Path(m, "table")].Elements
	for bucket, e := range table {
		for ; e != 0; e = l.Path(e, "next") {
			hash, _ := l.Field(e, "hash")
			if int(hash)&(len(table)-1) != bucket {
				l.Errorf("key in wrong bucket %d", bucket)
			}
			out[l.Path(e, "key")] = true
		}
	}
	return out
}
