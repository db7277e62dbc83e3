package trace

import (
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// EdgeKind is the kind of a reference, according to what holds it.
type EdgeKind uint8

const (
	// FieldEdge and StaticEdge use the indexes of Outbound.Places; ElementEdge
	// is an element of an array.
	FieldEdge EdgeKind = iota
	StaticEdge
	ElementEdge
	// ItemEdge is an element of a collection with an index, ValueEdge an
	// element of a map with a key, and NamedEdge an element of a collection
	// that uses the same name, such as "key()", for all its elements.
	ItemEdge
	ValueEdge
	NamedEdge
	// LocalEdge is a local variable of a thread.
	LocalEdge
)

// Edge is one reference as seen by a search.
type Edge struct {
	To   heap.Object
	Kind EdgeKind
	// Place is the index of the field or of the element.
	Place uint32
	// Low references are followed only when no other references are left:
	// references that are known leaks of a platform, and local variables, which
	// explain little.
	Low bool
	// Matcher is the matcher of a known leak; it is nil for other references.
	Matcher *Matcher
	// Inner is true for a field by which a collection holds its own tables and
	// nodes; the elements of the collection have already been visited.
	Inner bool
	// Key is the key of a ValueEdge, if HasKey is true. Name is the name of a
	// NamedEdge, or the name of the field if a FieldEdge's field belongs to
	// another object.
	Key    heap.Object
	HasKey bool
	Name   string
}

// Rules define how references are read.
type Rules struct {
	// Matchers selects references that are treated specially; later matchers
	// take precedence.
	Matchers []Matcher
	// Collections lists the platform's collections, which take precedence over
	// Java's own.
	Collections []Collection
	// ThreadName returns the name of a thread; it may be nil.
	ThreadName func(heap.Object) string
	// Number returns the value of an integer field if the value is known;
	// Number may be nil.
	Number func(heap.Object, Member) (int64, bool)
	// Without holds the names of collection classes that are read like any
	// other object.
	Without []string
	// If Subclasses is true, a subclass is read like the collection that it
	// extends, and queues, trees and wrappers of java.util are also treated as
	// collections. Shark reads them like any other object.
	Subclasses bool
	// Records adds the references of class records: from an object to its
	// class, and from a class to its superclass and its loader. The search
	// follows them after all other references. Shark does not follow them.
	Records bool
	// Leaves makes the search also follow the references of strings and boxed
	// values.
	Leaves bool
	// AllRoots adds the GC roots that Shark skips: interned strings, unknown
	// roots and those of the virtual machine. The search starts at them last.
	AllRoots bool
}

// Reader reads the references of objects in Shark's order: the elements of a
// collection first, then fields by name. It skips ignored references, and the
// references of strings and boxed values. It is not safe for concurrent use.
type Reader struct {
	graph    *heap.Graph
	outbound *heap.Outbound
	rules    Rules
	// kinds describes the classes, by number.
	kinds []kind
	// statics holds, for each class object with special static fields, the
	// actions for its static fields, indexed by field.
	statics map[heap.Object][]action
	globals map[string]*Matcher
	// matchers holds the matchers of fields; matching holds the classes that
	// they name.
	matchers map[matched]*Matcher
	matching map[string]bool
	// collections holds, for each class name, the collections that may describe
	// the class, in the order of their definition.
	collections map[string][]*Collection
	threads     map[heap.Object]thread
	roots       []Root
	// firsts holds the objects to which a First leads.
	firsts map[heap.Object]bool
	// flattened holds the collections read so far; steps is the total number of
	// their nodes and elements; plain holds the collections that are read like
	// other objects.
	flattened, plain bits
	steps            int64
}

// kind holds the information about a class.
type kind struct {
	known bool
	// asked is true if compiled has been determined; compiled is true if a
	// compiler chose the name of the class.
	asked, compiled bool
	// leaf is true if the references of the class's objects are not followed;
	// thread is true for a class of threads.
	leaf, thread bool
	// actions is indexed by field; it is nil if the class has no special
	// fields.
	actions    []action
	collection *shape
	// members holds the indexes of the fields that have been requested by class
	// and name.
	members map[Member]int
	layout  layout
}

// action is the special treatment of one field.
type action struct {
	ignored bool
	matcher *Matcher
}

// thread lists the local variables of a thread.
type thread struct {
	locals  []heap.Object
	serial  uint32
	matcher *Matcher
}

// NewReader returns a reader. The graph and its outbound references must stay
// open.
func NewReader(g *heap.Graph, b *heap.Outbound, rules Rules) *Reader {
	r := &Reader{
		graph: g, outbound: b, rules: rules, kinds: make([]kind, g.ClassCount()), statics: map[heap.Object][]action{},
		globals: map[string]*Matcher{}, threads: map[heap.Object]thread{},
	}
	words := (g.Objects + 63) / 64
	r.flattened, r.plain = make(bits, words), make(bits, words)
	r.rules.Collections = slices.Concat(rules.Collections, collections)
	if rules.Subclasses {
		r.rules.Collections = append(r.rules.Collections, moreCollections...)
	}
	r.indexMatchers()
	r.indexCollections()
	r.findRoots()
	r.findStatics()
	r.findFirsts()
	return r
}

// wrappers lists the classes of boxed values.
var wrappers = []string{"java.lang.Boolean", "java.lang.Character", "java.lang.Float", "java.lang.Double",
	"java.lang.Byte", "java.lang.Short", "java.lang.Integer", "java.lang.Long"}

// leafClasses lists the classes whose objects' references are not followed,
// because they do not explain what holds an object (Shark:
// FieldInstanceReferenceReader, ObjectArrayReferenceReader).
var leafClasses = func() map[string]bool {
	m := map[string]bool{"java.lang.String": true}
	for _, w := range wrappers {
		m[w], m[w+"[]"] = true, true
	}
	return m
}()

// kind returns the information about a class, computing it when the class first
// occurs.
func (r *Reader) kind(o heap.Object) *kind {
	n := r.graph.ClassNumber(o)
	k := &r.kinds[n]
	if k.known {
		return k
	}
	k.known = true
	names := r.graph.Hierarchy(n)
	if len(names) == 0 {
		return k
	}
	k.leaf = leafClasses[names[0]] && !r.rules.Leaves
	k.thread = slices.Contains(names, "java.lang.Thread")
	places := r.outbound.PlacesOf(n)
	k.actions = r.actions(names, places, InstanceField)
	k.collection = r.collection(names, places)
	return k
}

// actions finds the special fields of a class. For each field, the matcher of
// the nearest class in the hierarchy applies; if that class has several
// matchers, the last one applies.
func (r *Reader) actions(names []string, places []heap.Place, of PatternKind) []action {
	var list []action
	names = r.named(names)
	for i, p := range places {
		m := r.matcher(names, p.Name, of)
		skipped := m == nil && of == StaticField && slices.Contains(overheads, p.Name)
		if m == nil && !skipped {
			continue
		}
		if list == nil {
			list = make([]action, len(places))
		}
		list[i] = action{ignored: skipped || m.Ignored, matcher: m}
	}
	return list
}

// overheads lists static fields that do not exist in the source: the sizes that
// ART hides in the dump of a class, and constants of a JVM.
var overheads = []string{"$staticOverhead", "$classOverhead", "<resolved_references>"}

// matched is the key for looking up a matcher of fields.
type matched struct {
	kind         PatternKind
	class, field string
}

// indexMatchers indexes the matchers of fields; if several have the same key,
// the last one is used.
func (r *Reader) indexMatchers() {
	r.matchers, r.matching = map[matched]*Matcher{}, map[string]bool{}
	for i := range r.rules.Matchers {
		m := &r.rules.Matchers[i]
		r.matchers[matched{m.Kind, m.Class, m.Name}] = m
		r.matching[m.Class] = true
	}
}

func (r *Reader) matcher(names []string, field string, of PatternKind) *Matcher {
	for _, class := range names {
		if m := r.matchers[matched{of, class, field}]; m != nil {
			return m
		}
	}
	return nil
}

// named returns the classes of a hierarchy that matchers name, without
// duplicates: there are few of them, even if a dump declares many superclasses.
func (r *Reader) named(hierarchy []string) (names []string) {
	for _, class := range hierarchy {
		if r.matching[class] && !slices.Contains(names, class) {
			names = append(names, class)
		}
	}
	return names
}

// findStatics finds the class objects that have special static fields.
func (r *Reader) findStatics() {
	r.outbound.Classes(func(o heap.Object, places []heap.Place) {
		if list := r.actions([]string{r.graph.ClassName(o)}, places, StaticField); list != nil {
			r.statics[o] = list
		}
	})
}

// findFirsts finds the objects to which a First leads.
func (r *Reader) findFirsts() {
	r.firsts = map[heap.Object]bool{}
	for i := range r.rules.Collections {
		c := &r.rules.Collections[i]
		if c.Shape != First {
			continue
		}
		for _, class := range c.Classes {
			for _, o := range r.graph.Exactly(class) {
				if to, ok := r.member(o, c.Head); ok {
					r.firsts[to] = true
				}
			}
		}
	}
}

// Read calls visit with each reference of an object.
func (r *Reader) Read(o heap.Object, visit func(Edge)) {
	if r.graph.IsClass(o) {
		r.static(o, visit)
		return
	}
	r.instance(o, visit)
	if r.rules.Records {
		r.record(o, visit)
	}
}

func (r *Reader) instance(o heap.Object, visit func(Edge)) {
	k := r.kind(o)
	if k.leaf {
		return
	}
	if t, ok := r.locals(o, k); ok {
		t.read(visit)
	} else if k.collection != nil {
		r.elements(o, k.collection, visit)
	}
	r.fields(o, k, visit)
}

// compiled reports whether a compiler chose the name of an instance's class.
func (r *Reader) compiled(o heap.Object, class string) bool {
	k := &r.kinds[r.graph.ClassNumber(o)]
	if !k.asked {
		k.asked, k.compiled = true, isCompiled(class)
	}
	return k.compiled
}

// classReference is the name that traces show for an object's reference to its
// class.
const classReference = "<class>"

func (r *Reader) record(o heap.Object, visit func(Edge)) {
	if to, ok := r.graph.Linked(o); ok {
		visit(Edge{To: to, Kind: FieldEdge, Low: true, Name: classReference})
	}
}

// leaf reports whether the references of an object are not followed, as for a
// string or a boxed value.
func (r *Reader) leaf(o heap.Object) bool { return !r.graph.IsClass(o) && r.kind(o).leaf }

func (r *Reader) static(o heap.Object, visit func(Edge)) {
	actions, places := r.statics[o], r.outbound.Places(o)
	for f := r.outbound.Of(o); f.Next(); {
		record := places[f.Place].Record
		if record && !r.rules.Records {
			continue
		}
		e := Edge{To: f.To, Kind: StaticEdge, Place: f.Place, Low: record}
		if actions == nil || actions[f.Place].apply(&e) {
			visit(e)
		}
	}
}

// apply applies the special treatment of a reference; it returns false if the
// reference is ignored.
func (a action) apply(e *Edge) bool {
	if a.matcher != nil {
		e.Low, e.Matcher = true, a.matcher
	}
	return !a.ignored
}

func (r *Reader) fields(o heap.Object, k *kind, visit func(Edge)) {
	kind := FieldEdge
	if r.outbound.PlacesOf(r.graph.ClassNumber(o)) == nil {
		kind = ElementEdge
	}
	for f := r.outbound.Of(o); f.Next(); {
		e := Edge{To: f.To, Kind: kind, Place: f.Place}
		if k.collection != nil {
			e.Inner = k.collection.inner(int(f.Place))
		}
		if k.actions == nil || k.actions[f.Place].apply(&e) {
			visit(e)
		}
	}
}

// locals returns the thread that an object represents, with its local
// variables. It returns false if the object is not a running thread.
func (r *Reader) locals(o heap.Object, k *kind) (t thread, ok bool) {
	if k.thread {
		t, ok = r.threads[o]
	}
	return t, ok
}

func (t *thread) read(visit func(Edge)) {
	if t.matcher != nil && t.matcher.Ignored {
		return
	}
	for _, o := range t.locals {
		visit(Edge{To: o, Kind: LocalEdge, Low: true, Matcher: t.matcher})
	}
}

// Owner returns the class that is shown with a reference: the class that
// declares the field, or the object's class.
func (r *Reader) Owner(o heap.Object, e Edge) string {
	switch e.Kind {
	case FieldEdge, StaticEdge:
		if places := r.outbound.Places(o); e.Name == "" && int(e.Place) < len(places) {
			return places[e.Place].Class
		}
	}
	return r.graph.Class(o)
}

// Field returns the name of a field. For other references, it returns the
// string that represents them in a fingerprint, which is the same for all
// elements of arrays and collections.
func (r *Reader) Field(o heap.Object, e Edge) string {
	switch e.Kind {
	case FieldEdge, StaticEdge:
		if places := r.outbound.Places(o); e.Name == "" && int(e.Place) < len(places) {
			return places[e.Place].Name
		}
		return e.Name
	case LocalEdge:
		return "<Java Local>"
	}
	return "[x]"
}

var rootNames = map[hprof.SubTag]string{
	hprof.SubRootJNIGlobal: "JniGlobal", hprof.SubRootJNILocal: "JniLocal", hprof.SubRootJavaFrame: "JavaFrame",
	hprof.SubRootNativeStack: "NativeStack",
	hprof.SubRootStickyClass: "StickyClass", hprof.SubRootThreadBlock: "ThreadBlock",
	hprof.SubRootMonitorUsed:  "MonitorUsed",
	hprof.SubRootThreadObject: "ThreadObject", hprof.SubRootJNIMonitor: "JniMonitor",
}
