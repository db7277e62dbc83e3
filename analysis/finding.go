package analysis

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// finding is one search for leaks and for places where memory accumulates. It
// has three steps: a search by Shark's rules, for the fingerprints; a search by
// names, for the traces that are shown; and a search through all references and
// roots for the objects that neither of them reached.
type finding struct {
	*tracing
	metadata *android.Metadata
	options  Options
	places   map[heap.Object]*accumulation
	// leaks and suspects are the results; held and accumulationLines contain
	// the objects of each leak and suspect.
	leaks             []Leak
	suspects          []Leak
	held              [][]heap.Object
	accumulationLines [][]heap.Object
}

// missing holds the targets and places that a search did not reach. garbage
// holds the unreached targets that nothing holds strongly.
type missing struct{ targets, places, garbage []heap.Object }

func (f *finding) close() { f.graph.ForgetInbound() }

// The memory, in bytes, that a search for paths needs: for each object that
// leads to a target or a place, for each target until its leak is known, and a
// fixed part.
const (
	searchPerObject = 64
	searchPerTarget = 700
	searchAlways    = 32 << 20
)

// checkMemory returns an error if a search would exceed the memory limit.
func (f *finding) checkMemory(targets int) error {
	need := f.graph.Memory() + f.outbound.Len()*searchPerObject + int64(targets)*searchPerTarget + searchAlways
	if f.options.Memory > 0 && need > f.options.Memory {
		return &heap.MemoryError{Need: need, Limit: f.options.Memory, What: "the search for paths"}
	}
	return nil
}

// searchKnown runs two searches at the same time: one by Shark's rules, and one
// by names. It returns the targets and places that the search by names did not
// reach.
func (f *finding) searchKnown(ctx context.Context, targets, places []heap.Object) (left missing, err error) {
	if err := f.checkMemory(len(targets)); err != nil {
		return left, err
	}
	f.options.phase("find paths")
	reader := trace.NewReader(f.graph, f.outbound, f.ownRules(f.metadata))
	// The search by Shark's rules runs concurrently, on another core.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan error, 1)
	var shark *trace.Search
	go func() {
		var err error
		shark, err = f.shark(ctx, targets)
		found <- err
	}()
	own, err := trace.Find(ctx, reader, targets,
		trace.Options{Through: through(f.options), ByName: true, Early: true, Also: places})
	if err != nil {
		cancel()
	} else {
		defer own.Close()
	}
	if other := <-found; err == nil {
		err = other
	}
	if shark != nil {
		defer shark.Close()
	}
	if err != nil {
		return left, err
	}
	f.options.phase("find fingerprints")
	prints := &trace.Fingerprints{}
	if shark != nil {
		if prints, err = shark.Fingerprints(ctx, f.describe()); err != nil {
			return left, err
		}
		shark.Close()
	}
	f.reader = reader
	f.options.phase("trace leaks")
	left.targets, err = f.add(ctx, own, prints, nil)
	if err != nil {
		return left, err
	}
	left.places, err = f.addPlaces(ctx, own, places)
	return left, err
}

// shark returns the search whose paths determine the fingerprints; nil if there
// are no targets.
func (f *finding) shark(ctx context.Context, targets []heap.Object) (*trace.Search, error) {
	if len(targets) == 0 {
		return nil, nil
	}
	return trace.Find(ctx, f.reader, targets, trace.Options{Through: through(f.options), Early: through(f.options)})
}

// searchAll searches for the remaining targets through all references and
// roots.
func (f *finding) searchAll(ctx context.Context, left missing) error {
	set, err := f.allHolders(ctx, slices.Concat(left.targets, left.places))
	if err != nil {
		return err
	}
	f.options.phase("read fields")
	f.outbound.Close()
	f.outbound, err = f.graph.OutboundOf(ctx, set)
	if set != nil {
		set.Close()
	}
	if err != nil {
		return fmt.Errorf("read fields: %w", err)
	}
	if err := f.checkMemory(len(left.targets)); err != nil {
		return err
	}
	f.inspector.Follow(f.outbound)
	f.reader = trace.NewReader(f.graph, f.outbound, f.allRules(f.metadata))
	f.options.phase("find paths")
	s, err := trace.Find(ctx, f.reader, left.targets, trace.Options{Through: through(f.options), ByName: true})
	if err != nil {
		return err
	}
	defer s.Close()
	f.options.phase("trace leaks")
	lost, err := f.add(ctx, s, nil, f.heldOnlyBy)
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		f.unfinished = append(f.unfinished,
			fmt.Sprintf("%d objects that should be gone are strongly held, but only by references that leak traces "+
				"do not follow, such as those of LeakCanary, the thread that wrote the dump or the finalizer watchdog",
				len(lost)))
	}
	_, err = f.addPlaces(ctx, s, left.places)
	return err
}

// allHolders returns the objects that lead to the given objects through any
// reference. It returns nil, which stands for all objects, if the holders are
// unknown.
func (f *finding) allHolders(ctx context.Context, objects []heap.Object) (*heap.Set, error) {
	if !f.graph.KeepsInbound() {
		return nil, nil
	}
	f.options.phase("find holders")
	set, err := f.graph.NewSet()
	if err != nil {
		return nil, fmt.Errorf("find holders: %w", err)
	}
	f.addThreads(set)
	if err := f.graph.AddAncestors(ctx, set, objects, true); err != nil {
		set.Close()
		return nil, fmt.Errorf("find holders: %w", err)
	}
	return set, nil
}

// add adds the leaks that a search found, and returns the targets that it did
// not reach. holder returns what holds a leak if Shark has no path to it.
func (f *finding) add(ctx context.Context, s *trace.Search, shark *trace.Fingerprints,
	holder func(*trace.Trace) string) ([]heap.Object, error) {
	if len(s.Targets()) == 0 {
		return nil, nil
	}
	found, err := s.LeaksByKey(ctx, f.describe(), shark)
	if err != nil {
		return nil, err
	}
	if n := found.Unprinted; n > 0 {
		f.warn("%d leaking objects have no fingerprint: their paths have too many steps", n)
	}
	if n := found.Untraced; n > 0 {
		f.unfinished = append(f.unfinished,
			fmt.Sprintf("%d more objects should be gone; their paths are too long to trace", n))
	}
	for i := range found.Leaks {
		l := f.leak(&found.Leaks[i])
		if holder != nil {
			l.HeldOnlyBy = holder(&found.Leaks[i].Traces[0])
		}
		f.leaks, f.held = append(f.leaks, l), append(f.held, found.Leaks[i].Objects)
	}
	return found.Unreachable, nil
}

func (f *finding) addPlaces(ctx context.Context, s *trace.Search, places []heap.Object) (left []heap.Object,
	err error) {
	traces, err := s.Traces(ctx, places, f.describe())
	if err != nil {
		return nil, err
	}
	reached := map[heap.Object]bool{}
	for i := range traces {
		o := traces[i].Leaking().Object
		reached[o] = true
		f.addSuspect(f.suspect(f.places[o], &traces[i]), f.places[o].places())
	}
	for _, o := range places {
		if !reached[o] {
			left = append(left, o)
		}
	}
	return left, nil
}

// addSuspect adds a place where memory accumulates, or merges it into the
// suspect with the same key.
func (f *finding) addSuspect(l Leak, objects []heap.Object) {
	at := slices.IndexFunc(f.suspects, func(s Leak) bool { return s.Key == l.Key })
	if at < 0 {
		f.suspects, f.accumulationLines = append(f.suspects, l), append(f.accumulationLines, objects)
		return
	}
	s := &f.suspects[at]
	s.Objects, s.Instances = append(s.Objects, l.Objects...), s.Instances+1
	a, b := s.Accumulates, l.Accumulates
	a.Count += b.Count
	a.Bytes += b.Bytes
	a.Share += b.Share
	if a.Holds == b.Holds {
		a.Held += b.Held
		a.HeldBytes += b.HeldBytes
	}
	f.accumulationLines[at] = append(f.accumulationLines[at], objects...)
}

// mostWeighed is the maximum number of objects that are visited to weigh all
// leaks and suspects of a dump. It limits the time to about 15 seconds in the
// worst case, a dump in which every object leads to every other one.
const mostWeighed = 1 << 28

func (f *finding) weighLeaks(ctx context.Context) ([]Leak, error) {
	p := &heap.VisitBudget{Left: mostWeighed}
	costs, err := f.graph.Costs(ctx, f.held, p)
	if err != nil {
		return nil, fmt.Errorf("weigh leaks: %w", err)
	}
	shares, err := f.graph.Shares(ctx, f.held, p)
	if err != nil {
		return nil, fmt.Errorf("weigh leaks: %w", err)
	}
	for i := range f.leaks {
		l := &f.leaks[i]
		l.weigh(costs[i])
		if shares != nil {
			l.SharedBytes, l.SharedWith = shares[i].Size.Total(), shares[i].With
		}
	}
	list := append([]Leak{}, f.leaks...)
	slices.SortStableFunc(list, func(a, b Leak) int { return order(&a, &b) })
	return list, nil
}

// weighAll computes the combined retained size of all leaks of the app.
func (f *finding) weighAll(ctx context.Context) (heap.SetCost, error) {
	var all []heap.Object
	for i := range f.leaks {
		if !f.leaks[i].Library {
			all = append(all, f.held[i]...)
		}
	}
	cost, err := f.graph.Cost(ctx, all, &heap.VisitBudget{Left: mostWeighed})
	if err != nil {
		return cost, fmt.Errorf("weigh leaks: %w", err)
	}
	return cost, nil
}

func (f *finding) weighSuspects(ctx context.Context, leaks []Leak) ([]Leak, error) {
	costs, err := f.graph.Costs(ctx, f.accumulationLines, &heap.VisitBudget{Left: mostWeighed})
	if err != nil {
		return nil, fmt.Errorf("weigh suspects: %w", err)
	}
	list := append([]Leak{}, f.suspects...)
	for i := range list {
		// If GC roots hold the objects, costs[i] covers only the largest
		// object.
		if list[i].Accumulates.Root == "" {
			list[i].weigh(costs[i])
		}
		list[i].ExplainedBy = explainedBy(&list[i], leaks)
	}
	slices.SortStableFunc(list, func(a, b Leak) int { return order(&a, &b) })
	return list, nil
}

// weigh records what a leak retains.
func (l *Leak) weigh(c heap.SetCost) {
	l.RetainedBytes, l.RetainedNative, l.RetainedIsBound = c.Size.Total(), c.Size.Native, c.AtLeast
}

// ownRules returns the rules for finding the leak traces that are shown. Locals
// of main reveal little on Android, where the looper runs in main; on a JVM,
// every tool and test runner keeps its state there.
func (t *tracing) ownRules(m *android.Metadata) trace.Rules {
	rules := t.rules(m, Options{subclasses: true})
	if m == nil {
		rules.Matchers = slices.DeleteFunc(rules.Matchers, func(m trace.Matcher) bool {
			return m.Kind == trace.JavaLocal && m.Ignored && m.Name == android.MainThread
		})
	}
	return rules
}

// allRules returns rules that follow all strong references and all GC roots,
// except the references for which android.NeverFollowed returns true.
func (t *tracing) allRules(m *android.Metadata) trace.Rules {
	rules := t.ownRules(m)
	rules.Records, rules.AllRoots = true, true
	rules.Matchers = slices.DeleteFunc(rules.Matchers,
		func(m trace.Matcher) bool { return m.Ignored && !android.NeverFollowed(m.Pattern) })
	return rules
}

// heldOnlyBy describes what holds a leak if Shark has no path to it, given the
// trace of the leak.
func (f *finding) heldOnlyBy(x *trace.Trace) string {
	for i := range x.Elements {
		e := &x.Elements[i]
		if e.Kind == trace.LocalEdge && i < len(x.Elements)-1 {
			if name := f.inspector.ThreadName(e.Object); name != "" {
				return "a local variable of thread " + f.hide.Thread(name)
			}
			return "a local variable of a thread"
		}
	}
	switch x.Root.Kind {
	case hprof.SubRootInternedString:
		return "an interned string"
	case hprof.SubRootUnknown:
		return "a GC root of unknown kind"
	case hprof.SubRootFinalizing, hprof.SubRootDebugger, hprof.SubRootReferenceCleanup, hprof.SubRootVMInternal:
		return "a GC root of the virtual machine (" + x.Root.Kind.String() + ")"
	}
	for i := range x.Elements {
		if i < len(x.Elements)-1 && strings.HasPrefix(x.Elements[i].Field, "<") {
			return "the class of a live object"
		}
	}
	return "references that leak traces skip"
}

// explainedBy returns the key of the leak that explains why memory accumulates:
// a leak whose trace leads through the place, and which has at least nine
// tenths of the objects there.
func explainedBy(suspect *Leak, leaks []Leak) string {
	for i := range leaks {
		if leaks[i].explains(suspect) {
			return leaks[i].Key
		}
	}
	return ""
}

func (l *Leak) explains(suspect *Leak) bool {
	n, class := suspect.Accumulates.Accumulated()
	if l.Class != class || 10*l.Instances < 9*n {
		return false
	}
	// A trace goes through a collection, but not through the collection's
	// array.
	places := suspect.Trace[max(0, len(suspect.Trace)-2):]
	if len(places) == 2 && !android.IsPlatform(places[1].Class) && !strings.HasSuffix(places[1].Class, "[]") {
		places = places[1:]
	}
	return slices.ContainsFunc(l.Trace, func(e TraceElement) bool {
		return slices.ContainsFunc(places, func(p TraceElement) bool { return p.Object == e.Object })
	})
}

// Accumulated returns the number and the class of the accumulated objects. For
// a collection, the number and the class are those of the elements, which are
// more informative than the nodes that hold the elements.
func (a *Accumulation) Accumulated() (n int, class string) {
	if android.IsPlatform(a.Class) && a.AppClass != nil && a.AppClass.Count*10 >= a.Count*9 {
		return int(a.AppClass.Count), a.AppClass.Class
	}
	if android.IsPlatform(a.Class) && a.Holds != "" && a.Held*10 >= a.Count*9 {
		return int(a.Held), a.Holds
	}
	return int(a.Count), a.Class
}
