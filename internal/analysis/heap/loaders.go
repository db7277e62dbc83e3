package heap

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// DuplicateClass describes classes with the same name that different class
// loaders have loaded.
type DuplicateClass struct {
	Class string
	// Loaders holds the existing loaders. Objects holds these loaders and all
	// classes that they loaded. Classes is the number of different names of
	// these classes.
	Loaders []Object
	Objects []Object
	Classes int
}

// LoadedByMany returns classes that at least the given number of loaders have
// loaded, not counting the boot class loader. For each set of loaders it
// returns one class: the one with the most instances.
func (g *Graph) LoadedByMany(least int) (list []DuplicateClass) {
	type named struct{ loaders []hprof.ID }
	byName, byLoader := map[string]*named{}, map[hprof.ID][]Object{}
	instances := map[string]int64{}
	for _, r := range g.rows {
		instances[r.Class] = r.Instances
	}
	for i := range g.registry.list {
		c := &g.registry.list[i]
		if c.dump == nil || c.dump.Loader == 0 {
			continue
		}
		if byName[c.name] == nil {
			byName[c.name] = &named{}
		}
		byName[c.name].loaders = append(byName[c.name].loaders, c.dump.Loader)
		if o, ok := g.Find(c.id); ok {
			byLoader[c.dump.Loader] = append(byLoader[c.dump.Loader], o)
		}
	}
	sets := map[string]*DuplicateClass{}
	for name, n := range byName {
		slices.Sort(n.loaders)
		n.loaders = slices.Compact(n.loaders)
		if len(n.loaders) < least || strings.HasSuffix(name, "[]") {
			continue
		}
		var key strings.Builder
		for _, id := range n.loaders {
			key.WriteString(hexadecimal(id))
		}
		l := sets[key.String()]
		if l == nil {
			l = &DuplicateClass{Class: name}
			for _, id := range n.loaders {
				if o, ok := g.Find(id); ok {
					l.Loaders = append(l.Loaders, o)
				}
				l.Objects = append(l.Objects, byLoader[id]...)
			}
			l.Objects = append(l.Objects, l.Loaders...)
			sets[key.String()] = l
		}
		l.Classes++
		if a, b := instances[name], instances[l.Class]; a > b || a == b && name < l.Class {
			l.Class = name
		}
	}
	for _, l := range sets {
		list = append(list, *l)
	}
	slices.SortFunc(list, func(a, b DuplicateClass) int {
		return cmp.Or(cmp.Compare(len(b.Loaders), len(a.Loaders)), cmp.Compare(a.Class, b.Class))
	})
	return list
}
