package heap_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// scribe writes dumps record by record, for dumps that are too large to be
// built as a world.
type scribe struct {
	*hproftest.Writer
	out  bytes.Buffer
	ids  int
	name hprof.ID
	body []byte
}

func newScribe(idSize int) *scribe {
	s := &scribe{ids: idSize}
	s.Writer = hproftest.NewWriter(&s.out, hprof.Header{Format: hprof.Format103, IDSize: idSize})
	return s
}

// class writes a class whose fields are references.
func (s *scribe) class(id hprof.ID, name string, size uint32, fields int) {
	s.loaded(id, name)
	s.classDump(id, size, fields)
}

// loaded writes the name of a class. The records for it are outside the heap.
func (s *scribe) loaded(id hprof.ID, name string) {
	s.name++
	s.String(s.name, name)
	s.LoadClass(hprof.LoadedClass{Serial: uint32(s.name), Class: id, Name: s.name})
}

func (s *scribe) classDump(id hprof.ID, size uint32, fields int) {
	c := &hprof.Class{ID: id, InstanceSize: size}
	for range fields {
		c.Fields = append(c.Fields, hprof.Field{Name: s.name, Type: hprof.Object})
	}
	s.Class(c)
}

// instance writes an instance whose fields are references.
func (s *scribe) instance(id, class hprof.ID, fields ...hprof.ID) {
	s.body = s.body[:0]
	for _, f := range fields {
		s.body = binary.BigEndian.AppendUint64(s.body, uint64(f))
		if s.ids == 4 {
			s.body = append(s.body[:len(s.body)-8], s.body[len(s.body)-4:]...)
		}
	}
	s.Instance(id, 0, class, s.body)
}

func (s *scribe) dump(tb testing.TB) []byte {
	tb.Helper()
	s.EndHeap()
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
	return s.out.Bytes()
}

// shape is a graph of n objects and its dominator tree. Object 0 is the only
// root. Every reached object comes after its dominator.
type shape struct {
	n int
	// refs appends the references of an object.
	refs func(list []int, i int) []int
	// dominator returns the immediate dominator of an object: -1 for objects
	// directly below the roots, and -2 for unreached objects.
	dominator func(i int) int
	// id permutes the addresses; if it is nil, the addresses are in order.
	id func(i int) int
}

func (s *shape) object(i int) hprof.ID {
	if s.id != nil {
		i = s.id(i)
	}
	return hprof.ID(0x10000 + 8*i)
}

// size returns the size of an object with n references.
func size(references int) int64 { return int64(10 + 3*references) }

// widest is the minimum number of references of an array; objects with fewer
// references are instances.
const widest = 4

func (s *shape) dump(tb testing.TB) []byte {
	tb.Helper()
	w := newScribe(4)
	for k := range widest {
		w.class(hprof.ID(0x100+8*k), fmt.Sprintf("C%d", k), uint32(size(k)), k)
	}
	w.class(0x200, "Array", 10, 0)
	w.Segment(hproftest.HotSpotSegments())
	w.Root(hprof.Root{Kind: hprof.SubRootUnknown, Object: s.object(0)})
	var list []int
	var ids []hprof.ID
	for i := range s.n {
		list, ids = s.refs(list[:0], i), ids[:0]
		for _, to := range list {
			ids = append(ids, s.object(to))
		}
		if len(ids) < widest {
			w.instance(s.object(i), hprof.ID(0x100+8*len(ids)), ids...)
		} else {
			w.ObjectArray(s.object(i), 0, 0x200, ids)
		}
	}
	return w.dump(tb)
}

// check compares all dominators and retained sizes with the shape.
func (s *shape) check(t *testing.T, g *heap.Graph) {
	t.Helper()
	retained := make([]int64, s.n)
	var list []int
	for i := s.n - 1; i >= 0; i-- {
		d := s.dominator(i)
		if d == -2 {
			continue
		}
		list = s.refs(list[:0], i)
		if len(list) < widest {
			retained[i] += size(len(list))
		} else {
			retained[i] += 10 + 4*int64(len(list))
		}
		if d >= 0 {
			retained[d] += retained[i]
		}
	}
	for i := range s.n {
		o, ok := g.Find(s.object(i))
		d, dominated := g.Dominator(o)
		want := s.dominator(i)
		if !ok || dominated != (want >= 0) || dominated && g.ID(d) != s.object(want) ||
			g.Retained(o).Java != retained[i] {
			t.Fatalf("object %d (found: %t): dominated by %#x (%t), retains %d; want %d, %d", i, ok, g.ID(d), dominated,
				g.Retained(o).Java, want, retained[i])
		}
	}
	if err := heap.BrokenOrder(g); err != nil {
		t.Error(err)
	}
}

// scattered returns a random permutation of the numbers below n.
func scattered(n int) func(int) int {
	perm := rand.New(rand.NewPCG(1, 2)).Perm(n)
	return func(i int) int { return perm[i] }
}

func shapes() map[string]shape {
	deep, wide := 1_000_000, 200_000
	if racing {
		deep, wide = deep/10, wide/10
	}
	top := func(i int) int { return min(i, 1) - 1 }
	before := func(i int) int { return i - 1 }
	list := func(refs []int, i int) []int {
		if i < deep-1 {
			refs = append(refs, i+1)
		}
		return refs
	}
	order := scattered(wide)
	return map[string]shape{
		"list":           {n: deep, refs: list, dominator: before},
		"backward list":  {n: deep, refs: list, dominator: before, id: func(i int) int { return deep - i }},
		"scattered list": {n: deep, refs: list, dominator: before, id: scattered(deep)},
		// Object 0 is followed by the cells of one list, the cells of the other
		// list, and the elements that both lists share. Algorithms that climb
		// the dominator tree from each element need many steps per element.
		"two lists": {n: 1 + 3*wide, refs: func(refs []int, i int) []int {
			switch {
			case i == 0:
				return append(refs, 1, 1+wide)
			case i > 2*wide:
				return refs
			}
			at := (i - 1) % wide
			element := at
			if i > wide {
				element = order(at)
			}
			refs = append(refs, 1+2*wide+element)
			if at < wide-1 {
				refs = append(refs, i+1)
			}
			return refs
		}, dominator: func(i int) int {
			if i > 2*wide || i == 1+wide {
				return 0
			}
			return i - 1
		}},
		"list reached from both ends": {n: wide, refs: func(refs []int, i int) []int {
			if i == 0 {
				return append(refs, 1, wide-1)
			}
			return append(refs, max(i-1, 1), min(i+1, wide-1))
		}, dominator: top},
		"diamonds": {n: 3 * wide, refs: func(refs []int, i int) []int {
			switch at := i / 3 * 3; {
			case i == at:
				return append(refs, i+1, i+2)
			case at+3 < 3*wide:
				return append(refs, at+3)
			}
			return refs
		}, dominator: func(i int) int {
			if i%3 == 0 {
				return max(i-3, min(i, 1)-1)
			}
			return i / 3 * 3
		}},
		"steps": {n: wide, refs: func(refs []int, i int) []int {
			return append(refs, min(i+1, wide-1), min(i+2, wide-1), i/2)
		}, dominator: top},
		"binary tree": {n: 1<<17 - 1, refs: func(refs []int, i int) []int {
			if i < 1<<16-1 {
				refs = append(refs, 2*i+1, 2*i+2)
			}
			return refs
		}, dominator: func(i int) int { return (i+1)/2 - 1 }},
		"one target for all": {n: wide, refs: func(refs []int, i int) []int {
			if i == 1 {
				return refs
			}
			return append(refs, 1, min(max(i+1, 2), wide-1))
		}, dominator: func(i int) int {
			if i < 3 {
				return min(i, 1) - 1
			}
			return i - 1
		}},
		"references between one object and all others": {n: wide, refs: func(refs []int, i int) []int {
			if i > 0 {
				return append(refs, 0)
			}
			for to := 1; to < wide; to++ {
				refs = append(refs, to)
			}
			return refs
		}, dominator: top},
		"partly unreachable": {n: wide, refs: func(refs []int, i int) []int {
			return append(refs, min(i&^1+2, wide-2), i&^1)
		}, dominator: func(i int) int {
			if i%2 != 0 {
				return -2
			}
			return max(i-2, -1)
		}},
	}
}

// TestShapes loads graphs with known dominators on which naive algorithms
// recurse too deeply, take quadratic time or return wrong results.
func TestShapes(t *testing.T) {
	for name, s := range shapes() {
		t.Run(name, func(t *testing.T) { s.check(t, load(t, s.dump(t), heap.Options{})) })
	}
}

// TestSecondDominators compares the result with that of another algorithm, on
// graphs too large for brute force.
func TestSecondDominators(t *testing.T) {
	objects := 30_000
	if racing {
		objects /= 10
	}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := tangle(seed, objects)
			s.check(t, load(t, s.dump(t), heap.Options{}))
		})
	}
}

// tangle returns a random graph, sparse or dense, in which few or many
// references lead to neighbors.
func tangle(seed uint64, n int) *shape {
	dice := rand.New(rand.NewPCG(seed, 3))
	refs := make([][]int, n)
	for i := range refs {
		for range dice.IntN(3 + int(seed)) {
			to := i + dice.IntN(100) - 40
			if dice.IntN(20) < int(seed) || to < 0 || to >= n {
				to = dice.IntN(n)
			}
			refs[i] = append(refs[i], to)
		}
	}
	for range 50 {
		refs[0] = append(refs[0], dice.IntN(n))
	}
	dominators := cooper(refs)
	// A shape requires dominators to come first, so the objects are in the
	// order of the search.
	order := preorder(refs)
	place := make([]int, n)
	for at, i := range order {
		place[i] = at
	}
	return &shape{n: n, id: scattered(n), refs: func(list []int, at int) []int {
		for _, to := range refs[order[at]] {
			list = append(list, place[to])
		}
		return list
	}, dominator: func(at int) int {
		if d := dominators[order[at]]; d >= 0 {
			return place[d]
		}
		return dominators[order[at]]
	}}
}

// preorder lists the objects in the order of a depth-first search from 0;
// unreached objects come last.
func preorder(refs [][]int) (order []int) {
	met := make([]bool, len(refs))
	pending := []int{0}
	for len(pending) > 0 {
		i := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if !met[i] {
			met[i] = true
			order = append(order, i)
			pending = append(pending, refs[i]...)
		}
	}
	for i := range refs {
		if !met[i] {
			order = append(order, i)
		}
	}
	return order
}

// cooper finds dominators by iteration: Cooper, Harvey and Kennedy, "A simple,
// fast dominance algorithm". The result is -1 for the root and -2 for unreached
// objects.
func cooper(refs [][]int) []int {
	sources, rank := make([][]int, len(refs)), make([]int, len(refs))
	order := postorder(refs)
	for at, i := range order {
		rank[i] = at
		for _, to := range refs[i] {
			sources[to] = append(sources[to], i)
		}
	}
	idom := make([]int, len(refs))
	for i := range idom {
		idom[i] = -2
	}
	idom[0] = 0
	for changed := true; changed; {
		changed = false
		for at := len(order) - 2; at >= 0; at-- {
			i, best := order[at], -2
			for _, from := range sources[i] {
				if idom[from] == -2 {
					continue
				}
				if best == -2 {
					best = from
				}
				for a := from; a != best; {
					if rank[a] < rank[best] {
						a = idom[a]
					} else {
						best = idom[best]
					}
				}
			}
			if idom[i] != best {
				idom[i], changed = best, true
			}
		}
	}
	idom[0] = -1
	return idom
}

// postorder lists the objects in the postorder of a depth-first search from 0,
// which comes last.
func postorder(refs [][]int) (order []int) {
	next := make([]int, len(refs))
	met := make([]bool, len(refs))
	met[0] = true
	for path := []int{0}; len(path) > 0; {
		i := path[len(path)-1]
		if next[i] == len(refs[i]) {
			order = append(order, i)
			path = path[:len(path)-1]
			continue
		}
		to := refs[i][next[i]]
		next[i]++
		if !met[to] {
			met[to] = true
			path = append(path, to)
		}
	}
	return order
}

// TestLargeSizes adds up sizes that exceed 31 bits, and sizes that exceed 32
// bits.
func TestLargeSizes(t *testing.T) {
	w := &world{idSize: 4}
	huge := w.class("Huge", nil, math.MaxUint32, field{"a", hprof.Object}, field{"b", hprof.Object})
	below := w.noData(hprof.Long, math.MaxUint32)
	for i := range 40 {
		below = w.instance(huge, refs(below, w.noData(hprof.Int, uint32(1<<29+i)))...)
	}
	almost := w.noData(hprof.Byte, 1<<16-2)
	w.root(hprof.SubRootJNIGlobal, below)
	for i := range 4 {
		w.root(hprof.SubRootJNIGlobal, w.instance(huge, refs(almost, w.noData(hprof.Byte, uint32(1<<16-3+i)))...))
	}
	dump := w.dump(t)
	g := load(t, dump, heap.Options{})
	w.solve().check(t, g)
	o, _ := g.Find(below.id)
	if got := g.Retained(o).Java; got != 8*math.MaxUint32+40*math.MaxUint32+4*(40<<29+39*40/2) {
		t.Errorf("got %d bytes retained", got)
	}
}

// TestManyClasses loads a dump with more classes than can be numbered with 16
// bits.
func TestManyClasses(t *testing.T) {
	const classes = 1<<16 + 100
	w := newScribe(8)
	instance := func(i int) hprof.ID { return hprof.ID(1<<33 + 16*i) }
	class := func(i int) hprof.ID { return hprof.ID(1<<32 + 64*i) }
	for i := range classes {
		w.name++
		w.String(w.name, fmt.Sprintf("C%d", i))
		w.LoadClass(hprof.LoadedClass{Serial: uint32(w.name), Class: class(i), Name: w.name})
	}
	for i := range classes {
		c := &hprof.Class{ID: class(i), InstanceSize: uint32(i)}
		for range i % 3 {
			c.Fields = append(c.Fields, hprof.Field{Name: 1, Type: hprof.Object})
		}
		w.Class(c)
	}
	// Each object references the next one in all its fields; every third object
	// has no fields.
	for i := range classes {
		w.instance(instance(i), class(i), []hprof.ID{instance(i + 1), instance(i + 1)}[:i%3]...)
		w.Root(hprof.Root{Kind: hprof.SubRootUnknown, Object: instance(i/3*3 + 1)})
	}
	g := load(t, w.dump(t), heap.Options{})
	for i := range classes {
		o, _ := g.Find(instance(i))
		c, _ := g.Find(class(i))
		want := int64(i)
		if name := fmt.Sprintf("C%d", i); g.Class(o) != name || g.ClassName(c) != name || g.Shallow(o).Java != want ||
			!g.InstanceOf(o, name) {
			t.Fatalf("instance %d is a %s of %d bytes with class %s", i, g.Class(o), g.Shallow(o).Java, g.ClassName(c))
		}
		for j := i; j%3 != 0 && j < classes-1; j++ {
			want += int64(j + 1)
		}
		if g.Retained(o).Java != want {
			t.Fatalf("instance %d retains %d, want %d", i, g.Retained(o).Java, want)
		}
	}
	if got := int64(2 * classes); g.Objects != got || g.Classes != classes {
		t.Errorf("%d objects, %d classes", g.Objects, g.Classes)
	}
}
