package trace

import (
	"context"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// Leak is one cause: all objects whose traces have the same suspect references, or go by
// the same known leak of the platform.
type Leak struct {
	Fingerprint string
	// Objects leak by it; Traces are those of the first of them.
	Objects []heap.Object
	Traces  []Trace
	// Credited is what the search gives to the leak of all that only leaking objects lead
	// to; the sum over all leaks is what they hold together.
	Credited heap.Size
	// Also are objects that leak too, but only through one of Objects.
	Also []heap.Object
}

// Library is the known leak that it is, nil where the app leaks.
func (l *Leak) Library() *Matcher { return l.Traces[0].Matcher }

// Result is what a search for leaking objects found.
type Result struct {
	// Leaks are in the order in which they were found: the shortest paths first, those by
	// known leaks last.
	Leaks []Leak
	// Unreachable are targets that no path leads to: garbage, most of the time.
	Unreachable []heap.Object
	// Untraced is how many more were found, by longer paths than there was patience for.
	Untraced int
}

const (
	// mostSteps bounds the objects on all paths together: of a list of the app's own, whose
	// every node holds a leak, they are as many as the square of the list.
	mostSteps = 1 << 21
	// mostTraces are kept of one leak. Of more leaks than mostLeaks, those with a key that
	// was there are not told apart.
	mostTraces = 64
	mostLeaks  = 256
)

// Leaks makes leaks of what was found.
func (s *Search) Leaks(ctx context.Context, d Describe) (*Result, error) {
	credits, err := s.credit(ctx)
	if err != nil {
		return nil, err
	}
	own, behind := s.apart()
	edges := s.edges(own)
	if err := d.prepare(ctx, edges); err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	g := &grouping{places: map[string]int{}}
	d.Inspect = remembered(d.Inspect)
	steps := 0
	for i, o := range own {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if steps > mostSteps {
			g.result.Untraced++
			continue
		}
		p := s.path(o, edges)
		steps += len(p.Steps) + 1
		l := g.add(s.reader.trace(p, d))
		c := credits.of[o]
		l.Credited.Java += c.Java
		l.Credited.Native += c.Native
		l.Also = slices.Concat(l.Also, credits.also[o], behind[o])
	}
	for _, t := range s.targets {
		if !s.reached(t) && !credits.met(t) {
			g.result.Unreachable = append(g.result.Unreachable, t)
		}
	}
	return &g.result, nil
}

// remembered inspects each object once: paths have their beginnings in common.
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

// grouping puts traces together.
type grouping struct {
	result Result
	// places are those of leaks, by fingerprint and, once there are many, by key.
	places map[string]int
}

// add gives the leak of a trace.
func (g *grouping) add(t Trace) *Leak {
	fingerprint := t.Fingerprint()
	name := fingerprint
	if t.Matcher != nil {
		// A library leak may have the fingerprint of no other.
		name = "library " + fingerprint
	}
	at, ok := g.places[name]
	if !ok && len(g.result.Leaks) >= mostLeaks {
		name = "key " + t.Key()
		at, ok = g.places[name]
	}
	if !ok {
		at = len(g.result.Leaks)
		g.places[name] = at
		g.result.Leaks = append(g.result.Leaks, Leak{Fingerprint: fingerprint})
	}
	l := &g.result.Leaks[at]
	l.Objects = append(l.Objects, t.Leaking().Object)
	if len(l.Traces) < mostTraces {
		l.Traces = append(l.Traces, t)
	}
	return l
}

// apart gives the found objects whose paths go through no other target, and those that are
// behind one, by the first on their way: they go with it. It does so before any path is
// made: of a list whose nodes are all targets, paths would be as long together as the
// square of the list.
func (s *Search) apart() (own []heap.Object, behind map[heap.Object][]heap.Object) {
	if !s.options.Through {
		return s.found, nil
	}
	first := map[heap.Object]heap.Object{}
	behind = map[heap.Object][]heap.Object{}
	for _, o := range s.found {
		before, ok := s.before(o)
		if !ok {
			own = append(own, o)
			continue
		}
		// It was found earlier.
		if further, ok := first[before]; ok {
			before = further
		}
		first[o] = before
		behind[before] = append(behind[before], o)
	}
	return own, behind
}

// before gives the nearest target on the way to an object.
func (s *Search) before(o heap.Object) (heap.Object, bool) {
	for {
		from, ok := s.parent(o)
		if !ok || s.target.has(from) {
			return from, ok
		}
		o = from
	}
}
