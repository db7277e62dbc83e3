package growth

import (
	"hash/maphash"
	"slices"
)

// top is the node above all GC roots. It has no objects.
const top = 0

// tree holds the merged shortest paths of a dump. Nodes are numbered so that
// each comes after its parent.
type tree struct {
	parents, edges, classes []uint32
	// linked marks nodes whose objects reference each other; inner marks nodes
	// inside a collection, and the nodes below them.
	linked, inner []bool
	// counts and bytes hold, for each dump of the series so far, the number of
	// objects of each node and the bytes that they retain. own is the size of
	// the objects themselves.
	counts [][]uint32
	bytes  [][]int64
	own    [][]int64
	// grew marks the nodes that have grown in each dump. credited is the number
	// of bytes that a reported node retains in the last dump, minus those that
	// other reported nodes below it retain. grew and credited are nil for the
	// first dump.
	grew []bool
	// swelled marks the nodes whose objects have neither shrunk in size nor
	// grown in number in any dump.
	swelled  []bool
	credited []int64
	// index is an open-addressing hash table that finds nodes by parent, edge
	// and class; 0 marks an empty slot.
	index []uint32
	seed  maphash.Seed
}

func newTree() *tree {
	t := &tree{index: make([]uint32, 64), seed: maphash.MakeSeed()}
	t.parents, t.edges, t.classes, t.linked, t.inner = []uint32{top}, []uint32{0}, []uint32{0}, []bool{false},
		[]bool{false}
	return t
}

func (t *tree) len() int { return len(t.parents) }

type nodeKey struct{ parent, edge, class uint32 }

// slot returns the position of a node in the index, or the position where it
// would be added.
func (t *tree) slot(k nodeKey) uint64 {
	mask := uint64(len(t.index) - 1)
	for at := maphash.Comparable(t.seed, k) & mask; ; at = (at + 1) & mask {
		n := t.index[at]
		if n == 0 || t.parents[n] == k.parent && t.edges[n] == k.edge && t.classes[n] == k.class {
			return at
		}
	}
}

// find returns a node, or 0 if there is none.
func (t *tree) find(k nodeKey) uint32 { return t.index[t.slot(k)] }

// add adds a new node.
func (t *tree) add(k nodeKey) uint32 {
	n := uint32(t.len())
	t.index[t.slot(k)] = n
	t.parents, t.edges, t.classes = append(t.parents, k.parent), append(t.edges, k.edge), append(t.classes, k.class)
	t.linked, t.inner = append(t.linked, false), append(t.inner, t.inner[k.parent])
	if 2*t.len() > len(t.index) {
		t.rehash()
	}
	return n
}

func (t *tree) rehash() {
	t.index = make([]uint32, 2*len(t.index))
	for n := 1; n < t.len(); n++ {
		t.index[t.slot(nodeKey{t.parents[n], t.edges[n], t.classes[n]})] = uint32(n)
	}
}

// last returns the number of objects of each node in the latest dump.
func (t *tree) last() []uint32 { return t.counts[len(t.counts)-1] }

// holders marks the nodes that hold something that grows: the parents of nodes
// that grew.
func (t *tree) holders() []bool {
	list := make([]bool, t.len())
	for n := 1; n < t.len(); n++ {
		if t.grew[n] {
			list[t.parents[n]] = true
		}
	}
	return list
}

// reported marks the nodes to report: those that hold growing nodes and have
// not grown themselves. Growth below a node that grew is a consequence of that
// node's growth, and is not reported. The internals of a collection are another
// view of its elements, and are reported only if the elements do not grow.
//
// Shark omits everything below a node that holds growing nodes
// (ObjectGrowthDetector.kt: "Parent already growing"), which hides the static
// fields of all classes as soon as a class loader has one more class.
func (t *tree) reported() []bool {
	holds := t.holders()
	list := slices.Clone(holds)
	// outside maps a node inside a collection to the collection, and any other
	// node to itself.
	outside := make([]uint32, t.len())
	for n := 1; n < t.len(); n++ {
		p := t.parents[n]
		outside[n] = uint32(n)
		if t.inner[n] {
			outside[n] = outside[p]
		}
		if t.grew[n] || t.inner[n] && holds[outside[n]] {
			list[n] = false
		}
	}
	return list
}

// compare copies the history of the nodes from the previous tree, and finds the
// nodes that have grown again in this dump. least is the minimum growth, in
// objects. A new node counts as having had 0 objects before.
func (t *tree) compare(before *tree, least uint32) {
	dumps := len(before.counts)
	series, sizes, own := make([][]uint32, dumps, dumps+1), make([][]int64, dumps, dumps+1),
		make([][]int64, dumps, dumps+1)
	for d := range dumps {
		series[d], sizes[d], own[d] = make([]uint32, t.len()), make([]int64, t.len()), make([]int64, t.len())
	}
	counts := t.last()
	was := make([]uint32, t.len())
	t.grew, t.swelled = make([]bool, t.len()), make([]bool, t.len())
	for n := 1; n < t.len(); n++ {
		p := t.parents[n]
		if p == top || was[p] != 0 {
			was[n] = before.find(nodeKey{was[p], t.edges[n], t.classes[n]})
		}
		old := uint32(0)
		if w := was[n]; w != 0 {
			for d := range dumps {
				series[d][n], sizes[d][n], own[d][n] = before.counts[d][w], before.bytes[d][w], before.own[d][w]
			}
			old = before.last()[w]
		}
		t.swelled[n] = was[n] != 0 && counts[n] <= old && (before.swelled == nil || before.swelled[was[n]])
		t.grew[n] = counts[n] > old && counts[n]-old >= least &&
			(before.grew == nil || was[n] != 0 && before.grew[was[n]])
	}
	t.counts, t.bytes, t.own = append(series, counts), sizes, own
}

// A node that does not grow in number is reported only if it grows in size by
// at least leastSwell bytes, because the size of buffers and tables changes by
// a few hundred bytes all the time. For a node that grows in steps, like a
// buffer that doubles, the minimum is leastStride bytes.
const (
	leastSwell  = 16 << 10
	leastStride = 64 << 10
)

// swell finds the nodes that grow in size and never shrink. It needs the
// retained sizes. Nodes below a node that grew, or below a reported place, are
// reported as part of it.
func (t *tree) swell() {
	if t.swelled == nil {
		return
	}
	told := t.reported()
	covered := make([]bool, t.len())
	last := len(t.own) - 1
	for n := 1; n < t.len(); n++ {
		p := t.parents[n]
		covered[n] = t.grew[n] || covered[p] || told[p] && t.inner[n]
		rose := t.own[last][n] - t.own[last-1][n]
		t.swelled[n] = t.swelled[n] && !covered[n] && rose >= 0
	}
}

// large reports whether a node has grown by enough bytes to be reported.
func (t *tree) large(n uint32) bool {
	if !t.swelled[n] {
		return false
	}
	if t.stepwise(n) {
		return rise(t.own, n) >= leastStride
	}
	return rise(t.own, n) >= leastSwell
}

// stepwise reports whether there are dumps in which the size of a node did not
// grow.
func (t *tree) stepwise(n uint32) bool {
	for d := 1; d < len(t.own); d++ {
		if t.own[d][n] <= t.own[d-1][n] {
			return true
		}
	}
	return false
}

// prune removes the nodes that have not grown and are not on the path to a node
// that has grown: they can no longer be reported.
func (t *tree) prune() *tree {
	keep := slices.Clone(t.grew)
	for n, swelled := range t.swelled {
		keep[n] = keep[n] || swelled
	}
	for n := t.len() - 1; n > 0; n-- {
		if keep[n] {
			keep[t.parents[n]] = true
		}
	}
	k := newTree()
	places := make([]uint32, t.len())
	kept := []uint32{top}
	for n := 1; n < t.len(); n++ {
		if !keep[n] {
			continue
		}
		places[n] = k.add(nodeKey{places[t.parents[n]], t.edges[n], t.classes[n]})
		k.linked[places[n]], k.inner[places[n]] = t.linked[n], t.inner[n]
		kept = append(kept, uint32(n))
	}
	for d := range t.counts {
		k.counts, k.bytes, k.own = append(k.counts, pick(t.counts[d], kept)), append(k.bytes, pick(t.bytes[d], kept)),
			append(k.own, pick(t.own[d], kept))
	}
	k.grew, k.swelled, k.credited = pick(t.grew, kept), pick(t.swelled, kept), pick(t.credited, kept)
	return k
}

func pick[T any](list []T, at []uint32) []T {
	picked := make([]T, len(at))
	for i, n := range at {
		picked[i] = list[n]
	}
	return picked
}
