package trace

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// form describes what similar paths have in common: everything except the
// individual objects, indices and keys.
type form struct {
	key     string
	matcher *Matcher
	// printed is the fingerprint, or "" if computing it would take too many
	// references.
	printed string
}

// forms groups paths by form, so only one trace is needed for a hundred
// thousand objects in one list.
type forms struct {
	*paths
	describe Describe
	manner
	known map[string]*form
	code  []byte
	// left is the number of references that fingerprints may still use;
	// unprinted is the number of objects without a fingerprint.
	left      int
	unprinted int
}

// manner determines what is computed for each form (keys, fingerprints or
// both), and whether lists are folded.
type manner struct{ keys, prints, folding bool }

func (s *Search) forms(ctx context.Context, objects []heap.Object, d Describe, m manner) (*forms, error) {
	d.Inspect = remembered(d.Inspect)
	if d.Plain == nil {
		d.Plain = func(o heap.Object) bool {
			n := d.Inspect(o)
			return len(n.Leaking)+len(n.NotLeaking) == 0
		}
	}
	var plain func(heap.Object) bool
	if m.folding {
		plain = d.Plain
	}
	x := &forms{paths: s.paths(objects, plain), describe: d, manner: m, known: map[string]*form{}, left: mostPrinted}
	if err := d.prepare(ctx, x.edges); err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	return x, nil
}

// remembered returns a function that inspects each object only once, because
// paths share their beginnings.
func remembered(inspect func(heap.Object) Inspection) func(heap.Object) Inspection {
	known := map[heap.Object]Inspection{}
	return func(o heap.Object) Inspection {
		n, ok := known[o]
		if !ok {
			n = inspect(o)
			known[o] = n
		}
		return n
	}
}

// form returns the form of a path; it computes the form if no similar path was
// seen before.
func (x *forms) form(p Path) *form {
	x.code = append(x.code[:0], byte(p.Root.Kind))
	if m := p.Root.Matcher; m != nil {
		x.code = append(x.code, m.String()...)
	}
	length := 0
	for _, s := range p.Steps {
		x.encode(s.Object)
		x.code = append(x.code, nameKind(s.Edge.Kind))
		x.code = binary.AppendUvarint(x.code, uint64(namePlace(s.Edge)))
		// A fingerprint depends on the lengths of the lists on the path.
		if x.prints {
			x.code = binary.AppendUvarint(binary.AppendUvarint(x.code, uint64(s.Repeat)), uint64(s.Omitted))
		}
		x.code = append(x.code, s.Edge.Name...)
		if m := s.Edge.Matcher; m != nil {
			x.code = append(x.code, m.String()...)
		}
		length += s.Repeat + s.Omitted + 1
	}
	x.encode(p.Leak)
	h := x.known[string(x.code)]
	if h == nil {
		h = x.newForm(p, length)
		x.known[string(x.code)] = h
	}
	if x.prints && h.printed == "" {
		x.unprinted++
	}
	return h
}

func (x *forms) newForm(p Path, length int) *form {
	t := x.reader.trace(p, x.describe)
	h := &form{matcher: t.Matcher}
	if x.keys {
		h.key = t.Key()
	}
	if !x.prints || t.omits() {
		return h
	}
	if x.left -= length; x.left >= 0 {
		h.printed = t.Fingerprint()
	}
	return h
}

// encode adds those properties of an object that affect a trace: its class, and
// whether it is needed.
func (x *forms) encode(o heap.Object) {
	class, at := uint64(x.graph.ClassNumber(o)), uint64(0)
	if x.graph.IsClass(o) {
		at = uint64(o) + 1
	}
	x.code = binary.AppendUvarint(binary.AppendUvarint(x.code, class), at)
	status := byte(0)
	if x.describe.Plain(o) {
		x.code = append(x.code, status)
		return
	}
	n := x.describe.Inspect(o)
	if len(n.Leaking) > 0 {
		status |= 1
	}
	if len(n.NotLeaking) > 0 {
		status |= 2
	}
	x.code = append(x.code, status)
}
