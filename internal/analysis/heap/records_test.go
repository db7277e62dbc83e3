package heap_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// reading collects the output of Read and compares it with a world.
type reading struct {
	*answer
	graph  *heap.Graph
	bodies map[hprof.ID][]byte
	met    map[hprof.ID]int
}

func newReading(a *answer, g *heap.Graph) *reading {
	return &reading{a, g, map[hprof.ID][]byte{}, map[hprof.ID]int{}}
}

// visit adds a record, and checks the values other than Body.
func (r *reading) visit(rec *heap.Record) error {
	id := r.graph.ID(rec.Object)
	o := r.byID(id)
	r.met[id]++
	count := o.count
	if o.kind == hprof.SubObjectArray {
		count = uint32(len(o.elements))
	}
	if rec.Kind != o.kind || o.kind != hprof.SubInstance && rec.Count != count || rec.Type != o.element &&
		o.element != 0 {
		return fmt.Errorf("object %#x is a %v of %d elements of %v", id, rec.Kind, rec.Count, rec.Type)
	}
	if o.kind != hprof.SubInstance {
		size := hprof.Object
		if o.element != 0 {
			size = o.element
		}
		if got := len(r.bodies[id]) / size.Size(r.idSize); got != int(rec.First) {
			return fmt.Errorf("object %#x: got a piece that starts at element %d, want %d", id, rec.First, got)
		}
	}
	r.bodies[id] = append(r.bodies[id], rec.Body...)
	return r.ask(rec, o)
}

func (r *reading) byID(id hprof.ID) *object {
	i := slices.IndexFunc(r.objects, func(o *object) bool { return o.id == id })
	return r.objects[i]
}

// ask compares the results of the record's accessors with the world.
func (r *reading) ask(rec *heap.Record, o *object) error {
	var got []hprof.ID
	rec.References(func(to heap.Object) { got = append(got, r.graph.ID(to)) })
	if o.kind == hprof.SubObjectArray {
		return r.askElements(rec, o, got)
	}
	var want []hprof.ID
	for _, e := range r.edges[o.n] {
		want = append(want, r.objects[e.to].id)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("object %#x references %#x, want %#x", o.id, got, want)
	}
	if rec.Elements() != 0 || rec.Has("nothing") {
		return fmt.Errorf("object %#x has %d elements", o.id, rec.Elements())
	}
	if o.kind == hprof.SubInstance {
		return r.askFields(rec, o)
	}
	return nil
}

func (r *reading) askElements(rec *heap.Record, o *object, got []hprof.ID) error {
	var want []hprof.ID
	for i := range rec.Elements() {
		e := o.elements[int(rec.First)+i]
		to, ok := rec.Element(i)
		if ok != r.has(e) || ok && r.graph.ID(to) != e.id {
			return fmt.Errorf("element %d of %#x is %#x (%t)", i, o.id, r.graph.ID(to), ok)
		}
		if ok {
			want = append(want, e.id)
		}
	}
	if _, ok := rec.Element(rec.Elements()); ok || !slices.Equal(got, want) {
		return fmt.Errorf("object %#x references %#x, want %#x", o.id, got, want)
	}
	return nil
}

// askFields reads each field by name; of several fields with one name, the
// field that is declared nearest to the object's class is expected.
func (r *reading) askFields(rec *heap.Record, o *object) error {
	for _, f := range r.known(o.class) {
		i := slices.IndexFunc(o.class.layout(), func(p placed) bool { return p.name == f.name })
		nearest, v := o.class.layout()[i], o.values[i]
		to, isRef := rec.Ref(f.name)
		n, isInt := rec.Int(f.name)
		b, isBool := rec.Bool(f.name)
		if !rec.Has(f.name) || isRef != (nearest.kind == hprof.Object && r.has(v.object)) || isRef &&
			r.graph.ID(to) != v.object.id {
			return fmt.Errorf("%s of %#x is %#x (%t)", f.name, o.id, r.graph.ID(to), isRef)
		}
		want, integer := extend(nearest.kind, v.bits)
		if isInt != integer || isInt && n != want || isBool != isInt || b != (isInt && n != 0) {
			return fmt.Errorf("%s of %#x is %d (%t), want %d (%t)", f.name, o.id, n, isInt, want, integer)
		}
	}
	return nil
}

// extend converts the bits of an integer type to its signed value; the result
// is false for other types.
func extend(t hprof.Type, bits uint64) (int64, bool) {
	switch t {
	case hprof.Boolean, hprof.Byte:
		return int64(int8(bits)), true
	case hprof.Char:
		return int64(uint16(bits)), true
	case hprof.Short:
		return int64(int16(bits)), true
	case hprof.Int:
		return int64(int32(bits)), true
	case hprof.Long:
		return int64(bits), true
	}
	return 0, false
}

// compare compares the contents of the wanted objects with the world.
func (r *reading) compare(wanted []*object) error {
	d := dumper{world: r.world}
	for _, o := range wanted {
		var want []byte
		switch o.kind {
		case hprof.SubInstance:
			want = d.fields(o)
		case hprof.SubObjectArray:
			for _, e := range o.elements {
				want = d.append(want, hprof.Object, value{object: e})
			}
		case hprof.SubPrimitiveArray:
			want = r.data(o)
		}
		if met := r.met[o.id]; o.kind != hprof.SubClassDump &&
			(met == 0 || met > 1 && len(want) < 1<<10 || !bytes.Equal(r.bodies[o.id], want)) {
			return fmt.Errorf("object %#x was visited %d times with %d bytes, want %d bytes", o.id, r.met[o.id],
				len(r.bodies[o.id]),
				len(want))
		}
	}
	maps.DeleteFunc(r.met, func(id hprof.ID, _ int) bool { return slices.Contains(wanted, r.byID(id)) })
	if len(r.met) > 0 {
		return fmt.Errorf("unwanted objects: %v", r.met)
	}
	return nil
}

// contents returns a world with objects of all kinds, including arrays longer
// than the scanner's buffer.
func contents(t *testing.T, seed uint64) (*world, *heap.Graph) {
	d, w := randomWorld(seed, 120)
	long := w.array(d.arrays[0])
	for i := range 200_000 {
		long.elements = append(long.elements, w.objects[i*i%len(w.objects)])
	}
	long.elements[0], long.elements[199_999] = nil, d.gone[0]
	long.id = 0xfff00000
	for i, kind := range []hprof.Type{
		hprof.Byte, hprof.Boolean, hprof.Char, hprof.Short, hprof.Int, hprof.Float, hprof.Long, hprof.Double,
	} {
		w.primitives(kind, uint32((600<<10+d.IntN(500))/kind.Size(4))).id = hprof.ID(0xfff00010 + 16*i)
		w.primitives(kind, 0).id = hprof.ID(0xfff00018 + 16*i)
	}
	return w, load(t, w.write(t, form{order: d.Perm(len(w.objects))}).dump, heap.Options{Workers: 2})
}

func numbersOf(t *testing.T, g *heap.Graph, list []*object) (numbers []heap.Object) {
	t.Helper()
	for _, o := range list {
		n, ok := g.Find(o.id)
		if !ok {
			t.Fatalf("object %#x not found", o.id)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// TestRead rereads all objects, a few objects, one object twice, and none.
func TestRead(t *testing.T) {
	for seed := range uint64(3) {
		w, g := contents(t, seed+20)
		a := &answer{world: w}
		for _, o := range w.objects {
			a.edges = append(a.edges, a.follow(o))
		}
		wants := map[string][]*object{
			"all": w.objects, "few": w.objects[10:30], "long": w.objects[len(w.objects)-12:],
			"twice": {w.objects[9], w.objects[9]}, "none": nil,
		}
		for name, wanted := range wants {
			t.Run(fmt.Sprint(seed, " ", name), func(t *testing.T) {
				r := newReading(a, g)
				if err := g.Read(t.Context(), numbersOf(t, g, wanted), r.visit); err != nil {
					t.Fatal(err)
				}
				if err := r.compare(wanted); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestReadStops checks that Read stops when visit or the reader returns an
// error, or when the context is canceled.
func TestReadStops(t *testing.T) {
	const objects = 200_000
	f, w := watch(t, chain(t, objects))
	g, err := heap.Load(t.Context(), f, heap.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	all := make([]heap.Object, g.Objects)
	for o := range all {
		all[o] = heap.Object(o)
	}
	goroutines := runtime.NumGoroutine()
	visits := 0
	err = g.Read(t.Context(), all, func(*heap.Record) error {
		if visits++; visits == 1000 {
			return io.ErrShortBuffer
		}
		return nil
	})
	// The other goroutine may still be in the middle of its chunk.
	if !errors.Is(err, io.ErrShortBuffer) || visits > objects/2 {
		t.Errorf("%v, after %d visits", err, visits)
	}
	ctx, cancel := context.WithCancel(t.Context())
	visits = 0
	err = g.Read(ctx, all, func(*heap.Record) error {
		if visits++; visits == 1000 {
			cancel()
		}
		return nil
	})
	if cancel(); !errors.Is(err, context.Canceled) || visits > objects/2 {
		t.Errorf("%v, after %d visits", err, visits)
	}
	if err := g.Read(ctx, all, func(*heap.Record) error { return io.EOF }); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled before Read: got %v", err)
	}
	w.after = func(int64) error { return io.ErrNoProgress }
	if err := g.Read(t.Context(), all, func(*heap.Record) error { return nil }); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("failing reader: got %v", err)
	}
	checkNoGoroutines(t, goroutines)
}

// TestClasses looks up classes by name, and static fields.
func TestClasses(t *testing.T) {
	for seed := range uint64(60) {
		_, w := randomWorld(seed, 60)
		g := load(t, w.dump(t), heap.Options{})
		a := w.solve()
		for _, c := range w.classes {
			if err := a.askClass(g, c); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, c.name, err)
			}
		}
		if g.HasClass("no.such.Class") || len(g.InstancesOf("no.such.Class")) != 0 ||
			len(g.Exactly("no.such.Class")) != 0 {
			t.Fatalf("seed %d: found a class that does not exist", seed)
		}
		if _, ok := g.Static("no.such.Class", "s0"); ok {
			t.Fatalf("seed %d: found a static field of a missing class", seed)
		}
	}
}

func (a *answer) askClass(g *heap.Graph, c *class) error {
	name := a.className(&object{kind: hprof.SubInstance, class: c})
	var exact, family []hprof.ID
	for _, o := range a.objects {
		derived := false
		for k := a.classOf(o); k != nil; k = k.super {
			derived = derived || a.className(&object{kind: hprof.SubInstance, class: k}) == name
			if !a.has(k.object) {
				break
			}
		}
		if derived {
			family = append(family, o.id)
		}
		if a.className(o) == name {
			exact = append(exact, o.id)
		}
		if n, _ := g.Find(o.id); g.InstanceOf(n, name) != derived {
			return fmt.Errorf("got %#x as an instance of the class: %t", o.id, !derived)
		}
	}
	for _, list := range []struct {
		got  []heap.Object
		want []hprof.ID
	}{{g.Exactly(name), exact}, {g.InstancesOf(name), family}} {
		if !slices.IsSorted(list.got) {
			return fmt.Errorf("%v is not sorted", list.got)
		}
		var got []hprof.ID
		for _, o := range list.got {
			got = append(got, g.ID(o))
		}
		slices.Sort(got)
		slices.Sort(list.want)
		if !slices.Equal(got, list.want) {
			return fmt.Errorf("objects %#x, want %#x", got, list.want)
		}
	}
	return a.askStatics(g, c)
}

// classOf returns the class of an object. For a class object or a primitive
// array, it returns a class only if the dump has that class.
func (a *answer) classOf(o *object) *class {
	switch o.kind {
	case hprof.SubInstance, hprof.SubObjectArray:
		return o.class
	}
	// These classes have no superclass in the dump.
	return &class{name: a.className(o), object: &object{n: len(a.objects)}}
}

func (a *answer) askStatics(g *heap.Graph, c *class) error {
	if !a.has(c.object) {
		return nil
	}
	if !g.HasClass(c.name) {
		return errors.New("not there")
	}
	o, _ := g.Find(c.object.id)
	if g.ClassName(o) != c.name {
		return fmt.Errorf("named %s", g.ClassName(o))
	}
	var got, want []hprof.ID
	g.StaticReferences(o, func(to heap.Object) { got = append(got, g.ID(to)) })
	for _, e := range a.edges[c.object.n] {
		want = append(want, a.objects[e.to].id)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("references %#x, want %#x", got, want)
	}
	if slices.ContainsFunc(a.classes, func(other *class) bool { return other != c && other.name == c.name }) {
		// TestStaleClass checks which of two classes with the same name is
		// found.
		return nil
	}
	for _, s := range c.statics {
		to, isRef := g.Static(c.name, s.name)
		n, isInt := g.StaticInt(c.name, s.name)
		value, integer := extend(s.kind, s.value.bits)
		if isRef != (s.kind == hprof.Object && a.has(s.value.object)) || isRef && g.ID(to) != s.value.object.id ||
			isInt != integer || n != value {
			return fmt.Errorf("static %s is %#x (%t), %d (%t)", s.name, g.ID(to), isRef, n, isInt)
		}
	}
	return nil
}

// TestStaleClass reads a dump that contains a class twice. The static field of
// the class in use must be found, whichever of the two records comes first.
func TestStaleClass(t *testing.T) {
	for _, first := range []bool{true, false} {
		w := &world{idSize: 8}
		var instance *object
		for _, used := range []bool{first, !first} {
			c := w.class("com.example.Main", nil, 8)
			v := value{}
			if used {
				instance = w.instance(c)
				v.object = instance
			}
			c.statics = []static{{field{"sInstance", hprof.Object}, v}}
		}
		g := load(t, w.dump(t), heap.Options{})
		if o, ok := g.Static("com.example.Main", "sInstance"); !ok || g.ID(o) != instance.id {
			t.Errorf("class in use comes first: %t: got %#x (%t)", first, g.ID(o), ok)
		}
	}
}

// Roots must return the roots whose objects exist.
func TestRoots(t *testing.T) {
	w := &world{idSize: 4}
	c := w.class("C", nil, 8)
	o := w.instance(c)
	for _, kind := range rootKinds {
		w.root(kind, o)
		w.root(kind, &object{id: 8, n: 100})
	}
	g := load(t, w.dump(t), heap.Options{})
	var got []hprof.SubTag
	g.Roots(func(r hprof.Root, n heap.Object) {
		if g.ID(n) != o.id || r.Object != o.id {
			t.Errorf("root %v of %#x", r, g.ID(n))
		}
		got = append(got, r.Kind)
	})
	want := slices.DeleteFunc(slices.Clone(rootKinds),
		func(k hprof.SubTag) bool { return k == hprof.SubRootUnreachable })
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestNormalName(t *testing.T) {
	names := map[string]string{
		"java/lang/String":     "java.lang.String",
		"java.lang.String":     "java.lang.String",
		"[Ljava/lang/String;":  "java.lang.String[]",
		"[Ljava.lang.String;":  "java.lang.String[]",
		"[[Ljava/lang/Object;": "java.lang.Object[][]",
		"java.lang.Object[][]": "java.lang.Object[][]",
		"[I":                   "int[]",
		"[[Z":                  "boolean[][]",
		"int[]":                "int[]",
		"I":                    "I",
		"com/example/A$1":      "com.example.A$1",
		"com/example/Main$$Lambda+0x0000000800c03000": "com.example.Main$$Lambda+0x0000000800c03000",
		"":  "",
		"[": "[]",
	}
	for name, want := range names {
		if got := heap.NormalName(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	for _, r := range []heap.Reachability{
		heap.Strong, heap.Soft, heap.Finalizer, heap.Weak, heap.Phantom, heap.Unreachable, 200,
	} {
		if r.String() == "" || strings.ToLower(r.String()) != r.String() {
			t.Errorf("reachability %d is %q", uint8(r), r.String())
		}
	}
}

// BenchmarkRead rereads one object in a thousand. Limit: 200 MB of dump per
// second (measured: 400). The size is that of the entire dump, because the
// objects are in all parts of it.
func BenchmarkRead(b *testing.B) {
	dump := chain(b, 500_000)
	g := load(b, dump, heap.Options{})
	var some []heap.Object
	for o := heap.Object(0); int64(o) < g.Objects; o += 1000 {
		some = append(some, o)
	}
	b.SetBytes(int64(len(dump)))
	b.ReportAllocs()
	for b.Loop() {
		if err := g.Read(b.Context(), some, func(r *heap.Record) error {
			if len(r.Body) > 0 {
				binary.BigEndian.Uint32(r.Body)
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}
