package trace_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// seeds is the number of random heaps.
const seeds = 250

// TestRandom compares a search with the plain one on random heaps: the
// references of each object, the order of roots, the order of found objects,
// each path, the credits, the first target on the path of each target that is
// reached through others, and the unreachable targets.
func TestRandom(t *testing.T) {
	var met coverage
	for seed := range uint64(seeds) {
		h, form, refs := random(seed)
		w := load(t, h, form, known())
		w.checkReading(seed)
		targets := w.objects(refs...)
		w.checkSearch(seed, targets, false, &met)
		w.checkSearch(seed, targets, true, &met)
		if t.Failed() {
			return
		}
	}
	if met.found < 200 || met.low < 30 || met.also < 20 || met.unreachable < 30 || met.promoted < 10 {
		t.Errorf("the random heaps cover too few cases: %+v", met)
	}
}

// TestLeakMixes does the same as TestRandom with the components of Android
// apps.
func TestLeakMixes(t *testing.T) {
	var met coverage
	for seed := range uint64(40) {
		c := hproftest.LeakMix(seed)
		w := load(t, c.Heap(), c.Form, known())
		w.checkReading(seed)
		targets := w.graph.InstancesOf("android.app.Activity")
		w.checkSearch(seed, targets, false, &met)
		if t.Failed() {
			return
		}
	}
	if met.found < 50 {
		t.Errorf("the heaps cover too few cases: %+v", met)
	}
}

// coverage counts what the heaps contain, to ensure that the comparison covers
// all features.
type coverage struct{ found, low, also, unreachable, promoted int }

func (w *world) checkReading(seed uint64) {
	w.Helper()
	var roots []string
	for _, r := range w.reader.Roots() {
		pattern := ""
		if r.Matcher != nil {
			pattern = r.Matcher.String()
		}
		roots = append(roots, fmt.Sprintf("%s %#x %t %s", r.Kind, uint64(w.graph.ID(r.Object)), r.Low, pattern))
	}
	var want []string
	for _, r := range w.plain.roots() {
		want = append(want, fmt.Sprintf("%s %#x %t %s", r.Kind, uint64(r.Object), r.low, r.matcher))
	}
	if !slices.Equal(roots, want) {
		w.Fatalf("seed %d: roots\n%q, want\n%q", seed, roots, want)
	}
	for id := range w.plain.Nodes {
		o, ok := w.graph.Find(id)
		if !ok {
			w.Fatalf("seed %d: object %#x not found", seed, uint64(id))
		}
		var want []string
		for _, e := range w.plain.edges(id) {
			want = append(want, e.String())
		}
		if got := w.read(o); !slices.Equal(got, want) {
			w.Fatalf("seed %d: references of %s %#x\n%q, want\n%q", seed, w.plain.class(id), uint64(id), got, want)
		}
		if w.reader.Leaf(o) != w.plain.leaf(id) {
			w.Fatalf("seed %d: %s is a leaf: %t", seed, w.plain.class(id), w.reader.Leaf(o))
		}
	}
}

func (w *world) checkSearch(seed uint64, targets []heap.Object, through bool, met *coverage) {
	w.Helper()
	asked := map[hprof.ID]bool{}
	for _, t := range targets {
		asked[w.graph.ID(t)] = true
	}
	want := w.plain.search(asked, through)
	s := w.find(targets, trace.Options{Through: through})
	if got, want := w.names(s.Found()), idsOf(want.found); !slices.Equal(got, want) {
		w.Fatalf("seed %d: found %q, want %q", seed, got, want)
	}
	paths := s.Paths(s.Found())
	for i, p := range paths {
		if got, want := w.path(p), want.found[i].path(); !slices.Equal(got, want) {
			w.Fatalf("seed %d: path\n%q, want\n%q", seed, got, want)
		}
		w.checkPath(seed, p)
		met.found++
		if len(p.Steps) > 0 && slices.ContainsFunc(p.Steps, func(s trace.PathNode) bool { return s.Edge.Low }) {
			met.low++
		}
	}
	w.checkLimited(seed, s, targets, through)
	if !through {
		w.checkShortest(seed, s, asked, paths)
		w.checkCredits(seed, s, want, met)
		w.countPromoted(want, met)
	} else {
		w.checkBehind(seed, s, want)
	}
	w.checkTree(seed, s, targets)
}

// checkLimited repeats the search, covering only the objects that lead to the
// targets and those that the targets hold: the result must be the same.
func (w *world) checkLimited(seed uint64, whole *trace.Search, targets []heap.Object, through bool) {
	w.Helper()
	set, err := w.graph.NewSet()
	if err != nil {
		w.Fatal(err)
	}
	defer set.Close()
	w.graph.Roots(func(r hprof.Root, o heap.Object) {
		if r.Kind == hprof.SubRootThreadObject {
			set.Add(o)
		}
	})
	if err := w.graph.AddHeld(w.Context(), set, targets); err != nil {
		w.Fatal(err)
	}
	if err := w.graph.AddAncestors(w.Context(), set, targets, false); err != nil {
		w.Fatal(err)
	}
	b, err := w.graph.OutboundOf(w.Context(), set)
	if err != nil {
		w.Fatal(err)
	}
	defer b.Close()
	r := trace.NewReader(w.graph, b, w.rules)
	s, err := trace.Find(w.Context(), r, targets, trace.Options{Through: through})
	if err != nil {
		w.Fatal(err)
	}
	defer s.Close()
	if !slices.Equal(s.Found(), whole.Found()) {
		w.Fatalf("seed %d: search of %d of %d objects found %q, search of all found %q", seed, set.Len(),
			w.graph.Objects,
			w.names(s.Found()), w.names(whole.Found()))
	}
	if !through {
		w.checkLess(seed, w.leaks(s), w.leaks(whole))
	}
	want := whole.Paths(whole.Found())
	for i, p := range s.Paths(s.Found()) {
		if got, want := w.path(p), w.path(want[i]); !slices.Equal(got, want) {
			w.Fatalf("seed %d: path in a search of some objects\n%q, of all\n%q", seed, got, want)
		}
	}
}

// checkLess checks a search that covers only some of the objects: as in the
// full search, the same targets must be reachable only through others, and no
// more memory may be credited. A partial search may credit less, because an
// object may also be held by something that no search follows: the local
// variables of an ignored thread, or a root of the virtual machine itself.
func (w *world) checkLess(seed uint64, some, whole *trace.Result) {
	w.Helper()
	if len(some.Leaks) != len(whole.Leaks) || !slices.Equal(some.Unreachable, whole.Unreachable) {
		w.Fatalf("seed %d: %d leaks in a search of some objects, %d in a search of all", seed, len(some.Leaks),
			len(whole.Leaks))
	}
	for i := range whole.Leaks {
		a, b := &some.Leaks[i], &whole.Leaks[i]
		if a.Credited.Java > b.Credited.Java || a.Credited.Native > b.Credited.Native ||
			!slices.Equal(sorted(a.Also), sorted(b.Also)) {
			w.Fatalf("seed %d: in a search of some objects, a leak is credited with %+v and retains %v; in a search "+
				"of all objects, it is credited with %+v and retains %v",
				seed, a.Credited, a.Also, b.Credited, b.Also)
		}
	}
}

func sorted(list []heap.Object) []heap.Object { return slices.Sorted(slices.Values(list)) }

func (w *world) names(objects []heap.Object) (list []string) {
	for _, o := range objects {
		list = append(list, fmt.Sprintf("%#x", uint64(w.graph.ID(o))))
	}
	return list
}

func idsOf(nodes []*plainNode) (list []string) {
	for _, n := range nodes {
		list = append(list, fmt.Sprintf("%#x", uint64(n.id)))
	}
	return list
}

func (w *world) path(p trace.Path) []string {
	pattern := ""
	if p.Root.Matcher != nil {
		pattern = p.Root.Matcher.String()
	}
	lines := []string{fmt.Sprintf("%s %t %s", p.Root.Kind, p.Root.Low, pattern)}
	for _, s := range p.Steps {
		lines = append(lines, fmt.Sprintf("%#x %s", uint64(w.graph.ID(s.Object)), w.line(s.Object, s.Edge)))
	}
	return lines
}

// checkPath checks properties that every path must have.
func (w *world) checkPath(seed uint64, p trace.Path) {
	w.Helper()
	if err := brokenPath(w.reader, p); err != nil {
		w.Fatalf("seed %d: %v", seed, err)
	}
}

// brokenPath returns an error if a path does not begin at a root, follow
// existing references and end at its object, or if it passes an object twice.
func brokenPath(r *trace.Reader, p trace.Path) error {
	if !slices.ContainsFunc(r.Roots(), func(x trace.Root) bool { return x == p.Root }) {
		return fmt.Errorf("path starts at %+v, which is not a root", p.Root)
	}
	at := p.Root.Object
	passed := map[heap.Object]bool{}
	for _, s := range p.Steps {
		if s.Object != at || passed[at] {
			return fmt.Errorf("path reaches %d but continues from %d", at, s.Object)
		}
		passed[at] = true
		found := false
		r.Read(s.Object, func(e trace.Edge) { found = found || e == s.Edge })
		if !found {
			return fmt.Errorf("object %d has no reference %+v", s.Object, s.Edge)
		}
		at = s.Edge.To
	}
	if at != p.Leak || passed[at] {
		return fmt.Errorf("path to %d ends at %d", p.Leak, at)
	}
	return nil
}

// checkShortest checks the paths to those targets that can be reached without
// low references and without passing another target: such a path must not
// contain low references, and must be as short as possible. Every other path
// must contain a low reference.
func (w *world) checkShortest(seed uint64, s *trace.Search, asked map[hprof.ID]bool, paths []trace.Path) {
	w.Helper()
	distance := map[hprof.ID]int{}
	var queue []hprof.ID
	reach := func(id hprof.ID, d int) {
		if _, ok := distance[id]; !ok {
			distance[id] = d
			queue = append(queue, id)
		}
	}
	for _, r := range w.plain.roots() {
		if !r.low {
			reach(r.Object, 0)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		if asked[queue[0]] {
			continue
		}
		for _, e := range w.plain.edges(queue[0]) {
			if !e.low {
				reach(e.to, distance[queue[0]]+1)
			}
		}
	}
	for _, p := range paths {
		d, high := distance[w.graph.ID(p.Leak)]
		low := p.Root.Low || slices.ContainsFunc(p.Steps, func(s trace.PathNode) bool { return s.Edge.Low })
		if high == low || high && d != len(p.Steps) {
			w.Fatalf("seed %d: path has %d steps, low priority %t; shortest path without low priority: %d, exists %t",
				seed, len(p.Steps), low, d, high)
		}
	}
}

// checkCredits compares the sizes, the targets that are reached only through
// other targets, and the unreachable targets.
func (w *world) checkCredits(seed uint64, s *trace.Search, want *plainSearch, met *coverage) {
	w.Helper()
	r := w.leaks(s)
	credited, all := map[hprof.ID]heap.Size{}, map[hprof.ID]bool{}
	for _, list := range want.credit {
		for _, id := range list {
			all[id] = true
		}
	}
	for seed, list := range want.credit {
		var sum heap.Size
		for _, id := range list {
			add(&sum, w.shallow(id))
			for _, held := range w.heldByLeaf(id, want, all) {
				add(&sum, w.shallow(held))
			}
		}
		credited[seed] = sum
	}
	var sum, total heap.Size
	for _, c := range credited {
		add(&total, c)
	}
	seen := 0
	for _, l := range r.Leaks {
		var expected heap.Size
		var also []hprof.ID
		for i := range l.Traces {
			id := w.graph.ID(l.Traces[i].Leaking().Object)
			add(&expected, credited[id])
			also = append(also, want.also[id]...)
			seen++
		}
		if l.Credited != expected {
			w.Fatalf("seed %d: leak %s is credited with %+v, want %+v", seed, l.Fingerprint(), l.Credited, expected)
		}
		add(&sum, l.Credited)
		var got []hprof.ID
		for _, o := range l.Also {
			got = append(got, w.graph.ID(o))
		}
		slices.Sort(got)
		slices.Sort(also)
		if !slices.Equal(got, also) {
			w.Fatalf("seed %d: leak %s also retains %#x, want %#x", seed, l.Fingerprint(), got, also)
		}
		met.also += len(also)
	}
	if seen != len(want.found) || sum != total {
		w.Fatalf("seed %d: %d traces with %+v, want %d with %+v", seed, seen, sum, len(want.found), total)
	}
	w.checkUnreachable(seed, r, want, met)
}

// checkBehind compares, for a search whose paths go through targets, the
// targets that are reached only through other targets: each is attributed to
// the first target on its path.
func (w *world) checkBehind(seed uint64, s *trace.Search, want *plainSearch) {
	w.Helper()
	var got, expected []string
	for _, l := range w.leaks(s).Leaks {
		var sum heap.Size
		for i := range l.Traces {
			o := l.Traces[i].Leaking().Object
			add(&sum, w.graph.Retained(o))
			got = append(got, fmt.Sprintf("%#x", uint64(w.graph.ID(o))))
		}
		// Several traces of one leak share the targets that are reached through
		// their objects.
		for _, o := range l.Also {
			got = append(got, fmt.Sprintf("%#x behind %s", uint64(w.graph.ID(o)), l.Fingerprint()))
		}
		if l.Credited != sum {
			w.Fatalf("seed %d: leak %s is credited with %+v, want %+v", seed, l.Fingerprint(), l.Credited, sum)
		}
	}
	prints := map[hprof.ID]string{}
	for _, l := range w.leaks(s).Leaks {
		for i := range l.Traces {
			prints[w.graph.ID(l.Traces[i].Leaking().Object)] = l.Fingerprint()
		}
	}
	for _, n := range want.found {
		line := fmt.Sprintf("%#x", uint64(n.id))
		first := hprof.ID(0)
		for p := n.parent; p != nil; p = p.parent {
			if want.targets[p.id] {
				first = p.id
			}
		}
		if first != 0 {
			line += " behind " + prints[first]
		}
		expected = append(expected, line)
	}
	slices.Sort(got)
	slices.Sort(expected)
	if !slices.Equal(got, expected) {
		w.Fatalf("seed %d: targets\n%q, want\n%q", seed, got, expected)
	}
}

// heldByLeaf returns the objects that only a string or an array of boxed values
// holds: no search reaches these objects.
func (w *world) heldByLeaf(id hprof.ID, s *plainSearch, credited map[hprof.ID]bool) (list []hprof.ID) {
	n := w.plain.Nodes[id]
	if !w.plain.leaf(id) {
		return nil
	}
	held := slices.Clone(n.Elements)
	for _, c := range w.plain.above(id) {
		if w.plain.class(c.ID) != "java.lang.Object" {
			for _, f := range c.Fields {
				held = append(held, w.plain.ref(id, w.plain.class(c.ID)+"."+w.plain.Strings[f.Name]))
			}
		}
	}
	for _, h := range held {
		if h != 0 && !s.visited[h] && w.plain.alone(id, h) {
			list = append(list, h)
		}
	}
	return list
}

// alone reports whether an object is referenced only by the given object.
func (p *plain) alone(holder, held hprof.ID) bool {
	for id, n := range p.Nodes {
		if id != holder &&
			(slices.Contains(n.Elements, held) || slices.Contains(slices.Collect(maps.Values(n.Refs)), held)) {
			return false
		}
	}
	return true
}

func (w *world) shallow(id hprof.ID) heap.Size {
	o, _ := w.graph.Find(id)
	return w.graph.Shallow(o)
}

func add(sum *heap.Size, s heap.Size) {
	sum.Java += s.Java
	sum.Native += s.Native
}

func (w *world) checkUnreachable(seed uint64, r *trace.Result, want *plainSearch, met *coverage) {
	w.Helper()
	reached := map[hprof.ID]bool{}
	for _, n := range want.found {
		reached[n.id] = true
	}
	for _, list := range want.also {
		for _, id := range list {
			reached[id] = true
		}
	}
	var got, expected []hprof.ID
	for _, o := range r.Unreachable {
		got = append(got, w.graph.ID(o))
	}
	for id := range want.targets {
		if !reached[id] {
			expected = append(expected, id)
		}
	}
	slices.Sort(got)
	got = slices.Compact(got)
	slices.Sort(expected)
	if !slices.Equal(got, expected) {
		w.Fatalf("seed %d: unreachable %#x, want %#x", seed, got, expected)
	}
	met.unreachable += len(got)
}

// countPromoted counts objects that a low reference reached before a better one
// did.
func (w *world) countPromoted(s *plainSearch, met *coverage) {
	low := map[hprof.ID]bool{}
	for _, r := range w.plain.roots() {
		low[r.Object] = low[r.Object] || r.low
	}
	for id := range s.visited {
		for _, e := range w.plain.edges(id) {
			low[e.to] = low[e.to] || e.low
		}
	}
	for _, n := range s.found {
		if low[n.id] && n.parent != nil && !n.edge.low {
			met.promoted++
		}
	}
}

// TestTwoWays checks paths on which one object references another twice: the
// path must contain the reference that the search followed. The search follows
// the first reference that does not have low priority; if the path has low
// priority anyway, it follows the first reference.
func TestTwoWays(t *testing.T) {
	h := hproftest.Java(1)
	thing := h.Declare("a.Thing", nil, "int n")
	two := h.Declare("a.Two", nil, "object aaa", "object bbb", "object ccc")
	var ends, holders []hproftest.Ref
	for range 2 {
		end := h.New(thing, nil)
		ends = append(ends, end)
		holders = append(holders, h.New(two, hproftest.Fields{"aaa": end, "bbb": end, "ccc": end}))
	}
	h.Hold("a.Holder", "first", holders[0])
	h.RootOf(h.Main(), hprof.SubRootJavaFrame, holders[1], 0)
	low := trace.Matcher{Pattern: trace.Pattern{Kind: trace.InstanceField, Class: "a.Two", Name: "aaa"}}
	w := load(t, h, hproftest.Form{}, trace.Rules{Matchers: []trace.Matcher{low}})
	paths := w.find(w.objects(ends...), trace.Options{}).Paths(w.objects(ends...))
	var fields []string
	for _, p := range paths {
		last := p.Steps[len(p.Steps)-1]
		fields = append(fields, w.reader.Field(last.Object, last.Edge))
	}
	if want := []string{"bbb", "aaa"}; !slices.Equal(fields, want) {
		t.Errorf("paths end with %q, want %q", fields, want)
	}
}
