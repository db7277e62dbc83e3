package analysis

import (
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// suspect returns the report entry for a place where memory accumulates. Its
// trace leads to the object that holds the accumulation. If GC roots hold the
// objects, the trace is that of one object, as an example.
func (t *tracing) suspect(a *accumulation, x *trace.Trace) Leak {
	if a.Root != 0 {
		x = t.example(a)
	}
	r := t.leakFromTrace(x)
	last := &r.Trace[len(r.Trace)-1]
	last.Leaking, last.Reason = trace.Unknown.String(), ""
	r.Instances = 1
	for _, o := range a.places() {
		r.Objects = append(r.Objects, Hex(t.graph.ID(o)))
	}
	r.RetainedBytes, r.RetainedNative = a.Retained.Total(), a.Retained.Native
	r.Accumulates = &Accumulation{
		Class: a.Class, Count: a.Count, Linked: a.Linked, Bytes: a.Size.Total(), Share: a.Share,
		OtherClasses: classSums(a.Beside),
		Holds:        a.Holds, Held: a.Held, HeldBytes: a.HeldSize.Total(), OtherHeld: classSums(a.HeldBeside),
		Cache: a.Cache,
	}
	if a.Behind.Count > 0 {
		r.Accumulates.AppClass = &classSums([]heap.ClassSum{a.Behind})[0]
	}
	for _, s := range a.Sharers {
		r.Accumulates.Sharers = append(r.Accumulates.Sharers, s.name)
	}
	text := x.KeyText() + "accumulates " + trace.StableClass(a.Class) + "\n"
	if a.Root != 0 {
		r.Accumulates.Root = a.Root.String()
		// An accumulation that GC roots hold has no path, so the text of its
		// key is a single line. If a GC root instead holds a single object that
		// contains the accumulation, the key is a different one.
		text = a.Root.String() + " accumulates " + trace.StableClass(a.Class) + "\n"
	}
	r.Key, r.KeyText = trace.KeyOf(text), lines(text)
	return r
}

// example returns a trace for an accumulation that GC roots hold: the trace of
// the object that retains the most bytes. The trace contains only that object
// and the kind of root that all the objects share, even if other paths lead to
// the object.
func (t *tracing) example(a *accumulation) *trace.Trace {
	e := trace.Element{Object: a.Object, Class: a.Class, Type: "instance", Labels: t.inspector.Inspect(a.Object).Labels}
	if strings.HasSuffix(a.Class, "[]") {
		e.Type = "array"
	}
	return &trace.Trace{Root: trace.Root{Object: a.Object, Kind: a.Root}, Elements: []trace.Element{e}}
}

func classSums(list []heap.ClassSum) (sums []ClassSum) {
	for _, s := range list {
		sums = append(sums, ClassSum{s.Class, s.Count, s.Size.Total()})
	}
	return sums
}
