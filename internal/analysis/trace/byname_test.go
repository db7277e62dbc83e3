package trace_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// TestByName compares a search by name with the plain one: both must find the
// same objects. Each path must be as short as the plain one and have no worse
// references, and its names must come first among those of all such paths.
func TestByName(t *testing.T) {
	several := 0
	for seed := range uint64(seeds) {
		h, form, refs := random(seed)
		w := load(t, h, form, known())
		targets := w.objects(refs...)
		byName := w.find(targets, trace.Options{ByName: true})
		shark := w.find(targets, trace.Options{})
		if got, want := sorted(byName.Found()), sorted(shark.Found()); !slices.Equal(got, want) {
			t.Fatalf("seed %d: found %q, want %q", seed, w.names(got), w.names(want))
		}
		best := w.firstNames(targets)
		for _, p := range byName.Paths(byName.Found()) {
			w.checkPath(seed, p)
			got, want := w.label(p), best[p.Leak]
			if len(want) == 0 {
				// The object can be reached only through a reference that is
				// followed last.
				continue
			}
			if got != want[0] {
				t.Fatalf("seed %d: path to %#x:\n%s\nwant\n%s", seed, uint64(w.graph.ID(p.Leak)), got, want[0])
			}
			if len(want) > 1 {
				several++
			}
		}
	}
	if several < 5 {
		t.Errorf("only %d objects have several paths of equal length", several)
	}
}

// TestEarly checks that a search that ends early finds the same paths as a
// complete one.
func TestEarly(t *testing.T) {
	paths := 0
	for seed := range uint64(seeds) {
		h, form, refs := random(seed)
		w := load(t, h, form, known())
		for i, o := range []trace.Options{{}, {Through: true}, {ByName: true}, {ByName: true, Through: true}} {
			all := sorted(w.find(w.objects(refs...), o).Found())
			half := min(len(all), (len(all)+i)/2)
			targets, also := all[:half], all[half:]
			whole := w.find(targets, o)
			o.Early, o.Also = true, also
			early := w.find(targets, o)
			if !slices.Equal(early.Found(), whole.Found()) {
				t.Fatalf("seed %d, %+v: found %q, want %q", seed, o, w.names(early.Found()), w.names(whole.Found()))
			}
			if got, want := early.Paths(all), whole.Paths(all); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %+v: paths\n%+v, want\n%+v", seed, o, got, want)
			}
			paths += len(all)
		}
	}
	if paths < 1000 {
		t.Errorf("%d paths", paths)
	}
}

// label returns a path written as a list of its names, root first.
func (w *world) label(p trace.Path) string {
	text := w.rootLabel(p.Root)
	for _, s := range p.Steps {
		text += w.edgeLabel(s.Edge)
	}
	return text
}

// rootLabel returns a sort key for a root: threads come first, then the other
// kinds in reverse order of their names; roots of the same kind are sorted by
// class.
func (w *world) rootLabel(r trace.Root) string {
	order := "1"
	if r.Kind == hprof.SubRootThreadObject {
		order = "0"
	}
	return fmt.Sprintf("%s%03d %s", order, rootRank(r.Kind), w.classLabel(r.Object))
}

func rootRank(kind hprof.SubTag) int {
	kinds := []hprof.SubTag{
		hprof.SubRootThreadObject, hprof.SubRootThreadBlock, hprof.SubRootStickyClass, hprof.SubRootNativeStack,
		hprof.SubRootMonitorUsed,
		hprof.SubRootJNIMonitor, hprof.SubRootJNILocal, hprof.SubRootJNIGlobal, hprof.SubRootJavaFrame}
	return slices.Index(kinds, kind)
}

func (w *world) classLabel(o heap.Object) string {
	if w.graph.IsClass(o) {
		return "class " + trace.StableClass(w.graph.ClassName(o))
	}
	return trace.StableClass(w.graph.Class(o))
}

func (w *world) edgeLabel(e trace.Edge) string {
	kind, place := e.Kind, e.Place
	switch kind {
	case trace.ItemEdge, trace.ValueEdge, trace.NamedEdge, trace.ElementEdge:
		kind, place = trace.ElementEdge, 0
	case trace.LocalEdge:
		place = 0
	}
	if e.Name != "" {
		place = 0
	}
	return fmt.Sprintf("\n%d %06d %s", kind, place, w.classLabel(e.To))
}

// firstNames returns, for each object, the labels of its shortest paths,
// sorted; the first label is that of the path that a search by name must find.
// Paths with references that are followed last are ignored.
func (w *world) firstNames(targets []heap.Object) map[heap.Object][]string {
	best, level := map[heap.Object][]string{}, map[heap.Object][]string{}
	for _, r := range w.reader.Roots() {
		if !r.Low {
			level[r.Object] = append(level[r.Object], w.rootLabel(r))
		}
	}
	for len(level) > 0 {
		next := map[heap.Object][]string{}
		for o, labels := range level {
			slices.Sort(labels)
			best[o] = slices.Compact(labels)
		}
		for o := range level {
			if slices.Contains(targets, o) {
				continue
			}
			w.reader.Read(o, func(e trace.Edge) {
				if _, known := best[e.To]; known || e.Low {
					return
				}
				// The first path by name to the next object extends the first
				// path by name to this object.
				next[e.To] = append(next[e.To], best[o][0]+w.edgeLabel(e))
			})
		}
		level = next
	}
	return best
}

// TestFoldedPath checks that the nodes of a list become one step, even if their
// classes have labels, and that the folded objects are counted.
func TestFoldedPath(t *testing.T) {
	h := hproftest.Java(1)
	node := h.Declare("a.Node", nil, "object left", "object right")
	end := h.New(h.Declare("a.End", nil), nil)
	at := h.New(node, hproftest.Fields{"right": end})
	for i := range 50 {
		at = h.New(node, hproftest.Fields{[]string{"left", "right"}[i/10%2]: at})
	}
	h.Hold("a.Holder", "head", at)
	w := load(t, h, hproftest.Form{}, trace.Rules{})
	s := w.find(w.objects(end), trace.Options{ByName: true})
	traces, err := s.Traces(t.Context(), w.objects(end), silent)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range traces[0].Elements {
		if e.Class == "a.Node" {
			got = append(got, fmt.Sprintf("%s %d", e.Field, e.Repeat))
		}
	}
	if want := "left 9,right 9,left 9,right 9,left 9,right 0"; strings.Join(got, ",") != want {
		t.Errorf("%q, want %s", got, want)
	}
}
