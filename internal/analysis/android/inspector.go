package android

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/text"
)

// InspectorOptions select the rules by which objects are judged.
type InspectorOptions struct {
	// Shark214 selects the rules of Shark 2.14, for comparisons with it.
	Shark214 bool
	// Outbound, if set, determines which fields hold contexts. It must stay
	// open as long as the Inspector. Without it no object has labels of its
	// contexts.
	Outbound *heap.Outbound
	// ThreadNames, if set, are already known: then a JVM's dump is not read for
	// them.
	ThreadNames map[heap.Object]string
	// Hide redacts texts of the app; nil shows them.
	Hide *Hider
}

// Inspector says of single objects whether they are needed, as LeakCanary's
// Shark 3 does, with its words (ObjectInspectors.kt,
// AndroidObjectInspectors.kt). Fields that a dump does not have make nothing
// known. Not for concurrent use.
//
// The rules of Shark 3, those here and those of Shark 2.14 differ in:
//
//	object                   Shark 3                        here                                Shark 2.14
//	androidx Fragment        AndroidXFragmentLifecycle.kt   as Shark 3                          only DESTROYED leaks
//	CompositionImpl          disposed or state              as Shark 3                          disposed alone
//	other Fragments          no manager: leaking            and never called into: not known    as Shark 3
//	Binder                   master: any is not leaking     one that native code holds is not:  not known, and no label
//	                                                        a list of binders may well leak
//	class, ClassLoader       master: "is always expected"   "is never leaking", in the words of as here
//	                                                        "Leaking: NO"
//	ViewModel                not known                      leaking once it was cleared         not known
//	JobSupport, scopes of coroutines
//	                         no label                       says that the job has ended         no label
//	ApplicationPackageManager  asks for a class that does not exist    asks for the right one   as Shark 3
//	DecorContext around an Application or Service:
//	                         what its window's context is   what that leads to                  as Shark 3
//	KeyedWeakReference and Message where the uptime of the dump is 0, as nobody set it:
//	                         times are differences to 0     no times                            as Shark 3
//	KeyedWeakReference without an uptime of the dump:
//	                         retained                       retained unless its field denies it as Shark 3
//	View whose ID has no name  "R.id.null"                  the number                          as Shark 3
//	StateFlowImpl._state     not under its newer name       also _state$volatile                as Shark 3
//	listeners of an Animator in a subclass of ArrayList:
//	                         "is empty"                     those there are                     as Shark 3
//	Thread of a JDK before 8, whose name is a char[]
//	                         "null"                         the name                            as Shark 3
//	anonymous class of an interface
//	                         if the host has the class      no label: the dump does not say     as Shark 3
type Inspector struct {
	graph    *heap.Graph
	rules    []rule
	outbound *heap.Outbound
	old      bool
	// android is true if the rules of Android apply.
	android bool
	// located are all objects of an Android dump; of a JVM's, kept are those
	// that matter.
	located *heap.Locations
	kept    map[heap.Object]heap.Record
	current heap.Record
	// holds is true if current is a record.
	holds  bool
	fields [fieldCount]*heap.Field
	layout *layout
	// classes are the facts by ClassNumber.
	classes []classFacts
	watches map[heap.Object][]watch
	// uptime is that of the dump in ms, if known.
	uptime      int64
	knowsUptime bool
	running     runningServices
	// components are what contexts wrap, noArray for none.
	components map[heap.Object]heap.Object
	globals    map[heap.Object]bool
	resources  *resourceNames
	// names are those of threads that are already known.
	names map[heap.Object]string
	hide  *Hider
	// valued are the threads that have a value of each thread local variable,
	// computed on demand.
	valued map[heap.Object][]heap.Object
	// placed are the threads that are referenced from a known place, computed
	// on demand.
	placed map[heap.Object]string
	// numbers caches the fields requested through Number.
	numbers map[trace.Member]*heap.Field
}

// NewInspector prepares to judge the objects of a graph. It reads the file
// once, or a few parts of it for a JVM's dump. The error is ctx's or the
// file's, or one of memory. The caller must call Close before the graph is
// closed.
func NewInspector(ctx context.Context, g *heap.Graph, o InspectorOptions) (*Inspector, error) {
	i := &Inspector{
		graph: g, rules: rules, outbound: o.Outbound, old: o.Shark214, names: o.ThreadNames, hide: o.Hide,
		layout: newLayout(g), classes: make([]classFacts, g.ClassCount()),
		watches: map[heap.Object][]watch{}, components: map[heap.Object]heap.Object{},
	}
	i.android = runtime(g) == RuntimeAndroid || g.HasClass("android.os.Build")
	references, threads := i.gather()
	if err := i.open(ctx, references, threads); err != nil {
		i.Close()
		return nil, fmt.Errorf("prepare to inspect objects: %w", err)
	}
	i.readUptime()
	for _, r := range references {
		i.readWatch(r)
	}
	return i, nil
}

// Close releases the memory. It may be called twice.
func (i *Inspector) Close() {
	if i.located != nil {
		i.located.Close()
		i.located, i.holds = nil, false
	}
}

// Inspect returns what is known about an object.
func (i *Inspector) Inspect(o heap.Object) trace.Inspection {
	var r report
	i.inspectWatches(o, &r)
	if i.graph.IsClass(o) {
		r.notLeaking("a class is never leaking")
		return r.Inspection
	}
	applying := i.facts(o).rules
	for n := range i.rules {
		if applying&(1<<n) != 0 {
			i.rules[n].inspect(i, o, &r)
		}
	}
	return r.Inspection
}

// Plain reports whether no rule decides if an object should still exist: those
// for all classes only add labels.
func (i *Inspector) Plain(o heap.Object) bool {
	if i.graph.IsClass(o) || len(i.watches[o]) > 0 {
		return false
	}
	f := i.facts(o)
	if !f.judgedKnown {
		f.judgedKnown = true
		for n := range i.rules {
			f.judged = f.judged || f.rules&(1<<n) != 0 && i.rules[n].class != ""
		}
	}
	return !f.judged
}

// report collects the texts about one object.
type report struct{ trace.Inspection }

const (
	// mostRemarks bounds the texts of each kind, longestRemark their
	// characters.
	mostRemarks   = 256
	longestRemark = 2048
)

func (r *report) leaking(format string, args ...any)    { remark(&r.Leaking, format, args) }
func (r *report) notLeaking(format string, args ...any) { remark(&r.NotLeaking, format, args) }
func (r *report) label(format string, args ...any)      { remark(&r.Labels, format, args) }

// remark adds a text if it is new. Names in it are the dump's.
func remark(list *[]string, format string, args []any) {
	if len(*list) == mostRemarks {
		return
	}
	remark := format
	if len(args) > 0 {
		remark = fmt.Sprintf(format, args...)
	}
	if remark = text.Excerpt(remark, longestRemark); !slices.Contains(*list, remark) {
		*list = append(*list, remark)
	}
}

// simple returns a class name without its package.
func simple(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }
