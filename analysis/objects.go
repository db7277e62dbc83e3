package analysis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/query"
	"github.com/leakgate/leakgate/internal/text"
)

// Lookup returns details of single objects of a dump: the objects with the
// given IDs or, if a class is named, the instances of exactly this class whose
// fields satisfy all the comparisons, such as "state=CLOSED". If there are more
// than Options.Top such instances, it returns those that retain the most bytes.
// IDs that are not in the dump are named in the warnings; the error for a
// missing class or field is an *AbsentError.
func Lookup(ctx context.Context, r io.ReaderAt, size int64, ids []hprof.ID, class string, where []string,
	o Options) (*Objects, error) {
	var comparisons []query.Comparison
	for _, s := range where {
		c, err := query.Parse(s)
		if err != nil {
			return nil, err
		}
		comparisons = append(comparisons, c)
	}
	o.inbound = len(ids) <= detailedObjects
	d, err := openToShow(ctx, r, size, o)
	if err != nil {
		return nil, err
	}
	defer d.graph.Close()
	o.phase("report")
	list, found := &Objects{Schema: objectsSchema, Objects: []Object{}}, d.find(ids)
	if class != "" {
		if list.Selection, found, err = d.choose(ctx, class, comparisons, o.Top); err != nil {
			return nil, err
		}
	}
	for _, object := range found {
		list.Objects = append(list.Objects, d.object(object))
	}
	if class != "" || o.inbound {
		if err := d.details(ctx, list.Objects, found); err != nil {
			return nil, fmt.Errorf("read objects: %w", err)
		}
	}
	list.Warnings = slices.Clip(d.warnings)
	return list, nil
}

// find returns the objects with the given IDs that exist in the dump.
func (d *dump) find(ids []hprof.ID) (list []heap.Object) {
	for _, id := range ids {
		o, ok := d.graph.Find(id)
		if !ok {
			d.warn("there is no object %s in the dump", Hex(id))
			continue
		}
		list = append(list, o)
	}
	return list
}

// choose returns the instances of a class that pass all comparisons and retain
// the most bytes.
func (d *dump) choose(ctx context.Context, class string, where []query.Comparison, top int) (*selection, []heap.Object,
	error) {
	name, all, err := d.instances(class)
	if err != nil {
		return nil, nil, err
	}
	chosen, err := query.Select(ctx, d.graph, all, where)
	if e, ok := errors.AsType[*query.FieldError](err); ok {
		return nil, nil, noField(e, name)
	}
	if err != nil {
		return nil, nil, err
	}
	if chosen.Unread > 0 {
		d.warn("%s not in the dump; objects with such a string match neither = nor !=",
			text.Count(chosen.Unread, "string value is", "string values are"))
	}
	s := &selection{Class: name, Where: []string{}, Instances: len(all), Matching: len(chosen.Objects)}
	for i, c := range where {
		show := func(value string) string { return value }
		if chosen.Text != nil && chosen.Text[i] {
			// The string is redacted here because it is also redacted in the
			// list of fields.
			show = d.hide.Redact
		}
		s.Where = append(s.Where, c.String(show))
	}
	for _, o := range chosen.Objects {
		s.ShallowBytes += d.graph.Shallow(o).Total()
	}
	cost, err := d.graph.Cost(ctx, chosen.Objects, &heap.VisitBudget{Left: mostWeighed})
	if err != nil {
		return nil, nil, fmt.Errorf("weigh objects: %w", err)
	}
	s.RetainedBytes, s.RetainedIsBound = cost.Size.Total(), cost.AtLeast
	most := slices.SortedFunc(slices.Values(chosen.Objects), func(a, b heap.Object) int {
		return cmp.Or(cmp.Compare(d.graph.Retained(b).Total(), d.graph.Retained(a).Total()),
			cmp.Compare(d.graph.ID(a), d.graph.ID(b)))
	})
	return s, most[:min(top, len(most))], nil
}

// noField returns the error for a field that does not exist. It lists the
// fields that the class has.
func noField(e *query.FieldError, class string) error {
	absent := &AbsentError{
		What: "field " + e.Field + " of " + class, Warnings: []string{"its fields are " + strings.Join(e.Has, ", ")},
	}
	if len(e.Has) == 0 {
		absent.Warnings = []string{"its objects have no fields"}
	}
	for _, name := range e.Has {
		if nameTypo(e.Field, name) && len(absent.Like) < mostLike {
			absent.Like = append(absent.Like, name)
		}
	}
	return absent
}
