package trace_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// plainBranch is a tree of paths that are merged one by one.
type plainBranch struct {
	head     string
	sort     string
	objects  map[heap.Object]bool
	own      map[heap.Object]bool
	below    map[heap.Object]bool
	class    string
	branches map[string]*plainBranch
}

func newBranch() *plainBranch {
	return &plainBranch{
		objects: map[heap.Object]bool{}, own: map[heap.Object]bool{}, below: map[heap.Object]bool{},
		branches: map[string]*plainBranch{},
	}
}

func (b *plainBranch) child(head, sort, class string) *plainBranch {
	c := b.branches[head]
	if c == nil {
		c = newBranch()
		c.head, c.sort, c.class = head, sort, class
		b.branches[head] = c
	}
	return c
}

func (w *world) typed(o heap.Object) (class, kind string) {
	switch {
	case w.graph.IsClass(o):
		return w.graph.ClassName(o), "class"
	case strings.HasSuffix(w.graph.Class(o), "[]"):
		return w.graph.Class(o), "array"
	}
	return w.graph.Class(o), "instance"
}

// merge adds a path; its last object counts if it is a target.
func (w *world) merge(top *plainBranch, p trace.Path) {
	at := p.Root.Object
	class, kind := w.typed(at)
	words := p.Root.Description()
	chain := []*plainBranch{top.child(fmt.Sprintf("root %s %s", words, class), class+words, class+kind)}
	put := func(o heap.Object) { chain[len(chain)-1].objects[o] = true }
	put(at)
	for _, s := range p.Steps {
		b := chain[len(chain)-1]
		class, kind := w.typed(s.Edge.To)
		if s.Edge.Kind != trace.FieldEdge || class+kind != b.class {
			owner, field := w.reader.Owner(s.Object, s.Edge), w.reader.Field(s.Object, s.Edge)
			chain = append(chain, b.child(fmt.Sprintf("%s.%s %s", owner, field, class), owner+field+class, class+kind))
		}
		put(s.Edge.To)
	}
	chain[len(chain)-1].own[p.Leak] = true
	for _, b := range chain {
		b.below[p.Leak] = true
	}
}

func (b *plainBranch) tell(w *world, out *strings.Builder, indent string) {
	var list []*plainBranch
	for _, c := range b.branches {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *plainBranch) int {
		return cmp.Or(cmp.Compare(len(b.below), len(a.below)), strings.Compare(a.sort, b.sort))
	})
	for _, c := range list {
		var size heap.Size
		for o := range c.below {
			add(&size, w.graph.Shallow(o))
		}
		fmt.Fprintf(out, "%s%s: %d objects, %d own, %d targets, %+v\n", indent, c.head, len(c.objects), len(c.own),
			len(c.below), size)
		c.tell(w, out, indent+" ")
	}
}

func tellTree(out *strings.Builder, list []*trace.Branch, indent string) {
	for _, b := range list {
		head := fmt.Sprintf("%s.%s %s", b.Owner, b.Field, b.Class)
		if b.Root != "" {
			head = fmt.Sprintf("root %s %s", b.Root, b.Class)
		}
		fmt.Fprintf(out, "%s%s: %d objects, %d own, %d targets, %+v\n", indent, head, b.Objects, b.Own, b.Targets,
			b.Size)
		tellTree(out, b.Branches, indent+" ")
	}
}

func (w *world) tree(s *trace.Search, targets []heap.Object) []*trace.Branch {
	w.Helper()
	tree, err := s.Tree(w.Context(), targets)
	if err != nil {
		w.Fatal(err)
	}
	return tree
}

// checkTree compares the merged paths with the result of merging them one by
// one.
func (w *world) checkTree(seed uint64, s *trace.Search, targets []heap.Object) {
	w.Helper()
	top := newBranch()
	for _, p := range s.Paths(targets) {
		w.merge(top, p)
	}
	var got, want strings.Builder
	tellTree(&got, w.tree(s, targets), "")
	top.tell(w, &want, "")
	if got.String() != want.String() {
		w.Fatalf("seed %d: tree\n%s, want\n%s", seed, got.String(), want.String())
	}
}

// TestLongChain checks that a list is one branch of the tree, however many
// links it has.
func TestLongChain(t *testing.T) {
	const links = 20000
	h := hproftest.Java(1)
	link := h.Declare("a.Link", nil, "object next")
	end := h.New(h.Declare("a.End", nil, "int n"), nil)
	at := end
	for range links {
		at = h.New(link, hproftest.Fields{"next": at})
	}
	h.Hold("a.Holder", "head", at)
	w := load(t, h, hproftest.Form{}, trace.Rules{})
	targets := w.objects(end)
	tree := w.tree(w.find(targets, trace.Options{}), targets)
	b := tree[0]
	depth := 1
	for b.Class != "a.Link" && len(b.Branches) > 0 {
		b = b.Branches[0]
		depth++
	}
	if len(tree) != 1 || b.Objects != links || b.Targets != 1 || len(b.Branches) != 1 ||
		b.Branches[0].Class != "a.End" || b.Cut || depth > 6 {
		t.Errorf("got %d trees; the branch at depth %d has %d objects, %d targets and %d branches, want %d, 1 and 1",
			len(tree), depth, b.Objects, b.Targets, len(b.Branches), links)
	}
}

// TestCutTree checks that objects below the maximum depth are counted at the
// branch where the tree is truncated.
func TestCutTree(t *testing.T) {
	h := hproftest.Java(1)
	a, b := h.Declare("a.A", nil, "object next"), h.Declare("a.B", nil, "object next")
	at := h.New(h.Declare("a.End", nil, "int n"), nil)
	end := at
	const pairs = 1000
	for range pairs {
		at = h.New(a, hproftest.Fields{"next": h.New(b, hproftest.Fields{"next": at})})
	}
	h.Hold("a.Holder", "head", at)
	w := load(t, h, hproftest.Form{}, trace.Rules{})
	targets := w.objects(end)
	tree := w.tree(w.find(targets, trace.Options{}), targets)
	deepest, objects := 0, int64(0)
	var last *trace.Branch
	for list := tree; len(list) > 0; list = list[0].Branches {
		last = list[0]
		objects += last.Objects
		if deepest++; last.Targets != 1 || len(list) != 1 {
			t.Fatalf("%d branches, the first with %d targets; want 1 branch with 1 target", len(list), last.Targets)
		}
	}
	if !last.Cut || last.Own != 1 || deepest > 1100 || objects < 2*pairs {
		t.Errorf("tree has depth %d and %d objects; its last branch, truncated: %t, has %d targets", deepest, objects,
			last.Cut, last.Own)
	}
}

// TestWideTree does the same as TestCutTree for a tree that is too wide.
func TestWideTree(t *testing.T) {
	const wide = 1 << 16
	h := hproftest.Java(1)
	end := h.Declare("a.End", nil, "int n")
	var fields []string
	for i := range 600 {
		fields = append(fields, fmt.Sprintf("object f%d", i))
	}
	many := h.Declare("a.Many", nil, fields...)
	var targets []hproftest.Ref
	var tops []hproftest.Ref
	for i := range 120 {
		top := h.New(h.Declare(fmt.Sprintf("a.Top%d", i), many), nil)
		tops = append(tops, top)
		for f := range 600 {
			e := h.New(end, nil)
			h.Set(top, fmt.Sprintf("f%d", f), e)
			targets = append(targets, e)
		}
	}
	h.Hold("a.Holder", "all", h.Objects(h.Class("java.lang.Object"), tops...))
	w := load(t, h, hproftest.Form{}, trace.Rules{})
	objects := w.objects(targets...)
	tree := w.tree(w.find(objects, trace.Options{}), objects)
	count, cut, own := 0, 0, int64(0)
	var walk func(list []*trace.Branch)
	walk = func(list []*trace.Branch) {
		for _, b := range list {
			count++
			own += b.Own
			if b.Cut {
				cut++
			}
			walk(b.Branches)
		}
	}
	walk(tree)
	if count > wide+10 || cut == 0 || own != int64(len(targets)) || tree[0].Targets != own {
		t.Errorf("got %d branches, %d of them truncated, with %d targets; want at most %d with %d", count, cut, own,
			wide+10, len(targets))
	}
}

// collectionBuilder creates random collections: instances of Java's own classes
// or, if sub is set, of indirect subclasses of them.
type collectionBuilder struct {
	*rand.Rand
	*hproftest.Heap
	sub bool
	own map[string]*hproftest.Class
	all []hproftest.Ref
}

// mySuffix is the suffix of a subclass's name; it follows the name of the
// collection.
const mySuffix = "$My"

func (s *collectionBuilder) class(name string) *hproftest.Class {
	if !s.sub {
		return s.Class(name)
	}
	if s.own[name] == nil {
		s.own[name] = s.Declare(name+mySuffix, s.Declare(name+"$Base", s.Class(name)))
	}
	return s.own[name]
}

func (s *collectionBuilder) pick() hproftest.Ref {
	if s.IntN(6) == 0 {
		return 0
	}
	return s.all[s.IntN(len(s.all))]
}

func (s *collectionBuilder) array(element string) hproftest.Ref {
	var list []hproftest.Ref
	for range s.IntN(8) {
		list = append(list, s.pick())
	}
	return s.Objects(s.Class(element), list...)
}

// chain creates linked nodes, and returns the first one.
func (s *collectionBuilder) chain(class string, fields ...string) (first hproftest.Ref) {
	for range s.IntN(5) {
		f := hproftest.Fields{"next": first}
		for _, name := range fields {
			f[name] = s.pick()
		}
		first = s.New(s.Class(class), f)
	}
	return first
}

func (s *collectionBuilder) table(class string, fields ...string) hproftest.Ref {
	var list []hproftest.Ref
	for range s.IntN(5) {
		list = append(list, s.chain(class, fields...))
	}
	return s.Objects(s.Class(class), list...)
}

// collection creates an instance of a random Java collection class.
func (s *collectionBuilder) collection() hproftest.Ref {
	type f = hproftest.Fields
	hashMap := func(name string) hproftest.Ref {
		return s.New(s.class(name), f{"table": s.table("java.util.HashMap$Node", "key", "value")})
	}
	switch s.IntN(9) {
	case 0:
		return s.New(s.class("java.util.ArrayList"), f{"elementData": s.array("java.lang.Object"), "size": s.IntN(8)})
	case 1:
		return s.New(s.class("java.util.LinkedList"), f{"first": s.chain("java.util.LinkedList$Node", "item")})
	case 2:
		return s.New(s.class("java.util.concurrent.ConcurrentHashMap"),
			f{"table": s.table("java.util.concurrent.ConcurrentHashMap$Node", "key", "val")})
	case 3:
		return s.New(s.class("java.util.WeakHashMap"),
			f{"table": s.table("java.util.WeakHashMap$Entry", "referent", "value")})
	case 4:
		return s.New(s.class("java.util.concurrent.CopyOnWriteArrayList"), f{"elements": s.array("java.lang.Object")})
	case 5:
		return s.New(s.class("java.util.HashSet"), f{"map": hashMap("java.util.HashMap")})
	case 6:
		return hashMap("java.util.LinkedHashMap")
	}
	return hashMap("java.util.HashMap")
}

// shelves returns a heap of random nested collections that contain objects.
func shelves(seed uint64, sub bool) (h *hproftest.Heap, things []hproftest.Ref) {
	s := &collectionBuilder{
		Rand: rand.New(rand.NewPCG(seed, 0x5e1f)), Heap: hproftest.Java(seed), sub: sub,
		own: map[string]*hproftest.Class{},
	}
	thing := s.Declare("a.Thing", nil, "object held")
	for range 5 + s.IntN(60) {
		if s.IntN(3) > 0 {
			s.all = append(s.all, s.New(thing, hproftest.Fields{"held": s.String("x")}))
			things = append(things, s.all[len(s.all)-1])
			continue
		}
		s.all = append(s.all, s.New(thing, nil))
		s.all[len(s.all)-1] = s.collection()
	}
	for i := range 1 + s.IntN(4) {
		s.Hold("a.Holder", fmt.Sprintf("held%d", i), s.all[len(s.all)-1-s.IntN(min(5, len(s.all)))])
	}
	return s.Heap, things
}

// TestSubclassesMerge checks that, if requested, collections of an app's own
// classes are merged like the classes that they extend.
func TestSubclassesMerge(t *testing.T) {
	reached, apart := 0, 0
	for seed := range uint64(60) {
		var texts []string
		for _, form := range []struct{ sub, rule bool }{{false, false}, {false, true}, {true, true}, {true, false}} {
			h, things := shelves(seed, form.sub)
			rules := known()
			rules.Subclasses = form.rule
			w := load(t, h, hproftest.Form{}, rules)
			targets := w.objects(things...)
			s := w.find(targets, trace.Options{Through: true})
			w.checkTree(seed, s, targets)
			var text strings.Builder
			tellTree(&text, w.tree(s, targets), "")
			texts = append(texts, strings.ReplaceAll(text.String(), mySuffix, ""))
			if len(s.Found()) > 0 && form.sub && !form.rule {
				reached++
				if texts[3] != texts[0] {
					apart++
				}
			}
		}
		if texts[1] != texts[0] || texts[2] != texts[0] {
			t.Fatalf("seed %d: tree of Java's classes\n%s\nwith the subclass rule\n%s\nof subclasses\n%s", seed,
				texts[0], texts[1], texts[2])
		}
	}
	if reached < 50 || apart < 20 {
		t.Errorf("objects were found in %d heaps, and without the rule trees differed in %d, want at least 50 and 20",
			reached, apart)
	}
}

// TestSubclasses checks that additional fields of a subclass are read, too, and
// that an entry for a single class of the platform applies only to that class.
func TestSubclasses(t *testing.T) {
	type f = hproftest.Fields
	type m = trace.Member
	s := newScene(hproftest.Java(1))
	node := s.nodes("java.util.HashMap$Node", "next", f{"key": s.a, "value": s.b})
	table := s.entries("java.util.HashMap$Node", node[0])
	cache := s.New(s.Declare("a.Cache", s.Class("java.util.LinkedHashMap"), "object owner"),
		f{"table": table, "owner": s.c})
	hides := s.Declare("a.Hides", s.Class("java.util.HashMap"), "object table")
	hidden := s.New(hides, f{"table": s.c})
	s.SetIn(hidden, s.Class("java.util.HashMap"), "table", table)
	array := s.call("array", s.Objects(s.Class("java.lang.Object"), s.a, s.b))
	list := s.New(s.Declare("a.Sized", s.Class("java.util.ArrayList"), "int size"), f{"elementData": array, "size": 0})
	s.SetIn(list, s.Class("java.util.ArrayList"), "size", 1)
	weak := s.New(s.Declare("a.Weak", s.Class("java.util.WeakHashMap")), nil)
	s.Set(weak, "table",
		s.Objects(s.Class("java.util.WeakHashMap$Entry"),
			s.New(s.Class("java.util.WeakHashMap$Entry"), f{"referent": s.a, "value": s.b})))
	owner := s.Declare("a.Owner", nil, "object news")
	one := s.New(s.Declare("a.Other", owner), f{"news": s.a})
	rules := trace.Rules{
		Number: numbers, Subclasses: true, Without: []string{"java.util.WeakHashMap"},
		Collections: []trace.Collection{
			{
				Classes: []string{"a.Owner"}, Shape: trace.First, Head: m{Class: "a.Owner", Name: "news"},
				Matcher: &trace.Matcher{},
			},
		},
	}
	w := load(t, s.Heap, hproftest.Form{}, rules)
	for _, c := range []struct {
		name string
		r    hproftest.Ref
		want string
	}{
		{"additional field", cache, "[key()]=a [a]=b owner=c table.=table"},
		{"field with the same name", hidden, "[key()]=a [a]=b table=c table.=table"},
		{"additional size field", list, "[0]=a elementData.=array"},
		{"excluded class", weak, "table="},
		{"platform class", one, "news=a"},
	} {
		if got := w.brief(w.object(c.r), s.names); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
