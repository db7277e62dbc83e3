package android

import (
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Owner is what keeps an object: the nearest of its dominators that is not in
// java.* or android.graphics, so that a bitmap's owner is a view, a cache or an
// activity and not a map's node. If all dominators are in these packages, it is
// the nearest dominator.
type Owner struct {
	Object hprof.ID `json:"object"`
	// Class is the class of the object; for a class object, the name of that
	// class.
	Class string `json:"class"`
	// Static is true if the owner is a class, which holds the object by its
	// static fields.
	Static bool `json:"static,omitempty"`
}

// highest bounds the number of dominators that are visited: a list may have a
// million nodes.
const highest = 1024

// owner returns nil for objects that only GC roots hold, and for unreachable
// ones.
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

// plumbing reports whether a class is a general container.
func plumbing(class string) bool {
	if strings.HasPrefix(class, "java.") || strings.HasPrefix(class, "android.graphics.") {
		return true
	}
	// Arrays of primitives or of Object also hold data on behalf of other
	// objects.
	return strings.HasSuffix(class, "[]")
}
