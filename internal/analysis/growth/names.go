package growth

import (
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// The kinds of steps of a path.
const (
	KindRoot     = "gc_root"
	KindStatic   = "static_field"
	KindInstance = "instance_field"
	KindEntry    = "array_entry"
	KindLocal    = "local"
	// KindFinalizer is the kind of a path to objects that wait for their
	// finalizer.
	KindFinalizer = "finalizer"
)

var kinds = map[trace.EdgeKind]string{
	trace.FieldEdge: KindInstance, trace.StaticEdge: KindStatic, trace.LocalEdge: KindLocal,
	trace.ElementEdge: KindEntry, trace.ItemEdge: KindEntry, trace.ValueEdge: KindEntry, trace.NamedEdge: KindEntry,
}

// edge identifies a reference without its object: the same reference of
// different objects has the same edge.
type edge struct {
	kind, owner, name string
	// low references are followed last, so their paths are separate; inner
	// references lead into a collection whose elements have already been
	// visited.
	low, inner bool
}

// names assigns numbers to the edges and classes of all dumps of a series.
// Numbers start at 1 where 0 means none.
type names struct {
	edges      map[edge]uint32
	classes    map[string]uint32
	edgeList   []edge
	classNames []string
}

func newNames() *names {
	return &names{
		edges: map[edge]uint32{}, classes: map[string]uint32{}, edgeList: make([]edge, 1),
		classNames: make([]string, 1),
	}
}

func (n *names) edge(e edge) uint32 {
	id, ok := n.edges[e]
	if !ok {
		// The strings are cloned, because a substring would keep all strings of
		// the dump in memory.
		e.owner, e.name = strings.Clone(e.owner), strings.Clone(e.name)
		id = uint32(len(n.edgeList))
		n.edges[e] = id
		n.edgeList = append(n.edgeList, e)
	}
	return id
}

func (n *names) class(name string) uint32 {
	id, ok := n.classes[name]
	if !ok {
		name = strings.Clone(name)
		id = uint32(len(n.classNames))
		n.classes[name] = id
		n.classNames = append(n.classNames, name)
	}
	return id
}

func (n *names) root(kind hprof.SubTag, low bool) uint32 {
	return n.edge(edge{kind: KindRoot, name: kind.String(), low: low})
}
