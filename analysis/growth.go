package analysis

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/growth"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// growthSchema is the schema of a Growth.
const growthSchema = "leakgate.growth/1"

// Growth lists the places whose memory grew from dump to dump.
// docs/formats/growth.md describes the fields.
type Growth struct {
	Schema string       `json:"schema"`
	Loops  int          `json:"loops"`
	Dumps  []GrowthDump `json:"dumps"`
	// Found is the number of places that grew; Growth lists them, up to the
	// requested number.
	Found int `json:"found"`
	// Accounting compares the growth of the heap, from the first dump to the
	// last, with the growth of the places.
	Accounting growthAccounting `json:"accounting"`
	Growth     []growth.Place   `json:"growth"`
	Warnings   []string         `json:"warnings"`
}

// GrowthDump is one dump of the series.
type GrowthDump struct {
	// Name is the name that the user gave the dump.
	Name string `json:"name"`
	// Time is the time at which the dump was taken, by the clock of the device;
	// nil if the dump has no date.
	Time           *time.Time `json:"time"`
	Format         string     `json:"format"`
	Bytes          int64      `json:"bytes"`
	Truncated      bool       `json:"truncated"`
	Partial        bool       `json:"partial"`
	Process        string     `json:"process,omitempty"`
	Objects        int64      `json:"objects"`
	ReachableBytes int64      `json:"reachable_bytes"`
	// FinalizerObjects is the number of objects that are waiting for a
	// finalizer. FinalizerBytes is the size of these objects and of all objects
	// that only they hold. None of these objects is reachable.
	FinalizerObjects int64 `json:"finalizer_objects"`
	FinalizerBytes   int64 `json:"finalizer_bytes"`
	// Compared is the number of objects in the merged tree of paths; Paths is
	// the number of nodes of that tree, one for each distinct path.
	Compared int64 `json:"compared_objects"`
	Paths    int   `json:"paths"`
}

// growthAccounting records by how much the reachable heap grew, and how much of
// that growth is in the reported places.
type growthAccounting struct {
	ReachableDelta int64 `json:"reachable_delta_bytes"`
	Explained      int64 `json:"explained_bytes"`
	Unexplained    int64 `json:"unexplained_bytes"`
}

// GrowthSeries reads dumps one after the other. It keeps only the data of
// places that may still be growing.
type GrowthSeries struct {
	series *growth.Series
	report Growth
	idSize int
	// waiting describes, for each dump, the objects that are waiting for their
	// finalizer.
	waiting []heap.FinalizerReachable
	// jvm reports whether the previous dump was from a JVM.
	jvm bool
}

// NewGrowthSeries starts a series of dumps; loops is the number of times that a
// scenario was repeated between two dumps.
func NewGrowthSeries(loops int) *GrowthSeries {
	return &GrowthSeries{
		series: growth.NewSeries(loops),
		report: Growth{
			Schema: growthSchema, Loops: max(loops, 1), Dumps: []GrowthDump{}, Growth: []growth.Place{},
			Warnings: []string{},
		},
	}
}

// The maximum memory that the graph of one dump and the search for growth need,
// in bytes per object and per reference.
const (
	growthPerObject    = 26
	growthPerReference = 4
	graphPerObject     = 18
	graphPerReference  = 4
)

// Add reads a dump that was taken after the previous ones. The errors are those
// of Analyze.
func (s *GrowthSeries) Add(ctx context.Context, name string, r io.ReaderAt, size int64, o Options) error {
	o.inbound = true
	d, err := open(ctx, r, size, o)
	if err != nil {
		return err
	}
	defer d.graph.Close()
	need := d.graph.Objects*(graphPerObject+growthPerObject) +
		d.graph.ReferenceCount*(graphPerReference+growthPerReference)
	if o.Memory > 0 && need > o.Memory {
		return &heap.MemoryError{Need: need, Limit: o.Memory}
	}
	about, tree, err := s.merge(ctx, d, o)
	if err != nil {
		return err
	}
	defer tree.Close()
	o.phase("compare dumps")
	if err := s.series.Add(ctx, tree); err != nil {
		return err
	}
	if tree.Full() {
		d.warn("there are more than %d different paths; objects on further paths are counted with the objects "+
			"that refer to them", tree.Nodes())
	}
	s.note(name, d, tree, about)
	o.phase("")
	return nil
}

// merge returns the merged tree of a dump, and the metadata of the dump. Memory
// that only the merge needs is released afterwards.
func (s *GrowthSeries) merge(ctx context.Context, d *dump, o Options) (*android.Metadata, *growth.Tree, error) {
	o.phase("inspect objects")
	about, err := android.ReadMetadata(ctx, d.graph, android.Options{})
	if err != nil {
		return nil, nil, fmt.Errorf("read contents: %w", err)
	}
	t := &tracing{dump: d}
	if t.inspector, err = android.NewInspector(ctx, d.graph, android.InspectorOptions{}); err != nil {
		return nil, nil, fmt.Errorf("inspect objects: %w", err)
	}
	defer t.inspector.Close()
	o.phase("read fields")
	if t.outbound, err = d.graph.Outbound(ctx); err != nil {
		return nil, nil, fmt.Errorf("read fields: %w", err)
	}
	defer t.outbound.Close()
	o.phase("merge paths")
	tree, err := s.series.Merge(ctx, d.graph, trace.NewReader(d.graph, t.outbound, t.growthRules(about)))
	return about, tree, err
}

// growthRules returns the rules for leaks with one exception: references
// through which a platform is known to leak are followed like any other, so
// growth through them is reported too.
func (t *tracing) growthRules(m *android.Metadata) trace.Rules {
	build := trace.Build{SDK: int(m.SDK), Manufacturer: m.Manufacturer}
	if m.Runtime != android.RuntimeAndroid {
		m = nil
	}
	rules := t.ownRules(m)
	rules.Records = true
	rules.Matchers = slices.Concat(slices.DeleteFunc(rules.Matchers, func(m trace.Matcher) bool { return !m.Ignored }),
		growth.Ignored(build))
	return rules
}

// note adds a dump, with the warnings about it, to the report.
func (s *GrowthSeries) note(name string, d *dump, tree *growth.Tree, about *android.Metadata) {
	g, list := d.graph, s.report.Dumps
	warn := func(format string, args ...any) {
		s.report.Warnings = append(s.report.Warnings, name+": "+fmt.Sprintf(format, args...))
	}
	for _, text := range d.warnings {
		warn("%s", text)
	}
	now := GrowthDump{
		Name: name, Format: g.Format, Bytes: d.file.Size, Truncated: g.Truncated >= 0, Partial: d.partial,
		Process: about.Bound, Objects: g.Objects, ReachableBytes: g.ReachableBytes().Total(), Compared: tree.Objects(),
		Paths: tree.Nodes(),
	}
	waiting := g.WaitingForFinalizer()
	now.FinalizerObjects, now.FinalizerBytes = waiting.Objects, waiting.Bytes
	s.waiting = append(s.waiting, waiting)
	if now.Process == "" {
		now.Process = about.Process
	}
	if !g.Time.IsZero() {
		now.Time = new(g.Time.UTC())
	}
	jvm := about.Runtime != android.RuntimeAndroid
	if n := len(list); n > 0 {
		before := list[n-1]
		if now.Time != nil && before.Time != nil && now.Time.Before(*before.Time) {
			warn("it was taken before %s; list the dumps in the order in which they were taken", before.Name)
		}
		if now.Process != before.Process && now.Process != "" && before.Process != "" {
			warn("it is from the process %q, but %s is from %q; all dumps of a series must be from one process",
				now.Process,
				before.Name, before.Process)
		}
		part, partBefore := now.Truncated || now.Partial, before.Truncated || before.Partial
		// An incomplete dump may lack the classes that identify Android.
		if jvm != s.jvm && !part && !partBefore {
			origin := map[bool]string{false: "Android", true: "a JVM"}
			warn("it is from %s, but %s is from %s; all dumps of a series must be from one process", origin[jvm],
				before.Name, origin[s.jvm])
		}
		if part != partBefore {
			warn("either it or %s is incomplete: objects missing from the incomplete one look gone or new", before.Name)
		}
		if g.IDSize != s.idSize {
			warn("its IDs differ in size from those of %s: bytes cannot be compared", before.Name)
		}
	}
	s.report.Dumps, s.idSize, s.jvm = append(list, now), g.IDSize, jvm
}

// Report returns the places that grew in every dump so far; top is the maximum
// number of places it lists.
func (s *GrowthSeries) Report(top int) *Growth {
	r := s.report
	places, found := s.series.Places(top)
	if p := s.finalizers(); p != nil {
		places = append(places, *p)
		slices.SortStableFunc(places, func(a, b growth.Place) int { return cmp.Compare(b.GrowthBytes, a.GrowthBytes) })
		places = places[:min(max(top, 0), len(places))]
		found++
	}
	r.Growth, r.Found = append([]growth.Place{}, places...), found
	if n := len(r.Dumps); n > 1 {
		delta := r.Dumps[n-1].ReachableBytes - r.Dumps[0].ReachableBytes
		explained := min(s.series.Explained(), max(delta, 0))
		r.Accounting = growthAccounting{delta, explained, delta - explained}
	}
	r.Warnings = slices.Clone(r.Warnings)
	if len(r.Dumps) == 2 {
		r.Warnings = append(r.Warnings,
			"two dumps prove little: what grew once may be a cache that fills; take a third dump after as many "+
				"repetitions")
	}
	return &r
}

// finalizers returns the finalizer queue as a place if it grew in every dump;
// otherwise nil.
func (s *GrowthSeries) finalizers() *growth.Place {
	n := len(s.waiting)
	if n < 2 {
		return nil
	}
	first, last := s.waiting[0], s.waiting[n-1]
	step := growth.PathEdge{Kind: growth.KindFinalizer, Name: "finalizer queue", Class: last.Class}
	p := &growth.Place{
		Path: []growth.PathEdge{step}, Key: growth.KeyOf([]growth.PathEdge{step}),
		GrowthBytes: last.Bytes - first.Bytes,
		Delta:       last.Objects - first.Objects, Children: []growth.Child{},
	}
	for i, w := range s.waiting {
		if i > 0 {
			more := w.Objects - s.waiting[i-1].Objects
			if more < int64(s.report.Loops) {
				return nil
			}
			p.Increments = append(p.Increments, more)
		}
		p.Path[0].Objects = append(p.Path[0].Objects, w.Objects)
		p.RetainedBytes = append(p.RetainedBytes, w.Bytes)
	}
	p.PerLoop = float64(p.Delta) / float64(s.report.Loops*(n-1))
	return p
}
