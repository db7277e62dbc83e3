package analysis

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/sharktest"
)

// TestSharkSizes explains the differences between the sizes of Shark 2.14 and
// ours, byte by byte. In each generated dump, it compares every object that may
// cause a leak and is on a path. Our size is exactly what the object dominates
// in the whole heap. Shark's size differs in five ways:
//   - It covers the objects that its search reaches. This includes objects that
//     other roots or ignored references also hold (beyond), but excludes
//     objects to which only ignored references lead (out of sight).
//   - It adds the array of a string, or the elements of an array of boxed
//     values, once for each object that holds them, even if others hold them
//     too (contents).
//   - It follows references that do not hold an object in our model: from a
//     FinalizerReference to its referent, from an animator to its target
//     (weak).
//   - It includes the flag in the lowest bit of registered native sizes
//     (flags).
//   - It uses dominators that are computed along with the paths: if a second
//     path to an object is found late, the objects below that object remain
//     attributed to the dominator that was found first (approximation).
//
// Except for these differences, the sizes are equal.
func TestSharkSizes(t *testing.T) {
	sum := &sizeSums{}
	for _, c := range askShark(t).cases {
		w := weigh(t, c.data)
		for i := range c.answers {
			w.compare(t, c.name, &c.answers[i], sum)
		}
		w.graph.Close()
	}
	t.Logf("%d objects, %d of equal size; the others by cause: %+v", sum.objects, sum.equal, *sum)
	for name, n := range map[string]int{
		"equal": sum.equal, "beyond": sum.beyond, "contents": sum.contents, "flags": sum.flags, "weak": sum.weak,
		"approximation": sum.approximation, "out of sight": sum.outOfSight,
	} {
		if n == 0 {
			t.Errorf("no object shows %q", name)
		}
	}
}

// sizeSums counts the compared objects, those of equal size, and those whose
// sizes differ, by cause.
type sizeSums struct {
	objects, equal                                           int
	beyond, contents, flags, weak, approximation, outOfSight int
}

// weighing holds a dump with Shark's references and sizes, and with those of
// the plain reader.
type weighing struct {
	*subject
	data  []byte
	plain *hproftest.Graph
	// edges are the references that Shark's search follows, in Shark's order,
	// with their priority; roots are its GC roots.
	edges map[heap.Object][]sharkEdge
	roots []sharkEdge
	// native holds the sizes that Shark reads as registered native sizes,
	// including their flags.
	native map[hprof.ID]int64
	// dominators holds Shark's dominators; all holds every object to which
	// Shark's references lead. Both are nil until computed.
	dominators map[heap.Object]heap.Object
	all        map[heap.Object]bool
	// known maps the compared objects to their sizes in Shark's answer.
	known map[heap.Object]int64
}

type sharkEdge struct {
	to  heap.Object
	low bool
}

func weigh(t *testing.T, data []byte) *weighing {
	t.Helper()
	ctx := context.Background()
	s := load(t, data, Options{})
	w := &weighing{
		subject: s, data: data, edges: map[heap.Object][]sharkEdge{}, native: map[hprof.ID]int64{},
		known: map[heap.Object]int64{},
	}
	o := Options{shark214: true}
	search, err := s.inspect(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer search.close()
	if search.outbound, err = s.graph.Outbound(ctx); err != nil {
		t.Fatal(err)
	}
	reader := trace.NewReader(s.graph, search.outbound, search.rules(s.metadata, o))
	for _, r := range reader.Roots() {
		w.roots = append(w.roots, sharkEdge{r.Object, r.Low})
	}
	for o := range heap.Object(s.graph.Objects) {
		reader.Read(o, func(e trace.Edge) { w.edges[o] = append(w.edges[o], sharkEdge{e.To, e.Low}) })
	}
	w.readPlain(t)
	return w
}

// readPlain reads the dump with the plain reader, to get data that the graph
// lacks.
func (w *weighing) readPlain(t *testing.T) {
	t.Helper()
	var err error
	if w.plain, err = hproftest.ReadGraph(w.data); err != nil {
		t.Fatal(err)
	}
	for id, n := range w.plain.Nodes {
		if n.Class != "sun.misc.Cleaner" || n.Kind != hprof.SubInstance {
			continue
		}
		if size, ok := w.plain.Field(w.plain.Path(id, "thunk.this$0"), "size"); ok {
			w.native[w.plain.Path(id, "referent")] += int64(size)
		}
	}
}

// reached returns the objects to which Shark's references lead if paths through
// one object are excluded.
func (w *weighing) reached(without heap.Object) map[heap.Object]bool {
	seen := map[heap.Object]bool{without: true}
	var next []heap.Object
	visit := func(e sharkEdge) {
		if !seen[e.to] {
			seen[e.to] = true
			next = append(next, e.to)
		}
	}
	for _, r := range w.roots {
		visit(r)
	}
	for len(next) > 0 {
		o := next[len(next)-1]
		next = next[:len(next)-1]
		for _, e := range w.edges[o] {
			visit(e)
		}
	}
	delete(seen, without)
	return seen
}

// none is the value for a missing object.
const none = ^heap.Object(0)

// approximate assigns each object the dominator that Shark 2.14 finds for it
// (DominatorTree.kt, PathFinder.kt). Its search visits each reference once;
// when it finds another reference to an object, it moves the object's dominator
// up to the nearest common dominator known at that time. none is the dominator
// of GC roots.
func (w *weighing) approximate() map[heap.Object]heap.Object {
	dominators := map[heap.Object]heap.Object{}
	waiting := map[heap.Object]bool{}
	var first, last []heap.Object
	lasting := false
	enqueue := func(e sharkEdge, parent heap.Object) {
		_, met := dominators[e.to]
		dominators[e.to] = common(dominators, e.to, parent)
		low := lasting || e.low
		switch {
		case !met && low:
			waiting[e.to] = true
			last = append(last, e.to)
		case !met, !low && waiting[e.to]:
			delete(waiting, e.to)
			first = append(first, e.to)
		}
	}
	for _, r := range w.roots {
		enqueue(r, none)
	}
	for len(first)+len(last) > 0 {
		var o heap.Object
		if len(first) > 0 {
			o, first = first[0], first[1:]
		} else {
			lasting = true
			o, last = last[0], last[1:]
			if !waiting[o] {
				continue
			}
			delete(waiting, o)
		}
		for _, e := range w.edges[o] {
			enqueue(e, o)
		}
	}
	return dominators
}

// common returns the nearest common dominator of an object and of a new parent
// of the object.
func common(dominators map[heap.Object]heap.Object, o, parent heap.Object) heap.Object {
	old, met := dominators[o]
	if !met || parent == none {
		return parent
	}
	above := map[heap.Object]bool{none: true}
	for at := old; at != none; at = dominators[at] {
		above[at] = true
	}
	for !above[parent] {
		parent = dominators[parent]
	}
	return parent
}

// below returns an object and all objects that it dominates.
func below(dominators map[heap.Object]heap.Object, top heap.Object) map[heap.Object]bool {
	set := map[heap.Object]bool{}
	for o := range dominators {
		for at := o; at != none; at = dominators[at] {
			if at == top {
				set[o] = true
				break
			}
		}
	}
	return set
}

// own returns the bytes that Shark counts for an object without its contents.
func (w *weighing) own(o heap.Object) int64 {
	id := w.graph.ID(o)
	return w.plain.Nodes[id].Size + w.native[id]
}

// contents returns the size of the contents that Shark adds to an object
// without searching through them.
func (w *weighing) contents(o heap.Object) (bytes int64) {
	n := w.plain.Nodes[w.graph.ID(o)]
	switch {
	case w.graph.IsClass(o):
	case n.Class == "java.lang.String":
		if value := w.plain.Nodes[n.Refs["java.lang.String.value"]]; value != nil {
			return value.Size
		}
	case boxes[n.Class]:
		// All elements are as large as the first.
		for i := len(n.Elements) - 1; i >= 0; i-- {
			if e := w.plain.Nodes[n.Elements[i]]; e != nil {
				bytes += e.Size
			}
		}
	}
	return bytes
}

var boxes = map[string]bool{
	"java.lang.Boolean[]": true, "java.lang.Character[]": true, "java.lang.Float[]": true, "java.lang.Double[]": true,
	"java.lang.Byte[]": true, "java.lang.Short[]": true, "java.lang.Integer[]": true, "java.lang.Long[]": true,
}

// compare checks the sizes in one answer against the model: the sizes of the
// objects on its paths, of the traces, and of the leaks. For Shark, the size of
// a trace is that of its largest leaking object; for us, it is that of its last
// object.
func (w *weighing) compare(t *testing.T, name string, a *sharkAnswer, sum *sizeSums) {
	t.Helper()
	credited := a.ask(t, w.data).credited
	for _, l := range a.Leaks {
		var theirs, ours int64
		for _, x := range l.Traces {
			size, err := w.compareTrace(&x, sum)
			if err != nil {
				t.Errorf("%s, %v: %v", name, a, err)
			}
			theirs += size
			ours += w.retained(x.Leaking.ID)
		}
		if line := leakLine(l.Type == sharktest.Library, l.Signature, len(l.Traces)); credited[line] != ours ||
			theirs != l.RetainedBytes {
			t.Errorf("%s, %v: %s: got %d bytes, want %d; Shark reports %d, and its traces add up to %d", name, a, line,
				credited[line], ours,
				l.RetainedBytes, theirs)
		}
	}
}

// retained returns our size of an object.
func (w *weighing) retained(id uint64) int64 {
	o, _ := w.graph.Find(hprof.ID(id))
	return w.graph.Retained(o).Total()
}

// compareTrace checks the sizes of the objects on one of Shark's traces and
// returns the size of the largest leaking object on it.
func (w *weighing) compareTrace(x *sharktest.Trace, sum *sizeSums) (size int64, err error) {
	objects := []sharktest.Object{x.Leaking}
	for _, r := range x.Path {
		objects = append(objects, r.Origin)
	}
	for _, o := range objects {
		if o.RetainedBytes < 0 {
			continue
		}
		at, ok := w.graph.Find(hprof.ID(o.ID))
		if !ok {
			return 0, fmt.Errorf("no object %#x", o.ID)
		}
		if err := w.compareObject(at, o.RetainedBytes, sum); err != nil {
			return 0, fmt.Errorf("%#x: %w", o.ID, err)
		}
		if o.Status == "LEAKING" {
			size = max(size, o.RetainedBytes)
		}
	}
	return size, nil
}

// compareObject checks the size of one object: Shark's answer must equal our
// model of Shark, and the model must differ from our size only by the causes
// that TestSharkSizes lists.
func (w *weighing) compareObject(o heap.Object, theirs int64, sum *sizeSums) error {
	if said, ok := w.known[o]; ok && said == theirs {
		return nil
	}
	w.known[o] = theirs
	d, exact, err := w.differ(o)
	if err != nil {
		return err
	}
	if w.dominators == nil {
		w.dominators = w.approximate()
	}
	var approximate int64
	for x := range below(w.dominators, o) {
		approximate += w.own(x) + w.contents(x)
	}
	d.approximation = approximate - exact
	ours := w.graph.Retained(o).Total()
	sum.add(d, theirs == ours)
	switch want := ours + d.beyond + d.contents + d.flags + d.weak + d.approximation - d.outOfSight; {
	case theirs != approximate:
		return fmt.Errorf("Shark reports %d bytes, but its model predicts %d", theirs, approximate)
	case d.approximation < 0 || d.contents < 0 || d.beyond < 0:
		return fmt.Errorf("Shark counts less than we do: %+v", d)
	case theirs != want:
		return fmt.Errorf("Shark reports %d bytes, want %d: our %d and the differences %+v", theirs, want, ours, d)
	}
	return nil
}

// differ compares the objects that an object dominates in the graph of Shark's
// references with those that it dominates in our model. exact is the size that
// Shark would report if its dominators were exact.
func (w *weighing) differ(o heap.Object) (d sizeDifference, exact int64, err error) {
	theirs, ours := w.dominated(o), w.near(o)
	outside := sync.OnceValue(func() map[hprof.ID]bool { return w.plain.Reachable(w.graph.ID(o)) })
	for x := range theirs {
		id, shallow := w.graph.ID(x), w.graph.Shallow(x)
		exact += w.own(x) + w.contents(x)
		d.contents += w.contents(x)
		switch {
		case !ours[x] && w.graph.Reachability(x) > heap.Soft:
			d.weak += w.own(x)
		case !ours[x] && !outside()[id]:
			return d, exact, fmt.Errorf("the plain reader finds no second path to %#x", id)
		case !ours[x]:
			d.beyond += w.own(x)
		case w.graph.IsClass(x):
			// Shark counts the bytes of the class's record. All classes of
			// these dumps are roots.
			return d, exact, fmt.Errorf("class %#x is not a root", id)
		default:
			d.flags += w.native[id] - shallow.Native
			if java := w.plain.Nodes[id].Size; java != shallow.Java {
				return d, exact, fmt.Errorf("%#x: Shark counts %d bytes, but we count %d", id, java, shallow.Java)
			}
		}
	}
	for x := range ours {
		size, holder := w.graph.Shallow(x).Total(), w.holder(x)
		switch {
		case theirs[x]:
		case x != holder && theirs[holder]:
			d.contents -= size
		case !w.all[holder]:
			d.outOfSight += size
		case outside()[w.graph.ID(holder)]:
			return d, exact, fmt.Errorf("the plain reader also reaches %#x by another path", w.graph.ID(x))
		default:
			d.weak -= size
		}
	}
	return d, exact, nil
}

// dominated returns the objects to which Shark's references lead only through
// one object.
func (w *weighing) dominated(o heap.Object) map[heap.Object]bool {
	if w.all == nil {
		w.all = w.reached(none)
	}
	set := maps.Clone(w.all)
	for x := range w.reached(o) {
		delete(set, x)
	}
	return set
}

// holder returns the string, or the array of boxed values, to whose contents an
// object belongs; for any other object, it returns the object itself.
func (w *weighing) holder(o heap.Object) heap.Object {
	d, ok := w.graph.Dominator(o)
	if ok && (w.graph.Class(d) == "java.lang.String" || boxes[w.graph.Class(d)]) {
		return d
	}
	return o
}

// sizeDifference holds the excess bytes that Shark counts, by cause; outOfSight
// is the number of bytes that it omits.
type sizeDifference struct {
	beyond, contents, flags, weak, approximation, outOfSight int64
}

func (s *sizeSums) add(d sizeDifference, equal bool) {
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	s.objects++
	count(&s.equal, equal)
	count(&s.beyond, d.beyond != 0)
	count(&s.contents, d.contents != 0)
	count(&s.flags, d.flags != 0)
	count(&s.weak, d.weak != 0)
	count(&s.approximation, d.approximation != 0)
	count(&s.outOfSight, d.outOfSight != 0)
}

// near returns an object and the objects that it dominates in our model; the
// set is empty unless the object is strongly or softly reachable.
func (w *weighing) near(top heap.Object) map[heap.Object]bool {
	set := map[heap.Object]bool{}
	if w.graph.Reachability(top) > heap.Soft {
		return set
	}
	for o := range heap.Object(w.graph.Objects) {
		for at, ok := o, true; ok; at, ok = w.graph.Dominator(at) {
			if at == top {
				set[o] = true
				break
			}
		}
	}
	return set
}
