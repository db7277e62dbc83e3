package heap

import (
	"context"
	"slices"
)

// SetCost is the size of the objects that become unreachable if all objects of
// a set are removed.
type SetCost struct {
	Size Size
	// In is Size.Java split by heap, in the order of Graph.Heaps; nil if there
	// is only one heap.
	In []int64
	// AtLeast is true if Size is only a lower bound, because the search would
	// have taken too long or the graph has no inbound references. Size is then
	// the size of the union of the objects' dominator subtrees, which excludes
	// the objects that the given objects hold only jointly.
	AtLeast bool
}

// VisitBudget is the number of objects that a series of cost computations may
// visit. Once the budget is used up, costs are only lower bounds.
type VisitBudget struct{ Left int64 }

// Cost returns the size of the objects that become unreachable if the given
// objects are removed, including the given objects if they are reachable now.
// Without Options.Inbound, the result is a lower bound, except for single
// objects.
func (g *Graph) Cost(ctx context.Context, objects []Object, p *VisitBudget) (SetCost, error) {
	costs, err := g.Costs(ctx, [][]Object{objects}, p)
	if err != nil {
		return SetCost{}, err
	}
	return costs[0], nil
}

// Costs returns the Cost of each of several sets, in the order of the sets.
func (g *Graph) Costs(ctx context.Context, sets [][]Object, p *VisitBudget) ([]SetCost, error) {
	costs := make([]SetCost, len(sets))
	if g.inbound.place == nil {
		for i, objects := range sets {
			costs[i] = g.union(objects)
		}
		return costs, nil
	}
	numbers, err := g.numbersOf(sets)
	if err != nil {
		return nil, err
	}
	for i, objects := range sets {
		if len(objects) == 1 {
			costs[i] = g.union(objects)
			continue
		}
		c, err := g.cost(ctx, objects, numbers[i], p)
		if err != nil {
			return nil, err
		}
		costs[i] = c
	}
	return costs, nil
}

// numbersOf finds the depth-first numbers of the objects of several sets, in
// one pass over all objects. An object without a vertex of its own holds
// nothing, and has no number.
func (g *Graph) numbersOf(sets [][]Object) ([][]uint32, error) {
	numbers := make([][]uint32, len(sets))
	// first holds, for each vertex, 1 plus the index of one set that contains
	// it, or 0 if no set does; more holds the other sets that contain the
	// vertex.
	first, err := array[uint32](&g.arena, int64(len(g.inbound.place)))
	if err != nil {
		return nil, err
	}
	defer drop(&g.arena, &first)
	more := map[uint32][]int{}
	met := false
	for i, objects := range sets {
		for _, o := range objects {
			v := g.tree.vertices[o]
			switch {
			case v == 0 || !g.ownVertex(uint32(o)):
				continue
			case first[v] == 0:
				first[v] = uint32(i) + 1
			case first[v] != uint32(i)+1:
				more[v] = append(more[v], i)
			}
			met = true
		}
	}
	if !met {
		return numbers, nil
	}
	for d, v := range g.inbound.place {
		if d == 0 || first[v] == 0 {
			continue
		}
		i := int(first[v]) - 1
		numbers[i] = append(numbers[i], uint32(d))
		for _, i := range more[v] {
			numbers[i] = append(numbers[i], uint32(d))
		}
	}
	return numbers, nil
}

func (g *Graph) cost(ctx context.Context, objects []Object, numbers []uint32, p *VisitBudget) (c SetCost, err error) {
	r, err := g.newRemoval(numbers)
	if err != nil {
		return c, err
	}
	defer r.close()
	if n := r.size(); n > p.Left {
		return g.union(objects), nil
	} else {
		p.Left -= n
	}
	if err := r.run(ctx); err != nil {
		return c, err
	}
	gone, err := r.vertices()
	if err != nil {
		return c, err
	}
	defer drop(&g.arena, (*[]uint64)(&gone))
	c = g.newCost()
	r.eachGone(func(v uint32) {
		// The objects that a removed vertex dominates are removed with it, and
		// included in its size.
		if !gone.has(g.tree.parents[v]) {
			g.addVertex(&c, v)
		}
	})
	g.addLeaves(&c, objects, func(v uint32) bool { return gone.has(v) })
	return c, nil
}

func (g *Graph) newCost() (c SetCost) {
	if n := len(g.tree.retained); n > 1 {
		c.In = make([]int64, n)
	}
	return c
}

func (g *Graph) addVertex(c *SetCost, v uint32) {
	c.Size.add(g.tree.size(v))
	for h := range c.In {
		c.In[h] += g.tree.retained[h][v]
	}
}

// addLeaves adds those of the objects that have no vertex of their own, unless
// the object that references them is removed.
func (g *Graph) addLeaves(c *SetCost, objects []Object, gone func(v uint32) bool) {
	var leaves []Object
	for _, o := range objects {
		if v := g.tree.vertices[o]; v != 0 && !g.ownVertex(uint32(o)) && !gone(v) {
			leaves = append(leaves, o)
		}
	}
	slices.Sort(leaves)
	for _, o := range slices.Compact(leaves) {
		size := g.Shallow(o)
		c.Size.add(size)
		if c.In != nil {
			c.In[g.HeapOf(o)] += size.Java
		}
	}
}

// union returns the size of the union of the objects' dominator subtrees: an
// object that several of them dominate counts once.
func (g *Graph) union(objects []Object) SetCost {
	c := g.newCost()
	// A single object holds exactly the objects that it dominates.
	c.AtLeast = len(objects) > 1
	var order []uint32
	for _, o := range objects {
		if v := g.tree.vertices[o]; v != 0 && g.ownVertex(uint32(o)) {
			order = append(order, v)
		}
	}
	slices.Sort(order)
	end := uint32(0)
	var tops []uint32
	for _, v := range order {
		if v < end {
			continue
		}
		end = g.tree.ends[v]
		tops = append(tops, v)
		g.addVertex(&c, v)
	}
	g.addLeaves(&c, objects, func(v uint32) bool {
		at, found := slices.BinarySearch(tops, v)
		return found || at > 0 && v < g.tree.ends[tops[at-1]]
	})
	return c
}

// AddHeld adds to a set everything that would become unreachable if some
// objects were removed: the objects themselves, and everything that cannot be
// reached from a GC root without passing through one of them.
func (g *Graph) AddHeld(ctx context.Context, s *Set, objects []Object) error {
	if g.inbound.place == nil {
		return errNoInbound
	}
	numbers, err := g.numbersOf([][]Object{objects})
	if err != nil {
		return err
	}
	r, err := g.newRemoval(numbers[0])
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.run(ctx); err != nil {
		return err
	}
	gone, err := r.vertices()
	if err != nil {
		return err
	}
	defer drop(&g.arena, (*[]uint64)(&gone))
	r.eachGone(func(v uint32) { s.bits.set(g.tree.objects[v]) })
	for o, v := range g.tree.vertices {
		if o%checkInterval == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if v != 0 && gone.has(v) && !g.ownVertex(uint32(o)) {
			s.bits.set(uint32(o))
		}
	}
	return nil
}
