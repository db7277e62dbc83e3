package analysis

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// pathsSchema is the schema of a Paths.
const pathsSchema = "leakgate.paths/1"

// Paths are the shortest paths from the GC roots to the objects of a class, or
// to one object, merged by classes and fields.
type Paths struct {
	Schema string `json:"schema"`
	// Class is the requested class. Object is the ID of the object if a single
	// object was requested.
	Class  string `json:"class"`
	Object string `json:"object,omitempty"`
	// Instances is the number of all objects of the class; Reached is the
	// number of those to which a path leads.
	Instances int64 `json:"instances"`
	Reached   int64 `json:"reached"`
	Bytes     int64 `json:"shallow_bytes"`
	// Retained is what becomes unreachable if all instances are released; it is
	// a lower bound if RetainedIsBound is true.
	Retained        int64    `json:"retained_bytes"`
	RetainedIsBound bool     `json:"retained_is_bound,omitempty"`
	Branches        []Branch `json:"branches"`
	Warnings        []string `json:"warnings"`
}

// Branch stands for all objects of one class that paths reach in the same way.
type Branch struct {
	// For a branch at the top, GCRoot describes the kind of GC root. For all
	// other branches, Owner, Reference and Kind describe the reference that
	// leads to the branch.
	GCRoot    string `json:"gc_root,omitempty"`
	Owner     string `json:"owner,omitempty"`
	Reference string `json:"reference,omitempty"`
	Kind      string `json:"reference_kind,omitempty"`
	Class     string `json:"class"`
	Type      string `json:"type"`
	// Objects is the number of objects on paths at this branch, and Requested
	// is how many of them were requested. Instances and Bytes count all
	// requested objects at this branch and below.
	Objects   int64    `json:"objects"`
	Requested int64    `json:"requested,omitempty"`
	Instances int64    `json:"instances"`
	Bytes     int64    `json:"shallow_bytes"`
	Branches  []Branch `json:"branches,omitempty"`
	// Truncated reports whether everything further down is merged into this
	// branch.
	Truncated bool `json:"truncated,omitempty"`
}

// AbsentError is the error for a class, field or object that is not in the
// dump.
type AbsentError struct {
	What string
	// Like lists similar names in the dump; Warnings lists other reasons why
	// the name may be absent.
	Like, Warnings []string
}

func (e *AbsentError) Error() string {
	text := "there is no " + e.What + " in the dump"
	for _, w := range e.Warnings {
		text += "; " + w
	}
	if len(e.Like) > 0 {
		text += "; did you mean " + strings.Join(e.Like, ", ") + "?"
	}
	return text
}

// mostLike is the maximum number of suggested names.
const mostLike = 3

// unknown returns the error for a class that the dump does not have.
func (d *dump) unknown(class string) error {
	e := &AbsentError{What: "class " + class, Warnings: d.warnings}
	switch {
	case strings.ContainsAny(class, "*?"):
		e.Warnings = slices.Concat([]string{"write one full name, without * or ?"}, d.warnings)
	case strings.HasPrefix(class, "class "):
		e.Warnings = slices.Concat([]string{"write the name only; to see what holds the class itself, use its ID"},
			d.warnings)
	}
	rows := d.graph.Histogram()
	// Use only the first kind of similarity for which there is a match.
	for _, alike := range []func(a, b string) bool{matches, called, nameTypo, contains} {
		for _, row := range rows {
			if len(e.Like) < mostLike && alike(class, row.Class) {
				e.Like = append(e.Like, row.Class)
			}
		}
		if len(e.Like) > 0 {
			break
		}
	}
	return e
}

// simple returns the last part of a name, in lower case.
func simple(name string) string {
	return strings.ToLower(name[strings.LastIndexAny(name, ".$ ")+1:])
}

// matches reports whether a class matches a pattern with * and ?. A pattern is
// compared with full names or, if it contains no dot, with their last parts.
func matches(pattern, class string) bool {
	if !strings.ContainsAny(pattern, "*?") {
		return false
	}
	if !strings.Contains(pattern, ".") {
		pattern, class = strings.ToLower(pattern), simple(class)
	}
	ok, err := path.Match(pattern, class)
	return err == nil && ok
}

func called(name, class string) bool { return simple(name) == simple(class) }

func nameTypo(name, class string) bool {
	return isTypo(name, class) || isTypo(simple(name), simple(class))
}

// contains reports whether part occurs in the last part of a class's name and
// makes up more than half of it.
func contains(part, class string) bool {
	part, class = simple(part), simple(class)
	return 2*len(part) > len(class) && strings.Contains(class, part)
}

// shortest is the minimum length of the names that are checked for a typo.
const shortest = 4

// isTypo reports whether two names differ by one letter added, removed or
// replaced, or by two swapped letters.
func isTypo(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < shortest {
		return false
	}
	start := 0
	for start < len(a) && a[start] == b[start] {
		start++
	}
	a, b = a[start:], b[start:]
	for len(a) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(b) == 2 {
		return len(a) == 2 && a[0] == b[1] && a[1] == b[0]
	}
	return len(b) <= 1
}

// below returns the subclasses of a class that has no instances of its own. The
// subclasses with the most instances come first.
func (d *dump) below(class string) (names []string) {
	counts := map[string]int{}
	for _, o := range d.graph.InstancesOf(class) {
		counts[d.graph.Class(o)]++
	}
	names = slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	return names[:min(len(names), mostLike)]
}

// FindPaths merges the paths to all instances of a class, or to the object with
// a given ID.
func FindPaths(ctx context.Context, r io.ReaderAt, size int64, class string, id hprof.ID, o Options) (*Paths, error) {
	// Leak traces follow Shark, which reads the tables and nodes of an app's
	// own subclasses of collections. If merged paths went through these tables
	// and nodes too, the paths would be split by the contents of each
	// collection.
	o.inbound, o.subclasses = true, true
	d, err := open(ctx, r, size, o)
	if err != nil {
		return nil, err
	}
	defer d.graph.Close()
	p := &Paths{Schema: pathsSchema, Class: class, Branches: []Branch{}}
	targets, err := d.wanted(p, class, id)
	if err != nil {
		return nil, err
	}
	if err := d.paths(ctx, p, targets, o); err != nil {
		return nil, err
	}
	p.Warnings = d.warnings
	o.phase("")
	return p, nil
}

// wanted returns the requested objects.
func (d *dump) wanted(p *Paths, class string, id hprof.ID) (targets []heap.Object, err error) {
	g := d.graph
	if class == "" {
		o, ok := g.Find(id)
		if !ok {
			return nil, &AbsentError{What: "object " + Hex(id)}
		}
		p.Class, p.Object = d.name(o), Hex(id)
		return []heap.Object{o}, nil
	}
	p.Class, targets, err = d.instances(class)
	return targets, err
}

// instances returns all objects of exactly the given class. The name may be in
// Java's notation, or in that of HotSpot or ART: com.shop.Cart, com/shop/Cart
// or Lcom/shop/Cart;.
func (d *dump) instances(class string) (name string, list []heap.Object, err error) {
	class = strings.TrimSpace(class)
	if inner, ok := strings.CutSuffix(class, ";"); ok && strings.HasPrefix(inner, "L") {
		class = inner[1:]
	}
	class = heap.NormalName(class)
	list = d.graph.Exactly(class)
	switch {
	case len(list) > 0:
		return class, list, nil
	case d.graph.HasClass(class):
		return class, nil, &AbsentError{What: "instance of " + class, Like: d.below(class), Warnings: d.warnings}
	}
	return class, nil, d.unknown(class)
}

func (d *dump) paths(ctx context.Context, p *Paths, targets []heap.Object, o Options) error {
	m, err := d.platform(ctx)
	if err != nil {
		return err
	}
	t, err := d.inspect(ctx, o)
	if err != nil {
		return err
	}
	defer t.close()
	set, err := d.graph.NewSet()
	if err != nil {
		return fmt.Errorf("find holders: %w", err)
	}
	defer set.Close()
	t.addThreads(set)
	o.phase("find holders")
	if err := d.graph.AddAncestors(ctx, set, targets, true); err != nil {
		return fmt.Errorf("find holders: %w", err)
	}
	o.phase("read fields")
	if t.outbound, err = d.graph.OutboundOf(ctx, set); err != nil {
		return fmt.Errorf("read fields: %w", err)
	}
	t.inspector.Follow(t.outbound)
	rules := t.allRules(m)
	rules.Leaves = true
	t.reader = trace.NewReader(d.graph, t.outbound, rules)
	o.phase("find paths")
	s, err := trace.Find(ctx, t.reader, targets, trace.Options{Through: true})
	if err != nil {
		return err
	}
	defer s.Close()
	tree, err := s.Tree(ctx, targets)
	if err != nil {
		return err
	}
	for _, b := range tree {
		p.Branches = append(p.Branches, branchOf(b))
		p.Reached += b.Targets
	}
	p.Instances = int64(len(targets))
	for _, x := range targets {
		p.Bytes += d.graph.Shallow(x).Total()
	}
	cost, err := d.graph.Cost(ctx, targets, &heap.VisitBudget{Left: mostWeighed})
	if err != nil {
		return fmt.Errorf("weigh objects: %w", err)
	}
	p.Retained, p.RetainedIsBound = cost.Size.Total(), cost.AtLeast
	return nil
}

// platform returns the metadata of a dump from a phone, or nil if the dump is
// from a JVM.
func (d *dump) platform(ctx context.Context) (*android.Metadata, error) {
	m, err := android.ReadMetadata(ctx, d.graph, android.Options{})
	if err != nil {
		return nil, fmt.Errorf("read metadata: %w", err)
	}
	if m.Runtime != android.RuntimeAndroid {
		return nil, nil
	}
	return m, nil
}

func branchOf(b *trace.Branch) Branch {
	r := Branch{
		GCRoot: b.Root, Owner: b.Owner, Reference: b.Field, Class: b.Class, Type: b.Type, Objects: b.Objects,
		Requested: b.Own, Instances: b.Targets,
		Bytes: b.Size.Total(), Truncated: b.Cut,
	}
	if b.Root == "" {
		r.Kind = kindNames[b.Kind]
	}
	for _, c := range b.Branches {
		r.Branches = append(r.Branches, branchOf(c))
	}
	return r
}
