package trace_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// plain is a second implementation of package trace, which reads the records of
// the dump by IDs and names, without optimizations: a literal translation of
// Shark's readers and search.
type plain struct {
	*hproftest.Graph
	rules   trace.Rules
	classes map[hprof.ID]hprof.Class
}

func newPlain(tb testing.TB, dump []byte, rules trace.Rules) *plain {
	tb.Helper()
	_, records, err := hproftest.Parse(dump)
	if err != nil {
		tb.Fatal(err)
	}
	g, err := hproftest.ReadGraph(dump)
	if err != nil {
		tb.Fatal(err)
	}
	p := &plain{Graph: g, rules: rules, classes: map[hprof.ID]hprof.Class{}}
	for _, r := range records {
		if r.Sub == hprof.SubClassDump {
			p.classes[r.Dump.ID] = r.Dump
		}
	}
	return p
}

// plainEdge is a reference.
type plainEdge struct {
	to           hprof.ID
	kind         trace.EdgeKind
	owner, field string
	// shown is the index, key or name that a trace shows for an element.
	shown   string
	low     bool
	matcher string
}

func (e plainEdge) String() string {
	return fmt.Sprintf("%d %s.%s %s -> %#x low=%t %s", e.kind, e.owner, e.field, e.shown, uint64(e.to), e.low,
		e.matcher)
}

func (p *plain) class(id hprof.ID) string { return heap.NormalName(p.Nodes[id].Class) }

func (p *plain) isClass(id hprof.ID) bool { return p.Nodes[id].Kind == hprof.SubClassDump }

// above returns the classes of an instance, from its own class up.
func (p *plain) above(id hprof.ID) (list []hprof.Class) {
	for c := p.Nodes[id].Refs["<class>"]; c != 0; c = p.classes[c].Super {
		list = append(list, p.classes[c])
	}
	return list
}

func (p *plain) isA(id hprof.ID, class string) bool {
	return slices.ContainsFunc(p.above(id), func(c hprof.Class) bool { return p.class(c.ID) == class })
}

// value returns the value of a field that the given class declares.
func (p *plain) value(id hprof.ID, field string) (uint64, bool) {
	n := p.Nodes[id]
	if n == nil || n.Kind != hprof.SubInstance {
		return 0, false
	}
	class, name := field[:strings.LastIndexByte(field, '.')], field[strings.LastIndexByte(field, '.')+1:]
	if v, ok := n.Fields[class+"."+name]; ok {
		return v, true
	}
	v, ok := n.Fields[strings.ReplaceAll(class, ".", "/")+"."+name]
	return v, ok
}

// ref returns the ID that a field references, or 0 if that object is not in the
// dump.
func (p *plain) ref(id hprof.ID, field string) hprof.ID {
	v, _ := p.value(id, field)
	if p.Nodes[hprof.ID(v)] == nil {
		return 0
	}
	return hprof.ID(v)
}

func (p *plain) number(id hprof.ID, field string) (int64, bool) {
	v, ok := p.value(id, field)
	return int64(int32(v)), ok
}

func (p *plain) threadName(id hprof.ID) string { return p.Text(p.ref(id, "java.lang.Thread.name")) }

var boxes = []string{"Boolean", "Character", "Float", "Double", "Byte", "Short", "Integer", "Long"}

func (p *plain) leaf(id hprof.ID) bool {
	if p.isClass(id) {
		return false
	}
	name, ok := strings.CutPrefix(strings.TrimSuffix(p.class(id), "[]"), "java.lang.")
	return ok && (slices.Contains(boxes, name) || p.class(id) == "java.lang.String")
}

// matched returns the matcher of a field: that of the nearest class or, if
// several matchers name this class, the last of them.
func (p *plain) matched(classes []string, field string, kind trace.PatternKind) (pattern string, found, ignored bool) {
	for _, class := range classes {
		for _, m := range slices.Backward(p.rules.Matchers) {
			if m.Kind == kind && m.Class == class && (m.Name == field || kind == trace.NativeGlobal) {
				return m.String(), true, m.Ignored
			}
		}
	}
	return "", false, false
}

// edges returns the references of an object.
func (p *plain) edges(id hprof.ID) (list []plainEdge) {
	n := p.Nodes[id]
	switch {
	case p.isClass(id):
		return p.statics(id)
	case p.leaf(id):
		return nil
	case n.Kind == hprof.SubObjectArray:
		for i, e := range n.Elements {
			if p.Nodes[e] != nil {
				list = append(list,
					plainEdge{to: e, kind: trace.ElementEdge, owner: p.class(id), field: "[x]", shown: fmt.Sprint(i)})
			}
		}
		return list
	case n.Kind != hprof.SubInstance:
		return nil
	}
	if serial, ok := p.serial(id); ok && p.isA(id, "java.lang.Thread") {
		list = p.locals(id, serial)
	} else {
		list = p.elements(id)
	}
	return append(list, p.fields(id)...)
}

func (p *plain) statics(id hprof.ID) (list []plainEdge) {
	for _, s := range p.classes[id].Statics {
		name := p.Strings[s.Name]
		if s.Type != hprof.Object || p.Nodes[hprof.ID(s.Value)] == nil || name == "$classOverhead" ||
			name == "$staticOverhead" || name == "<resolved_references>" {
			continue
		}
		pattern, found, ignored := p.matched([]string{p.class(id)}, name, trace.StaticField)
		if !ignored {
			list = append(list,
				plainEdge{
					to: hprof.ID(s.Value), kind: trace.StaticEdge, owner: p.class(id), field: name, low: found,
					matcher: pattern,
				})
		}
	}
	return list
}

func (p *plain) fields(id hprof.ID) (list []plainEdge) {
	var classes []string
	for _, c := range p.above(id) {
		classes = append(classes, p.class(c.ID))
	}
	for _, c := range p.above(id) {
		if p.class(c.ID) == "java.lang.Object" {
			continue
		}
		for _, f := range c.Fields {
			name := p.Strings[f.Name]
			to := p.ref(id, p.class(c.ID)+"."+name)
			if f.Type != hprof.Object || to == 0 {
				continue
			}
			pattern, found, ignored := p.matched(classes, name, trace.InstanceField)
			if !ignored {
				list = append(list,
					plainEdge{
						to: to, kind: trace.FieldEdge, owner: p.class(c.ID), field: name, low: found, matcher: pattern,
					})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b plainEdge) int { return cmp.Compare(a.field, b.field) })
	return list
}

func (p *plain) serial(id hprof.ID) (serial uint32, ok bool) {
	for _, r := range p.Roots {
		if r.Kind == hprof.SubRootThreadObject && r.Object == id {
			serial, ok = r.Thread, true
		}
	}
	return serial, ok
}

func (p *plain) locals(id hprof.ID, serial uint32) (list []plainEdge) {
	var matcher *trace.Matcher
	for i := range p.rules.Matchers {
		if m := &p.rules.Matchers[i]; m.Kind == trace.JavaLocal && m.Name == p.threadName(id) {
			matcher = m
		}
	}
	if matcher != nil && matcher.Ignored {
		return nil
	}
	for _, r := range p.Roots {
		if r.Kind == hprof.SubRootJavaFrame && r.Thread == serial && p.Nodes[r.Object] != nil {
			e := plainEdge{to: r.Object, kind: trace.LocalEdge, owner: p.class(id), field: "<Java Local>", low: true}
			if matcher != nil {
				e.matcher = matcher.String()
			}
			list = append(list, e)
		}
	}
	return list
}

// elements returns the elements of a collection.
func (p *plain) elements(id hprof.ID) (list []plainEdge) {
	add := func(kind trace.EdgeKind, to hprof.ID, shown string) {
		if to != 0 {
			list = append(list, plainEdge{to: to, kind: kind, owner: p.class(id), field: "[x]", shown: shown})
		}
	}
	array := func(elements hprof.ID, size int64) {
		for i, e := range p.Nodes[elements].Elements {
			if int64(i) < size && p.Nodes[e] != nil {
				add(trace.ItemEdge, e, fmt.Sprint(i))
			}
		}
	}
	pair := func(key, value hprof.ID) {
		add(trace.NamedEdge, key, "key()")
		shown := "null"
		if key != 0 {
			shown = fmt.Sprintf("%#x", uint64(key))
		}
		add(trace.ValueEdge, value, shown)
	}
	switch class := p.class(id); class {
	case "java.util.ArrayList":
		size, _ := p.number(id, "java.util.ArrayList.size")
		for _, name := range []string{"elementData", "array"} {
			if a := p.ref(id, "java.util.ArrayList."+name); a != 0 {
				array(a, size)
			}
		}
	case "java.util.concurrent.CopyOnWriteArrayList":
		for _, name := range []string{"elements", "array"} {
			if a := p.ref(id, "java.util.concurrent.CopyOnWriteArrayList."+name); a != 0 {
				array(a, 1<<40)
			}
		}
	case "java.util.LinkedList":
		for i, node := range p.chain(p.ref(id, "java.util.LinkedList.first"), "java.util.LinkedList$Node.next") {
			add(trace.ItemEdge, p.ref(node, "java.util.LinkedList$Node.item"), fmt.Sprint(i))
		}
		for i, node := range p.chain(p.ref(id, "java.util.LinkedList.voidLink"), "java.util.LinkedList$Link.next") {
			add(trace.ItemEdge, p.ref(node, "java.util.LinkedList$Link.data"), fmt.Sprint(i-1))
		}
	case "java.util.HashMap", "java.util.LinkedHashMap":
		for _, n := range p.hashNodes(id) {
			pair(p.hashKey(n), p.first(n, "value"))
		}
	case "java.util.HashSet", "java.util.LinkedHashSet":
		for _, name := range []string{"map", "backingMap"} {
			if m := p.ref(id, "java.util.HashSet."+name); m != 0 {
				for _, n := range p.hashNodes(m) {
					add(trace.NamedEdge, p.hashKey(n), "element()")
				}
			}
		}
	case "java.util.concurrent.ConcurrentHashMap":
		const node = "java.util.concurrent.ConcurrentHashMap$Node."
		for _, n := range p.table(p.ref(id, class+".table"), node+"next") {
			pair(p.ref(n, node+"key"), p.ref(n, node+"val"))
		}
	case "java.util.WeakHashMap":
		for _, n := range p.table(p.ref(id, class+".table"), "java.util.WeakHashMap$Entry.next") {
			if key := p.ref(n, "java.lang.ref.Reference.referent"); key != 0 {
				add(trace.ValueEdge, p.ref(n, "java.util.WeakHashMap$Entry.value"), fmt.Sprintf("%#x", uint64(key)))
			}
		}
	}
	return list
}

// chain returns the nodes up to the end of the chain, or up to a node that was
// visited before.
func (p *plain) chain(first hprof.ID, next string) (list []hprof.ID) {
	for n := first; n != 0 && !slices.Contains(list, n); n = p.ref(n, next) {
		list = append(list, n)
	}
	return list
}

func (p *plain) table(array hprof.ID, next string) (list []hprof.ID) {
	if array == 0 {
		return nil
	}
	for _, e := range p.Nodes[array].Elements {
		if p.Nodes[e] != nil {
			list = append(list, p.chain(e, next)...)
		}
	}
	return list
}

var hashNodeClasses = []string{"java.util.HashMap$Node", "java.util.HashMap$Entry", "java.util.HashMap$HashMapEntry"}

func (p *plain) first(node hprof.ID, field string) (to hprof.ID) {
	for _, class := range hashNodeClasses {
		to = cmp.Or(to, p.ref(node, class+"."+field))
	}
	return to
}

func (p *plain) hashKey(node hprof.ID) hprof.ID { return p.first(node, "key") }

func (p *plain) hashNodes(m hprof.ID) (list []hprof.ID) {
	table := p.ref(m, "java.util.HashMap.table")
	if table == 0 {
		return nil
	}
	for _, e := range p.Nodes[table].Elements {
		for n := e; p.Nodes[n] != nil; n = p.first(n, "next") {
			list = append(list, n)
		}
	}
	return list
}

// plainRoot is a GC root with its sort keys.
type plainRoot struct {
	hprof.Root
	low     bool
	matcher string
}

// kindNames holds the names by which Shark sorts the kinds of roots.
var kindNames = map[hprof.SubTag]string{
	hprof.SubRootJNIGlobal: "JniGlobal", hprof.SubRootJNILocal: "JniLocal", hprof.SubRootJavaFrame: "JavaFrame",
	hprof.SubRootNativeStack: "NativeStack",
	hprof.SubRootStickyClass: "StickyClass", hprof.SubRootThreadBlock: "ThreadBlock",
	hprof.SubRootMonitorUsed:  "MonitorUsed",
	hprof.SubRootThreadObject: "ThreadObject", hprof.SubRootJNIMonitor: "JniMonitor",
}

func (p *plain) roots() (list []plainRoot) {
	serials := map[uint32]bool{}
	for _, r := range p.Roots {
		if r.Kind == hprof.SubRootThreadObject {
			serials[r.Thread] = true
		}
	}
	sticky := map[hprof.ID]bool{}
	for _, r := range p.Roots {
		if kindNames[r.Kind] == "" || p.Nodes[r.Object] == nil || r.Kind == hprof.SubRootJavaFrame &&
			serials[r.Thread] {
			continue
		}
		// A class that is a root twice counts once.
		if r.Kind == hprof.SubRootStickyClass && sticky[r.Object] {
			continue
		}
		sticky[r.Object] = sticky[r.Object] || r.Kind == hprof.SubRootStickyClass
		root := plainRoot{Root: r, low: r.Kind == hprof.SubRootJavaFrame}
		if r.Kind == hprof.SubRootJNIGlobal {
			pattern, found, ignored := p.matched([]string{p.class(r.Object)}, "", trace.NativeGlobal)
			if ignored {
				continue
			}
			root.low, root.matcher = found, pattern
		}
		list = append(list, root)
	}
	rank := func(r plainRoot) int {
		if r.Kind == hprof.SubRootThreadObject {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b plainRoot) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(kindNames[b.Kind], kindNames[a.Kind]),
			strings.Compare(p.class(a.Object), p.class(b.Object)))
	})
	return list
}

// plainNode is an object that was reached, from a root or from another object.
type plainNode struct {
	id     hprof.ID
	root   plainRoot
	parent *plainNode
	edge   plainEdge
}

// plainSearch is Shark 3's search (PrioritizingShortestPathFinder.kt).
type plainSearch struct {
	*plain
	targets map[hprof.ID]bool
	through bool
	// high and low are the queues; visited contains all objects that were ever
	// in a queue.
	high, low []*plainNode
	visited   map[hprof.ID]bool
	lasting   bool
	found     []*plainNode
	// credit is the memory credited to each seed; it includes the targets that
	// are reachable only through this seed.
	credit map[hprof.ID][]hprof.ID
	also   map[hprof.ID][]hprof.ID
}

func (p *plain) search(targets map[hprof.ID]bool, through bool) *plainSearch {
	s := &plainSearch{
		plain: p, targets: targets, through: through, visited: map[hprof.ID]bool{}, credit: map[hprof.ID][]hprof.ID{},
		also: map[hprof.ID][]hprof.ID{},
	}
	for _, r := range p.roots() {
		s.enqueue(&plainNode{id: r.Object, root: r}, r.low)
	}
	for len(s.high)+len(s.low) > 0 {
		n := s.poll()
		if targets[n.id] {
			s.found = append(s.found, n)
			if !through {
				continue
			}
		}
		for _, e := range p.edges(n.id) {
			s.enqueue(&plainNode{id: e.to, parent: n, edge: e}, e.low)
		}
	}
	if !through {
		s.share()
	}
	return s
}

func (s *plainSearch) poll() (n *plainNode) {
	if len(s.high) > 0 {
		n, s.high = s.high[0], s.high[1:]
		return n
	}
	s.lasting = true
	n, s.low = s.low[0], s.low[1:]
	return n
}

func (s *plainSearch) enqueue(n *plainNode, low bool) {
	met := s.visited[n.id]
	s.visited[n.id] = true
	if s.leaf(n.id) && !s.targets[n.id] {
		return
	}
	low = low || s.lasting
	waits := slices.IndexFunc(s.low, func(x *plainNode) bool { return x.id == n.id })
	switch {
	case !met && low:
		s.low = append(s.low, n)
	case !met:
		s.high = append(s.high, n)
	case !low && waits >= 0:
		s.low = slices.Delete(s.low, waits, waits+1)
		s.high = append(s.high, n)
	}
}

// share runs Shark's second phase, which credits memory to the seeds.
func (s *plainSearch) share() {
	for t := range s.targets {
		delete(s.visited, t)
	}
	seeds := map[hprof.ID]bool{}
	for _, n := range s.found {
		seeds[n.id] = true
	}
	for _, n := range s.found {
		delete(seeds, n.id)
		s.visited[n.id] = true
		for queue := []hprof.ID{n.id}; len(queue) > 0; queue = queue[1:] {
			s.credit[n.id] = append(s.credit[n.id], queue[0])
			for _, e := range s.edges(queue[0]) {
				if seeds[e.to] || s.visited[e.to] {
					continue
				}
				if s.targets[e.to] {
					s.also[n.id] = append(s.also[n.id], e.to)
				}
				s.visited[e.to] = true
				queue = append(queue, e.to)
			}
		}
	}
}

// path formats the path to a node, one line per step.
func (n *plainNode) path() (lines []string) {
	for ; n.parent != nil; n = n.parent {
		lines = append(lines, fmt.Sprintf("%#x %s", uint64(n.parent.id), n.edge))
	}
	lines = append(lines, fmt.Sprintf("%s %t %s", n.root.Kind, n.root.low, n.root.matcher))
	slices.Reverse(lines)
	return lines
}
