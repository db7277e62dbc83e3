package hproftest

// harmonyCollections declares the collections of Apache Harmony, which Android
// used before Android 7 (libcore, luni/src/main/java/java/util at
// android-6.0.1).
func (h *Heap) harmonyCollections(abstractList, abstractMap *Class) {
	h.Declare("java.util.ArrayList", abstractList, "int size", "object array", "static int MIN_CAPACITY_INCREMENT")
	h.Declare("java.util.LinkedList", abstractList, "int size", "object voidLink")
	h.Declare("java.util.LinkedList$Link", nil, "object data", "object previous", "object next")
	hashMap := h.Declare("java.util.HashMap", abstractMap, "object table", "object entryForNullKey", "object entrySet",
		"int size", "int modCount", "int threshold", "static object EMPTY_TABLE")
	entry := h.Declare("java.util.HashMap$HashMapEntry", nil, "object key", "object value", "int hash", "object next")
	h.Declare("java.util.LinkedHashMap", hashMap, "object header", "boolean accessOrder")
	h.Declare("java.util.LinkedHashMap$LinkedEntry", entry, "object nxt", "object prv")
	h.Declare("java.util.HashSet", nil, "object backingMap")
}

// harmonyLinkedList creates a ring that includes a link without an element.
func (h *Heap) harmonyLinkedList(elements []Ref) Ref {
	link := h.Class("java.util.LinkedList$Link")
	void := h.New(link, nil)
	last := void
	for _, e := range elements {
		l := h.New(link, Fields{"data": e, "previous": last})
		h.Set(last, "next", l)
		last = l
	}
	h.Set(last, "next", void)
	h.Set(void, "previous", last)
	return h.New(h.Class("java.util.LinkedList"), Fields{"size": len(elements), "voidLink": void})
}

// harmonyHashMap creates a table of chains, with a separate entry for the key
// null.
func (h *Heap) harmonyHashMap(class, node string, pairs []Ref) Ref {
	var named []Ref
	nothing := Ref(0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] != 0 {
			named = append(named, pairs[i], pairs[i+1])
			continue
		}
		nothing = h.New(h.Class(node), Fields{"value": pairs[i+1]})
	}
	m := h.hashMap(class, node, "value", Fields{"size": len(pairs) / 2}, named)
	h.Set(m, "entryForNullKey", nothing)
	return m
}

// harmonyLinkedHashMap is like harmonyHashMap, and also links the entries in a
// ring.
func (h *Heap) harmonyLinkedHashMap(pairs []Ref) Ref {
	const node = "java.util.LinkedHashMap$LinkedEntry"
	m := h.harmonyHashMap("java.util.LinkedHashMap", node, pairs)
	header := h.New(h.Class(node), nil)
	last := header
	for i := 0; i+1 < len(pairs); i += 2 {
		e := h.get(m, "entryForNullKey")
		if pairs[i] != 0 {
			e = h.entryOf(m, pairs[i])
		}
		h.Set(e, "prv", last)
		h.Set(last, "nxt", e)
		last = e
	}
	h.Set(last, "nxt", header)
	h.Set(header, "prv", last)
	h.Set(m, "header", header)
	return m
}
