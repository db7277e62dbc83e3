package analysis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// tracing is the state of one search for leaks.
type tracing struct {
	*dump
	inspector *android.Inspector
	outbound  *heap.Outbound
	reader    *trace.Reader
	// shared reports whether several objects together hold an accumulation.
	shared bool
	// reading guards the inspector while it reads a number, because two
	// searches run concurrently.
	reading sync.Mutex
}

// number does the same as Inspector.Number, but can be called by several
// goroutines.
func (t *tracing) number(o heap.Object, m trace.Member) (int64, bool) {
	t.reading.Lock()
	defer t.reading.Unlock()
	return t.inspector.Number(o, m)
}

// inspect prepares a search for leaks. The caller must call close.
func (d *dump) inspect(ctx context.Context, o Options) (*tracing, error) {
	o.phase("inspect objects")
	i, err := android.NewInspector(ctx, d.graph,
		android.InspectorOptions{Shark214: o.shark214, ThreadNames: d.threads, Redactor: d.hide})
	if err != nil {
		return nil, fmt.Errorf("inspect objects: %w", err)
	}
	return &tracing{dump: d, inspector: i}, nil
}

// open prepares a search for paths to targets and to places. If m is nil, the
// dump is from a JVM; otherwise, it is from a phone.
func (t *tracing) open(ctx context.Context, m *android.Metadata, targets, places []heap.Object, o Options) error {
	h := t.holders(ctx, targets, o)
	if h.err != nil {
		return h.err
	}
	return t.read(ctx, m, h.set, slices.Concat(targets, places), places, o)
}

// holders is the set of objects that can be on the paths to the given objects,
// or the error of the search for this set.
type holders struct {
	set *heap.Set
	err error
}

func (h *holders) close() {
	if h.set != nil {
		h.set.Close()
	}
}

// holders finds the objects that lead to targets, and the objects that only
// targets hold.
func (t *tracing) holders(ctx context.Context, targets []heap.Object, o Options) (h holders) {
	if h.set, h.err = t.graph.NewSet(); h.err != nil {
		return h
	}
	t.addThreads(h.set)
	if !through(o) {
		h.err = t.graph.AddHeld(ctx, h.set, targets)
	}
	if h.err == nil {
		h.err = t.graph.AddAncestors(ctx, h.set, targets, false)
	}
	if h.err != nil {
		h.err = fmt.Errorf("find holders: %w", h.err)
		h.close()
	}
	return h
}

// addThreads adds all threads: a path to a local variable begins at its thread,
// although no reference leads from the thread to the object.
func (t *tracing) addThreads(set *heap.Set) {
	t.graph.Roots(func(r hprof.Root, x heap.Object) {
		if r.Kind == hprof.SubRootThreadObject {
			set.Add(x)
		}
	})
}

// read reads the references of the objects in a set, and of the objects that
// lead to the given places. It closes the set.
func (t *tracing) read(ctx context.Context, m *android.Metadata, within *heap.Set, targets, places []heap.Object,
	o Options) error {
	defer within.Close()
	o.phase("find holders")
	err := t.graph.AddAncestors(ctx, within, places, false)
	if err != nil {
		return fmt.Errorf("find holders: %w", err)
	}
	if len(targets) == 0 && !t.shared {
		// The retained size of a single object is what it dominates, so inbound
		// references are no longer needed.
		t.graph.ForgetInbound()
	}
	o.phase("read fields")
	if t.outbound, err = t.graph.OutboundOf(ctx, within); err != nil {
		return fmt.Errorf("read fields: %w", err)
	}
	t.inspector.Follow(t.outbound)
	t.reader = trace.NewReader(t.graph, t.outbound, t.rules(m, o))
	return nil
}

func (t *tracing) close() {
	t.inspector.Close()
	if t.outbound != nil {
		t.outbound.Close()
	}
}

// leaks adds the leaks, and the places where memory accumulates, to a report.
// The report must already contain what addContents adds.
func (d *dump) leaks(ctx context.Context, r *Report, o Options) error {
	t, err := d.inspect(ctx, o)
	if err != nil {
		return err
	}
	defer t.close()
	targets, err := t.targets(ctx, o)
	if err != nil {
		return err
	}
	d.watches = t.inspector.Watches()
	// The search for the holders runs concurrently, on another core.
	o.phase("find accumulations")
	found := make(chan holders, 1)
	go func() { found <- t.holders(ctx, targets, o) }()
	candidates, err := d.accumulations(ctx, mostSuspects)
	h := <-found
	if err = errors.Join(err, h.err); err != nil || len(targets) == 0 && len(candidates) == 0 {
		h.close()
		return err
	}
	places := make([]heap.Object, 0, len(candidates))
	for _, p := range candidates {
		places = append(places, p.Object)
		t.shared = t.shared || len(p.Sharers) > 0
	}
	if err := t.read(ctx, r.Dump.Android, h.set, targets, places, o); err != nil {
		return err
	}
	return t.search(ctx, r, targets, candidates, o)
}

// mostSuspects is the maximum number of places where memory accumulates.
const mostSuspects = 10

// find runs the searches for the targets and returns the result.
func (t *tracing) find(ctx context.Context, targets []heap.Object, o Options) (*trace.Result, error) {
	s, err := trace.Find(ctx, t.reader, targets, trace.Options{Through: through(o)})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Leaks(ctx, t.describe())
}

// search adds the leaks and the places where memory accumulates to the report,
// each with its retained size.
func (t *tracing) search(ctx context.Context, r *Report, targets []heap.Object, candidates []accumulation,
	o Options) error {
	f := &finding{tracing: t, metadata: r.Dump.Android, options: o, places: map[heap.Object]*accumulation{}}
	defer f.close()
	places := make([]heap.Object, 0, len(candidates))
	for i := range candidates {
		places = append(places, candidates[i].Object)
		f.places[candidates[i].Object] = &candidates[i]
	}
	left, err := f.searchKnown(ctx, targets, places)
	if err != nil {
		return err
	}
	if left.targets, left.garbage = t.strongest(left.targets); len(left.targets)+len(left.places) > 0 {
		if err := f.searchAll(ctx, left); err != nil {
			return err
		}
	}
	r.Unreachable = t.garbage(left.garbage)
	o.phase("weigh leaks")
	if r.Leaks, err = f.weighLeaks(ctx); err != nil {
		return err
	}
	total, err := f.weighAll(ctx)
	if err != nil {
		return err
	}
	r.LeakedBytes, r.LeakedIsBound = total.Size.Total(), total.AtLeast
	r.Suspects, err = f.weighSuspects(ctx, r.Leaks)
	return err
}

// through reports whether paths may go through objects that leak.
func through(o Options) bool { return o.shark214 || len(o.LeakingClasses) > 0 }

// order sorts leaks of the app before leaks of the platform, and both groups by
// retained bytes, largest first.
func order(a, b *Leak) int {
	library := func(l *Leak) int {
		if l.Library {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(library(a), library(b)), cmp.Compare(b.RetainedBytes, a.RetainedBytes),
		strings.Compare(a.Key, b.Key))
}

// targets returns the objects that leak: the instances of the named classes or,
// if no class is named, the objects that the inspectors find.
func (t *tracing) targets(ctx context.Context, o Options) ([]heap.Object, error) {
	if o.watched {
		return t.inspector.Watched(), nil
	}
	if len(o.LeakingClasses) == 0 {
		list, err := t.inspector.Leaking(ctx)
		if err != nil {
			return nil, fmt.Errorf("inspect objects: %w", err)
		}
		return list, nil
	}
	var list []heap.Object
	for _, class := range o.LeakingClasses {
		class = heap.NormalName(class)
		objects := t.graph.Exactly(class)
		switch {
		case len(objects) > 0:
		case t.graph.HasClass(class):
			e := AbsentError{What: "instance of " + class, Like: t.below(class)}
			t.warn("%v", &e)
		default:
			return nil, t.unknown(class)
		}
		list = append(list, objects...)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// rules returns the rules for the platform of a dump.
func (t *tracing) rules(m *android.Metadata, o Options) trace.Rules {
	rules := trace.Rules{
		Matchers: android.JVMMatchers(), ThreadName: t.inspector.ThreadName, Number: t.number, Subclasses: o.subclasses,
	}
	if o.shark214 {
		rules.Without = []string{"java.util.WeakHashMap"}
	}
	if m == nil {
		return rules
	}
	edition := android.Shark3
	if o.shark214 {
		edition = android.Shark214
	}
	rules.Matchers = t.inspector.Matchers(edition, m)
	rules.Collections = t.inspector.Collections()
	return rules
}

// text returns the contents of a String, or a hash if strings are redacted.
func (t *tracing) text(o heap.Object) (string, bool) {
	text, ok := t.inspector.Text(o)
	return t.hide.Redact(text), ok
}

func (t *tracing) describe() trace.Describe {
	return trace.Describe{
		Inspect: t.inspector.Inspect, Plain: t.inspector.Undecided, Text: t.text, Prepare: t.inspector.Prepare,
	}
}

// mostConsequences is the maximum length of Leak.Consequences: each leaked
// screen adds several objects, and one leak may have 100,000 screens.
const mostConsequences = 1000

// leak returns the report entry for a leak, without the retained sizes.
func (t *tracing) leak(l *trace.Leak) Leak {
	first := &l.Traces[0]
	r := t.leakFromTrace(first)
	r.Fingerprint, r.Fingerprints, r.CreditedBytes = l.Fingerprint(), append([]string{}, l.Fingerprints...),
		l.Credited.Total()
	if m := l.Library(); m != nil {
		r.Library, r.Pattern, r.Description, r.Source = true, m.String(), m.Description, m.Source
	}
	for _, o := range l.Objects {
		r.Objects = append(r.Objects, Hex(t.graph.ID(o)))
	}
	r.Instances, r.Classes = len(l.Objects), t.classesOf(l.Objects)
	r.Parts = t.parts(l.Objects[0])
	for _, o := range l.Also[:min(len(l.Also), mostConsequences)] {
		r.Consequences = append(r.Consequences, Related{Hex(t.graph.ID(o)), t.name(o)})
	}
	r.ConsequenceCount = len(l.Also)
	return r
}

// classesOf counts objects by class and sorts the classes by that count,
// largest first.
func (t *tracing) classesOf(objects []heap.Object) []leakClass {
	counts := map[string]int{}
	for _, o := range objects {
		counts[t.name(o)]++
	}
	list := make([]leakClass, 0, len(counts))
	for class, n := range counts {
		list = append(list, leakClass{class, n})
	}
	slices.SortFunc(list, func(a, b leakClass) int {
		return cmp.Or(cmp.Compare(b.Instances, a.Instances), strings.Compare(a.Class, b.Class))
	})
	return list
}

// shownGarbage is the maximum length of Garbage.Objects.
const shownGarbage = 10

// garbage counts, by class, the objects that should be gone and that nothing
// holds.
func (t *tracing) garbage(objects []heap.Object) []Garbage {
	type kind struct{ class, reachability string }
	list, places := []Garbage{}, map[kind]int{}
	for _, o := range objects {
		k := kind{t.name(o), t.graph.Reachability(o).String()}
		at, ok := places[k]
		if !ok {
			at = len(list)
			places[k] = at
			list = append(list,
				Garbage{
					Class: k.class, Reachability: k.reachability, Objects: []string{},
					Reason: strings.Join(t.inspector.Inspect(o).Leaking, " and "),
				})
		}
		c := &list[at]
		if c.Instances++; len(c.Objects) < shownGarbage {
			c.Objects = append(c.Objects, Hex(t.graph.ID(o)))
		}
	}
	slices.SortStableFunc(list, func(a, b Garbage) int {
		return cmp.Or(cmp.Compare(b.Instances, a.Instances), strings.Compare(a.Class, b.Class),
			strings.Compare(a.Reachability, b.Reachability))
	})
	return list
}

// strongest separates the strongly held objects from the others.
func (t *tracing) strongest(objects []heap.Object) (strong, rest []heap.Object) {
	for _, o := range objects {
		if t.graph.Reachability(o) == heap.Strong {
			strong = append(strong, o)
			continue
		}
		rest = append(rest, o)
	}
	return strong, rest
}

const (
	// partDivisor determines which parts are listed: a part must retain at
	// least 1/partDivisor of what the object retains. maxParts is the maximum
	// length of the list.
	partDivisor = 10
	maxParts    = 3
)

// parts returns the largest parts of what the given object retains, one for
// each of its fields.
func (t *tracing) parts(o heap.Object) (list []Part) {
	whole := t.graph.Retained(o).Total()
	met := map[heap.Object]bool{}
	t.reader.Read(o, func(e trace.Edge) {
		if d, ok := t.graph.Dominator(e.To); met[e.To] || !ok || d != o {
			return
		}
		met[e.To] = true
		if n := t.graph.Retained(e.To).Total(); n > 0 && n >= whole/partDivisor {
			list = append(list, Part{t.reader.Field(o, e), t.name(e.To), n})
		}
	})
	slices.SortStableFunc(list, func(a, b Part) int { return cmp.Compare(b.RetainedBytes, a.RetainedBytes) })
	return list[:min(len(list), maxParts)]
}

// leakFromTrace returns a report entry with only the fields that are taken from
// the trace.
func (t *tracing) leakFromTrace(x *trace.Trace) Leak {
	last := x.Leaking()
	r := Leak{
		Fingerprints: []string{}, Key: x.Key(), KeyText: lines(x.KeyText()),
		Class: last.Class, GCRoot: x.Root.Kind.String(), GCRootText: x.Root.Description(), Objects: []string{},
		Trace: make([]TraceElement, 0, len(x.Elements)),
	}
	for i := range x.Elements {
		e := &x.Elements[i]
		element := TraceElement{
			Object: Hex(t.graph.ID(e.Object)), Class: e.Class, Type: e.Type, Leaking: e.Status.String(),
			Reason: e.Reason, Labels: e.Labels,
		}
		if i < len(x.Elements)-1 {
			element.Reference, element.Kind, element.Owner, element.Suspect = e.Shown, kindNames[e.Kind], e.Owner,
				e.Suspect
			element.Repeat, element.Omitted = e.Repeat, e.Omitted
		}
		if e.Status != trace.NotLeaking {
			element.RetainedBytes = new(t.graph.Retained(e.Object).Total())
		}
		r.Trace = append(r.Trace, element)
	}
	return r
}

// lines splits a string into its lines.
func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

var kindNames = map[trace.EdgeKind]string{
	trace.FieldEdge: "instance_field", trace.StaticEdge: "static_field", trace.LocalEdge: "local",
	trace.ElementEdge: "array_entry", trace.ItemEdge: "array_entry", trace.ValueEdge: "array_entry",
	trace.NamedEdge: "array_entry",
}
