package trace

import (
	"context"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// Leak is one cause of leaking objects: all objects whose traces have the same
// key, or that are held by the same known leak of the platform.
type Leak struct {
	// Key is the identity of the leak. For leaks grouped by Shark's rules, it
	// is the key of the first trace.
	Key string
	// Fingerprints are Shark's fingerprints, in the order in which they were
	// found; nil if Shark does not find a path.
	Fingerprints []string
	// Objects lists the leaking objects; Traces holds the traces of the first
	// of these objects.
	Objects []heap.Object
	Traces  []Trace
	// Credited is the memory that the search attributes to this leak. Memory
	// that is also reachable in other ways is not attributed; the sum over all
	// leaks is the memory that they hold together.
	Credited heap.Size
	// Also lists objects that leak as well but are reachable only through one
	// of Objects.
	Also []heap.Object
}

// Library returns the matcher of the known platform leak, or nil if the leak is
// the app's own.
func (l *Leak) Library() *Matcher { return l.Traces[0].Matcher }

// Fingerprint returns the first of Fingerprints, or "".
func (l *Leak) Fingerprint() string {
	if len(l.Fingerprints) == 0 {
		return ""
	}
	return l.Fingerprints[0]
}

// Result is the result of a search for leaking objects.
type Result struct {
	// Leaks are in the order in which they were found: the shortest paths
	// first, paths through known leaks last.
	Leaks []Leak
	// Unreachable lists targets to which no path leads; they are usually
	// garbage.
	Unreachable []heap.Object
	// Unprinted is the number of objects whose fingerprint was not computed
	// because their paths are too long. Untraced is the number of objects that
	// were not assigned to a leak because the paths of all objects together are
	// too long.
	Unprinted, Untraced int
}

const (
	// mostTraces is the maximum number of traces of one leak grouped by Shark's
	// rules.
	mostTraces = 64
	// mostPrinted is the maximum total number of references in all
	// fingerprints: for an app's own list in which every node holds a leak,
	// this number grows with the square of the list's length.
	mostPrinted = 1 << 24
	// mostPrints is the maximum number of fingerprints of one leak.
	mostPrints = 256
)

// Leaks groups the found objects into leaks as Shark does: by Shark's
// fingerprints, including all objects of each path.
func (s *Search) Leaks(ctx context.Context, d Describe) (*Result, error) {
	credits, err := s.credit(ctx)
	if err != nil {
		return nil, err
	}
	own, behind := s.apart()
	x, err := s.forms(ctx, own, d, manner{keys: true, prints: true})
	if err != nil {
		return nil, err
	}
	g := &grouping{places: map[string]int{}, traces: mostTraces}
	for i, o := range own {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p := x.path(o)
		h := x.form(p)
		name := h.printed
		if h.matcher != nil {
			// A library leak and a leak of the app must not share a group, even
			// if they have the same fingerprint.
			name = "library " + name
		}
		g.add(name, o, func() Trace { return s.reader.trace(p, x.describe) }).
			note(h.key, h.printed, credits, o, behind[o])
	}
	g.result.Unreachable = s.unreached(credits)
	g.result.Unprinted = x.unprinted
	return &g.result, nil
}

// Fingerprints holds Shark's results for the objects that it finds: their
// fingerprints, their credits, and the objects that leak only through them.
type Fingerprints struct {
	of      map[heap.Object]string
	missing int
	credits *credits
	behind  map[heap.Object][]heap.Object
}

// Fingerprints computes the fingerprints of the found objects.
func (s *Search) Fingerprints(ctx context.Context, d Describe) (*Fingerprints, error) {
	credits, err := s.credit(ctx)
	if err != nil {
		return nil, err
	}
	own, behind := s.apart()
	x, err := s.forms(ctx, own, d, manner{prints: true, folding: true})
	if err != nil {
		return nil, err
	}
	p := &Fingerprints{of: make(map[heap.Object]string, len(own)), credits: credits, behind: behind}
	for i, o := range own {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if x.walked > mostWalked {
			x.unprinted++
			continue
		}
		p.of[o] = x.form(x.path(o)).printed
	}
	p.missing = x.unprinted
	return p, nil
}

// LeaksByKey groups the found objects into leaks by their keys. shark holds
// Shark's fingerprints, its credits, and the objects that leak only through the
// found objects; it is nil if Shark finds nothing.
func (s *Search) LeaksByKey(ctx context.Context, d Describe, shark *Fingerprints) (*Result, error) {
	own, behind := s.apart()
	if shark == nil {
		credits, err := s.credit(ctx)
		if err != nil {
			return nil, err
		}
		shark = &Fingerprints{credits: credits, behind: behind}
	}
	x, err := s.forms(ctx, own, d, manner{keys: true, folding: true})
	if err != nil {
		return nil, err
	}
	g := &grouping{places: map[string]int{}, traces: 1}
	for i, o := range own {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if x.walked > mostWalked {
			g.result.Untraced++
			continue
		}
		p := x.path(o)
		key := x.form(p).key
		g.add(key, o, func() Trace { return s.reader.trace(p, x.describe) }).
			note(key, shark.of[o], shark.credits, o, shark.behind[o])
	}
	g.result.Unreachable = s.unreached(shark.credits)
	g.result.Unprinted = shark.missing
	return &g.result, nil
}

// unreached returns the targets to which no path leads, not even through
// another target.
func (s *Search) unreached(c *credits) (list []heap.Object) {
	for _, t := range s.targets {
		if !s.reached(t) && !c.met(t) {
			list = append(list, t)
		}
	}
	return list
}

// grouping collects objects into leaks.
type grouping struct {
	result Result
	places map[string]int
	traces int
}

// add adds an object to the leak with the given name, and returns the leak.
func (g *grouping) add(name string, o heap.Object, trace func() Trace) *Leak {
	at, ok := g.places[name]
	if !ok {
		at = len(g.result.Leaks)
		g.places[name] = at
		g.result.Leaks = append(g.result.Leaks, Leak{})
	}
	l := &g.result.Leaks[at]
	l.Objects = append(l.Objects, o)
	if len(l.Traces) < g.traces {
		l.Traces = append(l.Traces, trace())
	}
	return l
}

// note adds further facts about the object that was last added to a leak.
func (l *Leak) note(key, fingerprint string, c *credits, o heap.Object, behind []heap.Object) {
	if l.Key == "" {
		l.Key = key
	}
	if fingerprint != "" && len(l.Fingerprints) < mostPrints && !slices.Contains(l.Fingerprints, fingerprint) {
		l.Fingerprints = append(l.Fingerprints, fingerprint)
	}
	size := c.of[o]
	l.Credited.Java += size.Java
	l.Credited.Native += size.Native
	l.Also = append(append(l.Also, c.also[o]...), behind...)
}

// apart separates the found objects whose paths do not go through another
// target from those whose paths do. Objects behind another target are grouped
// by the first target on their path, because they leak together with that
// target. It runs before any path is built: for a list whose nodes are all
// targets, the total length of the paths would be quadratic.
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
		// The search found the nearest target earlier, so the first target on
		// the path to that target is already known.
		if further, ok := first[before]; ok {
			before = further
		}
		first[o] = before
		behind[before] = append(behind[before], o)
	}
	return own, behind
}

// before returns the nearest target on the path to the given object.
func (s *Search) before(o heap.Object) (heap.Object, bool) {
	for {
		from, ok := s.parent(o)
		if !ok || s.target.has(from) {
			return from, ok
		}
		o = from
	}
}
