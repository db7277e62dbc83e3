package heap_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// way is a ClassNode; sure is the number of its objects that have bytes or are
// not leaves.
type way struct {
	heap.ClassNode
	sure int64
}

// ways merges the objects of the dominator tree one by one, by the string form
// of each object's path.
func (p *plainTree) ways() map[string]way {
	all := map[string]way{}
	var enter func(o heap.Object, above, text string)
	enter = func(o heap.Object, above, text string) {
		class := p.Class(o)
		if p.IsClass(o) {
			class = "class " + p.ClassName(o)
		}
		first := class != above
		if first {
			text += ">" + class
		}
		n := all[text]
		n.Count++
		if p.Shallow(o).Total() > 0 || !p.leaf(o) {
			n.sure++
		}
		if first {
			n.Size = plus(n.Size, p.Retained(o))
		}
		all[text] = n
		for _, c := range p.children[o] {
			enter(c, class, text)
		}
	}
	root := way{}
	for _, o := range p.tops {
		root.Size = plus(root.Size, p.Retained(o))
		enter(o, "", "")
	}
	all[""] = root
	return all
}

// waysOf returns the nodes of a tree, indexed by the string form of their path.
func waysOf(t *testing.T, list []heap.ClassNode) map[string]heap.ClassNode {
	t.Helper()
	ways, all := make([]string, len(list)), map[string]heap.ClassNode{}
	for i, n := range list {
		if i == 0 != (n.Parent < 0) || n.Parent >= i {
			t.Fatalf("node %d has parent %d", i, n.Parent)
		}
		if i > 0 {
			ways[i] = ways[n.Parent] + ">" + n.Class
		}
		if i > 1 && n.Parent == list[i-1].Parent && n.Size.Total() > list[i-1].Size.Total() {
			t.Errorf("node %d retains more than the previous one", i)
		}
		if _, ok := all[ways[i]]; ok {
			t.Errorf("%s is listed twice", ways[i])
		}
		n.Parent, n.Class = 0, ""
		all[ways[i]] = n
	}
	return all
}

// The result must match brute force: the whole tree if there is no bound;
// otherwise every node that is large enough, provided that all nodes above it
// are, too.
func TestClassTreeByBruteForce(t *testing.T) {
	seeds := uint64(2000)
	if racing {
		seeds = 200
	}
	folded := 0
	for seed := range seeds {
		w := thicket(seed)
		if seed%2 == 0 {
			_, w = randomWorld(seed, 150)
		}
		g := load(t, w.dump(t), heap.Options{})
		p := newPlainTree(g, heap.AccumulationOptions{})
		want := p.ways()
		maps.DeleteFunc(want, func(text string, w way) bool { return text != "" && w.Size.Total() == 0 })
		list, err := g.ClassTree(t.Context(), heap.ClassTreeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := waysOf(t, list)
		for way, n := range want {
			if n.Count > 1 {
				folded++
			}
			if g := got[way]; g.Size != n.Size || g.Count > n.Count || g.Count < n.sure {
				t.Fatalf("seed %d: %s: got %+v, want %+v", seed, way, g, n)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("seed %d: got %d paths, want %d", seed, len(got), len(want))
		}
		checkPruned(t, g, want, rand.New(rand.NewPCG(seed, 13)))
	}
	if folded < int(seeds) {
		t.Errorf("only %d paths with several objects", folded)
	}
}

func checkPruned(t *testing.T, g *heap.Graph, want map[string]way, r *rand.Rand) {
	t.Helper()
	o := heap.ClassTreeOptions{Least: int64(1 + r.IntN(300)), Levels: 1 + r.IntN(6)}
	list, err := g.ClassTree(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	got := waysOf(t, list)
	for way, n := range got {
		if d := want[way].Size.Total() - n.Size.Total(); d < 0 || d >= o.Least || strings.Count(way, ">") > o.Levels ||
			n.Count > want[way].Count {
			t.Fatalf("%+v: %s: got %+v, want %+v", o, way, n, want[way])
		}
	}
	for way, n := range want {
		above := way[:max(strings.LastIndex(way, ">"), 0)]
		_, parent := got[above]
		if _, ok := got[way]; !ok && parent && n.Size.Total() >= 2*o.Least && strings.Count(way, ">") <= o.Levels {
			t.Fatalf("%+v: no %s, %+v", o, way, n)
		}
	}
	few, err := g.ClassTree(t.Context(), heap.ClassTreeOptions{Nodes: 5})
	if err != nil || len(few) > 5 {
		t.Fatal(len(few), err)
	}
	waysOf(t, few)
}

func TestClassTreeOfList(t *testing.T) {
	w := &world{idSize: 4}
	super := w.class("java.lang.Object", nil, 8)
	node := w.class("Node", super, 16, field{"next", 2}, field{"value", 2})
	var head *object
	for range 10_000 {
		head = w.instance(node, refs(head, w.primitives(8, 10))...)
	}
	w.root(1, head)
	g := load(t, w.dump(t), heap.Options{})
	list, err := g.ClassTree(t.Context(), heap.ClassTreeOptions{Levels: 2})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b heap.ClassNode) int { return cmp.Compare(a.Class, b.Class) })
	if got, want := fmt.Sprint(list),
		"[{-1  0 {260000 0}} {0 Node 10000 {260000 0}} {1 byte[] 10000 {100000 0}}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.ClassTree(ctx, heap.ClassTreeOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
