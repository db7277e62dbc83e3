package android_test

import (
	"context"
	"slices"
	"testing"
	"unicode/utf16"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// facts reads recorded dumps through the graph, one object at a time.
type facts struct {
	*testing.T
	graph *heap.Graph
}

func newFacts(t *testing.T, dump string) facts { return facts{t, loadRecorded(t, dump)} }

// at finds an object, which must exist.
func (f facts) at(id hprof.ID) heap.Object {
	f.Helper()
	o, ok := f.graph.Find(id)
	if !ok {
		f.Fatalf("%#x not found", uint64(id))
	}
	return o
}

// record calls do with the record of an object.
func (f facts) record(o heap.Object, do func(*heap.Record)) {
	f.Helper()
	n := 0
	err := f.graph.Read(context.Background(), []heap.Object{o}, func(r *heap.Record) error {
		n++
		do(r)
		return nil
	})
	if err != nil || n == 0 {
		f.Fatalf("%#x: %d records, %v", uint64(f.graph.ID(o)), n, err)
	}
}

// ref returns the object that a field references; for null, it returns 0,
// false.
func (f facts) ref(o heap.Object, field string) (to heap.Object, ok bool) {
	f.Helper()
	f.record(o, func(r *heap.Record) {
		if !r.Has(field) {
			f.Errorf("%#x has no field %s", uint64(f.graph.ID(o)), field)
		}
		to, ok = r.Ref(field)
	})
	return to, ok
}

// must does the same as ref, for a field that is not null.
func (f facts) must(o heap.Object, field string) heap.Object {
	f.Helper()
	to, ok := f.ref(o, field)
	if !ok {
		f.Fatalf("%#x.%s is null", uint64(f.graph.ID(o)), field)
	}
	return to
}

func (f facts) text(o heap.Object) (s string) {
	f.Helper()
	f.record(f.must(o, "value"), func(r *heap.Record) {
		var units []uint16
		for i := 0; i < len(r.Body); i++ {
			if r.Type == hprof.Char {
				units = append(units, uint16(r.Body[i])<<8|uint16(r.Body[i+1]))
				i++
			} else {
				units = append(units, uint16(r.Body[i]))
			}
		}
		s = string(utf16.Decode(units))
	})
	return s
}

func (f facts) elements(o heap.Object) (ids []hprof.ID) {
	f.Helper()
	f.record(o, func(r *heap.Record) {
		for i := range r.Elements() {
			e, ok := r.Element(i)
			ids = append(ids, 0)
			if ok {
				ids[len(ids)-1] = f.graph.ID(e)
			}
		}
	})
	return ids
}

func (f facts) equal(what string, got, want any) {
	f.Helper()
	if got != want {
		f.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// TestVehicles contains the acceptance tests of py-hprof for a hierarchy of
// classes.
func TestVehicles(t *testing.T) {
	f := newFacts(t, "pyhprof-example-java.hprof")
	const cars = "com.example.cars."
	f.equal("vehicles", len(f.graph.InstancesOf(cars+"Vehicle")), 5)
	f.equal("cars and limos", len(f.graph.InstancesOf(cars+"Car")), 3)
	f.equal("cars", len(f.graph.Exactly(cars+"Car")), 2)
	f.equal("bikes", len(f.graph.InstancesOf(cars+"Bike")), 2)
	array := f.must(f.graph.Exactly("com.example.Cars")[0], "vehicles")
	wheels := []int64{4, 4, 4, 2, 2}
	makes := map[string]int{}
	families := []*heap.Family{
		{Class: cars + "Vehicle", Limit: 10}, {Class: cars + "Car", Limit: 1}, {Class: cars + "Bike"},
		{Class: "no.Such"},
	}
	f.graph.Gather(families...)
	f.equal("gathered vehicles", families[0].Count, int64(5))
	f.equal("gathered cars", families[1].Count, int64(3))
	f.equal("listed cars", len(families[1].Objects), 1)
	f.equal("gathered bikes", families[2].Count, int64(2))
	f.equal("listed bikes", len(families[2].Objects), 0)
	f.equal("gathered others", families[3].Count, int64(0))
	numWheels := f.graph.Field(cars+"Vehicle", "numWheels")
	for i, id := range f.elements(array) {
		o := f.at(id)
		if !f.graph.InstanceOf(o, cars+"Vehicle") || !slices.Contains(families[0].Objects, o) {
			t.Errorf("%#x is not a vehicle", uint64(id))
		}
		f.record(o, func(r *heap.Record) {
			n, ok := r.Int("numWheels")
			m, there := r.IntOf(numWheels)
			if !ok || n != wheels[i] || !there || m != n {
				t.Errorf("vehicle %d: got %d and %d wheels, want %d", i, n, m, wheels[i])
			}
		})
		makes[f.text(f.must(o, "make"))]++
	}
	for _, name := range []string{"Lolvo", "Toy Yoda", "Stretch", "F\u00e5nark", "Axes"} {
		f.equal(name, makes[name], 1)
	}
}

// TestObfuscated contains the checks of AOSP's ahat tests for a dump of Android
// 8.
func TestObfuscated(t *testing.T) {
	f := newFacts(t, "ahat-O.hprof")
	g := f.graph
	kinds := map[hprof.ID][]hprof.SubTag{}
	g.Roots(func(r hprof.Root, o heap.Object) {
		if id := g.ID(o); id == 0x6004fdb8 || id == 0x12c03470 {
			kinds[id] = append(kinds[id], r.Kind)
		}
	})
	f.equal("map", g.Class(f.at(0x6004fdb8)), "java.util.HashMap")
	f.equal("root of the runtime", slices.Contains(kinds[0x6004fdb8], hprof.SubRootVMInternal), true)
	f.equal("thread", g.Class(f.at(0x12c03470)), "java.lang.Thread")
	f.equal("root of a running thread", slices.Contains(kinds[0x12c03470], hprof.SubRootThreadObject), true)
	f.equal("heap of the map", g.Heaps[g.HeapOf(f.at(0x6004fdb8))].Name, "image")
	overhead, ok := g.Static("libcore.io.IoTracker", "$classOverhead")
	f.equal("overhead", ok && g.ID(overhead) == 0x12c028d1 && g.Shallow(overhead).Java == 124, true)

	stuff, ok := g.Static("Main", "a")
	if !ok || g.ID(stuff) != 0x12c04c28 || g.Class(stuff) != "b" {
		t.Fatalf("field Main.a: found %v, ID %#x", ok, uint64(g.ID(stuff)))
	}
	f.equal("b", f.text(f.must(stuff, "b")), "hello, world")
	f.equal("c", f.text(f.must(stuff, "c")), "Sigma (\u01a9) is not ASCII")
	f.equal("d", f.text(f.must(stuff, "d"))[:9], "embedded\x00")
	f.record(f.must(stuff, "e"), func(r *heap.Record) {
		f.equal("e", r.Type == hprof.Char && r.Count == 10 &&
			string(r.Body) == "\x00c\x00h\x00a\x00r\x00 \x00t\x00h\x00i\x00n\x00g", true)
	})
	_, there := f.ref(stuff, "f")
	f.equal("f", there, false)
	object := f.must(stuff, "g")
	f.equal("g", g.ID(object), hprof.ID(0x12c04d58))
	f.equal("g", g.Shallow(object), heap.Size{Java: 8, Native: 50000})
	f.equal("g", g.Retained(object).Total(), int64(50008))
	dominator, _ := g.Dominator(object)
	f.equal("g's dominator", dominator, stuff)
	f.equal("n", g.ID(f.must(stuff, "n")), hprof.ID(0x41a7f000))
	f.equal("n", g.Shallow(f.must(stuff, "n")).Java, int64(1000000))
	f.record(f.must(stuff, "x"), func(r *heap.Record) {
		f.equal("x", r.Type == hprof.Int &&
			string(r.Body) == "\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00", true)
	})
	for id, class := range map[hprof.ID]string{
		0x12c04f50: "java.lang.ref.PhantomReference", 0x12c04f68: "java.lang.ref.WeakReference",
	} {
		f.equal(class, g.InstanceOf(f.at(id), class), true)
		to, ok := f.ref(f.at(id), "referent")
		f.equal(class, ok && to == object, true)
	}
	_, there = f.ref(f.at(0x12c04f80), "referent")
	f.equal("null referent", there, false)
	soft := f.must(f.at(0x12c04f98), "referent")
	f.equal("soft referent", g.ID(soft), hprof.ID(0x12c04fb8))
	f.equal("soft referent", g.Reachability(soft), heap.Soft)

	array := f.must(stuff, "o")
	f.equal("o", g.Class(array), "d[]")
	if ids := f.elements(array); !slices.Equal(ids, []hprof.ID{0, 0, 0x12c05280, 0}) {
		t.Errorf("o: %x", ids)
	}
	target := f.at(0x12c052a0)
	left, right := f.must(f.must(f.at(0x12c05280), "C"), "D"), f.must(f.must(f.at(0x12c05280), "D"), "C")
	f.equal("both paths to the target", left == target && right == target, true)
	dominator, _ = g.Dominator(target)
	f.equal("dominator of the target", g.ID(dominator), hprof.ID(0x12c05280))
	for _, field := range []string{"u", "v"} {
		f.equal(field, g.Retained(f.must(stuff, field)).Total(), int64(120000))
	}
	native := int64(0)
	for _, row := range g.Histogram() {
		native += row.Shallow.Native
	}
	f.equal("registered native bytes", native, int64(50200))
}

// TestReferenceImplementation contains the checks of ahat's tests for a dump of
// a JVM.
func TestReferenceImplementation(t *testing.T) {
	f := newFacts(t, "ahat-RI.hprof")
	g := f.graph
	f.equal("a String", g.Class(f.at(0x500001a8)), "java.lang.String")
	_, there := f.ref(f.at(0x500001a8), "value")
	f.equal("value of a stripped String", there, false)
	stuff := f.at(0x500004e8)
	f.equal("class of the fixture", g.Class(stuff), "Main$DumpedStuff")
	for field, id := range map[string]hprof.ID{
		"bigArray": 0x500005cd, "anObject": 0x500004ea, "gcPathArray": 0x5000058b, "aSoftReference": 0x5000053e,
		"stackSmasher": 0x500054a9,
	} {
		f.equal(field, g.ID(f.must(stuff, field)), id)
	}
	f.record(f.must(stuff, "bigArray"), func(r *heap.Record) {
		f.equal("bigArray", r.Type == hprof.Byte && r.Count == 1000000, true)
	})
}
