package android

import (
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Owner is who keeps an object: the nearest of its dominators that is no part of
// java.* or android.graphics, so that a bitmap's owner is a view, a cache or an
// activity and not a map's node. Where all dominators are such parts it is the
// nearest of them.
type Owner struct {
	Object hprof.ID `json:"object"`
	// Class is that of the object, or the class that the object is.
	Class string `json:"class"`
	// Static tells that the owner is a class, by its static fields.
	Static bool `json:"static,omitempty"`
}

// highest bounds the dominators that are asked: a list may be a million long.
const highest = 1024

// owner gives nil for what only GC roots hold, and for what is not reachable.
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

// plumbing tells whether a class is one that everybody uses to keep things.
func plumbing(class string) bool {
	if strings.HasPrefix(class, "java.") || strings.HasPrefix(class, "android.graphics.") {
		return true
	}
	// Arrays of primitives, and those of anything, keep things for somebody too.
	return strings.HasSuffix(class, "[]")
}
