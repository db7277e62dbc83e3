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

// sharer is a static field, or a group of GC roots of one kind and class, that
// holds many objects together with other sharers. Each sharer alone keeps the
// objects alive. Therefore, the objects are dominated by the class loader of
// the classes that declare the fields, or by nothing; neither helps the
// developer of the app.
type sharer struct {
	// name is CLASS.FIELD, or KIND CLASS for GC roots.
	name string
	// objects are what the field references, or the GC roots of that name.
	objects []heap.Object
	root    bool
	// found is the number of visited objects to which the sharer leads.
	found int
}

const (
	// mostSharers is the maximum number of sharers that are named. Objects with
	// more sharers are infrastructure, for which naming the class loader is
	// just as helpful.
	mostSharers = 3
	// sharerReach is the maximum number of objects that are visited in a search
	// for the holders of one object. sharerDegree is the maximum number of
	// holders that are followed from each visited object. Only nearby static
	// fields are relevant.
	sharerReach  = 2048
	sharerDegree = 256
)

// sharedAccumulations searches for sharers of accumulations that are held by a
// class loader or dominated by nothing. If two or three sharers are found, it
// replaces the accumulation of the class loader, or adds the one that nothing
// dominates.
func (d *dump) sharedAccumulations(ctx context.Context, list []accumulation, o heap.AccumulationOptions,
	reachable int64) ([]accumulation, error) {
	candidates, err := d.graph.SharedAccumulations(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("find accumulations: %w", err)
	}
	var shared []*heap.SharedAccumulation
	var of [][]sharer
	budget := &heap.VisitBudget{Left: mostWeighed}
	for i := range candidates {
		p := &candidates[i]
		sharers, err := d.sharers(ctx, p, budget)
		if err != nil {
			return nil, fmt.Errorf("find holders: %w", err)
		}
		if sharers == nil {
			continue
		}
		shared, of = append(shared, p), append(of, sharers)
	}
	if len(shared) == 0 {
		return list, nil
	}
	if err := d.graph.FillSharedAccumulations(ctx, o, shared); err != nil {
		return nil, fmt.Errorf("find accumulations: %w", err)
	}
	for i, p := range shared {
		list = slices.DeleteFunc(list, func(a accumulation) bool {
			return !p.Top && a.Object == p.Object && a.Class == p.Class && a.Root == 0
		})
		a := accumulation{
			Accumulation: p.Accumulation, Share: float64(p.Size.Total()) / float64(reachable), Sharers: of[i],
		}
		a.Object = of[i][0].objects[0]
		a.addDominators(d.graph)
		list = append(list, a)
	}
	slices.SortStableFunc(list,
		func(a, b accumulation) int { return cmp.Compare(b.Retained.Total(), a.Retained.Total()) })
	return list, nil
}

// sharers returns the two or three sharers that each lead to at least half of
// the accumulated objects. Fields come before GC roots, and both groups are
// sorted by the number of objects, largest first. It returns nil if the
// dominator of the objects holds them directly. It also returns nil if the
// sharers include GC roots and removing all sharers would free less than half
// of the bytes.
func (d *dump) sharers(ctx context.Context, p *heap.SharedAccumulation, budget *heap.VisitBudget) ([]sharer, error) {
	met := map[string]*sharer{}
	for _, o := range p.Sample {
		near, err := d.nearHolders(o, p)
		if err != nil || near == nil {
			return nil, err
		}
		for name, of := range near {
			s := met[name]
			if s == nil {
				s = &sharer{name: name, root: of.root}
				met[name] = s
			}
			s.found++
			s.add(of.objects...)
		}
	}
	var list []sharer
	for _, s := range met {
		if 2*s.found >= len(p.Sample) {
			list = append(list, *s)
		}
	}
	if len(list) < 2 || len(list) > mostSharers {
		return nil, nil
	}
	slices.SortFunc(list, func(a, b sharer) int {
		if a.root != b.root {
			return map[bool]int{true: 1, false: -1}[a.root]
		}
		return cmp.Or(cmp.Compare(b.found, a.found), strings.Compare(a.name, b.name))
	})
	if !list[len(list)-1].root {
		return list, nil
	}
	free, err := d.graph.Cost(ctx, placesOf(list), budget)
	if err != nil || 2*free.Size.Total() < p.Size.Total() {
		return nil, err
	}
	return list, nil
}

// add adds objects that the sharer does not have yet. A field may reference
// different objects in different class loaders, and a kind of GC root may have
// one object per thread.
func (s *sharer) add(objects ...heap.Object) {
	for _, o := range objects {
		if !slices.Contains(s.objects, o) && len(s.objects) < sharerDegree {
			s.objects = append(s.objects, o)
		}
	}
}

// nearHolders returns, by name, the static fields and GC roots from which
// references lead to an object. It returns nil in two cases: the dominator of
// the accumulated objects also leads to the object by other paths, or the
// object is held by a GC root whose kind is not in rootsAccumulated.
func (d *dump) nearHolders(o heap.Object, p *heap.SharedAccumulation) (map[string]*sharer, error) {
	near, met, queue := map[string]*sharer{}, map[heap.Object]bool{o: true}, []heap.Object{o}
	hold := func(name string, o heap.Object, root bool) {
		if near[name] == nil {
			near[name] = &sharer{name: name, root: root}
		}
		near[name].add(o)
	}
	for len(queue) > 0 && len(met) < sharerReach {
		x := queue[0]
		queue = queue[1:]
		if kind := d.rootKind(x); p.Top && kind != 0 {
			if !slices.Contains(rootsAccumulated, kind) {
				return nil, nil
			}
			hold(kind.String()+" "+d.graph.Class(x), x, true)
			continue
		}
		holders, _, err := d.graph.Holders(x, sharerDegree)
		if err != nil {
			return nil, err
		}
		for _, h := range holders {
			switch {
			case d.graph.IsClass(h):
				if name := d.staticField(h, x); name != "" {
					hold(name, x, false)
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

// staticField returns the name of the static field of a class that references
// an object, or "" if there is none.
func (d *dump) staticField(class, o heap.Object) string {
	for _, v := range d.graph.StaticValues(class, 1<<16) {
		if v.Type == hprof.Object && v.InDump && v.Object == o {
			return d.graph.ClassName(class) + "." + v.Name
		}
	}
	return ""
}

// rootKind returns the kind of GC root of an object, or 0 if the object is not
// a root. If an object is a root of several kinds, rootKind returns the
// longest-lived kind.
func (d *dump) rootKind(o heap.Object) hprof.SubTag {
	if d.roots == nil {
		d.roots = map[heap.Object]hprof.SubTag{}
		rank := func(kind hprof.SubTag) int {
			if at := slices.Index(rootsAccumulated, kind); at >= 0 {
				return at
			}
			return len(rootsAccumulated)
		}
		d.graph.Roots(func(r hprof.Root, x heap.Object) {
			if old := d.roots[x]; old == 0 || rank(r.Kind) < rank(old) {
				d.roots[x] = r.Kind
			}
		})
	}
	return d.roots[o]
}
