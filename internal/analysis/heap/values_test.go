package heap_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// TestValuesAndHolders compares the fields of random objects with the written
// values, and the holders of these objects with the world.
func TestValuesAndHolders(t *testing.T) {
	values, holders := 0, 0
	for seed := range uint64(300) {
		d, w := randomWorld(seed, 60)
		w.model = []heap.SizeModel{heap.Ahat, heap.Leakgate}[seed%2]
		g, err := open(w.write(t, d.form()).dump, heap.Options{Inbound: true, Model: w.model})
		if err != nil {
			t.Fatal(err)
		}
		a := w.read()
		got := map[heap.Object][]string{}
		all := make([]heap.Object, 0, g.Objects)
		for o := range heap.Object(g.Objects) {
			all = append(all, o)
		}
		err = g.Read(context.Background(), all, func(r *heap.Record) error {
			for _, v := range r.Values(1 << 20) {
				got[r.Object] = append(got[r.Object], valueLine(v))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range a.objects {
			n, _ := g.Find(o.id)
			if o.kind == hprof.SubClassDump {
				for _, v := range g.StaticValues(n, 1<<20) {
					got[n] = append(got[n], valueLine(v))
				}
			}
			if want := a.valueLines(o); o.kind != hprof.SubPrimitiveArray && !slices.Equal(got[n], want) {
				t.Fatalf("seed %d: %s %#x has\n%q, want\n%q", seed, a.className(o), o.id, got[n], want)
			}
			values += len(got[n])
			list, count, err := g.Holders(n, 1<<20)
			if err != nil || count != len(list) {
				t.Fatalf("got %d of %d holders, %v", len(list), count, err)
			}
			if want := a.holdersOf(g, o); !slices.Equal(list, want) {
				t.Fatalf("seed %d: %s %#x: got holders %v, want %v", seed, a.className(o), o.id, list, want)
			}
			holders += len(list)
		}
		g.Close()
	}
	if values < 10_000 || holders < 1000 {
		t.Errorf("only %d values and %d holders", values, holders)
	}
}

func valueLine(v heap.FieldValue) string {
	if v.Type == hprof.Object {
		return fmt.Sprintf("%s.%s %#x", v.Class, v.Name, uint64(v.ID))
	}
	return fmt.Sprintf("%s.%s %s", v.Class, v.Name, v.Type)
}

// valueLines returns the fields in the records whose classes are known.
func (a *answer) valueLines(o *object) (list []string) {
	line := func(class, name string, kind hprof.Type, v value) {
		text := kind.String()
		if kind == hprof.Object {
			text = fmt.Sprintf("%#x", uint64(idOf(v.object)))
		}
		list = append(list, fmt.Sprintf("%s.%s %s", class, name, text))
	}
	switch o.kind {
	case hprof.SubInstance:
		for i, f := range a.known(o.class) {
			line(a.className(&object{kind: hprof.SubInstance, class: f.owner}), f.name, f.kind, o.values[i])
		}
	case hprof.SubObjectArray:
		for i, e := range o.elements {
			line("", fmt.Sprintf("[%d]", i), hprof.Object, value{object: e})
		}
	case hprof.SubClassDump:
		for _, s := range o.class.statics {
			line(a.className(&object{kind: hprof.SubInstance, class: o.class}), s.name, s.kind, s.value)
		}
	}
	return list
}

// holdersOf returns the reachable objects that reference another object
// strongly or softly.
func (a *answer) holdersOf(g *heap.Graph, o *object) (list []heap.Object) {
	if a.reach[o.n] > heap.Soft {
		return nil
	}
	for i, from := range a.objects {
		if a.reach[i] > heap.Soft || from == o {
			continue
		}
		if slices.ContainsFunc(a.edges[i], func(e edge) bool { return e.to == o.n && e.strength <= heap.Soft }) {
			n, _ := g.Find(from.id)
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}
