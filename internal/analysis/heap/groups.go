package heap

import (
	"context"
	"errors"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Groups assigns objects to groups, numbered from 1; 0 means no group.
type Groups struct {
	// Of returns the number of an object's group, or 0.
	Of func(Object) uint32
	// Count is the number of groups.
	Count int
}

// GroupCosts holds the costs of groups, indexed by group number.
type GroupCosts struct {
	// Bytes is a lower bound on the size that becomes unreachable if all
	// objects of the group are removed. It covers this group and all groups
	// that the GC roots reach only through it. A path may enter a group at one
	// object and leave it at another, so the bound can be below the cost of the
	// group; in return, a single search computes it for all groups.
	Bytes []int64
	// Own is the size of the group itself, plus everything that the group
	// dominates outside any group.
	Own []int64
}

// GroupCosts computes the costs of groups. The local variables of a thread are
// counted with the thread. It needs Options.Inbound.
func (g *Graph) GroupCosts(ctx context.Context, groups Groups) (c GroupCosts, err error) {
	if g.inbound.place == nil {
		return c, errNoInbound
	}
	q := &quotient{Graph: g, costs: make([]int64, groups.Count+1)}
	if err := q.assign(groups.Of); err != nil {
		return c, err
	}
	defer drop(&g.arena, &q.group)
	c.Own = append([]int64{}, q.costs...)
	if err := q.connect(ctx); err != nil {
		return c, err
	}
	c.Bytes = q.costs
	return c, q.weigh(ctx)
}

// quotient is the graph of groups: one group references another if one of its
// objects does.
type quotient struct {
	*Graph
	// group is the group of each vertex of the dominator tree.
	group []uint32
	// costs initially holds the bytes of each group's own objects, and finally
	// the cost of each group.
	costs []int64
	// starts and targets store the references from each group.
	starts, targets []uint32
}

func (q *quotient) assign(of func(Object) uint32) (err error) {
	t := &q.tree
	if q.group, err = array[uint32](&q.arena, int64(len(t.objects))); err != nil {
		return err
	}
	for v := uint32(1); v < uint32(len(t.objects)); v++ {
		above := q.group[t.parents[v]]
		q.group[v] = of(Object(t.objects[v]))
		if q.group[v] == 0 {
			q.group[v] = above
		}
		size := t.size(v).Total()
		q.costs[q.group[v]] += size
		q.costs[above] -= size
	}
	return nil
}

// connect finds the references between groups, and records each reference once.
func (q *quotient) connect(ctx context.Context) error {
	met, b := newPairs(), &q.inbound
	locals := q.locals()
	for d := uint32(1); d < uint32(len(b.place)); d++ {
		if d%checkInterval == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		v := b.place[d]
		to := q.group[v]
		add := func(p uint32) {
			if threads := locals[v]; p == 0 && threads != nil {
				for _, t := range threads {
					met.add(q.group[t], to)
				}
				return
			}
			met.add(q.group[b.place[p]], to)
		}
		add(b.parent(d))
		for _, p := range b.of(d) {
			add(p)
		}
	}
	if met.count >= 1<<32 {
		return errors.New("weigh groups: there are more references between them than can be numbered")
	}
	q.starts = make([]uint32, len(q.costs)+1)
	met.each(func(from, _ uint32) { q.starts[from+1]++ })
	for i := 1; i < len(q.starts); i++ {
		q.starts[i] += q.starts[i-1]
	}
	q.targets = make([]uint32, met.count)
	at := append([]uint32{}, q.starts...)
	met.each(func(from, to uint32) {
		q.targets[at[from]] = to
		at[from]++
	})
	return nil
}

// locals returns, for the vertex of each object that is a root only as a local
// variable, the vertices of its threads.
func (q *quotient) locals() map[uint32][]uint32 {
	threads, locals, others := map[uint32]uint32{}, map[uint32][]uint32{}, map[uint32]bool{}
	for _, r := range q.roots {
		if r.Kind == hprof.SubRootThreadObject && r.Thread != 0 {
			threads[r.Thread] = q.tree.vertices[q.ids.find(r.Object)]
		}
	}
	for _, r := range q.roots {
		v := q.tree.vertices[q.ids.find(r.Object)]
		if thread := threads[r.Thread]; r.Kind == hprof.SubRootJavaFrame && thread != 0 && thread != v {
			locals[v] = append(locals[v], thread)
			continue
		}
		others[v] = true
	}
	for v := range others {
		delete(locals, v)
	}
	return locals
}

// weigh adds, to the own bytes of each group, the bytes that the group
// dominates.
func (q *quotient) weigh(ctx context.Context) error {
	groups, parents := q.search()
	numbers := make([]uint32, len(q.costs))
	for d, group := range groups {
		numbers[group] = uint32(d)
	}
	// Sources are listed by target, in the order of the search.
	starts := make([]uint32, len(groups)+1)
	each := func(f func(from, to uint32)) {
		for d, group := range groups {
			for _, to := range q.targets[q.starts[group]:q.starts[group+1]] {
				if n := numbers[to]; n != 0 {
					f(uint32(d), n)
				}
			}
		}
	}
	each(func(_, to uint32) { starts[to]++ })
	sum := uint32(0)
	for i, n := range starts {
		sum += n
		starts[i] = sum
	}
	sources := make([]uint32, sum)
	each(func(from, to uint32) {
		starts[to]--
		sources[starts[to]] = from
	})
	count := uint32(len(groups)) - 1
	d := &dominance{
		ancestors: parents, semis: starts, sources: sources, labels: make([]uint32, len(groups)),
		idoms: make([]uint32, len(groups)),
	}
	if err := d.find(ctx, count); err != nil {
		return err
	}
	for n := count; n > 0; n-- {
		if d.idoms[n] != 0 {
			q.costs[groups[d.idoms[n]]] += q.costs[groups[n]]
		}
	}
	q.costs[0] = 0
	return nil
}

// search numbers the groups depth first, starting at the roots, which get
// number 0.
func (q *quotient) search() (groups, parents []uint32) {
	met := make([]bool, len(q.costs))
	pending := []edge{{0, 0}}
	for len(pending) > 0 {
		e := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if met[e.object] {
			continue
		}
		met[e.object] = true
		n := uint32(len(groups))
		groups, parents = append(groups, e.object), append(parents, e.from)
		for _, to := range q.targets[q.starts[e.object]:q.starts[e.object+1]] {
			if !met[to] {
				pending = append(pending, edge{to, n})
			}
		}
	}
	return groups, parents
}

// pairs is a set of pairs of two different numbers: a hash table with open
// addressing.
type pairs struct {
	table []uint64
	count int
	last  uint64
}

func newPairs() *pairs { return &pairs{table: make([]uint64, 1<<12)} }

func (p *pairs) add(from, to uint32) {
	key := uint64(from)<<32 | uint64(to)
	if from == to || key == p.last {
		return
	}
	p.last = key
	if 2*p.count >= len(p.table) {
		old := p.table
		p.table, p.count = make([]uint64, 2*len(old)), 0
		for _, k := range old {
			if k != 0 {
				p.put(k - 1)
			}
		}
	}
	p.put(key)
}

func (p *pairs) put(key uint64) {
	mask := uint64(len(p.table) - 1)
	i := hash(key) & mask
	for ; p.table[i] != 0; i = (i + 1) & mask {
		if p.table[i] == key+1 {
			return
		}
	}
	p.table[i] = key + 1
	p.count++
}

func (p *pairs) each(f func(from, to uint32)) {
	for _, k := range p.table {
		if k != 0 {
			f(uint32((k-1)>>32), uint32(k-1))
		}
	}
}
