package trace

import (
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// EdgeKind says what holds a reference.
type EdgeKind uint8

const (
	// FieldEdge and StaticEdge are numbered by Outbound.Places, ElementEdge is of an array.
	FieldEdge EdgeKind = iota
	StaticEdge
	ElementEdge
	// ItemEdge is the element of a collection with an index, ValueEdge that of a map with a
	// key, NamedEdge one that the collection calls by one name, such as "key()".
	ItemEdge
	ValueEdge
	NamedEdge
	// LocalEdge is a local variable of a thread.
	LocalEdge
)

// Edge is one reference as a search goes along it.
type Edge struct {
	To   heap.Object
	Kind EdgeKind
	// Place is the number of the field or of the element.
	Place uint32
	// Low references are followed when there are no others left: those that a platform
	// is known to leak by, and local variables, which say little.
	Low bool
	// Matcher is that of a known leak, nil for others.
	Matcher *Matcher
	// Inner is a field by which a collection, whose elements came before, holds its own
	// tables and nodes.
	Inner bool
	// Key is that of a ValueEdge, where HasKey; Name what a NamedEdge is called, and the field
	// of a FieldEdge that is not its object's own.
	Key    heap.Object
	HasKey bool
	Name   string
}

// Rules say how references are read.
type Rules struct {
	// Matchers are the references that are special, the later before the earlier.
	Matchers []Matcher
	// Collections are those of the platform, in front of Java's own.
	Collections []Collection
	// ThreadName gives the name of a thread; it may be nil.
	ThreadName func(heap.Object) string
	// Number gives the value of an integer field, where it is known; it may be nil.
	Number func(heap.Object, Member) (int64, bool)
	// Without are classes of collections that are read as any other object.
	Without []string
	// Subclasses are read as the collection that they extend, and queues, trees and wrappers
	// of java.util are collections, too. Shark reads them as any other object.
	Subclasses bool
	// Records follows what class records reference, last of all: an object its class, a class
	// its superclass and its loader. Shark does not.
	Records bool
	// Leaves follows also what strings and boxed values hold.
	Leaves bool
	// AllRoots begins also at the GC roots that Shark leaves out, last: interned strings,
	// unknown ones and those of the virtual machine.
	AllRoots bool
}

// Reader reads the references of objects in the order in which Shark does: the
// elements of a collection first, then fields by name. Ignored references are left out,
// and what strings and boxed values hold. Not for concurrent use.
type Reader struct {
	graph    *heap.Graph
	outbound *heap.Outbound
	rules    Rules
	// kinds are the classes, by number.
	kinds []kind
	// statics are the special static fields of a class object, by place.
	statics map[heap.Object][]action
	globals map[string]*Matcher
	// matchers are those of fields, matching the classes that they name.
	matchers map[matched]*Matcher
	matching map[string]bool
	// collections are those of each class, in their order.
	collections map[string][]*Collection
	threads     map[heap.Object]thread
	roots       []Root
	// firsts are what a First leads to.
	firsts map[heap.Object]bool
	// flattened are the collections that were read, steps how far their parts went together;
	// plain are those that are read as other objects.
	flattened, plain bits
	steps            int64
}

// kind is what is known of a class.
type kind struct {
	known bool
	// asked tells that compiled is known: whether a compiler gave the class its name.
	asked, compiled bool
	// leaf is a class of whose objects nothing is followed, thread one of threads.
	leaf, thread bool
	// actions are by place; nil where nothing is special.
	actions    []action
	collection *shape
	// members are where fields of other classes are that were asked for.
	members map[Member]int
	layout  layout
}

// action says what to do with a place.
type action struct {
	ignored bool
	matcher *Matcher
}

// thread is what the locals of a thread are.
type thread struct {
	locals  []heap.Object
	serial  uint32
	matcher *Matcher
}

// NewReader makes a reader. The graph and what is outbound of it must stay open.
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

// wrappers are the classes of boxed values.
var wrappers = []string{"java.lang.Boolean", "java.lang.Character", "java.lang.Float", "java.lang.Double",
	"java.lang.Byte", "java.lang.Short", "java.lang.Integer", "java.lang.Long"}

// leafClasses are those of whose objects nothing is followed: what they hold says
// nothing of who holds it (Shark: FieldInstanceReferenceReader, ObjectArrayReferenceReader).
var leafClasses = func() map[string]bool {
	m := map[string]bool{"java.lang.String": true}
	for _, w := range wrappers {
		m[w], m[w+"[]"] = true, true
	}
	return m
}()

// kind learns what a class is about when it is first met.
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

// actions finds what is special about the places of a class: the nearest class of the
// hierarchy that a matcher names decides, and of its matchers the last.
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

// overheads are no fields: sizes that ART hides in the dump of a class, and the
// constants of a JVM's.
var overheads = []string{"$staticOverhead", "$classOverhead", "<resolved_references>"}

// matched is what a matcher of fields is found by.
type matched struct {
	kind         PatternKind
	class, field string
}

// indexMatchers makes the matchers of fields ready to be found: of several the last.
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

// named gives the classes of a hierarchy that matchers name, each once: few, however
// many superclasses a dump says there are.
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

// findFirsts finds what a First leads to.
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

// compiled tells whether a compiler gave an instance's class its name.
func (r *Reader) compiled(o heap.Object, class string) bool {
	k := &r.kinds[r.graph.ClassNumber(o)]
	if !k.asked {
		k.asked, k.compiled = true, isCompiled(class)
	}
	return k.compiled
}

// classReference is what the reference of an object to its class is called.
const classReference = "<class>"

func (r *Reader) record(o heap.Object, visit func(Edge)) {
	if to, ok := r.graph.Linked(o); ok {
		visit(Edge{To: to, Kind: FieldEdge, Low: true, Name: classReference})
	}
}

// leaf tells whether nothing is followed from an object: a string, a boxed value.
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

// apply marks a reference; false for one that is ignored.
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

// locals are those of a thread that runs.
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

// Owner gives the class that a reference is shown with: the one that declares a field,
// or that of the object.
func (r *Reader) Owner(o heap.Object, e Edge) string {
	switch e.Kind {
	case FieldEdge, StaticEdge:
		if places := r.outbound.Places(o); e.Name == "" && int(e.Place) < len(places) {
			return places[e.Place].Class
		}
	}
	return r.graph.Class(o)
}

// Field gives the name of a field, and what stands for a reference that is none in a
// fingerprint: elements of arrays and collections are alike.
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
	hprof.SubRootJNIGlobal: "JniGlobal", hprof.SubRootJNILocal: "JniLocal", hprof.SubRootJavaFrame: "JavaFrame", hprof.SubRootNativeStack: "NativeStack",
	hprof.SubRootStickyClass: "StickyClass", hprof.SubRootThreadBlock: "ThreadBlock", hprof.SubRootMonitorUsed: "MonitorUsed",
	hprof.SubRootThreadObject: "ThreadObject", hprof.SubRootJNIMonitor: "JniMonitor",
}
