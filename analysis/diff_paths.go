package analysis

import (
	"cmp"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// classTree is a merged dominator tree without the nodes smaller than least.
type classTree struct {
	nodes []heap.ClassNode
	// first holds the index of the first child of each node; children are
	// adjacent.
	first []int
	least int64
}

func newClassTree(nodes []heap.ClassNode, least int64) classTree {
	t := classTree{nodes: nodes, first: make([]int, len(nodes)+1), least: least}
	for i := range t.first {
		t.first[i] = len(nodes)
	}
	for i := len(nodes) - 1; i > 0; i-- {
		t.first[nodes[i].Parent] = i
	}
	return t
}

// children returns the children of all given nodes.
func (t *classTree) children(parents []int) (list []int) {
	for _, p := range parents {
		for i := t.first[p]; i < len(t.nodes) && t.nodes[i].Parent == p; i++ {
			list = append(list, i)
		}
	}
	return list
}

func (t *classTree) names(nodes []int) []string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = t.nodes[n].Class
	}
	return names
}

// sum adds up the objects and bytes of the given nodes.
func (t *classTree) sum(nodes []int) (count, bytes int64) {
	for _, n := range nodes {
		count += t.nodes[n].Count
		bytes += t.nodes[n].Size.Total()
	}
	return count, bytes
}

// trees holds the dominator trees of two dumps, overlaid. With a sign of -1,
// shrinkage counts as growth.
type trees struct {
	base, head *classTree
	sign       int64
	// least is the number of bytes by which a step must grow to be followed.
	least int64
	found []PathChange
}

// fork is a step that may exist in both trees.
type fork struct {
	PathStep
	base, head []int
}

const (
	// mostPaths is the maximum number of paths; widest is the maximum number of
	// steps listed below the last step of a path.
	mostPaths = 10
	widest    = 5
	// worthShare determines the minimum growth of a path: 1/worthShare of the
	// total growth.
	worthShare = 10
	// noise is the minimum growth of a path, in multiples of the smallest node
	// size. Growth by the smallest node size can be an error, because a step
	// may be just below this threshold in one of the trees. Ten times the
	// smallest node size is a thousandth of the reachable bytes.
	noise = 10
)

// paths returns the paths along which the tree grew. A path continues down as
// long as large steps account for more than half of the growth of the previous
// step.
func (t *trees) paths(sign int64, top int) []PathChange {
	t.sign = sign
	root := fork{base: []int{0}, head: []int{0}}
	gross := int64(0)
	for _, c := range t.below(root) {
		gross += max(t.growth(c), 0)
	}
	least := max(t.base.least, t.head.least)
	t.least = max(noise*least, gross/worthShare)
	t.found = []PathChange{}
	t.down(root, nil)
	slices.SortStableFunc(t.found, func(a, b PathChange) int { return cmp.Compare(t.sign*b.Delta, t.sign*a.Delta) })
	return t.found[:min(top, mostPaths, len(t.found))]
}

func (t *trees) growth(f fork) int64 { return t.sign * f.RetainedBytes.Delta }

// later returns the bytes of a step in head, or in base if shrinkage counts as
// growth: nothing below the step can have grown by more.
func (t *trees) later(f fork) int64 {
	if t.sign < 0 {
		return f.RetainedBytes.Base
	}
	return f.RetainedBytes.Head
}

// below returns the steps below f, sorted by growth, largest first.
func (t *trees) below(f fork) (list []fork) {
	base, head := t.base.children(f.base), t.head.children(f.head)
	byName := func(tree *classTree, nodes []int) map[string][]int {
		m := map[string][]int{}
		for _, n := range nodes {
			m[tree.nodes[n].Class] = append(m[tree.nodes[n].Class], n)
		}
		return m
	}
	baseNodes, headNodes := byName(t.base, base), byName(t.head, head)
	for _, p := range pairs(distinct(t.base.names(base)), distinct(t.head.names(head))) {
		next := fork{PathStep: PathStep{Class: p.name}}
		for _, name := range p.base {
			next.base = append(next.base, baseNodes[name]...)
		}
		for _, name := range p.head {
			next.head = append(next.head, headNodes[name]...)
		}
		baseCount, baseBytes := t.base.sum(next.base)
		headCount, headBytes := t.head.sum(next.head)
		next.Objects, next.RetainedBytes = change(baseCount, headCount), change(baseBytes, headBytes)
		list = append(list, next)
	}
	slices.SortStableFunc(list, func(a, b fork) int { return cmp.Compare(t.growth(b), t.growth(a)) })
	return list
}

// distinct removes duplicate names: nodes with different parents may belong to
// the same step.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// down follows large growth from f to the steps below it. A path ends at a step
// whose growth is spread over many small steps.
func (t *trees) down(f fork, way []PathStep) {
	next := t.below(f)
	spread := t.growth(f)
	for _, c := range next {
		if growth := t.growth(c); growth >= t.least {
			spread -= growth
		}
		// If one step grew and another shrank, the step that holds both need
		// not have grown.
		if t.later(c) >= t.least {
			t.down(c, append(slices.Clip(way), c.PathStep))
		}
	}
	if len(way) == 0 || t.growth(f) < t.least || 2*spread < t.growth(f) {
		return
	}
	p := PathChange{Change: f.RetainedBytes, Steps: way, Below: []PathStep{}}
	for _, c := range next[:min(widest, len(next))] {
		if t.growth(c) > 0 {
			p.Below = append(p.Below, c.PathStep)
		}
	}
	t.found = append(t.found, p)
}
