package trace

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Root is a GC root at which a path may begin.
type Root struct {
	Object heap.Object
	Kind   hprof.SubTag
	// Low roots are visited last. Matcher is the matcher of a known leak, or
	// nil.
	Low     bool
	Matcher *Matcher
}

// Roots returns the GC roots at which paths begin, in Shark's order: threads
// first, then by kind, then by the name of the class
// (MatchingGcRootProvider.kt). Unless Rules.AllRoots is set, it skips the
// virtual machine's own roots: interned strings, unknown and finalizing roots.
// Local variables belong to their threads. The caller must not change the
// result.
func (r *Reader) Roots() []Root { return r.roots }

// findRoots collects and sorts the roots, and assigns local variables to
// threads.
func (r *Reader) findRoots() {
	for i := range r.rules.Matchers {
		if m := &r.rules.Matchers[i]; m.Kind == NativeGlobal {
			r.globals[m.Class] = m
		}
	}
	frames := r.findThreads()
	met := map[heap.Object]bool{}
	r.graph.Roots(func(root hprof.Root, o heap.Object) {
		switch _, counts := rootNames[root.Kind]; {
		case !counts:
			if r.rules.AllRoots {
				r.roots = append(r.roots, Root{Object: o, Kind: root.Kind, Low: true})
			}
		case root.Kind == hprof.SubRootJavaFrame && frames[root.Thread]:
		case root.Kind == hprof.SubRootStickyClass && met[o]:
		default:
			r.root(root.Kind, o)
			met[o] = root.Kind == hprof.SubRootStickyClass || met[o]
		}
	})
	if r.rules.AllRoots {
		r.graph.Implied(func(o heap.Object) {
			r.roots = append(r.roots, Root{Object: o, Kind: hprof.SubRootStickyClass, Low: true})
		})
	}
	r.sortRoots()
}

// findThreads assigns local variables to threads, and returns the serial
// numbers that belong to a thread.
func (r *Reader) findThreads() map[uint32]bool {
	serials, bySerial := map[uint32]bool{}, map[uint32][]heap.Object{}
	r.graph.Roots(func(root hprof.Root, o heap.Object) {
		switch root.Kind {
		case hprof.SubRootThreadObject:
			serials[root.Thread] = true
			if r.graph.InstanceOf(o, "java.lang.Thread") {
				r.threads[o] = thread{serial: root.Thread}
			}
		case hprof.SubRootJavaFrame:
			bySerial[root.Thread] = append(bySerial[root.Thread], o)
		}
	})
	for o, t := range r.threads {
		t.locals = bySerial[t.serial]
		if r.rules.ThreadName != nil {
			t.matcher = r.localsOf(r.rules.ThreadName(o))
		}
		r.threads[o] = t
	}
	return serials
}

func (r *Reader) localsOf(name string) (last *Matcher) {
	for i := range r.rules.Matchers {
		if m := &r.rules.Matchers[i]; m.Kind == JavaLocal && m.Name == name {
			last = m
		}
	}
	return last
}

func (r *Reader) root(kind hprof.SubTag, o heap.Object) {
	root := Root{Object: o, Kind: kind, Low: kind == hprof.SubRootJavaFrame}
	if kind == hprof.SubRootJNIGlobal {
		if m := r.globals[r.name(o)]; m != nil {
			if m.Ignored {
				return
			}
			root.Low, root.Matcher = true, m
		}
	}
	r.roots = append(r.roots, root)
}

func (r *Reader) sortRoots() {
	names := map[heap.Object]string{}
	for _, root := range r.roots {
		names[root.Object] = r.name(root.Object)
	}
	slices.SortStableFunc(r.roots, func(a, b Root) int {
		if x, y := a.Kind == hprof.SubRootThreadObject, b.Kind == hprof.SubRootThreadObject; x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(rootNames[b.Kind], rootNames[a.Kind]),
			strings.Compare(names[a.Object], names[b.Object]))
	})
}

// name returns the name of an object's class; for a class object, it returns
// the name of the class that the object represents.
func (r *Reader) name(o heap.Object) string {
	if r.graph.IsClass(o) {
		return r.graph.ClassName(o)
	}
	return r.graph.Class(o)
}
