package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// FieldError is the error for a field that none of the objects has.
type FieldError struct {
	Field string
	// Has lists the fields that the objects have, those of the most derived
	// class first.
	Has []string
}

func (e *FieldError) Error() string { return fmt.Sprintf("there is no field %s", e.Field) }

// mostFields is the maximum number of fields that an error lists.
const mostFields = 1 << 10

// Selection is the result of a query.
type Selection struct {
	// Objects are the objects that pass all comparisons, in the given order.
	Objects []heap.Object
	// Unread is the number of Strings whose contents are not in the dump. A
	// String without contents passes neither an = nor a != comparison.
	Unread int
	// Text reports, for each comparison by its index, whether it compares the
	// contents of Strings.
	Text []bool
}

// Select returns the objects that pass all comparisons. A field of a subclass
// hides a field of the same name in a superclass. A returned error is a
// *FieldError or a *ValueError, or is from ctx or the reader.
func Select(ctx context.Context, g *heap.Graph, objects []heap.Object, all []Comparison) (*Selection, error) {
	s := &selector{
		graph: g, name: g.Field("java.lang.Enum", "name"), all: all, tests: map[testKey]test{},
		met: make([]bool, len(all)), left: map[heap.Object]bool{}, pending: make([][]pending, len(all)),
	}
	if len(all) == 0 {
		return &Selection{Objects: objects}, ctx.Err()
	}
	if err := g.Read(ctx, objects, s.visit); err != nil {
		return nil, err
	}
	for i, met := range s.met {
		if !met && s.fields != nil {
			return nil, &FieldError{all[i].Field, s.fields}
		}
	}
	result := &Selection{Text: make([]bool, len(all))}
	for i := range all {
		if err := s.compareTexts(ctx, i, result); err != nil {
			return nil, err
		}
	}
	result.Objects = slices.Collect(func(yield func(heap.Object) bool) {
		for _, o := range objects {
			if s.left[o] && !yield(o) {
				return
			}
		}
	})
	return result, nil
}

type testKey struct {
	comparison int
	of         hprof.Type
}

// pending is an object for which the result of a comparison depends on the
// contents of a String, or on the name of an enum constant.
type pending struct {
	object, text heap.Object
	constant     bool
}

type selector struct {
	graph *heap.Graph
	// name is the field that holds the name of an enum constant; the enum
	// itself may declare another field called name.
	name  *heap.Field
	all   []Comparison
	tests map[testKey]test
	// met marks the comparisons whose field exists in at least one object;
	// fields holds the fields of the first object.
	met    []bool
	fields []string
	// left holds the objects that have passed so far.
	left    map[heap.Object]bool
	pending [][]pending
}

// visit applies to one object all comparisons except those with the contents of
// Strings.
func (s *selector) visit(r *heap.Record) error {
	if s.fields == nil {
		s.fields = []string{}
		for _, v := range r.Values(mostFields) {
			if r.Kind == hprof.SubInstance && !slices.Contains(s.fields, v.Name) {
				s.fields = append(s.fields, v.Name)
			}
		}
	}
	passes := true
	for i, c := range s.all {
		v, ok := r.Value(c.Field)
		if !ok {
			passes = false
			continue
		}
		s.met[i] = true
		t, err := s.test(i, v.Type)
		if err != nil {
			return err
		}
		passes = passes && s.apply(i, t, r.Object, v)
	}
	if passes {
		s.left[r.Object] = true
	}
	return nil
}

func (s *selector) test(i int, of hprof.Type) (t test, err error) {
	k := testKey{i, of}
	t, known := s.tests[k]
	if known {
		return t, nil
	}
	if t, err = s.all[i].testOf(of, s.graph.IDSize); err == nil {
		s.tests[k] = t
	}
	return t, err
}

// apply reports whether a value passes, as far as this can be determined before
// the contents of Strings are read.
func (s *selector) apply(i int, t test, o heap.Object, v heap.FieldValue) bool {
	if t.passes != nil {
		return t.passes(v)
	}
	if v.ID != 0 && v.InDump {
		constant := s.graph.InstanceOf(v.Object, "java.lang.Enum")
		if constant || s.graph.Class(v.Object) == "java.lang.String" {
			s.pending[i] = append(s.pending[i], pending{o, v.Object, constant})
			return true
		}
	}
	return s.all[i].Operator == "!="
}

// nameConstants replaces enum constants with the Strings that hold their names.
func (s *selector) nameConstants(ctx context.Context, list []pending) error {
	var constants []heap.Object
	for _, p := range list {
		if p.constant {
			constants = append(constants, p.text)
		}
	}
	names := map[heap.Object]heap.Object{}
	err := s.graph.Read(ctx, constants, func(r *heap.Record) error {
		if name, ok := r.RefOf(s.name); ok {
			names[r.Object] = name
		}
		return nil
	})
	for i := range list {
		if name, ok := names[list[i].text]; ok && list[i].constant {
			list[i].text = name
		}
	}
	return err
}

// compareTexts applies a comparison to the contents of the referenced Strings.
func (s *selector) compareTexts(ctx context.Context, i int, result *Selection) error {
	t, of := s.tests[testKey{i, hprof.Object}]
	if !of || t.passes != nil {
		return nil
	}
	if err := s.nameConstants(ctx, s.pending[i]); err != nil {
		return err
	}
	var list []heap.Object
	for _, p := range s.pending[i] {
		list = append(list, p.text)
		result.Text[i] = result.Text[i] || !p.constant
	}
	slices.Sort(list)
	list = slices.Compact(list)
	equal, err := android.CompareTexts(ctx, s.graph, list, t.text)
	if err != nil {
		return err
	}
	result.Unread += len(list) - len(equal)
	for _, p := range s.pending[i] {
		same, known := equal[p.text]
		if !known || same != (s.all[i].Operator == "=") {
			delete(s.left, p.object)
		}
	}
	return nil
}
