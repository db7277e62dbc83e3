package heap_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// TestGather compares the results of Gather with those of InstancesOf, for more
// families than one pass can handle.
func TestGather(t *testing.T) {
	for seed := range uint64(20) {
		d, w := randomWorld(seed, 200)
		g := load(t, w.dump(t), heap.Options{})
		var families []*heap.Family
		for range 8 {
			for _, c := range w.classes {
				families = append(families, &heap.Family{Class: c.name, Limit: d.IntN(20)})
			}
			families = append(families, &heap.Family{Class: "no.such.Class", Limit: 1})
		}
		g.Gather(families...)
		for _, f := range families {
			want := g.InstancesOf(f.Class)
			if f.Count != int64(len(want)) || !slices.Equal(f.Objects, want[:min(f.Limit, len(want))]) {
				t.Fatalf("seed %d: got %d objects of %s, listed %v, want %v", seed, f.Count, f.Class, f.Objects, want)
			}
		}
		g.Gather()
	}
}

// TestLargestArrays compares the result with a sorted list of all arrays.
func TestLargestArrays(t *testing.T) {
	for seed := range uint64(20) {
		_, w := randomWorld(seed, 300)
		g := load(t, w.dump(t), heap.Options{})
		var all []heap.Object
		for _, o := range w.objects {
			if n, ok := g.Find(o.id); ok && o.kind != hprof.SubInstance && o.kind != hprof.SubClassDump {
				all = append(all, n)
			}
		}
		slices.SortFunc(all, func(a, b heap.Object) int {
			if x, y := g.Shallow(a).Java, g.Shallow(b).Java; x != y {
				return int(y - x)
			}
			return int(a) - int(b)
		})
		for _, n := range []int{-1, 0, 1, 2, 7, len(all), 1 << 20} {
			if got := g.LargestArrays(n); !slices.Equal(got, all[:min(max(n, 0), len(all))]) {
				t.Fatalf("seed %d: got %v, want the first %d of %v", seed, got, n, all)
			}
		}
	}
}

// TestFields reads each field of each class, including hidden fields, in all
// objects.
func TestFields(t *testing.T) {
	for seed := range uint64(60) {
		_, w := randomWorld(seed, 40)
		g := load(t, w.dump(t), heap.Options{})
		a := &answer{world: w}
		fields := map[placed]*heap.Field{}
		for _, c := range w.classes {
			for _, f := range c.fields {
				if slices.ContainsFunc(w.classes,
					func(other *class) bool { return other != c && other.name == c.name }) {
					continue
				}
				got := g.Field(c.name, f.name)
				if got.Declared() != (a.has(c.object) && !c.nameless) {
					t.Fatalf("seed %d: %s.%s: got declared %t", seed, c.name, f.name, got.Declared())
				}
				if got.Declared() {
					fields[placed{f, c}] = got
				}
			}
		}
		err := g.Read(t.Context(), numbersOf(t, g, w.objects), func(r *heap.Record) error {
			i := slices.IndexFunc(w.objects, func(o *object) bool { return o.id == g.ID(r.Object) })
			for p, f := range fields {
				if err := a.askField(g, r, w.objects[i], p, f); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func (a *answer) askField(g *heap.Graph, r *heap.Record, o *object, p placed, f *heap.Field) error {
	var v value
	there := false
	if o.kind == hprof.SubInstance {
		if i := slices.Index(a.known(o.class), p); i >= 0 {
			v, there = o.values[i], true
		}
	}
	to, isRef := r.RefOf(f)
	null, isRefs := r.IsNull(f)
	n, isInt := r.IntOf(f)
	b, isBool := r.BoolOf(f)
	ref := there && p.kind == hprof.Object
	want, integer := extend(p.kind, v.bits)
	integer = integer && there
	switch {
	case isRefs != ref, isRef != (ref && a.has(v.object)), isRef && g.ID(to) != v.object.id,
		null != (ref && v.object == nil):
		return fmt.Errorf("%s.%s of %#x is %#x (%t), null %t (%t)", p.owner.name, p.name, o.id, g.ID(to), isRef, null,
			isRefs)
	case isInt != integer, isInt && n != want, isBool != isInt, b != (isInt && n != 0):
		return fmt.Errorf("%s.%s of %#x is %d (%t), want %d (%t)", p.owner.name, p.name, o.id, n, isInt, want, integer)
	}
	return nil
}

// TestHasStatic looks up a primitive static field and a static reference.
func TestHasStatic(t *testing.T) {
	w := &world{idSize: 4}
	c := w.class("C", nil, 8)
	c.statics = []static{{field{"i", hprof.Int}, value{}}, {field{"o", hprof.Object}, value{}}}
	g := load(t, w.dump(t), heap.Options{})
	for _, name := range []string{"i", "o"} {
		if !g.HasStatic("C", name) || g.HasStatic("D", name) || g.HasStatic("C", name+name) {
			t.Errorf("static %s must exist only in the class that declares it", name)
		}
	}
}

// Serial numbers identify the stack traces.
func TestStacks(t *testing.T) {
	w := newScribe(4)
	names := []string{"run", "Main.java", "()V", "loop", "com/example/Main"}
	for i, name := range names {
		w.String(hprof.ID(0x10+i), name)
	}
	w.LoadClass(hprof.LoadedClass{Serial: 5, Class: 0x100, Name: 0x14})
	w.Frame(hprof.Frame{ID: 0, Method: 0x10, Signature: 0x12, Source: 0x11, Class: 5, Line: 17})
	w.Frame(hprof.Frame{ID: 1, Method: 0x13, Signature: 0x12, Source: 0x99, Class: 6, Line: -3})
	w.Trace(hprof.Trace{Serial: 1})
	w.Trace(hprof.Trace{Serial: 2, Frames: []hprof.ID{1, 0, 7}})
	w.Trace(hprof.Trace{Serial: 3, Frames: []hprof.ID{0}})
	w.BeginSegment()
	g := load(t, w.dump(t), heap.Options{})
	run := heap.StackFrame{Class: "com.example.Main", Method: "run", Source: "Main.java", Line: 17}
	loop := heap.StackFrame{Method: "loop", Line: -3}
	want := [][]heap.StackFrame{{run}, {loop, run}, nil, nil, {loop, run}}
	if got := g.Stacks([]uint32{3, 2, 1, 9, 2}, 10); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := g.Stacks([]uint32{2}, 1); !reflect.DeepEqual(got, [][]heap.StackFrame{{loop}}) {
		t.Errorf("got frames %v with a limit of one", got)
	}
}
