package analysis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Options configure the analysis of a dump.
type Options struct {
	// Top is the maximum length of the lists of classes and dominators.
	Top int
	// Partial analyzes the readable part of a damaged dump.
	Partial bool
	// Memory is the maximum memory for the graph, in bytes; 0 means no limit.
	Memory int64
	// SizeModel is "leakgate", the default, or "ahat", which counts only the
	// references of fields and array elements, not those from objects to their
	// classes or from classes to their loaders.
	SizeModel string
	// ShowTexts shows the app's strings: map keys, thread names, titles,
	// repeated strings. If it is false, each string is replaced by a short
	// hash, keyed by the contents of the dump.
	ShowTexts bool
	// AllStrings compares all strings, even if there are more of them than in
	// any dump of a phone.
	AllStrings bool
	// Mapping translates the names of an obfuscated build; nil if there is no
	// mapping.
	Mapping *Mapping
	// LeakingClasses are classes whose instances are all treated as leaks; all
	// other objects are then treated as not leaking. If the list is empty, the
	// inspectors decide.
	LeakingClasses []string
	// Cut is the reason why the unpacked input is incomplete; nil if it is
	// complete or was not compressed.
	Cut error
	// Phase is called with the name of each phase as it begins. Progress is
	// called with the number of bytes read and the size of the file, from
	// several goroutines.
	Phase    func(string)
	Progress func(done, total int64)

	// inbound keeps the data that is needed for a search for paths.
	inbound bool
	// shark214 follows Shark 2.14 where our rules differ. If watched is set,
	// only the objects that LeakCanary watched count as leaking. Both options
	// are used only to compare the results with those of Shark.
	shark214, watched bool
	// subclasses treats subclasses of collections like the collections
	// themselves.
	subclasses bool
}

// ErrNoHeap is the error for a dump that ends before its first object.
var ErrNoHeap = errors.New("the dump contains no objects")

// Analyze reads a dump of size bytes and returns a report about it. It returns
// a *DamageError if the dump cannot be read, ErrNoHeap if it is empty, and a
// *MemoryError if it is too large.
func Analyze(ctx context.Context, r io.ReaderAt, size int64, o Options) (*Report, error) {
	report, _, err := examine(ctx, r, size, o, false)
	return report, err
}

// Examine returns the results of both Analyze and Summarize, but reads the dump
// only once.
func Examine(ctx context.Context, r io.ReaderAt, size int64, o Options) (*Report, *Summary, error) {
	return examine(ctx, r, size, o, true)
}

func examine(ctx context.Context, r io.ReaderAt, size int64, o Options, summarize bool) (*Report, *Summary, error) {
	o.inbound = true
	d, err := openToShow(ctx, r, size, o)
	if err != nil {
		return nil, nil, err
	}
	defer d.graph.Close()
	var s *Summary
	if summarize {
		if s, err = d.summary(ctx, o); err != nil {
			return nil, nil, err
		}
	}
	o.phase("report")
	report := &Report{
		Schema: analysisSchema, Dump: d.dump(), Leaks: []Leak{}, Suspects: []Leak{}, Unreachable: []Garbage{},
		Undecided: []string{}, Classes: classes(d.graph.Heaps, d.ranked(), o.Top),
	}
	if err := d.weighClasses(ctx, report.Classes); err != nil {
		return nil, nil, fmt.Errorf("weigh classes: %w", err)
	}
	if report.Loaders, err = d.loaders(ctx); err != nil {
		return nil, nil, fmt.Errorf("weigh class loaders: %w", err)
	}
	if report.Dominators, err = d.dominators(ctx, o.Top); err != nil {
		return nil, nil, fmt.Errorf("read dominators: %w", err)
	}
	if err := d.addFindings(ctx, report, s, o); err != nil {
		return nil, nil, err
	}
	report.Undecided = d.undecided(report, o)
	report.Warnings = d.warnings
	o.phase("")
	return report, s, nil
}

// addFindings adds the contents of objects and the leaks to a report, and to a
// summary if there is one.
func (d *dump) addFindings(ctx context.Context, report *Report, s *Summary, o Options) error {
	o.phase("read contents")
	if err := d.addContents(ctx, report, o); err != nil {
		return err
	}
	told := len(d.warnings)
	if err := d.leaks(ctx, report, o); err != nil {
		return err
	}
	if s != nil {
		s.dump, s.leaks, s.suspects = report.Dump, sumLeaks(report.Leaks), sumLeaks(report.Suspects)
		// A comparison needs only the facts about the app, not the warnings
		// about what could not be counted.
		s.warnings = append(s.warnings, d.warnings[told:]...)
	}
	return nil
}

// undecided returns the reasons why leaks cannot be ruled out in the dump.
func (d *dump) undecided(r *Report, o Options) []string {
	list := append([]string{}, d.unfinished...)
	if r.Dump.Truncated || r.Dump.Partial {
		list = append(list, "the dump is incomplete")
	}
	if r.Dump.ReachableBytes == 0 {
		list = append(list, "the dump has no GC roots")
	}
	if len(o.LeakingClasses) > 0 {
		return list
	}
	if r.Dump.Android == nil && !d.watches {
		list = append(list, "nothing marks objects of a JVM as no longer needed")
	}
	if r.Dump.Android != nil && d.obfuscated && !slices.ContainsFunc(recognized, d.graph.HasClass) {
		list = append(list,
			"the names are obfuscated: fragments and view models of AndroidX are recognized only with --mapping")
	}
	return list
}

// recognized are the classes whose unobfuscated names the inspectors need to
// find fragments and view models of AndroidX.
var recognized = []string{
	"androidx.fragment.app.Fragment", "androidx.lifecycle.ViewModel", "android.support.v4.app.Fragment",
}

// addContents adds the parts of the report that are read from the contents of
// objects.
func (d *dump) addContents(ctx context.Context, r *Report, o Options) error {
	s, err := android.Read(ctx, d.graph, android.Options{Top: o.Top, AllStrings: o.AllStrings})
	if err != nil {
		return fmt.Errorf("read contents: %w", err)
	}
	if s.Metadata.Runtime == android.RuntimeAndroid {
		r.Dump.Android = s.Metadata
	}
	r.Bitmaps, r.Strings, r.Threads = s.Bitmaps, s.Strings, s.Threads.List
	r.Components, r.Finalizers, r.Exhaustion = s.Components, s.Finalizers, s.Exhaustion
	if u := s.Unused; !u.Partial {
		r.Unused = &unusedSlots{u.Collections, u.Empty, u.EmptyBytes, u.Sparse, u.SparseBytes}
	}
	d.nameThreads(s.Threads)
	if d.hide != nil {
		d.hide.Survey(s)
	}
	for _, err := range s.Warnings {
		d.warn("%v", err)
	}
	return nil
}

// nameThreads keeps the names of the threads if all threads are listed and at
// least one has a name. If no thread has a name, as in a dump whose names were
// stripped, the inspector determines the names that it needs.
func (d *dump) nameThreads(threads *android.Threads) {
	if n := threads.Omitted; n > 0 {
		d.warn("%d more threads are not listed", n)
		return
	}
	if len(threads.List) > 0 &&
		!slices.ContainsFunc(threads.List, func(t android.Thread) bool { return t.Name != "" }) {
		return
	}
	d.threads = map[heap.Object]string{}
	for _, t := range threads.List {
		if o, ok := d.graph.Find(t.Object); ok {
			d.threads[o] = t.Name
		}
	}
}

func (o *Options) phase(name string) {
	if o.Phase != nil {
		o.Phase(name)
	}
}

// dump is an open dump with its graph.
type dump struct {
	file     *hprof.File
	graph    *heap.Graph
	warnings []string
	partial  bool
	// hide redacts strings in the report; if it is nil, strings are not
	// redacted.
	hide *android.Redactor
	// obfuscated reports whether names are obfuscated and there is no mapping.
	// watches reports whether LeakCanary watched objects in the process.
	obfuscated, watches bool
	// names records whether the names in the dump are obfuscated. shapes holds
	// a hash of each class of the app whose name means nothing by itself.
	names  Naming
	shapes map[string]uint64
	// unfinished describes the objects that should be gone but are not part of
	// any leak.
	unfinished []string
	// threads are the names of all threads; nil until they are known.
	threads map[heap.Object]string
	// roots are the GC roots, read on demand.
	roots map[heap.Object]hprof.SubTag
}

// openFile scans the records of the dump but does not build the graph.
func openFile(ctx context.Context, r io.ReaderAt, size int64, o Options) (d *dump, err error) {
	d = &dump{warnings: []string{}}
	o.phase("read names")
	if d.file, err = hprof.OpenWithin(ctx, r, size, o.Memory); err != nil {
		if !o.Partial || !damaged(err) || len(d.file.Snapshots) == 0 {
			return nil, err
		}
		d.skipDamage(err)
	}
	if o.Cut != nil {
		d.warn("%v", o.Cut)
		if d.file.Truncated < 0 {
			d.file.Truncated = size
		}
	}
	if len(d.file.Snapshots) == 0 {
		return nil, d.empty(size)
	}
	return d, nil
}

func open(ctx context.Context, r io.ReaderAt, size int64, o Options) (*dump, error) {
	d, err := openFile(ctx, r, size, o)
	if err != nil {
		return nil, err
	}
	d.graph, err = heap.Load(ctx, d.file, o.heap())
	if err != nil {
		return nil, err
	}
	if d.graph.Objects == 0 {
		d.graph.Close()
		return nil, d.empty(size)
	}
	d.warnOfFile(d.graph.Damage, d.graph.Truncated)
	d.warnOfGraph()
	d.checkNames(o.Mapping)
	return d, nil
}

// openToShow opens a dump and redacts its strings unless the options show them.
func openToShow(ctx context.Context, r io.ReaderAt, size int64, o Options) (*dump, error) {
	d, err := open(ctx, r, size, o)
	if err != nil || o.ShowTexts {
		return d, err
	}
	if d.hide, err = android.NewRedactor(r, size); err != nil {
		d.graph.Close()
		return nil, err
	}
	return d, nil
}

func (o *Options) heap() heap.Options {
	h := heap.Options{
		Snapshot: -1, Model: heap.SizeModel(cmp.Or(o.SizeModel, string(heap.Leakgate))), Limit: o.Memory,
		Partial: o.Partial, Inbound: o.inbound, Phase: o.Phase, Progress: o.Progress,
	}
	if o.Mapping != nil {
		h.Names = sourceNames{o.Mapping.names}
	}
	return h
}

func damaged(err error) bool { return errors.As(err, new(*hprof.DamageError)) }

// empty returns the error for a dump without objects.
func (d *dump) empty(size int64) error {
	if d.file.Truncated >= 0 {
		return fmt.Errorf("%w: the file is truncated after %d bytes, in the record at offset %d", ErrNoHeap, size,
			d.file.Truncated)
	}
	if len(d.file.Snapshots) == 0 {
		return fmt.Errorf("%w: it has %d names and no heap", ErrNoHeap, d.file.Strings.Len())
	}
	if heaps := d.file.Snapshots; len(heaps[len(heaps)-1].Segments) == 0 {
		return fmt.Errorf("%w: its heap is empty", ErrNoHeap)
	}
	return fmt.Errorf("%w: its heap has only GC roots", ErrNoHeap)
}

// skipDamage adds a warning about damage that was skipped.
func (d *dump) skipDamage(err error) {
	d.partial = true
	d.warn("%v; the readable rest is analyzed", err)
}

func (d *dump) warn(format string, args ...any) {
	d.warnings = append(d.warnings, fmt.Sprintf(format, args...))
}

// warnOfFile adds warnings about defects of the file that make the numbers
// incomplete.
func (d *dump) warnOfFile(damage []error, truncated int64) {
	for _, err := range d.file.Warnings {
		d.warn("%v", err)
	}
	for _, err := range damage {
		d.skipDamage(err)
	}
	d.cut(truncated)
	if n := len(d.file.Snapshots); n > 1 {
		d.warn("the file has %d heaps; the last one is analyzed", n)
	}
}

// warnOfGraph warns of problems that only the graph shows.
func (d *dump) warnOfGraph() {
	g := d.graph
	if g.ReachableBytes() == (heap.Size{}) {
		d.warn("no GC root holds anything in this dump: nothing is reachable and retained sizes are missing; counts " +
			"and shallow sizes are correct")
	}
	if g.Dangling > 0 {
		d.warn("%d references point to objects that are not in the dump", g.Dangling)
	}
	if g.Duplicates > 0 {
		d.warn("%d objects are in the dump more than once; the last copy of each is used", g.Duplicates)
	}
}

func (d *dump) cut(at int64) {
	if at >= 0 {
		d.warn("the dump is truncated at offset %d: objects are missing, and sizes may be too small", at)
	}
}

func (d *dump) dump() Dump {
	g := d.graph
	reachable := g.ReachableBytes()
	r := Dump{
		Format: g.Format, IDSize: g.IDSize, Bytes: d.file.Size, Truncated: g.Truncated >= 0, Partial: d.partial,
		Snapshots: len(d.file.Snapshots),
		Objects:   g.Objects, Classes: g.Classes, Instances: g.Instances, ObjectArrays: g.ObjectArrays,
		PrimitiveArrays: g.PrimitiveArrays,
		References:      g.ReferenceCount, Dangling: g.Dangling, GCRoots: rootCounts(g.RootCounts), Heaps: []Heap{},
		ReachableBytes: reachable.Java, ReachableNative: reachable.Native, SizeModel: string(g.Model), Names: d.names,
	}
	if r.Truncated {
		r.TruncatedAt = new(g.Truncated)
	}
	for _, h := range g.Heaps {
		if h.Objects > 0 {
			r.Heaps = append(r.Heaps, Heap{h.Name, h.Objects, h.Bytes})
		}
	}
	return r
}

func classes(heaps []heap.Heap, rows []heap.Row, top int) []Class {
	list := make([]Class, 0, min(top, len(rows)))
	for _, r := range rows[:min(top, len(rows))] {
		c := Class{
			Class: r.Class, Instances: r.Instances, Reachable: r.Reachable, ShallowBytes: r.Shallow.Java,
			RetainedBytes: r.Retained.Total(), RetainedNative: r.Retained.Native,
		}
		for h, bytes := range r.RetainedIn {
			if bytes > 0 {
				if c.RetainedIn == nil {
					c.RetainedIn = map[string]int64{}
				}
				c.RetainedIn[heaps[h].Name] += bytes
			}
		}
		list = append(list, c)
	}
	return list
}

// appHeap returns the index of the heap that the app filled, or -1 if the dump
// does not distinguish it from the heaps that existed before the app started.
func (d *dump) appHeap() int {
	if !slices.ContainsFunc(d.graph.Heaps, isSystemHeap) {
		return -1
	}
	return slices.IndexFunc(d.graph.Heaps, func(h heap.Heap) bool { return h.ID == appHeap })
}

// ranked returns the classes, sorted by the bytes that they retain in the app's
// own heap and in native memory, largest first.
func (d *dump) ranked() []heap.Row {
	rows, app := d.graph.Histogram(), d.appHeap()
	if app < 0 {
		return rows
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b heap.Row) int {
		return cmp.Compare(b.RetainedIn[app]+b.Retained.Native, a.RetainedIn[app]+a.Retained.Native)
	})
	return rows
}

const (
	// phoneObjects is an upper bound on the number of objects in a dump of a
	// phone. In dumps with up to this many objects, all classes are measured
	// exactly.
	phoneObjects = 1 << 21
	// mostAmong is the maximum number of objects that are visited to weigh
	// classes.
	mostAmong = 1 << 26
)

// weighClasses computes for each class the size of the objects that become
// unreachable without its instances. It stops after mostAmong visited objects,
// and measures nothing in a dump of more than phoneObjects objects. The
// retained size of each remaining class is a lower bound: the size of all
// objects that its instances dominate.
func (d *dump) weighClasses(ctx context.Context, rows []Class) error {
	var sets [][]heap.Object
	var weighed []*Class
	for i := range rows {
		c := &rows[i]
		c.RetainedIsBound = c.Reachable > 1
		if c.RetainedIsBound && d.graph.Objects <= phoneObjects {
			sets, weighed = append(sets, d.graph.Exactly(c.Class)), append(weighed, c)
		}
	}
	if len(sets) == 0 {
		return ctx.Err()
	}
	costs, err := d.graph.Costs(ctx, sets, &heap.VisitBudget{Left: mostAmong})
	if err != nil {
		return err
	}
	for i, cost := range costs {
		c := weighed[i]
		c.RetainedBytes, c.RetainedNative, c.RetainedIsBound = cost.Size.Total(), cost.Size.Native, cost.AtLeast
		for h, bytes := range cost.In {
			if bytes > 0 && c.RetainedIn != nil {
				c.RetainedIn[d.graph.Heaps[h].Name] = bytes
			}
		}
	}
	own := func(c *Class) int64 {
		if d.appHeap() < 0 {
			return c.RetainedBytes
		}
		return c.RetainedIn[d.graph.Heaps[d.appHeap()].Name] + c.RetainedNative
	}
	slices.SortStableFunc(rows, func(a, b Class) int { return cmp.Compare(own(&b), own(&a)) })
	return ctx.Err()
}

const (
	// A class is reported if at least fewestLoaders class loaders have loaded
	// it; mostLoaded is the maximum number of reported classes.
	fewestLoaders = 3
	mostLoaded    = 5
)

// loaders returns the classes that several loaders have loaded; the ones that
// retain the most bytes come first.
func (d *dump) loaders(ctx context.Context) ([]loadedClass, error) {
	found := d.graph.LoadedByMany(fewestLoaders)
	found = found[:min(len(found), mostLoaded)]
	sets := make([][]heap.Object, len(found))
	for i := range found {
		sets[i] = found[i].Objects
	}
	costs, err := d.graph.Costs(ctx, sets, &heap.VisitBudget{Left: mostAmong})
	if err != nil {
		return nil, err
	}
	list := make([]loadedClass, 0, len(found))
	for i, l := range found {
		c := loadedClass{
			Class: l.Class, Loaders: len(l.Loaders), Classes: l.Classes, RetainedBytes: costs[i].Size.Total(),
			RetainedIsBound: costs[i].AtLeast,
		}
		if len(l.Loaders) > 0 {
			c.LoaderClass = d.graph.Class(l.Loaders[0])
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b loadedClass) int { return cmp.Compare(b.RetainedBytes, a.RetainedBytes) })
	return list, nil
}

// Histogram counts the objects of each class and their bytes in one pass,
// reachable or not. The report has no dominators, and its classes have no
// retained sizes.
func Histogram(ctx context.Context, r io.ReaderAt, size int64, o Options) (*Report, error) {
	d, err := openFile(ctx, r, size, o)
	if err != nil {
		return nil, err
	}
	o.phase("count")
	c, err := heap.Count(ctx, d.file, o.heap())
	if err != nil {
		return nil, err
	}
	if c.Objects == 0 {
		return nil, d.empty(size)
	}
	d.warnOfFile(c.Damage, c.Truncated)
	d.checkNames(o.Mapping)
	report := &Report{
		Schema: analysisSchema, Leaks: []Leak{}, Suspects: []Leak{}, Unreachable: []Garbage{}, Undecided: []string{},
		Dominators: []Dominator{}, Threads: []android.Thread{}, Classes: classes(nil, c.Rows, o.Top),
		Warnings: d.warnings,
	}
	report.Dump = Dump{
		Format: d.file.Format, IDSize: d.file.IDSize, Bytes: size, Truncated: c.Truncated >= 0, Partial: d.partial,
		Snapshots: len(d.file.Snapshots),
		Objects:   c.Objects, Classes: c.Classes, Instances: c.Instances, ObjectArrays: c.ObjectArrays,
		PrimitiveArrays: c.PrimitiveArrays,
		GCRoots:         rootCounts(c.RootCounts), Heaps: []Heap{}, SizeModel: string(o.heap().Model), Names: d.names,
	}
	if c.Truncated >= 0 {
		report.Dump.TruncatedAt = new(c.Truncated)
	}
	o.phase("")
	return report, nil
}

func rootCounts(counts map[hprof.SubTag]int64) map[string]int64 {
	named := map[string]int64{}
	for kind, n := range counts {
		named[kind.String()] += n
	}
	return named
}

func (d *dump) object(o heap.Object) Object {
	g := d.graph
	shallow, retained, reachability := g.Shallow(o), g.Retained(o), g.Reachability(o)
	r := Object{
		Object: Hex(g.ID(o)), Class: d.name(o), Heap: g.Heaps[g.HeapOf(o)].Name, ShallowBytes: shallow.Java,
		NativeBytes:   shallow.Native,
		RetainedBytes: retained.Total(), RetainedNative: retained.Native, Reachable: reachability <= heap.Soft,
		Reachability: reachability.String(),
	}
	if dominator, ok := g.Dominator(o); ok {
		r.Dominator = Hex(g.ID(dominator))
	}
	return r
}

// name returns the name of an object's class or, if the object is itself a
// class, the name of that class after the word "class".
func (d *dump) name(o heap.Object) string {
	if d.graph.IsClass(o) {
		return "class " + d.graph.ClassName(o)
	}
	return d.graph.Class(o)
}
