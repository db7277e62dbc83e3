package heap_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// TestOutbound compares the references of objects, and the fields that hold
// these references, with the world.
func TestOutbound(t *testing.T) {
	for seed := range uint64(150) {
		d, w := randomWorld(seed, 60)
		g := load(t, w.write(t, d.form()).dump, heap.Options{})
		b, err := g.Outbound(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		l, err := g.Locate(context.Background(), func(o heap.Object) bool { return !g.IsClass(o) })
		if err != nil {
			t.Fatal(err)
		}
		a := w.solve()
		for _, o := range a.objects {
			if err := a.askOutbound(g, b, o); err != nil {
				t.Fatalf("seed %d, object %#x: %v", seed, o.id, err)
			}
			if err := a.askLocation(g, l, o); err != nil {
				t.Fatalf("seed %d, object %#x: %v", seed, o.id, err)
			}
		}
		b.Close()
		l.Close()
		b.Close()
		l.Close()
	}
}

func (a *answer) askOutbound(g *heap.Graph, b *heap.Outbound, o *object) error {
	n, _ := g.Find(o.id)
	var want, got []string
	note := func(place string, to *object) {
		if to != nil && a.has(to) {
			want = append(want, fmt.Sprintf("%s %#x", place, to.id))
		}
	}
	switch o.kind {
	case hprof.SubObjectArray:
		for i, e := range o.elements {
			note(fmt.Sprint(i), e)
		}
	case hprof.SubClassDump:
		for i, s := range o.class.statics {
			if s.kind == hprof.Object {
				note(fmt.Sprintf("%s.%s %d", o.class.name, s.name, i), s.value.object)
			}
		}
	case hprof.SubInstance:
		var fields []placed
		known := a.known(o.class)
		for _, f := range known {
			if f.kind == hprof.Object && f.owner.name != "java.lang.Object" {
				fields = append(fields, f)
			}
		}
		slices.SortStableFunc(fields, func(x, y placed) int { return strings.Compare(x.name, y.name) })
		for _, f := range fields {
			note(f.owner.name+"."+f.name, o.values[slices.Index(known, f)].object)
		}
	}
	statics := 0
	for r := b.Of(n); r.Next(); {
		place := fmt.Sprint(r.Place)
		if places := b.Places(n); places != nil {
			p := places[r.Place]
			place = p.Class + "." + p.Name
			if o.kind == hprof.SubClassDump {
				statics = slices.IndexFunc(o.class.statics, func(s static) bool { return s.name == p.Name })
				place += fmt.Sprint(" ", statics)
			}
		}
		got = append(got, fmt.Sprintf("%s %#x", place, g.ID(r.To)))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("got references\n%q, want\n%q", got, want)
	}
	return nil
}

func (a *answer) askLocation(g *heap.Graph, l *heap.Locations, o *object) error {
	n, _ := g.Find(o.id)
	r, ok := l.Record(n, 1<<20)
	if ok != (o.kind != hprof.SubClassDump) {
		return fmt.Errorf("got a record: %t", ok)
	}
	if !ok {
		return nil
	}
	if r.Kind != o.kind || r.Object != n {
		return fmt.Errorf("got a record of kind %v for object %v", r.Kind, r.Object)
	}
	for i, e := range o.elements {
		if to, ok := r.Element(i); ok != (e != nil && a.has(e)) || ok && g.ID(to) != e.id {
			return fmt.Errorf("got element %d: %v (%t)", i, to, ok)
		}
	}
	var body []byte
	err := g.Read(context.Background(), []heap.Object{n}, func(whole *heap.Record) error {
		body = slices.Clone(whole.Body)
		return nil
	})
	// If two records have the same ID, the last one is used. Read also visits
	// that record last, because the dump is a single chunk.
	if err != nil || !slices.Equal(r.Body, body) {
		return fmt.Errorf("got body %x, want %x: %w", r.Body, body, err)
	}
	return nil
}
