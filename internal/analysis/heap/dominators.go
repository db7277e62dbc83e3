package heap

import "context"

// dominance finds the immediate dominator of each vertex: Lengauer and Tarjan,
// "A fast algorithm for finding dominators in a flowgraph" (TOPLAS 1979), with
// path compression only, which takes O(m log n) on any graph. SEMI-NCA is as
// fast on most heaps, but climbs the tree once for each vertex with several
// references: on two linked lists of the same million elements, this takes
// quadratic time.
//
// Four arrays serve seven purposes: a vertex needs its position in the list of
// sources only until its semidominator is known, the head of its bucket only
// until it gets a label, and its position in a bucket only until its dominator
// is known.
type dominance struct {
	// ancestors initially holds the parents in the search tree, which are then
	// compressed.
	ancestors []uint32
	// semis initially holds the start of each vertex's sources.
	semis []uint32
	// labels initially holds the heads of the buckets; a bucket is the list of
	// vertices with the same semidominator.
	labels []uint32
	// idoms initially holds, for each vertex, the next vertex in its bucket.
	idoms   []uint32
	sources []uint32
	path    []uint32
}

func (l *loader) dominate(ctx context.Context) (err error) {
	n := int64(l.order.count) + 1
	d := &dominance{ancestors: l.order.parents, semis: l.order.joins.starts, sources: l.order.joins.sources}
	if d.labels, err = array[uint32](&l.arena, n); err != nil {
		return err
	}
	if d.idoms, err = array[uint32](&l.arena, n); err != nil {
		return err
	}
	if l.options.Inbound {
		if err := l.inbound.keep(&l.arena, &l.order); err != nil {
			return err
		}
	}
	// Meanwhile, another core counts the classes.
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		l.countClasses()
	}()
	err = d.find(ctx, l.order.count)
	<-counted
	if err != nil {
		return err
	}
	if !l.options.Inbound {
		drop(&l.arena, &d.sources)
	}
	drop(&l.arena, &d.labels)
	drop(&l.arena, &d.semis)
	drop(&l.arena, &d.ancestors)
	l.order = order{count: l.order.count}
	return l.buildTree(d.idoms)
}

// find computes the dominators. It processes the vertices in descending order.
func (d *dominance) find(ctx context.Context, count uint32) error {
	end := uint32(len(d.sources))
	for w := count; w > 0; w-- {
		if w%checkInterval == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		parent := d.ancestors[w]
		semi := parent
		start := d.semis[w]
		for _, v := range d.sources[start:end] {
			if v > w {
				v = d.semis[d.eval(v, w+1)]
			}
			semi = min(semi, v)
		}
		end = start
		d.semis[w], d.labels[w] = semi, w
		if semi == parent {
			d.idoms[w] = parent
		} else {
			d.idoms[w] = d.labels[semi]
			d.labels[semi] = w
		}
		v := d.labels[parent]
		d.labels[parent] = 0
		for v != 0 {
			next := d.idoms[v]
			d.idoms[v] = parent
			if u := d.eval(v, w); d.semis[u] < parent {
				d.idoms[v] = u
			}
			v = next
		}
	}
	for w := uint32(1); w <= count; w++ {
		if d.idoms[w] != d.semis[w] {
			d.idoms[w] = d.idoms[d.idoms[w]]
		}
	}
	return nil
}

// eval returns the vertex with the least semidominator on the path from v up to
// the last linked ancestor; the linked vertices are those whose number is at
// least first.
func (d *dominance) eval(v, first uint32) uint32 {
	top := d.ancestors[v]
	if top < first {
		return d.labels[v]
	}
	path := append(d.path[:0], v)
	for d.ancestors[top] >= first {
		path = append(path, top)
		top = d.ancestors[top]
	}
	// The vertex top has no linked ancestor; the vertices below it are
	// compressed from the top down.
	best, least := d.labels[top], d.semis[d.labels[top]]
	end := d.ancestors[top]
	for i := len(path) - 1; i >= 0; i-- {
		u := path[i]
		d.ancestors[u] = end
		if s := d.semis[d.labels[u]]; s <= least {
			best, least = d.labels[u], s
		} else {
			d.labels[u] = best
		}
	}
	d.path = path
	return best
}
