package analysis

import (
	"context"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

const (
	// detailedObjects is the maximum number of objects that are shown with
	// their holders and, if selected by ID, with their fields.
	detailedObjects = 16
	shownFields     = 64
	shownHolders    = 16
)

// details adds the fields of objects and, if there are few objects, their
// holders.
func (d *dump) details(ctx context.Context, list []Object, objects []heap.Object) error {
	values := map[heap.Object][]heap.FieldValue{}
	err := d.graph.Read(ctx, objects, func(r *heap.Record) error {
		if d.hide != nil && r.Kind == hprof.SubPrimitiveArray && (r.Type == hprof.Char || r.Type == hprof.Byte) {
			// An array of chars or bytes may contain a string or a picture.
			return nil
		}
		if left := shownFields - len(values[r.Object]); left > 0 {
			values[r.Object] = append(values[r.Object], r.Values(left)...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	holders, all := make([][]heap.Object, len(objects)), []heap.Object{}
	for i, o := range objects {
		if d.graph.IsClass(o) {
			values[o] = d.graph.StaticValues(o, shownFields)
		}
		if len(objects) > detailedObjects {
			continue
		}
		if holders[i], list[i].HolderCount, err = d.graph.Holders(o, shownHolders); err != nil {
			return err
		}
		all = append(all, holders[i]...)
	}
	t, err := d.reading(ctx, all)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.prepareTexts(ctx, values); err != nil {
		return err
	}
	for i, o := range objects {
		for _, v := range values[o] {
			list[i].Fields = append(list[i].Fields, t.value(v))
		}
		for _, h := range holders[i] {
			list[i].Holders = append(list[i].Holders, t.holder(h, o))
		}
	}
	return nil
}

// reading returns a search for leaks that has read the references of the given
// objects; the caller must close it.
func (d *dump) reading(ctx context.Context, objects []heap.Object) (*tracing, error) {
	t, err := d.inspect(ctx, Options{})
	if err != nil {
		return nil, err
	}
	set, err := d.graph.NewSet()
	if err != nil {
		t.close()
		return nil, err
	}
	defer set.Close()
	for _, o := range objects {
		set.Add(o)
	}
	if t.outbound, err = d.graph.OutboundOf(ctx, set); err != nil {
		t.close()
		return nil, err
	}
	t.reader = trace.NewReader(d.graph, t.outbound, trace.Rules{Records: true, Leaves: true})
	return t, nil
}

// holder describes the first reference from one object to another.
func (t *tracing) holder(from, to heap.Object) holder {
	h := holder{Object: Hex(t.graph.ID(from)), Class: t.name(from)}
	places := t.outbound.Places(from)
	for f := t.outbound.Of(from); f.Next(); {
		switch {
		case f.To != to || h.Reference != "":
		case int(f.Place) < len(places):
			h.Reference = places[f.Place].Name
		default:
			h.Reference = fmt.Sprintf("[%d]", f.Place)
		}
	}
	if linked, ok := t.graph.Linked(from); h.Reference == "" && ok && linked == to {
		h.Reference = "<class>"
	}
	return h
}

// prepareTexts reads the strings among the values.
func (t *tracing) prepareTexts(ctx context.Context, values map[heap.Object][]heap.FieldValue) error {
	var list []heap.Object
	for _, of := range values {
		for _, v := range of {
			if v.InDump && t.graph.Class(v.Object) == "java.lang.String" {
				list = append(list, v.Object)
			}
		}
	}
	slices.Sort(list)
	return t.inspector.Prepare(ctx, slices.Compact(list))
}

func (t *tracing) value(v heap.FieldValue) fieldValue {
	f := fieldValue{Owner: v.Class, Name: v.Name, Type: v.Type.String()}
	switch {
	case v.Type != hprof.Object:
		f.Value = new(v.Text)
	case v.ID != 0:
		f.Object = Hex(v.ID)
		if !v.InDump {
			return f
		}
		f.Class = t.name(v.Object)
		if text, ok := t.text(v.Object); ok {
			f.Value = new(text)
		}
	}
	return f
}
