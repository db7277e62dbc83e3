package heap

import (
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// classLinks determines the references that class records imply under the size
// model Leakgate.
type classLinks struct {
	// rooted reports whether a class object is a GC root, declared or implied.
	// References to a root do not affect retained sizes.
	rooted func(hprof.ID) bool
	// find returns the number of the object with the given ID, or none if the
	// dump does not contain it. find is nil under the size model Ahat, which
	// does not count the references of class records.
	find func(hprof.ID) uint32
}

// ofInstance returns the class object to which the instances of a class refer,
// or none if there is no such object. The instances of an array class are its
// arrays.
func (k *classLinks) ofInstance(c *class, hidden bool) uint32 {
	if k.find == nil || hidden || c.dump == nil || k.rooted(c.id) {
		return none
	}
	return k.find(c.id)
}

// classReferences holds the names that leak traces use for the references of a
// class record other than static fields.
var classReferences = [...]string{"<super>", "<loader>", "<signers>", "<protection domain>"}

// ofClass returns the IDs of the objects that a class references in its record,
// in the order of classReferences; 0 stands for a missing reference.
func ofClass(c *hprof.Class) [len(classReferences)]hprof.ID {
	return [...]hprof.ID{c.Super, c.Loader, c.Signers, c.Domain}
}

// recorded reports whether to use the references returned by ofClass. They are
// ignored if the class has static fields with the same references, as in the
// dumps that ART has written since Android 7.
func (l *layouts) recorded(c *class) bool {
	if l.links.find == nil || c.dump == nil {
		return false
	}
	for _, f := range c.dump.Statics {
		if text, ok := l.names.Get(f.Name); ok && strings.HasPrefix(text, "$class$") {
			return false
		}
	}
	return true
}

// Linked returns the class object to which an object has an implicit reference,
// if the size model has such references and the class is not a root.
func (g *Graph) Linked(o Object) (Object, bool) {
	to := g.links.classes[g.slots.at(uint32(o))]
	return Object(to), to != none && g.Model == Leakgate
}

// Implied calls f for each class of the boot class loader that the dump does
// not declare as a root; such a class is a root nevertheless.
func (g *Graph) Implied(f func(Object)) {
	for _, r := range g.roots[len(g.roots)-g.implied:] {
		f(Object(g.ids.find(r.Object)))
	}
}

// impliedRoots returns the classes of the boot class loader that no record
// declares as roots.
func (l *loader) impliedRoots(declared map[hprof.ID]bool) (list []hprof.Root) {
	for i := range l.registry.list {
		c := &l.registry.list[i]
		if c.dump != nil && c.dump.Loader == 0 && !declared[c.id] {
			list = append(list, hprof.Root{Kind: hprof.SubRootStickyClass, Object: c.id, Frame: -1})
		}
	}
	return list
}
