package heap

import (
	"context"
	"errors"
)

// order is what the depth-first search finds. Vertices are what it reaches, in
// preorder from 1; 0 stands above all GC roots.
type order struct {
	// parents is the vertex from which each was found.
	parents []uint32
	// joins heads the list of further references to each vertex, 0 if there are
	// none: those that the search did not come by. Most objects have none, so a list
	// of these costs less than all inbound references would, in memory and in time.
	joins []uint32
	pairs []pair
	count uint32
}

// search numbers what the GC roots reach through strong and soft references.
// Graph.tree.vertices gets the vertex of each object; for a leaf with one reference,
// which gets no vertex of its own, that of the object that references it.
func (l *loader) search(ctx context.Context) (err error) {
	n := l.links.inner.len() + l.links.shared.count() + 1
	l.tree.vertices, err = array[uint32](&l.arena, l.ids.len())
	if err != nil {
		return err
	}
	o := &l.order
	if o.parents, err = array[uint32](&l.arena, n); err != nil {
		return err
	}
	if o.joins, err = array[uint32](&l.arena, n); err != nil {
		return err
	}
	if o.pairs, err = array[pair](&l.arena, l.ReferenceCount+int64(len(l.roots))+1); err != nil {
		return err
	}
	path, err := array[frame](&l.arena, l.links.inner.len()+1)
	if err != nil {
		return err
	}
	if err := l.visitBoth(ctx, path); err != nil {
		return err
	}
	drop(&l.arena, &path)
	if err := l.weaken(ctx); err != nil {
		return err
	}
	if !l.options.KeepReferences {
		drop(&l.arena, &l.links.bytes)
		drop(&l.arena, &l.links.starts)
		drop(&l.arena, &l.links.high)
	}
	return nil
}

// visitBoth runs the search, and beside it the walk that tells strong from soft.
func (l *loader) visitBoth(ctx context.Context, path []frame) error {
	s, err := l.newStrong()
	if err != nil || s == nil {
		return errors.Join(err, l.visit(ctx, path))
	}
	walked := make(chan error, 1)
	go func() { walked <- s.walk(ctx) }()
	err = errors.Join(l.visit(ctx, path), <-walked)
	if err != nil {
		return err
	}
	return s.rest()
}

// patience is how many steps a loop takes between two looks at its context.
const patience = 1 << 20

// visit is the search. It is one function because it is most of the time that a
// large dump takes.
func (l *loader) visit(ctx context.Context, path []frame) error {
	vertices, parents, joins, pairs := l.tree.vertices, l.order.parents, l.order.joins, l.order.pairs
	bytes, shared := l.links.bytes, l.links.shared
	count, used := uint32(0), uint32(0)
	for _, r := range l.roots {
		root := l.ids.find(r.Object)
		if v := vertices[root]; v != 0 {
			if parents[v] != 0 {
				used++
				pairs[used] = pair{0, joins[v]}
				joins[v] = used
			}
			continue
		}
		count++
		vertices[root] = count
		if !l.links.inner.bits.has(root) {
			continue
		}
		depth := 0
		path[0] = frame{l.links.start(root), root, count}
		for depth >= 0 {
			f := &path[depth]
			at, object, number := f.at, f.object, f.number
			for {
				var code uint64
				if code, at = uvarint(bytes, at); code == 0 {
					depth--
					break
				}
				to, leaf := target(object, code)
				if leaf && !shared.has(to) {
					vertices[to] = number
					continue
				}
				if v := vertices[to]; v != 0 {
					// Nothing above a child of the top dominates it, and a parent needs no
					// second reference.
					if p := parents[v]; p != 0 && p != number {
						used++
						pairs[used] = pair{number, joins[v]}
						joins[v] = used
					}
					continue
				}
				count++
				if count%patience == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
				vertices[to] = count
				parents[count] = number
				if leaf {
					continue
				}
				f.at = at
				depth++
				path[depth] = frame{l.links.start(to), to, count}
				break
			}
		}
	}
	l.order.count = count
	return nil
}
