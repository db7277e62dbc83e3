package hproftest

import (
	"fmt"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Graph is a parsed dump as a plain graph of references, in which classes and
// fields are identified by name. It is for tests that compute results by brute
// force, and for small dumps.
type Graph struct {
	Header  hprof.Header
	Nodes   map[hprof.ID]*Node
	Roots   []hprof.Root
	Strings map[hprof.ID]string
	// Loaded lists the class names in the LOAD_CLASS records, as the runtime
	// writes them.
	Loaded map[hprof.ID]string
}

// Node is an object of a Graph.
type Node struct {
	ID   hprof.ID
	Kind hprof.SubTag
	// Class is the name of the object's class; for a class object, it is the
	// name of the class that the object represents.
	Class, Heap string
	// Size is the size as AOSP's ahat counts it: the declared size of an
	// instance, the elements of an array, the static fields of a class.
	Size int64
	// Fields holds the values by declaring class and name, such as a.B.mField;
	// for a class object, it holds the static fields. IDs of objects are also
	// in Refs.
	Fields map[string]uint64
	Refs   map[string]hprof.ID
	// Elements holds the elements of an array of objects; Data holds those of a
	// primitive array.
	Elements []hprof.ID
	Type     hprof.Type
	Data     []byte
	super    hprof.ID
	class    hprof.ID
	declared []hprof.Field
}

// ReadGraph reads a dump. If the file contains several dumps, they are read as
// one. It returns an error if the length of an instance does not match the
// fields of its classes.
func ReadGraph(data []byte) (*Graph, error) {
	header, records, err := Parse(data)
	if err != nil {
		return nil, err
	}
	g := &Graph{
		Header: header, Nodes: map[hprof.ID]*Node{}, Strings: map[hprof.ID]string{}, Loaded: map[hprof.ID]string{},
	}
	for i := range records {
		g.name(&records[i])
	}
	for i := range records {
		g.add(&records[i])
	}
	for _, n := range g.Nodes {
		if err := g.resolve(n); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (g *Graph) id(b []byte) (v hprof.ID) {
	for _, c := range b[:g.Header.IDSize] {
		v = v<<8 | hprof.ID(c)
	}
	return v
}

func (g *Graph) name(r *Record) {
	ids := g.Header.IDSize
	switch r.Tag {
	case hprof.TagString:
		g.Strings[g.id(r.Body)] = hprof.DecodeString(r.Body[ids:])
	case hprof.TagLoadClass:
		g.Loaded[g.id(r.Body[4:])] = g.Strings[g.id(r.Body[8+ids:])]
	}
}

func (g *Graph) add(r *Record) {
	n := &Node{
		ID: r.Object, Kind: r.Sub, Heap: g.Strings[r.Name], Type: r.Type, Data: r.Data, class: r.Class,
		Fields: map[string]uint64{}, Refs: map[string]hprof.ID{},
	}
	switch {
	case r.Sub.IsRoot():
		g.Roots = append(g.Roots, r.Root)
		return
	case r.Sub == hprof.SubClassDump:
		g.addClass(n, &r.Dump)
	case r.Sub == hprof.SubObjectArray:
		for b := r.Data; len(b) > 0; b = b[g.Header.IDSize:] {
			n.Elements = append(n.Elements, g.id(b))
		}
		n.Size = int64(len(r.Data))
	case r.Sub == hprof.SubPrimitiveArray || r.Sub == hprof.SubPrimitiveArrayNoData:
		n.Size = int64(r.Count) * int64(r.Type.Size(g.Header.IDSize))
		n.Class = r.Type.String() + "[]"
	case r.Sub != hprof.SubInstance:
		return
	}
	g.Nodes[n.ID] = n
}

func (g *Graph) addClass(n *Node, c *hprof.Class) {
	n.Class, n.super, n.declared = g.Loaded[c.ID], c.Super, c.Fields
	n.class = hprof.ID(c.InstanceSize)
	for _, s := range c.Statics {
		n.set(g.Strings[s.Name], s.Type, s.Value)
		n.Size += int64(s.Type.Size(g.Header.IDSize))
	}
	// References in the class record itself are included, too.
	n.set("<super>", hprof.Object, uint64(c.Super))
	n.set("<loader>", hprof.Object, uint64(c.Loader))
}

func (n *Node) set(name string, t hprof.Type, v uint64) {
	n.Fields[name] = v
	if t == hprof.Object {
		n.Refs[name] = hprof.ID(v)
	}
}

// resolve reads the fields of an instance and names the classes of objects.
func (g *Graph) resolve(n *Node) error {
	if n.Kind != hprof.SubInstance && n.Kind != hprof.SubObjectArray {
		return nil
	}
	class := g.Nodes[n.class]
	if class == nil || class.Kind != hprof.SubClassDump {
		return fmt.Errorf("object 0x%x: no class 0x%x", uint64(n.ID), uint64(n.class))
	}
	n.Class = class.Class
	n.Refs["<class>"] = n.class
	if n.Kind == hprof.SubObjectArray {
		return nil
	}
	n.Size = int64(class.class)
	b := n.Data
	for c := class; c != nil; c = g.Nodes[c.super] {
		for _, f := range c.declared {
			size := f.Type.Size(g.Header.IDSize)
			if len(b) < size {
				return fmt.Errorf("object 0x%x: the fields of %s do not fit into %d bytes", uint64(n.ID), n.Class,
					len(n.Data))
			}
			v := uint64(0)
			for _, x := range b[:size] {
				v = v<<8 | uint64(x)
			}
			b = b[size:]
			n.set(c.Class+"."+g.Strings[f.Name], f.Type, v)
		}
	}
	if len(b) > 0 {
		return fmt.Errorf("object 0x%x: %s leaves %d of %d bytes", uint64(n.ID), n.Class, len(b), len(n.Data))
	}
	return nil
}

// Field returns the value of an object's field, given the field's plain name.
// If several classes declare the name, the field of the most derived class is
// returned; for a class object, Field returns a static field.
func (g *Graph) Field(id hprof.ID, name string) (uint64, bool) {
	n := g.Nodes[id]
	if n == nil {
		return 0, false
	}
	if v, ok := n.Fields[name]; ok || n.Kind == hprof.SubClassDump {
		return v, ok
	}
	for c := g.Nodes[n.class]; c != nil; c = g.Nodes[c.super] {
		if v, ok := n.Fields[c.Class+"."+name]; ok {
			return v, true
		}
	}
	return 0, false
}

// Path follows several fields, starting at an object: for example,
// mBoundApplication.processName.
func (g *Graph) Path(id hprof.ID, path string) hprof.ID {
	for _, name := range strings.Split(path, ".") {
		v, _ := g.Field(id, name)
		id = hprof.ID(v)
	}
	return id
}

// Class returns the ID of the class object of the class with the given name, or
// 0.
func (g *Graph) Class(name string) hprof.ID {
	for id, n := range g.Nodes {
		if n.Kind == hprof.SubClassDump && n.Class == name {
			return id
		}
	}
	return 0
}

// Text returns the content of a java.lang.String, which is stored in a byte[]
// or char[].
func (g *Graph) Text(id hprof.ID) string {
	v := g.Nodes[g.Path(id, "value")]
	if v == nil {
		return ""
	}
	var out []rune
	for i := 0; i < len(v.Data); i += v.Type.Size(8) {
		if v.Type == hprof.Char {
			out = append(out, rune(v.Data[i])<<8|rune(v.Data[i+1]))
		} else {
			out = append(out, rune(v.Data[i]))
		}
	}
	return string(out)
}

// weakClasses lists the classes that hold their referent weakly. Soft
// references count as strong.
var weakClasses = []string{
	"java.lang.ref.WeakReference", "java.lang.ref.PhantomReference", "java.lang.ref.FinalizerReference",
	"java.lang.ref.Finalizer",
}

// held calls visit with the objects that the given object references.
func (g *Graph) held(n *Node, visit func(hprof.ID)) {
	for _, e := range n.Elements {
		visit(e)
	}
	weak := false
	for c := g.Nodes[n.class]; c != nil && n.Kind == hprof.SubInstance; c = g.Nodes[c.super] {
		for _, name := range weakClasses {
			weak = weak || strings.ReplaceAll(c.Class, "/", ".") == name
		}
	}
	for name, to := range n.Refs {
		if !weak || !strings.HasSuffix(name, ".referent") {
			visit(to)
		}
	}
}

// Reachable returns the objects that are reachable from the roots on paths that
// avoid the given objects.
func (g *Graph) Reachable(without ...hprof.ID) map[hprof.ID]bool {
	seen := map[hprof.ID]bool{0: true}
	for _, id := range without {
		seen[id] = true
	}
	var next []hprof.ID
	visit := func(id hprof.ID) {
		if !seen[id] && g.Nodes[id] != nil {
			seen[id] = true
			next = append(next, id)
		}
	}
	for _, r := range g.Roots {
		visit(r.Object)
	}
	for len(next) > 0 {
		n := g.Nodes[next[len(next)-1]]
		next = next[:len(next)-1]
		g.held(n, visit)
	}
	for _, id := range append(without, 0) {
		delete(seen, id)
	}
	return seen
}

// Retained returns the bytes that would be freed together with the given
// objects: the bytes of the given objects and of all objects that are reachable
// only through them.
func (g *Graph) Retained(ids ...hprof.ID) (bytes int64) {
	rest := g.Reachable(ids...)
	for id := range g.Reachable() {
		if !rest[id] {
			bytes += g.Nodes[id].Size
		}
	}
	return bytes
}
