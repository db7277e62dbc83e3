package analysis

import "github.com/leakgate/leakgate/analysis/trace"

// suspect gives a place where memory piles up as the report has it.
func (t *tracing) suspect(a *accumulation, x *trace.Trace) Leak {
	r := t.traced(x)
	last := &r.Trace[len(r.Trace)-1]
	last.Leaking, last.Reason = trace.Unknown.String(), ""
	r.Objects, r.Instances = []string{Hex(t.graph.ID(a.Object))}, 1
	r.RetainedBytes, r.RetainedNative = a.Retained.Total(), a.Retained.Native
	r.Accumulates = &Accumulation{
		Class: a.Class, Count: a.Count, Linked: a.Linked, Bytes: a.Size.Total(), Share: a.Share,
		Holds: a.Holds, Held: a.Held, HeldBytes: a.HeldSize.Total(), Cache: a.Cache,
	}
	text := x.KeyText() + "accumulates " + trace.StableClass(a.Class) + "\n"
	r.Key, r.KeyText = trace.KeyOf(text), lines(text)
	return r
}
