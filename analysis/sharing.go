package analysis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// sharer is a static field that holds many objects together with others: without it they
// would stay. Then the class loader that has the classes dominates them, or nothing does, and
// neither says anything about the app.
type sharer struct {
	// name is CLASS.FIELD, object what the field references.
	name   string
	object heap.Object
	// found is in how many of the objects that were asked.
	found int
}

const (
	// mostSharers bounds the static fields that are named: what more of them share is
	// infrastructure, and the loader no worse an answer.
	mostSharers = 3
	// sharerReach bounds the holders that are visited for one object, sharerDegree those of
	// one holder: the static fields that are near are those to look at.
	sharerReach  = 2048
	sharerDegree = 256
)

// sharedAccumulations replaces those that a class loader holds, and adds those that nothing
// dominates, if it finds the two or three static fields that hold them.
func (d *dump) sharedAccumulations(ctx context.Context, list []accumulation, o heap.AccumulationOptions, reachable int64) ([]accumulation, error) {
	piles, err := d.graph.SharedPiles(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("find accumulations: %w", err)
	}
	for i := range piles {
		p := &piles[i]
		sharers, err := d.sharers(p)
		if err != nil {
			return nil, fmt.Errorf("find holders: %w", err)
		}
		if len(sharers) < 2 || len(sharers) > mostSharers {
			continue
		}
		list = slices.DeleteFunc(list, func(a accumulation) bool {
			return !p.Top && a.Object == p.Object && a.Class == p.Class && a.Root == 0
		})
		a := accumulation{Accumulation: p.Accumulation, Share: float64(p.Size.Total()) / float64(reachable), Sharers: sharers}
		a.Object = sharers[0].object
		a.climb(d.graph)
		list = append(list, a)
	}
	slices.SortStableFunc(list, func(a, b accumulation) int { return cmp.Compare(b.Retained.Total(), a.Retained.Total()) })
	return list, nil
}

// sharers are the static fields that lead to half of the objects of a pile or more, those
// first that lead to most. There are none where what dominates the pile holds it directly.
func (d *dump) sharers(p *heap.SharedPile) ([]sharer, error) {
	met := map[string]*sharer{}
	for _, o := range p.Sample {
		near, err := d.staticHolders(o, p)
		if err != nil || near == nil {
			return nil, err
		}
		for name, object := range near {
			s := met[name]
			if s == nil {
				s = &sharer{name: name, object: object}
				met[name] = s
			}
			s.found++
		}
	}
	var list []sharer
	for _, s := range met {
		if 2*s.found >= len(p.Sample) {
			list = append(list, *s)
		}
	}
	slices.SortFunc(list, func(a, b sharer) int {
		return cmp.Or(cmp.Compare(b.found, a.found), strings.Compare(a.name, b.name))
	})
	return list, nil
}

// staticHolders are the static fields from which references lead to an object, by their
// names, with what each references; nil where what dominates the pile leads to it by other
// ways than classes.
func (d *dump) staticHolders(o heap.Object, p *heap.SharedPile) (map[string]heap.Object, error) {
	near, met, queue := map[string]heap.Object{}, map[heap.Object]bool{o: true}, []heap.Object{o}
	for len(queue) > 0 && len(met) < sharerReach {
		x := queue[0]
		queue = queue[1:]
		if p.Top && d.isRoot(x) {
			return nil, nil
		}
		holders, _, err := d.graph.Holders(x, sharerDegree)
		if err != nil {
			return nil, err
		}
		for _, h := range holders {
			switch {
			case d.graph.IsClass(h):
				if name := d.staticField(h, x); name != "" {
					near[name] = x
				}
			case !p.Top && h == p.Object:
				return nil, nil
			case !met[h]:
				met[h] = true
				queue = append(queue, h)
			}
		}
	}
	return near, nil
}

// staticField names the static field of a class that references an object, "" if none does.
func (d *dump) staticField(class, o heap.Object) string {
	for _, v := range d.graph.StaticValues(class, 1<<16) {
		if v.Type == hprof.Object && v.There && v.Object == o {
			return d.graph.ClassName(class) + "." + v.Name
		}
	}
	return ""
}

// isRoot reports whether an object is a GC root itself.
func (d *dump) isRoot(o heap.Object) bool {
	if d.roots == nil {
		d.roots = map[heap.Object]bool{}
		d.graph.Roots(func(_ hprof.Root, x heap.Object) { d.roots[x] = true })
	}
	return d.roots[o]
}
