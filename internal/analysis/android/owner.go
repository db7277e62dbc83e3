package android

import (
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Owner describes what keeps an object alive: the nearest of its dominators
// that is neither an array nor in java.* or android.graphics. The owner of a
// bitmap is therefore a view, a cache or an activity instead of a map's node.
// If every dominator is of these kinds, the owner is the nearest dominator.
type Owner struct {
	Object hprof.ID `json:"object"`
	// Class is the class of the owner, or, if the owner is itself a class, the
	// name of that class.
	Class string `json:"class"`
	// Static reports whether the owner is a class, which holds the object
	// through its static fields.
	Static bool `json:"static,omitempty"`
}

// highest is the maximum number of dominators that are visited: a list may have
// a million nodes.
const highest = 1024

// owner returns the owner of an object. It returns nil if only GC roots hold
// the object, and for an unreachable object.
func (p *plan) owner(o heap.Object) *Owner {
	nearest, ok := p.graph.Dominator(o)
	if !ok {
		return nil
	}
	found, at := nearest, nearest
	for range highest {
		if !plumbing(p.rawClass(at)) {
			found = at
			break
		}
		if at, ok = p.graph.Dominator(at); !ok {
			break
		}
	}
	return &Owner{p.id(found), p.class(found), p.graph.IsClass(found)}
}

func (p *plan) rawClass(o heap.Object) string {
	if p.graph.IsClass(o) {
		return p.graph.ClassName(o)
	}
	return p.graph.Class(o)
}

// plumbing reports whether objects of a class only hold data on behalf of
// others: the classes of java.* and android.graphics, and arrays.
func plumbing(class string) bool {
	if strings.HasPrefix(class, "java.") || strings.HasPrefix(class, "android.graphics.") {
		return true
	}
	// Arrays of any type also hold data on behalf of other objects.
	return strings.HasSuffix(class, "[]")
}
