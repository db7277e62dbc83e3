package trace_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis/heap"
	"github.com/leakgate/leakgate/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// plainBranch merges paths one by one.
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
	return &plainBranch{objects: map[heap.Object]bool{}, own: map[heap.Object]bool{}, below: map[heap.Object]bool{}, branches: map[string]*plainBranch{}}
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

// merge adds a path, whose end is asked for where it is a target.
func (w *world) merge(top *plainBranch, p trace.Path) {
	at := p.Root.Object
	class, kind := w.typed(at)
	words := p.Root.Words()
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
		fmt.Fprintf(out, "%s%s: %d objects, %d own, %d targets, %+v\n", indent, c.head, len(c.objects), len(c.own), len(c.below), size)
		c.tell(w, out, indent+" ")
	}
}

func tellTree(out *strings.Builder, list []*trace.Branch, indent string) {
	for _, b := range list {
		head := fmt.Sprintf("%s.%s %s", b.Owner, b.Field, b.Class)
		if b.Root != "" {
			head = fmt.Sprintf("root %s %s", b.Root, b.Class)
		}
		fmt.Fprintf(out, "%s%s: %d objects, %d own, %d targets, %+v\n", indent, head, b.Objects, b.Own, b.Targets, b.Size)
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

// checkTree compares merged paths with the merging of each.
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

// TestLongChain: the links of a list are one branch, however many there are.
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
	if len(tree) != 1 || b.Objects != links || b.Targets != 1 || len(b.Branches) != 1 || b.Branches[0].Class != "a.End" || b.Cut || depth > 6 {
		t.Errorf("%d trees; %d deep a branch of %d objects, %d targets, %d below", len(tree), depth, b.Objects, b.Targets, len(b.Branches))
	}
}

// TestCutTree: what is deeper than any tree should be counts where it is cut.
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
			t.Fatalf("%d branches with %d targets", len(list), last.Targets)
		}
	}
	if !last.Cut || last.Own != 1 || deepest > 1100 || objects < 2*pairs {
		t.Errorf("a tree %d deep of %d objects, cut %t, with %d targets at its end", deepest, objects, last.Cut, last.Own)
	}
}

// TestWideTree: so does what is wider.
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
		t.Errorf("%d branches, %d of them cut, with %d of %d targets", count, cut, own, len(targets))
	}
}
