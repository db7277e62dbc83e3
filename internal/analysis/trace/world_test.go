package trace_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// world is a heap in two forms: as a reader reads it and, in plain, as it is
// written in the dump.
type world struct {
	testing.TB
	graph  *heap.Graph
	rules  trace.Rules
	reader *trace.Reader
	ids    hproftest.IDs
	plain  *plain
}

// graphOf loads a dump.
func graphOf(ctx context.Context, dump []byte) (*heap.Graph, error) {
	f, err := hprof.Open(ctx, bytes.NewReader(dump), int64(len(dump)))
	if err != nil {
		return nil, err
	}
	return heap.Load(ctx, f, heap.Options{Snapshot: -1, Partial: true, Inbound: true})
}

// opened returns a loaded dump with its outbound references.
func opened(ctx context.Context, dump []byte) (g *heap.Graph, b *heap.Outbound, err error) {
	if g, err = graphOf(ctx, dump); err != nil {
		return nil, nil, err
	}
	if b, err = g.Outbound(ctx); err != nil {
		g.Close()
		return nil, nil, err
	}
	return g, b, nil
}

// load writes a heap and reads it back.
func load(tb testing.TB, h *hproftest.Heap, form hproftest.Form, rules trace.Rules) *world {
	tb.Helper()
	dump, ids, err := h.Dump(form)
	if err != nil {
		tb.Fatal(err)
	}
	g, b, err := opened(tb.Context(), dump)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { b.Close(); g.Close() })
	w := &world{TB: tb, graph: g, ids: ids}
	w.plain = newPlain(tb, dump, rules)
	rules.ThreadName = func(o heap.Object) string { return w.plain.threadName(g.ID(o)) }
	if rules.Number != nil {
		rules.Number = func(o heap.Object, m trace.Member) (int64, bool) {
			return w.plain.number(g.ID(o), m.Class+"."+m.Name)
		}
	}
	w.rules, w.reader = rules, trace.NewReader(g, b, rules)
	return w
}

// numbers is a Rules.Number that returns false for every field, instead of
// reading the dump.
func numbers(heap.Object, trace.Member) (int64, bool) { return 0, false }

// object returns the object for a Ref, a Thread or a *Class.
func (w *world) object(of any) heap.Object {
	w.Helper()
	o, ok := w.graph.Find(w.ids.Of(of))
	if !ok {
		w.Fatalf("object %v is not in the dump", of)
	}
	return o
}

func (w *world) objects(list ...hproftest.Ref) (objects []heap.Object) {
	w.Helper()
	for _, r := range list {
		objects = append(objects, w.object(r))
	}
	return objects
}

// read formats the references of an object, one per line.
func (w *world) read(o heap.Object) (lines []string) {
	w.reader.Read(o, func(e trace.Edge) { lines = append(lines, w.line(o, e)) })
	return lines
}

func (w *world) line(o heap.Object, e trace.Edge) string {
	line := plainEdge{
		to: w.graph.ID(e.To), kind: e.Kind, owner: w.reader.Owner(o, e), field: w.reader.Field(o, e), low: e.Low,
	}
	switch e.Kind {
	case trace.ItemEdge, trace.ElementEdge:
		line.shown = fmt.Sprint(e.Place)
	case trace.NamedEdge:
		line.shown = e.Name
	case trace.ValueEdge:
		line.shown = "null"
		if e.HasKey {
			line.shown = fmt.Sprintf("%#x", uint64(w.graph.ID(e.Key)))
		}
	}
	if e.Matcher != nil {
		line.matcher = e.Matcher.String()
	}
	return line.String()
}

// find runs a search, and closes it at the end of the test.
func (w *world) find(targets []heap.Object, o trace.Options) *trace.Search {
	w.Helper()
	s, err := trace.Find(w.Context(), w.reader, targets, o)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(s.Close)
	return s
}

// leaks returns the leaks of a search without inspections of objects.
func (w *world) leaks(s *trace.Search) *trace.Result {
	w.Helper()
	r, err := s.Leaks(w.Context(), silent)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// silent is a Describe that returns no information about any object.
var silent = trace.Describe{Inspect: func(heap.Object) trace.Inspection { return trace.Inspection{} }}

// dice generates a random heap, and the targets to search for in it.
type dice struct {
	*rand.Rand
	*hproftest.Heap
	classes []*hproftest.Class
	// all holds the objects that may be referenced; made holds those objects
	// whose fields may be set.
	all     []hproftest.Ref
	made    []made
	threads []hproftest.Thread
}

// made is an instance of one of the classes of the app.
type made struct {
	hproftest.Ref
	class int
}

// fieldsOf lists the fields of the app's classes, including inherited ones.
var fieldsOf = [][]string{
	{"f", "g", "low", "never"}, {"f", "g", "low", "never", "extra"}, {"zulu", "low", "alpha"}, {"owner"},
	{"low", "mike"},
}

// one returns true with probability 1/n.
func (d *dice) one(n int) bool { return d.IntN(n) == 0 }

func (d *dice) pick() hproftest.Ref {
	if d.one(6) {
		return 0
	}
	return d.all[d.IntN(len(d.all))]
}

func (d *dice) some(most int) (list []hproftest.Ref) {
	for range d.IntN(most + 1) {
		list = append(list, d.pick())
	}
	return list
}

// random returns a heap of arbitrary objects with arbitrary references, and
// targets.
func random(seed uint64) (h *hproftest.Heap, form hproftest.Form, targets []hproftest.Ref) {
	rng := rand.New(rand.NewPCG(seed, 0x7ace))
	d := &dice{Rand: rng, Heap: hproftest.Java(seed)}
	if d.one(6) {
		d.Heap = hproftest.Android(hproftest.Phone{SDK: 23, Harmony: true, Seed: seed})
	}
	d.declare()
	for range 10 + d.IntN(120) {
		d.all = append(d.all, d.thing())
	}
	d.wire()
	d.root()
	for range d.IntN(16) {
		if t := d.pick(); t != 0 {
			targets = append(targets, t)
		}
	}
	if d.one(3) {
		form.Runtime = hproftest.HotSpot
	}
	form.Shuffle = d.one(3)
	return d.Heap, form, targets
}

func (d *dice) declare() {
	a := d.Declare("a.A", nil, "object f", "object g", "object low", "object never", "int n")
	b := d.Declare("a.B", a, "object f", "object extra", "static object held", "static object known",
		"static object ignored")
	c := d.Declare("a.C", nil, "object zulu", "object low", "object alpha")
	list := d.Declare("a.List", d.Class("java.util.ArrayList"), "object owner")
	twin := d.Declare("a.C", nil, "object low", "object mike", "static object known")
	d.classes = []*hproftest.Class{a, b, c, list, twin}
	for _, k := range d.classes {
		d.all = append(d.all, k.Ref())
	}
	for i := range 1 + d.IntN(3) {
		t := d.Thread([]string{"quiet", "known", "other"}[(i+d.IntN(3))%3])
		d.threads = append(d.threads, t)
		d.all = append(d.all, t.Ref)
	}
}

// thing creates an object of any kind, which references objects created before.
func (d *dice) thing() hproftest.Ref {
	object := d.Class("java.lang.Object")
	switch d.IntN(22) {
	case 0:
		return d.Objects(object, d.some(6)...)
	case 1:
		return d.String(strings.Repeat("x", d.IntN(5)))
	case 2:
		return d.Objects(d.Class("java.lang.Integer"), d.Integer(1), 0, d.Integer(2))
	case 3:
		return d.Integer(3)
	case 4:
		l := d.ArrayList(d.some(12)...)
		return l.Ref
	case 5:
		return d.LinkedList(d.some(5)...)
	case 6:
		return d.HashMap(d.pairs()...)
	case 7:
		return d.LinkedHashMap(d.pairs()...)
	case 8:
		return d.ConcurrentHashMap(d.pairs()...)
	case 9:
		return d.WeakHashMap(d.pairs()...)
	case 10:
		return d.HashSet(d.some(5)...)
	case 11:
		return d.CopyOnWriteArrayList(d.some(4)...)
	case 12:
		return d.Weak(d.pick())
	case 13:
		return d.Bytes(make([]byte, d.IntN(40)))
	case 14:
		return d.LinkedHashSet(d.some(3)...)
	}
	class := d.IntN(len(d.classes))
	r := d.New(d.classes[class], nil)
	d.made = append(d.made, made{r, class})
	return r
}

// pairs returns alternating keys and values; many keys are strings.
func (d *dice) pairs() (list []hproftest.Ref) {
	for range d.IntN(6) {
		key := d.pick()
		if d.one(2) {
			key = d.String(string(rune('a' + d.IntN(26))))
		}
		list = append(list, key, d.pick())
	}
	return list
}

// wire sets fields, including references to objects that are created later.
func (d *dice) wire() {
	for _, m := range d.made {
		// Several fields may lead to one object.
		to := d.pick()
		for _, f := range fieldsOf[m.class] {
			if !d.one(3) {
				to = d.pick()
			}
			if !d.one(3) {
				d.Set(m.Ref, f, to)
			}
		}
		if m.class == 1 && d.one(2) {
			d.SetIn(m.Ref, d.classes[0], "f", d.pick())
		}
	}
	for _, f := range []string{"held", "known", "ignored"} {
		if d.one(2) {
			d.SetStatic(d.classes[1], f, d.pick())
		}
	}
	if d.one(2) {
		d.SetStatic(d.classes[4], "known", d.pick())
	}
}

func (d *dice) root() {
	kinds := []hprof.SubTag{
		hprof.SubRootJNIGlobal, hprof.SubRootJNIGlobal, hprof.SubRootJNILocal, hprof.SubRootNativeStack,
		hprof.SubRootStickyClass,
		hprof.SubRootMonitorUsed, hprof.SubRootVMInternal, hprof.SubRootUnknown}
	for range d.IntN(6) {
		if r := d.pick(); r != 0 {
			d.Root(kinds[d.IntN(len(kinds))], r)
		}
	}
	for range d.IntN(3) {
		d.Root(hprof.SubRootStickyClass, d.classes[2])
	}
	for range d.IntN(4) {
		if r := d.pick(); r != 0 {
			d.RootOf(d.threads[d.IntN(len(d.threads))], hprof.SubRootJavaFrame, r, int32(d.IntN(3)))
		}
	}
}

// known returns the rules for the special references in random heaps.
func known() trace.Rules {
	field := func(class, name string, ignored bool) trace.Matcher {
		return trace.Matcher{
			Pattern: trace.Pattern{Kind: trace.InstanceField, Class: class, Name: name}, Ignored: ignored,
		}
	}
	static := func(class, name string, ignored bool) trace.Matcher {
		return trace.Matcher{
			Pattern: trace.Pattern{Kind: trace.StaticField, Class: class, Name: name}, Ignored: ignored,
		}
	}
	return trace.Rules{Number: numbers, Matchers: []trace.Matcher{
		field("a.A", "low", true), field("a.A", "low", false),
		field("a.A", "never", true), field("a.B", "never", false), field("a.A", "f", false), field("a.B", "f", true),
		field("a.B", "f", false),
		field("a.C", "low", false), field("a.C", "zulu", true),
		static("a.B", "known", false), static("a.B", "ignored", true), static("a.C", "known", false),
		field("java.lang.ref.WeakReference", "referent", true),
		{Pattern: trace.Pattern{Kind: trace.NativeGlobal, Class: "a.A"}},
		{Pattern: trace.Pattern{Kind: trace.NativeGlobal, Class: "a.B"}, Ignored: true},
		{Pattern: trace.Pattern{Kind: trace.NativeGlobal, Class: "a.C"}, Ignored: true},
		{Pattern: trace.Pattern{Kind: trace.NativeGlobal, Class: "a.C"}},
		{Pattern: trace.Pattern{Kind: trace.JavaLocal, Name: "quiet"}, Ignored: true},
		{Pattern: trace.Pattern{Kind: trace.JavaLocal, Name: "known"}},
	}}
}
