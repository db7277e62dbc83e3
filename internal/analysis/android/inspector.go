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

// InspectorOptions selects the rules by which objects are judged.
type InspectorOptions struct {
	// Shark214 selects the rules of Shark 2.14, for comparisons with it.
	Shark214 bool
	// Outbound, if set, is used to find the fields that hold contexts. It must
	// stay open as long as the Inspector. If it is nil, no object has labels
	// about its contexts.
	Outbound *heap.Outbound
	// ThreadNames, if set, maps threads to their names; in a dump of a JVM, the
	// threads are then not read.
	ThreadNames map[heap.Object]string
	// Redactor redacts the app's strings; if it is nil, they are not redacted.
	Redactor *Redactor
}

// Inspector determines whether an object is needed or leaks. It follows the
// rules and the wording of LeakCanary's Shark 3 (ObjectInspectors.kt,
// AndroidObjectInspectors.kt). If a dump lacks a field, everything that depends
// on the field is unknown. An Inspector is not safe for concurrent use.
//
// The rules of Shark 3, of this package and of Shark 2.14 differ as follows:
//
//	object                   Shark 3                        here                                Shark 2.14
//	androidx Fragment        AndroidXFragmentLifecycle.kt   as Shark 3                          only DESTROYED leaks
//	CompositionImpl          disposed or state              as Shark 3                          only disposed
//	other Fragments          no manager: leaking            unknown if mCalled is false         as Shark 3
//	Binder                   main branch: never leaking     not leaking if held by native code  unknown, no label
//	                                                        (a list of binders may leak)
//	class, ClassLoader       main: "is always expected"     "is never leaking"                  as here
//	                                                        (in the words of "Leaking: NO")
//	ViewModel                unknown                        leaking once it was cleared         unknown
//	JobSupport, scopes of coroutines
//	                         no label                       label if the job has ended          no label
//	ApplicationPackageManager
//	                         class name does not exist      right class name                    as Shark 3
//	DecorContext around an Application or Service:
//	                         the context of its window      what that context leads to          as Shark 3
//	KeyedWeakReference and Message, if the uptime of the dump is 0 because it was not set:
//	                         times are differences from 0   no times                            as Shark 3
//	KeyedWeakReference without an uptime of the dump:
//	                         retained                       retained unless its time is -1      as Shark 3
//	View with an unnamed ID  "R.id.null"                    the number                          as Shark 3
//	StateFlowImpl._state     not under its newer name       also _state$volatile                as Shark 3
//	listeners of an Animator in a subclass of ArrayList:
//	                         "is empty"                     the actual listeners                as Shark 3
//	Thread of a JDK before 8, whose name is a char[]:
//	                         "null"                         the name                            as Shark 3
//	anonymous class of an interface:
//	                         label if host has the class    no label: not in the dump           as Shark 3
type Inspector struct {
	graph    *heap.Graph
	rules    []rule
	outbound *heap.Outbound
	old      bool
	// android reports whether the rules for Android apply.
	android bool
	// located holds the positions of all objects of an Android dump; kept holds
	// the relevant objects of a dump of a JVM.
	located *heap.Locations
	kept    map[heap.Object]heap.Record
	current heap.Record
	// holds reports whether current is a valid record.
	holds  bool
	fields [fieldCount]*heap.Field
	layout *layout
	// classes holds the facts about classes, by ClassNumber.
	classes []classFacts
	watches map[heap.Object][]watch
	// uptime is the uptime of the device when the dump was taken, in ms, if it
	// is known.
	uptime      int64
	knowsUptime bool
	running     runningServices
	// components maps each context to the component that it wraps, or to
	// noArray if there is none.
	components map[heap.Object]heap.Object
	globals    map[heap.Object]bool
	resources  *resourceNames
	// names holds InspectorOptions.ThreadNames.
	names map[heap.Object]string
	hide  *Redactor
	// valued maps each thread-local variable to the threads that have a value
	// of the variable; it is computed on demand.
	valued map[heap.Object][]heap.Object
	// placed is the result of the method place, which is called on demand.
	placed map[heap.Object]string
	// numbers caches the fields requested through Number.
	numbers map[trace.Member]*heap.Field
}

// NewInspector prepares an inspector for the objects of a graph. It reads the
// whole file once, or only a few parts of it for a JVM's dump. An error means
// that ctx is done, that the file cannot be read, or that there is not enough
// memory. The caller must call Close before the graph is closed.
func NewInspector(ctx context.Context, g *heap.Graph, o InspectorOptions) (*Inspector, error) {
	i := &Inspector{
		graph: g, rules: rules, outbound: o.Outbound, old: o.Shark214, names: o.ThreadNames, hide: o.Redactor,
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

// Close releases the Inspector's memory. It may be called more than once.
func (i *Inspector) Close() {
	if i.located != nil {
		i.located.Close()
		i.located, i.holds = nil, false
	}
}

// Inspect applies the rules to an object and returns the resulting reasons and
// labels.
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

// Undecided reports whether an object's class has no rule by which to decide if
// the object should still exist. Rules that apply to all classes are ignored,
// because they only add labels. Undecided returns false for classes and for
// objects that LeakCanary watched.
func (i *Inspector) Undecided(o heap.Object) bool {
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

// report collects the remarks about one object: reasons and labels.
type report struct{ trace.Inspection }

const (
	// mostRemarks is the maximum number of remarks of each type; longestRemark
	// is their maximum length in characters.
	mostRemarks   = 256
	longestRemark = 2048
)

func (r *report) leaking(format string, args ...any)    { remark(&r.Leaking, format, args) }
func (r *report) notLeaking(format string, args ...any) { remark(&r.NotLeaking, format, args) }
func (r *report) label(format string, args ...any)      { remark(&r.Labels, format, args) }

// remark adds a remark unless it has already been added. It makes the remark
// printable, because names from the dump may contain any characters.
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
