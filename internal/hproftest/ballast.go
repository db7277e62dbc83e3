package hproftest

import (
	"cmp"
	"math/bits"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Ballast is a large number of ordinary objects: strings, lists, hash maps,
// trees, graphs, weak maps and arrays of all sizes, with links between them. A
// few percent of them are garbage. It is generated while it is being written
// and needs only a few kilobytes of memory, whatever its size.
type Ballast struct {
	// Bytes is the size that the ballast adds to a dump. The actual size may
	// differ by the size of one structure.
	Bytes int64
	// The same Seed creates the same ballast; a different Seed creates
	// different ballast of the same kind.
	Seed uint64
	// Package is the package of the ballast's classes; "" means "ballast".
	Package string
	// Clean omits the garbage.
	Clean bool
	// registry is the object that holds the ballast.
	registry Ref
	// kinds holds the classes of the ballast's objects.
	kinds map[string]*Class
}

// Fill adds ballast, which is held by a static field of the class Registry in
// the ballast's package.
func (h *Heap) Fill(b Ballast) {
	b.Package = cmp.Or(b.Package, "ballast")
	registry := h.Declare(b.Package+".Registry", nil, "object first", "static object all")
	chunk := h.Declare(b.Package+".Chunk", nil, "object items", "object next", "int number")
	row := h.Declare(b.Package+".Row", nil, "object name", "object link", "long id", "int flags", "boolean done")
	vertex := h.Declare(b.Package+".Vertex", nil, "object a", "object b", "object c", "int mark")
	b.registry = h.New(registry, nil)
	h.SetStatic(registry, "all", b.registry)
	b.kinds = map[string]*Class{"Chunk": chunk, "Row": row, "Vertex": vertex}
	for _, name := range []string{
		"java.util.ArrayList", "java.util.LinkedList", "java.util.LinkedList$Node", "java.util.HashMap",
		"java.util.HashMap$Node",
		"java.util.TreeMap", "java.util.TreeMap$TreeMapEntry", "java.util.WeakHashMap", "java.util.WeakHashMap$Entry",
		"java.lang.Integer",
		"java.lang.Object[]", "java.util.HashMap$Node[]", "java.util.WeakHashMap$Entry[]"} {
		b.kinds[name] = h.Class(name)
	}
	h.ballast = b
}

// chunkBytes is the size of one chunk of ballast in the dump.
const chunkBytes = 256 << 10

// chunks returns the maximum number of chunks.
func (b *Ballast) chunks() int64 {
	if b.Bytes <= 0 {
		return 0
	}
	return b.Bytes/chunkBytes + 2
}

// room returns the maximum size of the address range. A record takes more bytes
// than its object.
func (b *Ballast) room() int64 {
	if b.Bytes <= 0 {
		return 0
	}
	return b.Bytes + b.Bytes/8 + 64*b.chunks() + 32<<20
}

// kind is a class that has many instances.
type kind struct {
	id     hprof.ID
	layout []slot
	size   hprof.ID
	// names holds the names of the fields of the class and of its superclasses;
	// slots holds the positions of these fields.
	names []string
	slots []int
}

// mass is the state of a ballast that is being written.
type mass struct {
	*dump
	seed, drawn uint64
	// garbage is the percentage of structures that are not referenced.
	garbage uint64
	// at is the next free address.
	at hprof.ID
	// start and chunkAt are the offsets of the ballast and of the current chunk
	// in the dump.
	start, chunkAt int64
	number         uint64

	chunk, row, vertex, list, linked, node, hashMap, entry, tree, leaf, weakMap, weak, integer kind
	objects, entries, weaks, string                                                            *Class

	// items holds some earlier objects, followed by the objects in the current
	// chunk.
	items []hprof.ID
	past  [2048]hprof.ID
	seen  int
	// open is the kind of the instance whose field values are in slots.
	open  *kind
	slots [16]uint64
	ids   []hprof.ID
	bytes []byte
	// numbers generates the elements of an array.
	numbers noise
}

// write returns the step that writes the ballast after the app's other objects.
func (b *Ballast) write(d *dump) step {
	if b.Bytes <= 0 || d.dry {
		return each(0, nil)
	}
	var m *mass
	return func() bool {
		if m == nil {
			m = newMass(b, d)
		}
		return m.part()
	}
}

func newMass(b *Ballast, d *dump) *mass {
	m := &mass{dump: d, seed: mix(b.Seed, 77), at: d.free, garbage: 3, start: d.w.Written(), chunkAt: d.w.Written()}
	if b.Clean {
		m.garbage = 0
	}
	// The order of the steps is fixed, because classes are numbered by first
	// use.
	for _, k := range []struct {
		name string
		*kind
	}{
		{"Chunk", &m.chunk}, {"Row", &m.row}, {"Vertex", &m.vertex}, {"java.util.ArrayList", &m.list},
		{"java.util.LinkedList", &m.linked},
		{"java.util.LinkedList$Node", &m.node}, {"java.util.HashMap", &m.hashMap}, {"java.util.HashMap$Node", &m.entry},
		{"java.util.TreeMap", &m.tree},
		{"java.util.TreeMap$TreeMapEntry", &m.leaf}, {"java.util.WeakHashMap", &m.weakMap},
		{"java.util.WeakHashMap$Entry", &m.weak}, {"java.lang.Integer", &m.integer},
	} {
		*k.kind = m.kindOf(b.kinds[k.name])
	}
	m.objects, m.entries, m.weaks = b.kinds["java.lang.Object[]"], b.kinds["java.util.HashMap$Node[]"],
		b.kinds["java.util.WeakHashMap$Entry[]"]
	m.string = m.byName[stringClass]
	m.at += hprof.ID(b.chunks()) * m.chunk.size
	return m
}

func (m *mass) kindOf(c *Class) kind {
	size := aligned(int64(c.artSize()))
	if m.Runtime == HotSpot {
		size = m.hotSpotSize(&object{shape: ofFields, class: c})
	}
	k := kind{id: m.class(c), layout: m.layout(c), size: hprof.ID(size)}
	for ; c != nil; c = c.super {
		for i, f := range c.fields {
			k.names, k.slots = append(k.names, f.name), append(k.slots, c.first+i)
		}
	}
	return k
}

// part writes a structure or, if the current chunk contains enough structures,
// the object that references them. It returns false after the last chunk.
func (m *mass) part() bool {
	written := m.w.Written()
	last := written-m.start >= m.ballast.Bytes
	if !last && written-m.chunkAt < chunkBytes {
		root := m.structure()
		m.remember(root)
		if m.draw(100) >= m.garbage {
			m.items = append(m.items, root)
		}
		return true
	}
	items := m.take(m.arraySize(4, len(m.items)))
	m.array(items, m.objects, m.items)
	header := m.free + hprof.ID(m.number)*m.chunk.size
	m.begin(&m.chunk)
	m.set("items", items)
	m.put("number", m.number)
	if !last {
		m.set("next", header+m.chunk.size)
	}
	m.end(header)
	m.items, m.number, m.chunkAt = m.items[:0], m.number+1, m.w.Written()
	return !last
}

// draw returns a random number below n.
func (m *mass) draw(n uint64) uint64 {
	m.drawn++
	high, _ := bits.Mul64(mix(m.seed, m.drawn), n)
	return high
}

// spread returns a random number between low and high, most often a small one.
func (m *mass) spread(low, high uint64) int {
	f := m.draw(1 << 20)
	return int(low + (high-low)*(f*f>>20)>>20*f>>20)
}

// take allocates the next address for an object of the given size.
func (m *mass) take(size hprof.ID) hprof.ID {
	at := m.at
	m.at += size
	return at
}

// remember stores an object for later links.
func (m *mass) remember(id hprof.ID) {
	if m.seen < len(m.past) {
		m.past[m.seen] = id
	} else {
		m.past[m.draw(uint64(len(m.past)))] = id
	}
	m.seen++
}

// link returns an earlier object, or sometimes null.
func (m *mass) link() uint64 {
	n := uint64(min(m.seen, len(m.past)))
	if n == 0 || m.draw(4) == 0 {
		return 0
	}
	return uint64(m.past[m.draw(n)])
}

// begin starts an instance whose fields are zero; set and number set fields to
// other values.
func (m *mass) begin(k *kind) {
	clear(m.slots[:])
	m.open = k
	m.put("shadow$_klass_", uint64(k.id))
}

func (m *mass) set(name string, v hprof.ID) { m.put(name, uint64(v)) }

func (m *mass) put(name string, v uint64) {
	for i, n := range m.open.names {
		if n == name {
			m.slots[m.open.slots[i]] = v
			return
		}
	}
	m.fail("ballast has no field %q", name)
}

// end writes the instance.
func (m *mass) end(at hprof.ID) {
	m.buf = m.buf[:0]
	for _, s := range m.open.layout {
		m.buf = m.value(m.buf, s.kind, m.slots[s.at])
	}
	m.next()
	m.w.Instance(at, m.trace(), m.open.id, m.buf)
}

// next prepares the output for one more object of the app's heap. It must be
// called before each object is written.
func (m *mass) next() {
	if m.Runtime == ART {
		m.enter(App)
		m.art.objects++
	}
}

// array writes an array of references.
func (m *mass) array(at hprof.ID, class *Class, ids []hprof.ID) {
	m.next()
	m.w.ObjectArray(at, m.trace(), m.class(class), ids)
}

// arraySize returns the size of an array of n elements.
func (m *mass) arraySize(element, n int) hprof.ID {
	header := 12
	if element == 8 || m.Runtime == HotSpot {
		header = 16
	}
	return hprof.ID(aligned(int64(header) + int64(element)*int64(n)))
}

// textSize returns the size of a String of n characters, including the array of
// its characters.
func (m *mass) textSize(n int) hprof.ID {
	if m.Runtime == HotSpot {
		return 24 + m.arraySize(1, n)
	}
	if m.sdk < 26 {
		n *= 2
	}
	return hprof.ID(aligned(stringHeader + int64(n)))
}

const letters = "abcdefghijklmnopqrstuvwxyz/.:_-0123456789"

// text writes a String of n characters.
func (m *mass) text(at hprof.ID, n int) {
	m.bytes = m.bytes[:0]
	for i := 0; i < n; i += 8 {
		v := mix(m.seed^uint64(at), uint64(i))
		for j := i; j < min(n, i+8); j++ {
			m.bytes = append(m.bytes, letters[v&0xff%uint64(len(letters))])
			v >>= 8
		}
	}
	m.next()
	if m.Runtime == HotSpot {
		m.hotSpotText(at, m.class(m.string), mix(uint64(at), 1)&0xffffffff, 0, at+24, m.bytes)
		return
	}
	m.stringFields(at, m.string, uint32(n), uint32(mix(uint64(at), 1)), at+stringHeader)
	m.buf = m.buf[:0]
	kind := hprof.Byte
	if m.sdk < 26 {
		kind = hprof.Char
	}
	for _, b := range m.bytes {
		m.buf = m.value(m.buf, kind, uint64(b))
	}
	m.w.PrimitiveArray(at+stringHeader, 0, kind, m.buf)
}

// structure writes a structure of a random kind and returns its address.
func (m *mass) structure() hprof.ID {
	switch m.draw(16) {
	case 0, 1, 2:
		return m.strings(m.spread(4, 100))
	case 3, 4, 5:
		return m.hash(m.spread(6, 400))
	case 6, 7:
		return m.chain(m.spread(3, 3000))
	case 8:
		return m.sorted(m.spread(5, 800))
	case 9, 10:
		return m.graph(m.spread(10, 700))
	case 11:
		return m.weakly(m.spread(4, 100))
	case 12, 13:
		return m.data(m.spread(16, 4096))
	case 14:
		return m.data(m.spread(4096, 300_000))
	}
	return m.rows(m.spread(4, 300))
}

// strings writes a list of strings.
func (m *mass) strings(n int) hprof.ID {
	list, array := m.take(m.list.size), m.take(m.arraySize(4, n+n/4))
	m.ids = m.ids[:0]
	for range n {
		length := m.spread(3, 160)
		at := m.take(m.textSize(length))
		m.text(at, length)
		m.ids = append(m.ids, at)
	}
	for range n / 4 {
		m.ids = append(m.ids, 0)
	}
	m.array(array, m.objects, m.ids)
	m.begin(&m.list)
	m.set("elementData", array)
	m.put("size", uint64(n))
	m.end(list)
	return list
}

// hash writes a map from strings to rows.
func (m *mass) hash(n int) hprof.ID {
	const key = 12
	size := 1 << bits.Len(uint(n+n/3))
	object, table := m.take(m.hashMap.size), m.take(m.arraySize(4, size))
	stride := m.entry.size + m.textSize(key) + m.row.size
	first := m.take(hprof.ID(n) * stride)
	m.ids = m.ids[:0]
	for range size {
		m.ids = append(m.ids, 0)
	}
	for i := range n {
		at := first + hprof.ID(i)*stride
		text, row := at+m.entry.size, at+m.entry.size+m.textSize(key)
		bucket := i * size / n
		if m.draw(4) == 0 && i > 0 {
			bucket = (i - 1) * size / n
		}
		m.begin(&m.entry)
		m.put("hash", mix(uint64(at), 1)&0xffff0000|uint64(bucket))
		m.set("key", text)
		m.set("value", row)
		m.set("next", m.ids[bucket])
		m.end(at)
		m.ids[bucket] = at
		m.text(text, key)
		m.oneRow(row, text)
	}
	m.array(table, m.entries, m.ids)
	m.begin(&m.hashMap)
	m.set("table", table)
	m.put("size", uint64(n))
	m.put("threshold", uint64(size*3/4))
	m.put("loadFactor", 0x3f400000)
	m.end(object)
	return object
}

func (m *mass) oneRow(at, name hprof.ID) {
	m.begin(&m.row)
	m.set("name", name)
	m.put("link", m.link())
	m.put("id", m.drawn)
	m.put("flags", m.drawn&7)
	m.put("done", m.drawn>>3&1)
	m.end(at)
	if m.draw(32) == 0 {
		m.remember(at)
	}
}

// rows writes an array of rows that share names.
func (m *mass) rows(n int) hprof.ID {
	array, name := m.take(m.arraySize(4, n)), m.take(m.textSize(20))
	m.text(name, 20)
	m.ids = m.ids[:0]
	for range n {
		at := m.take(m.row.size)
		m.oneRow(at, name)
		m.ids = append(m.ids, at)
	}
	m.array(array, m.objects, m.ids)
	return array
}

// chain writes a linked list of strings and links.
func (m *mass) chain(n int) hprof.ID {
	list := m.take(m.linked.size)
	first := m.at
	last := hprof.ID(0)
	for i := range n {
		node := m.take(m.node.size)
		item, length := m.link(), 0
		if m.draw(3) > 0 {
			length = 1 + m.spread(0, 60)
			item = uint64(m.take(m.textSize(length)))
		}
		m.begin(&m.node)
		m.put("item", item)
		m.set("prev", last)
		if i < n-1 {
			m.set("next", m.at)
		}
		m.end(node)
		if length > 0 {
			m.text(hprof.ID(item), length)
		}
		last = node
	}
	m.begin(&m.linked)
	m.set("first", first)
	m.set("last", last)
	m.put("size", uint64(n))
	m.end(list)
	return list
}

// sorted writes a balanced tree that maps numbers to links.
func (m *mass) sorted(n int) hprof.ID {
	tree := m.take(m.tree.size)
	stride := m.leaf.size + m.integer.size
	first := m.take(hprof.ID(n) * stride)
	node := func(i int) hprof.ID {
		if i < 0 || i >= n {
			return 0
		}
		return first + hprof.ID(i)*stride
	}
	for i := range n {
		parent := hprof.ID(0)
		if i > 0 {
			parent = node((i - 1) / 2)
		}
		m.begin(&m.leaf)
		m.set("key", node(i)+m.leaf.size)
		m.put("value", m.link())
		m.set("left", node(2*i+1))
		m.set("right", node(2*i+2))
		m.set("parent", parent)
		m.put("color", uint64(bits.Len(uint(i+1))&1))
		m.end(node(i))
		m.begin(&m.integer)
		m.put("value", uint64(i))
		m.end(node(i) + m.leaf.size)
	}
	m.begin(&m.tree)
	m.set("root", node(0))
	m.put("size", uint64(n))
	m.end(tree)
	return tree
}

// graph writes vertices, a few of which have most of the edges.
func (m *mass) graph(n int) hprof.ID {
	first := m.take(hprof.ID(n) * m.vertex.size)
	for i := range n {
		m.begin(&m.vertex)
		m.set("a", first+hprof.ID(m.spread(0, uint64(n)))*m.vertex.size)
		m.set("b", first+hprof.ID(m.draw(uint64(n)))*m.vertex.size)
		m.put("c", m.link())
		if i < n-1 && m.draw(3) > 0 {
			m.set("c", first+hprof.ID(i+1)*m.vertex.size)
		}
		m.put("mark", uint64(i))
		m.end(first + hprof.ID(i)*m.vertex.size)
	}
	return first
}

// weakly writes a weak map whose keys are earlier objects.
func (m *mass) weakly(n int) hprof.ID {
	object, table := m.take(m.weakMap.size), m.take(m.arraySize(4, 2*n))
	m.ids = m.ids[:0]
	for range 2 * n {
		m.ids = append(m.ids, 0)
	}
	for i := range n {
		at := m.take(m.weak.size)
		m.begin(&m.weak)
		m.put("referent", m.link())
		m.put("value", m.link())
		m.put("hash", uint64(2*i))
		m.end(at)
		m.ids[2*i] = at
	}
	m.array(table, m.weaks, m.ids)
	m.begin(&m.weakMap)
	m.set("table", table)
	m.put("size", uint64(n))
	m.end(object)
	return object
}

// data writes an array of numbers with approximately the given size.
func (m *mass) data(n int) hprof.ID {
	kind := [...]hprof.Type{
		hprof.Byte, hprof.Byte, hprof.Byte, hprof.Int, hprof.Long, hprof.Char, hprof.Float, hprof.Double,
	}[m.draw(8)]
	size := kind.Size(m.IDSize)
	count := n / size
	at := m.take(m.arraySize(size, count))
	m.next()
	m.numbers = noise{stream: mix(m.seed, uint64(at))}
	m.w.PrimitiveArrayFrom(at, m.trace(), kind, uint32(count), m.noise(&m.numbers))
	return at
}
