package trace_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// brief formats the references of an object: elements as [index], [key] or
// [name], fields by their names, each followed by the name of its target.
func (w *world) brief(o heap.Object, names map[string]hproftest.Ref) string {
	called := map[heap.Object]string{}
	for name, r := range names {
		called[w.object(r)] = name
	}
	var list []string
	w.reader.Read(o, func(e trace.Edge) {
		text := w.reader.Field(o, e)
		switch e.Kind {
		case trace.ItemEdge, trace.ElementEdge:
			text = fmt.Sprintf("[%d]", e.Place)
		case trace.NamedEdge:
			text = "[" + e.Name + "]"
		case trace.ValueEdge:
			text = "[null]"
			if e.HasKey {
				text = "[" + called[e.Key] + "]"
			}
		}
		if e.Low {
			text += "?"
		}
		if e.Inner {
			text += "."
		}
		list = append(list, text+"="+called[e.To])
	})
	return strings.Join(list, " ")
}

// scene is a heap with three objects and their holders.
type scene struct {
	*hproftest.Heap
	a, b, c hproftest.Ref
	names   map[string]hproftest.Ref
}

func newScene(h *hproftest.Heap) *scene {
	thing := h.Declare("a.Thing", nil, "object next")
	s := &scene{Heap: h, a: h.New(thing, nil), b: h.New(thing, nil), c: h.New(thing, nil)}
	s.names = map[string]hproftest.Ref{"a": s.a, "b": s.b, "c": s.c}
	return s
}

// call assigns a name to an object.
func (s *scene) call(name string, r hproftest.Ref) hproftest.Ref {
	s.names[name] = r
	return r
}

// nodes creates instances of a class, each with a field that references the
// next one.
func (s *scene) nodes(class, next string, fields ...hproftest.Fields) (list []hproftest.Ref) {
	for i, f := range fields {
		r := s.New(s.Class(class), f)
		s.call(fmt.Sprintf("n%d", i), r)
		if i > 0 {
			s.Set(list[i-1], next, r)
		}
		list = append(list, r)
	}
	return list
}

func (s *scene) entries(class string, of ...hproftest.Ref) hproftest.Ref {
	return s.call("table", s.Objects(s.Class(class), of...))
}

// TestCollections reads the elements of collections of each shape: intact,
// empty and broken ones.
func TestCollections(t *testing.T) {
	const (
		arrayList = "java.util.ArrayList"
		linked    = "java.util.LinkedList"
		node      = "java.util.LinkedList$Node"
		hashMap   = "java.util.HashMap"
		entry     = "java.util.HashMap$Node"
		chm       = "java.util.concurrent.ConcurrentHashMap"
		bin       = "java.util.concurrent.ConcurrentHashMap$Node"
		weakMap   = "java.util.WeakHashMap"
		weak      = "java.util.WeakHashMap$Entry"
	)
	type f = hproftest.Fields
	for _, c := range []struct {
		name string
		make func(s *scene) hproftest.Ref
		want string
	}{
		{"list", func(s *scene) hproftest.Ref {
			return s.New(s.Class(arrayList),
				f{"elementData": s.call("array", s.Objects(s.Class("java.lang.Object"), s.a, 0, s.b, s.c)), "size": 3})
		}, "[0]=a [2]=b elementData.=array"},
		{"list without an array", func(s *scene) hproftest.Ref { return s.New(s.Class(arrayList), f{"size": 3}) }, ""},
		{"list with a size beyond its array", func(s *scene) hproftest.Ref {
			return s.New(s.Class(arrayList),
				f{"elementData": s.call("array", s.Objects(s.Class("java.lang.Object"), s.a)), "size": math.MaxInt32})
		}, "[0]=a elementData.=array"},
		{"list with a negative size", func(s *scene) hproftest.Ref {
			return s.New(s.Class(arrayList),
				f{"elementData": s.call("array", s.Objects(s.Class("java.lang.Object"), s.a)), "size": -1})
		}, "elementData.=array"},
		{
			"list whose array is not an array",
			func(s *scene) hproftest.Ref { return s.New(s.Class(arrayList), f{"elementData": s.a, "size": 2}) },
			"elementData.=a",
		},
		{"list as its own array", func(s *scene) hproftest.Ref {
			l := s.call("list", s.New(s.Class(arrayList), f{"size": 2}))
			s.Set(l, "elementData", l)
			return l
		}, "[0]=list elementData.=list"},
		{"list with a missing array", func(s *scene) hproftest.Ref {
			return s.New(s.Class(arrayList), f{"elementData": s.Missing(), "size": 2})
		}, ""},
		{"subclass of a list", func(s *scene) hproftest.Ref {
			c := s.Declare("a.MyList", s.Class(arrayList), "object extra")
			return s.New(c,
				f{"elementData": s.call("array", s.Objects(s.Class("java.lang.Object"), s.a)), "size": 1, "extra": s.b})
		}, "elementData=array extra=b"},
		{"linked list", func(s *scene) hproftest.Ref {
			n := s.nodes(node, "next", f{"item": s.a}, f{}, f{"item": s.b})
			return s.New(s.Class(linked), f{"first": n[0], "last": n[2]})
		}, "[0]=a [2]=b first.=n0 last=n2"},
		{"circular linked list", func(s *scene) hproftest.Ref {
			n := s.nodes(node, "next", f{"item": s.a}, f{"item": s.b})
			s.Set(n[1], "next", n[0])
			return s.New(s.Class(linked), f{"first": n[0]})
		}, "[0]=a [1]=b first.=n0"},
		{"linked list whose last node references itself", func(s *scene) hproftest.Ref {
			n := s.nodes(node, "next", f{"item": s.a})
			s.Set(n[0], "next", n[0])
			return s.New(s.Class(linked), f{"first": n[0]})
		}, "[0]=a first.=n0"},
		{"linked list of other objects", func(s *scene) hproftest.Ref {
			n := s.nodes(node, "next", f{"item": s.a})
			s.Set(n[0], "next", s.b)
			return s.New(s.Class(linked), f{"first": n[0]})
		}, "[0]=a first.=n0"},
		{"linked list with a class as node", func(s *scene) hproftest.Ref {
			c := s.Class(node)
			s.call("class", c.Ref())
			return s.New(s.Class(linked), f{"first": c})
		}, "first.=class"},
		{"map", func(s *scene) hproftest.Ref {
			n := s.nodes(entry, "next", f{"key": s.a, "value": s.b}, f{"value": s.c}, f{"key": s.c})
			return s.New(s.Class(hashMap), f{"table": s.entries(entry, 0, n[0])})
		}, "[key()]=a [a]=b [null]=c [key()]=c table.=table"},
		{"map of trees", func(s *scene) hproftest.Ref {
			linkedEntry := s.Class("java.util.LinkedHashMap$Entry")
			tree := s.Declare("java.util.HashMap$TreeNode", linkedEntry, "object parent", "object left", "object right",
				"object prev")
			n1 := s.New(tree, f{"key": s.b, "value": s.c})
			n0 := s.New(tree, f{"key": s.a, "value": s.b, "next": n1, "right": n1})
			return s.New(s.Class(hashMap), f{"table": s.entries(entry, n0)})
		}, "[key()]=a [a]=b [key()]=b [b]=c table.=table"},
		{"map of objects that are not entries", func(s *scene) hproftest.Ref {
			n := s.nodes(entry, "next", f{"key": s.b})
			return s.New(s.Class(hashMap), f{"table": s.entries("a.Thing", s.a, s.Missing(), n[0])})
		}, "[key()]=b table.=table"},
		{"concurrent map", func(s *scene) hproftest.Ref {
			n := s.nodes(bin, "next", f{"key": s.a, "val": s.b}, f{"key": s.c})
			return s.New(s.Class(chm), f{"table": s.entries(bin, n[0])})
		}, "[key()]=a [a]=b [key()]=c table.=table"},
		{"concurrent map of trees", func(s *scene) hproftest.Ref {
			tree := s.Declare("java.util.concurrent.ConcurrentHashMap$TreeNode", s.Class(bin), "object parent",
				"object left", "object right", "object prev")
			n1 := s.New(tree, f{"key": s.b, "val": s.c})
			n0 := s.New(tree, f{"key": s.a, "val": s.b, "next": n1, "right": n1})
			treeBin := s.Declare("java.util.concurrent.ConcurrentHashMap$TreeBin", s.Class(bin), "object root",
				"object first", "object waiter")
			return s.New(s.Class(chm), f{"table": s.entries(bin, s.New(treeBin, f{"first": n0, "root": n1}))})
		}, "[key()]=a [a]=b [key()]=b [b]=c table.=table"},
		{"concurrent map with a tree that references itself", func(s *scene) hproftest.Ref {
			treeBin := s.Declare("java.util.concurrent.ConcurrentHashMap$TreeBin", s.Class(bin), "object root",
				"object first")
			b := s.New(treeBin, nil)
			s.Set(b, "first", b)
			return s.New(s.Class(chm), f{"table": s.entries(bin, b)})
		}, "table.=table"},
		{"concurrent map during a resize", func(s *scene) hproftest.Ref {
			forward := s.Declare("java.util.concurrent.ConcurrentHashMap$ForwardingNode", s.Class(bin),
				"object nextTable")
			n := s.nodes(bin, "next", f{"key": s.a, "val": s.b})
			next := s.call("next", s.Objects(s.Class(bin), n[0]))
			return s.New(s.Class(chm),
				f{"table": s.entries(bin, s.New(forward, f{"nextTable": next}), n[0]), "nextTable": next})
		}, "[key()]=a [a]=b nextTable=next table.=table"},
		{"weak map", func(s *scene) hproftest.Ref {
			n := s.nodes(weak, "next", f{"referent": s.a, "value": s.b}, f{"value": s.c}, f{"referent": s.c})
			return s.New(s.Class(weakMap), f{"table": s.entries(weak, n[0])})
		}, "[a]=b table.=table"},
		{"set", func(s *scene) hproftest.Ref {
			n := s.nodes(entry, "next", f{"key": s.a, "value": s.c}, f{"key": s.b, "value": s.c})
			m := s.call("map", s.New(s.Class(hashMap), f{"table": s.entries(entry, n[0])}))
			return s.New(s.Class("java.util.HashSet"), f{"map": m})
		}, "[element()]=a [element()]=b map.=map"},
		{"set of a linked map", func(s *scene) hproftest.Ref {
			m := s.call("map", s.LinkedHashMap(s.a, s.b))
			return s.New(s.Declare("java.util.LinkedHashSet", s.Class("java.util.HashSet")), f{"map": m})
		}, "[element()]=a map.=map"},
		{
			"set without a map",
			func(s *scene) hproftest.Ref { return s.New(s.Class("java.util.HashSet"), f{"map": s.a}) }, "map.=a",
		},
		{"empty set", func(s *scene) hproftest.Ref { return s.New(s.Class("java.util.HashSet"), nil) }, ""},
		{"subclass of a set", func(s *scene) hproftest.Ref {
			return s.New(s.Declare("a.MySet", s.Class("java.util.HashSet")),
				f{"map": s.call("map", s.HashMap(s.a, s.b))})
		}, "map=map"},
		{"copy-on-write list", func(s *scene) hproftest.Ref {
			return s.New(s.Class("java.util.concurrent.CopyOnWriteArrayList"),
				f{"elements": s.call("array", s.Objects(s.Class("java.lang.Object"), s.b, s.a)), "lock": s.c})
		}, "[0]=b [1]=a elements.=array lock=c"},
	} {
		s := newScene(hproftest.Java(1))
		r := c.make(s)
		w := load(t, s.Heap, hproftest.Form{}, trace.Rules{Number: numbers})
		if got := w.brief(w.object(r), s.names); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestRing reads a list whose first nodes lead into a cycle: reading must end
// soon after all nodes were visited.
func TestRing(t *testing.T) {
	s := newScene(hproftest.Java(1))
	var fields []hproftest.Fields
	for range 100 {
		fields = append(fields, hproftest.Fields{"item": s.a})
	}
	n := s.nodes("java.util.LinkedList$Node", "next", fields...)
	s.Set(n[99], "next", n[40])
	list := s.New(s.Class("java.util.LinkedList"), hproftest.Fields{"first": n[0]})
	w := load(t, s.Heap, hproftest.Form{}, trace.Rules{})
	items := 0
	w.reader.Read(w.object(list), func(e trace.Edge) {
		if e.Kind == trace.ItemEdge {
			items++
		}
	})
	if items < 100 || items > 300 {
		t.Errorf("read %d items from 100 nodes, want 100 to 300", items)
	}
}

// TestHarmony reads lists of Apache Harmony, which are rings with a link that
// holds no element.
func TestHarmony(t *testing.T) {
	s := newScene(hproftest.Android(hproftest.Phone{SDK: 23, Harmony: true}))
	list, array := s.LinkedList(s.a, s.b), s.ArrayList(s.b, s.c)
	set := s.HashSet(s.c)
	w := load(t, s.Heap, hproftest.Form{}, trace.Rules{Number: numbers})
	for _, c := range []struct {
		r    hproftest.Ref
		want string
	}{{list, "[0]=a [1]=b voidLink.="}, {array.Ref, "[0]=b [1]=c array.="}, {set, "[element()]=c backingMap.="}} {
		if got := w.brief(w.object(c.r), s.names); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestWithoutSize checks that all elements of an array count if the number of
// valid elements is not known, and that an excluded class is not a collection.
func TestWithoutSize(t *testing.T) {
	s := newScene(hproftest.Java(1))
	l := s.New(s.Class("java.util.ArrayList"),
		hproftest.Fields{"elementData": s.call("array", s.Objects(s.Class("java.lang.Object"), s.a, s.b)), "size": 1})
	set := s.HashSet(s.a)
	w := load(t, s.Heap, hproftest.Form{}, trace.Rules{})
	if got, want := w.brief(w.object(l), s.names), "[0]=a [1]=b elementData.=array"; got != want {
		t.Errorf("without a size field: %s, want %s", got, want)
	}
	w = load(t, s.Heap, hproftest.Form{}, trace.Rules{Without: []string{"java.util.ArrayList"}})
	if got, want := w.brief(w.object(l), s.names), "elementData=array"; got != want {
		t.Errorf("excluded class: %s, want %s", got, want)
	}
	if got, want := w.brief(w.object(set), s.names), "[element()]=a map.="; got != want {
		t.Errorf("other collection: %s, want %s", got, want)
	}
}

// TestOwnCollections reads collections of platforms whose shapes differ from
// those of Java's own collections.
func TestOwnCollections(t *testing.T) {
	type m = trace.Member
	s := newScene(hproftest.Java(1))
	s.Set(s.a, "next", s.b)
	s.Set(s.b, "next", s.c)
	queue := s.New(s.Declare("a.Queue", nil, "object messages"), hproftest.Fields{"messages": s.a})
	pair := s.Declare("a.Pair", nil, "object k", "object v", "object n")
	p1 := s.New(pair, hproftest.Fields{"k": s.c, "v": s.a})
	p0 := s.call("p0", s.New(pair, hproftest.Fields{"k": s.a, "v": s.b, "n": p1}))
	pairs := s.New(s.Declare("a.Pairs", nil, "object start"), hproftest.Fields{"start": p0})
	w1 := s.call("w", s.Weak(s.b))
	target := s.New(s.Declare("a.Target", nil, "object held", "object after"),
		hproftest.Fields{"held": w1, "after": s.c})
	strong := s.New(s.Class("a.Target"), hproftest.Fields{"held": s.b})
	record := s.Declare("a.Record", nil, "object activity", "object nextIdle")
	r1 := s.call("r1", s.New(record, hproftest.Fields{"activity": s.b}))
	r0 := s.call("r0", s.New(record, hproftest.Fields{"activity": s.a, "nextIdle": r1}))
	owner := s.New(s.Declare("a.Owner", nil, "object aaa", "object news"), hproftest.Fields{"aaa": s.c, "news": r0})
	other := s.New(record, hproftest.Fields{"activity": s.c})
	var picked heap.Object
	known := &trace.Matcher{Pattern: trace.Pattern{Class: "a.Owner", Name: "news"}}
	rules := trace.Rules{
		Matchers: []trace.Matcher{
			{
				Pattern: trace.Pattern{
					Kind: trace.InstanceField, Class: "java.lang.ref.WeakReference", Name: "referent",
				}, Ignored: true,
			},
		},
		Collections: []trace.Collection{
			{
				Classes: []string{"a.Queue"}, Shape: trace.Chain, Head: m{Class: "a.Queue", Name: "messages"},
				Nodes: []trace.Node{{Class: "a.Thing", Next: "next"}},
			},
			{
				Classes: []string{"a.Pairs"}, Shape: trace.Pairs, Head: m{Class: "a.Pairs", Name: "start"},
				Name: "key()", Nodes: []trace.Node{{Class: "a.Pair", Next: "n", Key: "k", Value: "v"}},
			},
			{Classes: []string{"a.Target"}, Shape: trace.Referent, Head: m{Class: "a.Target", Name: "held"}},
			{Classes: []string{"a.Owner"}, Shape: trace.First, Head: m{Class: "a.Owner", Name: "news"}, Matcher: known},
			{
				Classes: []string{"a.Record"}, Shape: trace.FirstChain,
				Nodes: []trace.Node{{Class: "a.Record", Next: "nextIdle", Value: "activity"}},
				Only:  func(o heap.Object) bool { return o == picked }},
		},
	}
	w := load(t, s.Heap, hproftest.Form{}, rules)
	picked = w.object(s.b)
	for _, c := range []struct {
		name string
		r    hproftest.Ref
		want string
	}{
		{"chain of nodes", queue, "[0]=a [1]=b [2]=c messages.=a"},
		{"pairs", pairs, "[key()]=a [a]=b [key()]=c [c]=a start.=p0"},
		{"referent", target, "held?=b after=c held=w"},
		{"no referent", strong, "held=b"},
		{"first", owner, "news=r0 aaa=c news=r0"},
		{"chain after first", r0, "[1]=b activity=a nextIdle=r1"},
		{"chain without a first", other, "activity=c"},
	} {
		if got := w.brief(w.object(c.r), s.names); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	var matchers []*trace.Matcher
	w.reader.Read(w.object(owner), func(e trace.Edge) { matchers = append(matchers, e.Matcher) })
	if !slices.Equal(matchers, []*trace.Matcher{known, nil, nil}) {
		t.Errorf("matchers are %v, want one only for the first reference", matchers)
	}
}

// TestMatchers checks which matcher applies: that of the nearest class or, if
// several matchers name this class, the last of them. Matchers select fields by
// name, whichever class declares them.
func TestMatchers(t *testing.T) {
	h := hproftest.Java(1)
	thing := h.New(h.Declare("a.Thing", nil, "int n"), nil)
	top := h.Declare("a.Top", nil, "object x", "object y", "object z", "static object s")
	middle := h.Declare("a.Middle", top)
	low := h.Declare("a.Low", middle, "object x")
	all := hproftest.Fields{"x": thing, "y": thing, "z": thing}
	one, two, three := h.New(top, all), h.New(middle, all), h.New(low, all)
	h.SetIn(three, top, "x", thing)
	h.SetStatic(top, "s", thing)
	matcher := func(kind trace.PatternKind, class, name string, ignored bool, text string) trace.Matcher {
		return trace.Matcher{
			Pattern: trace.Pattern{Kind: kind, Class: class, Name: name}, Ignored: ignored, Description: text,
		}
	}
	w := load(t, h, hproftest.Form{Runtime: hproftest.HotSpot}, trace.Rules{Matchers: []trace.Matcher{
		matcher(trace.InstanceField, "a.Top", "x", true, "1"),
		matcher(trace.InstanceField, "a.Middle", "x", false, "2"),
		matcher(trace.InstanceField, "a.Middle", "y", false, "3"),
		matcher(trace.InstanceField, "a.Middle", "y", true, "4"),
		matcher(trace.InstanceField, "a.Low", "y", false, "5"),
		matcher(trace.InstanceField, "a.Top", "z", true, "6"),
		matcher(trace.InstanceField, "a.Top", "z", false, "7"),
		matcher(trace.StaticField, "a.Top", "x", true, "8"),
		matcher(trace.InstanceField, "a.Top", "s", true, "9"),
		matcher(trace.StaticField, "a.Top", "s", false, "10"),
	}})
	for _, c := range []struct {
		of   any
		want string
	}{
		{one, "a.Top.y a.Top.z:7"},
		{two, "a.Top.x:2 a.Top.z:7"},
		{three, "a.Low.x:2 a.Top.x:2 a.Top.y:5 a.Top.z:7"},
		{top, "a.Top.s:10"},
	} {
		o := w.object(c.of)
		var list []string
		w.reader.Read(o, func(e trace.Edge) {
			text := w.reader.Owner(o, e) + "." + w.reader.Field(o, e)
			if e.Matcher != nil {
				text += ":" + e.Matcher.Description
			}
			if e.Low != (e.Matcher != nil) {
				t.Errorf("%s has low priority: %t", text, e.Low)
			}
			list = append(list, text)
		})
		if got := strings.Join(list, " "); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestConditions checks which builds a matcher applies to.
func TestConditions(t *testing.T) {
	sdk := func(low, high int) trace.Condition { return trace.Condition{MinSDK: low, MaxSDK: high} }
	vendor := trace.Condition{MinSDK: 20, Manufacturers: []string{"LGE", "samsung"}, IDs: []string{"A1"}}
	for _, c := range []struct {
		where []trace.Condition
		build trace.Build
		want  bool
	}{
		{nil, trace.Build{}, true},
		{[]trace.Condition{{}}, trace.Build{}, true},
		{[]trace.Condition{sdk(19, 22)}, trace.Build{SDK: 19}, true},
		{[]trace.Condition{sdk(19, 22)}, trace.Build{SDK: 22}, true},
		{[]trace.Condition{sdk(19, 22)}, trace.Build{SDK: 18}, false},
		{[]trace.Condition{sdk(19, 22)}, trace.Build{SDK: 23}, false},
		{[]trace.Condition{sdk(0, 22)}, trace.Build{SDK: 1}, true},
		{[]trace.Condition{sdk(0, 22)}, trace.Build{}, false},
		{[]trace.Condition{sdk(19, 0)}, trace.Build{}, false},
		{[]trace.Condition{sdk(19, 0)}, trace.Build{SDK: 99}, true},
		{[]trace.Condition{sdk(1, 18), sdk(30, 0)}, trace.Build{SDK: 31}, true},
		{[]trace.Condition{sdk(1, 18), sdk(30, 0)}, trace.Build{SDK: 20}, false},
		{[]trace.Condition{vendor}, trace.Build{SDK: 21, Manufacturer: "samsung", ID: "A1"}, true},
		{[]trace.Condition{vendor}, trace.Build{SDK: 21, Manufacturer: "Samsung", ID: "A1"}, false},
		{[]trace.Condition{vendor}, trace.Build{SDK: 21, Manufacturer: "LGE", ID: "A2"}, false},
	} {
		m := &trace.Matcher{Where: c.where}
		if got := m.Applies(c.build); got != c.want {
			t.Errorf("%+v applies to %+v: %t", c.where, c.build, got)
		}
	}
}

// TestPatterns checks the strings from which fingerprints of library leaks are
// computed (ReferencePattern.kt).
func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		p    trace.Pattern
		want string
	}{
		{trace.Pattern{Kind: trace.InstanceField, Class: "a.B", Name: "c"}, "instance field a.B#c"},
		{trace.Pattern{Kind: trace.StaticField, Class: "a.B", Name: "c"}, "static field a.B#c"},
		{trace.Pattern{Kind: trace.NativeGlobal, Class: "a.B"}, "native global variable referencing a.B"},
		{trace.Pattern{Kind: trace.JavaLocal, Name: "main"}, "local variable on thread main"},
	} {
		if got := c.p.String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestThreads checks that local variables belong to threads and come last, that
// those of ignored threads are skipped, and that those without a thread are
// roots.
func TestThreads(t *testing.T) {
	s := newScene(hproftest.Java(1))
	worker := s.Thread("worker")
	s.RootOf(worker, hprof.SubRootJavaFrame, s.a, 0)
	s.RootOf(worker, hprof.SubRootJavaFrame, s.b, 1)
	s.RootOf(worker, hprof.SubRootJavaFrame, s.Missing(), 1)
	s.RootOf(s.Main(), hprof.SubRootJavaFrame, s.b, 0)
	nobody := hproftest.Thread{Serial: 999}
	s.RootOf(nobody, hprof.SubRootJavaFrame, s.c, 0)
	w := load(t, s.Heap, hproftest.Form{}, trace.Rules{Matchers: []trace.Matcher{
		{Pattern: trace.Pattern{Kind: trace.JavaLocal, Name: "main"}, Ignored: true},
		{Pattern: trace.Pattern{Kind: trace.JavaLocal, Name: "worker"}, Ignored: true},
		{Pattern: trace.Pattern{Kind: trace.JavaLocal, Name: "worker"}},
	}})
	if got := w.brief(w.object(worker.Ref), s.names); !strings.HasPrefix(got, "<Java Local>?=a <Java Local>?=b ") ||
		strings.Contains(got[len("<Java Local>?=a <Java Local>?=b "):], "Local") {
		t.Errorf("locals of a thread = %s", got)
	}
	if got := w.brief(w.object(s.Main().Ref), s.names); strings.Contains(got, "Local") {
		t.Errorf("locals of an ignored thread = %s, want none", got)
	}
	var frames []string
	for _, r := range w.reader.Roots() {
		if r.Kind == hprof.SubRootJavaFrame {
			frames = append(frames, fmt.Sprintf("%d %t", r.Object, r.Low))
		}
	}
	if want := []string{fmt.Sprintf("%d true", w.object(s.c))}; !slices.Equal(frames, want) {
		t.Errorf("locals that are roots = %q, want %q", frames, want)
	}
	leaks := w.leaks(w.find(w.objects(s.a, s.b, s.c), trace.Options{})).Leaks
	var libraries []string
	for _, l := range leaks {
		text := "none"
		if m := l.Library(); m != nil {
			text = m.String()
		}
		libraries = append(libraries, fmt.Sprintf("%s %d", text, len(l.Traces)))
	}
	if want := []string{"none 1", "local variable on thread worker 2"}; !slices.Equal(libraries, want) {
		t.Errorf("library leaks by locals = %q, want %q", libraries, want)
	}
}

// TestLeaves checks that the references of strings and boxed values are not
// followed, and that the objects that they hold are credited together with
// them.
func TestLeaves(t *testing.T) {
	h := hproftest.Java(1)
	holder := h.Declare("a.Holder", nil, "object one", "object two", "object three")
	one, two := h.String("first"), h.String("other text")
	box, second := h.Integer(1), h.Integer(2)
	boxes := h.Objects(h.Class("java.lang.Integer"), box)
	// Another array also references this object.
	shared := h.Integer(3)
	more := h.Objects(h.Class("java.lang.Integer"), box, second, shared)
	h.Hold("a.Registry3", "numbers", h.Objects(h.Class("java.lang.Integer"), shared))
	leak := h.New(holder, hproftest.Fields{"one": one, "two": boxes, "three": more})
	h.Hold("a.Registry", "leak", leak)
	h.Hold("a.Registry2", "text", two)
	w := load(t, h, hproftest.Form{}, trace.Rules{})
	for _, o := range w.objects(one, boxes, box) {
		if list := w.read(o); len(list) > 0 || !w.reader.Leaf(o) {
			t.Errorf("%s must be a leaf but references %q", w.graph.Class(o), list)
		}
	}
	chars, _ := w.graph.Find(w.ids.Value(one))
	otherChars, _ := w.graph.Find(w.ids.Value(two))
	r := w.leaks(w.find(append(w.objects(leak, second), chars, otherChars), trace.Options{}))
	want := int64(0)
	for _, o := range w.objects(leak, one, boxes, more, box, second) {
		want += w.graph.Shallow(o).Java
	}
	want += w.graph.Shallow(chars).Java
	if len(r.Leaks) != 1 || r.Leaks[0].Credited.Java != want {
		t.Errorf("credited %+v, want %d bytes", r.Leaks[0].Credited, want)
	}
	// Strings may be targets. A string that no leak holds is unreachable.
	also := append(w.objects(second), chars)
	slices.Sort(also)
	slices.Sort(r.Leaks[0].Also)
	if !slices.Equal(r.Leaks[0].Also, also) || !slices.Equal(r.Unreachable, []heap.Object{otherChars}) {
		t.Errorf("also retained %v, want %v; unreachable %v, want %v", r.Leaks[0].Also, also, r.Unreachable,
			otherChars)
	}
}
