package analysis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/mapping"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/retired"
	"github.com/leakgate/leakgate/internal/text"
)

// Summary holds the data of one dump that a comparison needs; it is much
// smaller than the dump.
type Summary struct {
	dump    Dump
	shallow int64
	classes map[string]classSum
	// empty lists the stable names of the app's loaded classes that have no
	// objects, sorted.
	empty           []string
	leaks, suspects []leakSum
	tree            classTree
	// shapes holds a hash of each class of the app whose name means nothing by
	// itself.
	shapes   map[string]uint64
	warnings []string
}

// classSum is a row of a histogram.
type classSum struct {
	instances, shallow int64
	retained           heap.Size
}

func (c *classSum) add(o classSum) {
	c.instances += o.instances
	c.shallow += o.shallow
	c.retained.Java += o.retained.Java
	c.retained.Native += o.retained.Native
}

// These limits keep the merged tree small compared with any dump: a node has at
// least 1/treeShare of the reachable bytes, and a level has at most treeNodes
// nodes.
const (
	treeShare  = 10_000
	treeNodes  = 1 << 16
	treeLevels = 64
)

// Summarize reads a dump of size bytes and returns the data that a comparison
// needs. It releases the graph before it returns. The errors are those of
// Analyze.
func Summarize(ctx context.Context, r io.ReaderAt, size int64, o Options) (*Summary, error) {
	o.inbound = true
	d, err := open(ctx, r, size, o)
	if err != nil {
		return nil, err
	}
	defer d.graph.Close()
	s, err := d.summary(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := d.addFindings(ctx, &Report{Dump: d.dump(), Leaks: []Leak{}, Suspects: []Leak{}}, s, o); err != nil {
		return nil, err
	}
	o.phase("")
	return s, nil
}

// summary returns a Summary with the classes and the merged tree of the graph,
// but without the leaks.
func (d *dump) summary(ctx context.Context, o Options) (*Summary, error) {
	s := &Summary{classes: map[string]classSum{}, shapes: d.shapes, warnings: slices.Clone(d.warnings)}
	for _, row := range d.graph.Histogram() {
		s.classes[row.Class] = classSum{row.Instances, row.Shallow.Java, row.Retained}
		s.shallow += row.Shallow.Java
	}
	for _, name := range d.graph.Empty() {
		if mapping.MayBeRenamed(name) {
			s.empty = append(s.empty, trace.StableClass(name))
		}
	}
	slices.Sort(s.empty)
	s.empty = slices.Compact(s.empty)
	o.phase("merge paths")
	return s, s.merge(ctx, d.graph)
}

func (s *Summary) merge(ctx context.Context, g *heap.Graph) error {
	least := max(g.ReachableBytes().Total()/treeShare, 1)
	nodes, err := g.ClassTree(ctx, heap.ClassTreeOptions{Least: least, Nodes: treeNodes, Levels: treeLevels})
	if err != nil {
		return fmt.Errorf("merge paths: %w", err)
	}
	s.tree = newClassTree(nodes, least)
	return nil
}

// loaded returns the stable names of the app's loaded classes.
func (s *Summary) loaded() map[string]bool {
	all := make(map[string]bool, len(s.empty)+len(s.classes))
	for _, name := range s.empty {
		all[name] = true
	}
	for name := range s.classes {
		if mapping.MayBeRenamed(name) {
			all[trace.StableClass(name)] = true
		}
	}
	return all
}

// Objects returns the number of objects in the dump, and the number of
// references between them.
func (s *Summary) Objects() (objects, references int64) { return s.dump.Objects, s.dump.References }

// Names reports whether the names in the summary are obfuscated.
func (s *Summary) Names() Naming { return s.dump.Names }

// summarySchema is the schema of a written summary.
const summarySchema = "leakgate.summary/1"

// Limits for writing and for reading a summary.
const (
	// mostWrittenLeaks is the maximum number of leaks, and of suspects, that
	// are written.
	mostWrittenLeaks = 10_000
	maxSummary       = 64 << 20
)

// errLargeSummary is the error for a summary of more than 64 MB.
var errLargeSummary = errors.New("the summary is larger than 64 MB")

// summaryFile is the written form of a Summary. docs/formats/summary.md
// describes the fields.
type summaryFile struct {
	Schema       string            `json:"schema"`
	Dump         Dump              `json:"dump"`
	ShallowBytes int64             `json:"shallow_bytes"`
	Classes      []summaryClass    `json:"classes"`
	Empty        []string          `json:"empty_classes"`
	Leaks        []SummaryLeak     `json:"leaks"`
	Suspects     []SummaryLeak     `json:"suspects"`
	Least        int64             `json:"least_bytes"`
	Tree         []summaryNode     `json:"tree"`
	Shapes       map[string]uint64 `json:"shapes,omitempty"`
	Warnings     []string          `json:"warnings"`
}

type summaryClass struct {
	Class          string `json:"class"`
	Instances      int64  `json:"instances"`
	ShallowBytes   int64  `json:"shallow_bytes"`
	RetainedBytes  int64  `json:"retained_java_bytes"`
	RetainedNative int64  `json:"retained_native_bytes"`
}

// SummaryLeak is the sum of all leaks that have the same key in one dump.
type SummaryLeak struct {
	// Key identifies the leak across builds. KeyText holds the lines from which
	// Key is computed.
	Key     string   `json:"key"`
	KeyText []string `json:"key_text"`
	// Class is the class of the first object. Library reports whether the leak
	// is caused by the platform or by a library, that is, whether it matches a
	// known Pattern.
	Class   string `json:"class"`
	Library bool   `json:"library"`
	Pattern string `json:"pattern"`
	// Fingerprints are computed like those of Shark, and sorted.
	Fingerprints []string `json:"fingerprints"`
	// Instances is the number of leaking objects. RetainedBytes is the number
	// of Java and native bytes that the objects retain; RetainedNative is the
	// number of native bytes only.
	Instances      int64 `json:"instances"`
	RetainedBytes  int64 `json:"retained_bytes"`
	RetainedNative int64 `json:"retained_native_bytes"`
	// Classes counts the objects by class name, without compiler-generated
	// numbers.
	Classes map[string]int64 `json:"classes"`
}

type summaryNode struct {
	Parent         int    `json:"parent"`
	Class          string `json:"class"`
	Objects        int64  `json:"objects"`
	RetainedBytes  int64  `json:"retained_java_bytes"`
	RetainedNative int64  `json:"retained_native_bytes"`
}

// Form returns the zero value of the type that Encode writes, from which a JSON
// Schema can be generated.
func (*Summary) Form() any { return summaryFile{} }

// Encode returns the summary as JSON for ReadSummary. A comparison of decoded
// summaries yields the same result as a comparison of the originals. If there
// are more than 10,000 leaks or suspects, the ones that retain the most bytes
// are written. The only possible error is errLargeSummary.
func (s *Summary) Encode() ([]byte, error) {
	f := summaryFile{
		Schema: summarySchema, Dump: s.dump, ShallowBytes: s.shallow, Classes: []summaryClass{},
		Empty: append([]string{}, s.empty...), Least: s.tree.least,
		Tree: make([]summaryNode, len(s.tree.nodes)), Shapes: s.shapes, Warnings: append([]string{}, s.warnings...),
	}
	for _, name := range slices.Sorted(maps.Keys(s.classes)) {
		c := s.classes[name]
		f.Classes = append(f.Classes, summaryClass{name, c.instances, c.shallow, c.retained.Java, c.retained.Native})
	}
	f.Leaks, f.Suspects = f.written(s.leaks, "leaks"), f.written(s.suspects, "suspects")
	for i, n := range s.tree.nodes {
		f.Tree[i] = summaryNode{n.Parent, n.Class, n.Count, n.Size.Java, n.Size.Native}
	}
	out, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode summary: %w", err)
	}
	if len(out) > maxSummary {
		return nil, errLargeSummary
	}
	return append(out, '\n'), nil
}

// written returns the leaks that Encode writes, in the order of the given list.
func (f *summaryFile) written(leaks []leakSum, what string) []SummaryLeak {
	out := make([]SummaryLeak, 0, min(len(leaks), mostWrittenLeaks))
	kept := map[string]bool{}
	if n := len(leaks) - mostWrittenLeaks; n > 0 {
		f.Warnings = append(f.Warnings, fmt.Sprintf("%d more %s, which retain the least, are omitted", n, what))
		list := make([]*leakSum, len(leaks))
		for i := range leaks {
			list[i] = &leaks[i]
		}
		for _, l := range heaviest(list, mostWrittenLeaks) {
			kept[l.key] = true
		}
	}
	for i := range leaks {
		l := &leaks[i]
		if len(kept) > 0 && !kept[l.key] {
			continue
		}
		out = append(out, l.written())
	}
	return out
}

func (s *leakSum) written() SummaryLeak {
	return SummaryLeak{
		s.key, s.text, s.class, s.library, s.pattern, s.fingerprints, s.instances, s.bytes, s.native, s.classes,
	}
}

// Leaks returns the leaks of the dump, one per key. The caller must not change
// them.
func (s *Summary) Leaks() []SummaryLeak {
	out := make([]SummaryLeak, len(s.leaks))
	for i := range s.leaks {
		out[i] = s.leaks[i].written()
	}
	return out
}

// Loaded returns the names of the app's loaded classes, without
// compiler-generated numbers.
func (s *Summary) Loaded() []string { return slices.Sorted(maps.Keys(s.loaded())) }

// ReadSummary reads what Encode has written. As the input may come from
// elsewhere, it returns an error for anything that cannot be the summary of a
// dump.
func ReadSummary(r io.Reader) (*Summary, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxSummary+1))
	if err != nil {
		return nil, fmt.Errorf("read summary: %w", err)
	}
	if len(raw) > maxSummary {
		return nil, errLargeSummary
	}
	var f summaryFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("read summary: %w", err)
	}
	if f.Dump.Names.Origin == "" {
		if err := retired.Check(raw, "of"); err != nil {
			return nil, fmt.Errorf("read summary: %w", err)
		}
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("read summary: %w", err)
	}
	s := &Summary{
		dump: f.Dump, shallow: f.ShallowBytes, classes: make(map[string]classSum, len(f.Classes)), empty: f.Empty,
		shapes: f.Shapes,
		leaks:  readLeaks(f.Leaks), suspects: readLeaks(f.Suspects), warnings: f.Warnings,
	}
	for _, c := range f.Classes {
		s.classes[c.Class] = classSum{
			c.Instances, c.ShallowBytes, heap.Size{Java: c.RetainedBytes, Native: c.RetainedNative},
		}
	}
	nodes := make([]heap.ClassNode, len(f.Tree))
	for i, n := range f.Tree {
		nodes[i] = heap.ClassNode{
			Parent: n.Parent, Class: n.Class, Count: n.Objects,
			Size: heap.Size{Java: n.RetainedBytes, Native: n.RetainedNative},
		}
	}
	s.tree = newClassTree(nodes, f.Least)
	return s, nil
}

func readLeaks(list []SummaryLeak) []leakSum {
	out := make([]leakSum, len(list))
	for i, l := range list {
		out[i] = leakSum{
			key: l.Key, class: l.Class, pattern: l.Pattern, text: l.KeyText,
			fingerprints: append([]string{}, l.Fingerprints...), library: l.Library, instances: l.Instances,
			bytes: l.RetainedBytes, native: l.RetainedNative, classes: l.Classes,
		}
	}
	return out
}

// mostBytes is the maximum of each number in a summary; it ensures that sums of
// these numbers do not overflow.
const mostBytes = math.MaxInt64 >> 24

// check returns an error for values that no summary can have.
func (f *summaryFile) check() error {
	if f.Schema != summarySchema {
		return fmt.Errorf("its schema is %s, want %s", text.Quote(f.Schema, 40), summarySchema)
	}
	if len(f.Tree) == 0 || f.Tree[0].Parent != -1 {
		return errors.New("its tree has no root")
	}
	if f.Least < 1 ||
		!counts(f.ShallowBytes, f.Least, f.Dump.Objects, f.Dump.References, f.Dump.ReachableBytes,
			f.Dump.ReachableNative) {
		return errors.New("a number that describes the dump is invalid")
	}
	for i, n := range f.Tree {
		// The children of one parent are adjacent, and the children of later
		// parents follow.
		if i > 0 && (n.Parent < max(f.Tree[i-1].Parent, 0) || n.Parent >= i) {
			return fmt.Errorf("node %d of its tree is out of order", i)
		}
		if !counts(n.Objects, n.RetainedBytes, n.RetainedNative) {
			return fmt.Errorf("node %d of its tree has an invalid number", i)
		}
	}
	met := map[string]bool{}
	for _, c := range f.Classes {
		if met[c.Class] || !counts(c.Instances, c.ShallowBytes, c.RetainedBytes, c.RetainedNative) {
			return fmt.Errorf("class %s is listed twice, or has an invalid number", text.Quote(c.Class, 80))
		}
		met[c.Class] = true
	}
	return errors.Join(plausible(f.Leaks), plausible(f.Suspects))
}

func plausible(list []SummaryLeak) error {
	met := map[string]bool{}
	for _, l := range list {
		ok := counts(l.Instances, l.RetainedBytes, l.RetainedNative)
		for _, n := range l.Classes {
			ok = ok && counts(n)
		}
		if !ok || met[l.Key] {
			return fmt.Errorf("leak %s is listed twice, or has an invalid number", text.Quote(l.Key, 80))
		}
		met[l.Key] = true
	}
	return nil
}

// counts reports whether all numbers are possible in a dump.
func counts(numbers ...int64) bool {
	return !slices.ContainsFunc(numbers, func(n int64) bool { return n < 0 || n > mostBytes })
}
