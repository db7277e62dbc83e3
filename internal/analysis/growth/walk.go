package growth

import (
	"context"
	"errors"
	"fmt"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

const (
	// deepest is the depth down to which paths are distinguished. Below this
	// depth, repeating structures are counted where they first occurred,
	// because a list of two alternating classes is as deep as it is long.
	deepest = 256
	// window is the maximum distance, in nodes, at which a repetition of a
	// structure is recognized.
	window = 64
	// mostNodes bounds the memory of a tree; a node takes about 100 bytes,
	// including the comparison. Trees of real heaps have about ten thousand
	// nodes.
	mostNodes = 1 << 21
	// checkInterval is the number of objects visited between two checks of the
	// context.
	checkInterval = 1 << 16
)

// bits is a set of objects.
type bits []uint64

func newBits(n int64) bits            { return make(bits, (n+63)/64) }
func (b bits) has(o heap.Object) bool { return b[o>>6]>>(o&63)&1 != 0 }
func (b bits) add(o heap.Object)      { b[o>>6] |= 1 << (o & 63) }

// walk merges the paths of one dump. It proceeds breadth first, batch by batch
// rather than object by object. A batch consists of the objects of one node
// that were reached together, from the objects of one other batch.
type walk struct {
	*tree
	graph  *heap.Graph
	reader *trace.Reader
	names  *names

	// places holds, for a pending object, the key of its batch; for an object
	// in visited, its node; and 0 for any other object.
	places  []uint32
	visited bits
	// high is the queue that is visited first; low is visited whenever high is
	// empty. lasting is true once high has been empty (Shark: toVisitQueue and
	// toVisitLastQueue).
	high, low line
	lasting   bool
	// now is the node being visited; from is the object being visited.
	now  uint32
	from heap.Object

	// depths holds the distance of each node from the top.
	depths []uint16
	counts []uint32
	// twins maps a node to the earlier node into which it is merged.
	twins map[uint32]uint32
	// most is the maximum number of nodes. full is true if there were more
	// nodes than that; wide is true if there were more batches than keys.
	most       int
	full, wide bool
	known      known
}

// line is a queue of batches. The key of a batch identifies its line; within a
// line, the batch with the lower key comes first.
type line struct {
	// order holds the objects of all batches, concatenated, up to tail. The
	// objects of the pending batches start at next, and those of the batches
	// being created start at base.
	order            []uint32
	next, base, tail int64
	batches          []batch
	taken            int
	// first is the key of the first batch being created, and made is the key of
	// the last one. opened holds the key of the latest batch of each node.
	first, made uint32
	opened      []uint32
	// unsorted and ends are buffers used by end.
	unsorted []uint32
	ends     []int64
}

// batch represents objects of one node; size is their number, or 0 until the
// batch is complete.
type batch struct{ node, size uint32 }

// lowKeys is the lowest key of the second line.
const lowKeys = 1 << 31

func (l *line) empty() bool { return l.taken == len(l.batches) }

// pop returns the objects of the first batch, and the batch's node and key.
func (l *line) pop() (objects []uint32, node, key uint32) {
	b := l.batches[l.taken]
	key = l.made - uint32(len(l.batches)-l.taken) + 1
	objects = l.order[l.next : l.next+int64(b.size)]
	l.next += int64(b.size)
	l.taken++
	// Removing the batches already taken keeps the list about as long as its
	// pending part.
	if l.taken >= 1<<12 && 2*l.taken > len(l.batches) {
		l.batches = l.batches[:copy(l.batches, l.batches[l.taken:])]
		l.taken = 0
	}
	return objects, b.node, key
}

// begin prepares to create batches.
func (l *line) begin() { l.base, l.first = l.tail, l.made+1 }

// end sorts the objects of the new batches. An object may have moved to the
// other line since it was added.
func (l *line) end(places []uint32) {
	fresh := l.batches[len(l.batches)-int(l.made-l.first+1):]
	if len(fresh) == 0 {
		return
	}
	met := l.order[l.base:l.tail]
	for _, o := range met {
		if key := places[o]; key >= l.first && key <= l.made {
			fresh[key-l.first].size++
		}
	}
	if len(fresh) == 1 && int(fresh[0].size) == len(met) {
		return
	}
	l.unsorted, l.ends = append(l.unsorted[:0], met...), l.ends[:0]
	at := l.base
	for i := range fresh {
		l.ends = append(l.ends, at)
		at += int64(fresh[i].size)
	}
	l.tail = at
	for _, o := range l.unsorted {
		if key := places[o]; key >= l.first && key <= l.made {
			e := &l.ends[key-l.first]
			l.order[*e] = o
			*e++
		}
	}
}

var errTooLarge = errors.New("there are more paths than can be numbered")

// merge builds the tree of a dump. The number of nodes is limited to about
// most.
func merge(ctx context.Context, g *heap.Graph, r *trace.Reader, n *names, most int) (w *walk, err error) {
	w = &walk{
		tree: newTree(), graph: g, reader: r, names: n, visited: newBits(g.Objects), known: newKnown(g),
		depths: []uint16{0}, counts: []uint32{0}, most: most,
		low: line{made: lowKeys},
	}
	for _, s := range []*[]uint32{&w.places, &w.high.order, &w.low.order} {
		if *s, err = g.Scratch(g.Objects); err != nil {
			w.close()
			return nil, fmt.Errorf("merge paths: %w", err)
		}
	}
	w.roots()
	if err := w.run(ctx); err != nil {
		w.close()
		return nil, err
	}
	w.join()
	w.tree.counts = [][]uint32{w.counts}
	g.Release(&w.high.order)
	g.Release(&w.low.order)
	w.high, w.low, w.known = line{}, line{}, known{}
	return w, nil
}

// close releases the memory. It may be called more than once.
func (w *walk) close() {
	w.graph.Release(&w.places)
	w.graph.Release(&w.high.order)
	w.graph.Release(&w.low.order)
}

// roots puts the GC roots into the queues. It distinguishes them by kind and
// class, because a class is a holder with static fields of its own. Shark
// distinguishes them only by kind.
func (w *walk) roots() {
	w.high.begin()
	w.low.begin()
	for _, r := range w.reader.Roots() {
		if w.waits(r.Object, r.Low) {
			continue
		}
		w.meet(r.Object, w.node(nodeKey{top, w.names.root(r.Kind, r.Low), w.class(r.Object)}), r.Low)
	}
	w.high.end(w.places)
	w.low.end(w.places)
}

func (w *walk) run(ctx context.Context) error {
	visit := w.visit
	for n := 0; ; {
		line := &w.high
		if line.empty() {
			line, w.lasting = &w.low, true
		}
		if line.empty() {
			return nil
		}
		objects, node, key := line.pop()
		w.now = node
		w.high.begin()
		w.low.begin()
		for _, o := range objects {
			if n++; n%checkInterval == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			w.from = heap.Object(o)
			// A better path may have reached an object in the second line in
			// the meantime.
			if w.visited.has(w.from) || w.places[o] != key {
				continue
			}
			w.visited.add(w.from)
			w.places[o] = node
			w.counts[node]++
			w.reader.Read(w.from, visit)
		}
		w.high.end(w.places)
		w.low.end(w.places)
		if w.wide {
			return errTooLarge
		}
	}
}

func (w *walk) visit(e trace.Edge) {
	low := e.Low || w.lasting
	if !w.waits(e.To, low) {
		w.meet(e.To, w.child(e), low)
	} else if w.visited.has(e.To) && w.class(e.To) == w.classes[w.now] {
		w.pair(w.places[e.To])
	}
}

// pair records that objects of the current node reference objects of another
// node. It does so only if both nodes have the same class and are reached by
// fields of the same holder, such as a list that is held at both ends. It is
// random from which end an object of the list is reached, so neither node
// reliably grows by the number of added objects.
func (w *walk) pair(n uint32) {
	a, b := min(n, w.now), max(n, w.now)
	if a == b || w.parents[a] != w.parents[b] || w.inner[a] != w.inner[b] || !w.isField(a) || !w.isField(b) {
		return
	}
	if w.twins == nil {
		w.twins = map[uint32]uint32{}
	}
	if old, ok := w.twins[b]; !ok || a < old {
		w.twins[b] = a
	}
}

// isField reports whether a field leads to the objects of a node.
func (w *walk) isField(n uint32) bool {
	kind := w.names.edgeList[w.edges[n]].kind
	return kind == KindInstance || kind == KindStatic
}

// join merges the nodes of each pair, and those nodes below them that are
// reached by the same references.
func (w *walk) join() {
	if len(w.twins) == 0 {
		return
	}
	t, counts, into := newTree(), []uint32{0}, make([]uint32, w.len())
	for n := uint32(1); n < uint32(w.len()); n++ {
		to := uint32(0)
		if twin, ok := w.twins[n]; ok {
			to = into[twin]
			t.linked[to] = true
		} else if k := (nodeKey{into[w.parents[n]], w.edges[n], w.classes[n]}); t.find(k) != 0 {
			to = t.find(k)
		} else {
			to = t.add(k)
			t.inner[to] = w.inner[n]
			counts = append(counts, 0)
		}
		into[n] = to
		counts[to] += w.counts[n]
		t.linked[to] = t.linked[to] || w.linked[n]
	}
	for o := range w.places {
		if w.visited.has(heap.Object(o)) {
			w.places[o] = into[w.places[o]]
		}
	}
	w.tree, w.counts, w.depths, w.twins = t, counts, nil, nil
}

// waits reports whether an object had been visited, or was pending in the same
// line or a better one, before this batch was created.
func (w *walk) waits(o heap.Object, low bool) bool {
	key := w.places[o]
	switch {
	case key == 0:
		return false
	case w.visited.has(o):
		return true
	case key < lowKeys:
		return low || key < w.high.first
	}
	return low && key < w.low.first
}

// meet puts an object into the batch of a node, unless the object is already in
// a batch that comes earlier.
func (w *walk) meet(o heap.Object, node uint32, low bool) {
	l := &w.high
	if low {
		l = &w.low
	}
	opened := place(&l.opened, int(node))
	key := *opened
	if key < l.first || key > l.made {
		if l.made == lowKeys-1 || l.made == 1<<32-1 {
			w.wide = true
			return
		}
		l.made++
		key = l.made
		*opened = key
		l.batches = append(l.batches, batch{node: node})
	}
	before := w.places[o]
	if before != 0 && before < key {
		return
	}
	w.places[o] = key
	if before == 0 || before >= lowKeys && key < lowKeys {
		l.order[l.tail] = uint32(o)
		l.tail++
	}
}

// child returns the node of a reference's target. If an object of the same
// class leads to the target, both are counted in one node: a list, a tree, or
// the chained entries of a table. In each dump, the table or the root may
// reference different ones of these objects, and the others may be at different
// depths. Shark merges only the second and later elements of a list.
func (w *walk) child(e trace.Edge) uint32 {
	class := w.class(e.To)
	if w.classes[w.now] == class {
		w.linked[w.now] = true
		return w.now
	}
	via := w.edge(e)
	if w.depths[w.now] >= deepest {
		if n := w.repeated(via, class); n != top {
			return n
		}
	}
	return w.node(nodeKey{w.now, via, class})
}

// repeated returns the node on the path to the current node that was reached by
// the same edge, or top if there is none.
func (w *walk) repeated(edge, class uint32) uint32 {
	n := w.now
	for range window {
		if n == top {
			break
		}
		if w.edges[n] == edge && w.classes[n] == class {
			return n
		}
		n = w.parents[n]
	}
	return top
}

// node finds or creates a node. If there are too many nodes, it returns the
// current node.
func (w *walk) node(k nodeKey) uint32 {
	if n := w.find(k); n != 0 {
		return n
	}
	if w.len() >= w.most && w.now != top {
		w.full = true
		return w.now
	}
	n := w.add(k)
	w.inner[n] = w.inner[n] || w.names.edgeList[k.edge].inner
	w.counts, w.depths = append(w.counts, 0), append(w.depths, min(w.depths[k.parent], deepest)+1)
	return n
}

// known holds the numbers of the edges and classes of one dump, by their
// position in the dump.
type known struct {
	// fields is indexed by the class of the object and the position of the
	// field; items and locals are indexed by the class alone; statics is
	// indexed by the class object and the position.
	fields        [][]uint32
	items, locals []uint32
	statics       map[heap.Object][]uint32
	// classes is indexed by class; objects holds the numbers of class objects.
	classes []uint32
	objects map[heap.Object]uint32
}

func newKnown(g *heap.Graph) known {
	n := g.ClassCount()
	return known{
		fields: make([][]uint32, n), items: make([]uint32, n), locals: make([]uint32, n), classes: make([]uint32, n),
		statics: map[heap.Object][]uint32{}, objects: map[heap.Object]uint32{},
	}
}

// edge returns the number of the edge for a reference of the current object.
func (w *walk) edge(e trace.Edge) uint32 {
	class := w.graph.ClassNumber(w.from)
	var slot *uint32
	switch {
	case e.Name != "" && e.Kind == trace.FieldEdge:
		// The field belongs to another object. Such edges are rare, so their
		// numbers are not cached.
		return w.newEdge(e)
	case e.Kind == trace.FieldEdge:
		slot = place(&w.known.fields[class], int(e.Place))
	case e.Kind == trace.StaticEdge:
		list := w.known.statics[w.from]
		slot = place(&list, int(e.Place))
		w.known.statics[w.from] = list
	case e.Kind == trace.LocalEdge:
		slot = &w.known.locals[class]
	default:
		slot = &w.known.items[class]
	}
	if *slot == 0 {
		*slot = w.newEdge(e)
	}
	return *slot
}

func (w *walk) newEdge(e trace.Edge) uint32 {
	return w.names.edge(edge{kinds[e.Kind], w.reader.Owner(w.from, e), w.reader.Field(w.from, e), e.Low, e.Inner})
}

func place(list *[]uint32, i int) *uint32 {
	for len(*list) <= i {
		*list = append(*list, 0)
	}
	return &(*list)[i]
}

// class returns the number of an object's class; for a class object, it returns
// the number of the class that the object represents.
func (w *walk) class(o heap.Object) uint32 {
	if w.graph.IsClass(o) {
		id := w.known.objects[o]
		if id == 0 {
			id = w.names.class("class " + w.graph.ClassName(o))
			w.known.objects[o] = id
		}
		return id
	}
	slot := &w.known.classes[w.graph.ClassNumber(o)]
	if *slot == 0 {
		*slot = w.names.class(w.graph.Class(o))
	}
	return *slot
}
