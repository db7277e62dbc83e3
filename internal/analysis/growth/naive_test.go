package growth

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// naive merges paths like Shark: its nodes contain lists of objects, there are
// two queues, objects are visited when their node is taken from a queue, and
// paths are strings. There is one difference: if all objects of a new batch are
// already in other batches, naive creates no batch, while Shark creates one
// that ends up empty, which can affect the order of batches.
type naive struct {
	loaded
	nodes   map[string]*naiveNode
	visited map[heap.Object]*naiveNode
	// waits holds the objects in the queues; the value is true for an object
	// that is only in the second queue.
	waits     map[heap.Object]bool
	high, low []naiveBatch
	lasting   bool
	// twins maps a node to the node it is merged into.
	twins map[*naiveNode]*naiveNode
}

type naiveNode struct {
	path, class string
	// name is the last part of the path; made is the number of nodes created
	// before this one.
	name         string
	made         int
	inner, field bool
	parent       *naiveNode
	objects      []heap.Object
}

type naiveBatch struct {
	node    *naiveNode
	objects []heap.Object
}

func merged(l loaded) *naive {
	n := &naive{
		loaded: l, nodes: map[string]*naiveNode{}, visited: map[heap.Object]*naiveNode{}, waits: map[heap.Object]bool{},
		twins: map[*naiveNode]*naiveNode{},
	}
	root := &naiveNode{}
	n.nodes[""] = root
	edges := &naiveEdges{}
	for _, r := range l.reader.Roots() {
		class := n.class(r.Object)
		edges.add(n.node(root, fmt.Sprintf("%v %v %s", r.Kind, r.Low, class), class), r.Object, r.Low)
	}
	n.enqueue(edges)
	for {
		var b naiveBatch
		switch {
		case len(n.high) > 0:
			b, n.high = n.high[0], n.high[1:]
		case len(n.low) > 0:
			n.lasting = true
			b, n.low = n.low[0], n.low[1:]
		default:
			n.join()
			return n
		}
		n.explore(b)
	}
}

func (n *naive) explore(b naiveBatch) {
	edges := &naiveEdges{}
	for _, o := range b.objects {
		if n.visited[o] != nil {
			continue
		}
		n.visited[o] = b.node
		b.node.objects = append(b.node.objects, o)
		n.reader.Read(o, func(e trace.Edge) {
			inLow, waits := n.waits[e.To]
			if n.visited[e.To] == nil && !(waits && (!inLow || e.Low || n.lasting)) {
				edges.add(n.child(b.node, o, e), e.To, e.Low || n.lasting)
			} else if other := n.visited[e.To]; other != nil && other != b.node && other.class == b.node.class &&
				other.parent == b.node.parent &&
				other.field && b.node.field && other.inner == b.node.inner {
				n.pair(other, b.node)
			}
		})
	}
	n.enqueue(edges)
}

func (n *naive) child(from *naiveNode, o heap.Object, e trace.Edge) *naiveNode {
	class := n.class(e.To)
	if class == from.class {
		return from
	}
	c := n.node(from,
		fmt.Sprintf("%s %s.%s %v %s", kinds[e.Kind], n.reader.Owner(o, e), n.reader.Field(o, e), e.Low, class), class)
	c.inner = from.inner || e.Inner
	c.field = e.Kind == trace.FieldEdge || e.Kind == trace.StaticEdge
	return c
}

func (n *naive) pair(a, b *naiveNode) {
	if a.made > b.made {
		a, b = b, a
	}
	if old := n.twins[b]; old == nil || a.made < old.made {
		n.twins[b] = a
	}
}

// join rewrites all paths: a node that has a twin gets the path of its twin.
func (n *naive) join() {
	old := slices.SortedFunc(maps.Values(n.nodes), func(a, b *naiveNode) int { return a.made - b.made })
	into := map[*naiveNode]*naiveNode{}
	n.nodes = map[string]*naiveNode{}
	for _, node := range old {
		to := into[n.twins[node]]
		if to == nil {
			c := *node
			if c.parent != nil {
				c.parent = into[node.parent]
				c.path = c.parent.path + "\n" + c.name
			}
			if to = n.nodes[c.path]; to == nil {
				c.objects = nil
				to = &c
				n.nodes[c.path] = to
			}
		}
		into[node] = to
		to.objects = append(to.objects, node.objects...)
	}
	for o, node := range n.visited {
		n.visited[o] = into[node]
	}
	joined += len(n.twins)
}

// joined is the number of twins in all tests.
var joined int

func (n *naive) node(parent *naiveNode, name, class string) *naiveNode {
	path := parent.path + "\n" + name
	c := n.nodes[path]
	if c == nil {
		c = &naiveNode{path: path, name: name, class: class, parent: parent, made: len(n.nodes)}
		n.nodes[path] = c
	}
	return c
}

func (n *naive) class(o heap.Object) string {
	if n.graph.IsClass(o) {
		return "class " + n.graph.ClassName(o)
	}
	return n.graph.Class(o)
}

// naiveEdges holds the edges of one batch. The objects of each edge are in the
// order in which any edge first led to them.
type naiveEdges struct {
	list []naiveEdge
	met  []heap.Object
}

type naiveEdge struct {
	node *naiveNode
	low  bool
	has  map[heap.Object]bool
}

// A node of edges from objects to their own class may have a batch in each
// queue.
func (s *naiveEdges) add(node *naiveNode, o heap.Object, low bool) {
	i := slices.IndexFunc(s.list, func(e naiveEdge) bool { return e.node == node && e.low == low })
	if i < 0 {
		i = len(s.list)
		s.list = append(s.list, naiveEdge{node, low, map[heap.Object]bool{}})
	}
	if !slices.Contains(s.met, o) {
		s.met = append(s.met, o)
	}
	s.list[i].has[o] = true
}

func (n *naive) enqueue(s *naiveEdges) {
	for _, e := range s.list {
		b := naiveBatch{node: e.node}
		for _, o := range s.met {
			if e.has[o] {
				b.objects = append(b.objects, o)
				inLow, waits := n.waits[o]
				n.waits[o] = e.low && (!waits || inLow)
			}
		}
		if e.low || n.lasting {
			n.low = append(n.low, b)
		} else {
			n.high = append(n.high, b)
		}
	}
}

// path returns the path of a node in the form that naive uses.
func (t *tree) path(names *names, n uint32) string {
	if n == top {
		return ""
	}
	e, class := names.edgeList[t.edges[n]], names.classNames[t.classes[n]]
	name := fmt.Sprintf("%s %s.%s %v %s", e.kind, e.owner, e.name, e.low, class)
	if e.kind == KindRoot {
		name = fmt.Sprintf("%s %v %s", e.name, e.low, class)
	}
	return t.path(names, t.parents[n]) + "\n" + name
}

// lowRules assigns low priority to the references in the fields named low and,
// in half of the classes, also to those in the fields named g.
func lowRules() trace.Rules {
	var rules trace.Rules
	for i := range 4 {
		rules.Matchers = append(rules.Matchers,
			trace.Matcher{Pattern: trace.Pattern{Class: fmt.Sprintf("a.C%d", i), Name: "low"}})
		if i%2 == 0 {
			rules.Matchers = append(rules.Matchers,
				trace.Matcher{Pattern: trace.Pattern{Class: fmt.Sprintf("a.C%d", i), Name: "g"}})
		}
	}
	return rules
}

// Each object must have the node that Shark's algorithm assigns, and the
// growing places must be those that a comparison of path strings finds.
func TestSeriesAgainstShark(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	found := 0
	for seed := range seeds {
		least := 1 + int(seed%3)
		s := NewSeries(least)
		var all []map[string]*naiveNode
		for dump := range 4 {
			l := load(t, randomHeap(seed, dump), lowRules())
			n := merged(l)
			all = append(all, n.nodes)
			tree, err := s.Merge(t.Context(), l.graph, l.reader)
			if err != nil {
				t.Fatal(err)
			}
			checkNodes(t, tree.walk, n)
			if err := s.Add(t.Context(), tree); err != nil {
				t.Fatal(err)
			}
			checkBytes(t, tree.walk.tree, s.names, n)
			tree.Close()
			if dump > 0 {
				found += checkGrown(t, s, all, least)
			}
		}
	}
	if found < int(seeds) || !testing.Short() && joined < int(seeds)/10 {
		t.Errorf("got %d places and %d twins, want at least %d and %d", found, joined, seeds, seeds/10)
	}
}

func checkNodes(t *testing.T, w *walk, n *naive) {
	t.Helper()
	for o := range heap.Object(w.graph.Objects) {
		want := n.visited[o]
		if w.visited.has(o) != (want != nil) {
			t.Fatalf("object %d: got visited %v", o, w.visited.has(o))
		}
		if want == nil {
			continue
		}
		if got := w.path(w.names, w.places[o]); got != want.path {
			t.Fatalf("object %d: got path%s\nwant%s", o, got, want.path)
		}
	}
	for i := range w.counts {
		if got, want := int(w.counts[i]), count(n.nodes[w.path(w.names, uint32(i))]); got != want {
			t.Errorf("got %d objects, want %d", got, want)
		}
	}
}

// checkBytes checks that a node retains at least the union of its objects'
// dominator subtrees, and at most the bytes that are freed when its objects are
// removed.
func checkBytes(t *testing.T, tree *tree, names *names, n *naive) {
	t.Helper()
	last := tree.bytes[len(tree.bytes)-1]
	for i := 1; i < tree.len(); i++ {
		least, most := int64(0), int64(0)
		if node := n.nodes[tree.path(names, uint32(i))]; node != nil {
			union, err := n.graph.Cost(t.Context(), node.objects, &heap.VisitBudget{})
			if err != nil {
				t.Fatal(err)
			}
			exact, err := n.graph.Cost(t.Context(), node.objects, &heap.VisitBudget{Left: 1 << 40})
			if err != nil {
				t.Fatal(err)
			}
			least, most = union.Size.Total(), exact.Size.Total()
		}
		if last[i] < least || last[i] > most {
			t.Fatalf("got %d bytes, want %d to %d:%s", last[i], least, most, tree.path(names, uint32(i)))
		}
	}
}
func checkGrown(t *testing.T, s *Series, all []map[string]*naiveNode, least int) int {
	t.Helper()
	paths := map[string]*naiveNode{}
	for _, nodes := range all {
		maps.Copy(paths, nodes)
	}
	grew, holds := map[string]bool{}, map[string]bool{}
	for path, node := range paths {
		rises := true
		for d := 1; d < len(all); d++ {
			rises = rises && count(all[d][path])-count(all[d-1][path]) >= least
		}
		if rises {
			grew[path], holds[node.parent.path] = true, true
		}
	}
	want := map[string]bool{}
	for path := range holds {
		outside := paths[path]
		for path != "" && outside.inner {
			outside = outside.parent
		}
		if !grew[path] && (outside.path == path || !holds[outside.path]) {
			want[path] = true
		}
	}
	got := map[string]bool{}
	for i, told := range s.before.reported() {
		if told {
			got[s.before.path(s.names, uint32(i))] = true
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("after %d dumps: got growth %v, want %v", len(all), got, want)
	}
	if len(placesOf(s)) != len(want) {
		t.Errorf("got %d places, want %d", len(placesOf(s)), len(want))
	}
	return len(want)
}

func count(n *naiveNode) int {
	if n == nil {
		return 0
	}
	return len(n.objects)
}

// If two edges lead from one batch to the same object, the object belongs to
// the edge that the search encountered first, even if that edge first led to
// another object.
func TestFirstWay(t *testing.T) {
	h := hproftest.Java(1)
	from, to := h.Declare("a.C1", nil, "object f", "object h"), h.Declare("a.C3", nil, "object f")
	x, y := h.New(to, nil), h.New(to, nil)
	pair := h.Objects(from, h.New(from, hproftest.Fields{"f": y, "h": x}), h.New(from, hproftest.Fields{"f": x}))
	h.Hold("a.C0", "low", h.New(h.Declare("a.C2", nil, "object low"), hproftest.Fields{"low": pair}))
	l := load(t, h, lowRules())
	s := NewSeries(1)
	tree, err := s.Merge(t.Context(), l.graph, l.reader)
	if err != nil {
		t.Fatal(err)
	}
	checkNodes(t, tree.walk, merged(l))
	for n, c := range tree.walk.counts {
		if e := s.names.edgeList[tree.walk.edges[n]]; e.owner == "a.C1" && (c != 0) != (e.name == "f") ||
			e.owner == "a.C1" && e.name == "f" && c != 2 {
			t.Errorf("got %d objects through field %s, want 2 through f and none through other fields", c, e.name)
		}
	}
}
