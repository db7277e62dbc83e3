package heap

import (
	"cmp"
	"context"
	"slices"
)

// ClassNode is a set of objects with the same path in the dominator tree: the
// dominators of each object, from the root down, have the same classes. An
// object of the same class as its dominator is counted in the node of its
// dominator, so a list of any length is one step.
type ClassNode struct {
	// Parent is the index of the parent node, or -1 for the root.
	Parent int
	// Class is the name of the class. For class objects it is "class " followed
	// by the name; for the root it is "".
	Class string
	// Count is the number of objects; Size is the size that these objects
	// retain together.
	Count int64
	Size  Size
}

// ClassTreeOptions bound a tree of ClassNodes.
type ClassTreeOptions struct {
	// Least is the minimum number of bytes, Java and native together, that a
	// node must retain; at least 1.
	Least int64
	// Nodes is the maximum number of nodes, or 0 for no limit; Levels is the
	// maximum depth.
	Nodes, Levels int
}

// ClassTree merges the objects that have the same path in the dominator tree.
// The root is first and retains everything reachable. Each node comes after its
// parent; children of the same parent are ordered by retained size.
//
// Nodes that are too small are omitted together with all nodes below them;
// their sizes remain included in those of the nodes above. If only some objects
// of a node are leaves with a single reference to them, the node's count may
// omit some of these leaves, up to Least bytes in total.
func (g *Graph) ClassTree(ctx context.Context, o ClassTreeOptions) ([]ClassNode, error) {
	m := &merger{g: g, t: &g.tree, least: max(o.Least, 1), most: o.Nodes, levels: o.Levels, names: g.rowNames()}
	n := int64(len(m.t.objects))
	var err error
	if m.next, err = array[uint32](&g.arena, n); err != nil {
		return nil, err
	}
	defer drop(&g.arena, &m.next)
	if m.places, err = array[uint32](&g.arena, n); err != nil {
		return nil, err
	}
	defer drop(&g.arena, &m.places)
	m.nodes = []merged{{parent: -1, key: noKey, size: g.ReachableBytes()}}
	for i := 0; i < len(m.nodes); i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.expand(i)
	}
	if err := m.leaves(ctx); err != nil {
		return nil, err
	}
	return m.list(), nil
}

// classKey identifies the objects to merge: twice the row of a class, plus one
// for class objects.
type classKey uint64

const noKey = ^classKey(0)

type merged struct {
	parent int
	key    classKey
	count  int64
	size   Size
	level  int
	// first is the first vertex of the node; merger.next links to the others.
	first uint32
	// crowded is true if the leaves without vertices are worth counting.
	crowded bool
}

type merger struct {
	g            *Graph
	t            *tree
	least        int64
	most, levels int
	names        []string
	nodes        []merged
	// next links the vertices of a node; places holds the node of each vertex.
	next, places []uint32
	groups       []merged
	byKey        map[classKey]int
}

func (m *merger) key(o uint32) classKey {
	list := m.g.registry.list
	s := m.g.slots.at(o)
	if s != classSlot {
		return classKey(list[s].row) * 2
	}
	return classKey(list[m.g.registry.slots[m.g.ids.id(o)]].row)*2 + 1
}

func (m *merger) name(k classKey) string {
	switch {
	case k == noKey:
		return ""
	case k%2 == 1:
		return "class " + m.names[k/2]
	}
	return m.names[k/2]
}

// expand finds the children of a node.
func (m *merger) expand(i int) {
	n := m.nodes[i]
	m.groups = m.groups[:0]
	clear(m.byKey)
	rest := n.size.Total()
	if i == 0 {
		m.below(&n, 0)
	}
	for v := n.first; v != 0; v = m.next[v] {
		m.places[v] = uint32(i)
		n.count++
		rest -= m.g.Shallow(Object(m.t.objects[v])).Total()
		m.below(&n, v)
	}
	for j := range m.groups {
		rest -= m.groups[j].size.Total()
	}
	n.crowded = i > 0 && rest >= m.least
	m.nodes[i] = n
	if m.levels > 0 && n.level >= m.levels {
		return
	}
	slices.SortFunc(m.groups, m.bySize)
	for _, c := range m.groups {
		if c.size.Total() < m.least || m.full() {
			break
		}
		c.parent, c.level = i, n.level+1
		m.nodes = append(m.nodes, c)
	}
}

func (m *merger) full() bool { return m.most > 0 && len(m.nodes) >= m.most }

func (m *merger) bySize(a, b merged) int {
	return cmp.Or(cmp.Compare(b.size.Total(), a.size.Total()), cmp.Compare(m.name(a.key), m.name(b.key)))
}

// below adds the vertices that a vertex of a node dominates.
func (m *merger) below(n *merged, v uint32) {
	last := 0
	for c := v + 1; c < m.t.ends[v]; c = m.t.ends[c] {
		k := m.key(m.t.objects[c])
		if k == n.key {
			m.next[c] = m.next[v]
			m.next[v] = c
			continue
		}
		if last >= len(m.groups) || m.groups[last].key != k {
			last = m.group(k)
		}
		g := &m.groups[last]
		g.size.add(m.t.size(c))
		m.next[c], g.first = g.first, c
	}
}

func (m *merger) group(k classKey) int {
	i, ok := m.byKey[k]
	if !ok {
		if m.byKey == nil {
			m.byKey = map[classKey]int{}
		}
		i = len(m.groups)
		m.byKey[k] = i
		m.groups = append(m.groups, merged{key: k})
	}
	return i
}

// leaves counts the objects that have no vertex, for each node where they
// account for many bytes.
func (m *merger) leaves(ctx context.Context) error {
	type place struct {
		node uint32
		key  classKey
	}
	found := map[place]int{}
	var list []merged
	const checkInterval = 1 << 20
	for o, v := range m.t.vertices {
		if o%checkInterval == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if v == 0 || m.t.objects[v] == uint32(o) {
			continue
		}
		at := m.places[v]
		if at == 0 || !m.nodes[at].crowded {
			continue
		}
		p := place{at, m.key(uint32(o))}
		if p.key == m.nodes[at].key {
			m.nodes[at].count++
			continue
		}
		i, ok := found[p]
		if !ok {
			i = len(list)
			found[p] = i
			list = append(list, merged{parent: int(at), key: p.key, level: m.nodes[at].level + 1})
		}
		list[i].count++
		list[i].size.add(m.g.Shallow(Object(o)))
	}
	m.join(list)
	return nil
}

// join adds leaves to the nodes of their classes, or creates nodes for them.
func (m *merger) join(list []merged) {
	type place struct {
		parent int
		key    classKey
	}
	there := map[place]int{}
	for i, n := range m.nodes {
		there[place{n.parent, n.key}] = i
	}
	slices.SortFunc(list, func(a, b merged) int { return cmp.Or(cmp.Compare(a.parent, b.parent), m.bySize(a, b)) })
	for _, l := range list {
		i, ok := there[place{l.parent, l.key}]
		switch {
		case ok:
			m.nodes[i].count += l.count
			m.nodes[i].size.add(l.size)
		case l.size.Total() >= m.least && !m.full() && (m.levels == 0 || l.level <= m.levels):
			m.nodes = append(m.nodes, l)
		}
	}
}

// list orders the nodes: level by level, each parent before its children,
// siblings by size.
func (m *merger) list() []ClassNode {
	order := make([]int, len(m.nodes))
	for i := range order {
		order[i] = i
	}
	// A node's position depends on that of its parent, which is one level
	// above.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.nodes[a].level, m.nodes[b].level) })
	places := make([]int, len(m.nodes))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && m.nodes[order[to]].level == m.nodes[order[from]].level {
			to++
		}
		slices.SortFunc(order[from:to], func(a, b int) int {
			x, y := m.nodes[a], m.nodes[b]
			if x.parent >= 0 && y.parent >= 0 && x.parent != y.parent {
				return cmp.Compare(places[x.parent], places[y.parent])
			}
			return m.bySize(x, y)
		})
		for i, at := range order[from:to] {
			places[at] = from + i
		}
		from = to
	}
	list := make([]ClassNode, len(order))
	for i, at := range order {
		n := m.nodes[at]
		list[i] = ClassNode{Parent: -1, Class: m.name(n.key), Count: n.count, Size: n.size}
		if n.parent >= 0 {
			list[i].Parent = places[n.parent]
		}
	}
	return list
}
